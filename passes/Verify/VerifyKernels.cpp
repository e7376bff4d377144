//===- VerifyKernels.cpp - kernels and host before they part --------------===//
#include "passes/Contract.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace heed {
#define GEN_PASS_DEF_ATTNVERIFYKERNELS
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

/// Equal but for locations and names.
bool areEqual(func::FuncOp a, func::FuncOp b) {
  return a.getFunctionType() == b.getFunctionType() &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getBody(), &b.getBody(), OperationEquivalence::IgnoreLocations);
}

/// Whether all that reads the state of \p op is one op that finishes it.
bool isFinishedOnce(attn::OnlineAttentionOp op) {
  auto users = op->getUsers();
  return !users.empty() && isa<attn::FinishOp>(*users.begin()) &&
         llvm::all_equal(users);
}

struct VerifyKernels : heed::impl::AttnVerifyKernelsBase<VerifyKernels> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> kernels;
    llvm::DenseSet<StringRef> called;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function->hasAttr(attn::kKernelAttr)) {
        kernels.push_back(function);
        if (failed(checkKernel(function)))
          return signalPassFailure();
      } else if (failed(checkHost(function, called))) {
        return signalPassFailure();
      }
    }
    for (auto [k, kernel] : llvm::enumerate(kernels)) {
      if (!called.contains(kernel.getName())) {
        kernel.emitOpError("is called nowhere (kernels.c4)");
        return signalPassFailure();
      }
      for (func::FuncOp other : ArrayRef(kernels).take_front(k))
        if (areEqual(kernel, other)) {
          InFlightDiagnostic diag =
              kernel.emitOpError("is the same kernel as '")
              << other.getName() << "' (kernels.c5)";
          diag.attachNote(other.getLoc()) << "here";
          return signalPassFailure();
        }
    }
  }

private:
  LogicalResult checkKernel(func::FuncOp kernel) {
    if (!kernel.isPrivate() || kernel.isExternal() ||
        kernel->hasAttr(attn::kModelAttr))
      return kernel.emitOpError(
          "is a kernel, expected it private and with a body (kernels.c1)");
    for (Type type : kernel.getArgumentTypes())
      if (!isa<RankedTensorType>(type) &&
          !isScalarOf(type, {"index", "f32", "f64", "i32", "i64", "i1"}))
        return kernel.emitOpError("takes ")
               << type
               << ", expected tensors, index, f32, f64, i32, i64 or i1 "
                  "(kernels.c1)";
    if (kernel.getNumResults() == 0 ||
        !llvm::all_of(kernel.getResultTypes(), llvm::IsaPred<RankedTensorType>))
      return kernel.emitOpError("returns ")
             << kernel.getFunctionType().getResults()
             << ", expected tensors (kernels.c1)";
    return checkEach(kernel, [](Operation *op) -> LogicalResult {
      if (isNamed(op, {"attn.param", "attn.require", "attn.require_in_range",
                       "attn.update_state", "func.call"}))
        return op->emitOpError("stands in a kernel, where only host code may "
                               "use it (kernels.c2)");
      if (auto attention = dyn_cast<attn::AttentionOp>(op);
          attention && attention.plan() &&
          attention.plan().getAlgorithm() == attn::Algorithm::Streaming)
        return op->emitOpError("is planned to stream, expected it as "
                               "attn.online_attention and attn.finish "
                               "(kernels.c6)");
      if (auto online = dyn_cast<attn::OnlineAttentionOp>(op);
          online && !isFinishedOnce(online))
        return op->emitOpError("has a state that other ops than one "
                               "attn.finish read (kernels.c6)");
      return success();
    });
  }

  LogicalResult checkHost(func::FuncOp host,
                          llvm::DenseSet<StringRef> &called) {
    return checkEach(host, [&](Operation *op) -> LogicalResult {
      if (auto call = dyn_cast<func::CallOp>(op)) {
        auto callee =
            getOperation().lookupSymbol<func::FuncOp>(call.getCallee());
        if (!callee)
          return op->emitOpError("calls '")
                 << call.getCallee() << "', which is no function (kernels.c4)";
        called.insert(call.getCallee());
      }
      auto number = dyn_cast<tensor::ExtractOp>(op);
      if (number && number.getIndices().empty())
        return success();
      return checkHostOp(op, "kernels.c3", {"func.func", "func.call"});
    });
  }
};

} // namespace
