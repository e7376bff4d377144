//===- RowSum.h - sums of weights that no value meets -----------*- C++ -*-===//
#ifndef HEED_PASSES_RAISE_ROWSUM_H
#define HEED_PASSES_RAISE_ROWSUM_H

#include "passes/Raise/RaiseAttentionMatch.h"

#include "mlir/IR/Operation.h"

namespace heed {

/// Whether the tensors of pairs, of one of \p rows and of a key, that the
/// reductions \p reads are made of are read for these alone. Their ops are
/// added to \p reductions.
bool readPairsAlone(Exprs &exprs, llvm::ArrayRef<ExprRef> reads,
                    llvm::ArrayRef<unsigned> rows,
                    llvm::SetVector<mlir::Operation *> &reductions);

/// sum(j) w[j] as sum(j) w[j] * 1, an attention whose values are 1, which are
/// written at \p builder's position.
ExprRef timesOne(mlir::OpBuilder &builder, mlir::Location loc, Exprs &exprs,
                 ExprRef sum);

/// Whether a key of \p match is no parameter: weights as keys are a product,
/// which packs them and is faster.
bool hasKeysOfCall(const AttentionMatch &match);

} // namespace heed
#endif
