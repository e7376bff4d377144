//===- StateProduct.cpp - long sums whose result is a small matrix --------===//
//
// y[.., m, n] = epilogue(sum_j A[.., j, m] * B[.., j, n]) of few m and n: what
// linear attention sums up over its keys. A matrix is one task. The sum goes in
// blocks of terms that fit in the first cache: what a block needs of A and of B
// is computed once, as vectors along m and n, then register tiles of MR rows by
// NV vectors add the block up. Terms past the end are 0 on both sides.
#include "passes/Mutation.h"
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

namespace {

/// The computation that is the sum, and which factor of its terms follows the
/// columns and not the rows; the other one follows the rows and not the
/// columns.
struct StatePlan {
  unsigned sum, columnFactor;
};

std::optional<unsigned> columnFactorOf(const Reduction &sum) {
  if (sum.factors.size() != 2)
    return std::nullopt;
  for (unsigned k = 0; k < 2; ++k) {
    const Factor &x = sum.factors[k], &y = sum.factors[1 - k];
    if (x.loops[kColumn] && !x.loops[kRow] && y.loops[kRow] &&
        !y.loops[kColumn])
      return k;
  }
  return std::nullopt;
}

/// Whether what reads source \p source, but for its own sum, is output \p out
/// at the same places.
bool isReadByOutput(const KernelFacts &facts, unsigned source, unsigned out) {
  for (auto [number, reader] : llvm::enumerate(facts.computations)) {
    for (const Read &read : reader.reads)
      if (read.source == source &&
          (number != out || read.at.size() != reader.rank() ||
           !read.isInPlace()))
        return false;
    for (const Reduction &reduction : reader.reductions)
      for (const Read &read : reduction.reads)
        if (read.source == source)
          return false;
  }
  return true;
}

/// Whether \p c is a state, and no product with a weight, which contractions
/// have packed when the model is opened: of a length that is known, a layer has
/// such a sum, too.
bool isState(const KernelFacts &facts, const Computation &c) {
  return isStateSum(c) &&
         !(c.onlySum()->extents[0] &&
           llvm::any_of(c.onlySum()->reads, [&](const Read &read) {
             return facts.isWeight(read);
           }));
}

std::optional<StatePlan> planState(const KernelFacts &facts) {
  SmallVector<unsigned> sums = facts.sums();
  if (sums.size() != 1 || !facts.isContraction() || facts.outputs.size() != 1)
    return std::nullopt;
  const Computation &c = facts.computations[sums[0]];
  if (!c.reads.empty() || !isState(facts, c) || c.rank() < 3 ||
      facts.computations[facts.outputs[0]].rank() < 3)
    return std::nullopt;
  const Reduction *sum = c.onlySum();
  std::optional<unsigned> column = columnFactorOf(*sum);
  if (!column || llvm::all_of(sum->factors, [](const Factor &factor) {
        return factor.isElement;
      }))
    return std::nullopt; // a contraction like others
  if (!isReadByOutput(facts, c.source, facts.outputs[0]))
    return std::nullopt;
  return StatePlan{sums[0], *column};
}

/// A func of what a block of terms needs of \p factor, which follows dim \p dim
/// of the sum: (place, term, block, outer dims), of \p padded places the first
/// \p size of which are the dim's.
Value addFactor(KernelInfo &kernel, Value sum, Value factor, unsigned dim,
                StringRef name, int64_t size, int64_t padded, int64_t block) {
  KernelFunc *f = kernel.find(sum);
  Block &body = f->updates[0].getSet().front();
  size_t rank = f->extents.size();
  Location loc = factor.getLoc();
  Value terms = f->reductions[0][0].value;
  SmallVector<std::string> names{"place", "term", "block"};
  SmallVector<Extent> extents{
      {Value(), padded}, {Value(), block}, {Value(), std::nullopt}};
  for (size_t d = 2; d < rank; ++d) {
    names.push_back(heed::format("o{}_", d));
    extents.push_back(f->extents[d]);
  }
  SmallVector<StringRef> vars(names.begin(), names.end());
  Type type = factor.getType();
  return addFunc(
             kernel, f->func, name, vars, type, extents,
             [&](OpBuilder &b, ValueRange args) -> Value {
               Value at = arith::AddIOp::create(
                   b, loc, mulI32(b, args[2], block), args[1]);
               if (mutated("state-product.first-block-again"))
                 at = args[1];
               Value exists = arith::CmpIOp::create(
                   b, loc, arith::CmpIPredicate::slt, at, terms);
               Value last = addI32(b, terms, -1);
               IRMapping map;
               Value place = args[0];
               if (size < padded)
                 place = arith::MinSIOp::create(
                     b, loc, place,
                     i32(b, mutated("state-product.stop-before-last-place")
                                ? size - 2
                                : size - 1));
               map.map(body.getArgument(dim), place);
               map.map(body.getArgument(rank),
                       arith::MinSIOp::create(b, loc, at, last).getResult());
               for (size_t d = 2; d < rank; ++d)
                 map.map(body.getArgument(d), args[d + 1]);
               Value value = cloneSlice(b, factor, map);
               Value zero =
                   arith::ConstantOp::create(b, loc, b.getFloatAttr(type, 0.0));
               if (mutated("state-product.repeat-last-term"))
                 return value;
               return arith::SelectOp::create(b, loc, exists, value, zero)
                   .getResult();
             })
      .func.getResult();
}

/// One more term of block \p part: \p add of its old value and the product,
/// operand \p term, of \p columns and \p rows at its dims, the block's number
/// and the term, \p args.
Value addTerm(OpBuilder &b, Location loc, Value part, Operation *add,
              unsigned term, Value columns, Value rows, ValueRange args) {
  size_t rank = args.size() - 2;
  Type type = halide::getElementTypes(part).front();
  Operation *product = add->getOperand(term).getDefiningOp();
  auto factor = [&](Value func, unsigned dim) {
    SmallVector<Value> place{args[dim], args[rank + 1], args[rank]};
    for (size_t d = 2; d < rank; ++d)
      place.push_back(mutated("state-product.factor-of-first-batch") ? i32(b, 0)
                                                                     : args[d]);
    return halide::ReadOp::create(b, loc, type, func, place).getResult(0);
  };
  Value old =
      halide::ReadOp::create(b, loc, type, part, args.take_front(rank + 1))
          .getResult(0);
  IRMapping map;
  map.map(product->getOperand(0), factor(columns, 0));
  map.map(product->getOperand(1), factor(rows, 1));
  Value fresh = b.clone(*product, map)->getResult(0);
  IRMapping operands;
  operands.map(add->getOperand(term), fresh);
  operands.map(add->getOperand(1 - term), old);
  return b.clone(*add, operands)->getResult(0);
}

/// Puts \p sum's terms, the products of \p columns and \p rows, in blocks: a
/// func of the sum of one block, which is returned, and its sum over blocks.
Value sumOfBlocks(KernelInfo &kernel, Value sum, Value columns, Value rows,
                  int64_t block) {
  KernelFunc *f = kernel.find(sum);
  halide::UpdateOp update = f->updates[0];
  Location loc = update.getLoc();
  Type type = halide::getElementTypes(sum).front();
  unsigned term = 0;
  Operation *add = combinerOf(update, term);
  SmallVector<std::string> names = varsOf(f->func);
  names.push_back("block");
  SmallVector<StringRef> vars(names.begin(), names.end());
  SmallVector<Extent> extents = f->extents;
  extents.push_back({});
  OpBuilder b(update);
  Value zero = i32(b, 0);
  Value count =
      divI32(b,
             addI32(b, f->reductions[0][0].value,
                    mutated("state-product.drop-last-block") ? 0 : block - 1),
             block);
  KernelFunc &part =
      addFunc(kernel, update, heed::format("{}_block", f->func.getName()), vars,
              type, extents, [&](OpBuilder &inner, ValueRange) -> Value {
                return arith::ConstantOp::create(inner, loc,
                                                 inner.getFloatAttr(type, 0.0));
              });
  Value partFunc = part.func.getResult();
  part.role = FuncRole::Reduction;
  auto inner =
      halide::UpdateOp::create(b, loc, partFunc, ArrayRef<StringRef>{"r"},
                               ValueRange{zero, i32(b, block)});
  inner.fill(b, inner.getSet(), [&](OpBuilder &at, Location, ValueRange args) {
    return SmallVector<Value>{
        addTerm(at, loc, partFunc, add, term, columns, rows, args)};
  });
  KernelFunc *own = kernel.find(partFunc);
  own->updates.push_back(inner);
  own->reductions.push_back({{i32(b, block), block}});
  f = kernel.find(sum);
  f->updates[0] = addBlocks(b, sum, partFunc, "rb", count);
  f->reductions[0] = {{count, std::nullopt}};
  update.erase();
  return partFunc;
}

int64_t roundUp(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

/// What the sum reads along its rows, or along its columns: its func, the
/// places that there are, and as many as are computed.
struct FactorFunc {
  Value func;
  int64_t size, padded;
};

/// The schedule of one kernel, step by step.
class TiledStateProduct {
public:
  TiledStateProduct(KernelInfo &kernel, const halide::Target &target)
      : kernel(kernel), target(target), b(scheduleBuilder(kernel)) {}

  void run(const StatePlan &plan) {
    find(plan);
    rewrite(plan);
    b = scheduleBuilder(kernel);
    scheduleOutput();
    placeSum();
    placePart();
    scheduleFactor(columns);
    scheduleFactor(rows);
  }

private:
  void find(const StatePlan &plan);
  void rewrite(const StatePlan &plan);
  void scheduleOutput();
  void placeSum();
  void placePart();
  void scheduleFactor(const FactorFunc &factor);
  /// Fetches the next block of \p factor while tiles of this one are computed.
  void prefetch(const FactorFunc &factor);
  /// Register tiles of stage \p stage of \p func: one, or with \p panels all.
  void scheduleTile(Value func, int64_t stage, bool panels);
  /// Bounds the dims of \p func from \p first on: a matrix is one task.
  void boundOuter(Value func, size_t first);

  static constexpr auto roundTail = halide::TailStrategy::RoundUp;
  static constexpr int64_t unrolled = 4; ///< terms

  KernelInfo &kernel;
  const halide::Target &target;
  OpBuilder b;
  Location loc = b.getUnknownLoc();
  Value sum, part, outFunc;
  FactorFunc columns{}, rows{};
  RegisterTile tile{};
  int64_t lanes = 1, width = 1, bytes = 1;
  int64_t block = 0; ///< terms
  SmallVector<std::string> vars;
  std::string task;
};

/// Finds the sum and chooses its tile and its block.
void TiledStateProduct::find(const StatePlan &plan) {
  sum = computation(kernel, plan.sum).func.getResult();
  separateOutputs(kernel);
  hideConditions(kernel);
  stateDenseStrides(kernel);
  KernelFunc *acc = kernel.find(sum);
  Type type = halide::getElementTypes(sum).front();
  loc = acc->func.getLoc();
  lanes = target.lanes(type.getIntOrFloatBitWidth());
  columns.size = *acc->extents[0].fixed;
  rows.size = *acc->extents[1].fixed;
  tile = chooseTile(columns.size, lanes, target.vectorRegisters);
  width = tile.vectors * lanes;
  tile.rows = std::min(tile.rows, rows.size);
  columns.padded = roundUp(columns.size, width);
  rows.padded = roundUp(roundUp(rows.size, tile.rows), lanes);
  bytes = type.getIntOrFloatBitWidth() / 8;
  block = std::clamp(target.l1 * 3 / 4 /
                         ((columns.padded + rows.padded) * bytes) / 16 * 16,
                     int64_t(16), int64_t(256));
}

void TiledStateProduct::rewrite(const StatePlan &plan) {
  unsigned term = 0;
  Operation *add = combinerOf(kernel.find(sum)->updates[0], term);
  Operation *product = add->getOperand(term).getDefiningOp();
  columns.func = addFactor(kernel, sum, product->getOperand(plan.columnFactor),
                           0, "columns", columns.size, columns.padded, block);
  rows.func = addFactor(kernel, sum, product->getOperand(1 - plan.columnFactor),
                        1, "rows", rows.size, rows.padded, block);
  part = sumOfBlocks(kernel, sum, columns.func, rows.func, block);
  dropUnreadFuncs(kernel);
}

void TiledStateProduct::scheduleOutput() {
  KernelFunc *out = outputsOf(kernel)[0];
  outFunc = out->func.getResult();
  SmallVector<std::string> order = varsOf(out->func);
  std::string n = order[0];
  halide::SplitOp::create(b, loc, outFunc, 0, n, n, "nv", lanes,
                          halide::TailStrategy::GuardWithIf);
  halide::VectorizeOp::create(b, loc, outFunc, 0, "nv");
  order.insert(order.begin(), "nv");
  task = parallelOuter(b, out->func, 0, order, 3, FusedBody::ComputesFuncs);
}

void TiledStateProduct::boundOuter(Value func, size_t first) {
  SmallVector<std::string> dims = varsOf(kernel.find(func)->func);
  for (size_t d = first; d < dims.size(); ++d)
    halide::BoundExtentOp::create(b, loc, func, dims[d], i32(b, 1));
}

void TiledStateProduct::scheduleTile(Value func, int64_t stage, bool panels) {
  auto tail = stage ? halide::TailStrategy::GuardWithIf : roundTail;
  std::string inner = vars[0];
  if (panels) {
    halide::SplitOp::create(b, loc, func, stage, vars[0], "np", "ni", width,
                            tail);
    halide::SplitOp::create(b, loc, func, stage, vars[1], "mb", vars[1],
                            tile.rows, tail);
    inner = "ni";
  }
  halide::SplitOp::create(b, loc, func, stage, inner, "nj", "nv", lanes, tail);
  SmallVector<StringRef> loops{"nv", "nj", vars[1]};
  if (panels)
    loops.append({"np", "mb"});
  if (stage && panels)
    loops.push_back("rb");
  if (stage && !panels) {
    halide::SplitOp::create(b, loc, func, stage, "r", "r", "ru", unrolled,
                            tail);
    loops.append({"ru", "r"});
  }
  halide::ReorderOp::create(b, loc, func, stage, loops);
  halide::VectorizeOp::create(b, loc, func, stage, "nv");
  halide::UnrollOp::create(b, loc, func, stage, "nj");
  halide::UnrollOp::create(b, loc, func, stage, vars[1]);
  if (stage && !panels)
    halide::UnrollOp::create(b, loc, func, stage, "ru");
}

/// The sum over blocks, of a whole matrix.
void TiledStateProduct::placeSum() {
  vars = varsOf(kernel.find(sum)->func);
  halide::ComputeAtOp::create(b, loc, sum, outFunc, task);
  halide::BoundExtentOp::create(b, loc, sum, vars[0], i32(b, columns.padded));
  halide::BoundExtentOp::create(b, loc, sum, vars[1],
                                i32(b, roundUp(rows.size, tile.rows)));
  boundOuter(sum, 2);
  scheduleTile(sum, 0, true);
  scheduleTile(sum, 1, true);
}

/// The sum of a block, a register tile.
void TiledStateProduct::placePart() {
  halide::ComputeAtOp::create(b, loc, part, sum, "np");
  halide::BoundExtentOp::create(b, loc, part, vars[0], i32(b, width));
  halide::BoundExtentOp::create(b, loc, part, vars[1], i32(b, tile.rows));
  boundOuter(part, 2);
  scheduleTile(part, 0, false);
  scheduleTile(part, 1, false);
}

void TiledStateProduct::scheduleFactor(const FactorFunc &factor) {
  Value func = factor.func;
  halide::ComputeAtOp::create(b, loc, func, sum, "rb");
  halide::BoundExtentOp::create(b, loc, func, "place", i32(b, factor.padded));
  halide::BoundExtentOp::create(b, loc, func, "term", i32(b, block));
  boundOuter(func, 2);
  halide::SplitOp::create(b, loc, func, 0, "place", "place", "lane", lanes,
                          roundTail);
  halide::VectorizeOp::create(b, loc, func, 0, "lane");
  // Where each vector has a number, those within the array are loads: only
  // the last one gathers what its lanes stop at.
  // And vectors side by side, as each is a long chain of operations.
  if (factor.size < factor.padded || factor.padded / lanes <= 4)
    halide::UnrollOp::create(b, loc, func, 0, "place");
  prefetch(factor);
}

void TiledStateProduct::prefetch(const FactorFunc &factor) {
  constexpr int64_t lineBytes = 64;
  int64_t lines =
      std::clamp<int64_t>(block * factor.size * bytes / lineBytes, 1, 1024);
  int64_t iterations = columns.padded / width *
                       (roundUp(rows.size, tile.rows) / tile.rows) *
                       (block / unrolled);
  for (Value source : arraysAlong(kernel.find(factor.func)->func))
    halide::PrefetchSpreadOp::create(
        b, loc, part, 1, source, "r", block * factor.size, sum, "rb", lines, 1,
        /*secondCache=*/false, /*inOrder=*/false,
        std::clamp<int64_t>((lines + iterations - 1) / iterations, 1, 64),
        IntegerAttr(), IntegerAttr());
}

} // namespace

static std::optional<FamilyPlan>
matchStateProduct(const KernelFacts &facts, const halide::Target &target) {
  std::optional<StatePlan> plan = planState(facts);
  if (!plan)
    return std::nullopt;
  return FamilyPlan{Benefit::Terms,
                    [plan = *plan, &target](KernelInfo &kernel) {
                      TiledStateProduct(kernel, target).run(plan);
                      return true;
                    }};
}

/// A factor of one row or one column, of a long sum with a small result.
static bool computesFactor(const KernelFacts &facts, unsigned product,
                           unsigned producer) {
  const Computation &c = facts.computations[product];
  if (!isState(facts, c))
    return false;
  bool found = false;
  for (const Read &read : c.onlySum()->reads) {
    if (read.source != producer)
      continue;
    if (!isAtLoops(read) || !read.follows(c.term()) ||
        read.follows(kRow) == read.follows(kColumn))
      return false;
    found = true;
  }
  return found;
}

namespace heed {
Family stateProductFamily() {
  Family family{"state product", matchStateProduct};
  family.computesOnce = computesFactor;
  return family;
}
} // namespace heed
