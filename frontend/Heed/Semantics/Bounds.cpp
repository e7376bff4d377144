//===- Bounds.cpp - Linear forms and bounds of integers -------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::cast;

/// The branch of an `if` whose condition is known: the other was not inferred.
const Expr *Analysis::takenBranch(const IfExpr &expr, const Scope &scope,
                                  const Equation &eq) {
  const Info &condition = info(*expr.condition, scope, eq);
  if (!condition.fixed)
    return nullptr;
  return condition.fixed->flag ? expr.thenValue.get() : expr.elseValue.get();
}

/// Long: one kind of expression after the other.
std::optional<Linear> Analysis::linear(const Expr &expr, const Scope &scope,
                                       Equation &eq) {
  const Info &i = info(expr, scope, eq);
  if (i.fixed) {
    if (i.fixed->kind != Binding::Int)
      return std::nullopt;
    return Linear{{}, i.fixed->size};
  }
  auto combined = [&](const Expr &a, const Expr &b,
                      int64_t sign) -> std::optional<Linear> {
    auto x = linear(a, scope, eq), y = linear(b, scope, eq);
    if (!x || !y)
      return std::nullopt;
    x->offset = (x->offset + y->offset * sign).wrapped();
    for (auto &[idx, factor] : y->factors) {
      Size &sum = x->factors[idx];
      sum = (sum + factor * sign).wrapped();
      if (sum.terms.empty())
        x->factors.erase(idx);
    }
    return x;
  };
  switch (expr.kind) {
  case ExprKind::Paren:
    return linear(*cast<ParenExpr>(expr).inner, scope, eq);
  case ExprKind::Name: {
    auto &name = cast<NameExpr>(expr);
    if (auto it = scope.indices.find(name.name); it != scope.indices.end())
      return Linear{{{it->second, Size(1)}}, Size()};
    auto binding = lookup(*scope.env, name.name);
    if (binding && binding->kind == Binding::Thunk)
      return linear(*binding->thunk->expr, *binding->thunk->scope, eq);
    return std::nullopt;
  }
  case ExprKind::If:
    if (const Expr *taken = takenBranch(cast<IfExpr>(expr), scope, eq))
      return linear(*taken, scope, eq);
    return std::nullopt;
  case ExprKind::Negate: {
    auto x = linear(*cast<NegateExpr>(expr).operand, scope, eq);
    if (!x)
      return std::nullopt;
    x->offset = (-x->offset).wrapped();
    for (auto &entry : x->factors)
      entry.second = (-entry.second).wrapped();
    return x;
  }
  case ExprKind::Binary: {
    auto &binary = cast<BinaryExpr>(expr);
    if (binary.op == BinaryOp::Add || binary.op == BinaryOp::Sub)
      return combined(*binary.lhs, *binary.rhs,
                      binary.op == BinaryOp::Add ? 1 : -1);
    if (binary.op != BinaryOp::Mul)
      return std::nullopt;
    auto x = linear(*binary.lhs, scope, eq), y = linear(*binary.rhs, scope, eq);
    if (!x || !y || (!x->factors.empty() && !y->factors.empty()))
      return std::nullopt;
    if (x->factors.empty())
      std::swap(x, y);
    Size by = y->offset;
    if (by.terms.empty())
      return Linear{};
    x->offset = (x->offset * by).wrapped();
    for (auto &entry : x->factors)
      entry.second = sizes.simplify(entry.second * by).wrapped();
    return x;
  }
  default:
    return std::nullopt;
  }
}

SmallVector<unsigned> Analysis::positiveAtoms(ArrayRef<const Idx *> used) {
  // Where something is evaluated, every loop around it runs at least once.
  SmallVector<unsigned> atoms;
  for (const Idx *idx : used)
    if (idx->extent)
      for (auto &term : idx->extent->terms)
        if (idx->extent->terms.size() == 1)
          for (unsigned id : term.first)
            atoms.push_back(id);
  return sizes.withFactors(atoms);
}

