/* A call of an entry: the caller's buffers are checked and become the arguments
 * of compiled code, which is entered here alone. */
#include "runtime/Model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the caller's structs ---- */

bool heed_is_readable(const void *record, size_t size, size_t least,
                      size_t known) {
  if (size < least)
    return false;
  /* A size of nobody's making must not lead far astray. */
  if (size > known + 4096)
    return false;
  for (size_t k = known; k < size; ++k)
    if (((const char *)record)[k])
      return false;
  return true;
}

static const heed_buffer *at(const heed_buffer *buffers, size_t k) {
  return (const heed_buffer *)((const char *)buffers + k * buffers->size);
}

static heed_status checkSize(heed_model *model, const heed_buffer *buffers,
                             size_t k, const char *kind) {
  size_t size = at(buffers, k)->size;
  if (size == buffers->size &&
      heed_is_readable(at(buffers, k), size, HEED_LEAST_BUFFER,
                       sizeof(heed_buffer)))
    return HEED_OK;
  return heed_fail(model, HEED_ERROR_VERSION,
                   "%s %zu: a heed_buffer of %zu bytes, or with fields that "
                   "this library does not know: expected size = "
                   "sizeof(heed_buffer) in each, %zu here",
                   kind, k, size, sizeof(heed_buffer));
}

/* ---- buffers ---- */

/* Storage for a default that stands in for an absent scalar. */
typedef union scalar {
  int64_t integer;
  float real;
  int32_t narrow;
  uint8_t byte;
} scalar;

/* Where a buffer's elements are. */
typedef struct place {
  char *first;
  uintptr_t begin, end;
  const int64_t *strides; /* null: they lie dense */
} place;

/* One call: rows of the handle's `arguments`, one element an input or output.
 */
typedef struct frame {
  const heed_signature *signature;
  heed_argument *in, *out;
  place *inPlaces, *outPlaces;
  scalar *defaults;
} frame;

size_t heed_run_bytes(const heed_model_desc *desc) {
  size_t most = 1;
  for (int32_t k = 0; k < desc->numEntries; ++k) {
    const heed_signature *entry = &desc->entries[k].signature;
    size_t inputs = (size_t)entry->numInputs,
           outputs = (size_t)entry->numOutputs;
    size_t bytes =
        (inputs + outputs) * (sizeof(heed_argument) + sizeof(place)) +
        inputs * sizeof(scalar);
    most = bytes > most ? bytes : most;
  }
  return most;
}

static frame frameOf(const heed_model *model, const heed_signature *signature) {
  frame f = {.signature = signature, .in = model->arguments};
  f.out = f.in + signature->numInputs;
  f.inPlaces = (place *)(f.out + signature->numOutputs);
  f.outPlaces = f.inPlaces + signature->numInputs;
  f.defaults = (scalar *)(f.outPlaces + signature->numOutputs);
  return f;
}

