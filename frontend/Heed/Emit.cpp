//===- Emit.cpp - Scalar expressions in a body ----------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Integers that come from indices and sizes are `index`; integers that come
// from data keep their type until they are computed with, then they are i64
// (or `index`, where they meet an index). Reals are f32, in a table f64.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using namespace mlir;
using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

mlir::Type Lowering::realType(const Body &body) {
  return body.f64 ? mlir::Type(builder.getF64Type())
                  : mlir::Type(builder.getF32Type());
}

mlir::Type Lowering::bodyType(const Body &body, Ty ty) {
  if (ty == Ty::Bool)
    return builder.getI1Type();
  if (isReal(ty))
    return realType(body);
  if (ty == Ty::AnyInt)
    return builder.getIndexType();
  return builder.getI64Type();
}

Value Lowering::realConstant(Body &body, double value, Location at) {
  mlir::Type type = realType(body);
  llvm::APFloat number(value);
  bool lost;
  number.convert(cast<FloatType>(type).getFloatSemantics(),
                 llvm::APFloat::rmNearestTiesToEven, &lost);
  return arith::ConstantOp::create(body.builder, at,
                                   builder.getFloatAttr(type, number));
}

Value Lowering::asI64(Body &body, const TV &tv, Location at) {
  mlir::Type i64 = builder.getI64Type();
  mlir::Type type = tv.value.getType();
  if (type == i64)
    return tv.value;
  if (type.isIndex())
    return body.builder.createOrFold<arith::IndexCastOp>(at, i64, tv.value);
  return arith::ExtSIOp::create(body.builder, at, i64, tv.value);
}

Value Lowering::asIndex(Body &body, const TV &tv, Location at) {
  if (tv.value.getType().isIndex())
    return tv.value;
  return body.builder.createOrFold<arith::IndexCastOp>(
      at, builder.getIndexType(), tv.value);
}

Value Lowering::asReal(Body &body, const TV &tv, Location at) {
  mlir::Type want = realType(body), type = tv.value.getType();
  if (type == want)
    return tv.value;
  if (isa<FloatType>(type)) {
    if (type.getIntOrFloatBitWidth() < want.getIntOrFloatBitWidth())
      return arith::ExtFOp::create(body.builder, at, want, tv.value);
    return arith::TruncFOp::create(body.builder, at, want, tv.value);
  }
  if (auto constant = tv.value.getDefiningOp<arith::ConstantIndexOp>())
    return realConstant(body, double(constant.value()), at);
  Value integer = tv.value;
  if (type.isIndex())
    integer = asI64(body, tv, at);
  return arith::SIToFPOp::create(body.builder, at, want, integer);
}

Value Lowering::asType(Body &body, const TV &tv, Ty ty, Location at) {
  if (ty == Ty::Bool)
    return tv.value;
  if (isReal(ty))
    return asReal(body, tv, at);
  return ty == Ty::AnyInt ? asIndex(body, tv, at) : asI64(body, tv, at);
}

