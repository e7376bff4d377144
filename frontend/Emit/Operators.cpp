//===- Operators.cpp - Operators, calls and branches ---------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Integers are computed in `index`, where one comes from indices and sizes and
// none is i64, else in i64.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace heed;
using namespace heed::sema;
using namespace mlir;

static Value both(OpBuilder &b, Location at, Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return x == y ? x : Value(arith::AndIOp::create(b, at, x, y));
}

/// Where the result of a binary operator is present.
static Value liveOf(OpBuilder &b, Location at, const Node &node, const TV &x,
                    const TV &y) {
  if (!node.absent)
    return {};
  if (node.op == BinaryOp::Mul)
    return both(b, at, x.live, y.live);
  if (node.op != BinaryOp::Add && node.op != BinaryOp::Sub)
    return x.live;
  return x.live == y.live ? x.live
                          : Value(arith::OrIOp::create(b, at, x.live, y.live));
}

/// Does dividing by it, and multiplying by it again, round nothing?
static bool dividesExactly(Value divisor) {
  APFloat number(0.0);
  return matchPattern(divisor, m_ConstantFloat(&number)) && number.isNormal() &&
         number.getExactLog2Abs() >= 0;
}

/// What floor division leaves, with the divisor's sign. In f64: the product of
/// the quotient and an f32 is exact there below quotients of 2^29; in f32 it
/// is rounded from the first bits on, and what is left of it is small. A
/// quotient that was rounded up to the next integer leaves a rest of the wrong
/// sign: one divisor more.
static Value remainder(OpBuilder &b, Location at, Value u, Value v) {
  Type narrow = u.getType();
  bool isWide = narrow.isF64() || dividesExactly(v);
  if (!isWide) {
    u = arith::ExtFOp::create(b, at, b.getF64Type(), u);
    v = arith::ExtFOp::create(b, at, b.getF64Type(), v);
  }
  Value q = math::FloorOp::create(b, at, arith::DivFOp::create(b, at, u, v));
  Value rest =
      arith::SubFOp::create(b, at, u, arith::MulFOp::create(b, at, q, v));
  Value zero =
      arith::ConstantOp::create(b, at, b.getFloatAttr(rest.getType(), 0));
  Value wrong =
      arith::CmpFOp::create(b, at, arith::CmpFPredicate::OLT,
                            arith::MulFOp::create(b, at, rest, v), zero);
  Value r = arith::SelectOp::create(
      b, at, wrong, arith::AddFOp::create(b, at, rest, v), rest);
  return isWide ? r : Value(arith::TruncFOp::create(b, at, narrow, r));
}

TV Emitter::emitBinary(Code &code, const Node &node) {
  TV x = emit(code, node.operands[0]), y = emit(code, node.operands[1]);
  Value live = liveOf(code.builder, loc(node.place), node, x, y);
  Value r = isReal(node.ty) ? ofReals(code, node, x, y)
                            : ofIntegers(code, node, x, y);
  return {r, node.ty, live};
}

Value Emitter::ofReals(Code &code, const Node &node, const TV &x, const TV &y) {
  Location at = loc(node.place);
  OpBuilder &b = code.builder;
  Value u = asReal(code, x, at), v = asReal(code, y, at), r;
  switch (node.op) {
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
  case BinaryOp::Mod:
    r = remainder(b, at, u, v);
    break;
  case BinaryOp::Pow: {
    if (node.exponent && *node.exponent >= 1 && *node.exponent <= 4) {
      r = u;
      for (int64_t k = 1; k < *node.exponent; ++k)
        r = arith::MulFOp::create(b, at, r, u);
    } else {
      r = math::PowFOp::create(b, at, u, v);
    }
    break;
  }
  }
  return r;
}

Value Emitter::ofIntegers(Code &code, const Node &node, const TV &x,
                          const TV &y) {
  Location at = loc(node.place);
  OpBuilder &b = code.builder;
  auto [u, v] = asIntegers(code, x, y, at);
  switch (node.op) {
  case BinaryOp::Add:
    return arith::AddIOp::create(b, at, u, v);
  case BinaryOp::Sub:
    return arith::SubIOp::create(b, at, u, v);
  case BinaryOp::Mul:
    return arith::MulIOp::create(b, at, u, v);
  case BinaryOp::Pow: {
    int64_t n = *node.exponent;
    Value r =
        arith::ConstantOp::create(b, at, b.getIntegerAttr(u.getType(), 1));
    for (uint64_t bit = 1; bit <= uint64_t(n); bit <<= 1) {
      if (n & bit)
        r = b.createOrFold<arith::MulIOp>(at, r, u);
      u = b.createOrFold<arith::MulIOp>(at, u, u);
    }
    return r;
  }
  default:
    emit(node.after);
    return divide(code, node, u, v);
  }
}

