/* Blocks of a call: they are aligned and nobody else's, come back to their
 * thread, and go back to the system when two calls did not want them. */
#include "runtime/Model.h"
#include "test/runtime/Inputs/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { Blocks = 24 };

static size_t sizeOf(int task, int k) {
  static const size_t sizes[] = {0,    1,    128,  129,   1024,  1025,  1200,
                                 4096, 5000, 9000, 65535, 65536, 65537, 300000};
  return sizes[(task * 5 + k) % 14];
}

/* Takes blocks, writes each from end to end and finds all as they were. */
static int task(void *context, int index, uint8_t *closure) {
  (void)closure;
  heed_pool *pool = context;
  unsigned char *blocks[Blocks];
  for (int k = 0; k < Blocks; ++k) {
    blocks[k] = heed_pool_take(pool, sizeOf(index, k));
    CHECK(blocks[k] && (uintptr_t)blocks[k] % 128 == 0);
    memset(blocks[k], index + k, sizeOf(index, k));
    if (k % 3 == 2) { /* one comes back early */
      heed_pool_give(blocks[k - 1]);
      blocks[k - 1] = NULL;
    }
  }
  for (int k = Blocks; k-- > 0;) {
    if (!blocks[k])
      continue;
    for (size_t at = 0; at < sizeOf(index, k); at += 61)
      CHECK(blocks[k][at] == (unsigned char)(index + k));
    if (index % 7) /* a failed task gives nothing back */
      heed_pool_give(blocks[k]);
  }
  return 0;
}

static heed_pool *newPool(void) {
  heed_pool *pool = aligned_alloc(_Alignof(heed_pool), sizeof *pool);
  CHECK(pool);
  memset(pool, 0, sizeof *pool);
  heed_pool_open(pool, NULL);
  return pool;
}

int main(void) {
  heed_pool *pool = newPool();
  heed_pool_give(NULL);
  for (size_t bytes = 0; bytes < 70000; bytes += bytes / 40 + 1) {
    void *first = heed_pool_take(pool, bytes);
    memset(first, 1, bytes);
    void *second = heed_pool_take(pool, bytes);
    CHECK(first && second && first != second);
    heed_pool_give(first);
    CHECK(heed_pool_take(pool, bytes) == first);
    heed_pool_end_call(pool);
    /* Both are free, though nobody gave them back; no third is wanted. */
    size_t before = heed_pool_bytes(pool);
    CHECK(before >= 2 * bytes);
    first = heed_pool_take(pool, bytes);
    second = heed_pool_take(pool, bytes);
    CHECK(first != second && heed_pool_bytes(pool) == before);
    heed_pool_end_call(pool);
    heed_pool_end_call(pool);
    heed_pool_end_call(pool);
    CHECK(heed_pool_bytes(pool) == 0);
  }
  CHECK(!heed_pool_take(pool, SIZE_MAX) && !heed_pool_take(pool, SIZE_MAX / 2));

  /* More threads than shelves share these. */
  for (int threads = 1; threads <= HEED_SHELVES + 9; threads += 20) {
    heed_team *team = heed_team_open(threads, threads % 2);
    for (int call = 0; call < 30; ++call) {
      if (threads > 1)
        heed_pool_begin_call(pool);
      CHECK(heed_team_run(team, task, pool, 0, 60, NULL) == 0);
      heed_pool_end_call(pool);
    }
    heed_team_close(team);
  }
  heed_pool_close(pool);
  free(pool);
  puts("every block was its task's own");
}
