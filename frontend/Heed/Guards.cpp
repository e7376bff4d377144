//===- Guards.cpp - Evaluating only what a guard lets through -------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A guarded read that the ranges alone do not keep in range is evaluated under
// an scf.if. Guards of the equation that the body at hand does not enforce yet
// are enforced where such a read stands.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using namespace mlir;
using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;

bool Lowering::needsGuard(const Expr &expr, const Scope &scope, Equation &eq) {
  auto found = eq.infos.find({&expr, scope.env.get()});
  // Not inferred: a branch that is not there.
  if (found == eq.infos.end() || found->second.fixed)
    return false;
  if (auto *read = dyn_cast<ReadExpr>(&expr))
    if (!provenRead(*read, scope, eq))
      return true;
  const Binding *named = nullptr;
  std::optional<Binding> binding;
  if (auto *name = dyn_cast<NameExpr>(&expr)) {
    if (!scope.indices.count(name->name))
      binding = lookup(*scope.env, name->name);
    named = binding ? &*binding : nullptr;
  } else if (isa<CallExpr>(expr)) {
    auto it = eq.calls.find({&expr, scope.env.get()});
    if (it != eq.calls.end())
      named = &it->second;
  }
  if (named)
    return named->kind == Binding::Thunk &&
           needsGuard(*named->thunk->expr, *named->thunk->scope, eq);
  bool any = false;
  std::optional<Scope> inner;
  if (auto *reduce = dyn_cast<ReduceExpr>(&expr))
    inner = inside(*reduce, scope, eq);
  forEachChild(expr, [&](const Expr &child) {
    any = any || needsGuard(child, inner ? *inner : scope, eq);
  });
  return any;
}

/// Indices that the guards around a reduction read, if its parts need them.
void Lowering::addGuardIndices(const Scope &inner, Equation &eq,
                               ArrayRef<const Expr *> parts,
                               SmallVectorImpl<Idx *> &used) {
  bool needed = llvm::any_of(parts, [&](const Expr *part) {
    return part && needsGuard(*part, inner, eq);
  });
  if (!needed)
    return;
  for (const Guard &guard : eq.guards)
    for (Idx *idx : info(*guard.condition, *guard.scope, eq).used)
      if (!llvm::is_contained(used, idx))
        used.push_back(idx);
}

/// scf.if over `types`; empty if a branch is, after an error.
SmallVector<Value, 2> Lowering::ifElse(Body &body, Value condition,
                                       mlir::TypeRange types, Location at,
                                       llvm::function_ref<Values()> then,
                                       llvm::function_ref<Values()> otherwise) {
  auto ifOp = scf::IfOp::create(body.builder, at, types, condition, true);
  OpBuilder::InsertionGuard guard(body.builder);
  for (bool first : {true, false}) {
    body.builder.setInsertionPointToEnd(first ? ifOp.thenBlock()
                                              : ifOp.elseBlock());
    Values values = first ? then() : otherwise();
    if (values.empty())
      return {};
    scf::YieldOp::create(body.builder, at, values);
  }
  return Values(ifOp.getResults());
}

/// Evaluates `then` under the conditions of all guards from `first` on that
/// `body` does not enforce yet.
SmallVector<Value, 2> Lowering::underGuards(
    Body &body, Equation &eq, size_t first, mlir::TypeRange types, Location at,
    llvm::function_ref<Values()> then, llvm::function_ref<Values()> otherwise) {
  while (first < eq.guards.size() && eq.guards[first].in == &body)
    ++first;
  if (first >= eq.guards.size())
    return then();
  Guard guard = eq.guards[first];
  auto before = std::exchange(body.f64, false);
  TV condition = emit(body, *guard.condition, *guard.scope, eq);
  body.f64 = before;
  if (!condition)
    return {};
  Value value = condition.value;
  if (!guard.positive)
    value = arith::XOrIOp::create(body.builder, at, value,
                                  boolConstant(body.builder, true, at));
  const Body *enforced = std::exchange(eq.guards[first].in, &body);
  Values results = ifElse(
      body, value, types, at,
      [&] {
        return underGuards(body, eq, first + 1, types, at, then, otherwise);
      },
      otherwise);
  eq.guards[first].in = enforced;
  return results;
}

/// The same for one value of type `ty`.
TV Lowering::underGuards(Body &body, Equation &eq, Ty ty, Location at,
                         llvm::function_ref<TV()> then,
                         llvm::function_ref<TV()> otherwise) {
  auto values = [&](TV tv) {
    return tv ? Values{asType(body, tv, ty, at)} : Values();
  };
  Values results = underGuards(
      body, eq, 0, bodyType(body, ty), at, [&] { return values(then()); },
      [&] { return values(otherwise()); });
  return results.empty() ? TV() : TV{results[0], ty, {}};
}

/// An scf.if whose branches are `then` and `otherwise`, both of type `ty`.
TV Lowering::branch(Body &body, Value condition, Ty ty, bool mayBeAbsent,
                    Location at, llvm::function_ref<TV()> then,
                    llvm::function_ref<TV()> otherwise) {
  SmallVector<mlir::Type, 2> types = {bodyType(body, ty)};
  if (mayBeAbsent)
    types.push_back(builder.getI1Type());
  auto values = [&](TV tv) -> Values {
    if (!tv)
      return {};
    Values results = {asType(body, tv, ty, at)};
    if (mayBeAbsent)
      results.push_back(tv.live ? tv.live
                                : boolConstant(body.builder, true, at));
    return results;
  };
  Values results = ifElse(
      body, condition, types, at, [&] { return values(then()); },
      [&] { return values(otherwise()); });
  if (results.empty())
    return {};
  return {results[0], ty, mayBeAbsent ? results[1] : Value()};
}