/// // or %: rounds to minus infinity; by 0 the result is 0.
Value Emitter::divide(Code &code, const Node &node, Value u, Value v) {
  Location at = loc(node.place);
  OpBuilder &b = code.builder;
  bool isMod = node.op == BinaryOp::Mod;
  Value zero, isZero, r;
  if (node.mayDivideByZero) {
    zero = arith::ConstantOp::create(b, at, b.getIntegerAttr(u.getType(), 0));
    Value one =
        arith::ConstantOp::create(b, at, b.getIntegerAttr(u.getType(), 1));
    isZero = arith::CmpIOp::create(b, at, arith::CmpIPredicate::eq, v, zero);
    v = arith::SelectOp::create(b, at, isZero, one, v);
  }
  if (node.isNonNegative) {
    r = isMod ? Value(arith::RemSIOp::create(b, at, u, v))
              : Value(arith::DivSIOp::create(b, at, u, v));
  } else {
    r = arith::FloorDivSIOp::create(b, at, u, v);
    if (isMod)
      r = arith::SubIOp::create(b, at, u, arith::MulIOp::create(b, at, r, v));
  }
  return node.mayDivideByZero
             ? Value(arith::SelectOp::create(b, at, isZero, zero, r))
             : r;
}

TV Emitter::emitCompare(Code &code, const Node &node) {
  OpBuilder &b = code.builder;
  Value all;
  SmallVector<TV> values;
  for (const Node *operand : node.operands)
    values.push_back(operand ? emit(code, operand) : TV());
  for (auto [k, compare] : llvm::enumerate(node.compares)) {
    auto [op, place] = compare;
    const TV &x = values[k], &y = values[k + 1];
    if (!x.value || !y.value)
      continue; // known to hold
    Location at = loc(place);
    Value r;
    if (isReal(x.ty) || isReal(y.ty)) {
      static const arith::CmpFPredicate predicates[] = {
          arith::CmpFPredicate::OEQ, arith::CmpFPredicate::UNE,
          arith::CmpFPredicate::OLT, arith::CmpFPredicate::OLE,
          arith::CmpFPredicate::OGT, arith::CmpFPredicate::OGE};
      r = arith::CmpFOp::create(b, at, predicates[unsigned(op)],
                                asReal(code, x, at), asReal(code, y, at));
    } else {
      static const arith::CmpIPredicate predicates[] = {
          arith::CmpIPredicate::eq,  arith::CmpIPredicate::ne,
          arith::CmpIPredicate::slt, arith::CmpIPredicate::sle,
          arith::CmpIPredicate::sgt, arith::CmpIPredicate::sge};
      Value u = x.value, v = y.value;
      if (x.ty != Ty::Bool && u.getType() != v.getType())
        std::tie(u, v) = asIntegers(code, x, y, at);
      r = arith::CmpIOp::create(b, at, predicates[unsigned(op)], u, v);
    }
    all = both(b, at, all, r);
  }
  return {all, Ty::Bool, {}};
}

TV Emitter::emitLogic(Code &code, const Node &node) {
  Location at = loc(node.place);
  OpBuilder &b = code.builder;
  TV x = emit(code, node.operands[0]);
  auto right = [&] { return emit(code, node.operands[1]); };
  if (!node.branches) {
    Value y = right().value;
    Value r = node.flag ? Value(arith::AndIOp::create(b, at, x.value, y))
                        : Value(arith::OrIOp::create(b, at, x.value, y));
    return {r, Ty::Bool, {}};
  }
  auto known = [&]() -> TV {
    return {boolConstant(b, !node.flag, at), Ty::Bool, {}};
  };
  if (node.flag)
    return branch(code, x.value, Ty::Bool, false, at, right, known);
  return branch(code, x.value, Ty::Bool, false, at, known, right);
}

