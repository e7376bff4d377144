//===- KernelSumScan.cpp - sums over recurrences of single elements -------===//
//
// One func of all states, whose outermost dim is a slot: of each place of the
// summed axis, and behind those of what rows are in each step. An update takes
// the slots of the states step by step, and then sums over them.
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
  SmallVector<Value> slotsOfStep(OpBuilder &inner, ValueRange args);
  FailureOr<SmallVector<Value>> nextOf(OpBuilder &inner, ValueRange args);
  LogicalResult sumsOf(OpBuilder &inner, ValueRange args,
                       SmallVectorImpl<Value> &sums);
  void writeRow(unsigned row);
  void writeLast(unsigned state);
  /// An element's indices, outermost first, of vars \p args and its place \p e
  /// of the summed axis.
  SmallVector<Value> indices(ValueRange args, Value e);
  halide::ReadOp readSlot(OpBuilder &b, ValueRange args, Value slot);

  KernelTranslator &kernel;
  attn::SumScanOp op;
  OpBuilder &b;
  Location loc;
  unsigned rank;
  Value from;
  Extent steps;
  int64_t places = 0;             ///< of the summed axis
  SmallVector<Extent> kept;       ///< of the other axes, outermost first
  SmallVector<std::string> names; ///< of their vars
  SmallVector<Type> types;
  Value states;
  KernelFunc *func = nullptr;
};

} // namespace heed

void SumScanFuncs::findExtents() {
  auto extent = [&](Value size, Type type, unsigned axis) {
    auto tensor = cast<RankedTensorType>(type);
    return tensor.isDynamicDim(axis)
               ? Extent{kernel.size32(size), std::nullopt}
               : kernel.fixedExtent(loc, tensor.getDimSize(axis));
  };
  auto state = cast<RankedTensorType>(op.getStarts()[0].getType());
  steps = extent(op.getSteps(), op.getRows()[0].getType(), op.sumAxis());
  from = kernel.size32(op.getFrom());
  places = state.getDimSize(op.sumAxis());
  for (auto [axis, size] : llvm::enumerate(op.getSizes()))
    if (axis != op.sumAxis()) {
      kept.push_back(extent(size, state, axis));
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
  int64_t rows = op.getRows().size();
  Extent slots;
  if (steps.fixed)
    slots = kernel.fixedExtent(loc, places + rows * *steps.fixed);
  else
    slots.value = addI32(b, mulI32(b, steps.value, rows), places);
  KernelFunc f;
  f.func = halide::FuncOp::create(
      b, loc, "state", vars, types,
      [&](OpBuilder &inner, Location, ValueRange) {
        SmallVector<Value> values;
        for (Type type : types)
          values.push_back(halide::UndefOp::create(inner, loc, type));
        return values;
      });
  f.extents.assign(kept.rbegin(), kept.rend());
  f.extents.push_back(slots);
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

/// The states at \p args' slot after its step.
FailureOr<SmallVector<Value>> SumScanFuncs::nextOf(OpBuilder &inner,
                                                   ValueRange args) {
  Value e =
      arith::MinSIOp::create(inner, loc, args[rank], i32(inner, places - 1));
  Value step = arith::AddIOp::create(
      inner, loc, from,
      mutated("sum-scan.same-step") ? i32(inner, 0) : args[rank + 1]);
  SmallVector<Value> old(readSlot(inner, args, e).getResults()), values;
  if (failed(kernel.stepOf(inner, op.getNext(), step, indices(args, e), old,
                           values)))
    return failure();
  return values;
}

/// The sums of each row over the states as they are at \p args.
LogicalResult SumScanFuncs::sumsOf(OpBuilder &inner, ValueRange args,
                                   SmallVectorImpl<Value> &sums) {
  Value step = arith::AddIOp::create(inner, loc, from, args[rank + 1]);
  int64_t end = mutated("sum-scan.drop-last-place") ? places - 1 : places;
  for (int64_t place = 0; place < end; ++place) {
    Value e = i32(inner, place);
    SmallVector<Value> here(readSlot(inner, args, e).getResults()), terms;
    if (failed(kernel.stepOf(inner, op.getLeave(), step, indices(args, e), here,
                             terms)))
      return failure();
    if (sums.empty()) {
      sums = terms;
      continue;
    }
    for (auto [sum, term] : llvm::zip_equal(sums, terms))
      sum = arith::AddFOp::create(inner, loc, sum, term);
    relaxSums(sums);
  }
  return success();
}

/// Where \p args of the update are written: a state, or a row's step.
SmallVector<Value> SumScanFuncs::slotsOfStep(OpBuilder &inner,
                                             ValueRange args) {
  Value r = args[rank], last = i32(inner, places);
  Value row = arith::MaxSIOp::create(inner, loc, addI32(inner, r, -places),
                                     i32(inner, 0));
  Value slot = arith::AddIOp::create(
      inner, loc, last,
      arith::AddIOp::create(inner, loc,
                            arith::MulIOp::create(inner, loc, row, steps.value),
                            args[rank + 1]));
  Value isState =
      arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, r, last);
  SmallVector<Value> at(args.take_front(rank));
  at.back() = arith::SelectOp::create(inner, loc, isState, r, slot);
  return at;
}

LogicalResult SumScanFuncs::writeSteps() {
  int64_t rows = op.getRows().size();
  SmallVector<StringRef> loops{"r0", "r1"};
  SmallVector<Value> bounds{i32(b, 0), i32(b, places + rows), i32(b, 0),
                            steps.value};
  auto update = halide::UpdateOp::create(b, loc, states, loops, bounds);
  update.fill(b, update.getAt(),
              [&](OpBuilder &inner, Location, ValueRange args) {
                return slotsOfStep(inner, args);
              });
  bool ok = true;
  update.fill(
      b, update.getSet(),
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        FailureOr<SmallVector<Value>> next = nextOf(inner, args);
        SmallVector<Value> sums;
        ok = succeeded(next) && succeeded(sumsOf(inner, args, sums));
        if (!ok)
          return {};
        // What is no row's is not read.
        Value sum = sums.back();
        auto isAt = [&](arith::CmpIPredicate predicate, int64_t place) {
          return arith::CmpIOp::create(inner, loc, predicate, args[rank],
                                       i32(inner, place));
        };
        for (int64_t row = rows - 2; row >= 0; --row)
          sum = arith::SelectOp::create(
              inner, loc, isAt(arith::CmpIPredicate::eq, places + row),
              sums[mutated("sum-scan.first-sum") ? 0 : row], sum);
        Value isState = isAt(arith::CmpIPredicate::slt, places);
        SmallVector<Value> values;
        for (auto [k, value] : llvm::enumerate(*next)) {
          Value other = sum;
          if (k > 0)
            other = arith::ConstantOp::create(
                inner, loc, inner.getZeroAttr(value.getType()));
          values.push_back(
              arith::SelectOp::create(inner, loc, isState, value, other));
        }
        return values;
      });
  func->updates.push_back(update);
  func->reductions.push_back({kernel.fixedExtent(loc, places + rows), steps});
  return success(ok);
}

