/* The .safetensors format: eight bytes of header length, a JSON header, the
 * data. */
#include "runtime/io/Safetensors.h"
#include "runtime/io/Json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The limit of the reference implementation. */
static const uint64_t maxHeader = 100000000;

static const struct {
  const char *name;
  int32_t type;
} dtypes[] = {{"F32", HEED_F32},  {"F16", HEED_F16}, {"BF16", HEED_BF16},
              {"F64", HEED_F64},  {"I8", HEED_I8},   {"I16", HEED_I16},
              {"I32", HEED_I32},  {"I64", HEED_I64}, {"U8", HEED_U8},
              {"BOOL", HEED_BOOL}};

const char *heed_safetensors_dtype(int32_t type) {
  for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; ++k)
    if (dtypes[k].type == type)
      return dtypes[k].name;
  return NULL;
}

typedef struct parser {
  heed_json json;
  heed_safetensors *file;
  size_t capacity;
  bool haveMetadata;
  const uint8_t *data;
  uint64_t dataSize;
} parser;

/* Begin and end are kept beside each tensor until all are known: offsets from
 * the pointers, ends from the next begin. */
static bool parseShape(parser *p, const char *name, heed_array *array) {
  heed_json *json = &p->json;
  bool first = true, more;
  if (!heed_json_open(json, '['))
    return false;
  for (;;) {
    if (!heed_json_next(json, '[', &first, &more))
      return false;
    if (!more)
      return true;
    if (array->rank == HEED_MAX_RANK)
      return heed_io_fail(json->error, "%s: '%s' has more than %d axes",
                          json->where, name, HEED_MAX_RANK);
    if (!heed_json_integer(json, &array->shape[array->rank++]))
      return false;
  }
}

static bool parseOffsets(parser *p, int64_t offsets[2]) {
  heed_json *json = &p->json;
  bool first = true, more;
  if (!heed_json_open(json, '['))
    return false;
  for (int k = 0; k < 3; ++k) {
    if (!heed_json_next(json, '[', &first, &more))
      return false;
    if (more != (k < 2))
      return heed_json_fail(json, "two offsets");
    if (more && !heed_json_integer(json, &offsets[k]))
      return false;
  }
  return true;
}

/* Checks the tensor against the data; a type without name is checked for its
 * place alone. */
static bool placeTensor(parser *p, heed_safetensor *tensor,
                        const int64_t offsets[2]) {
  heed_json *json = &p->json;
  heed_array *array = &tensor->array;
  if (offsets[0] > offsets[1] || (uint64_t)offsets[1] > p->dataSize)
    return heed_io_fail(
        json->error,
        "%s: '%s': data_offsets [%" PRId64 ", %" PRId64
        "] lie outside the %" PRIu64 " bytes of data%s",
        json->where, tensor->name, offsets[0], offsets[1], p->dataSize,
        offsets[0] > offsets[1] ? "" : ": the file is truncated");
  for (size_t k = 0; k < sizeof dtypes / sizeof dtypes[0]; ++k)
    if (!strcmp(tensor->dtype, dtypes[k].name))
      array->type = dtypes[k].type;
  array->data = p->data + offsets[0];
  if (array->type) {
    int64_t elementSize = (int64_t)heed_type_size(array->type), bytes;
    char shape[256];
    heed_io_format_shape(shape, sizeof shape, array->rank, array->shape);
    if (!heed_io_byte_count(array->rank, array->shape, elementSize, &bytes))
      return heed_io_fail(json->error, "%s: '%s': shape %s is too large",
                          json->where, tensor->name, shape);
    if (bytes != offsets[1] - offsets[0])
      return heed_io_fail(json->error,
                          "%s: '%s': %" PRId64 " bytes expected for %s %s, "
                          "data_offsets give %" PRId64,
                          json->where, tensor->name, bytes, tensor->dtype,
                          shape, offsets[1] - offsets[0]);
    array->count = bytes / elementSize;
  } else {
    array->count = offsets[1] - offsets[0]; /* bytes, for the check of gaps */
  }
  return true;
}

/* What has been read of one tensor's object. */
typedef struct {
  parser *p;
  heed_safetensor *tensor;
  bool haveShape, haveOffsets;
  int64_t offsets[2];
} member;

static bool addMember(void *context, const char *key) {
  member *m = context;
  heed_json *json = &m->p->json;
  const char *name = m->tensor->name;
  if (!strcmp(key, "dtype") && !m->tensor->dtype)
    return heed_json_string(json, &m->tensor->dtype);
  if (!strcmp(key, "shape") && !m->haveShape)
    return m->haveShape = parseShape(m->p, name, &m->tensor->array);
  if (!strcmp(key, "data_offsets") && !m->haveOffsets)
    return m->haveOffsets = parseOffsets(m->p, m->offsets);
  return heed_io_fail(json->error, "%s: '%s': unexpected key '%s'", json->where,
                      name, key);
}

static bool addTensor(parser *p, const char *name) {
  heed_json *json = &p->json;
  heed_safetensors *file = p->file;
  if (!heed_json_grow(json, &file->tensors, file->numTensors, &p->capacity,
                      sizeof *file->tensors))
    return false;
  member m = {.p = p, .tensor = &file->tensors[file->numTensors++]};
  memset(m.tensor, 0, sizeof *m.tensor);
  m.tensor->name = name;
  if (!heed_json_members(json, addMember, &m))
    return false;
  if (!m.tensor->dtype || !m.haveShape || !m.haveOffsets)
    return heed_io_fail(json->error, "%s: '%s': '%s' is missing", json->where,
                        name,
                        !m.tensor->dtype ? "dtype"
                        : !m.haveShape   ? "shape"
                                         : "data_offsets");
  return placeTensor(p, m.tensor, m.offsets);
}

