//===- LeftSides.cpp - Indices on a left side, merged axes, slices --------===//
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
using llvm::dyn_cast;

/// An index of a merged axis, and what it is multiplied by.
struct Analysis::Digit {
  const NameExpr *name;
  std::vector<const Expr *> factors;
};

/// The indices of h*E + e with their factors; false if it names none.
bool Analysis::radix(const Expr &expr, const EnvPtr &env,
                     const std::vector<const Expr *> &by,
                     llvm::SmallVectorImpl<Digit> &digits) {
  const Expr &e = inParens(expr);
  if (auto *name = dyn_cast<NameExpr>(&e)) {
    auto known = lookup(*env, name->name);
    if (known && known->isOneNumber())
      return false;
    digits.push_back({name, by});
    return true;
  }
  auto *binary = dyn_cast<BinaryExpr>(&e);
  if (!binary || (binary->op != BinaryOp::Add && binary->op != BinaryOp::Mul))
    return false;
  if (binary->op == BinaryOp::Add)
    return radix(*binary->lhs, env, by, digits) &&
           radix(*binary->rhs, env, by, digits);
  SmallVector<Digit> a, b;
  std::vector<const Expr *> byRight = by, byLeft = by;
  byRight.push_back(binary->rhs.get());
  byLeft.push_back(binary->lhs.get());
  bool left = radix(*binary->lhs, env, byRight, a);
  bool right = radix(*binary->rhs, env, byLeft, b);
  if (left == right)
    return false;
  digits.append(left ? a : b);
  return true;
}

/// A name that is a number, and no index.
bool Analysis::isPosition(const LeftIndex &item, const Env &env) {
  auto known = lookup(env, item.name.text);
  return !item.extent && known && known->isOneNumber();
}

/// Does the left side say where, and not all of it?
bool Analysis::hasPositions(const Left &left, const EnvPtr &env) {
  return llvm::any_of(left.indices, [&](const LeftIndex &item) {
    SmallVector<Digit> digits;
    return item.kind == LeftIndex::Plain ? isPosition(item, *env)
           : item.kind == LeftIndex::Affine
               ? !radix(*item.expr, env, {}, digits)
               : false;
  });
}

/// An axis of a left side: a fixed position of a collection, a position of a
/// row (the step of a scan, or any in a state), or indices (several where axes
/// merge).
struct Analysis::LeftAxis {
  SmallVector<Idx *, 2> indices;
  std::vector<std::vector<const Expr *>> factors;
  std::optional<int64_t> fixed;
  std::optional<Size> position;
  Range place;

  /// What the index of this number is multiplied by.
  std::optional<Size> factor(size_t number, Analysis &analysis,
                             const EnvPtr &env) const;
  bool rangeDigits(Analysis &analysis, const EnvPtr &env, Equation &eq) const;
};

std::optional<Size> Analysis::LeftAxis::factor(size_t number,
                                               Analysis &analysis,
                                               const EnvPtr &env) const {
  Size product(1);
  for (const Expr *by : factors[number]) {
    auto size = analysis.sizeValue(*by, env, "a factor of a left index");
    if (!size)
      return std::nullopt;
    product *= *size;
  }
  return product;
}

/// An index of a merged axis that nothing reads plainly runs over what the one
/// before it is multiplied by.
bool Analysis::LeftAxis::rangeDigits(Analysis &analysis, const EnvPtr &env,
                                     Equation &eq) const {
  for (size_t k = 1; k < indices.size(); ++k) {
    if (llvm::any_of(eq.uses, [&](const Equation::Use &use) {
          return use.idx == indices[k];
        }))
      continue;
    auto step = factor(k - 1, analysis, env), own = factor(k, analysis, env);
    if (!step || !own)
      return false;
    if (auto extent = step->dividedBy(*own))
      eq.uses.push_back({indices[k], *extent,
                         format("the factor of '{}'", indices[k - 1]->name),
                         indices[k]->place, false});
  }
  return true;
}

Idx *Analysis::leftIndex(StringRef name, Range place, const Expr *extent,
                         Scope &scope, Equation &eq) {
  if (auto it = scope.indices.find(name); it != scope.indices.end()) {
    error(place, format("index '{}' occurs twice on the left side", name),
          Note{it->second->place, "first here"});
    return nullptr;
  }
  Idx *idx = newIndex(name, place, extent, scope, eq);
  if (idx)
    scope.indices[name.str()] = idx;
  return idx;
}

