/* Feeds the .npz reader. */
#include "runtime/io/Npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  heed_io_error error;
  heed_array array;
  heed_npz_recognise(data, size);
  heed_npz_parse(data, size, "a", "fuzz", &array, &error);
  heed_npz_parse(data, size, NULL, "fuzz", &array, &error);
  return 0;
}
