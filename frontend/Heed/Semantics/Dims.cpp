//===- Dims.cpp - Binding dims, and checks on sizes -----------------------===//
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
using llvm::cast;
using llvm::dyn_cast;
using llvm::Twine;

std::string Analysis::describe(const Size &size) { return sizes.str(size); }

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// A check that stands in a loop is void where the loop has no turn.
void Analysis::require(Require::Kind kind, ArrayRef<Size> of, Range place,
                       const Twine &message, ArrayRef<Size> values,
                       ArrayRef<Size> empty, bool low) {
  Require step;
  step.kind = kind;
  step.sizes = uses(of);
  step.values = uses(values);
  step.empty = uses(empty);
  step.low = low;
  step.message = message.str();
  step.place = place;
  auto inLoop = [&](const Size &size) { return sizes.isInLoop(size); };
  step.inLoop = llvm::any_of(of, inLoop) || llvm::any_of(empty, inLoop);
  for (const RolledLoop &loop : loops)
    if (!surelyRuns(loop))
      step.inLoop = step.inLoop || inLoop(loop.lo) || inLoop(loop.hi);
  for (const RolledLoop &loop : loops)
    if (!step.inLoop && !surelyRuns(loop))
      step.emptyLoops.push_back({useOf(sizes, loop.lo), useOf(sizes, loop.hi)});
  sink->push_back(std::move(step));
}

/// a < b, unless something is empty. An extent that is written as an expression
/// may be: H*0.
bool Analysis::isAlwaysLess(const Size &a, const Size &b) {
  SmallVector<unsigned> dims;
  for (unsigned id = 0; id < sizes.numAtoms(); ++id)
    if (sizes.atom(id).kind == Atom::Dim &&
        !StringRef(sizes.atom(id).name).starts_with("("))
      dims.push_back(id);
  return sizes.nonNegative(b - a - 1, dims);
}

bool Analysis::requireEqual(const Size &a, const Size &b, Range place,
                            const Twine &what, ArrayRef<Note> notes,
                            const Twine &atRunTime) {
  if (sizes.equal(a, b))
    return true;
  std::string text = what.str(), message = atRunTime.str();
  if (message.empty())
    message = format("{}: {{0}} and {{1}}", escape(text));
  Size d = sizes.simplify(a - b);
  // A dim may be 0, where that is what is asked.
  bool asksForZero = a.is(0) || b.is(0);
  if (sizes.different(a, b) ||
      (!asksForZero && (isAlwaysLess(a, b) || isAlwaysLess(b, a))))
    return error(place, text, notes);
  if (rolled && (sizes.hasLoop(a) || sizes.hasLoop(b))) {
    // With the loop unrolled the two may be plain numbers.
    needsUnroll = true;
    return false;
  }
  require(Require::Equal, {a, b}, place, message, {a, b});
  sizes.assumeZero(d);
  return true;
}

void Analysis::requireLessEqual(const Size &a, const Size &b, Range place,
                                const Twine &message) {
  require(Require::LessEqual, {a, b}, place, message, {a, b});
  sizes.assumeNonNegative(b - a);
}

void Analysis::requirePositive(const Size &size, Range place, const Twine &op) {
  if (!llvm::is_contained(positive, size)) {
    positive.push_back(size);
    require(Require::NotZero, {size}, place,
            format("integer '{}' by {} = {{0}}", op, escape(sizes.str(size))),
            {size});
  }
}

/// Braces in a message of `attn.require` stand for values.
std::string Analysis::escape(StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '{' ? '(' : c == '}' ? ')' : c;
  return result;
}

//===----------------------------------------------------------------------===//
// Shapes that bind dims
//===----------------------------------------------------------------------===//

void Analysis::freeNames(const Expr &expr, const Env &env,
                         std::vector<const NameExpr *> &names) {
  switch (expr.kind) {
  case ExprKind::Name: {
    auto &name = cast<NameExpr>(expr);
    bool seen = llvm::any_of(
        names, [&](const NameExpr *other) { return other->name == name.name; });
    if (!seen && !lookup(env, name.name))
      names.push_back(&name);
    break;
  }
  case ExprKind::Paren:
    return freeNames(*cast<ParenExpr>(expr).inner, env, names);
  case ExprKind::Negate:
    return freeNames(*cast<NegateExpr>(expr).operand, env, names);
  case ExprKind::Binary:
    freeNames(*cast<BinaryExpr>(expr).lhs, env, names);
    freeNames(*cast<BinaryExpr>(expr).rhs, env, names);
    break;
  case ExprKind::Call:
    for (const ExprPtr &arg : cast<CallExpr>(expr).args)
      freeNames(*arg, env, names);
    break;
  case ExprKind::If:
    freeNames(*cast<IfExpr>(expr).condition, env, names);
    freeNames(*cast<IfExpr>(expr).thenValue, env, names);
    freeNames(*cast<IfExpr>(expr).elseValue, env, names);
    break;
  default:
    break;
  }
}

