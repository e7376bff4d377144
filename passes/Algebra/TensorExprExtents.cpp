//===- TensorExprExtents.cpp - extents of tensors, as expressions ---------===//
//
// What a model requires to be equal is one expression: that of the first dim or
// constant.
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/SymbolicDims.h"
#include "passes/Algebra/TensorExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace heed {

/// Whether every call that goes on has \p condition, where its block is run.
bool Exprs::isRequired(Value condition) {
  auto isFalse = [&](Value other) {
    auto compare = other.getDefiningOp<arith::CmpIOp>();
    return compare && compare.getLhs() == positive &&
           compare.getPredicate() == arith::CmpIPredicate::sle &&
           getConstantIntValue(compare.getRhs()) == 0;
  };
  return llvm::any_of(condition.getUsers(), [&](Operation *user) {
    if (user->getBlock() != condition.getParentBlock())
      return false;
    if (isa<arith::OrIOp>(user))
      return llvm::all_of(
                 user->getOperands(),
                 [&](Value one) { return one == condition || isFalse(one); }) &&
             isRequired(user->getResult(0));
    auto require = dyn_cast<attn::RequireOp>(user);
    return require && require.getCondition() == condition;
  });
}

ExprRef Exprs::sizeOf(Value size) {
  Operation *own = size.getDefiningOp();
  for (Operation *user : size.getUsers()) {
    auto equal = dyn_cast<arith::CmpIOp>(user);
    if (!own || !equal || equal.getPredicate() != arith::CmpIPredicate::eq ||
        equal->getBlock() != own->getBlock() || !isRequired(equal.getResult()))
      continue;
    Value other = equal.getLhs() == size ? equal.getRhs() : equal.getLhs();
    Operation *def = other.getDefiningOp();
    if (isa_and_nonnull<tensor::DimOp, arith::ConstantIndexOp>(def) &&
        def->getBlock() == own->getBlock() && def->isBeforeInBlock(own))
      return sizeOf(other);
  }
  std::optional<int64_t> fixed = getConstantIntValue(size);
  return fixed ? index(*fixed) : scalar(size);
}

ExprRef Exprs::extentOf(Value tensor, unsigned axis) {
  attn::ExtentSource source = attn::traceExtent(tensor, axis);
  if (source.fixed)
    return index(*source.fixed);
  if (source.size)
    return sizeOf(source.size);
  tensor = source.tensor;
  axis = source.axis;

  // An argument's dim is the value that the function computes for it, of the
  // first argument with that dim's name.
  Block *block = tensor.getParentBlock();
  if (auto argument = dyn_cast<BlockArgument>(tensor))
    block = argument.getOwner();
  auto nameOf = [](Value value, unsigned k) -> StringAttr {
    auto argument = dyn_cast<BlockArgument>(value);
    auto function =
        argument
            ? dyn_cast_or_null<func::FuncOp>(argument.getOwner()->getParentOp())
            : nullptr;
    if (!function)
      return {};
    auto names = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(),
                                                      "attn.dims");
    return names && k < names.size() ? dyn_cast<StringAttr>(names[k])
                                     : StringAttr();
  };
  StringAttr name = nameOf(tensor, axis);
  for (auto dim : block->getOps<tensor::DimOp>())
    if (auto k = dim.getConstantIndex()) {
      if (dim.getSource() == tensor && *k == int64_t(axis))
        return sizeOf(dim);
      if (name && nameOf(dim.getSource(), *k) == name)
        return sizeOf(dim);
    }
  OpBuilder builder(context);
  builder.setInsertionPointAfterValue(tensor);
  return scalar(tensor::DimOp::create(builder, tensor.getLoc(), tensor, axis)
                    .getResult());
}

} // namespace heed
