/* Opening, asking, running and closing a model. */
#include "runtime/Model.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HEED_TEXT_(x) #x
#define HEED_TEXT(x) HEED_TEXT_(x)

const char *heed_version(void) {
  return HEED_TEXT(HEED_VERSION_MAJOR) "." HEED_TEXT(
      HEED_VERSION_MINOR) "." HEED_TEXT(HEED_VERSION_PATCH);
}

const char *heed_status_name(heed_status status) {
  switch (status) {
  case HEED_OK:
    return "ok";
  case HEED_ERROR_ARGUMENT:
    return "argument";
  case HEED_ERROR_SHAPE:
    return "shape";
  case HEED_ERROR_TYPE:
    return "type";
  case HEED_ERROR_RANGE:
    return "range";
  case HEED_ERROR_MEMORY:
    return "memory";
  case HEED_ERROR_FILE:
    return "file";
  case HEED_ERROR_WEIGHTS:
    return "weights";
  case HEED_ERROR_CPU:
    return "cpu";
  case HEED_ERROR_INTERNAL:
    return "internal";
  case HEED_ERROR_BUSY:
    return "busy";
  }
  return "unknown";
}

double heed_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

heed_status heed_fail(heed_model *model, heed_status status, const char *format,
                      ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(model->message, sizeof model->message, format, arguments);
  va_end(arguments);
  heed_io_clean(model->message);
  model->status = status;
  return status;
}

void heed_unwind(heed_model *model, heed_status status, const char *format,
                 ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(model->message, sizeof model->message, format, arguments);
  va_end(arguments);
  heed_io_clean(model->message);
  model->status = status;
  longjmp(model->unwind, 1);
}

/* ---- calls into compiled code ---- */

typedef struct call {
  const heed_buffer *in;
  heed_buffer *out;
} call;

/* The only place that compiled code is entered from, and where a failure inside
 * it comes out. */
static heed_status enter(heed_model *model,
                         int32_t (*function)(heed_model *, const heed_buffer *,
                                             heed_buffer *),
                         int32_t (*init)(heed_model *), call arguments) {
  model->status = HEED_OK;
  model->message[0] = 0;
  model->kernelMessage[0] = 0;
  heed_status status;
  heed_pool_begin_call(&model->pool);
  if (setjmp(model->unwind) == 0) {
    int32_t result =
        init ? init(model) : function(model, arguments.in, arguments.out);
    status = (heed_status)result;
    if (status && !model->message[0])
      heed_fail(model, status, "the model failed: %s",
                heed_status_name(status));
  } else {
    status = model->status;
  }
  heed_pool_end_call(&model->pool);
  return status;
}

/* ---- open and close ---- */

/* Storage for a default that stands in for an absent scalar. */
typedef union scalar {
  int64_t integer;
  float real;
  int32_t narrow;
  uint8_t byte;
} scalar;

/* Room for the buffers and defaults of the entry that has most. */
static size_t argumentBytes(const heed_model_desc *desc) {
  size_t most = 1;
  for (int32_t k = 0; k < desc->numEntries; ++k) {
    const heed_signature *entry = &desc->entries[k].signature;
    size_t bytes =
        (size_t)entry->numInputs * (sizeof(heed_buffer) + sizeof(scalar)) +
        (size_t)entry->numOutputs * sizeof(heed_buffer);
    most = bytes > most ? bytes : most;
  }
  return most;
}

/* What both ways of opening have in common. */
static heed_status prepare(heed_model *model, int32_t threads, bool profile) {
  if (threads < 0 || threads > 1 << 12)
    return heed_fail(model, HEED_ERROR_ARGUMENT,
                     "expected 0 to 4096 threads, found %d", threads);
  model->team = heed_team_open(threads ? threads : heed_available_threads());
  model->arguments = malloc(argumentBytes(model->desc));
  if (profile && model->desc->numKernels > 0)
    model->profile =
        calloc((size_t)model->desc->numKernels, sizeof *model->profile);
  if (!model->team || !model->arguments ||
      (profile && model->desc->numKernels > 0 && !model->profile))
    return heed_fail(model, HEED_ERROR_MEMORY, "no memory to open the model");
  return HEED_OK;
}

