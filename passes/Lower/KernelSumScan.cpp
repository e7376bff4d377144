//===- KernelSumScan.cpp - recurrences of columns, with their sums --------===//
//
// One func of tuples: an element for each state, whose slots are the places of
// a column, and one for each sum over it, whose slots are the steps (and the
// parts that it is added up in). The turns of its update take a step: for each
// held sum the places; then each place, with the terms of rows behind it. A
// turn writes one element of the tuple. A schedule unrolls the turns, so that
// which one that is are no choices.
//
// Where nothing is held places wait for none other: they are taken in groups,
// code for the turns of one, and where a step is short (a few sums and
// products), loads and stores would take longest: a place takes four steps
// while it is in a register. A second update takes the steps that may be left.
#include "passes/Lower/KernelTranslator.h"

#include "dialects/Attn/Dialect.h"
#include "passes/Mutation.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace heed;

namespace heed {

/// The funcs of one op, step by step.
class SumScanFuncs {
public:
  SumScanFuncs(KernelTranslator &kernel, attn::SumScanOp op)
      : kernel(kernel), op(op), b(kernel.b), loc(op.getLoc()),
        rank(op.getSizes().size()) {}

  LogicalResult run();

private:
  void findExtents();
  void writeStates();
  LogicalResult writeStarts();
  LogicalResult writeSteps();
  LogicalResult writeSteps(Extent count, Value first, int64_t steps);
  /// What a turn is about.
  struct Turn {
    Value place, step; ///< of the column; of the call
    Value isState;     ///< else it is one of a sum
    SmallVector<Value> isSum;
  };
  Turn turnOf(OpBuilder &inner, ValueRange args);
  FailureOr<SmallVector<Value>> valuesOfTurn(OpBuilder &inner, ValueRange args);
  LogicalResult evaluate(OpBuilder &inner, Region &region, ValueRange args,
                         const Turn &turn, SmallVectorImpl<Value> &values);
  SmallVector<Value> slotOf(OpBuilder &inner, ValueRange args,
                            const Turn &turn);
  void writeRow(unsigned sum, Value tensor);
  void writeLast(unsigned state);
  /// An element's indices, outermost first, of vars \p args and its place \p e
  /// of the column.
  SmallVector<Value> indices(ValueRange args, Value e);
  halide::ReadOp readSlot(OpBuilder &b, ValueRange args, Value slot);
  /// The sum \p sum of step \p step.
  Value readSum(OpBuilder &inner, ValueRange args, Value step, int64_t sum);
  Value isBelow(OpBuilder &inner, Value turn, int64_t end) {
    return arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, turn,
                                 i32(inner, end));
  }
  bool isShort();
  int64_t mostTogether() { return !numHeld && isShort() ? 4 : 1; }
  int64_t placesOfGroup();
  int64_t partsOfSum();

  KernelTranslator &kernel;
  attn::SumScanOp op;
  OpBuilder &b;
  Location loc;
  unsigned rank;
  Value from;
  Extent steps;
  int64_t places = 0, numStates = 0, numHeld = 0, numRows = 0;
  int64_t together = 1;      ///< steps that a place takes before the next one
  int64_t group = 1;         ///< places whose turns are code
  int64_t parts = 1;         ///< that a sum is added up in
  bool inGroups = false;     ///< places are taken in several
  Value firstStep;           ///< of the update, behind `from`
  SmallVector<Extent> outer; ///< of the other axes, outermost first
  SmallVector<std::string> names; ///< of their vars
  SmallVector<Type> types;        ///< of states, held sums, rows
  Value states;
  KernelFunc *func = nullptr;
};

} // namespace heed

/// Whether a step is a few sums and products.
bool SumScanFuncs::isShort() {
  bool isShort = true;
  for (Region *region : {&op.getNext(), &op.getLeave()})
    region->walk([&](Operation *inner) {
      isShort &= !isa<math::MathDialect>(inner->getDialect()) &&
                 !isa<arith::DivFOp, scf::IfOp>(inner);
    });
  return isShort;
}

/// Of a group of places the turns are code: as few as keep what they compute in
/// registers. Held sums are over all places.
int64_t SumScanFuncs::placesOfGroup() {
  constexpr int64_t mostTurns = 32;
  int64_t most = std::max<int64_t>(1, mostTurns / (together * (1 + numRows)));
  int64_t found = places;
  while (!numHeld && found > 1 && (found > most || places % found != 0))
    --found;
  return found;
}

/// A term waits for the sum of those before it: where a step is short, and one
/// alone is taken, the terms of several sums take turns. A device has other
/// threads meanwhile, and all sums of a call in its memory.
int64_t SumScanFuncs::partsOfSum() {
  constexpr int64_t most = 4, shortColumn = 16;
  return isShort() && mostTogether() == 1 && places >= shortColumn &&
                 !kernel.target.isGPU()
             ? most
             : 1;
}

