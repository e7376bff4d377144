/* What host code calls that was compiled for a device, where its tensors may be
 * newer there: in place of host.h's functions of the same names, and around
 * what it reads and writes itself. */
#include "runtime/Device.h"
#include "runtime/Frame.h"
#include "runtime/State.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int heed_device_know(heed_model *model, heed_mirrors *mirrors, const void *data,
                     int64_t bytes, bool fromHost, bool kept) {
  uintptr_t begin = (uintptr_t)data, end = begin + (uintptr_t)bytes;
  size_t k;
  if (bytes <= 0 || heed_mirror_find(mirrors, begin, end))
    return 0;
  heed_mirror *mirror = NULL;
  /* Weights that lie across one another are brought call by call. */
  if (!heed_mirror_touches(mirrors, begin, end, &k))
    mirror = heed_mirror_add(mirrors, begin, end);
  else if (mirrors == &model->memory->mirrors)
    mirror = heed_device_mirror(model, begin, end, fromHost);
  else
    return 0;
  if (mirror)
    mirror->kept = kept;
  if (!mirror || !heed_mirror_reserve(mirror, 1))
    return heed_door_says(&model->memory->door, halide_error_code_out_of_memory,
                          "no memory to call a kernel of a device");
  if (fromHost)
    heed_mirror_mark(mirror, begin, end, HEED_ON_HOST);
  return 0;
}

/* ---- a call ---- */

/* Scalars of a state are read without asking. */
static int enterState(heed_model *model) {
  heed_device_state *device = heed_device_state_enter(model);
  if (!device)
    return halide_error_code_out_of_memory;
  int code = 0;
  for (int32_t k = 0; k < model->desc->numStates && !code; ++k) {
    const heed_state_tensor *tensor = &model->state->tensors[k];
    heed_mirrors *mirrors = &device->mirrors;
    code = heed_device_know(model, mirrors, tensor->data, tensor->bytes, true,
                            false);
    if (!code && tensor->spare)
      code = heed_device_know(model, mirrors, tensor->spare, tensor->bytes,
                              false, false);
    uintptr_t begin = (uintptr_t)tensor->data;
    if (!code && model->desc->states[k]->rank == 0)
      code = heed_device_to_host(
          &model->memory->door,
          heed_mirror_find(mirrors, begin, begin + (uintptr_t)tensor->bytes),
          begin, begin + (uintptr_t)tensor->bytes);
  }
  return code;
}

void heed_device_enter(heed_model *model, int32_t entry) {
  heed_gpu_device *device = model->device;
  heed_device_memory *memory = model->memory;
  if (!memory) {
    memory = model->memory = calloc(1, sizeof *memory);
    if (!memory)
      heed_unwind(model, HEED_ERROR_MEMORY, "no memory for a call");
    memory->door.device = device;
  }
  pthread_mutex_lock(&device->lock);
  memory->door.stream = model->stream;
  /* Of a call that was left. */
  heed_device_drop(&memory->door, &memory->mirrors);
  memory->numNoted = 0;
  memory->run.bytes = 0;
  memory->door.leaving = false;
  int code = model->state ? enterState(model) : 0;
  if (!code && entry >= 0 && !model->plan) {
    ++device->calls;
    ++memory->calls;
    code = heed_device_enter_arguments(model, entry);
  }
  heed_device_unlock(model, code);
}

void heed_device_leave(heed_model *model, int32_t entry) {
  heed_gpu_device *device = model->device;
  if (model->plan)
    return;
  heed_door *door = &model->memory->door;
  pthread_mutex_lock(&device->lock);
  int code = entry >= 0 ? heed_device_take_results(model, entry) : 0;
  /* A state stands when nothing can fail any more, and its rows and all else
   * are given back before what runs on the stream is waited for. */
  if (!code)
    code = device->driver->finish(door);
  if (!code && model->state)
    heed_device_state_leave(model);
  heed_device_drop(door, &model->memory->mirrors);
  if (model->inInit)
    heed_device_drop_read(door);
  if (!code)
    heed_device_settled(door);
  heed_device_trim(door, /*all=*/false);
  heed_device_unlock(model, code);
}

/* ---- memory ---- */

