//===- RowBlockTurn.cpp - rows in memory, queries in lanes ----------------===//
//
// Arrays hold rows of each query, tiles have queries as lanes. What a tile
// reads of such rows, and the rows that it writes, are transposed by squares: L
// rows by L numbers (L lanes, a power of two) are read row by row, as L vectors
// one behind the other, and log2(L) perfect shuffles transpose them: place x of
// a shuffled sequence is place x/2 of one half or of the other, so that a
// vector is two vectors interleaved. Lane by lane it would be L loads a vector.
// Where a row is known to be whole squares; else it is gathered.
#include "passes/Mutation.h"
#include "passes/Schedule/RowBlock.h"
#include "passes/Schedule/Squares.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

/// Whether a dim of \p extent places is whole squares, and whole register
/// tiles: nothing reads beyond its end.
bool RowBlock::fillsSquares(const Extent &extent) {
  return extent.fixed && *extent.fixed > 0 && *extent.fixed % vector == 0 &&
         *extent.fixed % places == 0;
}

/// The argument of \p block along which \p read lies in memory, if another of
/// its coordinates is \p lane: null if it is no read of whole numbers of lanes.
static BlockArgument alongOf(halide::ReadOp read, Block &block, Value lane) {
  OperandRange at = read.getCoordinates();
  if (read.getNumResults() != 1 || at.size() < 2 ||
      read.getResult(0).getType().getIntOrFloatBitWidth() != 32)
    return {};
  auto along = dyn_cast<BlockArgument>(at.front());
  if (!along || along.getOwner() != &block || along == lane)
    return {};
  bool isAcross = false;
  for (Value coordinate : at.drop_front()) {
    isAcross |= coordinate == lane;
    if (argumentsOf(coordinate).contains(along) ||
        (coordinate != lane && argumentsOf(coordinate).contains(lane)))
      return {};
  }
  return isAcross ? along : BlockArgument();
}

/// Stores by lanes first what \p func reads of rows in memory, lane by lane.
void RowBlock::stageRows(Value func) {
  Member &member = members[func];
  if (member.query < 0)
    return;
  KernelFunc *f = kernel.find(func);
  Value root = owner.lookup(func);
  // All that a staged func does is to read: it is turned itself.
  bool isStaged = member.accumulators == func;
  SmallVector<std::pair<Block *, SmallVector<Extent>>> blocks;
  blocks.push_back({&f->func.getBody().front(), {}});
  for (auto [update, reductions] : llvm::zip(f->updates, f->reductions))
    blocks.push_back({&update.getSet().front(), reductions});
  for (auto &[block, reductions] : blocks)
    for (auto read :
         llvm::make_early_inc_range(block->getOps<halide::ReadOp>())) {
      if (owner.lookup(read.getFunc()) == root)
        continue;
      BlockArgument along =
          alongOf(read, *block, block->getArgument(members[func].query));
      if (!along)
        continue;
      unsigned d = along.getArgNumber(), rank = f->extents.size();
      bool isShared = d < rank && shares(members[func].ids[d]);
      if (isShared ||
          !fillsSquares(d < rank ? f->extents[d] : reductions[d - rank]))
        continue;
      if (isStaged) {
        if (block->getTerminator()->getOperand(0) == read.getResult(0))
          turned[func].along = d;
        continue;
      }
      llvm::SmallPtrSet<Value, 4> used;
      for (Value coordinate : read.getCoordinates())
        used.insert_range(argumentsOf(coordinate));
      OpBuilder here(read);
      Value value = read.getResult(0);
      Value staged = stage(func, *block, reductions, value, here, used);
      Value stored = staged.getDefiningOp<halide::ReadOp>().getFunc();
      value.replaceAllUsesWith(staged);
      read.erase();
      OperandRange at = staged.getDefiningOp<halide::ReadOp>().getCoordinates();
      unsigned place =
          std::min<unsigned>(llvm::find(at, along) - at.begin(), at.size() - 1);
      turned[stored].along = place;
    }
}

