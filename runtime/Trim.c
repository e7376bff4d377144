/* A count of a state taken back, as when a model rejects tokens of a draft. */
#include "runtime/State.h"

#include <inttypes.h>
#include <string.h>

static int32_t useOf(const heed_model_desc *desc, int32_t k) {
  return desc->trims ? desc->trims[k] : HEED_TRIM_NOTHING;
}

/* Which state the name is, a count that comes back with all that depends on
 * it; -1 and a message if it is none. */
static int32_t findCount(heed_state *state, const char *name) {
  const heed_model_desc *desc = state->shared->desc;
  int32_t found = -1;
  for (int32_t k = 0; name && k < desc->numStates; ++k)
    if (!strcmp(desc->states[k]->name, name))
      found = k;
  if (found < 0) {
    heed_state_fail(state, HEED_ERROR_ARGUMENT, "the model has no state '%s'",
                    name ? name : "");
    return -1;
  }
  for (int32_t k = 0; k < desc->numStates; ++k) {
    const char *other = desc->states[k]->name;
    if (useOf(desc, k) == HEED_TRIM_RECURRENT)
      heed_state_fail(state, HEED_ERROR_ARGUMENT,
                      "the state '%s' is recurrent, it does not come back "
                      "with '%s': use heed_state_copy",
                      other, name);
    else if (useOf(desc, k) == HEED_TRIM_RING)
      heed_state_fail(state, HEED_ERROR_ARGUMENT,
                      "the state '%s' is a ring, what it has overwritten does "
                      "not come back with '%s': use heed_state_copy",
                      other, name);
    else
      continue;
    return -1;
  }
  if (useOf(desc, found) == HEED_TRIM_COUNT)
    return found;
  heed_state_fail(state, HEED_ERROR_ARGUMENT,
                  "the state '%s' is no count of positions that entries "
                  "advance",
                  name);
  return -1;
}

static int64_t read(const void *data, int32_t type, int64_t k) {
  switch (type) {
  case HEED_I8:
    return ((const int8_t *)data)[k];
  case HEED_U8:
    return ((const uint8_t *)data)[k];
  case HEED_I16:
    return ((const int16_t *)data)[k];
  case HEED_I32:
    return ((const int32_t *)data)[k];
  default:
    return ((const int64_t *)data)[k];
  }
}

/* Of a value that is no greater than what stands there. */
static void write(void *data, int32_t type, int64_t k, int64_t value) {
  if (type == HEED_I8 || type == HEED_U8)
    ((uint8_t *)data)[k] = (uint8_t)value;
  else if (type == HEED_I16)
    ((int16_t *)data)[k] = (int16_t)value;
  else if (type == HEED_I32)
    ((int32_t *)data)[k] = (int32_t)value;
  else
    ((int64_t *)data)[k] = value;
}

static heed_status check(heed_state *state, int32_t k,
                         const heed_buffer *values) {
  const heed_tensor_info *info = state->shared->desc->states[k];
  if (!values || !heed_is_readable(values, values->size, HEED_LEAST_BUFFER,
                                   sizeof *values))
    return heed_state_fail(state, HEED_ERROR_VERSION,
                           "expected a heed_buffer of %zu bytes",
                           sizeof *values);
  if (values->type != HEED_I8 && values->type != HEED_U8 &&
      values->type != HEED_I16 && values->type != HEED_I32 &&
      values->type != HEED_I64)
    return heed_state_fail(state, HEED_ERROR_TYPE,
                           "state '%s': expected integers, found %s",
                           info->name, heed_type_name(values->type));
  bool fits = values->rank == 0 || values->rank == info->rank;
  for (int32_t axis = 0; fits && axis < values->rank; ++axis)
    fits = values->shape[axis] == state->tensors[k].shape[axis];
  if (!fits)
    return heed_state_fail(state, HEED_ERROR_SHAPE,
                           "state '%s': expected as many values as it has, or "
                           "one number",
                           info->name);
  if (!heed_strides_are_dense(values->rank, values->shape, values->strides))
    return heed_state_fail(state, HEED_ERROR_ARGUMENT,
                           "state '%s': expected values that lie dense",
                           info->name);
  if (!values->data && state->tensors[k].bytes)
    return heed_state_fail(state, HEED_ERROR_ARGUMENT, "state '%s': no values",
                           info->name);
  if (values->deviceType != 0 && values->deviceType != HEED_DEVICE_CPU)
    return heed_state_fail(state, HEED_ERROR_DEVICE,
                           "state '%s': expected memory of the CPU",
                           info->name);
  return HEED_OK;
}

static heed_status trim(heed_state *state, const char *name,
                        const heed_buffer *values) {
  int32_t k = findCount(state, name);
  if (k < 0)
    return HEED_ERROR_ARGUMENT;
  heed_status status = check(state, k, values);
  if (status)
    return status;
  const heed_tensor_info *info = state->shared->desc->states[k];
  void *data = state->tensors[k].data;
  const char *from =
      values->data ? (const char *)values->data + values->byteOffset : NULL;
  int64_t count = state->tensors[k].bytes / (int64_t)heed_type_size(info->type);
  /* All is checked before anything changes. */
  for (int64_t at = 0; at < count; ++at) {
    int64_t value = read(from, values->type, values->rank ? at : 0);
    int64_t now = read(data, info->type, at);
    if (value < 0 || value > now)
      return heed_state_fail(state, HEED_ERROR_RANGE,
                             "state '%s': element %" PRId64 " is %" PRId64
                             " and cannot become %" PRId64
                             ": expected 0 <= value <= %" PRId64,
                             info->name, at, now, value, now);
  }
  for (int64_t at = 0; at < count; ++at)
    write(data, info->type, at,
          read(from, values->type, values->rank ? at : 0));
  return HEED_OK;
}

heed_status heed_trim_state(heed_state *state, const char *name,
                            const heed_buffer *values) {
  heed_status status = heed_state_begin(state);
  return status ? status : heed_state_end(state, trim(state, name, values));
}
