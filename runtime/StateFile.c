/* States in files: .safetensors, with the model's name and a checksum of the
 * data in its metadata. */
#include "runtime/State.h"

#include "runtime/io/Safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- saving ---- */

static uint64_t checksumOf(const heed_state *state) {
  uint64_t sum = 0;
  for (int32_t k = 0; k < state->shared->desc->numStates; ++k)
    sum = heed_checksum(sum, state->tensors[k].data,
                        (size_t)state->tensors[k].bytes);
  return sum;
}

/* A model's and its states' names are identifiers: nothing to escape. */
static void writeHeader(const heed_state *state, FILE *file) {
  const heed_model_desc *desc = state->shared->desc;
  fprintf(file,
          "{\"__metadata__\":{\"format\":\"heed "
          "state\",\"model\":\"%s\",\"checksum\":\"%016" PRIx64 "\"}",
          desc->name, checksumOf(state));
  int64_t at = 0;
  for (int32_t k = 0; k < desc->numStates; ++k) {
    const heed_state_tensor *tensor = &state->tensors[k];
    fprintf(file, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[",
            desc->states[k]->name,
            heed_safetensors_dtype(desc->states[k]->type));
    for (int32_t axis = 0; axis < desc->states[k]->rank; ++axis)
      fprintf(file, "%s%" PRId64, axis ? "," : "", tensor->shape[axis]);
    fprintf(file, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", at,
            at + tensor->bytes);
    at += tensor->bytes;
  }
  fputc('}', file);
}

/* The header in memory, with blanks behind it so that the data lie aligned.
 * Null if there is no memory. */
static char *headerOf(const heed_state *state, uint64_t *size) {
  char *text = NULL;
  size_t length = 0;
  FILE *file = open_memstream(&text, &length);
  if (!file)
    return NULL;
  writeHeader(state, file);
  while (ftell(file) % 64 != 56)
    fputc(' ', file);
  bool good = !ferror(file);
  if (fclose(file) != 0 || !good) {
    free(text);
    return NULL;
  }
  *size = length;
  return text;
}

/* What is written. */
typedef struct content {
  const heed_state *state;
  char *header;
  uint64_t size; /* of the header */
} content;

static bool writeContent(void *user, FILE *file) {
  const content *c = user;
  const heed_state *state = c->state;
  bool good = fwrite(&c->size, sizeof c->size, 1, file) == 1 &&
              fwrite(c->header, 1, c->size, file) == c->size;
  for (int32_t k = 0; good && k < state->shared->desc->numStates; ++k) {
    size_t bytes = (size_t)state->tensors[k].bytes;
    good = fwrite(state->tensors[k].data, 1, bytes, file) == bytes;
  }
  return good;
}

static heed_status save(heed_state *state, const char *path) {
  content c = {.state = state};
  c.header = headerOf(state, &c.size);
  if (!c.header)
    return heed_state_fail(state, HEED_ERROR_MEMORY,
                           "%s: no memory to write it", path);
  heed_io_error error;
  bool good = heed_file_write(path, writeContent, &c, &error);
  free(c.header);
  return good ? HEED_OK
              : heed_state_fail(state, HEED_ERROR_FILE, "%s", error.text);
}

/* ---- loading ---- */

static heed_status checkTensor(heed_state *state, const char *path, int32_t k,
                               const heed_safetensor *tensor) {
  const heed_tensor_info *info = state->shared->desc->states[k];
  if (!tensor)
    return heed_state_fail(state, HEED_ERROR_FILE, "%s: it holds no state '%s'",
                           path, info->name);
  if (tensor->array.type != info->type)
    return heed_state_fail(state, HEED_ERROR_TYPE,
                           "%s: state '%s': expected element type %s, found %s",
                           path, info->name, heed_type_name(info->type),
                           tensor->dtype);
  bool fits = tensor->array.rank == info->rank;
  for (int32_t axis = 0; fits && axis < info->rank; ++axis)
    fits = tensor->array.shape[axis] == state->tensors[k].shape[axis];
  if (fits)
    return HEED_OK;
  char expected[256], found[256];
  heed_io_format_shape(expected, sizeof expected, info->rank,
                       state->tensors[k].shape);
  heed_io_format_shape(found, sizeof found, tensor->array.rank,
                       tensor->array.shape);
  return heed_state_fail(state, HEED_ERROR_SHAPE,
                         "%s: state '%s': expected shape %s, found %s", path,
                         info->name, expected, found);
}

/* All is checked before anything changes. */
static heed_status take(heed_state *state, const char *path,
                        const heed_bytes *bytes, const heed_safetensors *file) {
  const heed_model_desc *desc = state->shared->desc;
  if (!heed_safetensors_says(bytes, "format", "heed state"))
    return heed_state_fail(state, HEED_ERROR_FILE,
                           "%s: it is not the file of a state", path);
  if (!heed_safetensors_says(bytes, "model", desc->name))
    return heed_state_fail(state, HEED_ERROR_FILE,
                           "%s: it holds the state of another model than '%s'",
                           path, desc->name);
  heed_status status = HEED_OK;
  uint64_t sum = 0;
  for (int32_t k = 0; k < desc->numStates && !status; ++k) {
    const heed_safetensor *tensor =
        heed_safetensors_find(file, desc->states[k]->name);
    status = checkTensor(state, path, k, tensor);
    if (!status)
      sum = heed_checksum(sum, tensor->array.data,
                          (size_t)state->tensors[k].bytes);
  }
  char text[17];
  snprintf(text, sizeof text, "%016" PRIx64, sum);
  if (!status && !heed_safetensors_says(bytes, "checksum", text))
    status = heed_state_fail(state, HEED_ERROR_FILE,
                             "%s: it is damaged: its checksum does not fit its "
                             "data",
                             path);
  for (int32_t k = 0; k < desc->numStates && !status; ++k)
    memcpy(state->tensors[k].data,
           heed_safetensors_find(file, desc->states[k]->name)->array.data,
           (size_t)state->tensors[k].bytes);
  return status;
}

static heed_status load(heed_state *state, const char *path) {
  heed_io_error error;
  heed_bytes bytes;
  heed_safetensors file;
  if (!heed_bytes_read(path, &bytes, &error))
    return heed_state_fail(state, HEED_ERROR_FILE, "%s", error.text);
  heed_status status = HEED_OK;
  if (heed_safetensors_parse(bytes.data, bytes.size, path, &file, &error)) {
    status = take(state, path, &bytes, &file);
    heed_safetensors_release(&file);
  } else {
    status = heed_state_fail(state, HEED_ERROR_FILE, "%s", error.text);
  }
  heed_bytes_release(&bytes);
  return status;
}

/* ---- both ---- */

static heed_status with(heed_state *state, const char *path,
                        heed_status (*transfer)(heed_state *, const char *)) {
  heed_status status = heed_state_begin(state);
  if (status)
    return status;
  status = path ? transfer(state, path)
                : heed_state_fail(state, HEED_ERROR_ARGUMENT, "no path");
  return heed_state_end(state, status);
}

heed_status heed_save_state(heed_state *state, const char *path) {
  return with(state, path, save);
}

heed_status heed_load_state(heed_state *state, const char *path) {
  return with(state, path, load);
}
