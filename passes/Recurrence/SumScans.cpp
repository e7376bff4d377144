//===- SumScans.cpp - rows that sum over states ---------------------------===//
//
// What rows read of the states are sums over one axis of them (a state-space
// model: y[c] = sum(e) q[e] * h[c,e]). The states get that axis as their last
// but one: lanes are elements of a row. What no step enters and would be
// computed, or read across lanes, in each step is computed before.
#include "passes/Recurrence/SumScans.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Recurrence/PartsLoop.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace heed;

namespace {

/// What of all states fits in registers, or nearly, for a lane.
constexpr int64_t mostPlaces = 64, leastLanes = 8;

class SumScans {
public:
  explicit SumScans(const ScanElements &all)
      : scan(all.scan), exprs(all.exprs), all(all), b(all.scan),
        loc(scan.getLoc()) {
    for (unsigned v : all.vars)
      at.push_back(exprs.var(v));
    yielded = SmallVector<Value>(scan.terminator().getStates());
  }
  bool match();
  void write();

private:
  bool readsStates(ExprRef element);
  bool addSum(ExprRef sum, ArrayRef<unsigned> row);
  bool liesAlong(ExprRef element);
  ExprRef hoist(ExprRef element);
  ExprRef store(ExprRef element);
  bool isFree(ExprRef element);
  int64_t stepsOfCall();
  OpFoldResult sizeOf(ExprRef extent);
  Value turn(Value tensor, ArrayRef<unsigned> from, ArrayRef<unsigned> to);
  void fill(Region &region, ArrayRef<ExprRef> elements, ValueRange states);
  SmallVector<Value> writePart(ValueRange carried, Value first,
                               OpFoldResult length);
  void replaceRow(unsigned row, ValueRange sumRows, ExprRef count);

  attn::ScanOp scan;
  Exprs &exprs;
  const ScanElements &all;
  OpBuilder b;
  Location loc;
  SmallVector<ExprRef> at;
  SmallVector<Value> yielded;
  std::optional<unsigned> summed; ///< axis of the states
  unsigned lane = 0;              ///< variable
  SmallVector<unsigned> order;    ///< the states' variables as they will lie
  SmallVector<ExprRef> sums;      ///< as rows have them
  SmallVector<ExprRef> terms; ///< what each sums, over the states' variables
  SmallVector<ExprRef> next;
  DenseMap<ExprRef, Value> stored;
};

} // namespace

bool SumScans::readsStates(ExprRef element) {
  bool reads = false;
  Exprs::walk(element, [&](ExprRef e) {
    reads |= e->kind == ExprKind::Read &&
             (llvm::is_contained(scan.carried(), e->value) ||
              llvm::is_contained(yielded, e->value));
  });
  return reads;
}

/// Whether \p sum, of the row over \p row, is one over an axis of the states
/// after a step, each at its own place.
bool SumScans::addSum(ExprRef sum, ArrayRef<unsigned> row) {
  if (!sum->isReduceBy("arith.addf") || sum->type != all.next[0]->type ||
      sum->binders.size() != 1 || row.size() + 1 != all.vars.size())
    return false;
  SmallVector<unsigned> binder;
  ExprRef term = exprs.open(sum, binder);
  Exprs::walk(term, [&](ExprRef e) {
    if (!summed && e->kind == ExprKind::Read &&
        llvm::is_contained(yielded, e->value))
      if (auto *found = llvm::find(e->operands, exprs.var(binder[0]));
          found != e->operands.end())
        summed = found - e->operands.begin();
  });
  if (!summed || sum->operands[1] != exprs.extent(all.vars[*summed]))
    return false;
  DenseMap<unsigned, ExprRef> own{{binder[0], at[*summed]}};
  for (auto [k, v] : llvm::enumerate(row)) {
    unsigned axis = k + (k >= *summed);
    if (exprs.extent(v) != exprs.extent(all.vars[axis]))
      return false;
    own[v] = at[axis];
  }
  term = exprs.substitute(term, own);
  bool isOwn = true;
  Exprs::walk(term, [&](ExprRef e) {
    isOwn &= e->kind != ExprKind::Reduce;
    if (e->kind == ExprKind::Read && readsStates(e))
      isOwn &= llvm::is_contained(yielded, e->value) &&
               ArrayRef<ExprRef>(e->operands) == ArrayRef<ExprRef>(at);
  });
  sums.push_back(sum);
  terms.push_back(term);
  return isOwn;
}

