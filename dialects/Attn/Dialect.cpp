//===- Dialect.cpp - registration of the attn dialect ---------------------===//
#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace heed::attn;

#include "dialects/Attn/Dialect.cpp.inc"
#include "dialects/Attn/Enums.cpp.inc"
#include "dialects/Attn/Interfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Attn/Attrs.cpp.inc"

void AttnDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Attn/Ops.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Attn/Attrs.cpp.inc"
      >();
}
