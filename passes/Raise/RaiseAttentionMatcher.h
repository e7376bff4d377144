//===- RaiseAttentionMatcher.h - the parts of an attention ------*- C++ -*-===//
//
// What a sum over keys is taken apart into: which factor is the weight
// (RaiseAttentionMatch.cpp), how it is normalised (RaiseAttentionWeight.cpp),
// and of which terms and mask its score is made (RaiseAttentionScore.cpp).
#ifndef HEED_PASSES_RAISE_RAISEATTENTIONMATCHER_H
#define HEED_PASSES_RAISE_RAISEATTENTIONMATCHER_H

#include "passes/Raise/RaiseAttentionMatch.h"
#include "passes/Rewrite/Products.h"

namespace heed {

class AttentionMatcher {
public:
  AttentionMatcher(Exprs &exprs, llvm::ArrayRef<unsigned> outputs,
                   std::string &why)
      : exprs(exprs), outputs(outputs), why(why) {}
  mlir::FailureOr<AttentionMatch> match(ExprRef sum, ExprRef denominator);

private:
  // Which factor is the weight, which the value.
  bool classify(llvm::ArrayRef<ExprRef> rest);
  std::optional<unsigned> betterQuery();
  bool matchWeight(ExprRef factor, llvm::ArrayRef<ExprRef> rest,
                   llvm::ArrayRef<ExprRef> under);

  // How scores become weights.
  bool matchSoftmaxOp(ExprRef weight);
  bool matchFunction(Product product);
  bool isFeedForward();
  ExprRef matchExponential(ExprRef exponential, ExprRef condition,
                           ExprRef sinkWeight);
  ExprRef matchOtherMap(ExprRef core);
  bool matchNormaliser(ExprRef under, ExprRef core, ExprRef &sinkWeight);
  bool isRowMaximum(ExprRef maximum, ExprRef score, ExprRef sink);
  ExprRef openOverKeys(ExprRef reduce);
  ExprRef expandTop(ExprRef e);

  // The score: terms, and the mask that was put into it.
  bool finish(ExprRef score, bool seesMask = true);
  void noteFiniteFill();
  bool termsWithoutContraction();
  void termsOverOffsets();
  ExprRef termWithoutContraction(ExprRef operand);
  ExprRef terms(ExprRef reduce);
  ExprRef termOf(Product product, llvm::ArrayRef<unsigned> contract);
  ExprRef oneIfEmpty(ExprRef scale, llvm::ArrayRef<unsigned> contract);
  ExprRef peelGuard(ExprRef e, ExprRef &guard);
  ExprRef peelMask(ExprRef score, ExprRef &where);

  ExprRef expandPairs(ExprRef e);
  bool varies(ExprRef e) {
    return e->usesAny(keys) && (m.query.empty() || e->usesAny(m.query));
  }
  bool isOneSided(ExprRef e) {
    return !e->usesAny(keys) || !e->usesAny(m.query);
  }
  void flatten(ExprRef e, Product &product, bool below = false);
  ExprRef multiply(llvm::ArrayRef<ExprRef> over,
                   llvm::ArrayRef<ExprRef> under) {
    return heed::multiply(exprs, over, under);
  }
  bool fails(const llvm::Twine &reason) {
    if (why.empty())
      why = reason.str();
    return false;
  }
  mlir::Type f32() { return mlir::Float32Type::get(exprs.context); }
  ExprRef f32(double v) {
    return exprs.constant(mlir::FloatAttr::get(f32(), v));
  }

  Exprs &exprs;
  llvm::ArrayRef<unsigned> outputs;
  std::string &why;
  AttentionMatch m;
  llvm::SmallVector<unsigned> keys;
  llvm::SmallVector<unsigned> shared; // dims of the output that no value has
  std::optional<unsigned> preferred;  // of these, the query
  ExprRef guard = nullptr;            // of the whole sum
  ExprRef whole = nullptr;            // what divides the whole sum
};

} // namespace heed
#endif