/// Whether what \p element reads in each step lies along the lanes, or is one
/// number for all of them.
bool SumScans::liesAlong(ExprRef element) {
  bool along = true;
  Exprs::walk(element, [&](ExprRef e) {
    if (e->kind == ExprKind::Read && !isFree(e) && !readsStates(e))
      for (ExprRef index : ArrayRef<ExprRef>(e->operands).drop_back())
        along &= !index->uses(lane);
  });
  return along;
}

bool SumScans::match() {
  ExprRef one = all.next[0];
  if (all.vars.size() < 2 || all.rows.empty() ||
      !isa<Float32Type, Float64Type>(one->type) ||
      !llvm::all_of(all.next, [&](ExprRef e) { return e->type == one->type; }))
    return false;
  for (unsigned row = 0; row < all.rows.size(); ++row) {
    bool ok = true;
    ExprRef rest =
        exprs.replaceOutermost(all.rows[row], [&](ExprRef e) -> ExprRef {
          if (e->kind != ExprKind::Reduce || !readsStates(e))
            return nullptr;
          ok &= llvm::is_contained(sums, e) || addSum(e, all.rowVars[row]);
          return exprs.parameter(exprs.freshVar(), e->type);
        });
    if (!ok || readsStates(rest))
      return false;
  }
  if (!summed)
    return false;
  std::optional<int64_t> places =
      Exprs::constantInt(exprs.extent(all.vars[*summed]));
  order.assign(all.vars.begin(), all.vars.end());
  order.erase(order.begin() + *summed);
  lane = order.back();
  order.insert(order.end() - 1, all.vars[*summed]);
  std::optional<int64_t> lanes = Exprs::constantInt(exprs.extent(lane));
  if (!places || *places * int64_t(all.next.size()) > mostPlaces ||
      (lanes && *lanes < leastLanes))
    return false;
  auto isAlong = [&](ExprRef e) { return liesAlong(e); };
  return llvm::all_of(all.next, isAlong) && llvm::all_of(terms, isAlong);
}

/// Whether no step and no state enters \p element.
bool SumScans::isFree(ExprRef element) {
  bool free = !readsStates(element);
  Exprs::walk(element, [&](ExprRef e) { free &= !all.body.isStep(e); });
  return free;
}

/// \p element, with what is free in it and worth it stored. A branch that may
/// not be taken is left as it is.
ExprRef SumScans::hoist(ExprRef element) {
  return exprs.replaceOutermost(element, [&](ExprRef e) -> ExprRef {
    if (!isFree(e) || !e->uses(lane) || !e->uses(all.vars[*summed]) ||
        !isa<FloatType>(e->type))
      return e->kind == ExprKind::If ? e : nullptr;
    bool isWorth = false;
    Exprs::walk(e, [&](ExprRef part) {
      if (part->kind == ExprKind::Op)
        isWorth |= part->isOp("arith.divf") ||
                   part->name->getDialectNamespace() == "math";
      if (part->kind == ExprKind::Read)
        for (ExprRef index : ArrayRef<ExprRef>(part->operands).drop_back())
          isWorth |= index->uses(lane);
    });
    return isWorth ? store(e) : nullptr;
  });
}

