/* NumPy's .npy arrays and .npz archives (as numpy.savez writes them, not
 * compressed). */
#ifndef HEED_IO_NPY_H
#define HEED_IO_NPY_H

#include "runtime/io/Io.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Finds the array in the bytes of a .npy file, which must end where the array
 * ends. Little-endian f2 f4 f8 i1 i2 i4 i8 u1 b1, and V2, which is how NumPy
 * shows bf16. `where` names the file in messages. */
bool heed_npy_parse(const uint8_t *data, size_t size, const char *where,
                    heed_array *array, heed_io_error *error);

/** Finds member `key` (file `key.npy`) of a .npz archive and its array. key
 * null: the only member. Members' checksums are verified; compressed or
 * encrypted members are refused. */
bool heed_npz_parse(const uint8_t *data, size_t size, const char *key,
                    const char *where, heed_array *array, heed_io_error *error);

/** Whether the bytes begin like a .npz archive. */
bool heed_npz_recognise(const uint8_t *data, size_t size);

/** Writes a row-major array as .npy, version 1.0. False, with errno, if the
 * file could not be written. */
bool heed_npy_write(FILE *file, int32_t type, int32_t rank,
                    const int64_t *shape, const void *data);

#ifdef __cplusplus
}
#endif
#endif
