//===- Builtins.cpp - Scalar functions and casts --------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Heed/Semantics/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using namespace mlir;

TV Lowering::emitCall(Body &body, const CallExpr &expr, const Scope &scope,
                      Equation &eq) {
  Location at = loc(expr.range);
  if (auto it = eq.calls.find({&expr, scope.env.get()}); it != eq.calls.end())
    return emitBinding(body, it->second, expr, eq);
  SmallVector<TV, 3> args;
  for (const ExprPtr &arg : expr.args) {
    args.push_back(emit(body, *arg, scope, eq));
    if (!args.back())
      return {};
  }
  const Info &i = info(expr, scope, eq);
  StringRef name = expr.callee.text;
  if (elementType(name))
    return emitCast(body, i.ty, args[0], at);
  return {emitBuiltin(body, name, args, i.ty, at), i.ty, {}};
}

TV Lowering::emitCast(Body &body, Ty to, const TV &tv, Location at) {
  OpBuilder &b = body.builder;
  if (to == Ty::Bool) {
    if (isReal(tv.ty)) {
      Value x = asReal(body, tv, at);
      return {arith::CmpFOp::create(b, at, arith::CmpFPredicate::UNE, x,
                                    realConstant(body, 0, at)),
              Ty::Bool,
              {}};
    }
    Value x = tv.value;
    Value zero =
        arith::ConstantOp::create(b, at, b.getIntegerAttr(x.getType(), 0));
    return {arith::CmpIOp::create(b, at, arith::CmpIPredicate::ne, x, zero),
            Ty::Bool,
            {}};
  }
  if (isReal(to)) {
    Value x = asReal(body, tv, at);
    mlir::Type narrow = irType(to);
    // It always rounds to that type, and arithmetic goes on in the body's.
    if (narrow.getIntOrFloatBitWidth() < x.getType().getIntOrFloatBitWidth())
      x = asReal(body, {arith::TruncFOp::create(b, at, narrow, x), to, {}}, at);
    return {x, to, tv.live};
  }
  unsigned bits = irType(to).getIntOrFloatBitWidth();
  if (isReal(tv.ty)) {
    // Truncates, saturates, NaN is 0. The conversion itself sees only what
    // fits.
    Value x = asReal(body, tv, at);
    double limit = std::ldexp(1.0, bits - 1);
    Value low = realConstant(body, -limit, at);
    Value high = realConstant(body, limit, at);
    mlir::Type type = b.getI64Type();
    auto integer = [&](int64_t value) -> Value {
      return arith::ConstantIntOp::create(b, at, value, 64);
    };
    Value tooLow =
        arith::CmpFOp::create(b, at, arith::CmpFPredicate::OLT, x, low);
    Value tooHigh =
        arith::CmpFOp::create(b, at, arith::CmpFPredicate::OGE, x, high);
    Value fits = arith::AndIOp::create(
        b, at, arith::CmpFOp::create(b, at, arith::CmpFPredicate::OGE, x, low),
        arith::CmpFOp::create(b, at, arith::CmpFPredicate::OLT, x, high));
    Value safe =
        arith::SelectOp::create(b, at, fits, x, realConstant(body, 0, at));
    Value r = arith::FPToSIOp::create(b, at, type, safe);
    int64_t most = bits == 64 ? INT64_MAX : (int64_t(1) << (bits - 1)) - 1;
    r = arith::SelectOp::create(b, at, tooLow, integer(-most - 1), r);
    r = arith::SelectOp::create(b, at, tooHigh, integer(most), r);
    return {r, to, tv.live};
  }
  if (bits == 64)
    return {asI64(body, tv, at), to, tv.live};
  // By way of i64: upstream drops a cast from index to i32 and back.
  return {toType(b, asI64(body, tv, at), irType(to), at), to, tv.live};
}

