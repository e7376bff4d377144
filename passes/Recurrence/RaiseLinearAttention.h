//===- RaiseLinearAttention.h - parts of that pass --------------*- C++ -*-===//
#ifndef HEED_PASSES_RECURRENCE_RAISELINEARATTENTION_H
#define HEED_PASSES_RECURRENCE_RAISELINEARATTENTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace heed {

namespace attn {
class ScanOp;
}

/// The pass whose parts these are.
inline constexpr llvm::StringLiteral raiseLinearPass =
    "attn-raise-linear-attention";

/// Whether \p scan does nothing but compute f32 states, from step 0 on.
bool mayBeLinear(attn::ScanOp scan);

/// Puts linear attentions in the place of \p scan, if its states are such.
/// Whether it did; a remark says why it did not, unless \p silent.
bool raiseLinearScan(attn::ScanOp scan, bool silent = false);

/// The same of states to which a step adds several products, as a linear
/// attention of each.
bool raiseSummedScan(attn::ScanOp scan);

/// Puts a linear attention in the place of \p sum, if it is a sum over what
/// comes before of products of queries, keys and values. Whether it did.
bool raiseCausalSum(mlir::linalg::LinalgOp sum);

/// Puts a recurrence in the place of \p sum, if it is a convolution of what
/// comes before with powers of the steps between, or with sums of such. Whether
/// it did.
bool raisePowerSum(mlir::linalg::LinalgOp sum);

/// Puts a recurrence in the place of \p reduction, if it is one over what comes
/// before, or behind, of terms of their own. Whether it did.
bool raisePrefix(mlir::linalg::LinalgOp reduction);

/// The same of a reduction of several results, as argmax is.
bool raiseFold(mlir::linalg::LinalgOp reduction);

} // namespace heed
#endif
