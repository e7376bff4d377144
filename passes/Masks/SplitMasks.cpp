//===- SplitMasks.cpp - masks of residues, cut into dense ones ------------===//
// Tiles of neighbours compute all of a mask that keeps every s-th key. What is
// dense is found by numbering positions anew, with n >= 0 the remainder's rest:
//
//   where (i - j) % s == 0 and C(i, j)
//     the remainder r is a further batch dim: i = s i' + r, j = s j' + r
//   where r0 <= j % s < r0 + n and C(i, j)
//     keys are numbered without the others: j = j' + (j' // n) (s - n) + r0
//   where (if c(b) then A else B) and C(i, j), of which A or B is one of these
//     two attentions, each of which has no key where the other has some
//   where C(i, j, (i - j) % s == 0), a union with others or by data
//     positions are sorted by remainder, n = ceil(N / s) places for each:
//     i = s (i' % n) + i' // n, of copies of the operands; the remainders are
//     equal where i' // n and j' // m are
//
// The condition is dropped, or becomes one of places, and C is written of the
// new indices, with j < M for what is no multiple of s. Queries behind the last
// one are computed of the last and read by nobody. The first two are of masks
// of indices and sizes alone: data are read at positions that are there.
// Conditions are exact; nothing is assumed of sizes.
#include "dialects/Attn/Dialect.h"
#include "passes/Masks/MaskSplitter.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

