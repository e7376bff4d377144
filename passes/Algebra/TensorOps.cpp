//===- TensorOps.cpp - what a tensor op is made of ------------------------===//
#include "passes/Algebra/TensorOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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

Value castTo(OpBuilder &b, Value tensor, Type type) {
  return tensor.getType() == type
             ? tensor
             : tensor::CastOp::create(b, tensor.getLoc(), type, tensor)
                   .getResult();
}

} // namespace heed
