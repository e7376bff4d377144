/* The inside of an open model, shared by the runtime's files. */
#ifndef HEED_MODEL_H
#define HEED_MODEL_H

#include "runtime/Gpu.h"
#include "runtime/host.h"
#include "runtime/io/Safetensors.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* ---- Heap.c: where tensors' memory comes from ---- */

/** The allocator of handles that share weights, and how much of its limit is
 * taken. All zero: malloc's memory without a limit. */
typedef struct heed_heap {
  heed_allocator allocator; /* allocate null: the system's */
  int64_t limit;            /* 0: none */
  atomic_llong taken;
} heed_heap;

/** Null if there is none, or the limit is reached; large blocks of the system
 * lie in large pages where it has them. heap may be null. */
void *heed_heap_take(heed_heap *heap, size_t alignment, size_t bytes);
/** memory may be null; bytes as it was taken with. */
void heed_heap_give(heed_heap *heap, void *memory, size_t bytes);

/* ---- Memory.c ---- */

/** Blocks that live until all of them go. All zero: empty. */
typedef struct heed_arena_block heed_arena_block;
typedef struct heed_arena {
  heed_heap *heap;
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
  heed_heap *heap;
  uint64_t call;
} heed_pool;

void heed_pool_open(heed_pool *pool, heed_heap *heap);
/** Begins a call from this thread, whose number is 0. */
void heed_pool_begin_call(heed_pool *pool);
/** 128-byte aligned, or null. */
void *heed_pool_take(heed_pool *pool, size_t bytes);
/** The same from the system, whatever the heap's limit is: for the rest of a
 * call that has failed. */
void *heed_pool_take_beyond(heed_pool *pool, size_t bytes);
/** Null is allowed. */
void heed_pool_give(void *memory);
/** Ends a call: all blocks are free again; those that two calls did not use go
 * back to the system. */
void heed_pool_end_call(heed_pool *pool);
void heed_pool_close(heed_pool *pool);
/** Bytes of all blocks, used or not. */
size_t heed_pool_bytes(heed_pool *pool);

/* ---- Plan.c: a run without kernels ---- */

typedef struct heed_plan_block heed_plan_block;
typedef struct heed_plan {
  heed_plan_block *blocks;
  int64_t now, most; /* bytes */
} heed_plan;

/** Addresses for `bytes`, or null; `counts`: they are part of the plan. */
void *heed_plan_take(heed_plan *plan, int64_t bytes, bool counts);
void heed_plan_give(heed_plan *plan, void *memory);
void heed_plan_close(heed_plan *plan);

/* ---- Process.c: what belongs to the host's process ---- */

/** Known to be another process in a child of fork. */
typedef struct heed_mark {
  int32_t *page; /* null: compared by number */
  pid_t process;
} heed_mark;

void heed_mark_open(heed_mark *mark);
/** Whether this process is a fork of the one that opened the mark. */
bool heed_mark_is_foreign(const heed_mark *mark);
void heed_mark_close(heed_mark *mark);

/** Rounding to nearest, denormals, no traps. Returns what was set before. */
uint64_t heed_float_mode_enter(void);
void heed_float_mode_leave(uint64_t before);

/* ---- Threads.c: one parallel loop at a time ---- */

typedef int (*heed_task)(void *context, int index, uint8_t *closure);
typedef struct heed_team heed_team;

/** threads counts the caller; workers start with the first loop and, if
 * `watch`, watch for the next call when one has ended. Null if there is no
 * memory. */
heed_team *heed_team_open(int32_t threads, bool watch);
/** A call of some handle begins and ends: between them workers watch for loops
 * instead of sleeping. */
void heed_team_begin_call(heed_team *team);
void heed_team_end_call(heed_team *team);
/** Runs task(context, min .. min+size-1, closure); a loop inside a loop, or
 * beside one of another handle, runs serially. The first non-zero result, or 0.
 */
int heed_team_run(heed_team *team, heed_task task, void *context, int min,
                  int size, uint8_t *closure);
int32_t heed_team_size(const heed_team *team);
/** Whether its workers live in another process. */
bool heed_team_is_foreign(const heed_team *team);
/** Which thread of its team the caller is; 0 outside of all teams. */
int32_t heed_thread_index(void);
/** Gives a thread of somebody else's a number that no team has, less than 0,
 * and returns the one before. */