ExprRef SumScans::store(ExprRef element) {
  SmallVector<unsigned> own;
  SmallVector<ExprRef> place;
  for (unsigned v : order)
    if (element->uses(v)) {
      own.push_back(v);
      place.push_back(exprs.var(v));
    }
  Value &tensor = stored[element];
  if (!tensor)
    tensor = writeTensor(b, loc, exprs, element, own);
  return exprs.read(tensor, place);
}

OpFoldResult SumScans::sizeOf(ExprRef extent) {
  if (std::optional<int64_t> size = Exprs::constantInt(extent))
    return b.getIndexAttr(*size);
  return writeExtent(b, loc, extent);
}

/// \p tensor, whose axes are \p from, with the axes \p to.
Value SumScans::turn(Value tensor, ArrayRef<unsigned> from,
                     ArrayRef<unsigned> to) {
  if (from == to)
    return tensor;
  SmallVector<ExprRef> place;
  for (unsigned v : from)
    place.push_back(exprs.var(v));
  return writeTensor(b, loc, exprs, exprs.read(tensor, place), to);
}

/// Eight steps, and more where a step has few elements.
int64_t SumScans::stepsOfCall() {
  constexpr int64_t least = 8, most = 64, elements = 1 << 14;
  int64_t known = 1;
  for (unsigned v : order)
    if (v != all.vars[*summed])
      known *= Exprs::constantInt(exprs.extent(v)).value_or(elements);
  return std::clamp<int64_t>(
      llvm::PowerOf2Ceil(elements / std::max<int64_t>(known, 1)), least, most);
}

/// Fills \p region of the op with \p elements of \p states at their places.
void SumScans::fill(Region &region, ArrayRef<ExprRef> elements,
                    ValueRange states) {
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&region);
  ExprWriter writer(b, loc);
  writer.bind(exprs.scalar(scan.step()),
              block->addArgument(b.getIndexType(), loc));
  for (unsigned v : order)
    writer.bind(v, block->addArgument(b.getIndexType(), loc));
  for (Value state : states) {
    Value element = block->addArgument(getElementTypeOrSelf(state), loc);
    writer.bind(exprs.read(state, at), element);
  }
  SmallVector<Value> values;
  for (ExprRef element : elements)
    values.push_back(writer.write(element));
  attn::NextOp::create(b, loc, values);
}

/// The states and the sums after \p length steps from \p first.
SmallVector<Value> SumScans::writePart(ValueRange carried, Value first,
                                       OpFoldResult length) {
  unsigned numStates = scan.getStarts().size();
  ValueRange states = carried.take_front(numStates);
  SmallVector<Value> sizes;
  for (unsigned v : order)
    sizes.push_back(writeExtent(b, loc, exprs.extent(v)));
  auto state = cast<RankedTensorType>(states[0].getType());
  SmallVector<int64_t> shape(state.getShape());
  unsigned axis = shape.size() - 2;
  shape[axis] = getConstantIntValue(length).value_or(ShapedType::kDynamic);
  SmallVector<Type> rows(sums.size(),
                         RankedTensorType::get(shape, state.getElementType()));
  Value from = mutated("block-scans.sums-begin-again") ? scan.getLow() : first;
  auto op = attn::SumScanOp::create(
      b, loc, rows, states.getTypes(), from,
      getValueOrCreateConstantIndexOp(b, loc, length), sizes, states);
  fill(op.getNext(), next, scan.carried());
  fill(op.getLeave(), terms, yielded);
  SmallVector<Value> results(op.getStates());
  for (auto [row, out] :
       llvm::zip(op.getRows(), carried.drop_front(numStates))) {
    SmallVector<OpFoldResult> sliced = tensor::getMixedSizes(b, loc, out),
                              offsets(sliced.size(), b.getIndexAttr(0)),
                              strides(sliced.size(), b.getIndexAttr(1));
    sliced[axis] = length;
    offsets[axis] =
        arith::SubIOp::create(b, loc, first, scan.getLow()).getResult();
    results.push_back(tensor::InsertSliceOp::create(b, loc, row, out, offsets,
                                                    sliced, strides));
  }
  return results;
}