void *heed_device_alloc(heed_model *model, int64_t bytes) {
  void *memory = heed_host_alloc(model, bytes);
  if (model->plan)
    return memory;
  pthread_mutex_lock(&model->device->lock);
  heed_device_unlock(model, heed_device_know(model, &model->memory->mirrors,
                                             memory, bytes, false, false));
  return memory;
}

void heed_device_free(heed_model *model, void *memory) {
  heed_mirrors *mirrors = &model->memory->mirrors;
  uintptr_t at = (uintptr_t)memory;
  size_t k;
  pthread_mutex_lock(&model->device->lock);
  if (memory && heed_mirror_touches(mirrors, at, at + 1, &k))
    heed_device_drop_one(&model->memory->door, mirrors, k);
  heed_device_unlock(model, 0);
  heed_host_free(model, memory);
}

static void knowWeights(heed_model *model, const void *data, int64_t bytes,
                        bool fromHost, bool kept) {
  pthread_mutex_lock(&model->device->lock);
  heed_device_unlock(model, heed_device_know(model, &model->device->weights,
                                             data, bytes, fromHost, kept));
}

const void *heed_device_param(heed_model *model, int32_t param,
                              const int64_t *indices) {
  const void *data = heed_host_param(model, param, indices);
  const heed_param_info *info = &model->desc->params[param];
  int64_t bytes = (int64_t)heed_type_size(info->type);
  for (int32_t axis = 0; axis < info->rank; ++axis)
    bytes *= heed_host_param_extent(model, param, indices, axis);
  knowWeights(model, data, bytes, true, false);
  return data;
}

void *heed_device_keep(heed_model *model, int32_t slot, int64_t bytes) {
  void *data = heed_host_keep(model, slot, bytes);
  knowWeights(model, data, bytes, false, true);
  return data;
}

const void *heed_device_kept(heed_model *model, int32_t slot, int64_t bytes) {
  const void *data = heed_host_kept(model, slot, bytes);
  knowWeights(model, data, model->shared->kept[slot].bytes, true, true);
  return data;
}

/* ---- what the host reads and writes itself ---- */

/* First byte and one past the last of a tensor; false: it has no element. */
static bool rangeOf(const void *data, int64_t elementSize, int32_t rank,
                    const int64_t *sizes, const int64_t *strides,
                    uintptr_t *begin, uintptr_t *end) {
  int64_t first = 0, last = 0, dense = 1;
  for (int32_t axis = rank - 1; axis >= 0; --axis) {
    if (sizes[axis] == 0)
      return false;
    int64_t way = (sizes[axis] - 1) * (strides ? strides[axis] : dense);
    *(way < 0 ? &first : &last) += way;
    dense *= sizes[axis];
  }
  *begin = (uintptr_t)data + (uintptr_t)(first * elementSize);
  *end = (uintptr_t)data + (uintptr_t)((last + 1) * elementSize);
  return true;
}

/* The host gets the range, of whatever mirrors; it will be newer there. */
static int toHost(heed_model *model, heed_mirrors *mirrors, uintptr_t begin,
                  uintptr_t end, bool writes) {
  size_t k;
  int code = 0;
  if (!heed_mirror_touches(mirrors, begin, end, &k))
    return 0;
  for (; k < mirrors->count && mirrors->list[k].begin < end && !code; ++k) {
    heed_mirror *mirror = &mirrors->list[k];
    uintptr_t low = begin > mirror->begin ? begin : mirror->begin,
              high = end < mirror->end ? end : mirror->end;
    code = heed_device_to_host(&model->memory->door, mirror, low, high);
    if (code || !writes)
      continue;
    if (heed_mirror_reserve(mirror, 1))
      heed_mirror_mark(mirror, low, high, HEED_ON_HOST);
    else
      code =
          heed_door_says(&model->memory->door, halide_error_code_out_of_memory,
                         "no memory to call a kernel of a device");
  }
  return code;
}

void heed_device_to_hand(heed_model *model, uintptr_t begin, uintptr_t end,
                         bool writes) {
  pthread_mutex_lock(&model->device->lock);
  int code = toHost(model, &model->memory->mirrors, begin, end, writes);
  if (!code && model->state && model->state->device)
    code = toHost(model, &model->state->device->mirrors, begin, end, writes);
  if (!code)
    code = toHost(model, &model->device->weights, begin, end, writes);
  heed_device_unlock(model, code);
}

