//===- SumScans.cpp - recurrences whose columns are each its own ----------===//
//
// A step makes an element of a state of the same element before it, and of sums
// over its column: what a delta rule holds. Rows are made of such sums (a
// state-space model: y[c] = sum(e) q[e] * h[c,e]). The states get the summed
// axis as their last but one: lanes are columns. What no step enters and would
// be computed, or read across lanes, in each step is computed before.
#include "passes/Recurrence/SumScans.h"
#include "dialects/Halide/Target.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Recurrence/HoistedParts.h"
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

/// As many numbers of a column as leave two vectors of columns, and what a call
/// makes of them, in a first cache; few columns leave lanes empty.
constexpr int64_t mostPlaces = 128, leastLanes = 8;

class SumScans {
public:
  explicit SumScans(const ScanElements &all)
      : scan(all.scan), exprs(all.exprs), all(all), b(all.scan),
        loc(scan.getLoc()) {
    for (unsigned v : all.vars)
      at.push_back(exprs.var(v));
    carried = SmallVector<Value>(scan.carried());
    yielded = SmallVector<Value>(scan.terminator().getStates());
  }
  bool match();
  void write();

private:
  /// A sum over a column, as a number of a step: of the states before it, or
  /// after.
  struct Sum {
    ExprRef term;       ///< over the states' variables
    ExprRef number;     ///< what stands for it in expressions
    bool isRow = false; ///< rows of the recurrence read it
  };

  bool reads(ExprRef element, ArrayRef<Value> tensors);
  bool readsBefore(ExprRef element) { return reads(element, carried); }
  bool readsAfter(ExprRef element) { return reads(element, yielded); }
  bool readsStates(ExprRef element) {
    return readsBefore(element) || readsAfter(element);
  }
  bool findAxis(ExprRef element);
  bool isOwn(ExprRef element, ArrayRef<Value> states);
  ExprRef termOf(ExprRef sum, ArrayRef<ExprRef> at);
  ExprRef numberOf(ExprRef term, SmallVectorImpl<Sum> &sums);
  ExprRef holdSums(ExprRef element, ArrayRef<ExprRef> at, bool &ok);
  bool matchRow(unsigned row);
  bool liesAlong(ExprRef element);
  /// What stands for the sums.
  SmallVector<ExprRef> numbers() {
    SmallVector<ExprRef> all;
    for (const SmallVector<Sum> *sums : {&held, &left})
      for (const Sum &sum : *sums)
        all.push_back(sum.number);
    return all;
  }
  /// How many steps there are.
  ExprRef count() {
    return exprs.extentOf(scan.getOuts()[0], scan.getAxes()[0]);
  }
  int64_t stepsOfCall();
  OpFoldResult sizeOf(ExprRef extent);
  Value turn(Value tensor, ArrayRef<unsigned> from, ArrayRef<unsigned> to);
  void fill(Region &region, ArrayRef<ExprRef> elements, ArrayRef<Value> states);
  SmallVector<Value> writePart(ValueRange carried, Value first,
                               OpFoldResult length);
  void replaceRow(unsigned row, ValueRange sumRows);

  attn::ScanOp scan;
  Exprs &exprs;
  const ScanElements &all;
  OpBuilder b;
  Location loc;
  SmallVector<ExprRef> at;
  SmallVector<Value> carried, yielded;
  std::optional<unsigned> summed; ///< axis of the states
  unsigned lane = 0;              ///< variable
  SmallVector<unsigned> order;    ///< the states' variables as they will lie
  SmallVector<Sum> held, left;
  SmallVector<ExprRef> next;
  SmallVector<ExprRef> rows; ///< of numbers of sums
};

} // namespace

bool SumScans::reads(ExprRef element, ArrayRef<Value> tensors) {
  bool found = false;
  Exprs::walk(element, [&](ExprRef e) {
    found |= e->kind == ExprKind::Read && llvm::is_contained(tensors, e->value);
  });
  return found;
}