/// The axes that `..` stands for.
bool Analysis::leftDots(const LeftIndex &item, Scope &scope, Equation &eq,
                        std::vector<LeftAxis> &axes) {
  if (!scope.env->dots)
    return error(item.range, "'..' outside a function that has it");
  if (scope.dots)
    return error(item.range, "two '..' on one side");
  scope.dots.emplace();
  for (auto [k, size] : llvm::enumerate(*scope.env->dots)) {
    Idx &idx = newIdx(eq);
    idx.name = format("..{}", k);
    idx.place = item.range;
    idx.extent = size;
    idx.declared = true;
    idx.fromPlace = item.range;
    scope.dots->push_back(&idx);
    LeftAxis axis;
    axis.indices.push_back(&idx);
    axis.place = item.range;
    axes.push_back(axis);
  }
  return true;
}

bool Analysis::fixPosition(const Size &position, Range place, LeftAxis &axis) {
  axis.fixed = position.constant();
  if (axis.fixed)
    return true;
  needsUnroll |= rolled;
  return error(place,
               "a position on the left side must be known when compiling");
}

/// A name or h*E + e, or a position of the collection or of a row.
bool Analysis::leftAxis(const LeftIndex &item, Target target, Scope &scope,
                        Equation &eq, LeftAxis &axis) {
  axis.place = item.range;
  if (item.kind == LeftIndex::Plain) {
    auto known = lookup(*scope.env, item.name.text);
    bool isSize = !item.extent && known && known->kind == Binding::Int;
    if (isSize && target == Target::Collection)
      return fixPosition(known->size, item.range, axis);
    if (isSize && (target == Target::State || isStep(known->size))) {
      axis.position = known->size;
      return true;
    }
    Idx *idx =
        leftIndex(item.name.text, item.range, item.extent.get(), scope, eq);
    axis.indices.push_back(idx);
    return idx;
  }
  SmallVector<Digit> digits;
  if (radix(*item.expr, scope.env, {}, digits)) {
    for (Digit &digit : digits) {
      Idx *idx =
          leftIndex(digit.name->name, digit.name->range, nullptr, scope, eq);
      if (!idx)
        return false;
      axis.indices.push_back(idx);
      axis.factors.push_back(digit.factors);
    }
    return true;
  }
  if (ast::anyName(*item.expr, [&](StringRef name) { // its error was said
        auto known = lookup(*scope.env, name);
        return known && known->kind == Binding::Poison;
      }))
    return false;
  if (target == Target::Tensor && scans.empty())
    return error(item.range, "only a collection (let) takes a fixed "
                             "position on the left side");
  auto size = sizeValue(*item.expr, scope.env, "a position on the left side");
  if (!size || target == Target::Collection)
    return size && fixPosition(*size, item.range, axis);
  axis.position = *size;
  return true;
}

/// The positions must lie in the collection, and its extents bound the indices.
bool Analysis::fitsCollection(const Left &left, const Collection &collection,
                              ArrayRef<LeftAxis> axes, Equation &eq) {
  if (rolled) {
    needsUnroll = true;
    return false;
  }
  bool allFixed = llvm::all_of(
      axes, [](const LeftAxis &axis) { return axis.fixed.has_value(); });
  // Positions alone: a slice over the axes behind them.
  if (axes.size() != collection.shape.size() &&
      (axes.size() > collection.shape.size() || !allFixed))
    return error(left.range,
                 format("'{}' has {}, {} are given", left.name.text,
                        counted(collection.shape.size(), "axis", "axes"),
                        axes.size()));
  for (auto [k, axis] : llvm::enumerate(axes)) {
    auto extent = collection.shape[k].constant();
    if (axis.fixed && (!extent || *axis.fixed >= *extent || *axis.fixed < 0))
      return error(axis.place,
                   format("position {} of '{}' is outside its extent {}",
                          *axis.fixed, left.name.text,
                          sizes.str(collection.shape[k])));
    if (!axis.fixed && axis.indices.size() == 1)
      eq.uses.push_back({axis.indices[0], collection.shape[k],
                         format("'{}' (axis {})", left.name.text, k),
                         axis.place, false});
  }
  return true;
}

/// The right side over the indices of the left one.
std::optional<TensorVal> Analysis::rightSide(const Expr &right, Scope &scope,
                                             Equation &eq,
                                             ArrayRef<LeftAxis> axes) {
  SmallVector<Idx *, 4> indices;
  for (const LeftAxis &axis : axes)
    indices.append(axis.indices.begin(), axis.indices.end());
  if (auto *concat = dyn_cast<ConcatExpr>(&right))
    return lowerConcat(*concat, scope, eq, indices);
  const Info *i = infer(right, scope, eq);
  if (!i)
    return std::nullopt;
  if (i->isNoValue()) {
    error(right.range, format("the right side is {}", kindOf(*i)));
    return std::nullopt;
  }
  for (const LeftAxis &axis : axes)
    if (!axis.rangeDigits(*this, scope.env, eq))
      return std::nullopt;
  if (!solve(eq))
    return std::nullopt;
  return lowerRight(right, scope, eq, indices);
}

