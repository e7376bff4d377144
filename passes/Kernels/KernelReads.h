//===- KernelReads.h - what an op reads of a kernel before it ---*- C++ -*-===//
#ifndef HEED_PASSES_KERNELS_KERNELREADS_H
#define HEED_PASSES_KERNELS_KERNELREADS_H

#include "mlir/IR/Value.h"

namespace heed {

/// Whether \p user reads \p value under a condition. Such a read is clamped: no
/// schedule of rows sees that it stays in its row, or computes the branches
/// apart (Elementwise.cpp).
bool readsInBranch(mlir::Operation *user, mlir::Value value);

/// Whether \p user sums along what \p value has one element of for each of its
/// own rows.
bool sumsAlong(mlir::Operation *user, mlir::Value value);

/// Whether a family computes each element of \p value once, where it is one of
/// the tensors that the contraction \p product reads.
bool isComputedOnce(mlir::Operation *product, mlir::Value value);

/// Whether \p user, a sum, reads windows of \p value, which are computed once
/// for all of a tile.
bool readsWindow(mlir::Operation *user, mlir::Value value);

/// Whether a family computes \p sum, a reduction of rows, beside \p product.
bool standsBeside(mlir::Operation *product, mlir::Operation *sum);

/// Whether the kernel of a product, with sums beside it, is all that reads
/// \p op's result and computes it once, so that it need not be stored.
bool isComputedInProduct(mlir::Operation *op);

} // namespace heed

#endif
