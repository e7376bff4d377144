/* The .npy format: a magic word, a Python dict that says type, order and shape,
 * and the data. */
#include "runtime/io/Npy.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct cursor {
  const char *at, *end;
} cursor;

static void skipSpace(cursor *c) {
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t'))
    ++c->at;
}

static bool accept(cursor *c, char wanted) {
  skipSpace(c);
  if (c->at == c->end || *c->at != wanted)
    return false;
  ++c->at;
  return true;
}

static bool acceptWord(cursor *c, const char *word) {
  size_t length = strlen(word);
  skipSpace(c);
  if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
    return false;
  c->at += length;
  return true;
}

/* A quoted string without escapes; NumPy writes no others here. */
static bool parseString(cursor *c, char *text, size_t size) {
  skipSpace(c);
  if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
    return false;
  char quote = *c->at++;
  size_t length = 0;
  while (c->at < c->end && *c->at != quote) {
    if (*c->at == '\\' || !isprint((unsigned char)*c->at) || length + 1 == size)
      return false;
    text[length++] = *c->at++;
  }
  text[length] = 0;
  return accept(c, quote);
}

static bool parseExtent(cursor *c, int64_t *extent) {
  skipSpace(c);
  if (c->at == c->end || !isdigit((unsigned char)*c->at))
    return false;
  *extent = 0;
  while (c->at < c->end && isdigit((unsigned char)*c->at)) {
    if (__builtin_mul_overflow(*extent, 10, extent) ||
        __builtin_add_overflow(*extent, *c->at - '0', extent))
      return false;
    ++c->at;
  }
  if (c->at < c->end && *c->at == 'L') /* NumPy on Python 2 */
    ++c->at;
  return true;
}

static bool parseShape(cursor *c, heed_array *array, const char *where,
                       heed_io_error *error) {
  if (!accept(c, '('))
    return heed_io_fail(error, "%s: .npy header: expected a tuple as 'shape'",
                        where);
  array->rank = 0;
  while (!accept(c, ')')) {
    if (array->rank == HEED_MAX_RANK)
      return heed_io_fail(error, "%s: more than %d axes", where, HEED_MAX_RANK);
    if (!parseExtent(c, &array->shape[array->rank++]) ||
        (!accept(c, ',') && (c->at == c->end || *c->at != ')')))
      return heed_io_fail(
          error, "%s: .npy header: expected non-negative integers in 'shape'",
          where);
  }
  return true;
}

/* Types by NumPy's letter and size. */
static const struct {
  const char *code;
  int32_t type;
} typeCodes[] = {{"f4", HEED_F32}, {"f2", HEED_F16}, {"V2", HEED_BF16},
                 {"f8", HEED_F64}, {"i1", HEED_I8},  {"i2", HEED_I16},
                 {"i4", HEED_I32}, {"i8", HEED_I64}, {"u1", HEED_U8},
                 {"b1", HEED_BOOL}};

static bool parseType(const char *text, heed_array *array, const char *where,
                      heed_io_error *error) {
  for (size_t k = 0; k < sizeof typeCodes / sizeof typeCodes[0]; ++k) {
    if (text[0] == 0 || strcmp(text + 1, typeCodes[k].code) != 0)
      continue;
    if (text[0] == '<' || text[0] == '|' || text[0] == '=') {
      array->type = typeCodes[k].type;
      return true;
    }
    if (text[0] == '>' && text[2] == '1') { /* one byte has no order */
      array->type = typeCodes[k].type;
      return true;
    }
  }
  if (text[0] == '>')
    return heed_io_fail(
        error,
        "%s: expected little-endian data, found '%s' (array.astype('<%s') "
        "converts it)",
        where, text, text + 1);
  return heed_io_fail(error,
                      "%s: element type '%s' is not supported (expected f4 f2 "
                      "f8 i1 i2 i4 i8 u1 b1, or V2 for bf16)",
                      where, text);
}

