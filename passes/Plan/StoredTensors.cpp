//===- StoredTensors.cpp - what a tensor between kernels takes, as text ---===//
#include "passes/Plan/StoredTensors.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorExpr.h"
#include "support/Format.h"

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
    return format("{}", *constant);
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
    if (auto param = dim.getSource().getDefiningOp<attn::ParamOp>())
      names = param->getAttrOfType<ArrayAttr>(attn::kDimsAttr);
    auto axis = dim.getConstantIndex();
    return names && axis && *axis < int64_t(names.size())
               ? cast<StringAttr>(names[*axis]).getValue().str()
               : "?";
  }
  auto infix = [&](StringRef sign, bool brackets) {
    return format(brackets ? "({}{}{})" : "{}{}{}",
                  extentText(def->getOperand(0)), sign,
                  extentText(def->getOperand(1)));
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
      texts.push_back(format("{}", *known));
    else
      texts.push_back(extent && extent->kind == ExprKind::Scalar
                          ? extentText(extent->value)
                          : "?");
  }
  return texts;
}

std::string storedText(Value tensor) {
  return format("[{}] of {}", llvm::join(extentTexts(tensor), ", "),
                printed(getElementTypeOrSelf(tensor)));
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
      text += format(StringRef(extent).contains(' ') && extent.front() != '('
                         ? "*({})"
                         : "*{}",
                     extent);
    else
      known *= number;
  }
  return format("{}{} bytes", known, text);
}

} // namespace heed