/// The element that a tensor of type `ty` stores.
Value Lowering::toStorage(Body &body, const TV &tv, Ty ty, Location at) {
  mlir::Type want = irType(ty);
  OpBuilder &b = body.builder;
  if (tv.value.getType() == want)
    return tv.value;
  if (ty == Ty::Bool)
    return tv.value;
  if (isReal(ty)) {
    Value real = asReal(body, tv, at);
    if (real.getType() == want)
      return real;
    if (cast<FloatType>(real.getType()).getWidth() <
        cast<FloatType>(want).getWidth())
      return arith::ExtFOp::create(b, at, want, real);
    return arith::TruncFOp::create(b, at, want, real);
  }
  if (tv.value.getType().isIndex())
    return b.createOrFold<arith::IndexCastOp>(at, want, tv.value);
  unsigned from = tv.value.getType().getIntOrFloatBitWidth(),
           to = want.getIntOrFloatBitWidth();
  if (from < to)
    return arith::ExtSIOp::create(b, at, want, tv.value);
  return arith::TruncIOp::create(b, at, want, tv.value);
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

static Value both(OpBuilder &b, Location at, Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return x == y ? x : Value(arith::AndIOp::create(b, at, x, y));
}

TV Lowering::emit(Body &body, const Expr &expr, const Scope &scope,
                  Equation &eq) {
  const Info &i = info(expr, scope, eq);
  if (i.fixed)
    return emitFixed(body, *i.fixed, expr.range);
  if (!body.f64 && i.pure && i.hasReal) {
    if (isReal(i.ty))
      return emitTable(body, expr, scope, eq);
    // A decision on reals of indices alone: exact in f64, where it stands.
    body.f64 = true;
    TV tv = emitNode(body, expr, scope, eq);
    body.f64 = false;
    return tv;
  }
  return emitNode(body, expr, scope, eq);
}

TV Lowering::emitFixed(Body &body, const Binding &binding, Range place) {
  Location at = loc(place);
  switch (binding.kind) {
  case Binding::Bool:
    return {arith::ConstantIntOp::create(body.builder, at, binding.flag, 1),
            Ty::Bool,
            {}};
  case Binding::Int:
    if (auto c = binding.size.constant())
      return {
          arith::ConstantIndexOp::create(body.builder, at, *c), Ty::AnyInt, {}};
    return {emit(binding.size, place), Ty::AnyInt, {}};
  case Binding::Real:
    return {realConstant(body, binding.real, at), Ty::AnyReal, {}};
  default:
    error(place, "expected a number, found " + kindOf(binding));
    return {};
  }
}

Value Lowering::indexValue(Body &body, const Idx *idx, Location at) {
  auto [it, isNew] = body.at.try_emplace(idx);
  if (!isNew)
    return it->second;
  assert(body.kind == Body::Generic && "index of another body");
  auto loop = llvm::find(body.loops, idx);
  assert(loop != body.loops.end() && "index without a loop");
  OpBuilder b(builder.getContext());
  b.setInsertionPointToStart(body.block);
  return it->second = linalg::IndexOp::create(b, at, loop - body.loops.begin());
}

TV Lowering::emitNode(Body &body, const Expr &expr, const Scope &scope,
                      Equation &eq) {
  Location at = loc(expr.range);
  OpBuilder &b = body.builder;
  switch (expr.kind) {
  case ExprKind::Name: {
    auto &name = cast<NameExpr>(expr);
    if (auto it = scope.indices.find(name.name); it != scope.indices.end())
      return {indexValue(body, it->second, at), Ty::AnyInt, {}};
    return emitBinding(body, *lookup(*scope.env, name.name), expr, eq);
  }
  case ExprKind::Read:
    return emitRead(body, cast<ReadExpr>(expr), scope, eq);
  case ExprKind::Paren:
    return emit(body, *cast<ParenExpr>(expr).inner, scope, eq);
  case ExprKind::Negate: {
    TV a = emit(body, *cast<NegateExpr>(expr).operand, scope, eq);
    if (!a)
      return {};
    if (isReal(a.ty))
      return {arith::NegFOp::create(b, at, asReal(body, a, at)), a.ty, a.live};
    Value x = a.value.getType().isIndex() ? a.value : asI64(body, a, at);
    Value zero =
        arith::ConstantOp::create(b, at, b.getIntegerAttr(x.getType(), 0));
    return {arith::SubIOp::create(b, at, zero, x), a.ty, a.live};
  }
  case ExprKind::Not: {
    TV a = emit(body, *cast<NotExpr>(expr).operand, scope, eq);
    if (!a)
      return {};
    Value one = arith::ConstantIntOp::create(b, at, 1, 1);
    return {arith::XOrIOp::create(b, at, a.value, one), Ty::Bool, {}};
  }
  case ExprKind::Binary:
    return emitBinary(body, cast<BinaryExpr>(expr), scope, eq);
  case ExprKind::Compare:
    return emitCompare(body, cast<CompareExpr>(expr), scope, eq);
  case ExprKind::Logic:
    return emitLogic(body, cast<LogicExpr>(expr), scope, eq);
  case ExprKind::If:
    return emitIf(body, cast<IfExpr>(expr), scope, eq);
  case ExprKind::Call:
    return emitCall(body, cast<CallExpr>(expr), scope, eq);
  case ExprKind::Reduce:
    return emitReduced(body, cast<ReduceExpr>(expr), scope, eq);
  case ExprKind::Softmax:
    return emitNestedSoftmax(body, cast<SoftmaxExpr>(expr), scope, eq);
  default:
    return {};
  }
}

TV Lowering::emitBinding(Body &body, const Binding &binding, const Expr &expr,
                         Equation &eq) {
  Location at = loc(expr.range);
  switch (binding.kind) {
  case Binding::Thunk:
    return emit(body, *binding.thunk->expr, *binding.thunk->scope, eq);
  case Binding::Scalar:
    return loaded(body, binding.tensor.value, binding.tensor.elem, at);
  case Binding::Tensor:
  case Binding::Table:
  case Binding::Collection: {
    std::optional<TensorVal> tensor;
    if (binding.kind == Binding::Table)
      tensor = tableTensor(*binding.table, body.f64, at);
    else
      tensor = tensorOf(binding, expr.range);
    if (!tensor)
      return {};
    return readTensor(
        body, *tensor,
        ArrayRef<Idx *>(eq.whole).take_front(tensor->shape.size()), at);
  }
  default:
    return emitFixed(body, binding, expr.range);
  }
}

/// A value of indices, dims and static values alone.
TV Lowering::emitTable(Body &body, const Expr &expr, const Scope &scope,
                       Equation &eq) {
  const Info &i = info(expr, scope, eq);
  Location at = loc(expr.range);
  if (isa<ParenExpr>(expr))
    return emit(body, *cast<ParenExpr>(expr).inner, scope, eq);
  if (auto *name = dyn_cast<NameExpr>(&expr))
    if (auto binding = lookup(*scope.env, name->name);
        binding && binding->kind == Binding::Thunk)
      return emit(body, *binding->thunk->expr, *binding->thunk->scope, eq);
  // A sum or product of parts over fewer indices each stays one: a table of
  // slopes times a distance, not a table of H×N×M biases.
  if (i.used.size() >= 2 && !i.whole) {
    if (auto *binary = dyn_cast<BinaryExpr>(&expr);
        binary && binary->op != BinaryOp::Pow &&
        binary->op != BinaryOp::FloorDiv && binary->op != BinaryOp::Mod) {
      auto fewer = [&](const Expr &part) {
        const Info &p = info(part, scope, eq);
        return p.used.size() < i.used.size() || !p.hasReal;
      };
      if (fewer(*binary->lhs) && fewer(*binary->rhs))
        return emitBinary(body, *binary, scope, eq);
    }
    if (isa<NegateExpr>(expr))
      return emitNode(body, expr, scope, eq);
  }
  Key key{&expr, scope.env.get()};
  Ty ty = i.ty == Ty::AnyReal ? Ty::F32 : i.ty;
  if (i.used.empty() && !i.whole) {
    Body host(Body::Host, builder);
    host.f64 = true;
    TV tv = emitNode(host, expr, scope, eq);
    if (!tv)
      return {};
    host.f64 = false;
    return {asReal(host, {tv.value, Ty::AnyReal, {}}, at), i.ty, {}};
  }
  auto it = eq.tables.find(key);
  SmallVector<Idx *, 4> axes(i.used);
  for (Idx *idx : eq.whole)
    if (i.whole)
      axes.push_back(idx);
  if (it == eq.tables.end()) {
    auto table = elementwise(axes, Ty::F32, expr.range, true, [&](Body &inner) {
      return emitNode(inner, expr, scope, eq);
    });
    if (!table)
      return {};
    it = eq.tables.emplace(key, *table).first;
  }
  TV tv = readTensor(body, it->second, axes, at);
  tv.ty = i.ty == Ty::AnyReal ? Ty::AnyReal : ty;
  return tv;
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
      // As floor division says: the sign of the divisor.
      Value rest = arith::RemFOp::create(b, at, u, v);
      Value zero = realConstant(body, 0, at);
      Value nonzero =
          arith::CmpFOp::create(b, at, arith::CmpFPredicate::UNE, rest, zero);
      Value low =
          arith::CmpFOp::create(b, at, arith::CmpFPredicate::OLT, rest, zero);
      Value negative =
          arith::CmpFOp::create(b, at, arith::CmpFPredicate::OLT, v, zero);
      Value differ = arith::XOrIOp::create(b, at, low, negative);
      r = arith::SelectOp::create(b, at,
                                  arith::AndIOp::create(b, at, nonzero, differ),
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
  bool index = (x.value.getType().isIndex() && y.ty != Ty::I64) ||
               (y.value.getType().isIndex() && x.ty != Ty::I64);
  Value u = index ? asIndex(body, x, at) : asI64(body, x, at);
  Value v = index ? asIndex(body, y, at) : asI64(body, y, at);
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
    const Info &divisor = info(*expr.rhs, scope, eq);
    bool isZeroPossible = true;
    if (divisor.fixed)
      isZeroPossible = false; // checked per call
    else {
      Bounds range = bounds(*expr.rhs, scope, eq);
      for (const Size &lower : range.lower)
        if (sizes.nonNegative(lower - 1))
          isZeroPossible = false;
    }
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
    const Info &i = info(*operand, scope, eq);
    if (i.fixed &&
        (i.fixed->kind == Binding::None || i.fixed->kind == Binding::String)) {
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
      if (x.ty != Ty::Bool && u.getType() != v.getType()) {
        bool index = (u.getType().isIndex() && y.ty != Ty::I64) ||
                     (v.getType().isIndex() && x.ty != Ty::I64);
        u = index ? asIndex(body, x, at) : asI64(body, x, at);
        v = index ? asIndex(body, y, at) : asI64(body, y, at);
      }
      r = arith::CmpIOp::create(b, at, predicates[unsigned(op)], u, v);
    }
    all = both(b, at, all, r);
  }
  return {all, Ty::Bool, {}};
}

/// An scf.if whose branches are `then` and `otherwise`, both of type `ty`.
TV Lowering::branch(Body &body, Value condition, Ty ty, bool mayBeAbsent,
                    Location at, llvm::function_ref<TV()> then,
                    llvm::function_ref<TV()> otherwise) {
  SmallVector<mlir::Type, 2> types = {bodyType(body, ty)};
  if (mayBeAbsent)
    types.push_back(builder.getI1Type());
  auto ifOp = scf::IfOp::create(body.builder, at, types, condition, true);
  OpBuilder::InsertionGuard guard(body.builder);
  for (bool first : {true, false}) {
    mlir::Block *block = first ? ifOp.thenBlock() : ifOp.elseBlock();
    body.builder.setInsertionPointToEnd(block);
    TV tv = first ? then() : otherwise();
    if (!tv)
      return {};
    SmallVector<Value, 2> results = {asType(body, tv, ty, at)};
    if (mayBeAbsent)
      results.push_back(tv.live ? tv.live
                                : Value(arith::ConstantIntOp::create(
                                      body.builder, at, 1, 1)));
    scf::YieldOp::create(body.builder, at, results);
  }
  return {ifOp.getResult(0), ty, mayBeAbsent ? ifOp.getResult(1) : Value()};
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
    return {arith::ConstantIntOp::create(b, at, !expr.isAnd, 1), Ty::Bool, {}};
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
        return v ? v : Value(arith::ConstantIntOp::create(builder, at, 1, 1));
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
