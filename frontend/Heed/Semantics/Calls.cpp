//===- Calls.cpp - Functions, inlined, and built-ins ----------------------===//
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
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;

//===----------------------------------------------------------------------===//
// Built-in functions and casts
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

bool Analysis::inferCall(const CallExpr &expr, const Scope &scope, Equation &eq,
                         bool weak, Info &info) {
  const FnDecl *fn = program.findFn(*scope.env->file, expr.callee.text);
  // A library function never takes the place of a built-in.
  if (fn && fn->file->isLibrary && isBuiltin(expr.callee.text))
    fn = nullptr;
  if (!fn) {
    if (isBuiltin(expr.callee.text))
      return inferBuiltin(expr, scope, eq, weak, info);
    static const llvm::StringSet<> later = {"top_k", "sort", "scatter",
                                            "append"};
    if (later.contains(expr.callee.text))
      return error(expr.callee.range,
                   format("'{}' is not supported yet", expr.callee.text));
    std::vector<StringRef> known = program.visibleFns(*scope.env->file);
    for (const Builtin &row : builtins())
      if (row.result != Builtin::Static)
        known.push_back(row.name);
    llvm::sort(known);
    return error(expr.callee.range,
                 format("unknown function '{}'{}", expr.callee.text,
                        hint(expr.callee.text, known)));
  }
  Key key{&expr, scope.env.get()};
  auto it = eq.calls.find(key);
  if (it == eq.calls.end()) {
    auto results = call(*fn, expr, scope, eq);
    if (!results)
      return false;
    if (results->size() != 1)
      return error(expr.range,
                   format("'{}' has {} results: write a, b = {}(..)",
                          expr.callee.text, results->size(), expr.callee.text));
    it = eq.calls.emplace(key, (*results)[0].value).first;
  }
  // A function of one expression is entered only now.
  active.push_back(fn);
  llvm::scope_exit leave([&] { active.pop_back(); });
  return inferBinding(it->second, expr, eq, weak, info);
}

/// Which expression is given for which argument of `fn`; null: the default.
std::optional<SmallVector<const Expr *>>
Analysis::givenArguments(const FnDecl &fn, const CallExpr &expr) {
  std::string name = fn.name.text.str();
  SmallVector<const Expr *> given(fn.args.size(), nullptr);
  size_t front = llvm::count_if(
      fn.args, [](const Argument &arg) { return !arg.afterSemicolon; });
  if (expr.args.size() > front) {
    error(expr.args[front]->range,
          format("'{}' takes {} before the semicolon, {} given", name,
                 counted(front, "argument", "arguments"), expr.args.size()),
          Note{fn.name.range, "defined here"});
    return std::nullopt;
  }
  for (auto [k, arg] : llvm::enumerate(expr.args))
    given[k] = arg.get();
  for (const NamedArgument &arg : expr.named) {
    auto it = llvm::find_if(fn.args, [&](const Argument &formal) {
      return formal.name.text == arg.name.text;
    });
    if (it == fn.args.end()) {
      std::vector<StringRef> known;
      for (const Argument &formal : fn.args)
        known.push_back(formal.name.text);
      error(arg.name.range,
            format("'{}' has no argument '{}'{}", name, arg.name.text,
                   hint(arg.name.text, known)),
            Note{fn.name.range, "defined here"});
      return std::nullopt;
    }
    if (given[it - fn.args.begin()]) {
      error(arg.name.range,
            format("argument '{}' is given twice", arg.name.text));
      return std::nullopt;
    }
    given[it - fn.args.begin()] = arg.value.get();
  }
  return given;
}

/// Binds one argument of a call in the function's own `env`: `given`, or the
/// default where that is null.
bool Analysis::bindArgument(const FnDecl &fn, const CallExpr &expr,
                            const Argument &formal, const Expr *given,
                            const Scope &scope, Equation &eq, const EnvPtr &env,
                            std::vector<Extents> &shapes) {
  Binding binding;
  std::string what =
      format("argument '{}' of '{}'", formal.name.text, fn.name.text);
  Range place = given ? given->range : expr.range;
  if (given) {
    if (!argument(formal, *given, scope, eq, what, binding))
      return false;
  } else {
    if (!formal.defaultValue)
      return error(expr.range,
                   format("'{}' needs its argument '{}'", fn.name.text,
                          formal.name.text),
                   Note{formal.name.range, "declared here"});
    auto value = constant(*formal.defaultValue, env, what);
    if (!value)
      return false;
    binding = *value;
  }
  if (formal.type && formal.type->hasExtents && binding.kind != Binding::None) {
    if (binding.kind == Binding::Table)
      binding = Binding::of(tableTensor(binding.table, false, expr.range));
    if (binding.kind != Binding::Tensor)
      return error(place, format("{} must be a tensor, found {}", what,
                                 kindOf(binding)));
    if (formal.type->element) {
      auto ty = tyOf(*formal.type->element, formal.type->range);
      if (!ty)
        return false;
      if (*ty != binding.tensor.elem)
        return error(place,
                     format("{} is {}, found {}", what, spelling(*ty),
                            spelling(binding.tensor.elem)),
                     Note{formal.name.range, "declared here"});
    }
    shapes.push_back({formal.type.get(), binding.tensor.shape,
                      formal.name.text.str(), place});
  }
  binding.place = formal.name.range;
  env->names[formal.name.text.str()] = binding;
  return true;
}

