/* Kernels on a device: their buffers found in its memory, or brought there. */
#include "runtime/Device.h"
#include "runtime/State.h"

#include <stdlib.h>
#include <string.h>

/* ---- mirrors of a model ---- */

heed_mirror *heed_device_find(const heed_model *model, uintptr_t begin,
                              uintptr_t end) {
  heed_mirror *found = heed_mirror_find(&model->memory->mirrors, begin, end);
  if (!found && model->state && model->state->device)
    found = heed_mirror_find(&model->state->device->mirrors, begin, end);
  return found ? found : heed_mirror_find(&model->device->weights, begin, end);
}

/* A mirror for a range and all that those hold that it touches, of which the
 * host gets what is newer on the device: callers may pass arrays that overlap.
 */
static heed_mirror *unite(heed_model *model, uintptr_t begin, uintptr_t end) {
  heed_device_memory *memory = model->memory;
  size_t k;
  while (heed_mirror_touches(&memory->mirrors, begin, end, &k)) {
    heed_mirror *part = &memory->mirrors.list[k];
    begin = part->begin < begin ? part->begin : begin;
    end = part->end > end ? part->end : end;
    if (heed_device_to_host(&memory->door, part, part->begin, part->end))
      return NULL;
    heed_device_drop_one(&memory->door, &memory->mirrors, k);
  }
  heed_mirror *whole = heed_mirror_add(&memory->mirrors, begin, end);
  if (whole && heed_mirror_reserve(whole, 1))
    heed_mirror_mark(whole, begin, end, HEED_ON_HOST);
  else
    whole = NULL;
  return whole;
}

heed_mirror *heed_device_mirror(heed_model *model, uintptr_t begin,
                                uintptr_t end, bool fromHost) {
  heed_device_memory *memory = model->memory;
  heed_mirror *found = heed_device_find(model, begin, end);
  if (found)
    return found;
  memory->door.text[0] = 0;
  size_t k;
  bool touches = heed_mirror_touches(&memory->mirrors, begin, end, &k);
  if (touches || fromHost)
    found = unite(model, begin, end);
  else
    found = heed_mirror_add(&memory->mirrors, begin, end);
  if (!found && !memory->door.text[0])
    heed_door_says(&memory->door, 0, "no memory to call a kernel of a device");
  return found;
}

void heed_device_unlock(heed_model *model, int code) {
  pthread_mutex_unlock(&model->device->lock);
  const heed_door *door = &model->memory->door;
  if (code)
    heed_unwind(model, heed_door_status(door, code), "%s", door->text);
}

/* ---- buffers ---- */

void heed_device_buffer(heed_model *model, struct halide_buffer_t *buffer,
                        void *dimensions, void *data, int32_t typeCode,
                        int32_t bits, int32_t rank, const int64_t *sizes,
                        const int64_t *strides, int64_t largest) {
  heed_host_buffer(model, buffer, dimensions, data, typeCode, bits, rank, sizes,
                   strides, largest);
  heed_device_memory *memory = model->memory;
  if (memory->numNoted == memory->capacity) {
    size_t capacity = memory->capacity ? 2 * memory->capacity : 16;
    struct halide_buffer_t **grown =
        realloc(memory->noted, capacity * sizeof *grown);
    if (!grown)
      heed_unwind(model, HEED_ERROR_MEMORY, "no memory to call a kernel");
    memory->noted = grown;
    memory->capacity = capacity;
  }
  memory->noted[memory->numNoted++] = buffer;
}

/* What memory of the host a buffer's elements lie in. */
typedef struct range {
  uintptr_t begin, end;
  bool isDense; /* and nothing else does */
} range;

static range rangeOf(const struct halide_buffer_t *buffer) {
  int64_t first = 0, last = 0, elements = 1, size = (buffer->type.bits + 7) / 8;
  for (int32_t d = 0; d < buffer->dimensions; ++d) {
    const struct halide_dimension_t *dim = &buffer->dim[d];
    if (dim->extent == 0)
      return (range){0, 0, true};
    int64_t way = (int64_t)(dim->extent - 1) * dim->stride;
    *(way < 0 ? &first : &last) += way;
    elements *= dim->extent;
  }
  uintptr_t at = (uintptr_t)buffer->host;
  return (range){at + (uintptr_t)(first * size),
                 at + (uintptr_t)((last + 1) * size),
                 elements == last - first + 1};
}

static bool isOutput(const heed_device_memory *memory, void **args,
                     const struct halide_buffer_t *buffer) {
  for (int32_t k = memory->numArgs - memory->numOutputs; k < memory->numArgs;
       ++k)
    if (args[k] == buffer)
      return true;
  return false;
}

