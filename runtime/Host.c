/* What compiled host code calls, but for parameters: memory, checks, kernels.
 */
#include "runtime/Model.h"
#include "runtime/io/Convert.h"

#include "HalideRuntime.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The layouts that host.h promises to emitted code. */
_Static_assert(sizeof(heed_argument) == 144 &&
                   offsetof(heed_argument, type) == 8 &&
                   offsetof(heed_argument, rank) == 12 &&
                   offsetof(heed_argument, shape) == 16,
               "heed_argument");
_Static_assert(sizeof(heed_tensor_info) == 64 &&
                   offsetof(heed_tensor_info, extents) == 24 &&
                   offsetof(heed_tensor_info, isScalar) == 40 &&
                   offsetof(heed_tensor_info, defaultReal) == 48,
               "heed_tensor_info");
_Static_assert(sizeof(heed_param_info) == 64 &&
                   offsetof(heed_param_info, indexBounds) == 24 &&
                   offsetof(heed_param_info, type) == 32 &&
                   offsetof(heed_param_info, sizes) == 48 &&
                   offsetof(heed_param_info, isForOpening) == 56,
               "heed_param_info");
_Static_assert(sizeof(heed_entry_desc) == 64 &&
                   offsetof(heed_entry_desc, shapes) == 40 &&
                   offsetof(heed_entry_desc, replaced) == 56,
               "heed_entry_desc");
_Static_assert(sizeof(heed_model_desc) == 144 &&
                   offsetof(heed_model_desc, runtime) == 8 &&
                   offsetof(heed_model_desc, cpuFeatures) == 32 &&
                   offsetof(heed_model_desc, numParams) == 56 &&
                   offsetof(heed_model_desc, kernels) == 64 &&
                   offsetof(heed_model_desc, init) == 80 &&
                   offsetof(heed_model_desc, states) == 88 &&
                   offsetof(heed_model_desc, variants) == 96 &&
                   offsetof(heed_model_desc, trims) == 112 &&
                   offsetof(heed_model_desc, key) == 120 &&
                   offsetof(heed_model_desc, gpu) == 128 &&
                   offsetof(heed_model_desc, deviceF64) == 136,
               "heed_model_desc");
_Static_assert(sizeof(struct halide_buffer_t) == 56 &&
                   sizeof(struct halide_dimension_t) == 16,
               "the sizes that emitted code reserves");

/* ---- memory ---- */

void *heed_host_alloc(heed_model *model, int64_t bytes) {
  void *memory = bytes < 0     ? NULL
                 : model->plan ? heed_plan_take(model->plan, bytes, true)
                               : heed_pool_take(&model->pool, (size_t)bytes);
  if (!memory && bytes < 0)
    heed_unwind(model, HEED_ERROR_MEMORY,
                "an intermediate result is too large to be addressed");
  if (!memory)
    heed_unwind(model, HEED_ERROR_MEMORY,
                "no memory for an intermediate result of %" PRId64 " bytes",
                bytes);
  return memory;
}

void heed_host_free(heed_model *model, void *memory) {
  if (model->plan)
    heed_plan_give(model->plan, memory);
  else
    heed_pool_give(memory);
}

int64_t heed_host_bytes(int32_t rank, const int64_t *sizes,
                        int64_t elementSize) {
  int64_t bytes;
  return heed_io_byte_count(rank, sizes, elementSize, &bytes) ? bytes : -1;
}

int64_t heed_host_multiply(heed_model *model, int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    heed_unwind(model, HEED_ERROR_MEMORY,
                "the product of %" PRId64 " and %" PRId64
                " is too large for an extent",
                a, b);
  return product;
}

int64_t heed_host_add(heed_model *model, int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum))
    heed_unwind(model, HEED_ERROR_MEMORY,
                "the sum of %" PRId64 " and %" PRId64
                " is too large for an extent",
                a, b);
  return sum;
}

int64_t heed_host_subtract(heed_model *model, int64_t a, int64_t b) {
  int64_t difference;
  if (__builtin_sub_overflow(a, b, &difference))
    heed_unwind(model, HEED_ERROR_MEMORY,
                "the difference of %" PRId64 " and %" PRId64
                " is too large for an extent",
                a, b);
  return difference;
}

int64_t heed_host_size(heed_model *model, int64_t size, int64_t largest) {
  if (size < -largest || size > largest)
    heed_unwind(model, HEED_ERROR_SHAPE,
                "a size of %" PRId64
                " is beyond what a kernel can index (%" PRId64 ")",
                size, largest);
  return size;
}

