/* Feeds the .safetensors reader, and reads the first and last byte of every
 * tensor that it accepts. */
#include "runtime/io/Safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  heed_io_error error;
  heed_safetensors file;
  if (!heed_safetensors_parse(data, size, "fuzz", &file, &error))
    return 0;
  volatile uint8_t sum = 0;
  for (size_t k = 0; k < file.numTensors; ++k) {
    const heed_safetensor *tensor = &file.tensors[k];
    size_t elementSize = heed_type_size(tensor->array.type);
    size_t bytes =
        (size_t)tensor->array.count * (elementSize ? elementSize : 1);
    const uint8_t *content = tensor->array.data;
    if (bytes)
      sum = (uint8_t)(sum + content[0] + content[bytes - 1]);
    if (heed_safetensors_find(&file, tensor->name) != tensor)
      __builtin_trap();
  }
  heed_safetensors_release(&file);
  return 0;
}
