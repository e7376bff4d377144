//===- WrongPass.cpp - a pass that is wrong on purpose --------------------===//
// heed-check --bisect must name it. As a plugin of heed-opt: the product holds
// no wrong pass.
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"

using namespace mlir;

namespace {

/// A mask off by one: `<=` in a region of an attn op becomes `<`.
struct ShiftMask : PassWrapper<ShiftMask, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ShiftMask)
  StringRef getArgument() const override { return "test-shift-mask"; }
  StringRef getDescription() const override { return "masks off by one"; }
  void runOnOperation() override {
    getOperation()->walk([](arith::CmpIOp op) {
      if (op.getPredicate() == arith::CmpIPredicate::sle &&
          op->getParentOp()->getName().getDialectNamespace() == "attn")
        op.setPredicate(arith::CmpIPredicate::slt);
    });
  }
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "WrongPass", LLVM_VERSION_STRING,
          [] { PassRegistration<ShiftMask>(); }};
}
