//===- WindowRewrite.cpp - sums over windows, rewritten for their tiles ---===//
//
// The update with its conditions apart from its term, what it reads as copies
// without limits, packed panels and places of columns (Windows.cpp).
#include "passes/Mutation.h"
#include "passes/Schedule/Panels.h"
#include "passes/Schedule/Windows.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

/// Whether all of \p conditions hold.
static Value allOf(OpBuilder &in, ArrayRef<Value> conditions, IRMapping &map) {
  Value result;
  for (Value condition : conditions) {
    Value next = cloneSlice(in, condition, map);
    result =
        result ? arith::AndIOp::create(in, next.getLoc(), result, next) : next;
  }
  return result;
}

/// The sum with a term more where \p conditions hold; of the update, whose
/// arguments \p map knows.
Value WindowSchedule::addTerm(OpBuilder &in, ArrayRef<Value> conditions,
                              IRMapping &map) {
  Value combined = cloneSlice(in, term.combine->getResult(0), map);
  // Its other conditions stand outside.
  Value value = cloneSlice(in, term.value, map);
  Operation *combine = combined.getDefiningOp();
  combine->setOperand(term.number, value);
  combine->moveBefore(in.getInsertionBlock(), in.getInsertionPoint());
  auto flags = arith::FastMathFlags::contract | arith::FastMathFlags::reassoc;
  if (auto add = dyn_cast<arith::AddFOp>(combine)) {
    add.setFastmath(flags);
    if (auto product = value.getDefiningOp<arith::MulFOp>())
      product.setFastmath(flags);
  }
  if (Value condition = allOf(in, conditions, map))
    return arith::SelectOp::create(in, loc, condition, combined,
                                   combine->getOperand(1 - term.number));
  return combined;
}

