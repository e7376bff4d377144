/* The C interface of compiled models: open, ask for the signature, run, close.
 *
 * A library made by `heedc --emit=lib` or `--emit=shared` defines one constant
 * `<prefix>_model`; its header declares it. A shared library also exports
 * `heed_models`, for dlsym(). Everything else is here. All strings are UTF-8
 * and NUL-terminated. Nothing here aborts, prints or calls exit.
 *
 * Structs begin with their size: who fills one sets `size` to its sizeof and
 * everything that it does not mean to 0. Fields are added at the end, so a
 * caller and a library of one HEED_ABI_VERSION may know different ones. Each
 * library carries a runtime of its own; these functions find it through the
 * description or the handle, so libraries of different builds live in one
 * process. */
#ifndef HEED_HEED_H
#define HEED_HEED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HEED_API __attribute__((visibility("default")))
#else
#define HEED_API
#endif

#define HEED_VERSION_MAJOR 0
#define HEED_VERSION_MINOR 1
#define HEED_VERSION_PATCH 0

/** Changes whenever a struct or a function of this file or of host.h changes
 * its layout, its arguments or its meaning; not when fields are added at the
 * end of a struct that begins with its size. heed_open() compares the caller's
 * with the library's. */
#define HEED_ABI_VERSION 3

/** The largest number of axes of an input or output, and the largest extent of
 * one. Kernels count in 32 bits and round up to whole tiles; elements are
 * counted in 64 bits. */
#define HEED_MAX_RANK 16
#define HEED_MAX_EXTENT 2147418112

typedef enum heed_status {
  HEED_OK = 0,
  HEED_ERROR_ARGUMENT = 1, /**< null, an unknown entry, a wrong count */
  HEED_ERROR_SHAPE = 2,    /**< a rank or extent that does not fit */
  HEED_ERROR_TYPE = 3,     /**< an element type that does not fit */
  HEED_ERROR_RANGE = 4,    /**< an integer in the data points outside */
  HEED_ERROR_MEMORY = 5,   /**< out of memory, or of what can be addressed */
  HEED_ERROR_FILE = 6, /**< a file cannot be read or written, or is malformed */
  HEED_ERROR_WEIGHTS = 7, /**< a parameter is missing or does not fit */
  HEED_ERROR_CPU =
      8, /**< this processor lacks something the code was compiled for */
  HEED_ERROR_INTERNAL = 9, /**< a kernel failed, or the description is broken: a
                             bug of the compiler */
  HEED_ERROR_BUSY = 10,    /**< another thread runs this handle; nothing was
                              done, heed_last_error() belongs to the other call */
  HEED_ERROR_VERSION = 11, /**< the caller's heed.h, or a struct of it, is older
                              or newer than the library can serve */
  HEED_ERROR_CANCELLED = 12, /**< heed_call.cancel was set */
  HEED_ERROR_DEADLINE = 13,  /**< heed_call.deadline has passed */
  HEED_ERROR_FORK = 14,  /**< the handle was opened by the process that this one
                            is a fork of; it can only be closed */
  HEED_ERROR_DEVICE = 15 /**< a buffer or stream of a device that the code was
                            not compiled for; or the device that it was
                            compiled for is not there, or failed */
} heed_status;

/** Element types. A bool is one byte, 0 or 1. */
typedef enum heed_type {
  HEED_F32 = 1,
  HEED_F16 = 2,
  HEED_BF16 = 3,
  HEED_I8 = 4,
  HEED_I16 = 5,
  HEED_I32 = 6,
  HEED_I64 = 7,
  HEED_BOOL = 8,
  HEED_U8 = 9,
  HEED_F64 =
      10 /**< in files only: never the type of an input, output or parameter */
} heed_type;

/** Kinds of devices, with DLPack's numbers. Memory of CUDA is taken by handles
 * with the target cuda alone, of the number of their device (as its driver
 * counts, also for managed memory); pinned memory, CUDA_HOST, is the CPU's.
 * With the target opencl and options.context addresses of that context's shared
 * virtual memory are OPENCL, number 0. */
typedef enum heed_device {
  HEED_DEVICE_CPU = 1,
  HEED_DEVICE_CUDA = 2,
  HEED_DEVICE_CUDA_HOST = 3,
  HEED_DEVICE_OPENCL = 4,
  HEED_DEVICE_CUDA_MANAGED = 13
} heed_device;

/** An array that somebody else owns, with DLPack's conventions. A scalar has
 * rank 0. In an array of buffers all have the same size. */
