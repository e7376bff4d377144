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

/// What the name of a read stands for; none after an error.
std::optional<Binding> Analysis::readable(const ReadExpr &expr,
                                          const Scope &scope, Equation &eq,
                                          bool weak) {
  auto binding = lookup(*scope.env, expr.name.text);
  if (!binding) {
    std::vector<StringRef> known;
    for (auto &[name, other] : scope.env->names)
      if (other.kind == Binding::Tensor || other.kind == Binding::Collection ||
          other.kind == Binding::Table || other.kind == Binding::Stacked)
        known.push_back(name);
    auto ended = scope.env->ended.find(expr.name.text);
    error(expr.name.range,
          format("unknown tensor '{}'{}", expr.name.text,
                 hint(expr.name.text, known)),
          ended == scope.env->ended.end() ? ArrayRef<Note>()
                                          : ArrayRef<Note>(ended->second));
    return std::nullopt;
  }
  if (binding->kind == Binding::Poison)
    return std::nullopt;
  if (binding->kind == Binding::None) {
    error(expr.name.range,
          format("'{}' is none here: ask with a static 'if {} == none'",
                 expr.name.text, expr.name.text));
    return std::nullopt;
  }
  if (binding->kind != Binding::Thunk)
    return binding;
  // A whole tensor that was passed without a type: now it needs a name.
  const Info *inner =
      infer(*binding->thunk->expr, *binding->thunk->scope, eq, weak);
  if (!inner)
    return std::nullopt;
  if (inner->whole) {
    auto tensor = materialise(*binding->thunk->expr, *binding->thunk->scope);
    if (!tensor)
      return std::nullopt;
    binding = Binding::of(*tensor, binding->place);
    scope.env->names[expr.name.text.str()] = *binding;
  }
  return binding;
}

/// The shape of what is read, and the type of its elements; none of a scalar.
static std::optional<Shape> elementsOf(const Binding &binding, Info &info) {
  switch (binding.kind) {
  case Binding::Tensor:
    info.ty = binding.tensor.elem;
    info.mayBeAbsent = bool(binding.tensor.live);
    info.pure = false;
    return binding.tensor.shape;
  case Binding::Collection:
    info.ty = binding.collection->elem;
    info.mayBeAbsent =
        llvm::any_of(binding.collection->slices,
                     [](const auto &slice) { return bool(slice.second.live); });
    info.pure = false;
    return binding.collection->shape;
  case Binding::Stacked:
    info.ty = binding.stacked->row.elem;
    info.mayBeAbsent = bool(binding.stacked->row.live);
    info.pure = false;
    return binding.stacked->shape();
  case Binding::Table:
    info.ty = binding.table->elem;
    info.hasReal = info.ty == Ty::AnyReal;
    return binding.table->extents();
  case Binding::List:
    return binding.table->extents();
  default:
    return std::nullopt;
  }
}

/// An index that stands in the axis alone: it ranges over the axis.
void Analysis::inferPlainIndex(const ReadExpr &expr, unsigned k,
                               const Item &axis, const Size &extent,
                               const Scope &scope, Equation &eq, bool weak,
                               Info &info) {
  if (!llvm::is_contained(info.used, axis.idx))
    info.used.push_back(axis.idx);
  eq.uses.push_back({axis.idx, extent,
                     format("'{}' (axis {})", expr.name.text, k),
                     axis.expr ? axis.expr->range : expr.range, weak,
                     weak && isKept(axis.idx, extent, eq)});
  if (axis.expr)
    infer(*axis.expr, scope, eq, weak);
}

