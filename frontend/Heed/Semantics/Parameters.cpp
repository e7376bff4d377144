//===- Parameters.cpp - What a model reads of its weights -----------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"
#include "support/Format.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;

/// The weight as the file has it; null if it is not there.
const Analysis::Weight *Analysis::findWeight(const ParamStmt &stmt,
                                             ArrayRef<std::string> names) {
  for (const std::string &name : names)
    if (auto it = options.weights->find(name); it != options.weights->end())
      return &*it;
  std::vector<StringRef> known;
  for (auto &entry : *options.weights)
    known.push_back(entry.first());
  llvm::sort(known);
  std::string list;
  for (const std::string &name : names)
    list += heed::format("{}{}'", (list.empty() ? "'" : " or '"), name);
  error(stmt.files.empty() ? stmt.name.range : stmt.files[0]->range,
        format("the weights have no {}{}", list, hint(names[0], known)));
  return nullptr;
}

/// A name in the weights; the loop variables of rolled loops are operands, {k}.
static std::string weightName(const Text &text, SmallVector<Size> &indices) {
  std::string name;
  for (const Text::Part &part : text.parts) {
    if (!part.size) {
      name += part.text;
      continue;
    }
    if (auto c = part.size->constant()) {
      name += format("{}", *c);
      continue;
    }
    auto *it = llvm::find(indices, *part.size);
    if (it == indices.end()) {
      indices.push_back(*part.size);
      it = std::prev(indices.end());
    }
    name += heed::format("{{{}}}", it - indices.begin());
  }
  return name;
}

/// The names with the loop variables of each turn, of the loops from `depth`
/// in, as long as `f` wants more of them.
bool Analysis::eachTurn(ArrayRef<std::string> names, ArrayRef<Size> indices,
                        size_t depth,
                        llvm::function_ref<bool(ArrayRef<std::string>)> f) {
  if (depth == loops.size()) {
    std::vector<std::string> concrete(names);
    for (auto [k, size] : llvm::enumerate(indices)) {
      std::string hole = format("{{{}}}", k);
      auto number = size.constant();
      for (std::string &name : concrete)
        if (auto pos = name.find(hole); pos != std::string::npos && number)
          name.replace(pos, hole.size(), format("{}", *number));
    }
    return f(concrete);
  }
  const RolledLoop &loop = loops[depth];
  auto lo = loop.lo.constant(), hi = loop.hi.constant();
  bool matters = lo && hi && llvm::any_of(indices, [&](const Size &size) {
                   return sizes.mentions(size, loop.turn);
                 });
  if (!matters)
    return eachTurn(names, indices, depth + 1, f);
  for (int64_t turn = *lo; turn < *hi; ++turn) {
    auto now = llvm::map_to_vector(indices, [&](const Size &size) {
      return sizes.substitute(size, loop.turn, Size(turn));
    });
    if (!eachTurn(names, now, depth + 1, f))
      return false;
  }
  return true;
}

/// What the weights have under the names, turn by turn of the loops around.
/// What is missing, or has another rank, is an error that ends nothing: the
/// rest is looked at, too, but for what a number of turns far from the file's
/// would ask for.
std::vector<const Analysis::Weight *>
Analysis::findWeights(const ParamStmt &stmt, ArrayRef<std::string> names,
                      ArrayRef<Size> indices, size_t rank) {
  std::vector<const Weight *> found;
  if (!options.weights)
    return found;
  constexpr unsigned most = 100;
  unsigned missing = 0;
  eachTurn(names, indices, 0, [&](ArrayRef<std::string> concrete) {
    const Weight *weight = findWeight(stmt, concrete);
    missing += !weight;
    if (weight && weight->second.shape.size() == rank)
      found.push_back(weight);
    else if (weight)
      error(stmt.type->range,
            format("'{}' has {}, the weights' '{}' has {}", stmt.name.text,
                   counted(rank, "axis", "axes"), weight->first(),
                   weight->second.shape.size()));
    return missing < most;
  });
  return found;
}

/// What a type for all says of elements that are declared \p ty.
Ty Analysis::heldType(Ty ty, HeldType type) {
  if (ty != Ty::F32)
    return ty;
  return type == HeldType::BF16  ? Ty::BF16
         : type == HeldType::F16 ? Ty::F16
                                 : ty;
}

/// The type in which the elements of a parameter of type \p ty lie in memory.
/// Where a file has a type for one turn of a loop and another for the next, the
/// declared one holds both.
Ty Analysis::heldType(Ty ty, ArrayRef<const Weight *> weights) {
  if (options.weightsType != HeldType::Stored)
    return heldType(ty, options.weightsType);
  if (weights.empty() || ty != Ty::F32)
    return ty;
  StringRef type = weights.front()->second.type;
  if (llvm::any_of(weights, [&](const Weight *weight) {
        return weight->second.type != type;
      }))
    return ty;
  return type == "BF16" ? Ty::BF16 : type == "F16" ? Ty::F16 : ty;
}

/// An axis of a parameter.
struct Analysis::ParamAxis {
  const ast::Extent *written;
  std::optional<Size> dots; ///< its extent, where the type has `..`
  int64_t number;           ///< its extent, where it is known
};