std::optional<TensorVal> Analysis::rightSide(const Expr &right, Scope &scope,
                                             Equation &eq,
                                             ArrayRef<Idx *> indices) {
  std::vector<LeftAxis> axes(indices.size());
  for (auto [axis, idx] : llvm::zip(axes, indices)) {
    axis.indices.push_back(idx);
    axis.place = idx->place;
  }
  return rightSide(right, scope, eq, axes);
}

/// The extent of the axis h*E + e, where each factor is what the indices after
/// it span.
std::optional<Size> Analysis::mergedExtent(const LeftAxis &axis,
                                           const EnvPtr &env) {
  Size unit(1);
  for (size_t k = axis.indices.size(); k-- > 0;) {
    Idx *idx = axis.indices[k];
    if (axis.indices.size() > 1) {
      auto factor = axis.factor(k, *this, env);
      if (!factor)
        return std::nullopt;
      if (!idx->extent->is(1) &&
          !requireEqual(*factor, unit, idx->place,
                        format("index '{}' counts in steps of {}, but those "
                               "after it span {}",
                               idx->name, sizes.str(*factor), sizes.str(unit)),
                        {}))
        return std::nullopt;
    }
    unit = sizes.simplify(unit * *idx->extent);
  }
  return unit;
}

/// Merges h*E + e.
bool Analysis::mergeAxes(const Left &left, ArrayRef<LeftAxis> axes,
                         const EnvPtr &env, TensorVal &tensor) {
  Groups groups;
  Shape shape;
  bool merges = false;
  unsigned next = 0;
  for (const LeftAxis &axis : axes) {
    if (axis.fixed || axis.position)
      continue;
    auto extent = mergedExtent(axis, env);
    if (!extent)
      return false;
    SmallVector<int64_t, 2> group;
    for (size_t k = 0; k < axis.indices.size(); ++k)
      group.push_back(next++);
    merges |= group.size() > 1;
    groups.push_back(group);
    shape.push_back(*extent);
  }
  if (!merges)
    return true;
  // An unknown number of heads of width 0 has no element.
  bool isEmpty =
      llvm::any_of(shape, [](const Size &n) { return n.constant() == 0; });
  auto collapse = [&](const Tensor *from) {
    const Tensor *to = newTensor();
    sink->push_back(
        Collapse{from, to, uses(shape), groups, isEmpty, left.range});
    return to;
  };
  tensor.value = collapse(tensor.value);
  if (tensor.live)
    tensor.live = collapse(tensor.live);
  tensor.shape = shape;
  return true;
}

/// A left side with positions: a row of a state, or what a step of a scan
/// leaves.
bool Analysis::executeRow(const Left &left, const Expr &right,
                          ArrayRef<LeftAxis> axes, Target target, Scope &scope,
                          Equation &eq, Binding &result) {
  const Binding *state = nullptr;
  if (target == Target::State) {
    state = &scope.env->names.find(left.name.text)->second;
    if (state->kind != Binding::Tensor)
      return false;
    const Shape &shape = state->tensor.shape;
    if (axes.size() != shape.size())
      return error(left.range,
                   format("'{}' has {}, {} are given", left.name.text,
                          counted(shape.size(), "axis", "axes"), axes.size()));
    runOverState(left, axes, /*ifOpen=*/false, *scope.env, eq);
  }
  auto row = rightSide(right, scope, eq, axes);
  if (!row || !mergeAxes(left, axes, scope.env, *row))
    return false;
  std::vector<std::optional<Size>> positions;
  for (const LeftAxis &axis : axes)
    positions.push_back(axis.position);
  if (!state) {
    auto rows = asRow(*row, positions, *scope.env, left.range);
    if (rows)
      result = *rows;
    return rows.has_value();
  }
  auto whole =
      updated(state->tensor, *row, positions, left.name.text, left.range);
  if (whole)
    result = Binding::of(*whole, left.name.range);
  return whole.has_value();
}

/// An index of a state runs over its axis. `ifOpen`: only one that nothing else
/// has a range for, as of a scan's, whose shape after the step is compared.
void Analysis::runOverState(const Left &left, ArrayRef<LeftAxis> axes,
                            bool ifOpen, const Env &env, Equation &eq) {
  const Binding &state = env.names.find(left.name.text)->second;
  if (state.kind != Binding::Tensor)
    return;
  const Shape &shape = state.tensor.shape;
  for (auto [k, pair] : llvm::enumerate(llvm::zip(axes, shape)))
    if (auto &[axis, extent] = pair; axis.indices.size() == 1)
      eq.uses.push_back({axis.indices[0], extent,
                         format("'{}' (axis {})", left.name.text, k),
                         axis.place, ifOpen});
}

