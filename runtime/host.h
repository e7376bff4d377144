/* What compiled host code and the runtime know of each other: the model
 * description that heedc emits, and the functions that emitted code calls.
 *
 * Emitted code is LLVM IR, so every type here is plain: pointers, int32_t,
 * int64_t, double. Structs have the natural C layout of a 64-bit machine
 * (host.c asserts sizes and offsets; they are written beside each struct).
 *
 * Failure. Functions marked HEED_UNWINDS do not return when they fail: they
 * record status and message in the handle and leave through the entry's caller
 * (heed_run and the like). Emitted code therefore needs no status plumbing and
 * must hold nothing that needs releasing: memory comes from heed_host_alloc(),
 * which the runtime takes back after every call. They may be called only from
 * the thread that entered `shapes`, `run` or `init`, never from inside a
 * kernel. */
#ifndef HEED_HOST_H
#define HEED_HOST_H

#include "generate.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HEED_NORETURN __attribute__((noreturn))
#else
#define HEED_NORETURN
#endif

struct halide_buffer_t;

/** An input or output as emitted code sees it: dense, row-major, on the CPU.
 * 144 bytes: data 0, type 8, rank 12, shape 16 (16 x i64). */
typedef struct heed_argument {
  void *data;
  int32_t type; /**< a heed_type */
  int32_t rank;
  int64_t shape[HEED_MAX_RANK];
} heed_argument;

/** One entry point. `shapes` fills type, rank and shape of out[]; `run` fills
 * out[k].data, whose shapes `shapes` gave. Behind the inputs in[] holds all
 * states of the model, behind the outputs out[] holds memory for what the
 * `replaced` states are after the call; others are changed where they lie.
 * Before either is called the runtime has checked: number of buffers, element
 * types, ranks, static sizes, extents
 * >= 0, element counts that fit in memory, and has put defaults in place of
 * absent scalars (so data of a scalar is never null). Everything else (dims
 * that must agree, ranges) is checked by the emitted code, in both functions
 * alike. Both return 0, or a heed_status if they failed without unwinding. 64
 * bytes: signature 0 (size 0, entry 8, numInputs 16, numOutputs 20, inputs 24,
 * outputs 32), shapes 40, run 48, replaced 56. */
typedef struct heed_entry_desc {
  heed_signature signature;
  int32_t (*shapes)(heed_model *model, const heed_argument *in,
                    heed_argument *out);
  int32_t (*run)(heed_model *model, const heed_argument *in,
                 heed_argument *out);
  const int64_t *replaced; /* numbers of states, then -1; null: none */
} heed_entry_desc;

/** The functions of the runtime that a library carries: those of heed.h and
 * generate.h by the
 * same names. Api.c, of which a program has one, calls them. What stands before
 * `numEntries` stays in every version, so that a runtime can refuse a caller of
 * another one. */
