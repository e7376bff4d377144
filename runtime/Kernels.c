/* Calling Halide's kernels, and what they ask of their runtime: threads, memory, a place for errors.
 *
 * Kernels are compiled without a runtime and linked with Halide's standalone one, whose functions are weak: the strong ones
 * here take their place. A linker looks into an archive only for names that nobody has defined yet, so a strong name alone
 * would not bring them in: they share this file with heed_host_kernel(), without which no kernel is called.
 * The user context is the model's handle. It is null where somebody else's Halide code in the same program comes here: that
 * gets serial loops and plain memory. */
#include "runtime/Model.h"

#include "HalideRuntime.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int halide_do_task(void *context, halide_task_t task, int index,
                   uint8_t *closure) {
  return task(context, index, closure);
}

int halide_do_par_for(void *context, halide_task_t task, int min, int size,
                      uint8_t *closure) {
  heed_model *model = context;
  if (model)
    return heed_team_run(model->team, task, context, min, size, closure);
  for (int k = 0; k < size; ++k) {
    int result = task(context, min + k, closure);
    if (result)
      return result;
  }
  return 0;
}

/* Without a handle there is no pool: plain blocks, 128-byte aligned, told apart by who frees them. */
void *halide_malloc(void *context, size_t bytes) {
  heed_model *model = context;
  if (model)
    return heed_pool_take(&model->pool, bytes);
  void *memory = NULL;
  return posix_memalign(&memory, 128, bytes ? bytes : 1) == 0 ? memory : NULL;
}

void halide_free(void *context, void *memory) {
  if (context)
    heed_pool_give(memory);
  else
    free(memory);
}

void halide_error(void *context, const char *message) {
  heed_model *model = context;
  if (!model)
    return;
  pthread_mutex_lock(&model->messageLock);
  if (!model->kernelMessage[0]) {
    size_t length = strcspn(message, "\n");
    if (length >= sizeof model->kernelMessage)
      length = sizeof model->kernelMessage - 1;
    memcpy(model->kernelMessage, message, length);
    model->kernelMessage[length] = 0;
  }
  pthread_mutex_unlock(&model->messageLock);
}

/* Only kernels with tracing or print() come here: text for a person who debugs. */
void halide_print(void *context, const char *message) {
  (void)context;
  fputs(message, stderr);
}

/* ---- calls ---- */

void heed_host_buffer(heed_model *model, struct halide_buffer_t *buffer,
                      void *dimensions, void *data, int32_t typeCode,
                      int32_t bits, int32_t rank, const int64_t *sizes,
                      const int64_t *strides) {
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
    if (extent < 0 || extent > INT32_MAX)
      heed_unwind(model, HEED_ERROR_SHAPE,
                  "an extent of %" PRId64 " is beyond what a kernel can index "
                  "(2147483647)",
                  extent);
    if (stride < INT32_MIN || stride > INT32_MAX) {
      if (extent > 1)
        heed_unwind(model, HEED_ERROR_SHAPE,
                    "rows of more than 2147483647 elements on axis %d are "
                    "beyond what a kernel can index",
                    axis);
      stride = 0; /* never used */
    }
    struct halide_dimension_t *dim = &dims[rank - 1 - axis];
    dim->min = 0;
    dim->extent = (int32_t)extent;
    dim->stride = (int32_t)stride;
    dim->flags = 0;
    if (extent > 1 && __builtin_mul_overflow(dense, extent, &dense))
      overflow = true;
  }
}

void heed_host_kernel(heed_model *model, int32_t kernel,
                      int32_t (*function)(void **args), void **args,
                      double flops, double bytes) {
  void *context = model;
  double start = model->profile ? heed_seconds() : 0;
  args[0] = &context;
  int32_t result = function(args);
  if (result) {
    const char *name = kernel >= 0 && kernel < model->desc->numKernels
                           ? model->desc->kernels[kernel]
                           : "?";
    bool memory = result == halide_error_code_out_of_memory;
    heed_unwind(model, memory ? HEED_ERROR_MEMORY : HEED_ERROR_INTERNAL,
                "kernel '%s' failed (%d): %s", name, result,
                model->kernelMessage[0] ? model->kernelMessage
                                        : "no reason given");
  }
  if (model->profile && kernel >= 0 && kernel < model->desc->numKernels) {
    heed_kernel_record *record = &model->profile[kernel];
    ++record->calls;
    record->seconds += heed_seconds() - start;
    record->flops += flops;
    record->bytes += bytes;
  }
}
