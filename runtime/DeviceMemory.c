/* Blocks of a device's memory, and copies between mirrors and the host. The
 * device's lock is held. */
#include "runtime/Device.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Calls for which a block that nobody uses stays. */
enum { KeptCalls = 4, Unit = 128 };

int heed_door_says(heed_door *door, int code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(door->text, sizeof door->text, format, arguments);
  va_end(arguments);
  door->failed = false;
  return code;
}

heed_status heed_door_status(const heed_door *door, int code) {
  return code == halide_error_code_out_of_memory && !door->failed
             ? HEED_ERROR_MEMORY
             : HEED_ERROR_DEVICE;
}

/* ---- blocks ---- */

/* In the order of a stream a block can be had again at once. */
static heed_device_block *findFree(const heed_door *door, size_t bytes) {
  heed_gpu_device *device = door->device;
  heed_device_block *best = NULL;
  size_t most = bytes > SIZE_MAX / 2 - 4096 ? SIZE_MAX : 2 * bytes + 4096;
  for (size_t k = 0; k < device->numBlocks; ++k) {
    heed_device_block *block = &device->blocks[k];
    bool isFree =
        !block->used && (!block->isBusy || block->stream == door->stream);
    if (isFree && block->bytes >= bytes && block->bytes <= most &&
        (!best || block->bytes < best->bytes))
      best = block;
  }
  return best;
}

static heed_device_block *newBlock(heed_door *door, size_t bytes) {
  heed_gpu_device *device = door->device;
  if (device->numBlocks == device->capacity) {
    size_t capacity = device->capacity ? 2 * device->capacity : 16;
    heed_device_block *grown =
        realloc(device->blocks, capacity * sizeof *grown);
    if (!grown)
      return NULL;
    device->blocks = grown;
    device->capacity = capacity;
  }
  char *memory = device->driver->take(door, bytes);
  if (!memory && !door->failed) {
    heed_device_trim(door, /*all=*/true);
    memory = device->driver->take(door, bytes);
  }
  if (!memory)
    return NULL;
  heed_device_block *block = &device->blocks[device->numBlocks++];
  *block = (heed_device_block){.memory = memory, .bytes = bytes};
  device->bytes += (int64_t)bytes;
  return block;
}

char *heed_device_take(heed_door *door, size_t bytes) {
  heed_gpu_device *device = door->device;
  size_t rounded = bytes > SIZE_MAX - Unit
                       ? 0
                       : (bytes ? bytes + Unit - 1 : Unit) / Unit * Unit;
  heed_device_block *block = rounded ? findFree(door, rounded) : NULL;
  door->failed = false;
  if (!block && rounded)
    block = newBlock(door, rounded);
  if (!block && door->failed)
    return NULL;
  if (!block) {
    heed_door_says(door, 0,
                   "the device has no memory for %zu bytes beside the %" PRId64
                   " that it holds",
                   bytes, device->bytes);
    return NULL;
  }
  block->used = block->isBusy = true;
  block->stream = door->stream;
  block->lastCall = device->calls;
  return block->memory;
}

void heed_device_give(const heed_door *door, const char *memory) {
  heed_gpu_device *device = door->device;
  for (size_t k = 0; memory && k < device->numBlocks; ++k) {
    heed_device_block *block = &device->blocks[k];
    if (block->memory != memory)
      continue;
    block->used = false;
    block->isBusy = true;
    block->stream = door->stream;
  }
}

void heed_device_settled(const heed_door *door) {
  heed_gpu_device *device = door->device;
  for (size_t k = 0; k < device->numBlocks; ++k) {
    heed_device_block *block = &device->blocks[k];
    if (!block->used && block->stream == door->stream)
      block->isBusy = false;
  }
}

int heed_device_finish(heed_door *door) {
  int code = door->device->driver->finish(door);
  /* Of a stream that fails nothing runs any more. */
  heed_device_settled(door);
  return code;
}

