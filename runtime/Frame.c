/* The buffers of one call: checked, found in memory, made arguments of compiled
 * code; dense copies of what does not lie dense. */
#include "runtime/Frame.h"
#include "runtime/State.h"

#include <inttypes.h>
#include <string.h>

/* ---- the caller's structs ---- */

bool heed_is_readable(const void *record, size_t size, size_t least,
                      size_t known) {
  if (size < least)
    return false;
  /* A size of nobody's making must not lead far astray. */
  if (size > known + 4096)
    return false;
  for (size_t k = known; k < size; ++k)
    if (((const char *)record)[k])
      return false;
  return true;
}

static const heed_buffer *at(const heed_buffer *buffers, size_t k) {
  return (const heed_buffer *)((const char *)buffers + k * buffers->size);
}

heed_status heed_frame_check_size(heed_model *model, const heed_buffer *buffers,
                                  size_t k, const char *kind) {
  size_t size = at(buffers, k)->size;
  if (size == buffers->size &&
      heed_is_readable(at(buffers, k), size, HEED_LEAST_BUFFER,
                       sizeof(heed_buffer)))
    return HEED_OK;
  return heed_fail(model, HEED_ERROR_VERSION,
                   "%s %zu: a heed_buffer of %zu bytes, or with fields that "
                   "this library does not know: expected size = "
                   "sizeof(heed_buffer) in each, %zu here",
                   kind, k, size, sizeof(heed_buffer));
}

/* ---- buffers ---- */

size_t heed_run_bytes(const heed_model_desc *desc) {
  size_t most = 1;
  for (int32_t k = 0; k < desc->numEntries; ++k) {
    const heed_signature *entry = &desc->entries[k].signature;
    size_t inputs = (size_t)entry->numInputs,
           outputs = (size_t)entry->numOutputs;
    /* A state may be replaced: what it is before and after. */
    size_t bytes =
        (inputs + outputs) * (sizeof(heed_argument) + sizeof(heed_place)) +
        2 * (size_t)desc->numStates * sizeof(heed_argument) +
        inputs * sizeof(heed_scalar);
    most = bytes > most ? bytes : most;
  }
  return most;
}

heed_frame heed_frame_of(const heed_model *model,
                         const heed_signature *signature) {
  int32_t numStates = model->desc->numStates;
  heed_frame f = {.signature = signature, .in = model->arguments};
  f.out = f.in + signature->numInputs + numStates;
  f.inPlaces = (heed_place *)(f.out + signature->numOutputs + numStates);
  f.outPlaces = f.inPlaces + signature->numInputs;
  f.defaults = (heed_scalar *)(f.outPlaces + signature->numOutputs);
  return f;
}

static heed_status checkShape(heed_model *model, const heed_tensor_info *info,
                              const heed_buffer *buffer, const char *kind) {
  /* Written only for a message: it takes longer than the checks. */
  char found[256];
  for (int32_t axis = 0; axis < info->rank; ++axis)
    if (buffer->shape[axis] < 0 ||
        (info->sizes[axis] >= 0 && info->sizes[axis] != buffer->shape[axis])) {
      heed_io_format_shape(found, sizeof found, buffer->rank, buffer->shape);
      return heed_fail(model, HEED_ERROR_SHAPE,
                       "%s '%s': expected extent %s on axis %d, found shape %s",
                       kind, info->name, info->extents[axis], axis, found);
    }
  for (int32_t axis = 0; axis < info->rank; ++axis)
    if (buffer->shape[axis] > HEED_MAX_EXTENT)
      return heed_fail(model, HEED_ERROR_SHAPE,
                       "%s '%s': extent %s on axis %d is %" PRId64
                       ", expected at most %d",
                       kind, info->name, info->extents[axis], axis,
                       buffer->shape[axis], HEED_MAX_EXTENT);
  int64_t bytes;
  if (!heed_io_byte_count(buffer->rank, buffer->shape,
                          (int64_t)heed_type_size(buffer->type), &bytes)) {
    heed_io_format_shape(found, sizeof found, buffer->rank, buffer->shape);
    return heed_fail(model, HEED_ERROR_MEMORY, "%s '%s': shape %s is too large",
                     kind, info->name, found);
  }
  return HEED_OK;
}

