/* What all readers share: errors as text, bytes of a file, and a view of an
 * array inside them.
 *
 * This folder is a leaf: C11 and POSIX, no globals, nothing of the runtime but
 * heed.h's types. Files are untrusted: every length and offset is checked
 * before use, and whatever is wrong becomes a message (file, expected, found).
 */
#ifndef HEED_IO_IO_H
#define HEED_IO_IO_H

#include "runtime/heed.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Why a call failed. Functions that take one return false and fill it. */
typedef struct heed_io_error {
  char text[768];
} heed_io_error;

/** Formats the message; always false. Over-long messages are cut. */
bool heed_io_fail(heed_io_error *error, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

/** Replaces control characters, which names inside files may hold, so that a
 * message stays one line. */
void heed_io_clean(char *text);

/** The content of a file. */
typedef struct heed_bytes {
  const uint8_t *data;
  size_t size;
  bool mapped;
} heed_bytes;

/** Reads a whole file (also a pipe) into 64-byte aligned memory. */
bool heed_bytes_read(const char *path, heed_bytes *bytes, heed_io_error *error);

/** Maps a regular file. It must not be truncated by others while it is mapped.
 */
bool heed_bytes_map(const char *path, heed_bytes *bytes, heed_io_error *error);

/** Releases either; a zeroed struct is allowed and left. */
void heed_bytes_release(heed_bytes *bytes);

/** Writes the content to the stream; false if that failed. */
typedef bool (*heed_file_writer)(void *user, FILE *file);

/** Makes a file that appears whole, down to the disk, or not at all: it has
 * another name, beside its own, until all is written. The file behind a link is
 * replaced; what is a pipe or a device is written to. */
bool heed_file_write(const char *path, heed_file_writer write, void *user,
                     heed_io_error *error);

/** A sum of what `sum` is of and of the data, as words of which the last one
 * is filled up with zeros; any change of one word changes it. */
uint64_t heed_checksum(uint64_t sum, const void *data, size_t bytes);

/** An array inside bytes that somebody else holds: little-endian, perhaps not
 * aligned to its element. */
typedef struct heed_array {
  const void *data;
  int32_t type; /**< a heed_type */
  int32_t rank;
  int64_t shape[HEED_MAX_RANK];
  int64_t count; /**< product of the shape */
  bool fortran;  /**< first axis innermost */
} heed_array;

/** Product of `rank` extents times elementSize; false if it exceeds INT64_MAX
 * or an extent is negative. */
bool heed_io_byte_count(int32_t rank, const int64_t *shape, int64_t elementSize,
                        int64_t *bytes);

/** Writes "[2, 3]" into text, cut if it doesn't fit. */
void heed_io_format_shape(char *text, size_t size, int32_t rank,
                          const int64_t *shape);

#ifdef __cplusplus
}
#endif
#endif
