/* Weights: .safetensors files, one or several, or named by a
 * .safetensors.index.json. */
#ifndef HEED_IO_SAFETENSORS_H
#define HEED_IO_SAFETENSORS_H

#include "runtime/io/Io.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One tensor of a file. array.type is 0 where the file's type is one we have
 * no name for (dtype says which). */
typedef struct heed_safetensor {
  const char *name;
  const char *dtype;
  heed_array array;
} heed_safetensor;

/** The header of one file: tensors sorted by name. */
typedef struct heed_safetensors {
  heed_safetensor *tensors;
  size_t numTensors;
  char *strings;
} heed_safetensors;

/** Reads the header of a .safetensors file's bytes, which must live as long as
 * the result. Tensors must fill the data without gaps or overlaps, as the
 * format asks. `where` names the file in messages. */
bool heed_safetensors_parse(const uint8_t *data, size_t size, const char *where,
                            heed_safetensors *file, heed_io_error *error);
void heed_safetensors_release(heed_safetensors *file);

/** The value of a key of "__metadata__", of a file whose header was read and
 * was written by this runtime: plain text, nothing escaped. *length is 0 where
 * there is none. */
const char *heed_safetensors_metadata(const heed_bytes *bytes, const char *key,
                                      size_t *length);
/** Whether it is that text. */
bool heed_safetensors_says(const heed_bytes *bytes, const char *key,
                           const char *expected);

/** What the format calls a heed_type; null if it has none. */
const char *heed_safetensors_dtype(int32_t type);

/** The tensor of that name, or null. */
const heed_safetensor *heed_safetensors_find(const heed_safetensors *file,
                                             const char *name);

/** One "name": "file" pair of a sharded index. */
typedef struct heed_shard_entry {
  const char *name, *file;
} heed_shard_entry;

/** The weight map of a .safetensors.index.json. Files are plain names: a path
 * is an error. */
typedef struct heed_shard_index {
  heed_shard_entry *entries;
  size_t numEntries;
  char *strings;
} heed_shard_index;

bool heed_shard_index_parse(const uint8_t *data, size_t size, const char *where,
                            heed_shard_index *index, heed_io_error *error);
void heed_shard_index_release(heed_shard_index *index);

/** All tensors of a set of files. */
typedef struct heed_weights heed_weights;

bool heed_is_folder(const char *path);

/** Maps the files or, with `reads`, reads them to memory; a path that ends in
 * ".json" is a sharded index, a folder is that of a checkpoint:
 * model.safetensors in it or, without that, model.safetensors.index.json. A
 * tensor that two files hold is an error, as is one that the index names and
 * its file lacks. */
bool heed_weights_open(const char *const *paths, size_t numPaths, bool reads,
                       heed_weights **weights, heed_io_error *error);

/** Adds the tensors of a .safetensors file in memory, which stays the caller's.
 */
bool heed_weights_add(heed_weights *weights, const char *name, const void *data,
                      size_t size, heed_io_error *error);

/** The tensor of that name, or null; *path (may be null) gets the file that
 * holds it. */
const heed_safetensor *heed_weights_find(const heed_weights *weights,
                                         const char *name, const char **path);

/** Tensors over all files, and the k-th of them, in no order. */
size_t heed_weights_count(const heed_weights *weights);
const heed_safetensor *heed_weights_at(const heed_weights *weights, size_t k);

/** Gives back the pages that lie in these bytes of a mapped file: resident
 * memory falls, and who reads them again finds them in the file. Does nothing
 * with other memory. */
void heed_weights_leave(const heed_weights *weights, const void *data,
                        size_t bytes);

/** Null is allowed. */
void heed_weights_close(heed_weights *weights);

#ifdef __cplusplus
}
#endif
#endif
