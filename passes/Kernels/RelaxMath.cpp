//===- RelaxMath.cpp - what --fast-math allows the kernels ----------------===//
//
// Marks the model's own arithmetic as free to be reordered and contracted. It
// runs on kernels before they get a schedule: the expressions that schedules
// bring (the exponential, rounded maxima) depend on their exact order.
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "support/Format.h"

namespace heed {
#define GEN_PASS_DEF_ATTNRELAXMATH
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;

namespace {

struct RelaxMath : heed::impl::AttnRelaxMathBase<RelaxMath> {
  void runOnOperation() override {
    auto allowed =
        arith::FastMathFlags::contract | arith::FastMathFlags::reassoc;
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (!kernel->hasAttr(heed::attn::kKernelAttr))
        continue;
      unsigned count = 0;
      kernel.walk([&](Operation *op) {
        // Tables of positions are f64 for their exactness.
        if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp>(
                op) ||
            op->getResult(0).getType().isF64())
          return;
        auto math = cast<arith::ArithFastMathInterface>(op);
        op->setAttr(math.getFastMathAttrName(),
                    arith::FastMathFlagsAttr::get(
                        op->getContext(),
                        math.getFastMathFlagsAttr().getValue() | allowed));
        ++count;
      });
      if (count)
        heed::remarkDone(kernel, "attn-relax-math", "fast-math",
                         heed::format("{} operations of kernel '{}' may leave "
                                      "the error bounds (--fast-math)",
                                      count, kernel.getName()));
      else
        heed::remarkDeclined(kernel, "attn-relax-math", "fast-math",
                             heed::format("kernel '{}' has no sum, difference, "
                                          "product or quotient of its own in "
                                          "f32",
                                          kernel.getName()));
    }
  }
};

} // namespace
