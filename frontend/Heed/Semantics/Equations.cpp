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

/// The value of an inferred and solved right side over `axes`.
std::optional<TensorVal> Lowering::lowerRight(const Expr &right,
                                              const Scope &scope, Equation &eq,
                                              ArrayRef<Idx *> axes) {
  const Expr &expr = inParens(right);
  const Info &i = info(right, scope, eq);
  Ty elem = stored(i.ty);
  if (auto *softmax = dyn_cast<SoftmaxExpr>(&expr); softmax && elem == Ty::F32)
    return emitSoftmax(*softmax, scope, eq, axes, 0);
  if (auto *reduce = dyn_cast<ReduceExpr>(&expr);
      reduce && reduce->op != ReduceOp::Mean &&
      reduce->op != ReduceOp::Argmax && !i.pure) {
    // The reduction writes the result itself if it accumulates in its type.
    Ty acc = reduce->op == ReduceOp::Max || reduce->op == ReduceOp::Min
                 ? info(*reduce->operand, inside(*reduce, scope, eq), eq).ty
                 : i.ty;
    if (neutral(reduce->op, acc, false).getType() == irType(elem)) {
      auto reduced = emitReduce(*reduce, scope, eq, axes, 0, false);
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
            return {boolConstant(body.builder, 1, at), Ty::Bool, {}};
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
