/* Parameters: found by name in the weights, checked against what the compiled
 * code expects, copied where their type or layout is another. */
#include "runtime/Model.h"
#include "runtime/io/Convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MaxName = 1024, MaxIndices = 16 };

int64_t heed_param_instances(const heed_param_info *info) {
  int64_t count = 1;
  if (info->numIndices < 0 || info->numIndices > MaxIndices)
    return -1;
  for (int32_t k = 0; k < info->numIndices; ++k) {
    int64_t range = info->indexBounds[2 * k + 1] - info->indexBounds[2 * k];
    if (range < 0 || __builtin_mul_overflow(count, range, &count) ||
        count > 1 << 24)
      return -1;
  }
  return count;
}

/* Writes `pattern` with its loop variables' values; false if it does not fit.
 */
static bool expandName(char *name, const char *pattern, const int64_t *indices,
                       int32_t numIndices) {
  size_t length = 0;
  for (const char *p = pattern; *p;) {
    char *stop;
    if (*p == '{' && p[1] >= '0' && p[1] <= '9') {
      long k = strtol(p + 1, &stop, 10);
      if (*stop == '}' && k < numIndices) {
        int wrote =
            snprintf(name + length, MaxName - length, "%" PRId64, indices[k]);
        length += (size_t)wrote;
        if (length >= MaxName)
          return false;
        p = stop + 1;
        continue;
      }
    }
    if (length + 1 >= MaxName)
      return false;
    name[length++] = *p++;
  }
  name[length] = 0;
  return true;
}

static void formatExpected(char *text, size_t size,
                           const heed_param_info *info) {
  size_t length = (size_t)snprintf(text, size, "[");
  for (int32_t axis = 0; axis < info->rank && length < size; ++axis) {
    length +=
        (size_t)(info->sizes[axis] >= 0
                     ? snprintf(text + length, size - length, "%s%" PRId64,
                                axis ? ", " : "", info->sizes[axis])
                     : snprintf(text + length, size - length, "%s%s",
                                axis ? ", " : "", info->extents[axis]));
  }
  if (length < size)
    snprintf(text + length, size - length, "]");
}

static heed_status checkShape(heed_model *model, const heed_param_info *info,
                              const heed_found_weight *weight) {
  const heed_array *array = &weight->array;
  bool fits = array->rank == info->rank;
  for (int32_t axis = 0; fits && axis < info->rank; ++axis)
    fits = info->sizes[axis] < 0 || info->sizes[axis] == array->shape[axis];
  if (fits)
    return HEED_OK;
  char expected[256], found[256];
  formatExpected(expected, sizeof expected, info);
  heed_io_format_shape(found, sizeof found, array->rank, array->shape);
  return heed_fail(model, HEED_ERROR_WEIGHTS, "%s: expected shape %s, found %s",
                   weight->where, expected, found);
}

static heed_status findWeight(heed_model *model, const heed_options *options,
                              const heed_param_info *info,
                              const int64_t *indices,
                              heed_found_weight *weight) {
  char name[MaxName], first[MaxName] = "";
  bool found = false;
  for (int32_t k = 0; k < info->numNames && !found; ++k) {
    if (!expandName(name, info->names[k], indices, info->numIndices))
      return heed_fail(model, HEED_ERROR_WEIGHTS, "parameter name too long");
    if (k == 0)
      strcpy(first, name);
    heed_status status =
        heed_sources_find(model, options, name, weight, &found);
    if (status)
      return status;
  }
  if (found)
    return HEED_OK;
  return heed_fail(model, HEED_ERROR_WEIGHTS,
                   "no tensor '%s'%s%s%s among the %zu of the weights", first,
                   info->numNames > 1 ? " (nor '" : "",
                   info->numNames > 1 ? name : "",
                   info->numNames > 1 ? "')" : "",
                   heed_weights_count(model->shared->weights));
}

static bool isAligned(const void *data, size_t size) {
  return (uintptr_t)data % size == 0;
}

/* Memory of the handles' own for `bytes` of this instance. */
static heed_status own(heed_model *model, heed_param_instance *instance,
                       int64_t bytes, const char *where) {
  instance->data = heed_heap_take(&model->shared->heap, 64, (size_t)bytes);
  if (!instance->data)
    return heed_fail(model, HEED_ERROR_MEMORY, "%s: no memory for a copy of it",
                     where);
  instance->ownedBytes = bytes ? (size_t)bytes : 1;
  return HEED_OK;
}

/* Copies a dense array to the instance in the type that the code reads. */
static heed_status convertTo(heed_model *model, const heed_array *array,
                             int32_t type, bool roundsF64, void *memory,
                             const char *where) {
  heed_io_error error;
  if (heed_convert_array(array, type,
                         roundsF64 ? HEED_ROUND_F64 : HEED_ROUND_F32, memory,
                         where, &error))
    return HEED_OK;
  return heed_fail(model, HEED_ERROR_TYPE, "%s", error.text);
}

