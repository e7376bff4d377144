/* The parallel loops of kernels: on the handle's team or the host's threads,
 * and stopped where the call is. */
#include "runtime/Model.h"

#include <stdio.h>
#include <time.h>

/* ---- when a call must end ---- */

static bool isLate(int64_t deadline) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec >= deadline;
}

heed_status heed_stop_reason(heed_model *model) {
  if (!model->cancel && !model->deadline)
    return HEED_OK;
  int reason = atomic_load_explicit(&model->stop, memory_order_relaxed);
  if (reason)
    return (heed_status)reason;
  if (model->cancel && __atomic_load_n(model->cancel, __ATOMIC_RELAXED))
    reason = HEED_ERROR_CANCELLED;
  else if (model->deadline && isLate(model->deadline))
    reason = HEED_ERROR_DEADLINE;
  if (!reason)
    return HEED_OK;
  /* Of two reasons that two threads find, the first counts. */
  int none = HEED_OK;
  atomic_compare_exchange_strong(&model->stop, &none, reason);
  return (heed_status)(none ? none : reason);
}

void heed_stop_check(heed_model *model) {
  heed_status reason = heed_stop_reason(model);
  if (reason == HEED_ERROR_CANCELLED)
    heed_unwind(model, reason, "the call was cancelled");
  if (reason == HEED_ERROR_MEMORY)
    heed_unwind(model, reason,
                "no memory for what a kernel keeps while it runs");
  if (reason)
    heed_unwind(model, reason, "the call's deadline has passed");
}

/* ---- loops ---- */

typedef struct loop {
  heed_model *model;
  heed_task task;
  uint8_t *closure;
  int min;
  atomic_int failure, done;
} loop;

/* What a stopped task returns; the reason stands in the handle. */
enum { Stopped = -9000 };

static int runTask(loop *l, int index) {
  return heed_stop_reason(l->model) ? Stopped
                                    : l->task(l->model, index, l->closure);
}

static int teamTask(void *context, int index, uint8_t *closure) {
  (void)context;
  return runTask((loop *)closure, index);
}

/* A task on one of the host's threads, of which nothing is known. */
static void hostTask(void *argument, int32_t k) {
  loop *l = argument;
  int32_t thread = heed_thread_borrow();
  uint64_t mode = heed_float_mode_enter();
  int result = atomic_load(&l->failure) ? 0 : runTask(l, l->min + k);
  int none = 0;
  if (result)
    atomic_compare_exchange_strong(&l->failure, &none, result);
  heed_float_mode_leave(mode);
  heed_thread_return(thread);
  atomic_fetch_add(&l->done, 1);
}

static int runOnHost(loop *l, int size) {
  heed_model *model = l->model;
  model->parallelFor(model->parallelForUser, size, hostTask, l);
  atomic_store(&model->looping, false);
  int done = atomic_load(&l->done);
  if (done == size)
    return atomic_load(&l->failure);
  pthread_mutex_lock(&model->messageLock);
  if (!model->kernelMessage[0])
    snprintf(model->kernelMessage, sizeof model->kernelMessage,
             "options.parallelFor ran %d tasks, expected %d", done, size);
  pthread_mutex_unlock(&model->messageLock);
  return Stopped;
}

int heed_loop_run(heed_model *model, heed_task task, int min, int size,
                  uint8_t *closure) {
  bool stops = model->cancel || model->deadline;
  if (model->team && !stops)
    return heed_team_run(model->team, task, model, min, size, closure);
  loop l = {.model = model, .task = task, .closure = closure, .min = min};
  if (model->team)
    return heed_team_run(model->team, teamTask, model, min, size,
                         (uint8_t *)&l);
  if (size > 1 && !atomic_exchange(&model->looping, true))
    return runOnHost(&l, size);
  for (int k = 0; k < size; ++k) {
    int result = runTask(&l, min + k);
    if (result)
      return result;
  }
  return 0;
}
