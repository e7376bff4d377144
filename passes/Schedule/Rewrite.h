//===- Rewrite.h - how a schedule changes algorithms ------------*- C++ -*-===//
//
// A schedule may add funcs (a packed operand, partial sums) and clamp reads;
// what is computed stays the same.
#ifndef HEED_PASSES_SCHEDULE_REWRITE_H
#define HEED_PASSES_SCHEDULE_REWRITE_H

#include "passes/Schedule/KernelInfo.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace heed {

/// The block arguments that \p value is computed from, inside its block.
llvm::SmallPtrSet<mlir::Value, 4> argumentsOf(mlir::Value value);

/// The arrays that \p func reads along its first dim, one row an iteration of
/// its second one, itself or through pure funcs that it reads in the same way.
llvm::SmallSetVector<mlir::Value, 2> arraysAlong(halide::FuncOp func);

/// Clones what \p value is computed from into \p b, up to what \p map holds,
/// and returns the clone of \p value.
mlir::Value cloneSlice(mlir::OpBuilder &b, mlir::Value value,
                       mlir::IRMapping &map);

/// Appends a pure func of \p kernel right before \p before. \p body gets its
/// dims, innermost first.
KernelFunc &addFunc(
    KernelInfo &kernel, mlir::Operation *before, llvm::StringRef name,
    llvm::ArrayRef<llvm::StringRef> vars, mlir::Type type,
    llvm::ArrayRef<Extent> extents,
    llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)> body);

/// Moves \p func, a pure func computed from weights alone, to a pipeline of its
/// own and puts an input of the kernel in its place, which is returned. \p
/// schedule appends the schedule of the func there. Null, and nothing has
/// changed, if it reads something else or an extent is not known.
mlir::Value
packOnce(KernelInfo &kernel, mlir::Value func,
         llvm::function_ref<void(mlir::OpBuilder &, KernelFunc &)> schedule);

/// Whether \p kernel has several sums, alike but for one array that each reads.
bool hasAlikeSums(KernelInfo &kernel);

/// Makes elements of one output of several, if all have the same extents: they
/// share what they compute.
void joinOutputs(KernelInfo &kernel);

/// Horizontal fusion: makes one sum of these, with a last dim "product", their
/// number. Several outputs become one with several elements.
void fuseHorizontally(KernelInfo &kernel);

/// A func that stores what \p sum computes, for all that read it.
mlir::Value addTiles(KernelInfo &kernel, mlir::Value sum);

/// \p states, whose first dim is computed in whole tiles of \p lanes: what lies
/// behind the last element is made of the last one's inputs.
void clampLanes(KernelFunc &states, int64_t lanes);

/// Removes funcs that nobody reads.
void dropUnreadFuncs(KernelInfo &kernel);

/// Removes buffers that nobody reads any more from the pipeline's inputs.
void dropUnreadBuffers(KernelInfo &kernel);

/// Swaps two dims of \p f, which is no output: where its values are kept, not
/// what they are.
void swapDims(KernelFunc &f, unsigned x, unsigned y);

/// If an output is also a reduction, it becomes a func of its own that a copy
/// of it writes out; so does, with \p andRead, one that others read, too.
void separateOutputs(KernelInfo &kernel, bool andRead = false);

/// The op of \p update that combines the old value with a new term, and which
/// operand is the term. Null if the update is something else.
mlir::Operation *combinerOf(halide::UpdateOp update, unsigned &term);

/// Terms of an f32 sum that are added one after the other: the rounding error
/// of the sum grows with them.
constexpr int64_t longestSum = 1024;

/// An update of \p sum that adds the \p count blocks of \p part, whose last
/// var is the block's number.
halide::UpdateOp addBlocks(mlir::OpBuilder &b, mlir::Value sum,
                           mlir::Value part, llvm::StringRef rvar,
                           mlir::Value count);

/// Splits the first update of \p func, if it is a long sum of floats, in sums
/// of \p block terms of its outermost reduction var "r", and their sum over the
/// var "r_b"; a second update over "r" adds the terms behind the last whole
/// block, unless it is known that there are none. Returns the func of the
/// former, which has one var more, the number of the block, and an update over
/// "r". Null, and nothing has changed, if the sum is known to be short.
mlir::Value sumByBlocks(KernelInfo &kernel, mlir::Value func, int64_t block);

/// Halide computes no more of the sums than a select on indices lets through.
/// A tile, whose extents are promised, then begins elsewhere and is written
/// beside its memory: conditions of the epilogue become numbers, which Halide
/// does not solve for indices and LLVM takes back.
void hideConditions(KernelInfo &kernel);

/// States the strides that follow from known extents: callers pass arrays in
/// row-major order without gaps.
void stateDenseStrides(KernelInfo &kernel);

/// Divides once a row where \p f divides elements by one number of their row:
/// the same but for one rounding more, for every divisor. The first \p inner
/// dims are the places in the row.
void multiplyByReciprocals(KernelFunc &f, size_t inner);

/// i32 arithmetic; constants are folded.
mlir::Value addI32(mlir::OpBuilder &b, mlir::Value x, int64_t y);
mlir::Value mulI32(mlir::OpBuilder &b, mlir::Value x, int64_t y);
/// Floor division and its remainder by a positive number.
mlir::Value divI32(mlir::OpBuilder &b, mlir::Value x, int64_t y);
mlir::Value remI32(mlir::OpBuilder &b, mlir::Value x, int64_t y);
mlir::Value i32(mlir::OpBuilder &b, int64_t value);
mlir::Value constantI32(mlir::OpBuilder &b, mlir::Location loc, int64_t value);

} // namespace heed

#endif