/* Pinned memory is the CPU's, of whatever device it is pinned for. */
static bool isOnHost(const heed_buffer *buffer) {
  return (buffer->deviceType == 0 || buffer->deviceType == HEED_DEVICE_CPU)
             ? buffer->deviceNumber == 0
             : buffer->deviceType == HEED_DEVICE_CUDA_HOST;
}

/* Whether it lies on the CPU or on the device that the handle computes on. */
static heed_status checkPlace(heed_model *model, const heed_tensor_info *info,
                              const heed_buffer *buffer, const char *kind,
                              heed_place *where) {
  const heed_gpu *gpu = model->desc->gpu;
  where->onDevice = false;
  if (isOnHost(buffer))
    return HEED_OK;
  where->onDevice = model->device && gpu->has(model->device, buffer->deviceType,
                                              buffer->deviceNumber);
  if (where->onDevice && !info->isScalar)
    return HEED_OK;
  if (where->onDevice)
    return heed_fail(model, HEED_ERROR_DEVICE,
                     "%s '%s' is a number: expected it on the CPU (device type "
                     "%d), found device type %d",
                     kind, info->name, HEED_DEVICE_CPU, buffer->deviceType);
  if (buffer->deviceType == 0 || buffer->deviceType == HEED_DEVICE_CPU)
    return heed_fail(model, HEED_ERROR_DEVICE,
                     "%s '%s': expected device number 0, found %d", kind,
                     info->name, buffer->deviceNumber);
  return heed_fail(model, HEED_ERROR_DEVICE,
                   "%s '%s': expected memory of the CPU (device type %d)%s%s, "
                   "found device type %d, number %d",
                   kind, info->name, HEED_DEVICE_CPU,
                   model->device ? " or of the model's " : "",
                   model->device ? model->deviceText : "", buffer->deviceType,
                   buffer->deviceNumber);
}

static heed_status checkBuffer(heed_model *model, const heed_tensor_info *info,
                               const heed_buffer *buffer, const char *kind,
                               heed_place *where) {
  heed_status status = checkPlace(model, info, buffer, kind, where);
  if (status)
    return status;
  if (buffer->type != info->type)
    return heed_fail(model, HEED_ERROR_TYPE,
                     "%s '%s': expected element type %s, found %s", kind,
                     info->name, heed_type_name(info->type),
                     heed_type_name(buffer->type));
  if (buffer->rank != info->rank)
    return heed_fail(model, HEED_ERROR_SHAPE,
                     "%s '%s': expected %d axes, found %d", kind, info->name,
                     info->rank, buffer->rank);
  return checkShape(model, info, buffer, kind);
}

/* Finds the elements of a buffer that has been checked. */
static heed_status locate(heed_model *model, const heed_tensor_info *info,
                          const heed_buffer *buffer, const char *kind,
                          heed_place *where) {
  size_t size = heed_type_size(info->type);
  where->first =
      buffer->data ? (char *)buffer->data + buffer->byteOffset : NULL;
  where->strides =
      heed_strides_are_dense(buffer->rank, buffer->shape, buffer->strides)
          ? NULL
          : buffer->strides;
  int64_t begin, end;
  if (!heed_strides_range(buffer->rank, buffer->shape, where->strides, size,
                          &begin, &end))
    return heed_fail(model, HEED_ERROR_MEMORY,
                     "%s '%s': its strides lead beyond what can be addressed",
                     kind, info->name);
  where->begin = (uintptr_t)where->first + (uintptr_t)begin;
  where->end = (uintptr_t)where->first + (uintptr_t)end;
  if ((uintptr_t)where->first % size)
    return heed_fail(model, HEED_ERROR_ARGUMENT,
                     "%s '%s' is not aligned to its elements of %zu bytes",
                     kind, info->name, size);
  return HEED_OK;
}

static bool isEmpty(const heed_buffer *buffer) {
  for (int32_t axis = 0; axis < buffer->rank; ++axis)
    if (buffer->shape[axis] == 0)
      return true;
  return false;
}

static void setArgument(heed_argument *argument, const heed_buffer *buffer,
                        void *data) {
  argument->data = data;
  argument->type = buffer->type;
  argument->rank = buffer->rank;
  memcpy(argument->shape, buffer->shape,
         (size_t)buffer->rank * sizeof *argument->shape);
}

