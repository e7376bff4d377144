//===- RowProduct.cpp - rows times a small matrix, with sums over the rows ===//
//
// y[.., m, n] = epilogue(sum_r A[.., m, r] * B[.., r, n], sum_r A[.., m, r] *
// z[.., r], ..) where B has few elements and stays in the first cache: linear
// attention's queries and its state. For a tile of MR rows, A is computed once,
// as vectors along r; the sums over its rows follow, as vectors along r, too;
// then the register tiles of MR rows by NV vectors of columns, which read A as
// scalar broadcasts and B in rows, copied before only where it lies otherwise;
// then the epilogue. What is between goes no further than the stack.
#include "passes/Mutation.h"
#include "passes/Schedule/RowLanes.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace heed;

namespace {

struct Parts {
  KernelFunc *product = nullptr;
  SmallVector<Value> sums; ///< one value a row
  SmallVector<Value> rows; ///< pure funcs that the product and the sums read
};

/// The same by the numbers of the facts; and which of the product's reads
/// follow its columns.
struct RowProductPlan {
  std::optional<unsigned> product;
  SmallVector<unsigned> sums, rows, columns;
};

/// Whether \p read, by a computation of \p rank dims, is at the place of those
/// that it has a coordinate for: of all of them, or of the outer ones.
bool isInStep(const Read &read, unsigned rank) {
  if (read.at.size() > rank)
    return false;
  for (auto [k, coordinate] : llvm::enumerate(read.at))
    if (coordinate.loop != rank - read.at.size() + k)
      return false;
  return true;
}

/// Adds to \p plan what the reduction of \p c, whose row is loop \p row, reads
/// row by row. False if it reads a computation in another way, but for the
/// matrix or what the sums take of it.
bool addRows(const KernelFacts &facts, const Computation &c, unsigned row,
             unsigned rank, RowProductPlan &plan) {
  for (const Read &read : c.onlySum()->reads) {
    const Source &source = facts.sources[read.source];
    if (source.kind != Source::Computed)
      continue;
    if (!facts.computations[source.number].isElementwise())
      return false;
    if (!read.follows(row))
      continue;
    // The rows, element by element.
    if (read.at.size() != rank || read.at[0].loop != c.term())
      return false;
    for (auto [k, coordinate] : llvm::enumerate(ArrayRef(read.at).drop_front()))
      if (coordinate.loop != row + k)
        return false;
    if (!llvm::is_contained(plan.rows, source.number))
      plan.rows.push_back(source.number);
  }
  return true;
}

/// The product, the sums and the rows of a kernel, if these are what it
/// computes and each is read row by row.
std::optional<RowProductPlan> planRowProduct(const KernelFacts &facts) {
  if (!facts.isContraction() || facts.outputs.size() != 1)
    return std::nullopt;
  size_t rank = facts.computations[facts.outputs[0]].rank();
  RowProductPlan plan;
  for (auto [number, c] : llvm::enumerate(facts.computations)) {
    if (c.results != 1)
      return std::nullopt;
    if (c.isElementwise())
      continue;
    if (!c.onlySum() || !c.onlySum()->extents[0] || !c.reads.empty())
      return std::nullopt;
    if (c.rank() == rank && !plan.product)
      plan.product = number;
    else if (c.rank() + 1 == rank)
      plan.sums.push_back(number);
    else
      return std::nullopt;
  }
  if (!plan.product || rank < 2 ||
      !facts.computations[*plan.product].extents[kColumn])
    return std::nullopt;
  for (auto [number, c] : llvm::enumerate(facts.computations)) {
    if (!c.isElementwise()) {
      if (!addRows(facts, c, number == *plan.product ? kRow : 0, rank, plan))
        return std::nullopt;
      continue;
    }
    for (const Read &read : c.reads)
      if (facts.sources[read.source].kind == Source::Computed &&
          !isInStep(read, c.rank()))
        return std::nullopt;
  }
  if (plan.rows.empty() && plan.sums.empty())
    return std::nullopt; // a contraction like others
  plan.columns = columnReads(*facts.computations[*plan.product].onlySum());
  if (plan.columns.empty())
    return std::nullopt;
  return plan;
}

/// Copies what \p read finds to a func with the columns innermost, for \p width
/// columns at a time; past the end it has the last one.
void copyColumns(KernelInfo &kernel, Value product, halide::ReadOp read,
                 int64_t width, int64_t lanes) {
  KernelFunc *f = kernel.find(product);
  Block &body = f->updates[0].getSet().front();
  size_t rank = f->extents.size();
  Location loc = read.getLoc();
  llvm::SmallPtrSet<Value, 4> used;
  for (Value coordinate : read.getCoordinates())
    for (Value arg : argumentsOf(coordinate))
      used.insert(arg);
  SmallVector<std::string> names{"column"};
  SmallVector<Extent> extents{{Value(), std::nullopt}};
  SmallVector<Value> from{body.getArgument(0)};
  if (used.contains(body.getArguments().back())) {
    names.push_back("term");
    extents.push_back(f->reductions[0][0]);
    from.push_back(body.getArguments().back());
  }
  for (size_t d = 2; d < rank; ++d)
    if (used.contains(body.getArgument(d))) {
      names.push_back(heed::format("o{}_", d));
      extents.push_back(f->extents[d]);
      from.push_back(body.getArgument(d));
    }
  int64_t last = *f->extents[0].fixed -
                 (mutated("row-product.clamp-before-last-column") ? 2 : 1);
  SmallVector<StringRef> vars(names.begin(), names.end());
  Type type = read.getResult(0).getType();
  KernelFunc &copy = addFunc(
      kernel, f->func, heed::format("columns{}_", kernel.funcs.size()), vars,
      type, extents, [&](OpBuilder &inner, ValueRange args) -> Value {
        IRMapping map;
        map.map(from[0],
                arith::MinSIOp::create(inner, loc, args[0], i32(inner, last))
                    .getResult());
        bool firstTerm = mutated("row-product.columns-of-first-term"),
             firstBatch = mutated("row-product.columns-of-first-batch");
        for (size_t k = 1; k < from.size(); ++k)
          map.map(from[k],
                  (k == 1 ? firstTerm : firstBatch) ? i32(inner, 0) : args[k]);
        return cloneSlice(inner, read.getResult(0), map);
      });
  OpBuilder here(read), b = scheduleBuilder(kernel);
  Value func = copy.func.getResult();
  auto other = halide::ReadOp::create(here, loc, type, func, from);
  read.getResult(0).replaceAllUsesWith(other.getResult(0));
  read.erase();
  halide::ComputeRootOp::create(b, loc, func);
  int64_t columns = (last / width + 1) * width;
  halide::BoundExtentOp::create(b, loc, func, names[0], i32(b, columns));
  halide::SplitOp::create(b, loc, func, 0, names[0], names[0], "lane", lanes,
                          halide::TailStrategy::RoundUp);
  halide::VectorizeOp::create(b, loc, func, 0, "lane");
  if (names.size() > 2)
    parallelOuter(b, copy.func, 0, names, 2, FusedBody::Alone);
}

/// Whether what \p func does with each column takes few instructions; those
/// done once a row don't count.
bool hasShortEpilogue(halide::FuncOp func) {
  constexpr int most = 6;
  Block &body = func.getBody().front();
  int count = 0;
  for (Operation &op : body.without_terminator()) {
    if (!argumentsOf(op.getResult(0)).contains(body.getArgument(0)))
      continue;
    if (!isa<halide::ReadOp, arith::AddFOp, arith::SubFOp, arith::MulFOp>(op))
      return false;
    ++count;
  }
  return count <= most;
}

/// What lies past the last row is computed from the last one: in the rows, and
/// in what else the sums read.
void clampRows(KernelInfo &kernel, const Parts &parts, Value lastRow) {
  auto clamp = [&](Block &body, BlockArgument row) {
    OpBuilder b(&body, body.begin());
    Value inside = arith::MinSIOp::create(
        b, row.getLoc(), row,
        mutated("row-product.first-row") ? i32(b, 0) : lastRow);
    for (Operation &op : body) {
      if (&op == inside.getDefiningOp())
        continue;
      auto read = dyn_cast<halide::ReadOp>(op);
      KernelFunc *source = read ? kernel.find(read.getFunc()) : nullptr;
      if (source && (source->role == FuncRole::Reduction ||
                     llvm::is_contained(parts.rows, read.getFunc())))
        continue;
      op.replaceUsesOfWith(row, inside);
    }
  };
  for (Value func : parts.rows) {
    Block &body = kernel.find(func)->func.getBody().front();
    clamp(body, body.getArgument(1));
  }
  Block &body = parts.product->updates[0].getSet().front();
  clamp(body, body.getArgument(1));
  for (Value sum : parts.sums) {
    Block &own = kernel.find(sum)->updates[0].getSet().front();
    clamp(own, own.getArgument(0));
  }
}

/// The schedule of one kernel, step by step.
class TiledRowProduct {
public:
  TiledRowProduct(KernelInfo &kernel, const halide::Target &target)
      : kernel(kernel), target(target), b(scheduleBuilder(kernel)) {}

