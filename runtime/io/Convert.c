/* Conversions between element types, and from column-major to row-major order.
 */
#include "runtime/io/Convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t bitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float floatOf(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

float heed_bf16_to_f32(uint16_t bits) { return floatOf((uint32_t)bits << 16); }

float heed_f16_to_f32(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = bits & 0x7fff;
  if (rest >= 0x7c00) /* inf, NaN */
    return floatOf(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  if (rest < 0x400) { /* subnormal: exact as a product */
    float value = (float)rest * 0x1p-24f;
    return sign ? -value : value;
  }
  return floatOf(sign | ((rest << 13) + ((127 - 15) << 23)));
}

uint16_t heed_f32_to_bf16(float value) {
  uint32_t bits = bitsOf(value);
  if ((bits & 0x7fffffff) > 0x7f800000) /* keep a NaN a NaN */
    return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t heed_f32_to_f16(float value) {
  uint32_t bits = bitsOf(value), magnitude = bits & 0x7fffffff;
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
  if (magnitude > 0x7f800000)
    return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000) /* 65520 and more round to inf */
    return sign | 0x7c00;
  if (magnitude < 0x38800000) { /* below 2^-14: a multiple of 2^-24, rounded by
                                   the addition */
    uint32_t sum = bitsOf(floatOf(magnitude) + 0.5f);
    return (uint16_t)(sign | (sum - 0x3f000000));
  }
  uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return (uint16_t)(sign | ((rounded - ((127 - 15) << 23)) >> 13));
}

/* Rounds a double once to `digits` significant bits, not finer than 2^least, so
 * that the float it becomes is exact in the narrow type. */
static float roundDouble(double value, int digits, int least) {
  if (!isfinite(value) || value == 0)
    return (float)value;
  int exponent;
  frexp(value, &exponent);
  int step = exponent - digits > least ? exponent - digits : least;
  return (float)ldexp(nearbyint(ldexp(value, -step)), step);
}

enum kind { KindInteger, KindFloat, KindNone };

static enum kind kindOf(int32_t type) {
  switch (type) {
  case HEED_I8:
  case HEED_I16:
  case HEED_I32:
  case HEED_I64:
  case HEED_U8:
  case HEED_BOOL:
    return KindInteger;
  case HEED_F32:
  case HEED_F16:
  case HEED_BF16:
  case HEED_F64:
    return KindFloat;
  default:
    return KindNone;
  }
}

bool heed_convert_allowed(int32_t from, int32_t to, heed_rounding rounding) {
  if (kindOf(from) == KindNone || kindOf(from) != kindOf(to))
    return false;
  if (from == to || kindOf(from) == KindInteger)
    return true;
  if (from == HEED_F64)
    return rounding == HEED_ROUND_F64;
  return to == HEED_F64 || to == HEED_F32 || rounding != HEED_ROUND_NOTHING;
}

int64_t heed_load_integer(const void *array, int64_t k, int32_t type) {
  const uint8_t *data = array;
  switch (type) {
  case HEED_I8:
    return (int8_t)data[k];
  case HEED_I16: {
    int16_t value;
    memcpy(&value, data + 2 * k, 2);
    return value;
  }
  case HEED_I32: {
    int32_t value;
    memcpy(&value, data + 4 * k, 4);
    return value;
  }
  case HEED_I64: {
    int64_t value;
    memcpy(&value, data + 8 * k, 8);
    return value;
  }
  default: /* u8 and bool */
    return data[k];
  }
}

/* The values an integer type holds. */
static void integerRange(int32_t type, int64_t *low, int64_t *high) {
  switch (type) {
  case HEED_I8:
    *low = INT8_MIN, *high = INT8_MAX;
    break;
  case HEED_I16:
    *low = INT16_MIN, *high = INT16_MAX;
    break;
  case HEED_I32:
    *low = INT32_MIN, *high = INT32_MAX;
    break;
  case HEED_I64:
    *low = INT64_MIN, *high = INT64_MAX;
    break;
  case HEED_U8:
    *low = 0, *high = UINT8_MAX;
    break;
  default: /* bool */
    *low = 0, *high = 1;
    break;
  }
}

double heed_load_float(const void *array, int64_t k, int32_t type) {
  const uint8_t *data = array;
  if (type == HEED_F32) {
    float value;
    memcpy(&value, data + 4 * k, 4);
    return value;
  }
  if (type == HEED_F64) {
    double value;
    memcpy(&value, data + 8 * k, 8);
    return value;
  }
  uint16_t bits;
  memcpy(&bits, data + 2 * k, 2);
  return type == HEED_F16 ? heed_f16_to_f32(bits) : heed_bf16_to_f32(bits);
}

/* `value` came from a f64 where isDouble: rounding it to f32 first would round
 * twice. */
static void storeFloat(void *out, int64_t k, int32_t type, double value,
                       bool isDouble) {
  switch (type) {
  case HEED_F64:
    ((double *)out)[k] = value;
    break;
  case HEED_F32:
    ((float *)out)[k] = (float)value;
    break;
  case HEED_F16:
    ((uint16_t *)out)[k] =
        heed_f32_to_f16(isDouble ? roundDouble(value, 11, -24) : (float)value);
    break;
  default:
    ((uint16_t *)out)[k] =
        heed_f32_to_bf16(isDouble ? roundDouble(value, 8, -133) : (float)value);
    break;
  }
}

static void storeInteger(void *out, int64_t k, int32_t type, int64_t value) {
  switch (type) {
  case HEED_I16:
    ((int16_t *)out)[k] = (int16_t)value;
    break;
  case HEED_I32:
    ((int32_t *)out)[k] = (int32_t)value;
    break;
  case HEED_I64:
    ((int64_t *)out)[k] = value;
    break;
  default:
    ((int8_t *)out)[k] = (int8_t)value;
    break;
  }
}

/* Copies a column-major array of elements of `size` bytes to row-major order.
 */
static void transpose(const heed_array *array, size_t size, uint8_t *out) {
  int64_t index[HEED_MAX_RANK] = {0}, stride[HEED_MAX_RANK];
  int64_t product = 1;
  for (int32_t axis = 0; axis < array->rank; ++axis) {
    stride[axis] = product;
    product *= array->shape[axis];
  }
  const uint8_t *in = array->data;
  int64_t offset = 0;
  for (int64_t k = 0; k < array->count; ++k) {
    memcpy(out + (size_t)k * size, in + (size_t)offset * size, size);
    for (int32_t axis = array->rank - 1; axis >= 0; --axis) {
      offset += stride[axis];
      if (++index[axis] < array->shape[axis])
        break;
      offset -= stride[axis] * array->shape[axis];
      index[axis] = 0;
    }
  }
}

/* "[1, 7]" for the k-th element in row-major order. */
static void formatIndex(char *text, size_t size, const heed_array *array,
                        int64_t k) {
  int64_t index[HEED_MAX_RANK];
  for (int32_t axis = array->rank - 1; axis >= 0; --axis) {
    index[axis] = k % array->shape[axis];
    k /= array->shape[axis];
  }
  heed_io_format_shape(text, size, array->rank, index);
}

/* Converts `array`, which is row-major. */
static bool convertDense(const heed_array *array, int32_t to, void *out,
                         const char *where, heed_io_error *error) {
  const uint8_t *in = array->data;
  int32_t from = array->type;
  if (kindOf(from) == KindFloat) {
    for (int64_t k = 0; k < array->count; ++k)
      storeFloat(out, k, to, heed_load_float(in, k, from), from == HEED_F64);
    return true;
  }
  int64_t low, high;
  integerRange(to, &low, &high);
  for (int64_t k = 0; k < array->count; ++k) {
    int64_t value = heed_load_integer(in, k, from);
    if (value < low || value > high) {
      char index[256];
      formatIndex(index, sizeof index, array, k);
      return heed_io_fail(error,
                          "%s: element %s = %" PRId64 " does not fit %s "
                          "(%" PRId64 " to %" PRId64 ")",
                          where, index, value, heed_type_name(to), low, high);
    }
    storeInteger(out, k, to, value);
  }
  return true;
}

bool heed_convert_array(const heed_array *array, int32_t to,
                        heed_rounding rounding, void *out, const char *where,
                        heed_io_error *error) {
  int32_t from = array->type;
  if (!heed_convert_allowed(from, to, rounding)) {
    if (heed_convert_allowed(from, to, HEED_ROUND_F64))
      return heed_io_fail(error,
                          "%s: expected element type %s, found %s "
                          "(--convert rounds it)",
                          where, heed_type_name(to), heed_type_name(from));
    return heed_io_fail(error, "%s: expected element type %s, found %s", where,
                        heed_type_name(to), heed_type_name(from));
  }
  if (array->count == 0)
    return true;
  size_t size = heed_type_size(from);
  bool transposed = array->fortran && array->rank > 1;
  /* A bool of a file may hold any byte: it goes through the check like an
   * integer. */
  bool same = from == to && to != HEED_BOOL;
  if (same && transposed) {
    transpose(array, size, out);
    return true;
  }
  if (same) {
    memcpy(out, array->data, (size_t)array->count * size);
    return true;
  }
  if (!transposed)
    return convertDense(array, to, out, where, error);

  uint8_t *rowMajor = malloc((size_t)array->count * size);
  if (!rowMajor)
    return heed_io_fail(error,
                        "%s: no memory to transpose %" PRId64 " elements",
                        where, array->count);
  transpose(array, size, rowMajor);
  heed_array dense = *array;
  dense.data = rowMajor;
  dense.fortran = false;
  bool converted = convertDense(&dense, to, out, where, error);
  free(rowMajor);
  return converted;
}
