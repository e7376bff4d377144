/* The functions of heed.h and generate.h: each finds the runtime of its model
 * or handle and calls it. A program has these once, however many libraries with
 * runtimes of their own it holds. */
#include "runtime/host.h"

#include <stdbool.h>
#include <string.h>

#define HEED_TEXT_(x) #x
#define HEED_TEXT(x) HEED_TEXT_(x)

const char *heed_version(void) {
  return HEED_TEXT(HEED_VERSION_MAJOR) "." HEED_TEXT(
      HEED_VERSION_MINOR) "." HEED_TEXT(HEED_VERSION_PATCH);
}

/* The runtime of a handle; null if it is one of another version, in whose table
 * only the first functions are known. Such a handle did not open. */
static const heed_runtime *runtimeOf(const void *object) {
  const heed_runtime *runtime =
      object ? ((const heed_object *)object)->runtime : NULL;
  return runtime && runtime->abiVersion == HEED_ABI_VERSION ? runtime : NULL;
}

static const heed_runtime *runtimeOfModel(const heed_model_desc *desc) {
  return desc && desc->abiVersion == HEED_ABI_VERSION ? desc->runtime : NULL;
}

/* Libraries of this version that were made before there were states have a
 * shorter table; no model of theirs has one. */
static bool knowsStates(const heed_runtime *runtime) {
  return runtime->size >=
         offsetof(heed_runtime, stateError) + sizeof runtime->stateError;
}

/* Or generate: no sampler or generation is theirs. */
static bool knowsGeneration(const heed_runtime *runtime) {
  return runtime->size >= offsetof(heed_runtime, generationError) +
                              sizeof runtime->generationError;
}

/* Or trim states, and plan calls that have one. */
static bool knowsTrims(const heed_runtime *runtime) {
  return runtime->size >=
         offsetof(heed_runtime, planIn) + sizeof runtime->planIn;
}

/* Or save packed weights. */
static bool knowsPacked(const heed_runtime *runtime) {
  return runtime->size >=
         offsetof(heed_runtime, savePacked) + sizeof runtime->savePacked;
}

/* ---- handles ---- */

heed_status heed_open_version(int32_t callersVersion,
                              const heed_model_desc *desc,
                              const heed_options *options, heed_model **model) {
  if (!model)
    return HEED_ERROR_ARGUMENT;
  *model = NULL;
  if (!desc)
    return HEED_ERROR_ARGUMENT;
  /* Before version 3 descriptions had no runtime. */
  if (desc->abiVersion < 3 || !desc->runtime)
    return HEED_ERROR_VERSION;
  return desc->runtime->open(callersVersion, desc, options, model);
}

/* What callers with a heed.h of version 2 or 1 call: it is not internal.
 * NOLINTBEGIN(misc-use-internal-linkage) */
HEED_API heed_status
heed_open_before_3(const heed_model_desc *desc, const void *options,
                   heed_model **model) __asm__("heed_open");
/* NOLINTEND(misc-use-internal-linkage) */
heed_status heed_open_before_3(const heed_model_desc *desc, const void *options,
                               heed_model **model) {
  (void)options;
  return heed_open_version(2, desc, NULL, model);
}

heed_status heed_open_shared(heed_model *model, int32_t threads,
                             heed_model **other) {
  if (!other)
    return HEED_ERROR_ARGUMENT;
  *other = NULL;
  const heed_runtime *runtime = runtimeOf(model);
  return runtime ? runtime->openShared(model, threads, other)
                 : HEED_ERROR_ARGUMENT;
}

heed_status heed_save_packed(heed_model *model, const char *path) {
  const heed_runtime *runtime = runtimeOf(model);
  if (!runtime)
    return HEED_ERROR_ARGUMENT;
  return knowsPacked(runtime) ? runtime->savePacked(model, path)
                              : HEED_ERROR_VERSION;
}

void heed_close(heed_model *model) {
  if (model)
    ((const heed_object *)model)->runtime->close(model);
}

const char *heed_last_error(const heed_model *model) {
  return model ? ((const heed_object *)model)->runtime->lastError(model) : "";
}

heed_status heed_output_shapes(heed_model *model, const char *entry,
                               const heed_buffer *inputs, size_t numInputs,
                               heed_buffer *outputs, size_t numOutputs) {
  const heed_runtime *runtime = runtimeOf(model);
  return runtime ? runtime->outputShapes(model, entry, inputs, numInputs,
                                         outputs, numOutputs)
                 : HEED_ERROR_ARGUMENT;
}