void SumScanFuncs::findExtents() {
  auto state = cast<RankedTensorType>(op.getStarts()[0].getType());
  SmallVector<Value> sums(op.getHeld());
  llvm::append_range(sums, op.getRows());
  numHeld = op.getHeld().size();
  numRows = op.getRows().size();
  steps = {kernel.size32(op.getSteps()), std::nullopt};
  for (Value start : op.getStarts())
    types.push_back(getElementTypeOrSelf(start));
  numStates = types.size();
  for (Value sum : sums) {
    auto type = cast<RankedTensorType>(sum.getType());
    if (!type.isDynamicDim(op.sumAxis()))
      steps = kernel.fixedExtent(loc, type.getDimSize(op.sumAxis()));
    types.push_back(type.getElementType());
  }
  from = kernel.size32(op.getFrom());
  places = state.getDimSize(op.sumAxis());
  parts = partsOfSum();
  together = mostTogether();
  inGroups = placesOfGroup() < places;
  for (auto [axis, size] : llvm::enumerate(op.getSizes()))
    if (axis != op.sumAxis()) {
      outer.push_back(state.isDynamicDim(axis)
                          ? Extent{kernel.size32(size), std::nullopt}
                          : kernel.fixedExtent(loc, state.getDimSize(axis)));
      names.push_back(format("d{}", axis));
    }
}

/// All slots, of which nothing is known before the updates, but that sums over
/// several groups are zero.
void SumScanFuncs::writeStates() {
  SmallVector<StringRef> vars(
      llvm::reverse(SmallVector<StringRef>(names.begin(), names.end())));
  vars.push_back("slot");
  KernelFunc f;
  f.func = halide::FuncOp::create(
      b, loc, "state", vars, types,
      [&](OpBuilder &inner, Location, ValueRange) {
        SmallVector<Value> values;
        for (auto [element, type] : llvm::enumerate(types))
          values.push_back(
              int64_t(element) < numStates || !inGroups
                  ? halide::UndefOp::create(inner, loc, type).getResult()
                  : arith::ConstantOp::create(inner, loc,
                                              inner.getZeroAttr(type)));
        return values;
      });
  f.extents.assign(outer.rbegin(), outer.rend());
  f.extents.push_back(
      kernel.fixedExtent(loc, std::max(places, parts * int64_t(op.getMost()))));
  f.role = FuncRole::Recurrence;
  states = f.func.getResult();
  kernel.info->funcs.push_back(std::move(f));
  func = &kernel.info->funcs.back();
}

SmallVector<Value> SumScanFuncs::indices(ValueRange args, Value e) {
  SmallVector<Value> at(llvm::reverse(args.take_front(rank - 1)));
  at.insert(at.begin() + op.sumAxis(), e);
  return at;
}

halide::ReadOp SumScanFuncs::readSlot(OpBuilder &inner, ValueRange args,
                                      Value slot) {
  SmallVector<Value> at(args.take_front(rank - 1));
  at.push_back(slot);
  return halide::ReadOp::create(inner, loc, types, states, at);
}

/// Before the first step the states are as they start.
LogicalResult SumScanFuncs::writeStarts() {
  auto update =
      halide::UpdateOp::create(b, loc, states, ArrayRef<StringRef>("r0"),
                               ValueRange{i32(b, 0), i32(b, places)});
  update.fill(b, update.getAt(), [&](OpBuilder &, Location, ValueRange args) {
    SmallVector<Value> at(args.take_front(rank));
    at.back() = args[rank];
    return at;
  });
  bool ok = true;
  update.fill(
      b, update.getSet(),
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        SmallVector<Value> values;
        for (Value start : op.getStarts()) {
          FailureOr<Value> value =
              kernel.read(inner, loc, start, indices(args, args[rank]));
          ok &= succeeded(value);
          values.push_back(ok ? *value : Value());
        }
        if (!ok)
          return {};
        SmallVector<Value> own(readSlot(inner, args, args[rank]).getResults());
        llvm::append_range(values, ArrayRef(own).drop_front(numStates));
        return values;
      });
  func->updates.push_back(update);
  func->reductions.push_back({kernel.fixedExtent(loc, places)});
  return success(ok);
}