static bool parseHeader(cursor *c, const char *where, heed_array *array,
                        heed_io_error *error) {
  bool haveType = false, haveOrder = false, haveShape = false;
  if (!accept(c, '{'))
    return heed_io_fail(error, "%s: .npy header: expected '{'", where);
  while (!accept(c, '}')) {
    char key[32], type[32];
    if (!parseString(c, key, sizeof key) || !accept(c, ':'))
      return heed_io_fail(error, "%s: .npy header: expected a key and ':'",
                          where);
    bool *have = !strcmp(key, "descr")           ? &haveType
                 : !strcmp(key, "fortran_order") ? &haveOrder
                 : !strcmp(key, "shape")         ? &haveShape
                                                 : NULL;
    if (!have || *have)
      return heed_io_fail(error, "%s: .npy header: unexpected key '%s'", where,
                          key);
    *have = true;
    if (have == &haveType) {
      skipSpace(c);
      if (c->at < c->end && *c->at == '[')
        return heed_io_fail(
            error, "%s: structured element types are not supported", where);
      if (!parseString(c, type, sizeof type))
        return heed_io_fail(
            error, "%s: .npy header: expected a string as 'descr'", where);
      if (!parseType(type, array, where, error))
        return false;
    } else if (have == &haveOrder) {
      array->fortran = acceptWord(c, "True");
      if (!array->fortran && !acceptWord(c, "False"))
        return heed_io_fail(
            error, "%s: .npy header: expected True or False as 'fortran_order'",
            where);
    } else if (!parseShape(c, array, where, error)) {
      return false;
    }
    if (!accept(c, ',')) {
      if (accept(c, '}'))
        break;
      return heed_io_fail(error, "%s: .npy header: expected ',' or '}'", where);
    }
  }
  skipSpace(c);
  if (c->at != c->end)
    return heed_io_fail(error, "%s: .npy header: text after '}'", where);
  if (!haveType || !haveOrder || !haveShape)
    return heed_io_fail(error, "%s: .npy header: '%s' is missing", where,
                        !haveType    ? "descr"
                        : !haveOrder ? "fortran_order"
                                     : "shape");
  return true;
}

bool heed_npy_parse(const uint8_t *data, size_t size, const char *where,
                    heed_array *array, heed_io_error *error) {
  memset(array, 0, sizeof *array);
  if (size < 10 || memcmp(data, "\x93NUMPY", 6) != 0)
    return heed_io_fail(error, "%s: not a .npy file", where);
  unsigned major = data[6];
  if (major < 1 || major > 3)
    return heed_io_fail(error, "%s: .npy version %u.%u is not known", where,
                        major, data[7]);
  size_t start = major == 1 ? 10 : 12;
  if (size < start)
    return heed_io_fail(error, "%s: .npy header is truncated", where);
  size_t length = data[8] | (size_t)data[9] << 8;
  if (major > 1)
    length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
  if (length > size - start)
    return heed_io_fail(
        error, "%s: .npy header of %zu bytes expected, %zu bytes found", where,
        length, size - start);
  cursor c = {(const char *)data + start, (const char *)data + start + length};
  if (!parseHeader(&c, where, array, error))
    return false;

  char shape[256];
  int64_t bytes;
  int64_t elementSize = (int64_t)heed_type_size(array->type);
  heed_io_format_shape(shape, sizeof shape, array->rank, array->shape);
  if (!heed_io_byte_count(array->rank, array->shape, elementSize, &bytes))
    return heed_io_fail(error, "%s: shape %s is too large", where, shape);
  size_t found = size - start - length;
  if ((uint64_t)bytes != found)
    return heed_io_fail(
        error, "%s: %" PRId64 " bytes expected for %s %s, %zu found%s", where,
        bytes, heed_type_name(array->type), shape, found,
        (uint64_t)bytes > found ? ": the file is truncated" : "");
  array->count = bytes / elementSize;
  array->data = data + start + length;
  return true;
}

bool heed_npy_write(FILE *file, int32_t type, int32_t rank,
                    const int64_t *shape, const void *data) {
  const char *code = NULL;
  for (size_t k = 0; k < sizeof typeCodes / sizeof typeCodes[0]; ++k)
    if (typeCodes[k].type == type)
      code = typeCodes[k].code;
  int64_t bytes;
  if (!code || rank < 0 || rank > HEED_MAX_RANK ||
      !heed_io_byte_count(rank, shape, (int64_t)heed_type_size(type), &bytes))
    return false;
  char text[128 + 24 * HEED_MAX_RANK];
  size_t capacity = sizeof text;
  int length = snprintf(text, capacity,
                        "{'descr': '%c%s', 'fortran_order': False, "
                        "'shape': (",
                        heed_type_size(type) == 1 ? '|' : '<', code);
  for (int32_t axis = 0; axis < rank; ++axis)
    length += snprintf(text + length, capacity - (size_t)length,
                       "%" PRId64 "%s", shape[axis],
                       axis + 1 < rank ? ", "
                       : rank == 1     ? ","
                                       : "");
  length += snprintf(text + length, capacity - (size_t)length, "), }");
  /* Data begin at a multiple of 64 bytes, the header ends with a newline. */
  size_t padding = 63 - (10 + (size_t)length) % 64;
  size_t total = (size_t)length + padding + 1;
  const uint8_t magic[10] = {0x93,
                             'N',
                             'U',
                             'M',
                             'P',
                             'Y',
                             1,
                             0,
                             (uint8_t)total,
                             (uint8_t)(total >> 8)};
  return fwrite(magic, 1, sizeof magic, file) == sizeof magic &&
         fprintf(file, "%s%*s\n", text, (int)padding, "") == (int)total &&
         fwrite(data, 1, (size_t)bytes, file) == (size_t)bytes;
}
