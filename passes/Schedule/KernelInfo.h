//===- KernelInfo.h - what a schedule knows of a kernel ---------*- C++ -*-===//
//
#ifndef HEED_PASSES_SCHEDULE_KERNELINFO_H
#define HEED_PASSES_SCHEDULE_KERNELINFO_H

#include "dialects/Halide/HalideDialect.h"
#include "passes/Kernels/KernelFacts.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"

#include <list>

namespace heed {

/// The extent of a dim: an i32 of the pipeline, and its value where the types
/// say it.
struct Extent {
  mlir::Value value;
  std::optional<int64_t> fixed;
};

/// What a func of the pipeline stands for. Families choose by it where to
/// compute.
enum class FuncRole {
  Pure,      ///< elementwise: inline unless the family stores it
  Reduction, ///< a pure definition and updates over reduction vars
  Recurrence ///< a pure definition and an update whose loop is its outer dim
};

/// A func with its updates, in the order of the pipeline.
struct KernelFunc {
  halide::FuncOp func;
  llvm::SmallVector<halide::UpdateOp> updates;
  FuncRole role = FuncRole::Pure;
  /// Innermost first, as the func's vars.
  llvm::SmallVector<Extent> extents;
  /// Per update, its reduction vars' extents, innermost first.
  llvm::SmallVector<llvm::SmallVector<Extent>> reductions;
};

/// A pipeline of its own that computes once what a kernel then reads as an
/// input, in place of computing it in each call.
struct Packing {
  halide::PipelineOp pipeline;
  std::string name; ///< of the kernel's input that gets what it writes
  /// The names of the inputs of the kernel's pipeline that it reads, in its own
  /// order.
  llvm::SmallVector<std::string> inputs;
  /// What it writes, outermost first.
  llvm::SmallVector<int64_t> sizes;
  mlir::Type element;
};

/// A pipeline without a schedule. Outputs are the funcs with `halide.output`.
struct KernelInfo {
  halide::PipelineOp pipeline;
  /// In order. A list: schedules add funcs while they go through it or hold
  /// one.
  std::list<KernelFunc> funcs;
  /// What attn-form-kernels called it: elementwise, row, contraction, softmax,
  /// attention.
  llvm::StringRef kind;
  /// The schedule family, where the translation has written the schedule too.
  llvm::StringRef family;
  RowCount rows = RowCount::Any;
  /// Buffers that hold the same in every call of a model.
  llvm::SmallPtrSet<mlir::Value, 4> weights;
  llvm::SmallVector<Packing> packings;
  /// How many calls write the rows, an i32, or null: one.
  mlir::Value times;

  KernelFunc *find(mlir::Value func) {
    for (KernelFunc &f : funcs)
      if (f.func.getResult() == func)
        return &f;
    return nullptr;
  }
};

} // namespace heed

#endif
