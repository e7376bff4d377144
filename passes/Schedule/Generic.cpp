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
    if (vars.empty())
      continue;
    int64_t lanes = target.lanes(std::max(32u, widestBits(f.func)));
    bool tooShort = f.extents[0].fixed && *f.extents[0].fixed < lanes;
    for (int64_t stage = 0, end = f.updates.size(); stage <= end; ++stage) {
      // Lanes inside of a reduction, tasks outside of it.
      SmallVector<std::string> order;
      if (!tooShort) {
        vectorizeInner(b, f.func, stage, vars[0], lanes);
        order.push_back(vars[0] + "v");
      }
      if (stage)
        for (Attribute r : f.updates[stage - 1].getRvars())
          order.push_back(cast<StringAttr>(r).str());
      order.append(vars.begin(), vars.end());
      SmallVector<StringRef> names(order.begin(), order.end());
      if (names.size() > 1)
        halide::ReorderOp::create(b, loc, f.func.getResult(), stage, names);
      parallelOuter(b, f.func, stage, vars, vars.size() > 1 ? 1 : 0);
    }
  }
}