/// The extents of a type with `..` unfolded to nulls; false after an error.
bool Analysis::unfoldDots(const Extents &tensor, Env &env, bool isModel,
                          llvm::SmallVectorImpl<const Expr *> &out) {
  auto &written = tensor.type->extents;
  auto dots =
      llvm::find_if(written, [](const Extent &e) { return e.isDots(); });
  if (dots == written.end()) {
    if (written.size() != tensor.shape.size())
      return error(tensor.place,
                   format("'{}' has {}, its type has {}", tensor.name,
                          counted(tensor.shape.size(), "axis", "axes"),
                          written.size()),
                   Note{tensor.type->range, "the type"});
  } else {
    if (isModel)
      return error(dots->range, "'..' in the signature of a model");
    if (std::any_of(std::next(dots), written.end(),
                    [](const Extent &e) { return e.isDots(); }))
      return error(tensor.type->range, "two '..' in one type");
    if (tensor.shape.size() + 1 < written.size())
      return error(tensor.place,
                   format("'{}' has {}, its type needs at least {}",
                          tensor.name,
                          counted(tensor.shape.size(), "axis", "axes"),
                          written.size() - 1),
                   Note{tensor.type->range, "the type"});
    size_t first = dots - written.begin();
    size_t count = tensor.shape.size() + 1 - written.size();
    ArrayRef<Size> mine(tensor.shape.begin() + first, count);
    if (!env.dots) {
      env.dots.emplace(mine.begin(), mine.end());
    } else if (env.dots->size() != count) {
      return error(tensor.place,
                   format("'..' is {} in '{}', but {} before", str(mine),
                          tensor.name, str(*env.dots)));
    } else {
      for (auto [a, b] : llvm::zip(mine, *env.dots))
        if (!requireEqual(a, b, tensor.place,
                          format("'..' is {} in '{}', but {} before", str(mine),
                                 tensor.name, str(*env.dots)),
                          {}))
          return false;
    }
    for (const Extent &extent : written) {
      if (extent.isDots())
        out.append(count, nullptr);
      else
        out.push_back(extent.extent.get());
    }
    return true;
  }
  for (const Extent &extent : written)
    out.push_back(extent.extent.get());
  return true;
}

bool Analysis::bindShapes(ArrayRef<Extents> tensors, const EnvPtr &env,
                          bool isModel) {
  struct Open {
    const Expr *expr;
    Size actual;
    const Extents *tensor;
    unsigned axis;
  };
  std::vector<Open> open;
  for (const Extents &tensor : tensors) {
    SmallVector<const Expr *> axes;
    if (!unfoldDots(tensor, *env, isModel, axes))
      return false;
    for (auto [k, expr] : llvm::enumerate(axes)) {
      if (!expr)
        continue;
      auto *name = dyn_cast<NameExpr>(expr);
      if (name && !lookup(*env, name->name)) {
        Binding dim = Binding::of(tensor.shape[k]);
        dim.place = isModel ? name->range : tensor.place;
        dim.isDim = true;
        env->names[name->name.str()] = dim;
      } else {
        open.push_back({expr, tensor.shape[k], &tensor, unsigned(k)});
      }
    }
  }
  // An extent with two unknown dims waits for another to say one of them.
  auto waits = [&](const Open &axis) {
    std::vector<const NameExpr *> unknown;
    freeNames(*axis.expr, *env, unknown);
    return unknown.size() > 1;
  };
  bool ok = true;
  while (!open.empty()) {
    auto next = llvm::find_if_not(open, waits);
    if (next == open.end())
      next = open.begin();
    Open axis = *next;
    open.erase(next);
    ok &= bindExtent(*axis.expr, axis.actual, *axis.tensor, axis.axis, env);
  }
  return ok;
}

/// An extent that is no new name: what it says must be the actual one.
bool Analysis::bindExtent(const Expr &expr, const Size &actual,
                          const Extents &tensor, unsigned axis,
                          const EnvPtr &env) {
  std::vector<const NameExpr *> unknown;
  freeNames(expr, *env, unknown);
  std::string what = format("axis {} of '{}'", axis, tensor.name);
  if (unknown.size() > 1)
    return error(expr.range,
                 format("no input binds the dim '{}'", unknown[0]->name));
  if (unknown.size() == 1 && !solveDim(expr, *unknown[0], actual, env, what))
    return false;
  auto declared = sizeValue(expr, env, format("the extent of {}", what));
  if (!declared)
    return false;
  SmallVector<Note, 1> notes;
  std::string expected = sizes.str(*declared);
  if (auto *name = dyn_cast<NameExpr>(&expr)) {
    if (name->name != expected)
      expected = format("{} = {}", name->name, expected);
    auto binding = lookup(*env, name->name);
    if (binding && binding->place.isValid())
      notes.push_back(
          {binding->place, format("'{}' comes from here", name->name)});
  }
  return requireEqual(actual, *declared, tensor.place,
                      format("extent of '{}' (axis {}) is {}, expected {}",
                             tensor.name, axis, sizes.str(actual), expected),
                      notes,
                      format("extent of '{}' (axis {}) is {{0}}, expected {} = "
                             "{{1}}",
                             tensor.name, axis, escape(sizes.str(*declared))));
}