/// Stores row by row what the root writes out of a func that lies by lanes.
void RowBlock::stageResults(Value root) {
  KernelFunc *out = kernel.find(root);
  if (query <= 0 || out->role != FuncRole::Pure || !out->updates.empty() ||
      !fillsSquares(out->extents[0]))
    return;
  Block &body = out->func.getBody().front();
  BlockArgument first = body.getArgument(0), lane = body.getArgument(query);
  for (auto read : llvm::make_early_inc_range(body.getOps<halide::ReadOp>())) {
    Value from = read.getFunc();
    if (owner.lookup(from) != root || !isStored(*kernel.find(from)) ||
        read.getNumResults() != 1 ||
        read.getResult(0).getType().getIntOrFloatBitWidth() != 32)
      continue;
    OperandRange at = read.getCoordinates();
    int byLane = members[from].query;
    if (byLane < 0 || at[byLane] != lane || !llvm::is_contained(at, first) ||
        !llvm::all_of(
            at,
            [&](Value v) {
              auto arg = dyn_cast<BlockArgument>(v);
              return arg && arg.getOwner() == &body;
            }))
      continue;
    SmallVector<Value> args{first, lane};
    for (BlockArgument arg : body.getArguments())
      if (llvm::is_contained(at, arg) && !llvm::is_contained(args, arg))
        args.push_back(arg);
    SmallVector<std::string> names = varsOf(out->func);
    SmallVector<StringRef> vars;
    SmallVector<Extent> extents;
    Member place;
    for (Value arg : args) {
      unsigned k = cast<BlockArgument>(arg).getArgNumber();
      vars.push_back(names[k]);
      extents.push_back(out->extents[k]);
      place.ids.push_back(k);
    }
    place.query = 1;
    Location loc = read.getLoc();
    KernelFunc &rows =
        addFunc(kernel, out->func, heed::format("{}_rows", out->func.getName()),
                vars, read.getResult(0).getType(), extents,
                [&](OpBuilder &inner, ValueRange own) {
                  IRMapping map;
                  map.map(args, own);
                  return cloneSlice(inner, read.getResult(0), map);
                });
    Value stored = rows.func.getResult();
    place.accumulators = stored; // stored whatever it costs
    members[stored] = place;
    owner[stored] = root;
    group.push_back(stored);
    turned[stored].along = 1;
    OpBuilder here(read);
    read.replaceAllUsesWith(
        halide::ReadOp::create(here, loc, read.getResultTypes(), stored, args)
            .getResults());
    read.erase();
  }
}

/// Puts the shuffles between \p func and what it reads, whose first var are the
/// lanes of the result.
void RowBlock::turn(Value func, Turned &how) {
  KernelFunc *f = kernel.find(func);
  Block &body = f->func.getBody().front();
  Operation *yield = body.getTerminator();
  Value value = yield->getOperand(0);
  Location loc = value.getLoc();
  BlockArgument lane = body.getArgument(0), along = body.getArgument(how.along);
  SmallVector<std::string> names = varsOf(f->func);
  SmallVector<StringRef> vars{"x", "ta", "tb"};
  const int64_t square = vector * vector;
  OpBuilder before(f->func);
  SmallVector<Extent> extents{
      {i32(before, square), square}, {i32(before, 1), 1}, {i32(before, 1), 1}};
  SmallVector<Value> rest;
  for (BlockArgument arg : body.getArguments())
    if (arg != lane && arg != along) {
      rest.push_back(arg);
      vars.push_back(names[arg.getArgNumber()]);
      extents.push_back(f->extents[arg.getArgNumber()]);
    }
  auto placeIn = [&](OpBuilder &b, Value of, Value inside) -> Value {
    return arith::AddIOp::create(b, loc, mulI32(b, of, vector), inside);
  };
  auto element = [&](OpBuilder &b, ValueRange at) {
    IRMapping map;
    map.map(lane, placeIn(b, at[1], divI32(b, at[0], vector)));
    Value inRow = placeIn(b, at[2], remI32(b, at[0], vector));
    map.map(along, inRow);
    // Rows are whole squares: clamped, they would be gathered again.
    for (Operation *user : along.getUsers())
      if (auto clamp = dyn_cast<arith::MinSIOp>(user))
        map.map(clamp.getResult(), inRow);
    map.map(rest, at.drop_front(3));
    return cloneSlice(b, value, map);
  };
  how.steps.push_back(addFunc(kernel, f->func,
                              heed::format("{}_rows", f->func.getName()), vars,
                              value.getType(), extents, element)
                          .func);
  addShuffles(kernel, f->func, how.steps, vector);
  OpBuilder b(yield);
  SmallVector<Value> at{
      placeIn(b, remI32(b, along, vector), remI32(b, lane, vector)),
      divI32(b, lane, vector), divI32(b, along, vector)};
  at.append(rest);
  yield->setOperand(0, halide::ReadOp::create(b, loc, value.getType(),
                                              how.steps.back().getResult(), at)
                           .getResult(0));
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (&op != yield && op.use_empty())
      op.erase();
}

/// The loops of a func that turn() has made: a square at a time, with its steps
/// in registers.
void RowBlock::scheduleTurned(Value func, Turned &how) {
  KernelFunc *f = kernel.find(func);
  Location loc = func.getLoc();
  OpBuilder b = scheduleBuilder(kernel);
  SmallVector<std::string> names = varsOf(f->func);
  auto whole = halide::TailStrategy::RoundUp;
  std::string lane = names[0], along = names[how.along];
  halide::SplitOp::create(b, loc, func, 0, lane, lane, "lane", vector, whole);
  halide::SplitOp::create(b, loc, func, 0, along, along, "row", vector, whole);
  SmallVector<StringRef> order{"lane", "row", along};
  for (auto [k, name] : llvm::enumerate(names))
    if (k != 0 && k != how.along)
      order.push_back(name);
  order.push_back(lane);
  halide::ReorderOp::create(b, loc, func, 0, order);
  halide::VectorizeOp::create(b, loc, func, 0, "lane");
  halide::UnrollOp::create(b, loc, func, 0, "row");
  scheduleShuffles(b, how.steps, func, along, vector);
}
