//===- Infer.cpp - Names, types and index uses of an expression -----------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first walk over an equation. It finds every mistake that does not need
// ranges, so that emission has none left to report but reads out of range.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

StringRef sema::spelling(Ty ty) {
  switch (ty) {
  case Ty::AnyInt:
    return "integer";
  case Ty::AnyReal:
    return "real";
  case Ty::Bool:
    return "bool";
  case Ty::I8:
    return "i8";
  case Ty::I32:
    return "i32";
  case Ty::I64:
    return "i64";
  case Ty::F16:
    return "f16";
  case Ty::BF16:
    return "bf16";
  case Ty::F32:
    return "f32";
  }
  return "";
}

Ty sema::stored(Ty ty) {
  return ty == Ty::AnyInt ? Ty::I32 : ty == Ty::AnyReal ? Ty::F32 : ty;
}

Ty sema::realOf(Ty ty) {
  return ty == Ty::AnyInt ? Ty::AnyReal : isInt(ty) ? Ty::F32 : ty;
}

std::optional<Ty> sema::join(Ty a, Ty b) {
  if (a == b)
    return a;
  if (a == Ty::Bool || b == Ty::Bool)
    return std::nullopt;
  if (isReal(a) != isReal(b)) {
    Ty real = isReal(a) ? a : b, integer = isReal(a) ? b : a;
    return real == Ty::AnyReal && integer != Ty::AnyInt ? Ty::F32 : real;
  }
  if ((a == Ty::F16 && b == Ty::BF16) || (a == Ty::BF16 && b == Ty::F16))
    return std::nullopt;
  // Within the integers, and within the reals, the enum goes from narrow to
  // wide, and the adaptable kind comes first.
  return std::max(a, b);
}

//===----------------------------------------------------------------------===//
// Small parts
//===----------------------------------------------------------------------===//

const Info &Lowering::info(const Expr &expr, const Scope &scope,
                           const Equation &eq) {
  auto it = eq.infos.find({&expr, scope.env.get()});
  assert(it != eq.infos.end() && "expression was not inferred");
  return it->second;
}

bool Lowering::merge(Info &into, const Info &from, Range place) {
  for (Idx *idx : from.used)
    if (!llvm::is_contained(into.used, idx))
      into.used.push_back(idx);
  into.pure &= from.pure;
  into.hasReal |= from.hasReal;
  if (from.whole) {
    if (into.whole) {
      if (into.whole->size() != from.whole->size())
        return error(place, "whole tensors of shapes " + str(*into.whole) +
                                " and " + str(*from.whole) +
                                ": shapes must be equal (no broadcasting)");
      for (auto [k, pair] :
           llvm::enumerate(llvm::zip(*into.whole, *from.whole))) {
        auto [a, b] = pair;
        if (sizes.different(a, b))
          return error(place, "whole tensors of shapes " + str(*into.whole) +
                                  " and " + str(*from.whole) +
                                  ": shapes must be equal (no broadcasting)");
        if (!requireEqual(a, b, place,
                          "axis " + Twine(k) + " of a whole tensor", {}))
          return false;
      }
    } else {
      into.whole = from.whole;
    }
  }
  return true;
}

bool Lowering::number(const Info &info, Range place, const Twine &what) {
  if (info.fixed && (info.fixed->kind == Binding::None ||
                     info.fixed->kind == Binding::String))
    return error(place,
                 what + " needs numbers, found " +
                     (info.fixed->kind == Binding::None ? "none" : "a string"));
  if (info.ty == Ty::Bool)
    return error(place, what + " needs numbers, found bool; write (if .. then "
                               "1 else 0)");
  return true;
}

bool Lowering::boolean(const Info &info, Range place, const Twine &what) {
  if (info.fixed && (info.fixed->kind == Binding::None ||
                     info.fixed->kind == Binding::String))
    return error(place,
                 what + " needs bool, found " +
                     (info.fixed->kind == Binding::None ? "none" : "a string"));
  if (info.ty != Ty::Bool)
    return error(place, what + " needs bool, found " + spelling(info.ty));
  return true;
}