typedef struct heed_buffer {
  size_t size; /**< sizeof(heed_buffer) */
  void *data;
  int32_t type; /**< a heed_type */
  int32_t rank;
  int32_t deviceType; /**< a heed_device; 0 means the CPU */
  int32_t deviceNumber;
  uint64_t byteOffset;    /**< of the first element from `data` */
  const int64_t *strides; /**< per axis, in elements, perhaps 0 or negative;
                             null: dense, row-major */
  int64_t shape[HEED_MAX_RANK];
} heed_buffer;

#ifndef __cplusplus
/** A dense buffer on the CPU: HEED_BUFFER(q, HEED_F32, 4, B, H, N, E). The
 * shape of a scalar is 0. */
#define HEED_BUFFER(array, elementType, axes, ...)                             \
  ((heed_buffer){.size = sizeof(heed_buffer),                                  \
                 .data = (array),                                              \
                 .type = (elementType),                                        \
                 .rank = (axes),                                               \
                 .shape = {__VA_ARGS__}})
#endif

/** What a model says of one input or output. Lives as long as the library. */
typedef struct heed_tensor_info {
  size_t size;
  const char *name;
  int32_t type; /**< a heed_type */
  int32_t rank;
  const char *const
      *extents; /**< per axis, in the model's own words: "B", "2*R+1", "384" */
  const int64_t *sizes; /**< per axis; -1 where only a call knows it */
  int32_t isScalar; /**< a run-time scalar: rank 0, and `data` may be null if it
                       has a default */
  int32_t hasDefault;     /**< of a scalar; of a state: it starts with that, not
                             with zeros */
  double defaultReal;     /**< for floating-point scalars */
  int64_t defaultInteger; /**< for integer and bool scalars */
} heed_tensor_info;

/** What a model says of one parameter. Names hold "{0}", "{1}" where a loop
 * variable stands. */
typedef struct heed_param_info {
  size_t size;
  const char *const *names; /**< alternatives, tried in order */
  int32_t numNames;
  int32_t numIndices; /**< how many loop variables the names hold */
  const int64_t
      *indexBounds; /**< numIndices pairs: first value, one past the last */
  int32_t type; /**< the heed_type that the compiled code reads; the file may
                   hold another */
  int32_t rank;
  const char *const *extents; /**< per axis, as text */
  const int64_t *sizes;       /**< per axis; -1: taken from the file */
  int32_t isForOpening; /**< nonzero: no call reads it, only what is computed
                           when the model is opened */
} heed_param_info;

/** The signature of one entry point. */
typedef struct heed_signature {
  size_t size;
  const char *entry;
  int32_t numInputs;
  int32_t numOutputs;
  const heed_tensor_info *const *inputs;
  const heed_tensor_info *const *outputs;
} heed_signature;

/** A compiled model, as `<prefix>_model` holds it. Its parts are in host.h. */
typedef struct heed_model_desc heed_model_desc;

/** An open model. One handle serves one thread at a time; different handles are
 * independent. */
typedef struct heed_model heed_model;

/** A team of threads that handles share, see heed_threads_open(). */
typedef struct heed_threads heed_threads;

/** A .safetensors file in memory: borrowed until the last handle on it is
 * closed, or only for the call with copyWeights. */
typedef struct heed_weights_data {
  size_t size;
  const void *data;
  size_t numBytes;
  const char *name; /**< for messages; may be null */
} heed_weights_data;

/** Looks a parameter up by its name. Returns 0 if there is no such; otherwise
 * it has filled *buffer, whose data is borrowed as those of heed_weights_data.
 * The shape must fit, the type may be another (it is converted), strides are
 * allowed. Called from heed_open() alone. */
typedef int32_t (*heed_find_weight)(void *user, const char *name,
                                    heed_buffer *buffer);

/** Memory for tensors: intermediate results, copies and packed forms of
 * weights. Handles themselves (some kilobytes) come from malloc. Both functions
 * are called from any thread. */
typedef struct heed_allocator {
  size_t size;
  void *(*allocate)(void *user, size_t alignment,
                    size_t bytes); /**< null if there is none */
  void (*release)(void *user, void *memory, size_t bytes);
  void *user;
} heed_allocator;

/** Calls task(argument, k) once for every k from 0 to count-1, on any threads,
 * and returns when all calls have returned. */
typedef void (*heed_parallel_for)(void *user, int32_t count,
                                  void (*task)(void *argument, int32_t k),
                                  void *argument);

