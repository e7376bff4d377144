//===- Casts.cpp - Conversions that the source asks for ------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace heed;
using namespace heed::sema;
using namespace mlir;

/// Truncates, saturates, NaN is 0. The conversion itself sees only what
/// fits.
Value Emitter::saturated(Code &code, Value x, unsigned bits, Location at) {
  OpBuilder &b = code.builder;
  double limit = std::ldexp(1.0, bits - 1);
  Value low = realConstant(code, -limit, at);
  Value high = realConstant(code, limit, at);
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
      arith::SelectOp::create(b, at, fits, x, realConstant(code, 0, at));
  Value r = arith::FPToSIOp::create(b, at, type, safe);
  int64_t most = bits == 64 ? INT64_MAX : (int64_t(1) << (bits - 1)) - 1;
  r = arith::SelectOp::create(b, at, tooLow, integer(-most - 1), r);
  r = arith::SelectOp::create(b, at, tooHigh, integer(most), r);
  return r;
}

TV Emitter::emitCast(Code &code, Ty to, const TV &tv, Location at) {
  OpBuilder &b = code.builder;
  if (to == Ty::Bool) {
    if (isReal(tv.ty)) {
      Value x = asReal(code, tv, at);
      return {arith::CmpFOp::create(b, at, arith::CmpFPredicate::UNE, x,
                                    realConstant(code, 0, at)),
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
    Value x = asReal(code, tv, at);
    mlir::Type narrow = irType(to);
    // It always rounds to that type, and arithmetic goes on in the body's.
    if (narrow.getIntOrFloatBitWidth() < x.getType().getIntOrFloatBitWidth())
      x = asReal(code, {arith::TruncFOp::create(b, at, narrow, x), to, {}}, at);
    return {x, to, tv.live};
  }
  unsigned bits = irType(to).getIntOrFloatBitWidth();
  if (isReal(tv.ty)) {
    Value r = saturated(code, asReal(code, tv, at), bits, at);
    return {r, to, tv.live};
  }
  if (bits == 64)
    return {asI64(code, tv, at), to, tv.live};
  // By way of i64: upstream drops a cast from index to i32 and back.
  return {toType(b, asI64(code, tv, at), irType(to), at), to, tv.live};
}
