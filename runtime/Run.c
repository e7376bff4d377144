/* A call of an entry: compiled code is entered here alone. */
#include "runtime/Frame.h"
#include "runtime/State.h"

#include <string.h>

/* ---- calls into compiled code ---- */

typedef int32_t (*function)(heed_model *, const heed_argument *,
                            heed_argument *);

/* The only place that compiled code is entered from, and where a failure inside
 * it comes out. */
static heed_status enter(heed_model *model, function run,
                         int32_t (*init)(heed_model *), const heed_frame *f) {
  if (setjmp(model->unwind) != 0)
    return model->status;
  int32_t result = init ? init(model) : run(model, f->in, f->out);
  if (result && !model->message[0])
    heed_fail(model, (heed_status)result, "the model failed: %s",
              heed_status_name((heed_status)result));
  return (heed_status)result;
}

static void begin(heed_model *model, const heed_call *call) {
  model->status = HEED_OK;
  model->message[0] = 0;
  model->kernelMessage[0] = 0;
  model->cancel = call ? call->cancel : NULL;
  model->deadline = call ? call->deadline : 0;
  model->stream = call ? call->stream : NULL;
  atomic_store_explicit(&model->stop, HEED_OK, memory_order_relaxed);
  heed_pool_begin_call(&model->pool);
  if (model->team)
    heed_team_begin_call(model->team);
}

static void end(heed_model *model) {
  if (model->team)
    heed_team_end_call(model->team);
  heed_pool_end_call(&model->pool);
}

heed_status heed_run_init(heed_model *model) {
  int32_t (*init)(heed_model *) = model->desc->init;
  if (!init)
    return HEED_OK;
  begin(model, NULL);
  model->inInit = true;
  heed_status status = enter(model, NULL, init, NULL);
  model->inInit = false;
  end(model);
  return status;
}

/* What the call has done to its state stands, or it was never called. */
static void settleStates(heed_model *model, const heed_entry_desc *entry,
                         bool succeeded) {
  if (!succeeded) {
    heed_journal_undo(&model->journal);
    return;
  }
  model->journal.used = 0;
  for (const int64_t *k = entry->replaced; k && *k >= 0; ++k) {
    heed_state_tensor *tensor = &model->state->tensors[*k];
    void *before = tensor->data;
    tensor->data = tensor->spare;
    tensor->spare = before;
  }
}

/* The run itself, after the shapes of the outputs are known. */
static heed_status compute(heed_model *model, const heed_entry_desc *entry,
                           const heed_frame *f, const heed_buffer *outputs) {
  heed_status status = heed_frame_take_outputs(model, f, outputs);
  if (!status)
    status = heed_frame_gather(model, f);
  if (!status)
    status = enter(model, entry->run, NULL, f);
  if (!status)
    heed_frame_scatter(f);
  else if (model->device)
    model->desc->gpu->abandon(model);
  settleStates(model, entry, !status);
  return status;
}

/* An input of the device's for the host, which may read whole numbers of it. */
static heed_status fetch(heed_model *model, heed_argument *argument,
                         const heed_place *place) {
  size_t size = heed_type_size(argument->type),
         span = place->end - place->begin;
  if (!place->strides || !span)
    return span ? model->desc->gpu->fetch(model, argument->data, place->first,
                                          span)
                : HEED_OK;
  char *all = heed_plan_take(model->plan, (int64_t)span, /*counts=*/false);
  if (!all)
    return heed_fail(model, HEED_ERROR_MEMORY,
                     "no addresses for an array of the run");
  const char *begin = place->first + (place->begin - (uintptr_t)place->first);
  heed_status status = model->desc->gpu->fetch(model, all, begin, span);
  if (!status)
    heed_strides_gather(argument->data, all + (place->first - begin),
                        argument->rank, argument->shape, place->strides, size);
  return status;
}

/* The same without kernels: memory for results and copies of inputs are
 * addresses alone. */
