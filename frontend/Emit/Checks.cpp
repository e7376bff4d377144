//===- Checks.cpp - What must hold when the model is called --------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

using namespace heed;
using namespace heed::sema;
using namespace mlir;

using Predicate = arith::CmpIPredicate;

Value Emitter::condition(const Require &step, OpBuilder &b,
                         ArrayRef<Value> sizes, ArrayRef<Value> empty) {
  Location at = loc(step.place);
  auto compare = [&](Predicate predicate, Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, at, predicate, x, y);
  };
  auto zero = [&]() -> Value {
    return arith::ConstantIndexOp::create(b, at, 0);
  };
  switch (step.kind) {
  case Require::Equal:
    return compare(Predicate::eq, sizes[0], sizes[1]);
  case Require::LessEqual:
    return compare(Predicate::sle, sizes[0], sizes[1]);
  case Require::NotZero: {
    Value none = zero();
    return compare(Predicate::ne, sizes[0], none);
  }
  case Require::AnyLess: {
    Value any;
    for (size_t k = 0; k < sizes.size(); k += 2) {
      Value less = compare(Predicate::slt, sizes[k], sizes[k + 1]);
      any = any ? Value(arith::OrIOp::create(b, at, any, less)) : less;
    }
    return any;
  }
  case Require::InRange: {
    Value none = zero();
    Value ok = compare(Predicate::slt, sizes[1], sizes[2]);
    if (step.low)
      ok = arith::AndIOp::create(b, at, ok,
                                 compare(Predicate::sge, sizes[0], none));
    for (Value loop : empty)
      ok = arith::OrIOp::create(b, at, ok, compare(Predicate::eq, loop, none));
    return ok;
  }
  }
  return {};
}

void Emitter::emit(const Require &step) {
  Location at = loc(step.place);
  auto all = [&](ArrayRef<SizeUse> uses) {
    SmallVector<Value> values;
    for (const SizeUse &use : uses)
      values.push_back(emit(use, step.place));
    return values;
  };
  SmallVector<Value> values = all(step.values), sizes = all(step.sizes),
                     empty = all(step.empty);
  OpBuilder &b = step.inLoop ? builder : prologue;
  Value holds = condition(step, b, sizes, empty);
  for (auto &[lo, hi] : step.emptyLoops) {
    Value none = arith::CmpIOp::create(
        b, at, Predicate::sle, emit(hi, step.place), emit(lo, step.place));
    holds = arith::OrIOp::create(b, at, holds, none);
  }
  attn::RequireOp::create(b, at, holds, builder.getStringAttr(step.message),
                          values);
}

void Emitter::emit(const RequireInRange &step) {
  Location at = loc(step.place);
  Value zero = emit(SizeUse{Size(0), {}, false}, step.place);
  Value limit = emit(step.limit, step.place);
  auto op =
      attn::RequireInRangeOp::create(builder, at, value(step.positions), zero,
                                     limit, builder.getStringAttr(step.what));
  if (!step.name.empty())
    op->setAttr(attn::kNameAttr, builder.getStringAttr(step.name));
}
