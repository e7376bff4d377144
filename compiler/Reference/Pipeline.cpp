//===- Pipeline.cpp - the reference backend, from attn IR to upstream ops -===//
#include "compiler/Reference/Pipeline.h"
#include "compiler/Reference/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void heed::reference::buildPipeline(OpPassManager &pm, const Options &options) {
  if (options.reportScores)
    pm.addNestedPass<func::FuncOp>(reference::createReferenceReportScores());
  pm.addPass(reference::createAttnDecompose());
  // IR after attn-form-kernels calls its kernels; once decomposed they are
  // upstream ops that go back into the host.
  pm.addPass(createInlinerPass());
  if (!options.declaredTypes) {
    reference::ReferencePromoteOptions promote;
    promote.f64Results = options.f64Results;
    promote.nudge = options.nudge;
    pm.addNestedPass<func::FuncOp>(reference::createReferencePromote(promote));
  }
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}
