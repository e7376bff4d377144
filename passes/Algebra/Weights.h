//===- Weights.h - what a value of the host depends on ----------*- C++ -*-===//
//
// Values that are the same in every call of a model: parameters, constants,
// loop variables with constant bounds, and what is computed from them alone;
// and tensors of which a call says no more than the size.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_PASSES_ALGEBRA_WEIGHTS_H
#define HEED_PASSES_ALGEBRA_WEIGHTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace heed {

/// Bounds of a loop that every call runs alike.
struct ConstantLoop {
  int64_t low, count, step;
};
std::optional<ConstantLoop> constantLoop(mlir::scf::ForOp loop);

struct Dependence {
  /// The same in every call.
  bool fixed = false;
  /// A call says at most the sizes of its axes and the turns of its loops.
  bool fixedButSizes = false;
  /// Computed from at least one parameter; told where a call says no elements.
  bool weights = false;
  /// The loops whose variable it depends on, outermost first; likewise.
  llvm::SmallSetVector<mlir::Operation *, 2> loops;

  bool isWeight() const { return fixed && weights; }
};

class WeightAnalysis {
public:
  const Dependence &of(mlir::Value value);
  /// Of the results of \p op, which has no regions that control flow enters
  /// but bodies of tensor ops.
  const Dependence &of(mlir::Operation *op);

private:
  Dependence compute(mlir::Operation *op);

  llvm::DenseMap<mlir::Operation *, Dependence> ops;
  llvm::DenseMap<mlir::Value, Dependence> arguments;
};

/// Whether the elements of \p tensor are computed from the model's parameters
/// alone.
bool isFromParameters(mlir::Value tensor);

/// Operands of \p op and what its regions read from outside of it.
llvm::SetVector<mlir::Value> inputsOf(mlir::Operation *op);

} // namespace heed

#endif // HEED_PASSES_ALGEBRA_WEIGHTS_H