/* Whether an output shares memory with this input. The device's code takes its
 * buffers for memory of their own. */
static bool isOverwritten(const heed_device_memory *memory, void **args,
                          range input) {
  for (size_t k = 0; k < memory->numNoted; ++k) {
    range output = rangeOf(memory->noted[k]);
    if (isOutput(memory, args, memory->noted[k]) && output.begin < input.end &&
        input.begin < output.end)
      return true;
  }
  return false;
}

/* Weights and states go there once: all of them in one copy. */
static bool staysThere(const heed_device_memory *memory,
                       const heed_mirror *mirror) {
  const heed_mirrors *calls = &memory->mirrors;
  return mirror < calls->list || mirror >= calls->list + calls->count;
}

/* Gives a buffer its place on the device. */
static int bring(heed_model *model, void **args, struct halide_buffer_t *buffer,
                 char **copied) {
  heed_device_memory *memory = model->memory;
  heed_door *door = &memory->door;
  range at = rangeOf(buffer);
  bool writes = isOutput(memory, args, buffer);
  heed_mirror *mirror = heed_device_find(model, at.begin, at.end);
  /* Of what it writes whole nothing has to be there before. */
  uintptr_t begin = at.begin, end = at.end;
  if (writes && at.isDense)
    end = begin;
  else if (staysThere(memory, mirror))
    begin = mirror->begin, end = mirror->end;
  int result = heed_device_to_device(door, mirror, begin, end);
  if (result)
    return result;
  char *place = heed_device_at(mirror, at.begin);
  if (!writes && isOverwritten(memory, args, at)) {
    *copied = heed_device_take(door, at.end - at.begin);
    if (!*copied)
      return halide_error_code_out_of_memory;
    result = heed_device_move(door, *copied, place, at.end - at.begin);
    place = *copied;
  }
  /* A pipeline may have a part on the host. */
  heed_span newer;
  if (!writes && heed_mirror_newer(mirror, at.begin, at.end, true, &newer))
    buffer->flags = halide_buffer_flag_device_dirty;
  buffer->device = (uintptr_t)(place + ((uintptr_t)buffer->host - at.begin));
  return result;
}

/* Bytes that a kernel may read of a buffer without elements, where it makes
 * nothing of them: places are within each axis that has some, and 0 else. */
static size_t reachOf(const struct halide_buffer_t *buffer) {
  int64_t last = 0;
  for (int32_t d = 0; d < buffer->dimensions; ++d)
    if (buffer->dim[d].extent > 1 && buffer->dim[d].stride > 0)
      last += (int64_t)(buffer->dim[d].extent - 1) * buffer->dim[d].stride;
  return (size_t)(last + 1) * (size_t)((buffer->type.bits + 7) / 8);
}

/* Of buffers without elements there is nothing to bring; a kernel may still
 * want memory. */
static int bringAll(heed_model *model, void **args, char **copies) {
  heed_device_memory *memory = model->memory;
  int result = 0;
  /* First all mirrors: a new one moves the others. */
  for (size_t k = 0; k < memory->numNoted && !result; ++k) {
    struct halide_buffer_t *buffer = memory->noted[k];
    range at = rangeOf(buffer);
    if (at.begin < at.end &&
        !heed_device_mirror(model, at.begin, at.end,
                            !isOutput(memory, args, buffer)))
      result = halide_error_code_out_of_memory;
  }
  for (size_t k = 0; k < memory->numNoted && !result; ++k) {
    struct halide_buffer_t *buffer = memory->noted[k];
    range at = rangeOf(buffer);
    copies[k] = NULL;
    if (at.begin < at.end) {
      result = bring(model, args, buffer, &copies[k]);
      continue;
    }
    copies[k] = heed_device_take(&memory->door, reachOf(buffer));
    buffer->device = (uintptr_t)copies[k];
    result = copies[k] ? 0 : halide_error_code_out_of_memory;
  }
  /* Last, for copies take of it: what markAll() needs. */
  for (size_t k = 0; k < memory->numNoted && !result; ++k) {
    range at = rangeOf(memory->noted[k]);
    if (at.begin < at.end && isOutput(memory, args, memory->noted[k]) &&
        !heed_mirror_reserve(heed_device_find(model, at.begin, at.end),
                             (size_t)memory->numOutputs))
      result = heed_door_says(&memory->door, halide_error_code_out_of_memory,
                              "no memory to call a kernel of the device");
  }
  return result;
}