typedef enum heed_log_level {
  HEED_LOG_ERROR = 1,
  HEED_LOG_WARNING = 2,
  HEED_LOG_INFO = 3
} heed_log_level;

/** One line, without its end. `text` lives for the call. Called from any
 * thread, also from several at once. */
typedef void (*heed_log)(void *user, int32_t level, const char *text);

/** What worker threads do between calls: sleep (a call then waits some 20 to
 * 100 microseconds for them), or watch for a millisecond for the next call,
 * each on a processor of its own. Between the kernels of one call they always
 * watch. */
typedef enum heed_wait { HEED_WAIT_SLEEP = 0, HEED_WAIT_WATCH = 1 } heed_wait;

/** How to open a model. All zero but `size` is the default. */
typedef struct heed_options {
  size_t size; /**< sizeof(heed_options) */
  const char *const
      *weights; /**< .safetensors files, or a .safetensors.index.json; borrowed
                   for the call */
  size_t numWeights;
  const heed_weights_data *weightsData; /**< and files in memory */
  size_t numWeightsData;
  heed_find_weight findWeight; /**< asked first; null: there is none */
  void *findWeightUser;
  int32_t copyWeights; /**< nonzero: weights are read into memory, not mapped or
                          borrowed: nothing that happens to the file or memory
                          afterwards matters */
  int32_t convert; /**< nonzero: f64 weights are rounded; otherwise they are an
                      error */
  int32_t threads; /**< 0: as many as the process may use */
  int32_t wait;    /**< a heed_wait */
  int32_t
      profile; /**< nonzero: every kernel call is timed, see heed_profile() */
  heed_threads *pool; /**< threads that other handles use too, which must live
                         longer than the handle; null: threads of its own */
  heed_parallel_for parallelFor; /**< the host's own threads; null: there are
                                    none. `threads` says how many they are */
  void *parallelForUser;
  const heed_allocator *allocator; /**< copied; null: malloc's memory */
  int64_t memoryLimit; /**< bytes that the allocator gives at most to all
                          handles on these weights, beyond it is
                          HEED_ERROR_MEMORY; 0: no limit */
  heed_log log;        /**< null: nobody wants to know */
  void *logUser;
  const char *target; /**< which of the targets that the model was compiled for;
                         null: what the environment's HEED_TARGET names, or else
                         the best that this processor can run */
  const char *packed; /**< a file of heed_save_packed(), instead of all other
                         weights; null: there is none */
  int32_t device;     /**< with a target that is a device: which of those that
                         will do, in the order of its library, from 0; 0: what
                         the environment's HEED_DEVICE says, or else the first */
  void *context;      /**< with the target cuda: a CUcontext of the caller's, on
                         whose device all is done, and which must outlive the handles
                         on these weights; null: the primary context of `device`.
                         With opencl: a cl_context, of whose devices `device` is one;
                         null: one of our own. Where a model has both, `target` says
                         which of them it is. With other targets it is not read */
} heed_options;

/** What goes with one run. All zero but `size` is the default. */
typedef struct heed_call {
  size_t size;              /**< sizeof(heed_call) */
  struct heed_state *state; /**< of a model that has states; else null */
  void *stream; /**< with the target cuda: a CUstream of the handle's context,
                   on which all of the run is done, after what was put there
                   before, and which the run waits for at its end; 1: the
                   default stream, 2: the thread's. With opencl: the same of an
                   in-order cl_command_queue of options.context. Null: one of
                   the model's own; what others have written to the device is
                   there already then. With another target it is null */
  const int32_t
      *cancel;      /**< set it to nonzero, atomically, from any thread, and
                       the run ends with HEED_ERROR_CANCELLED before its
                       next kernel or task; null: it cannot be cancelled */
  int64_t deadline; /**< nanoseconds of CLOCK_MONOTONIC after which no kernel or
                       task begins: HEED_ERROR_DEADLINE; 0: none */
  int32_t keepFloatMode; /**< nonzero: the caller's rounding and treatment of
                            denormals hold on the caller's thread; 0: rounding
                            to nearest, with denormals */
} heed_call;

/** Version of this library, "0.1.0". */
HEED_API const char *heed_version(void);

/** A word for a status ("shape") and for a type ("f32"). Never null. */
HEED_API const char *heed_status_name(heed_status status);
HEED_API const char *heed_type_name(int32_t type);

