//===- Expressions.h - scalar bodies as expressions of a --------*- C++ -*-===//
// Halide pipeline
#ifndef HEED_PASSES_LOWER_EXPRESSIONS_H
#define HEED_PASSES_LOWER_EXPRESSIONS_H

#include "dialects/Attn/Extents.h"
#include "passes/Lower/IndexMath.h"
#include "passes/Schedule/Rewrite.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace heed {

/// Reads of tensors as the translator of a whole kernel sees them.
class TensorReads {
public:
  virtual ~TensorReads() = default;
  /// The element of \p tensor at \p coordinates (i32, tensor order: outermost
  /// first).
  virtual mlir::FailureOr<mlir::Value>
  read(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
       llvm::ArrayRef<mlir::Value> coordinates) = 0;
  /// The extent of axis \p axis of \p tensor.
  virtual mlir::FailureOr<Extent> extent(mlir::OpBuilder &b, mlir::Value tensor,
                                         int64_t axis) = 0;
  /// What bounds every extent and size, so that no expression in i32 wraps.
  int64_t largest = attn::kMaxExtent;
};

/// An integer type or index of the body as the pipeline's type: an index that
/// comes from outside is an i32.
mlir::Type pipelineType(mlir::Type type);

/// Translates the ops of \p block (but its terminator) into \p b.
///
/// \p map holds the block's arguments and scalars from outside; it is filled
/// with the results. \p loops are the i32 that `linalg.index` d stands for.
/// Both branches of an `scf.if` are evaluated and one is selected, therefore a
/// read under one is clamped into its tensor. A read that is not guarded is in
/// range by the language's rules; it is clamped only where Halide could not see
/// that (coordinates that come out of data). Fails with an error at an op that
/// has no translation.
mlir::LogicalResult translateBody(mlir::OpBuilder &b, mlir::Block &block,
                                  mlir::IRMapping &map,
                                  llvm::ArrayRef<mlir::Value> loops,
                                  TensorReads &tensors, bool guarded = false);

/// Translates one op, as translateBody does.
mlir::LogicalResult translateOp(mlir::OpBuilder &b, mlir::Operation *op,
                                mlir::IRMapping &map,
                                llvm::ArrayRef<mlir::Value> loops,
                                TensorReads &tensors);

/// \p expr over \p dims and \p symbols.
mlir::Value expandAffine(IndexMath &math, mlir::AffineExpr expr,
                         llvm::ArrayRef<mlir::Value> dims,
                         llvm::ArrayRef<mlir::Value> symbols);

} // namespace heed

#endif
