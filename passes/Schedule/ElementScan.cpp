//===- ElementScan.cpp - schedule of recurrences of single elements -------===//
//
// A tile of states, a vector of them, goes through all steps before the next
// tile begins, and what it was in each stays in the first or second cache until
// the rows are made of it.
//
// Where the steps are the rows' last axis, a tile is a vector of rows, and
// inputs and rows that lie along the steps are transposed square by square in
// registers. Lane by lane each would be a load of one number in each of as many
// lines.
#include "passes/Mutation.h"
#include "passes/Schedule/Schedule.h"
#include "passes/Schedule/Squares.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;

namespace {

class ElementScan {
public:
  ElementScan(KernelInfo &kernel, const halide::Target &target)
      : kernel(kernel), target(target), outputs(outputsOf(kernel)) {
    for (KernelFunc &f : kernel.funcs)
      if (f.role == FuncRole::Recurrence)
        states = &f;
    isTiled = states->updates[1].getRvars().size() == 2;
    vars = varsOf(states->func);
    vars.pop_back();
    if (isTiled) {
      // In place of a lane and a tile rows have one var.
      vars.erase(vars.begin());
      vars[0] = heed::format("d{}", vars.size() - 1);
    }
  }
  void run();

private:
  bool isRow(KernelFunc &f) { return f.extents.size() > vars.size(); }
  void scheduleAlone();
  void scheduleAcross();
  void scheduleAlong();
  void stageInputs();
  Value inSquare(OpBuilder &b, KernelFunc &f, Value value, ValueRange args);
  SmallVector<halide::FuncOp> stageRow(KernelFunc &f);
  void scheduleTile(const std::string &tile);