/** Bytes of one element, 0 for a number that is no type. */
HEED_API size_t heed_type_size(int32_t type);

/** heed_open() for callers that cannot include this file: callersVersion is the
 * HEED_ABI_VERSION that they were written for. */
HEED_API heed_status heed_open_version(int32_t callersVersion,
                                       const heed_model_desc *desc,
                                       const heed_options *options,
                                       heed_model **model);

/** Opens a compiled model: checks the caller's version and the processor, maps
 * and converts the weights, prepares what depends on them alone. options may be
 * null. The weights are mapped or borrowed, not copied, wherever their type is
 * the one the code reads, unless options.copyWeights says otherwise; the files
 * must not change while the handle lives. On failure *model is either null (no
 * memory at all, or a model older than version 3) or a handle that is good for
 * heed_last_error() and heed_close(). Returns HEED_OK, HEED_ERROR_ARGUMENT,
 * _VERSION, _CPU, _FILE, _WEIGHTS, _TYPE, _SHAPE, _DEVICE, _MEMORY, _FORK. */
static inline heed_status heed_open(const heed_model_desc *desc,
                                    const heed_options *options,
                                    heed_model **model) {
  return heed_open_version(HEED_ABI_VERSION, desc, options, model);
}

/** Opens a second handle on the same weights, with memory of its own and, where
 * the first has them, threads of its own (threads 0: as many as the first).
 * Weights live until the last handle is closed; the handles may be used from
 * different threads, and closed in any order. Failure as in heed_open(). */
HEED_API heed_status heed_open_shared(heed_model *model, int32_t threads,
                                      heed_model **other);

/** Writes the packed weights of a handle: what opening has computed and the
 * parameters that calls read, all that options.packed wants. The file fits this
 * code, for this target, alone; it appears whole or not at all. Returns
 * HEED_OK, HEED_ERROR_ARGUMENT, _FILE, _MEMORY, _BUSY, _FORK, _VERSION. */
HEED_API heed_status heed_save_packed(heed_model *model, const char *path);

/** Closes a handle, also one of the process that this one is a fork of. Null is
 * allowed. */
HEED_API void heed_close(heed_model *model);

/** Starts a team of threads (0: as many as the process may use, the caller of a
 * run is one of them) for options.pool. desc is any of the models that will use
 * it; those of other libraries may, too. While a loop of one handle has the
 * team, loops of others run on their callers' threads alone. Null if there is
 * no memory or an argument is wrong. */
HEED_API heed_threads *heed_threads_open(const heed_model_desc *desc,
                                         int32_t threads, int32_t wait);

/** Ends the threads; every handle that used them is closed. Null is allowed. */
HEED_API void heed_threads_close(heed_threads *threads);

/** The number of entry points, and the signature of one. Pointers live as long
 * as the library. Null if there is no such. */
HEED_API size_t heed_num_entries(const heed_model_desc *desc);
HEED_API const heed_signature *heed_entry_signature(const heed_model_desc *desc,
                                                    size_t entry);

/** The signature of the entry of that name; null name: the first. Null if there
 * is no such entry. */
HEED_API const heed_signature *heed_find_signature(const heed_model_desc *desc,
                                                   const char *entry);

/** Which input or output has that name; -1 if none. */
HEED_API int32_t heed_find_input(const heed_signature *signature,
                                 const char *name);
HEED_API int32_t heed_find_output(const heed_signature *signature,
                                  const char *name);

/** The model's name and its parameters. */
HEED_API const char *heed_model_name(const heed_model_desc *desc);
HEED_API size_t heed_num_params(const heed_model_desc *desc);
HEED_API const heed_param_info *heed_param(const heed_model_desc *desc,
                                           size_t param);

/** Fills type, rank, shape and device of each output from the inputs' shapes
 * (and the values of scalars); reads no tensor data. entry null: the first.
 * inputs[k].data may be null for tensors. outputs[k].size is set, its data,
 * offset and strides are left alone.
 * Returns HEED_OK, HEED_ERROR_ARGUMENT, _VERSION, _SHAPE, _TYPE, _DEVICE,
 * _MEMORY, _BUSY, _FORK. */
HEED_API heed_status heed_output_shapes(heed_model *model, const char *entry,
                                        const heed_buffer *inputs,
                                        size_t numInputs, heed_buffer *outputs,
                                        size_t numOutputs);

/** The same for a model whose outputs may have extents of its states':
 * call->state gives them, nothing else of the call is read. */
