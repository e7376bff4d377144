//===- Products.cpp - products and quotients of expressions, flat ---------===//
#include "passes/Algebra/Products.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace heed {

void flatten(Exprs &exprs, ExprRef e, Product &product, bool below,
             llvm::function_ref<bool(ExprRef)> isWhole) {
  bool whole = isWhole && isWhole(e);
  if (!whole && (e->isOp("arith.mulf") || e->isOp("arith.divf"))) {
    flatten(exprs, e->operand(0), product, below, isWhole);
    flatten(exprs, e->operand(1), product, below != e->isOp("arith.divf"),
            isWhole);
    return;
  }
  if (Exprs::constantFloat(e) != 1.0)
    (below ? product.under : product.over).push_back(e);
}

ExprRef multiply(Exprs &exprs, ArrayRef<ExprRef> over,
                 ArrayRef<ExprRef> under) {
  ExprRef result =
      over.empty()
          ? exprs.constant(FloatAttr::get(Float32Type::get(exprs.context), 1.0))
          : over[0];
  for (ExprRef e : over.drop_front(over.empty() ? 0 : 1))
    result = exprs.op("arith.mulf", result->type, {result, e});
  for (ExprRef e : under)
    result = exprs.op("arith.divf", result->type, {result, e});
  return result;
}

void takeOne(SmallVectorImpl<ExprRef> &factors, ExprRef factor) {
  factors.erase(llvm::find(factors, factor));
}

} // namespace heed