static heed_status openShared(heed_model *model, const heed_options *options) {
  const heed_model_desc *desc = model->desc;
  heed_shared *shared = model->shared = calloc(1, sizeof *shared);
  if (!shared)
    return heed_fail(model, HEED_ERROR_MEMORY, "no memory to open the model");
  atomic_init(&shared->handles, 1);
  shared->desc = desc;
  shared->kept = calloc((size_t)desc->numKept + 1, sizeof *shared->kept);
  if (!shared->kept)
    return heed_fail(model, HEED_ERROR_MEMORY, "no memory to open the model");
  heed_status status = heed_params_load(model, options);
  if (status || !desc->init)
    return status;
  model->inInit = true;
  status = enter(model, NULL, desc->init, (call){NULL, NULL});
  model->inInit = false;
  return status;
}

/* All zero; shelves of the pool have cache lines of their own. */
static heed_model *newModel(void) {
  heed_model *model = aligned_alloc(_Alignof(heed_model), sizeof *model);
  return model ? memset(model, 0, sizeof *model) : NULL;
}

heed_status heed_open(const heed_model_desc *desc, const heed_options *options,
                      heed_model **model) {
  static const heed_options defaults = {0};
  if (!model)
    return HEED_ERROR_ARGUMENT;
  *model = NULL;
  if (!desc)
    return HEED_ERROR_ARGUMENT;
  if (!options)
    options = &defaults;
  heed_model *opened = *model = newModel();
  if (!opened)
    return HEED_ERROR_MEMORY;
  opened->desc = desc;
  atomic_flag_clear(&opened->busy);
  pthread_mutex_init(&opened->messageLock, NULL);
  heed_pool_open(&opened->pool);
  if (desc->abiVersion != HEED_ABI_VERSION)
    return heed_fail(opened, HEED_ERROR_ARGUMENT,
                     "the model has ABI version %d, this runtime %d",
                     desc->abiVersion, HEED_ABI_VERSION);
  const char *target =
      options->target ? options->target : getenv("HEED_TARGET");
  heed_status status = heed_choose_target(opened, target);
  if (!status)
    status = prepare(opened, options->threads, options->profile != 0);
  if (!status)
    status = openShared(opened, options);
  opened->ready = status == HEED_OK;
  return status;
}

heed_status heed_open_shared(heed_model *model, int32_t threads,
                             heed_model **other) {
  if (!other)
    return HEED_ERROR_ARGUMENT;
  *other = NULL;
  if (!model || !model->ready)
    return HEED_ERROR_ARGUMENT;
  heed_model *opened = *other = newModel();
  if (!opened)
    return HEED_ERROR_MEMORY;
  opened->desc = model->desc;
  atomic_flag_clear(&opened->busy);
  opened->shared = model->shared;
  atomic_fetch_add(&model->shared->handles, 1);
  pthread_mutex_init(&opened->messageLock, NULL);
  heed_pool_open(&opened->pool);
  heed_status status =
      prepare(opened, threads ? threads : heed_num_threads(model),
              model->profile != NULL);
  opened->ready = status == HEED_OK;
  return status;
}

void heed_close(heed_model *model) {
  if (!model)
    return;
  heed_shared *shared = model->shared;
  if (shared && atomic_fetch_sub(&shared->handles, 1) == 1) {
    heed_params_release(shared);
    heed_arena_close(&shared->keptMemory);
    free(shared->kept);
    free(shared);
  }
  heed_team_close(model->team);
  heed_pool_close(&model->pool);
  pthread_mutex_destroy(&model->messageLock);
  free(model->profile);
  free(model->arguments);
  free(model);
}

/* ---- signatures ---- */

size_t heed_num_entries(const heed_model_desc *desc) {
  return desc ? (size_t)desc->numEntries : 0;
}

const heed_signature *heed_entry_signature(const heed_model_desc *desc,
                                           size_t entry) {
  return entry < heed_num_entries(desc) ? &desc->entries[entry].signature
                                        : NULL;
}

