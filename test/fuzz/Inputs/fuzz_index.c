/* Feeds the reader of sharded indices; no accepted file name may leave the
 * index's folder. */
#include "runtime/io/Safetensors.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  heed_io_error error;
  heed_shard_index index;
  if (!heed_shard_index_parse(data, size, "fuzz", &index, &error))
    return 0;
  for (size_t k = 0; k < index.numEntries; ++k)
    if (strchr(index.entries[k].file, '/') || index.entries[k].file[0] == '.')
      __builtin_trap();
  heed_shard_index_release(&index);
  return 0;
}