Value Lowering::emitBuiltin(Body &body, StringRef name, ArrayRef<TV> args,
                            Ty ty, Location at) {
  OpBuilder &b = body.builder;
  if (isInt(ty)) {
    SmallVector<Value, 3> x;
    bool index = llvm::any_of(
        args, [](const TV &tv) { return tv.value.getType().isIndex(); });
    for (const TV &arg : args)
      x.push_back(index && ty != Ty::I64 ? asIndex(body, arg, at)
                                         : asI64(body, arg, at));
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, at,
                                       b.getIntegerAttr(x[0].getType(), value));
    };
    if (name == "min")
      return arith::MinSIOp::create(b, at, x[0], x[1]);
    if (name == "max")
      return arith::MaxSIOp::create(b, at, x[0], x[1]);
    if (name == "clamp")
      return arith::MinSIOp::create(
          b, at, arith::MaxSIOp::create(b, at, x[0], x[1]), x[2]);
    if (name == "abs")
      return math::AbsIOp::create(b, at, x[0]);
    if (name == "relu")
      return arith::MaxSIOp::create(b, at, x[0], constant(0));
    if (name == "sign")
      return arith::MaxSIOp::create(
          b, at, arith::MinSIOp::create(b, at, x[0], constant(1)),
          constant(-1));
    return x[0]; // floor, ceil, round
  }
  SmallVector<Value, 3> x;
  for (const TV &arg : args)
    x.push_back(asReal(body, arg, at));
  auto constant = [&](double value) { return realConstant(body, value, at); };
  auto mul = [&](Value u, Value v) -> Value {
    return arith::MulFOp::create(b, at, u, v);
  };
  auto add = [&](Value u, Value v) -> Value {
    return arith::AddFOp::create(b, at, u, v);
  };
  auto div = [&](Value u, Value v) -> Value {
    return arith::DivFOp::create(b, at, u, v);
  };
  auto less = [&](Value u, Value v) -> Value {
    return arith::CmpFOp::create(b, at, arith::CmpFPredicate::OLT, u, v);
  };
  auto sigmoid = [&](Value u) -> Value {
    // exp overflows to inf where the result is 0: no branch is needed.
    Value e = math::ExpOp::create(b, at, arith::NegFOp::create(b, at, u));
    return div(constant(1), add(constant(1), e));
  };
  if (name == "min")
    return arith::MinimumFOp::create(b, at, x[0], x[1]);
  if (name == "max")
    return arith::MaximumFOp::create(b, at, x[0], x[1]);
  if (name == "clamp")
    return arith::MinimumFOp::create(
        b, at, arith::MaximumFOp::create(b, at, x[0], x[1]), x[2]);
  if (name == "abs")
    return math::AbsFOp::create(b, at, x[0]);
  if (name == "sign")
    return arith::SelectOp::create(
        b, at, less(constant(0), x[0]), constant(1),
        arith::SelectOp::create(b, at, less(x[0], constant(0)), constant(-1),
                                x[0]));
  if (name == "relu")
    return arith::MaximumFOp::create(b, at, x[0], constant(0));
  if (name == "floor")
    return math::FloorOp::create(b, at, x[0]);
  if (name == "ceil")
    return math::CeilOp::create(b, at, x[0]);
  if (name == "round")
    return math::RoundEvenOp::create(b, at, x[0]);
  if (name == "exp")
    return math::ExpOp::create(b, at, x[0]);
  if (name == "exp2")
    return math::Exp2Op::create(b, at, x[0]);
  if (name == "expm1")
    return math::ExpM1Op::create(b, at, x[0]);
  if (name == "log")
    return math::LogOp::create(b, at, x[0]);
  if (name == "log2")
    return math::Log2Op::create(b, at, x[0]);
  if (name == "log1p")
    return math::Log1pOp::create(b, at, x[0]);
  if (name == "sqrt")
    return math::SqrtOp::create(b, at, x[0]);
  if (name == "rsqrt")
    return div(constant(1), math::SqrtOp::create(b, at, x[0]));
  if (name == "sin")
    return math::SinOp::create(b, at, x[0]);
  if (name == "cos")
    return math::CosOp::create(b, at, x[0]);
  if (name == "tan")
    return math::TanOp::create(b, at, x[0]);
  if (name == "tanh")
    return math::TanhOp::create(b, at, x[0]);
  if (name == "erf")
    return math::ErfOp::create(b, at, x[0]);
  if (name == "sigmoid")
    return sigmoid(x[0]);
  if (name == "silu")
    return mul(x[0], sigmoid(x[0]));
  if (name == "elu") {
    Value low = math::ExpM1Op::create(
        b, at, arith::MinimumFOp::create(b, at, x[0], constant(0)));
    return arith::SelectOp::create(b, at, less(constant(0), x[0]), x[0], low);
  }
  if (name == "softplus") {
    Value e = math::ExpOp::create(
        b, at, arith::NegFOp::create(b, at, math::AbsFOp::create(b, at, x[0])));
    return add(arith::MaximumFOp::create(b, at, x[0], constant(0)),
               math::Log1pOp::create(b, at, e));
  }
  if (name == "gelu") {
    Value e = math::ErfOp::create(b, at, mul(x[0], constant(std::sqrt(0.5))));
    return mul(mul(constant(0.5), x[0]), add(constant(1), e));
  }
  assert(name == "gelu_tanh" && "every built-in is listed here");
  Value cube = mul(mul(x[0], x[0]), x[0]);
  Value inner = mul(constant(std::sqrt(2 / M_PI)),
                    add(x[0], mul(constant(0.044715), cube)));
  return mul(mul(constant(0.5), x[0]),
             add(constant(1), math::TanhOp::create(b, at, inner)));
}