int32_t heed_thread_borrow(void);
void heed_thread_return(int32_t before);
/** In a child of fork there is nobody to wait for. */
void heed_team_close(heed_team *team);
/** Processors that this process may use. */
int32_t heed_available_threads(void);

/* ---- Loops.c: the loops of kernels ---- */

/** A loop of a kernel on the threads that the handle was opened with. Stops
 * before a task when the call is cancelled. */
int heed_loop_run(heed_model *model, heed_task task, int min, int size,
                  uint8_t *closure);
/** HEED_OK, or why the current call must end; remembered by the handle. Quick
 * where the call can not be stopped. */
heed_status heed_stop_reason(heed_model *model);
/** Leaves the call if there is a reason. */
void heed_stop_check(heed_model *model);

/** What a heed_threads is. */
struct heed_threads {
  heed_object object;
  heed_team *team;
};

/* ---- Cpu.c ---- */

/** Whether the processor (and the system) supports LLVM's comma-separated
 * features; else *missing names the first one that is not supported or not
 * known (not terminated: *length bytes). */
bool heed_cpu_supports(const char *features, const char **missing,
                       size_t *length);

/** Makes model->desc the description of the target `wanted` (null: the best
 * that this machine can run), and model->device its device. A device that is no
 * GPU has to be wanted. Fails with HEED_ERROR_CPU where the processor lacks
 * what every one of them needs, with HEED_ERROR_DEVICE where there is no
 * device, with HEED_ERROR_ARGUMENT where there is no such target. */
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
  size_t ownedBytes; /* copied or converted: given back with the weights */
} heed_param_instance;

/** What init has put into a slot. */
typedef struct heed_kept {
  void *data;
  int64_t bytes;
} heed_kept;

/** What handles of one file share. */
typedef struct heed_shared {
  atomic_int handles;
  const heed_model_desc *desc;
  heed_heap heap;
  heed_weights *weights; /* null if the model has no parameters */
  heed_param_instance **params;
  heed_kept *kept;         /* in keptMemory or in `packed` */
  heed_gpu_device *device; /* null: the processor */
  heed_arena keptMemory;
  int64_t keptBytes;
  heed_bytes packed;   /* the file of packed weights, while it is mapped */
  bool packedIsCopied; /* to keptMemory */
} heed_shared;

/** What init reads in place and no call does. */
typedef struct heed_read_param {
  const void *data;
  size_t bytes;
} heed_read_param;
enum { HEED_LAST_READ = 8 };

/** Finds, checks and converts all parameters of model->shared. */
heed_status heed_params_load(heed_model *model, const heed_options *options);
/** After a kernel of init: pages of mapped files that it has packed from are
 * not kept beside the packed copy. */
void heed_params_packed(heed_model *model);
/** After init: gives back copies of those that no call reads. */
void heed_params_opened(heed_shared *shared);
void heed_params_release(heed_shared *shared);
/** How many instances its loop variables make; -1 if that is absurd. */
int64_t heed_param_instances(const heed_param_info *info);
/** Room for them, all zero, in model->shared->params. */
heed_status heed_param_room(heed_model *model, int32_t param, int64_t *count);
/** 0 if it has no data. */
int64_t heed_param_bytes(const heed_param_info *info,
                         const heed_param_instance *instance);

/** Bytes of weights, as heed_memory() tells them. */
typedef struct heed_weights_bytes {
  int64_t inPlace, copies;
} heed_weights_bytes;
heed_weights_bytes heed_bytes_of_weights(const heed_shared *shared);

/** The extent that the first parameter with a dim of that name gives to it;
 * false if none has it. */
bool heed_params_extent(const heed_shared *shared, const char *name,
                        int64_t *extent);

/* ---- Packed.c: all of it as a file ---- */

heed_status heed_packed_save(heed_model *model, const char *path);
/** Instead of heed_params_load() and heed_run_init(): the parameters and slots
 * of model->shared from options->packed. */
heed_status heed_packed_open(heed_model *model, const heed_options *options);

/* ---- Sources.c: where weights come from ---- */

/** A parameter's tensor. */
typedef struct heed_found_weight {
  heed_array array;
  const int64_t *strides; /* null: dense */
  const char *dtype;      /* the file's word */
  char where[1400];       /* "file: 'name'", for messages */
} heed_found_weight;

/** Opens the files and the files in memory. */
heed_status heed_sources_open(heed_model *model, const heed_options *options);
/** Looks `name` up. *found says whether there is one; fails where what the
 * callback gives is no tensor. */
