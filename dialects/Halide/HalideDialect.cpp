// Registration of the halide dialect, and what its parts' syntax shares.

#include "dialects/Halide/HalideDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace heed::halide;

#include "dialects/Halide/HalideDialect.cpp.inc"
#include "dialects/Halide/HalideEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Halide/HalideTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Halide/HalideAttrs.cpp.inc"

void HalideDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Halide/HalideTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Halide/HalideAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Halide/HalideOps.cpp.inc"
      >();
}

int64_t heed::halide::getRank(Value func) {
  Operation *def = func.getDefiningOp();
  if (auto buffer = dyn_cast_or_null<BufferOp>(def))
    return buffer.getDims().size();
  if (auto f = dyn_cast_or_null<FuncOp>(def))
    return f.getVars().size();
  if (auto part = dyn_cast_or_null<RFactorOp>(def))
    return getRank(part.getFunc()) + part.getVars().size();
  return -1;
}

SmallVector<Type> heed::halide::getElementTypes(Value func) {
  Operation *def = func.getDefiningOp();
  if (auto buffer = dyn_cast_or_null<BufferOp>(def))
    return {buffer.getElementType()};
  if (auto f = dyn_cast_or_null<FuncOp>(def))
    return llvm::map_to_vector(f.getElementTypes().getAsValueRange<TypeAttr>(),
                               [](Type t) { return t; });
  if (auto part = dyn_cast_or_null<RFactorOp>(def))
    return ::heed::halide::getElementTypes(part.getFunc());
  return {};
}

StringRef heed::halide::getFuncName(Value func) {
  Operation *def = func.getDefiningOp();
  if (auto buffer = dyn_cast_or_null<BufferOp>(def))
    return buffer.getName();
  if (auto f = dyn_cast_or_null<FuncOp>(def))
    return f.getName();
  if (auto part = dyn_cast_or_null<RFactorOp>(def))
    return getFuncName(part.getFunc());
  return {};
}
