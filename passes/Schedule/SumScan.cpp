//===- SumScan.cpp - schedule of recurrences of columns -------------------===//
//
// Lanes are columns, and a tile is a vector of them, whose states stay in
// registers over the few steps of a call, or two, whose states stay in the
// first cache and share the numbers that all columns are multiplied with. The
// turns of a step are unrolled: sums are registers.
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"

using namespace mlir;
using namespace heed;

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
  void chooseLanes();

  KernelInfo &kernel;
  const halide::Target &target;
  SmallVector<KernelFunc *> outputs;
  KernelFunc &states;
  int64_t lanes = 1, tilesOfTask = 1;
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

/// A step's turns, unrolled.
void SumScan::scheduleStates(OpBuilder &b) {
  Location loc = states.func.getLoc();
  Value func = states.func.getResult();
  halide::ComputeAtOp::create(b, loc, func, outputs[0]->func.getResult(),
                              "tile");
  SmallVector<std::string> vars = varsOf(states.func);
  // Of how many steps there may be, so that memory for them is none to ask for.
  halide::BoundExtentOp::create(b, loc, func, vars.back(),
                                i32(b, *states.extents.back().fixed));
  vars.pop_back();
  for (const std::string &var : vars)
    halide::BoundExtentOp::create(b, loc, func, var,
                                  i32(b, var == vars[0] ? lanes : 1));
  for (int64_t stage = 1; stage <= int64_t(states.updates.size()); ++stage) {
    halide::VectorizeOp::create(b, loc, func, stage, vars[0]);
    SmallVector<StringRef> order{vars[0], "r0"};
    if (stage > 1)
      order.push_back("r1");
    order.append(std::next(vars.begin()), vars.end());
    halide::ReorderOp::create(b, loc, func, stage, order);
    halide::UnrollOp::create(b, loc, func, stage, "r0");
  }
}

/// The lanes of a tile, of two vectors where one leaves no registers, and how
/// many tiles are a task.
void SumScan::chooseLanes() {
  lanes = target.lanes(std::max(32u, widestBits(states.func)));
  std::optional<int64_t> columns = states.extents[0].fixed;
  int64_t turns = *states.reductions[1][0].fixed;
  int64_t places = *states.reductions[0][0].fixed *
                   halide::getElementTypes(states.func.getResult()).size();
  // More code for each of two vectors would come from the second cache.
  constexpr int64_t mostTurns = 448;
  if (places > 3 * int64_t(target.vectorRegisters) / 4 && turns <= mostTurns &&
      columns && *columns >= 2 * lanes)
    lanes *= 2;
  // Some ten microseconds of work.
  constexpr int64_t mostTiles = 16, turnsOfTask = 1 << 14;
  int64_t slots = *states.extents.back().fixed - *states.reductions[0][0].fixed;
  tilesOfTask =
      std::clamp<int64_t>(turnsOfTask / (turns * slots), 1, mostTiles);
}

void SumScan::run() {
  chooseLanes();
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
