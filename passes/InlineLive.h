//===- InlineLive.h - which rows of a softmax are live, again ---*- C++ -*-===//
#ifndef HEED_PASSES_INLINELIVE_H
#define HEED_PASSES_INLINELIVE_H

#include "mlir/IR/Operation.h"

namespace heed {

/// Replaces uses of a softmax's `live` by its predicate, so that it is
/// recomputed where it is read and never stored.
void inlineLive(mlir::Operation *op);

} // namespace heed

#endif