TV Emitter::emitIf(Code &code, const Node &node) {
  Location at = loc(node.place);
  TV condition = emit(code, node.operands[0]);
  auto then = [&] { return emit(code, node.operands[1]); };
  auto otherwise = [&] { return emit(code, node.operands[2]); };
  if (node.branches)
    return branch(code, condition.value, node.ty, node.absent, at, then,
                  otherwise);
  TV a = then(), b = otherwise();
  OpBuilder &builder = code.builder;
  Value live;
  if (a.live || b.live) {
    auto orTrue = [&](Value v) { return v ? v : boolConstant(builder, 1, at); };
    live = arith::SelectOp::create(builder, at, condition.value, orTrue(a.live),
                                   orTrue(b.live));
  }
  return {arith::SelectOp::create(builder, at, condition.value,
                                  asType(code, a, node.ty, at),
                                  asType(code, b, node.ty, at)),
          node.ty, live};
}

TV Emitter::emitCall(Code &code, const Node &node) {
  Location at = loc(node.place);
  SmallVector<TV, 3> args;
  for (const Node *arg : node.operands)
    args.push_back(emit(code, arg));
  bool integers = isInt(node.ty);
  bool index = llvm::any_of(
      args, [](const TV &tv) { return tv.value.getType().isIndex(); });
  SmallVector<Value, 3> x;
  for (const TV &arg : args)
    x.push_back(!integers                     ? asReal(code, arg, at)
                : index && node.ty != Ty::I64 ? asIndex(code, arg, at)
                                              : asI64(code, arg, at));
  auto write = integers ? node.builtin->emitIntegers : node.builtin->emitReals;
  assert(write && "its row has no emission for this type");
  return {write(code.builder, at, x), node.ty, {}};
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

SmallVector<Value, 2> Emitter::ifElse(Code &code, Value condition,
                                      mlir::TypeRange types, Location at,
                                      llvm::function_ref<Values()> then,
                                      llvm::function_ref<Values()> otherwise) {
  auto ifOp = scf::IfOp::create(code.builder, at, types, condition, true);
  OpBuilder::InsertionGuard guard(code.builder);
  for (bool first : {true, false}) {
    code.builder.setInsertionPointToEnd(first ? ifOp.thenBlock()
                                              : ifOp.elseBlock());
    scf::YieldOp::create(code.builder, at, first ? then() : otherwise());
  }
  return Values(ifOp.getResults());
}

SmallVector<Value, 2>
Emitter::underGuards(Code &code, const EnforcedGuards &guards, size_t first,
                     mlir::TypeRange types, Location at,
                     llvm::function_ref<Values()> then,
                     llvm::function_ref<Values()> otherwise) {
  if (first == guards.size())
    return then();
  const EnforcedGuard &guard = guards[first];
  Value value;
  if (guard.condition) {
    llvm::SaveAndRestore exact(code.f64, false);
    value = emit(code, guard.condition).value;
  } else {
    value = arith::CmpIOp::create(code.builder, at, arith::CmpIPredicate::sgt,
                                  emit(guard.loop, guard.loopPlace),
                                  emit(SizeUse{Size(0), {}, false}, {}));
  }
  if (!guard.positive)
    value = arith::XOrIOp::create(code.builder, at, value,
                                  boolConstant(code.builder, true, at));
  return ifElse(
      code, value, types, at,
      [&] {
        return underGuards(code, guards, first + 1, types, at, then, otherwise);
      },
      otherwise);
}

TV Emitter::branch(Code &code, Value condition, Ty ty, bool mayBeAbsent,
                   Location at, llvm::function_ref<TV()> then,
                   llvm::function_ref<TV()> otherwise) {
  SmallVector<mlir::Type, 2> types = {bodyType(code, ty)};
  if (mayBeAbsent)
    types.push_back(builder.getI1Type());
  auto values = [&](TV tv) -> Values {
    Values results = {asType(code, tv, ty, at)};
    if (mayBeAbsent)
      results.push_back(tv.live ? tv.live
                                : boolConstant(code.builder, true, at));
    return results;
  };
  Values results = ifElse(
      code, condition, types, at, [&] { return values(then()); },
      [&] { return values(otherwise()); });
  return {results[0], ty, mayBeAbsent ? results[1] : Value()};
}
