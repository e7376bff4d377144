//===- ElementCost.cpp - what an element costs to compute again -----------===//
#include "passes/Algebra/ElementCost.h"

#include "dialects/Halide/HalideDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace heed;

/// To load a number of 16 bits as f32 takes no longer than to load an f32.
static bool isWideningLoad(Operation *op) {
  auto widen = dyn_cast<arith::ExtFOp>(op);
  return widen && widen.getType().isF32() &&
         (isa<BlockArgument>(widen.getIn()) ||
          widen.getIn().getDefiningOp<tensor::ExtractOp>() ||
          widen.getIn().getDefiningOp<halide::ReadOp>());
}

OperationCount heed::countOperations(Operation *op) {
  OperationCount count;
  op->walk([&](Operation *inner) {
    if (!inner->getDialect() || isa<arith::ConstantOp>(inner) ||
        isWideningLoad(inner))
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
