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
/// counts as one, an exponential too; a sum of n products counts 2 n. What a
/// condition leaves out is counted as if it were computed. Each argument is
/// read once, of one that is read at places that data give the elements that
/// are read; each result is written once. An op without known extents counts
/// nothing.
void writeCost(mlir::func::FuncOp kernel, halide::PipelineOp pipeline);

struct KernelCost {
  Size flops, bytes;
};

/// The same of a call of \p kernel with \p arguments, in the sizes of their
/// function, which \p dims knows.
KernelCost costOf(mlir::func::FuncOp kernel, mlir::ValueRange arguments,
                  attn::SymbolicDims &dims);

/// flops and bytes of a call of \p pipeline as f64 values; zeros if it has no
/// cost. \p size gives the extent of an axis of an input, or a scalar input, as
/// an index or integer; null where there is none.
std::pair<mlir::Value, mlir::Value> evaluateCost(
    mlir::OpBuilder &b, mlir::Location loc, halide::PipelineOp pipeline,
    llvm::function_ref<mlir::Value(llvm::StringRef, std::optional<int64_t>)>
        size);

} // namespace heed

#endif // HEED_PASSES_PLAN_COST_H
