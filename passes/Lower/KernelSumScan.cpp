//===- KernelSumScan.cpp - recurrences of columns, with their sums --------===//
//
// One func, whose outermost dim is a slot: of each place of a column, of each
// sum over it while that is added up, and of what a row is in each step. The
// turns of its update take a step: for each held sum the places; then each
// place, with the terms of rows behind it; then what is kept of the sums. A
// schedule unrolls them, so that slots and choices are numbers.
//
// Where nothing is held and a step only adds a product, loads and stores would
// take longest: a place waits for no other, and takes two steps while it is in
// a register. A second update takes the step that may be left.
#include "passes/Lower/KernelTranslator.h"

#include "dialects/Attn/Dialect.h"
#include "passes/Mutation.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

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
  /// What a turn behind those of held sums is about.
  struct Turn {
    Value place, step, sum; ///< sum: 0 for the place itself, else of a row
  };
  Turn turnOf(OpBuilder &inner, Value turn);
  SmallVector<Value> slotOfTurn(OpBuilder &inner, ValueRange args);
  FailureOr<SmallVector<Value>> valuesOfTurn(OpBuilder &inner, ValueRange args);
  Value keptOfTurn(OpBuilder &inner, ValueRange args);
  LogicalResult evaluate(OpBuilder &inner, Region &region, ValueRange args,
                         Value e, Value number, SmallVectorImpl<Value> &values);
  Value stepOfTurn(OpBuilder &inner, ValueRange args, Value number);
  Value added(OpBuilder &inner, ValueRange args, Value e, Value slot,
              Value term);
  void writeRow(unsigned place, Value tensor);
  void writeLast(unsigned state);
  /// An element's indices, outermost first, of vars \p args and its place \p e
  /// of the column.
  SmallVector<Value> indices(ValueRange args, Value e);
  halide::ReadOp readSlot(OpBuilder &b, ValueRange args, Value slot);
  Value clampPlace(OpBuilder &inner, Value e) {
    e = arith::MaxSIOp::create(inner, loc, e, i32(inner, 0));
    return arith::MinSIOp::create(inner, loc, e, i32(inner, places - 1));
  }
  Value isBelow(OpBuilder &inner, Value turn, int64_t end) {
    return arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, turn,
                                 i32(inner, end));
  }
  /// Slots in which held sums and rows are added up.
  int64_t slotOfSum(int64_t sum) { return places + sum; }
  /// The first slot of what is kept of the \p number-th of `kept`.
  int64_t slotOfKept(int64_t number) {
    return places + numHeld + numRows * mostTogether() +
           number * int64_t(op.getMost());
  }
  /// Where the turns of places, and those that keep sums, begin.
  int64_t firstPlace() { return numHeld * places; }
  int64_t firstKept() {
    return firstPlace() + places * together * (1 + numRows);
  }
  int64_t mostTogether() { return addsProduct() ? 2 : 1; }
  bool addsProduct();

  KernelTranslator &kernel;
  attn::SumScanOp op;
  OpBuilder &b;
  Location loc;
  unsigned rank;
  Value from;
  Extent steps;
  int64_t places = 0, numHeld = 0, numRows = 0;
  int64_t together = 1;      ///< steps that a place takes before the next one
  Value firstStep;           ///< of the update, behind `from`
  SmallVector<int64_t> kept; ///< sums that are results: held ones, rows
  SmallVector<Extent> outer; ///< of the other axes, outermost first
  SmallVector<std::string> names; ///< of their vars
  SmallVector<Type> types;
  Value states;
  KernelFunc *func = nullptr;
};

} // namespace heed

/// Whether a step adds a product to the state, which does not stand in it, and
/// nothing is held.
bool SumScanFuncs::addsProduct() {
  Block &step = op.getNext().front();
  auto add = step.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add || numHeld || op.getStarts().size() != 1)
    return false;
  Value state = step.getArgument(1 + rank);
  return state.hasOneUse() && ((add.getLhs() == state &&
                                add.getRhs().getDefiningOp<arith::MulFOp>()) ||
                               (add.getRhs() == state &&
                                add.getLhs().getDefiningOp<arith::MulFOp>()));
}

