//===- Folding.cpp - Arithmetic on values known when compiling ------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::cast;

static std::optional<int64_t> power(int64_t base, int64_t exponent) {
  if (exponent > 64 && base != 0 && base != 1 && base != -1)
    return std::nullopt;
  int64_t result = 1;
  for (int64_t k = 0; k < (exponent > 64 ? exponent % 2 + 2 : exponent); ++k)
    result = int64_t(uint64_t(result) * uint64_t(base));
  return result;
}

/// Long: one operator after the other, of integers and of reals.
bool Analysis::foldBinary(const BinaryExpr &expr, const Info &a, const Info &b,
                          Info &info) {
  const Binding &x = *a.fixed, &y = *b.fixed;
  if (isInt(info.ty)) {
    const Size &m = x.size, &n = y.size;
    auto divisor = [&] {
      if (n.terms.empty())
        return error(expr.opRange,
                     format("integer '{}' by zero", ast::spelling(expr.op)));
      if (!sizes.nonNegative(n - 1) && !sizes.nonNegative(-n - 1))
        requirePositive(n, expr.opRange, ast::spelling(expr.op));
      return true;
    };
    switch (expr.op) {
    case BinaryOp::Add:
      info.fixed = Binding::of(sizes.simplify(m + n));
      return true;
    case BinaryOp::Sub:
      info.fixed = Binding::of(sizes.simplify(m - n));
      return true;
    case BinaryOp::Mul:
      info.fixed = Binding::of(sizes.simplify(m * n));
      return true;
    case BinaryOp::Mod:
      if (!divisor())
        return false;
      info.fixed = Binding::of(sizes.mod(m, n));
      return true;
    case BinaryOp::FloorDiv:
      if (!divisor())
        return false;
      info.fixed = Binding::of(sizes.floorDiv(m, n));
      return true;
    case BinaryOp::Div: {
      if (!divisor())
        return false;
      Size q = sizes.floorDiv(m, n);
      if (expr.place == Place::Index) {
        info.fixed = Binding::of(q);
        return true;
      }
      Size rest = sizes.simplify(m - q * n);
      if (rest.constant() && !rest.is(0))
        return error(expr.opRange, format("{} / {} does not divide exactly",
                                          sizes.str(m), sizes.str(n)));
      if (!rest.is(0)) {
        if (!requireEqual(
                rest, Size(0), expr.opRange,
                format("{} / {} does not divide exactly", sizes.str(m),
                       sizes.str(n)),
                {},
                format("{} / {} does not divide exactly: {{0}} is left over",
                       sizes.str(m), sizes.str(n))))
          return false;
        sizes.exact(m, n);
      }
      info.fixed = Binding::of(q);
      return true;
    }
    case BinaryOp::Pow: {
      int64_t exponent = cast<IntExpr>(*expr.rhs).value;
      if (auto base = m.constant()) {
        if (auto result = power(*base, exponent)) {
          info.fixed = Binding::of(Size(*result));
          return true;
        }
        return error(expr.opRange, "the power is out of range");
      }
      if (exponent > 8)
        return error(expr.opRange, "a power of a size above 8");
      Size result(1);
      for (int64_t k = 0; k < exponent; ++k)
        result = result * m;
      info.fixed = Binding::of(result);
      return true;
    }
    }
  }
  auto u = x.number(), v = y.number();
  if (!u || !v)
    return true; // symbolic: computed per call, in f64
  switch (expr.op) {
  case BinaryOp::Add:
    info.fixed = Binding::of(*u + *v);
    break;
  case BinaryOp::Sub:
    info.fixed = Binding::of(*u - *v);
    break;
  case BinaryOp::Mul:
    info.fixed = Binding::of(*u * *v);
    break;
  case BinaryOp::Div:
    info.fixed = Binding::of(*u / *v);
    break;
  case BinaryOp::FloorDiv:
    info.fixed = Binding::of(std::floor(*u / *v));
    break;
  case BinaryOp::Mod: {
    double rest = *u - std::floor(*u / *v) * *v;
    info.fixed = Binding::of(rest * *v < 0 ? rest + *v : rest);
    break;
  }
  case BinaryOp::Pow:
    info.fixed = Binding::of(std::pow(*u, *v));
    break;
  }
  return true;
}

std::optional<bool> Analysis::foldCompare(CompareOp op, const Binding &a,
                                          const Binding &b) {
  if (a.kind == Binding::Bool || b.kind == Binding::Bool)
    return (a.flag == b.flag) == (op == CompareOp::Eq);
  if (a.kind == Binding::Int && b.kind == Binding::Int) {
    Size d = sizes.simplify(b.size - a.size);
    bool le = sizes.nonNegative(d), lt = sizes.nonNegative(d - 1);
    bool ge = sizes.nonNegative(-d), gt = sizes.nonNegative(-d - 1);
    bool eq = sizes.equal(a.size, b.size);
    switch (op) {
    case CompareOp::Eq:
      return eq         ? std::optional(true)
             : lt || gt ? std::optional(false)
                        : std::nullopt;
    case CompareOp::Ne:
      return eq         ? std::optional(false)
             : lt || gt ? std::optional(true)
                        : std::nullopt;
    case CompareOp::Lt:
      return lt   ? std::optional(true)
             : ge ? std::optional(false)
                  : std::nullopt;
    case CompareOp::Le:
      return le   ? std::optional(true)
             : gt ? std::optional(false)
                  : std::nullopt;
    case CompareOp::Gt:
      return gt   ? std::optional(true)
             : le ? std::optional(false)
                  : std::nullopt;
    case CompareOp::Ge:
      return ge   ? std::optional(true)
             : lt ? std::optional(false)
                  : std::nullopt;
    }
  }
  auto x = a.number(), y = b.number();
  if (!x || !y)
    return std::nullopt;
  switch (op) {
  case CompareOp::Eq:
    return *x == *y;
  case CompareOp::Ne:
    return *x != *y;
  case CompareOp::Lt:
    return *x < *y;
  case CompareOp::Le:
    return *x <= *y;
  case CompareOp::Gt:
    return *x > *y;
  case CompareOp::Ge:
    return *x >= *y;
  }
  return std::nullopt;
}
