//===- EmitOperators.cpp - Operators, comparisons and branches in a body --===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Heed/Semantics/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using namespace mlir;
using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;

static Value both(OpBuilder &b, Location at, Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return x == y ? x : Value(arith::AndIOp::create(b, at, x, y));
}

TV Lowering::emitBinary(Body &body, const BinaryExpr &expr, const Scope &scope,
                        Equation &eq) {
  const Info &i = info(expr, scope, eq);
  Location at = loc(expr.opRange);
  OpBuilder &b = body.builder;
  TV x = emit(body, *expr.lhs, scope, eq);
  TV y = emit(body, *expr.rhs, scope, eq);
  if (!x || !y)
    return {};
  Value live;
  switch (expr.op) {
  case BinaryOp::Mul:
    live = both(b, at, x.live, y.live);
    break;
  case BinaryOp::Div:
    live = x.live;
    break;
  case BinaryOp::Pow:
    if (isProduct(expr))
      live = x.live;
    break;
  case BinaryOp::Add:
  case BinaryOp::Sub:
    if (x.live && y.live)
      live = x.live == y.live
                 ? x.live
                 : Value(arith::OrIOp::create(b, at, x.live, y.live));
    break;
  default:
    break;
  }
  if (isReal(i.ty)) {
    Value u = asReal(body, x, at), v = asReal(body, y, at), r;
    switch (expr.op) {
    case BinaryOp::Add:
      r = arith::AddFOp::create(b, at, u, v);
      break;
    case BinaryOp::Sub:
      r = arith::SubFOp::create(b, at, u, v);
      break;
    case BinaryOp::Mul:
      r = arith::MulFOp::create(b, at, u, v);
      break;
    case BinaryOp::Div:
      r = arith::DivFOp::create(b, at, u, v);
      break;
    case BinaryOp::FloorDiv:
      r = math::FloorOp::create(b, at, arith::DivFOp::create(b, at, u, v));
      break;
    case BinaryOp::Mod: {
      // What floor division leaves. A quotient that was rounded up to the next
      // integer leaves a rest of the wrong sign: one divisor more.
      Value q =
          math::FloorOp::create(b, at, arith::DivFOp::create(b, at, u, v));
      Value rest =
          arith::SubFOp::create(b, at, u, arith::MulFOp::create(b, at, q, v));
      Value zero = realConstant(body, 0, at);
      Value wrong =
          arith::CmpFOp::create(b, at, arith::CmpFPredicate::OLT,
                                arith::MulFOp::create(b, at, rest, v), zero);
      r = arith::SelectOp::create(b, at, wrong,
                                  arith::AddFOp::create(b, at, rest, v), rest);
      break;
    }
    case BinaryOp::Pow: {
      auto *exponent = dyn_cast<IntExpr>(expr.rhs.get());
      if (exponent && exponent->value >= 1 && exponent->value <= 4) {
        r = u;
        for (int64_t k = 1; k < exponent->value; ++k)
          r = arith::MulFOp::create(b, at, r, u);
      } else {
        r = math::PowFOp::create(b, at, u, v);
      }
      break;
    }
    }
    return {r, i.ty, live};
  }
  // Integers: with an index in `index`, else in i64.
  auto [u, v] = asIntegers(body, x, y, at);
  Value r;
  switch (expr.op) {
  case BinaryOp::Add:
    r = arith::AddIOp::create(b, at, u, v);
    break;
  case BinaryOp::Sub:
    r = arith::SubIOp::create(b, at, u, v);
    break;
  case BinaryOp::Mul:
    r = arith::MulIOp::create(b, at, u, v);
    break;
  case BinaryOp::Pow: {
    int64_t n = cast<IntExpr>(*expr.rhs).value;
    r = arith::ConstantOp::create(b, at, b.getIntegerAttr(u.getType(), 1));
    for (uint64_t bit = 1; bit <= uint64_t(n); bit <<= 1) {
      if (n & bit)
        r = b.createOrFold<arith::MulIOp>(at, r, u);
      u = b.createOrFold<arith::MulIOp>(at, u, u);
    }
    break;
  }
  case BinaryOp::Div:
  case BinaryOp::FloorDiv:
  case BinaryOp::Mod: {
    // A divisor of indices and sizes must not be 0; one of data may be.
    const Info &divisor = info(*expr.rhs, scope, eq);
    if (divisor.pure && !checkDivisor(expr, scope, eq))
      return {};
    Bounds range = bounds(*expr.rhs, scope, eq);
    bool isZeroPossible = llvm::none_of(range.lower, [&](const Size &lower) {
      return sizes.nonNegative(lower - 1, positiveAtoms(i.used));
    });
    Value zero, isZero;
    if (isZeroPossible) {
      zero = arith::ConstantOp::create(b, at, b.getIntegerAttr(u.getType(), 0));
      Value one =
          arith::ConstantOp::create(b, at, b.getIntegerAttr(u.getType(), 1));
      isZero = arith::CmpIOp::create(b, at, arith::CmpIPredicate::eq, v, zero);
      v = arith::SelectOp::create(b, at, isZero, one, v);
    }
    Bounds low = bounds(*expr.lhs, scope, eq);
    bool isNonNegative =
        divisor.fixed && sizes.nonNegative(divisor.fixed->size) &&
        llvm::any_of(low.lower,
                     [&](const Size &s) { return sizes.nonNegative(s); });
    if (isNonNegative) {
      r = expr.op == BinaryOp::Mod ? Value(arith::RemSIOp::create(b, at, u, v))
                                   : Value(arith::DivSIOp::create(b, at, u, v));
    } else {
      Value q = arith::FloorDivSIOp::create(b, at, u, v);
      r = q;
      if (expr.op == BinaryOp::Mod)
        r = arith::SubIOp::create(b, at, u, arith::MulIOp::create(b, at, q, v));
    }
    if (isZeroPossible)
      r = arith::SelectOp::create(b, at, isZero, zero, r);
    break;
  }
  }
  return {r, i.ty, live};
}

