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
  ProductWriter(OpBuilder &b, attn::LinearAttentionOp op, OpFoldResult length)
      : b(b), op(op), length(length), exprs(b.getContext()) {
    for (auto [dim, size] : llvm::enumerate(op.getSizes()))
      loops.push_back(exprs.freshVar(dim == op.stepDim() ? exprs.fold(length)
                                                         : exprs.scalar(size)));
    key = exprs.freshVar(exprs.fold(length));
  }

  /// What is left of \p keys, or of 1 where they are null, over \p dims.
  Value ofKeys(ArrayRef<unsigned> dims, Value decay, Value keys);
  /// What is left of \p start.
  Value ofState(ArrayRef<unsigned> dims, Value decay, Value start);
  /// The same of decays with \p powers.
  Value ofPowers(ArrayRef<unsigned> dims, Value powers, Value start);
  Value ofKeyPowers(ArrayRef<unsigned> dims, Value powers);
  /// The first \p steps powers, and the one before.
  Value powers(ArrayRef<unsigned> dims, Value decay, int64_t steps);

private:
  using Op = attn::LinearAttentionOp;
  /// Row 0 is \p start; step t makes \p next of row t, which it gets.
  Value recurrence(ArrayRef<unsigned> own, ExprRef start,
                   function_ref<ExprRef(ExprRef)> next);
  ExprRef read(unsigned which, Value tensor) {
    SmallVector<ExprRef> at;
    for (AffineExpr result : op.map(which).getResults())
      at.push_back(exprs.var(loops[cast<AffineDimExpr>(result).getPosition()]));
    return exprs.read(tensor, at);
  }
  ExprRef decayed(Value decay, ExprRef old) {
    return exprs.op("arith.mulf", b.getF32Type(),
                    {read(Op::Decay, decay), old});
  }
  ExprRef number(double value) {
    return exprs.constant(FloatAttr::get(b.getF32Type(), value));
  }

  OpBuilder &b;
  attn::LinearAttentionOp op;
  OpFoldResult length;
  Exprs exprs;
  SmallVector<unsigned> loops; ///< a variable for each loop dim
  unsigned key = 0;            ///< and one of keys
};

Value ProductWriter::recurrence(ArrayRef<unsigned> own, ExprRef start,
                                function_ref<ExprRef(ExprRef)> next) {
  Location loc = op.getLoc();
  Value first = writeTensor(b, loc, exprs, start, own);
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
  writer.bind(loops[op.stepDim()], block->addArgument(index, loc));
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

Value ProductWriter::ofKeys(ArrayRef<unsigned> dims, Value decay, Value keys) {
  SmallVector<unsigned> own;
  for (unsigned dim : dims)
    own.push_back(dim == op.stepDim() ? key : loops[dim]);
  auto isKey = [&](arith::CmpIPredicate predicate) {
    return exprs.compare(predicate, exprs.var(key),
                         exprs.var(loops[op.stepDim()]));
  };
  return recurrence(own, number(0.0), [&](ExprRef old) {
    ExprRef entering = exprs.select(isKey(arith::CmpIPredicate::eq),
                                    keys ? read(Op::Key, keys) : number(1.0),
                                    number(0.0), /*guard=*/false);
    return exprs.select(isKey(mutated("chunk.decay-begins-early")
                                  ? arith::CmpIPredicate::sle
                                  : arith::CmpIPredicate::slt),
                        decayed(decay, old), entering, /*guard=*/false);
  });
}

Value ProductWriter::ofState(ArrayRef<unsigned> dims, Value decay,
                             Value start) {
  SmallVector<unsigned> own;
  for (unsigned dim : dims)
    own.push_back(loops[dim]);
  return recurrence(own, exprs.scalar(start),
                    [&](ExprRef old) { return decayed(decay, old); });
}

Value ProductWriter::powers(ArrayRef<unsigned> dims, Value decay,
                            int64_t steps) {
  SmallVector<unsigned> own{exprs.freshVar(exprs.index(steps + 1))};
  for (unsigned dim : dims)
    own.push_back(loops[dim]);
  Type real = b.getF64Type();
  ExprRef exponent = exprs.op(
      "arith.sitofp", real,
      {exprs.op("arith.index_cast", b.getI64Type(), {exprs.var(own[0])})});
  ExprRef base = exprs.op("arith.extf", real, {read(Op::Decay, decay)});
  ExprRef power = exprs.op("arith.truncf", b.getF32Type(),
                           {exprs.op("math.powf", real, {base, exponent})});
  return writeTensor(b, op.getLoc(), exprs, power, own);
}

Value ProductWriter::ofPowers(ArrayRef<unsigned> dims, Value powers,
                              Value start) {
  if (!start)
    return powers;
  unsigned row = exprs.freshVar(exprs.op("arith.addi", b.getIndexType(),
                                         {exprs.fold(length), exprs.index(1)}));
  SmallVector<unsigned> own{row};
  SmallVector<ExprRef> at{exprs.var(row)};
  for (unsigned dim : dims) {
    own.push_back(loops[dim]);
    at.push_back(exprs.var(loops[dim]));
  }
  ExprRef left = exprs.op("arith.mulf", b.getF32Type(),
                          {exprs.scalar(start), exprs.read(powers, at)});
  return writeTensor(b, op.getLoc(), exprs, left, own);
}

Value ProductWriter::ofKeyPowers(ArrayRef<unsigned> dims, Value powers) {
  Type index = b.getIndexType();
  unsigned row = exprs.freshVar(
      exprs.op("arith.addi", index, {exprs.fold(length), exprs.index(1)}));
  ExprRef between =
      exprs.op("arith.subi", index,
               {exprs.op("arith.subi", index, {exprs.var(row), exprs.index(1)}),
                exprs.var(key)});
  SmallVector<unsigned> own{row};
  SmallVector<ExprRef> at{
      exprs.op("arith.maxsi", index, {between, exprs.index(0)})};
  for (unsigned dim : dims) {
    bool isStep = dim == op.stepDim();
    own.push_back(isStep ? key : loops[dim]);
    if (!isStep)
      at.push_back(exprs.var(loops[dim]));
  }
  ExprRef isThere = exprs.compare(mutated("chunk.power-of-later-keys")
                                      ? arith::CmpIPredicate::sle
                                      : arith::CmpIPredicate::slt,
                                  exprs.var(key), exprs.var(row));
  return writeTensor(b, op.getLoc(), exprs,
                     exprs.select(isThere, exprs.read(powers, at), number(0.0),
                                  /*guard=*/false),
                     own);
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
  attn::RowPlace place = attn::firstAxisAt(b, loc, products, number);
  if (keyAxis)
    place.sizes[keyAxis] = number;
  SmallVector<int64_t> shape;
  for (OpFoldResult size : ArrayRef(place.sizes).drop_front())
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  return attn::readRow(b, loc, products, place,
                       RankedTensorType::get(shape, b.getF32Type()));
}

} // namespace