heed_status heed_output_shapes_in(heed_model *model, const char *entry,
                                  const heed_buffer *inputs, size_t numInputs,
                                  heed_buffer *outputs, size_t numOutputs,
                                  const heed_call *call) {
  const heed_runtime *runtime = runtimeOf(model);
  if (!runtime || !knowsStates(runtime))
    return heed_output_shapes(model, entry, inputs, numInputs, outputs,
                              numOutputs);
  return runtime->shapesIn(model, entry, inputs, numInputs, outputs, numOutputs,
                           call);
}

heed_status heed_run(heed_model *model, const char *entry,
                     const heed_buffer *inputs, size_t numInputs,
                     heed_buffer *outputs, size_t numOutputs,
                     const heed_call *call) {
  const heed_runtime *runtime = runtimeOf(model);
  return runtime ? runtime->run(model, entry, inputs, numInputs, outputs,
                                numOutputs, call)
                 : HEED_ERROR_ARGUMENT;
}

heed_status heed_plan_memory(heed_model *model, const char *entry,
                             const heed_buffer *inputs, size_t numInputs,
                             int64_t *bytes) {
  const heed_runtime *runtime = runtimeOf(model);
  return runtime && bytes
             ? runtime->plan(model, entry, inputs, numInputs, bytes)
             : HEED_ERROR_ARGUMENT;
}

heed_status heed_plan_memory_in(heed_model *model, const char *entry,
                                const heed_buffer *inputs, size_t numInputs,
                                const heed_call *call, int64_t *bytes) {
  const heed_runtime *runtime = runtimeOf(model);
  if (!runtime || !bytes)
    return HEED_ERROR_ARGUMENT;
  return knowsTrims(runtime)
             ? runtime->planIn(model, entry, inputs, numInputs, call, bytes)
             : HEED_ERROR_VERSION;
}

int32_t heed_num_threads(const heed_model *model) {
  const heed_runtime *runtime = runtimeOf(model);
  return runtime ? runtime->numThreads(model) : 0;
}

const char *heed_target(const heed_model *model) {
  const heed_runtime *runtime = runtimeOf(model);
  return runtime ? runtime->target(model) : "";
}

size_t heed_profile(const heed_model *model, heed_kernel_profile *profiles,
                    size_t capacity) {
  const heed_runtime *runtime = runtimeOf(model);
  return runtime ? runtime->profile(model, profiles, capacity) : 0;
}

void heed_profile_reset(heed_model *model) {
  const heed_runtime *runtime = runtimeOf(model);
  if (runtime)
    runtime->profileReset(model);
}

heed_status heed_memory(const heed_model *model, heed_memory_use *use) {
  const heed_runtime *runtime = runtimeOf(model);
  return runtime && use ? runtime->memory(model, use) : HEED_ERROR_ARGUMENT;
}

/* ---- states ---- */

heed_status heed_state_open(heed_model *model, const heed_dim *dims,
                            size_t numDims, heed_state **state) {
  if (!state)
    return HEED_ERROR_ARGUMENT;
  *state = NULL;
  const heed_runtime *runtime = runtimeOf(model);
  if (!runtime)
    return HEED_ERROR_ARGUMENT;
  return knowsStates(runtime) ? runtime->stateOpen(model, dims, numDims, state)
                              : HEED_ERROR_VERSION;
}

void heed_state_close(heed_state *state) {
  const heed_runtime *runtime = runtimeOf(state);
  if (runtime)
    runtime->stateClose(state);
}

heed_status heed_state_reset(heed_state *state) {
  const heed_runtime *runtime = runtimeOf(state);
  return runtime ? runtime->stateReset(state) : HEED_ERROR_ARGUMENT;
}

heed_status heed_state_copy(heed_state *from, heed_state *to) {
  const heed_runtime *runtime = runtimeOf(to);
  return runtime && runtimeOf(from) == runtime ? runtime->stateCopy(from, to)
                                               : HEED_ERROR_ARGUMENT;
}

heed_status heed_state_get(heed_state *state, const char *name,
                           heed_buffer *buffer) {
  const heed_runtime *runtime = runtimeOf(state);
  return runtime ? runtime->stateGet(state, name, buffer) : HEED_ERROR_ARGUMENT;
}

