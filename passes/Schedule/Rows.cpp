//===- Rows.cpp - schedule of softmax, norms and other reductions of rows -===//
//
// A row is worked on while it is in the cache: its reductions one after the
// other, then its elements. Lanes are places in the row: a sum keeps one
// partial result per lane of four vectors, which hide the latency of an
// addition, and adds the vectors and then their lanes at its end. Whole vectors
// that are left over have partial results of their own; what is left over after
// these is added element by element. Rows are independent and run in parallel.
#include "passes/Schedule/RowLanes.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace heed;

namespace {

/// Places a func inside the loop over rows.
void placeAtRow(OpBuilder &b, Value func, Value out, StringRef at) {
  halide::ComputeAtOp::create(b, func.getLoc(), func, out, at);
}

/// Whether \p func is worth storing for a row: a transcendental function that
/// more than one stage reads.
bool isExpensive(halide::FuncOp func) {
  bool expensive = false;
  func->walk([&](Operation *op) {
    expensive |= isa<math::MathDialect>(op->getDialect()) &&
                 !isa<math::SqrtOp, math::AbsFOp>(op);
  });
  llvm::SmallPtrSet<Operation *, 4> readers;
  for (Operation *user : func.getResult().getUsers())
    if (isa<halide::ReadOp>(user))
      readers.insert(user->getParentOp());
  return expensive && readers.size() > 1;
}

/// Whether data say what \p coordinate is.
bool isLookedUp(Value coordinate) {
  Operation *op = coordinate.getDefiningOp();
  return op && (isa<halide::ReadOp>(op) ||
                llvm::any_of(op->getOperands(), isLookedUp));
}

/// Arrays that \p func, or what is computed inside of it, reads place by place
/// along its rows; with \p lookedUp those alone whose rows follow data.
void collectRows(halide::FuncOp func, bool lookedUp,
                 llvm::SmallSetVector<Value, 4> &arrays) {
  Block &body = func.getBody().front();
  for (auto read : body.getOps<halide::ReadOp>()) {
    OperandRange at = read.getCoordinates();
    if (at.size() < 2 || at[0] != body.getArgument(0) ||
        llvm::all_of(at.drop_front(),
                     [](Value row) { return argumentsOf(row).empty(); }))
      continue;
    Operation *source = read.getFunc().getDefiningOp();
    if (isa<halide::BufferOp>(source) &&
        (!lookedUp || llvm::any_of(at.drop_front(), isLookedUp)))
      arrays.insert(read.getFunc());
    else if (auto inner = dyn_cast<halide::FuncOp>(source);
             inner && !isExpensive(inner))
      collectRows(inner, lookedUp, arrays);
  }
}

/// Has loop \p var of \p func, which goes along a row, fetch the next row of
/// what it reads while it computes this one. Within a page the processor does
/// so by itself, but for rows that lie anywhere.
void prefetchRows(OpBuilder &b, KernelInfo &kernel, Value func, StringRef var,
                  Value out) {
  constexpr int64_t page = 4096;
  KernelFunc *f = kernel.find(func);
  bool isShort = f->extents[0].fixed &&
                 *f->extents[0].fixed * widestBits(f->func) < page * 8;
  llvm::SmallSetVector<Value, 4> arrays;
  collectRows(f->func, isShort, arrays);
  for (Value array : arrays)
    halide::PrefetchNextOp::create(b, f->func.getLoc(), func, 0, array, var,
                                   out, "row");
}

constexpr auto guard = halide::TailStrategy::GuardWithIf;

/// Lanes of what \p f computes.
int64_t lanesOf(const KernelFunc &f, const halide::Target &target) {
  return target.lanes(std::max(32u, widestBits(f.func)));
}

/// Columns: the places of \p sum lie a row apart, so lanes are the innermost
/// dim of the result.
void scheduleColumns(OpBuilder &b, KernelInfo &kernel, Value sum,
                     const halide::Target &target) {
  KernelFunc *out = outputsOf(kernel)[0];
  Value outFunc = out->func.getResult();
  Location loc = out->func.getLoc();
  SmallVector<std::string> vars = varsOf(out->func);
  int64_t lanes = lanesOf(*out, target);
  KernelFunc &f = *kernel.find(sum);
  Value block = sumByBlocks(kernel, sum, longestSum);
  int64_t vectors = vectorsOfSum(block ? *kernel.find(block) : f, lanes,
                                 vars.size() == 1, target);
  halide::SplitOp::create(b, loc, outFunc, 0, vars[0], "vb", "v",
                          vectors * lanes, guard);
  if (vectors > 1) {
    halide::SplitOp::create(b, loc, outFunc, 0, "v", "vu", "v", lanes, guard);
    halide::UnrollOp::create(b, loc, outFunc, 0, "vu");
  }
  halide::VectorizeOp::create(b, loc, outFunc, 0, "v");
  scheduleColumnSum(b, kernel, sum, block, outFunc, "vb", lanes, vectors);
  SmallVector<std::string> loops{"vb"};
  loops.append(vars.begin() + 1, vars.end());
  parallelOuter(b, out->func, 0, loops, loops.size() > 1 ? 1 : 0,
                FusedBody::ComputesFuncs);
}

/// Rows of a task: where they are known to be short, so many that to wake a
/// thread costs less than to compute them. A token's few rows are then one.
int64_t rowsOfTask(const KernelInfo &kernel) {
  constexpr int64_t least = 8, most = 64, elementsOfTask = 8192;
  int64_t longest = 1;
  for (const KernelFunc &f : kernel.funcs)
    for (const SmallVector<Extent> &loops : f.reductions) {
      int64_t length = 1;
      for (const Extent &loop : loops)
        length *= loop.fixed.value_or(elementsOfTask);
      longest = std::max(longest, length);
    }
  return std::clamp(elementsOfTask / longest, least, most);
}

/// The loops of the output: places in the row, its \p inner dims, then tasks of
/// \p rows.
void scheduleOutput(OpBuilder &b, KernelFunc &out, size_t inner, int64_t rows,
                    const halide::Target &target) {
  Value outFunc = out.func.getResult();
  Location loc = out.func.getLoc();
  SmallVector<std::string> vars = varsOf(out.func);
  int64_t lanes = lanesOf(out, target);
  if (inner && !(out.extents[0].fixed && *out.extents[0].fixed < lanes))
    vectorizeInner(b, out.func, 0, vars[0], lanes);
  SmallVector<std::string> loops =
      fuseLoops(b, out.func, 0, ArrayRef(vars).drop_front(inner),
                FusedBody::ComputesFuncs);
  halide::SplitOp::create(b, loc, outFunc, 0, loops[0], "task", "row", rows,
                          guard);
  loops[0] = "task";
  for (const std::string &loop : loops)
    halide::ParallelOp::create(b, loc, outFunc, 0, loop);
  // The last task needs no loops of its own.
  halide::PartitionOp::create(b, loc, outFunc, 0, loops[0],
                              halide::Partition::Never);
}

} // namespace

