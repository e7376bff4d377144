/* What Halide's kernels ask of their runtime: threads, memory, a place for
 * errors.
 *
 * Kernels are compiled without a runtime and linked with Halide's standalone
 * one, whose functions are weak: these strong ones take their place. The user
 * context is the model's handle. It is null where somebody else's Halide code
 * in the same program comes here: that gets serial loops and plain memory. */
#include "runtime/Model.h"

#include "HalideRuntime.h"

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
    return heed_loop_run(model, task, min, size, closure);
  for (int k = 0; k < size; ++k) {
    int result = task(context, min + k, closure);
    if (result)
      return result;
  }
  return 0;
}

/* Without a handle there is no pool: plain blocks, 128-byte aligned, told apart
 * by who frees them. */
void *halide_malloc(void *context, size_t bytes) {
  heed_model *model = context;
  if (model) {
    void *taken = heed_pool_take(&model->pool, bytes);
    if (taken)
      return taken;
    /* Kernels do not ask whether there is any: this one runs to its end, or to
     * the next task, with memory that nobody has allowed, and the call fails.
     */
    int none = HEED_OK;
    atomic_compare_exchange_strong(&model->stop, &none, HEED_ERROR_MEMORY);
    return heed_pool_take_beyond(&model->pool, bytes);
  }
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

const char *heed_kernel_message(const heed_model *model) {
  return model->kernelMessage[0] ? model->kernelMessage : "no reason given";
}

float heed_kernel_gives_up(void *context, int32_t yes) {
  heed_model *model = context;
  if (yes && model)
    atomic_store_explicit(&model->gaveUp, true, memory_order_relaxed);
  return 1;
}

/* Of kernels that count pairs (--count-pairs): the lanes that are stored, once
 * of an element that is a tuple. */
int32_t halide_trace(void *context, const struct halide_trace_event_t *event) {
  heed_model *model = context;
  if (model && event->event == halide_trace_store && event->value_index == 0)
    atomic_fetch_add_explicit(&model->pairs, event->type.lanes,
                              memory_order_relaxed);
  return 0;
}

/* Only kernels with tracing or print() come here: text for a person who debugs.
 */
void halide_print(void *context, const char *message) {
  if (context)
    heed_say(context, HEED_LOG_INFO, "%s", message);
  else
    fputs(message, stderr);
}