/// What \p row of the recurrence is, of the sums of all \p count steps.
void SumScans::replaceRow(unsigned row, ValueRange sumRows, ExprRef count) {
  Value result = scan.getStacked()[row];
  unsigned axis = scan.getAxes()[row];
  unsigned position = exprs.freshVar(count);
  ExprRef place = exprs.var(position);
  if (scan.getReversed()[row] != mutated("block-scans.sums-other-direction"))
    place = exprs.op(
        "arith.subi", place->type,
        {exprs.op("arith.subi", place->type, {count, exprs.index(1)}), place});
  ExprRef step =
      exprs.op("arith.addi", place->type, {exprs.scalar(scan.getLow()), place});
  SmallVector<ExprRef> at;
  for (unsigned v : all.rowVars[row])
    at.push_back(exprs.var(v));
  at.insert(at.end() - 1, place);
  ExprRef element =
      exprs.replaceOutermost(all.rows[row], [&](ExprRef e) -> ExprRef {
        auto *found = llvm::find(sums, e);
        return found == sums.end()
                   ? nullptr
                   : exprs.read(sumRows[found - sums.begin()], at);
      });
  element = exprs.rewrite(element, [&](ExprRef e) -> ExprRef {
    return all.body.isStep(e) ? step : nullptr;
  });
  SmallVector<unsigned> vars = all.rowVars[row];
  vars.insert(vars.begin() + axis, position);
  bool isItself = element->kind == ExprKind::Read &&
                  place == exprs.var(position) && axis + 2 == vars.size() &&
                  llvm::is_contained(sumRows, element->value);
  Value value =
      isItself ? element->value : writeTensor(b, loc, exprs, element, vars);
  result.replaceAllUsesWith(castTo(b, value, result.getType()));
}

void SumScans::write() {
  for (ExprRef element : all.next)
    next.push_back(hoist(element));
  for (ExprRef &term : terms)
    term = hoist(term);
  SmallVector<Value> starts;
  for (Value start : scan.getStarts())
    starts.push_back(turn(start, all.vars, order));
  ExprRef count = exprs.extentOf(scan.getOuts()[0], scan.getAxes()[0]);
  SmallVector<OpFoldResult> sizes;
  for (unsigned v : order)
    sizes.push_back(sizeOf(v == all.vars[*summed] ? count : exprs.extent(v)));
  for (size_t k = 0; k < sums.size(); ++k)
    starts.push_back(tensor::EmptyOp::create(b, loc, sizes, all.next[0]->type));
  SmallVector<Value> behind = loopOverWholeParts(
      b, loc, scan.getLow(), scan.getHigh(), stepsOfCall(), starts,
      [&](ValueRange carried, Value first, OpFoldResult length) {
        return writePart(carried, first, length);
      },
      /*oneByOne=*/true);
  unsigned numStates = scan.getStarts().size();
  ArrayRef<Value> sumRows = ArrayRef<Value>(behind).drop_front(numStates);
  for (unsigned k = 0; k < numStates; ++k) {
    Value result = scan.getStates()[k];
    if (!result.use_empty())
      result.replaceAllUsesWith(
          castTo(b, turn(behind[k], order, all.vars), result.getType()));
  }
  for (unsigned row = 0; row < all.rows.size(); ++row)
    replaceRow(row, sumRows, count);
  remarkDone(scan, "attn-block-scans", "recurrence",
             format("sequential: one kernel takes {} steps at once, and sums "
                    "over {} states of each element of a row",
                    stepsOfCall(),
                    *Exprs::constantInt(exprs.extent(all.vars[*summed]))));
  scan.erase();
}

bool heed::writeSumScan(const ScanElements &elements) {
  SumScans scan(elements);
  if (!scan.match())
    return false;
  scan.write();
  return true;
}
