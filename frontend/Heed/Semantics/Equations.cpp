//===- Equations.cpp - One equation to one tensor -------------------------===//
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
using llvm::isa;

/// The value of an inferred and solved right side over `axes`.
std::optional<TensorVal> Analysis::lowerRight(const Expr &right,
                                              const Scope &scope, Equation &eq,
                                              ArrayRef<Idx *> axes) {
  const Expr &expr = inParens(right);
  const Info &i = info(right, scope, eq);
  Ty elem = stored(i.ty);
  if (auto *softmax = dyn_cast<SoftmaxExpr>(&expr); softmax && elem == Ty::F32)
    return this->softmax(*softmax, scope, eq, axes, 0);
  if (auto *reduce = dyn_cast<ReduceExpr>(&expr);
      reduce && reduce->op != ReduceOp::Mean &&
      reduce->op != ReduceOp::Argmax && !i.pure) {
    // The reduction writes the result itself if it accumulates in its type.
    Ty acc = reduce->op == ReduceOp::Max || reduce->op == ReduceOp::Min
                 ? info(*reduce->operand, inside(*reduce, scope, eq), eq).ty
                 : i.ty;
    if (accumulator(acc) == elem) {
      auto reduced = reduction(*reduce, scope, eq, axes, 0, false);
      if (!reduced)
        return std::nullopt;
      reduced->value.elem = elem;
      return reduced->value;
    }
  }
  if (auto tensor = plainRead(expr, scope, eq, axes, elem))
    return tensor;
  bool f64 = i.pure && i.hasReal;
  auto fill = [&](Body &body) -> Node * {
    if (i.fixed)
      return fixedNode(*i.fixed, right.range);
    return f64 ? resolveNode(body, right, scope, eq)
               : resolve(body, right, scope, eq);
  };
  return elementwise(axes, elem, right.range, f64, fill, true);
}

/// Does the expression read an index of the equation that it is inlined into?
bool Analysis::indexed(const Expr &expr, const Scope &scope, Equation *outer) {
  if (!outer)
    return false;
  if (auto *name = dyn_cast<NameExpr>(&expr)) {
    if (scope.indices.count(name->name))
      return true;
    auto binding = lookup(*scope.env, name->name);
    if (!binding || binding->kind != Binding::Thunk)
      return false;
    const Info *i =
        infer(*binding->thunk->expr, *binding->thunk->scope, *outer);
    return i && !i->used.empty();
  }
  bool any = false;
  forEachChild(expr, [&](const Expr &child) {
    any = any || indexed(child, scope, outer);
  });
  return any;
}

/// The value of a right side without indices on the left: static, a whole
/// tensor, a rank-0 tensor, or (inlined into an equation) an expression.
bool Analysis::lowerWhole(const Expr &right, const Scope &scope,
                          Equation *outer, Binding &result) {
  if (right.kind == ExprKind::Concat)
    return error(right.range, "concat needs indices on the left side");
  auto thunk = [&] {
    auto env = std::make_shared<Env>(*scope.env);
    auto inner = std::make_shared<Scope>(scope);
    inner->env = env;
    if (outer)
      outer->keep.push_back(env);
    result.kind = Binding::Thunk;
    result.thunk = std::make_shared<Thunk>(Thunk{&right, inner});
    return true;
  };
  if (indexed(right, scope, outer))
    return thunk();
  Equation eq;
  const Info *i = infer(right, scope, eq);
  if (!i)
    return false;
  if (i->fixed) {
    result = *i->fixed;
    return true;
  }
  if (i->named && i->named->kind != Binding::Thunk) {
    result = *i->named;
    return true;
  }
  if (i->pure && !i->whole && i->used.empty() && isReal(i->ty))
    return thunk(); // symbolic, computed in f64 wherever it is read
  if (i->whole) {
    // In a scalar function the whole stays an expression, to fuse with what
    // is around the call.
    if (outer && !isa<ReadExpr>(right) && i->pure == false &&
        isScalarBody(right, scope))
      return thunk();
    for (auto [k, size] : llvm::enumerate(*i->whole)) {
      Idx &idx = newIdx(eq);
      idx.name = format("axis {}", k);
      idx.place = right.range;
      idx.extent = size;
      idx.declared = true;
      eq.whole.push_back(&idx);
    }
  }
  if (!solve(eq))
    return false;
  auto tensor = lowerRight(right, scope, eq, eq.whole);
  if (!tensor)
    return false;
  result = Binding::of(*tensor, right.range);
  return true;
}

/// Is every tensor in `expr` one that was passed without a type?
bool Analysis::isScalarBody(const Expr &expr, const Scope &scope) {
  if (auto *name = dyn_cast<NameExpr>(&expr)) {
    auto binding = lookup(*scope.env, name->name);
    return !binding || binding->kind == Binding::Thunk || binding->isStatic() ||
           binding->kind == Binding::Scalar;
  }
  bool all = expr.kind != ExprKind::Read;
  forEachChild(expr, [&](const Expr &child) {
    all = all && isScalarBody(child, scope);
  });
  return all;
}

