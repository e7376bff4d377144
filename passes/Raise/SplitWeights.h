//===- SplitWeights.h - a sum of distributions: by terms, or at once ------===//
#ifndef HEED_PASSES_RAISE_SPLITWEIGHTS_H
#define HEED_PASSES_RAISE_SPLITWEIGHTS_H

#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorExpr.h"

namespace heed {

/// sum_j (c a[.., j] - d b[.., j]) v[j, ..] = c sum_j a v - d sum_j b v where a
/// and b are elements of softmaxes (differential attention; distributions that
/// a gate mixes): an expression with one sum for each element of a softmax, the
/// factors that do not depend on j outside. The elements that a softmax leaves
/// out are left out of its own sum alone. Null if \p sum is none such, or if
/// one pass over all scores serves it better.
///
/// Distributes and moves factors, no more; whoever writes it proves it.
ExprRef splitWeights(Exprs &exprs, ExprRef sum);

/// Whether a sum of \p split, which splitWeights() made, meets a factor that
/// may be NaN or infinite: where no key is live, the sum of all was one of
/// absent elements, which no factor meets.
bool meetsFactors(ExprRef split);

/// \p whole, but 0 where no row of \p attentions, the sums that it is made of,
/// has a live key. Where one of them has, the factors of the others meet their
/// 0. Each has a log-sum-exp afterwards, which is -inf of no key alone: none
/// has a sink.
mlir::Value zeroWithoutKeys(mlir::OpBuilder &builder, mlir::Value whole,
                            llvm::ArrayRef<attn::AttentionOp> attentions);

/// What joinWeights() finds: null if nothing.
struct JoinedWeights {
  ExprRef written = nullptr; ///< as it stands, down to the sums
  ExprRef sum = nullptr;     ///< the one in their place
  ExprRef rest = nullptr;    ///< what is added to them; null: nothing
  ExprRef none = nullptr;    ///< of a row without keys; null: 0
};

/// \p sum, which is read of \p joined's; of a row without a live key what is
/// written there, where each factor meets a 0: NaN of one that is not finite.
/// Of such a factor a live key makes no sum of 0.
ExprRef meetFactors(Exprs &exprs, const JoinedWeights &joined, ExprRef sum);

/// The other way round, c sum_j a v + d sum_j b v = sum_j (c a + d b) v, where
/// the scores of a and b are made of the same product: two branches of one
/// attention, of which one adds a mask that is data. \p element, of \p root,
/// adds such sums, which nothing else reads.
JoinedWeights joinWeights(Exprs &exprs, mlir::Operation *root, ExprRef element);

} // namespace heed
#endif