/// The extents as numbers, where they are known: those that a free name gives
/// are read from the file.
bool Analysis::parameterDims(const ParamStmt &stmt, const EnvPtr &env,
                             ArrayRef<const Weight *> weights,
                             llvm::MutableArrayRef<ParamAxis> axes) {
  Shape known;
  for (auto [k, axis] : llvm::enumerate(axes)) {
    std::optional<Size> size = axis.dots;
    std::vector<const NameExpr *> unknown;
    if (!size)
      freeNames(*axis.written->extent, *env, unknown);
    if (!size && unknown.empty()) {
      size = sizeValue(*axis.written->extent, env,
                       format("an extent of '{}'", stmt.name.text));
      if (!size)
        return false;
    }
    int64_t ofFile =
        weights.empty() ? kUnknown : weights.front()->second.shape[k];
    known.push_back(size ? *size : weights.empty() ? Size() : Size(ofFile));
    axis.number = (size ? size->constant() : std::nullopt).value_or(ofFile);
  }
  for (const Weight *weight : weights)
    for (auto [k, axis] : llvm::enumerate(axes))
      if (axis.number != weight->second.shape[k])
        error(axis.written->range,
              format("extent of '{}' (axis {}) is {}, the weights' '{}' has {}",
                     stmt.name.text, k, sizes.str(known[k]), weight->first(),
                     weight->second.shape[k]));
  return true;
}

/// The steps of the innermost loop around whose turns \p indices, of a
/// weight's names, tell apart; the entry's if there is none.
Steps &Analysis::stepsOf(ArrayRef<Size> indices) {
  for (const RolledLoop &loop : llvm::reverse(loops))
    if (llvm::any_of(indices, [&](const Size &size) {
          return sizes.mentions(size, loop.turn);
        }))
      return *loop.body;
  return entry.steps;
}

/// The parameter of these names and extents, and what its type says of it.
bool Analysis::bindParameter(const ParamStmt &stmt, Frame &frame, Ty ty,
                             Ty held, const std::vector<std::string> &names,
                             ArrayRef<Size> indices, ArrayRef<ParamAxis> axes) {
  const ast::Type &type = *stmt.type;
  auto dims = llvm::map_to_vector(
      axes, [](const ParamAxis &axis) { return axis.number; });
  bool inLoop = llvm::any_of(
      indices, [&](const Size &size) { return sizes.isInLoop(size); });
  const Tensor *value = newTensor();
  // Extents that are known when weights are there hold outside of a loop that
  // their names do not tell apart, too: rows that a scan stacks have them.
  Steps &steps = llvm::is_contained(dims, kUnknown) ? stepsOf(indices) : *sink;
  size_t step = steps.size();
  steps.push_back(Parameter{
      names, uses(indices), dims, ty, held, {}, inLoop, value, stmt.range});
  // Extents: what the file gives, and what it must agree with.
  Shape actual;
  for (auto [k, n] : llvm::enumerate(dims)) {
    if (n != kUnknown) {
      actual.push_back(Size(n));
      continue;
    }
    std::string name = format("{}.extent{}", stmt.name.text, k);
    if (auto *plainName =
            llvm::dyn_cast_or_null<NameExpr>(axes[k].written->extent.get());
        plainName && !lookup(*frame.env, plainName->name))
      name = plainName->name.str();
    llvm::SaveAndRestore into(sink, &steps);
    actual.push_back(extentOf(value, k, name, inLoop, stmt.range));
  }
  if (!bindShapes({Extents{&type, actual, stmt.name.text.str(), stmt.range}},
                  frame.env, false))
    return false;
  auto shape = shapeOf(type, frame.env, format("'{}'", stmt.name.text));
  if (!shape)
    return false;
  if (llvm::is_contained(dims, kUnknown))
    std::get<Parameter>(steps[step]).dimNames = dimNames(*shape);
  TensorVal tensor{value, ty, *shape, nullptr};
  frame.env->names[stmt.name.text.str()] = Binding::of(tensor, stmt.name.range);
  return true;
}

bool Analysis::parameter(const ParamStmt &stmt, Frame &frame) {
  const ast::Type &type = *stmt.type;
  if (!type.element)
    return error(type.range, "a parameter needs an element type");
  auto ty = tyOf(*type.element, type.range);
  if (!ty)
    return false;
  std::vector<std::string> names;
  SmallVector<Size> indices;
  for (auto &file : stmt.files) {
    auto text = textValue(*file, frame.env);
    if (!text)
      return false;
    names.push_back(weightName(*text, indices));
  }
  if (names.empty())
    names.push_back(stmt.name.text.str());
  SmallVector<ParamAxis> axes;
  for (const ast::Extent &extent : type.extents) {
    if (!extent.isDots())
      axes.push_back({&extent, {}, kUnknown});
    else if (!frame.env->dots)
      return error(extent.range, "'..' outside a function that has it");
    else
      for (const Size &size : *frame.env->dots)
        axes.push_back({&extent, size, kUnknown});
  }
  auto weights = findWeights(stmt, names, indices, axes.size());
  return parameterDims(stmt, frame.env, weights, axes) &&
         bindParameter(stmt, frame, *ty, heldType(*ty, weights), names, indices,
                       axes);
}

bool Analysis::executeParam(const ParamStmt &stmt, Frame &frame) {
  if (parameter(stmt, frame))
    return true;
  frame.env->names[stmt.name.text.str()] = Binding();
  return false;
}
