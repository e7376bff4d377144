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

#include "Analysis.h"
#include "support/Format.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::cast;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Small parts
//===----------------------------------------------------------------------===//

const Info &Analysis::info(const Expr &expr, const Scope &scope,
                           const Equation &eq) {
  auto it = eq.infos.find({&expr, scope.env.get()});
  assert(it != eq.infos.end() && "expression was not inferred");
  return it->second;
}

bool Analysis::merge(Info &into, const Info &from, Range place) {
  for (Idx *idx : from.used)
    if (!llvm::is_contained(into.used, idx))
      into.used.push_back(idx);
  into.pure &= from.pure;
  into.hasReal |= from.hasReal;
  if (from.whole) {
    if (into.whole) {
      if (into.whole->size() != from.whole->size())
        return error(place, format("whole tensors of shapes {} and {}: shapes "
                                   "must be equal (no broadcasting)",
                                   str(*into.whole), str(*from.whole)));
      for (auto [k, pair] :
           llvm::enumerate(llvm::zip(*into.whole, *from.whole))) {
        auto [a, b] = pair;
        if (sizes.different(a, b))
          return error(place, format("whole tensors of shapes {} and {}: "
                                     "shapes must be equal (no broadcasting)",
                                     str(*into.whole), str(*from.whole)));
        if (!requireEqual(a, b, place, format("axis {} of a whole tensor", k),
                          {}))
          return false;
      }
    } else {
      into.whole = from.whole;
    }
  }
  return true;
}

bool Analysis::number(const Info &info, Range place, const Twine &what) {
  if (info.isNoValue())
    return error(place,
                 format("{} needs numbers, found {}", what, kindOf(info)));
  if (info.ty == Ty::Bool)
    return error(
        place,
        format("{} needs numbers, found bool; write (if .. then 1 else 0)",
               what));
  return true;
}

bool Analysis::boolean(const Info &info, Range place, const Twine &what) {
  if (info.isNoValue())
    return error(place, format("{} needs bool, found {}", what, kindOf(info)));
  if (info.ty != Ty::Bool)
    return error(place,
                 format("{} needs bool, found {}", what, spelling(info.ty)));
  return true;
}

std::string Analysis::str(ArrayRef<Size> shape) {
  std::string text = "[";
  for (const Size &size : shape)
    text += (text.size() > 1 ? ", " : "") + sizes.str(size);
  return format("{}]", text);
}

std::string Analysis::kindOf(const Info &info) {
  if (info.isNoValue())
    return kindOf(*info.fixed);
  return spelling(info.ty).str();
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

const Info *Analysis::infer(const Expr &expr, const Scope &scope, Equation &eq,
                            bool weak) {
  Key key{&expr, scope.env.get()};
  if (auto it = eq.infos.find(key); it != eq.infos.end())
    return &it->second;
  // What the passes and the emission walk by recursion, too.
  constexpr unsigned most = 16384;
  if (depth >= most) {
    error(expr.range,
          format("an expression higher than {} operators with the functions "
                 "that it calls: give a part of it a name",
                 most));
    return nullptr;
  }
  // Each call is a copy of its function, so that few lines can ask for more
  // than a machine holds.
  constexpr size_t mostNodes = 65536;
  if (tooManyCopies)
    return nullptr;
  if (eq.infos.size() >= mostNodes) {
    tooManyCopies = true;
    std::string in =
        active.empty()
            ? ""
            : heed::format(", here in '{}'", active.back()->name.text.str());
    error(expr.range,
          format("an expression of more than {} operators and operands with "
                 "the functions that it calls{}: give a part of it a name",
                 mostNodes, in));
    return nullptr;
  }
  llvm::SaveAndRestore deeper(depth, depth + 1);
  Info info;
  if (!inferNode(expr, scope, eq, weak, info))
    return nullptr;
  return &(eq.infos[key] = std::move(info));
}

/// Long: one kind of expression after the other.
bool Analysis::inferNode(const Expr &expr, const Scope &scope, Equation &eq,
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
  case ExprKind::Record:
    info.fixed.emplace();
    info.fixed->kind = Binding::Record;
    info.fixed->record = &cast<RecordExpr>(expr);
    return true;
  }
  return false;
}

/// Says that nothing has this name. \p isPosition: alone between the brackets
/// of a tensor, where it would be an index.
bool Analysis::unknownName(const NameExpr &expr, const Scope &scope,
                           const Equation &eq, bool isPosition) {
  std::vector<StringRef> known = visible(*scope.env);
  for (auto &index : scope.indices)
    known.push_back(index.first);
  SmallVector<Note, 1> notes;
  for (auto &[reduction, indices] : eq.binders)
    for (Idx *index : indices)
      if (notes.empty() && index->name == expr.name)
        notes.push_back(Note{
            index->place,
            "it is an index here, where the operand ends before the next '+' "
            "or '-': parentheses take in more"});
  if (auto it = scope.env->ended.find(expr.name);
      it != scope.env->ended.end() && notes.empty())
    notes.push_back(it->second);
  std::string near = hint(expr.name, known);
  if (isPosition && notes.empty() && near.empty())
    near = format(": an index stands on the left side, y[{}], or in a "
                  "reduction, sum({})",
                  expr.name, expr.name);
  return error(expr.range, format("unknown name '{}'{}", expr.name, near),
               notes);
}

bool Analysis::inferName(const NameExpr &expr, const Scope &scope, Equation &eq,
                         bool weak, Info &info) {
  if (auto it = scope.indices.find(expr.name); it != scope.indices.end()) {
    info.used.push_back(it->second);
    return true;
  }
  auto binding = lookup(*scope.env, expr.name);
  if (!binding)
    return unknownName(expr, scope, eq, false);
  return inferBinding(*binding, expr, eq, weak, info);
}

/// Long: one kind of binding after the other.
bool Analysis::inferBinding(const Binding &binding, const Expr &expr,
                            Equation &eq, bool weak, Info &info) {
  switch (binding.kind) {
  case Binding::Poison:
    return false;
  case Binding::None:
  case Binding::Record:
  case Binding::List:
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
    info.whole = binding.table->extents();
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
  case Binding::Stacked:
    return error(expr.range, "in a step of the scan only the row of that step "
                             "is there: read it with [ ]");
  }
  info.named = binding;
  if (info.whole && !eq.wholeAllowed)
    return error(expr.range, "a whole tensor in an equation with indices: "
                             "read it with [ ]");
  return true;
}