static heed_status checkShape(heed_model *model, const heed_tensor_info *info,
                              const heed_buffer *buffer, const char *kind) {
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

static heed_status checkBuffer(heed_model *model, const heed_tensor_info *info,
                               const heed_buffer *buffer, const char *kind) {
  if (buffer->deviceType != 0 && buffer->deviceType != HEED_DEVICE_CPU)
    return heed_fail(model, HEED_ERROR_DEVICE,
                     "%s '%s': expected memory of the CPU (device type %d), "
                     "found device type %d",
                     kind, info->name, HEED_DEVICE_CPU, buffer->deviceType);
  if (buffer->deviceNumber != 0)
    return heed_fail(model, HEED_ERROR_DEVICE,
                     "%s '%s': expected device number 0, found %d", kind,
                     info->name, buffer->deviceNumber);
  if (buffer->type != info->type)
    return heed_fail(model, HEED_ERROR_TYPE,
                     "%s '%s': expected element type %s, found %s", kind,
                     info->name, heed_type_name(info->type),
                     heed_type_name(buffer->type));
  if (buffer->rank != info->rank)
    return heed_fail(model, HEED_ERROR_SHAPE,
                     "%s '%s': expected %d axes, found %d", kind, info->name,
                     info->rank, buffer->rank);
  return checkShape(model, info, buffer, kind);
}

/* Finds the elements of a buffer that has been checked. */
static heed_status locate(heed_model *model, const heed_tensor_info *info,
                          const heed_buffer *buffer, const char *kind,
                          place *where) {
  size_t size = heed_type_size(info->type);
  where->first =
      buffer->data ? (char *)buffer->data + buffer->byteOffset : NULL;
  where->strides =
      heed_strides_are_dense(buffer->rank, buffer->shape, buffer->strides)
          ? NULL
          : buffer->strides;
  int64_t begin, end;
  if (!heed_strides_range(buffer->rank, buffer->shape, where->strides, size,
                          &begin, &end))
    return heed_fail(model, HEED_ERROR_MEMORY,
                     "%s '%s': its strides lead beyond what can be addressed",
                     kind, info->name);
  where->begin = (uintptr_t)where->first + (uintptr_t)begin;
  where->end = (uintptr_t)where->first + (uintptr_t)end;
  if ((uintptr_t)where->first % size)
    return heed_fail(model, HEED_ERROR_ARGUMENT,
                     "%s '%s' is not aligned to its elements of %zu bytes",
                     kind, info->name, size);
  return HEED_OK;
}

static bool isEmpty(const heed_buffer *buffer) {
  for (int32_t axis = 0; axis < buffer->rank; ++axis)
    if (buffer->shape[axis] == 0)
      return true;
  return false;
}

static void setArgument(heed_argument *argument, const heed_buffer *buffer,
                        void *data) {
  argument->data = data;
  argument->type = buffer->type;
  argument->rank = buffer->rank;
  memcpy(argument->shape, buffer->shape,
         (size_t)buffer->rank * sizeof *argument->shape);
}

/* ---- inputs ---- */

static void setDefault(const heed_tensor_info *info, scalar *value,
                       heed_argument *argument) {
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
  argument->data = value;
  argument->type = info->type;
  argument->rank = 0;
}

static heed_status takeInputs(heed_model *model, const frame *f,
                              const heed_buffer *inputs, bool needData) {
  for (int32_t k = 0; k < f->signature->numInputs; ++k) {
    const heed_tensor_info *info = f->signature->inputs[k];
    heed_status status = checkSize(model, inputs, (size_t)k, "input");
    if (status)
      return status;
    const heed_buffer *buffer = at(inputs, (size_t)k);
    if (!buffer->data && info->isScalar && info->hasDefault) {
      f->inPlaces[k] = (place){NULL, 0, 0, NULL};
      setDefault(info, &f->defaults[k], &f->in[k]);
      continue;
    }
    status = checkBuffer(model, info, buffer, "input");
    if (!status)
      status = locate(model, info, buffer, "input", &f->inPlaces[k]);
    if (status)
      return status;
    if ((needData || info->isScalar) && !buffer->data && !isEmpty(buffer))
      return heed_fail(model, HEED_ERROR_ARGUMENT, "input '%s' has no data",
                       info->name);
    setArgument(&f->in[k], buffer, f->inPlaces[k].first);
  }
  return HEED_OK;
}

/* ---- outputs ---- */

static heed_status takeOutputs(heed_model *model, const frame *f,
                               const heed_buffer *outputs) {
  for (int32_t k = 0; k < f->signature->numOutputs; ++k) {
    const heed_tensor_info *info = f->signature->outputs[k];
    heed_status status = checkSize(model, outputs, (size_t)k, "output");
    const heed_buffer *buffer = at(outputs, (size_t)k);
    if (!status)
      status = checkBuffer(model, info, buffer, "output");
    if (status)
      return status;
    if (memcmp(buffer->shape, f->out[k].shape,
               (size_t)info->rank * sizeof(int64_t)) != 0) {
      char expected[256], found[256];
      heed_io_format_shape(expected, sizeof expected, info->rank,
                           f->out[k].shape);
      heed_io_format_shape(found, sizeof found, info->rank, buffer->shape);
      return heed_fail(model, HEED_ERROR_SHAPE,
                       "output '%s': expected shape %s, found %s", info->name,
                       expected, found);
    }
    if (!buffer->data && !isEmpty(buffer))
      return heed_fail(model, HEED_ERROR_ARGUMENT, "output '%s' has no data",
                       info->name);
    status = locate(model, info, buffer, "output", &f->outPlaces[k]);
    if (!status && !heed_strides_are_distinct(buffer->rank, buffer->shape,
                                              f->outPlaces[k].strides))
      status = heed_fail(model, HEED_ERROR_ARGUMENT,
                         "output '%s': with its strides elements may share "
                         "memory",
                         info->name);
    if (status)
      return status;
    f->out[k].data = f->outPlaces[k].first;
  }
  return HEED_OK;
}

static bool overlap(const place *a, const place *b) {
  return a->begin < b->end && b->begin < a->end && a->begin < a->end &&
         b->begin < b->end;
}

static heed_status checkOverlap(heed_model *model, const frame *f) {
  const heed_signature *signature = f->signature;
  for (int32_t k = 0; k < signature->numOutputs; ++k) {
    const char *other = NULL;
    for (int32_t j = 0; j < signature->numInputs && !other; ++j)
      if (overlap(&f->outPlaces[k], &f->inPlaces[j]))
        other = signature->inputs[j]->name;
    for (int32_t j = 0; j < k && !other; ++j)
      if (overlap(&f->outPlaces[k], &f->outPlaces[j]))
        other = signature->outputs[j]->name;
    if (other)
      return heed_fail(model, HEED_ERROR_ARGUMENT,
                       "output '%s' overlaps the memory of '%s'",
                       signature->outputs[k]->name, other);
  }
  return HEED_OK;
}

static void tellShapes(const frame *f, heed_buffer *outputs) {
  for (int32_t k = 0; k < f->signature->numOutputs; ++k) {
    heed_buffer *output = (heed_buffer *)(uintptr_t)at(outputs, (size_t)k);
    output->type = f->out[k].type;
    output->rank = f->out[k].rank;
    output->deviceType = HEED_DEVICE_CPU;
    output->deviceNumber = 0;
    memcpy(output->shape, f->out[k].shape, sizeof output->shape);
  }
}

/* ---- dense memory for kernels ---- */

static heed_status makeDense(heed_model *model, heed_argument *argument,
                             const char *kind, const char *name) {
  int64_t bytes = 0;
  heed_io_byte_count(argument->rank, argument->shape,
                     (int64_t)heed_type_size(argument->type), &bytes);
  argument->data = heed_pool_take(&model->pool, (size_t)bytes);
  return argument->data
             ? HEED_OK
             : heed_fail(model, HEED_ERROR_MEMORY,
                         "no memory for a dense copy of %s '%s'", kind, name);
}

static heed_status gather(heed_model *model, const frame *f) {
  heed_status status = HEED_OK;
  for (int32_t k = 0; k < f->signature->numInputs && !status; ++k) {
    const place *from = &f->inPlaces[k];
    heed_argument *to = &f->in[k];
    if (!from->strides)
      continue;
    status = makeDense(model, to, "input", f->signature->inputs[k]->name);
    if (!status)
      heed_strides_gather(to->data, from->first, to->rank, to->shape,
                          from->strides, heed_type_size(to->type));
  }
  for (int32_t k = 0; k < f->signature->numOutputs && !status; ++k)
    if (f->outPlaces[k].strides)
      status = makeDense(model, &f->out[k], "output",
                         f->signature->outputs[k]->name);
  return status;
}

static void scatter(const frame *f) {
  for (int32_t k = 0; k < f->signature->numOutputs; ++k) {
    const place *to = &f->outPlaces[k];
    const heed_argument *from = &f->out[k];
    if (to->strides)
      heed_strides_scatter(to->first, from->data, from->rank, from->shape,
                           to->strides, heed_type_size(from->type));
  }
}

/* ---- calls into compiled code ---- */

typedef int32_t (*function)(heed_model *, const heed_argument *,
                            heed_argument *);

/* The only place that compiled code is entered from, and where a failure inside
 * it comes out. */
static heed_status enter(heed_model *model, function run,
                         int32_t (*init)(heed_model *), const frame *f) {
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
  if (!model->desc->init)
    return HEED_OK;
  begin(model, NULL);
  model->inInit = true;
  heed_status status = enter(model, NULL, model->desc->init, NULL);
  model->inInit = false;
  end(model);
  return status;
}

/* The run itself, after the shapes of the outputs are known. */
static heed_status compute(heed_model *model, const heed_entry_desc *entry,
                           const frame *f, const heed_buffer *outputs) {
  heed_status status = takeOutputs(model, f, outputs);
  if (!status)
    status = checkOverlap(model, f);
  if (!status)
    status = gather(model, f);
  if (!status)
    status = enter(model, entry->run, NULL, f);
  if (!status)
    scatter(f);
  return status;
}

static heed_status runFree(heed_model *model, const char *name, bool computes,
                           const heed_buffer *inputs, size_t numInputs,
                           heed_buffer *outputs, size_t numOutputs) {
  const heed_entry_desc *entry = heed_find_entry(model->desc, name);
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
  frame f = frameOf(model, signature);
  heed_status status = takeInputs(model, &f, inputs, computes);
  for (size_t k = 0; k < numOutputs && !status; ++k) {
    status = checkSize(model, outputs, k, "output");
    memset(&f.out[k], 0, sizeof f.out[k]);
    f.out[k].type = signature->outputs[k]->type;
    f.out[k].rank = signature->outputs[k]->rank;
  }
  if (!status)
    status = enter(model, entry->shapes, NULL, &f);
  if (!status && computes)
    status = compute(model, entry, &f, outputs);
  else if (!status)
    tellShapes(&f, outputs);
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
  if (call->state)
    return heed_fail(model, HEED_ERROR_ARGUMENT,
                     "call.state: expected null: the model has no state");
  if (call->stream)
    return heed_fail(model, HEED_ERROR_DEVICE,
                     "call.stream: expected null: the model runs on the CPU");
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
  uint64_t mode = heed_float_mode_enter();
  begin(model, call);
  status =
      runFree(model, entry, computes, inputs, numInputs, outputs, numOutputs);
  end(model);
  heed_float_mode_leave(mode);
  return status;
}

static heed_status runEntry(heed_model *model, const char *entry, bool computes,
                            const heed_buffer *inputs, size_t numInputs,
                            heed_buffer *outputs, size_t numOutputs,
                            const heed_call *call) {
  /* Before all else: in a child of fork another thread's call never ends. */
  if (heed_mark_is_foreign(&model->mark))
    return heed_fail(model, HEED_ERROR_FORK,
                     "the handle belongs to the process that this one is a "
                     "fork of: open the model again");
  if (atomic_flag_test_and_set(&model->busy))
    return HEED_ERROR_BUSY;
  heed_status status = runChecked(model, entry, computes, inputs, numInputs,
                                  outputs, numOutputs, call);
  atomic_flag_clear(&model->busy);
  return status;
}

heed_status heed_run_shapes(heed_model *model, const char *entry,
                            const heed_buffer *inputs, size_t numInputs,
                            heed_buffer *outputs, size_t numOutputs) {
  return runEntry(model, entry, false, inputs, numInputs, outputs, numOutputs,
                  NULL);
}

heed_status heed_run_entry(heed_model *model, const char *entry,
                           const heed_buffer *inputs, size_t numInputs,
                           heed_buffer *outputs, size_t numOutputs,
                           const heed_call *call) {
  return runEntry(model, entry, true, inputs, numInputs, outputs, numOutputs,
                  call);
}
