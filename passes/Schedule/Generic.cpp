//===- Generic.cpp - the schedule that is right for every kernel
//----------------------------===//
// Each func with a reduction, and each output, is stored whole; what is pure
// between them is inlined. The outermost loops run in parallel. No family of
// its own should be slower; this one only has to be right.
#include "passes/Schedule/Schedule.h"

using namespace mlir;
using namespace heed;

void heed::scheduleGeneric(KernelInfo &kernel, const halide::Target &target) {
  OpBuilder b = scheduleBuilder(kernel);
  SmallVector<KernelFunc *> outputs = outputsOf(kernel);
  for (KernelFunc &f : kernel.funcs) {
    bool isOutput = llvm::is_contained(outputs, &f);
    if (f.role == FuncRole::Pure && !isOutput)
      continue;
    Location loc = f.func.getLoc();
    if (!isOutput)
      halide::ComputeRootOp::create(b, loc, f.func.getResult());
    SmallVector<std::string> vars = varsOf(f.func);
    for (int64_t stage = 0, end = f.updates.size(); stage <= end; ++stage)
      if (!vars.empty())
        halide::ParallelOp::create(b, loc, f.func.getResult(), stage,
                                   vars.back());
  }
}