/* Outputs are newer there now; a pipeline may have computed one on the host. */
static void markAll(heed_model *model, void **args) {
  heed_device_memory *memory = model->memory;
  for (size_t k = 0; k < memory->numNoted; ++k) {
    const struct halide_buffer_t *buffer = memory->noted[k];
    range at = rangeOf(buffer);
    if (at.begin < at.end && isOutput(memory, args, buffer))
      heed_mirror_mark(
          heed_device_find(model, at.begin, at.end), at.begin, at.end,
          buffer->flags & halide_buffer_flag_host_dirty ? HEED_ON_HOST
                                                        : HEED_ON_DEVICE);
  }
}

/* The kernel itself. With --profile by the device's clock, or the host's. */
static int callKernel(heed_model *model, void **args) {
  /* A call that can be stopped waits after so many kernels: what the device
   * has been told to do cannot be taken back. */
  enum { Ahead = 16 };
  heed_device_memory *memory = model->memory;
  heed_gpu_device *device = model->device;
  const heed_driver *driver = device->driver;
  heed_door *door = &memory->door;
  double start = heed_seconds();
  int result =
      model->profile && driver->time ? driver->time(door, true, NULL) : 0;
  if (!result)
    result = memory->function(args);
  if (result)
    return result;
  bool stops = model->cancel || model->deadline;
  if (model->profile && driver->time)
    return driver->time(door, false, &memory->seconds);
  if (model->profile || (stops && ++device->ahead >= Ahead)) {
    device->ahead = 0;
    result = heed_device_finish(door);
    memory->seconds = heed_seconds() - start;
  }
  return result;
}

/* Stands where heed_host_kernel() expects a kernel. */
static int32_t launch(void **args) {
  heed_model *model = *(heed_model **)args[0];
  heed_device_memory *memory = model->memory;
  heed_gpu_device *device = model->device;
  char **copies = calloc(memory->numNoted + 1, sizeof *copies);
  memory->door.text[0] = 0;
  memory->door.failed = false;
  pthread_mutex_lock(&device->lock);
  int result =
      !copies ? heed_door_says(&memory->door, halide_error_code_out_of_memory,
                               "no memory to call a kernel")
              : bringAll(model, args, copies);
  if (!result)
    result = callKernel(model, args);
  if (!result)
    markAll(model, args);
  for (size_t k = 0; copies && k < memory->numNoted; ++k)
    heed_device_give(&memory->door, copies[k]);
  free(copies);
  if (model->inInit)
    heed_device_drop_read(&memory->door);
  pthread_mutex_unlock(&device->lock);
  if (!result)
    return 0;
  heed_stop_check(model);
  heed_unwind(model, heed_door_status(&memory->door, result),
              "kernel '%s' failed (%d): %s",
              model->desc->kernels[memory->kernel], result,
              memory->door.text[0] ? memory->door.text
                                   : heed_kernel_message(model));
}

int32_t heed_device_kernel(heed_model *model, int32_t kernel,
                           int32_t (*function)(void **args), void **args,
                           int32_t numArgs, int32_t numOutputs, double flops,
                           double bytes) {
  heed_device_memory *memory = model->memory;
  memory->function = function;
  memory->kernel = kernel;
  memory->numArgs = numArgs;
  memory->numOutputs = numOutputs;
  memory->seconds = -1;
  heed_kernel_record *record =
      model->profile && kernel >= 0 && kernel < model->desc->numKernels
          ? &model->profile[kernel]
          : NULL;
  double before = record ? record->seconds : 0;
  int32_t stands = heed_host_kernel(model, kernel, launch, args, numArgs,
                                    numOutputs, flops, bytes);
  memory->numNoted = 0;
  /* Without copies. */
  if (record && memory->seconds >= 0)
    record->seconds = before + memory->seconds;
  return stands;
}

int32_t heed_device_host_kernel(heed_model *model, int32_t kernel,
                                int32_t (*function)(void **args), void **args,
                                int32_t numArgs, int32_t numOutputs,
                                double flops, double bytes) {
  heed_device_memory *memory = model->memory;
  memory->numArgs = numArgs;
  memory->numOutputs = numOutputs;
  for (size_t k = 0; k < memory->numNoted && !model->plan; ++k) {
    range at = rangeOf(memory->noted[k]);
    if (at.begin < at.end)
      heed_device_to_hand(model, at.begin, at.end,
                          isOutput(memory, args, memory->noted[k]));
  }
  memory->numNoted = 0;
  return heed_host_kernel(model, kernel, function, args, numArgs, numOutputs,
                          flops, bytes);
}
