//===- Windows.cpp - schedule of sums over windows: convolutions ----------===//
//
// y[.., i, .., c] = epilogue(sum_t w[c, t] * x[.., i + t, .., c]) where i + t
// is inside, and the like in several dims. Vector lanes are c, the innermost
// dim of the result; a register tile has several rows i, whose windows share
// most of what they read: a few steps of t are unrolled, so that each row of x
// is loaded once for all of them. What a tile's windows read is copied once,
// for a block of rows and a panel of columns, to memory of the task, where its
// rows are aligned and lie close: all limits of coordinates are applied there,
// and what x is computed from is computed there. What follows columns alone (w)
// is packed in panels as a contraction's (Panels.cpp). Conditions that do not
// depend on the column are those of the update: Halide splits the loop over t
// where they begin and cease to hold for all rows of the tile, so that the
// steps between evaluate none. Measured: passes/Schedule/README.md.
#include "passes/Schedule/Windows.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;

/// Rows of a task's block: its windows read as many and a window more.
static constexpr int64_t rowsOfBlock = 32;
/// Where windows are long: what they read of one row is copied for as many.
static constexpr int64_t rowsOfLongBlock = 128;
/// Steps of a long window that a first cache holds for all tiles of a block.
static constexpr int64_t stepsOfBlock = 64;

static std::optional<WindowPlan> planWindows(const KernelFacts &facts) {
  SmallVector<unsigned> sums = facts.sums();
  if (sums.size() != 1 || facts.outputs.size() != 1)
    return std::nullopt;
  const Computation &c = facts.computations[sums[0]];
  if (!isWindowSum(c) || c.results != 1 || !c.reads.empty() ||
      c.reductions[0].isGuarded || c.reductions[0].isScattered ||
      !facts.isReadInPlace(sums[0]) ||
      facts.computations[facts.outputs[0]].rank() != c.rank())
    return std::nullopt;
  WindowPlan plan;
  for (const Read &read : c.reductions[0].reads)
    for (const Coordinate &at : read.at)
      for (unsigned dim = 1; dim < c.rank() && !plan.sharesRows; ++dim)
        for (unsigned loop = c.term(); loop < at.window.size(); ++loop)
          if (!plan.sharesRows && at.window[dim] && at.window[loop])
            plan = {dim, loop - c.term(), true, c.reductions[0].isLong};
  return plan;
}

/// Finds the sum and its term, and what its reads are; false if it is none of
/// this family.
bool WindowSchedule::findTerm() {
  for (KernelFunc &f : kernel.funcs)
    if (f.role == FuncRole::Reduction)
      sumFunc = f.func.getResult();
  update = sum().updates[0];
  loc = update.getLoc();
  std::optional<WindowTerm> found = termOf(update);
  if (!found)
    return false;
  term = *found;
  return llvm::any_of(readsOfTerms(update),
                      [&](halide::ReadOp read) { return isStaged(read); });
}

/// Whether neighbouring columns of \p read are neighbours in memory.
bool WindowSchedule::isDense(halide::ReadOp read) {
  OperandRange at = read.getCoordinates();
  return !at.empty() && movesWith(withoutLimits(at[0]), column()) &&
         llvm::none_of(at.drop_front(),
                       [&](Value other) { return dependsOn(other, column()); });
}

/// Whether what the windows of a tile find by \p read is copied for them.
bool WindowSchedule::isStaged(halide::ReadOp read) {
  if (!isDense(read) || !llvm::all_of(read.getCoordinates(), [](Value at) {
        return hasBounds(withoutLimits(at));
      }))
    return false;
  return llvm::any_of(read.getCoordinates(), [&](Value at) {
    return dependsOn(at, row()) || (movesWith(withoutLimits(at), column()) &&
                                    withoutLimits(at) != column());
  });
}

void WindowSchedule::chooseTile() {
  lanes = target.lanes(std::max(
      32u, halide::getElementTypes(sumFunc).front().getIntOrFloatBitWidth()));
  bool many = target.vectorRegisters >= 32;
  if (plan.sharesRows) {
    rows = many ? 8 : 4;
    KnownExtent taps = sum().reductions[0][plan.tap].fixed;
    isLong = taps ? *taps > stepsOfBlock : plan.isLong;
    steps = taps && *taps <= (many ? 8 : 4) ? std::max<int64_t>(1, *taps)
            : taps || isLong                ? 4
                                            : 2;
  } else {
    rows = many ? 4 : 2;
    vectors = 2;
    steps = 2;
  }
  if (KnownExtent extent = sum().extents[plan.row].fixed)
    rows = std::min(rows, std::max<int64_t>(1, *extent));
}