/// What \p region makes in \p turn, of the states and the held sums as they
/// are.
LogicalResult SumScanFuncs::evaluate(OpBuilder &inner, Region &region,
                                     ValueRange args, const Turn &turn,
                                     SmallVectorImpl<Value> &values) {
  Value step = mutated("sum-scan.same-step")
                   ? from
                   : arith::AddIOp::create(inner, loc, from, turn.step);
  SmallVector<Value> taken(
      readSlot(inner, args, turn.place).getResults().take_front(numStates));
  for (int64_t sum = 0; sum < numHeld; ++sum)
    taken.push_back(readSum(inner, args, turn.step, sum));
  return kernel.stepOf(inner, region, step, indices(args, turn.place), taken,
                       values);
}

Value SumScanFuncs::readSum(OpBuilder &inner, ValueRange args, Value step,
                            int64_t sum) {
  Value all;
  for (int64_t part = 0; part < parts; ++part) {
    Value slot = addI32(inner, mulI32(inner, step, parts), part);
    Value one = readSlot(inner, args, slot).getResult(numStates + sum);
    all = all ? arith::AddFOp::create(inner, loc, all, one).getResult() : one;
    if (mutated("sum-scan.first-part"))
      break;
  }
  return all;
}

/// The turn of \p args, in which held sums come first.
SumScanFuncs::Turn SumScanFuncs::turnOf(OpBuilder &inner, ValueRange args) {
  Value number = args[rank], ofGroup = args[rank + 1];
  int64_t behindHeld = numHeld * places;
  Turn turn;
  turn.step = mulI32(inner, args[rank + 2], together);
  Value inPlaces = number;
  if (numHeld)
    inPlaces = arith::MaxSIOp::create(
        inner, loc, addI32(inner, number, -behindHeld), i32(inner, 0));
  Value ofPlace = divI32(inner, inPlaces, 1 + numRows);
  if (together > 1)
    turn.step = arith::AddIOp::create(inner, loc, turn.step,
                                      remI32(inner, ofPlace, together));
  if (firstStep)
    turn.step = arith::AddIOp::create(inner, loc, turn.step, firstStep);
  turn.place = arith::AddIOp::create(inner, loc, mulI32(inner, ofGroup, group),
                                     divI32(inner, ofPlace, together));
  Value ofSums = remI32(inner, inPlaces, 1 + numRows);
  turn.isState = isBelow(inner, ofSums, 1);
  Value isBehind;
  if (numHeld) {
    turn.place =
        arith::SelectOp::create(inner, loc, isBelow(inner, number, behindHeld),
                                remI32(inner, number, places), turn.place);
    isBehind = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::sge,
                                     number, i32(inner, behindHeld));
    turn.isState = arith::AndIOp::create(inner, loc, isBehind, turn.isState);
  }
  auto isEqual = [&](Value value, int64_t other) -> Value {
    return arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::eq, value,
                                 i32(inner, other));
  };
  for (int64_t sum = 0; sum < numHeld; ++sum)
    turn.isSum.push_back(isEqual(divI32(inner, number, places), sum));
  for (int64_t row = 0; row < numRows; ++row) {
    Value isRow = isEqual(ofSums, row + 1);
    turn.isSum.push_back(
        isBehind ? arith::AndIOp::create(inner, loc, isBehind, isRow) : isRow);
  }
  return turn;
}

/// Where \p turn is written.
SmallVector<Value> SumScanFuncs::slotOf(OpBuilder &inner, ValueRange args,
                                        const Turn &turn) {
  Value ofSum = turn.step;
  if (parts > 1)
    ofSum = arith::AddIOp::create(inner, loc, mulI32(inner, turn.step, parts),
                                  remI32(inner, turn.place, parts));
  SmallVector<Value> at(args.take_front(rank));
  at.back() =
      arith::SelectOp::create(inner, loc, turn.isState, turn.place, ofSum);
  return at;
}

/// What the turn of \p args writes: an element, and the others as they are.
FailureOr<SmallVector<Value>> SumScanFuncs::valuesOfTurn(OpBuilder &inner,
                                                         ValueRange args) {
  Turn turn = turnOf(inner, args);
  SmallVector<Value> next, terms, left;
  if (failed(evaluate(inner, op.getNext(), args, turn, next)) ||
      (numHeld && failed(evaluate(inner, op.getHold(), args, turn, terms))) ||
      failed(evaluate(inner, op.getLeave(), args, turn, left)))
    return failure();
  llvm::append_range(terms, left);
  for (Value element : next)
    if (auto add = element.getDefiningOp<arith::AddFOp>())
      relaxSums(add.getResult());
  SmallVector<Value> values(
      readSlot(inner, args, slotOf(inner, args, turn).back()).getResults());
  for (auto [element, value] : llvm::enumerate(values)) {
    if (int64_t(element) < numStates) {
      value = arith::SelectOp::create(inner, loc, turn.isState, next[element],
                                      value);
      continue;
    }
    int64_t sum = element - numStates;
    Value more = arith::AddFOp::create(inner, loc, value, terms[sum]);
    relaxSums(more);
    // Else the first place, of each part, begins it.
    if (!inGroups)
      more = arith::SelectOp::create(
          inner, loc, isBelow(inner, turn.place, parts), terms[sum], more);
    if (mutated("sum-scan.forget-sum"))
      more = terms[sum];
    value = arith::SelectOp::create(inner, loc, turn.isSum[sum], more, value);
  }
  return values;
}