static bool addHeader(void *context, const char *key) {
  parser *p = context;
  if (strcmp(key, "__metadata__") != 0)
    return addTensor(p, key);
  if (p->haveMetadata)
    return heed_io_fail(p->json.error, "%s: '__metadata__' stands twice",
                        p->json.where);
  p->haveMetadata = true;
  return heed_json_skip(&p->json);
}

static bool parseHeader(parser *p) {
  return heed_json_members(&p->json, addHeader, p) && heed_json_end(&p->json);
}

static uint64_t bytesOf(const heed_safetensor *tensor) {
  size_t size = heed_type_size(tensor->array.type);
  return (uint64_t)tensor->array.count * (size ? size : 1);
}

static int byPlace(const void *left, const void *right) {
  const heed_safetensor *a = left, *b = right;
  uintptr_t x = (uintptr_t)a->array.data, y = (uintptr_t)b->array.data;
  if (x != y)
    return x < y ? -1 : 1;
  /* Empty tensors come before the one that begins at the same place. */
  return (bytesOf(a) > bytesOf(b)) - (bytesOf(a) < bytesOf(b));
}

static int byName(const void *left, const void *right) {
  return strcmp(((const heed_safetensor *)left)->name,
                ((const heed_safetensor *)right)->name);
}

/* Tensors fill the data from first to last byte, and no name stands twice. */
static bool checkLayout(parser *p) {
  heed_safetensors *file = p->file;
  heed_safetensor *tensors = file->tensors;
  heed_io_error *error = p->json.error;
  const char *where = p->json.where;
  uint64_t at = 0;
  if (file->numTensors)
    qsort(tensors, file->numTensors, sizeof *tensors, byPlace);
  for (size_t k = 0; k < file->numTensors; ++k) {
    uint64_t begin =
        (uint64_t)((const uint8_t *)tensors[k].array.data - p->data);
    if (begin != at)
      return heed_io_fail(error,
                          "%s: '%s' begins at byte %" PRIu64
                          " of the data, expected %" PRIu64,
                          where, tensors[k].name, begin, at);
    at += bytesOf(&tensors[k]);
  }
  if (at != p->dataSize)
    return heed_io_fail(
        error, "%s: %" PRIu64 " bytes of data expected, %" PRIu64 " found",
        where, at, p->dataSize);
  if (file->numTensors)
    qsort(tensors, file->numTensors, sizeof *tensors, byName);
  for (size_t k = 1; k < file->numTensors; ++k)
    if (!strcmp(tensors[k].name, tensors[k - 1].name))
      return heed_io_fail(error, "%s: '%s' stands twice", where,
                          tensors[k].name);
  return true;
}

bool heed_safetensors_parse(const uint8_t *data, size_t size, const char *where,
                            heed_safetensors *file, heed_io_error *error) {
  memset(file, 0, sizeof *file);
  if (size < 8)
    return heed_io_fail(
        error, "%s: not a .safetensors file: %zu bytes, expected at least 8",
        where, size);
  uint64_t length = 0;
  for (int k = 7; k >= 0; --k)
    length = length << 8 | data[k];
  if (length > maxHeader || length > size - 8)
    return heed_io_fail(error,
                        "%s: not a .safetensors file, or truncated: header of "
                        "%" PRIu64 " bytes, %zu found",
                        where, length, size - 8);
  parser p = {
      .file = file, .data = data + 8 + length, .dataSize = size - 8 - length};
  if (!heed_json_start(&p.json, data + 8, (size_t)length, where, error))
    return false;
  file->strings = p.json.strings;
  if (parseHeader(&p) && checkLayout(&p))
    return true;
  heed_safetensors_release(file);
  return false;
}

const char *heed_safetensors_metadata(const heed_bytes *bytes, const char *key,
                                      size_t *length) {
  uint64_t size;
  char wanted[64];
  memcpy(&size, bytes->data, sizeof size);
  const char *header = (const char *)bytes->data + sizeof size,
             *end = header + size;
  int wrote = snprintf(wanted, sizeof wanted, "\"%s\":\"", key);
  const char *at = memmem(header, size, wanted, (size_t)wrote);
  *length = 0;
  if (!at)
    return "";
  at += wrote;
  const char *stop = memchr(at, '"', (size_t)(end - at));
  *length = stop ? (size_t)(stop - at) : 0;
  return at;
}

bool heed_safetensors_says(const heed_bytes *bytes, const char *key,
                           const char *expected) {
  size_t length;
  const char *value = heed_safetensors_metadata(bytes, key, &length);
  return length == strlen(expected) && !memcmp(value, expected, length);
}

void heed_safetensors_release(heed_safetensors *file) {
  free(file->tensors);
  free(file->strings);
  memset(file, 0, sizeof *file);
}

const heed_safetensor *heed_safetensors_find(const heed_safetensors *file,
                                             const char *name) {
  heed_safetensor wanted = {.name = name};
  return file->numTensors ? bsearch(&wanted, file->tensors, file->numTensors,
                                    sizeof wanted, byName)
                          : NULL;
}
