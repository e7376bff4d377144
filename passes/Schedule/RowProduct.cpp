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

/// Whether \p read, in a func with the dims \p args, is at the place of these
/// that it has a coordinate for: of all of them, or of the outer ones.
bool isInStep(halide::ReadOp read, ArrayRef<BlockArgument> args) {
  OperandRange at = read.getCoordinates();
  return at.size() <= args.size() &&
         llvm::all_of(llvm::zip(at, args.take_back(at.size())), [](auto pair) {
           return std::get<0>(pair) == std::get<1>(pair);
         });
}

/// The product, the sums and the rows of \p kernel, if these are what it
/// computes and each is read row by row.
std::optional<Parts> partsOf(KernelInfo &kernel) {
  SmallVector<KernelFunc *> outputs = outputsOf(kernel);
  if (kernel.kind != "contraction" || outputs.size() != 1)
    return std::nullopt;
  size_t rank = outputs[0]->extents.size();
  Parts parts;
  for (KernelFunc &f : kernel.funcs) {
    if (halide::getElementTypes(f.func.getResult()).size() != 1)
      return std::nullopt;
    if (f.role != FuncRole::Reduction)
      continue;
    if (f.updates.size() != 1 || f.reductions[0].size() != 1 ||
        !f.reductions[0][0].fixed || !f.updates[0].getWhere().empty() ||
        !f.updates[0].getAt().empty() ||
        !f.func.getBody().front().getOps<halide::ReadOp>().empty())
      return std::nullopt;
    if (f.extents.size() == rank && !parts.product)
      parts.product = &f;
    else if (f.extents.size() + 1 == rank)
      parts.sums.push_back(f.func.getResult());
    else
      return std::nullopt;
  }
  if (!parts.product || rank < 2 || !parts.product->extents[0].fixed)
    return std::nullopt;
  for (KernelFunc &f : kernel.funcs) {
    if (f.role == FuncRole::Reduction) {
      Block &body = f.updates[0].getSet().front();
      SmallVector<BlockArgument> row(body.getArguments().drop_back());
      if (&f == parts.product)
        row.erase(row.begin());
      for (auto read : body.getOps<halide::ReadOp>()) {
        Value source = read.getFunc();
        if (source == f.func.getResult() ||
            !source.getDefiningOp<halide::FuncOp>())
          continue;
        KernelFunc *inner = kernel.find(source);
        OperandRange at = read.getCoordinates();
        // The matrix, or what the sums take of it.
        if (inner->role != FuncRole::Reduction &&
            llvm::none_of(at, [&](Value coordinate) {
              return argumentsOf(coordinate).contains(row.front());
            }))
          continue;
        if (inner->role == FuncRole::Reduction)
          return std::nullopt;
        // The rows, element by element.
        if (at.size() != rank || at[0] != body.getArguments().back() ||
            !llvm::equal(at.drop_front(), row))
          return std::nullopt;
        if (!llvm::is_contained(parts.rows, source))
          parts.rows.push_back(source);
      }
      continue;
    }
    Block &body = f.func.getBody().front();
    SmallVector<BlockArgument> args(body.getArguments());
    for (auto read : body.getOps<halide::ReadOp>())
      if (read.getFunc().getDefiningOp<halide::FuncOp>() &&
          !isInStep(read, args))
        return std::nullopt;
  }
  if (parts.rows.empty() && parts.sums.empty())
    return std::nullopt; // a contraction like others
  return parts;
}