static const heed_entry_desc *findEntry(const heed_model_desc *desc,
                                        const char *name) {
  for (size_t k = 0; k < heed_num_entries(desc); ++k)
    if (!name || !strcmp(desc->entries[k].signature.entry, name))
      return &desc->entries[k];
  return NULL;
}

const heed_signature *heed_find_signature(const heed_model_desc *desc,
                                          const char *entry) {
  const heed_entry_desc *found = findEntry(desc, entry);
  return found ? &found->signature : NULL;
}

const char *heed_model_name(const heed_model_desc *desc) {
  return desc && desc->name ? desc->name : "";
}

size_t heed_num_params(const heed_model_desc *desc) {
  return desc ? (size_t)desc->numParams : 0;
}

const heed_param_info *heed_param(const heed_model_desc *desc, size_t param) {
  return param < heed_num_params(desc) ? &desc->params[param] : NULL;
}

/* ---- run ---- */

static heed_status checkBuffer(heed_model *model, const heed_tensor_info *info,
                               const heed_buffer *buffer, const char *kind) {
  if (buffer->type != info->type)
    return heed_fail(model, HEED_ERROR_TYPE,
                     "%s '%s': expected element type %s, found %s", kind,
                     info->name, heed_type_name(info->type),
                     heed_type_name(buffer->type));
  if (buffer->rank != info->rank)
    return heed_fail(model, HEED_ERROR_SHAPE,
                     "%s '%s': expected %d axes, found %d", kind, info->name,
                     info->rank, buffer->rank);
  /* Written only for a message: it takes longer than the checks. */
  char found[256];
  for (int32_t axis = 0; axis < info->rank; ++axis)
    if (buffer->shape[axis] < 0 ||
        (info->sizes[axis] >= 0 && info->sizes[axis] != buffer->shape[axis])) {
      heed_io_format_shape(found, sizeof found, buffer->rank, buffer->shape);
      return heed_fail(model, HEED_ERROR_SHAPE,
                       "%s '%s': expected extent %s on axis %d, found shape %s",
                       kind, info->name, info->extents[axis], axis, found);
    }
  for (int32_t axis = 0; axis < info->rank; ++axis)
    if (buffer->shape[axis] > HEED_MAX_EXTENT)
      return heed_fail(model, HEED_ERROR_SHAPE,
                       "%s '%s': extent %s on axis %d is %" PRId64
                       ", expected at most %d",
                       kind, info->name, info->extents[axis], axis,
                       buffer->shape[axis], HEED_MAX_EXTENT);
  int64_t bytes;
  if (!heed_io_byte_count(buffer->rank, buffer->shape,
                          (int64_t)heed_type_size(buffer->type), &bytes)) {
    heed_io_format_shape(found, sizeof found, buffer->rank, buffer->shape);
    return heed_fail(model, HEED_ERROR_MEMORY, "%s '%s': shape %s is too large",
                     kind, info->name, found);
  }
  return HEED_OK;
}

static void setDefault(const heed_tensor_info *info, scalar *value) {
  switch (info->type) {
  case HEED_F32:
    value->real = (float)info->defaultReal;
    break;
  case HEED_I32:
    value->narrow = (int32_t)info->defaultInteger;
    break;
  case HEED_I64:
    value->integer = info->defaultInteger;
    break;
  default:
    value->byte = (uint8_t)info->defaultInteger;
    break;
  }
}

static bool isEmpty(const heed_buffer *buffer) {
  for (int32_t axis = 0; axis < buffer->rank; ++axis)
    if (buffer->shape[axis] == 0)
      return true;
  return false;
}

