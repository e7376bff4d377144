//===- Schedule.h - schedule families for kernels ---------------*- C++ -*-===//
#ifndef HEED_PASSES_SCHEDULE_SCHEDULE_H
#define HEED_PASSES_SCHEDULE_SCHEDULE_H

#include "dialects/Halide/Target.h"
#include "passes/Schedule/KernelInfo.h"

#include "mlir/IR/Builders.h"

namespace heed {

/// Gives \p kernel the schedule of the family that fits it, as ops at the
/// pipeline's end. Returns the family's name.
llvm::StringRef scheduleKernel(KernelInfo &kernel,
                               const halide::Target &target);

/// Families, one a file. Each returns false, having changed nothing, if \p
/// kernel is not of its kind.
bool scheduleContraction(KernelInfo &kernel, const halide::Target &target);
/// Up to how many rows a product takes about as long as its weight takes to
/// come from memory.
int64_t fewRows(const halide::Target &target);
/// Up to how many rows a product of sums of \p terms (if known) with a matrix
/// that is an input of the call takes less time as dot products than with that
/// matrix packed in the call.
int64_t mostRowsOfDots(std::optional<int64_t> terms);
bool scheduleDotProducts(KernelInfo &kernel, const halide::Target &target);
bool scheduleRowProduct(KernelInfo &kernel, const halide::Target &target);
bool scheduleStateProduct(KernelInfo &kernel, const halide::Target &target);
bool scheduleRows(KernelInfo &kernel, const halide::Target &target);
bool scheduleRowBlock(KernelInfo &kernel, const halide::Target &target);
bool scheduleElementwise(KernelInfo &kernel, const halide::Target &target);
/// Right for every kernel: stores each reduction whole, parallel over the
/// outermost loop.
void scheduleGeneric(KernelInfo &kernel, const halide::Target &target);

/// Funcs that the pipeline writes.
llvm::SmallVector<KernelFunc *> outputsOf(KernelInfo &kernel);

/// Whether funcs are computed inside of fused loops: Halide then has to see
/// each of these loops as one point there.
enum class FusedBody { Alone, ComputesFuncs };

/// Makes few loops of the loops \p vars of stage \p stage of \p func, which
/// stand directly around each other, innermost first. Returns their names,
/// innermost first.
llvm::SmallVector<std::string> fuseLoops(mlir::OpBuilder &b,
                                         halide::FuncOp func, int64_t stage,
                                         llvm::ArrayRef<std::string> vars,
                                         FusedBody body);

/// Makes the outermost loops of stage \p stage of \p func, from loop \p first
/// on, one parallel loop; where Halide does not fuse that many, parallel loops
/// around it.
/// \p vars are its loops now, innermost first. Returns the innermost parallel
/// loop; without such a loop nothing happens.
std::string parallelOuter(mlir::OpBuilder &b, halide::FuncOp func,
                          int64_t stage, llvm::ArrayRef<std::string> vars,
                          size_t first, FusedBody body);

/// Splits and vectorises loop \p var of stage \p stage by \p lanes; the tail is
/// guarded.
void vectorizeInner(mlir::OpBuilder &b, halide::FuncOp func, int64_t stage,
                    llvm::StringRef var, int64_t lanes);

/// A tile of a product in registers: \p rows rows by \p vectors vectors.
struct RegisterTile {
  int64_t rows, vectors;
};

/// The register tile that wastes the fewest columns of \p columns (if known),
/// the most efficient one among those that waste about as few.
RegisterTile chooseTile(std::optional<int64_t> columns, int64_t lanes,
                        int64_t registers);

/// Has the outputs stored past the caches where they are too large to be found
/// there: what else a kernel reads and writes once only passes through, too.
void streamOutputs(KernelInfo &kernel, const halide::Target &target);

/// A builder at the end of the pipeline, where its schedule stands.
mlir::OpBuilder scheduleBuilder(KernelInfo &kernel);

/// Vars of a func, innermost first.
llvm::SmallVector<std::string> varsOf(halide::FuncOp func);

/// Bits of the widest element that stages of \p func compute.
unsigned widestBits(halide::FuncOp func);

} // namespace heed

#endif
