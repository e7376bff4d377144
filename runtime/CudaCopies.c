/* Copies of CUDA. Small arrays go through pinned memory of the device's, which
 * it reads and writes by itself: the host only waits at the end of a call, not
 * for each array. Large ones go straight: from memory that is not pinned the
 * driver copies in parts through pinned memory of its own while it sends the
 * part before, and a caller's pinned memory goes at the link's full speed. To
 * pin a caller's memory for one call would cost more than it saves: each page
 * is locked and unlocked by the system. */
#include "runtime/Cuda.h"

#include <string.h>

/* Of the memory, and of an array that goes through it at most. */
enum { StagingBytes = 4 << 20, MostStaged = 1 << 20, Unit = 256 };

static heed_cuda_device *of(heed_gpu_device *device) {
  return (heed_cuda_device *)device;
}

/* ---- waiting ---- */

/* The stream has been waited for, or failed. */
static void arrive(heed_cuda_staging *s, int32_t status) {
  for (int32_t k = 0; k < s->numArrivals && !status; ++k)
    memcpy(s->arrivals[k].to, s->arrivals[k].from, s->arrivals[k].bytes);
  s->numArrivals = 0;
  s->used = 0;
}

static int32_t waitFor(heed_cuda_device *d, CUstream stream) {
  heed_cuda_staging *s = &d->staging;
  int32_t status = d->cuda.cuStreamSynchronize(stream);
  if (s->used && s->stream == stream)
    arrive(s, status);
  return status;
}

int32_t heed_cuda_wait(const heed_door *door) {
  return waitFor(of(door->device), heed_cuda_stream(door));
}

/* ---- pinned memory ---- */

/* Whether it is there. Without any, copies go straight. */
static bool haveStaging(heed_cuda_device *d) {
  heed_cuda_staging *s = &d->staging;
  if (!s->memory && !s->isRefused) {
    void *memory = NULL;
    s->isRefused = d->cuda.cuMemHostAlloc(&memory, StagingBytes, 0) != 0;
    s->memory = s->isRefused ? NULL : memory;
  }
  return s->memory;
}

/* Room for an array that goes by the stream; null: it goes straight. A stream
 * waits for another one, whose call has not ended yet. */
static char *room(heed_cuda_device *d, CUstream stream, size_t bytes,
                  int32_t *status) {
  heed_cuda_staging *s = &d->staging;
  size_t rounded = (bytes + Unit - 1) / Unit * Unit;
  if (bytes > MostStaged || !haveStaging(d))
    return NULL;
  if (s->used &&
      (s->stream != stream || s->used + rounded > StagingBytes ||
       s->numArrivals == (int32_t)(sizeof s->arrivals / sizeof *s->arrivals)))
    *status = waitFor(d, s->stream);
  if (*status)
    return NULL;
  char *memory = s->memory + s->used;
  s->used += rounded;
  s->stream = stream;
  return memory;
}

void heed_cuda_close_staging(heed_cuda_device *d) {
  if (d->staging.memory)
    d->cuda.cuMemFreeHost(d->staging.memory);
}

/* ---- copies ---- */

/* Null, or the function that failed with *status. */
static const char *toDevice(heed_cuda_device *d, CUstream stream,
                            CUdeviceptr there, const void *from, size_t bytes,
                            int32_t *status) {
  char *staged = room(d, stream, bytes, status);
  if (*status)
    return "cuStreamSynchronize";
  if (staged)
    memcpy(staged, from, bytes);
  *status = d->cuda.cuMemcpyHtoDAsync_v2(there, staged ? staged : from, bytes,
                                         stream);
  if (*status)
    return "cuMemcpyHtoDAsync";
  *status = staged ? CUDA_SUCCESS : waitFor(d, stream);
  return "cuStreamSynchronize";
}

/* What leaves arrives when somebody waits. */
static const char *toHost(heed_cuda_device *d, CUstream stream, void *to,
                          CUdeviceptr here, size_t bytes, bool leaving,
                          int32_t *status) {
  char *staged = leaving ? room(d, stream, bytes, status) : NULL;
  if (*status)
    return "cuStreamSynchronize";
  *status =
      d->cuda.cuMemcpyDtoHAsync_v2(staged ? staged : to, here, bytes, stream);
  if (*status)
    return "cuMemcpyDtoHAsync";
  heed_cuda_staging *s = &d->staging;
  if (staged)
    s->arrivals[s->numArrivals++] = (heed_cuda_arrival){to, staged, bytes};
  else
    *status = waitFor(d, stream);
  return "cuStreamSynchronize";
}

int heed_cuda_copy(heed_door *door, void *to, const void *from, size_t bytes,
                   heed_way way) {
  heed_cuda_device *d = of(door->device);
  CUstream stream = heed_cuda_stream(door);
  CUdeviceptr there = (CUdeviceptr)(uintptr_t)to,
              here = (CUdeviceptr)(uintptr_t)from;
  const char *function = "cuCtxPushCurrent";
  int32_t status = heed_cuda_enter(d);
  if (status)
    return heed_cuda_failed(door, halide_error_code_device_buffer_copy_failed,
                            function, status);
  switch (way) {
  case HEED_TO_DEVICE:
    function = toDevice(d, stream, there, from, bytes, &status);
    break;
  case HEED_TO_HOST:
    function = toHost(d, stream, to, here, bytes, door->leaving, &status);
    break;
  case HEED_WITHIN:
    function = "cuMemcpyDtoDAsync";
    status = d->cuda.cuMemcpyDtoDAsync_v2(there, here, bytes, stream);
    break;
  }
  /* The copy may still be on its way to or from what is the caller's. A stream
   * that fails again has ended. */
  if (status && way != HEED_WITHIN)
    waitFor(d, stream);
  heed_cuda_leave(d);
  return status ? heed_cuda_failed(door,
                                   halide_error_code_device_buffer_copy_failed,
                                   function, status)
                : 0;
}