/// The tensor with elements of another type.
TensorVal Analysis::convert(const TensorVal &tensor, Ty elem, Range place) {
  Equation eq;
  for (const Size &size : tensor.shape) {
    Idx &idx = newIdx(eq);
    idx.extent = size;
    eq.whole.push_back(&idx);
  }
  auto result =
      elementwise(eq.whole, elem, place, false, [&](Body &) -> Node * {
        TensorVal present = tensor;
        present.live = nullptr;
        Node *read = elementNode(present, eq.whole, place);
        return isReal(tensor.elem) == isReal(elem)
                   ? read
                   : newNode(Node::Cast, elem, place, read);
      });
  result->live = tensor.live;
  return *result;
}

//===----------------------------------------------------------------------===//
// Concatenation
//===----------------------------------------------------------------------===//

/// The type that the parts have together. Each has its own range of the joined
/// index, and a scope that keys its analysis.
std::optional<Ty> Analysis::inferParts(const ConcatExpr &expr,
                                       const Scope &scope, Equation &eq,
                                       std::deque<Scope> &scopes,
                                       llvm::SmallVectorImpl<Idx *> &own) {
  Ty elem = Ty::AnyInt;
  for (const ExprPtr &part : expr.parts) {
    Scope &inner = scopes.emplace_back(scope);
    Idx &idx = newIdx(eq);
    idx.name = expr.index.text.str();
    idx.place = part->range;
    inner.indices[idx.name] = &idx;
    own.push_back(&idx);
    const Info *i = infer(*part, inner, eq);
    if (!i)
      return std::nullopt;
    auto ty = own.size() == 1 ? std::optional(i->ty) : join(elem, i->ty);
    if (!ty) {
      error(part->range,
            format("the parts of concat do not go together: {} and {}",
                   spelling(elem), spelling(i->ty)));
      return std::nullopt;
    }
    elem = *ty;
  }
  return stored(elem);
}

/// The joined index runs over the ranges of its parts. No part uses it itself.
bool Analysis::solveJoined(const ConcatExpr &expr, Idx &joined,
                           ArrayRef<Idx *> parts, Equation &eq) {
  std::optional<Size> declared = joined.extent;
  joined.extent = Size(0);
  bool wasDeclared = std::exchange(joined.declared, true);
  if (!solve(eq))
    return false;
  joined.declared = wasDeclared;
  Size total;
  for (Idx *idx : parts)
    total = total + *idx->extent;
  if (declared &&
      !requireEqual(*declared, total, expr.range,
                    format("index '{}' is declared with {}, the parts have {}",
                           joined.name, sizes.str(*declared), sizes.str(total)),
                    {}))
    return false;
  joined.extent = sizes.simplify(total);
  return true;
}

std::optional<TensorVal> Analysis::lowerConcat(const ConcatExpr &expr,
                                               Scope &scope, Equation &eq,
                                               ArrayRef<Idx *> axes) {
  auto it = scope.indices.find(expr.index.text);
  if (it == scope.indices.end()) {
    error(expr.index.range,
          format("'{}' is no index of the left side", expr.index.text));
    return std::nullopt;
  }
  Idx *joined = it->second;
  std::deque<Scope> scopes;
  SmallVector<Idx *> own;
  auto elem = inferParts(expr, scope, eq, scopes, own);
  if (!elem || !solveJoined(expr, *joined, own, eq))
    return std::nullopt;
  SmallVector<TensorVal> parts;
  for (auto [k, part] : llvm::enumerate(expr.parts)) {
    SmallVector<Idx *, 4> partAxes(axes.begin(), axes.end());
    llvm::replace(partAxes, joined, own[k]);
    auto tensor = lowerRight(*part, scopes[k], eq, partAxes);
    if (!tensor)
      return std::nullopt;
    if (tensor->elem != *elem)
      tensor = convert(*tensor, *elem, part->range);
    parts.push_back(*tensor);
  }
  // One body that reads each part where it is.
  bool absent = llvm::any_of(
      parts, [](const TensorVal &part) { return bool(part.live); });
  auto join = [&](bool live) {
    Ty ty = live ? Ty::Bool : *elem;
    return elementwise(axes, ty, expr.range, false, [&](Body &) {
      Node *node = newNode(Node::Concat, ty, expr.range);
      node->flag = live;
      node->idx = joined;
      node->axes.assign(axes.begin(), axes.end());
      Size start;
      for (auto [k, part] : llvm::enumerate(parts)) {
        Size end = start + *own[k]->extent;
        node->pieces.push_back({part, useOf(sizes, start), useOf(sizes, end)});
        start = end;
      }
      return node;
    });
  };
  auto result = join(false);
  if (result && absent)
    if (auto live = join(true))
      result->live = live->value;
  return result;
}
