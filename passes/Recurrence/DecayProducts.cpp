//===- DecayProducts.cpp - what some steps leave of a state ---------------===//
#include "passes/Recurrence/DecayProducts.h"
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/Rows.h"
#include "passes/Algebra/TensorExpr.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {
namespace {

class ProductWriter {
public:
  ProductWriter(OpBuilder &b, attn::LinearAttentionOp op, Value decay,
                OpFoldResult length)
      : b(b), op(op), decay(decay), length(length), exprs(b.getContext()),
        step(exprs.freshVar(exprs.fold(length))),
        key(exprs.freshVar(exprs.fold(length))) {
    bool isBatch = true;
    SmallVector<unsigned> dims;
    for (AffineExpr result :
         op.map(attn::LinearAttentionOp::Decay).getResults())
      dims.push_back(cast<AffineDimExpr>(result).getPosition());
    for (unsigned dim : dims)
      loops.try_emplace(dim,
                        dim == op.stepDim()
                            ? step
                            : exprs.freshVar(exprs.scalar(op.getSizes()[dim])));
    for (unsigned dim : dims)
      at.push_back(exprs.var(loops[dim]));
    llvm::sort(dims);
    for (unsigned dim : dims) {
      if (isBatch && dim > op.stepDim())
        pairVars.push_back(key);
      isBatch &= dim <= op.stepDim();
      if (dim == op.stepDim())
        continue;
      vars.push_back(loops[dim]);
      pairVars.push_back(loops[dim]);
    }
    if (isBatch)
      pairVars.push_back(key);
  }

  /// Row 0 is \p start; step t makes \p next of row t, which it gets.
  Value recurrence(ArrayRef<unsigned> own, double start,
                   function_ref<ExprRef(ExprRef)> next);
  Value ofKeys();
  Value ofState();
  unsigned keyAxis() {
    return 1 + (llvm::find(pairVars, key) - pairVars.begin());
  }

private:
  ExprRef decayed(ExprRef old) {
    return exprs.op("arith.mulf", b.getF32Type(), {exprs.read(decay, at), old});
  }
  ExprRef number(double value) {
    return exprs.constant(FloatAttr::get(b.getF32Type(), value));
  }

  OpBuilder &b;
  attn::LinearAttentionOp op;
  Value decay;
  OpFoldResult length;
  Exprs exprs;
  unsigned step, key;
  DenseMap<unsigned, unsigned> loops; ///< dim of the op -> variable
  SmallVector<ExprRef> at;            ///< where the decay is read
  SmallVector<unsigned> vars, pairVars;
};

Value ProductWriter::recurrence(ArrayRef<unsigned> own, double start,
                                function_ref<ExprRef(ExprRef)> next) {
  Location loc = op.getLoc();
  Value first = writeTensor(b, loc, exprs, number(start), own);
  std::optional<int64_t> steps = getConstantIntValue(length);
  Value rows =
      steps ? arith::ConstantIndexOp::create(b, loc, *steps + 1).getResult()
            : arith::AddIOp::create(b, loc, cast<Value>(length),
                                    arith::ConstantIndexOp::create(b, loc, 1))
                  .getResult();
  SmallVector<Value> sizes;
  for (unsigned v : own)
    sizes.push_back(writeExtent(b, loc, exprs.extent(v)));
  auto type = cast<RankedTensorType>(first.getType());
  SmallVector<int64_t> shape{steps ? *steps + 1 : ShapedType::kDynamic};
  llvm::append_range(shape, type.getShape());
  Type history = RankedTensorType::get(shape, type.getElementType());
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  auto recurrence =
      attn::RecurrenceOp::create(b, loc, history, zero, rows, sizes, first);
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&recurrence.getNext());
  ExprWriter writer(b, loc);
  Type index = b.getIndexType();
  writer.bind(step, block->addArgument(index, loc));
  SmallVector<ExprRef> place;
  for (unsigned v : own) {
    writer.bind(v, block->addArgument(index, loc));
    place.push_back(exprs.var(v));
  }
  ExprRef old = exprs.read(first, place);
  writer.bind(old, block->addArgument(b.getF32Type(), loc));
  attn::NextOp::create(b, loc, writer.write(next(old)));
  return recurrence.getHistories()[0];
}

Value ProductWriter::ofKeys() {
  auto isKey = [&](arith::CmpIPredicate predicate) {
    return exprs.compare(predicate, exprs.var(key), exprs.var(step));
  };
  return recurrence(pairVars, 0.0, [&](ExprRef old) {
    ExprRef own = exprs.select(isKey(arith::CmpIPredicate::eq), number(1.0),
                               number(0.0), /*guard=*/false);
    return exprs.select(isKey(mutated("chunk.decay-begins-early")
                                  ? arith::CmpIPredicate::sle
                                  : arith::CmpIPredicate::slt),
                        decayed(old), own, /*guard=*/false);
  });
}

Value ProductWriter::ofState() {
  return recurrence(vars, 1.0, [&](ExprRef old) { return decayed(old); });
}

/// Rows \p first to \p first + \p count of \p products, of their first \p keys
/// at axis \p keyAxis.
Value rows(OpBuilder &b, Value products, int64_t first, OpFoldResult count,
           unsigned keyAxis) {
  Location loc = products.getLoc();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, products),
                            offsets(sizes.size(), b.getIndexAttr(0)),
                            strides(sizes.size(), b.getIndexAttr(1));
  offsets[0] = b.getIndexAttr(first);
  sizes[0] = count;
  if (keyAxis)
    sizes[keyAxis] = count;
  return tensor::ExtractSliceOp::create(b, loc, products, offsets, sizes,
                                        strides);
}

/// Row \p number.
Value row(OpBuilder &b, Value products, OpFoldResult number, unsigned keyAxis) {
  Location loc = products.getLoc();
  attn::RowPlace place;
  place.sizes = tensor::getMixedSizes(b, loc, products);
  place.offsets.assign(place.sizes.size(), b.getIndexAttr(0));
  place.dropped.assign(place.sizes.size(), false);
  place.offsets[0] = number;
  place.sizes[0] = b.getIndexAttr(1);
  place.dropped[0] = true;
  if (keyAxis)
    place.sizes[keyAxis] = number;
  SmallVector<int64_t> shape;
  for (OpFoldResult size : ArrayRef(place.sizes).drop_front())
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  return attn::readRow(b, loc, products, place,
                       RankedTensorType::get(shape, b.getF32Type()));
}

} // namespace

DecayProducts::DecayProducts(OpBuilder &b, attn::LinearAttentionOp op,
                             Value decay, OpFoldResult length) {
  ProductWriter writer(b, op, decay, length);
  pairs = writer.ofKeys();
  all = writer.ofState();
  keyAxis = writer.keyAxis();
}

Value DecayProducts::ofKeys(OpBuilder &b, OpFoldResult length,
                            bool before) const {
  return rows(b, pairs, before != mutated("chunk.other-end") ? 0 : 1, length,
              keyAxis);
}

Value DecayProducts::ofState(OpBuilder &b, OpFoldResult length,
                             bool before) const {
  return rows(b, all, before ? 0 : 1, length, /*keyAxis=*/0);
}

Value DecayProducts::lastOfKeys(OpBuilder &b, OpFoldResult length) const {
  return row(b, pairs, length, keyAxis);
}

Value DecayProducts::lastOfState(OpBuilder &b, OpFoldResult length) const {
  return row(b, all, mutated("chunk.state-stays") ? b.getIndexAttr(0) : length,
             /*keyAxis=*/0);
}

} // namespace heed
