//===- SizesEmit.cpp - Extents as text and as IR --------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace heed::sema;
using namespace mlir;

static std::string inParens(const std::string &text) {
  return text.find_first_of(" */") == std::string::npos ? text
                                                        : "(" + text + ")";
}

std::string SizeTable::str(const Size::Monomial &monomial) const {
  std::string text;
  for (unsigned id : monomial) {
    const Atom &atom = atoms[id];
    std::string name;
    if (atom.kind == Atom::FloorDiv) {
      name = inParens(str(atom.a)) + "//" + inParens(str(atom.b));
      if (monomial.size() > 1)
        name = "(" + name + ")";
    } else if (atom.kind == Atom::Min || atom.kind == Atom::Max) {
      name = (atom.kind == Atom::Min ? "min(" : "max(") + str(atom.a) + ", " +
             str(atom.b) + ")";
    } else if (atom.kind == Atom::Log2) {
      name = "ilog2(" + str(atom.a) + ")";
    } else {
      name = atom.name;
    }
    text += (text.empty() ? "" : "*") + name;
  }
  return text;
}

std::string SizeTable::str(const Size &size) const {
  if (size.terms.empty())
    return "0";
  // Positive terms first, the constant last: 2*R + 1, N - 1.
  std::vector<std::pair<Size::Monomial, int64_t>> terms(size.terms.begin(),
                                                        size.terms.end());
  llvm::sort(terms, [](const auto &a, const auto &b) {
    return std::make_tuple(a.first.empty(), a.second < 0, a.first) <
           std::make_tuple(b.first.empty(), b.second < 0, b.first);
  });
  std::string text;
  for (auto &[monomial, factor] : terms) {
    uint64_t magnitude = factor < 0 ? -uint64_t(factor) : uint64_t(factor);
    std::string term = monomial.empty() ? std::to_string(magnitude)
                       : magnitude == 1
                           ? str(monomial)
                           : std::to_string(magnitude) + "*" + str(monomial);
    if (text.empty())
      text = (factor < 0 ? "-" : "") + term;
    else
      text += (factor < 0 ? " - " : " + ") + term;
  }
  return text;
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

Value SizeTable::emitAtom(OpBuilder &builder, Location loc, unsigned id) const {
  const Atom &atom = atoms[id];
  if (atom.kind < Atom::FloorDiv)
    return atom.value;
  if (atom.kind == Atom::Log2)
    return emitLog2(builder, loc, emit(builder, loc, atom.a));
  Value a = emit(builder, loc, atom.a), b = emit(builder, loc, atom.b);
  if (atom.kind == Atom::Min)
    return builder.createOrFold<arith::MinSIOp>(loc, a, b);
  if (atom.kind == Atom::Max)
    return builder.createOrFold<arith::MaxSIOp>(loc, a, b);
  // A divisor may be 0 where nothing is computed: then the quotient is unused,
  // but the division must not trap.
  if (!nonNegative(atom.b - 1)) {
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    b = builder.createOrFold<arith::MaxSIOp>(loc, b, one);
  }
  if (nonNegative(atom.a))
    return builder.createOrFold<arith::DivSIOp>(loc, a, b);
  return builder.createOrFold<arith::FloorDivSIOp>(loc, a, b);
}

Value SizeTable::emit(OpBuilder &builder, Location loc,
                      const Size &size) const {
  Value sum;
  Size negative;
  auto monomialValue = [&](const Size::Monomial &monomial, int64_t factor) {
    Value product;
    for (unsigned id : monomial) {
      Value value = emitAtom(builder, loc, id);
      product = product
                    ? builder.createOrFold<arith::MulIOp>(loc, product, value)
                    : value;
    }
    if (!product || factor != 1) {
      Value c = arith::ConstantIndexOp::create(builder, loc, factor);
      product =
          product ? builder.createOrFold<arith::MulIOp>(loc, product, c) : c;
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
    sum = sum ? builder.createOrFold<arith::AddIOp>(loc, sum, value) : value;
  }
  if (!sum)
    sum = arith::ConstantIndexOp::create(builder, loc, 0);
  for (auto &[monomial, factor] : negative.terms)
    sum = builder.createOrFold<arith::SubIOp>(loc, sum,
                                              monomialValue(monomial, factor));
  return sum;
}
