//===- Products.h - products and quotients of expressions, flat -*- C++ -*-===//
#ifndef HEED_PASSES_ALGEBRA_PRODUCTS_H
#define HEED_PASSES_ALGEBRA_PRODUCTS_H

#include "passes/Algebra/TensorExpr.h"

namespace heed {

/// over[0] * over[1] * ... / under[0] / ...
struct Product {
  llvm::SmallVector<ExprRef> over, under;
};

/// Adds the factors of \p e to \p product, below the line if \p below. What
/// \p isWhole holds for is one factor; a factor of 1 is left away.
void flatten(Exprs &exprs, ExprRef e, Product &product, bool below = false,
             llvm::function_ref<bool(ExprRef)> isWhole = nullptr);

/// The product of \p over divided by \p under one after the other.
ExprRef multiply(Exprs &exprs, llvm::ArrayRef<ExprRef> over,
                 llvm::ArrayRef<ExprRef> under = {});

/// Takes one occurrence of \p factor out of \p factors, which are a multiset.
void takeOne(llvm::SmallVectorImpl<ExprRef> &factors, ExprRef factor);

/// \p sum, over products of which one factor is itself a sum, and \p isSought,
/// as the sum or difference of two; what no summed variable is in stands
/// outside. Null if there is no such factor.
ExprRef distribute(Exprs &exprs, ExprRef sum,
                   llvm::function_ref<bool(ExprRef)> isSought);

} // namespace heed
#endif