/* ---- inputs ---- */

static void setDefault(const heed_tensor_info *info, heed_scalar *value,
                       heed_argument *argument) {
  switch (info->type) {
  case HEED_F32:
    value->real = (float)info->defaultReal;
    break;
  case HEED_I32:
    value->narrow = (int32_t)info->defaultInteger;
    break;
  case HEED_I64:
    value->integer = info->defaultInteger;
    break;
  default:
    value->byte = (uint8_t)info->defaultInteger;
    break;
  }
  argument->data = value;
  argument->type = info->type;
  argument->rank = 0;
}

heed_status heed_frame_take_inputs(heed_model *model, const heed_frame *f,
                                   const heed_buffer *inputs, bool needData) {
  for (int32_t k = 0; k < f->signature->numInputs; ++k) {
    const heed_tensor_info *info = f->signature->inputs[k];
    heed_status status =
        heed_frame_check_size(model, inputs, (size_t)k, "input");
    if (status)
      return status;
    const heed_buffer *buffer = at(inputs, (size_t)k);
    if (!buffer->data && info->isScalar && info->hasDefault) {
      f->inPlaces[k] = (heed_place){.first = NULL};
      setDefault(info, &f->defaults[k], &f->in[k]);
      continue;
    }
    status = checkBuffer(model, info, buffer, "input", &f->inPlaces[k]);
    if (!status)
      status = locate(model, info, buffer, "input", &f->inPlaces[k]);
    if (status)
      return status;
    if ((needData || info->isScalar) && !buffer->data && !isEmpty(buffer))
      return heed_fail(model, HEED_ERROR_ARGUMENT, "input '%s' has no data",
                       info->name);
    setArgument(&f->in[k], buffer, f->inPlaces[k].first);
  }
  return HEED_OK;
}

/* ---- states ---- */

static void setState(heed_argument *argument, const heed_tensor_info *info,
                     const int64_t *shape, void *data) {
  argument->data = data;
  argument->type = info->type;
  argument->rank = info->rank;
  memcpy(argument->shape, shape, sizeof argument->shape);
}

heed_status heed_frame_take_states(heed_model *model, const heed_frame *f,
                                   const int64_t *replaced, bool needData) {
  const heed_model_desc *desc = model->desc;
  heed_state *state = model->state;
  for (int32_t k = 0; k < desc->numStates; ++k)
    setState(&f->in[f->signature->numInputs + k], desc->states[k],
             state->tensors[k].shape, state->tensors[k].data);
  for (int32_t r = 0; needData && replaced && replaced[r] >= 0; ++r) {
    int32_t k = (int32_t)replaced[r];
    int64_t bytes = state->tensors[k].bytes;
    void *spare = model->plan
                      ? heed_plan_take(model->plan, bytes, /*counts=*/false)
                      : heed_state_spare(state, k);
    if (!spare)
      return heed_fail(model, HEED_ERROR_MEMORY,
                       "no memory for what the state '%s' is after the call, "
                       "%" PRId64 " bytes",
                       desc->states[k]->name, bytes);
    setState(&f->out[f->signature->numOutputs + r], desc->states[k],
             state->tensors[k].shape, spare);
  }
  return HEED_OK;
}

/* ---- outputs ---- */

static bool overlap(const heed_place *a, const heed_place *b) {
  return a->begin < b->end && b->begin < a->end && a->begin < a->end &&
         b->begin < b->end;
}

static heed_status checkOverlap(heed_model *model, const heed_frame *f) {
  const heed_signature *signature = f->signature;
  for (int32_t k = 0; k < signature->numOutputs; ++k) {
    const char *other = NULL;
    for (int32_t j = 0; j < signature->numInputs && !other; ++j)
      if (overlap(&f->outPlaces[k], &f->inPlaces[j]))
        other = signature->inputs[j]->name;
    for (int32_t j = 0; j < k && !other; ++j)
      if (overlap(&f->outPlaces[k], &f->outPlaces[j]))
        other = signature->outputs[j]->name;
    if (other)
      return heed_fail(model, HEED_ERROR_ARGUMENT,
                       "output '%s' overlaps the memory of '%s'",
                       signature->outputs[k]->name, other);
  }
  return HEED_OK;
}

