//===- Squares.h - squares transposed in registers --------------*- C++ -*-===//
//
// L rows by L numbers (L lanes, a power of two), one row behind the other, are
// transposed by log2(L) perfect shuffles: place x of a shuffled sequence is
// place x/2 of one half or of the other, so that a vector is two vectors
// interleaved.
#ifndef HEED_PASSES_SCHEDULE_SQUARES_H
#define HEED_PASSES_SCHEDULE_SQUARES_H

#include "passes/Schedule/Rewrite.h"

namespace heed {

/// Adds to \p steps, a func whose first var "x" counts the numbers of a square
/// of \p lanes rows, the shuffles that transpose it, before \p before.
void addShuffles(KernelInfo &kernel, mlir::Operation *before,
                 llvm::SmallVectorImpl<halide::FuncOp> &steps, int64_t lanes);

/// Computes \p steps in loop \p loop of \p at, of whose iterations each has one
/// square, in vectors.
void scheduleShuffles(mlir::OpBuilder &b, llvm::ArrayRef<halide::FuncOp> steps,
                      mlir::Value at, llvm::StringRef loop, int64_t lanes);

} // namespace heed

#endif
