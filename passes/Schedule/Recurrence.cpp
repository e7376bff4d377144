//===- Recurrence.cpp - schedule of states that follow one another --------===//
//
// Steps are the outermost loop, and the elements of a step lie side by side: a
// row of the state is read where it was written, in the first cache, and rows
// of inputs go by as they lie in memory. The host gives as many steps at once
// as a cache holds.
#include "passes/Mutation.h"
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed;

/// Lanes along the first dim, then the other dims, then \p last.
static void scheduleStage(OpBuilder &b, KernelFunc &f, int64_t stage,
                          ArrayRef<std::string> vars,
                          const halide::Target &target) {
  int64_t lanes = target.lanes(std::max(32u, widestBits(f.func)));
  SmallVector<std::string> order;
  bool isShort = f.extents[0].fixed && *f.extents[0].fixed < lanes;
  if (vars.size() > 1 && !isShort)
    order = vectorizeSum(b, f.func, stage, lanes, /*vectors=*/1);
  order.append(vars.begin(), vars.end());
  SmallVector<StringRef> names(order.begin(), order.end());
  if (names.size() > 1)
    halide::ReorderOp::create(b, f.func.getLoc(), f.func.getResult(), stage,
                              names);
}

static void scheduleRecurrence(KernelInfo &kernel,
                               const halide::Target &target) {
  OpBuilder b = scheduleBuilder(kernel);
  SmallVector<KernelFunc *> outputs = outputsOf(kernel);
  for (KernelFunc &f : kernel.funcs) {
    bool isOutput = llvm::is_contained(outputs, &f);
    if (f.role == FuncRole::Pure && !isOutput)
      continue;
    if (!isOutput)
      halide::ComputeRootOp::create(b, f.func.getLoc(), f.func.getResult());
    SmallVector<std::string> vars = varsOf(f.func);
    scheduleStage(b, f, 0, vars, target);
    if (f.role != FuncRole::Recurrence)
      continue;
    // The row is none of the update's vars, but its loop.
    vars.back() = cast<StringAttr>(f.updates[0].getRvars()[0]).str();
    scheduleStage(b, f, 1, vars, target);
  }
}

static std::optional<FamilyPlan> matchRecurrence(const KernelFacts &facts,
                                                 const halide::Target &target) {
  if (facts.kind != "recurrence")
    return std::nullopt;
  return FamilyPlan{Benefit::WholeRowBlock, [&target](KernelInfo &kernel) {
                      scheduleRecurrence(kernel, target);
                      return true;
                    }};
}

namespace heed {
Family recurrenceFamily() { return {"recurrence", matchRecurrence}; }
} // namespace heed
