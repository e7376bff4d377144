//===- Reach.cpp - What is known where an expression is evaluated ---------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The points of the indices around that the guards let through. Whatever is not
// affine in indices and sizes stands there as a variable with the bounds that
// are known of it; a condition that says nothing about indices and sizes is as
// if it always held.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::cast;

unsigned Analysis::variable(Reach &reach, const Idx *idx) {
  auto [it, isNew] = reach.ids.try_emplace(idx);
  if (isNew) {
    Points::Variable points{idx->name, {Form(0)}, {}};
    if (idx->extent)
      points.upper.push_back(Form(*idx->extent) - Form(1));
    it->second = reach.points.addVariable(std::move(points));
  }
  return it->second;
}

/// Everything around: the loops that run, and the guards.
Analysis::Reach Analysis::reach(Equation &eq, bool guarded) {
  Reach result{Points(sizes), {}};
  for (const Idx *idx : running)
    variable(result, idx);
  for (const RolledLoop &loop : loops) {
    Size turn = Size::atom(loop.turn);
    result.points.assume(Form(turn - loop.lo));
    result.points.assume(Form(loop.hi - turn - 1));
  }
  if (guarded)
    for (const Guard &guard : eq.guards) {
      if (guard.condition)
        result.points.restrict(
            holds(*guard.condition, guard.positive, *guard.scope, eq, result));
      else
        variable(result, guard.loop);
    }
  // Where something is evaluated, every loop around it runs.
  SmallVector<const Idx *, 8> used;
  for (auto &entry : result.ids)
    used.push_back(entry.first);
  for (unsigned atom : positiveAtoms(used))
    result.points.atLeast(atom, 1);
  return result;
}

/// A part of an expression as a variable of its own.
Form Analysis::opaque(const Expr &expr, const Scope &scope, Equation &eq,
                      Reach &reach) {
  reach.points.relaxed = true;
  Points::Variable part;
  Bounds range = bounds(expr, scope, eq);
  for (const Size &size : range.lower)
    part.lower.push_back(Form(size));
  for (const Size &size : range.upper)
    part.upper.push_back(Form(size));
  return Form::variable(reach.points.addVariable(std::move(part)));
}

/// Long: one kind of expression after the other.
Form Analysis::form(const Expr &expr, const Scope &scope, Equation &eq,
                    Reach &reach) {
  const Info &i = info(expr, scope, eq);
  if (i.fixed && i.fixed->kind == Binding::Int)
    return Form(i.fixed->size);
  auto of = [&](const Expr &part) { return form(part, scope, eq, reach); };
  switch (expr.kind) {
  case ExprKind::Paren:
    return of(*cast<ParenExpr>(expr).inner);
  case ExprKind::Name: {
    auto &name = cast<NameExpr>(expr);
    if (auto it = scope.indices.find(name.name); it != scope.indices.end())
      return Form::variable(variable(reach, it->second));
    auto binding = lookup(*scope.env, name.name);
    if (binding && binding->kind == Binding::Thunk)
      return form(*binding->thunk->expr, *binding->thunk->scope, eq, reach);
    return opaque(expr, scope, eq, reach);
  }
  case ExprKind::If:
    if (const Expr *taken = takenBranch(cast<IfExpr>(expr), scope, eq))
      return of(*taken);
    return opaque(expr, scope, eq, reach);
  case ExprKind::Negate:
    return -of(*cast<NegateExpr>(expr).operand);
  case ExprKind::Binary: {
    auto &binary = cast<BinaryExpr>(expr);
    if (!isInt(i.ty))
      return opaque(expr, scope, eq, reach);
    Form a = of(*binary.lhs), b = of(*binary.rhs);
    switch (binary.op) {
    case BinaryOp::Add:
      return a + b;
    case BinaryOp::Sub:
      return a - b;
    case BinaryOp::Mul:
      if (auto product = Form::product(a, b))
        return *product;
      return opaque(expr, scope, eq, reach);
    case BinaryOp::Div:
    case BinaryOp::FloorDiv:
    case BinaryOp::Mod: {
      auto by = b.asSize();
      if (!by || !sizes.nonNegative(*by - 1))
        return opaque(expr, scope, eq, reach);
      // by*q <= a < by*q + by
      Points::Variable quotient;
      if (binary.op != BinaryOp::Mod) {
        Bounds range = bounds(expr, scope, eq);
        for (const Size &size : range.lower)
          quotient.lower.push_back(Form(size));
        for (const Size &size : range.upper)
          quotient.upper.push_back(Form(size));
      }
      Form q = Form::variable(reach.points.addVariable(std::move(quotient)));
      Form rest = a - *Form::product(q, Form(*by));
      reach.points.assume(rest);
      reach.points.assume(Form(*by) - Form(1) - rest);
      return binary.op == BinaryOp::Mod ? rest : q;
    }
    default:
      return opaque(expr, scope, eq, reach);
    }
  }
  case ExprKind::Call: {
    if (auto it = eq.calls.find({&expr, scope.env.get()}); it != eq.calls.end())
      if (it->second.kind == Binding::Thunk)
        return form(*it->second.thunk->expr, *it->second.thunk->scope, eq,
                    reach);
    auto &call = cast<CallExpr>(expr);
    bool integers = isInt(i.ty) && llvm::all_of(call.args, [&](auto &arg) {
                      return isInt(info(*arg, scope, eq).ty);
                    });
    Form self = opaque(expr, scope, eq, reach);
    if (!integers || eq.calls.count({&expr, scope.env.get()}))
      return self;
    StringRef name = call.callee.text;
    if (const Builtin *row = findBuiltin(name)) {
      if (row->relate)
        row->relate(reach.points, self,
                    [&](unsigned k) { return of(*call.args[k]); });
    } else if (name == "i64") {
      return of(*call.args[0]);
    }
    return self;
  }
  default:
    return opaque(expr, scope, eq, reach);
  }
}

