//===- ElementCost.cpp - what an element costs to compute again -----------===//
#include "passes/Algebra/ElementCost.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heed;

OperationCount heed::countOperations(Operation *op) {
  OperationCount count;
  op->walk([&](Operation *inner) {
    if (!inner->getDialect() || isa<arith::ConstantOp>(inner))
      return;
    bool isReal = inner->getNumResults() == 1 &&
                  isa<FloatType>(inner->getResult(0).getType());
    if (isa<math::MathDialect>(inner->getDialect())) {
      ++count.functions;
      count.longFunctions +=
          isReal && !isa<math::AbsFOp, math::CopySignOp, math::FmaOp>(inner);
    } else if (isa<arith::ArithDialect>(inner->getDialect())) {
      ++count.operations;
      count.divisions += isa<arith::DivFOp>(inner);
      count.doubles += llvm::any_of(inner->getResultTypes(),
                                    [](Type type) { return type.isF64(); });
      count.reals +=
          isReal && !isa<arith::DivFOp, arith::ExtFOp, arith::TruncFOp,
                         arith::SIToFPOp, arith::SelectOp>(inner);
    }
  });
  return count;
}
