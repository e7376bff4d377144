/* Opening and closing handles, and teams of threads that they share. */
#include "runtime/Model.h"

#include <stdlib.h>
#include <string.h>

/* All zero; shelves of the pool have cache lines of their own. */
static heed_model *newModel(const heed_model_desc *desc) {
  heed_model *model = aligned_alloc(_Alignof(heed_model), sizeof *model);
  if (!model)
    return NULL;
  memset(model, 0, sizeof *model);
  model->object.runtime = &heed_own_runtime;
  model->desc = desc;
  atomic_flag_clear(&model->busy);
  pthread_mutex_init(&model->messageLock, NULL);
  heed_pool_open(&model->pool, NULL);
  heed_mark_open(&model->mark);
  return model;
}

__attribute__((noinline)) static heed_status noMemory(heed_model *model) {
  return heed_fail(model, HEED_ERROR_MEMORY, "no memory to open the model");
}

/* What both ways of opening have in common: memory of the handle's own. */
static heed_status prepare(heed_model *model, bool profile) {
  model->pool.heap = &model->shared->heap;
  model->arguments = malloc(heed_run_bytes(model->desc));
  if (profile && model->desc->numKernels > 0)
    model->profile =
        calloc((size_t)model->desc->numKernels, sizeof *model->profile);
  if (!model->arguments ||
      (profile && model->desc->numKernels > 0 && !model->profile))
    return noMemory(model);
  return HEED_OK;
}

/* ---- threads ---- */

static heed_status startThreads(heed_model *model, int32_t threads,
                                int32_t wait) {
  if (threads < 0 || threads > 1 << 12)
    return heed_fail(model, HEED_ERROR_ARGUMENT,
                     "expected 0 to 4096 threads, found %d", threads);
  if (wait != HEED_WAIT_SLEEP && wait != HEED_WAIT_WATCH)
    return heed_fail(model, HEED_ERROR_ARGUMENT,
                     "options.wait: expected HEED_WAIT_SLEEP or "
                     "HEED_WAIT_WATCH, found %d",
                     wait);
  model->threads = threads ? threads : heed_available_threads();
  model->wait = wait;
  if (model->parallelFor)
    return HEED_OK;
  model->team = heed_team_open(model->threads, wait == HEED_WAIT_WATCH);
  model->ownsTeam = true;
  return model->team ? HEED_OK : noMemory(model);
}

/* The threads of a pool: a team of this runtime, or through its function one of
 * another. */
static heed_status usePool(heed_model *model, heed_threads *pool) {
  const heed_runtime *runtime = pool->object.runtime;
  if (runtime->abiVersion != HEED_ABI_VERSION)
    return heed_fail(model, HEED_ERROR_VERSION,
                     "options.pool has ABI version %lld, this library %d",
                     (long long)runtime->abiVersion, HEED_ABI_VERSION);
  model->threads = runtime->threadsCount(pool);
  if (!model->threads)
    return heed_fail(model, HEED_ERROR_FORK,
                     "options.pool belongs to the process that this one is a "
                     "fork of");
  if (runtime == &heed_own_runtime) {
    model->team = pool->team;
  } else {
    model->parallelFor = runtime->threadsRun;
    model->parallelForUser = pool;
  }
  return HEED_OK;
}

static heed_status chooseThreads(heed_model *model,
                                 const heed_options *options) {
  if (options->pool && options->parallelFor)
    return heed_fail(model, HEED_ERROR_ARGUMENT,
                     "expected options.pool or options.parallelFor, found "
                     "both");
  if (options->pool)
    return usePool(model, options->pool);
  model->parallelFor = options->parallelFor;
  model->parallelForUser = options->parallelForUser;
  return startThreads(model, options->threads, options->wait);
}

heed_threads *heed_open_threads(int32_t threads, int32_t wait) {
  if (threads < 0 || threads > 1 << 12 ||
      (wait != HEED_WAIT_SLEEP && wait != HEED_WAIT_WATCH))
    return NULL;
  heed_threads *opened = calloc(1, sizeof *opened);
  heed_team *team = heed_team_open(threads ? threads : heed_available_threads(),
                                   wait == HEED_WAIT_WATCH);
  if (!opened || !team) {
    heed_team_close(team);
    free(opened);
    return NULL;
  }
  opened->object.runtime = &heed_own_runtime;
  opened->team = team;
  return opened;
}

void heed_close_threads(heed_threads *threads) {
  heed_team_close(threads->team);
  free(threads);
}

/* ---- open ---- */

static heed_status useAllocator(heed_model *model,
                                const heed_options *options) {
  heed_heap *heap = &model->shared->heap;
  const heed_allocator *allocator = options->allocator;
  if (options->memoryLimit < 0)
    return heed_fail(model, HEED_ERROR_ARGUMENT,
                     "options.memoryLimit: expected a number of bytes, found "
                     "%lld",
                     (long long)options->memoryLimit);
  heap->limit = options->memoryLimit;
  if (!allocator)
    return HEED_OK;
  if (allocator->size < sizeof *allocator)
    return heed_fail(model, HEED_ERROR_VERSION,
                     "options.allocator: a struct of %zu bytes, expected %zu",
                     allocator->size, sizeof *allocator);
  if (!allocator->allocate || !allocator->release)
    return heed_fail(model, HEED_ERROR_ARGUMENT,
                     "options.allocator: expected both functions");
  heap->allocator = *allocator;
  return HEED_OK;
}

