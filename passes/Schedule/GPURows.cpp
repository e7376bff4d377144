//===- GPURows.cpp - softmax, norms and other reductions of rows, on GPUs -===//
//
// A block of threads has one row: each of its reductions after the other, then
// its elements. A thread adds up every 32nd to 256th term in a register, so
// that neighbours read neighbours; eight threads add up these sums, and one
// adds the eight. What a row is computed from is read again for each reduction,
// from the caches.
// Where terms lie a row apart neighbours are columns: 32 of them, and up to 16
// threads for each, whose sums the first of them adds.
#include "passes/Schedule/GPU.h"
#include "passes/Schedule/RowLanes.h"
#include "passes/Schedule/SmallM.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed;

namespace {

constexpr auto guard = halide::TailStrategy::GuardWithIf;

/// Threads that add up what the threads of a block have.
constexpr int64_t kFew = 8;

/// Columns of a block, where sums add what lies a row apart.
constexpr int64_t kColumns = 32;

/// Threads of a sum, and the terms that each takes at once: as many reads under
/// way as memory wants.
struct SumThreads {
  int64_t threads, together;

  /// As few as \p length keeps busy, between \p least and \p most; \p usual if
  /// it is not known.
  static SumThreads of(KnownExtent length, int64_t least, int64_t usual,
                       int64_t most) {
    constexpr int64_t together = 4;
    if (!length)
      return {usual, together};
    int64_t threads = std::clamp<int64_t>(
        llvm::PowerOf2Ceil(llvm::divideCeil(*length, together)), least, most);
    return {threads, std::clamp<int64_t>(llvm::divideCeil(*length, threads), 1,
                                         together)};
  }
};

constexpr int64_t kFewestThreads = 32;

/// The schedule of one kernel of rows, step by step.
class RowsOnGPU {
public:
  RowsOnGPU(KernelInfo &kernel, const RowsPlan &plan, KnownExtent length)
      : kernel(kernel), plan(plan),
        of(plan.columns ? SumThreads::of(length, 4, 16, 16)
                        : SumThreads::of(length, kFewestThreads, 128, 256)),
        out(outputsOf(kernel)[0]), outFunc(out->func.getResult()),
        loc(outFunc.getLoc()), b(scheduleBuilder(kernel)) {}

  void run() {
    if (plan.columns)
      scheduleColumns();
    else
      scheduleOutput();
    SmallVector<Value> reductions;
    for (KernelFunc &f : kernel.funcs)
      if (f.role == FuncRole::Reduction)
        reductions.push_back(f.func.getResult());
    for (Value func : reductions)
      scheduleReduction(func);
  }

private:
  void scheduleOutput();
  void scheduleColumns();
  void mapOutput(ArrayRef<std::string> loops, ArrayRef<std::string> rows,
                 StringRef column = {});
  void scheduleReduction(Value func);
  void keep(Value sum, StringRef rvar, int64_t together,
            ArrayRef<int64_t> threads);

  KernelInfo &kernel;
  const RowsPlan plan;
  const SumThreads of;
  KernelFunc *out;
  Value outFunc;
  Location loc;
  OpBuilder b;
  std::string block; ///< the innermost loop over blocks
};

} // namespace

/// Has the output's loops in the order \p loops, thread "t", blocks: \p rows,
/// and \p column around them.
void RowsOnGPU::mapOutput(ArrayRef<std::string> loops,
                          ArrayRef<std::string> rows, StringRef column) {
  SmallVector<StringRef> order(loops.begin(), loops.end());
  order.push_back("t");
  order.append(rows.begin(), rows.end());
  if (!column.empty())
    order.push_back(column);
  if (order.size() > 1)
    halide::ReorderOp::create(b, loc, outFunc, 0, order);
  SmallVector<std::string> blocks =
      fuseLoops(b, out->func, 0, rows, FusedBody::ComputesFuncs);
  if (!column.empty())
    blocks.push_back(column.str());
  block = blocks.front();
  halide::GPUThreadsOp::create(b, loc, outFunc, 0, b.getStrArrayAttr({"t"}));
  halide::GPUBlocksOp::create(
      b, loc, outFunc, 0,
      b.getStrArrayAttr(SmallVector<StringRef>(blocks.begin(), blocks.end())));
}

/// Rows are blocks; places in the row threads, each with several a turn.
void RowsOnGPU::scheduleOutput() {
  SmallVector<std::string> vars = varsOf(out->func);
  auto split = [&](StringRef part, int64_t by) {
    halide::SplitOp::create(b, loc, outFunc, 0, vars[0], vars[0], part, by,
                            by == 1 ? halide::TailStrategy::RoundUp : guard);
  };
  if (!plan.inner) {
    split("t", 1);
    return mapOutput({}, vars);
  }
  split("t", of.threads);
  split("u", of.together);
  mapOutput({"u", vars[0]}, ArrayRef(vars).drop_front());
  halide::UnrollOp::create(b, loc, outFunc, 0, "u");
}

/// Columns and rows are blocks; threads columns.
void RowsOnGPU::scheduleColumns() {
  SmallVector<std::string> vars = varsOf(out->func);
  halide::SplitOp::create(b, loc, outFunc, 0, vars[0], vars[0], "t", kColumns,
                          guard);
  mapOutput({}, ArrayRef(vars).drop_front(), vars[0]);
}