void heed_device_reads(heed_model *model, const void *data, int64_t elementSize,
                       int32_t rank, const int64_t *sizes,
                       const int64_t *strides) {
  uintptr_t begin, end;
  if (rangeOf(data, elementSize, rank, sizes, strides, &begin, &end))
    heed_device_to_hand(model, begin, end, /*writes=*/false);
}

void heed_device_writes(heed_model *model, void *data, int64_t elementSize,
                        int32_t rank, const int64_t *sizes,
                        const int64_t *strides) {
  uintptr_t begin, end;
  if (rangeOf(data, elementSize, rank, sizes, strides, &begin, &end))
    heed_device_to_hand(model, begin, end, /*writes=*/true);
}

void heed_device_check_range(heed_model *model, const void *data, int32_t type,
                             int32_t rank, const int64_t *sizes,
                             const int64_t *strides, int64_t low, int64_t high,
                             const char *tensor, const char *what) {
  if (!model->plan)
    heed_device_reads(model, data, (int64_t)heed_type_size((heed_type)type),
                      rank, sizes, strides);
  heed_host_check_range(model, data, type, rank, sizes, strides, low, high,
                        tensor, what);
}

/* ---- copies ---- */

/* Rows of consecutive bytes on both sides, one after the other. */
typedef struct rows {
  heed_model *model;
  char *to;
  const char *from;
  int64_t elementSize, rowBytes;
  int32_t loops;
  const int64_t *sizes, *toStrides, *fromStrides;
} rows;

/* On the device, or on the host. */
static int copyRows(const rows *r, const heed_mirror *to,
                    const heed_mirror *from) {
  int64_t x[HEED_MAX_RANK] = {0};
  while (true) {
    int64_t toAt = 0, fromAt = 0;
    for (int32_t d = 0; d < r->loops; ++d) {
      toAt += x[d] * r->toStrides[d] * r->elementSize;
      fromAt += x[d] * r->fromStrides[d] * r->elementSize;
    }
    char *place = r->to + toAt;
    const char *source = r->from + fromAt;
    int code = 0;
    if (to)
      code = heed_device_move(
          &r->model->memory->door, heed_device_at(to, (uintptr_t)place),
          heed_device_at(from, (uintptr_t)source), (size_t)r->rowBytes);
    else
      memcpy(place, source, (size_t)r->rowBytes);
    int32_t d = r->loops - 1;
    while (d >= 0 && ++x[d] == r->sizes[d])
      x[d--] = 0;
    if (code || d < 0)
      return code;
  }
}

static int copyThere(const rows *r, uintptr_t fromBegin, uintptr_t fromEnd,
                     uintptr_t toBegin, uintptr_t toEnd) {
  heed_model *model = r->model;
  heed_door *door = &model->memory->door;
  if (!heed_device_mirror(model, toBegin, toEnd, /*fromHost=*/false))
    return halide_error_code_out_of_memory;
  heed_mirror *to = heed_device_find(model, toBegin, toEnd),
              *from = heed_device_find(model, fromBegin, fromEnd);
  int code = heed_device_to_device(door, from, fromBegin, fromEnd);
  /* What stands between rows stays as it is. */
  bool isWhole = r->loops == 0;
  if (!code)
    code = heed_device_to_device(door, to, toBegin, isWhole ? toBegin : toEnd);
  if (!code && !heed_mirror_reserve(to, 1))
    code = heed_door_says(door, halide_error_code_out_of_memory,
                          "no memory to call a kernel of a device");
  if (!code)
    code = copyRows(r, to, from);
  if (!code)
    heed_mirror_mark(to, toBegin, toEnd, HEED_ON_DEVICE);
  return code;
}

