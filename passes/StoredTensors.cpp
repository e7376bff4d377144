//===- StoredTensors.cpp - what a tensor between kernels takes, as text ---===//
#include "passes/StoredTensors.h"
#include "dialects/Attn/Dialect.h"
#include "passes/TensorExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace heed {

static std::string extentText(Value value) {
  if (auto constant = getConstantIntValue(value))
    return std::to_string(*constant);
  Operation *def = value.getDefiningOp();
  if (auto dim = dyn_cast_or_null<tensor::DimOp>(def)) {
    auto argument = dyn_cast<BlockArgument>(dim.getSource());
    auto function =
        argument
            ? dyn_cast_or_null<func::FuncOp>(argument.getOwner()->getParentOp())
            : nullptr;
    auto names = function ? function.getArgAttrOfType<ArrayAttr>(
                                argument.getArgNumber(), attn::kDimsAttr)
                          : nullptr;
    auto axis = dim.getConstantIndex();
    return names && axis && *axis < int64_t(names.size())
               ? cast<StringAttr>(names[*axis]).getValue().str()
               : "?";
  }
  auto infix = [&](StringRef sign, bool brackets) {
    std::string text = extentText(def->getOperand(0)) + sign.str() +
                       extentText(def->getOperand(1));
    return brackets ? "(" + text + ")" : text;
  };
  if (isa_and_nonnull<arith::AddIOp>(def))
    return infix(" + ", false);
  if (isa_and_nonnull<arith::SubIOp>(def))
    return infix(" - ", true);
  if (isa_and_nonnull<arith::MulIOp>(def))
    return infix("*", true);
  if (isa_and_nonnull<arith::FloorDivSIOp, arith::DivSIOp>(def))
    return infix("//", true);
  return "?";
}

std::string storedText(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Exprs exprs(tensor.getContext());
  std::string text = "[";
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    ExprRef extent = exprs.extentOf(tensor, axis);
    text += axis ? ", " : "";
    if (auto known = extent ? Exprs::constantInt(extent) : std::nullopt)
      text += std::to_string(*known);
    else
      text += extent && extent->kind == ExprKind::Scalar
                  ? extentText(extent->value)
                  : "?";
  }
  llvm::raw_string_ostream(text) << "] of " << type.getElementType();
  return text;
}

} // namespace heed
