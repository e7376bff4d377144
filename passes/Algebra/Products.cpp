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

ExprRef distribute(Exprs &exprs, ExprRef sum,
                   llvm::function_ref<bool(ExprRef)> isSought) {
  SmallVector<unsigned> vars;
  Product product;
  flatten(exprs, exprs.open(sum, vars), product);
  auto *both = llvm::find_if(product.over, [&](ExprRef e) {
    return (e->isOp("arith.addf") || e->isOp("arith.subf")) && isSought(e);
  });
  if (both == product.over.end())
    return nullptr;
  ExprRef joined = *both;
  product.over.erase(both);
  SmallVector<ExprRef, 2> parts;
  for (ExprRef term : joined->operands) {
    Product all = product, inside, outside;
    flatten(exprs, term, all);
    for (ExprRef e : all.over)
      (e->usesAny(vars) ? inside : outside).over.push_back(e);
    for (ExprRef e : all.under)
      (e->usesAny(vars) ? inside : outside).under.push_back(e);
    ExprRef part = exprs.reduce(*sum->name, vars,
                                multiply(exprs, inside.over, inside.under));
    bool isAlone = outside.over.empty() && outside.under.empty();
    outside.over.insert(outside.over.begin(), part);
    part = multiply(exprs, outside.over, outside.under);
    // A sum over nothing is 0 whatever stands outside.
    if (!isAlone)
      part = exprs.unlessEmpty(vars, part,
                               exprs.constant(FloatAttr::get(sum->type, 0.0)));
    parts.push_back(part);
  }
  return exprs.op(joined->name->getStringRef(), sum->type, parts);
}

} // namespace heed
