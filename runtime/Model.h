/* The inside of an open model, shared by the runtime's files. */
#ifndef HEED_MODEL_H
#define HEED_MODEL_H

#include "runtime/host.h"
#include "runtime/io/Safetensors.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>

/* ---- Memory.c ---- */

/** Memory for free(), in large pages where it is large and the system has
 * them; null if there is none. */
void *heed_memory_take(size_t alignment, size_t bytes);

/** Blocks that live until all of them go. All zero: empty. */
typedef struct heed_arena_block heed_arena_block;
typedef struct heed_arena {
  heed_arena_block *blocks;
  char *next; /* of the chunk that small blocks are taken from */
  size_t left;
} heed_arena;

/** 128-byte aligned, or null. */
void *heed_arena_take(heed_arena *arena, size_t bytes);
void heed_arena_close(heed_arena *arena);

/* Blocks that live for a call and are reused by the next. */
typedef struct heed_block heed_block;

enum { HEED_SHELVES = 32, HEED_BLOCK_SIZES = 32 };

/** Blocks of one thread (of few, if there are more threads than shelves): a
 * block comes back to the core whose cache holds it. */
typedef struct heed_shelf {
  _Alignas(64) pthread_mutex_t lock;
  int32_t thread;   /* its number is the shelf's */
  pthread_t caller; /* of the first shelf: that thread, in a call */
  heed_block *blocks;
  /** Small blocks by size that nobody uses; only `thread` takes them and puts
   * them there, without the lock. */
  heed_block *atHand[HEED_BLOCK_SIZES];
} heed_shelf;

typedef struct heed_pool {
  heed_shelf shelves[HEED_SHELVES];
  uint64_t call;
} heed_pool;

void heed_pool_open(heed_pool *pool);
/** Begins a call from this thread, whose number is 0. */
void heed_pool_begin_call(heed_pool *pool);
/** 128-byte aligned, or null. */
void *heed_pool_take(heed_pool *pool, size_t bytes);
/** Null is allowed. */
void heed_pool_give(void *memory);
/** Ends a call: all blocks are free again; those that two calls did not use go
 * back to the system. */
void heed_pool_end_call(heed_pool *pool);
void heed_pool_close(heed_pool *pool);
/** Bytes of all blocks, used or not. */
size_t heed_pool_bytes(heed_pool *pool);

/* ---- Threads.c: one parallel loop at a time ---- */

typedef int (*heed_task)(void *context, int index, uint8_t *closure);
typedef struct heed_team heed_team;

/** threads counts the caller; workers start with the first loop. Null if there
 * is no memory. */
heed_team *heed_team_open(int32_t threads);
/** Runs task(context, min .. min+size-1, closure); a loop inside a loop runs
 * serially. The first non-zero result, or 0. */
int heed_team_run(heed_team *team, heed_task task, void *context, int min,
                  int size, uint8_t *closure);
int32_t heed_team_size(const heed_team *team);
/** Which thread of its team the caller is; 0 outside of all teams. */
int32_t heed_thread_index(void);
void heed_team_close(heed_team *team);
/** Processors that this process may use. */
int32_t heed_available_threads(void);

/* ---- Cpu.c ---- */

/** Whether the processor (and the system) supports LLVM's comma-separated
 * features; else *missing names the first one that is not supported or not
 * known (not terminated: *length bytes). */
bool heed_cpu_supports(const char *features, const char **missing,
                       size_t *length);

/** Makes model->desc the description of the target `wanted` (null: the best
 * that the processor supports). Fails with HEED_ERROR_CPU where the processor
 * lacks what every one of them needs, with HEED_ERROR_ARGUMENT where there is
 * no such target. */
heed_status heed_choose_target(heed_model *model, const char *wanted);

/* ---- HalideHooks.c ---- */

/** Why the last kernel failed. Host.c names this function, so the linker takes
 * HalideHooks.o out of the archive: Halide's weak functions alone would not. */
const char *heed_kernel_message(const heed_model *model);

/* ---- Params.c ---- */

/** One parameter for one value of its loop variables. */
typedef struct heed_param_instance {
  const void *data;
  int64_t shape[HEED_MAX_RANK];
  bool owned; /* converted: freed with the weights */
} heed_param_instance;

/** What handles of one file share. */
typedef struct heed_shared {
  atomic_int handles;
  const heed_model_desc *desc;
  heed_weights *weights; /* null if the model has no parameters */
  heed_param_instance **params;
  void **kept; /* where in keptMemory */
  heed_arena keptMemory;
  int64_t keptBytes;
} heed_shared;

/** Finds, checks and converts all parameters of model->shared. */
heed_status heed_params_load(heed_model *model, const heed_options *options);
void heed_params_release(heed_shared *shared);
/** Bytes of the parameters that are read in place (or, with `owned`, of those
 * that were converted). */
int64_t heed_params_bytes(const heed_shared *shared, bool owned);

/* ---- Model.c ---- */

typedef struct heed_kernel_record {
  int64_t calls;
  double seconds, flops, bytes;
} heed_kernel_record;

struct heed_model {
  const heed_model_desc *desc;
  heed_shared *shared;
  heed_team *team;
  heed_pool pool;
  heed_kernel_record *profile; /* null unless asked for */
  heed_buffer *arguments; /* the current call's buffers, defaults filled in */
  atomic_flag busy;       /* a call is under way */
  bool inInit;
  bool ready; /* opened without failure */
  jmp_buf unwind;
  pthread_mutex_t messageLock; /* kernels report from many threads */
  char kernelMessage[512];     /* the first message of a failed kernel */
  atomic_bool gaveUp;          /* the kernel that was called last */
  heed_status status;
  char message[1024];
};

/** Records the failure and returns status. */
heed_status heed_fail(heed_model *model, heed_status status, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));
/** Records and leaves to the entry's caller. */
HEED_NORETURN void heed_unwind(heed_model *model, heed_status status,
                               const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Seconds on a clock that only goes forward. */
double heed_seconds(void);

#endif