/* The same for one whose elements lie apart: they are gathered first. */
static heed_status gather(heed_model *model, const heed_found_weight *weight,
                          int32_t type, bool roundsF64, void *memory) {
  heed_heap *heap = &model->shared->heap;
  heed_array array = weight->array;
  size_t size = heed_type_size(array.type), bytes = (size_t)array.count * size;
  void *dense = heed_heap_take(heap, 64, bytes);
  if (!dense)
    return heed_fail(model, HEED_ERROR_MEMORY, "%s: no memory for a copy of it",
                     weight->where);
  heed_strides_gather(dense, array.data, array.rank, array.shape,
                      weight->strides, size);
  array.data = dense;
  heed_status status =
      convertTo(model, &array, type, roundsF64, memory, weight->where);
  heed_heap_give(heap, dense, bytes);
  return status;
}

static heed_status loadInstance(heed_model *model, const heed_options *options,
                                const heed_param_info *info,
                                const int64_t *indices,
                                heed_param_instance *instance) {
  heed_found_weight weight = {0};
  heed_status status = findWeight(model, options, info, indices, &weight);
  if (!status)
    status = checkShape(model, info, &weight);
  if (status)
    return status;
  const heed_array *array = &weight.array;
  memcpy(instance->shape, array->shape, sizeof instance->shape);
  size_t size = heed_type_size(info->type);
  if (!array->type)
    return heed_fail(model, HEED_ERROR_TYPE,
                     "%s: expected element type %s, found %s", weight.where,
                     heed_type_name(info->type), weight.dtype);
  bool fits = array->type == info->type && info->type != HEED_BOOL &&
              !weight.strides && isAligned(array->data, size);
  if (fits && !options->copyWeights) {
    instance->data = array->data;
    return HEED_OK;
  }
  status = own(model, instance, array->count * (int64_t)size, weight.where);
  if (status)
    return status;
  void *memory = (void *)(uintptr_t)instance->data;
  bool roundsF64 = options->convert != 0;
  return weight.strides ? gather(model, &weight, info->type, roundsF64, memory)
                        : convertTo(model, array, info->type, roundsF64, memory,
                                    weight.where);
}

heed_status heed_param_room(heed_model *model, int32_t param, int64_t *count) {
  const heed_param_info *info = &model->desc->params[param];
  *count = heed_param_instances(info);
  if (*count < 0 || info->rank < 0 || info->rank > HEED_MAX_RANK ||
      info->numNames < 1 || heed_type_size(info->type) == 0)
    return heed_fail(model, HEED_ERROR_INTERNAL,
                     "parameter %d of the model is not described rightly",
                     param);
  model->shared->params[param] =
      calloc(*count ? (size_t)*count : 1, sizeof(heed_param_instance));
  if (!model->shared->params[param])
    return heed_fail(model, HEED_ERROR_MEMORY, "no memory for parameters");
  return HEED_OK;
}

static heed_status loadParam(heed_model *model, const heed_options *options,
                             int32_t param) {
  const heed_param_info *info = &model->desc->params[param];
  int64_t indices[MaxIndices], count;
  heed_status made = heed_param_room(model, param, &count);
  if (made)
    return made;
  for (int64_t k = 0; k < count; ++k) {
    int64_t rest = k;
    for (int32_t axis = info->numIndices - 1; axis >= 0; --axis) {
      int64_t low = info->indexBounds[2 * axis];
      int64_t range = info->indexBounds[2 * axis + 1] - low;
      indices[axis] = low + rest % range;
      rest /= range;
    }
    heed_status status = loadInstance(model, options, info, indices,
                                      &model->shared->params[param][k]);
    if (status)
      return status;
  }
  return HEED_OK;
}

heed_status heed_params_load(heed_model *model, const heed_options *options) {
  heed_shared *shared = model->shared;
  const heed_model_desc *desc = model->desc;
  if (desc->numParams == 0)
    return HEED_OK;
  heed_status status = heed_sources_open(model, options);
  if (status)
    return status;
  shared->params = calloc((size_t)desc->numParams, sizeof *shared->params);
  if (!shared->params)
    return heed_fail(model, HEED_ERROR_MEMORY, "no memory for parameters");
  for (int32_t param = 0; param < desc->numParams && !status; ++param)
    status = loadParam(model, options, param);
  if (options->copyWeights) {
    /* Nothing reads the files any more. */
    heed_weights_close(shared->weights);
    shared->weights = NULL;
  }
  return status;
}

/* Gives back what was copied of the instances of a parameter. */
static void dropCopies(heed_shared *shared, int32_t param) {
  heed_param_instance *instances = shared->params[param];
  int64_t count =
      instances ? heed_param_instances(&shared->desc->params[param]) : 0;
  for (int64_t k = 0; k < count; ++k)
    if (instances[k].ownedBytes) {
      heed_heap_give(&shared->heap, (void *)(uintptr_t)instances[k].data,
                     instances[k].ownedBytes);
      instances[k].data = NULL;
      instances[k].ownedBytes = 0;
    }
}

void heed_params_opened(heed_shared *shared) {
  for (int32_t param = 0; shared->params && param < shared->desc->numParams;
       ++param)
    if (shared->desc->params[param].isForOpening)
      dropCopies(shared, param);
}

