//===- StateStep.cpp - schedule of one step of a state --------------------===//
//
// Head by head: the sums over the old state, the new state, and the sums over
// that. The state of a head is read from memory by the first of these and is
// then in the second cache. Sums over the new state compute its elements again
// rather than wait for what is written, which passes the caches by.
//
// Where sums run along the state's innermost dim, a row of it stands for a
// head: what a task does is some rows.
#include "passes/Schedule/RowLanes.h"
#include "passes/Schedule/Schedule.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heed;

namespace {

/// The dims of a head, outermost, and those of the state that it has: its
/// columns and, if there are two, its rows.
struct StepPlan {
  unsigned heads, inner;
};

/// Whether \p c is no more than numbers of inputs, computed where it is read.
bool isPrepared(const KernelFacts &facts, const Computation &c) {
  return c.isElementwise() && llvm::all_of(c.reads, [&](const Read &read) {
           return facts.sources[read.source].kind != Source::Computed;
         });
}

/// How many outer dims \p reader and what it reads of other computations have
/// in common, at most \p most.
unsigned commonDims(const KernelFacts &facts, const Computation &reader,
                    unsigned most) {
  unsigned common = most;
  auto limit = [&](const Read &read) {
    const Source &source = facts.sources[read.source];
    if (source.kind != Source::Computed)
      return;
    const Computation &from = facts.computations[source.number];
    if (isPrepared(facts, from) &&
        !llvm::is_contained(facts.outputs, source.number))
      return;
    unsigned rank = from.rank(), same = 0;
    while (same < std::min(rank, reader.rank()) &&
           read.at[rank - 1 - same].loop == reader.rank() - 1 - same)
      ++same;
    common = std::min(common, same);
  };
  llvm::for_each(reader.reads, limit);
  for (const Reduction &sum : reader.reductions)
    llvm::for_each(sum.reads, limit);
  return common;
}

/// Whether \p reader reads outputs at its own places and at those that it adds
/// up alone. At another one an output would be computed for it, also where the
/// array that it is has none: the last but two of no rows.
bool readsOutputsInPlace(const KernelFacts &facts, const Computation &reader) {
  auto inPlace = [&](const Read &read) {
    const Source &source = facts.sources[read.source];
    return source.kind != Source::Computed ||
           !llvm::is_contained(facts.outputs, source.number) ||
           llvm::all_of(read.at, [](const Coordinate &coordinate) {
             return coordinate.loop.has_value();
           });
  };
  return llvm::all_of(reader.reads, inPlace) &&
         llvm::all_of(reader.reductions, [&](const Reduction &sum) {
           return llvm::all_of(sum.reads, inPlace);
         });
}

/// Whether each sum has the dims of a head, and then columns at most, and is
/// made of what lies side by side as the schedule has it.
bool hasSumsOfHeads(const KernelFacts &facts, StepPlan plan, int64_t lanes) {
  return llvm::all_of(facts.sums(), [&](unsigned number) {
    const Computation &c = facts.computations[number];
    return c.onlySum() && c.rank() >= plan.heads &&
           (c.rank() == plan.heads ||
            (plan.inner == 2 && c.rank() == plan.heads + 1 &&
             !reducesInnermost(c, lanes)));
  });
}

std::optional<StepPlan> planStep(const KernelFacts &facts, int64_t lanes) {
  if (facts.kind != "state step" || facts.isPartial || facts.sums().empty())
    return std::nullopt;
  unsigned rank = 0, least = ~0u;
  KnownExtent columns;
  for (unsigned number : facts.outputs) {
    const Computation &c = facts.computations[number];
    least = std::min(least, c.rank());
    if (c.rank() > rank && c.isElementwise()) {
      rank = c.rank();
      columns = c.extents[0];
    }
  }
  StepPlan plan{least, 0};
  for (auto [number, c] : llvm::enumerate(facts.computations)) {
    if (c.results != 1 || !readsOutputsInPlace(facts, c))
      return std::nullopt;
    if (isPrepared(facts, c) && !llvm::is_contained(facts.outputs, number))
      continue;
    plan.heads = commonDims(facts, c, std::min(plan.heads, c.rank()));
  }
  plan.inner = rank - plan.heads;
  if (least >= rank || plan.heads == 0 || plan.inner > 2 ||
      (columns && *columns < lanes) || !hasSumsOfHeads(facts, plan, lanes))
    return std::nullopt;
  return plan;
}

/// Whether \p func reads \p what, itself or through what it reads.
bool readsFunc(Value func, Value what) {
  if (func == what)
    return true;
  auto definition = func.getDefiningOp<halide::FuncOp>();
  if (!definition)
    return false;
  auto inBody = [&](Block &body) {
    return llvm::any_of(body.getOps<halide::ReadOp>(), [&](halide::ReadOp op) {
      return op.getFunc() != func && readsFunc(op.getFunc(), what);
    });
  };
  return inBody(definition.getBody().front()) ||
         llvm::any_of(func.getUsers(), [&](Operation *user) {
           auto update = dyn_cast<halide::UpdateOp>(user);
           return update && update.getFunc() == func &&
                  inBody(update.getSet().front());
         });
}

/// Whether \p func computes an exponential, or the like, that is worth storing:
/// of what has rows, for each column. One that is the same for all of a row
/// LLVM computes before it.
bool isWorthStoring(halide::FuncOp func, StepPlan plan) {
  Value column = func.getBody().getArgument(0);
  return func
      ->walk([&](Operation *op) {
        bool isCostly =
            isa<math::MathDialect>(op->getDialect()) &&
            !isa<math::SqrtOp, math::AbsFOp>(op) &&
            (plan.inner == 1 || argumentsOf(op->getResult(0)).contains(column));
        return isCostly ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// How many vectors of columns a loop over rows takes along, each with a sum:
/// as many as registers hold, so that a row of the state is read as it lies.
int64_t vectorsOfColumns(KnownExtent columns, int64_t lanes,
                         const halide::Target &target) {
  if (!columns || *columns % lanes)
    return 1;
  int64_t vectors = *columns / lanes, most = target.vectorRegisters / 2;
  while (vectors % most)
    --most;
  return most;
}

class StepSchedule {
public:
  StepSchedule(KernelInfo &kernel, StepPlan plan, const halide::Target &target)
      : kernel(kernel), plan(plan), target(target) {}
  void run();

private:
  void scheduleOutput(OpBuilder &b, KernelFunc &out);
  Value placeOf(Value func);
  void scheduleInside(OpBuilder &b, KernelFunc &f);

  KernelInfo &kernel;
  StepPlan plan;
  const halide::Target &target;
  SmallVector<KernelFunc *> outputs; ///< states first
  std::string head;                  ///< the loop whose iterations are heads
};

/// The loops of one output, which all of them share down to the heads.
void StepSchedule::scheduleOutput(OpBuilder &b, KernelFunc &out) {
  constexpr int64_t rowsOfTask = 64, mostUnrolled = 16;
  Location loc = out.func.getLoc();
  Value func = out.func.getResult();
  SmallVector<std::string> vars = varsOf(out.func);
  unsigned inner = vars.size() - plan.heads;
  // Else a shared loop has parts before and behind for what one output alone
  // may have.
  for (auto [var, extent] : llvm::zip(vars, out.extents))
    halide::BoundVarOp::create(b, loc, func, var, i32(b, 0), extent.value);
  if (inner) {
    int64_t lanes = target.lanes(std::max(32u, widestBits(out.func)));
    KnownExtent columns = out.extents[0].fixed;
    if (!columns || *columns >= lanes)
      vectorizeInner(b, out.func, 0, vars[0], lanes);
    if (columns && *columns % lanes == 0 && *columns / lanes <= mostUnrolled)
      halide::UnrollOp::create(b, loc, func, 0, vars[0]);
  }
  SmallVector<std::string> heads(llvm::drop_begin(vars, inner));
  head = heads[0];
  if (plan.inner == 1) {
    halide::SplitOp::create(b, loc, func, 0, head, "task", "row", rowsOfTask,
                            halide::TailStrategy::GuardWithIf);
    heads[0] = "task";
    head = "row";
  }
  // Not fused: what is computed inside reads two of them in one place.
  for (const std::string &var : heads)
    halide::ParallelOp::create(b, loc, func, 0, var);
}

/// Where \p func is computed: with the first output, but what one other output
/// alone reads with that one. Sums over a new state then run while it is being
/// written: 5.2 ms instead of 7.0 (a delta rule, 32 x 32 heads of 128 x 128).
Value StepSchedule::placeOf(Value func) {
  SmallVector<Value> readers;
  for (KernelFunc *out : outputs)
    if (readsFunc(out->func.getResult(), func))
      readers.push_back(out->func.getResult());
  return readers.size() == 1 ? readers[0] : outputs[0]->func.getResult();
}

/// A sum of a head, or elements that take long to compute.
void StepSchedule::scheduleInside(OpBuilder &b, KernelFunc &f) {
  Value func = f.func.getResult();
  Value at = placeOf(func);
  int64_t lanes = target.lanes(std::max(32u, widestBits(f.func)));
  if (f.role == FuncRole::Pure) {
    halide::ComputeAtOp::create(b, f.func.getLoc(), func, at, head);
    if (f.extents.size() > plan.heads &&
        (!f.extents[0].fixed || *f.extents[0].fixed >= lanes))
      vectorizeInner(b, f.func, 0, varsOf(f.func)[0], lanes);
  } else if (f.extents.size() == plan.heads) {
    scheduleLaneSum(b, kernel, func, at, head, target);
  } else {
    Value block = sumByBlocks(kernel, func, longestSum);
    int64_t vectors = vectorsOfColumns(f.extents[0].fixed, lanes, target);
    scheduleColumnSum(b, kernel, func, block, at, head, lanes, vectors);
  }
}

void StepSchedule::run() {
  separateOutputs(kernel, /*andRead=*/true);
  stateDenseStrides(kernel);
  outputs = outputsOf(kernel);
  llvm::stable_sort(outputs, [](KernelFunc *a, KernelFunc *b) {
    return a->extents.size() > b->extents.size();
  });
  SmallVector<KernelFunc *> inside;
  for (KernelFunc &f : kernel.funcs)
    if (f.role == FuncRole::Reduction ||
        (!llvm::is_contained(outputs, &f) && isWorthStoring(f.func, plan)))
      inside.push_back(&f);
  OpBuilder b = scheduleBuilder(kernel);
  for (KernelFunc *out : outputs)
    scheduleOutput(b, *out);
  Value first = outputs[0]->func.getResult();
  for (KernelFunc *out : ArrayRef(outputs).drop_front())
    halide::ComputeWithOp::create(b, out->func.getLoc(), out->func.getResult(),
                                  first, head);
  for (KernelFunc *f : inside)
    scheduleInside(b, *f);
  streamOutputs(kernel, target);
}

} // namespace

static std::optional<FamilyPlan> matchStateStep(const KernelFacts &facts,
                                                const halide::Target &target) {
  std::optional<StepPlan> plan = planStep(facts, target.lanes(32));
  if (!plan)
    return std::nullopt;
  return FamilyPlan{Benefit::WholeRowBlock,
                    [plan = *plan, &target](KernelInfo &kernel) {
                      StepSchedule(kernel, plan, target).run();
                      return true;
                    }};
}

static bool takesStateStep(const KernelFacts &facts,
                           const halide::Target &target) {
  return planStep(facts, target.lanes(32)).has_value();
}

namespace heed {
Family stateStepFamily() {
  Family family{"state-step", matchStateStep};
  family.takesStep = takesStateStep;
  return family;
}
} // namespace heed