/// An update that takes \p number steps at once, as often as \p count says,
/// from \p first on; null: the first.
LogicalResult SumScanFuncs::writeSteps(Extent count, Value first,
                                       int64_t number) {
  together = number;
  firstStep = first;
  group = placesOfGroup();
  Extent turns = kernel.fixedExtent(loc, numHeld * places +
                                             group * together * (1 + numRows)),
         groups = kernel.fixedExtent(loc, places / group);
  SmallVector<StringRef> loops{"r0", "r1", "r2"};
  SmallVector<Value> bounds;
  for (const Extent &extent : {turns, groups, count}) {
    bounds.push_back(i32(b, 0));
    bounds.push_back(extent.value);
  }
  auto update = halide::UpdateOp::create(b, loc, states, loops, bounds);
  update.fill(b, update.getAt(),
              [&](OpBuilder &inner, Location, ValueRange args) {
                return slotOf(inner, args, turnOf(inner, args));
              });
  bool ok = true;
  update.fill(
      b, update.getSet(),
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        FailureOr<SmallVector<Value>> values = valuesOfTurn(inner, args);
        ok = succeeded(values);
        return ok ? *values : SmallVector<Value>();
      });
  func->updates.push_back(update);
  func->reductions.push_back({turns, groups, count});
  return success(ok);
}

LogicalResult SumScanFuncs::writeSteps() {
  int64_t number = mostTogether();
  if (number == 1)
    return writeSteps(steps, Value(), 1);
  if (steps.fixed) {
    int64_t times = *steps.fixed / number, rest = *steps.fixed % number;
    if (times && failed(writeSteps(kernel.fixedExtent(loc, times), {}, number)))
      return failure();
    return rest ? writeSteps(kernel.fixedExtent(loc, rest),
                             i32(b, times * number), 1)
                : success();
  }
  Value times = divI32(b, steps.value, number);
  Value first = mulI32(b, times, number);
  Value rest = mutated("sum-scan.leave-last-step")
                   ? i32(b, 0)
                   : arith::SubIOp::create(b, loc, steps.value, first);
  return success(succeeded(writeSteps({times, std::nullopt}, {}, number)) &&
                 succeeded(writeSteps({rest, std::nullopt}, first, 1)));
}

/// The result \p tensor: the sum \p sum in each step.
void SumScanFuncs::writeRow(unsigned sum, Value tensor) {
  SmallVector<std::string> vars(names);
  SmallVector<Extent> extents(outer);
  vars.insert(vars.begin() + op.sumAxis(), "t");
  extents.insert(extents.begin() + op.sumAxis(), steps);
  kernel.addOutput(
      loc, types[numStates + sum], vars, extents, tensor,
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        SmallVector<Value> dims(args);
        Value step = mutated("sum-scan.first-row") ? i32(inner, 0) : dims[1];
        dims.erase(dims.begin() + 1);
        return {readSum(inner, dims, step,
                        mutated("sum-scan.first-sum") ? 0 : sum)};
      });
}

void SumScanFuncs::writeLast(unsigned state) {
  SmallVector<std::string> vars(names);
  SmallVector<Extent> extents(outer);
  vars.insert(vars.begin() + op.sumAxis(), "e");
  extents.insert(extents.begin() + op.sumAxis(),
                 kernel.fixedExtent(loc, places));
  kernel.addOutput(
      loc, types[state], vars, extents, op.getStates()[state],
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        SmallVector<Value> dims(args);
        Value e = mutated("sum-scan.first-place") ? i32(inner, 0) : dims[1];
        dims.erase(dims.begin() + 1);
        return {readSlot(inner, dims, e).getResult(state)};
      });
}

LogicalResult SumScanFuncs::run() {
  findExtents();
  writeStates();
  if (failed(writeStarts()) || failed(writeSteps()))
    return failure();
  SmallVector<Value> sums(op.getHeld());
  llvm::append_range(sums, op.getRows());
  for (auto [number, sum] : llvm::enumerate(sums))
    if (!sum.use_empty())
      writeRow(number, sum);
  for (auto [state, result] : llvm::enumerate(op.getStates()))
    if (!result.use_empty())
      writeLast(state);
  return success();
}

LogicalResult KernelTranslator::sumScan(attn::SumScanOp op) {
  return SumScanFuncs(*this, op).run();
}
