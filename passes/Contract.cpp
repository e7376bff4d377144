//===- Contract.cpp - what the contracts between stations share -----------===//
#include "passes/Contract.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace heed;

bool heed::isScalarOf(Type type, ArrayRef<StringRef> scalars) {
  return llvm::any_of(scalars, [&](StringRef name) {
    if (name == "index")
      return type.isIndex();
    if (name == "f16")
      return type.isF16();
    if (name == "bf16")
      return type.isBF16();
    if (name == "f32")
      return type.isF32();
    if (name == "f64")
      return type.isF64();
    unsigned width;
    return name.consume_front("i") && !name.getAsInteger(10, width) &&
           type.isSignlessInteger(width);
  });
}

bool heed::isNamed(Operation *op, ArrayRef<StringRef> names) {
  StringRef self = op->getName().getStringRef();
  return llvm::any_of(names, [&](StringRef name) {
    return name.ends_with(".") ? self.starts_with(name) : self == name;
  });
}

LogicalResult heed::checkHostOp(Operation *op, StringRef rule,
                                ArrayRef<StringRef> further) {
  // arith.constant: tables too.
  if (isNamed(op,
              {"attn.param", "attn.keep", "attn.kept", "attn.require",
               "attn.require_in_range", "attn.update_state", "arith.constant",
               "tensor.dim", "tensor.empty", "tensor.expand_shape",
               "tensor.collapse_shape", "tensor.cast", "tensor.extract_slice",
               "tensor.insert_slice", "func.return", "scf."}) ||
      isNamed(op, further))
    return success();
  bool onScalars =
      llvm::none_of(op->getOperandTypes(),
                    [](Type type) { return isa<ShapedType>(type); }) &&
      llvm::none_of(op->getResultTypes(),
                    [](Type type) { return isa<ShapedType>(type); });
  if (isNamed(op, {"arith.", "math."}) && onScalars)
    return success();
  return op->emitOpError() << "stands in host code, which computes scalars and "
                              "calls kernels ("
                           << rule << ")";
}
