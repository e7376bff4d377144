//===- InferTensors.cpp - Types of reads, reductions and softmax ----------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;

bool Analysis::inferRead(const ReadExpr &expr, const Scope &scope, Equation &eq,
                         bool weak, Info &info) {
  auto binding = lookup(*scope.env, expr.name.text);
  if (!binding) {
    std::vector<StringRef> known;
    for (auto &[name, other] : scope.env->names)
      if (other.kind == Binding::Tensor || other.kind == Binding::Collection ||
          other.kind == Binding::Table)
        known.push_back(name);
    return error(expr.name.range,
                 format("unknown tensor '{}'{}", expr.name.text,
                        hint(expr.name.text, known)));
  }
  if (binding->kind == Binding::Poison)
    return false;
  if (binding->kind == Binding::None)
    return error(expr.name.range,
                 format("'{}' is none here: ask with a static 'if {} == none'",
                        expr.name.text, expr.name.text));
  if (binding->kind == Binding::Thunk) {
    // A whole tensor that was passed without a type: now it needs a name.
    const Info *inner =
        infer(*binding->thunk->expr, *binding->thunk->scope, eq, weak);
    if (!inner)
      return false;
    if (inner->whole) {
      auto tensor = materialise(*binding->thunk->expr, *binding->thunk->scope);
      if (!tensor)
        return false;
      binding = Binding::of(*tensor, binding->place);
      scope.env->names[expr.name.text.str()] = *binding;
    }
  }
  Shape shape;
  switch (binding->kind) {
  case Binding::Tensor:
    shape = binding->tensor.shape;
    info.ty = binding->tensor.elem;
    info.mayBeAbsent = bool(binding->tensor.live);
    info.pure = false;
    break;
  case Binding::Collection:
    shape = binding->collection->shape;
    info.ty = binding->collection->elem;
    info.mayBeAbsent =
        llvm::any_of(binding->collection->slices,
                     [](const auto &slice) { return bool(slice.second.live); });
    info.pure = false;
    break;
  case Binding::Table:
    info.ty = binding->table->elem;
    info.hasReal = info.ty == Ty::AnyReal;
    [[fallthrough]];
  case Binding::List:
    shape = binding->table->extents();
    break;
  default:
    return error(expr.name.range,
                 format("'{}' is a scalar, not a tensor: it has no indices",
                        expr.name.text),
                 binding->place.isValid()
                     ? ArrayRef<Note>(Note{binding->place, "defined here"})
                     : ArrayRef<Note>());
  }
  SmallVector<Item> axes;
  if (!items(expr, scope, axes))
    return false;
  // Fewer indices than axes, where a whole tensor may stand: a slice, of which
  // the trailing axes are whole.
  bool isSlice = eq.wholeAllowed && !axes.empty() && axes.size() < shape.size();
  if (isSlice)
    info.whole = Shape(llvm::drop_begin(shape, axes.size()));
  if (axes.size() != shape.size() && !isSlice)
    return error(expr.range,
                 format("'{}' has {}, {} given", expr.name.text,
                        counted(shape.size(), "axis", "axes"),
                        counted(axes.size(), "index is", "indices are")),
                 binding->place.isValid()
                     ? ArrayRef<Note>(Note{binding->place, "defined here"})
                     : ArrayRef<Note>());
  bool fixed = binding->table && !isSlice;
  int64_t flat = 0;
  for (auto [k, axis] : llvm::enumerate(axes)) {
    if (axis.idx) {
      if (!llvm::is_contained(info.used, axis.idx))
        info.used.push_back(axis.idx);
      eq.uses.push_back({axis.idx, shape[k],
                         format("'{}' (axis {})", expr.name.text, k),
                         axis.expr ? axis.expr->range : expr.range, weak,
                         weak && isKept(axis.idx, shape[k], eq)});
      if (axis.expr)
        infer(*axis.expr, scope, eq, weak);
      fixed = false;
      continue;
    }
    const Info *index = infer(*axis.expr, scope, eq, weak);
    if (!index)
      return false;
    if (index->whole)
      return error(
          axis.expr->range,
          format("an index of '{}' is a whole tensor", expr.name.text));
    if (!number(*index, axis.expr->range,
                format("an index of '{}'", expr.name.text)))
      return false;
    if (!isInt(index->ty))
      return error(
          axis.expr->range,
          format("an index of '{}' must be an integer, found {}; write i32( )",
                 expr.name.text, spelling(index->ty)));
    if (!merge(info, *index, axis.expr->range))
      return false;
    auto at = index->fixed ? index->fixed->size.constant() : std::nullopt;
    if (at && fixed) {
      if (*at < 0 || *at >= *shape[k].constant())
        return error(axis.expr->range,
                     format("index {} of '{}' is outside its extent {}", *at,
                            expr.name.text, sizes.str(shape[k])));
      flat = flat * *shape[k].constant() + *at;
    } else {
      fixed = false;
    }
  }
  if (binding->kind == Binding::List) {
    if (fixed) {
      info.fixed.emplace();
      info.fixed->kind = Binding::String;
      info.fixed->text = (*binding->texts)[flat];
      return true;
    }
    if (rolled && info.pure && info.used.empty() && !isSlice) {
      needsUnroll = true;
      return false;
    }
    return error(expr.range,
                 format("'{}' is a list of strings: its indices must be static",
                        expr.name.text));
  }
  // hasReal is about what is computed here, not about how an index came to be.
  if (fixed) {
    const Table &table = *binding->table;
    info.fixed = table.elem == Ty::AnyReal ? Binding::of(table.reals[flat])
                 : table.elem == Ty::Bool ? Binding::ofBool(table.ints[flat])
                                          : Binding::of(Size(table.ints[flat]));
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

bool Analysis::inferReduce(const ReduceExpr &expr, const Scope &scope,
                           Equation &eq, bool weak, Info &info) {
  SmallVector<Idx *, 2> ids;
  for (const Binder &binder : expr.binders) {
    for (Idx *other : ids)
      if (other->name == binder.name.text)
        return error(binder.name.range,
                     format("index '{}' is bound twice", binder.name.text),
                     Note{other->place, "first here"});
    Idx *idx = newIndex(binder.name.text, binder.name.range,
                        binder.extent.get(), scope, eq);
    if (!idx)
      return false;
    ids.push_back(idx);
  }
  eq.binders[{&expr, scope.env.get()}] = ids;
  Scope inner = inside(expr, scope, eq);
  StringRef op = ast::spelling(expr.op);
  const Info *where = nullptr;
  if (expr.where) {
    where = infer(*expr.where, inner, eq, weak);
    if (!where || !boolean(*where, expr.where->range, "'where'"))
      return false;
  }
  const Info *a = infer(*expr.operand, inner, eq, weak);
  if (!a)
    return false;
  if (a->whole || (where && where->whole))
    return error(expr.operand->range,
                 format("'{}' over a whole tensor: write its indices", op));
  bool isBool = a->ty == Ty::Bool && !(a->fixed && !a->fixed->isStatic());
  switch (expr.op) {
  case ReduceOp::Any:
  case ReduceOp::All:
    if (!boolean(*a, expr.operand->range, format("'{}'", op)))
      return false;
    info.ty = Ty::Bool;
    break;
  case ReduceOp::Sum:
    if (!isBool && !number(*a, expr.operand->range, "'sum'"))
      return false;
    info.ty = isBool || a->ty == Ty::I8 ? Ty::I32 : a->ty;
    break;
  case ReduceOp::Mean:
    if (!number(*a, expr.operand->range, "'mean'"))
      return false;
    info.ty = realOf(a->ty);
    break;
  case ReduceOp::Argmax:
    if (!number(*a, expr.operand->range, "'argmax'"))
      return false;
    info.ty = Ty::I32;
    break;
  default:
    if (!number(*a, expr.operand->range, format("'{}'", op)))
      return false;
    info.ty = a->ty;
  }
  if (!merge(info, *a, expr.range) ||
      (where && !merge(info, *where, expr.range)))
    return false;
  info.hasReal |= isReal(info.ty);
  llvm::erase_if(info.used,
                 [&](Idx *idx) { return llvm::is_contained(ids, idx); });
  if (expr.isBareDivisor)
    warn(expr.opRange, format("'{}' as the right operand of '/' reaches to the "
                              "end of the product: put it in parentheses",
                              op));
  return true;
}

bool Analysis::inferSoftmax(const SoftmaxExpr &expr, const Scope &scope,
                            Equation &eq, bool weak, Info &info) {
  StringRef op = expr.name;
  SmallVector<Idx *, 2> ids;
  Scope outside = scope;
  for (const Binder &binder : expr.binders) {
    auto it = scope.indices.find(binder.name.text);
    if (it == scope.indices.end())
      return error(binder.name.range,
                   format("'{}' is no index of this equation; {} names an "
                          "index that stays free",
                          binder.name.text, op));
    if (llvm::is_contained(ids, it->second))
      return error(binder.name.range,
                   format("index '{}' is named twice", binder.name.text));
    ids.push_back(it->second);
    outside.indices.erase(binder.name.text.str());
  }
  eq.binders[{&expr, scope.env.get()}] = ids;
  const Info *where = nullptr, *sink = nullptr;
  if (expr.where) {
    where = infer(*expr.where, scope, eq, weak);
    if (!where || !boolean(*where, expr.where->range, "'where'"))
      return false;
  }
  if (expr.sink) {
    sink = infer(*expr.sink, outside, eq, weak);
    if (!sink || !number(*sink, expr.sink->range, "the sink of softmax"))
      return false;
  }
  const Info *a = infer(*expr.operand, scope, eq, weak);
  if (!a || !number(*a, expr.operand->range, format("'{}'", op)))
    return false;
  if (a->whole || (where && where->whole) || (sink && sink->whole))
    return error(expr.operand->range,
                 format("'{}' over a whole tensor: write its indices", op));
  info.ty = stored(realOf(a->ty));
  if (!merge(info, *a, expr.range) ||
      (where && !merge(info, *where, expr.range)) ||
      (sink && !merge(info, *sink, expr.range)))
    return false;
  for (Idx *idx : ids)
    if (!llvm::is_contained(info.used, idx))
      info.used.push_back(idx);
  info.pure = false;
  info.hasReal = true;
  info.mayBeAbsent = where && !expr.isLog();
  return true;
}
