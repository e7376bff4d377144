//===- Reductions.cpp - Reductions and softmax ---------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace heed;
using namespace heed::sema;
using namespace mlir;

/// The type in which a reduction accumulates, and its neutral element.
TypedAttr Emitter::neutral(ReduceOp op, Ty ty, bool f64) {
  Builder &b = builder;
  if (ty == Ty::Bool)
    return b.getBoolAttr(op == ReduceOp::All);
  if (isReal(ty)) {
    mlir::Type type = f64 ? mlir::Type(b.getF64Type()) : b.getF32Type();
    double inf = std::numeric_limits<double>::infinity();
    double value = op == ReduceOp::Prod  ? 1
                   : op == ReduceOp::Max ? -inf
                   : op == ReduceOp::Min ? inf
                                         : 0;
    return b.getFloatAttr(type, value);
  }
  mlir::Type type = ty == Ty::I64 || ty == Ty::AnyInt ? b.getI64Type()
                    : ty == Ty::I8                    ? b.getI8Type()
                                                      : b.getI32Type();
  unsigned bits = type.getIntOrFloatBitWidth();
  llvm::APInt value =
      op == ReduceOp::Prod  ? llvm::APInt(bits, 1)
      : op == ReduceOp::Max ? llvm::APInt::getSignedMinValue(bits)
      : op == ReduceOp::Min ? llvm::APInt::getSignedMaxValue(bits)
                            : llvm::APInt(bits, 0);
  return b.getIntegerAttr(type, value);
}

static Value combine(OpBuilder &b, Location at, ReduceOp op, Value acc,
                     Value x) {
  bool real = llvm::isa<FloatType>(x.getType());
  switch (op) {
  case ReduceOp::Sum:
  case ReduceOp::Mean:
    return real ? Value(arith::AddFOp::create(b, at, acc, x))
                : Value(arith::AddIOp::create(b, at, acc, x));
  case ReduceOp::Prod:
    return real ? Value(arith::MulFOp::create(b, at, acc, x))
                : Value(arith::MulIOp::create(b, at, acc, x));
  case ReduceOp::Max:
    return real ? Value(arith::MaximumFOp::create(b, at, acc, x))
                : Value(arith::MaxSIOp::create(b, at, acc, x));
  case ReduceOp::Min:
    return real ? Value(arith::MinimumFOp::create(b, at, acc, x))
                : Value(arith::MinSIOp::create(b, at, acc, x));
  case ReduceOp::Any:
    return arith::OrIOp::create(b, at, acc, x);
  case ReduceOp::All:
    return arith::AndIOp::create(b, at, acc, x);
  case ReduceOp::Argmax:
    break;
  }
  return {};
}

/// The first maximum wins, and a NaN wins over numbers.
SmallVector<Value, 2> Emitter::argmax(Code &code, const Reduction &step,
                                      Value x, Value counts,
                                      ArrayRef<Value> acc) {
  OpBuilder &b = code.builder;
  Location at = loc(step.place);
  Value none =
      arith::CmpIOp::create(b, at, arith::CmpIPredicate::slt, acc[1],
                            arith::ConstantIntOp::create(b, at, 0, 64));
  Value better;
  if (isReal(step.ty)) {
    Value more =
        arith::CmpFOp::create(b, at, arith::CmpFPredicate::OGT, x, acc[0]);
    Value nan = arith::CmpFOp::create(b, at, arith::CmpFPredicate::UNO, x, x);
    Value had =
        arith::CmpFOp::create(b, at, arith::CmpFPredicate::ORD, acc[0], acc[0]);
    better = arith::OrIOp::create(b, at, more,
                                  arith::AndIOp::create(b, at, nan, had));
  } else {
    better = arith::CmpIOp::create(b, at, arith::CmpIPredicate::sgt, x, acc[0]);
  }
  Value take = arith::OrIOp::create(b, at, none, better);
  if (counts)
    take = arith::AndIOp::create(b, at, take, counts);
  Value position;
  for (auto [idx, extent] : llvm::zip(step.ids, step.idExtents)) {
    Value k = asI64(code, {indexValue(code, idx, at), Ty::AnyInt, {}}, at);
    if (position) {
      Value n = asI64(code, {emit(extent, step.place), Ty::AnyInt, {}}, at);
      k = arith::AddIOp::create(b, at,
                                arith::MulIOp::create(b, at, position, n), k);
    }
    position = k;
  }
  return {arith::SelectOp::create(b, at, take, x, acc[0]),
          arith::SelectOp::create(b, at, take, position, acc[1])};
}