int64_t heed_host_divisor(heed_model *model, int64_t divisor) {
  if (divisor == 0)
    heed_unwind(model, HEED_ERROR_SHAPE, "an extent is divided by one of 0");
  return divisor;
}

void *heed_host_keep(heed_model *model, int32_t slot, int64_t bytes) {
  heed_shared *shared = model->shared;
  if (!model->inInit || slot < 0 || slot >= shared->desc->numKept ||
      shared->kept[slot].data)
    heed_unwind(model, HEED_ERROR_INTERNAL, "slot %d cannot be kept", slot);
  void *memory =
      bytes < 0 ? NULL : heed_arena_take(&shared->keptMemory, (size_t)bytes);
  if (!memory)
    heed_unwind(model, HEED_ERROR_MEMORY,
                "no memory for %" PRId64 " bytes that the model prepares",
                bytes);
  shared->keptBytes += bytes;
  shared->kept[slot] = (heed_kept){memory, bytes};
  return memory;
}

const void *heed_host_kept(heed_model *model, int32_t slot, int64_t bytes) {
  bool known = slot >= 0 && slot < model->desc->numKept;
  const heed_kept *kept = known ? &model->shared->kept[slot] : NULL;
  if (!kept || !kept->data || kept->bytes < bytes)
    heed_unwind(model, HEED_ERROR_WEIGHTS,
                "slot %d of the packed weights: expected %" PRId64
                " bytes, found %" PRId64,
                slot, bytes, kept && kept->data ? kept->bytes : 0);
  return kept->data;
}

/* ---- checks ---- */

static HEED_NORETURN void failWith(heed_model *model, heed_status status,
                                   const char *format, int32_t numValues,
                                   const int64_t *values) {
  char text[sizeof model->message];
  size_t length = 0;
  for (const char *p = format; *p && length + 1 < sizeof text;) {
    char *stop = NULL;
    long k =
        *p == '{' && p[1] >= '0' && p[1] <= '9' ? strtol(p + 1, &stop, 10) : -1;
    if (k >= 0 && k < numValues && *stop == '}') {
      length += (size_t)snprintf(text + length, sizeof text - length,
                                 "%" PRId64, values[k]);
      p = stop + 1;
    } else {
      text[length++] = *p++;
    }
  }
  text[length < sizeof text ? length : sizeof text - 1] = 0;
  heed_unwind(model, status, "%s", text);
}

void heed_host_require_failed(heed_model *model, const char *format,
                              int32_t numValues, const int64_t *values) {
  failWith(model, HEED_ERROR_SHAPE, format, numValues, values);
}

void heed_host_range_failed(heed_model *model, const char *format,
                            int32_t numValues, const int64_t *values) {
  failWith(model, HEED_ERROR_RANGE, format, numValues, values);
}

static HEED_NORETURN void failRange(heed_model *model, const char *tensor,
                                    const char *what, const int64_t *index,
                                    int32_t rank, int64_t value, int64_t low,
                                    int64_t high) {
  char position[256] = "";
  if (rank)
    heed_io_format_shape(position, sizeof position, rank, index);
  heed_unwind(model, HEED_ERROR_RANGE,
              "%s%s = %" PRId64 " is out of range for %s: expected %" PRId64
              " <= index < %" PRId64,
              tensor ? tensor : "index", position, value, what, low, high);
}

void heed_host_check_range(heed_model *model, const void *data, int32_t type,
                           int32_t rank, const int64_t *sizes,
                           const int64_t *strides, int64_t low, int64_t high,
                           const char *tensor, const char *what) {
  /* What no kernel has computed is not in any range. */
  if (model->plan)
    return;
  int64_t index[HEED_MAX_RANK] = {0}, dense[HEED_MAX_RANK], count = 1;
  if (rank < 0 || rank > HEED_MAX_RANK)
    heed_unwind(model, HEED_ERROR_INTERNAL, "a tensor of %d axes", rank);
  for (int32_t axis = rank - 1; axis >= 0; --axis) {
    dense[axis] = count;
    count *= sizes[axis];
  }
  if (count == 0)
    return;
  if (!strides)
    strides = dense;
  int64_t offset = 0;
  for (;;) {
    int64_t value = heed_load_integer(data, offset, type);
    if (value < low || value >= high)
      failRange(model, tensor, what, index, rank, value, low, high);
    int32_t axis = rank - 1;
    for (; axis >= 0; --axis) {
      offset += strides[axis];
      if (++index[axis] < sizes[axis])
        break;
      offset -= strides[axis] * sizes[axis];
      index[axis] = 0;
    }
    if (axis < 0)
      return;
  }
}

