/* Where weights come from: the host's callback, files, files in memory. */
#include "runtime/Model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const heed_weights_data *dataAt(const heed_options *options, size_t k) {
  return (const heed_weights_data *)((const char *)options->weightsData +
                                     k * options->weightsData->size);
}

static heed_status checkSources(heed_model *model,
                                const heed_options *options) {
  for (size_t k = 0; k < options->numWeights; ++k)
    if (!options->weights || !options->weights[k])
      return heed_fail(model, HEED_ERROR_ARGUMENT,
                       "weights file %zu of %zu has no name", k + 1,
                       options->numWeights);
  for (size_t k = 0; k < options->numWeightsData; ++k) {
    if (!options->weightsData || !dataAt(options, k)->data)
      return heed_fail(model, HEED_ERROR_ARGUMENT,
                       "weights in memory, %zu of %zu, have no data", k + 1,
                       options->numWeightsData);
    if (dataAt(options, k)->size < sizeof(heed_weights_data) ||
        dataAt(options, k)->size != options->weightsData->size)
      return heed_fail(model, HEED_ERROR_VERSION,
                       "options.weightsData[%zu]: a struct of %zu bytes, "
                       "expected %zu",
                       k, dataAt(options, k)->size, sizeof(heed_weights_data));
  }
  return HEED_OK;
}

heed_status heed_sources_open(heed_model *model, const heed_options *options) {
  heed_status status = checkSources(model, options);
  if (status)
    return status;
  if (!options->numWeights && !options->numWeightsData && !options->findWeight)
    return heed_fail(model, HEED_ERROR_WEIGHTS,
                     "model '%s' has %d parameters: expected a weights file",
                     model->desc->name, model->desc->numParams);
  heed_io_error error;
  heed_weights **weights = &model->shared->weights;
  bool good = heed_weights_open(options->weights, options->numWeights,
                                options->copyWeights != 0, weights, &error);
  for (size_t k = 0; good && k < options->numWeightsData; ++k) {
    const heed_weights_data *data = dataAt(options, k);
    good = heed_weights_add(*weights, data->name ? data->name : "memory",
                            data->data, data->numBytes, &error);
  }
  return good ? HEED_OK : heed_fail(model, HEED_ERROR_FILE, "%s", error.text);
}

/* What the callback gives becomes an array. */
static heed_status takeBuffer(heed_model *model, const heed_buffer *buffer,
                              heed_found_weight *weight) {
  heed_array *array = &weight->array;
  int64_t bytes, begin, end;
  size_t size = heed_type_size(buffer->type);
  if (buffer->deviceType != 0 && buffer->deviceType != HEED_DEVICE_CPU)
    return heed_fail(model, HEED_ERROR_DEVICE,
                     "%s: expected memory of the CPU, found device type %d",
                     weight->where, buffer->deviceType);
  if (!size)
    return heed_fail(model, HEED_ERROR_TYPE,
                     "%s: %d is no element type (a heed_type)", weight->where,
                     buffer->type);
  if (buffer->rank < 0 || buffer->rank > HEED_MAX_RANK ||
      !heed_io_byte_count(buffer->rank, buffer->shape, (int64_t)size, &bytes) ||
      !heed_strides_range(buffer->rank, buffer->shape, buffer->strides, size,
                          &begin, &end))
    return heed_fail(model, HEED_ERROR_WEIGHTS,
                     "%s: its rank, shape or strides are none", weight->where);
  if (!buffer->data && bytes)
    return heed_fail(model, HEED_ERROR_WEIGHTS, "%s: has no data",
                     weight->where);
  array->data =
      buffer->data ? (const char *)buffer->data + buffer->byteOffset : NULL;
  array->type = buffer->type;
  array->rank = buffer->rank;
  memcpy(array->shape, buffer->shape, sizeof array->shape);
  array->count = bytes / (int64_t)size;
  array->fortran = false;
  weight->dtype = heed_type_name(buffer->type);
  weight->strides =
      heed_strides_are_dense(buffer->rank, buffer->shape, buffer->strides)
          ? NULL
          : buffer->strides;
  return HEED_OK;
}

heed_status heed_sources_find(heed_model *model, const heed_options *options,
                              const char *name, heed_found_weight *weight,
                              bool *found) {
  *found = true;
  weight->strides = NULL;
  heed_buffer buffer = {.size = sizeof buffer};
  if (options->findWeight &&
      options->findWeight(options->findWeightUser, name, &buffer)) {
    snprintf(weight->where, sizeof weight->where, "options.findWeight: '%s'",
             name);
    return takeBuffer(model, &buffer, weight);
  }
  const char *path;
  const heed_safetensor *tensor =
      heed_weights_find(model->shared->weights, name, &path);
  if (tensor) {
    weight->array = tensor->array;
    weight->dtype = tensor->dtype;
    snprintf(weight->where, sizeof weight->where, "%s: '%s'", path,
             tensor->name);
  }
  *found = tensor != NULL;
  return HEED_OK;
}
