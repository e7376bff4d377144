//===- Families.cpp - the schedule families in a list ---------------------===//
#include "passes/Schedule/Schedule.h"

llvm::ArrayRef<heed::Family> heed::families(bool ofGPUs) {
  static const Family ofProcessors[] = {
#define FAMILY(family) family(),
#include "passes/Schedule/Families.def"
  };
  static const Family onDevices[] = {
#define FAMILY(family)
#define GPU_FAMILY(family) family(),
#include "passes/Schedule/Families.def"
  };
  return ofGPUs ? llvm::ArrayRef<Family>(onDevices)
                : llvm::ArrayRef<Family>(ofProcessors);
}
