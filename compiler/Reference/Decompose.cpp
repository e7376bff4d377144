//===- Decompose.cpp - attn-decompose: attn ops by their definition -------===//
#include "compiler/Reference/Passes.h"
#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed::reference {
#define GEN_PASS_DEF_ATTNDECOMPOSE
#include "compiler/Reference/Passes.h.inc"

namespace {

struct Decompose : impl::AttnDecomposeBase<Decompose> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    // A definition may hold another op: the threshold of a row.
    while (true) {
      SmallVector<linalg::AggregatedOpInterface> ops;
      getOperation()->walk([&](linalg::AggregatedOpInterface op) {
        if (isa<attn::AttnDialect>(op->getDialect()))
          ops.push_back(op);
      });
      if (ops.empty())
        break;
      for (linalg::AggregatedOpInterface op : ops) {
        rewriter.setInsertionPoint(op);
        FailureOr<SmallVector<Value>> values = op.decomposeOperation(rewriter);
        if (failed(values)) {
          op->emitOpError("has no definition in upstream ops");
          return signalPassFailure();
        }
        rewriter.replaceOp(op, *values);
      }
    }
    // Nothing calls what runs when the model is opened, and the inliner behind
    // this pass erases private functions that nothing calls.
    getOperation()->walk([](func::FuncOp function) {
      if (function->hasAttr(attn::kInitAttr))
        function.setPublic();
    });
  }
};

} // namespace
} // namespace heed::reference