heed_status heed_sources_find(heed_model *model, const heed_options *options,
                              const char *name, heed_found_weight *weight,
                              bool *found);

/* ---- Strides.c ---- */

/** Whether elements of that shape lie as in dense row-major memory; strides
 * null: yes. */
bool heed_strides_are_dense(int32_t rank, const int64_t *shape,
                            const int64_t *strides);
/** First byte and one past the last, from the first element; false if they are
 * beyond what can be addressed. */
bool heed_strides_range(int32_t rank, const int64_t *shape,
                        const int64_t *strides, size_t elementSize,
                        int64_t *begin, int64_t *end);
/** Whether no two elements share memory, as far as strides alone say: each axis
 * steps over all that is inside it. */
bool heed_strides_are_distinct(int32_t rank, const int64_t *shape,
                               const int64_t *strides);
/** Copies to dense memory, and back. */
void heed_strides_gather(void *dense, const void *data, int32_t rank,
                         const int64_t *shape, const int64_t *strides,
                         size_t elementSize);
void heed_strides_scatter(void *data, const void *dense, int32_t rank,
                          const int64_t *shape, const int64_t *strides,
                          size_t elementSize);

/* ---- Run.c ---- */

heed_status heed_run_shapes(heed_model *model, const char *entry,
                            const heed_buffer *inputs, size_t numInputs,
                            heed_buffer *outputs, size_t numOutputs);
heed_status heed_run_entry(heed_model *model, const char *entry,
                           const heed_buffer *inputs, size_t numInputs,
                           heed_buffer *outputs, size_t numOutputs,
                           const heed_call *call);
heed_status heed_run_shapes_in(heed_model *model, const char *entry,
                               const heed_buffer *inputs, size_t numInputs,
                               heed_buffer *outputs, size_t numOutputs,
                               const heed_call *call);
heed_status heed_run_plan(heed_model *model, const char *entry,
                          const heed_buffer *inputs, size_t numInputs,
                          int64_t *bytes);
heed_status heed_run_plan_in(heed_model *model, const char *entry,
                             const heed_buffer *inputs, size_t numInputs,
                             const heed_call *call, int64_t *bytes);
/** Runs the model's init. */
heed_status heed_run_init(heed_model *model);
/** Bytes of the arguments of the entry that has most, for model->arguments. */
size_t heed_run_bytes(const heed_model_desc *desc);
/** The smallest sizes that structs of this version had. */
enum {
  HEED_LEAST_BUFFER =
      offsetof(heed_buffer, shape) + sizeof(int64_t) * HEED_MAX_RANK,
  HEED_LEAST_CALL = offsetof(heed_call, deadline) + sizeof(int64_t),
  HEED_LEAST_OPTIONS = offsetof(heed_options, target) + sizeof(char *)
};
/** Whether a caller's struct of `size` bytes, of which the first `known` mean
 * something here, can be read: it has `least`, and what is not known is 0. */
bool heed_is_readable(const void *record, size_t size, size_t least,
                      size_t known);

/* ---- Open.c ---- */

heed_status heed_open_model(int32_t callersVersion, const heed_model_desc *desc,
                            const heed_options *options, heed_model **model);
heed_status heed_open_other(heed_model *model, int32_t threads,
                            heed_model **other);
void heed_close_model(heed_model *model);
heed_threads *heed_open_threads(int32_t threads, int32_t wait);
void heed_close_threads(heed_threads *threads);
/** One handle or state on the weights less. */
void heed_release_shared(heed_shared *shared);

/* ---- State.c, Trim.c, StateFile.c, Permute.c ---- */

heed_status heed_open_state(heed_model *model, const heed_dim *dims,
                            size_t numDims, heed_state **state);
void heed_close_state(heed_state *state);
heed_status heed_reset_state(heed_state *state);
heed_status heed_copy_state(heed_state *from, heed_state *to);
heed_status heed_get_state(heed_state *state, const char *name,
                           heed_buffer *buffer);
heed_status heed_set_state(heed_state *state, const char *name,
                           const heed_buffer *buffer);
heed_status heed_trim_state(heed_state *state, const char *name,
                            const heed_buffer *values);
heed_status heed_permute_state(heed_state *state, const char *dim,
                               const int64_t *from, size_t count);
