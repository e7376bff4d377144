//===- Reductions.cpp - Reductions as steps
//--------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;

Ty Analysis::accumulator(Ty ty) {
  if (ty == Ty::Bool || ty == Ty::I8)
    return ty;
  if (isReal(ty))
    return Ty::F32;
  return ty == Ty::I64 || ty == Ty::AnyInt ? Ty::I64 : Ty::I32;
}

/// The type of what is accumulated, for a result of type `result`.
static Ty accumulated(ReduceOp op, Ty operand, Ty result) {
  if (op == ReduceOp::Mean)
    return isReal(operand) ? operand : Ty::I64;
  bool picks =
      op == ReduceOp::Argmax || op == ReduceOp::Max || op == ReduceOp::Min;
  return picks ? operand : result;
}

/// The tensor of a reduction over `axes`, under the guards from `firstGuard`.
std::optional<Reduced> Analysis::reduction(const ReduceExpr &expr,
                                           const Scope &scope, Equation &eq,
                                           ArrayRef<Idx *> axes,
                                           size_t firstGuard, bool f64) {
  Scope inner = inside(expr, scope, eq);
  SmallVector<Idx *, 2> ids = eq.binders[{&expr, scope.env.get()}];
  llvm::SaveAndRestore run(running, loopsOf(axes, ids));
  const Info &operand = info(*expr.operand, inner, eq);
  bool isArgmax = expr.op == ReduceOp::Argmax;
  Reduction step;
  step.op = expr.op;
  step.axes.assign(axes.begin(), axes.end());
  step.ids.assign(ids.begin(), ids.end());
  step.f64 = f64;
  step.place = expr.range;
  step.ty = accumulated(expr.op, operand.ty, info(expr, scope, eq).ty);
  Shape shape = shapeOf(axes);
  step.shape = uses(shape);
  step.idExtents = uses(shapeOf(ids));
  bool guarded = needsGuard(*expr.operand, inner, eq) ||
                 (expr.where && needsGuard(*expr.where, inner, eq));
  Body body{Body::Generic, {}, f64};
  body.loops.append(axes.begin(), axes.end());
  body.loops.append(ids.begin(), ids.end());
  auto term = [&] {
    size_t depth = eq.guards.size();
    llvm::scope_exit leave([&] { eq.guards.resize(depth); });
    if (expr.where) {
      step.where = resolve(body, *expr.where, inner, eq);
      if (!step.where)
        return false;
      eq.guards.push_back({expr.where.get(), true, &inner, &body});
    }
    step.inBranch = expr.where && needsGuard(*expr.operand, inner, eq);
    step.operand = resolve(body, *expr.operand, inner, eq);
    return bool(step.operand);
  };
  if (!(guarded ? underGuards(body, eq, firstGuard, step.guards, term)
                : term()))
    return std::nullopt;
  Reduced reduced;
  step.result = newTensor();
  reduced.value = {step.result, isArgmax ? Ty::I64 : step.ty, shape, nullptr};
  if (expr.op == ReduceOp::Mean && expr.where) {
    Body counting{Body::Generic, body.loops, false};
    auto one = [&] {
      step.countWhere = resolve(counting, *expr.where, inner, eq);
      return bool(step.countWhere);
    };
    bool ok = needsGuard(*expr.where, inner, eq)
                  ? underGuards(counting, eq, firstGuard, step.countGuards, one)
                  : one();
    if (!ok)
      return std::nullopt;
    step.count = newTensor();
    reduced.count = {step.count, Ty::I64, shape, nullptr};
  }
  sink->push_back(std::move(step));
  return reduced;
}

/// A reduction inside an expression: a tensor over the indices it depends on.
Node *Analysis::resolveReduced(Body &body, const ReduceExpr &expr,
                               const Scope &scope, Equation &eq) {
  const Info &i = info(expr, scope, eq);
  Scope inner = inside(expr, scope, eq);
  SmallVector<Idx *, 2> ids = eq.binders[{&expr, scope.env.get()}];
  size_t depth = eq.guards.size();
  llvm::scope_exit leave([&] { eq.guards.resize(depth); });
  Hoisted hoisted =
      hoist({expr.operand.get(), expr.where.get()}, inner, eq, i.used, ids);
  SmallVector<Idx *, 4> axes = hoisted.axes;
  inLoopOrder(axes, body);
  Equation::Place key{{&expr, scope.env.get()}, hoisted.guards};
  auto it = eq.reduced.find(key);
  if (it == eq.reduced.end() || body.f64) {
    auto reduced =
        reduction(expr, scope, eq, axes, hoisted.firstGuard, body.f64);
    if (!reduced)
      return nullptr;
    eq.reduced.erase(key);
    it = eq.reduced.emplace(key, std::make_pair(*reduced, axes)).first;
  }
  const Reduced &reduced = it->second.first;
  Node *value = elementNode(reduced.value, it->second.second, expr.range);
  if (expr.op == ReduceOp::Argmax) {
    value->ty = Ty::I32;
    return value;
  }
  if (expr.op != ReduceOp::Mean) {
    value->ty = i.ty;
    return value;
  }
  Node *mean = newNode(Node::Mean, i.ty, expr.range, value);
  if (reduced.count.value) {
    mean->operands.push_back(
        elementNode(reduced.count, it->second.second, expr.range));
    return mean;
  }
  Size n(1);
  for (Idx *idx : ids)
    n = n * *idx->extent;
  mean->size = useOf(sizes, sizes.max(n, Size(1)));
  return mean;
}

/// The order of the loops of `body` for the axes that it has.
void Analysis::inLoopOrder(llvm::SmallVectorImpl<Idx *> &axes,
                           const Body &body) {
  auto position = [&](Idx *idx) {
    return llvm::find(body.loops, idx) - body.loops.begin();
  };
  llvm::sort(axes, [&](Idx *a, Idx *b) { return position(a) < position(b); });
}