static heed_status loadAndPack(heed_model *model, const heed_options *options) {
  heed_status status = heed_params_load(model, options);
  if (!status)
    status = heed_run_init(model);
  if (!status)
    heed_params_opened(model->shared);
  return status;
}

static heed_status openShared(heed_model *model, const heed_options *options) {
  const heed_model_desc *desc = model->desc;
  heed_shared *shared = model->shared = calloc(1, sizeof *shared);
  if (!shared)
    return noMemory(model);
  atomic_init(&shared->handles, 1);
  shared->desc = desc;
  shared->device = model->device;
  shared->keptMemory.heap = &shared->heap;
  shared->kept = calloc((size_t)desc->numKept + 1, sizeof *shared->kept);
  if (!shared->kept)
    return noMemory(model);
  heed_status status = useAllocator(model, options);
  if (!status)
    status = chooseThreads(model, options);
  if (!status)
    status = prepare(model, options->profile != 0);
  if (!status)
    status = options->packed ? heed_packed_open(model, options)
                             : loadAndPack(model, options);
  return status;
}

/* The caller's options as this version's, what it does not know as 0. */
static heed_status readOptions(heed_model *model, int32_t callersVersion,
                               const heed_options *given,
                               heed_options *options) {
  *options = (heed_options){.size = sizeof *options};
  if (callersVersion != HEED_ABI_VERSION)
    return heed_fail(model, HEED_ERROR_VERSION,
                     "the caller was compiled with a heed.h of ABI version %d, "
                     "this library has version %d",
                     callersVersion, HEED_ABI_VERSION);
  if (!given)
    return HEED_OK;
  if (!heed_is_readable(given, given->size, HEED_LEAST_OPTIONS,
                        sizeof *options))
    return heed_fail(model, HEED_ERROR_VERSION,
                     "options of %zu bytes, or with fields that this library "
                     "does not know: expected options.size = "
                     "sizeof(heed_options), %zu here",
                     given->size, sizeof *options);
  memcpy(options, given,
         given->size < sizeof *options ? given->size : sizeof *options);
  return HEED_OK;
}

heed_status heed_open_model(int32_t callersVersion, const heed_model_desc *desc,
                            const heed_options *given, heed_model **model) {
  heed_model *opened = *model = newModel(desc);
  if (!opened)
    return HEED_ERROR_MEMORY;
  heed_options options;
  heed_status status = readOptions(opened, callersVersion, given, &options);
  if (status)
    return status;
  opened->log = options.log;
  opened->logUser = options.logUser;
  if (desc->abiVersion != HEED_ABI_VERSION)
    return heed_fail(opened, HEED_ERROR_VERSION,
                     "the model has ABI version %d, its runtime %d",
                     desc->abiVersion, HEED_ABI_VERSION);
  opened->deviceNumber = options.device;
  opened->deviceContext = options.context;
  const char *target = options.target ? options.target : getenv("HEED_TARGET");
  status = heed_choose_target(opened, target);
  if (!status) {
    uint64_t mode = heed_float_mode_enter();
    status = openShared(opened, &options);
    heed_float_mode_leave(mode);
  }
  opened->ready = status == HEED_OK;
  if (!opened->ready)
    return status;
  heed_weights_bytes weights = heed_bytes_of_weights(opened->shared);
  heed_say(opened, HEED_LOG_INFO,
           "model '%s' opened: target %s, %d threads, %lld bytes of weights "
           "in place, %lld of copies",
           desc->name, opened->desc->target ? opened->desc->target : "-",
           opened->threads, (long long)weights.inPlace,
           (long long)weights.copies);
  return status;
}

heed_status heed_open_other(heed_model *model, int32_t threads,
                            heed_model **other) {
  if (!model->ready)
    return HEED_ERROR_ARGUMENT;
  if (heed_mark_is_foreign(&model->mark))
    return HEED_ERROR_FORK;
  heed_model *opened = *other = newModel(model->desc);
  if (!opened)
    return HEED_ERROR_MEMORY;
  opened->shared = model->shared;
  opened->device = model->device;
  memcpy(opened->deviceText, model->deviceText, sizeof opened->deviceText);
  atomic_fetch_add(&model->shared->handles, 1);
  opened->log = model->log;
  opened->logUser = model->logUser;
  opened->parallelFor = model->parallelFor;
  opened->parallelForUser = model->parallelForUser;
  heed_status status = HEED_OK;
  if (model->ownsTeam || model->parallelFor) {
    status =
        startThreads(opened, threads ? threads : model->threads, model->wait);
  } else {
    opened->team = model->team;
    opened->threads = model->threads;
  }
  if (!status)
    status = prepare(opened, model->profile != NULL);
  opened->ready = status == HEED_OK;
  return status;
}

__attribute__((noinline)) void heed_release_shared(heed_shared *shared) {
  if (!shared || atomic_fetch_sub(&shared->handles, 1) != 1)
    return;
  heed_params_release(shared);
  heed_arena_close(&shared->keptMemory);
  if (shared->device)
    shared->desc->gpu->close(shared->device);
  free(shared->kept);
  heed_bytes_release(&shared->packed);
  free(shared);
}

void heed_close_model(heed_model *model) {
  bool isForeign = heed_mark_is_foreign(&model->mark);
  if (model->ownsTeam)
    heed_team_close(model->team);
  heed_pool_close(&model->pool);
  if (model->device)
    model->desc->gpu->closeModel(model);
  heed_release_shared(model->shared);
  free(model->journal.data);
  if (!isForeign)
    pthread_mutex_destroy(&model->messageLock);
  heed_mark_close(&model->mark);
  free(model->profile);
  free(model->arguments);
  free(model);
}