heed_status heed_state_set(heed_state *state, const char *name,
                           const heed_buffer *buffer) {
  const heed_runtime *runtime = runtimeOf(state);
  return runtime ? runtime->stateSet(state, name, buffer) : HEED_ERROR_ARGUMENT;
}

heed_status heed_state_trim(heed_state *state, const char *name,
                            const heed_buffer *values) {
  const heed_runtime *runtime = runtimeOf(state);
  if (!runtime)
    return HEED_ERROR_ARGUMENT;
  return knowsTrims(runtime) ? runtime->stateTrim(state, name, values)
                             : HEED_ERROR_VERSION;
}

heed_status heed_state_permute(heed_state *state, const char *dim,
                               const int64_t *from, size_t count) {
  const heed_runtime *runtime = runtimeOf(state);
  return runtime ? runtime->statePermute(state, dim, from, count)
                 : HEED_ERROR_ARGUMENT;
}

heed_status heed_state_save(heed_state *state, const char *path) {
  const heed_runtime *runtime = runtimeOf(state);
  return runtime ? runtime->stateSave(state, path) : HEED_ERROR_ARGUMENT;
}

heed_status heed_state_load(heed_state *state, const char *path) {
  const heed_runtime *runtime = runtimeOf(state);
  return runtime ? runtime->stateLoad(state, path) : HEED_ERROR_ARGUMENT;
}

int64_t heed_state_bytes(const heed_state *state) {
  const heed_runtime *runtime = runtimeOf(state);
  return runtime ? runtime->stateBytes(state) : 0;
}

const char *heed_state_last_error(const heed_state *state) {
  const heed_runtime *runtime = runtimeOf(state);
  return runtime ? runtime->stateError(state) : "";
}

size_t heed_num_states(const heed_model_desc *desc) {
  return runtimeOfModel(desc) ? (size_t)desc->numStates : 0;
}

const heed_tensor_info *heed_state_info(const heed_model_desc *desc,
                                        size_t state) {
  return state < heed_num_states(desc) ? desc->states[state] : NULL;
}

/* ---- generation ---- */

heed_status heed_sampler_open(const heed_model_desc *desc,
                              const heed_sampling *sampling, int64_t rows,
                              int64_t vocabulary, heed_sampler **sampler) {
  if (!sampler)
    return HEED_ERROR_ARGUMENT;
  *sampler = NULL;
  const heed_runtime *runtime = runtimeOfModel(desc);
  if (!runtime)
    return HEED_ERROR_ARGUMENT;
  return knowsGeneration(runtime)
             ? runtime->samplerOpen(sampling, rows, vocabulary, sampler)
             : HEED_ERROR_VERSION;
}

void heed_sampler_close(heed_sampler *sampler) {
  const heed_runtime *runtime = runtimeOf(sampler);
  if (runtime)
    runtime->samplerClose(sampler);
}

heed_status heed_sampler_begin(heed_sampler *sampler, int64_t row,
                               uint64_t id) {
  const heed_runtime *runtime = runtimeOf(sampler);
  return runtime ? runtime->samplerBegin(sampler, row, id)
                 : HEED_ERROR_ARGUMENT;
}

heed_status heed_sampler_see(heed_sampler *sampler, int64_t row,
                             const int32_t *ids, size_t count) {
  const heed_runtime *runtime = runtimeOf(sampler);
  return runtime && (ids || !count)
             ? runtime->samplerSee(sampler, row, ids, count)
             : HEED_ERROR_ARGUMENT;
}

heed_status heed_sampler_stop(heed_sampler *sampler, int64_t row) {
  const heed_runtime *runtime = runtimeOf(sampler);
  return runtime ? runtime->samplerStop(sampler, row) : HEED_ERROR_ARGUMENT;
}

int32_t heed_sampler_stopped(const heed_sampler *sampler, int64_t row) {
  const heed_runtime *runtime = runtimeOf(sampler);
  return !runtime || runtime->samplerStopped(sampler, row);
}

int64_t heed_sampler_running(const heed_sampler *sampler) {
  const heed_runtime *runtime = runtimeOf(sampler);
  return runtime ? runtime->samplerRunning(sampler) : 0;
}