/// One term's turn: the accumulators after it.
SmallVector<Value, 2> Emitter::accumulate(Code &code, const Reduction &step,
                                          TypedAttr zero, ArrayRef<Value> acc) {
  Location at = loc(step.place);
  OpBuilder &b = code.builder;
  bool isSum = step.op == ReduceOp::Sum || step.op == ReduceOp::Mean;
  auto keep = [&] { return Values(acc); };
  // The next accumulators, given the term and where it counts (null: always).
  auto next = [&](const TV &term, Value counts) -> Values {
    Value x =
        toType(b,
               isReal(step.ty) && term.ty != Ty::Bool ? asReal(code, term, at)
                                                      : term.value,
               zero.getType(), at);
    if (step.op == ReduceOp::Argmax)
      return argmax(code, step, x, counts, acc);
    if (counts)
      x = arith::SelectOp::create(b, at, counts, x,
                                  arith::ConstantOp::create(b, at, zero));
    return {combine(b, at, step.op, acc[0], x)};
  };
  auto term = [&]() -> Values {
    Value condition = step.where ? emit(code, step.where).value : Value();
    auto value = [&]() -> Values {
      TV tv = emit(code, step.operand);
      Value counts = step.inBranch ? Value() : condition;
      if (tv.live && isSum)
        counts = counts ? Value(arith::AndIOp::create(b, at, counts, tv.live))
                        : tv.live;
      return next(tv, counts);
    };
    return step.inBranch ? ifElse(code, condition, ValueRange(acc).getTypes(),
                                  at, value, keep)
                         : value();
  };
  return underGuards(code, step.guards, 0, ValueRange(acc).getTypes(), at, term,
                     keep);
}

/// Of how many terms a mean with a condition is.
Value Emitter::count(const Reduction &step) {
  Location at = loc(step.place);
  Value zeros = filled(builder.getI64IntegerAttr(0), step.shape, step.place);
  auto count = [&](Code &code, ArrayRef<Value> acc) {
    return underGuards(
        code, step.countGuards, 0, ValueRange(acc).getTypes(), at,
        [&]() -> Values {
          OpBuilder &b = code.builder;
          Value where = emit(code, step.countWhere).value;
          Value add = arith::ExtUIOp::create(b, at, b.getI64Type(), where);
          return {arith::AddIOp::create(b, at, acc[0], add)};
        },
        [&] { return Values(acc); });
  };
  return generic(step.place, step.axes, step.ids, step.idExtents, zeros, false,
                 count)[0];
}

void Emitter::emit(const Reduction &step) {
  Location at = loc(step.place);
  bool isArgmax = step.op == ReduceOp::Argmax;
  TypedAttr zero =
      neutral(isArgmax ? ReduceOp::Max : step.op, step.ty, step.f64);
  // No tensor holds f64 (front.c8): it holds the bits, and `loaded` takes them
  // apart.
  bool byBits = zero.getType().isF64();
  TypedAttr init = zero;
  if (byBits)
    init = builder.getI64IntegerAttr(
        llvm::cast<FloatAttr>(zero).getValue().bitcastToAPInt().getSExtValue());
  Values inits = {filled(init, step.shape, step.place)};
  if (isArgmax)
    inits.push_back(
        filled(builder.getI64IntegerAttr(-1), step.shape, step.place));
  auto fill = [&](Code &code, ArrayRef<Value> stored) -> Values {
    Values acc(stored);
    if (byBits)
      acc[0] =
          arith::BitcastOp::create(code.builder, at, zero.getType(), stored[0]);
    Values next = accumulate(code, step, zero, acc);
    if (byBits)
      next[0] =
          arith::BitcastOp::create(code.builder, at, init.getType(), next[0]);
    return next;
  };
  Values results = generic(step.place, step.axes, step.ids, step.idExtents,
                           inits, step.f64, fill);
  tensors[step.result] = results[isArgmax ? 1 : 0];
  if (step.count)
    tensors[step.count] = count(step);
}

void Emitter::emit(const Softmax &step) {
  Location at = loc(step.place);
  Region region;
  if (step.where) {
    Code code(Code::Where, OpBuilder(builder.getContext()));
    code.block = &region.emplaceBlock();
    code.builder.setInsertionPointToEnd(code.block);
    for (Idx *idx : step.axes) {
      code.at[idx] = code.block->addArgument(builder.getIndexType(), at);
      code.loops.push_back(idx);
    }
    attn::YieldOp::create(code.builder, at, emit(code, step.where).value);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*code.block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
  // A tensor that is read as it is may have an extent that only a check makes
  // the number that the index ranges over.
  auto as = [&](Value value, ArrayRef<SizeUse> shape) -> Value {
    mlir::Type type = tensorType(builder.getF32Type(), shape);
    if (value.getType() == type)
      return value;
    return tensor::CastOp::create(builder, at, type, value);
  };
  Value scores = as(value(step.scores), step.shape), sink;
  if (step.sink)
    sink = as(value(step.sink), step.sinkShape);
  mlir::Type result = tensorType(builder.getF32Type(), step.shape);
  mlir::Type live = tensorType(builder.getI1Type(), step.shape);
  SmallVector<int64_t> positions(step.positions.begin(), step.positions.end());
  Operation *op;
  if (step.isLog) {
    auto softmax = attn::LogSoftmaxOp::create(builder, at, result, live, scores,
                                              sink, positions);
    softmax.getWhere().takeBody(region);
    op = softmax;
  } else {
    auto softmax = attn::SoftmaxOp::create(builder, at, result, live, scores,
                                           sink, positions);
    // Others have the names that the op gives them.
    softmax.setMap(attn::symbolizeMap(step.map).value_or(attn::Map::Exp));
    softmax.getWhere().takeBody(region);
    op = softmax;
  }
  tensors[step.result] = op->getResult(0);
  tensors[step.live] = op->getResult(1);
}
