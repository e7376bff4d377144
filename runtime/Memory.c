/* Blocks of memory that live for a call: a call of the same sizes as the one
 * before allocates nothing from the system. Blocks that live as long as a
 * model. */
#include "runtime/Model.h"

#include <stdlib.h>
#include <string.h>

/* ---- what a model keeps ---- */

/* Smaller blocks stand alone, larger ones share chunks; pages of a chunk that
 * nobody has written take no memory. */
enum { ArenaFrom = 128 << 10, ArenaChunk = 16 << 20, ArenaAlignment = 128 };

struct heed_arena_block {
  heed_arena_block *next;
  size_t bytes; /* with this */
};

static void *newBlock(heed_arena *arena, size_t bytes) {
  heed_arena_block *block =
      bytes > SIZE_MAX - ArenaAlignment
          ? NULL
          : heed_heap_take(arena->heap, ArenaAlignment, bytes + ArenaAlignment);
  if (!block)
    return NULL;
  block->bytes = bytes + ArenaAlignment;
  block->next = arena->blocks;
  arena->blocks = block;
  return (char *)block + ArenaAlignment;
}

void *heed_arena_take(heed_arena *arena, size_t bytes) {
  if (bytes < ArenaFrom || bytes > ArenaChunk)
    return newBlock(arena, bytes);
  bytes = (bytes + ArenaAlignment - 1) / ArenaAlignment * ArenaAlignment;
  if (bytes > arena->left) {
    /* What was left of the chunk before is not used. */
    arena->next = newBlock(arena, ArenaChunk);
    arena->left = arena->next ? ArenaChunk : 0;
    if (!arena->next)
      return NULL;
  }
  void *memory = arena->next;
  arena->next += bytes;
  arena->left -= bytes;
  return memory;
}

void heed_arena_close(heed_arena *arena) {
  while (arena->blocks) {
    heed_arena_block *block = arena->blocks;
    arena->blocks = block->next;
    heed_heap_give(arena->heap, block, block->bytes);
  }
}

/* ---- blocks of a call ---- */

struct heed_block {
  heed_block *next;
  heed_shelf *shelf;
  size_t bytes;
  uint64_t lastCall;
  heed_block *below; /* at hand */
  int size;          /* of small ones, from 0; else -1 */
  bool beyond;       /* of the system, where the heap had none */
  bool used;         /* as those at hand are for everybody else */
};

/* Halide wants at least 128 for AVX-512 code; the block's record stands in
 * front of the memory. */
enum { Alignment = 128 };
_Static_assert(sizeof(heed_block) <= Alignment, "the record has its place");

static void *memoryOf(heed_block *block) { return (char *)block + Alignment; }

void heed_pool_open(heed_pool *pool, heed_heap *heap) {
  for (int k = 0; k < HEED_SHELVES; ++k) {
    pthread_mutex_init(&pool->shelves[k].lock, NULL);
    pool->shelves[k].blocks = NULL;
    pool->shelves[k].thread = k;
  }
  pool->heap = heap;
  pool->call = 0;
}

void heed_pool_begin_call(heed_pool *pool) {
  pool->shelves[0].caller = pthread_self();
}

/* A shared library finds a thread's number by a call or two; who the thread is
 * stands in a register. */
static bool isCallers(const heed_shelf *shelf) {
  return pthread_equal(shelf->caller, pthread_self());
}

static heed_block *takeKept(heed_shelf *shelf, size_t bytes) {
  heed_block *best = NULL;
  /* A block more than twice too large may be wanted by somebody else. */
  size_t most = bytes > SIZE_MAX / 2 - 4096 ? SIZE_MAX : 2 * bytes + 4096;
  for (heed_block *block = shelf->blocks; block; block = block->next)
    if (!block->used && block->bytes >= bytes && block->bytes <= most &&
        (!best || block->bytes < best->bytes))
      best = block;
  return best;
}

/* Which of the sizes of small blocks has room for *bytes, and how many bytes
 * that is: up to 8 alignments each, then four sizes from a power of two to the
 * next. A task of a kernel may take a dozen small blocks for a microsecond's
 * work. */
static int smallSize(size_t *bytes) {
  unsigned units = (unsigned)(*bytes / Alignment);
  if (units <= 8)
    return (int)units - 1;
  int log = 31 - __builtin_clz(units - 1);
  unsigned steps = ((units - 1) >> (log - 2)) + 1;
  *bytes = (size_t)(steps << (log - 2)) * Alignment;
  return 8 + 4 * (log - 3) + (int)steps - 5;
}

