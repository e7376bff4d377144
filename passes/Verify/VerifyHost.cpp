//===- VerifyHost.cpp - host code before it becomes LLVM ------------------===//
#include "passes/Host/HostContract.h"
#include "passes/Passes.h"

namespace heed {
#define GEN_PASS_DEF_ATTNVERIFYHOST
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

struct VerifyHost : heed::impl::AttnVerifyHostBase<VerifyHost> {
  void runOnOperation() override {
    if (failed(verifyHost(getOperation())))
      signalPassFailure();
  }
};

} // namespace