static void scheduleRows(KernelInfo &kernel, const RowsPlan &plan,
                         const halide::Target &target) {
  separateOutputs(kernel);
  stateDenseStrides(kernel);
  KernelFunc *out = outputsOf(kernel)[0];
  Value outFunc = out->func.getResult();
  SmallVector<std::string> vars = varsOf(out->func);
  size_t inner = plan.inner, outRank = out->extents.size();
  SmallVector<Value> reductions, expensive;
  for (KernelFunc &f : kernel.funcs) {
    if (f.role == FuncRole::Pure && inner && f.extents.size() == outRank)
      multiplyByReciprocals(f, inner);
    if (f.role == FuncRole::Reduction)
      reductions.push_back(f.func.getResult());
    else if (f.func.getResult() != outFunc && isExpensive(f.func) && inner &&
             f.extents.size() == outRank)
      expensive.push_back(f.func.getResult());
  }
  OpBuilder b = scheduleBuilder(kernel);
  if (plan.columns) {
    scheduleColumns(b, kernel, reductions[0], target);
    return;
  }
  scheduleOutput(b, *out, inner, rowsOfTask(kernel), target);
  for (Value func : expensive) {
    KernelFunc *f = kernel.find(func);
    placeAtRow(b, func, outFunc, "row");
    vectorizeInner(b, f->func, 0, varsOf(f->func)[0], lanesOf(*f, target));
    prefetchRows(b, kernel, func, varsOf(f->func)[0], outFunc);
  }
  if (inner)
    prefetchRows(b, kernel, outFunc, vars[0], outFunc);
  for (Value func : reductions)
    scheduleLaneSum(b, kernel, func, outFunc, "row", target);
}

static std::optional<FamilyPlan> matchRows(const KernelFacts &facts,
                                           const halide::Target &target) {
  std::optional<RowsPlan> plan = planRows(facts, target.lanes(32));
  if (!plan)
    return std::nullopt;
  return FamilyPlan{Benefit::Rows, [plan = *plan, &target](KernelInfo &kernel) {
                      scheduleRows(kernel, plan, target);
                      streamOutputs(kernel, target);
                      return true;
                    }};
}

namespace heed {
Family rowsFamily() { return {"rows", matchRows}; }
} // namespace heed
