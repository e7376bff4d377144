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
using llvm::dyn_cast;

/// The indices of h*E + e with their factors; false if it names none.
bool Analysis::radix(const Expr &expr, const EnvPtr &env,
                     const std::vector<const Expr *> &by,
                     llvm::SmallVectorImpl<Digit> &digits) {
  const Expr &e = inParens(expr);
  if (auto *name = dyn_cast<NameExpr>(&e)) {
    auto known = lookup(*env, name->name);
    if (known &&
        (known->kind == Binding::Int || known->kind == Binding::Scalar))
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

bool Analysis::executeEquation(const Left &left, const Expr &right,
                               Frame &frame, Binding &result) {
  EnvPtr env = frame.env;
  if (!left.hasIndices) {
    Scope scope;
    scope.env = env;
    return lowerWhole(right, scope, frame.outer, result);
  }
  Equation eq;
  eq.wholeAllowed = false;
  Scope scope;
  scope.env = env;
  std::shared_ptr<Collection> collection;
  if (auto it = env->names.find(left.name.text); it != env->names.end())
    if (it->second.kind == Binding::Collection)
      collection = std::make_shared<Collection>(*it->second.collection);
  if (indexed(right, scope, frame.outer))
    return error(right.range, "an index of the calling equation is read in an "
                              "equation with indices of its own");

  // Positions: a fixed number, or indices (several where axes merge).
  struct Position {
    SmallVector<Idx *, 2> indices;
    std::vector<std::vector<const Expr *>> factors;
    std::optional<int64_t> fixed;
    Range place;
  };
  std::vector<Position> positions;
  auto add = [&](StringRef name, Range place, const Expr *extent) -> Idx * {
    if (auto it = scope.indices.find(name); it != scope.indices.end()) {
      error(place, format("index '{}' occurs twice on the left side", name),
            Note{it->second->place, "first here"});
      return nullptr;
    }
    Idx *idx = newIndex(name, place, extent, scope, eq);
    if (idx)
      scope.indices[name.str()] = idx;
    return idx;
  };
  for (const LeftIndex &item : left.indices) {
    Position position;
    position.place = item.range;
    switch (item.kind) {
    case LeftIndex::Dots: {
      if (!env->dots)
        return error(item.range, "'..' outside a function that has it");
      if (scope.dots)
        return error(item.range, "two '..' on one side");
      scope.dots.emplace();
      for (auto [k, size] : llvm::enumerate(*env->dots)) {
        Idx &idx = newIdx(eq);
        idx.name = format("..{}", k);
        idx.place = item.range;
        idx.extent = size;
        idx.declared = true;
        idx.fromPlace = item.range;
        scope.dots->push_back(&idx);
        Position each;
        each.indices.push_back(&idx);
        each.place = item.range;
        positions.push_back(each);
      }
      continue;
    }
    case LeftIndex::Plain: {
      auto known = lookup(*env, item.name.text);
      if (collection && !item.extent && known && known->kind == Binding::Int) {
        auto c = known->size.constant();
        if (!c) {
          needsUnroll |= rolled;
          return error(item.range,
                       "a position on the left side must be known when "
                       "compiling");
        }
        position.fixed = *c;
        break;
      }
      Idx *idx = add(item.name.text, item.range, item.extent.get());
      if (!idx)
        return false;
      position.indices.push_back(idx);
      break;
    }
    case LeftIndex::Affine: {
      SmallVector<Digit> digits;
      if (radix(*item.expr, env, {}, digits)) {
        for (Digit &digit : digits) {
          Idx *idx = add(digit.name->name, digit.name->range, nullptr);
          if (!idx)
            return false;
          position.indices.push_back(idx);
          position.factors.push_back(digit.factors);
        }
        break;
      }
      if (!collection)
        return error(item.range, "only a collection (let) takes a fixed "
                                 "position on the left side");
      auto size = sizeValue(*item.expr, env, "a position on the left side");
      if (!size)
        return false;
      if (!size->constant()) {
        needsUnroll |= rolled;
        return error(item.range, "a position on the left side must be known "
                                 "when compiling");
      }
      position.fixed = *size->constant();
      break;
    }
    }
    positions.push_back(position);
  }
  if (collection) {
    if (rolled) {
      needsUnroll = true;
      return false;
    }
    if (positions.size() != collection->shape.size())
      return error(left.range,
                   format("'{}' has {}, {} are given", left.name.text,
                          counted(collection->shape.size(), "axis", "axes"),
                          positions.size()));
    for (auto [k, position] : llvm::enumerate(positions)) {
      auto extent = collection->shape[k].constant();
      if (position.fixed &&
          (!extent || *position.fixed >= *extent || *position.fixed < 0))
        return error(position.place,
                     format("position {} of '{}' is outside its extent {}",
                            *position.fixed, left.name.text,
                            sizes.str(collection->shape[k])));
      if (!position.fixed && position.indices.size() == 1)
        eq.uses.push_back({position.indices[0], collection->shape[k],
                           format("'{}' (axis {})", left.name.text, k),
                           position.place, false});
    }
  }

  std::optional<TensorVal> tensor;
  SmallVector<Idx *, 4> axes;
  for (const Position &position : positions)
    axes.append(position.indices.begin(), position.indices.end());
  if (auto *concat = dyn_cast<ConcatExpr>(&right)) {
    tensor = lowerConcat(*concat, scope, eq, axes);
  } else {
    const Info *i = infer(right, scope, eq);
    if (!i)
      return false;
    if (i->isNoValue())
      return error(right.range, format("the right side is {}", kindOf(*i)));
    if (!solve(eq))
      return false;
    tensor = lowerRight(right, scope, eq, axes);
  }
  if (!tensor)
    return false;

  // Merge h*E + e.
  Groups groups;
  Shape shape;
  bool merges = false;
  unsigned next = 0;
  for (const Position &position : positions) {
    if (position.fixed)
      continue;
    SmallVector<int64_t, 2> group;
    Size unit(1);
    for (size_t k = position.indices.size(); k-- > 0;) {
      Idx *idx = position.indices[k];
      if (position.indices.size() > 1) {
        Size factor(1);
        for (const Expr *by : position.factors[k]) {
          auto size = sizeValue(*by, env, "a factor of a left index");
          if (!size)
            return false;
          factor = factor * *size;
        }
        if (!idx->extent->is(1) &&
            !requireEqual(factor, unit, idx->place,
                          format("index '{}' counts in steps of {}, but those "
                                 "after it span {}",
                                 idx->name, sizes.str(factor), sizes.str(unit)),
                          {}))
          return false;
      }
      unit = sizes.simplify(unit * *idx->extent);
    }
    for (size_t k = 0; k < position.indices.size(); ++k)
      group.push_back(next++);
    merges |= group.size() > 1;
    groups.push_back(group);
    shape.push_back(unit);
  }
  if (merges) {
    // An unknown number of heads of width 0 has no element.
    bool isEmpty =
        llvm::any_of(shape, [](const Size &n) { return n.constant() == 0; });
    auto collapse = [&](const Tensor *from) {
      const Tensor *to = newTensor();
      sink->push_back(
          Collapse{from, to, uses(shape), groups, isEmpty, left.range});
      return to;
    };
    tensor->value = collapse(tensor->value);
    if (tensor->live)
      tensor->live = collapse(tensor->live);
    tensor->shape = shape;
  }
  if (!collection) {
    result = Binding::of(*tensor, left.name.range);
    return true;
  }
  return intoCollection(
      left, collection, *tensor,
      [&] {
        std::vector<std::optional<int64_t>> fixed;
        for (const Position &position : positions)
          fixed.push_back(position.fixed);
        return fixed;
      }(),
      result);
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