typedef struct heed_runtime {
  size_t size;
  int64_t abiVersion;
  heed_status (*open)(int32_t callersVersion, const heed_model_desc *desc,
                      const heed_options *options, heed_model **model);
  void (*close)(heed_model *model);
  const char *(*lastError)(const heed_model *model);
  size_t (*numEntries)(const heed_model_desc *desc);
  const heed_signature *(*entrySignature)(const heed_model_desc *desc,
                                          size_t entry);
  const heed_signature *(*findSignature)(const heed_model_desc *desc,
                                         const char *entry);
  const char *(*modelName)(const heed_model_desc *desc);
  size_t (*numParams)(const heed_model_desc *desc);
  const heed_param_info *(*param)(const heed_model_desc *desc, size_t param);
  const char *(*targetName)(const heed_model_desc *desc, size_t target);
  heed_status (*openShared)(heed_model *model, int32_t threads,
                            heed_model **other);
  heed_status (*outputShapes)(heed_model *model, const char *entry,
                              const heed_buffer *inputs, size_t numInputs,
                              heed_buffer *outputs, size_t numOutputs);
  heed_status (*run)(heed_model *model, const char *entry,
                     const heed_buffer *inputs, size_t numInputs,
                     heed_buffer *outputs, size_t numOutputs,
                     const heed_call *call);
  int32_t (*numThreads)(const heed_model *model);
  const char *(*target)(const heed_model *model);
  size_t (*profile)(const heed_model *model, heed_kernel_profile *profiles,
                    size_t capacity);
  void (*profileReset)(heed_model *model);
  heed_status (*memory)(const heed_model *model, heed_memory_use *use);
  heed_threads *(*threadsOpen)(int32_t threads, int32_t wait);
  void (*threadsClose)(heed_threads *threads);
  heed_parallel_for threadsRun; /* its user is the heed_threads */
  int32_t (*threadsCount)(const heed_threads *threads); /* 0 after a fork */
  heed_status (*plan)(heed_model *model, const char *entry,
                      const heed_buffer *inputs, size_t numInputs,
                      int64_t *bytes);
  heed_status (*shapesIn)(heed_model *model, const char *entry,
                          const heed_buffer *inputs, size_t numInputs,
                          heed_buffer *outputs, size_t numOutputs,
                          const heed_call *call);
  heed_status (*stateOpen)(heed_model *model, const heed_dim *dims,
                           size_t numDims, heed_state **state);
  void (*stateClose)(heed_state *state);
  heed_status (*stateReset)(heed_state *state);
  heed_status (*stateCopy)(heed_state *from, heed_state *to);
  heed_status (*stateGet)(heed_state *state, const char *name,
                          heed_buffer *buffer);
  heed_status (*stateSet)(heed_state *state, const char *name,
                          const heed_buffer *buffer);
  heed_status (*statePermute)(heed_state *state, const char *dim,
                              const int64_t *from, size_t count);
  heed_status (*stateSave)(heed_state *state, const char *path);
  heed_status (*stateLoad)(heed_state *state, const char *path);
  int64_t (*stateBytes)(const heed_state *state);
  const char *(*stateError)(const heed_state *state);
  heed_status (*samplerOpen)(const heed_sampling *sampling, int64_t rows,
                             int64_t vocabulary, heed_sampler **sampler);
  void (*samplerClose)(heed_sampler *sampler);
  heed_status (*samplerBegin)(heed_sampler *sampler, int64_t row, uint64_t id);
  heed_status (*samplerSee)(heed_sampler *sampler, int64_t row,
                            const int32_t *ids, size_t count);
  heed_status (*samplerStop)(heed_sampler *sampler, int64_t row);
  int32_t (*samplerStopped)(const heed_sampler *sampler, int64_t row);
  int64_t (*samplerRunning)(const heed_sampler *sampler);
  heed_status (*samplerChoose)(heed_sampler *sampler, const heed_buffer *logits,
                               int32_t *ids);
  const char *(*samplerError)(const heed_sampler *sampler);
  heed_status (*generationOpen)(heed_model *model,
                                const heed_generation_options *options,
                                const heed_buffer *inputs, size_t numInputs,
                                heed_generation **generation);
  void (*generationClose)(heed_generation *generation);
  heed_status (*generationStep)(heed_generation *generation, int32_t *ids,
                                int64_t *running);
  heed_status (*generationRun)(heed_generation *generation,
                               heed_on_tokens onTokens, void *user);
  heed_status (*generationTokens)(heed_generation *generation, int64_t width,
                                  int32_t *tokens, double *scores);
  const char *(*generationError)(const heed_generation *generation);
  heed_status (*stateTrim)(heed_state *state, const char *name,
                           const heed_buffer *values);
  heed_status (*planIn)(heed_model *model, const char *entry,
                        const heed_buffer *inputs, size_t numInputs,
                        const heed_call *call, int64_t *bytes);
  heed_status (*savePacked)(heed_model *model, const char *path);
} heed_runtime;

/** The runtime of this library; emitted descriptions point to it. */
extern const heed_runtime heed_own_runtime;

/** Every handle, heed_threads, heed_state, heed_sampler and heed_generation
 * begins with its runtime. */
typedef struct heed_object {
  const heed_runtime *runtime;
} heed_object;

/** What heed_state_trim() may do with a state. */
typedef enum heed_trim {
  HEED_TRIM_NOTHING = 0,   /**< it has no part in it */
  HEED_TRIM_COUNT = 1,     /**< it is a count that can be taken back */
  HEED_TRIM_RECURRENT = 2, /**< it does not come back with any */
  HEED_TRIM_RING = 3       /**< nor do the positions of its ring */
} heed_trim;