void WindowSchedule::scheduleOutput() {
  outFunc = outputsOf(kernel)[0]->func.getResult();
  KernelFunc &out = *kernel.find(outFunc);
  SmallVector<std::string> vars = varsOf(out.func);
  std::string n = vars[kColumn], m = vars[plan.row];
  halide::SplitOp::create(b, loc, outFunc, 0, n, "np", "ni", lanes * vectors,
                          guard);
  halide::SplitOp::create(b, loc, outFunc, 0, "ni", "nj", "nv", lanes, guard);
  SmallVector<std::string> loops{"nv", "nj", "mi"};
  if (isLong) {
    halide::SplitOp::create(b, loc, outFunc, 0, m, "mt", "mi", rowsOfLongBlock,
                            guard);
  } else {
    halide::SplitOp::create(b, loc, outFunc, 0, m, "mb", "mi", rows, guard);
    halide::SplitOp::create(b, loc, outFunc, 0, "mb", "mt", "mb",
                            std::max<int64_t>(1, rowsOfBlock / rows), guard);
    loops.push_back("mb");
  }
  // What long windows read is copied once for all blocks of a panel.
  loops.append({isLong ? "mt" : "np", isLong ? "np" : "mt"});
  for (auto [dim, var] : llvm::enumerate(vars))
    if (dim != kColumn && dim != plan.row)
      loops.push_back(var);
  SmallVector<StringRef> order(loops.begin(), loops.end());
  halide::ReorderOp::create(b, loc, outFunc, 0, order);
  halide::VectorizeOp::create(b, loc, outFunc, 0, "nv");
  // The loop of the window is split at its ends, or the one around it where all
  // of its steps are unrolled.
  if (isLong || sum().reductions[0][0].fixed.value_or(steps + 1) > steps)
    halide::PartitionOp::create(b, loc, outFunc, 0, isLong ? "mt" : "mb",
                                halide::Partition::Never);
  task = parallelOuter(b, out.func, 0, loops, isLong ? 4 : 5,
                       FusedBody::ComputesFuncs);
  halide::PartitionOp::create(b, loc, outFunc, 0, task,
                              halide::Partition::Never);
}

/// The register tile of stage \p stage of the sum. Of a long window all tiles
/// of a block take some steps, then the next ones: what these read stays close.
void WindowSchedule::scheduleTile(int64_t stage) {
  SmallVector<std::string> vars = varsOf(sum().func);
  std::string m = vars[plan.row];
  bool isBlocked = isLong && stage;
  SmallVector<std::string> loops{"nv", "nj", isBlocked ? "mi" : m};
  halide::SplitOp::create(b, loc, sumFunc, stage, vars[kColumn], "nj", "nv",
                          lanes, stage ? guard : halide::TailStrategy::RoundUp);
  if (stage) {
    std::string tap = cast<StringAttr>(update.getRvars()[0]).str(), step = tap;
    if (isBlocked) {
      step = "rb";
      halide::SplitOp::create(b, loc, sumFunc, stage, tap, tap, step,
                              stepsOfBlock, guard);
      halide::SplitOp::create(b, loc, sumFunc, stage, m, m, "mi", rows, guard);
    }
    halide::SplitOp::create(b, loc, sumFunc, stage, step, step, "ru", steps,
                            guard);
    loops.append({"ru", step});
    if (isBlocked)
      loops.append({m, tap});
    for (Attribute name : update.getRvars())
      if (cast<StringAttr>(name) != loops.back())
        loops.push_back(cast<StringAttr>(name).str());
  }
  SmallVector<StringRef> order(loops.begin(), loops.end());
  halide::ReorderOp::create(b, loc, sumFunc, stage, order);
  halide::VectorizeOp::create(b, loc, sumFunc, stage, "nv");
  halide::UnrollOp::create(b, loc, sumFunc, stage, "nj");
  if (stage || !isLong)
    halide::UnrollOp::create(b, loc, sumFunc, stage, loops[2]);
  if (stage)
    halide::UnrollOp::create(b, loc, sumFunc, stage, "ru");
  // The loop over the steps of a block is split at its ends, none around it.
  if (isBlocked)
    for (StringRef loop : ArrayRef<std::string>(loops).drop_front(5))
      halide::PartitionOp::create(b, loc, sumFunc, stage, loop,
                                  halide::Partition::Never);
}

/// Where the sum and what it reads are computed.
void WindowSchedule::scheduleSum() {
  SmallVector<std::string> vars = varsOf(sum().func);
  halide::ComputeAtOp::create(b, loc, sumFunc, outFunc, isLong ? "mt" : "mb");
  for (auto [dim, var] : llvm::enumerate(vars))
    halide::BoundExtentOp::create(b, loc, sumFunc, var,
                                  i32(b, dim == kColumn ? lanes * vectors
                                         : dim == plan.row
                                             ? (isLong ? rowsOfLongBlock : rows)
                                             : 1));
  scheduleTile(0);
  for (int64_t stage = 1, end = sum().updates.size(); stage <= end; ++stage)
    scheduleTile(stage);
  StringRef panel = isLong ? StringRef(task) : "np";
  for (Value place : places) {
    halide::ComputeAtOp::create(b, loc, place, outFunc, panel);
    vectorizeInner(b, place.getDefiningOp<halide::FuncOp>(), 0, vars[kColumn],
                   lanes);
  }
  for (Value copy : staged) {
    halide::ComputeAtOp::create(b, loc, copy, outFunc, panel);
    halide::SplitOp::create(b, loc, copy, 0, "s0", "s0", "s0v", lanes,
                            halide::TailStrategy::RoundUp);
    halide::VectorizeOp::create(b, loc, copy, 0, "s0v");
  }
}

bool WindowSchedule::run() {
  if (!findTerm())
    return false;
  separateOutputs(kernel);
  hideConditions(kernel);
  stateDenseStrides(kernel);
  chooseTile();
  rewriteUpdate();
  pack();
  stageReads();
  stagePlaces();
  clampRest();
  dropUnreadFuncs(kernel);
  dropUnreadBuffers(kernel);
  scheduleOutput();
  scheduleSum();
  streamOutputs(kernel, target);
  return true;
}

static std::optional<FamilyPlan> matchWindows(const KernelFacts &facts,
                                              const halide::Target &target) {
  std::optional<WindowPlan> plan = planWindows(facts);
  if (!plan)
    return std::nullopt;
  return FamilyPlan{Benefit::Tiles,
                    [plan = *plan, &target](KernelInfo &kernel) {
                      return WindowSchedule(kernel, plan, target).run();
                    }};
}

namespace heed {
Family windowsFamily() { return {"windows", matchWindows}; }
} // namespace heed