void SumScanFuncs::writeRow(unsigned row) {
  SmallVector<std::string> vars(names);
  SmallVector<Extent> extents(kept);
  vars.insert(vars.begin() + op.sumAxis(), "t");
  extents.insert(extents.begin() + op.sumAxis(), steps);
  kernel.addOutput(
      loc, types[0], vars, extents, op.getRows()[row],
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        // The steps are the second var, if not the only one of the row.
        SmallVector<Value> dims(args);
        Value turn = dims[1];
        dims.erase(dims.begin() + 1);
        Value first =
            addI32(inner, mulI32(inner, steps.value, int64_t(row)), places);
        Value slot = arith::AddIOp::create(
            inner, loc, first,
            mutated("sum-scan.first-row") ? i32(inner, 0) : turn);
        return {readSlot(inner, dims, slot).getResult(0)};
      });
}

void SumScanFuncs::writeLast(unsigned state) {
  SmallVector<std::string> vars(names);
  SmallVector<Extent> extents(kept);
  vars.insert(vars.begin() + op.sumAxis(), "e");
  extents.insert(extents.begin() + op.sumAxis(),
                 kernel.fixedExtent(loc, places));
  kernel.addOutput(
      loc, types[state], vars, extents, op.getStates()[state],
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        SmallVector<Value> dims(args);
        Value e = dims[1];
        dims.erase(dims.begin() + 1);
        if (mutated("sum-scan.first-place"))
          e = i32(inner, 0);
        return {readSlot(inner, dims, e).getResult(state)};
      });
}

LogicalResult SumScanFuncs::run() {
  findExtents();
  writeStates();
  if (failed(writeStarts()) || failed(writeSteps()))
    return failure();
  for (auto [row, result] : llvm::enumerate(op.getRows()))
    if (!result.use_empty())
      writeRow(row);
  for (auto [state, result] : llvm::enumerate(op.getStates()))
    if (!result.use_empty())
      writeLast(state);
  return success();
}

LogicalResult KernelTranslator::sumScan(attn::SumScanOp op) {
  return SumScanFuncs(*this, op).run();
}