  void run(const RowProductPlan &plan) {
    find(plan);
    rewrite(plan);
    b = scheduleBuilder(kernel);
    scheduleOutput();
    for (Value func : parts.rows)
      scheduleRows(func);
    for (Value func : parts.sums)
      scheduleSum(func);
    scheduleProduct();
    prefetch();
  }

private:
  void find(const RowProductPlan &plan);
  void rewrite(const RowProductPlan &plan);
  void scheduleOutput();
  void scheduleRows(Value func);
  void scheduleSum(Value func);
  void scheduleProduct();
  void prefetch();
  /// Has the next rows of \p source, of \p row elements each, fetched.
  void prefetch(Value source, int64_t row);
  /// Computes \p func in loop \p at of the output; its dims from \p first on
  /// are the row and those outside of it.
  void place(Value func, StringRef at, size_t first);
  /// Whether \p read finds the matrix in the order of a register tile.
  bool isDense(halide::ReadOp read);

  static constexpr auto guard = halide::TailStrategy::GuardWithIf;
  static constexpr int64_t unrolled = 4; ///< terms of the product

  KernelInfo &kernel;
  const halide::Target &target;
  OpBuilder b;
  Parts parts;
  Value product, outFunc;
  Location loc = b.getUnknownLoc();
  Type type;
  RegisterTile tile{};
  int64_t lanes = 1, width = 1, columns = 0, terms = 0;
  std::string rvar; ///< of the product
};

/// Finds the funcs and chooses the tile.
void TiledRowProduct::find(const RowProductPlan &plan) {
  separateOutputs(kernel);
  hideConditions(kernel);
  stateDenseStrides(kernel);
  parts.product = &computation(kernel, *plan.product);
  for (unsigned number : plan.sums)
    parts.sums.push_back(computation(kernel, number).func.getResult());
  for (unsigned number : plan.rows)
    parts.rows.push_back(computation(kernel, number).func.getResult());
  product = parts.product->func.getResult();
  type = halide::getElementTypes(product).front();
  lanes = target.lanes(type.getIntOrFloatBitWidth());
  columns = *parts.product->extents[0].fixed;
  terms = *parts.product->reductions[0][0].fixed;
  tile = chooseTile(columns, lanes, target.vectorRegisters);
  width = tile.vectors * lanes;
  if (std::optional<int64_t> rows = parts.product->extents[1].fixed)
    tile.rows = std::min(tile.rows, std::max<int64_t>(1, *rows));
  loc = parts.product->func.getLoc();
}

bool TiledRowProduct::isDense(halide::ReadOp read) {
  Value column = parts.product->updates[0].getSet().front().getArgument(0);
  return columns % width == 0 &&
         read.getFunc().getDefiningOp<halide::BufferOp>() &&
         read.getCoordinates().front() == column &&
         llvm::none_of(read.getCoordinates().drop_front(), [&](Value other) {
           return argumentsOf(other).contains(column);
         });
}

/// Clamps rows past the end and copies the matrix where it lies otherwise.
void TiledRowProduct::rewrite(const RowProductPlan &plan) {
  Value lastRow;
  {
    OpBuilder before(kernel.funcs.front().func);
    lastRow = addI32(before, parts.product->extents[1].value,
                     mutated("row-product.clamp-before-last-row") ? -2 : -1);
  }
  clampRows(kernel, parts, lastRow);
  SmallVector<halide::ReadOp> reads = readsOfTerms(parts.product->updates[0]);
  for (unsigned number : plan.columns) {
    if (!isDense(reads[number]))
      copyColumns(kernel, product, reads[number], width, lanes);
    parts.product = kernel.find(product);
  }
  dropUnreadFuncs(kernel);
  multiplyByReciprocals(*outputsOf(kernel)[0], 1);
}

/// The output: a task has some tiles of rows, a tile all columns.
void TiledRowProduct::scheduleOutput() {
  KernelFunc *out = outputsOf(kernel)[0];
  outFunc = out->func.getResult();
  SmallVector<std::string> vars = varsOf(out->func);
  std::string n = vars[0], m = vars[1];
  constexpr int64_t rowsPerTask = 64;
  halide::SplitOp::create(b, loc, outFunc, 0, n, "np", "ni", width, guard);
  halide::SplitOp::create(b, loc, outFunc, 0, "ni", "nj", "nv", lanes, guard);
  halide::SplitOp::create(b, loc, outFunc, 0, m, "mb", "mi", tile.rows, guard);
  halide::SplitOp::create(b, loc, outFunc, 0, "mb", "mt", "mb",
                          (rowsPerTask + tile.rows - 1) / tile.rows, guard);
  SmallVector<std::string> order{"nv", "nj", "mi", "np", "mb", "mt"};
  order.append(vars.begin() + 2, vars.end());
  halide::ReorderOp::create(b, loc, outFunc, 0,
                            SmallVector<StringRef>(order.begin(), order.end()));
  halide::VectorizeOp::create(b, loc, outFunc, 0, "nv");
  // A short epilogue takes the tile from its registers.
  if (columns % width == 0 && hasShortEpilogue(out->func))
    for (StringRef loop : {"nj", "mi"})
      halide::UnrollOp::create(b, loc, outFunc, 0, loop);
  parallelOuter(b, out->func, 0, order, 5, FusedBody::ComputesFuncs);
}

void TiledRowProduct::place(Value func, StringRef at, size_t first) {
  SmallVector<std::string> dims = varsOf(kernel.find(func)->func);
  halide::ComputeAtOp::create(b, loc, func, outFunc, at);
  for (size_t d = first; d < dims.size(); ++d)
    halide::BoundExtentOp::create(b, loc, func, dims[d],
                                  i32(b, d == first ? tile.rows : 1));
}

void TiledRowProduct::scheduleRows(Value func) {
  KernelFunc *rows = kernel.find(func);
  std::string r = varsOf(rows->func)[0];
  place(func, "mb", 1);
  if (terms >= lanes)
    vectorizeInner(b, rows->func, 0, r, lanes);
  // Vectors side by side, as each is a long chain of operations.
  if (terms % lanes == 0 && terms / lanes <= 4)
    halide::UnrollOp::create(b, loc, func, 0, r);
}

void TiledRowProduct::scheduleSum(Value func) {
  unsigned term = 0;
  Operation *combine = combinerOf(kernel.find(func)->updates[0], term);
  if (combine && terms >= lanes) {
    Lanes split = sumByLanes(kernel, func, combine, term, lanes, 1);
    place(split.partial, "mb", 1);
    for (size_t stage = 0; stage < 2; ++stage)
      halide::VectorizeOp::create(b, loc, split.partial, stage, "lane");
    halide::BoundExtentOp::create(b, loc, split.partial, "lane", i32(b, lanes));
    halide::ReorderOp::create(
        b, loc, split.partial, 1,
        {"lane", "rb", varsOf(kernel.find(split.partial)->func)[1]});
    halide::UnrollOp::create(b, loc, split.partial, 1, "rb");
    // One expression, whose sums the processor can take in any order.
    halide::UnrollOp::create(b, loc, func, 1, "rl");
  }
  place(func, "mb", 0);
}

/// The register tile.
void TiledRowProduct::scheduleProduct() {
  parts.product = kernel.find(product);
  SmallVector<std::string> vars = varsOf(parts.product->func);
  rvar = cast<StringAttr>(parts.product->updates[0].getRvars()[0]).str();
  place(product, "np", 1);
  halide::BoundExtentOp::create(b, loc, product, vars[0], i32(b, width));
  for (int64_t stage = 0; stage < 2; ++stage) {
    bool steps = stage && terms % unrolled == 0;
    if (steps)
      halide::SplitOp::create(b, loc, product, stage, rvar, rvar, "ru",
                              unrolled, guard);
    halide::SplitOp::create(b, loc, product, stage, vars[0], "nj", "nv", lanes,
                            stage ? guard : halide::TailStrategy::RoundUp);
    SmallVector<StringRef> loops{"nv", "nj", vars[1]};
    if (steps)
      loops.push_back("ru");
    if (stage)
      loops.push_back(rvar);
    halide::ReorderOp::create(b, loc, product, stage, loops);
    halide::VectorizeOp::create(b, loc, product, stage, "nv");
    halide::UnrollOp::create(b, loc, product, stage, "nj");
    halide::UnrollOp::create(b, loc, product, stage, vars[1]);
    if (steps)
      halide::UnrollOp::create(b, loc, product, stage, "ru");
  }
}

void TiledRowProduct::prefetch(Value source, int64_t row) {
  constexpr int64_t lineBytes = 64, tilesAhead = 2;
  int64_t iterations =
      std::max<int64_t>(1, terms % unrolled == 0 ? terms / unrolled : terms);
  int64_t elements = tile.rows * row;
  int64_t lines = std::clamp<int64_t>(
      elements * type.getIntOrFloatBitWidth() / 8 / lineBytes, 1, 1024);
  halide::PrefetchSpreadOp::create(
      b, loc, product, 1, source, rvar, tilesAhead * elements, outFunc, "mb",
      lines, 1, /*secondCache=*/false, /*inOrder=*/false,
      std::clamp<int64_t>((lines + iterations - 1) / iterations, 1, 64),
      IntegerAttr(), IntegerAttr());
}

/// Later rows, and the lines that results go to, come from memory while the
/// products of these are computed.
void TiledRowProduct::prefetch() {
  llvm::SmallSetVector<Value, 2> sources;
  for (Value func : parts.rows)
    for (Value source : arraysAlong(kernel.find(func)->func))
      sources.insert(source);
  for (Value source : sources)
    prefetch(source, terms);
  prefetch(outFunc, columns);
}

} // namespace