/// Long: one kind of left side after the other.
bool Analysis::executeEquation(const Left &left, const Expr &right,
                               const Expr *where, Frame &frame,
                               Binding &result) {
  EnvPtr env = frame.env;
  Scope scope;
  scope.env = env;
  if (!left.hasIndices && !where) {
    const FnDecl *fn = changesStates(right, *env->file);
    if (!fn)
      return lowerWhole(right, scope, frame.outer, result);
    return executeCall(*fn, cast<CallExpr>(inParens(right)), frame, result);
  }
  Equation eq;
  eq.wholeAllowed = false;
  std::shared_ptr<Collection> collection;
  if (auto it = env->names.find(left.name.text); it != env->names.end())
    if (it->second.kind == Binding::Collection)
      collection = std::make_shared<Collection>(*it->second.collection);
  if (indexed(right, scope, frame.outer))
    return error(right.range, "an index of the calling equation is read in an "
                              "equation with indices of its own");
  if (isModelState(left.name.text, *env) &&
      env->names.find(left.name.text)->second.kind == Binding::Tensor &&
      hasPositions(left, env))
    return executeUpdate(left, right, where, frame, result);
  if (where)
    return error(where->range, "'where' behind an equation that does not "
                               "update a state at positions");
  Target target = collection                      ? Target::Collection
                  : isState(left.name.text, *env) ? Target::State
                                                  : Target::Tensor;
  std::vector<LeftAxis> axes;
  for (const LeftIndex &item : left.indices) {
    if (item.kind == LeftIndex::Dots) {
      if (!leftDots(item, scope, eq, axes))
        return false;
      continue;
    }
    if (!leftAxis(item, target, scope, eq, axes.emplace_back()))
      return false;
  }
  if (collection && !fitsCollection(left, *collection, axes, eq))
    return false;
  std::vector<std::optional<int64_t>> fixed;
  for (const LeftAxis &axis : axes)
    fixed.push_back(axis.fixed);
  if (collection && axes.size() < collection->shape.size()) {
    Binding whole;
    if (!lowerWhole(right, scope, frame.outer, whole))
      return false;
    fixed.resize(collection->shape.size());
    size_t rank = fixed.size() - axes.size();
    if (whole.kind != Binding::Tensor || whole.tensor.shape.size() != rank)
      return error(right.range,
                   format("expected a tensor of {}, found {}",
                          counted(rank, "axis", "axes"), kindOf(whole)));
    return intoCollection(left, collection, whole.tensor, fixed, result);
  }
  if (llvm::any_of(axes, [](auto &axis) { return bool(axis.position); }))
    return executeRow(left, right, axes, target, scope, eq, result);
  if (target == Target::State || isModelState(left.name.text, *env))
    runOverState(left, axes, target == Target::State, *env, eq);
  auto tensor = rightSide(right, scope, eq, axes);
  if (!tensor || !mergeAxes(left, axes, env, *tensor))
    return false;
  if (!collection) {
    result = Binding::of(*tensor, left.name.range);
    return true;
  }
  return intoCollection(left, collection, *tensor, fixed, result);
}

/// Defines one slice of a collection, or all of it.
bool Analysis::intoCollection(const Left &left,
                              const std::shared_ptr<Collection> &collection,
                              TensorVal tensor,
                              ArrayRef<std::optional<int64_t>> fixed,
                              Binding &result) {
  if (tensor.elem != collection->elem)
    tensor = convert(tensor, collection->elem, left.range);
  SmallVector<unsigned, 4> axes;
  std::vector<int64_t> at;
  unsigned free = 0;
  for (auto [k, position] : llvm::enumerate(fixed)) {
    if (position) {
      axes.push_back(k);
      at.push_back(*position);
      continue;
    }
    if (!requireEqual(tensor.shape[free++], collection->shape[k], left.range,
                      format("axis {} of the collection '{}' has {}", k,
                             left.name.text, sizes.str(collection->shape[k])),
                      {}))
      return false;
  }
  if (axes.empty()) {
    result = Binding::of(tensor, left.name.range);
    return true;
  }
  if (!collection->slices.empty() && collection->fixed != axes)
    return error(left.range, "the slices of a collection must fix the same "
                             "axes");
  collection->fixed = axes;
  collection->slices[at] = tensor;
  result.kind = Binding::Collection;
  result.collection = collection;
  return true;
}
