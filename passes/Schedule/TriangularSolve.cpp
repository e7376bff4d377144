//===- TriangularSolve.cpp - schedule of a triangular system --------------===//
//
// A row that is done is taken off each row behind it: such rows do not wait for
// one another, and a panel of their columns stays in the first cache with its
// matrix. A matrix is one task.
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"

using namespace mlir;
using namespace heed;

/// The dim of \p f's steps: the one that its update does not take as it stands.
static unsigned stepDim(const KernelFunc &f) {
  halide::UpdateOp update = f.updates[0];
  Block &at = update.getAt().front();
  for (auto [dim, value] : llvm::enumerate(at.getTerminator()->getOperands()))
    if (value != at.getArgument(dim))
      return dim;
  llvm_unreachable("an update of a triangular system is one of its steps");
}

static void scheduleSolve(KernelInfo &kernel, const halide::Target &target) {
  OpBuilder b = scheduleBuilder(kernel);
  for (KernelFunc &f : kernel.funcs) {
    if (f.updates.empty())
      continue; // it is computed where it is read
    Location loc = f.func.getLoc();
    Value func = f.func.getResult();
    int64_t lanes = target.lanes(32), vectors = 4;
    bool isShort = f.extents[0].fixed && *f.extents[0].fixed < lanes;
    if (f.extents[0].fixed)
      vectors = std::clamp<int64_t>(*f.extents[0].fixed / lanes, 1, vectors);
    for (int64_t stage : {0, 1}) {
      SmallVector<std::string> order, vars = varsOf(f.func);
      // The step is none of the update's vars.
      auto *step = vars.begin() + stepDim(f);
      std::string steps = *step;
      vars.erase(step);
      bool isRow = vars.empty() || step != vars.begin();
      if (isRow && !isShort && !vars.empty())
        order = vectorizeSum(b, f.func, stage, lanes, vectors);
      if (stage)
        for (Attribute r : f.updates[0].getRvars())
          order.push_back(cast<StringAttr>(r).str());
      else
        order.push_back(steps);
      order.append(vars.begin(), vars.end());
      SmallVector<StringRef> names(order.begin(), order.end());
      if (names.size() > 1)
        halide::ReorderOp::create(b, loc, func, stage, names);
      parallelOuter(b, f.func, stage, vars, 0, FusedBody::Alone);
    }
  }
}

static std::optional<FamilyPlan>
matchTriangularSolve(const KernelFacts &facts, const halide::Target &target) {
  if (facts.kind != "triangular solve")
    return std::nullopt;
  return FamilyPlan{Benefit::WholeRowBlock, [&target](KernelInfo &kernel) {
                      scheduleSolve(kernel, target);
                      return true;
                    }};
}

namespace heed {
Family triangularSolveFamily() {
  return {"triangular solve", matchTriangularSolve};
}
} // namespace heed
