/* States: what lives from call to call. */
#include "runtime/State.h"
#include "runtime/io/Convert.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { Alignment = 128 };

heed_status heed_state_fail(heed_state *state, heed_status status,
                            const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(state->message, sizeof state->message, format, arguments);
  va_end(arguments);
  heed_io_clean(state->message);
  return status;
}

const char *heed_error_of_state(const heed_state *state) {
  return state->message;
}

static int32_t count(const heed_state *state) {
  return state->shared->desc->numStates;
}

/* ---- open, close ---- */

/* The extent that one of the dims gives to an axis of a state; null if none. */
static const heed_dim *findDim(const heed_dim *dims, size_t numDims,
                               const char *name) {
  for (size_t k = 0; k < numDims; ++k)
    if (!strcmp(dims[k].name, name))
      return &dims[k];
  return NULL;
}

bool heed_states_have_dim(const heed_model_desc *desc, const char *name) {
  for (int32_t k = 0; k < desc->numStates; ++k)
    for (int32_t axis = 0; axis < desc->states[k]->rank; ++axis)
      if (desc->states[k]->sizes[axis] < 0 &&
          !strcmp(desc->states[k]->extents[axis], name))
        return true;
  return false;
}

/* The extents of states that are given, each once, into text. */
static void listDims(const heed_model_desc *desc, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (int32_t k = 0; k < desc->numStates; ++k)
    for (int32_t axis = 0; axis < desc->states[k]->rank; ++axis) {
      const heed_tensor_info *info = desc->states[k];
      bool isNew = info->sizes[axis] < 0;
      for (int32_t j = 0; isNew && j <= k; ++j)
        for (int32_t a = 0; a < (j < k ? desc->states[j]->rank : axis); ++a)
          isNew &= desc->states[j]->sizes[a] >= 0 ||
                   strcmp(desc->states[j]->extents[a], info->extents[axis]);
      if (isNew && used < size)
        used += (size_t)snprintf(text + used, size - used, "%s'%s'",
                                 used ? ", " : "", info->extents[axis]);
    }
}

static heed_status checkDims(heed_model *model, const heed_dim *dims,
                             size_t numDims) {
  for (size_t k = 0; k < numDims; ++k) {
    if (!dims || !dims[k].name)
      return heed_fail(model, HEED_ERROR_ARGUMENT, "dim %zu has no name", k);
    if (!heed_states_have_dim(model->shared->desc, dims[k].name)) {
      char known[160];
      listDims(model->shared->desc, known, sizeof known);
      return heed_fail(model, HEED_ERROR_ARGUMENT,
                       "no state of the model has a dim '%s': expected %s",
                       dims[k].name, known[0] ? known : "none");
    }
    if (findDim(dims, k, dims[k].name))
      return heed_fail(model, HEED_ERROR_ARGUMENT, "dim '%s' is given twice",
                       dims[k].name);
    if (dims[k].extent < 0 || dims[k].extent > HEED_MAX_EXTENT)
      return heed_fail(model, HEED_ERROR_SHAPE,
                       "dim '%s' is %" PRId64 ", expected 0 to %d",
                       dims[k].name, dims[k].extent, HEED_MAX_EXTENT);
  }
  return HEED_OK;
}

/* All elements as the model says that they are at first. */
static void start(const heed_tensor_info *info,
                  const heed_state_tensor *tensor) {
  union {
    int64_t integer; /* its first bytes are those of narrower ones */
    float real;
    uint16_t half;
  } element = {.integer = info->defaultInteger};
  if (info->type == HEED_F32)
    element.real = (float)info->defaultReal;
  else if (info->type == HEED_F16)
    element.half = heed_f32_to_f16((float)info->defaultReal);
  else if (info->type == HEED_BF16)
    element.half = heed_f32_to_bf16((float)info->defaultReal);
  if (!info->hasDefault)
    memset(tensor->data, 0, (size_t)tensor->bytes);
  else
    for (size_t at = 0, size = heed_type_size(info->type);
         at < (size_t)tensor->bytes; at += size)
      memcpy((char *)tensor->data + at, &element, size);
}

static heed_status openTensor(heed_model *model, const heed_dim *dims,
                              size_t numDims, int32_t k, heed_state *state) {
  const heed_tensor_info *info = model->shared->desc->states[k];
  heed_state_tensor *tensor = &state->tensors[k];
  for (int32_t axis = 0; axis < info->rank; ++axis) {
    tensor->shape[axis] = info->sizes[axis];
    if (info->sizes[axis] >= 0)
      continue;
    const heed_dim *dim = findDim(dims, numDims, info->extents[axis]);
    int64_t known = 0;
    bool isKnown =
        heed_params_extent(model->shared, info->extents[axis], &known);
    if (dim && isKnown && dim->extent != known)
      return heed_fail(model, HEED_ERROR_SHAPE,
                       "dim '%s' of the state '%s' is given as %" PRId64
                       ", and is %" PRId64 " in the parameters",
                       dim->name, info->name, dim->extent, known);
    tensor->shape[axis] = known;
    if (isKnown)
      continue;
    if (!dim)
      return heed_fail(model, HEED_ERROR_ARGUMENT,
                       "the state '%s' needs dim '%s': expected its extent",
                       info->name, info->extents[axis]);
    tensor->shape[axis] = dim->extent;
  }
  if (!heed_io_byte_count(info->rank, tensor->shape,
                          (int64_t)heed_type_size(info->type), &tensor->bytes))
    return heed_fail(model, HEED_ERROR_MEMORY, "the state '%s' is too large",
                     info->name);
  tensor->data =
      heed_heap_take(&model->shared->heap, Alignment, (size_t)tensor->bytes);
  if (!tensor->data)
    return heed_fail(model, HEED_ERROR_MEMORY,
                     "no memory for the state '%s', %" PRId64 " bytes",
                     info->name, tensor->bytes);
  start(info, tensor);
  return HEED_OK;
}

