//===- VerifyAttention.cpp - attention before kernels are formed ----------===//
#include "passes/Contract.h"
#include "passes/Passes.h"
#include "support/Format.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace heed {
#define GEN_PASS_DEF_ATTNVERIFYATTENTION
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

struct VerifyAttention : heed::impl::AttnVerifyAttentionBase<VerifyAttention> {
  void runOnOperation() override {
    auto result = getOperation()->walk(
        [&](attn::AttentionOp op) { return WalkResult(check(op)); });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  /// attention-ir.c2 of one tensor, whose axes \p map names. A read may leave
  /// elements of an axis out, a result may not.
  LogicalResult checkSizes(attn::AttentionOp op, Type type, AffineMap map,
                           const Twine &what, bool isResult = false) {
    auto tensor = cast<RankedTensorType>(type);
    for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim || tensor.isDynamicDim(axis))
        continue;
      std::optional<int64_t> size =
          getConstantIntValue(op.getSizes()[dim.getPosition()]);
      int64_t extent = tensor.getDimSize(axis);
      if (size && (isResult ? *size != extent : *size > extent))
        return op.emitOpError()
               << what << " has extent " << extent << " at axis " << axis
               << ", but loop dim " << dim.getPosition() << " has size "
               << *size << " (attention-ir.c2)";
    }
    return success();
  }

  LogicalResult checkRegion(attn::AttentionOp op, Region &region) {
    auto result = region.walk([&](Operation *inner) {
      if (!isNamed(inner,
                   {"arith.", "math.", "scf.if", "scf.yield", "tensor.extract",
                    "tensor.dim", "attn.yield", "attn.keys"})) {
        inner->emitOpError("stands in a region of attn.attention, which holds "
                           "arith, math, scf.if and tensor.extract "
                           "(attention-ir.c3)");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult check(attn::AttentionOp op) {
    if (!op.plan())
      return op.emitOpError("has no attn.plan (attention-ir.c1)");
    for (unsigned t = 0; t < op.numTerms(); ++t)
      for (auto [k, operand] : llvm::enumerate(op.term(t)))
        if (failed(checkSizes(op, operand.getType(), op.maps(t)[k],
                              format("operand {} of term {}", k, t))))
          return failure();
    for (auto [v, value] : llvm::enumerate(op.getValues()))
      if (failed(checkSizes(op, value.getType(), op.valueMap(v),
                            format("value {}", v))))
        return failure();
    if (failed(checkSizes(op, op.getOutput().getType(), op.outputMap(),
                          "the output", /*isResult=*/true)))
      return failure();
    for (Region &region : op->getRegions())
      if (failed(checkRegion(op, region)))
        return failure();
    return success();
  }
};

} // namespace
