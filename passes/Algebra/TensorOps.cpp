//===- TensorOps.cpp - what a tensor op is made of ------------------------===//
#include "passes/Algebra/TensorOps.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {

bool isTable(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        bool computes =
            !isa<arith::ConstantOp, arith::SelectOp, scf::IfOp>(inner) &&
            llvm::any_of(inner->getResultTypes(),
                         [](Type type) { return type.isF64(); });
        return computes ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool isFromParameters(Value tensor) {
  Operation *def = tensor.getDefiningOp();
  if (!def)
    return false;
  if (isa<attn::ParamOp>(def))
    return true;
  if (!Exprs::isExpressible(def))
    return false;
  bool found = false, other = false;
  def->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (isa<RankedTensorType>(operand.getType()) &&
          !operand.getDefiningOp<tensor::EmptyOp>() &&
          !operand.getDefiningOp<linalg::FillOp>())
        (isFromParameters(operand) ? found : other) = true;
  });
  return found && !other;
}

} // namespace heed