/// An expression as the position in an axis.
const Info *Analysis::inferPosition(const ReadExpr &expr, const Expr &position,
                                    const Scope &scope, Equation &eq, bool weak,
                                    Info &info) {
  if (auto *name = llvm::dyn_cast<NameExpr>(&position);
      name && !scope.indices.count(name->name) &&
      !lookup(*scope.env, name->name)) {
    unknownName(*name, scope, eq, true);
    return nullptr;
  }
  const Info *index = infer(position, scope, eq, weak);
  if (!index)
    return nullptr;
  if (index->whole) {
    error(position.range,
          format("an index of '{}' is a whole tensor", expr.name.text));
    return nullptr;
  }
  if (!number(*index, position.range,
              format("an index of '{}'", expr.name.text)))
    return nullptr;
  if (!isInt(index->ty)) {
    error(position.range,
          format("an index of '{}' must be an integer, found {}; write i32( )",
                 expr.name.text, spelling(index->ty)));
    return nullptr;
  }
  return merge(info, *index, position.range) ? index : nullptr;
}

bool Analysis::inferRead(const ReadExpr &expr, const Scope &scope, Equation &eq,
                         bool weak, Info &info) {
  auto binding = readable(expr, scope, eq, weak);
  if (!binding)
    return false;
  SmallVector<Note, 1> definition;
  if (binding->place.isValid())
    definition.push_back({binding->place, "defined here"});
  auto elements = elementsOf(*binding, info);
  if (!elements)
    return error(expr.name.range,
                 format("'{}' is a scalar, not a tensor: it has no indices",
                        expr.name.text),
                 definition);
  const Shape &shape = *elements;
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
                 definition);
  // The element of a table at positions that are known.
  bool fixed = binding->table && !isSlice;
  int64_t flat = 0;
  for (auto [k, axis] : llvm::enumerate(axes)) {
    if (axis.idx) {
      inferPlainIndex(expr, k, axis, shape[k], scope, eq, weak, info);
      fixed = false;
      continue;
    }
    const Info *index = inferPosition(expr, *axis.expr, scope, eq, weak, info);
    if (!index)
      return false;
    auto at = index->fixed ? index->fixed->size.constant() : std::nullopt;
    fixed &= at.has_value();
    if (!fixed)
      continue;
    if (*at < 0 || *at >= *shape[k].constant())
      return error(axis.expr->range,
                   format("index {} of '{}' is outside its extent {}", *at,
                          expr.name.text, sizes.str(shape[k])));
    flat = flat * *shape[k].constant() + *at;
  }
  return !binding->table ||
         inferEntry(expr, *binding, fixed, flat, isSlice, info);
}

/// What a table or a list has at a position that is `known`.
bool Analysis::inferEntry(const ReadExpr &expr, const Binding &binding,
                          bool known, int64_t flat, bool isSlice, Info &info) {
  if (binding.kind == Binding::List) {
    if (known) {
      info.fixed.emplace();
      info.fixed->kind = Binding::String;
      info.fixed->text = (*binding.texts)[flat];
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
  if (known) {
    const Table &table = *binding.table;
    info.fixed = table.elem == Ty::AnyReal ? Binding::of(table.reals[flat])
                 : table.elem == Ty::Bool ? Binding::ofBool(table.ints[flat])
                                          : Binding::of(Size(table.ints[flat]));
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static Ty reducedType(ReduceOp op, Ty ty) {
  switch (op) {
  case ReduceOp::Any:
  case ReduceOp::All:
    return Ty::Bool;
  case ReduceOp::Sum:
    return ty == Ty::Bool || ty == Ty::I8 ? Ty::I32 : ty;
  case ReduceOp::Mean:
    return realOf(ty);
  case ReduceOp::Argmax:
    return Ty::I32;
  default:
    return ty;
  }
}

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
  std::string what = format("'{}'", op);
  bool isLogic = expr.op == ReduceOp::Any || expr.op == ReduceOp::All;
  bool counts = expr.op == ReduceOp::Sum && a->ty == Ty::Bool &&
                !(a->fixed && !a->fixed->isStatic());
  if (isLogic ? !boolean(*a, expr.operand->range, what)
              : !counts && !number(*a, expr.operand->range, what))
    return false;
  info.ty = reducedType(expr.op, a->ty);
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
