//===- Families.cpp - the schedule families -------------------------------===//
//
// A family is a file here that defines its function, and its line below.
#include "passes/Kernels/Families.h"

#define HEED_FAMILIES(FAMILY)                                                  \
  FAMILY(rowBlockFamily)                                                       \
  FAMILY(transposedFamily)                                                     \
  FAMILY(elementwiseFamily)                                                    \
  FAMILY(rowProductFamily)                                                     \
  FAMILY(stateProductFamily)                                                   \
  FAMILY(dotProductsFamily)                                                    \
  FAMILY(contractionFamily)                                                    \
  FAMILY(rowsFamily)                                                           \
  FAMILY(genericFamily)

namespace heed {

#define DECLARE(family) Family family();
HEED_FAMILIES(DECLARE)
#undef DECLARE

llvm::ArrayRef<Family> families() {
#define CALL(family) family(),
  static const Family all[] = {HEED_FAMILIES(CALL)};
#undef CALL
  return all;
}

} // namespace heed
