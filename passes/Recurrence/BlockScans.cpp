//===- BlockScans.cpp - recurrences whose elements are each its own -------===//
//
// Where an element of the next states is a function of the same element of the
// states before, a kernel takes as many steps at once as a cache holds
// (attn.recurrence); what rows make of the states is computed for all of them
// together, products with weights among it.
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/Rows.h"
#include "passes/Algebra/TensorExpr.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Recurrence/PartsLoop.h"
#include "passes/Recurrence/ShareExponential.h"
#include "passes/Recurrence/StepBody.h"
#include "passes/Recurrence/StepRegion.h"
#include "passes/Recurrence/SumScans.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace heed {
#define GEN_PASS_DEF_ATTNBLOCKSCANS
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

/// One recurrence that may be taken in blocks.
class Blocker {
public:
  explicit Blocker(attn::ScanOp scan)
      : scan(scan), exprs(scan.getContext()), body(scan, exprs), b(scan) {}
  void run();

private:
  bool isPlain();
  bool openStates();
  bool areOwn();
  bool matchRows();
  bool matchElements();
  /// Whether rows have the steps as their last axis, and are no numbers.
  bool isAlongRows() {
    return !vars.empty() && scan.getAxes()[0] == int64_t(vars.size());
  }
  OpFoldResult stepsOfBlock();
  OpFoldResult stepsOfTile();
  attn::ElementScanOp writeElementScan(ValueRange states, Value first,
                                       OpFoldResult length);
  SmallVector<Value> writeElements(ValueRange states, ValueRange outs,
                                   Value first, OpFoldResult length);
  attn::RecurrenceOp writeRecurrence(ValueRange states, Value first,
                                     OpFoldResult length);
  Value writeRows(unsigned row, Value first, OpFoldResult length,
                  ArrayRef<Value> before, ArrayRef<Value> after);
  Value insert(unsigned row, Value rows, Value out, Value first,
               OpFoldResult length);
  SmallVector<Value> writeBlock(ValueRange states, ValueRange outs, Value first,
                                OpFoldResult length);

  attn::ScanOp scan;
  Exprs exprs;
  StepBody body;
  OpBuilder b;
  SmallVector<unsigned> vars; ///< of the states' axes
  SmallVector<ExprRef> at;
  SmallVector<ExprRef> next; ///< elements of the states
  SmallVector<SmallVector<unsigned>> rowVars;
  SmallVector<ExprRef> rows; ///< elements of the rows
  bool isOfElements = false; ///< an element of a row is of that of the states
  /// Why it may not.
  std::string why = "elements of the next state are made of others of the "
                    "state before";
};

/// Whether a kernel may take steps of the scan at all.
bool Blocker::isPlain() {
  if (!llvm::all_of(scan.getBody().front().without_terminator(),
                    [](Operation &op) { return isMemoryEffectFree(&op); })) {
    why = "what a step does besides is done in order";
    return false;
  }
  for (Type type : scan.getResultTypes())
    if (llvm::is_contained(cast<RankedTensorType>(type).getShape(), 0)) {
      why = "there is nothing in its tensors";
      return false;
    }
  if (llvm::any_of(scan.getStarts(), [](Value start) {
        return getElementTypeOrSelf(start).isInteger(1);
      })) {
    why = "a state of truth values";
    return false;
  }
  return true;
}

/// Whether the next states, all alike, are expressions of the states before.
bool Blocker::openStates() {
  exprs.indexVars(scan.carried()[0], vars, at);
  SmallVector<Value> carried(scan.carried());
  for (auto [k, state] : llvm::enumerate(carried)) {
    auto type = cast<RankedTensorType>(state.getType());
    if (type.getRank() != int64_t(vars.size()))
      return false;
    for (auto [axis, v] : llvm::enumerate(vars))
      if (exprs.extentOf(state, axis) != exprs.extent(v))
        return false;
    next.push_back(
        body.open(exprs.read(scan.terminator().getStates()[k], at), carried));
    if (!next.back())
      return false;
  }
  shareExponentials(exprs, next);
  return true;
}

