//===- SizeCode.cpp - Sizes as code --------------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

using namespace heed;
using namespace heed::sema;
using namespace mlir;

Value Emitter::emit(const SizeUse &use, Range place) {
  // What is known at the entry is computed there, once.
  if (use.inLoop)
    return sizeCode(builder, loc(place), use.size, use);
  auto [it, isNew] = atEntry.try_emplace(use.size);
  if (isNew)
    it->second = sizeCode(prologue, loc(place), use.size, use);
  return it->second;
}

/// By halves: does what is left have a bit above its lower 32, 16, ... 1?
static Value emitLog2(OpBuilder &builder, Location loc, Value left) {
  auto number = [&](int64_t n) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, n);
  };
  Value result = number(0), zero = result;
  for (int64_t bits = 32; bits; bits /= 2) {
    Value unit = number(int64_t(1) << bits);
    Value has = builder.createOrFold<arith::CmpIOp>(
        loc, arith::CmpIPredicate::sge, left, unit);
    Value above = builder.createOrFold<arith::DivSIOp>(loc, left, unit);
    left = builder.createOrFold<arith::SelectOp>(loc, has, above, left);
    Value more =
        builder.createOrFold<arith::SelectOp>(loc, has, number(bits), zero);
    result = builder.createOrFold<arith::AddIOp>(loc, result, more);
  }
  return result;
}

Value Emitter::atomCode(OpBuilder &b, Location at, unsigned id,
                        const SizeUse &use) {
  const Atom &atom = entry.sizes.atom(id);
  if (atom.kind < Atom::FloorDiv)
    return atoms.at(id);
  if (atom.kind == Atom::Log2)
    return emitLog2(b, at, sizeCode(b, at, atom.a, use));
  Value x = sizeCode(b, at, atom.a, use), y = sizeCode(b, at, atom.b, use);
  if (atom.kind == Atom::Min)
    return b.createOrFold<arith::MinSIOp>(at, x, y);
  if (atom.kind == Atom::Max)
    return b.createOrFold<arith::MaxSIOp>(at, x, y);
  auto *division = llvm::find_if(
      use.divisions, [&](const auto &other) { return other.atom == id; });
  // A divisor may be 0 where nothing is computed: then the quotient is unused,
  // but the division must not trap.
  if (!division->isDivisorPositive) {
    Value one = arith::ConstantIndexOp::create(b, at, 1);
    y = b.createOrFold<arith::MaxSIOp>(at, y, one);
  }
  return b.createOrFold<arith::FloorDivSIOp>(at, x, y);
}

Value Emitter::sizeCode(OpBuilder &b, Location at, const Size &size,
                        const SizeUse &use) {
  Value sum;
  Size negative;
  auto monomialValue = [&](const Size::Monomial &monomial,
                           const DynamicAPInt &factor) {
    Value product;
    for (unsigned id : monomial) {
      Value value = atomCode(b, at, id, use);
      product =
          product ? b.createOrFold<arith::MulIOp>(at, product, value) : value;
    }
    if (!product || factor != 1) {
      Value c = arith::ConstantIndexOp::create(b, at, wrapToI64(factor));
      product = product ? b.createOrFold<arith::MulIOp>(at, product, c) : c;
    }
    return product;
  };
  // Longest monomials first, so that the constant comes last.
  for (auto it = size.terms.rbegin(); it != size.terms.rend(); ++it) {
    if (it->second < 0 && !it->first.empty()) {
      negative.terms[it->first] = -it->second;
      continue;
    }
    Value value = monomialValue(it->first, it->second);
    sum = sum ? b.createOrFold<arith::AddIOp>(at, sum, value) : value;
  }
  if (!sum)
    sum = arith::ConstantIndexOp::create(b, at, 0);
  for (auto &[monomial, factor] : negative.terms)
    sum =
        b.createOrFold<arith::SubIOp>(at, sum, monomialValue(monomial, factor));
  return sum;
}
