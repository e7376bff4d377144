//===- SortedMasks.cpp - positions sorted by remainder --------------------===//
// Of a union of residues and others, and of residues and data, no dims can be
// dropped: all positions stay, those of one remainder as neighbours, in copies
// of the operands, and tiles do the rest.
#include "passes/Masks/MaskSplitter.h"
#include "passes/Mutation.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace heed;
using attn::DimKind;

/// By what remainder of pairs positions are sorted: one alone, and nothing else
/// that compares the two, since neighbours of a band are none any more. Copies
/// of keys and values are for many queries, and tiles for those of one class.
std::optional<int64_t> MaskSplitter::classesToSort() {
  constexpr int64_t most = 8, perClass = 16;
  std::optional<int64_t> modulus;
  bool compares = false;
  for (ExprRef part : parts)
    Exprs::walk(part, [&](ExprRef e) {
      auto found = sameClass(e);
      compares |= found ? modulus.value_or(*found) != *found
                        : e->isOp("arith.cmpi") && e->uses(i) && e->uses(j);
      if (found)
        modulus = found;
    });
  std::optional<int64_t> queries =
      getConstantIntValue(op.getSizes()[op.firstDim(DimKind::Query)]);
  if (!modulus || compares || *modulus > most || !queries ||
      *queries < perClass * *modulus)
    return std::nullopt;
  // A copy of what pairs have would be as large as the scores.
  unsigned query = op.firstDim(DimKind::Query);
  auto isOfPairs = [&](AffineMap map) {
    return map.isFunctionOfDim(query) && map.isFunctionOfDim(query + 1);
  };
  for (unsigned term = 0; term < op.numTerms(); ++term)
    if (llvm::any_of(op.maps(term), isOfPairs))
      return std::nullopt;
  for (unsigned k = 0; k < op.getValues().size(); ++k)
    if (isOfPairs(op.valueMap(k)))
      return std::nullopt;
  return modulus;
}

ExprRef MaskSplitter::positionOf(ExprRef place, const Sorted &side) {
  ExprRef remainder = make("arith.floordivsi", place, side.perClass),
          inClass = make("arith.subi", place,
                         make("arith.muli", remainder, side.perClass));
  return make("arith.addi", make("arith.muli", inClass, number(side.modulus)),
              remainder);
}

/// \p tensor with the places of \p side along \p axis, those behind the last
/// position as the last.
Value MaskSplitter::sorted(Value tensor, int64_t axis, const Sorted &side) {
  SmallVector<unsigned> axes;
  SmallVector<ExprRef> place;
  exprs.indexVars(tensor, axes, place);
  ExprRef last = make("arith.subi", exprs.extentOf(tensor, axis), number(1));
  axes[axis] = exprs.freshVar(side.places);
  place[axis] =
      make("arith.minsi", positionOf(exprs.var(axes[axis]), side), last);
  return writeTensor(b, loc, exprs, exprs.read(tensor, place), axes);
}

/// Has \p fresh read copies whose positions are sorted.
void MaskSplitter::sortOperands(attn::AttentionOp fresh, const Sorted &queries,
                                const Sorted &keys) {
  unsigned query = op.firstDim(DimKind::Query);
  DenseMap<std::pair<Value, unsigned>, Value> copies;
  OpBuilder::InsertionGuard before(b);
  b.setInsertionPoint(fresh);
  auto sort = [&](OpOperand &operand, AffineMap map) {
    for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim ||
          (dim.getPosition() != query && dim.getPosition() != query + 1))
        continue;
      bool ofKeys = dim.getPosition() != query;
      Value &copy = copies[{operand.get(), 2 * axis + ofKeys}];
      if (!copy)
        copy = sorted(operand.get(), axis, ofKeys ? keys : queries);
      operand.set(copy);
    }
  };
  unsigned number = 0;
  MutableArrayRef<OpOperand> terms = fresh.getTermOperandsMutable();
  for (unsigned term = 0; term < op.numTerms(); ++term)
    for (AffineMap map : op.maps(term))
      sort(terms[number++], map);
  MutableArrayRef<OpOperand> values = fresh.getValuesMutable();
  for (unsigned k = 0; k < op.getValues().size(); ++k)
    sort(values[k], op.valueMap(k));
}

/// \p output, whose queries are sorted, in the order of positions.
Value MaskSplitter::inOrder(Value output, const Sorted &queries) {
  SmallVector<unsigned> axes = outputVars();
  SmallVector<ExprRef> place;
  for (unsigned var : axes)
    place.push_back(exprs.var(var));
  ExprRef &at = place[batchDims];
  at = make("arith.addi",
            make("arith.muli", make("arith.remsi", at, number(queries.modulus)),
                 queries.perClass),
            make("arith.floordivsi", at, number(queries.modulus)));
  return writeTensor(b, loc, exprs, exprs.read(output, place), axes);
}

/// Positions of one remainder are neighbours.
bool MaskSplitter::sortByClass() {
  std::optional<int64_t> modulus = classesToSort();
  if (!modulus)
    return false;
  unsigned query = op.firstDim(DimKind::Query);
  Sorted sides[2];
  SmallVector<Value> sizes(op.getSizes());
  SmallVector<unsigned> arguments(vars);
  DenseMap<unsigned, ExprRef> now;
  for (unsigned side : {0, 1}) {
    Value size = sizes[query + side], perClass = numbersOf(size, *modulus);
    sizes[query + side] = b.createOrFold<arith::MulIOp>(
        loc, perClass, arith::ConstantIndexOp::create(b, loc, *modulus));
    sides[side] = {*modulus, exprs.scalar(perClass),
                   exprs.scalar(sizes[query + side])};
    arguments[batchDims + side] = exprs.freshVar();
    // Data are read at positions that are there.
    ExprRef last = make("arith.subi", exprs.scalar(size), number(1));
    now[side ? j : i] = make(
        "arith.minsi",
        positionOf(exprs.var(arguments[batchDims + side]), sides[side]), last);
  }
  auto remainder = [&](unsigned side) {
    return make("arith.floordivsi", exprs.var(arguments[batchDims + side]),
                sides[side].perClass);
  };
  ExprRef same =
      exprs.compare(arith::CmpIPredicate::eq, remainder(0), remainder(1));
  SmallVector<ExprRef> list;
  for (ExprRef part : parts) {
    part = exprs.rewrite(part, [&](ExprRef e) {
      return sameClass(e) == modulus ? same : nullptr;
    });
    list.push_back(exprs.substitute(part, now));
  }
  if (!mutated("split-masks.sorted-beyond-the-last"))
    list.push_back(less(
        positionOf(exprs.var(arguments[batchDims + 1]), sides[1]), keyCount()));
  SmallVector<AffineExpr> sameDims;
  for (unsigned d = 0; d < op.numLoopDims(); ++d)
    sameDims.push_back(b.getAffineDimExpr(d));
  auto type = cast<RankedTensorType>(op.getOutput().getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[batchDims] =
      getConstantIntValue(sizes[query]).value_or(ShapedType::kDynamic);
  attn::AttentionOp fresh =
      cloneWith(op.getDims(), sizes, sameDims, type.clone(shape));
  sortOperands(fresh, sides[0], sides[1]);
  writeWhere(fresh, all(list), arguments);

  op.getOutput().replaceAllUsesWith(inOrder(fresh.getOutput(), sides[0]));
  remarkDone(op, passName, "mask",
             heed::format("positions are sorted by their remainders of {}: "
                          "those of one are neighbours",
                          *modulus));
  op.erase();
  return true;
}