/// Finds the axis that sums of \p element over states run along. False if it is
/// another than that of the others.
bool SumScans::findAxis(ExprRef element) {
  bool ok = true;
  Exprs::walk(element, [&](ExprRef e) {
    if (e->kind != ExprKind::Reduce || !readsStates(e))
      return;
    SmallVector<unsigned> binders;
    ExprRef body = exprs.open(e, binders);
    Exprs::walk(body, [&](ExprRef read) {
      if (read->kind != ExprKind::Read || !readsStates(read))
        return;
      for (auto [axis, index] : llvm::enumerate(read->operands))
        for (unsigned v : binders)
          if (index == exprs.var(v)) {
            ok &= !summed || *summed == axis;
            summed = axis;
          }
    });
  });
  return ok;
}

/// Whether \p element reads \p states at its own place alone, and none else.
bool SumScans::isOwn(ExprRef element, ArrayRef<Value> states) {
  bool own = true;
  Exprs::walk(element, [&](ExprRef e) {
    own &= e->kind != ExprKind::Reduce;
    if (e->kind == ExprKind::Read && readsStates(e))
      own &= llvm::is_contained(states, e->value) &&
             ArrayRef<ExprRef>(e->operands) == ArrayRef<ExprRef>(at);
  });
  return own;
}

/// What \p sum adds up over the states' summed axis, where the others are \p
/// place (of that axis: null). Null if it is no such sum.
ExprRef SumScans::termOf(ExprRef sum, ArrayRef<ExprRef> place) {
  if (!sum->isReduceBy("arith.addf") || sum->binders.size() != 1 ||
      sum->operands[1] != exprs.extent(all.vars[*summed]) ||
      sum->uses(all.vars[*summed]))
    return nullptr;
  SmallVector<unsigned> binder;
  ExprRef term = exprs.open(sum, binder);
  DenseMap<unsigned, ExprRef> own{{binder[0], at[*summed]}};
  for (auto [axis, v] : llvm::enumerate(place))
    if (v && v->kind == ExprKind::Var)
      own[v->number] = at[axis];
  return exprs.substitute(term, own);
}

/// What stands for the sum of \p term, one of \p sums.
ExprRef SumScans::numberOf(ExprRef term, SmallVectorImpl<Sum> &sums) {
  for (const Sum &known : sums)
    if (known.term == term)
      return known.number;
  return sums
      .emplace_back(Sum{term, exprs.parameter(exprs.freshVar(), term->type)})
      .number;
}

/// \p element with numbers for the sums over the states before the step, which
/// are held; those in them first.
ExprRef SumScans::holdSums(ExprRef element, ArrayRef<ExprRef> place, bool &ok) {
  return exprs.replaceOutermost(element, [&](ExprRef e) -> ExprRef {
    if (e->kind != ExprKind::Reduce || !readsBefore(e))
      return nullptr;
    ExprRef term = ok ? termOf(e, place) : nullptr;
    if (term)
      term = holdSums(term, at, ok);
    ok &= term && isOwn(term, carried);
    if (!ok)
      return e;
    return numberOf(term, held);
  });
}

/// Whether \p row, which has the states' axes but for the summed one, is made
/// of sums over the states, before or after.
bool SumScans::matchRow(unsigned row) {
  ArrayRef<unsigned> vars = all.rowVars[row];
  if (vars.size() + 1 != all.vars.size())
    return false;
  SmallVector<ExprRef> place;
  for (unsigned axis = 0, k = 0; axis < all.vars.size(); ++axis) {
    if (axis == *summed) {
      place.push_back(nullptr);
      continue;
    }
    if (exprs.extent(vars[k]) != exprs.extent(all.vars[axis]))
      return false;
    place.push_back(exprs.var(vars[k++]));
  }
  bool ok = true;
  ExprRef element =
      exprs.replaceOutermost(all.rows[row], [&](ExprRef e) -> ExprRef {
        if (e->kind != ExprKind::Reduce || !readsAfter(e))
          return nullptr;
        ExprRef term = ok ? termOf(e, place) : nullptr;
        if (term)
          term = holdSums(term, at, ok);
        ok &= term && isOwn(term, yielded);
        if (!ok)
          return e;
        return numberOf(term, left);
      });
  if (ok)
    element = holdSums(element, place, ok);
  if (!ok || readsStates(element))
    return false;
  for (SmallVector<Sum> *sums : {&held, &left})
    for (Sum &sum : *sums)
      Exprs::walk(element, [&](ExprRef e) { sum.isRow |= e == sum.number; });
  rows.push_back(element);
  return true;
}

