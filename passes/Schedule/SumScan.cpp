//===- SumScan.cpp - schedule of recurrences of columns -------------------===//
//
// Lanes are columns, and a tile is a vector of them, whose states stay in
// registers over the few steps of a call, or two, whose states stay in the
// first cache and share the numbers that all columns are multiplied with. The
// turns of a group of places are unrolled: sums are registers.
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"

#include "llvm/ADT/SetVector.h"

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
  void prefetch(OpBuilder &b, int64_t stage);
  void chooseLanes();
  int64_t places() const { return *states.reductions[0][0].fixed; }
  /// The elements of a slot that are states: their columns are there before
  /// the first step.
  int64_t numStates() {
    Value func = states.func.getResult();
    auto yield = states.updates[0].getSet().front().getTerminator();
    return llvm::count_if(yield->getOperands(), [&](Value element) {
      auto read = element.getDefiningOp<halide::ReadOp>();
      return !read || read.getFunc() != func;
    });
  }
  int64_t mostInRegisters() const {
    return 3 * int64_t(target.vectorRegisters) / 4;
  }

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

/// What later steps read is fetched, at whose beginning the processor would
/// wait: of numbers for all lanes, by each group of places, its rows of a few
/// lines; of columns, their row.
void SumScan::prefetch(OpBuilder &b, int64_t stage) {
  halide::UpdateOp update = states.updates[stage - 1];
  Block &body = update.getSet().front();
  unsigned rank = states.extents.size();
  Value lane = body.getArgument(0), group = body.getArgument(rank + 1),
        step = body.getArgument(rank + 2);
  llvm::SmallSetVector<Value, 4> numbers, columns;
  for (auto read : body.getOps<halide::ReadOp>()) {
    llvm::SmallPtrSet<Value, 8> used;
    for (Value coordinate : read.getCoordinates())
      for (Value argument : argumentsOf(coordinate))
        used.insert(argument);
    if (!read.getFunc().getDefiningOp<halide::BufferOp>() ||
        !used.contains(step))
      continue;
    if (used.contains(lane))
      columns.insert(read.getFunc());
    else if (used.contains(group))
      numbers.insert(read.getFunc());
  }
  int64_t turns = *states.reductions[stage - 1][0].fixed,
          groups = *states.reductions[stage - 1][1].fixed;
  auto fetch = [&](Value array, StringRef at, int64_t ahead) {
    halide::PrefetchOp::create(b, states.func.getLoc(), states.func.getResult(),
                               stage, array, at, "r2", ahead);
  };
  if (groups > 1)
    for (Value array : numbers)
      fetch(array, "r1", 1);
  // A turn takes some four cycles. What comes in the next round of turns may be
  // too late, and is then late for each of them.
  constexpr int64_t leastRounds = 4, leastTurns = 128;
  for (Value array : columns)
    fetch(array, "r2", std::max(leastRounds, leastTurns / (turns * groups)));
}

/// A step's turns, of a group of places, unrolled.
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
  halide::VectorizeOp::create(b, loc, func, 0, vars[0]);
  for (auto [number, update] : llvm::enumerate(states.updates)) {
    int64_t stage = number + 1;
    halide::VectorizeOp::create(b, loc, func, stage, vars[0]);
    SmallVector<StringRef> order{vars[0]};
    for (Attribute loop : update.getRvars())
      order.push_back(cast<StringAttr>(loop).getValue());
    order.append(std::next(vars.begin()), vars.end());
    halide::ReorderOp::create(b, loc, func, stage, order);
    if (number || places() <= mostInRegisters())
      halide::UnrollOp::create(b, loc, func, stage, "r0");
    if (number == 1)
      prefetch(b, stage);
  }
}

/// The lanes of a tile, of two vectors where one leaves no registers, and how
/// many tiles are a task.
void SumScan::chooseLanes() {
  lanes = target.lanes(std::max(32u, widestBits(states.func)));
  std::optional<int64_t> columns = states.extents[0].fixed;
  int64_t turns = *states.reductions[1][0].fixed,
          groups = *states.reductions[1][1].fixed;
  // More code for each of two vectors would come from the second cache; a tile
  // that is half empty takes as long as a full one.
  constexpr int64_t mostTurns = 448;
  auto computed = [&](int64_t tile) { return llvm::alignTo(*columns, tile); };
  if (places() * numStates() > mostInRegisters() && turns <= mostTurns &&
      columns && computed(2 * lanes) <= computed(lanes))
    lanes *= 2;
  // Some ten microseconds of work.
  constexpr int64_t mostTiles = 16, turnsOfTask = 1 << 14;
  int64_t most = *states.extents.back().fixed;
  tilesOfTask =
      std::clamp<int64_t>(turnsOfTask / (turns * groups * most), 1, mostTiles);
}

void SumScan::run() {
  chooseLanes();
  clampLanes(states, lanes);
  OpBuilder b = scheduleBuilder(kernel);
  for (KernelFunc *f : outputs)
    scheduleOutput(b, *f, *outputs[0]);
  scheduleStates(b);
  // Some turns of a step with several sums, and not all of a long one: what is
  // read of it so early is better read again.
  constexpr int64_t instructions = 400;
  states.func->getParentOfType<halide::PipelineOp>().setLookBack(instructions);
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
