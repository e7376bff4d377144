//===- BuiltinCalls.cpp - Calls of built-in functions, and casts ----------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"
#include "support/Format.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APSInt.h"
#include "llvm/ADT/STLExtras.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;

/// What they are of: reals only, or integers too (then the type stays).
bool Analysis::isBuiltin(StringRef name) {
  return findBuiltin(name) || elementType(name).has_value();
}

bool Analysis::inferExtent(const CallExpr &expr, const Scope &scope,
                           Info &info) {
  Equation inner;
  const Info *tensor = infer(*expr.args[0], scope, inner);
  auto axis = sizeValue(*expr.args[1], scope.env, "the axis of extent");
  if (!tensor || !axis)
    return false;
  auto k = axis->constant();
  std::optional<Shape> whole = tensor->whole;
  if (tensor->fixed && tensor->fixed->kind == Binding::List)
    whole = tensor->fixed->table->extents();
  if (!whole || !k || *k >= int64_t(whole->size()))
    return error(expr.range, "'extent(x, k)' takes a whole tensor and the "
                             "static number of one of its axes");
  info.fixed = Binding::of((*whole)[*k]);
  return true;
}

/// `kind(x)`: of what kind is a value that a config may have in several forms?
bool Analysis::inferKind(const CallExpr &expr, const Scope &scope, Info &info) {
  Equation inner;
  const Info *arg = infer(*expr.args[0], scope, inner);
  if (!arg)
    return false;
  bool isTable = arg->named && arg->named->kind == Binding::Table;
  if (!arg->fixed && !isTable)
    return error(expr.range, "'kind' takes a static value");
  Binding::Kind of = isTable ? Binding::Table : arg->fixed->kind;
  StringRef kind = of == Binding::None     ? "none"
                   : of == Binding::Bool   ? "bool"
                   : of == Binding::String ? "string"
                   : of == Binding::Record ? "record"
                   : of == Binding::List   ? "list"
                   : of == Binding::Table  ? "table"
                                           : "number";
  Binding binding;
  binding.kind = Binding::String;
  binding.text.parts.push_back({kind.str(), std::nullopt});
  info.fixed = binding;
  return true;
}

/// `error("...")`: the code that is chosen ends in a message. `has("...")`: is
/// there a weight of that name?
bool Analysis::inferText(const CallExpr &expr, const Scope &scope, Info &info) {
  StringRef name = expr.callee.text;
  auto value = staticValue(*expr.args[0], scope.env,
                           format("the argument of '{}'", name));
  if (!value)
    return false;
  auto text =
      value->kind == Binding::String ? value->text.plain() : std::nullopt;
  if (value->kind != Binding::String)
    return error(expr.args[0]->range,
                 format("'{}' takes a string, found {}", name, kindOf(*value)));
  if (!text) {
    needsUnroll |= rolled != 0;
    return error(
        expr.args[0]->range,
        format("the argument of '{}' is not known when compiling", name));
  }
  if (name == "error")
    return error(expr.range, *text);
  if (!options.weights)
    return error(expr.range, "'has' asks for a weight: give --weights");
  info.fixed = Binding::ofBool(options.weights->count(*text));
  info.ty = Ty::Bool;
  return true;
}

bool Analysis::inferLog2(const CallExpr &expr, const Info &arg, Info &info) {
  bool isSize = arg.fixed && arg.fixed->kind == Binding::Int;
  if (!isSize || sizes.nonNegative(-arg.fixed->size))
    return error(expr.range, "'ilog2' takes a static integer of 1 or more");
  const Size &size = arg.fixed->size;
  if (!sizes.nonNegative(size - 1) && !sizes.isAssumed(size - 1))
    requireLessEqual(Size(1), size, expr.range,
                     format("'ilog2' of {} = {{1}}: expected 1 or more",
                            escape(sizes.str(size))));
  return true;
}

