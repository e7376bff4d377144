/* What a run will take, before it is run: the host's part of the model runs,
 * its kernels are left out, and memory that it asks for is addresses alone. */
#include "runtime/Model.h"

#include <stdlib.h>
#include <sys/mman.h>

struct heed_plan_block {
  heed_plan_block *next;
  void *memory;
  int64_t bytes;
};

/* Reads as zeros and takes no memory before it is written. */
void *heed_plan_take(heed_plan *plan, int64_t bytes, bool counts) {
  heed_plan_block *block = malloc(sizeof *block);
  void *memory =
      block ? mmap(NULL, bytes ? (size_t)bytes : 1, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
            : MAP_FAILED;
  if (memory == MAP_FAILED) {
    free(block);
    return NULL;
  }
  *block = (heed_plan_block){plan->blocks, memory, bytes};
  plan->blocks = block;
  if (counts) {
    plan->now += bytes;
    plan->most = plan->now > plan->most ? plan->now : plan->most;
  }
  return memory;
}

static void release(heed_plan_block *block) {
  munmap(block->memory, block->bytes ? (size_t)block->bytes : 1);
  free(block);
}

void heed_plan_give(heed_plan *plan, void *memory) {
  for (heed_plan_block **link = &plan->blocks; *link; link = &(*link)->next) {
    heed_plan_block *block = *link;
    if (block->memory != memory)
      continue;
    plan->now -= block->bytes;
    *link = block->next;
    release(block);
    return;
  }
}

void heed_plan_close(heed_plan *plan) {
  while (plan->blocks) {
    heed_plan_block *block = plan->blocks;
    plan->blocks = block->next;
    release(block);
  }
}