HEED_API heed_status heed_output_shapes_in(heed_model *model, const char *entry,
                                           const heed_buffer *inputs,
                                           size_t numInputs,
                                           heed_buffer *outputs,
                                           size_t numOutputs,
                                           const heed_call *call);

/** Runs one entry of an open model (null: the first).
 *  inputs[k], outputs[k]: types and ranks as in the signature, outputs of the
 * shapes that heed_output_shapes() gives. Borrowed for the call; no output may
 * overlap an input, another output or itself. Kernels read and write dense
 * row-major memory: a buffer with other strides is copied, an input before the
 * run, an output after it. Pointers must be aligned to their element type (64
 * bytes is fastest). Rounding is to nearest with denormals, whatever the
 * caller's mode, which is as before afterwards. call may be null. Returns
 * HEED_OK, HEED_ERROR_ARGUMENT, _VERSION, _SHAPE, _TYPE, _DEVICE, _RANGE,
 * _MEMORY, _INTERNAL, _BUSY, _CANCELLED, _DEADLINE, _FORK; then outputs are
 * unspecified, see heed_last_error(). */
HEED_API heed_status heed_run(heed_model *model, const char *entry,
                              const heed_buffer *inputs, size_t numInputs,
                              heed_buffer *outputs, size_t numOutputs,
                              const heed_call *call);

/** Writes to *bytes what the results between kernels and dense copies of
 * strided inputs will take in a run with these inputs, at most at any one time;
 * before the first run, and without taking it: the kernels are left out. What a
 * kernel takes for itself while it runs (heed_memory() tells it afterwards,
 * options.memoryLimit bounds it) comes on top. inputs as in heed_run(): values
 * of integers may be read. Returns as heed_run(). */
HEED_API heed_status heed_plan_memory(heed_model *model, const char *entry,
                                      const heed_buffer *inputs,
                                      size_t numInputs, int64_t *bytes);

/** The same for a model with states: call->state is one, of which nothing
 * changes; nothing else of the call is read. */
HEED_API heed_status heed_plan_memory_in(heed_model *model, const char *entry,
                                         const heed_buffer *inputs,
                                         size_t numInputs,
                                         const heed_call *call, int64_t *bytes);

/** What the last failed call on this handle said: lower case, where, expected,
 * found. Empty if none failed. Valid until the next call on the handle. */
HEED_API const char *heed_last_error(const heed_model *model);

/** The targets that a model was compiled for, best first; null beyond the last.
 */
HEED_API const char *heed_target_name(const heed_model_desc *desc,
                                      size_t target);

/** Threads that this handle computes with. */
HEED_API int32_t heed_num_threads(const heed_model *model);

/** The target whose code this handle runs, "x86-64-v3"; empty if the model did
 * not open. */
HEED_API const char *heed_target(const heed_model *model);

/** What one kernel has cost since the handle was opened or heed_profile_reset()
 * was called. */
typedef struct heed_kernel_profile {
  size_t size; /**< sizeof(heed_kernel_profile), set in the first of an array */
  const char *kernel;
  int64_t calls;
  double seconds;
  double flops; /**< floating-point operations, as the compiler counts them; 0
                   if it does not know */
  double
      bytes; /**< bytes read and written at least once; 0 if it does not know */
  int64_t pairs; /**< pairs of a query and a key whose weight was computed, in a
                    model that was compiled with --count-pairs; else 0 */
} heed_kernel_profile;

/** Writes up to `capacity` profiles and returns how many kernels there are.
 * Empty unless options.profile was set. */
HEED_API size_t heed_profile(const heed_model *model,
                             heed_kernel_profile *profiles, size_t capacity);
HEED_API void heed_profile_reset(heed_model *model);

/** Bytes that a handle holds. */
typedef struct heed_memory_use {
  size_t size;     /**< sizeof(heed_memory_use) */
  int64_t weights; /**< tensors, packed ones too, that are read where files
                      are mapped or the caller has them */
  int64_t copies;  /**< of weights: copied, converted, packed or computed */
  int64_t buffers; /**< the largest set alive in a call, kept for the next */
} heed_memory_use;

/** Fills *use. HEED_ERROR_ARGUMENT if the model did not open or a pointer is
 * null, HEED_ERROR_VERSION if use->size is none, HEED_ERROR_FORK. */
HEED_API heed_status heed_memory(const heed_model *model, heed_memory_use *use);

#ifdef __cplusplus
}
#endif

#include "states.h"
#endif
