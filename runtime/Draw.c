/* Inputs of `--bench` that no file holds: "8x128" is an array of that shape
 * with drawn elements, "8x128:30000" one of integers from 0 to 29999. */
#include "runtime/Program.h"
#include "runtime/io/Convert.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number at *text, which is moved beyond it. */
static bool parseNumber(const char **text, int64_t *number) {
  char *stop;
  if (!isdigit((unsigned char)**text))
    return false;
  errno = 0;
  *number = strtoll(*text, &stop, 10);
  *text = stop;
  return errno == 0;
}

/* `bound`: 0 if the text has none. */
static bool parseShape(const char *text, int32_t *rank, int64_t *shape,
                       int64_t *bound) {
  *rank = 0;
  *bound = 0;
  for (;; ++text) {
    if (*rank == HEED_MAX_RANK || !parseNumber(&text, &shape[*rank]))
      return false;
    ++*rank;
    if (*text != 'x')
      break;
  }
  if (*text == ':') {
    ++text;
    if (!parseNumber(&text, bound) || *bound < 1)
      return false;
  }
  return !*text;
}

bool heed_input_is_shape(const char *text) {
  int32_t rank;
  int64_t shape[HEED_MAX_RANK], bound;
  return parseShape(text, &rank, shape, &bound) && access(text, F_OK) != 0;
}

/* Numbers that any machine draws alike (splitmix64). */
static uint64_t draw(uint64_t *state) {
  uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* From -1 to 1, or integers below the bound. */
static bool fill(heed_buffer *buffer, int64_t count, int64_t bound,
                 const char *where, heed_io_error *error) {
  bool isReal = buffer->type == HEED_F32 || buffer->type == HEED_F16 ||
                buffer->type == HEED_BF16;
  size_t size = heed_type_size(buffer->type);
  uint64_t state = 1;
  for (int64_t k = 0; k < count; ++k) {
    double real = (double)(draw(&state) >> 11) * 0x1p-53;
    float number = (float)(2 * real - 1);
    int64_t integer = (int64_t)(real * (double)bound);
    heed_array one = {.data = isReal ? (void *)&number : (void *)&integer,
                      .type = isReal ? HEED_F32 : HEED_I64,
                      .count = 1};
    if (!heed_convert_array(&one, buffer->type, HEED_ROUND_F32,
                            (char *)buffer->data + (size_t)k * size, where,
                            error))
      return false;
  }
  return true;
}

bool heed_input_draw(const heed_tensor_info *info, const char *text,
                     heed_buffer *buffer, heed_io_error *error) {
  int64_t bound, bytes;
  memset(buffer, 0, sizeof *buffer);
  buffer->size = sizeof *buffer;
  buffer->type = info->type;
  char where[600];
  snprintf(where, sizeof where, "input '%s' (%s)", info->name, text);
  if (!parseShape(text, &buffer->rank, buffer->shape, &bound))
    return heed_io_fail(error, "%s: expected a shape", where);
  if (buffer->rank != info->rank)
    return heed_io_fail(error, "%s: expected %d axes, found %d", where,
                        info->rank, buffer->rank);
  size_t size = heed_type_size(buffer->type);
  if (!heed_io_byte_count(buffer->rank, buffer->shape, (int64_t)size, &bytes) ||
      posix_memalign(&buffer->data, 64, bytes ? (size_t)bytes : 1) != 0)
    return heed_io_fail(error, "%s: no memory for an array of this shape",
                        where);
  return fill(buffer, bytes / (int64_t)size, bound ? bound : 2, where, error);
}