/// Long: one kind of expression after the other.
Bounds Analysis::bounds(const Expr &expr, const Scope &scope, Equation &eq) {
  Bounds result;
  const Info &i = info(expr, scope, eq);
  SmallVector<unsigned> atoms = positiveAtoms(i.used);
  Intervals math(sizes, atoms);
  auto nonNegative = [&](const Size &size) { return math.nonNegative(size); };
  if (auto form = linear(expr, scope, eq)) {
    Size low = form->offset, high = form->offset;
    bool known = true;
    for (auto &[idx, factor] : form->factors) {
      if (!idx->extent) {
        known = false;
        break;
      }
      Size span = factor * (*idx->extent - 1);
      if (nonNegative(factor))
        high = high + span;
      else if (nonNegative(-factor))
        low = low + span;
      else
        known = false;
    }
    if (known) {
      result.lower = {sizes.simplify(low)};
      result.upper = {sizes.simplify(high)};
      result.exact = true;
      return result;
    }
  }
  auto of = [&](const Expr &part) { return bounds(part, scope, eq); };
  switch (expr.kind) {
  case ExprKind::Paren:
    return of(*cast<ParenExpr>(expr).inner);
  case ExprKind::Name: {
    auto binding = lookup(*scope.env, cast<NameExpr>(expr).name);
    if (binding && binding->kind == Binding::Thunk)
      return bounds(*binding->thunk->expr, *binding->thunk->scope, eq);
    return result;
  }
  case ExprKind::Negate: {
    Bounds x = of(*cast<NegateExpr>(expr).operand);
    for (const Size &s : x.upper)
      result.lower.push_back(-s);
    for (const Size &s : x.lower)
      result.upper.push_back(-s);
    result.exact = x.exact;
    return result;
  }
  case ExprKind::If: {
    if (const Expr *taken = takenBranch(cast<IfExpr>(expr), scope, eq))
      return of(*taken);
    Bounds x = of(*cast<IfExpr>(expr).thenValue),
           y = of(*cast<IfExpr>(expr).elseValue);
    for (const Size &a : x.lower)
      for (const Size &b : y.lower)
        result.lower.push_back(sizes.min(a, b));
    for (const Size &a : x.upper)
      for (const Size &b : y.upper)
        result.upper.push_back(sizes.max(a, b));
    return result;
  }
  case ExprKind::Call: {
    auto &call = cast<CallExpr>(expr);
    StringRef name = call.callee.text;
    if (auto it = eq.calls.find({&expr, scope.env.get()});
        it != eq.calls.end()) {
      if (it->second.kind == Binding::Thunk)
        return bounds(*it->second.thunk->expr, *it->second.thunk->scope, eq);
      return result;
    }
    SmallVector<Bounds, 3> x;
    if (!isInt(i.ty))
      return result;
    for (const ExprPtr &arg : call.args) {
      if (!isInt(info(*arg, scope, eq).ty))
        return result;
      x.push_back(of(*arg));
    }
    if (const Builtin *row = findBuiltin(name))
      return row->bounds ? row->bounds(math, x) : result;
    // A conversion to i32 wraps.
    auto fits = [](const Size &s) {
      auto c = s.constant();
      return c ? *c == int32_t(*c) : s.asAtom().has_value();
    };
    if (name == "i64" || (name == "i32" && llvm::any_of(x[0].lower, fits) &&
                          llvm::any_of(x[0].upper, [&](const Size &s) {
                            return fits(s) || fits(s + 1);
                          })))
      return x[0];
    return result;
  }
  case ExprKind::Binary: {
    auto &binary = cast<BinaryExpr>(expr);
    if (!isInt(i.ty))
      return result;
    const Info &right = info(*binary.rhs, scope, eq);
    bool divides =
        binary.op == BinaryOp::FloorDiv || binary.op == BinaryOp::Div;
    if ((divides || binary.op == BinaryOp::Mod) && right.fixed) {
      Size by = right.fixed->size;
      // A division by 0 is an error, or not reached.
      Bounds x = of(*binary.lhs);
      if (!nonNegative(by))
        return result;
      if (divides) {
        for (const Size &s : x.lower)
          result.lower.push_back(nonNegative(s) ? Size(0)
                                                : sizes.floorDiv(s, by));
        if (x.exact)
          result.lower = {sizes.floorDiv(x.lower[0], by)};
        for (const Size &s : x.upper)
          result.upper.push_back(sizes.floorDiv(s, by));
        result.exact = x.exact;
        return result;
      }
      result.lower.push_back(Size(0));
      result.upper.push_back(by - 1);
      for (const Size &s : x.lower)
        if (nonNegative(s))
          result.upper.append(x.upper);
      return result;
    }
    Bounds x = of(*binary.lhs), y = of(*binary.rhs);
    if (binary.op == BinaryOp::Add || binary.op == BinaryOp::Sub) {
      bool sub = binary.op == BinaryOp::Sub;
      for (const Size &a : x.lower)
        for (const Size &b : sub ? y.upper : y.lower)
          result.lower.push_back(sub ? a - b : a + b);
      for (const Size &a : x.upper)
        for (const Size &b : sub ? y.lower : y.upper)
          result.upper.push_back(sub ? a - b : a + b);
      result.exact = (x.exact && right.fixed) ||
                     (y.exact && info(*binary.lhs, scope, eq).fixed);
      return result;
    }
    if (binary.op == BinaryOp::Mul) {
      const Info &left = info(*binary.lhs, scope, eq);
      const Info &scale = left.fixed ? left : right;
      Bounds &range = left.fixed ? y : x;
      if (!scale.fixed)
        return result;
      bool up = nonNegative(scale.fixed->size);
      if (!up && !nonNegative(-scale.fixed->size))
        return result;
      for (const Size &s : range.lower)
        (up ? result.lower : result.upper).push_back(s * scale.fixed->size);
      for (const Size &s : range.upper)
        (up ? result.upper : result.lower).push_back(s * scale.fixed->size);
      result.exact = range.exact;
    }
    return result;
  }
  default:
    return result;
  }
}
