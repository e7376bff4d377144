//===- Schedule.h - schedule families for kernels ---------------*- C++ -*-===//
#ifndef HEED_PASSES_SCHEDULE_SCHEDULE_H
#define HEED_PASSES_SCHEDULE_SCHEDULE_H

#include "dialects/Halide/Target.h"
#include "passes/Kernels/Families.h"
#include "passes/Schedule/KernelInfo.h"

#include "mlir/IR/Builders.h"

namespace heed {

/// A family is a file here that defines its function, and its line in
/// Families.def.
#define FAMILY(family) Family family();
#define GPU_FAMILY(family) Family family();
#include "passes/Schedule/Families.def"

/// Gives \p kernel the schedule of the family that fits it, as ops at the
/// pipeline's end. Returns the family's name.
llvm::StringRef scheduleKernel(KernelInfo &kernel,
                               const halide::Target &target);

/// The facts of \p kernel's pipeline, whose funcs are the computations, in
/// order.
KernelFacts factsOf(KernelInfo &kernel);

/// Func \p number of \p kernel, as its facts count them.
KernelFunc &computation(KernelInfo &kernel, unsigned number);

/// What \p update reads but for its own func, in the order of the facts.
llvm::SmallVector<halide::ReadOp> readsOfTerms(halide::UpdateOp update);

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

/// How many vectors of the first dim of the sum \p f a loop over terms takes
/// along, each with an accumulator: where terms lie side by side there, they
/// are then read line after line; one vector alone would fetch single lines of
/// rows that lie apart. Where the dim is \p isAlone threads have to get a part
/// each.
int64_t vectorsOfSum(const KernelFunc &f, int64_t lanes, bool isAlone,
                     const halide::Target &target);

/// Makes lanes, and \p vectors unrolled vectors, of the first loop of \p stage
/// of \p f. Returns both loops, or that of the lanes alone for one vector.
llvm::SmallVector<std::string> vectorizeSum(mlir::OpBuilder &b,
                                            halide::FuncOp f, int64_t stage,
                                            int64_t lanes, int64_t vectors);

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

/// The same for one output; the whole is \p times it, an i32, if that is given.
void streamOutput(mlir::OpBuilder &b, KernelFunc &out,
                  const halide::Target &target, mlir::Value times = {});

/// A builder at the end of the pipeline, where its schedule stands.
mlir::OpBuilder scheduleBuilder(KernelInfo &kernel);

/// Vars of a func, innermost first.
llvm::SmallVector<std::string> varsOf(halide::FuncOp func);

/// Bits of the widest element that stages of \p func compute.
unsigned widestBits(halide::FuncOp func);

} // namespace heed

#endif