/// Whether each element of a state is a function of its own.
bool Blocker::areOwn() {
  SmallVector<Value> carried(scan.carried());
  bool own = true;
  for (ExprRef element : next)
    Exprs::walk(element, [&](ExprRef e) {
      own &= e->kind != ExprKind::Reduce &&
             (e->kind != ExprKind::Read ||
              !llvm::is_contained(carried, e->value) ||
              ArrayRef<ExprRef>(e->operands) == ArrayRef<ExprRef>(at));
    });
  return own;
}

bool Blocker::matchRows() {
  SmallVector<Value> kept(scan.carried());
  llvm::append_range(kept, scan.terminator().getStates());
  for (Value row : scan.terminator().getRows()) {
    SmallVector<ExprRef> place;
    exprs.indexVars(row, rowVars.emplace_back(), place);
    rows.push_back(body.open(exprs.read(row, place), kept));
    if (!rows.back()) {
      why = "a row is no expression of the states";
      return false;
    }
  }
  return true;
}

/// Whether each row has the axes of the states and the steps, the same way, and
/// an element of it is made of that element of the states.
bool Blocker::matchElements() {
  SmallVector<Value> kept(scan.carried());
  llvm::append_range(kept, scan.terminator().getStates());
  if (rows.empty() || !llvm::all_equal(scan.getAxes()) ||
      !llvm::all_equal(scan.getReversed()))
    return false;
  for (auto [element, own] : llvm::zip(rows, rowVars)) {
    SmallVector<ExprRef> place;
    for (unsigned v : own)
      place.push_back(exprs.var(v));
    bool isOwn = own.size() == vars.size();
    for (unsigned k = 0; isOwn && k < own.size(); ++k)
      isOwn = exprs.extent(own[k]) == exprs.extent(vars[k]);
    Exprs::walk(element, [&](ExprRef e) {
      isOwn &=
          e->kind != ExprKind::Reduce &&
          (e->kind != ExprKind::Read || !llvm::is_contained(kept, e->value) ||
           ArrayRef<ExprRef>(e->operands) == ArrayRef<ExprRef>(place));
    });
    if (!isOwn)
      return false;
  }
  return true;
}

/// As many steps as leave what a tile of states was in half of a second cache:
/// a tile is a vector. Where rows lie along the steps these are read and
/// written as long as they may be. Else a step is a whole row of memory, and as
/// many of these go by as registers hold of a tile, more of short ones.
OpFoldResult Blocker::stepsOfTile() {
  constexpr int64_t tile = 16, elements = 1 << 17;
  int64_t states = scan.getStarts().size();
  if (isAlongRows())
    return b.getIndexAttr(std::max<int64_t>(64, elements / tile / states));
  constexpr int64_t most = 512, least = 8, row = 1 << 15;
  std::optional<int64_t> known = 1;
  for (unsigned v : vars)
    if (std::optional<int64_t> size = Exprs::constantInt(exprs.extent(v));
        known && size)
      *known *= *size;
    else
      known = std::nullopt;
  if (!known)
    return b.getIndexAttr(least);
  return b.getIndexAttr(
      std::clamp<int64_t>(llvm::PowerOf2Ceil(row / *known), least, most));
}

/// As many steps as leave all states in half of a second cache, 64 at most and
/// 4 at least; where a call has their extents, chosen there.
OpFoldResult Blocker::stepsOfBlock() {
  constexpr int64_t most = 64, least = 4, elements = 1 << 16;
  int64_t known = scan.getStarts().size();
  Value all;
  Location loc = scan.getLoc();
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  for (unsigned v : vars) {
    ExprRef extent = exprs.extent(v);
    if (std::optional<int64_t> size = Exprs::constantInt(extent))
      known *= *size;
    else if (Value size = writeExtent(b, loc, extent); all)
      all = arith::MulIOp::create(b, loc, all, size);
    else
      all = size;
  }
  if (!all)
    return b.getIndexAttr(std::clamp<int64_t>(elements / known, least, most));
  Value steps = number(least);
  for (int64_t more = 2 * least; more <= most; more *= 2) {
    Value fits = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, all,
                                       number(elements / more / known));
    steps = arith::SelectOp::create(b, loc, fits, number(more), steps);
  }
  return steps;
}

