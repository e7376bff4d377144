//===- Proof.h - a rewrite compared with what stood there -------*- C++ -*-===//
//
// Recognition may guess, rewriting may not: what a pass wrote is read back, by
// the decompositions that define the ops, and compared with what it replaces.
// Nothing here knows how it was matched.
#ifndef HEED_PASSES_ALGEBRA_PROOF_H
#define HEED_PASSES_ALGEBRA_PROOF_H

#include "passes/Algebra/TensorExpr.h"

namespace heed {

/// Ops that are made while it lives: what an attempt wrote, to be read back, or
/// erased where the attempt came to nothing.
class Attempt : public mlir::OpBuilder::Listener {
public:
  explicit Attempt(mlir::OpBuilder &builder)
      : builder(builder), before(builder.getListener()) {
    builder.setListener(this);
  }
  ~Attempt() override { builder.setListener(before); }
  void notifyOperationInserted(mlir::Operation *op,
                               mlir::OpBuilder::InsertPoint) override {
    // What stands inside of another op goes with it; a region may be filled
    // before it has an op.
    mlir::Operation *parent = op->getParentOp();
    while (parent && !parent->hasTrait<mlir::OpTrait::IsIsolatedFromAbove>()) {
      if (made(parent))
        return;
      parent = parent->getParentOp();
    }
    if (parent)
      ops.push_back(op);
  }
  bool made(mlir::Operation *op) const {
    return llvm::is_contained(ops, op) || llvm::is_contained(adopted, op);
  }
  llvm::ArrayRef<mlir::Operation *> operations() const { return ops; }
  /// Takes \p op, which stood before, for one that was made: the proof sees
  /// through it, and not as far as it alone. It stays when this is undone.
  void adopt(mlir::Operation *op) { adopted.push_back(op); }
  llvm::ArrayRef<mlir::Operation *> adoptedOperations() const {
    return adopted;
  }
  /// Erases all of it, the last first; nothing else may read it.
  void undo();

private:
  mlir::OpBuilder &builder;
  mlir::OpBuilder::Listener *before;
  llvm::SmallVector<mlir::Operation *> ops, adopted;
};

struct Proof {
  bool holds = false;
  std::string why;    ///< where it does not: the case in which they differ
  std::string axioms; ///< where it does: the names of those that it took
};

/// Whether \p fresh, which \p attempt made, has at \p vars the element
/// \p written, whatever the inputs are. Modulo the axioms.
Proof prove(Exprs &exprs, ExprRef written, mlir::Value fresh,
            llvm::ArrayRef<unsigned> vars, const Attempt &attempt);

} // namespace heed
#endif