void SumScanFuncs::findExtents() {
  auto state = cast<RankedTensorType>(op.getStarts()[0].getType());
  SmallVector<Value> sums(op.getHeld());
  llvm::append_range(sums, op.getRows());
  numHeld = op.getHeld().size();
  numRows = op.getRows().size();
  steps = {kernel.size32(op.getSteps()), std::nullopt};
  for (auto [number, sum] : llvm::enumerate(sums)) {
    auto type = cast<RankedTensorType>(sum.getType());
    if (!type.isDynamicDim(op.sumAxis()))
      steps = kernel.fixedExtent(loc, type.getDimSize(op.sumAxis()));
    if (!sum.use_empty())
      kept.push_back(number);
  }
  from = kernel.size32(op.getFrom());
  places = state.getDimSize(op.sumAxis());
  for (auto [axis, size] : llvm::enumerate(op.getSizes()))
    if (axis != op.sumAxis()) {
      outer.push_back(state.isDynamicDim(axis)
                          ? Extent{kernel.size32(size), std::nullopt}
                          : kernel.fixedExtent(loc, state.getDimSize(axis)));
      names.push_back(format("d{}", axis));
    }
  for (Value start : op.getStarts())
    types.push_back(getElementTypeOrSelf(start));
}

/// All slots, of which nothing is known before the updates.
void SumScanFuncs::writeStates() {
  SmallVector<StringRef> vars(
      llvm::reverse(SmallVector<StringRef>(names.begin(), names.end())));
  vars.push_back("slot");
  KernelFunc f;
  f.func = halide::FuncOp::create(
      b, loc, "state", vars, types,
      [&](OpBuilder &inner, Location, ValueRange) {
        SmallVector<Value> values;
        for (Type type : types)
          values.push_back(halide::UndefOp::create(inner, loc, type));
        return values;
      });
  f.extents.assign(outer.rbegin(), outer.rend());
  f.extents.push_back(kernel.fixedExtent(loc, slotOfKept(kept.size())));
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
        return ok ? values : SmallVector<Value>();
      });
  func->updates.push_back(update);
  func->reductions.push_back({kernel.fixedExtent(loc, places)});
  return success(ok);
}

/// What \p region makes at place \p e, in the step \p number of those that are
/// taken together, of the states and the held sums as they are.
LogicalResult SumScanFuncs::evaluate(OpBuilder &inner, Region &region,
                                     ValueRange args, Value e, Value number,
                                     SmallVectorImpl<Value> &values) {
  Value step = mutated("sum-scan.same-step")
                   ? from
                   : arith::AddIOp::create(inner, loc, from,
                                           stepOfTurn(inner, args, number));
  SmallVector<Value> taken(readSlot(inner, args, e).getResults());
  for (int64_t sum = 0; sum < numHeld; ++sum)
    taken.push_back(
        readSlot(inner, args, i32(inner, slotOfSum(sum))).getResult(0));
  return kernel.stepOf(inner, region, step, indices(args, e), taken, values);
}

/// The step \p number of those that the turn of \p args takes, behind `from`.
Value SumScanFuncs::stepOfTurn(OpBuilder &inner, ValueRange args,
                               Value number) {
  Value step = mulI32(inner, args[rank + 1], together);
  if (together > 1)
    step = arith::AddIOp::create(inner, loc, step, number);
  return firstStep ? arith::AddIOp::create(inner, loc, step, firstStep) : step;
}

/// \p term more than the sum in \p slot; the first place begins it.
Value SumScanFuncs::added(OpBuilder &inner, ValueRange args, Value e,
                          Value slot, Value term) {
  Value old = readSlot(inner, args, slot).getResult(0);
  Value more = arith::AddFOp::create(inner, loc, old, term);
  relaxSums(more);
  Value isFirst = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::eq, e,
                                        i32(inner, 0));
  if (mutated("sum-scan.forget-sum"))
    return term;
  return arith::SelectOp::create(inner, loc, isFirst, term, more);
}

