//===- Indices.cpp - Indices and their ranges -----------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An index gets its range from its declaration, or from the extents that it
// indexes plainly.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::dyn_cast;

/// An index of the equation that the extent of another one names, if one does.
static const Idx *namedIndex(const Expr &expr, const Scope &scope) {
  const Idx *found = nullptr;
  if (auto *name = dyn_cast<NameExpr>(&expr))
    if (auto it = scope.indices.find(name->name);
        it != scope.indices.end() && !scope.env->names.count(name->name))
      found = it->second;
  ast::forEachChild(expr, [&](const Expr &part) {
    if (!found)
      found = namedIndex(part, scope);
  });
  return found;
}

Idx *Analysis::newIndex(StringRef name, Range place, const Expr *extent,
                        const Scope &scope, Equation &eq) {
  if (auto known = lookup(*scope.env, name)) {
    bool scalar =
        known->kind == Binding::Int || known->kind == Binding::Real ||
        known->kind == Binding::Bool || known->kind == Binding::Scalar ||
        known->kind == Binding::Thunk ||
        (known->kind == Binding::Tensor && known->tensor.shape.empty());
    if (scalar) {
      error(place,
            format("index '{}' hides a {} of that name", name,
                   (known->isDim ? "dim" : "scalar")),
            known->place.isValid()
                ? ArrayRef<Note>(Note{known->place, "defined here"})
                : ArrayRef<Note>());
      return nullptr;
    }
  }
  Idx &idx = newIdx(eq);
  idx.name = name.str();
  idx.place = place;
  if (extent) {
    if (const Idx *other = namedIndex(*extent, scope)) {
      error(extent->range,
            format("the range of '{}' depends on the index '{}': expected one "
                   "range for all, and a 'where' or an 'if' that keeps what "
                   "counts, as in sum({}:N where {} < {})",
                   name, other->name, name, name, other->name),
            Note{other->place, "the index"});
      return nullptr;
    }
    auto size =
        sizeValue(*extent, scope.env, format("the range of '{}'", name));
    if (!size)
      return nullptr;
    if (!sizes.nonNegative(*size))
      requireLessEqual(
          Size(0), *size, extent->range,
          format("the range of '{}' is {} = {{1}}: it must not be negative",
                 name, sizes.str(*size)));
    idx.extent = *size;
    idx.declared = true;
    idx.from = "its declared range";
    idx.fromPlace = extent->range;
  }
  return &idx;
}

/// Do the conditions around alone keep the index below `extent`? The ranges of
/// indices are not known yet.
bool Analysis::isKept(const Idx *idx, const Size &extent, Equation &eq) {
  llvm::SaveAndRestore run(running, Equation::Loops());
  Reach around = reach(eq, true);
  Form at = Form::variable(variable(around, idx));
  return around.points.ask({{at - Form(extent)}}).kind == Points::Answer::Never;
}

/// A declared range must lie in the extents that the index indexes.
bool Analysis::solveDeclared(const Idx &idx,
                             ArrayRef<const Equation::Use *> uses) {
  bool ok = true;
  for (const Equation::Use *use : uses) {
    Size slack = use->extent - *idx.extent;
    if (sizes.nonNegative(slack) || sizes.equal(use->extent, *idx.extent))
      continue;
    if (isAlwaysLess(use->extent, *idx.extent)) {
      ok =
          error(use->place,
                format("index '{}' runs to {}, but {} has {}", idx.name,
                       describe(*idx.extent), use->what, describe(use->extent)),
                Note{idx.fromPlace, "declared here"});
      continue;
    }
    requireLessEqual(*idx.extent, use->extent, use->place,
                     format("index '{}' runs to {} = {{0}}, but {} has {{1}}",
                            idx.name, sizes.str(*idx.extent), use->what));
  }
  return ok;
}

/// An index without a declared range runs over the extents of `rule`, which
/// must be equal.
bool Analysis::solveFrom(Idx &idx, ArrayRef<const Equation::Use *> rule) {
  bool ok = true;
  idx.extent = rule[0]->extent;
  idx.from = rule[0]->what;
  idx.fromPlace = rule[0]->place;
  std::optional<Size> known;
  for (const Equation::Use *use : rule) {
    if (use->extent.constant() && !known)
      known = use->extent;
    if (sizes.equal(use->extent, *idx.extent))
      continue;
    SmallVector<Note, 2> notes;
    notes.push_back({idx.fromPlace, "the range comes from here"});
    for (const auto &[less, more] : {std::pair(use->extent, *idx.extent),
                                     std::pair(*idx.extent, use->extent)})
      if (isAlwaysLess(less, more))
        notes.push_back(
            {idx.place,
             format("for the first {} alone declare its range, '{}:{}'",
                    sizes.str(less), idx.name, sizes.str(less))});
    ok &= requireEqual(
        use->extent, *idx.extent, use->place,
        format("index '{}' ranges over {} in {}, but over {} in {}", idx.name,
               describe(use->extent), use->what, describe(*idx.extent),
               idx.from),
        notes);
  }
  // One of equal extents may be a number.
  if (known)
    idx.extent = known;
  return ok;
}

bool Analysis::solve(Equation &eq) {
  bool ok = true;
  for (Idx *idx : eq.pool) {
    SmallVector<const Equation::Use *> mine, strong;
    for (const Equation::Use &use : eq.uses)
      if (use.idx == idx) {
        mine.push_back(&use);
        if (!use.weak)
          strong.push_back(&use);
      }
    if (idx->declared) {
      ok &= solveDeclared(*idx, strong);
      continue;
    }
    if (mine.empty()) {
      if (!idx->extent)
        ok = error(idx->place, format("index '{}' indexes nothing plainly: "
                                      "declare its range, such as '{}:N'",
                                      idx->name, idx->name));
      continue;
    }
    // A read that its condition alone keeps in range says nothing of others.
    if (strong.empty())
      llvm::copy_if(mine, std::back_inserter(strong),
                    [](const Equation::Use *use) { return !use->kept; });
    ok &= solveFrom(*idx, strong.empty() ? mine : strong);
  }
  return ok;
}

bool Analysis::items(const ReadExpr &expr, const Scope &scope,
                     llvm::SmallVectorImpl<Item> &out) {
  for (const Index &index : expr.indices) {
    if (index.isDots()) {
      if (!scope.dots)
        return error(index.range, scope.env->dots
                                      ? "'..' here, but the left side has none"
                                      : "'..' outside a function that has it");
      for (Idx *idx : *scope.dots)
        out.push_back({idx, nullptr});
      continue;
    }
    Item item;
    item.expr = index.expr.get();
    if (auto *name = dyn_cast<NameExpr>(item.expr))
      if (auto it = scope.indices.find(name->name); it != scope.indices.end())
        item.idx = it->second;
    out.push_back(item);
  }
  return true;
}

Scope Analysis::inside(const ReduceExpr &expr, const Scope &scope,
                       Equation &eq) {
  Scope inner = scope;
  for (Idx *idx : eq.binders[{&expr, scope.env.get()}])
    inner.indices[idx->name] = idx;
  return inner;
}
