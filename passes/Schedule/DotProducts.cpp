//===- DotProducts.cpp - few rows by a matrix that lies row by row --------===//
//
// y[.., m, n] = epilogue(sum_r A[.., m, r] * B[.., n, r]) of few m, where B is
// an input of the call and r the dim in which it lies in memory: a product
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

/// Whether \p f is a sum of products over one dim, in which both factors lie in
/// memory, and what depends on its columns alone is an input of the call.
bool isSumOfDots(const KernelInfo &kernel, KernelFunc &f, size_t rank) {
  if (f.updates.size() != 1 || f.reductions[0].size() != 1 ||
      f.extents.size() != rank ||
      halide::getElementTypes(f.func.getResult()).size() != 1 ||
      !f.func.getBody().front().getOps<halide::ReadOp>().empty())
    return false;
  halide::UpdateOp update = f.updates[0];
  unsigned term = 0;
  if (!update.getWhere().empty() || !update.getAt().empty() ||
      !isa_and_nonnull<arith::AddFOp>(combinerOf(update, term)))
    return false;
  Block &body = update.getSet().front();
  Value column = body.getArgument(0), row = body.getArgument(1),
        r = body.getArgument(rank);
  bool ofColumn = false, ofRow = false;
  for (auto read : body.getOps<halide::ReadOp>()) {
    if (read.getFunc() == update.getFunc())
      continue;
    if (!read.getFunc().getDefiningOp<halide::BufferOp>() ||
        read.getCoordinates().empty() || read.getCoordinates().front() != r)
      return false;
    bool byColumn = false, byRow = false;
    for (Value at : read.getCoordinates().drop_front()) {
      llvm::SmallPtrSet<Value, 4> args = argumentsOf(at);
      byColumn |= args.contains(column);
      byRow |= args.contains(row);
    }
    if (byColumn == byRow ||
        (byColumn && kernel.weights.contains(read.getFunc())))
      return false;
    ofColumn |= byColumn;
    ofRow |= byRow;
  }
  return ofColumn && ofRow;
}

/// Whether \p sum is read outside of its update, and by funcs at their own
/// place alone.
bool isReadInPlace(Value sum) {
  bool any = false;
  for (Operation *user : sum.getUsers()) {
    auto read = dyn_cast<halide::ReadOp>(user);
    if (!read || isa<halide::UpdateOp>(read->getParentOp()))
      continue;
    any = true;
    for (auto [k, coordinate] : llvm::enumerate(read.getCoordinates()))
      if (auto arg = dyn_cast<BlockArgument>(coordinate);
          !arg || (arg.getArgNumber() != k &&
                   !mutated("dot-products.read-at-other-places")))
        return false;
  }
  return any;
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

} // namespace

int64_t heed::mostRowsOfDots(std::optional<int64_t> terms) {
  // To pack a column takes some two cycles a term, to add up the lanes of a dot
  // product five. Of many rows A does not stay in the caches.
  constexpr int64_t most = 64;
  return terms ? std::min(most, *terms / 4) : most;
}

bool heed::scheduleDotProducts(KernelInfo &kernel,
                               const halide::Target &target) {
  SmallVector<KernelFunc *> outputs = outputsOf(kernel);
  if (outputs.size() != 1 || outputs[0]->extents.size() < 2)
    return false;
  size_t rank = outputs[0]->extents.size();
  const Extent &rows = outputs[0]->extents[1];
  if (!rows.fixed && kernel.rows != RowCount::Few)
    return false;
  SmallVector<Value> sums;
  for (KernelFunc &f : kernel.funcs) {
    if (f.role != FuncRole::Reduction)
      continue;
    Value sum = f.func.getResult();
    if (!isSumOfDots(kernel, f, rank) ||
        (outputs[0] != &f && !isReadInPlace(sum)) ||
        (rows.fixed &&
         *rows.fixed > mostRowsOfDots(f.reductions[0].front().fixed)))
      return false;
    sums.push_back(sum);
  }
  if (sums.empty())
    return false;

  separateOutputs(kernel);
  if (!mutated("dot-products.conditions-show"))
    hideConditions(kernel);
  stateDenseStrides(kernel);
  KernelFunc *out = outputsOf(kernel)[0];
  Value outFunc = out->func.getResult();
  Location loc = out->func.getLoc();
  OpBuilder b = scheduleBuilder(kernel);
  auto guard = halide::TailStrategy::GuardWithIf;

  // Partial sums and a vector of each factor stay in registers.
  constexpr int64_t columns = 4, columnsOfTask = 32;
  int64_t tileRows = target.vectorRegisters >= 32 ? 4 : 3;
  if (rows.fixed)
    tileRows = std::clamp<int64_t>(*rows.fixed, 1, tileRows);
  SmallVector<std::string> vars = varsOf(out->func);
  std::string n = vars[0], m = vars[1];
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

  for (Value sum : sums) {
    KernelFunc *f = kernel.find(sum);
    clampToLast(*f);
    SmallVector<std::string> own = varsOf(f->func);
    int64_t lanes = target.lanes(std::max(32u, widestBits(f->func)));
    unsigned term = 0;
    Operation *combine = combinerOf(f->updates[0], term);
    Value partial = sumByLanes(kernel, sum, combine, term, lanes, 1).partial;
    // The sum of a lane may be long, too.
    Value block = sumByBlocks(kernel, partial, longestSum);
    auto place = [&](Value func, Value at, StringRef loop) {
      halide::ComputeAtOp::create(b, loc, func, at, loop);
      halide::BoundExtentOp::create(b, loc, func, own[0], i32(b, columns));
      halide::BoundExtentOp::create(b, loc, func, own[1], i32(b, tileRows));
      for (size_t d = 2; d < rank; ++d)
        halide::BoundExtentOp::create(b, loc, func, own[d], i32(b, 1));
    };
    // A stage of partial sums, below \p outer loops.
    auto scheduleTile = [&](Value func, int64_t stage,
                            ArrayRef<StringRef> outer) {
      SmallVector<StringRef> tile{"lane", own[0], own[1]};
      llvm::append_range(tile, outer);
      halide::ReorderOp::create(b, loc, func, stage, tile);
      halide::VectorizeOp::create(b, loc, func, stage, "lane");
      halide::UnrollOp::create(b, loc, func, stage, own[0]);
      halide::UnrollOp::create(b, loc, func, stage, own[1]);
    };
    auto placePartial = [&](Value func, Value at, StringRef loop) {
      halide::BoundExtentOp::create(b, loc, func, "lane", i32(b, lanes));
      place(func, at, loop);
      scheduleTile(func, 0, {});
    };
    placePartial(partial, outFunc, "mb");
    scheduleTile(partial, 1, {block ? "rb_b" : "rb"});
    if (block) {
      placePartial(block, partial, "rb_b");
      scheduleTile(block, 1, {"rb"});
      if (kernel.find(partial)->updates.size() > 1)
        scheduleTile(partial, 2, {"rb"});
    }
    // The lanes of all columns are added up in registers.
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
  return true;
}
