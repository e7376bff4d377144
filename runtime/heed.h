/* The C interface of compiled models: open, ask for the signature, run, close.
 *
 * A library made by `heedc --emit=lib` or `--emit=shared` defines one constant
 * `<prefix>_model`; its header declares it. Everything else is here. All
 * strings are UTF-8 and NUL-terminated. Nothing here aborts, prints or calls
 * exit. */
#ifndef HEED_HEED_H
#define HEED_HEED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEED_VERSION_MAJOR 0
#define HEED_VERSION_MINOR 1
#define HEED_VERSION_PATCH 0

/** Changes whenever a struct or a function of this file or of host.h changes
 * its layout, its arguments or its meaning. */
#define HEED_ABI_VERSION 2

/** The largest number of axes of an input or output, and the largest extent of
 * one. Kernels count in 32 bits and round up to whole tiles; elements are
 * counted in 64 bits. */
#define HEED_MAX_RANK 16
#define HEED_MAX_EXTENT 2147418112

typedef enum heed_status {
  HEED_OK = 0,
  HEED_ERROR_ARGUMENT =
      1, /**< a null pointer, an unknown entry, a wrong number of buffers */
  HEED_ERROR_SHAPE = 2, /**< a rank or extent that does not fit */
  HEED_ERROR_TYPE = 3,  /**< an element type that does not fit */
  HEED_ERROR_RANGE =
      4, /**< an integer in the data points outside what it indexes */
  HEED_ERROR_MEMORY =
      5, /**< out of memory, or a size beyond what can be addressed */
  HEED_ERROR_FILE = 6, /**< a file cannot be read or written, or is malformed */
  HEED_ERROR_WEIGHTS =
      7, /**< a parameter is missing in the weights or does not fit */
  HEED_ERROR_CPU =
      8, /**< this processor lacks something the code was compiled for */
  HEED_ERROR_INTERNAL = 9, /**< a kernel failed, or the description is broken: a
                             bug of the compiler */
  HEED_ERROR_BUSY = 10 /**< another thread runs this handle; nothing was done,
                          heed_last_error() belongs to the other call */
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

/** A dense row-major array that somebody else owns. A scalar has rank 0. */
typedef struct heed_buffer {
  void *data;
  int32_t type; /**< a heed_type */
  int32_t rank;
  int64_t shape[HEED_MAX_RANK];
} heed_buffer;

/** What a model says of one input or output. Lives as long as the program. */
typedef struct heed_tensor_info {
  const char *name;
  int32_t type; /**< a heed_type */
  int32_t rank;
  const char *const
      *extents; /**< per axis, in the model's own words: "B", "2*R+1", "384" */
  const int64_t *sizes; /**< per axis; -1 where only a call knows it */
  int32_t isScalar; /**< a run-time scalar: rank 0, and `data` may be null if it
                       has a default */
  int32_t hasDefault;
  double defaultReal;     /**< for floating-point scalars */
  int64_t defaultInteger; /**< for integer and bool scalars */
} heed_tensor_info;

/** What a model says of one parameter. Names hold "{0}", "{1}" where a loop
 * variable stands. */
typedef struct heed_param_info {
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
} heed_param_info;

/** The signature of one entry point. */
typedef struct heed_signature {
  const char *entry;
  int32_t numInputs;
  int32_t numOutputs;
  const heed_tensor_info *inputs;
  const heed_tensor_info *outputs;
} heed_signature;

/** A compiled model, as `<prefix>_model` holds it. Its parts are in host.h. */
typedef struct heed_model_desc heed_model_desc;

/** An open model. One handle serves one thread at a time; different handles are
 * independent. */
typedef struct heed_model heed_model;

/** How to open a model. All zero is the default. */
typedef struct heed_options {
  const char *const
      *weights; /**< .safetensors files, or a .safetensors.index.json; borrowed
                   for the call */
  size_t numWeights;
  int32_t threads; /**< 0: as many as the process may use */
  int32_t convert; /**< nonzero: f64 weights are rounded; otherwise they are an
                      error */
  int32_t
      profile; /**< nonzero: every kernel call is timed, see heed_profile() */
  const char *target; /**< which of the targets that the model was compiled for;
                         null: what the environment's HEED_TARGET names, or else
                         the best that this processor can run */
} heed_options;

/** Version of this library, "0.1.0". */
const char *heed_version(void);

/** A word for a status ("shape") and for a type ("f32"). Never null. */
const char *heed_status_name(heed_status status);
const char *heed_type_name(int32_t type);

/** Bytes of one element, 0 for a number that is no type. */
size_t heed_type_size(int32_t type);

/** Opens a compiled model: checks the processor, maps and converts the weights,
 * prepares what depends on them alone. options may be null. The weights are
 * mapped, not copied, wherever their type is the one the code reads; the files
 * must not change while the handle lives. On failure *model is either null (no
 * memory at all) or a handle that is good for heed_last_error() and
 * heed_close(). Returns HEED_OK, HEED_ERROR_ARGUMENT, _CPU, _FILE, _WEIGHTS,
 * _TYPE, _SHAPE, _MEMORY. */
heed_status heed_open(const heed_model_desc *desc, const heed_options *options,
                      heed_model **model);

/** Opens a second handle on the same weights, with threads and memory of its
 * own (threads 0: as many as the first). Weights live until the last handle is
 * closed; the handles may be used from different threads, and closed in any
 * order. Failure as in heed_open(). */
heed_status heed_open_shared(heed_model *model, int32_t threads,
                             heed_model **other);

/** Closes a handle. Null is allowed. */
void heed_close(heed_model *model);

/** The number of entry points, and the signature of one. Pointers live as long
 * as the program. Null if there is no such. */
size_t heed_num_entries(const heed_model_desc *desc);
const heed_signature *heed_entry_signature(const heed_model_desc *desc,
                                           size_t entry);

/** The signature of the entry of that name; null name: the first. Null if there
 * is no such entry. */
const heed_signature *heed_find_signature(const heed_model_desc *desc,
                                          const char *entry);

/** The model's name and its parameters. */
const char *heed_model_name(const heed_model_desc *desc);
size_t heed_num_params(const heed_model_desc *desc);
const heed_param_info *heed_param(const heed_model_desc *desc, size_t param);

/** Fills type, rank and shape of each output from the inputs' shapes (and the
 * values of scalars); reads no tensor data. entry null: the first.
 * inputs[k].data may be null for tensors. outputs[k].data is left alone.
 *  Returns HEED_OK, HEED_ERROR_ARGUMENT, _SHAPE, _TYPE, _MEMORY, _BUSY. */
heed_status heed_output_shapes(heed_model *model, const char *entry,
                               const heed_buffer *inputs, size_t numInputs,
                               heed_buffer *outputs, size_t numOutputs);

/** Runs one entry of an open model (null: the first).
 *  inputs[k], outputs[k]: dense row-major, types and ranks as in the signature,
 * outputs of the shapes that heed_output_shapes() gives. Borrowed for the call;
 * no output may overlap an input or another output. Pointers must be aligned to
 * their element type (64 bytes is fastest). Returns HEED_OK,
 * HEED_ERROR_ARGUMENT, _SHAPE, _TYPE, _RANGE, _MEMORY, _INTERNAL, _BUSY; then
 * outputs are unspecified, see heed_last_error(). */
heed_status heed_run(heed_model *model, const char *entry,
                     const heed_buffer *inputs, size_t numInputs,
                     heed_buffer *outputs, size_t numOutputs);

/** What the last failed call on this handle said: lower case, where, expected,
 * found. Empty if none failed. Valid until the next call on the handle. */
const char *heed_last_error(const heed_model *model);

/** The targets that a model was compiled for, best first; null beyond the last.
 */
const char *heed_target_name(const heed_model_desc *desc, size_t target);

/** Threads that this handle computes with. */
int32_t heed_num_threads(const heed_model *model);

/** The target whose code this handle runs, "x86-64-v3"; empty if the model did
 * not open. */
const char *heed_target(const heed_model *model);

/** What one kernel has cost since the handle was opened or heed_profile_reset()
 * was called. */
typedef struct heed_kernel_profile {
  const char *kernel;
  int64_t calls;
  double seconds;
  double flops; /**< floating-point operations, as the compiler counts them; 0
                   if it does not know */
  double
      bytes; /**< bytes read and written at least once; 0 if it does not know */
} heed_kernel_profile;

/** Writes up to `capacity` profiles and returns how many kernels there are.
 * Empty unless options.profile was set. */
size_t heed_profile(const heed_model *model, heed_kernel_profile *profiles,
                    size_t capacity);
void heed_profile_reset(heed_model *model);

/** Bytes that a handle holds. */
typedef struct heed_memory_use {
  int64_t weights; /**< tensors that are read where the weights files are
                      mapped */
  int64_t copies;  /**< of weights: converted, packed or computed from them */
  int64_t buffers; /**< the largest set alive in a call, kept for the next */
} heed_memory_use;

/** All 0 if the model did not open. */
heed_memory_use heed_memory(const heed_model *model);

/* State that lives across calls (caches of decoding) will have handles of its
 * own: heed_state_open(model), passed to a heed_run_with_state(). Signatures of
 * stateless entries do not change then. */

#ifdef __cplusplus
}
#endif
#endif