static heed_status open(heed_model *model, const heed_dim *dims, size_t numDims,
                        heed_state **opened) {
  const heed_model_desc *desc = model->shared->desc;
  if (!desc->numStates)
    return heed_fail(model, HEED_ERROR_ARGUMENT, "the model has no state");
  heed_status status = checkDims(model, dims, numDims);
  if (status)
    return status;
  heed_state *state = calloc(1, sizeof *state + (size_t)desc->numStates *
                                                    sizeof *state->tensors);
  if (!state)
    return heed_fail(model, HEED_ERROR_MEMORY, "no memory for a state");
  state->object.runtime = &heed_own_runtime;
  state->shared = model->shared;
  atomic_fetch_add(&model->shared->handles, 1);
  heed_mark_open(&state->mark);
  for (int32_t k = 0; k < desc->numStates && !status; ++k)
    status = openTensor(model, dims, numDims, k, state);
  if (status)
    heed_close_state(state);
  else
    *opened = state;
  return status;
}

heed_status heed_open_state(heed_model *model, const heed_dim *dims,
                            size_t numDims, heed_state **state) {
  if (!model->ready)
    return HEED_ERROR_ARGUMENT;
  if (heed_mark_is_foreign(&model->mark))
    return HEED_ERROR_FORK;
  if (atomic_flag_test_and_set(&model->busy))
    return HEED_ERROR_BUSY;
  heed_status status = open(model, dims, numDims, state);
  atomic_flag_clear(&model->busy);
  return status;
}

void heed_close_state(heed_state *state) {
  heed_heap *heap = &state->shared->heap;
  for (int32_t k = 0; k < count(state); ++k) {
    heed_state_tensor *tensor = &state->tensors[k];
    heed_heap_give(heap, tensor->data, (size_t)tensor->bytes);
    heed_heap_give(heap, tensor->spare, (size_t)tensor->bytes);
  }
  if (state->device)
    state->shared->desc->gpu->closeState(state);
  heed_mark_close(&state->mark);
  free(state->moves.list);
  heed_release_shared(state->shared);
  free(state);
}

void *heed_state_spare(heed_state *state, int32_t k) {
  heed_state_tensor *tensor = &state->tensors[k];
  if (!tensor->spare)
    tensor->spare =
        heed_heap_take(&state->shared->heap, Alignment, (size_t)tensor->bytes);
  return tensor->spare;
}

/* ---- what it holds ---- */

int64_t heed_bytes_of_state(const heed_state *state) {
  int64_t bytes = 0;
  for (int32_t k = 0; k < count(state); ++k)
    bytes += state->tensors[k].bytes * (state->tensors[k].spare ? 2 : 1);
  return bytes;
}

/* Once in the program, not in each function that begins so. */
__attribute__((noinline)) heed_status heed_state_begin(heed_state *state) {
  if (heed_mark_is_foreign(&state->mark))
    return HEED_ERROR_FORK;
  if (atomic_flag_test_and_set(&state->busy))
    return HEED_ERROR_BUSY;
  state->message[0] = 0;
  heed_status status =
      state->device ? state->shared->desc->gpu->settle(state) : HEED_OK;
  if (status)
    atomic_flag_clear(&state->busy);
  return status;
}

heed_status heed_state_end(heed_state *state, heed_status status) {
  atomic_flag_clear(&state->busy);
  return status;
}

heed_status heed_reset_state(heed_state *state) {
  heed_status status = heed_state_begin(state);
  if (status)
    return status;
  for (int32_t k = 0; k < count(state); ++k)
    start(state->shared->desc->states[k], &state->tensors[k]);
  return heed_state_end(state, HEED_OK);
}

