//===- Equations.cpp - One equation to one tensor -------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using namespace mlir;
using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;
using llvm::Twine;

static const Expr &inParens(const Expr &expr) {
  auto *paren = dyn_cast<ParenExpr>(&expr);
  return paren ? inParens(*paren->inner) : expr;
}

/// The value of an inferred and solved right side over `axes`.
std::optional<TensorVal> Lowering::lowerRight(const Expr &right,
                                              const Scope &scope, Equation &eq,
                                              ArrayRef<Idx *> axes) {
  const Expr &expr = inParens(right);
  const Info &i = info(right, scope, eq);
  Ty elem = stored(i.ty);
  if (auto *softmax = dyn_cast<SoftmaxExpr>(&expr); softmax && elem == Ty::F32)
    return emitSoftmax(*softmax, scope, eq, axes);
  if (auto *reduce = dyn_cast<ReduceExpr>(&expr);
      reduce && reduce->op != ReduceOp::Mean &&
      reduce->op != ReduceOp::Argmax && !i.pure) {
    // The reduction writes the result itself if it accumulates in its type.
    Ty acc = reduce->op == ReduceOp::Max || reduce->op == ReduceOp::Min
                 ? info(*reduce->operand, inside(*reduce, scope, eq), eq).ty
                 : i.ty;
    if (neutral(reduce->op, acc, false).getType() == irType(elem)) {
      auto reduced = emitReduce(*reduce, scope, eq, axes, false);
      if (!reduced)
        return std::nullopt;
      reduced->value.elem = elem;
      return reduced->value;
    }
  }
  if (auto tensor = plainRead(expr, scope, eq, axes, elem))
    return tensor;
  bool f64 = i.pure && i.hasReal;
  bool absent = false;
  auto fill = [&](Body &body) -> TV {
    if (i.fixed)
      return emitFixed(body, *i.fixed, right.range);
    return f64 ? emitNode(body, right, scope, eq)
               : emit(body, right, scope, eq);
  };
  auto tensor = elementwise(axes, elem, right.range, f64, fill, &absent);
  if (!tensor || !absent)
    return tensor;
  // Where the result is absent: a tensor of its own, dropped if nobody asks.
  Location at = loc(right.range);
  Value init = emptyTensor(builder.getI1Type(), tensor->shape, right.range);
  auto live = generic(right.range, axes, {}, {init}, false,
                      [&](Body &body, ArrayRef<Value>) {
                        TV tv = fill(body);
                        SmallVector<Value, 2> result;
                        if (tv)
                          result.push_back(tv.live);
                        return result;
                      });
  if (live.empty())
    return std::nullopt;
  tensor->live = live[0];
  // Handed on as it is: no tensor of its own after all.
  auto op = live[0].getDefiningOp<linalg::GenericOp>();
  auto yielded = op.getBlock()->getTerminator()->getOperand(0);
  if (auto arg = dyn_cast<BlockArgument>(yielded);
      arg && op.getIndexingMapsArray()[arg.getArgNumber()].isIdentity()) {
    tensor->live = op.getInputs()[arg.getArgNumber()];
    op.erase();
    if (init.use_empty())
      init.getDefiningOp()->erase();
  }
  (void)at;
  return tensor;
}

