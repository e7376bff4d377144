//===- RaiseLinearAttention.cpp - recurrences that are linear in a state --===//
#include "passes/Recurrence/RaiseLinearAttention.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorExpr.h"
#include "passes/Passes.h"
#include "passes/Recurrence/StepBody.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace heed {
#define GEN_PASS_DEF_ATTNRAISELINEARATTENTION
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

struct RaiseLinearAttention
    : heed::impl::AttnRaiseLinearAttentionBase<RaiseLinearAttention> {
  void runOnOperation() override {
    SmallVector<attn::ScanOp> scans; // inner ones first
    getOperation().walk([&](attn::ScanOp scan) { scans.push_back(scan); });
    for (attn::ScanOp scan : scans)
      if (!raiseSummedScan(scan))
        raiseLinearScan(scan);
    SmallVector<linalg::LinalgOp> sums;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (op.getNumReductionLoops() &&
          (op->getNumResults() > 1 || Exprs::isExpressible(op)))
        sums.push_back(op);
    });
    // Consumers first: what one reads leaves with it.
    DenseSet<Operation *> erased;
    for (linalg::LinalgOp sum : llvm::reverse(sums))
      if (!erased.contains(sum) && !sum->use_empty() &&
          (sum->getNumResults() > 1
               ? raiseFold(sum)
               : raiseCausalSum(sum) || raisePowerSum(sum) || raisePrefix(sum)))
        eraseDeadOps(sum, erased);
  }
};

} // namespace

bool heed::mayBeLinear(attn::ScanOp scan) {
  return getConstantIntValue(scan.getLow()) == 0 &&
         getConstantIntValue(scan.getHigh()) != 0 &&
         !scan.getStarts().empty() && isPlain(scan) &&
         llvm::all_of(scan.getStarts(), [](Value start) {
           return getElementTypeOrSelf(start).isF32();
         });
}