heed_status heed_copy_state(heed_state *from, heed_state *to) {
  if (from == to)
    return HEED_OK;
  heed_status status = heed_state_begin(to);
  if (status)
    return status;
  if (from->shared->desc != to->shared->desc)
    return heed_state_end(
        to, heed_state_fail(to, HEED_ERROR_ARGUMENT,
                            "a state of another model cannot be copied here"));
  for (int32_t k = 0; k < count(to); ++k)
    if (memcmp(from->tensors[k].shape, to->tensors[k].shape,
               sizeof to->tensors[k].shape) != 0) {
      char expected[256], found[256];
      const heed_tensor_info *info = to->shared->desc->states[k];
      heed_io_format_shape(expected, sizeof expected, info->rank,
                           to->tensors[k].shape);
      heed_io_format_shape(found, sizeof found, info->rank,
                           from->tensors[k].shape);
      return heed_state_end(
          to, heed_state_fail(to, HEED_ERROR_SHAPE,
                              "state '%s': expected shape %s, found %s",
                              info->name, expected, found));
    }
  status = heed_state_begin(from);
  if (status)
    return heed_state_end(to, status);
  for (int32_t k = 0; k < count(to); ++k)
    memcpy(to->tensors[k].data, from->tensors[k].data,
           (size_t)to->tensors[k].bytes);
  heed_state_end(from, HEED_OK);
  return heed_state_end(to, HEED_OK);
}

/* The state of that name; null and a message if there is none. */
static heed_state_tensor *findTensor(heed_state *state, const char *name,
                                     const heed_tensor_info **info) {
  for (int32_t k = 0; name && k < count(state); ++k) {
    *info = state->shared->desc->states[k];
    if (!strcmp((*info)->name, name))
      return &state->tensors[k];
  }
  heed_state_fail(state, HEED_ERROR_ARGUMENT, "the model has no state '%s'",
                  name ? name : "");
  return NULL;
}

static heed_status checkBuffer(heed_state *state, const heed_tensor_info *info,
                               const heed_state_tensor *tensor,
                               const heed_buffer *buffer) {
  char expected[256], found[256];
  if (buffer->type != info->type)
    return heed_state_fail(state, HEED_ERROR_TYPE,
                           "state '%s': expected element type %s, found %s",
                           info->name, heed_type_name(info->type),
                           heed_type_name(buffer->type));
  heed_io_format_shape(expected, sizeof expected, info->rank, tensor->shape);
  bool fits = buffer->rank == info->rank;
  for (int32_t axis = 0; fits && axis < info->rank; ++axis)
    fits = buffer->shape[axis] == tensor->shape[axis];
  if (!fits) {
    bool isRank = buffer->rank >= 0 && buffer->rank <= HEED_MAX_RANK;
    if (isRank)
      heed_io_format_shape(found, sizeof found, buffer->rank, buffer->shape);
    return heed_state_fail(
        state, HEED_ERROR_SHAPE, "state '%s': expected shape %s, found %s",
        info->name, expected, isRank ? found : "a rank that is none");
  }
  if (!buffer->data && tensor->bytes)
    return heed_state_fail(state, HEED_ERROR_ARGUMENT, "state '%s': no data",
                           info->name);
  if (buffer->deviceType != 0 && buffer->deviceType != HEED_DEVICE_CPU)
    return heed_state_fail(state, HEED_ERROR_DEVICE,
                           "state '%s': expected memory of the CPU",
                           info->name);
  return HEED_OK;
}

static heed_status transfer(heed_state *state, const char *name,
                            heed_buffer *out, const heed_buffer *in) {
  const heed_buffer *buffer = out ? out : in;
  const heed_tensor_info *info = NULL;
  if (!buffer)
    return heed_state_fail(state, HEED_ERROR_ARGUMENT, "no buffer");
  if (!heed_is_readable(buffer, buffer->size, HEED_LEAST_BUFFER,
                        sizeof(heed_buffer)))
    return heed_state_fail(state, HEED_ERROR_VERSION,
                           "a heed_buffer of %zu bytes, expected %zu",
                           buffer->size, sizeof(heed_buffer));
  heed_state_tensor *tensor = findTensor(state, name, &info);
  if (!tensor)
    return HEED_ERROR_ARGUMENT;
  if (out && !out->data) {
    out->type = info->type;
    out->rank = info->rank;
    memcpy(out->shape, tensor->shape, sizeof out->shape);
    return HEED_OK;
  }
  heed_status status = checkBuffer(state, info, tensor, buffer);
  if (status)
    return status;
  size_t size = heed_type_size(info->type);
  char *at = (char *)buffer->data + buffer->byteOffset;
  bool dense =
      heed_strides_are_dense(info->rank, tensor->shape, buffer->strides);
  if (dense)
    memcpy(out ? (void *)at : tensor->data, out ? tensor->data : (void *)at,
           (size_t)tensor->bytes);
  else if (out)
    heed_strides_scatter(at, tensor->data, info->rank, tensor->shape,
                         buffer->strides, size);
  else
    heed_strides_gather(tensor->data, at, info->rank, tensor->shape,
                        buffer->strides, size);
  return HEED_OK;
}

heed_status heed_get_state(heed_state *state, const char *name,
                           heed_buffer *buffer) {
  heed_status status = heed_state_begin(state);
  return status ? status
                : heed_state_end(state, transfer(state, name, buffer, NULL));
}

heed_status heed_set_state(heed_state *state, const char *name,
                           const heed_buffer *buffer) {
  heed_status status = heed_state_begin(state);
  return status ? status
                : heed_state_end(state, transfer(state, name, NULL, buffer));
}