/// Does the expression read an index of the equation that it is inlined into?
bool Lowering::indexed(const Expr &expr, const Scope &scope, Equation *outer) {
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
bool Lowering::lowerWhole(const Expr &right, const Scope &scope,
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
      Idx &idx = eq.pool.emplace_back();
      idx.name = "axis " + std::to_string(k);
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
bool Lowering::isScalarBody(const Expr &expr, const Scope &scope) {
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

//===----------------------------------------------------------------------===//
// Left sides
//===----------------------------------------------------------------------===//

/// The indices of h*E + e with their factors; false if it names none.
bool Lowering::radix(const Expr &expr, const EnvPtr &env,
                     std::vector<const Expr *> by,
                     SmallVectorImpl<Digit> &digits) {
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

bool Lowering::executeEquation(const Left &left, const Expr &right,
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
      error(place, "index '" + name + "' occurs twice on the left side",
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
        Idx &idx = eq.pool.emplace_back();
        idx.name = ".." + std::to_string(k);
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
                   "'" + left.name.text + "' has " +
                       plural(collection->shape.size(), "axis", "axes") + ", " +
                       Twine(positions.size()) + " are given");
    for (auto [k, position] : llvm::enumerate(positions)) {
      auto extent = collection->shape[k].constant();
      if (position.fixed &&
          (!extent || *position.fixed >= *extent || *position.fixed < 0))
        return error(position.place, "position " + Twine(*position.fixed) +
                                         " of '" + left.name.text +
                                         "' is outside its extent " +
                                         sizes.str(collection->shape[k]));
      if (!position.fixed && position.indices.size() == 1)
        eq.uses.push_back(
            {position.indices[0], collection->shape[k],
             ("'" + left.name.text + "' (axis " + Twine(k) + ")").str(),
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
    if (i->fixed &&
        (i->fixed->kind == Binding::None || i->fixed->kind == Binding::String))
      return error(right.range, "the right side is " + kindOf(*i));
    if (!solve(eq))
      return false;
    tensor = lowerRight(right, scope, eq, axes);
  }
  if (!tensor)
    return false;

  // Merge h*E + e.
  SmallVector<ReassociationIndices> groups;
  Shape shape;
  bool merges = false;
  unsigned next = 0;
  for (const Position &position : positions) {
    if (position.fixed)
      continue;
    ReassociationIndices group;
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
                          "index '" + idx->name + "' counts in steps of " +
                              sizes.str(factor) + ", but those after it span " +
                              sizes.str(unit),
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
    Location at = loc(left.range);
    auto collapse = [&](Value value) -> Value {
      auto elem = cast<RankedTensorType>(value.getType()).getElementType();
      return tensor::CollapseShapeOp::create(
          builder, at, tensorType(elem, shape), value, groups);
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
bool Lowering::intoCollection(const Left &left,
                              std::shared_ptr<Collection> collection,
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
                      "axis " + Twine(k) + " of the collection '" +
                          left.name.text + "' has " +
                          sizes.str(collection->shape[k]),
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

/// The tensor with elements of another type.
TensorVal Lowering::convert(const TensorVal &tensor, Ty elem, Range place) {
  Equation eq;
  for (const Size &size : tensor.shape) {
    Idx &idx = eq.pool.emplace_back();
    idx.extent = size;
    eq.whole.push_back(&idx);
  }
  auto result = elementwise(eq.whole, elem, place, false, [&](Body &body) {
    TV tv = readTensor(body, tensor, eq.whole, loc(place));
    tv.live = {};
    if (isReal(tv.ty) != isReal(elem))
      tv = emitCast(body, elem, tv, loc(place));
    return tv;
  });
  result->live = tensor.live;
  return *result;
}

//===----------------------------------------------------------------------===//
// Concatenation
//===----------------------------------------------------------------------===//

std::optional<TensorVal> Lowering::lowerConcat(const ConcatExpr &expr,
                                               Scope &scope, Equation &eq,
                                               ArrayRef<Idx *> axes) {
  auto it = scope.indices.find(expr.index.text);
  if (it == scope.indices.end()) {
    error(expr.index.range,
          "'" + expr.index.text + "' is no index of the left side");
    return std::nullopt;
  }
  Idx *joined = it->second;
  SmallVector<Idx *> mine;
  Ty elem = Ty::AnyInt;
  std::deque<Scope> scopes;
  for (const ExprPtr &part : expr.parts) {
    // Its own range of the index, and a scope that keys its analysis.
    Scope &inner = scopes.emplace_back(scope);
    Idx &idx = eq.pool.emplace_back();
    idx.name = joined->name;
    idx.place = part->range;
    inner.indices[joined->name] = &idx;
    mine.push_back(&idx);
    const Info *i = infer(*part, inner, eq);
    if (!i)
      return std::nullopt;
    auto ty = mine.size() == 1 ? std::optional(i->ty) : join(elem, i->ty);
    if (!ty) {
      error(part->range, "the parts of concat do not go together: " +
                             spelling(elem) + " and " + spelling(i->ty));
      return std::nullopt;
    }
    elem = *ty;
  }
  elem = stored(elem);
  // The joined index itself is used by no part.
  std::optional<Size> declared = joined->extent;
  joined->extent = Size(0);
  bool wasDeclared = std::exchange(joined->declared, true);
  if (!solve(eq))
    return std::nullopt;
  joined->declared = wasDeclared;
  Size total;
  for (Idx *idx : mine)
    total = total + *idx->extent;
  if (declared &&
      !requireEqual(*declared, total, expr.range,
                    "index '" + joined->name + "' is declared with " +
                        sizes.str(*declared) + ", the parts have " +
                        sizes.str(total),
                    {}))
    return std::nullopt;
  joined->extent = sizes.simplify(total);
  SmallVector<TensorVal> parts;
  for (auto [k, part] : llvm::enumerate(expr.parts)) {
    SmallVector<Idx *, 4> partAxes(axes.begin(), axes.end());
    std::replace(partAxes.begin(), partAxes.end(), joined, mine[k]);
    auto tensor = lowerRight(*part, scopes[k], eq, partAxes);
    if (!tensor)
      return std::nullopt;
    if (tensor->elem != elem)
      tensor = convert(*tensor, elem, part->range);
    parts.push_back(*tensor);
  }
  // One body that reads each part where it is.
  bool absent = llvm::any_of(
      parts, [](const TensorVal &part) { return bool(part.live); });
  Location at = loc(expr.range);
  auto join = [&](bool live) {
    Ty ty = live ? Ty::Bool : elem;
    return elementwise(axes, ty, expr.range, false, [&](Body &body) -> TV {
      Value n = indexValue(body, joined, at);
      std::function<TV(size_t, Size)> from = [&](size_t k, Size start) -> TV {
        auto read = [&]() -> TV {
          if (live && !parts[k].live)
            return {arith::ConstantIntOp::create(body.builder, at, 1, 1),
                    Ty::Bool,
                    {}};
          SmallVector<Value> indices;
          for (Idx *idx : axes) {
            Value value = indexValue(body, idx, at);
            if (idx == joined && !start.terms.empty())
              value = arith::SubIOp::create(body.builder, at, value,
                                            emit(start, expr.range));
            indices.push_back(value);
          }
          return loaded(body,
                        tensor::ExtractOp::create(
                            body.builder, at,
                            live ? parts[k].live : parts[k].value, indices),
                        ty, at);
        };
        if (k + 1 == parts.size())
          return read();
        Size end = start + *mine[k]->extent;
        Value before =
            arith::CmpIOp::create(body.builder, at, arith::CmpIPredicate::slt,
                                  n, emit(end, expr.range));
        return branch(body, before, ty, false, at, read,
                      [&] { return from(k + 1, end); });
      };
      return from(0, Size());
    });
  };
  auto result = join(false);
  if (result && absent)
    if (auto live = join(true))
      result->live = live->value;
  return result;
}
