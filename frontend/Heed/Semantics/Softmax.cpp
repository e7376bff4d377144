//===- Softmax.cpp - Softmax as a step
//--------------------------------------===//
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

/// A part of a softmax that is a tensor of its own, 0 where guards exclude it.
std::optional<TensorVal>
Analysis::partOfSoftmax(const Expr &part, Range place, const Scope &scope,
                        Equation &eq, ArrayRef<Idx *> axes, size_t firstGuard) {
  if (auto tensor = plainRead(part, scope, eq, axes, Ty::F32))
    return tensor;
  return elementwise(
      axes, Ty::F32, part.range, false, [&](Body &body) -> Node * {
        auto value = [&] { return resolve(body, part, scope, eq); };
        if (!needsGuard(part, scope, eq))
          return value();
        return underGuards(body, eq, firstGuard, Ty::F32, place, value,
                           newNode(Node::Real, Ty::AnyReal, place));
      });
}

std::optional<TensorVal> Analysis::softmax(const SoftmaxExpr &expr,
                                           const Scope &scope, Equation &eq,
                                           ArrayRef<Idx *> axes,
                                           size_t firstGuard) {
  llvm::SaveAndRestore run(running, loopsOf(axes));
  SmallVector<Idx *, 2> ids = eq.binders[{&expr, scope.env.get()}];
  Softmax step;
  step.map = std::string(expr.name);
  step.isLog = expr.isLog();
  step.axes.assign(axes.begin(), axes.end());
  step.place = expr.range;
  SmallVector<Idx *, 4> others;
  for (auto [k, idx] : llvm::enumerate(axes)) {
    if (llvm::is_contained(ids, idx))
      step.positions.push_back(k);
    else
      others.push_back(idx);
  }
  {
    // The scores, where they are not excluded.
    size_t depth = eq.guards.size();
    llvm::scope_exit leave([&] { eq.guards.resize(depth); });
    if (expr.where)
      eq.guards.push_back({expr.where.get(), true, &scope, nullptr});
    auto scores =
        partOfSoftmax(*expr.operand, expr.range, scope, eq, axes, firstGuard);
    if (!scores)
      return std::nullopt;
    step.scores = scores->value;
  }
  if (expr.sink) {
    auto sink =
        partOfSoftmax(*expr.sink, expr.range, scope, eq, others, firstGuard);
    if (!sink)
      return std::nullopt;
    step.sink = sink->value;
    step.sinkShape = uses(shapeOf(others));
  }
  if (expr.where) {
    Body body{Body::Where, {}, false};
    body.loops.append(axes.begin(), axes.end());
    step.where = collecting([&]() -> Node * {
      auto value = [&] { return resolve(body, *expr.where, scope, eq); };
      if (!needsGuard(*expr.where, scope, eq))
        return value();
      return underGuards(body, eq, firstGuard, Ty::Bool, expr.range, value,
                         newNode(Node::Bool, Ty::Bool, expr.range));
    });
    if (!step.where)
      return std::nullopt;
  }
  TensorVal tensor{newTensor(), Ty::F32, shapeOf(axes), nullptr};
  step.shape = uses(tensor.shape);
  step.result = tensor.value;
  step.live = newTensor();
  if (!expr.isLog())
    tensor.live = step.live;
  sink->push_back(std::move(step));
  return tensor;
}

Node *Analysis::resolveNestedSoftmax(Body &body, const SoftmaxExpr &expr,
                                     const Scope &scope, Equation &eq) {
  // A guard that reads an index of the softmax chooses among results: each of
  // them is made of all scores.
  auto guards = eq.guards;
  llvm::scope_exit leave([&] { eq.guards = guards; });
  llvm::erase_if(eq.guards, [&](const Guard &guard) {
    return guard.condition &&
           llvm::any_of(info(*guard.condition, *guard.scope, eq).used,
                        [&](Idx *idx) {
                          return llvm::is_contained(
                              eq.binders[{&expr, scope.env.get()}], idx);
                        });
  });
  Hoisted hoisted =
      hoist({expr.operand.get(), expr.where.get(), expr.sink.get()}, scope, eq,
            info(expr, scope, eq).used, {});
  SmallVector<Idx *, 4> axes = hoisted.axes;
  inLoopOrder(axes, body);
  Equation::Place key{{&expr, scope.env.get()}, hoisted.guards};
  auto it = eq.softmaxes.find(key);
  if (it == eq.softmaxes.end()) {
    auto tensor = softmax(expr, scope, eq, axes, hoisted.firstGuard);
    if (!tensor)
      return nullptr;
    it = eq.softmaxes.emplace(key, std::make_pair(*tensor, axes)).first;
  }
  Node *node = elementNode(it->second.first, it->second.second, expr.range);
  node->ty = info(expr, scope, eq).ty;
  return node;
}