static std::optional<FamilyPlan> matchRowProduct(const KernelFacts &facts,
                                                 const halide::Target &target) {
  std::optional<RowProductPlan> plan = planRowProduct(facts);
  if (!plan)
    return std::nullopt;
  return FamilyPlan{Benefit::RowsOfTiles,
                    [plan = *plan, &target](KernelInfo &kernel) {
                      TiledRowProduct(kernel, target).run(plan);
                      return true;
                    }};
}

/// Whether \p c multiplies rows with a small matrix that is no parameter.
static bool isRowProduct(const KernelFacts &facts, const Computation &c) {
  const Reduction *sum = c.onlySum();
  if (!sum || !isContraction(c) || !readsAtLoops(c) || c.rank() < 2 ||
      !isSmallMatrix(sum->extents[0], c.extents[kColumn]))
    return false;
  SmallVector<unsigned> columns = columnReads(*sum);
  return !columns.empty() && llvm::none_of(columns, [&](unsigned number) {
    return facts.isWeight(sum->reads[number]);
  });
}

/// Source \p producer is the rows and nothing else.
static bool computesRows(const KernelFacts &facts, unsigned product,
                         unsigned producer) {
  const Computation &c = facts.computations[product];
  if (!isRowProduct(facts, c))
    return false;
  bool found = false;
  for (const Read &read : c.onlySum()->reads) {
    if (read.source != producer)
      continue;
    if (read.at.size() < 2 || read.at[0].loop != c.term() ||
        read.at[1].loop != kRow)
      return false;
    found = true;
  }
  return found;
}

/// One sum, over as many terms, for each row of the product.
static bool takesSum(const KernelFacts &facts, unsigned product,
                     unsigned other) {
  const Computation &c = facts.computations[product],
                    &sum = facts.computations[other];
  return isRowProduct(facts, c) && sum.onlySum() && !isContraction(sum) &&
         readsAtLoops(sum) && sum.element == c.element &&
         ArrayRef(sum.extents) == ArrayRef(c.extents).drop_front() &&
         sum.onlySum()->extents == c.onlySum()->extents;
}

namespace heed {
Family rowProductFamily() {
  Family family{"row product", matchRowProduct};
  family.computesOnce = computesRows;
  family.takesBeside = takesSum;
  return family;
}
} // namespace heed