/* ---- kernels ---- */

void heed_host_buffer(heed_model *model, struct halide_buffer_t *buffer,
                      void *dimensions, void *data, int32_t typeCode,
                      int32_t bits, int32_t rank, const int64_t *sizes,
                      const int64_t *strides, int64_t largest) {
  struct halide_dimension_t *dims = dimensions;
  memset(buffer, 0, sizeof *buffer);
  buffer->host = data;
  buffer->type.code = (uint8_t)typeCode;
  buffer->type.bits = (uint8_t)bits;
  buffer->type.lanes = 1;
  buffer->dimensions = rank;
  buffer->dim = dims;
  int64_t dense = 1;
  bool overflow = false;
  for (int32_t axis = rank - 1; axis >= 0; --axis) {
    int64_t extent = sizes[axis], stride = strides ? strides[axis] : dense;
    if (!strides && overflow && extent > 1)
      stride = INT64_MAX;
    if (extent < 0 || extent > largest)
      heed_unwind(model, HEED_ERROR_SHAPE,
                  "an extent of %" PRId64
                  " is beyond what a kernel can index (%" PRId64 ")",
                  extent, largest);
    if (stride < INT32_MIN || stride > INT32_MAX) {
      if (extent > 1)
        heed_unwind(model, HEED_ERROR_SHAPE,
                    "rows of more than 2147483647 elements on axis %d are "
                    "beyond what a kernel can index",
                    axis);
      stride = 0; /* never used */
    }
    /* Kernels take neighbours in memory for neighbours in a row. */
    if (axis == rank - 1 && extent > 1 && stride != 1)
      heed_unwind(model, HEED_ERROR_INTERNAL,
                  "a kernel is given rows whose elements lie %" PRId64 " apart",
                  stride);
    struct halide_dimension_t *dim = &dims[rank - 1 - axis];
    dim->min = 0;
    dim->extent = (int32_t)extent;
    dim->stride = (int32_t)stride;
    dim->flags = 0;
    if (extent > 1 && __builtin_mul_overflow(dense, extent, &dense))
      overflow = true;
    /* Callers may give no memory where there are no elements, but a vector
     * reads element 0 in lanes that its mask then leaves out. */
    static const int64_t nothing[8];
    if (extent == 0)
      buffer->host = (uint8_t *)nothing;
  }
}

/* Whether no output has an element; a kernel may not expect such buffers. */
static bool writesNothing(void **args, int32_t numArgs, int32_t numOutputs) {
  for (int32_t k = numArgs - numOutputs; k < numArgs; ++k) {
    const struct halide_buffer_t *output = args[k];
    bool empty = false;
    for (int32_t d = 0; d < output->dimensions; ++d)
      empty |= output->dim[d].extent == 0;
    if (!empty)
      return false;
  }
  return numOutputs > 0;
}

int32_t heed_host_profiles(heed_model *model) {
  return model->profile && !model->plan;
}

int32_t heed_host_kernel(heed_model *model, int32_t kernel,
                         int32_t (*function)(void **args), void **args,
                         int32_t numArgs, int32_t numOutputs, double flops,
                         double bytes) {
  if (writesNothing(args, numArgs, numOutputs))
    return 1;
  if (model->plan)
    return 1;
  heed_stop_check(model);
  void *context = model;
  atomic_store(&model->gaveUp, false);
  atomic_store(&model->pairs, 0);
  double start = model->profile ? heed_seconds() : 0;
  args[0] = &context;
  int32_t result = function(args);
  if (result) {
    heed_stop_check(model);
    const char *name = kernel >= 0 && kernel < model->desc->numKernels
                           ? model->desc->kernels[kernel]
                           : "?";
    bool memory = result == halide_error_code_out_of_memory;
    heed_unwind(model, memory ? HEED_ERROR_MEMORY : HEED_ERROR_INTERNAL,
                "kernel '%s' failed (%d): %s", name, result,
                heed_kernel_message(model));
  }
  if (atomic_load(&model->stop) == HEED_ERROR_MEMORY)
    heed_stop_check(model);
  if (model->profile && kernel >= 0 && kernel < model->desc->numKernels) {
    heed_kernel_record *record = &model->profile[kernel];
    ++record->calls;
    record->seconds += heed_seconds() - start;
    record->flops += flops;
    record->bytes += bytes;
    record->pairs += atomic_load(&model->pairs);
  }
  if (model->inInit)
    heed_params_packed(model);
  return !atomic_load(&model->gaveUp);
}