/* Copies the caller's inputs to in[], defaults in place of absent scalars. */
static heed_status gatherInputs(heed_model *model, const heed_signature *entry,
                                const heed_buffer *inputs, bool needData,
                                heed_buffer *in, scalar *defaults) {
  for (int32_t k = 0; k < entry->numInputs; ++k) {
    const heed_tensor_info *info = &entry->inputs[k];
    in[k] = inputs[k];
    if (!in[k].data && info->isScalar && info->hasDefault) {
      setDefault(info, &defaults[k]);
      in[k].data = &defaults[k];
      in[k].type = info->type;
      in[k].rank = 0;
    }
    heed_status status = checkBuffer(model, info, &in[k], "input");
    if (status)
      return status;
    size_t size = heed_type_size(info->type);
    if ((needData || info->isScalar) && !in[k].data && !isEmpty(&in[k]))
      return heed_fail(model, HEED_ERROR_ARGUMENT, "input '%s' has no data",
                       info->name);
    if ((uintptr_t)in[k].data % size)
      return heed_fail(model, HEED_ERROR_ARGUMENT,
                       "input '%s' is not aligned to its elements of %zu bytes",
                       info->name, size);
  }
  return HEED_OK;
}

static bool overlap(const heed_buffer *a, const heed_buffer *b) {
  int64_t bytesA = 0, bytesB = 0;
  heed_io_byte_count(a->rank, a->shape, (int64_t)heed_type_size(a->type),
                     &bytesA);
  heed_io_byte_count(b->rank, b->shape, (int64_t)heed_type_size(b->type),
                     &bytesB);
  uintptr_t beginA = (uintptr_t)a->data, beginB = (uintptr_t)b->data;
  return bytesA > 0 && bytesB > 0 && beginA < beginB + (uint64_t)bytesB &&
         beginB < beginA + (uint64_t)bytesA;
}

static heed_status checkOverlap(heed_model *model, const heed_signature *entry,
                                const heed_buffer *in,
                                const heed_buffer *outputs) {
  for (int32_t k = 0; k < entry->numOutputs; ++k) {
    const char *other = NULL;
    for (int32_t j = 0; j < entry->numInputs && !other; ++j)
      if (overlap(&outputs[k], &in[j]))
        other = entry->inputs[j].name;
    for (int32_t j = 0; j < k && !other; ++j)
      if (overlap(&outputs[k], &outputs[j]))
        other = entry->outputs[j].name;
    if (other)
      return heed_fail(model, HEED_ERROR_ARGUMENT,
                       "output '%s' overlaps the memory of '%s'",
                       entry->outputs[k].name, other);
  }
  return HEED_OK;
}

static heed_status checkOutputs(heed_model *model, const heed_signature *entry,
                                const heed_buffer *outputs,
                                const heed_buffer *wanted) {
  for (int32_t k = 0; k < entry->numOutputs; ++k) {
    const heed_tensor_info *info = &entry->outputs[k];
    heed_status status = checkBuffer(model, info, &outputs[k], "output");
    if (status)
      return status;
    if (memcmp(outputs[k].shape, wanted[k].shape,
               (size_t)info->rank * sizeof(int64_t)) != 0) {
      char expected[256], found[256];
      heed_io_format_shape(expected, sizeof expected, info->rank,
                           wanted[k].shape);
      heed_io_format_shape(found, sizeof found, info->rank, outputs[k].shape);
      return heed_fail(model, HEED_ERROR_SHAPE,
                       "output '%s': expected shape %s, found %s", info->name,
                       expected, found);
    }
    size_t size = heed_type_size(info->type);
    if ((!outputs[k].data && !isEmpty(&outputs[k])) ||
        (uintptr_t)outputs[k].data % size)
      return heed_fail(model, HEED_ERROR_ARGUMENT,
                       "output '%s' has no data, or data that are not aligned "
                       "to elements of %zu bytes",
                       info->name, size);
  }
  return HEED_OK;
}