attn::RecurrenceOp Blocker::writeRecurrence(ValueRange states, Value first,
                                            OpFoldResult length) {
  Location loc = scan.getLoc();
  std::optional<int64_t> steps = getConstantIntValue(length);
  Value count =
      steps ? arith::ConstantIndexOp::create(b, loc, *steps + 1).getResult()
            : arith::AddIOp::create(b, loc, cast<Value>(length),
                                    arith::ConstantIndexOp::create(b, loc, 1))
                  .getResult();
  SmallVector<Value> sizes;
  for (unsigned v : vars)
    sizes.push_back(writeExtent(b, loc, exprs.extent(v)));
  SmallVector<Type> types;
  for (Value state : states) {
    auto type = cast<RankedTensorType>(state.getType());
    SmallVector<int64_t> shape{steps ? *steps + 1 : ShapedType::kDynamic};
    llvm::append_range(shape, type.getShape());
    types.push_back(RankedTensorType::get(shape, type.getElementType()));
  }
  Value from = mutated("block-scans.begin-again") ? scan.getLow() : first;
  auto op =
      attn::RecurrenceOp::create(b, loc, types, from, count, sizes, states);
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&op.getNext());
  ExprWriter writer(b, loc);
  writer.bind(exprs.scalar(scan.step()),
              block->addArgument(b.getIndexType(), loc));
  for (unsigned v : vars)
    writer.bind(v, block->addArgument(b.getIndexType(), loc));
  for (Value state : scan.carried())
    writer.bind(exprs.read(state, at),
                block->addArgument(getElementTypeOrSelf(state), loc));
  SmallVector<Value> values;
  for (ExprRef element : next)
    values.push_back(writer.write(element));
  attn::NextOp::create(b, loc, values);
  return op;
}

/// What \p row is in the steps of a block, its axes as in the output: of the
/// states \p before and \p after each step.
Value Blocker::writeRows(unsigned row, Value first, OpFoldResult length,
                         ArrayRef<Value> before, ArrayRef<Value> after) {
  Type index = b.getIndexType();
  unsigned position = exprs.freshVar(exprs.fold(length));
  ExprRef turn = exprs.var(position);
  if (scan.getReversed()[row] != mutated("block-scans.other-direction"))
    turn = exprs.op(
        "arith.subi", index,
        {exprs.op("arith.subi", index, {exprs.fold(length), exprs.index(1)}),
         turn});
  ExprRef step = exprs.op("arith.addi", index, {exprs.scalar(first), turn});
  SmallVector<Value> carried(scan.carried());
  SmallVector<Value> yielded(scan.terminator().getStates());
  ExprRef element = exprs.rewrite(rows[row], [&](ExprRef e) -> ExprRef {
    if (body.isStep(e))
      return step;
    if (e->kind != ExprKind::Read)
      return nullptr;
    SmallVector<ExprRef> place{turn};
    llvm::append_range(place, e->operands);
    if (auto *old = llvm::find(carried, e->value); old != carried.end())
      return exprs.read((mutated("block-scans.read-after")
                             ? after
                             : before)[old - carried.begin()],
                        place);
    if (auto *own = llvm::find(yielded, e->value); own != yielded.end())
      return exprs.read(after[own - yielded.begin()], place);
    return nullptr;
  });
  SmallVector<unsigned> order = rowVars[row];
  order.insert(order.begin() + scan.getAxes()[row], position);
  return writeTensor(b, scan.getLoc(), exprs, element, order);
}