TV Lowering::emitCompare(Body &body, const CompareExpr &expr,
                         const Scope &scope, Equation &eq) {
  OpBuilder &b = body.builder;
  Value all;
  SmallVector<TV> values;
  for (const ExprPtr &operand : expr.operands) {
    if (info(*operand, scope, eq).isNoValue()) {
      values.push_back({});
      continue;
    }
    values.push_back(emit(body, *operand, scope, eq));
    if (!values.back())
      return {};
  }
  for (auto [k, op] : llvm::enumerate(expr.ops)) {
    const TV &x = values[k], &y = values[k + 1];
    if (!x || !y)
      continue; // against none or a string: known to hold
    Location at = loc(expr.opRanges[k]);
    Value r;
    if (isReal(x.ty) || isReal(y.ty)) {
      static const arith::CmpFPredicate predicates[] = {
          arith::CmpFPredicate::OEQ, arith::CmpFPredicate::UNE,
          arith::CmpFPredicate::OLT, arith::CmpFPredicate::OLE,
          arith::CmpFPredicate::OGT, arith::CmpFPredicate::OGE};
      r = arith::CmpFOp::create(b, at, predicates[unsigned(op)],
                                asReal(body, x, at), asReal(body, y, at));
    } else {
      static const arith::CmpIPredicate predicates[] = {
          arith::CmpIPredicate::eq,  arith::CmpIPredicate::ne,
          arith::CmpIPredicate::slt, arith::CmpIPredicate::sle,
          arith::CmpIPredicate::sgt, arith::CmpIPredicate::sge};
      Value u = x.value, v = y.value;
      if (x.ty != Ty::Bool && u.getType() != v.getType())
        std::tie(u, v) = asIntegers(body, x, y, at);
      r = arith::CmpIOp::create(b, at, predicates[unsigned(op)], u, v);
    }
    all = both(b, at, all, r);
  }
  return {all, Ty::Bool, {}};
}

TV Lowering::emitLogic(Body &body, const LogicExpr &expr, const Scope &scope,
                       Equation &eq) {
  Location at = loc(expr.range);
  OpBuilder &b = body.builder;
  TV x = emit(body, *expr.lhs, scope, eq);
  if (!x)
    return {};
  eq.guards.push_back({expr.lhs.get(), expr.isAnd, &scope, &body});
  llvm::scope_exit leave([&] { eq.guards.pop_back(); });
  if (!needsGuard(*expr.rhs, scope, eq)) {
    TV y = emit(body, *expr.rhs, scope, eq);
    if (!y)
      return {};
    Value r = expr.isAnd ? Value(arith::AndIOp::create(b, at, x.value, y.value))
                         : Value(arith::OrIOp::create(b, at, x.value, y.value));
    return {r, Ty::Bool, {}};
  }
  auto right = [&] { return emit(body, *expr.rhs, scope, eq); };
  auto known = [&]() -> TV {
    return {boolConstant(b, !expr.isAnd, at), Ty::Bool, {}};
  };
  if (expr.isAnd)
    return branch(body, x.value, Ty::Bool, false, at, right, known);
  return branch(body, x.value, Ty::Bool, false, at, known, right);
}

TV Lowering::emitIf(Body &body, const IfExpr &expr, const Scope &scope,
                    Equation &eq) {
  const Info &c = info(*expr.condition, scope, eq);
  if (c.fixed)
    return emit(body, c.fixed->flag ? *expr.thenValue : *expr.elseValue, scope,
                eq);
  const Info &i = info(expr, scope, eq);
  Location at = loc(expr.range);
  TV condition = emit(body, *expr.condition, scope, eq);
  if (!condition)
    return {};
  auto side = [&](bool first) {
    eq.guards.push_back({expr.condition.get(), first, &scope, &body});
    TV tv = emit(body, first ? *expr.thenValue : *expr.elseValue, scope, eq);
    eq.guards.pop_back();
    return tv;
  };
  if (!needsGuard(*expr.thenValue, scope, eq) &&
      !needsGuard(*expr.elseValue, scope, eq)) {
    TV a = side(true), b = side(false);
    if (!a || !b)
      return {};
    OpBuilder &builder = body.builder;
    Value live;
    if (a.live || b.live) {
      auto orTrue = [&](Value v) {
        return v ? v : boolConstant(builder, 1, at);
      };
      live = arith::SelectOp::create(builder, at, condition.value,
                                     orTrue(a.live), orTrue(b.live));
    }
    return {arith::SelectOp::create(builder, at, condition.value,
                                    asType(body, a, i.ty, at),
                                    asType(body, b, i.ty, at)),
            i.ty, live};
  }
  return branch(
      body, condition.value, i.ty, i.mayBeAbsent, at,
      [&] { return side(true); }, [&] { return side(false); });
}
