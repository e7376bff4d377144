//===- Calls.cpp - Functions, inlined -------------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"
#include "support/Format.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::cast;
using llvm::dyn_cast;

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
  if (changesStates(expr, *scope.env->file))
    return error(expr.range,
                 format("'{}' changes states: expected a line of its own, "
                        "y = {}(..)",
                        expr.callee.text, expr.callee.text),
                 Note{fn->name.range, "defined here"});
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

/// The function that is called with states of the caller; null: there is none.
const FnDecl *Analysis::changesStates(const Expr &expr, const ast::File &file) {
  auto *call = dyn_cast<CallExpr>(&inParens(expr));
  const FnDecl *fn = call ? program.findFn(file, call->callee.text) : nullptr;
  bool any = fn && llvm::any_of(fn->args, [](const Argument &arg) {
               return arg.isState;
             });
  return any ? fn : nullptr;
}

/// A state under the function's own name.
bool Analysis::bindState(const FnDecl &fn, const Argument &formal,
                         const Expr *given, const CallExpr &expr,
                         const Scope &scope, const EnvPtr &env,
                         std::vector<Extents> &shapes) {
  auto *name = given ? dyn_cast<NameExpr>(given) : nullptr;
  if (!name || !scope.env->states.count(name->name))
    return error(given ? given->range : expr.range,
                 format("argument '{}' of '{}' is a state, which the call may "
                        "change: expected the name of one",
                        formal.name.text, fn.name.text),
                 Note{formal.name.range, "declared here"});
  const Binding &state = scope.env->names.find(name->name)->second;
  if (state.kind == Binding::Poison)
    return false;
  if (state.kind != Binding::Tensor)
    return error(given->range,
                 format("the state '{}' is {} here, expected a tensor",
                        name->name, kindOf(state)),
                 Note{state.place, "assigned here"});
  const TensorVal &tensor = state.tensor;
  auto want = formal.type->element
                  ? tyOf(*formal.type->element, formal.type->range)
                  : tensor.elem;
  if (!want)
    return false;
  if (*want != tensor.elem)
    return error(given->range,
                 format("argument '{}' of '{}' is {}, found {}",
                        formal.name.text, fn.name.text, spelling(*want),
                        spelling(tensor.elem)),
                 Note{formal.name.range, "declared here"});
  shapes.push_back(
      {formal.type.get(), tensor.shape, formal.name.text.str(), given->range});
  env->states.insert(formal.name.text.str());
  env->names[formal.name.text.str()] = state;
  return true;
}

/// Binds one argument of a call in the function's own `env`: `given`, or the
/// default where that is null.
bool Analysis::bindArgument(const FnDecl &fn, const CallExpr &expr,
                            const Argument &formal, const Expr *given,
                            const Scope &scope, Equation &eq, const EnvPtr &env,
                            std::vector<Extents> &shapes) {
  if (formal.isState)
    return bindState(fn, formal, given, expr, scope, env, shapes);
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

/// Is there room for one more call?
bool Analysis::mayCall(const FnDecl &fn, const CallExpr &expr) {
  std::string name = fn.name.text.str();
  constexpr size_t most = 1000;
  if (active.size() >= most) {
    return error(
        expr.range,
        llvm::is_contained(active, &fn)
            ? heed::format("'{}' calls itself without end", name)
            : heed::format("calls within calls of functions, more than {}",
                           most),
        Note{fn.name.range, "defined here"});
  }
  constexpr unsigned mostCalls = 100000;
  if (++numCalls > mostCalls) {
    tooManyCopies = true;
    return error(
        expr.range,
        format("'{}' is called here beyond {} calls of functions in one "
               "model, each of which is code of its own",
               name, mostCalls),
        Note{fn.name.range, "defined here"});
  }
  return true;
}

std::optional<std::vector<sema::Result>> Analysis::call(const FnDecl &fn,
                                                        const CallExpr &expr,
                                                        const Scope &scope,
                                                        Equation &eq) {
  if (!mayCall(fn, expr))
    return std::nullopt;
  auto given = givenArguments(fn, expr);
  if (!given)
    return std::nullopt;
  auto env = std::make_shared<Env>();
  env->file = fn.file;
  eq.keep.push_back(env);
  std::vector<Extents> shapes;
  llvm::StringMap<std::string> states; // of the caller, by its names
  for (auto [formal, actual] : llvm::zip(fn.args, *given)) {
    if (!bindArgument(fn, expr, formal, actual, scope, eq, env, shapes))
      return std::nullopt;
    if (!formal.isState)
      continue;
    StringRef state = cast<NameExpr>(actual)->name;
    if (!states.try_emplace(state, formal.name.text.str()).second) {
      error(actual->range, format("the state '{}' is given twice", state));
      return std::nullopt;
    }
  }
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
  for (auto &[theirs, own] : states) {
    Binding &state = scope.env->names.find(theirs)->second;
    Range place = state.place;
    state = env->names.find(own)->second;
    state.place = place;
  }
  if (!frame.results && states.empty()) {
    error(fn.name.range, format("'{}' returns nothing", fn.name.text));
    return std::nullopt;
  }
  return frame.results ? frame.results : std::vector<sema::Result>();
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
  if (info->named && (info->named->kind == Binding::Scalar ||
                      info->named->kind == Binding::Tensor)) {
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