/// \p out with the rows of a block where its steps are.
Value Blocker::insert(unsigned row, Value rows, Value out, Value first,
                      OpFoldResult length) {
  Location loc = scan.getLoc();
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, loc, scan.getOuts()[row]);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
      strides(sizes.size(), b.getIndexAttr(1));
  Value place;
  if (scan.getReversed()[row]) {
    Value rest = arith::SubIOp::create(b, loc, scan.getHigh(), first);
    place = arith::SubIOp::create(
        b, loc, rest, getValueOrCreateConstantIndexOp(b, loc, length));
  } else {
    place = arith::SubIOp::create(b, loc, first, scan.getLow());
  }
  unsigned axis = scan.getAxes()[row];
  offsets[axis] = mutated("block-scans.first-place")
                      ? OpFoldResult(b.getIndexAttr(0))
                      : OpFoldResult(place);
  sizes[axis] = length;
  return tensor::InsertSliceOp::create(b, loc, rows, out, offsets, sizes,
                                       strides);
}

/// The states and the outputs after the steps of a block.
SmallVector<Value> Blocker::writeBlock(ValueRange states, ValueRange outs,
                                       Value first, OpFoldResult length) {
  Location loc = scan.getLoc();
  attn::RecurrenceOp op = writeRecurrence(states, first, length);
  SmallVector<Value> results, before, after;
  for (auto [all, state] : llvm::zip(op.getHistories(), states)) {
    auto type = cast<RankedTensorType>(all.getType());
    attn::RowPlace place;
    place.offsets.assign(type.getRank(), b.getIndexAttr(0));
    place.dropped.assign(type.getRank(), false);
    place.sizes.push_back(length);
    for (auto [axis, size] : llvm::enumerate(op.getSizes()))
      place.sizes.push_back(type.isDynamicDim(axis + 1)
                                ? OpFoldResult(size)
                                : b.getIndexAttr(type.getDimSize(axis + 1)));
    SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
    before.push_back(tensor::ExtractSliceOp::create(b, loc, all, place.offsets,
                                                    place.sizes, strides));
    place.offsets[0] = b.getIndexAttr(1);
    after.push_back(tensor::ExtractSliceOp::create(b, loc, all, place.offsets,
                                                   place.sizes, strides));
    place.offsets[0] = mutated("block-scans.forget-last-step")
                           ? OpFoldResult(b.getIndexAttr(0))
                           : length;
    place.sizes[0] = b.getIndexAttr(1);
    place.dropped[0] = true;
    results.push_back(attn::readRow(b, loc, all, place,
                                    cast<RankedTensorType>(state.getType())));
  }
  for (unsigned row = 0; row < rows.size(); ++row)
    results.push_back(insert(row, writeRows(row, first, length, before, after),
                             outs[row], first, length));
  return results;
}

attn::ElementScanOp Blocker::writeElementScan(ValueRange states, Value first,
                                              OpFoldResult length) {
  Location loc = scan.getLoc();
  std::optional<int64_t> steps = getConstantIntValue(length);
  unsigned axis = scan.getAxes()[0];
  bool isWhole = first == scan.getLow();
  Value all = isWhole
                  ? Value()
                  : arith::SubIOp::create(b, loc, scan.getHigh(), scan.getLow())
                        .getResult();
  SmallVector<Value> sizes;
  for (unsigned v : vars)
    sizes.push_back(writeExtent(b, loc, exprs.extent(v)));
  SmallVector<Type> types;
  for (Value row : scan.terminator().getRows()) {
    auto type = cast<RankedTensorType>(row.getType());
    SmallVector<int64_t> shape(
        cast<RankedTensorType>(states[0].getType()).getShape());
    shape.insert(shape.begin() + axis, steps.value_or(ShapedType::kDynamic));
    types.push_back(RankedTensorType::get(shape, type.getElementType()));
  }
  auto op = attn::ElementScanOp::create(
      b, loc, types, states.getTypes(),
      mutated("block-scans.elements-begin-again") ? scan.getLow() : first,
      getValueOrCreateConstantIndexOp(b, loc, length), all, sizes, states, axis,
      scan.getReversed()[0] != mutated("block-scans.elements-other-direction"));
  SmallVector<Value> carried(scan.carried()), both(carried);
  llvm::append_range(both, scan.terminator().getStates());
  StepRegion region{b, loc, exprs, scan.step(), unsigned(vars.size())};
  region.write(op.getNext(), next, {vars}, carried);
  region.write(op.getLeave(), rows, rowVars, both);
  return op;
}

