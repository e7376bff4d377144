//===- heed-opt.cpp - runs any pass, ours or upstream's, on IR text -------===//
//
// The only file that includes mlir/InitAll*.h.
#include "compiler/Driver/Pipeline.h"
#include "compiler/Link/Process.h"
#include "compiler/Opt/PrintSymbolicDims.h"
#include "compiler/Reference/Passes.h"
#include "dialects/Attn/Dialect.h"
#include "dialects/Halide/HalideDialect.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "passes/Passes.h"

int main(int argc, char **argv) {
  heed::prepareProcess();
  mlir::registerAllPasses();
  heed::registerPasses();
  heed::reference::registerPasses();
  heed::registerPipelines();
  heed::registerPrintSymbolicDims();

  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<heed::attn::AttnDialect>();
  heed::attn::registerBufferization(registry);
  registry.insert<heed::halide::HalideDialect>();
  heed::halide::registerBufferization(registry);
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "heed-opt: Heed's passes on IR\n", registry));
}
