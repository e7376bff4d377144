/* Element types of files turned into those that compiled code reads. */
#ifndef HEED_IO_CONVERT_H
#define HEED_IO_CONVERT_H

#include "runtime/io/Io.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Whether an array of type `from` may be used where `to` is wanted, and how.
 *  Exact: equal types, f16 and bf16 to f32, any integer or bool to an integer
 * type or bool (each value is checked to fit). Rounded to nearest even, as far
 * as `rounding` lets: f32, f16 and bf16 to one that does not hold all of
 * their values, and f64. All else is refused. */
typedef enum heed_rounding {
  HEED_ROUND_NOTHING,
  HEED_ROUND_F32, /**< f32, f16 and bf16: weights */
  HEED_ROUND_F64  /**< f64 too: --convert */
} heed_rounding;
bool heed_convert_allowed(int32_t from, int32_t to, heed_rounding rounding);

/** Writes the array to out in row-major order as type `to`; out holds
 * array->count elements. `where` (a file's name, or file:key) starts the
 * message. Fails if the types may not be converted (the message says where
 * --convert would), and if an integer does not fit: position and value are
 * named. */
bool heed_convert_array(const heed_array *array, int32_t to,
                        heed_rounding rounding, void *out, const char *where,
                        heed_io_error *error);

/** Element k of an array of integers or bools, or of floats; data need not be
 * aligned. */
int64_t heed_load_integer(const void *data, int64_t k, int32_t type);
double heed_load_float(const void *data, int64_t k, int32_t type);

float heed_f16_to_f32(uint16_t bits);
float heed_bf16_to_f32(uint16_t bits);
uint16_t heed_f32_to_f16(float value);  /**< to nearest even; NaN stays NaN,
                                           beyond the range becomes inf */
uint16_t heed_f32_to_bf16(float value); /**< likewise */

#ifdef __cplusplus
}
#endif
#endif