/// The states and the outputs after the steps of a block, in one kernel.
SmallVector<Value> Blocker::writeElements(ValueRange states, ValueRange outs,
                                          Value first, OpFoldResult length) {
  attn::ElementScanOp op = writeElementScan(states, first, length);
  SmallVector<Value> results(op.getStates());
  for (auto [row, values] : llvm::enumerate(op.getRows()))
    results.push_back(insert(row, values, outs[row], first, length));
  return results;
}

void Blocker::run() {
  if (scan.getStarts().empty())
    return; // no step waits for another
  std::optional<int64_t> count;
  if (std::optional<int64_t> low = getConstantIntValue(scan.getLow()),
      high = getConstantIntValue(scan.getHigh());
      low && high)
    count = *high - *low;
  // States are outputs then, not part of a history.
  if (count && *count <= 1)
    return remarkDeclined(scan, "attn-block-scans", "recurrence",
                          "no kernel of steps: there is one at most");
  bool isOpen = isPlain() && openStates() && matchRows(),
       own = isOpen && areOwn();
  isOfElements = own && matchElements();
  if (isOpen && !isOfElements &&
      writeSumScan({scan, exprs, body, vars, next, rowVars, rows}))
    return;
  if (!isOpen || !own)
    return remarkDeclined(scan, "attn-block-scans", "recurrence",
                          "step by step: " + why);
  Location loc = scan.getLoc();
  OpFoldResult size = isOfElements ? stepsOfTile() : stepsOfBlock();
  auto write = [&](ValueRange states, ValueRange outs, Value first,
                   OpFoldResult length) {
    return isOfElements ? writeElements(states, outs, first, length)
                        : writeBlock(states, outs, first, length);
  };
  std::optional<int64_t> block = getConstantIntValue(size);
  remarkDone(
      scan, "attn-block-scans", "form",
      block ? format("sequential: one kernel takes {} steps at once",
                     count ? std::clamp<int64_t>(*count, 0, *block) : *block)
            : "sequential: one kernel takes 4 to 64 steps at once, by "
              "the size of the state");
  if (count && block && *count > 0 && *count <= *block) {
    SmallVector<Value> results = write(scan.getStarts(), scan.getOuts(),
                                       scan.getLow(), b.getIndexAttr(*count));
    for (auto [result, value] : llvm::zip(scan.getResults(), results))
      result.replaceAllUsesWith(castTo(b, value, result.getType()));
    return scan.erase();
  }
  SmallVector<Value> starts(scan.getStarts());
  llvm::append_range(starts, scan.getOuts());
  unsigned numStates = scan.getStarts().size();
  auto writePart = [&](ValueRange carried, Value first, OpFoldResult length) {
    return write(carried.take_front(numStates), carried.drop_front(numStates),
                 first, length);
  };
  // The few steps of a tile in registers are as many as are known.
  if (isOfElements && !isAlongRows())
    scan.replaceAllUsesWith(loopOverWholeParts(
        b, loc, scan.getLow(), scan.getHigh(), *block, starts, writePart));
  else
    scan.replaceAllUsesWith(loopOverParts(b, loc, scan.getLow(), scan.getHigh(),
                                          size, starts, writePart));
  scan.erase();
}

struct BlockScans : heed::impl::AttnBlockScansBase<BlockScans> {
  void runOnOperation() override {
    SmallVector<attn::ScanOp> scans; // inner ones first
    getOperation().walk([&](attn::ScanOp scan) { scans.push_back(scan); });
    for (attn::ScanOp scan : scans)
      Blocker(scan).run();
  }
};

} // namespace
