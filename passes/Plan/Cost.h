//===- Cost.h - what a call of a kernel costs -------------------*- C++ -*-===//
//
// Floating-point operations of a kernel's equations and the bytes of its
// arguments and results, as expressions of the call's sizes. Profiles compare
// them with the machine.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_PASSES_PLAN_COST_H
#define HEED_PASSES_PLAN_COST_H

#include "dialects/Attn/SymbolicDims.h"
#include "dialects/Halide/HalideDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace heed {

/// Writes the cost of \p kernel, a function with `attn.kernel`, to \p pipeline:
///
///   attn.cost = {flops = affine_map<()[s0, s1] -> (..)>, bytes = ..,
///                names = ["a0", "a2"], axes = [0, -1]}
///
/// s0 is the extent of axis 0 of the tensor "a0", s1 the scalar "a2"; names are
/// those of the pipeline's inputs. Every operation on floating-point numbers
/// counts as one, an exponential too; a sum of n products counts 2 n. Each
/// argument is read once, and each result is written once.
///
/// Of an attention, live pairs count alone, and keys and values that some query
/// sees: symbols behind those of the names are the numbers that the host
/// function `live` returns for the pipeline's inputs `of`. Other conditions are
/// counted as if they always held. Of an argument that is read at places that
/// are computed, as many elements count as are read, but never more than it
/// has: `gathered` are further bytes, of each map the least result. An op
/// without known extents counts nothing.
void writeCost(mlir::func::FuncOp kernel, halide::PipelineOp pipeline);

struct KernelCost {
  Size flops, bytes;
};

/// The same of a call of \p kernel with \p arguments, in the sizes of their
/// function, which \p dims knows; as if all pairs of an attention were live.
KernelCost costOf(mlir::func::FuncOp kernel, mlir::ValueRange arguments,
                  attn::SymbolicDims &dims);

/// What a call gives on.
struct CostInputs {
  /// The extent of an axis of an input, or a scalar input, as an index or
  /// integer; null where there is none.
  llvm::function_ref<mlir::Value(llvm::StringRef, std::optional<int64_t>)> size;
  /// What function \p live returns for the inputs of these names, or nothing.
  llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::func::FuncOp live,
                                                    mlir::ArrayAttr names)>
      count;
};

/// flops and bytes of a call of \p pipeline as f64 values; zeros if it has no
/// cost.
std::pair<mlir::Value, mlir::Value> evaluateCost(mlir::OpBuilder &b,
                                                 mlir::Location loc,
                                                 halide::PipelineOp pipeline,
                                                 CostInputs inputs);

} // namespace heed

#endif // HEED_PASSES_PLAN_COST_H