/// The cases in which a condition holds, or does not.
/// Long: one kind of condition after the other.
Disjunction Analysis::holds(const Expr &expr, bool positive, const Scope &scope,
                            Equation &eq, Reach &reach) {
  auto found = eq.infos.find({&expr, scope.env.get()});
  Disjunction always = {{}};
  if (found == eq.infos.end())
    return always;
  if (auto &fixed = found->second.fixed)
    return fixed->kind == Binding::Bool && fixed->flag != positive
               ? Disjunction()
               : always;
  auto of = [&](const Expr &part, bool side) {
    return holds(part, side, scope, eq, reach);
  };
  auto both = [](const Disjunction &a, const Disjunction &b) {
    Disjunction result;
    for (const Conjunction &x : a)
      for (const Conjunction &y : b) {
        result.push_back(x);
        result.back().insert(result.back().end(), y.begin(), y.end());
      }
    return result;
  };
  auto either = [](Disjunction a, const Disjunction &b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  switch (expr.kind) {
  case ExprKind::Paren:
    return of(*cast<ParenExpr>(expr).inner, positive);
  case ExprKind::Not:
    return of(*cast<NotExpr>(expr).operand, !positive);
  case ExprKind::Name: {
    auto binding = lookup(*scope.env, cast<NameExpr>(expr).name);
    if (binding && binding->kind == Binding::Thunk)
      return holds(*binding->thunk->expr, positive, *binding->thunk->scope, eq,
                   reach);
    break;
  }
  case ExprKind::Call:
    if (auto it = eq.calls.find({&expr, scope.env.get()});
        it != eq.calls.end() && it->second.kind == Binding::Thunk)
      return holds(*it->second.thunk->expr, positive, *it->second.thunk->scope,
                   eq, reach);
    break;
  case ExprKind::If:
    if (const Expr *taken = takenBranch(cast<IfExpr>(expr), scope, eq))
      return of(*taken, positive);
    break;
  case ExprKind::Logic: {
    auto &logic = cast<LogicExpr>(expr);
    Disjunction a = of(*logic.lhs, positive), b = of(*logic.rhs, positive);
    if (logic.isAnd != positive)
      return either(std::move(a), b);
    if (a.size() * b.size() > 32)
      break;
    return both(a, b);
  }
  case ExprKind::Compare: {
    auto &compare = cast<CompareExpr>(expr);
    Disjunction all = always, some;
    for (auto [k, op] : llvm::enumerate(compare.ops)) {
      const Expr &lhs = *compare.operands[k], &rhs = *compare.operands[k + 1];
      Disjunction one;
      auto usable = [&](const Expr &operand) {
        const Info &i = info(operand, scope, eq);
        return isInt(i.ty) && !i.isNoValue();
      };
      if (!usable(lhs) || !usable(rhs)) {
        reach.points.relaxed = true;
        one = always;
      } else {
        Form d = form(rhs, scope, eq, reach) - form(lhs, scope, eq, reach);
        Form less = d - Form(1), more = -d - Form(1);
        switch (op) {
        case CompareOp::Eq:
        case CompareOp::Ne:
          one = (op == CompareOp::Eq) == positive
                    ? Disjunction{{{d, true}}}
                    : Disjunction{{{less}}, {{more}}};
          break;
        case CompareOp::Lt:
          one = {{{positive ? less : -d}}};
          break;
        case CompareOp::Le:
          one = {{{positive ? d : more}}};
          break;
        case CompareOp::Gt:
          one = {{{positive ? more : d}}};
          break;
        case CompareOp::Ge:
          one = {{{positive ? -d : less}}};
          break;
        }
      }
      if (positive)
        all = both(all, one);
      else
        some = either(std::move(some), one);
    }
    return positive ? all : some;
  }
  default:
    break;
  }
  reach.points.relaxed = true;
  return always;
}
