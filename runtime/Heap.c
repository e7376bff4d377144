/* Memory for tensors: of the host's allocator or of the system, up to a limit.
 * Large blocks ask the system for large pages: what is read once a call, as
 * weights are, meets a new page of 4 KiB after every 64 lines, and each one
 * must be looked up in tables that lie in memory themselves. */
#include "runtime/Model.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { LargePage = 2 << 20, LargeFrom = 2 * LargePage };

static void *takeFromSystem(size_t alignment, size_t bytes) {
  void *memory = NULL;
  bool large = bytes >= LargeFrom;
  if (posix_memalign(&memory, large ? LargePage : alignment, bytes) != 0)
    return NULL;
#ifdef MADV_HUGEPAGE
  /* Only whole pages of what no one else allocates; it is no failure if the
   * system gives none. */
  if (large)
    (void)madvise(memory, bytes / LargePage * LargePage, MADV_HUGEPAGE);
#endif
  return memory;
}

/* Adds to what is taken; false where that exceeds the limit. */
static bool count(heed_heap *heap, size_t bytes) {
  long long taken = atomic_load(&heap->taken);
  do {
    if (bytes > (size_t)INT64_MAX || taken > heap->limit - (int64_t)bytes)
      return false;
  } while (!atomic_compare_exchange_weak(&heap->taken, &taken,
                                         taken + (long long)bytes));
  return true;
}

void *heed_heap_take(heed_heap *heap, size_t alignment, size_t bytes) {
  size_t wanted = bytes ? bytes : 1;
  if (!heap)
    return takeFromSystem(alignment, wanted);
  if (heap->limit && !count(heap, bytes))
    return NULL;
  void *memory =
      heap->allocator.allocate
          ? heap->allocator.allocate(heap->allocator.user, alignment, wanted)
          : takeFromSystem(alignment, wanted);
  if (memory && (uintptr_t)memory % alignment == 0)
    return memory;
  heed_heap_give(heap, memory, bytes); /* not aligned: as good as none */
  if (!memory && heap->limit)
    atomic_fetch_sub(&heap->taken, (long long)bytes);
  return NULL;
}

void heed_heap_give(heed_heap *heap, void *memory, size_t bytes) {
  if (!memory)
    return;
  if (heap && heap->limit)
    atomic_fetch_sub(&heap->taken, (long long)bytes);
  if (heap && heap->allocator.release)
    heap->allocator.release(heap->allocator.user, memory, bytes ? bytes : 1);
  else
    free(memory);
}