/// value = factor * atom + rest; no factor if the atom multiplies itself.
static std::pair<Size, Size> linearIn(const Size &value, unsigned id) {
  Size factor, rest;
  for (auto &[monomial, c] : value.terms) {
    auto count = llvm::count(monomial, id);
    Size term;
    if (count > 1)
      return {Size(), rest};
    if (count == 0) {
      term.terms[monomial] = c;
      rest = rest + term;
      continue;
    }
    Size::Monomial left = monomial;
    left.erase(llvm::find(left, id));
    term.terms[left] = c;
    factor = factor + term;
  }
  return {factor, rest};
}

/// That \p dim is not negative; \p what says where it comes from.
bool Analysis::requireDim(const Size &dim, Range place,
                          const std::string &what) {
  if (dim.constant())
    return error(
        place, format("{} = {}: a dim is not negative", what, sizes.str(dim)));
  requireLessEqual(Size(0), dim, place,
                   format("{} = {{1}}: a dim is not negative", escape(what)));
  return true;
}

/// Binds the one unknown of an extent like 2*R + 1.
bool Analysis::solveDim(const Expr &expr, const NameExpr &unknown,
                        const Size &actual, const EnvPtr &env,
                        const std::string &what) {
  std::string name = unknown.name.str();
  Size symbol = sizes.dim(name);
  unsigned id = *symbol.asAtom();
  Binding dim = Binding::of(symbol);
  dim.place = unknown.range;
  dim.isDim = true;
  env->names[name] = dim;
  auto value = sizeValue(expr, env, format("the extent of {}", what));
  env->names.erase(name);
  if (!value)
    return false;
  auto [factor, rest] = linearIn(*value, id);
  if (factor.terms.empty() || sizes.mentions(rest, id) ||
      sizes.mentions(factor, id))
    return error(expr.range, format("the extent of {} does not determine '{}': "
                                    "it must be linear in it",
                                    what, name));
  Size solution = sizes.floorDiv(actual - rest, factor);
  if (!sizes.equal(solution * factor + rest, actual)) {
    if (sizes.simplify(actual - solution * factor - rest).constant())
      return error(expr.range,
                   format("the extent of {} is {}: no '{}' gives it", what,
                          sizes.str(actual), name));
    requireEqual(actual, solution * factor + rest, expr.range,
                 format("the extent of {} is {}: no '{}' gives it", what,
                        sizes.str(actual), name),
                 {},
                 format("the extent of {} is {{0}}: no '{}' gives it", what,
                        escape(name)));
    sizes.exact(actual - rest, factor);
    // An extent is 0 at least: 2*R + 1 has no negative R, and so is 1 at least.
    auto left = rest.constant(), times = factor.constant();
    if (left && times && *left < *times && solution.asAtom()) {
      sizes.atLeast(*solution.asAtom(), 0);
      if (auto atom = actual.asAtom())
        sizes.atLeast(*atom, *left);
    }
  }
  if (!sizes.nonNegative(solution) &&
      !requireDim(solution, expr.range,
                  format("the extent of {} gives {}", what, name)))
    return false;
  // A name of its own: messages and types then speak of the user's dim.
  if (!solution.constant() && !solution.asAtom()) {
    BindAtom step;
    step.size = useOf(sizes, solution);
    step.place = expr.range;
    symbol = sizes.dim(name, step.size.inLoop);
    step.atom = *symbol.asAtom();
    sink->push_back(std::move(step));
    sizes.assumeZero(solution - symbol);
    sizes.assumeZero(actual - (symbol * factor + rest));
    solution = symbol;
  }
  dim.size = solution;
  env->names[name] = dim;
  return true;
}

std::optional<Shape> Analysis::shapeOf(const Type &type, const EnvPtr &env,
                                       const Twine &what) {
  std::string name = what.str();
  Shape shape;
  for (const Extent &extent : type.extents) {
    if (extent.isDots()) {
      if (!env->dots) {
        error(extent.range, "'..' outside a function that has it");
        return std::nullopt;
      }
      shape.append(env->dots->begin(), env->dots->end());
      continue;
    }
    auto size = sizeValue(*extent.extent, env, format("an extent of {}", name));
    if (!size)
      return std::nullopt;
    shape.push_back(*size);
  }
  return shape;
}
