//===- RaiseAttentionMatcher.h - the parts of an attention ------*- C++ -*-===//
//
// What a sum over keys is taken apart into: which factor is the weight
// (RaiseAttentionMatch.cpp), how it is normalised (RaiseAttentionWeight.cpp),
// and of which terms and mask its score is made (RaiseAttentionScore.cpp).
#ifndef HEED_PASSES_RAISE_RAISEATTENTIONMATCHER_H
#define HEED_PASSES_RAISE_RAISEATTENTIONMATCHER_H

#include "passes/Algebra/Products.h"
#include "passes/Raise/RaiseAttentionMatch.h"

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
  /// Heads that share the weight but not what it is multiplied with at each
  /// pair of a query and a key, such as a decay, have it each for itself: no
  /// value is one of pairs. Leaves m.value at least one dim.
  void dropSharedValueDims(ExprRef factor, llvm::ArrayRef<ExprRef> rest);
  /// Finds the value dims, which the weight does not have, and the value terms
  /// among \p rest; what is left goes to \p product.
  bool takeValues(ExprRef factor, llvm::ArrayRef<ExprRef> rest,
                  Product &product);
  /// `v + a` over pairs are two value terms; over keys alone it is one tensor.
  void addValueTerms(ExprRef value);
  /// Factors of rows that are tensors of their own (1 / l) become what they are
  /// computed from.
  void openRowFactors(Product &product);
  llvm::SmallVector<ExprRef> softmaxesOf(const Product &product);
  bool matchWeight(ExprRef factor, llvm::ArrayRef<ExprRef> rest,
                   llvm::ArrayRef<ExprRef> under);

  // How scores become weights.
  bool matchSoftmaxOp(ExprRef weight);
  /// Whether its weights and scores need not be stored for anyone else.
  bool isReadHereAlone(attn::SoftmaxOp softmax);
  /// Whether \p e is 0 where the weight is.
  bool staysZero(ExprRef e);
  /// Factors of a weighted sum: what varies over pairs is the weight, the rest
  /// scales it.
  struct WeightFactors {
    llvm::SmallVector<ExprRef> pairs, scales, pairsUnder, scalesUnder;
    /// The factor with `exponential` = exp(s - m) in it, maybe only where
    /// `condition` holds; else the function of the scores as a whole.
    ExprRef core = nullptr, exponential = nullptr, condition = nullptr;
  };
  WeightFactors factorsOf(const Product &product);
  bool hasScores(const Product &product, ExprRef core);
  bool hasParametersAsValues();
  /// Takes the divisor that is the sum of factors of the weight, which become
  /// its core, if there is one.
  void takeNormaliser(WeightFactors &factors, ExprRef &sinkWeight);
  /// A row without a key is 0 / 0 where the whole sum is divided, and a sum of
  /// nothing where each weight is. Of an exponential keys of score -inf are
  /// none.
  bool chooseEmptyRow(const WeightFactors &factors);
  bool isSumOfChains(ExprRef e);
  ExprRef scoreOfMap(ExprRef core);
  bool matchFunction(const Product &product);
  bool isFeedForward();
  bool hasOwnKeys(ExprRef sum);
  ExprRef matchExponential(ExprRef exponential, ExprRef condition,
                           ExprRef sinkWeight);
  ExprRef matchOtherMap(ExprRef core);
  ExprRef summedBy(ExprRef under, ExprRef &sinkWeight);
  bool takeSummed(WeightFactors &factors, ExprRef summed);
  bool isRowMaximum(ExprRef maximum, ExprRef score, ExprRef sink);
  ExprRef openOverKeys(ExprRef reduce);
  ExprRef expandTop(ExprRef e);

  // The score: terms, and the mask that was put into it.
  bool finish(ExprRef score, bool seesMask = true);
  void noteFiniteFill();
  bool termsWithoutContraction();
  void termsOverOffsets();
  ExprRef termWithoutContraction(ExprRef operand);
  /// What is summed for a pair, but is no term, is read as it is stored.
  void readStored(ExprRef &score);
  /// Whether \p e is made of data of pairs by reductions that are no terms.
  bool isOfPairs(ExprRef e);
  bool readsPairs(ExprRef e);
  ExprRef terms(ExprRef reduce);
  ExprRef termOf(Product product, llvm::ArrayRef<unsigned> contract);
  /// The terms of \p product's factor number \p sum, a sum or difference, each
  /// times the others; null if one is no term.
  ExprRef distribute(const Product &product, unsigned sum,
                     llvm::ArrayRef<unsigned> contract);
  static bool isRead(ExprRef e);
  /// What \p functions of one-sided parts are times the operands of \p term:
  /// its `pair`. False if they read or sum something else.
  bool addPair(AttentionTerm &term, llvm::ArrayRef<ExprRef> functions);
  /// Parts of \p outside over parts of \p under; of an empty sum they are 1:
  /// it is 0 whatever it was scaled by (1 / sqrt(E) with E = 0).
  ExprRef scaled(ExprRef term, llvm::SmallVector<ExprRef> outside,
                 llvm::SmallVector<ExprRef> under,
                 llvm::ArrayRef<unsigned> contract);
  ExprRef oneIfEmpty(ExprRef scale, llvm::ArrayRef<unsigned> contract);
  ExprRef peelGuard(ExprRef e, ExprRef &guard);
  bool asksForScore(ExprRef choice);
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
  llvm::SmallVector<unsigned> shared;  // dims of the output that no value has
  std::optional<unsigned> preferred;   // of these, the query
  llvm::SmallVector<ExprRef> expanded; // reads over pairs
  ExprRef guard = nullptr;             // of the whole sum
  ExprRef whole = nullptr;             // what divides the whole sum
};

} // namespace heed
#endif