/* 512 units, the last of the sizes. */
enum { SmallMost = 512 * Alignment };

static heed_block *takeOther(heed_pool *pool, heed_shelf *shelf, size_t bytes,
                             int size, bool beyond) {
  pthread_mutex_lock(&shelf->lock);
  heed_block *block = takeKept(shelf, bytes);
  if (!block) {
    block = heed_heap_take(beyond ? NULL : pool->heap, Alignment,
                           bytes + Alignment);
    if (block) {
      block->beyond = beyond;
      block->shelf = shelf;
      block->bytes = bytes;
      block->next = shelf->blocks;
      block->size = size;
      shelf->blocks = block;
    }
  }
  if (block) {
    block->used = true;
    block->lastCall = pool->call;
  }
  pthread_mutex_unlock(&shelf->lock);
  return block;
}

static void *take(heed_pool *pool, size_t bytes, bool beyond) {
  if (bytes > SIZE_MAX - 2 * Alignment)
    return NULL;
  bytes = bytes ? (bytes + Alignment - 1) / Alignment * Alignment : Alignment;
  heed_shelf *shelf = &pool->shelves[0];
  bool own = isCallers(shelf);
  if (!own) {
    int32_t thread = heed_thread_index();
    shelf = &pool->shelves[(unsigned)thread % HEED_SHELVES];
    own = thread == shelf->thread;
  }
  int size = bytes <= SmallMost ? smallSize(&bytes) : -1;
  if (size >= 0 && own) {
    heed_block *block = shelf->atHand[size];
    if (block) {
      shelf->atHand[size] = block->below;
      block->lastCall = pool->call;
      return memoryOf(block);
    }
  }
  heed_block *block = takeOther(pool, shelf, bytes, size, beyond);
  return block ? memoryOf(block) : NULL;
}

void *heed_pool_take(heed_pool *pool, size_t bytes) {
  return take(pool, bytes, /*beyond=*/false);
}

void *heed_pool_take_beyond(heed_pool *pool, size_t bytes) {
  return take(pool, bytes, /*beyond=*/true);
}

void heed_pool_give(void *memory) {
  if (!memory)
    return;
  heed_block *block = (heed_block *)((char *)memory - Alignment);
  heed_shelf *shelf = block->shelf;
  if (block->size >= 0 &&
      (isCallers(shelf) || shelf->thread == heed_thread_index())) {
    block->below = shelf->atHand[block->size];
    shelf->atHand[block->size] = block;
    return;
  }
  pthread_mutex_lock(&shelf->lock);
  block->used = false;
  pthread_mutex_unlock(&shelf->lock);
}

static void giveBack(heed_heap *heap, heed_block *block) {
  heed_heap_give(block->beyond ? NULL : heap, block, block->bytes + Alignment);
}

static void endCall(heed_heap *heap, heed_shelf *shelf, uint64_t call) {
  if (!shelf->blocks) /* as most are; no loop runs now */
    return;
  pthread_mutex_lock(&shelf->lock);
  memset(shelf->atHand, 0, sizeof shelf->atHand);
  for (heed_block **link = &shelf->blocks; *link;) {
    heed_block *block = *link;
    if (block->lastCall + 2 > call && !block->beyond) {
      block->used = block->size >= 0;
      if (block->used) {
        block->below = shelf->atHand[block->size];
        shelf->atHand[block->size] = block;
      }
      link = &block->next;
      continue;
    }
    *link = block->next;
    giveBack(heap, block);
  }
  pthread_mutex_unlock(&shelf->lock);
}

void heed_pool_end_call(heed_pool *pool) {
  for (int k = 0; k < HEED_SHELVES; ++k)
    endCall(pool->heap, &pool->shelves[k], pool->call);
  ++pool->call;
}

size_t heed_pool_bytes(heed_pool *pool) {
  size_t bytes = 0;
  for (int k = 0; k < HEED_SHELVES; ++k) {
    heed_shelf *shelf = &pool->shelves[k];
    pthread_mutex_lock(&shelf->lock);
    for (heed_block *block = shelf->blocks; block; block = block->next)
      bytes += block->bytes;
    pthread_mutex_unlock(&shelf->lock);
  }
  return bytes;
}

void heed_pool_close(heed_pool *pool) {
  for (int k = 0; k < HEED_SHELVES; ++k) {
    heed_shelf *shelf = &pool->shelves[k];
    while (shelf->blocks) {
      heed_block *block = shelf->blocks;
      shelf->blocks = block->next;
      giveBack(pool->heap, block);
    }
    pthread_mutex_destroy(&shelf->lock);
  }
}