/** A kind of device, as the runtime knows it (Model.h). */
typedef struct heed_gpu heed_gpu;

/** The whole model, a constant named `<prefix>_model`. 144 bytes; offsets at
 * the right. A model that was compiled for several targets is described once
 * for each; the public one is that with the least demands and knows the others.
 * The first two fields stay where they are in every version.
 */
struct heed_model_desc {
  int32_t abiVersion;          /*  0: HEED_ABI_VERSION */
  int32_t numEntries;          /*  4 */
  const heed_runtime *runtime; /*  8: heed_own_runtime */
  const char *name;            /* 16 */
  const char
      *source; /* 24: the source file's name, for messages; may be null */
  const char *cpuFeatures; /* 32: LLVM's names, "avx2,fma,f16c"; empty or null:
                              none. What `heed_open` insists on */
  const heed_entry_desc *entries; /* 40 */
  const heed_param_info *params;  /* 48 */
  int32_t numParams;              /* 56 */
  int32_t numKernels;             /* 60 */
  const char *const *kernels; /* 64: names, for profiles and messages; the index
                                 is that of heed_host_kernel() */
  int32_t
      numKept; /* 72: slots for what `init` computes, see heed_host_keep() */
  int32_t numStates;                     /* 76 */
  int32_t (*init)(heed_model *model);    /* 80: runs once after the weights are
                                            mapped; may be null */
  const heed_tensor_info *const *states; /* 88 */
  const heed_model_desc *const
      *variants; /* 96: the same model for devices and better processors, best
                    first, then a null; null: none */
  const char *target;   /* 104: "x86-64-v3"; may be null */
  const int32_t *trims; /* 112: of each state a heed_trim; null: nothing */
  const char *key;     /* 120: what no other code has, for packed weights, which
                          fit this code alone; null or empty: it packs none */
  const heed_gpu *gpu; /* 128: where kernels run: heed_opencl, heed_cuda; null:
                          on the processor */
  int32_t deviceF64;   /* 136: whether some of them compute in f64 there */
  int32_t reserved;    /* 140 */
};
/* heed_tensor_info, 64 bytes: size 0, name 8, type 16, rank 20, extents 24,
 * sizes 32, isScalar 40, hasDefault 44, defaultReal 48, defaultInteger 56.
 * heed_param_info, 64 bytes: size 0, names 8, numNames 16, numIndices 20,
 * indexBounds 24, type 32, rank 36, extents 40, sizes 48, isForOpening 56. */

/** `main` of a compiled program: emit `int main(int argc, char **argv)` that
 * returns this. */
int heed_program_main(const heed_model_desc *desc, int argc, char **argv);

/* ---- parameters ---- */

/** Data of one instance of a parameter, dense row-major, 64-byte aligned or as
 * the file holds it (at least aligned to its element). indices: one value per
 * "{k}", null if there is none. HEED_UNWINDS if an index is out of its bounds.
 */
const void *heed_host_param(heed_model *model, int32_t param,
                            const int64_t *indices);

/** The extent of one axis of it, as found in the file. HEED_UNWINDS as above.
 */
int64_t heed_host_param_extent(heed_model *model, int32_t param,
                               const int64_t *indices, int32_t axis);

/* ---- what `init` computes ---- */

/** Memory for slot `slot` (0 .. numKept-1) that lives as long as the weights:
 * only inside `init`. 64-byte aligned. HEED_UNWINDS on overflow or lack of
 * memory. */
void *heed_host_keep(heed_model *model, int32_t slot, int64_t bytes);

/** What `init` kept there: `bytes` of it. Any function may read it.
 * HEED_UNWINDS with HEED_ERROR_WEIGHTS if there is less, as a damaged file of
 * packed weights may have it. */
const void *heed_host_kept(heed_model *model, int32_t slot, int64_t bytes);

/* ---- memory of one call ---- */

/** 64-byte aligned memory, taken back at the end of the call (heed_host_free()
 * may give it back before). Blocks are kept by the handle from call to call, so
 * a steady state allocates nothing. bytes < 0 stands for a product that
 * overflowed. HEED_UNWINDS with HEED_ERROR_MEMORY. Never null, also for 0
 * bytes. */
