//===- ResolveOperators.cpp - Operators and branches as nodes -------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `and`, `or` and `if` become control flow where a read on one side is in range
// only by the other; elsewhere both sides are computed.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::dyn_cast;

static bool isAbsent(const BinaryExpr &expr, const Node &x, const Node &y) {
  switch (expr.op) {
  case BinaryOp::Mul:
    return x.absent || y.absent;
  case BinaryOp::Div:
    return x.absent;
  case BinaryOp::Pow:
    return isProduct(expr) && x.absent;
  case BinaryOp::Add:
  case BinaryOp::Sub:
    return x.absent && y.absent;
  default:
    return false;
  }
}

Node *Analysis::resolveBinary(Body &body, const BinaryExpr &expr,
                              const Scope &scope, Equation &eq) {
  const Info &i = info(expr, scope, eq);
  Node *x = resolve(body, *expr.lhs, scope, eq);
  Node *y = resolve(body, *expr.rhs, scope, eq);
  if (!x || !y)
    return nullptr;
  Node *node = newNode(Node::Binary, i.ty, expr.opRange, {x, y});
  node->op = expr.op;
  node->isProduct = expr.op == BinaryOp::Pow && isProduct(expr);
  node->absent = isAbsent(expr, *x, *y);
  if (auto *exponent = dyn_cast<IntExpr>(expr.rhs.get());
      exponent && expr.op == BinaryOp::Pow)
    node->exponent = exponent->value;
  bool divides = expr.op == BinaryOp::Div || expr.op == BinaryOp::FloorDiv ||
                 expr.op == BinaryOp::Mod;
  if (isReal(i.ty) || !divides)
    return node;
  // A divisor of indices and sizes must not be 0; one of data may be.
  llvm::SaveAndRestore into(sink, &node->after);
  const Info &divisor = info(*expr.rhs, scope, eq);
  if (divisor.pure && !checkDivisor(expr, scope, eq))
    return nullptr;
  Bounds range = bounds(*expr.rhs, scope, eq);
  // A size was checked not to be 0 where a loop around has a turn. Under a
  // guard both sides may be computed, and only the one that holds is checked.
  bool isChecked = divisor.fixed && eq.guards.empty();
  node->mayDivideByZero =
      !isChecked && llvm::none_of(range.lower, [&](const Size &lower) {
        return sizes.nonNegative(lower - 1, positiveAtoms(i.used));
      });
  Bounds low = bounds(*expr.lhs, scope, eq);
  node->isNonNegative =
      divisor.fixed && sizes.nonNegative(divisor.fixed->size) &&
      llvm::any_of(low.lower,
                   [&](const Size &s) { return sizes.nonNegative(s); });
  return node;
}

Node *Analysis::resolveCompare(Body &body, const CompareExpr &expr,
                               const Scope &scope, Equation &eq) {
  Node *node = newNode(Node::Compare, Ty::Bool, expr.range);
  for (const ExprPtr &operand : expr.operands) {
    // Against none or a string: known to hold.
    if (info(*operand, scope, eq).isNoValue()) {
      node->operands.push_back(nullptr);
      continue;
    }
    node->operands.push_back(resolve(body, *operand, scope, eq));
    if (!node->operands.back())
      return nullptr;
  }
  for (auto [op, place] : llvm::zip(expr.ops, expr.opRanges))
    node->compares.push_back({op, place});
  return node;
}

Node *Analysis::resolveLogic(Body &body, const LogicExpr &expr,
                             const Scope &scope, Equation &eq) {
  Node *x = resolve(body, *expr.lhs, scope, eq);
  if (!x)
    return nullptr;
  eq.guards.push_back({expr.lhs.get(), expr.isAnd, &scope, &body});
  llvm::scope_exit leave([&] { eq.guards.pop_back(); });
  bool branches = needsGuard(*expr.rhs, scope, eq);
  Node *y = resolve(body, *expr.rhs, scope, eq);
  if (!y)
    return nullptr;
  Node *node = newNode(Node::Logic, Ty::Bool, expr.range, {x, y});
  node->flag = expr.isAnd;
  node->branches = branches;
  return node;
}

Node *Analysis::resolveIf(Body &body, const IfExpr &expr, const Scope &scope,
                          Equation &eq) {
  const Info &c = info(*expr.condition, scope, eq);
  if (c.fixed)
    return resolve(body, c.fixed->flag ? *expr.thenValue : *expr.elseValue,
                   scope, eq);
  const Info &i = info(expr, scope, eq);
  Node *condition = resolve(body, *expr.condition, scope, eq);
  if (!condition)
    return nullptr;
  bool branches = needsGuard(*expr.thenValue, scope, eq) ||
                  needsGuard(*expr.elseValue, scope, eq);
  auto side = [&](bool first) {
    eq.guards.push_back({expr.condition.get(), first, &scope, &body});
    llvm::scope_exit leave([&] { eq.guards.pop_back(); });
    return resolve(body, first ? *expr.thenValue : *expr.elseValue, scope, eq);
  };
  Node *a = side(true), *b = a || !branches ? side(false) : nullptr;
  if (!a || !b)
    return nullptr;
  Node *node = newNode(Node::If, i.ty, expr.range, {condition, a, b});
  node->branches = branches;
  node->absent = branches ? i.mayBeAbsent : a->absent || b->absent;
  return node;
}
