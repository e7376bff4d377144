//===- RaiseAttentionMatch.h - an attention found in a sum ------*- C++ -*-===//
#ifndef HEED_PASSES_RAISE_RAISEATTENTIONMATCH_H
#define HEED_PASSES_RAISE_RAISEATTENTIONMATCH_H

#include "dialects/Attn/Normaliser.h"
#include "passes/Algebra/TensorExpr.h"

namespace heed {

/// A factor of a term or a value: an element of a tensor, given by an
/// expression of loop variables.
struct AttentionTerm {
  llvm::SmallVector<ExprRef> operands;
  llvm::SmallVector<unsigned> contract; // loop variables that it is summed over
  ExprRef pair = nullptr;               // over `parameters`; null: the product
  llvm::SmallVector<unsigned> parameters;
  unsigned result = 0; // the parameter that stands for it in `score`
};

/// What the output of a row without a key of weight is: a softmax gives 0; a
/// quotient that is written out is 0 / 0, but a sum over no keys at all is 0.
enum class EmptyRow { Zero, NaN, NaNIfKeys };

/// All that `attn.attention` needs, as expressions over loop variables.
struct AttentionMatch {
  llvm::SmallVector<unsigned> batch, query, key, contract, value;
  llvm::SmallVector<AttentionTerm> terms;
  llvm::SmallVector<ExprRef> values;
  ExprRef score = nullptr, where = nullptr, weight = nullptr, sink = nullptr;
  unsigned weightParameter = 0;
  attn::Map map = attn::Map::Exp;
  bool divide = false, stabilise = false;
  bool dividesAfter = false; ///< the normaliser divides the whole sum
  bool lse = false;          ///< the log-sum-exp is a result, too
  EmptyRow empty = EmptyRow::Zero;
  llvm::SmallVector<std::string> notes; // what a reader of --explain must know
};

/// Finds attention in \p sum, a sum over keys, whose free variables are \p
/// outputs; \p denominator, if not null, divides the whole sum. Fails with \p
/// why set to a sentence, or empty where nothing looked like attention.
mlir::FailureOr<AttentionMatch> matchAttention(Exprs &exprs, ExprRef sum,
                                               llvm::ArrayRef<unsigned> outputs,
                                               ExprRef denominator,
                                               std::string &why);

/// Writes the op at \p builder's position. The result has \p outputs as axes.
/// Fails, with \p why, on an operand that no map can describe.
mlir::FailureOr<mlir::Value>
buildAttention(mlir::OpBuilder &builder, mlir::Location loc, Exprs &exprs,
               AttentionMatch match, llvm::ArrayRef<unsigned> outputs,
               mlir::Type element, std::string &why);

} // namespace heed
#endif