heed_status heed_frame_take_outputs(heed_model *model, const heed_frame *f,
                                    const heed_buffer *outputs) {
  for (int32_t k = 0; k < f->signature->numOutputs; ++k) {
    const heed_tensor_info *info = f->signature->outputs[k];
    heed_status status =
        heed_frame_check_size(model, outputs, (size_t)k, "output");
    const heed_buffer *buffer = at(outputs, (size_t)k);
    if (!status)
      status = checkBuffer(model, info, buffer, "output", &f->outPlaces[k]);
    if (status)
      return status;
    if (memcmp(buffer->shape, f->out[k].shape,
               (size_t)info->rank * sizeof(int64_t)) != 0) {
      char expected[256], found[256];
      heed_io_format_shape(expected, sizeof expected, info->rank,
                           f->out[k].shape);
      heed_io_format_shape(found, sizeof found, info->rank, buffer->shape);
      return heed_fail(model, HEED_ERROR_SHAPE,
                       "output '%s': expected shape %s, found %s", info->name,
                       expected, found);
    }
    if (!buffer->data && !isEmpty(buffer))
      return heed_fail(model, HEED_ERROR_ARGUMENT, "output '%s' has no data",
                       info->name);
    status = locate(model, info, buffer, "output", &f->outPlaces[k]);
    if (!status && !heed_strides_are_distinct(buffer->rank, buffer->shape,
                                              f->outPlaces[k].strides))
      status = heed_fail(model, HEED_ERROR_ARGUMENT,
                         "output '%s': with its strides elements may share "
                         "memory",
                         info->name);
    if (status)
      return status;
    f->out[k].data = f->outPlaces[k].first;
  }
  return checkOverlap(model, f);
}

void heed_frame_tell_shapes(const heed_frame *f, heed_buffer *outputs) {
  for (int32_t k = 0; k < f->signature->numOutputs; ++k) {
    heed_buffer *output = (heed_buffer *)(uintptr_t)at(outputs, (size_t)k);
    output->type = f->out[k].type;
    output->rank = f->out[k].rank;
    output->deviceType = HEED_DEVICE_CPU;
    output->deviceNumber = 0;
    memcpy(output->shape, f->out[k].shape, sizeof output->shape);
  }
}

/* ---- dense memory for kernels ---- */

static heed_status makeDense(heed_model *model, heed_argument *argument,
                             const char *kind, const char *name) {
  int64_t bytes = 0;
  heed_io_byte_count(argument->rank, argument->shape,
                     (int64_t)heed_type_size(argument->type), &bytes);
  argument->data = heed_pool_take(&model->pool, (size_t)bytes);
  return argument->data
             ? HEED_OK
             : heed_fail(model, HEED_ERROR_MEMORY,
                         "no memory for a dense copy of %s '%s'", kind, name);
}

heed_status heed_frame_gather(heed_model *model, const heed_frame *f) {
  heed_status status = HEED_OK;
  for (int32_t k = 0; k < f->signature->numInputs && !status; ++k) {
    const heed_place *from = &f->inPlaces[k];
    heed_argument *to = &f->in[k];
    if (!from->strides && !from->onDevice)
      continue;
    status = makeDense(model, to, "input", f->signature->inputs[k]->name);
    if (!status && !from->onDevice)
      heed_strides_gather(to->data, from->first, to->rank, to->shape,
                          from->strides, heed_type_size(to->type));
  }
  for (int32_t k = 0; k < f->signature->numOutputs && !status; ++k)
    if (f->outPlaces[k].strides || f->outPlaces[k].onDevice)
      status = makeDense(model, &f->out[k], "output",
                         f->signature->outputs[k]->name);
  return status;
}

void heed_frame_scatter(const heed_frame *f) {
  for (int32_t k = 0; k < f->signature->numOutputs; ++k) {
    const heed_place *to = &f->outPlaces[k];
    const heed_argument *from = &f->out[k];
    if (to->strides && !to->onDevice)
      heed_strides_scatter(to->first, from->data, from->rank, from->shape,
                           to->strides, heed_type_size(from->type));
  }
}
