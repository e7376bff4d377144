/* Inputs of compiled programs: .npy files, members of .npz files, and scalars
 * as text. */
#include "runtime/Program.h"
#include "runtime/io/Convert.h"
#include "runtime/io/Npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool allocate(heed_buffer *buffer, int64_t count, const char *where,
                     heed_io_error *error) {
  int64_t bytes;
  int64_t size = (int64_t)heed_type_size(buffer->type);
  if (__builtin_mul_overflow(count, size, &bytes) ||
      posix_memalign(&buffer->data, 64, bytes ? (size_t)bytes : 1) != 0)
    return heed_io_fail(error, "%s: no memory for %" PRId64 " elements", where,
                        count);
  return true;
}

/* A scalar's text; *isNumber is false where the text is none (a file's name
 * perhaps). */
static bool parseScalar(const heed_tensor_info *info, const char *text,
                        heed_array *array, void *storage, bool *isNumber) {
  char *stop;
  errno = 0;
  *isNumber = true;
  if (info->type == HEED_F32 || info->type == HEED_F16 ||
      info->type == HEED_BF16) {
    float value = strtof(text, &stop);
    memcpy(storage, &value, sizeof value);
    array->type = HEED_F32;
  } else if (info->type == HEED_BOOL &&
             (!strcmp(text, "true") || !strcmp(text, "false"))) {
    int64_t value = text[0] == 't';
    memcpy(storage, &value, sizeof value);
    array->type = HEED_I64;
    stop = (char *)(uintptr_t)text + strlen(text);
  } else {
    int64_t value = strtoll(text, &stop, 10);
    memcpy(storage, &value, sizeof value);
    array->type = HEED_I64;
  }
  array->data = storage;
  array->count = 1;
  *isNumber = stop != text && !*stop;
  /* An underflow to 0 or a subnormal is a number; an overflow is not meant. */
  return *isNumber && !(errno == ERANGE && array->type == HEED_I64);
}

/* "file.npz:key": splits at the last colon if no file has the whole name. */
static bool readFile(const char *value, heed_bytes *bytes, heed_array *array,
                     heed_io_error *error) {
  const char *colon = strrchr(value, ':');
  if (access(value, F_OK) == 0 || !colon || colon == value) {
    if (!heed_bytes_read(value, bytes, error))
      return false;
    return heed_npz_recognise(bytes->data, bytes->size)
               ? heed_npz_parse(bytes->data, bytes->size, NULL, value, array,
                                error)
               : heed_npy_parse(bytes->data, bytes->size, value, array, error);
  }
  char *path = strndup(value, (size_t)(colon - value));
  if (!path)
    return heed_io_fail(error, "%s: no memory", value);
  bool good =
      heed_bytes_read(path, bytes, error) &&
      heed_npz_parse(bytes->data, bytes->size, colon + 1, path, array, error);
  free(path);
  return good;
}

bool heed_input_read(const heed_tensor_info *info, const char *value,
                     bool convert, heed_buffer *buffer, heed_io_error *error) {
  heed_array array;
  heed_bytes bytes = {0};
  memset(&array, 0, sizeof array);
  memset(buffer, 0, sizeof *buffer);
  buffer->size = sizeof *buffer;
  buffer->type = info->type;
  char where[600], storage[8];
  snprintf(where, sizeof where, "input '%s' (%s)", info->name, value);
  bool number = false;
  if (info->isScalar && !parseScalar(info, value, &array, storage, &number) &&
      (number || access(value, F_OK) != 0))
    return heed_io_fail(
        error, "input '%s': expected %s %s, found '%s'", info->name,
        info->type == HEED_F32 ? "a number of type" : "an integer of type",
        heed_type_name(info->type), value);
  bool good = number || readFile(value, &bytes, &array, error);
  if (good && array.rank != info->rank) {
    char found[256];
    heed_io_format_shape(found, sizeof found, array.rank, array.shape);
    good = heed_io_fail(error, "%s: expected %d axes, found shape %s", where,
                        info->rank, found);
  }
  if (good) {
    buffer->rank = array.rank;
    memcpy(buffer->shape, array.shape, sizeof buffer->shape);
    good = allocate(buffer, array.count, where, error) &&
           heed_convert_array(&array, info->type,
                              convert  ? HEED_ROUND_F64
                              : number ? HEED_ROUND_F32
                                       : HEED_ROUND_NOTHING,
                              buffer->data, where, error);
  }
  heed_bytes_release(&bytes);
  return good;
}
