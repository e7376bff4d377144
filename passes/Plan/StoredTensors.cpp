//===- StoredTensors.cpp - what a tensor between kernels takes, as text ---===//
#include "passes/Plan/StoredTensors.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"

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

/// The extents of \p tensor, each as text.
static SmallVector<std::string> extentTexts(Value tensor) {
  Exprs exprs(tensor.getContext());
  SmallVector<std::string> texts;
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  for (int64_t axis = 0; axis < rank; ++axis) {
    ExprRef extent = exprs.extentOf(tensor, axis);
    if (auto known = extent ? Exprs::constantInt(extent) : std::nullopt)
      texts.push_back(std::to_string(*known));
    else
      texts.push_back(extent && extent->kind == ExprKind::Scalar
                          ? extentText(extent->value)
                          : "?");
  }
  return texts;
}

std::string storedText(Value tensor) {
  std::string text = "[" + llvm::join(extentTexts(tensor), ", ") + "] of ";
  llvm::raw_string_ostream(text) << getElementTypeOrSelf(tensor);
  return text;
}

std::string trafficText(Value tensor, unsigned times) {
  unsigned bits = getElementTypeOrSelf(tensor).getIntOrFloatBitWidth();
  uint64_t known = times * llvm::divideCeil(bits, 8);
  std::string text;
  for (const std::string &extent : extentTexts(tensor)) {
    uint64_t number;
    if (StringRef(extent).contains('?'))
      return {};
    if (StringRef(extent).getAsInteger(10, number))
      text += "*" + (StringRef(extent).contains(' ') && extent.front() != '('
                         ? "(" + extent + ")"
                         : extent);
    else
      known *= number;
  }
  return std::to_string(known) + text + " bytes";
}

} // namespace heed
