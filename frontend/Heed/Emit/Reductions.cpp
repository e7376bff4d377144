//===- Reductions.cpp - Reductions as linalg.generic ----------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Heed/Semantics/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/SaveAndRestore.h"

#include <limits>

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using namespace mlir;
using llvm::cast;
using llvm::dyn_cast;

/// The type in which a reduction accumulates, and its neutral element.
TypedAttr Lowering::neutral(ReduceOp op, Ty ty, bool f64) {
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

std::optional<Reduced> Lowering::emitReduce(const ReduceExpr &expr,
                                            const Scope &scope, Equation &eq,
                                            ArrayRef<Idx *> axes,
                                            size_t firstGuard, bool f64) {
  Location at = loc(expr.range);
  Scope inner = inside(expr, scope, eq);
  SmallVector<Idx *, 2> ids = eq.binders[{&expr, scope.env.get()}];
  llvm::SaveAndRestore run(running, loopsOf(axes, ids));
  const Info &operand = info(*expr.operand, inner, eq);
  Ty ty = info(expr, scope, eq).ty;
  bool isArgmax = expr.op == ReduceOp::Argmax;
  if (isArgmax || expr.op == ReduceOp::Max || expr.op == ReduceOp::Min)
    ty = operand.ty;
  if (expr.op == ReduceOp::Mean)
    ty = isReal(operand.ty) ? operand.ty : Ty::I64;
  TypedAttr zero = neutral(isArgmax ? ReduceOp::Max : expr.op, ty, f64);
  mlir::Type accType = zero.getType();
  Shape shape = shapeOf(axes);
  SmallVector<Value, 2> inits = {filled(zero, shape, expr.range)};
  if (isArgmax)
    inits.push_back(filled(builder.getI64IntegerAttr(-1), shape, expr.range));
  bool guarded = needsGuard(*expr.operand, inner, eq) ||
                 (expr.where && needsGuard(*expr.where, inner, eq));

  auto fill = [&](Body &body, ArrayRef<Value> acc) -> Values {
    OpBuilder &b = body.builder;
    auto keep = [&] { return Values(acc); };
    // The next accumulators, given the term and where it counts (null: always).
    auto next = [&](const TV &term, Value counts) -> SmallVector<Value, 2> {
      Value x =
          toType(b,
                 isReal(ty) && term.ty != Ty::Bool ? asReal(body, term, at)
                                                   : term.value,
                 accType, at);
      if (!isArgmax) {
        if (counts)
          x = arith::SelectOp::create(b, at, counts, x,
                                      arith::ConstantOp::create(b, at, zero));
        return {combine(b, at, expr.op, acc[0], x)};
      }
      // The first maximum wins, and a NaN wins over numbers.
      Value none =
          arith::CmpIOp::create(b, at, arith::CmpIPredicate::slt, acc[1],
                                arith::ConstantIntOp::create(b, at, 0, 64));
      Value better;
      if (isReal(ty)) {
        Value more =
            arith::CmpFOp::create(b, at, arith::CmpFPredicate::OGT, x, acc[0]);
        Value nan =
            arith::CmpFOp::create(b, at, arith::CmpFPredicate::UNO, x, x);
        Value had = arith::CmpFOp::create(b, at, arith::CmpFPredicate::ORD,
                                          acc[0], acc[0]);
        better = arith::OrIOp::create(b, at, more,
                                      arith::AndIOp::create(b, at, nan, had));
      } else {
        better =
            arith::CmpIOp::create(b, at, arith::CmpIPredicate::sgt, x, acc[0]);
      }
      Value take = arith::OrIOp::create(b, at, none, better);
      if (counts)
        take = arith::AndIOp::create(b, at, take, counts);
      Value position;
      for (Idx *idx : ids) {
        Value k = asI64(body, {indexValue(body, idx, at), Ty::AnyInt, {}}, at);
        if (position) {
          Value n =
              asI64(body, {emit(*idx->extent, expr.range), Ty::AnyInt, {}}, at);
          k = arith::AddIOp::create(
              b, at, arith::MulIOp::create(b, at, position, n), k);
        }
        position = k;
      }
      return {arith::SelectOp::create(b, at, take, x, acc[0]),
              arith::SelectOp::create(b, at, take, position, acc[1])};
    };
    auto term = [&]() -> SmallVector<Value, 2> {
      size_t depth = eq.guards.size();
      Value condition;
      if (expr.where) {
        TV where = emit(body, *expr.where, inner, eq);
        if (!where)
          return {};
        condition = where.value;
        eq.guards.push_back({expr.where.get(), true, &inner, &body});
      }
      llvm::scope_exit leave([&] { eq.guards.resize(depth); });
      bool inIf = condition && needsGuard(*expr.operand, inner, eq);
      auto value = [&]() -> SmallVector<Value, 2> {
        TV tv = emit(body, *expr.operand, inner, eq);
        if (!tv)
          return {};
        Value counts = inIf ? Value() : condition;
        if (tv.live && (expr.op == ReduceOp::Sum || expr.op == ReduceOp::Mean))
          counts = counts ? Value(arith::AndIOp::create(b, at, counts, tv.live))
                          : tv.live;
        return next(tv, counts);
      };
      return inIf ? ifElse(body, condition, ValueRange(acc).getTypes(), at,
                           value, keep)
                  : value();
    };
    if (!guarded)
      return term();
    return underGuards(body, eq, firstGuard, ValueRange(acc).getTypes(), at,
                       term, keep);
  };
  auto results = generic(expr.range, axes, ids, inits, f64, fill);
  if (results.empty())
    return std::nullopt;

  Reduced reduced;
  reduced.value = {
      results[isArgmax ? 1 : 0], isArgmax ? Ty::I64 : ty, shape, {}};
  if (expr.op == ReduceOp::Mean && expr.where) {
    Value zeros = filled(builder.getI64IntegerAttr(0), shape, expr.range);
    auto count = generic(
        expr.range, axes, ids, {zeros}, false,
        [&](Body &body, ArrayRef<Value> acc) -> SmallVector<Value, 2> {
          auto one = [&]() -> SmallVector<Value, 2> {
            TV where = emit(body, *expr.where, inner, eq);
            if (!where)
              return {};
            Value add = arith::ExtUIOp::create(
                body.builder, at, builder.getI64Type(), where.value);
            return {arith::AddIOp::create(body.builder, at, acc[0], add)};
          };
          if (!needsGuard(*expr.where, inner, eq))
            return one();
          return underGuards(body, eq, firstGuard, ValueRange(acc).getTypes(),
                             at, one, [&] { return Values(acc); });
        });
    if (count.empty())
      return std::nullopt;
    reduced.count = {count[0], Ty::I64, shape, {}};
  }
  return reduced;
}

/// A reduction inside an expression: a generic of its own, read here.
TV Lowering::emitReduced(Body &body, const ReduceExpr &expr, const Scope &scope,
                         Equation &eq) {
  const Info &i = info(expr, scope, eq);
  Location at = loc(expr.range);
  Scope inner = inside(expr, scope, eq);
  SmallVector<Idx *, 2> ids = eq.binders[{&expr, scope.env.get()}];
  size_t depth = eq.guards.size();
  llvm::scope_exit leave([&] { eq.guards.resize(depth); });
  Hoisted hoisted =
      hoist({expr.operand.get(), expr.where.get()}, inner, eq, i.used, ids);
  SmallVector<Idx *, 4> axes = hoisted.axes;
  inLoopOrder(axes, body);
  Equation::Place key{{&expr, scope.env.get()}, hoisted.guards};
  auto it = eq.reduced.find(key);
  if (it == eq.reduced.end() || body.f64) {
    auto reduced =
        emitReduce(expr, scope, eq, axes, hoisted.firstGuard, body.f64);
    if (!reduced)
      return {};
    eq.reduced.erase(key);
    it = eq.reduced.emplace(key, std::make_pair(*reduced, axes)).first;
  }
  const Reduced &reduced = it->second.first;
  TV tv = readTensor(body, reduced.value, it->second.second, at);
  if (expr.op == ReduceOp::Argmax)
    return {tv.value, Ty::I32, {}};
  if (expr.op != ReduceOp::Mean) {
    tv.ty = i.ty;
    return tv;
  }
  Value sum = asReal(body, tv, at), count;
  OpBuilder &b = body.builder;
  if (reduced.count.value) {
    TV n = readTensor(body, reduced.count, it->second.second, at);
    Value one = arith::ConstantIntOp::create(b, at, 1, 64);
    Value atLeastOne = arith::MaxSIOp::create(b, at, n.value, one);
    count = arith::SIToFPOp::create(b, at, realType(body), atLeastOne);
  } else {
    Size n(1);
    for (Idx *idx : ids)
      n = n * *idx->extent;
    n = sizes.max(n, Size(1));
    if (auto c = n.constant())
      count = realConstant(body, double(*c), at);
    else
      count = asReal(body, {emit(n, expr.range), Ty::AnyInt, {}}, at);
  }
  return {arith::DivFOp::create(b, at, sum, count), i.ty, {}};
}

/// The order of the loops of `body` for the axes that it has.
void Lowering::inLoopOrder(SmallVectorImpl<Idx *> &axes, const Body &body) {
  auto position = [&](Idx *idx) {
    return llvm::find(body.loops, idx) - body.loops.begin();
  };
  llvm::sort(axes, [&](Idx *a, Idx *b) { return position(a) < position(b); });
}
