/* Kernels on a device: what their buffers hold goes there before a call, and
 * what they wrote comes back after it. */
#include "runtime/Model.h"

#include "HalideRuntime.h"

#include <stdlib.h>

void heed_device_note(heed_model *model, struct halide_buffer_t *buffer) {
  if (model->numNoted == model->noteCapacity) {
    size_t capacity = model->noteCapacity ? 2 * model->noteCapacity : 16;
    struct halide_buffer_t **grown =
        realloc(model->noted, capacity * sizeof *grown);
    if (!grown)
      heed_unwind(model, HEED_ERROR_MEMORY, "no memory to call a kernel");
    model->noted = grown;
    model->noteCapacity = capacity;
  }
  model->noted[model->numNoted++] = buffer;
}

static bool isEmpty(const struct halide_buffer_t *buffer) {
  bool empty = false;
  for (int32_t d = 0; d < buffer->dimensions; ++d)
    empty |= buffer->dim[d].extent == 0;
  return empty;
}

int heed_device_call(heed_model *model, int32_t (*function)(void **args),
                     void **args, int32_t numArgs, int32_t numOutputs) {
  const heed_gpu *gpu = model->desc->gpu;
  int result = 0;
  for (size_t k = 0; k < model->numNoted && !result; ++k) {
    if (!isEmpty(model->noted[k]))
      model->noted[k]->flags = halide_buffer_flag_host_dirty;
    result = gpu->take(model, model->noted[k]);
  }
  /* The kernel writes every element of these. */
  for (int32_t k = numArgs - numOutputs; k < numArgs; ++k)
    ((struct halide_buffer_t *)args[k])->flags = 0;
  if (!result)
    result = function(args);
  for (size_t k = 0; k < model->numNoted; ++k) {
    int settled = gpu->settle(model, model->noted[k], /*copy=*/result == 0);
    if (!result)
      result = settled;
  }
  model->numNoted = 0;
  return result;
}
