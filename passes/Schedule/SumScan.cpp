//===- SumScan.cpp - schedule of sums over recurrences of elements --------===//
//
// Lanes are elements of a row, and a tile is a vector of them: its states, all
// places of the summed axis, stay in registers over the few steps of a call.
// The sums are made of them there.
#include "passes/Schedule/Schedule.h"

using namespace mlir;
using namespace heed;

/// How many tiles a task has at least: some ten microseconds of work.
static constexpr int64_t tilesOfTask = 16;

namespace {

class SumScan {
public:
  SumScan(KernelInfo &kernel, const halide::Target &target)
      : kernel(kernel), target(target), outputs(outputsOf(kernel)),
        states(*llvm::find_if(kernel.funcs, [](KernelFunc &f) {
          return f.role == FuncRole::Recurrence;
        })) {}
  void run();

private:
  void scheduleOutput(OpBuilder &b, KernelFunc &f, KernelFunc &first);
  void scheduleStates(OpBuilder &b);

  KernelInfo &kernel;
  const halide::Target &target;
  SmallVector<KernelFunc *> outputs;
  KernelFunc &states;
  int64_t lanes = 1;
};

} // namespace

/// Tiles outermost, which all outputs share.
void SumScan::scheduleOutput(OpBuilder &b, KernelFunc &f, KernelFunc &first) {
  Location loc = f.func.getLoc();
  Value func = f.func.getResult();
  SmallVector<std::string> vars = varsOf(f.func),
                           loops{"lane", vars[1], "tile", "task"};
  // Else a shared loop has parts before and behind for what one output alone
  // may have.
  if (outputs.size() > 1)
    for (auto [var, extent] : llvm::zip(vars, f.extents))
      halide::BoundVarOp::create(b, loc, func, var, i32(b, 0), extent.value);
  auto guard = halide::TailStrategy::GuardWithIf;
  halide::SplitOp::create(b, loc, func, 0, vars[0], "tile", "lane", lanes,
                          guard);
  halide::VectorizeOp::create(b, loc, func, 0, "lane");
  halide::SplitOp::create(b, loc, func, 0, "tile", "task", "tile", tilesOfTask,
                          guard);
  SmallVector<std::string> outer(llvm::drop_begin(vars, 2));
  loops.append(outer);
  SmallVector<StringRef> order(loops.begin(), loops.end());
  halide::ReorderOp::create(b, loc, func, 0, order);
  constexpr int64_t mostUnrolled = 16;
  if (f.extents[1].fixed && *f.extents[1].fixed <= mostUnrolled)
    halide::UnrollOp::create(b, loc, func, 0, vars[1]);
  // Not fused: what is computed inside reads two of them in one place.
  outer.insert(outer.begin(), "task");
  for (const std::string &var : outer)
    halide::ParallelOp::create(b, loc, func, 0, var);
  if (&f != &first)
    halide::ComputeWithOp::create(b, loc, func, first.func.getResult(), "tile");
}

/// A step is a place after the other, unrolled, and then the sums.
void SumScan::scheduleStates(OpBuilder &b) {
  Location loc = states.func.getLoc();
  Value func = states.func.getResult();
  halide::ComputeAtOp::create(b, loc, func, outputs[0]->func.getResult(),
                              "tile");
  SmallVector<std::string> vars = varsOf(states.func);
  vars.pop_back(); // the slots
  for (const std::string &var : vars)
    halide::BoundExtentOp::create(b, loc, func, var,
                                  i32(b, var == vars[0] ? lanes : 1));
  for (int64_t stage : {1, 2}) {
    halide::VectorizeOp::create(b, loc, func, stage, vars[0]);
    SmallVector<StringRef> order{vars[0], "r0"};
    if (stage == 2)
      order.push_back("r1");
    order.append(std::next(vars.begin()), vars.end());
    halide::ReorderOp::create(b, loc, func, stage, order);
    halide::UnrollOp::create(b, loc, func, stage, "r0");
  }
}

void SumScan::run() {
  lanes = target.lanes(std::max(32u, widestBits(states.func)));
  clampLanes(states, lanes);
  OpBuilder b = scheduleBuilder(kernel);
  for (KernelFunc *f : outputs)
    scheduleOutput(b, *f, *outputs[0]);
  scheduleStates(b);
}

static std::optional<FamilyPlan> matchSumScan(const KernelFacts &facts,
                                              const halide::Target &target) {
  if (facts.kind != "sum scan")
    return std::nullopt;
  return FamilyPlan{Benefit::WholeRowBlock, [&target](KernelInfo &kernel) {
                      SumScan(kernel, target).run();
                      return true;
                    }};
}

namespace heed {
Family sumScanFamily() { return {"sum-scan", matchSumScan}; }
} // namespace heed