namespace heed {
#define GEN_PASS_DEF_ATTNSPLITMASKS
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;
using attn::DimKind;

namespace {

bool reads(ExprRef e) {
  bool found = false;
  Exprs::walk(e,
              [&](ExprRef inner) { found |= inner->kind == ExprKind::Read; });
  return found;
}

} // namespace

/// Whether positions of \p op may be numbered anew: they stand in operands and
/// in the mask, and nowhere else.
bool MaskSplitter::isPlain() {
  if (op.numDims(DimKind::Query) != 1 || op.numDims(DimKind::Key) != 1 ||
      op.getWhere().empty() || op.getLse() || op.getWeights() ||
      op.getResultMap() || op.getSink())
    return false;
  unsigned query = op.firstDim(DimKind::Query), key = op.firstDim(DimKind::Key);
  for (Region *region : {&op.getScore(), &op.getWeight()})
    if (!region->empty() && (!region->getArgument(query).use_empty() ||
                             !region->getArgument(key).use_empty()))
      return false;
  auto alone = [&](AffineMap map) {
    return llvm::all_of(map.getResults(), [&](AffineExpr expr) {
      return isa<AffineDimExpr>(expr) ||
             (!expr.isFunctionOfDim(query) && !expr.isFunctionOfDim(key));
    });
  };
  for (unsigned term = 0; term < op.numTerms(); ++term)
    if (!llvm::all_of(op.maps(term), alone))
      return false;
  for (unsigned k = 0; k < op.getValues().size(); ++k)
    if (!alone(op.valueMap(k)))
      return false;
  return true;
}

void MaskSplitter::flatten(ExprRef e, SmallVectorImpl<ExprRef> &list) {
  if (!e->isOp("arith.andi"))
    return list.push_back(e);
  flatten(e->operand(0), list);
  flatten(e->operand(1), list);
}

/// `where` as conditions, all of which hold; false if it is no expression.
bool MaskSplitter::readWhere() {
  SmallVector<ExprRef> arguments;
  for (unsigned k = 0; k < batchDims + 2; ++k) {
    vars.push_back(exprs.freshVar());
    arguments.push_back(exprs.var(vars.back()));
  }
  i = vars[batchDims];
  j = vars[batchDims + 1];
  ExprRef where = exprs.block(op.getWhere().front(), arguments);
  if (!where)
    return false;
  bool reduces = false;
  Exprs::walk(where, [&](ExprRef e) {
    readsData |= e->kind == ExprKind::Read;
    reduces |= e->kind == ExprKind::Reduce;
  });
  flatten(where, parts);
  return !reduces;
}

bool MaskSplitter::holdsCut(ExprRef e) {
  SmallVector<ExprRef> list;
  flatten(e, list);
  return llvm::any_of(list, [&](ExprRef part) { return isCut(part); });
}

ExprRef MaskSplitter::all(ArrayRef<ExprRef> list) {
  ExprRef result = exprs.truth(true);
  for (ExprRef part : list)
    result = exprs.logicalAnd(result, part);
  return result;
}

SmallVector<unsigned> MaskSplitter::outputVars() {
  SmallVector<unsigned> axes;
  for (DimKind kind : {DimKind::Batch, DimKind::Query, DimKind::Value})
    for (unsigned k = 0; k < op.numDims(kind); ++k) {
      Value size = op.getSizes()[op.firstDim(kind) + k];
      std::optional<int64_t> fixed = getConstantIntValue(size);
      axes.push_back(
          exprs.freshVar(fixed ? exprs.index(*fixed) : exprs.scalar(size)));
    }
  return axes;
}

/// ceil(size / modulus)
Value MaskSplitter::numbersOf(Value size, int64_t modulus) {
  if (auto fixed = getConstantIntValue(size))
    return arith::ConstantIndexOp::create(b, loc,
                                          (*fixed + modulus - 1) / modulus);
  Value more = arith::ConstantIndexOp::create(
      b, loc, mutated("split-masks.drop-last-number") ? 0 : modulus - 1);
  return arith::DivSIOp::create(
      b, loc, arith::AddIOp::create(b, loc, size, more),
      arith::ConstantIndexOp::create(b, loc, modulus));
}

/// \p op with other sizes, whose loop dims stand at \p places of its operands;
/// no results but the output.
attn::AttentionOp MaskSplitter::cloneWith(ArrayRef<int64_t> dims,
                                          ArrayRef<Value> sizes,
                                          ArrayRef<AffineExpr> places,
                                          Type output) {
  SmallVector<AffineExpr> symbols;
  for (unsigned s = 0; s < op.getSymbols().size(); ++s)
    symbols.push_back(b.getAffineSymbolExpr(s));
  auto mapped = [&](ArrayAttr maps) {
    SmallVector<AffineMap> list;
    for (AffineMap map : maps.getAsValueRange<AffineMapAttr>())
      list.push_back(map.replaceDimsAndSymbols(places, symbols, sizes.size(),
                                               symbols.size()));
    return b.getAffineMapArrayAttr(list);
  };
  auto fresh = attn::AttentionOp::create(
      b, loc, output, Type(), Type(), sizes, op.getSymbols(),
      op.getTermOperands(), op.getValues(), Value(), op.getEmpty(),
      b.getDenseI64ArrayAttr(dims), op.getTermArityAttr(),
      mapped(op.getTermMaps()), mapped(op.getValueMaps()), AffineMapAttr(),
      AffineMapAttr(), op.getMapAttr(), op.getDivideAttr(),
      op.getStabiliseAttr(), op.numTerms());
  IRMapping mapping;
  for (auto [from, to] : llvm::zip(op->getRegions(), fresh->getRegions()))
    from.cloneInto(&to, mapping);
  fresh->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return fresh;
}

void MaskSplitter::writeWhere(attn::AttentionOp fresh, ExprRef condition,
                              ArrayRef<unsigned> arguments) {
  Region &region = fresh.getWhere();
  region.getBlocks().clear();
  OpBuilder inner(op.getContext());
  Block *block = inner.createBlock(&region);
  ExprWriter writer(inner, loc);
  for (unsigned var : arguments)
    writer.bind(var, block->addArgument(b.getIndexType(), loc));
  attn::YieldOp::create(inner, loc, writer.write(condition));
}

/// `if c then A else B` of the batch, perhaps in a union: two attentions.
bool MaskSplitter::splitByBatch() {
  ExprRef choice = nullptr;
  auto found = llvm::find_if(parts, [&](ExprRef part) {
    Exprs::walk(part, [&](ExprRef e) {
      bool chooses = (e->kind == ExprKind::If || e->isOp("arith.select")) &&
                     e->type.isInteger(1) && !e->operand(0)->uses(i) &&
                     !e->operand(0)->uses(j) && !reads(e->operand(0)) &&
                     (holdsCut(e->operand(1)) || holdsCut(e->operand(2)));
      if (chooses)
        choice = e;
    });
    return choice != nullptr;
  });
  if (found == parts.end())
    return false;
  ExprRef whole = *found, condition = choice->operand(0);
  SmallVector<ExprRef> others;
  llvm::copy_if(parts, std::back_inserter(others),
                [&](ExprRef e) { return e != whole; });
  SmallVector<AffineExpr> same;
  for (unsigned d = 0; d < op.numLoopDims(); ++d)
    same.push_back(b.getAffineDimExpr(d));
  SmallVector<attn::AttentionOp> two;
  for (bool yes : {true, false}) {
    SmallVector<ExprRef> list(others);
    list.push_back(yes || mutated("split-masks.condition-not-negated")
                       ? condition
                       : exprs.logicalNot(condition));
    list.push_back(exprs.rewrite(whole, [&](ExprRef e) {
      return e == choice ? choice->operand(yes ? 1 : 2) : nullptr;
    }));
    attn::AttentionOp fresh =
        cloneWith(op.getDims(), SmallVector<Value>(op.getSizes()), same,
                  op.getOutput().getType());
    writeWhere(fresh, all(list), vars);
    two.push_back(fresh);
  }
  SmallVector<unsigned> axes = outputVars();
  SmallVector<ExprRef> place;
  DenseMap<unsigned, ExprRef> batch;
  for (auto [axis, var] : llvm::enumerate(axes)) {
    place.push_back(exprs.var(var));
    if (axis < batchDims)
      batch[vars[axis]] = place.back();
  }
  ExprRef at = exprs.substitute(condition, batch);
  ExprRef element = exprs.select(at, exprs.read(two[0].getOutput(), place),
                                 exprs.read(two[1].getOutput(), place),
                                 /*guard=*/false);
  op.getOutput().replaceAllUsesWith(writeTensor(b, loc, exprs, element, axes));
  remarkDone(op, passName, "mask",
             "two attentions: a condition of the batch chooses between masks");
  op.erase();
  for (attn::AttentionOp part : two)
    MaskSplitter(part, splits + 1).run();
  return true;
}

/// \p op with the remainder by \p modulus as its last batch dim, less its mask.
/// Of a large one there are no more than queries.
attn::AttentionOp MaskSplitter::withClasses(int64_t modulus) {
  unsigned query = op.firstDim(DimKind::Query), key = query + 1;
  SmallVector<int64_t> dims(op.getDims());
  ++dims[unsigned(DimKind::Batch)];
  SmallVector<Value> sizes(op.getSizes());
  Value classes = arith::ConstantIndexOp::create(b, loc, modulus);
  const bool isLarge = modulus > 64;
  if (isLarge)
    classes = arith::MinSIOp::create(b, loc, sizes[query], classes);
  for (unsigned dim : {query, key})
    sizes[dim] = numbersOf(sizes[dim], modulus);
  auto type = cast<RankedTensorType>(op.getOutput().getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[batchDims] =
      getConstantIntValue(sizes[query]).value_or(ShapedType::kDynamic);
  shape.insert(shape.begin() + batchDims,
               isLarge ? ShapedType::kDynamic : modulus);
  sizes.insert(sizes.begin() + batchDims, classes);
  // Loop dims behind the batch are one further on.
  SmallVector<AffineExpr> places;
  for (unsigned d = 0; d < op.numLoopDims(); ++d) {
    AffineExpr place = b.getAffineDimExpr(d < batchDims ? d : d + 1);
    places.push_back(d == query || d == key
                         ? place * modulus + b.getAffineDimExpr(batchDims)
                         : place);
  }
  attn::AttentionOp fresh = cloneWith(dims, sizes, places, type.clone(shape));
  for (Region *region : {&fresh.getScore(), &fresh.getWeight()})
    if (!region->empty())
      region->front().insertArgument(batchDims, b.getIndexType(), loc);
  return fresh;
}

/// The remainder becomes a batch dim.
bool MaskSplitter::splitByClass() {
  auto found =
      llvm::find_if(parts, [&](ExprRef e) { return sameClass(e).has_value(); });
  if (found == parts.end())
    return false;
  const int64_t modulus = *sameClass(*found);
  attn::AttentionOp fresh = withClasses(modulus);
  SmallVector<unsigned> arguments(vars);
  unsigned own = exprs.freshVar();
  arguments.insert(arguments.begin() + batchDims, own);
  auto position = [&](unsigned var) {
    return make("arith.addi",
                make("arith.muli", exprs.var(var), number(modulus)),
                exprs.var(own));
  };
  DenseMap<unsigned, ExprRef> now{{i, position(i)}, {j, position(j)}};
  SmallVector<ExprRef> list;
  for (ExprRef part : parts)
    if (part != *found && !mutated("split-masks.forget-other-conditions"))
      list.push_back(exprs.substitute(part, now));
  if (!mutated("split-masks.keys-beyond-the-last"))
    list.push_back(less(position(j), keyCount()));
  writeWhere(fresh, all(list), arguments);

  SmallVector<unsigned> axes = outputVars();
  SmallVector<ExprRef> place;
  for (unsigned var : axes)
    place.push_back(exprs.var(var));
  ExprRef at = place[batchDims];
  place[batchDims] = make("arith.floordivsi", at, number(modulus));
  place.insert(place.begin() + batchDims,
               make("arith.remsi", at, number(modulus)));
  op.getOutput().replaceAllUsesWith(
      writeTensor(b, loc, exprs, exprs.read(fresh.getOutput(), place), axes));
  remarkDone(op, passName, "mask",
             heed::format("{} attentions, one of each remainder of positions: "
                          "no other keys are looked at",
                          modulus));
  op.erase();
  return true;
}

/// Keys of other remainders get no number.
bool MaskSplitter::dropKeys() {
  auto found = llvm::find_if(
      parts, [&](ExprRef e) { return keyClasses(e).has_value(); });
  if (found == parts.end())
    return false;
  Residues kept = *keyClasses(*found);
  const int64_t gap = kept.modulus - kept.count;
  unsigned key = op.firstDim(DimKind::Key);
  SmallVector<Value> sizes(op.getSizes());
  sizes[key] =
      arith::MulIOp::create(b, loc, numbersOf(sizes[key], kept.modulus),
                            arith::ConstantIndexOp::create(b, loc, kept.count));
  SmallVector<AffineExpr> places;
  for (unsigned d = 0; d < op.numLoopDims(); ++d)
    places.push_back(b.getAffineDimExpr(d));
  places[key] =
      places[key] + places[key].floorDiv(kept.count) * gap + kept.first;
  attn::AttentionOp fresh =
      cloneWith(op.getDims(), sizes, places, op.getOutput().getType());
  ExprRef place = exprs.var(j);
  ExprRef position =
      make("arith.addi",
           make("arith.addi", place,
                make("arith.muli",
                     make("arith.floordivsi", place, number(kept.count)),
                     number(gap))),
           number(kept.first));
  DenseMap<unsigned, ExprRef> now{{j, position}};
  SmallVector<ExprRef> list;
  for (ExprRef part : parts)
    if (part != *found)
      list.push_back(exprs.substitute(part, now));
  list.push_back(less(position, keyCount()));
  writeWhere(fresh, all(list), vars);
  op.getOutput().replaceAllUsesWith(fresh.getOutput());
  remarkDone(op, passName, "mask",
             heed::format("no keys but those of {} remainders of {} are "
                          "looked at",
                          kept.count, kept.modulus));
  op.erase();
  return true;
}

void MaskSplitter::run() {
  if (!isPlain() || !readWhere())
    return;
  constexpr unsigned most = 2;
  if ((splits < most && splitByBatch()) ||
      (!readsData && (splitByClass() || dropKeys())))
    return;
  (void)sortByClass();
}

namespace {

struct SplitMasks : heed::impl::AttnSplitMasksBase<SplitMasks> {
  void runOnOperation() override {
    SmallVector<attn::AttentionOp> ops;
    getOperation()->walk([&](attn::AttentionOp op) { ops.push_back(op); });
    for (attn::AttentionOp op : ops)
      MaskSplitter(op).run();
  }
};

} // namespace
