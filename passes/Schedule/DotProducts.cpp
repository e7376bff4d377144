//===- DotProducts.cpp - products of small M with rows as they lie --------===//
//
// y[.., m, n] = epilogue(sum_r A[.., m, r] * B[.., n, r]) of small M, where B
// is an input of the call and r the dim in which it lies in memory: a product
// with a weight that nobody packed. To pack it would take longer than to
// multiply with it. Vector lanes are terms of the sum: a register tile of MR
// rows by NR columns has a vector of partial sums each, whose lanes are added
// up at its end. Rows and columns past the end are computed from the last ones
// and not stored. Measured: passes/Schedule/README.md.
#include "passes/Mutation.h"
#include "passes/Schedule/RowLanes.h"
#include "passes/Schedule/Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

namespace {

/// Whether \p c is a sum of products over one dim, in which both factors lie in
/// memory, and what depends on its columns alone is an input of the call.
bool isSumOfDots(const KernelFacts &facts, const Computation &c) {
  const Reduction *sum = c.onlySum();
  if (!sum || !c.reads.empty() || sum->combiner != Combiner::Sum ||
      columnReads(*sum).empty())
    return false;
  return llvm::all_of(sum->reads, [&](const Read &read) {
    return facts.isInput(read) && !read.at.empty() &&
           read.at.front().loop == c.term() &&
           read.follows(kColumn) != read.follows(kRow) &&
           !(read.follows(kColumn) && facts.isWeight(read));
  });
}

/// Up to how many rows a product of sums of \p terms (if known) with a matrix
/// that is an input of the call takes less time as dot products than with that
/// matrix packed in the call.
int64_t mostRows(KnownExtent terms) {
  // To pack a column takes some two cycles a term, to add up the lanes of a dot
  // product five. Of many rows A does not stay in the caches.
  constexpr int64_t most = 64;
  return terms ? std::min(most, *terms / 4) : most;
}

/// The sums of \p facts if they are all that is reduced, are dot products, and
/// there are few enough rows; otherwise none.
SmallVector<unsigned> sumsOfDots(const KernelFacts &facts) {
  if (facts.outputs.size() != 1)
    return {};
  const Computation &output = facts.computations[facts.outputs[0]];
  if (output.rank() < 2)
    return {};
  KnownExtent rows = output.extents[kRow];
  if (!rows && facts.rows != RowCount::Small)
    return {};
  SmallVector<unsigned> sums = facts.sums();
  for (unsigned number : sums) {
    const Computation &c = facts.computations[number];
    if (c.rank() != output.rank() || !isSumOfDots(facts, c) ||
        (rows && *rows > mostRows(c.onlySum()->extents[0])) ||
        !(facts.isReadInPlace(number) ||
          mutated("dot-products.read-at-other-places")))
      return {};
  }
  return sums;
}

/// Rows and columns of \p f past the end read what the last ones read.
void clampToLast(KernelFunc &f) {
  halide::UpdateOp update = f.updates[0];
  Block &body = update.getSet().front();
  OpBuilder before(f.func), in(&body, body.begin());
  for (unsigned dim : {0, 1}) {
    Value at = body.getArgument(dim);
    Value last = addI32(before, f.extents[dim].value,
                        mutated("dot-products.clamp-before-last") ? -2 : -1);
    Value clamped = arith::MinSIOp::create(in, update.getLoc(), at, last);
    Value from = clamped;
    if (dim == 1 ? mutated("dot-products.first-row")
                 : mutated("dot-products.first-column"))
      from = i32(in, 0);
    for (Operation &op : body) {
      auto read = dyn_cast<halide::ReadOp>(op);
      if (&op != clamped.getDefiningOp() &&
          !(read && read.getFunc() == update.getFunc()))
        op.replaceUsesOfWith(at, from);
    }
  }
}

/// The schedule of one kernel, step by step.
class TiledDotProducts {
public:
  TiledDotProducts(KernelInfo &kernel, const halide::Target &target)
      : kernel(kernel), target(target), b(scheduleBuilder(kernel)) {}