SumScanFuncs::Turn SumScanFuncs::turnOf(OpBuilder &inner, Value turn) {
  Value inPlaces = arith::MaxSIOp::create(
      inner, loc, addI32(inner, turn, -firstPlace()), i32(inner, 0));
  Value group = divI32(inner, inPlaces, 1 + numRows);
  return {clampPlace(inner, divI32(inner, group, together)),
          remI32(inner, group, together), remI32(inner, inPlaces, 1 + numRows)};
}

/// Where the turn of \p args is written.
SmallVector<Value> SumScanFuncs::slotOfTurn(OpBuilder &inner, ValueRange args) {
  Value turn = args[rank];
  Value number = arith::MaxSIOp::create(
      inner, loc, addI32(inner, turn, -firstKept()), i32(inner, 0));
  Value step = stepOfTurn(inner, args, remI32(inner, number, together));
  Value slot = arith::AddIOp::create(
      inner, loc, addI32(inner, step, slotOfKept(0)),
      mulI32(inner, divI32(inner, number, together), op.getMost()));
  Turn own = turnOf(inner, turn);
  Value ofPlace = arith::SelectOp::create(
      inner, loc, isBelow(inner, own.sum, 1), own.place,
      arith::AddIOp::create(inner, loc,
                            addI32(inner, own.sum, slotOfSum(numHeld) - 1),
                            mulI32(inner, own.step, numRows)));
  slot = arith::SelectOp::create(inner, loc, isBelow(inner, turn, firstKept()),
                                 ofPlace, slot);
  for (int64_t p = numHeld - 1; p >= 0; --p)
    slot = arith::SelectOp::create(inner, loc,
                                   isBelow(inner, turn, (p + 1) * places),
                                   i32(inner, slotOfSum(p)), slot);
  SmallVector<Value> at(args.take_front(rank));
  at.back() = slot;
  return at;
}

/// What the turn of \p args keeps of the sums.
Value SumScanFuncs::keptOfTurn(OpBuilder &inner, ValueRange args) {
  Value number = arith::MaxSIOp::create(
      inner, loc, addI32(inner, args[rank], -firstKept()), i32(inner, 0));
  Value ofStep = mulI32(inner, remI32(inner, number, together), numRows), value;
  for (int64_t k = int64_t(kept.size()) - 1; k >= 0; --k) {
    int64_t sum = mutated("sum-scan.first-sum") ? 0 : kept[k];
    Value own = readSlot(inner, args, addI32(inner, ofStep, slotOfSum(sum)))
                    .getResult(0);
    value = value ? arith::SelectOp::create(
                        inner, loc, isBelow(inner, number, (k + 1) * together),
                        own, value)
                  : own;
  }
  return value;
}

/// What the turn of \p args writes.
FailureOr<SmallVector<Value>> SumScanFuncs::valuesOfTurn(OpBuilder &inner,
                                                         ValueRange args) {
  Value turn = args[rank], value = keptOfTurn(inner, args);
  // Each place, and the terms of rows behind it.
  Turn own = turnOf(inner, turn);
  SmallVector<Value> next, terms;
  if (failed(evaluate(inner, op.getNext(), args, own.place, own.step, next)) ||
      failed(evaluate(inner, op.getLeave(), args, own.place, own.step, terms)))
    return failure();
  for (Value element : next)
    if (auto add = element.getDefiningOp<arith::AddFOp>())
      relaxSums(add.getResult());
  if (!value)
    value = next[0];
  value = arith::SelectOp::create(inner, loc, isBelow(inner, turn, firstKept()),
                                  next[0], value);
  for (int64_t row = 0; row < numRows; ++row) {
    Value isRow = arith::AndIOp::create(
        inner, loc, isBelow(inner, turn, firstKept()),
        arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::eq, own.sum,
                              i32(inner, row + 1)));
    Value slot = addI32(inner, mulI32(inner, own.step, numRows),
                        slotOfSum(numHeld + row));
    value = arith::SelectOp::create(
        inner, loc, isRow, added(inner, args, own.place, slot, terms[row]),
        value);
  }
  for (int64_t p = numHeld - 1; p >= 0; --p) {
    Value place = clampPlace(inner, addI32(inner, turn, -p * places));
    SmallVector<Value> held;
    if (failed(evaluate(inner, op.getHold(), args, place, i32(inner, 0), held)))
      return failure();
    value = arith::SelectOp::create(
        inner, loc, isBelow(inner, turn, (p + 1) * places),
        added(inner, args, place, i32(inner, slotOfSum(p)), held[p]), value);
  }
  // A sum has one element, the first state's.
  next[0] = value;
  Value isState = arith::AndIOp::create(
      inner, loc, isBelow(inner, turn, firstKept()),
      arith::AndIOp::create(
          inner, loc, isBelow(inner, own.sum, 1),
          arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::sge, turn,
                                i32(inner, firstPlace()))));
  for (Value &element : MutableArrayRef(next).drop_front())
    element = arith::SelectOp::create(
        inner, loc, isState, element,
        arith::ConstantOp::create(inner, loc,
                                  inner.getZeroAttr(element.getType())));
  return next;
}