/// Reads of the product's update that follow the columns. Nothing if one of
/// them follows the rows, too, or none follows either.
SmallVector<halide::ReadOp> columnReads(KernelFunc &product) {
  Block &body = product.updates[0].getSet().front();
  SmallVector<halide::ReadOp> columns;
  bool rows = false;
  for (auto read : body.getOps<halide::ReadOp>()) {
    if (read.getFunc() == product.func.getResult())
      continue;
    llvm::SmallPtrSet<Value, 4> args;
    for (Value coordinate : read.getCoordinates())
      for (Value arg : argumentsOf(coordinate))
        args.insert(arg);
    bool byColumn = args.contains(body.getArgument(0)),
         byRow = args.contains(body.getArgument(1));
    if (byColumn && byRow)
      return {};
    if (byColumn)
      columns.push_back(read);
    rows |= byRow;
  }
  return rows ? columns : SmallVector<halide::ReadOp>();
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
      names.push_back("o" + std::to_string(d) + "_");
      extents.push_back(f->extents[d]);
      from.push_back(body.getArgument(d));
    }
  int64_t last = *f->extents[0].fixed -
                 (mutated("row-product.clamp-before-last-column") ? 2 : 1);
  SmallVector<StringRef> vars(names.begin(), names.end());
  Type type = read.getResult(0).getType();
  KernelFunc &copy = addFunc(
      kernel, f->func, "columns" + std::to_string(kernel.funcs.size()) + "_",
      vars, type, extents, [&](OpBuilder &inner, ValueRange args) -> Value {
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

} // namespace

bool heed::scheduleRowProduct(KernelInfo &kernel,
                              const halide::Target &target) {
  {
    std::optional<Parts> found = partsOf(kernel);
    if (!found || columnReads(*found->product).empty())
      return false;
  }
  separateOutputs(kernel);
  hideConditions(kernel);
  stateDenseStrides(kernel);
  Parts parts = *partsOf(kernel);
  Value product = parts.product->func.getResult();
  Type type = halide::getElementTypes(product).front();
  int64_t lanes = target.lanes(type.getIntOrFloatBitWidth());
  int64_t columns = *parts.product->extents[0].fixed,
          terms = *parts.product->reductions[0][0].fixed;
  RegisterTile tile = chooseTile(columns, lanes, target.vectorRegisters);
  int64_t width = tile.vectors * lanes;
  if (std::optional<int64_t> rows = parts.product->extents[1].fixed)
    tile.rows = std::min(tile.rows, std::max<int64_t>(1, *rows));
  Location loc = parts.product->func.getLoc();

  Value lastRow;
  {
    OpBuilder before(kernel.funcs.front().func);
    lastRow = addI32(before, parts.product->extents[1].value,
                     mutated("row-product.clamp-before-last-row") ? -2 : -1);
  }
  clampRows(kernel, parts, lastRow);
  for (halide::ReadOp read : columnReads(*parts.product)) {
    Value column = parts.product->updates[0].getSet().front().getArgument(0);
    bool dense =
        columns % width == 0 &&
        read.getFunc().getDefiningOp<halide::BufferOp>() &&
        read.getCoordinates().front() == column &&
        llvm::none_of(read.getCoordinates().drop_front(), [&](Value other) {
          return argumentsOf(other).contains(column);
        });
    if (!dense)
      copyColumns(kernel, product, read, width, lanes);
    parts.product = kernel.find(product);
  }
  dropUnreadFuncs(kernel);
  multiplyByReciprocals(*outputsOf(kernel)[0], 1);

  // The output: a task has some tiles of rows, a tile all columns.
  OpBuilder b = scheduleBuilder(kernel);
  KernelFunc *out = outputsOf(kernel)[0];
  Value outFunc = out->func.getResult();
  SmallVector<std::string> vars = varsOf(out->func);
  std::string n = vars[0], m = vars[1];
  auto guard = halide::TailStrategy::GuardWithIf;
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

  // \p dims from \p first on are the row and those outside of it.
  auto place = [&](Value func, StringRef at, size_t first) {
    SmallVector<std::string> dims = varsOf(kernel.find(func)->func);
    halide::ComputeAtOp::create(b, loc, func, outFunc, at);
    for (size_t d = first; d < dims.size(); ++d)
      halide::BoundExtentOp::create(b, loc, func, dims[d],
                                    i32(b, d == first ? tile.rows : 1));
  };
  for (Value func : parts.rows) {
    KernelFunc *rows = kernel.find(func);
    std::string r = varsOf(rows->func)[0];
    place(func, "mb", 1);
    if (terms >= lanes)
      vectorizeInner(b, rows->func, 0, r, lanes);
    // Vectors side by side, as each is a long chain of operations.
    if (terms % lanes == 0 && terms / lanes <= 4)
      halide::UnrollOp::create(b, loc, func, 0, r);
  }
  for (Value func : parts.sums) {
    unsigned term = 0;
    Operation *combine = combinerOf(kernel.find(func)->updates[0], term);
    if (combine && terms >= lanes) {
      Lanes split = sumByLanes(kernel, func, combine, term, lanes, 1);
      place(split.partial, "mb", 1);
      for (size_t stage = 0; stage < 2; ++stage)
        halide::VectorizeOp::create(b, loc, split.partial, stage, "lane");
      halide::BoundExtentOp::create(b, loc, split.partial, "lane",
                                    i32(b, lanes));
      halide::ReorderOp::create(
          b, loc, split.partial, 1,
          {"lane", "rb", varsOf(kernel.find(split.partial)->func)[1]});
      halide::UnrollOp::create(b, loc, split.partial, 1, "rb");
      // One expression, whose sums the processor can take in any order.
      halide::UnrollOp::create(b, loc, func, 1, "rl");
    }
    place(func, "mb", 0);
  }

  parts.product = kernel.find(product);
  vars = varsOf(parts.product->func);
  std::string r =
      cast<StringAttr>(parts.product->updates[0].getRvars()[0]).str();
  place(product, "np", 1);
  halide::BoundExtentOp::create(b, loc, product, vars[0], i32(b, width));
  constexpr int64_t unrolled = 4;
  for (int64_t stage = 0; stage < 2; ++stage) {
    bool steps = stage && terms % unrolled == 0;
    if (steps)
      halide::SplitOp::create(b, loc, product, stage, r, r, "ru", unrolled,
                              guard);
    halide::SplitOp::create(b, loc, product, stage, vars[0], "nj", "nv", lanes,
                            stage ? guard : halide::TailStrategy::RoundUp);
    SmallVector<StringRef> loops{"nv", "nj", vars[1]};
    if (steps)
      loops.push_back("ru");
    if (stage)
      loops.push_back(r);
    halide::ReorderOp::create(b, loc, product, stage, loops);
    halide::VectorizeOp::create(b, loc, product, stage, "nv");
    halide::UnrollOp::create(b, loc, product, stage, "nj");
    halide::UnrollOp::create(b, loc, product, stage, vars[1]);
    if (steps)
      halide::UnrollOp::create(b, loc, product, stage, "ru");
  }
  // Later rows, and the lines that results go to, come from memory while the
  // products of these are computed.
  constexpr int64_t lineBytes = 64, tilesAhead = 2;
  int64_t turns =
      std::max<int64_t>(1, terms % unrolled == 0 ? terms / unrolled : terms);
  auto prefetch = [&](Value source, int64_t row) {
    int64_t elements = tile.rows * row;
    int64_t lines = std::clamp<int64_t>(
        elements * type.getIntOrFloatBitWidth() / 8 / lineBytes, 1, 1024);
    halide::PrefetchSpreadOp::create(
        b, loc, product, 1, source, r, tilesAhead * elements, outFunc, "mb",
        lines, 1, /*secondCache=*/false,
        std::clamp<int64_t>((lines + turns - 1) / turns, 1, 64), IntegerAttr(),
        IntegerAttr());
  };
  llvm::SmallSetVector<Value, 2> sources;
  for (Value func : parts.rows)
    for (Value source : arraysAlong(kernel.find(func)->func))
      sources.insert(source);
  for (Value source : sources)
    prefetch(source, terms);
  prefetch(outFunc, columns);
  return true;
}