std::optional<std::vector<sema::Result>> Analysis::call(const FnDecl &fn,
                                                        const CallExpr &expr,
                                                        const Scope &scope,
                                                        Equation &eq) {
  std::string name = fn.name.text.str();
  constexpr size_t most = 1000;
  if (active.size() >= most) {
    error(expr.range,
          llvm::is_contained(active, &fn)
              ? heed::format("'{}' calls itself without end", name)
              : heed::format("calls within calls of functions, more than {}",
                             most),
          Note{fn.name.range, "defined here"});
    return std::nullopt;
  }
  constexpr unsigned mostCalls = 100000;
  if (++numCalls > mostCalls) {
    tooManyCopies = true;
    error(expr.range,
          format("'{}' is called here beyond {} calls of functions in one "
                 "model, each of which is code of its own",
                 name, mostCalls),
          Note{fn.name.range, "defined here"});
    return std::nullopt;
  }
  auto given = givenArguments(fn, expr);
  if (!given)
    return std::nullopt;
  auto env = std::make_shared<Env>();
  env->file = fn.file;
  eq.keep.push_back(env);
  std::vector<Extents> shapes;
  for (auto [formal, actual] : llvm::zip(fn.args, *given))
    if (!bindArgument(fn, expr, formal, actual, scope, eq, env, shapes))
      return std::nullopt;
  if (!bindShapes(shapes, env, false))
    return std::nullopt;
  active.push_back(&fn);
  llvm::scope_exit leave([&] { active.pop_back(); });
  auto staticBefore = staticArgument;
  staticArgument = false;
  Frame frame;
  frame.env = env;
  frame.outer = &eq;
  bool ok = execute(fn.body.stmts, frame);
  staticArgument = staticBefore;
  if (!ok)
    return std::nullopt;
  if (!frame.results) {
    error(fn.name.range, format("'{}' returns nothing", name));
    return std::nullopt;
  }
  return frame.results;
}

/// What the argument `formal` is bound to.
bool Analysis::argument(const Argument &formal, const Expr &actual,
                        const Scope &scope, Equation &eq,
                        const std::string &what, Binding &binding) {
  bool isStatic = formal.afterSemicolon && !formal.type;
  bool wantsTensor = formal.type && formal.type->hasExtents;
  auto before = staticArgument;
  staticArgument = isStatic;
  // Whole tensors may stand in arguments, whatever stands around the call.
  bool wholeBefore = eq.wholeAllowed;
  eq.wholeAllowed = true;
  const Info *info = infer(actual, scope, eq);
  eq.wholeAllowed = wholeBefore;
  staticArgument = before;
  if (!info)
    return false;
  if (info->fixed) {
    binding = *info->fixed;
    if (wantsTensor && binding.kind != Binding::None)
      return error(actual.range, format("{} must be a tensor, found {}", what,
                                        kindOf(binding)));
    return true;
  }
  if (isStatic && info->named && info->named->kind == Binding::Table) {
    binding = *info->named;
    return true;
  }
  if (isStatic && !(info->pure && info->used.empty())) {
    return error(
        actual.range,
        format("{} must be static (a constant, a size or a string)", what));
  }
  if (wantsTensor || info->whole) {
    if (!info->used.empty() || (!info->whole && !info->named))
      return error(actual.range,
                   format("{} must be a whole tensor, without indices", what));
    // Untyped arguments stay expressions, so that they fuse with the body.
    if (!wantsTensor && !info->named) {
      binding.kind = Binding::Thunk;
      binding.thunk = std::make_shared<Thunk>(
          Thunk{&actual, std::make_shared<Scope>(scope)});
      return true;
    }
    auto tensor = materialise(actual, scope);
    if (!tensor)
      return false;
    binding = Binding::of(*tensor);
    return true;
  }
  if (info->named && info->named->kind == Binding::Scalar) {
    binding = *info->named;
    return true;
  }
  binding.kind = Binding::Thunk;
  binding.thunk =
      std::make_shared<Thunk>(Thunk{&actual, std::make_shared<Scope>(scope)});
  return true;
}

//===----------------------------------------------------------------------===//
// Tensors of their own
//===----------------------------------------------------------------------===//

std::optional<TensorVal> Analysis::tensorOf(const Binding &binding,
                                            Range place) {
  switch (binding.kind) {
  case Binding::Tensor:
    return binding.tensor;
  case Binding::Table:
    return tableTensor(binding.table, false, place);
  case Binding::Collection: {
    Equation none;
    auto box = reached(*binding.collection, {}, Scope(), none, place);
    return box ? assemble(*binding.collection, *box, place) : std::nullopt;
  }
  case Binding::Thunk:
    return materialise(*binding.thunk->expr, *binding.thunk->scope);
  default:
    return std::nullopt;
  }
}

std::optional<TensorVal> Analysis::materialise(const Expr &expr,
                                               const Scope &scope) {
  Scope bare;
  bare.env = scope.env;
  bare.dots = std::nullopt;
  Binding result;
  if (!lowerWhole(expr, bare, nullptr, result))
    return std::nullopt;
  return tensorOf(result, expr.range);
}