heed_status heed_sampler_choose(heed_sampler *sampler,
                                const heed_buffer *logits, int32_t *ids) {
  const heed_runtime *runtime = runtimeOf(sampler);
  return runtime ? runtime->samplerChoose(sampler, logits, ids)
                 : HEED_ERROR_ARGUMENT;
}

const char *heed_sampler_last_error(const heed_sampler *sampler) {
  const heed_runtime *runtime = runtimeOf(sampler);
  return runtime ? runtime->samplerError(sampler) : "";
}

heed_status heed_generation_open(heed_model *model,
                                 const heed_generation_options *options,
                                 const heed_buffer *inputs, size_t numInputs,
                                 heed_generation **generation) {
  if (!generation)
    return HEED_ERROR_ARGUMENT;
  *generation = NULL;
  const heed_runtime *runtime = runtimeOf(model);
  if (!runtime)
    return HEED_ERROR_ARGUMENT;
  return knowsGeneration(runtime)
             ? runtime->generationOpen(model, options, inputs, numInputs,
                                       generation)
             : HEED_ERROR_VERSION;
}

void heed_generation_close(heed_generation *generation) {
  const heed_runtime *runtime = runtimeOf(generation);
  if (runtime)
    runtime->generationClose(generation);
}

heed_status heed_generation_step(heed_generation *generation, int32_t *ids,
                                 int64_t *running) {
  const heed_runtime *runtime = runtimeOf(generation);
  return runtime ? runtime->generationStep(generation, ids, running)
                 : HEED_ERROR_ARGUMENT;
}

heed_status heed_generate(heed_generation *generation, heed_on_tokens onTokens,
                          void *user) {
  const heed_runtime *runtime = runtimeOf(generation);
  return runtime ? runtime->generationRun(generation, onTokens, user)
                 : HEED_ERROR_ARGUMENT;
}

heed_status heed_generation_tokens(heed_generation *generation, int64_t width,
                                   int32_t *tokens, double *scores) {
  const heed_runtime *runtime = runtimeOf(generation);
  return runtime ? runtime->generationTokens(generation, width, tokens, scores)
                 : HEED_ERROR_ARGUMENT;
}

const char *heed_generation_last_error(const heed_generation *generation) {
  const heed_runtime *runtime = runtimeOf(generation);
  return runtime ? runtime->generationError(generation) : "";
}

/* ---- threads ---- */

heed_threads *heed_threads_open(const heed_model_desc *desc, int32_t threads,
                                int32_t wait) {
  const heed_runtime *runtime = runtimeOfModel(desc);
  return runtime ? runtime->threadsOpen(threads, wait) : NULL;
}

void heed_threads_close(heed_threads *threads) {
  const heed_runtime *runtime = runtimeOf(threads);
  if (runtime)
    runtime->threadsClose(threads);
}

/* ---- descriptions ---- */

size_t heed_num_entries(const heed_model_desc *desc) {
  const heed_runtime *runtime = runtimeOfModel(desc);
  return runtime ? runtime->numEntries(desc) : 0;
}

const heed_signature *heed_entry_signature(const heed_model_desc *desc,
                                           size_t entry) {
  const heed_runtime *runtime = runtimeOfModel(desc);
  return runtime ? runtime->entrySignature(desc, entry) : NULL;
}

const heed_signature *heed_find_signature(const heed_model_desc *desc,
                                          const char *entry) {
  const heed_runtime *runtime = runtimeOfModel(desc);
  return runtime ? runtime->findSignature(desc, entry) : NULL;
}

const char *heed_model_name(const heed_model_desc *desc) {
  const heed_runtime *runtime = runtimeOfModel(desc);
  return runtime ? runtime->modelName(desc) : "";
}

size_t heed_num_params(const heed_model_desc *desc) {
  const heed_runtime *runtime = runtimeOfModel(desc);
  return runtime ? runtime->numParams(desc) : 0;
}

const heed_param_info *heed_param(const heed_model_desc *desc, size_t param) {
  const heed_runtime *runtime = runtimeOfModel(desc);
  return runtime ? runtime->param(desc, param) : NULL;
}

const char *heed_target_name(const heed_model_desc *desc, size_t target) {
  const heed_runtime *runtime = runtimeOfModel(desc);
  return runtime ? runtime->targetName(desc, target) : NULL;
}
