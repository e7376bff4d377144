//===- InlineLive.h - which elements of a softmax are present *- C++ -*-===//
#ifndef HEED_PASSES_KERNELS_INLINELIVE_H
#define HEED_PASSES_KERNELS_INLINELIVE_H

#include "mlir/IR/Operation.h"

namespace heed {

/// Replaces uses of a softmax's `live` by what its result says: an absent
/// element has a value of its own. So `live` is never stored.
void inlineLive(mlir::Operation *op);

/// On a softmax whose absent elements are told from others: of a kernel's
/// softmax without it some may be +0.
inline constexpr llvm::StringLiteral kMarksAbsentAttr = "attn.marks_absent";

} // namespace heed

#endif
