//===- HoistWeights.cpp - what depends on parameters alone runs once ------===//
//
// Tensor mathematics that is the same in every call moves to a function that
// runs when the model is opened (Hoisting.h).
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/Algebra/ElementCost.h"
#include "passes/Algebra/Weights.h"
#include "passes/Passes.h"
#include "passes/Plan/Hoisting.h"

namespace heed {
#define GEN_PASS_DEF_ATTNHOISTWEIGHTS
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

bool computes(Operation *op) {
  return isa<linalg::LinalgOp, attn::SoftmaxOp, attn::LogSoftmaxOp,
             attn::AttentionOp, func::CallOp, tensor::ConcatOp,
             tensor::InsertSliceOp, tensor::PadOp>(op) &&
         !isa<linalg::FillOp>(op);
}

/// An elementwise op that only spreads its inputs over a larger tensor:
/// computing an element again is cheaper than reading it.
bool onlySpreads(Operation *op) {
  auto generic = dyn_cast<linalg::LinalgOp>(op);
  if (!generic || generic.getNumReductionLoops())
    return false;
  int64_t read = 0, written = 0;
  for (Value input : inputsOf(op))
    if (auto type = dyn_cast<RankedTensorType>(input.getType());
        type && !input.getDefiningOp<tensor::EmptyOp>())
      read += bytesOf(type);
  for (Type type : op->getResultTypes())
    written += bytesOf(cast<RankedTensorType>(type));
  return written > read &&
         countOperations(op).costOfTable() <= mostCheapOperations;
}

struct HoistWeights : heed::impl::AttnHoistWeightsBase<HoistWeights> {
  void runOnOperation() override {
    hoist(getOperation(), {"attn-hoist-weights", computes, onlySpreads});
  }
};

} // namespace
