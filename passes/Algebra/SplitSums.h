//===- SplitSums.h - a sum of sums of products, term by term ----*- C++ -*-===//
#ifndef HEED_PASSES_ALGEBRA_SPLITSUMS_H
#define HEED_PASSES_ALGEBRA_SPLITSUMS_H

#include "passes/Algebra/TensorExpr.h"

namespace heed {

/// How a sum is to be split.
struct SumSplit {
  /// Whether a read is a part: each term has one, as a factor.
  llvm::function_ref<bool(ExprRef)> isPart;
  /// Whether these parts, of terms over \p keys, are to be summed apart.
  llvm::function_ref<bool(llvm::ArrayRef<ExprRef> parts,
                          llvm::ArrayRef<unsigned> keys)>
      accept;
  /// The condition of the sum of a part, where the whole has one. Without, such
  /// a sum is left alone.
  llvm::function_ref<ExprRef(ExprRef part)> guardOf = nullptr;
};

/// sum_j (c a[.., j] - d b[.., j]) v[j, ..] = c sum_j a v - d sum_j b v, with a
/// and b the parts: what does not depend on j stands before the sums, but for
/// divisors. Elementwise ops are seen through. Null if \p sum is none such.
///
/// Distributes and moves factors, no more; whoever writes it proves it.
ExprRef splitSum(Exprs &exprs, ExprRef sum, const SumSplit &how);

} // namespace heed
#endif