void heed_params_release(heed_shared *shared) {
  for (int32_t param = 0; shared->params && param < shared->desc->numParams;
       ++param) {
    dropCopies(shared, param);
    free(shared->params[param]);
  }
  free(shared->params);
  heed_weights_close(shared->weights);
}

int64_t heed_param_bytes(const heed_param_info *info,
                         const heed_param_instance *instance) {
  int64_t size = instance->data ? (int64_t)heed_type_size(info->type) : 0;
  for (int32_t axis = 0; axis < info->rank; ++axis)
    size *= instance->shape[axis];
  return size;
}

static int byPlace(const void *left, const void *right) {
  const heed_read_param *a = left, *b = right;
  uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
  if (x != y)
    return x < y ? -1 : 1;
  return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Of the parameters that were copied, or else of those that are read in place;
 * a tensor that several read counts once. */
static int64_t bytesOfAll(const heed_shared *shared, bool owned) {
  int64_t bytes = 0, number = 0;
  int32_t numParams = shared->params ? shared->desc->numParams : 0;
  for (int32_t param = 0; param < numParams; ++param)
    number += heed_param_instances(&shared->desc->params[param]);
  heed_read_param *all = calloc((size_t)number + 1, sizeof *all);
  if (!all)
    return 0;
  size_t count = 0;
  for (int32_t param = 0; param < numParams; ++param) {
    const heed_param_info *info = &shared->desc->params[param];
    const heed_param_instance *instance = shared->params[param];
    for (int64_t k = heed_param_instances(info); k > 0; --k, ++instance)
      if ((instance->ownedBytes != 0) == owned)
        all[count++] = (heed_read_param){
            instance->data, (size_t)heed_param_bytes(info, instance)};
  }
  qsort(all, count, sizeof *all, byPlace);
  for (size_t k = 0; k < count; ++k)
    if (k + 1 == count || all[k].data != all[k + 1].data)
      bytes += (int64_t)all[k].bytes;
  free(all);
  return bytes;
}

heed_weights_bytes heed_bytes_of_weights(const heed_shared *shared) {
  heed_weights_bytes bytes = {bytesOfAll(shared, false),
                              bytesOfAll(shared, true)};
  *(shared->packed.data ? &bytes.inPlace : &bytes.copies) += shared->keptBytes;
  if (shared->packedIsCopied)
    bytes = (heed_weights_bytes){0, bytes.inPlace + bytes.copies};
  return bytes;
}

bool heed_params_extent(const heed_shared *shared, const char *name,
                        int64_t *extent) {
  for (int32_t p = 0; p < shared->desc->numParams; ++p) {
    const heed_param_info *info = &shared->desc->params[p];
    for (int32_t axis = 0; axis < info->rank; ++axis)
      if (!strcmp(info->extents[axis], name) &&
          heed_param_instances(info) > 0) {
        *extent = shared->params[p][0].shape[axis];
        return true;
      }
  }
  return false;
}

/* The instance for these loop variables; leaves the call if one is out of its
 * bounds. */
static const heed_param_instance *findInstance(heed_model *model, int32_t param,
                                               const int64_t *indices) {
  if (param < 0 || param >= model->desc->numParams)
    heed_unwind(model, HEED_ERROR_INTERNAL, "there is no parameter %d", param);
  const heed_param_info *info = &model->desc->params[param];
  int64_t instance = 0;
  for (int32_t k = 0; k < info->numIndices; ++k) {
    int64_t low = info->indexBounds[2 * k], high = info->indexBounds[2 * k + 1];
    if (indices[k] < low || indices[k] >= high)
      heed_unwind(model, HEED_ERROR_INTERNAL,
                  "parameter '%s': loop variable %" PRId64
                  " is outside %" PRId64 "..%" PRId64,
                  info->names[0], indices[k], low, high);
    instance = instance * (high - low) + (indices[k] - low);
  }
  return &model->shared->params[param][instance];
}

const void *heed_host_param(heed_model *model, int32_t param,
                            const int64_t *indices) {
  const heed_param_instance *instance = findInstance(model, param, indices);
  const heed_param_info *info = &model->desc->params[param];
  if (model->inInit && info->isForOpening && !instance->ownedBytes &&
      model->numLastRead < HEED_LAST_READ)
    model->lastRead[model->numLastRead++] = (heed_read_param){
        instance->data, (size_t)heed_param_bytes(info, instance)};
  return instance->data;
}

void heed_params_packed(heed_model *model) {
  for (int k = 0; k < model->numLastRead; ++k)
    heed_weights_leave(model->shared->weights, model->lastRead[k].data,
                       model->lastRead[k].bytes);
  model->numLastRead = 0;
}

int64_t heed_host_param_extent(heed_model *model, int32_t param,
                               const int64_t *indices, int32_t axis) {
  const heed_param_instance *instance = findInstance(model, param, indices);
  if (axis < 0 || axis >= model->desc->params[param].rank)
    heed_unwind(model, HEED_ERROR_INTERNAL, "parameter %d has no axis %d",
                param, axis);
  return instance->shape[axis];
}