void heed_device_copy(heed_model *model, void *to, const void *from,
                      int64_t elementSize, int32_t rank, const int64_t *sizes,
                      const int64_t *toStrides, const int64_t *fromStrides) {
  uintptr_t fromBegin, fromEnd, toBegin, toEnd;
  if (!rangeOf(from, elementSize, rank, sizes, fromStrides, &fromBegin,
               &fromEnd) ||
      !rangeOf(to, elementSize, rank, sizes, toStrides, &toBegin, &toEnd))
    return;
  rows r = {model, to,    from,      elementSize, elementSize,
            rank,  sizes, toStrides, fromStrides};
  while (r.loops > 0 &&
         (sizes[r.loops - 1] == 1 ||
          (toStrides[r.loops - 1] * elementSize == r.rowBytes &&
           fromStrides[r.loops - 1] * elementSize == r.rowBytes)))
    r.rowBytes *= sizes[--r.loops];
  pthread_mutex_lock(&model->device->lock);
  /* What is not there yet goes there once, and not the copy as well. */
  bool isThere = !model->plan && heed_device_find(model, fromBegin, fromEnd);
  int code = isThere ? copyThere(&r, fromBegin, fromEnd, toBegin, toEnd) : 0;
  heed_device_unlock(model, code);
  if (isThere)
    return;
  heed_device_to_hand(model, fromBegin, fromEnd, /*writes=*/false);
  heed_device_to_hand(model, toBegin, toEnd, /*writes=*/true);
  copyRows(&r, NULL, NULL);
}

/* ---- for heed_gpu ---- */

int32_t heed_device_number(const heed_model *model) {
  const char *text = getenv("HEED_DEVICE");
  if (model->deviceNumber || !text || !*text)
    return model->deviceNumber;
  char *end;
  long number = strtol(text, &end, 10);
  return *end || number < 0 || number > INT32_MAX ? -1 : (int32_t)number;
}

bool heed_device_found(heed_model *model, heed_gpu_device *device) {
  if (!device) {
    heed_fail(model, HEED_ERROR_DEVICE,
              "model '%s' was compiled for a device: %s", model->desc->name,
              model->deviceText);
    return false;
  }
  pthread_mutex_init(&device->lock, NULL);
  model->device = device;
  heed_say(model, HEED_LOG_INFO, "%s", model->deviceText);
  return true;
}

void heed_device_abandon(heed_model *model) {
  heed_device_memory *memory = model->memory;
  if (!memory)
    return;
  heed_door door = {.device = model->device, .stream = memory->door.stream};
  pthread_mutex_lock(&model->device->lock);
  heed_device_drop(&door, &memory->mirrors);
  heed_device_finish(&door);
  pthread_mutex_unlock(&model->device->lock);
}

void heed_device_close_model(heed_model *model) {
  heed_device_memory *memory = model->memory;
  /* A driver does not survive a fork, nor does a lock. */
  bool isForeign = heed_mark_is_foreign(&model->mark);
  if (isForeign && model->shared)
    model->shared->device = NULL;
  if (memory && !isForeign) {
    pthread_mutex_lock(&model->device->lock);
    heed_device_drop(&memory->door, &memory->mirrors);
    pthread_mutex_unlock(&model->device->lock);
  }
  for (size_t k = 0; memory && k < memory->mirrors.count; ++k)
    free(memory->mirrors.list[k].spans);
  if (memory) {
    free(memory->mirrors.list);
    free(memory->noted);
  }
  free(memory);
  /* Of a model that did not open. */
  if (!isForeign && !model->shared)
    model->desc->gpu->close(model->device);
}

heed_status heed_device_keep_whole(heed_model *model) {
  heed_gpu_device *device = model->device;
  heed_door door = {.device = device};
  int code = 0;
  pthread_mutex_lock(&device->lock);
  for (size_t k = 0; k < device->weights.count && !code; ++k)
    code = heed_device_to_host(&door, &device->weights.list[k],
                               device->weights.list[k].begin,
                               device->weights.list[k].end);
  pthread_mutex_unlock(&device->lock);
  return code ? heed_fail(model, HEED_ERROR_DEVICE, "%s", door.text) : HEED_OK;
}

void heed_device_print(const heed_model *model, FILE *stream) {
  fprintf(stream, "target %s: %s\n", model->desc->target, model->deviceText);
  const heed_device_memory *memory = model->memory;
  if (!memory)
    return;
  const heed_door *door = &memory->door;
  fprintf(stream,
          "%" PRId64 " calls, copies to the device %" PRId64 " (%" PRId64
          " bytes), of results %" PRId64 " (%" PRId64
          "), to the host in between %" PRId64 " (%" PRId64 ")\n",
          memory->calls, door->toDevice.copies, door->toDevice.bytes,
          door->results.copies, door->results.bytes, door->between.copies,
          door->between.bytes);
}