void heed_device_trim(const heed_door *door, bool all) {
  heed_gpu_device *device = door->device;
  heed_door own = {.device = device},
            calls = {.device = device, .stream = door->stream};
  bool waited = false;
  for (size_t k = 0; k < device->numBlocks;) {
    heed_device_block *block = &device->blocks[k];
    if (block->used || (!all && block->lastCall + KeptCalls >= device->calls)) {
      ++k;
      continue;
    }
    /* A kernel may still use what its call has given back. On another call's
     * stream it ends with that call. */
    if (block->isBusy && !waited) {
      heed_device_finish(&own);
      if (door->stream)
        heed_device_finish(&calls);
      waited = true;
    }
    if (block->isBusy) {
      ++k;
      continue;
    }
    device->driver->give(device, block->memory);
    device->bytes -= (int64_t)block->bytes;
    *block = device->blocks[--device->numBlocks];
  }
}

void heed_device_close_memory(heed_gpu_device *device) {
  heed_door nobody = {.device = device};
  heed_device_drop(&nobody, &device->weights);
  free(device->weights.list);
  for (size_t k = 0; k < device->numBlocks; ++k)
    device->blocks[k].used = device->blocks[k].isBusy = false;
  heed_device_trim(&nobody, /*all=*/true);
  free(device->blocks);
}

void heed_device_drop_one(const heed_door *door, heed_mirrors *mirrors,
                          size_t k) {
  heed_device_give(door, mirrors->list[k].device);
  heed_mirror_remove(mirrors, k);
}

void heed_device_drop(const heed_door *door, heed_mirrors *mirrors) {
  while (mirrors->count)
    heed_device_drop_one(door, mirrors, mirrors->count - 1);
}

void heed_device_drop_read(const heed_door *door) {
  heed_mirrors *weights = &door->device->weights;
  for (size_t k = weights->count; k-- > 0;)
    if (!weights->list[k].kept)
      heed_device_drop_one(door, weights, k);
}

/* ---- copies ---- */

char *heed_device_at(const heed_mirror *mirror, uintptr_t at) {
  return mirror->device + (at - mirror->begin);
}

static int copy(heed_door *door, void *to, const void *from, size_t bytes,
                heed_way way) {
  return door->device->driver->copy(door, to, from, bytes, way);
}

int heed_device_move(heed_door *door, char *to, const char *from,
                     size_t bytes) {
  return copy(door, to, from, bytes, HEED_WITHIN);
}

static void count(heed_traffic *traffic, size_t bytes) {
  ++traffic->copies;
  traffic->bytes += (int64_t)bytes;
}

static int noRoom(heed_door *door) {
  return heed_door_says(door, halide_error_code_out_of_memory,
                        "no memory to call a kernel of the device");
}

int heed_device_to_host(heed_door *door, heed_mirror *mirror, uintptr_t begin,
                        uintptr_t end) {
  heed_span part;
  while (heed_mirror_newer(mirror, begin, end, /*onDevice=*/true, &part)) {
    if (!heed_mirror_reserve(mirror, 1))
      return noRoom(door);
    size_t bytes = part.end - part.begin;
    int status = copy(door, (void *)part.begin,
                      heed_device_at(mirror, part.begin), bytes, HEED_TO_HOST);
    if (status)
      return status;
    count(door->leaving ? &door->results : &door->between, bytes);
    heed_mirror_mark(mirror, part.begin, part.end, HEED_SAME);
  }
  return 0;
}

int heed_device_to_device(heed_door *door, heed_mirror *mirror, uintptr_t begin,
                          uintptr_t end) {
  if (!mirror->device)
    mirror->device = heed_device_take(door, mirror->end - mirror->begin);
  if (!mirror->device)
    return halide_error_code_out_of_memory;
  heed_span part;
  while (heed_mirror_newer(mirror, begin, end, /*onDevice=*/false, &part)) {
    if (!heed_mirror_reserve(mirror, 1))
      return noRoom(door);
    size_t bytes = part.end - part.begin;
    int status = copy(door, heed_device_at(mirror, part.begin),
                      (const void *)part.begin, bytes, HEED_TO_DEVICE);
    if (status)
      return status;
    count(&door->toDevice, bytes);
    heed_mirror_mark(mirror, part.begin, part.end, HEED_SAME);
  }
  return 0;
}