/// Whether what \p element reads in each step lies along the lanes, or is one
/// number for all of them.
bool SumScans::liesAlong(ExprRef element) {
  bool along = true;
  auto hasStep = [&](ExprRef e) {
    bool found = false;
    Exprs::walk(e, [&](ExprRef in) { found |= all.body.isStep(in); });
    return found;
  };
  Exprs::walk(element, [&](ExprRef e) {
    along &= !readsAcross(e, lane) || !hasStep(e);
  });
  return along;
}

bool SumScans::match() {
  auto isReal = [](ExprRef e) {
    return isa<Float32Type, Float64Type>(e->type);
  };
  if (all.vars.size() < 2 || all.rows.empty() ||
      !llvm::all_of(all.next, isReal))
    return false;
  bool ok = true;
  for (ArrayRef<ExprRef> elements : {all.next, all.rows})
    for (ExprRef element : elements)
      ok &= findAxis(element);
  if (!ok || !summed)
    return false;
  std::optional<int64_t> places =
      Exprs::constantInt(exprs.extent(all.vars[*summed]));
  order.assign(all.vars.begin(), all.vars.end());
  order.erase(order.begin() + *summed);
  lane = order.back();
  order.insert(order.end() - 1, all.vars[*summed]);
  std::optional<int64_t> lanes = Exprs::constantInt(exprs.extent(lane));
  if (!places || *places == 0 ||
      *places * int64_t(all.next.size()) > mostPlaces ||
      (lanes && *lanes < leastLanes))
    return false;
  for (ExprRef element : all.next) {
    next.push_back(holdSums(element, at, ok));
    if (!ok || !isOwn(next.back(), carried))
      return false;
  }
  for (unsigned row = 0; row < all.rows.size(); ++row)
    if (!matchRow(row))
      return false;
  auto isAlong = [&](const Sum &sum) {
    return isReal(sum.term) && liesAlong(sum.term);
  };
  return llvm::all_of(next, [&](ExprRef e) { return liesAlong(e); }) &&
         llvm::all_of(held, isAlong) && llvm::all_of(left, isAlong);
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

/// Eight steps, and more where a row is short: what they read of other rows
/// lies apart. Of a long column as many as make its copies, before the first
/// and behind the last one, few beside them; on a device, where all columns'
/// sums are stored at once, no more for that.
int64_t SumScans::stepsOfCall() {
  constexpr int64_t least = 8, most = 64, row = 1 << 14, shortColumn = 32;
  int64_t lanes = Exprs::constantInt(exprs.extent(lane)).value_or(row),
          places = *Exprs::constantInt(exprs.extent(all.vars[*summed]));
  int64_t steps = std::clamp<int64_t>(
      llvm::PowerOf2Ceil(row / std::max<int64_t>(lanes, 1)), least, most);
  return places > shortColumn && !halide::getTarget(scan).isGPU()
             ? std::max<int64_t>(steps, llvm::PowerOf2Ceil(2 * places))
             : steps;
}

/// Fills \p region of the op with \p elements of \p states at their places, and
/// of what is held.
void SumScans::fill(Region &region, ArrayRef<ExprRef> elements,
                    ArrayRef<Value> states) {
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&region);
  ExprWriter writer(b, loc);
  auto add = [&](Type type) { return block->addArgument(type, loc); };
  writer.bind(exprs.scalar(scan.step()), add(b.getIndexType()));
  for (unsigned v : order)
    writer.bind(v, add(b.getIndexType()));
  // A state that a step leaves as it is stands in it twice.
  llvm::SmallPtrSet<Value, 4> bound;
  for (Value state : states) {
    Value element = add(getElementTypeOrSelf(state));
    if (bound.insert(state).second)
      writer.bind(exprs.read(state, at), element);
  }
  for (const Sum &sum : held)
    writer.bind(sum.number->number, add(sum.number->type));
  SmallVector<Value> values;
  for (ExprRef element : elements)
    values.push_back(writer.write(element));
  attn::NextOp::create(b, loc, values);
}