bool decaysByChannel(attn::LinearAttentionOp op) {
  unsigned first = op.firstContract();
  return op.getDecay() &&
         llvm::any_of(llvm::seq(first, op.firstValue()), [&](unsigned dim) {
           return op.map(attn::LinearAttentionOp::Decay).isFunctionOfDim(dim);
         });
}

/// The dims of decays, but for the step.
static SmallVector<unsigned> decayDims(attn::LinearAttentionOp op) {
  AffineMap map = op.map(attn::LinearAttentionOp::Decay);
  SmallVector<unsigned> dims;
  for (unsigned dim : llvm::seq(op.numLoops()))
    if (dim != op.stepDim() && map.isFunctionOfDim(dim))
      dims.push_back(dim);
  return dims;
}

Value decayPowers(OpBuilder &b, attn::LinearAttentionOp op, int64_t steps) {
  if (!op.getDecay() ||
      op.map(attn::LinearAttentionOp::Decay).isFunctionOfDim(op.stepDim()))
    return {};
  return ProductWriter(b, op, b.getIndexAttr(steps))
      .powers(decayDims(op), op.getDecay(), steps);
}

DecayProducts::DecayProducts(OpBuilder &b, attn::LinearAttentionOp op,
                             Value decay, Value key, OpFoldResult length,
                             Value start, Value powers)
    : dims(decayDims(op)), stepDim(op.stepDim()), ofChannels(key) {
  using Op = attn::LinearAttentionOp;
  AffineMap decayMap = op.map(Op::Decay), keyMap = op.map(Op::Key);
  for (unsigned dim : llvm::seq(op.numLoops()))
    if (dim != stepDim &&
        (decayMap.isFunctionOfDim(dim) || (key && keyMap.isFunctionOfDim(dim))))
      pairDims.push_back(dim);
  // Keys are lanes where a channel is a row of them.
  pairDims.insert(key ? pairDims.end() : llvm::upper_bound(pairDims, stepDim),
                  stepDim);
  ProductWriter writer(b, op, length);
  pairs = powers && !key ? writer.ofKeyPowers(pairDims, powers)
                         : writer.ofKeys(pairDims, decay, key);
  all = powers ? writer.ofPowers(dims, powers, start)
               : writer.ofState(dims, decay, start);
}

unsigned DecayProducts::keyAxis() const {
  return 1 + (llvm::find(pairDims, stepDim) - pairDims.begin());
}

Value DecayProducts::ofKeys(OpBuilder &b, OpFoldResult length,
                            bool before) const {
  return rows(b, pairs, before != mutated("chunk.other-end") ? 0 : 1, length,
              keyAxis());
}

Value DecayProducts::ofState(OpBuilder &b, OpFoldResult length,
                             bool before) const {
  return rows(b, all, before ? 0 : 1, length, /*keyAxis=*/0);
}

Value DecayProducts::lastOfKeys(OpBuilder &b, OpFoldResult length) const {
  return row(b, pairs, length, keyAxis());
}

Value DecayProducts::afterStep(OpBuilder &b, OpFoldResult steps) const {
  return row(b, all, mutated("chunk.state-stays") ? b.getIndexAttr(0) : steps,
             /*keyAxis=*/0);
}

} // namespace heed
