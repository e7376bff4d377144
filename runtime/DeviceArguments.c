/* Inputs and outputs of a call, on either side. What is the host's goes to the
 * device when a kernel reads it. What lies there has a range of the host's
 * addresses that stands for it, since compiled code knows no others: a mirror
 * whose memory is the caller's own where that is dense, and nothing is copied.
 */
#include "runtime/Device.h"
#include "runtime/Frame.h"

#include <string.h>

static int64_t bytesOf(const heed_argument *argument) {
  int64_t bytes = (int64_t)heed_type_size(argument->type);
  for (int32_t axis = 0; axis < argument->rank; ++axis)
    bytes *= argument->shape[axis];
  return bytes;
}

/* Between the caller's elements and dense memory, both on the device: a copy
 * for each run of elements that lie one behind the other on both sides. */
static int moveRows(heed_door *door, char *dense, const heed_argument *argument,
                    const heed_place *place, bool gather) {
  size_t run = heed_type_size(argument->type);
  int64_t element = (int64_t)run, index[HEED_MAX_RANK] = {0};
  int32_t loops = argument->rank;
  while (loops > 0 && (argument->shape[loops - 1] == 1 ||
                       place->strides[loops - 1] * element == (int64_t)run))
    run *= (size_t)argument->shape[--loops];
  while (true) {
    char *apart = place->first;
    for (int32_t axis = 0; axis < loops; ++axis)
      apart += index[axis] * place->strides[axis] * element;
    int code = gather ? heed_device_move(door, dense, apart, run)
                      : heed_device_move(door, apart, dense, run);
    dense += run;
    int32_t axis = loops - 1;
    while (axis >= 0 && ++index[axis] == argument->shape[axis])
      index[axis--] = 0;
    if (code || axis < 0)
      return code;
  }
}

/* The mirror of an argument on the device. */
static int enterThere(heed_model *model, const heed_argument *argument,
                      const heed_place *place, bool isInput) {
  heed_device_memory *memory = model->memory;
  int64_t bytes = bytesOf(argument);
  uintptr_t begin = (uintptr_t)argument->data, end = begin + (uintptr_t)bytes;
  int code = heed_device_know(model, &memory->mirrors, argument->data, bytes,
                              false, false);
  if (code || bytes <= 0)
    return code;
  heed_mirror *mirror = heed_mirror_find(&memory->mirrors, begin, end);
  if (!place->strides) {
    mirror->device = place->first;
  } else if (isInput) {
    mirror->device = heed_device_take(&memory->door, (size_t)bytes);
    if (!mirror->device)
      return halide_error_code_out_of_memory;
    code = moveRows(&memory->door, mirror->device, argument, place, true);
  }
  if (isInput)
    heed_mirror_mark(mirror, begin, end, HEED_ON_DEVICE);
  return code;
}

int heed_device_enter_arguments(heed_model *model, int32_t entry) {
  const heed_signature *signature = &model->desc->entries[entry].signature;
  heed_frame f = heed_frame_of(model, signature);
  int code = 0;
  for (int32_t k = 0; k < signature->numInputs && !code; ++k)
    code = f.inPlaces[k].onDevice
               ? enterThere(model, &f.in[k], &f.inPlaces[k], true)
               : heed_device_know(model, &model->memory->mirrors, f.in[k].data,
                                  bytesOf(&f.in[k]), true, false);
  for (int32_t k = 0; k < signature->numOutputs && !code; ++k)
    code = f.outPlaces[k].onDevice
               ? enterThere(model, &f.out[k], &f.outPlaces[k], false)
               : heed_device_know(model, &model->memory->mirrors, f.out[k].data,
                                  bytesOf(&f.out[k]), false, false);
  return code;
}

int heed_device_take_results(heed_model *model, int32_t entry) {
  const heed_signature *signature = &model->desc->entries[entry].signature;
  heed_device_memory *memory = model->memory;
  heed_door *door = &memory->door;
  heed_frame f = heed_frame_of(model, signature);
  int code = 0;
  door->leaving = true;
  for (int32_t k = 0; k < signature->numOutputs && !code; ++k) {
    const heed_place *place = &f.outPlaces[k];
    uintptr_t begin = (uintptr_t)f.out[k].data,
              end = begin + (uintptr_t)bytesOf(&f.out[k]);
    heed_mirror *mirror =
        begin < end ? heed_device_find(model, begin, end) : NULL;
    if (!mirror)
      continue;
    /* Also of results on the device the host may have computed a part. */
    code = place->onDevice ? heed_device_to_device(door, mirror, begin, end)
                           : heed_device_to_host(door, mirror, begin, end);
    if (!code && place->onDevice && place->strides)
      code = moveRows(door, heed_device_at(mirror, begin), &f.out[k], place,
                      false);
  }
  door->leaving = false;
  return code;
}

/* ---- for heed_gpu ---- */

bool heed_device_is_shared(const heed_gpu_device *device) {
  return device->type != 0;
}

bool heed_device_has(const heed_gpu_device *device, int32_t type,
                     int32_t number) {
  bool isKind = type == device->type || (type == HEED_DEVICE_CUDA_MANAGED &&
                                         device->type == HEED_DEVICE_CUDA);
  return heed_device_is_shared(device) && isKind && number == device->number;
}

heed_status heed_device_fetch(heed_model *model, void *to, const void *from,
                              size_t bytes) {
  heed_door door = {.device = model->device, .stream = model->stream};
  pthread_mutex_lock(&model->device->lock);
  int code = model->device->driver->copy(&door, to, from, bytes, HEED_TO_HOST);
  pthread_mutex_unlock(&model->device->lock);
  return code ? heed_fail(model, heed_door_status(&door, code), "%s", door.text)
              : HEED_OK;
}
