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

#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::dyn_cast;
using llvm::isa;

/// Is there a read in `expr`, of which `of` holds?
bool Analysis::anyPart(
    const Expr &expr, const Scope &scope, Equation &eq,
    llvm::function_ref<bool(const Expr &, const Scope &)> of) {
  auto found = eq.infos.find({&expr, scope.env.get()});
  // Not inferred: a branch that is not there.
  if (found == eq.infos.end() || found->second.fixed)
    return false;
  if (of(expr, scope))
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
           anyPart(*named->thunk->expr, *named->thunk->scope, eq, of);
  bool any = false;
  std::optional<Scope> inner;
  if (auto *reduce = dyn_cast<ReduceExpr>(&expr))
    inner = inside(*reduce, scope, eq);
  forEachChild(expr, [&](const Expr &child) {
    any = any || anyPart(child, inner ? *inner : scope, eq, of);
  });
  return any;
}

bool Analysis::needsGuard(const Expr &expr, const Scope &scope, Equation &eq) {
  return anyPart(expr, scope, eq, [&](const Expr &part, const Scope &around) {
    auto *read = dyn_cast<ReadExpr>(&part);
    return read && !provenRead(*read, around, eq);
  });
}

//===----------------------------------------------------------------------===//
// Tensors of their own
//===----------------------------------------------------------------------===//

/// A reduction, a softmax or a table inside an expression is computed once, not
/// in every turn of the loops that it does not use. Where one of those has no
/// turn the rest is not evaluated, but this is. So what keeps its reads in
/// range goes with it: the guards around, with the indices that they read, and
/// that such a loop has a turn.
Hoisted Analysis::hoist(ArrayRef<const Expr *> parts, const Scope &scope,
                        Equation &eq, ArrayRef<Idx *> used,
                        ArrayRef<Idx *> bound) {
  Hoisted result;
  for (Idx *idx : used)
    if (!llvm::is_contained(bound, idx))
      result.axes.push_back(idx);
  result.firstGuard = eq.guards.size();
  Equation::Loops own = loopsOf(result.axes, bound);
  SmallVector<const Idx *, 4> needed = neededLoops(parts, scope, eq, own);
  // Is all in range, if those loops run?
  Equation::Loops with = own;
  with.insert(with.end(), needed.begin(), needed.end());
  bool guarded;
  {
    llvm::SaveAndRestore run(running, with);
    guarded = llvm::any_of(parts, [&](const Expr *part) {
      return part && needsGuard(*part, scope, eq);
    });
  }
  if (guarded) {
    result.firstGuard = 0;
    addGuardIndices(eq, result.axes);
    llvm::erase_if(result.axes,
                   [&](Idx *idx) { return llvm::is_contained(bound, idx); });
  }
  for (const Idx *idx : needed)
    eq.guards.push_back({nullptr, true, nullptr, nullptr, idx});
  result.guards = guardsFrom(eq, result.firstGuard);
  return result;
}

/// The loops around that reads in `parts` need to be in range, beside `own`.
SmallVector<const Idx *, 4> Analysis::neededLoops(ArrayRef<const Expr *> parts,
                                                  const Scope &scope,
                                                  Equation &eq,
                                                  const Equation::Loops &own) {
  SmallVector<const Idx *, 4> outer;
  for (const Idx *idx : running)
    if (!llvm::is_contained(own, idx) && !sizes.nonNegative(*idx->extent - 1))
      outer.push_back(idx);
  auto isProven = [&](const ReadExpr &read, const Scope &around,
                      ArrayRef<const Idx *> others) {
    Equation::Loops all = own;
    all.insert(all.end(), others.begin(), others.end());
    llvm::SaveAndRestore run(running, all);
    return provenRead(read, around, eq);
  };
  auto isEnough = [&](ArrayRef<const Idx *> some) {
    return llvm::none_of(parts, [&](const Expr *part) {
      return part && anyPart(*part, scope, eq,
                             [&](const Expr &inner, const Scope &around) {
                               auto *read = dyn_cast<ReadExpr>(&inner);
                               return read && !isProven(*read, around, some) &&
                                      isProven(*read, around, outer);
                             });
    });
  };
  if (outer.empty() || isEnough({}))
    return {};
  SmallVector<const Idx *, 4> result = outer;
  for (const Idx *idx : outer) {
    SmallVector<const Idx *, 4> fewer = result;
    llvm::erase(fewer, idx);
    if (isEnough(fewer))
      result = fewer;
  }
  return result;
}

/// Adds the indices that the conditions of the guards around read.
void Analysis::addGuardIndices(Equation &eq,
                               llvm::SmallVectorImpl<Idx *> &used) {
  for (const Guard &guard : eq.guards)
    if (guard.condition)
      for (Idx *idx : info(*guard.condition, *guard.scope, eq).used)
        if (!llvm::is_contained(used, idx))
          used.push_back(idx);
}

Equation::Guards Analysis::guardsFrom(const Equation &eq, size_t first) {
  Equation::Guards all;
  for (const Guard &guard : llvm::drop_begin(eq.guards, first))
    all.push_back({guard.condition ? static_cast<const void *>(guard.condition)
                                   : guard.loop,
                   guard.positive});
  return all;
}