static heed_status runFree(heed_model *model, const char *name, bool compute,
                           const heed_buffer *inputs, size_t numInputs,
                           heed_buffer *outputs, size_t numOutputs) {
  if (!model->ready)
    return heed_fail(model, HEED_ERROR_ARGUMENT, "the model did not open");
  const heed_entry_desc *entry = findEntry(model->desc, name);
  if (!entry)
    return heed_fail(model, HEED_ERROR_ARGUMENT, "there is no entry '%s'",
                     name ? name : "");
  const heed_signature *signature = &entry->signature;
  if (numInputs != (size_t)signature->numInputs ||
      numOutputs != (size_t)signature->numOutputs || (numInputs && !inputs) ||
      (numOutputs && !outputs))
    return heed_fail(model, HEED_ERROR_ARGUMENT,
                     "entry '%s' has %d inputs and %d outputs, found %zu and "
                     "%zu",
                     signature->entry, signature->numInputs,
                     signature->numOutputs, numInputs, numOutputs);
  heed_buffer *in = model->arguments, *wanted = in + numInputs;
  scalar *defaults = (scalar *)(wanted + numOutputs);
  if (numOutputs)
    memset(wanted, 0, numOutputs * sizeof *wanted);
  heed_status status =
      gatherInputs(model, signature, inputs, compute, in, defaults);
  if (!status) {
    for (int32_t k = 0; k < signature->numOutputs; ++k) {
      wanted[k].type = signature->outputs[k].type;
      wanted[k].rank = signature->outputs[k].rank;
    }
    status = enter(model, entry->shapes, NULL, (call){in, wanted});
  }
  if (!status && !compute)
    for (size_t k = 0; k < numOutputs; ++k) {
      void *data = outputs[k].data;
      outputs[k] = wanted[k];
      outputs[k].data = data;
    }
  if (!status && compute)
    status = checkOutputs(model, signature, outputs, wanted);
  if (!status && compute)
    status = checkOverlap(model, signature, in, outputs);
  if (!status && compute)
    status = enter(model, entry->run, NULL, (call){in, outputs});
  return status;
}

static heed_status runEntry(heed_model *model, const char *name, bool compute,
                            const heed_buffer *inputs, size_t numInputs,
                            heed_buffer *outputs, size_t numOutputs) {
  if (!model)
    return HEED_ERROR_ARGUMENT;
  if (atomic_flag_test_and_set(&model->busy))
    return HEED_ERROR_BUSY;
  heed_status status =
      runFree(model, name, compute, inputs, numInputs, outputs, numOutputs);
  atomic_flag_clear(&model->busy);
  return status;
}

heed_status heed_output_shapes(heed_model *model, const char *entry,
                               const heed_buffer *inputs, size_t numInputs,
                               heed_buffer *outputs, size_t numOutputs) {
  return runEntry(model, entry, false, inputs, numInputs, outputs, numOutputs);
}

heed_status heed_run(heed_model *model, const char *entry,
                     const heed_buffer *inputs, size_t numInputs,
                     heed_buffer *outputs, size_t numOutputs) {
  return runEntry(model, entry, true, inputs, numInputs, outputs, numOutputs);
}

const char *heed_last_error(const heed_model *model) {
  return model ? model->message : "";
}

int32_t heed_num_threads(const heed_model *model) {
  return model && model->team ? heed_team_size(model->team) : 0;
}

const char *heed_target(const heed_model *model) {
  return model && model->ready && model->desc->target ? model->desc->target
                                                      : "";
}

/* ---- profiles ---- */

size_t heed_profile(const heed_model *model, heed_kernel_profile *profiles,
                    size_t capacity) {
  if (!model || !model->profile)
    return 0;
  size_t count = (size_t)model->desc->numKernels;
  for (size_t k = 0; profiles && k < count && k < capacity; ++k) {
    const heed_kernel_record *record = &model->profile[k];
    profiles[k] =
        (heed_kernel_profile){model->desc->kernels[k], record->calls,
                              record->seconds, record->flops, record->bytes};
  }
  return count;
}

void heed_profile_reset(heed_model *model) {
  if (model && model->profile)
    memset(model->profile, 0,
           (size_t)model->desc->numKernels * sizeof *model->profile);
}

heed_memory_use heed_memory(const heed_model *model) {
  if (!model || !model->ready)
    return (heed_memory_use){0, 0, 0};
  const heed_shared *shared = model->shared;
  return (heed_memory_use){
      .weights = heed_params_bytes(shared, /*owned=*/false),
      .copies = heed_params_bytes(shared, /*owned=*/true) + shared->keptBytes,
      .buffers = (int64_t)heed_pool_bytes((heed_pool *)&model->pool)};
}