/// An integer of a value known when compiling; none where it is no integer of
/// this type yet.
static std::optional<int64_t> foldCast(Ty ty, const Info &arg) {
  if (!arg.fixed || !isInt(ty))
    return std::nullopt;
  unsigned width = ty == Ty::I8 ? 8 : ty == Ty::I32 ? 32 : 64;
  if (arg.fixed->kind == Binding::Int) {
    auto number = arg.fixed->size.constant();
    return number && llvm::isIntN(width, *number) ? number : std::nullopt;
  }
  if (arg.fixed->kind != Binding::Real)
    return std::nullopt;
  // Truncates, saturates, and takes NaN to 0.
  llvm::APSInt integer(width, /*isUnsigned=*/false);
  bool isExact;
  llvm::APFloat(arg.fixed->real)
      .convertToInteger(integer, llvm::APFloat::rmTowardZero, &isExact);
  return integer.getSExtValue();
}

bool Analysis::inferCast(const CallExpr &expr, ElementType to, const Info &arg,
                         Info &info) {
  auto ty = tyOf(to, expr.callee.range);
  if (!ty)
    return false;
  info.ty = *ty;
  info.hasReal |= isReal(*ty) || isReal(arg.ty);
  info.mayBeAbsent = arg.mayBeAbsent;
  if (auto folded = foldCast(*ty, arg)) {
    info.fixed = Binding::of(Size(*folded));
    info.hasReal = false;
  }
  return true;
}

bool Analysis::inferBuiltin(const CallExpr &expr, const Scope &scope,
                            Equation &eq, bool weak, Info &info) {
  StringRef name = expr.callee.text;
  const Builtin *row = findBuiltin(name); // null: a cast
  unsigned want = row ? row->arity : 1;
  if (expr.args.size() != want || !expr.named.empty())
    return error(expr.range, format("'{}' takes {}, {} given", name,
                                    counted(want, "argument", "arguments"),
                                    expr.args.size() + expr.named.size()));
  if (name == "extent")
    return inferExtent(expr, scope, info);
  if (name == "kind")
    return inferKind(expr, scope, info);
  if (name == "error" || name == "has")
    return inferText(expr, scope, info);
  SmallVector<const Info *, 3> args;
  for (const ExprPtr &arg : expr.args) {
    const Info *part = infer(*arg, scope, eq, weak);
    if (!part || !number(*part, arg->range, format("'{}'", name)) ||
        !merge(info, *part, arg->range))
      return false;
    args.push_back(part);
  }
  if (!row)
    return inferCast(expr, *elementType(name), *args[0], info);
  if (name == "ilog2" && !inferLog2(expr, *args[0], info))
    return false;
  info.ty = args[0]->ty;
  for (const Info *arg : llvm::drop_begin(args)) {
    auto ty = join(info.ty, arg->ty);
    if (!ty)
      return error(expr.range,
                   format("'{}' of {} and {}: convert one of them, f32( )",
                          name, spelling(info.ty), spelling(arg->ty)));
    info.ty = *ty;
  }
  if (row->result == Builtin::Real)
    info.ty = realOf(info.ty);
  info.hasReal |= isReal(info.ty);
  foldBuiltin(*row, args, info);
  return true;
}

void Analysis::foldBuiltin(const Builtin &row, ArrayRef<const Info *> args,
                           Info &info) {
  if (!llvm::all_of(args, [](const Info *arg) { return arg->fixed; }))
    return;
  if (info.ty == Ty::AnyInt) {
    SmallVector<Size, 3> x;
    for (const Info *arg : args)
      x.push_back(arg->fixed->size);
    if (row.ofSizes)
      info.fixed = Binding::of(row.ofSizes(sizes, x));
    return;
  }
  SmallVector<double, 3> x;
  for (const Info *arg : args) {
    auto value = arg->fixed->number();
    if (!value)
      return;
    x.push_back(*value);
  }
  if (row.ofNumbers)
    info.fixed = Binding::of(row.ofNumbers(x.data()));
}
