/* What a handle says: its signature, messages, profiles and memory; and the
 * table of functions by which heed.h's are reached. */
#include "runtime/Model.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

double heed_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- messages ---- */

static void setMessage(heed_model *model, heed_status status,
                       const char *format, va_list arguments) {
  vsnprintf(model->message, sizeof model->message, format, arguments);
  heed_io_clean(model->message);
  model->status = status;
  heed_say(model, HEED_LOG_ERROR, "%s", model->message);
}

heed_status heed_fail(heed_model *model, heed_status status, const char *format,
                      ...) {
  va_list arguments;
  va_start(arguments, format);
  setMessage(model, status, format, arguments);
  va_end(arguments);
  return status;
}

void heed_unwind(heed_model *model, heed_status status, const char *format,
                 ...) {
  va_list arguments;
  va_start(arguments, format);
  setMessage(model, status, format, arguments);
  va_end(arguments);
  longjmp(model->unwind, 1);
}

void heed_say(const heed_model *model, heed_log_level level, const char *format,
              ...) {
  if (!model->log)
    return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  text[strcspn(text, "\n")] = 0;
  model->log(model->logUser, level, text);
}

static const char *lastError(const heed_model *model) { return model->message; }

/* ---- signatures ---- */

static size_t numEntries(const heed_model_desc *desc) {
  return (size_t)desc->numEntries;
}

static const heed_signature *entrySignature(const heed_model_desc *desc,
                                            size_t entry) {
  return entry < numEntries(desc) ? &desc->entries[entry].signature : NULL;
}

const heed_entry_desc *heed_find_entry(const heed_model_desc *desc,
                                       const char *name) {
  for (size_t k = 0; k < numEntries(desc); ++k)
    if (!name || !strcmp(desc->entries[k].signature.entry, name))
      return &desc->entries[k];
  return NULL;
}

static const heed_signature *findSignature(const heed_model_desc *desc,
                                           const char *entry) {
  const heed_entry_desc *found = heed_find_entry(desc, entry);
  return found ? &found->signature : NULL;
}

static const char *modelName(const heed_model_desc *desc) {
  return desc->name ? desc->name : "";
}

static size_t numParams(const heed_model_desc *desc) {
  return (size_t)desc->numParams;
}

static const heed_param_info *param(const heed_model_desc *desc, size_t param) {
  return param < numParams(desc) ? &desc->params[param] : NULL;
}

/* ---- the handle ---- */

static int32_t numThreads(const heed_model *model) {
  return model->ready ? model->threads : 0;
}

static const char *target(const heed_model *model) {
  return model->ready && model->desc->target ? model->desc->target : "";
}

static size_t profile(const heed_model *model, heed_kernel_profile *profiles,
                      size_t capacity) {
  if (!model->profile)
    return 0;
  size_t count = (size_t)model->desc->numKernels;
  if (!profiles || !capacity)
    return count;
  size_t step = profiles->size;
  for (size_t k = 0; k < count && k < capacity; ++k) {
    const heed_kernel_record *record = &model->profile[k];
    heed_kernel_profile whole = {
        step,          model->desc->kernels[k], record->calls, record->seconds,
        record->flops, record->bytes,           record->pairs};
    memcpy((char *)profiles + k * step, &whole,
           step < sizeof whole ? step : sizeof whole);
  }
  return count;
}

static void profileReset(heed_model *model) {
  if (model->profile)
    memset(model->profile, 0,
           (size_t)model->desc->numKernels * sizeof *model->profile);
}

static heed_status memory(const heed_model *model, heed_memory_use *use) {
  if (!model->ready)
    return HEED_ERROR_ARGUMENT;
  if (heed_mark_is_foreign(&model->mark))
    return HEED_ERROR_FORK;
  heed_weights_bytes weights = heed_bytes_of_weights(model->shared);
  heed_memory_use whole = {
      .size = use->size,
      .weights = weights.inPlace,
      .copies = weights.copies,
      .buffers = (int64_t)heed_pool_bytes((heed_pool *)&model->pool)};
  if (use->size < offsetof(heed_memory_use, buffers) + sizeof whole.buffers)
    return HEED_ERROR_VERSION;
  memcpy(use, &whole, use->size < sizeof whole ? use->size : sizeof whole);
  return HEED_OK;
}

/* ---- pools of threads ---- */

typedef struct poolLoop {
  void (*task)(void *argument, int32_t k);
  void *argument;
} poolLoop;

static int poolTask(void *context, int index, uint8_t *closure) {
  const poolLoop *loop = (const poolLoop *)closure;
  (void)context;
  loop->task(loop->argument, index);
  return 0;
}

/* For handles of other runtimes. */
static void threadsRun(void *user, int32_t count,
                       void (*task)(void *argument, int32_t k),
                       void *argument) {
  heed_team *team = ((heed_threads *)user)->team;
  poolLoop loop = {task, argument};
  heed_team_begin_call(team);
  heed_team_run(team, poolTask, NULL, 0, count, (uint8_t *)&loop);
  heed_team_end_call(team);
}

static int32_t threadsCount(const heed_threads *threads) {
  return heed_team_is_foreign(threads->team) ? 0
                                             : heed_team_size(threads->team);
}

const heed_runtime heed_own_runtime = {
    .size = sizeof(heed_runtime),
    .abiVersion = HEED_ABI_VERSION,
    .open = heed_open_model,
    .close = heed_close_model,
    .lastError = lastError,
    .numEntries = numEntries,
    .entrySignature = entrySignature,
    .findSignature = findSignature,
    .modelName = modelName,
    .numParams = numParams,
    .param = param,
    .targetName = heed_target_at,
    .openShared = heed_open_other,
    .outputShapes = heed_run_shapes,
    .run = heed_run_entry,
    .numThreads = numThreads,
    .target = target,
    .profile = profile,
    .profileReset = profileReset,
    .memory = memory,
    .threadsOpen = heed_open_threads,
    .threadsClose = heed_close_threads,
    .threadsRun = threadsRun,
    .threadsCount = threadsCount,
    .plan = heed_run_plan,
    .shapesIn = heed_run_shapes_in,
    .stateOpen = heed_open_state,
    .stateClose = heed_close_state,
    .stateReset = heed_reset_state,
    .stateCopy = heed_copy_state,
    .stateGet = heed_get_state,
    .stateSet = heed_set_state,
    .statePermute = heed_permute_state,
    .stateSave = heed_save_state,
    .stateLoad = heed_load_state,
    .stateBytes = heed_bytes_of_state,
    .stateError = heed_error_of_state,
    .samplerOpen = heed_open_sampler,
    .samplerClose = heed_close_sampler,
    .samplerBegin = heed_begin_row,
    .samplerSee = heed_see_tokens,
    .samplerStop = heed_stop_row,
    .samplerStopped = heed_row_stopped,
    .samplerRunning = heed_rows_running,
    .samplerChoose = heed_choose_tokens,
    .samplerError = heed_error_of_sampler,
    .generationOpen = heed_open_generation,
    .generationClose = heed_close_generation,
    .generationStep = heed_step_generation,
    .generationRun = heed_run_generation,
    .generationTokens = heed_tokens_of_generation,
    .generationError = heed_error_of_generation,
    .stateTrim = heed_trim_state,
    .planIn = heed_run_plan_in,
    .savePacked = heed_packed_save};