/// The states and the sums that rows read after \p length steps from \p first,
/// of what they were, \p before.
SmallVector<Value> SumScans::writePart(ValueRange before, Value first,
                                       OpFoldResult length) {
  unsigned numStates = scan.getStarts().size();
  ValueRange states = before.take_front(numStates);
  SmallVector<Value> sizes;
  for (unsigned v : order)
    sizes.push_back(writeExtent(b, loc, exprs.extent(v)));
  auto state = cast<RankedTensorType>(states[0].getType());
  SmallVector<int64_t> shape(state.getShape());
  unsigned axis = shape.size() - 2;
  shape[axis] = getConstantIntValue(length).value_or(ShapedType::kDynamic);
  auto types = [&](ArrayRef<Sum> sums) {
    return llvm::map_to_vector(sums, [&](const Sum &sum) -> Type {
      return RankedTensorType::get(shape, sum.number->type);
    });
  };
  Value from = mutated("block-scans.sums-begin-again") ? scan.getLow() : first;
  auto op = attn::SumScanOp::create(
      b, loc, types(left), types(held), states.getTypes(), from,
      getValueOrCreateConstantIndexOp(b, loc, length), stepsOfCall(), sizes,
      states);
  auto terms = [](ArrayRef<Sum> sums) {
    return llvm::map_to_vector(sums, [](const Sum &sum) { return sum.term; });
  };
  fill(op.getNext(), next, carried);
  fill(op.getLeave(), terms(left), yielded);
  if (!held.empty())
    fill(op.getHold(), terms(held), carried);
  SmallVector<Value> results(op.getStates()), rows;
  for (auto [sums, values] :
       {std::pair(&held, op.getHeld()), std::pair(&left, op.getRows())})
    for (auto [sum, value] : llvm::zip(*sums, values))
      if (sum.isRow)
        rows.push_back(value);
  for (auto [row, out] : llvm::zip(rows, before.drop_front(numStates))) {
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

/// What \p row of the recurrence is, of the sums of all steps.
void SumScans::replaceRow(unsigned row, ValueRange sumRows) {
  Value result = scan.getStacked()[row];
  unsigned axis = scan.getAxes()[row];
  unsigned position = exprs.freshVar(count());
  ExprRef place = exprs.var(position);
  if (scan.getReversed()[row] != mutated("block-scans.sums-other-direction"))
    place = exprs.op(
        "arith.subi", place->type,
        {exprs.op("arith.subi", place->type, {count(), exprs.index(1)}),
         place});
  ExprRef step =
      exprs.op("arith.addi", place->type, {exprs.scalar(scan.getLow()), place});
  SmallVector<ExprRef> own;
  for (unsigned v : all.rowVars[row])
    own.push_back(exprs.var(v));
  own.insert(own.end() - 1, place);
  DenseMap<unsigned, ExprRef> numbers;
  for (const SmallVector<Sum> *sums : {&held, &left})
    for (const Sum &sum : *sums)
      if (sum.isRow)
        numbers[sum.number->number] = exprs.read(sumRows[numbers.size()], own);
  ExprRef element = exprs.substitute(rows[row], numbers);
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
  HoistedParts parts{b, exprs, scan, all.body, order, numbers()};
  for (ExprRef &element : next)
    element = parts.hoist(element);
  SmallVector<Value> starts;
  for (Value start : scan.getStarts())
    starts.push_back(turn(start, all.vars, order));
  SmallVector<OpFoldResult> sizes;
  for (unsigned v : order)
    sizes.push_back(sizeOf(v == all.vars[*summed] ? count() : exprs.extent(v)));
  for (SmallVector<Sum> *sums : {&held, &left})
    for (Sum &sum : *sums) {
      sum.term = parts.hoist(sum.term);
      if (sum.isRow)
        starts.push_back(
            tensor::EmptyOp::create(b, loc, sizes, sum.number->type));
    }
  scf::ForOp loop = loopOverParts(
      b, loc, scan.getLow(), scan.getHigh(), b.getIndexAttr(stepsOfCall()),
      starts, [&](ValueRange before, Value first, OpFoldResult length) {
        return writePart(before, first, length);
      });
  unsigned numStates = scan.getStarts().size();
  for (unsigned k = 0; k < numStates; ++k) {
    Value result = scan.getStates()[k];
    if (!result.use_empty())
      result.replaceAllUsesWith(castTo(
          b, turn(loop.getResult(k), order, all.vars), result.getType()));
  }
  for (unsigned row = 0; row < all.rows.size(); ++row)
    replaceRow(row, loop.getResults().drop_front(numStates));
  remarkDone(scan, "attn-block-scans", "form",
             format("sequential: one kernel takes {} steps at once, and sums "
                    "over columns of {} numbers",
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
