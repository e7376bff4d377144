//===- Elementwise.cpp - schedule of kernels without reductions -----------===//
//
// Everything is inlined into the outputs; the innermost loop is vectorised, all
// others are one parallel loop.
#include "passes/Schedule/Schedule.h"

using namespace mlir;
using namespace heed;

bool heed::scheduleElementwise(KernelInfo &kernel,
                               const halide::Target &target) {
  for (KernelFunc &f : kernel.funcs)
    if (f.role != FuncRole::Pure)
      return false;
  OpBuilder b = scheduleBuilder(kernel);
  for (KernelFunc *f : outputsOf(kernel)) {
    SmallVector<std::string> vars = varsOf(f->func);
    if (vars.empty())
      continue;
    int64_t lanes = target.lanes(std::max(32u, widestBits(f->func)));
    bool tooShort = f->extents[0].fixed && *f->extents[0].fixed < lanes;
    if (!tooShort)
      vectorizeInner(b, f->func, 0, vars[0], lanes);
    parallelOuter(b, f->func, 0, vars, 1);
  }
  return true;
}
