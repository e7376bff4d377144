//===- heed-proof-test.cpp - compares results of a model by the algebra ---===//
//
// heed-proof-test < model.mlir: for each further result of each model, one
// line: whether the algebra holds it equal to the first, and by which axioms,
// or where they differ.
#include "compiler/Driver/Pipeline.h"
#include "passes/Algebra/Proof.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace heed;

static void compare(func::FuncOp model) {
  Operation *end = model.getBody().front().getTerminator();
  Exprs exprs(model.getContext());
  SmallVector<unsigned> vars;
  SmallVector<ExprRef> at;
  exprs.indexVars(end->getOperand(0), vars, at);
  ExprRef written = exprs.expand(end->getOperand(0), at);
  for (unsigned k = 1; k < end->getNumOperands(); ++k) {
    OpBuilder builder(end);
    Attempt nothing(builder);
    Proof proof = prove(exprs, written, end->getOperand(k), vars, nothing);
    llvm::outs() << model.getName() << ": "
                 << (proof.holds ? "equal by " + proof.axioms
                                 : "differs: " + proof.why)
                 << "\n";
  }
}

int main() {
  DialectRegistry registry;
  registerPipelineDialects(registry);
  MLIRContext context(registry);
  llvm::SourceMgr sources;
  auto text = llvm::MemoryBuffer::getSTDIN();
  if (!text)
    return 1;
  sources.AddNewSourceBuffer(std::move(*text), {});
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module)
    return 1;
  module->walk(compare);
  return 0;
}
