/* Feeds the .npy reader, and converts what it accepts. */
#include "runtime/io/Convert.h"
#include "runtime/io/Npy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  heed_io_error error;
  heed_array array;
  if (!heed_npy_parse(data, size, "fuzz", &array, &error))
    return 0;
  for (int32_t type = HEED_F32; type <= HEED_F64; ++type) {
    void *out = malloc((size_t)array.count * heed_type_size(type) + 1);
    heed_convert_array(&array, type, HEED_ROUND_F64, out, "fuzz", &error);
    free(out);
  }
  return 0;
}
