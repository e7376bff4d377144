//===- HostContract.cpp - host code before it becomes LLVM ----------------===//
#include "passes/Host/HostContract.h"
#include "passes/Contract.h"

using namespace mlir;
using namespace heed;

static LogicalResult checkResults(func::FuncOp host) {
  if (host->hasAttr(attn::kModelAttr) && host.getNumResults() > 0)
    return host.emitOpError("is a model that returns ")
           << host.getFunctionType().getResults()
           << ", expected results in attn.result arguments (host.c3)";
  return success();
}

static LogicalResult checkOp(Operation *op) {
  auto isTensor = llvm::IsaPred<TensorType>;
  if (llvm::any_of(op->getOperandTypes(), isTensor) ||
      llvm::any_of(op->getResultTypes(), isTensor))
    return op->emitOpError("works on tensors after bufferisation (host.c1)");
  for (Region &region : op->getRegions())
    for (Block &block : region)
      if (llvm::any_of(block.getArgumentTypes(), isTensor))
        return op->emitOpError("carries tensors after bufferisation (host.c1)");
  if (!isNamed(op, {"func.", "scf.", "arith.", "math.", "memref.", "cf.",
                    "linalg.", "affine.", "attn.param", "attn.kept",
                    "attn.slot", "attn.require", "attn.require_in_range",
                    "attn.write_state", "halide.call"}))
    return op->emitOpError("has no lowering to LLVM in host code (host.c2)");
  return success();
}

LogicalResult heed::verifyHost(ModuleOp module) {
  for (auto host : module.getOps<func::FuncOp>())
    if (failed(checkResults(host)) || failed(checkEach(host, checkOp)))
      return failure();
  return success();
}