/// Has a block compute \p sum and keep it for all of its threads: \p threads
/// along its first dims, the last of them innermost. A thread has its own in a
/// register and takes \p together terms of \p rvar at once.
void RowsOnGPU::keep(Value sum, StringRef rvar, int64_t together,
                     ArrayRef<int64_t> threads) {
  Value kept = addTiles(kernel, sum);
  SmallVector<std::string> vars = varsOf(kernel.find(kept)->func);
  SmallVector<StringRef> mapped(vars.begin(), vars.begin() + threads.size()),
      loops(vars.begin() + threads.size(), vars.end());
  std::reverse(mapped.begin(), mapped.end());
  loops.append(mapped);
  halide::ComputeAtOp::create(b, loc, kept, outFunc, block);
  halide::StoreInOp::create(b, loc, kept, halide::MemoryType::GPUShared);
  if (loops.size() > 1)
    halide::ReorderOp::create(b, loc, kept, 0, loops);
  // Of a row libHalide may know no more than the range that it is in, and no
  // promise is looked at on a device.
  for (auto [var, count] : llvm::zip(vars, threads))
    if (count > 1)
      halide::BoundExtentOp::create(b, loc, kept, var, i32(b, count));
  halide::GPUThreadsOp::create(b, loc, kept, 0, b.getStrArrayAttr(mapped));
  halide::ComputeAtOp::create(b, loc, sum, kept, mapped.front());
  halide::SplitOp::create(b, loc, sum, 1, rvar, rvar, "u", together, guard);
  halide::UnrollOp::create(b, loc, sum, 1, "u");
}

void RowsOnGPU::scheduleReduction(Value func) {
  if (plan.columns) {
    clampLanes(*kernel.find(func), kColumns);
    Value sums =
        sumInStrides(kernel, func, "_threads", of.threads, of.together);
    keep(sums, "rb", of.together, {of.threads, kColumns});
    return keep(func, "rl", of.threads, {kColumns});
  }
  Value sums = sumInStrides(kernel, func, "_threads", of.threads, of.together);
  keep(sums, "rb", of.together, {of.threads});
  keep(sumInStrides(kernel, func, "_few", kFew, 1), "rb", 4, {kFew});
  keep(func, "rl", kFew, {1});
}

/// Whether \p kernel's reductions are of one loop each, over rows that a block
/// of threads is worth; with the longest of them, if they are known.
static bool hasLongRows(KernelInfo &kernel, KnownExtent &longest) {
  constexpr int64_t shortRow = 32;
  longest = 0;
  for (KernelFunc &f : kernel.funcs) {
    if (f.role != FuncRole::Reduction)
      continue;
    unsigned term = 0;
    if (f.updates.size() != 1 || f.reductions[0].size() != 1 ||
        !f.updates[0].getWhere().empty() || !f.updates[0].getAt().empty() ||
        halide::getElementTypes(f.func.getResult()).size() != 1 ||
        !combinerOf(f.updates[0], term))
      return false;
    KnownExtent length = f.reductions[0][0].fixed;
    if (length && *length < shortRow)
      return false;
    longest = longest && length ? KnownExtent(std::max(*longest, *length))
                                : std::nullopt;
  }
  return true;
}

/// Whether what is made of reductions, of \p rowRank dims, is read at the
/// reader's own row alone: what a block computes is of its row.
static bool keepsRows(const KernelFacts &facts, unsigned rowRank) {
  llvm::BitVector ofRow(facts.computations.size());
  for (auto [number, reader] : llvm::enumerate(facts.computations)) {
    auto isOther = [&](const Read &read) {
      const Source &source = facts.sources[read.source];
      if (source.kind != Source::Computed || !ofRow.test(source.number))
        return false;
      ofRow.set(number);
      if (reader.rank() < rowRank || read.at.size() < rowRank)
        return true;
      for (unsigned k = 1; k <= rowRank; ++k)
        if (read.at[read.at.size() - k].loop != reader.rank() - k)
          return true;
      return false;
    };
    if (!reader.isElementwise())
      ofRow.set(number);
    if (llvm::any_of(reader.reads, isOther))
      return false;
    for (const Reduction &reduction : reader.reductions)
      if (llvm::any_of(reduction.reads, isOther))
        return false;
  }
  return true;
}

static std::optional<FamilyPlan> matchGPURows(const KernelFacts &facts,
                                              const halide::Target &) {
  std::optional<RowsPlan> plan = planRows(facts, kFewestThreads);
  if (!plan || plan->inner > 1 ||
      !keepsRows(facts,
                 facts.computations[facts.outputs[0]].rank() - plan->inner))
    return std::nullopt;
  return FamilyPlan{Benefit::Rows, [plan = *plan](KernelInfo &kernel) {
                      separateOutputs(kernel);
                      KnownExtent longest;
                      if (!hasLongRows(kernel, longest))
                        return false;
                      stateDenseStrides(kernel);
                      RowsOnGPU(kernel, plan, longest).run();
                      return true;
                    }};
}

/// A pipeline for one row of a product, whose tile would be mostly empty.
static RowVersions versionsOfOneRow(const KernelFacts &facts,
                                    const halide::Target &target) {
  RowVersions result = contractionVersions(facts, target);
  llvm::erase_if(result.versions,
                 [](const RowVersion &v) { return !v.isOneRow; });
  result.others = RowCount::Any;
  return result;
}

namespace heed {
Family gpuRowsFamily() {
  Family family{"GPU rows", matchGPURows};
  family.versions = versionsOfOneRow;
  return family;
}
} // namespace heed