  KernelInfo &kernel;
  const halide::Target &target;
  SmallVector<KernelFunc *> outputs;
  KernelFunc *states;
  bool isTiled;
  SmallVector<std::string> vars; ///< of the states' elements, innermost first
  int64_t lanes = 1;
  /// Squares of the inputs, with what transposes them.
  SmallVector<SmallVector<halide::FuncOp>> inputs;
};

/// A single number is a state: its steps one after the other, then the rows.
void ElementScan::scheduleAlone() {
  OpBuilder b = scheduleBuilder(kernel);
  halide::ComputeRootOp::create(b, states->func.getLoc(),
                                states->func.getResult());
  for (KernelFunc *f : outputs)
    if (isRow(*f))
      vectorizeInner(b, f->func, 0, "t",
                     target.lanes(std::max(32u, widestBits(f->func))));
}

/// Whether \p value is an argument of its block, from \p first up to \p end.
bool usesArguments(Value value, unsigned first, unsigned end) {
  return llvm::any_of(argumentsOf(value), [&](Value arg) {
    unsigned number = cast<BlockArgument>(arg).getArgNumber();
    return number >= first && number < end;
  });
}

/// Elements lie side by side: vectors of them.
void ElementScan::scheduleAcross() {
  // A state may be wider than what is made of it: two vectors then, of rows as
  // long as one.
  unsigned bits = 32;
  for (KernelFunc *f : outputs)
    if (isRow(*f))
      bits = std::max(bits, widestBits(f->func));
  lanes = target.lanes(bits);
  Extent first = states->extents[0];
  if (first.fixed && *first.fixed < lanes)
    lanes = 1;
  clampLanes(*states, lanes);
  OpBuilder b = scheduleBuilder(kernel);
  Location loc = states->func.getLoc();
  constexpr int64_t mostUnrolled = 16;
  auto isUnrolled = [&](const Extent &steps) {
    return steps.fixed && *steps.fixed <= mostUnrolled;
  };
  const std::string &tile = vars[0];
  for (KernelFunc *f : outputs) {
    Value func = f->func.getResult();
    SmallVector<StringRef> order;
    if (lanes > 1) {
      halide::SplitOp::create(b, loc, func, 0, tile, tile, "lane", lanes,
                              halide::TailStrategy::GuardWithIf);
      halide::VectorizeOp::create(b, loc, func, 0, "lane");
      order.push_back("lane");
    }
    if (isRow(*f))
      order.push_back("t");
    order.append(vars.begin(), vars.end());
    if (order.size() > 1)
      halide::ReorderOp::create(b, loc, func, 0, order);
    if (isRow(*f) && isUnrolled(states->reductions[1][0]))
      halide::UnrollOp::create(b, loc, func, 0, "t");
  }
  scheduleTile(tile);
  Value func = states->func.getResult();
  for (const std::string &var : vars)
    halide::BoundExtentOp::create(b, loc, func, var,
                                  i32(b, var == tile ? lanes : 1));
  for (int64_t stage : {1, 2}) {
    SmallVector<StringRef> order;
    if (lanes > 1)
      halide::VectorizeOp::create(b, loc, func, stage, tile);
    order.append(vars.begin(), vars.end());
    if (stage == 2) {
      order.push_back("r0");
      halide::ReorderOp::create(b, loc, func, stage, order);
      if (isUnrolled(states->reductions[1][0]))
        halide::UnrollOp::create(b, loc, func, stage, "r0");
    }
  }
}

/// All outputs share the loop of the tiles, in which the states are computed.
void ElementScan::scheduleTile(const std::string &tile) {
  OpBuilder b = scheduleBuilder(kernel);
  Location loc = states->func.getLoc();
  Value first = outputs[0]->func.getResult();
  // Else a shared loop has parts before and behind for what one output alone
  // may have.
  if (outputs.size() > 1)
    for (KernelFunc *f : outputs)
      for (auto [var, extent] : llvm::zip(varsOf(f->func), f->extents))
        halide::BoundVarOp::create(b, loc, f->func.getResult(), var, i32(b, 0),
                                   extent.value);
  halide::ComputeAtOp::create(b, loc, states->func.getResult(), first, tile);
  for (KernelFunc *f : ArrayRef(outputs).drop_front())
    halide::ComputeWithOp::create(b, loc, f->func.getResult(), first, tile);
}

/// Whether a vector of \p type can be transposed as it is.
bool isWhole(Type type) {
  unsigned bits = type.getIntOrFloatBitWidth();
  return bits == 32 || bits == 64;
}

/// What of a \p read of an input is turned before: null, if it does not lie
/// along the steps, which are arguments from \p step on.
static Value alongSteps(halide::ReadOp read, unsigned step) {
  OperandRange at = read.getCoordinates();
  unsigned end = step + 2;
  if (!read.getFunc().getDefiningOp<halide::BufferOp>() || at.size() < 2 ||
      !usesArguments(at[0], step, end) || usesArguments(at[0], 0, step) ||
      llvm::any_of(at.drop_front(), [&](Value coordinate) {
        return usesArguments(coordinate, step, end);
      }))
    return {};
  Value value = read.getResult(0);
  if (!isWhole(value.getType()) && value.hasOneUse() &&
      isa<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(*value.user_begin()))
    value = value.user_begin()->getResult(0);
  return isWhole(value.getType()) ? value : Value();
}

/// What the steps read of an input that lies along them is turned before.
void ElementScan::stageInputs() {
  halide::UpdateOp update = states->updates[1];
  Block &body = update.getSet().front();
  unsigned rank = states->extents.size(), step = rank, block = rank + 1;
  SmallVector<std::string> names{"x", "r1"};
  SmallVector<Extent> extents;
  OpBuilder before(states->func);
  extents.push_back({i32(before, lanes * lanes), lanes * lanes});
  extents.push_back(states->reductions[1][1]);
  // The tile, and what lies outside of it.
  for (unsigned k = 1; k + 1 < rank; ++k) {
    names.push_back(varsOf(states->func)[k]);
    extents.push_back(states->extents[k]);
  }
  SmallVector<StringRef> places(names.begin(), names.end());
  for (auto read : llvm::make_early_inc_range(body.getOps<halide::ReadOp>())) {
    Value value = alongSteps(read, step);
    if (!value)
      continue;
    auto element = [&](OpBuilder &inner, ValueRange args) {
      IRMapping map;
      map.map(body.getArgument(0), divI32(inner, args[0], lanes));
      map.map(body.getArgument(step), remI32(inner, args[0], lanes));
      map.map(body.getArgument(block), args[1]);
      for (unsigned k = 1; k + 1 < rank; ++k)
        map.map(body.getArgument(k), args[1 + k]);
      return cloneSlice(inner, value, map);
    };
    auto &steps = inputs.emplace_back();
    steps.push_back(addFunc(kernel, states->func,
                            heed::format("input{}_rows", inputs.size()), places,
                            value.getType(), extents, element)
                        .func);
    addShuffles(kernel, states->func, steps, lanes);
    OpBuilder b(value.getDefiningOp());
    SmallVector<Value> turned{
        arith::AddIOp::create(b, read.getLoc(),
                              mulI32(b, body.getArgument(step), lanes),
                              body.getArgument(0)),
        body.getArgument(block)};
    for (unsigned k = 1; k + 1 < rank; ++k)
      turned.push_back(body.getArgument(k));
    value.replaceAllUsesWith(
        halide::ReadOp::create(b, read.getLoc(), value.getType(),
                               steps.back().getResult(), turned)
            .getResult(0));
    if (value != read.getResult(0))
      value.getDefiningOp()->erase();
    read.erase();
  }
}

/// What \p value of the row \p f is at \p args, the vars of a square: its
/// numbers with the lanes side by side, its steps, its tile, and what is
/// outside.
Value ElementScan::inSquare(OpBuilder &b, KernelFunc &f, Value value,
                            ValueRange args) {
  Block &body = f.func.getBody().front();
  auto inside = [&](Value tile, Value place, const Extent &all) {
    Value number =
        arith::AddIOp::create(b, f.func.getLoc(), mulI32(b, tile, lanes), place)
            .getResult();
    if (all.fixed && *all.fixed % lanes == 0)
      return number;
    return arith::MinSIOp::create(b, f.func.getLoc(), number,
                                  addI32(b, all.value, -1))
        .getResult();
  };
  IRMapping map;
  Value lane = remI32(b, args[0], lanes);
  map.map(body.getArgument(0),
          inside(args[1], divI32(b, args[0], lanes), f.extents[0]));
  map.map(body.getArgument(1), inside(args[2], lane, f.extents[1]));
  for (unsigned k = 1; k < vars.size(); ++k)
    map.map(body.getArgument(k + 1), args[k + 2]);
  // States have all lanes of a tile.
  for (auto read : body.getOps<halide::ReadOp>()) {
    if (read.getFunc() != states->func.getResult())
      continue;
    SmallVector<Value> at{lane, args[2]};
    for (Value coordinate : read.getCoordinates().drop_front(2))
      at.push_back(cloneSlice(b, coordinate, map));
    auto moved = halide::ReadOp::create(b, read.getLoc(), read.getResultTypes(),
                                        read.getFunc(), at);
    map.map(read.getResults(), moved.getResults());
  }
  return cloneSlice(b, value, map);
}

/// What \p f is, first with the lanes side by side, then turned. Empty, and
/// nothing has changed, where its numbers are no whole lanes.
SmallVector<halide::FuncOp> ElementScan::stageRow(KernelFunc &f) {
  Block &body = f.func.getBody().front();
  Operation *yield = body.getTerminator();
  OpOperand *whole = &yield->getOpOperand(0);
  if (Operation *cast = whole->get().getDefiningOp();
      !isWhole(whole->get().getType()) &&
      isa_and_nonnull<arith::TruncFOp, arith::TruncIOp>(cast))
    whole = &cast->getOpOperand(0);
  Value value = whole->get();
  if (!isWhole(value.getType()))
    return {};
  SmallVector<std::string> names{"x", "ts", "tile"};
  OpBuilder before(f.func);
  SmallVector<Extent> extents{{i32(before, lanes * lanes), lanes * lanes},
                              states->reductions[1][1],
                              states->extents[1]};
  for (unsigned k = 1; k < vars.size(); ++k) {
    names.push_back(vars[k]);
    extents.push_back(f.extents[k + 1]);
  }
  SmallVector<StringRef> places(names.begin(), names.end());
  SmallVector<halide::FuncOp> steps{
      addFunc(kernel, f.func, heed::format("{}_rows", f.func.getName()), places,
              value.getType(), extents,
              [&](OpBuilder &b, ValueRange args) {
                return inSquare(b, f, value, args);
              })
          .func};
  addShuffles(kernel, f.func, steps, lanes);
  OpBuilder b(whole->getOwner());
  Value t = body.getArgument(0), row = body.getArgument(1);
  SmallVector<Value> at{
      arith::AddIOp::create(b, f.func.getLoc(),
                            mulI32(b, remI32(b, row, lanes), lanes),
                            remI32(b, t, lanes)),
      divI32(b, t, lanes), divI32(b, row, lanes)};
  for (unsigned k = 1; k < vars.size(); ++k)
    at.push_back(body.getArgument(k + 1));
  whole->set(halide::ReadOp::create(b, f.func.getLoc(), value.getType(),
                                    steps.back().getResult(), at)
                 .getResult(0));
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (&op != yield && op.use_empty())
      op.erase();
  return steps;
}

/// Steps lie side by side: vectors are of rows.
void ElementScan::scheduleAlong() {
  lanes = *states->extents[0].fixed;
  stageInputs();
  SmallVector<SmallVector<halide::FuncOp>> squares;
  for (KernelFunc *f : outputs)
    squares.push_back(isRow(*f) ? stageRow(*f) : SmallVector<halide::FuncOp>());
  OpBuilder b = scheduleBuilder(kernel);
  Location loc = states->func.getLoc();
  auto guard = halide::TailStrategy::GuardWithIf;
  for (auto [f, turned] : llvm::zip(outputs, squares)) {
    Value func = f->func.getResult();
    SmallVector<std::string> loops;
    halide::SplitOp::create(b, loc, func, 0, vars[0], vars[0], "row", lanes,
                            guard);
    if (isRow(*f)) {
      halide::SplitOp::create(b, loc, func, 0, "t", "t", "tv", lanes, guard);
      halide::VectorizeOp::create(b, loc, func, 0, "tv");
      loops.push_back("tv");
    }
    loops.push_back("row");
    if (!isRow(*f))
      halide::VectorizeOp::create(b, loc, func, 0, "row");
    else if (!turned.empty())
      halide::UnrollOp::create(b, loc, func, 0, "row");
    if (isRow(*f))
      loops.push_back("t");
    loops.append(vars.begin(), vars.end());
    SmallVector<StringRef> order(loops.begin(), loops.end());
    halide::ReorderOp::create(b, loc, func, 0, order);
    // Not fused: what is computed inside reads two of them in one place.
    for (const std::string &var : vars)
      halide::ParallelOp::create(b, loc, func, 0, var);
    if (!turned.empty())
      scheduleShuffles(b, turned, func, "t", lanes);
  }
  scheduleTile(vars[0]);
  Value func = states->func.getResult();
  SmallVector<std::string> names = varsOf(states->func);
  names.pop_back();
  for (const std::string &name : names)
    halide::BoundExtentOp::create(b, loc, func, name,
                                  i32(b, name == "lane" ? lanes : 1));
  for (int64_t stage : {1, 2}) {
    halide::VectorizeOp::create(b, loc, func, stage, "lane");
    if (stage == 1)
      continue;
    SmallVector<StringRef> order{"lane"};
    order.push_back("r0");
    order.append(names.begin() + 1, names.end());
    order.push_back("r1");
    halide::ReorderOp::create(b, loc, func, stage, order);
    halide::UnrollOp::create(b, loc, func, stage, "r0");
  }
  for (auto &steps : inputs)
    scheduleShuffles(b, steps, func, "r1", lanes);
}

void ElementScan::run() {
  if (isTiled)
    scheduleAlong();
  else if (vars.empty())
    scheduleAlone();
  else
    scheduleAcross();
  // The states are read again in the next call.
  OpBuilder b = scheduleBuilder(kernel);
  for (KernelFunc *f : outputs)
    if (isRow(*f))
      streamOutput(b, *f, target, kernel.times);
}

} // namespace

static std::optional<FamilyPlan>
matchElementScan(const KernelFacts &facts, const halide::Target &target) {
  if (facts.kind != "element scan")
    return std::nullopt;
  return FamilyPlan{Benefit::WholeRowBlock, [&target](KernelInfo &kernel) {
                      ElementScan(kernel, target).run();
                      return true;
                    }};
}

namespace heed {
Family elementScanFamily() { return {"element-scan", matchElementScan}; }
} // namespace heed