void *heed_host_alloc(heed_model *model, int64_t bytes);
void heed_host_free(heed_model *model, void *memory);

/** rank extents times elementSize bytes; -1 if that overflows or an extent is
 * negative. For heed_host_alloc(). */
int64_t heed_host_bytes(int32_t rank, const int64_t *sizes,
                        int64_t elementSize);

/** a * b, a + b, a - b for extents; HEED_UNWINDS with HEED_ERROR_MEMORY where
 * it does not fit in 64 bits. */
int64_t heed_host_multiply(heed_model *model, int64_t a, int64_t b);
int64_t heed_host_add(heed_model *model, int64_t a, int64_t b);
int64_t heed_host_subtract(heed_model *model, int64_t a, int64_t b);

/** `size`, if a kernel can be told it: from -largest to largest, which is less
 * than 2^31. HEED_UNWINDS with HEED_ERROR_SHAPE. */
int64_t heed_host_size(heed_model *model, int64_t size, int64_t largest);

/** divisor, if one can divide by it; HEED_UNWINDS with HEED_ERROR_SHAPE if it
 * is 0. */
int64_t heed_host_divisor(heed_model *model, int64_t divisor);

/* ---- checks ---- */

/** Fails the call with HEED_ERROR_SHAPE. "{0}", "{1}" ... in format stand for
 * values[0], values[1] ... */
HEED_NORETURN void heed_host_require_failed(heed_model *model,
                                            const char *format,
                                            int32_t numValues,
                                            const int64_t *values);

/** The same with HEED_ERROR_RANGE: what the data says does not fit. */
HEED_NORETURN void heed_host_range_failed(heed_model *model, const char *format,
                                          int32_t numValues,
                                          const int64_t *values);

/** Fails the call with HEED_ERROR_RANGE unless low <= x < high for every x of
 * an integer tensor (I8, U8, I16, I32, I64). strides in elements, null if
 * dense. `tensor` names it (null: "index"), `what` is what it indexes: "word
 * (axis 0)". The message reads "ids[1,7] = 30522 is out of range for word (axis
 * 0): expected 0 <= index < 30522". HEED_UNWINDS. */
void heed_host_check_range(heed_model *model, const void *data, int32_t type,
                           int32_t rank, const int64_t *sizes,
                           const int64_t *strides, int64_t low, int64_t high,
                           const char *tensor, const char *what);

/* ---- states ---- */

/** state[p_0, p_1, ..] = values[x] for all x of the values. p_k is x[axes[k]],
 * or, of axes[k] = -1 - m, the position m: positions holds rank + 2 numbers for
 * each, whether it is a number (1) or a tensor of i64 (0), that number or the
 * tensor's address, and the tensor's strides along the axes of the values.
 * where: the number of the position that is a tensor of bool and says which x
 * are meant, or -1. twice: what a failure with HEED_ERROR_RANGE says where two
 * elements go to one place; null: they do not. Sizes and strides in elements.
 * If the call fails later, what stood there before stands there again.
 * HEED_UNWINDS with HEED_ERROR_RANGE where a position is outside, before
 * anything is written. */
void heed_host_update(heed_model *model, void *state, int64_t elementSize,
                      int32_t stateRank, const int64_t *stateSizes,
                      const int64_t *stateStrides, const void *values,
                      int32_t rank, const int64_t *sizes,
                      const int64_t *strides, const int64_t *axes,
                      const int64_t *positions, int32_t where,
                      const char *twice);

/* ---- kernels ---- */

/** Fills a Halide buffer (56 bytes, 8-aligned) and its dimensions (16 bytes
 * each: rank of them) for a kernel call. `data` is the first element (the
 * memref's aligned pointer advanced by its offset). sizes and strides are
 * outermost first, as in a memref, strides in elements (null: dense); Halide
 * gets them innermost first. typeCode, bits: Halide's (int 0, uint 1, float 2,
 * bfloat 4); a bool is uint with 1 bit. `largest` is the
 * greatest extent that the kernel can index. HEED_UNWINDS with HEED_ERROR_SHAPE
 * where an extent is greater, or a stride does not fit in 32 bits (an axis of
 * extent 1 or 0 may have any stride). */