heed_status heed_save_state(heed_state *state, const char *path);
heed_status heed_load_state(heed_state *state, const char *path);
int64_t heed_bytes_of_state(const heed_state *state);
const char *heed_error_of_state(const heed_state *state);

/* ---- Sampler.c ---- */

heed_status heed_open_sampler(const heed_sampling *sampling, int64_t rows,
                              int64_t vocabulary, heed_sampler **sampler);
void heed_close_sampler(heed_sampler *sampler);
heed_status heed_begin_row(heed_sampler *sampler, int64_t row, uint64_t id);
heed_status heed_see_tokens(heed_sampler *sampler, int64_t row,
                            const int32_t *ids, size_t count);
heed_status heed_stop_row(heed_sampler *sampler, int64_t row);
int32_t heed_row_stopped(const heed_sampler *sampler, int64_t row);
int64_t heed_rows_running(const heed_sampler *sampler);
heed_status heed_choose_tokens(heed_sampler *sampler, const heed_buffer *logits,
                               int32_t *ids);
const char *heed_error_of_sampler(const heed_sampler *sampler);

/* ---- OpenGeneration.c, Generate.c ---- */

heed_status heed_open_generation(heed_model *model,
                                 const heed_generation_options *options,
                                 const heed_buffer *inputs, size_t numInputs,
                                 heed_generation **generation);
void heed_close_generation(heed_generation *generation);
heed_status heed_step_generation(heed_generation *generation, int32_t *ids,
                                 int64_t *running);
heed_status heed_run_generation(heed_generation *generation,
                                heed_on_tokens onTokens, void *user);
heed_status heed_tokens_of_generation(heed_generation *generation,
                                      int64_t width, int32_t *tokens,
                                      double *scores);
const char *heed_error_of_generation(const heed_generation *generation);

/* ---- Update.c: states that change where they lie ---- */

/** What stood in a state before the current call, for one that fails. */
typedef struct heed_journal {
  char *data;
  size_t used, capacity;
} heed_journal;

/** Undoes all that it holds, the last first, and empties it. */
void heed_journal_undo(heed_journal *journal);

/* ---- Model.c ---- */

typedef struct heed_kernel_record {
  int64_t calls;
  double seconds, flops, bytes;
  int64_t pairs;
} heed_kernel_record;

struct heed_model {
  heed_object object;
  const heed_model_desc *desc;
  heed_shared *shared;
  heed_mark mark;
  heed_team *team; /* null: parallelFor */
  bool ownsTeam;
  heed_parallel_for parallelFor; /* null: team */
  void *parallelForUser;
  int32_t threads, wait;
  atomic_bool looping; /* parallelFor runs a loop: one inside it is serial */
  heed_log log;
  void *logUser;
  heed_pool pool;
  heed_kernel_record *profile; /* null unless asked for */
  heed_argument *arguments; /* the current call's buffers, defaults filled in */
  atomic_flag busy;         /* a call is under way */
  const int32_t *cancel;    /* of the current call */
  int64_t deadline;
  atomic_int stop;   /* why the current call must end: a heed_status */
  heed_plan *plan;   /* null: the current call computes */
  heed_state *state; /* of the current call */
  heed_journal journal;
  bool inInit;
  heed_read_param lastRead[HEED_LAST_READ]; /* by init, for its next kernel */
  int numLastRead;
  bool ready;                 /* opened without failure */
  heed_gpu_device *device;    /* shared's; null: the processor */
  heed_device_memory *memory; /* the handle's there; null before a call */
  const heed_gpu *gpu;        /* that was looked for; may be null */
  int32_t deviceNumber;       /* of the options */
  void *deviceContext;        /* of the options; null: one of our own */
  void *stream;               /* of the call; null: the device's */
  char deviceText[256];       /* which device it is, or why there is none */
  jmp_buf unwind;
  pthread_mutex_t messageLock; /* kernels report from many threads */
  char kernelMessage[512];     /* the first message of a failed kernel */
  atomic_bool gaveUp;          /* the kernel that was called last */
  atomic_llong pairs;          /* that it counted */
  heed_status status;
  char message[1024];
};

/** One line for the host's log, if it has one. */
void heed_say(const heed_model *model, heed_log_level level, const char *format,
              ...) __attribute__((format(printf, 3, 4)));
const heed_entry_desc *heed_find_entry(const heed_model_desc *desc,
                                       const char *name);
/** The runtime's own part of heed_target_name(). */
const char *heed_target_at(const heed_model_desc *desc, size_t target);
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
