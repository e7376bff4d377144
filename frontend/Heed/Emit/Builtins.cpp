//===- Builtins.cpp - Scalar functions and casts --------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Heed/Semantics/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

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
  return {emitBuiltin(body, *findBuiltin(name), args, i.ty, at), i.ty, {}};
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

Value Lowering::emitBuiltin(Body &body, const Builtin &row, ArrayRef<TV> args,
                            Ty ty, Location at) {
  bool integers = isInt(ty);
  bool index = llvm::any_of(
      args, [](const TV &tv) { return tv.value.getType().isIndex(); });
  SmallVector<Value, 3> x;
  for (const TV &arg : args)
    x.push_back(!integers                ? asReal(body, arg, at)
                : index && ty != Ty::I64 ? asIndex(body, arg, at)
                                         : asI64(body, arg, at));
  auto emit = integers ? row.emitIntegers : row.emitReals;
  assert(emit && "its row has no emission for this type");
  return emit(body.builder, at, x);
}
