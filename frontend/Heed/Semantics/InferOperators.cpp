//===- InferOperators.cpp - Types of operators, comparisons and if --------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/Twine.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::isa;
using llvm::Twine;

bool Analysis::inferBinary(const BinaryExpr &expr, const Scope &scope,
                           Equation &eq, bool weak, Info &info) {
  const Info *a = infer(*expr.lhs, scope, eq, weak);
  const Info *b = infer(*expr.rhs, scope, eq, weak);
  if (!a || !b)
    return false;
  std::string what = format("'{}'", ast::spelling(expr.op));
  if (!number(*a, expr.lhs->range, what) || !number(*b, expr.rhs->range, what))
    return false;
  auto ty = join(a->ty, b->ty);
  if (!ty)
    return error(expr.opRange,
                 format("{} between {} and {}: convert one of them, f32( )",
                        what, spelling(a->ty), spelling(b->ty)));
  bool ints = isInt(a->ty) && isInt(b->ty);
  info.ty = *ty;
  if (expr.op == BinaryOp::Pow && !(ints && isa<IntExpr>(expr.rhs.get())))
    info.ty = realOf(*ty);
  if (expr.op == BinaryOp::Div && ints) {
    if (expr.place == Place::Bound || expr.place == Place::Condition)
      return error(expr.opRange,
                   Twine("'/' between integers in a ") +
                       (expr.place == Place::Bound ? "range" : "condition") +
                       ": write // or f32( )");
    if (expr.place == Place::Value && !staticArgument)
      info.ty = realOf(*ty);
  }
  if (isReal(info.ty))
    info.hasReal = true;
  switch (expr.op) {
  case BinaryOp::Mul:
    info.mayBeAbsent = a->mayBeAbsent || b->mayBeAbsent;
    break;
  case BinaryOp::Div:
    info.mayBeAbsent = a->mayBeAbsent;
    break;
  case BinaryOp::Pow:
    info.mayBeAbsent = isProduct(expr) && a->mayBeAbsent;
    break;
  case BinaryOp::Add:
  case BinaryOp::Sub:
    info.mayBeAbsent = a->mayBeAbsent && b->mayBeAbsent;
    break;
  default:
    break;
  }
  if (!merge(info, *a, expr.lhs->range) || !merge(info, *b, expr.rhs->range))
    return false;
  if (!a->fixed || !b->fixed) {
    // An integer division by a size is checked when sizes are known.
    return true;
  }
  return foldBinary(expr, *a, *b, info);
}

static bool isOf(const Info &part, Binding::Kind kind) {
  return part.isNoValue() && part.fixed->kind == kind;
}

/// A chain of comparisons is true if all are, and false if one is.
static void conjoin(std::optional<bool> &all, std::optional<bool> known) {
  if (!known)
    all = all == false ? all : std::nullopt;
  else if (!*known)
    all = false;
}

bool Analysis::inferCompare(const CompareExpr &expr, const Scope &scope,
                            Equation &eq, bool weak, Info &info) {
  info.ty = Ty::Bool;
  SmallVector<const Info *> parts;
  for (const ExprPtr &operand : expr.operands) {
    parts.push_back(infer(*operand, scope, eq, weak));
    if (!parts.back())
      return false;
  }
  std::optional<bool> all = true;
  for (auto [k, op] : llvm::enumerate(expr.ops)) {
    const Info &a = *parts[k], &b = *parts[k + 1];
    std::string what = format("'{}'", ast::spelling(op));
    bool equality = op == CompareOp::Eq || op == CompareOp::Ne;
    if (a.isNoValue() || b.isNoValue()) {
      bool none = isOf(a, Binding::None) || isOf(b, Binding::None);
      bool texts = isOf(a, Binding::String) && isOf(b, Binding::String);
      if (!equality || (!none && !texts))
        return error(expr.opRanges[k], format("{} between {} and {}", what,
                                              kindOf(a), kindOf(b)));
      if (none) {
        // What is compared with none need not be a value.
        bool same = a.fixed && b.fixed && a.fixed->kind == b.fixed->kind;
        conjoin(all, same == (op == CompareOp::Eq));
        continue;
      }
      auto x = a.fixed->text.plain(), y = b.fixed->text.plain();
      if (!x || !y) {
        needsUnroll = true;
        return false;
      }
      conjoin(all, (*x == *y) == (op == CompareOp::Eq));
      continue;
    }
    bool bools = a.ty == Ty::Bool && b.ty == Ty::Bool;
    if (!(bools && equality)) {
      if (!number(a, expr.operands[k]->range, what) ||
          !number(b, expr.operands[k + 1]->range, what))
        return false;
      if (!join(a.ty, b.ty))
        return error(expr.opRanges[k],
                     format("{} between {} and {}: convert one of them, f32( )",
                            what, spelling(a.ty), spelling(b.ty)));
    }
    conjoin(all, a.fixed && b.fixed ? foldCompare(op, *a.fixed, *b.fixed)
                                    : std::nullopt);
  }
  for (auto [operand, part] : llvm::zip(expr.operands, parts)) {
    if (!part->isNoValue() && !(all && part->whole) &&
        !merge(info, *part, operand->range))
      return false;
  }
  if (all) {
    info.fixed = Binding::ofBool(*all);
    info.used.clear();
    info.pure = true;
  }
  return true;
}

bool Analysis::inferIf(const IfExpr &expr, const Scope &scope, Equation &eq,
                       bool weak, Info &info) {
  const Info *c = infer(*expr.condition, scope, eq, weak);
  if (!c || !boolean(*c, expr.condition->range, "the condition of 'if'"))
    return false;
  if (c->fixed) {
    const Info *chosen = infer(
        c->fixed->flag ? *expr.thenValue : *expr.elseValue, scope, eq, weak);
    if (chosen)
      info = *chosen;
    return chosen;
  }
  auto side = [&](bool first) {
    eq.guards.push_back({expr.condition.get(), first, &scope, nullptr});
    llvm::scope_exit leave([&] { eq.guards.pop_back(); });
    return infer(first ? *expr.thenValue : *expr.elseValue, scope, eq, true);
  };
  const Info *a = side(true), *b = side(false);
  if (!a || !b)
    return false;
  auto ty = join(a->ty, b->ty);
  if (!ty || a->isNoValue() || b->isNoValue())
    return error(expr.range,
                 format("the branches of 'if' do not go together: {} and {}",
                        kindOf(*a), kindOf(*b)));
  info.ty = *ty;
  info.hasReal = isReal(*ty);
  info.mayBeAbsent = a->mayBeAbsent || b->mayBeAbsent;
  return merge(info, *c, expr.condition->range) &&
         merge(info, *a, expr.thenValue->range) &&
         merge(info, *b, expr.elseValue->range);
}
