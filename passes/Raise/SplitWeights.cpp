//===- SplitWeights.cpp - a sum of distributions, term by term ------------===//
#include "passes/Raise/SplitWeights.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/SplitSums.h"

using namespace mlir;

namespace heed {

static attn::SoftmaxOp softmaxOf(ExprRef weight) {
  return weight->value.getDefiningOp<attn::SoftmaxOp>();
}

ExprRef splitWeights(Exprs &exprs, ExprRef sum) {
  auto isWeight = [](ExprRef read) {
    return isa<FloatType>(read->type) && softmaxOf(read);
  };
  // Each term takes a product with the values of its own. Where the scores are
  // the same for all, one pass over them takes fewer: with two terms, about as
  // long.
  auto accept = [&](ArrayRef<ExprRef> weights, ArrayRef<unsigned>) {
    llvm::SmallDenseSet<ExprRef> scores;
    for (ExprRef weight : weights)
      scores.insert(exprs.read(softmaxOf(weight).getInput(), weight->operands));
    return weights.size() == 2 || scores.size() == weights.size();
  };
  auto live = [&](ExprRef weight) {
    return exprs.read(softmaxOf(weight).getLive(), weight->operands);
  };
  return splitSum(exprs, sum, {isWeight, accept, live});
}

} // namespace heed
