/* Memory, streams and copies of the driver of the tests. Memory of the device
 * is the host's, but only these functions and kernels may know that. Kernels
 * run when they are launched; copies that somebody has to wait for come late.
 */
#include "cuda-stub.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

typedef struct allocation {
  char *begin;
  size_t bytes;
  void *context; /* null: pinned memory of the host */
} allocation;

static allocation allocations[4096];
static size_t numAllocations, lastHit, taken;

static bool contains(size_t k, uint64_t address, size_t bytes) {
  uint64_t begin = (uint64_t)(uintptr_t)allocations[k].begin;
  return address >= begin && bytes <= allocations[k].bytes &&
         address - begin <= allocations[k].bytes - bytes;
}

static bool isOf(const void *owner, uint64_t address, size_t bytes) {
  if (lastHit < numAllocations && contains(lastHit, address, bytes))
    return allocations[lastHit].context == owner;
  for (size_t k = 0; k < numAllocations; ++k)
    if (contains(k, address, bytes)) {
      lastHit = k;
      return allocations[k].context == owner;
    }
  return false;
}

bool isMemory(uint64_t address, size_t bytes) {
  return isOf(current(), address, bytes);
}

static bool isPinned(const void *memory, size_t bytes) {
  return isOf(NULL, (uint64_t)(uintptr_t)memory, bytes);
}

int calls_cuMemAlloc, calls_cuMemFree, calls_cuMemcpyHtoDAsync,
    calls_cuMemcpyDtoHAsync, calls_cuMemcpyDtoDAsync, calls_cuMemHostAlloc,
    calls_cuMemFreeHost;

int cuMemAlloc_v2(uint64_t *memory, size_t bytes) {
  ENTERED(cuMemAlloc);
  if (!bytes)
    return INVALID_VALUE;
  if (numAllocations == 4096 ||
      taken + bytes > (size_t)numberOf("BYTES", 1 << 30))
    return NO_MEMORY;
  char *begin = aligned_alloc(256, (bytes + 255) / 256 * 256);
  memset(begin, 0xff, bytes);
  allocations[numAllocations++] = (allocation){begin, bytes, current()};
  taken += bytes;
  ++made;
  *memory = (uint64_t)(uintptr_t)begin;
  return 0;
}

int cuMemFree_v2(uint64_t memory) {
  LOCKED;
  ++calls_cuMemFree;
  for (size_t k = 0; k < numAllocations; ++k)
    if ((uint64_t)(uintptr_t)allocations[k].begin == memory) {
      taken -= allocations[k].bytes;
      free(allocations[k].begin);
      allocations[k] = allocations[--numAllocations];
      --made;
      return isEntered() ? 0 : INVALID_CONTEXT;
    }
  return INVALID_VALUE;
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  ENTERED(cuMemHostAlloc);
  if (flags || numAllocations == 4096)
    return INVALID_VALUE;
  *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  allocations[numAllocations++] = (allocation){*memory, bytes, NULL};
  ++made;
  return 0;
}

int cuMemFreeHost(void *memory) {
  LOCKED;
  ++calls_cuMemFreeHost;
  for (size_t k = 0; k < numAllocations; ++k)
    if (allocations[k].begin == memory && !allocations[k].context) {
      free(memory);
      allocations[k] = allocations[--numAllocations];
      --made;
      return isEntered() ? 0 : INVALID_CONTEXT;
    }
  return INVALID_VALUE;
}

/* ---- streams ---- */

static stub_stream streams[64];

stub_stream *streamOf(const void *on) {
  uintptr_t number = (uintptr_t)on;
  if (number == 1 || number == 2)
    return &streams[number];
  for (int k = 3; k < 64; ++k)
    if (on == &streams[k])
      return streams[k].context == current() && current() ? &streams[k] : NULL;
  return NULL;
}

/* How many launches there were on it, or on all. */
int cuda_stub_launches(const void *on) {
  int all = 0;
  for (int k = 0; k < 64; ++k)
    if (!on || on == &streams[k] || (uintptr_t)on == (uintptr_t)k)
      all += streams[k].launches;
  return all;
}

int calls_cuStreamCreate, calls_cuStreamSynchronize, calls_cuStreamDestroy;

int cuStreamCreate(stub_stream **created, unsigned flags) {
  ENTERED(cuStreamCreate);
  if (flags != 1)
    return INVALID_VALUE;
  for (int k = 3; k < 64; ++k)
    if (!streams[k].context) {
      streams[k] = (stub_stream){.context = current()};
      *created = &streams[k];
      ++made;
      return 0;
    }
  return NO_MEMORY;
}

int cuStreamDestroy_v2(stub_stream *destroyed) {
  LOCKED;
  ++calls_cuStreamDestroy;
  --made;
  if (!destroyed->context)
    return INVALID_HANDLE;
  destroyed->context = NULL;
  return 0;
}

/* ---- copies ---- */

/* Bytes that have come from or gone to the host. */
static long copied;
long cuda_stub_copied(void) { return copied; }

/* What is on its way from pinned memory, which is read as late as it may be, or
 * to the host: it is there when somebody has waited. */
typedef struct transfer {
  struct transfer *next;
  const stub_stream *stream;
  bool toHost;
  void *to;
  const void *from; /* of those to the host `data` */
  size_t bytes;
  char data[];
} transfer;

static transfer *transfers, **lastTransfer = &transfers;

void progress(const stub_stream *stream, bool isOver) {
  transfer **link = &transfers;
  while (*link) {
    transfer *one = *link;
    if (one->stream != stream || (one->toHost && !isOver)) {
      link = &one->next;
      continue;
    }
    memcpy(one->to, one->from, one->bytes);
    *link = one->next;
    free(one);
  }
  lastTransfer = link;
}

static void later(const transfer *one, const void *data, size_t size) {
  transfer *made_ = malloc(sizeof *made_ + size);
  *made_ = *one;
  if (data) {
    memcpy(made_->data, data, size);
    made_->from = made_->data;
  }
  *lastTransfer = made_;
  lastTransfer = &made_->next;
  copied += (long)one->bytes;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes,
                         void *on) {
  ENTERED(cuMemcpyHtoDAsync);
  stub_stream *stream = streamOf(on);
  bool pinned = isPinned(from, bytes);
  if (!stream || !isMemory(to, bytes) ||
      (!pinned && isMemory((uint64_t)(uintptr_t)from, 1)))
    return INVALID_VALUE;
  transfer one = {NULL, stream, false, (void *)(uintptr_t)to, from, bytes};
  later(&one, NULL, 0);
  if (!pinned)
    progress(stream, false);
  return 0;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *on) {
  ENTERED(cuMemcpyDtoHAsync);
  stub_stream *stream = streamOf(on);
  if (!stream || !isMemory(from, bytes) || isMemory((uint64_t)(uintptr_t)to, 1))
    return INVALID_VALUE;
  progress(stream, false);
  transfer one = {NULL, stream, true, to, NULL, bytes};
  later(&one, (const void *)(uintptr_t)from, bytes);
  return 0;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *on) {
  ENTERED(cuMemcpyDtoDAsync);
  stub_stream *stream = streamOf(on);
  if (!stream || !isMemory(to, bytes) || !isMemory(from, bytes))
    return INVALID_VALUE;
  progress(stream, false);
  memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
  return 0;
}

int cuStreamSynchronize(const void *on) {
  ENTERED(cuStreamSynchronize);
  stub_stream *stream = streamOf(on);
  if (!stream)
    return INVALID_HANDLE;
  progress(stream, true);
  return 0;
}