Idx *Lowering::newIndex(StringRef name, Range place, const Expr *extent,
                        const Scope &scope, Equation &eq) {
  if (auto known = lookup(*scope.env, name)) {
    bool scalar =
        known->kind == Binding::Int || known->kind == Binding::Real ||
        known->kind == Binding::Bool || known->kind == Binding::Scalar ||
        known->kind == Binding::Thunk ||
        (known->kind == Binding::Tensor && known->tensor.shape.empty());
    if (scalar) {
      error(place,
            "index '" + name + "' hides a " +
                (known->isDim ? "dim" : "scalar") + " of that name",
            known->place.isValid()
                ? ArrayRef<Note>(Note{known->place, "defined here"})
                : ArrayRef<Note>());
      return nullptr;
    }
  }
  Idx &idx = eq.pool.emplace_back();
  idx.name = name.str();
  idx.place = place;
  if (extent) {
    auto size = sizeValue(*extent, scope.env, "the range of '" + name + "'");
    if (!size)
      return nullptr;
    idx.extent = *size;
    idx.declared = true;
    idx.from = "its declared range";
    idx.fromPlace = extent->range;
  }
  return &idx;
}

bool Lowering::solve(Equation &eq) {
  bool ok = true;
  for (Idx &idx : eq.pool) {
    SmallVector<const Equation::Use *> mine, strong;
    for (const Equation::Use &use : eq.uses)
      if (use.idx == &idx) {
        mine.push_back(&use);
        if (!use.weak)
          strong.push_back(&use);
      }
    if (idx.declared) {
      for (const Equation::Use *use : strong) {
        Size slack = use->extent - *idx.extent;
        if (sizes.nonNegative(slack) || sizes.equal(use->extent, *idx.extent))
          continue;
        std::string text = "index '" + idx.name + "' runs to " +
                           describe(*idx.extent) + ", but " + use->what +
                           " has " + describe(use->extent);
        if (sizes.nonNegative(*idx.extent - use->extent - 1)) {
          ok = error(use->place, text, Note{idx.fromPlace, "declared here"});
          continue;
        }
        requireLessEqual(*idx.extent, use->extent, use->place,
                         "index '" + idx.name + "' runs to " +
                             sizes.str(*idx.extent) + " = {0}, but " +
                             use->what + " has {1}");
      }
      continue;
    }
    if (mine.empty()) {
      if (!idx.extent)
        ok = error(idx.place, "index '" + idx.name +
                                  "' indexes nothing plainly: declare its "
                                  "range, '" +
                                  idx.name + ":N'");
      continue;
    }
    auto &rule = strong.empty() ? mine : strong;
    idx.extent = rule[0]->extent;
    idx.from = rule[0]->what;
    idx.fromPlace = rule[0]->place;
    for (const Equation::Use *use : llvm::drop_begin(rule)) {
      if (sizes.equal(use->extent, *idx.extent))
        continue;
      ok &= requireEqual(use->extent, *idx.extent, use->place,
                         "index '" + idx.name + "' ranges over " +
                             describe(use->extent) + " in " + use->what +
                             ", but over " + describe(*idx.extent) + " in " +
                             idx.from,
                         Note{idx.fromPlace, "the range comes from here"});
    }
  }
  return ok;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

const Info *Lowering::infer(const Expr &expr, const Scope &scope, Equation &eq,
                            bool weak) {
  Key key{&expr, scope.env.get()};
  if (auto it = eq.infos.find(key); it != eq.infos.end())
    return &it->second;
  Info info;
  if (!inferNode(expr, scope, eq, weak, info))
    return nullptr;
  return &(eq.infos[key] = std::move(info));
}

bool Lowering::inferNode(const Expr &expr, const Scope &scope, Equation &eq,
                         bool weak, Info &info) {
  switch (expr.kind) {
  case ExprKind::Int:
    info.fixed = Binding::of(Size(cast<IntExpr>(expr).value));
    return true;
  case ExprKind::Real:
    info.ty = Ty::AnyReal;
    info.hasReal = true;
    info.fixed = Binding::of(cast<RealExpr>(expr).value);
    return true;
  case ExprKind::Bool:
    info.ty = Ty::Bool;
    info.fixed = Binding::ofBool(cast<BoolExpr>(expr).value);
    return true;
  case ExprKind::None:
    info.fixed.emplace();
    info.fixed->kind = Binding::None;
    return true;
  case ExprKind::String: {
    auto text = textValue(cast<StringExpr>(expr), scope.env);
    if (!text)
      return false;
    info.fixed.emplace();
    info.fixed->kind = Binding::String;
    info.fixed->text = *text;
    return true;
  }
  case ExprKind::Name:
    return inferName(cast<NameExpr>(expr), scope, eq, weak, info);
  case ExprKind::Read:
    return inferRead(cast<ReadExpr>(expr), scope, eq, weak, info);
  case ExprKind::Call:
    return inferCall(cast<CallExpr>(expr), scope, eq, weak, info);
  case ExprKind::Paren: {
    const Info *inner = infer(*cast<ParenExpr>(expr).inner, scope, eq, weak);
    if (inner)
      info = *inner;
    return inner;
  }
  case ExprKind::Negate: {
    const Expr &operand = *cast<NegateExpr>(expr).operand;
    const Info *a = infer(operand, scope, eq, weak);
    if (!a || !number(*a, operand.range, "'-'"))
      return false;
    info.ty = a->ty;
    info.mayBeAbsent = a->mayBeAbsent;
    if (a->fixed)
      info.fixed = a->fixed->kind == Binding::Int
                       ? Binding::of(-a->fixed->size)
                       : Binding::of(-a->fixed->real);
    return merge(info, *a, expr.range);
  }
  case ExprKind::Not: {
    const Expr &operand = *cast<NotExpr>(expr).operand;
    const Info *a = infer(operand, scope, eq, weak);
    if (!a || !boolean(*a, operand.range, "'not'"))
      return false;
    info.ty = Ty::Bool;
    if (a->fixed)
      info.fixed = Binding::ofBool(!a->fixed->flag);
    return merge(info, *a, expr.range);
  }
  case ExprKind::Binary:
    return inferBinary(cast<BinaryExpr>(expr), scope, eq, weak, info);
  case ExprKind::Compare:
    return inferCompare(cast<CompareExpr>(expr), scope, eq, weak, info);
  case ExprKind::Logic: {
    auto &logic = cast<LogicExpr>(expr);
    StringRef what = logic.isAnd ? "'and'" : "'or'";
    const Info *a = infer(*logic.lhs, scope, eq, weak);
    if (!a || !boolean(*a, logic.lhs->range, what))
      return false;
    info.ty = Ty::Bool;
    // A static left side that decides: the right one is not there.
    if (a->fixed && a->fixed->flag != logic.isAnd) {
      info.fixed = a->fixed;
      return true;
    }
    const Info *b = infer(*logic.rhs, scope, eq, weak);
    if (!b || !boolean(*b, logic.rhs->range, what))
      return false;
    if (a->fixed && b->fixed)
      info.fixed = b->fixed;
    return merge(info, *a, expr.range) && merge(info, *b, expr.range);
  }
  case ExprKind::If:
    return inferIf(cast<IfExpr>(expr), scope, eq, weak, info);
  case ExprKind::Reduce:
    return inferReduce(cast<ReduceExpr>(expr), scope, eq, weak, info);
  case ExprKind::Softmax:
    return inferSoftmax(cast<SoftmaxExpr>(expr), scope, eq, weak, info);
  case ExprKind::Concat:
    return error(expr.range, "concat must be the whole right side of an "
                             "equation with indices");
  case ExprKind::Table:
    return error(expr.range, "a table stands only in a constant");
  }
  return false;
}

bool Lowering::inferName(const NameExpr &expr, const Scope &scope, Equation &eq,
                         bool weak, Info &info) {
  if (auto it = scope.indices.find(expr.name); it != scope.indices.end()) {
    info.used.push_back(it->second);
    return true;
  }
  auto binding = lookup(*scope.env, expr.name);
  if (!binding) {
    std::vector<StringRef> known = visible(*scope.env);
    for (auto &index : scope.indices)
      known.push_back(index.first);
    return error(expr.range, "unknown name '" + expr.name + "'" +
                                 hint(expr.name, std::move(known)));
  }
  return inferBinding(*binding, expr, eq, weak, info);
}

bool Lowering::inferBinding(const Binding &binding, const Expr &expr,
                            Equation &eq, bool weak, Info &info) {
  switch (binding.kind) {
  case Binding::Poison:
    return false;
  case Binding::None:
  case Binding::String:
    info.fixed = binding;
    return true;
  case Binding::Bool:
    info.ty = Ty::Bool;
    info.fixed = binding;
    return true;
  case Binding::Int:
    info.fixed = binding;
    return true;
  case Binding::Real:
    info.ty = Ty::AnyReal;
    info.hasReal = true;
    info.fixed = binding;
    return true;
  case Binding::Scalar:
    info.ty = binding.tensor.elem;
    info.pure = false;
    info.named = binding;
    return true;
  case Binding::Thunk: {
    const Info *inner =
        infer(*binding.thunk->expr, *binding.thunk->scope, eq, weak);
    if (inner)
      info = *inner;
    if (inner && inner->whole)
      info.named = binding;
    return inner;
  }
  case Binding::Table:
    info.ty = binding.table->elem;
    info.hasReal = info.ty == Ty::AnyReal;
    info.whole.emplace();
    for (int64_t n : binding.table->shape)
      info.whole->push_back(Size(n));
    break;
  case Binding::Tensor:
    info.ty = binding.tensor.elem;
    info.pure = false;
    info.mayBeAbsent = bool(binding.tensor.live);
    if (!binding.tensor.shape.empty())
      info.whole = binding.tensor.shape;
    break;
  case Binding::Collection:
    info.ty = binding.collection->elem;
    info.pure = false;
    info.whole = binding.collection->shape;
    break;
  }
  info.named = binding;
  if (info.whole && !eq.wholeAllowed)
    return error(expr.range, "a whole tensor in an equation with indices: "
                             "read it with [ ]");
  return true;
}

bool Lowering::items(const ReadExpr &expr, const Scope &scope,
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

std::string Lowering::str(ArrayRef<Size> shape) {
  std::string text = "[";
  for (const Size &size : shape)
    text += (text.size() > 1 ? ", " : "") + sizes.str(size);
  return text + "]";
}

bool Lowering::inferRead(const ReadExpr &expr, const Scope &scope, Equation &eq,
                         bool weak, Info &info) {
  auto binding = lookup(*scope.env, expr.name.text);
  if (!binding) {
    std::vector<StringRef> known;
    for (auto &[name, other] : scope.env->names)
      if (other.kind == Binding::Tensor || other.kind == Binding::Collection ||
          other.kind == Binding::Table)
        known.push_back(name);
    return error(expr.name.range, "unknown tensor '" + expr.name.text + "'" +
                                      hint(expr.name.text, std::move(known)));
  }
  if (binding->kind == Binding::Poison)
    return false;
  if (binding->kind == Binding::None)
    return error(expr.name.range, "'" + expr.name.text +
                                      "' is none here: ask with a static 'if " +
                                      expr.name.text + " == none'");
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
    info.pure = false;
    break;
  case Binding::Table:
    for (int64_t n : binding->table->shape)
      shape.push_back(Size(n));
    info.ty = binding->table->elem;
    info.hasReal = info.ty == Ty::AnyReal;
    break;
  default:
    return error(expr.name.range,
                 "'" + expr.name.text +
                     "' is a scalar, not a tensor: it has no "
                     "indices",
                 binding->place.isValid()
                     ? ArrayRef<Note>(Note{binding->place, "defined here"})
                     : ArrayRef<Note>());
  }
  SmallVector<Item> axes;
  if (!items(expr, scope, axes))
    return false;
  if (axes.size() != shape.size())
    return error(expr.range,
                 "'" + expr.name.text + "' has " +
                     plural(shape.size(), "axis", "axes") + ", " +
                     plural(axes.size(), "index is", "indices are") + " given",
                 binding->place.isValid()
                     ? ArrayRef<Note>(Note{binding->place, "defined here"})
                     : ArrayRef<Note>());
  bool fixed = binding->kind == Binding::Table;
  int64_t flat = 0;
  for (auto [k, axis] : llvm::enumerate(axes)) {
    if (axis.idx) {
      if (!llvm::is_contained(info.used, axis.idx))
        info.used.push_back(axis.idx);
      eq.uses.push_back(
          {axis.idx, shape[k],
           ("'" + expr.name.text + "' (axis " + Twine(k) + ")").str(),
           axis.expr ? axis.expr->range : expr.range, weak});
      if (axis.expr)
        infer(*axis.expr, scope, eq, weak);
      fixed = false;
      continue;
    }
    const Info *index = infer(*axis.expr, scope, eq, weak);
    if (!index)
      return false;
    if (index->whole)
      return error(axis.expr->range,
                   "an index of '" + expr.name.text + "' is a whole tensor");
    if (!number(*index, axis.expr->range,
                "an index of '" + expr.name.text + "'"))
      return false;
    if (!isInt(index->ty))
      return error(axis.expr->range, "an index of '" + expr.name.text +
                                         "' must be an integer, found " +
                                         spelling(index->ty) +
                                         "; write i32( )");
    if (!merge(info, *index, axis.expr->range))
      return false;
    auto at = index->fixed ? index->fixed->size.constant() : std::nullopt;
    if (at && fixed) {
      if (*at < 0 || *at >= *shape[k].constant())
        return error(axis.expr->range,
                     "index " + Twine(*at) + " of '" + expr.name.text +
                         "' is outside its extent " + sizes.str(shape[k]));
      flat = flat * *shape[k].constant() + *at;
    } else {
      fixed = false;
    }
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

bool Lowering::inferBinary(const BinaryExpr &expr, const Scope &scope,
                           Equation &eq, bool weak, Info &info) {
  const Info *a = infer(*expr.lhs, scope, eq, weak);
  const Info *b = infer(*expr.rhs, scope, eq, weak);
  if (!a || !b)
    return false;
  std::string what = ("'" + ast::spelling(expr.op) + "'").str();
  if (!number(*a, expr.lhs->range, what) || !number(*b, expr.rhs->range, what))
    return false;
  auto ty = join(a->ty, b->ty);
  if (!ty)
    return error(expr.opRange, what + " between " + spelling(a->ty) + " and " +
                                   spelling(b->ty) +
                                   ": convert one of them, f32( )");
  bool ints = isInt(a->ty) && isInt(b->ty);
  info.ty = *ty;
  if (expr.op == BinaryOp::Pow && !(ints && isa<IntExpr>(expr.rhs.get())))
    info.ty = realOf(*ty);
  if (expr.op == BinaryOp::Div && ints) {
    if (expr.place == Place::Bound || expr.place == Place::Condition)
      return error(expr.opRange,
                   Twine("'/' between integers in a ") +
                       (expr.place == Place::Bound ? "range" : "condition") +
                       ": write // or f32( )");
    if (expr.place == Place::Value && !staticArgument)
      info.ty = realOf(*ty);
  }
  if (isReal(info.ty))
    info.hasReal = true;
  switch (expr.op) {
  case BinaryOp::Mul:
    info.mayBeAbsent = a->mayBeAbsent || b->mayBeAbsent;
    break;
  case BinaryOp::Div:
    info.mayBeAbsent = a->mayBeAbsent;
    break;
  case BinaryOp::Add:
  case BinaryOp::Sub:
    info.mayBeAbsent = a->mayBeAbsent && b->mayBeAbsent;
    break;
  default:
    break;
  }
  if (!merge(info, *a, expr.lhs->range) || !merge(info, *b, expr.rhs->range))
    return false;
  if (!a->fixed || !b->fixed) {
    // An integer division by a size is checked when sizes are known.
    return true;
  }
  return foldBinary(expr, *a, *b, info);
}

bool Lowering::inferCompare(const CompareExpr &expr, const Scope &scope,
                            Equation &eq, bool weak, Info &info) {
  info.ty = Ty::Bool;
  SmallVector<const Info *> parts;
  for (const ExprPtr &operand : expr.operands) {
    parts.push_back(infer(*operand, scope, eq, weak));
    if (!parts.back())
      return false;
  }
  std::optional<bool> all = true;
  for (auto [k, op] : llvm::enumerate(expr.ops)) {
    const Info &a = *parts[k], &b = *parts[k + 1];
    std::string what = ("'" + ast::spelling(op) + "'").str();
    bool equality = op == CompareOp::Eq || op == CompareOp::Ne;
    auto special = [](const Info &i) {
      return i.fixed && (i.fixed->kind == Binding::None ||
                         i.fixed->kind == Binding::String);
    };
    std::optional<bool> known;
    if (special(a) || special(b)) {
      bool none = (special(a) && a.fixed->kind == Binding::None) ||
                  (special(b) && b.fixed->kind == Binding::None);
      if (!equality || (!none && !(special(a) && special(b))))
        return error(expr.opRanges[k],
                     what + " between " + kindOf(a) + " and " + kindOf(b));
      if (none) {
        bool same = a.fixed && b.fixed && a.fixed->kind == b.fixed->kind;
        known = same == (op == CompareOp::Eq);
        // What is compared with none need not be a value.
        if (*known == false)
          all = false;
        continue;
      }
      auto x = a.fixed->text.plain(), y = b.fixed->text.plain();
      if (!x || !y) {
        needsUnroll = true;
        return false;
      }
      if ((*x == *y) != (op == CompareOp::Eq))
        all = false;
      continue;
    }
    bool bools = a.ty == Ty::Bool && b.ty == Ty::Bool;
    if (!(bools && equality)) {
      if (!number(a, expr.operands[k]->range, what) ||
          !number(b, expr.operands[k + 1]->range, what))
        return false;
      if (!join(a.ty, b.ty))
        return error(expr.opRanges[k], what + " between " + spelling(a.ty) +
                                           " and " + spelling(b.ty) +
                                           ": convert one of them, f32( )");
    }
    if (a.fixed && b.fixed)
      known = foldCompare(op, *a.fixed, *b.fixed);
    if (!known)
      all = all == false ? all : std::nullopt;
    else if (!*known)
      all = false;
  }
  for (auto [operand, part] : llvm::zip(expr.operands, parts)) {
    bool special = part->fixed && (part->fixed->kind == Binding::None ||
                                   part->fixed->kind == Binding::String);
    if (!special && !(all && part->whole) &&
        !merge(info, *part, operand->range))
      return false;
  }
  if (all) {
    info.fixed = Binding::ofBool(*all);
    info.used.clear();
    info.pure = true;
  }
  return true;
}

bool Lowering::inferIf(const IfExpr &expr, const Scope &scope, Equation &eq,
                       bool weak, Info &info) {
  const Info *c = infer(*expr.condition, scope, eq, weak);
  if (!c || !boolean(*c, expr.condition->range, "the condition of 'if'"))
    return false;
  if (c->fixed) {
    const Info *chosen = infer(
        c->fixed->flag ? *expr.thenValue : *expr.elseValue, scope, eq, weak);
    if (chosen)
      info = *chosen;
    return chosen;
  }
  const Info *a = infer(*expr.thenValue, scope, eq, true);
  const Info *b = infer(*expr.elseValue, scope, eq, true);
  if (!a || !b)
    return false;
  auto usable = [](const Info &i) {
    return !i.fixed ||
           (i.fixed->kind != Binding::None && i.fixed->kind != Binding::String);
  };
  auto ty = join(a->ty, b->ty);
  if (!ty || !usable(*a) || !usable(*b))
    return error(expr.range, "the branches of 'if' do not go together: " +
                                 kindOf(*a) + " and " + kindOf(*b));
  info.ty = *ty;
  info.hasReal = isReal(*ty);
  info.mayBeAbsent = a->mayBeAbsent || b->mayBeAbsent;
  return merge(info, *c, expr.condition->range) &&
         merge(info, *a, expr.thenValue->range) &&
         merge(info, *b, expr.elseValue->range);
}

std::string Lowering::kindOf(const Info &info) {
  if (info.fixed && info.fixed->kind == Binding::None)
    return "none";
  if (info.fixed && info.fixed->kind == Binding::String)
    return "a string";
  return spelling(info.ty).str();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Scope Lowering::inside(const ReduceExpr &expr, const Scope &scope,
                       Equation &eq) {
  Scope inner = scope;
  for (Idx *idx : eq.binders[{&expr, scope.env.get()}])
    inner.indices[idx->name] = idx;
  return inner;
}

bool Lowering::inferReduce(const ReduceExpr &expr, const Scope &scope,
                           Equation &eq, bool weak, Info &info) {
  SmallVector<Idx *, 2> ids;
  for (const Binder &binder : expr.binders) {
    for (Idx *other : ids)
      if (other->name == binder.name.text)
        return error(binder.name.range,
                     "index '" + binder.name.text + "' is bound twice",
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
                 "'" + op + "' over a whole tensor: write its indices");
  bool isBool = a->ty == Ty::Bool && !(a->fixed && !a->fixed->isStatic());
  switch (expr.op) {
  case ReduceOp::Any:
  case ReduceOp::All:
    if (!boolean(*a, expr.operand->range, "'" + op + "'"))
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
    if (!number(*a, expr.operand->range, "'" + op + "'"))
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
    warn(expr.opRange, "'" + op +
                           "' as the right operand of '/' reaches to the end "
                           "of the product: put it in parentheses");
  return true;
}

bool Lowering::inferSoftmax(const SoftmaxExpr &expr, const Scope &scope,
                            Equation &eq, bool weak, Info &info) {
  StringRef op = expr.isLog ? "log_softmax" : "softmax";
  SmallVector<Idx *, 2> ids;
  Scope outside = scope;
  for (const Binder &binder : expr.binders) {
    auto it = scope.indices.find(binder.name.text);
    if (it == scope.indices.end())
      return error(binder.name.range,
                   "'" + binder.name.text + "' is no index of this equation; " +
                       op + " names an index that stays free");
    if (llvm::is_contained(ids, it->second))
      return error(binder.name.range,
                   "index '" + binder.name.text + "' is named twice");
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
  if (!a || !number(*a, expr.operand->range, "'" + op + "'"))
    return false;
  if (a->whole || (where && where->whole) || (sink && sink->whole))
    return error(expr.operand->range,
                 "'" + op + "' over a whole tensor: write its indices");
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
  info.mayBeAbsent = where && !expr.isLog;
  return true;
}
