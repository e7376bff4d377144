/* What signatures alone say: names of inputs and outputs, whether an entry can
 * generate. */
#include "runtime/generate.h"

#include <stdbool.h>
#include <string.h>

static int32_t find(const heed_tensor_info *const *tensors, int32_t count,
                    const char *name) {
  for (int32_t k = 0; name && k < count; ++k)
    if (!strcmp(tensors[k]->name, name))
      return k;
  return -1;
}

int32_t heed_find_input(const heed_signature *signature, const char *name) {
  return signature ? find(signature->inputs, signature->numInputs, name) : -1;
}

int32_t heed_find_output(const heed_signature *signature, const char *name) {
  return signature ? find(signature->outputs, signature->numOutputs, name) : -1;
}

static bool isTensor(const heed_tensor_info *info, int32_t rank) {
  return info->rank == rank && !info->isScalar;
}

int32_t heed_can_generate(const heed_signature *entry) {
  int32_t ids = heed_find_input(entry, "ids"),
          logits = heed_find_output(entry, "logits"),
          count = heed_find_input(entry, "count");
  if (ids < 0 || logits < 0 || !isTensor(entry->inputs[ids], 2) ||
      entry->inputs[ids]->type != HEED_I32 ||
      !isTensor(entry->outputs[logits], 2))
    return 0;
  int32_t type = entry->outputs[logits]->type;
  if (type != HEED_F32 && type != HEED_F16 && type != HEED_BF16)
    return 0;
  return count < 0 || (isTensor(entry->inputs[count], 1) &&
                       entry->inputs[count]->type == HEED_I32);
}