  void run(ArrayRef<unsigned> numbers);

private:
  void scheduleOutput();
  void scheduleSum(Value sum);
  /// Computes a tile of \p func in \p loop of \p at.
  void place(Value func, Value at, StringRef loop);
  /// A stage of partial sums, below \p outer loops.
  void scheduleTile(Value func, int64_t stage, ArrayRef<StringRef> outer);
  void placePartial(Value func, Value at, StringRef loop);
  /// The lanes of all columns are added up in registers.
  void addLanes(Value sum);

  // Partial sums and a vector of each factor stay in registers.
  static constexpr int64_t columns = 4, columnsOfTask = 32;

  KernelInfo &kernel;
  const halide::Target &target;
  OpBuilder b;
  Location loc = b.getUnknownLoc();
  size_t rank = 0;
  Extent rows{};
  int64_t tileRows = 1;
  Value outFunc;
  SmallVector<std::string> own; ///< vars of the sum
  int64_t lanes = 1;            ///< ... and of its element
};

void TiledDotProducts::run(ArrayRef<unsigned> numbers) {
  SmallVector<Value> sums;
  for (unsigned number : numbers)
    sums.push_back(computation(kernel, number).func.getResult());
  rank = outputsOf(kernel)[0]->extents.size();
  rows = outputsOf(kernel)[0]->extents[1];
  separateOutputs(kernel);
  if (!mutated("dot-products.conditions-show"))
    hideConditions(kernel);
  stateDenseStrides(kernel);
  b = scheduleBuilder(kernel);
  scheduleOutput();
  for (Value sum : sums)
    scheduleSum(sum);
}

void TiledDotProducts::scheduleOutput() {
  KernelFunc *out = outputsOf(kernel)[0];
  outFunc = out->func.getResult();
  loc = out->func.getLoc();
  auto guard = halide::TailStrategy::GuardWithIf;
  tileRows = target.vectorRegisters >= 32 ? 4 : 3;
  if (rows.fixed)
    tileRows = std::clamp<int64_t>(*rows.fixed, 1, tileRows);
  SmallVector<std::string> vars = varsOf(out->func);
  const std::string &n = vars[0], &m = vars[1];
  halide::SplitOp::create(b, loc, outFunc, 0, n, "nt", "ni", columnsOfTask,
                          guard);
  halide::SplitOp::create(b, loc, outFunc, 0, "ni", "nb", "nj", columns, guard);
  halide::SplitOp::create(b, loc, outFunc, 0, m, "mb", "mi", tileRows, guard);
  SmallVector<std::string> loops{"nj", "mi", "mb", "nb", "nt"};
  llvm::append_range(loops, ArrayRef(vars).drop_front(2));
  SmallVector<StringRef> order(loops.begin(), loops.end());
  halide::ReorderOp::create(b, loc, outFunc, 0, order);
  halide::VectorizeOp::create(b, loc, outFunc, 0, "nj");
  // A loop for all rows and columns: what the last ones cost does not show.
  for (StringRef loop : {"mi", "mb", "nb"})
    halide::PartitionOp::create(b, loc, outFunc, 0, loop,
                                halide::Partition::Never);
  std::string task =
      parallelOuter(b, out->func, 0, loops, 4, FusedBody::ComputesFuncs);
  halide::PartitionOp::create(b, loc, outFunc, 0, task,
                              halide::Partition::Never);
}

void TiledDotProducts::place(Value func, Value at, StringRef loop) {
  halide::ComputeAtOp::create(b, loc, func, at, loop);
  halide::BoundExtentOp::create(b, loc, func, own[0], i32(b, columns));
  halide::BoundExtentOp::create(b, loc, func, own[1], i32(b, tileRows));
  for (size_t d = 2; d < rank; ++d)
    halide::BoundExtentOp::create(b, loc, func, own[d], i32(b, 1));
}

void TiledDotProducts::scheduleTile(Value func, int64_t stage,
                                    ArrayRef<StringRef> outer) {
  SmallVector<StringRef> tile{"lane", own[0], own[1]};
  llvm::append_range(tile, outer);
  halide::ReorderOp::create(b, loc, func, stage, tile);
  halide::VectorizeOp::create(b, loc, func, stage, "lane");
  halide::UnrollOp::create(b, loc, func, stage, own[0]);
  halide::UnrollOp::create(b, loc, func, stage, own[1]);
}

void TiledDotProducts::placePartial(Value func, Value at, StringRef loop) {
  halide::BoundExtentOp::create(b, loc, func, "lane", i32(b, lanes));
  place(func, at, loop);
  scheduleTile(func, 0, {});
}

void TiledDotProducts::addLanes(Value sum) {
  place(sum, outFunc, "mb");
  halide::VectorizeOp::create(b, loc, sum, 0, own[0]);
  halide::UnrollOp::create(b, loc, sum, 0, own[1]);
  halide::ReorderOp::create(b, loc, sum, 1, {"rl", own[0], own[1]});
  halide::AtomicOp::create(b, loc, sum, 1);
  halide::VectorizeOp::create(b, loc, sum, 1, own[0]);
  halide::VectorizeOp::create(b, loc, sum, 1, "rl");
  halide::UnrollOp::create(b, loc, sum, 1, own[1]);
  if (kernel.find(sum)->updates.size() > 1)
    halide::ReorderOp::create(b, loc, sum, 2, {own[0], own[1], "rt"});
}

void TiledDotProducts::scheduleSum(Value sum) {
  KernelFunc *f = kernel.find(sum);
  clampToLast(*f);
  own = varsOf(f->func);
  lanes = target.lanes(std::max(32u, widestBits(f->func)));
  unsigned term = 0;
  Operation *combine = combinerOf(f->updates[0], term);
  Value partial = sumByLanes(kernel, sum, combine, term, lanes, 1).partial;
  // The sum of a lane may be long, too.
  Value block = sumByBlocks(kernel, partial, longestSum);
  placePartial(partial, outFunc, "mb");
  scheduleTile(partial, 1, {block ? "rb_b" : "rb"});
  if (block) {
    placePartial(block, partial, "rb_b");
    scheduleTile(block, 1, {"rb"});
    if (kernel.find(partial)->updates.size() > 1)
      scheduleTile(partial, 2, {"rb"});
  }
  addLanes(sum);
}

} // namespace

