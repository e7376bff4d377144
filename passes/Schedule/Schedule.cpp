//===- Schedule.cpp - choice of a family, and what the families share
//-----------------------===//
#include "passes/Schedule/Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

StringRef heed::scheduleKernel(KernelInfo &kernel,
                               const halide::Target &target) {
  if (kernel.kind == "row block" && scheduleRowBlock(kernel, target))
    return "row block";
  if (scheduleElementwise(kernel, target))
    return "elementwise";
  if (scheduleContraction(kernel, target))
    return "contraction";
  if (scheduleRows(kernel, target))
    return "rows";
  scheduleGeneric(kernel, target);
  return "generic";
}

SmallVector<KernelFunc *> heed::outputsOf(KernelInfo &kernel) {
  SmallVector<KernelFunc *> outputs;
  for (halide::FuncOp func : kernel.pipeline.getOutputFuncs())
    outputs.push_back(kernel.find(func.getResult()));
  return outputs;
}

OpBuilder heed::scheduleBuilder(KernelInfo &kernel) {
  return OpBuilder::atBlockEnd(&kernel.pipeline.getBody().front());
}

SmallVector<std::string> heed::varsOf(halide::FuncOp func) {
  SmallVector<std::string> vars;
  for (Attribute var : func.getVars())
    vars.push_back(cast<StringAttr>(var).str());
  return vars;
}

unsigned heed::widestBits(halide::FuncOp func) {
  unsigned bits = 8;
  for (Type type : halide::getElementTypes(func.getResult()))
    bits = std::max(bits, type.getIntOrFloatBitWidth());
  return bits;
}

void heed::parallelOuter(OpBuilder &b, halide::FuncOp func, int64_t stage,
                         SmallVector<std::string> vars, size_t first) {
  Location loc = func.getLoc();
  if (vars.size() <= first)
    return;
  // From the inside out: Halide then still sees each var as one point inside
  // the fused loop.
  std::string fused = vars[first];
  for (size_t k = first + 1; k < vars.size(); ++k) {
    std::string next = fused + "_" + vars[k];
    halide::FuseOp::create(b, loc, func.getResult(), stage, fused, vars[k],
                           next);
    fused = next;
  }
  halide::ParallelOp::create(b, loc, func.getResult(), stage, fused);
}

void heed::vectorizeInner(OpBuilder &b, halide::FuncOp func, int64_t stage,
                          StringRef var, int64_t lanes) {
  if (lanes < 2)
    return;
  Location loc = func.getLoc();
  std::string inner = (var + "v").str();
  halide::SplitOp::create(b, loc, func.getResult(), stage, var, var, inner,
                          lanes, halide::TailStrategy::GuardWithIf);
  halide::VectorizeOp::create(b, loc, func.getResult(), stage, inner);
}
