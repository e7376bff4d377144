//===- KernelFacts.h - what a kernel is, as plain data ----------*- C++ -*-===//
//
// The one description of a kernel that everybody asks: passes that form and
// merge kernels, and the schedule families (Families.h), which decide by it
// alone whether a kernel is theirs. Made of a function of tensor mathematics
// here, of a Halide pipeline in Schedule/PipelineFacts.cpp.
#ifndef HEED_PASSES_KERNELS_KERNELFACTS_H
#define HEED_PASSES_KERNELS_KERNELFACTS_H

#include "passes/Algebra/Computation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"

#include <string>
#include <vector>

namespace heed {

/// How many rows a product has in the calls of a pipeline: any number; or it is
/// one of two pipelines, called for at most as many as a family asked for, and
/// for more.
enum class RowCount { Any, Small, Large };

/// A tensor of a kernel.
struct Source {
  enum Kind {
    Input,    ///< an argument, with this number
    Computed, ///< the result of a computation, with this number
    Other     ///< a constant
  } kind = Other;
  unsigned number = 0;
  bool isWeight = false; ///< an input that holds the same in every call
  llvm::SmallVector<KnownExtent> extents; ///< of an input, innermost first
  int64_t elementBytes = 0;               ///< ... and its elements'

  Source() = default;
  Source(Kind kind, unsigned number, bool isWeight = false)
      : kind(kind), number(number), isWeight(isWeight) {}
};

struct KernelFacts {
  /// As attn-form-kernels names it (KernelKinds.h), or empty.
  std::string kind;
  RowCount rows = RowCount::Any;
  llvm::SmallVector<Source> sources;
  std::vector<Computation> computations; ///< in order
  llvm::SmallVector<unsigned> outputs;   ///< computations
  /// Several reductions that differ in one input that each reads, and start
  /// from the same constant: together they are one with a dim more.
  bool hasAlikeSums = false;
  /// The argument that is the extent of dim 1 of every result, its rows, if one
  /// is.
  std::optional<unsigned> rowArgument;
  /// There is an op that is no computation (softmax, attention).
  bool isPartial = false;
  /// The tensors themselves, for whoever has them.
  llvm::SetVector<mlir::Value> tensors;

  bool isInput(const Read &read) const {
    return sources[read.source].kind == Source::Input;
  }
  bool isWeight(const Read &read) const {
    return sources[read.source].isWeight;
  }
  bool isContraction() const { return kind == "contraction"; }
  /// Computations with a reduction.
  llvm::SmallVector<unsigned> sums() const;
  /// Whether each read of source \p source, but by the reductions of its own
  /// computation, is by a computation of \p rank dims at its own place.
  bool isReadInPlace(unsigned source, unsigned rank) const;
  /// Whether computation \p number is an output, or read, and in place only.
  bool isReadInPlace(unsigned number) const;
};

/// Of \p kernel, a function with attn.kernel. \p weights says which arguments
/// hold the same in every call.
KernelFacts factsOf(mlir::func::FuncOp kernel,
                    const llvm::BitVector &weights = {});

/// Of a kernel of \p ops that is not formed yet: what they read and do not
/// compute are its inputs, weights where parameters alone say what they hold.
KernelFacts factsOf(llvm::ArrayRef<mlir::Operation *> ops);

/// The numbers of the reads of \p sum that follow its columns and not its rows,
/// the dim \p row, if there is one, and one that follows its rows and not its
/// columns, and none that follows both; empty otherwise.
llvm::SmallVector<unsigned> columnReads(const Reduction &sum,
                                        unsigned row = kRow);

} // namespace heed

#endif