/// Writes the update anew: the loop along rows innermost, with conditions that
/// no column decides beside the term.
void WindowSchedule::rewriteUpdate() {
  size_t rank = sum().extents.size(), count = update.getRvars().size();
  SmallVector<unsigned> order{plan.tap};
  for (unsigned r = 0; r < count; ++r)
    if (r != plan.tap)
      order.push_back(r);
  SmallVector<StringRef> names;
  SmallVector<Value> bounds;
  SmallVector<Extent> extents;
  for (unsigned r : order) {
    names.push_back(cast<StringAttr>(update.getRvars()[r]).getValue());
    bounds.append({update.getRVarMin(r), update.getRVarExtent(r)});
    extents.push_back(sum().reductions[0][r]);
  }
  Block &old = body();
  SmallVector<Value> outside, inside;
  for (Value condition : conjuncts(term.conditions))
    (isArithmetic(condition) && !dependsOn(condition, column()) ? outside
                                                                : inside)
        .push_back(condition);
  OpBuilder at(update);
  auto fresh = halide::UpdateOp::create(at, loc, sumFunc, names, bounds);
  auto mapped = [&](ValueRange args) {
    IRMapping map;
    map.map(old.getArguments().take_front(rank), args.take_front(rank));
    for (auto [place, r] : llvm::enumerate(order))
      map.map(old.getArgument(rank + r), args[rank + place]);
    return map;
  };
  if (!outside.empty() && !mutated("windows.drop-condition"))
    fresh.fill(at, fresh.getWhere(),
               [&](OpBuilder &in, Location, ValueRange args) {
                 IRMapping map = mapped(args);
                 Value holds = allOf(in, outside, map);
                 // A long window has steps between, where it does for all.
                 if (isLong)
                   holds = halide::LikelyOp::create(in, loc, holds);
                 return SmallVector<Value>{holds};
               });
  fresh.fill(at, fresh.getSet(), [&](OpBuilder &in, Location, ValueRange args) {
    IRMapping map = mapped(args);
    if (mutated("windows.drop-lane-condition"))
      inside.clear();
    return SmallVector<Value>{addTerm(in, inside, map)};
  });
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(fresh.getSet().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  update.erase();
  update = sum().updates[0] = fresh;
  sum().reductions[0] = extents;
}

/// What follows columns, and neither rows nor the window along columns.
void WindowSchedule::pack() {
  SmallVector<halide::ReadOp> panels;
  for (halide::ReadOp read : readsOfTerms(update)) {
    auto follows = [&](Value arg) {
      return llvm::any_of(read.getCoordinates(),
                          [&](Value at) { return dependsOn(at, arg); });
    };
    if (follows(column()) && !follows(row()) && !isStaged(read) &&
        llvm::all_of(read.getCoordinates(), isArithmetic))
      panels.push_back(read);
  }
  PanelShape shape{lanes, lanes * vectors, 1};
  shape.row = plan.row;
  packed = packPanels(kernel, update, panels, shape);
}

/// The last place of axis \p axis of what \p read reads; null where that is
/// computed for any.
Value WindowSchedule::lastPlace(halide::ReadOp read, unsigned axis) {
  OpBuilder before(sum().func);
  KernelFunc *own = kernel.find(read.getFunc());
  Value extent =
      own ? own->extents[axis].value
          : halide::ExtentOp::create(before, loc, read.getFunc(), axis)
                .getResult();
  return extent ? addI32(before, extent, -1) : Value();
}

/// A func of what \p read finds, over its coordinates without their limits. A
/// copy has whole vectors, and rows of whole tiles: it reads no further than
/// there is something.
Value WindowSchedule::stage(halide::ReadOp read, unsigned number) {
  SmallVector<std::string> names;
  SmallVector<Extent> extents;
  SmallVector<Value> at, lasts;
  for (Value coordinate : read.getCoordinates()) {
    lasts.push_back(lastPlace(read, names.size()));
    names.push_back(heed::format("s{}", names.size()));
    extents.push_back({});
    at.push_back(withoutLimits(coordinate));
  }
  Value lastColumn, lastRow;
  {
    OpBuilder before(sum().func);
    lastColumn = addI32(before, sum().extents[kColumn].value,
                        mutated("windows.last-column-early") ? -2 : -1);
    lastRow = addI32(before, sum().extents[plan.row].value,
                     mutated("windows.last-row-early") ? -2 : -1);
  }
  SmallVector<StringRef> vars(names.begin(), names.end());
  KernelFunc &copy = addFunc(
      kernel, sum().func, heed::format("window{}", number), vars,
      read.getResult(0).getType(), extents,
      [&](OpBuilder &in, ValueRange args) {
        SmallVector<Value> places;
        for (auto [k, coordinate] : llvm::enumerate(read.getCoordinates())) {
          Value place = args[k];
          // Of most panels all columns exist.
          if (k == 0)
            place = halide::LikelyOp::create(in, loc, place);
          // A loop that has no limits passes its end in the last tile.
          if (at[k] == coordinate &&
              (coordinate == column() || coordinate == row()))
            place = arith::MinSIOp::create(
                in, loc, place, coordinate == column() ? lastColumn : lastRow);
          IRMapping map;
          if (!at[k].getType().isInteger(32))
            place = arith::ExtSIOp::create(in, loc, at[k].getType(), place);
          map.map(at[k], place);
          place = cloneSlice(in, coordinate, map);
          if (lasts[k] && coordinate != column() && coordinate != row()) {
            place = narrowed(in, place);
            place = arith::MinSIOp::create(in, loc, place, lasts[k]);
            place = arith::MaxSIOp::create(in, loc, place, i32(in, 0));
          }
          places.push_back(place);
        }
        return halide::ReadOp::create(in, loc, read.getResult(0).getType(),
                                      read.getFunc(), places)
            .getResult(0);
      });
  OpBuilder here(read);
  for (Value &place : at)
    place = narrowed(here, place);
  Value found = halide::ReadOp::create(here, loc, read.getResult(0).getType(),
                                       copy.func.getResult(), at)
                    .getResult(0);
  read.getResult(0).replaceAllUsesWith(found);
  read.erase();
  return copy.func.getResult();
}

void WindowSchedule::stageReads() {
  for (halide::ReadOp read : readsOfTerms(update))
    if (isStaged(read))
      staged.push_back(stage(read, staged.size()));
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// The number that \p at divides the column by, if nothing else of it follows
/// the column: R of c // R, the channels of a head.
Value WindowSchedule::headSize(Value at) {
  if (!dependsOn(at, column()))
    return {};
  Operation *op = at.getDefiningOp();
  auto division = dyn_cast_or_null<arith::FloorDivSIOp>(op);
  if (division && division.getLhs() == column())
    return argumentsOf(division.getRhs()).empty() ? division.getRhs() : Value();
  Value size;
  if (op)
    for (Value operand : op->getOperands())
      if (dependsOn(operand, column())) {
        Value found = headSize(operand);
        if (!found || (size && found != size))
          return {};
        size = found;
      }
  return size;
}

/// Where columns alone say where something is read (the head of a channel, c //
/// R), their places are computed once for all rows of a task.
void WindowSchedule::stagePlaces() {
  std::string name = varsOf(sum().func)[kColumn];
  Value size;
  for (halide::ReadOp read : readsOfTerms(update))
    for (OpOperand &use : read->getOpOperands()) {
      Value at = use.get();
      if (!at.getType().isInteger(32) || at == column() ||
          !dependsOn(at, column()) || argumentsOf(at).size() != 1 ||
          !isArithmetic(at) ||
          !read.getFunc().getDefiningOp<halide::BufferOp>() ||
          llvm::is_contained(packed, read.getFunc()))
        continue;
      Value place =
          addFunc(kernel, sum().func, heed::format("place{}", places.size()),
                  StringRef(name), at.getType(), sum().extents[kColumn],
                  [&](OpBuilder &in, ValueRange args) {
                    IRMapping map;
                    map.map(column(), args[0]);
                    return cloneSlice(in, at, map);
                  })
              .func.getResult();
      Value own = headSize(at);
      if (own && !size)
        size = own;
      OpBuilder here(read);
      auto found =
          halide::ReadOp::create(here, loc, at.getType(), place, column());
      use.set(found.getResult(0));
      places.push_back(place);
      if (own && own == size)
        ofHeads.push_back(place);
    }
  if (size) {
    OpBuilder before(update);
    IRMapping map;
    Value own = cloneSlice(before, size, map);
    splitHeads(before, remI32(before, own, lanes));
  }
}

/// Where all lanes of a vector are of one head, they find one place: a version
/// of the update for heads of whole vectors (\p rest is 0), one for all others.
void WindowSchedule::splitHeads(OpBuilder &at, Value rest) {
  auto whole = cast<halide::UpdateOp>(at.clone(*update));
  for (auto [version, is] : {std::pair(whole, arith::CmpIPredicate::eq),
                             std::pair(update, arith::CmpIPredicate::ne)}) {
    if (version.getWhere().empty())
      version.fill(
          at, version.getWhere(), [&](OpBuilder &in, Location, ValueRange) {
            return SmallVector<Value>{
                arith::ConstantOp::create(in, loc, in.getBoolAttr(true))};
          });
    Operation *yield = version.getWhere().front().getTerminator();
    OpBuilder in(yield);
    if (mutated("windows.heads-of-one-lane"))
      is = arith::CmpIPredicate::eq;
    Value own = arith::CmpIOp::create(in, loc, is, rest, i32(in, 0));
    yield->setOperand(
        0, arith::AndIOp::create(in, loc, own, yield->getOperand(0)));
  }
  Block &set = whole.getSet().front();
  OpBuilder in(&set, set.begin());
  Value column = set.getArgument(kColumn);
  Value first =
      arith::SubIOp::create(in, loc, column, remI32(in, column, lanes));
  for (auto read : set.getOps<halide::ReadOp>())
    if (llvm::is_contained(ofHeads, read.getFunc()))
      read.getCoordinatesMutable().assign(first);
  sum().updates.insert(sum().updates.begin(), whole);
  sum().reductions.push_back(sum().reductions[0]);
}

/// What is read as it lies is read inside of it where a tile passes its end.
void WindowSchedule::clampRest() {
  OpBuilder before(sum().func);
  for (halide::UpdateOp own : sum().updates) {
    Block &set = own.getSet().front();
    OpBuilder in(&set, set.begin());
    for (unsigned dim : {kColumn, plan.row}) {
      Value arg = set.getArgument(dim);
      Value last = addI32(before, sum().extents[dim].value, -1);
      auto inside = arith::MinSIOp::create(in, loc, arg, last);
      for (auto read : set.getOps<halide::ReadOp>())
        if (read.getFunc().getDefiningOp<halide::BufferOp>())
          read->replaceUsesOfWith(arg, inside);
      if (inside->use_empty())
        inside.erase();
    }
  }
}