static heed_status plan(heed_model *model, const heed_entry_desc *entry,
                        const heed_frame *f) {
  for (int32_t k = 0; k < f->signature->numInputs + f->signature->numOutputs;
       ++k) {
    bool isInput = k < f->signature->numInputs;
    heed_argument *argument =
        isInput ? &f->in[k] : &f->out[k - f->signature->numInputs];
    const heed_place *place = isInput ? &f->inPlaces[k] : NULL;
    if (isInput && !place->strides && !place->onDevice)
      continue;
    int64_t bytes = 0;
    if (!heed_io_byte_count(argument->rank, argument->shape,
                            (int64_t)heed_type_size(argument->type), &bytes) ||
        !(argument->data = heed_plan_take(model->plan, bytes, isInput)))
      return heed_fail(model, HEED_ERROR_MEMORY,
                       "no addresses for an array of the run");
    heed_status status =
        isInput && place->onDevice ? fetch(model, argument, place) : HEED_OK;
    if (status)
      return status;
    if (isInput && !place->onDevice)
      heed_strides_gather(argument->data, place->first, argument->rank,
                          argument->shape, place->strides,
                          heed_type_size(argument->type));
  }
  return enter(model, entry->run, NULL, f);
}

static heed_status runFree(heed_model *model, const char *name, bool computes,
                           const heed_buffer *inputs, size_t numInputs,
                           heed_buffer *outputs, size_t numOutputs) {
  const heed_entry_desc *entry = heed_find_entry(model->desc, name);
  if (!entry)
    return heed_fail(model, HEED_ERROR_ARGUMENT, "there is no entry '%s'",
                     name ? name : "");
  const heed_signature *signature = &entry->signature;
  if (model->plan)
    numOutputs = (size_t)signature->numOutputs;
  if (numInputs != (size_t)signature->numInputs ||
      numOutputs != (size_t)signature->numOutputs || (numInputs && !inputs) ||
      (numOutputs && !outputs && !model->plan))
    return heed_fail(model, HEED_ERROR_ARGUMENT,
                     "entry '%s' has %d inputs and %d outputs, found %zu and "
                     "%zu",
                     signature->entry, signature->numInputs,
                     signature->numOutputs, numInputs, numOutputs);
  if (model->desc->numStates && !model->state)
    return heed_fail(model, HEED_ERROR_ARGUMENT,
                     "entry '%s' needs a state: expected call.state of "
                     "heed_state_open(), found null",
                     signature->entry);
  heed_frame f = heed_frame_of(model, signature);
  heed_status status = heed_frame_take_inputs(model, &f, inputs, computes);
  if (!status && model->desc->numStates)
    status = heed_frame_take_states(model, &f, entry->replaced, computes);
  for (size_t k = 0; k < numOutputs && !status; ++k) {
    if (!model->plan)
      status = heed_frame_check_size(model, outputs, k, "output");
    memset(&f.out[k], 0, sizeof f.out[k]);
    f.out[k].type = signature->outputs[k]->type;
    f.out[k].rank = signature->outputs[k]->rank;
  }
  if (!status)
    status = enter(model, entry->shapes, NULL, &f);
  if (!status && model->plan)
    status = plan(model, entry, &f);
  else if (!status && computes)
    status = compute(model, entry, &f, outputs);
  else if (!status)
    heed_frame_tell_shapes(&f, outputs);
  return status;
}

static heed_status checkCall(heed_model *model, const heed_call *call) {
  if (!call)
    return HEED_OK;
  if (!heed_is_readable(call, call->size, HEED_LEAST_CALL, sizeof *call))
    return heed_fail(model, HEED_ERROR_VERSION,
                     "a heed_call of %zu bytes, or with fields that this "
                     "library does not know: expected size = "
                     "sizeof(heed_call), %zu here",
                     call->size, sizeof *call);
  if (call->state && !model->desc->numStates)
    return heed_fail(model, HEED_ERROR_ARGUMENT,
                     "call.state: expected null: the model has no state");
  if (call->state && call->state->shared != model->shared)
    return heed_fail(model, HEED_ERROR_ARGUMENT,
                     "call.state belongs to another model: expected a state of "
                     "this handle or of one on the same weights");
  if (call->stream &&
      !(model->device && model->desc->gpu->isShared(model->device)))
    return heed_fail(
        model, HEED_ERROR_DEVICE,
        "call.stream: expected null: calls run on the CPU, or on a "
        "stream of the model's own");
  return HEED_OK;
}