void heed_host_buffer(heed_model *model, struct halide_buffer_t *buffer,
                      void *dimensions, void *data, int32_t typeCode,
                      int32_t bits, int32_t rank, const int64_t *sizes,
                      const int64_t *strides, int64_t largest);

/** Not 0 where calls of kernels are profiled: only then what a call costs needs
 * to be counted by data. */
int32_t heed_host_profiles(heed_model *model);

/** Calls a kernel through its `<name>_argv` function. args as Halide defines
 * them, numArgs of them: args[k] points to a scalar or is a halide_buffer_t*,
 * the last numOutputs are those that the kernel writes. If all of them are
 * empty, there is nothing to do, and the kernel is not called. The kernel is
 * compiled with `user_context`, which is argument 0: leave args[0] free, the
 * runtime fills it in. flops and bytes: this call's cost for profiles, 0 if
 * unknown. Returns 0 if the kernel gave up: what it wrote is not to be used.
 * HEED_UNWINDS if the kernel fails. */
int32_t heed_host_kernel(heed_model *model, int32_t kernel,
                         int32_t (*function)(void **args), void **args,
                         int32_t numArgs, int32_t numOutputs, double flops,
                         double bytes);

/** Kernels call this, from any thread, with their user context: where `yes` is
 * not 0, heed_host_kernel() returns 0. Returns 1. */
float heed_kernel_gives_up(void *context, int32_t yes);

/* ---- code for a device ----
 *
 * Its tensors have addresses of the host, and may be newer on the device: what
 * the host reads or writes itself is said before. These stand in
 * libheed_device.a alone. */

/** In place of the functions heed_host_<the same>. */
void *heed_device_alloc(heed_model *model, int64_t bytes);
void heed_device_free(heed_model *model, void *memory);
const void *heed_device_param(heed_model *model, int32_t param,
                              const int64_t *indices);
void *heed_device_keep(heed_model *model, int32_t slot, int64_t bytes);
const void *heed_device_kept(heed_model *model, int32_t slot, int64_t bytes);
void heed_device_check_range(heed_model *model, const void *data, int32_t type,
                             int32_t rank, const int64_t *sizes,
                             const int64_t *strides, int64_t low, int64_t high,
                             const char *tensor, const char *what);
void heed_device_update(heed_model *model, void *state, int64_t elementSize,
                        int32_t stateRank, const int64_t *stateSizes,
                        const int64_t *stateStrides, const void *values,
                        int32_t rank, const int64_t *sizes,
                        const int64_t *strides, const int64_t *axes,
                        const int64_t *positions, int32_t where,
                        const char *twice);
void heed_device_buffer(heed_model *model, struct halide_buffer_t *buffer,
                        void *dimensions, void *data, int32_t typeCode,
                        int32_t bits, int32_t rank, const int64_t *sizes,
                        const int64_t *strides, int64_t largest);
int32_t heed_device_kernel(heed_model *model, int32_t kernel,
                           int32_t (*function)(void **args), void **args,
                           int32_t numArgs, int32_t numOutputs, double flops,
                           double bytes);
/** The same of a kernel that the processor runs beside those of the device. */
int32_t heed_device_host_kernel(heed_model *model, int32_t kernel,
                                int32_t (*function)(void **args), void **args,
                                int32_t numArgs, int32_t numOutputs,
                                double flops, double bytes);

/** Begins and ends `run` of the entry of that number; -1: `shapes` (which ends
 * by itself) or `init`. HEED_UNWINDS. */
void heed_device_enter(heed_model *model, int32_t entry);
void heed_device_leave(heed_model *model, int32_t entry);

/** Before the host reads elements of a tensor, or writes some of them. Sizes
 * and strides in elements. HEED_UNWINDS. */
void heed_device_reads(heed_model *model, const void *data, int64_t elementSize,
                       int32_t rank, const int64_t *sizes,
                       const int64_t *strides);
void heed_device_writes(heed_model *model, void *data, int64_t elementSize,
                        int32_t rank, const int64_t *sizes,
                        const int64_t *strides);

/** Copies a tensor, on the device if it is there. HEED_UNWINDS. */
void heed_device_copy(heed_model *model, void *to, const void *from,
                      int64_t elementSize, int32_t rank, const int64_t *sizes,
                      const int64_t *toStrides, const int64_t *fromStrides);

#ifdef __cplusplus
}
#endif
#endif
