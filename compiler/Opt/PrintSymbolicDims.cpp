//===- PrintSymbolicDims.cpp - what SymbolicDims knows, as remarks --------===//
//
// For tests and for people who write passes; no part of heedc.
//
//===----------------------------------------------------------------------===//
#include "compiler/Opt/PrintSymbolicDims.h"
#include "dialects/Attn/SymbolicDims.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace {

struct PrintSymbolicDims : PassWrapper<PrintSymbolicDims, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintSymbolicDims)
  StringRef getArgument() const final { return "print-symbolic-dims"; }
  StringRef getDescription() const final {
    return "Says the extents of every computed tensor, memref and index as "
           "polynomials";
  }

  void runOnOperation() override {
    auto &dims = getAnalysis<heed::attn::SymbolicDims>();
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      for (Value result : op->getResults()) {
        if (result.getType().isIndex()) {
          op->emitRemark() << "'" << dims.str(dims.size(result)) << "'";
          continue;
        }
        auto type = dyn_cast<ShapedType>(result.getType());
        if (!type || !type.hasRank())
          continue;
        InFlightDiagnostic remark = op->emitRemark() << "[";
        for (int64_t axis = 0; axis < type.getRank(); ++axis)
          remark << (axis ? ", " : "") << dims.str(dims.dim(result, axis));
        remark << "]";
      }
    });
    markAllAnalysesPreserved();
  }
};

} // namespace

void heed::registerPrintSymbolicDims() {
  PassRegistration<PrintSymbolicDims>();
}