static heed_status runChecked(heed_model *model, const char *entry,
                              bool computes, const heed_buffer *inputs,
                              size_t numInputs, heed_buffer *outputs,
                              size_t numOutputs, const heed_call *call) {
  if (!model->ready)
    return heed_fail(model, HEED_ERROR_ARGUMENT, "the model did not open");
  heed_status status = checkCall(model, call);
  if (status)
    return status;
  bool keepMode =
      call &&
      call->size >= offsetof(heed_call, keepFloatMode) + sizeof(int32_t) &&
      call->keepFloatMode;
  uint64_t mode = keepMode ? 0 : heed_float_mode_enter();
  model->state = call ? call->state : NULL;
  if (model->state && atomic_flag_test_and_set(&model->state->busy)) {
    model->state = NULL;
    if (!keepMode)
      heed_float_mode_leave(mode);
    return heed_fail(model, HEED_ERROR_BUSY,
                     "another thread uses the state of the call");
  }
  begin(model, call);
  status =
      runFree(model, entry, computes, inputs, numInputs, outputs, numOutputs);
  end(model);
  if (model->state)
    atomic_flag_clear(&model->state->busy);
  model->state = NULL;
  if (!keepMode)
    heed_float_mode_leave(mode);
  return status;
}

/* plan null: a run, or (computes false) the question for shapes. */
static heed_status runEntry(heed_model *model, const char *entry, bool computes,
                            const heed_buffer *inputs, size_t numInputs,
                            heed_buffer *outputs, size_t numOutputs,
                            const heed_call *call, heed_plan *plan) {
  /* Before all else: in a child of fork another thread's call never ends. */
  if (heed_mark_is_foreign(&model->mark))
    return heed_fail(model, HEED_ERROR_FORK,
                     "the handle belongs to the process that this one is a "
                     "fork of: open the model again");
  if (atomic_flag_test_and_set(&model->busy))
    return HEED_ERROR_BUSY;
  model->plan = plan;
  heed_status status = runChecked(model, entry, computes, inputs, numInputs,
                                  outputs, numOutputs, call);
  model->plan = NULL;
  atomic_flag_clear(&model->busy);
  return status;
}

heed_status heed_run_shapes(heed_model *model, const char *entry,
                            const heed_buffer *inputs, size_t numInputs,
                            heed_buffer *outputs, size_t numOutputs) {
  return heed_run_shapes_in(model, entry, inputs, numInputs, outputs,
                            numOutputs, NULL);
}

heed_status heed_run_shapes_in(heed_model *model, const char *entry,
                               const heed_buffer *inputs, size_t numInputs,
                               heed_buffer *outputs, size_t numOutputs,
                               const heed_call *call) {
  return runEntry(model, entry, false, inputs, numInputs, outputs, numOutputs,
                  call, NULL);
}

heed_status heed_run_entry(heed_model *model, const char *entry,
                           const heed_buffer *inputs, size_t numInputs,
                           heed_buffer *outputs, size_t numOutputs,
                           const heed_call *call) {
  return runEntry(model, entry, true, inputs, numInputs, outputs, numOutputs,
                  call, NULL);
}

heed_status heed_run_plan(heed_model *model, const char *entry,
                          const heed_buffer *inputs, size_t numInputs,
                          int64_t *bytes) {
  return heed_run_plan_in(model, entry, inputs, numInputs, NULL, bytes);
}

heed_status heed_run_plan_in(heed_model *model, const char *entry,
                             const heed_buffer *inputs, size_t numInputs,
                             const heed_call *call, int64_t *bytes) {
  heed_plan plan = {NULL, 0, 0};
  heed_status status =
      runEntry(model, entry, true, inputs, numInputs, NULL, 0, call, &plan);
  heed_plan_close(&plan);
  *bytes = plan.most;
  return status;
}