/// An update that takes \p number steps at once, as often as \p count says,
/// from \p first on; null: the first.
LogicalResult SumScanFuncs::writeSteps(Extent count, Value first,
                                       int64_t number) {
  together = number;
  firstStep = first;
  int64_t turns = firstKept() + together * int64_t(kept.size());
  SmallVector<StringRef> loops{"r0", "r1"};
  SmallVector<Value> bounds{i32(b, 0), i32(b, turns), i32(b, 0), count.value};
  auto update = halide::UpdateOp::create(b, loc, states, loops, bounds);
  update.fill(b, update.getAt(),
              [&](OpBuilder &inner, Location, ValueRange args) {
                return slotOfTurn(inner, args);
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
  func->reductions.push_back({kernel.fixedExtent(loc, turns), count});
  return success(ok);
}

LogicalResult SumScanFuncs::writeSteps() {
  int64_t number = mostTogether();
  if (number == 1)
    return writeSteps(steps, Value(), 1);
  if (steps.fixed) {
    int64_t pairs = *steps.fixed / number, rest = *steps.fixed % number;
    if (pairs && failed(writeSteps(kernel.fixedExtent(loc, pairs), {}, number)))
      return failure();
    return rest ? writeSteps(kernel.fixedExtent(loc, rest),
                             i32(b, pairs * number), 1)
                : success();
  }
  Value pairs = divI32(b, steps.value, number);
  Value first = mulI32(b, pairs, number);
  Value rest = mutated("sum-scan.leave-last-step")
                   ? i32(b, 0)
                   : arith::SubIOp::create(b, loc, steps.value, first);
  return success(succeeded(writeSteps({pairs, std::nullopt}, {}, number)) &&
                 succeeded(writeSteps({rest, std::nullopt}, first, 1)));
}

/// The result \p tensor: the \p place-th of the sums that are kept.
void SumScanFuncs::writeRow(unsigned place, Value tensor) {
  SmallVector<std::string> vars(names);
  SmallVector<Extent> extents(outer);
  vars.insert(vars.begin() + op.sumAxis(), "t");
  extents.insert(extents.begin() + op.sumAxis(), steps);
  kernel.addOutput(
      loc, types[0], vars, extents, tensor,
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        SmallVector<Value> dims(args);
        Value slot = addI32(
            inner, mutated("sum-scan.first-row") ? i32(inner, 0) : dims[1],
            slotOfKept(place));
        dims.erase(dims.begin() + 1);
        return {readSlot(inner, dims, slot).getResult(0)};
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
  for (auto [place, sum] : llvm::enumerate(kept))
    writeRow(place,
             sum < numHeld ? op.getHeld()[sum] : op.getRows()[sum - numHeld]);
  for (auto [state, result] : llvm::enumerate(op.getStates()))
    if (!result.use_empty())
      writeLast(state);
  return success();
}

LogicalResult KernelTranslator::sumScan(attn::SumScanOp op) {
  return SumScanFuncs(*this, op).run();
}
