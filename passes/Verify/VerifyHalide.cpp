//===- VerifyHalide.cpp - pipelines and the host that calls them ----------===//
#include "dialects/Halide/HalideDialect.h"
#include "dialects/Halide/Target.h"
#include "passes/Contract.h"
#include "passes/Passes.h"
#include "passes/Plan/LiveCounts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseSet.h"

namespace heed {
#define GEN_PASS_DEF_ATTNVERIFYHALIDE
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

LogicalResult checkPipelineOp(Operation *op) {
  if (auto fast = dyn_cast<arith::ArithFastMathInterface>(op)) {
    auto allowed =
        arith::FastMathFlags::contract | arith::FastMathFlags::reassoc;
    arith::FastMathFlags flags = fast.getFastMathFlagsAttr()
                                     ? fast.getFastMathFlagsAttr().getValue()
                                     : arith::FastMathFlags::none;
    if (flags != arith::FastMathFlags::none &&
        (!isa<arith::MulFOp, arith::AddFOp, arith::SubFOp, arith::DivFOp>(op) ||
         (flags & ~allowed) != arith::FastMathFlags::none))
      return op->emitOpError(
          "has fast-math flags, expected at most contract and reassoc on addf, "
          "mulf, subf and divf (halide-ir.c3)");
  }
  if (auto split = dyn_cast<halide::SplitOp>(op);
      split && split.getStage() > 0 &&
      split.getTail() == halide::TailStrategy::Auto &&
      llvm::any_of(split.getFunc().getUsers(), llvm::IsaPred<halide::OutputOp>))
    return op->emitOpError("splits an update of the output '")
           << halide::getFuncName(split.getFunc())
           << "', expected it to name its tail (halide-ir.c4)";
  return success();
}

struct VerifyHalide : heed::impl::AttnVerifyHalideBase<VerifyHalide> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::DenseSet<StringRef> called;
    for (Operation &op : *module.getBody()) {
      if (auto pipeline = dyn_cast<halide::PipelineOp>(op)) {
        if (failed(checkEach(pipeline, checkPipelineOp)))
          return signalPassFailure();
        continue;
      }
      if (!isa<func::FuncOp>(op) || op.hasAttr(attn::kKernelAttr)) {
        op.emitOpError("stands beside pipelines and host functions "
                       "(halide-ir.c1)");
        return signalPassFailure();
      }
      if (op.hasAttr(kCountsAttr)) // on memrefs from the beginning
        continue;
      auto result = checkEach(&op, [&](Operation *inner) -> LogicalResult {
        if (auto call = dyn_cast<halide::CallOp>(inner)) {
          called.insert(call.getCallee());
          if (auto otherwise = call.getOtherwise())
            called.insert(*otherwise);
        }
        return checkHostOp(inner, "halide-ir.c2",
                           {"func.func", "halide.call", "tensor.extract",
                            "tensor.extract_slice", "tensor.insert_slice"});
      });
      if (failed(result))
        return signalPassFailure();
    }
    for (auto pipeline : module.getOps<halide::PipelineOp>())
      if (!called.contains(pipeline.getName())) {
        pipeline.emitOpError("is called nowhere (halide-ir.c1)");
        return signalPassFailure();
      }
  }
};

} // namespace