static std::optional<FamilyPlan>
matchDotProducts(const KernelFacts &facts, const halide::Target &target) {
  SmallVector<unsigned> sums = sumsOfDots(facts);
  if (sums.empty())
    return std::nullopt;
  return FamilyPlan{Benefit::Unpacked, [sums, &target](KernelInfo &kernel) {
                      TiledDotProducts(kernel, target).run(sums);
                      return true;
                    }};
}

/// A version for small M, where the matrix is an input of the model.
static RowVersions versionsOfDotProducts(const KernelFacts &facts,
                                         const halide::Target &) {
  KernelFacts ofSmallM = facts;
  ofSmallM.rows = RowCount::Small;
  SmallVector<unsigned> sums = sumsOfDots(ofSmallM);
  if (sums.empty() || !facts.rowArgument || !facts.isContraction())
    return {};
  RowVersion small{"_few", 0};
  small.rows = RowCount::Small;
  KnownExtent terms;
  for (unsigned number : sums) {
    const Reduction &sum = *facts.computations[number].onlySum();
    if (sum.extents[0])
      terms = std::min(terms.value_or(*sum.extents[0]), *sum.extents[0]);
    for (unsigned k : columnReads(sum))
      small.inputs.push_back(facts.sources[sum.reads[k].source].number);
  }
  small.mostRows = mostRows(terms);
  return {{small}, RowCount::Any};
}

namespace heed {
Family dotProductsFamily() {
  Family family{"dot products", matchDotProducts};
  family.versions = versionsOfDotProducts;
  return family;
}
} // namespace heed
