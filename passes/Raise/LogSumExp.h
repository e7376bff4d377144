//===- LogSumExp.h - an attention's rows as log-sum-exps --------*- C++ -*-===//
#ifndef HEED_PASSES_RAISE_LOGSUMEXP_H
#define HEED_PASSES_RAISE_LOGSUMEXP_H

#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorExpr.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace heed {

/// Whether \p reduction is part of log-sum-exps alone: a sum of exponentials of
/// which logarithms are taken, or the maximum that is subtracted before.
bool isOfLogSumExp(mlir::linalg::LinalgOp reduction);

/// \p op again, with the log-sum-exp of each row as a result.
attn::AttentionOp withLse(mlir::OpBuilder &b, attn::AttentionOp op);

/// A log-sum-exp that is a result of an attention now.
struct RaisedLogSumExp {
  attn::AttentionOp op;
  bool alone = false; ///< nothing else of the attention is read
  std::string axioms;
};

/// log(sum(j) exp(s)), or m + log(sum(j) exp(s - m)) with the row's maximum m,
/// wherever it stands in \p element, an element of the result of \p root over
/// \p vars: as a result of an attention of the block that has these scores, or
/// of one of its own if nobody else reads them. What was raised is added to
/// \p raised, and the attention that it replaces is erased. Null if nothing
/// was raised. With the maximum written a row whose every score is -inf is NaN,
/// and stays so.
mlir::Value raiseLogSumExps(mlir::OpBuilder &builder, mlir::Operation *root,
                            Exprs &exprs, ExprRef element,
                            llvm::ArrayRef<unsigned> vars,
                            llvm::SmallVectorImpl<RaisedLogSumExp> &raised);

} // namespace heed
#endif
