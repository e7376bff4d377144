//===- Families.cpp - the schedule families in a list ---------------------===//
#include "passes/Schedule/Schedule.h"

llvm::ArrayRef<heed::Family> heed::families() {
  static const Family all[] = {
#define FAMILY(family) family(),
#include "passes/Schedule/Families.def"
  };
  return all;
}
