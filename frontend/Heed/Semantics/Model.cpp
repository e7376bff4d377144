//===- Model.cpp - Signature and results of a model -----------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"
#include "support/Format.h"

#include "llvm/ADT/STLExtras.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::dyn_cast;

std::string Analysis::written(const Expr &expr) {
  std::string text(expr.range.Start.getPointer(), expr.range.End.getPointer());
  llvm::erase_if(text, [](char c) { return llvm::isSpace(c); });
  return text;
}

const Expr *Analysis::setting(StringRef name) {
  for (auto &[key, value] : options.settings)
    if (key == name)
      return value.get();
  return nullptr;
}

/// A compile-time constant of the model: its default, or what --set says.
bool Analysis::bindConstant(const Argument &arg, const EnvPtr &env) {
  std::string what = format("constant '{}'", arg.name.text);
  auto value = constant(*arg.defaultValue, env, what);
  if (!value)
    return false;
  if (const Expr *given = setting(arg.name.text)) {
    usedSettings.insert(arg.name.text.str());
    auto set = constant(*given, env, format("--set {}", arg.name.text));
    if (!set)
      return false;
    if (value->kind == Binding::Real && set->kind == Binding::Int)
      set = Binding::of(double(*set->size.constant()));
    if (value->kind == Binding::Int && set->kind == Binding::Real &&
        set->real == double(int64_t(set->real)))
      set = Binding::of(Size(int64_t(set->real)));
    if (set->kind != value->kind && value->kind != Binding::None)
      return error(arg.name.range,
                   format("constant '{}' is {}, --set gives {}", arg.name.text,
                          kindOf(*value), kindOf(*set)));
    value = set;
  }
  value->place = arg.name.range;
  env->names[arg.name.text.str()] = *value;
  return true;
}

/// Dims that a parameter of the model itself names plainly, where the weights
/// are known: inputs must agree with them.
void Analysis::bindDimsOfWeights(const ModelDecl &model, const EnvPtr &env) {
  if (!options.weights)
    return;
  for (auto &stmt : model.body.stmts) {
    auto *param = dyn_cast<ParamStmt>(stmt.get());
    if (!param || !param->type)
      continue;
    std::vector<StringRef> names;
    for (auto &file : param->files)
      names.push_back(file->isPlain() ? file->raw : StringRef());
    if (names.empty())
      names.push_back(param->name.text);
    // Another alternative that is there comes first, or is an error later on.
    auto found = llvm::find_if(names, [&](StringRef name) {
      return name.empty() || options.weights->count(name);
    });
    if (found == names.end() || found->empty())
      continue;
    const WeightInfo &weight = options.weights->find(*found)->second;
    if (weight.shape.size() != param->type->extents.size())
      continue;
    for (auto [extent, n] : llvm::zip(param->type->extents, weight.shape)) {
      auto *name =
          extent.isDots() ? nullptr : dyn_cast<NameExpr>(extent.extent.get());
      if (name && !setting(name->name) && !lookup(*env, name->name))
        dimsOfWeights.try_emplace(name->name, n);
    }
  }
}

/// Is the input left away, by --set NAME=none? Then its default is none.
bool Analysis::isLeftAway(const Argument &arg) {
  const Expr *given = setting(arg.name.text);
  return given && given->kind == ExprKind::None && arg.defaultValue &&
         arg.defaultValue->kind == ExprKind::None;
}

/// --set of a dim fixes it, and so do weights.
bool Analysis::fixDims(const Expr &extent, const EnvPtr &env) {
  std::vector<const NameExpr *> unknown;
  freeNames(extent, *env, unknown);
  for (const NameExpr *name : unknown) {
    std::optional<Size> size;
    if (const Expr *given = setting(name->name)) {
      usedSettings.insert(name->name.str());
      size = sizeValue(*given, env, format("--set {}", name->name));
      if (!size)
        return false;
    } else if (auto it = dimsOfWeights.find(name->name);
               it != dimsOfWeights.end()) {
      size = Size(it->second);
    } else {
      continue;
    }
    Binding dim = Binding::of(*size);
    dim.place = name->range;
    dim.isDim = true;
    env->names[name->name.str()] = dim;
  }
  return true;
}

/// The input that the argument declares, with the extents that are known.
bool Analysis::declareInput(const Argument &arg, const EnvPtr &env) {
  auto ty = arg.type->element ? tyOf(*arg.type->element, arg.type->range)
                              : std::nullopt;
  if (!arg.type->element)
    error(arg.type->range,
          format("input '{}' needs an element type", arg.name.text));
  if (!ty)
    return false;
  bool isState = llvm::any_of(
      states, [&](const Argument &state) { return &state == &arg; });
  // A state of one number is a tensor without axes: a call changes it.
  ModelInput input{arg.name.text.str(),
                   *ty,
                   arg.type->hasExtents || isState,
                   {},
                   {},
                   {},
                   nullptr,
                   arg.name.range,
                   isState,
                   isState ? heldType(*ty, options.stateType) : *ty};
  for (const Extent &extent : arg.type->extents) {
    if (extent.isDots())
      return error(extent.range, "'..' in the signature of a model");
    if (!fixDims(*extent.extent, env))
      return false;
    std::vector<const NameExpr *> unknown;
    freeNames(*extent.extent, *env, unknown);
    int64_t n = kUnknown;
    if (unknown.empty()) {
      auto size = sizeValue(*extent.extent, env,
                            format("an extent of '{}'", arg.name.text));
      if (!size)
        return false;
      if (auto c = size->constant())
        n = *c;
    }
    input.dims.push_back(n);
  }
  Tensor &tensor = entry.tensors.emplace_back();
  tensor.input = input.name;
  input.tensor = &tensor;
  entry.inputs.push_back(std::move(input));
  return true;
}

/// Binds the input's name; of a tensor also the extents that a call has.
bool Analysis::bindInput(const Argument &arg, ModelInput &input,
                         const EnvPtr &env, std::vector<Extents> &shapes) {
  Binding binding;
  binding.place = input.place;
  binding.tensor.value = input.tensor;
  binding.tensor.elem = input.elem;
  bool hasDefault =
      arg.defaultValue && arg.defaultValue->kind != ExprKind::None;
  if (!input.isTensor) {
    binding.kind = Binding::Scalar;
    if (hasDefault &&
        !fixedNumber(*arg.defaultValue, "the default", env, input))
      return false;
    env->names[input.name] = binding;
    return true;
  }
  if (hasDefault)
    return error(arg.defaultValue->range, "a tensor takes no default but none");
  if (auto start = starts.find(input.name);
      input.isState && start != starts.end() &&
      !fixedNumber(*start->second, "the start", env, input))
    return false;
  binding.kind = Binding::Tensor;
  env->names[input.name] = binding;
  Shape shape;
  for (auto [k, extent] : llvm::enumerate(arg.type->extents)) {
    if (input.dims[k] != kUnknown) {
      shape.push_back(Size(input.dims[k]));
      continue;
    }
    // An extent to be solved is called what the model writes: (2*R+1).
    auto *name = dyn_cast<NameExpr>(extent.extent.get());
    shape.push_back(extentOf(
        input.tensor, k,
        name ? name->name.str() : heed::format("({})", written(*extent.extent)),
        false, extent.range));
  }
  shapes.push_back({arg.type.get(), shape, input.name, input.place});
  return true;
}

/// A dim of all entries that needs none of them is known in their signatures.
bool Analysis::bindKnownDim(const DimStmt &dim, const EnvPtr &env) {
  std::vector<const NameExpr *> unknown;
  freeNames(*dim.value, *env, unknown);
  if (!unknown.empty() || lookup(*env, dim.name.text))
    return true;
  Frame frame;
  frame.env = env;
  return executeDim(dim, frame);
}

bool Analysis::bindSignature(const ModelDecl &decl,
                             ArrayRef<const Argument *> args,
                             const EnvPtr &env) {
  bool ok = true;
  SmallVector<const Argument *> inputs;
  for (const Argument *arg : args) {
    if (!arg->type) {
      ok &= bindConstant(*arg, env);
    } else if (isLeftAway(*arg)) {
      usedSettings.insert(arg->name.text.str());
      Binding none;
      none.kind = Binding::None;
      none.place = arg->name.range;
      env->names[arg->name.text.str()] = none;
    } else {
      inputs.push_back(arg);
    }
  }
  if (!ok)
    return false;
  for (auto &stmt : decl.body.stmts)
    if (auto *dim = dyn_cast<DimStmt>(stmt.get());
        dim && !decl.entries.empty() && !bindKnownDim(*dim, env))
      return false;
  bindDimsOfWeights(decl, env);
  for (const Argument *arg : inputs)
    if (!declareInput(*arg, env))
      return false;
  std::vector<Extents> shapes;
  for (auto [arg, input] : llvm::zip(inputs, entry.inputs))
    if (!bindInput(*arg, input, env, shapes))
      return false;
  if (!bindShapes(shapes, env, true))
    return false;
  for (const Argument *arg : inputs) {
    if (!arg->type->hasExtents)
      continue;
    auto shape = shapeOf(*arg->type, env, format("'{}'", arg->name.text));
    if (!shape)
      return false;
    env->names[arg->name.text.str()].tensor.shape = *shape;
  }
  for (ModelInput &input : entry.inputs)
    if (input.isTensor) {
      input.shape = env->names[input.name].tensor.shape;
      input.dimNames = dimNames(input.shape);
    }
  return true;
}

/// The extent of an axis as a dim with a name.
Size Analysis::extentOf(const Tensor *tensor, unsigned axis, StringRef name,
                        bool inLoop, Range place) {
  Size dim = sizes.dim(name, inLoop);
  sink->push_back(BindAtom{*dim.asAtom(), tensor, axis, {}, inLoop, place});
  return dim;
}

/// Where the bracket that opens \p text closes.
static size_t matchingBracket(StringRef text) {
  size_t at = 0;
  for (int depth = 0; at < text.size(); ++at) {
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (!depth)
      break;
  }
  return at;
}

std::vector<std::string> Analysis::dimNames(ArrayRef<Size> shape) {
  std::vector<std::string> names;
  for (const Size &size : shape) {
    std::string text = sizes.str(size);
    // An extent that stands alone needs no brackets: 2*R+1. Those of
    // (N + 3)//4 are not around the whole.
    if (size.asAtom() && text.front() == '(' &&
        matchingBracket(text) + 1 == text.size())
      text = text.substr(1, text.size() - 2);
    names.push_back(text);
  }
  return names;
}

/// A number that is known now: a scalar's default, or what a state starts with.
bool Analysis::fixedNumber(const Expr &expr, StringRef what, const EnvPtr &env,
                           ModelInput &input) {
  auto value = staticValue(expr, env, format("{} of '{}'", what, input.name));
  if (!value)
    return false;
  Ty ty = input.elem;
  unsigned bits = ty == Ty::I8 ? 8 : ty == Ty::I32 ? 32 : 64;
  bool integer = value->kind == Binding::Int && value->size.constant();
  if ((isReal(ty) && (integer || value->kind == Binding::Real)) ||
      (ty == Ty::Bool && value->kind == Binding::Bool) ||
      (isInt(ty) && integer)) {
    if (isReal(ty))
      input.defaultValue = *value->number();
    else if (ty == Ty::Bool)
      input.defaultValue = value->flag;
    else if (llvm::isIntN(bits, *value->size.constant()))
      input.defaultValue = *value->size.constant();
    else
      return error(expr.range,
                   format("{} of '{}' is {}, which is no {}", what, input.name,
                          *value->size.constant(), spelling(ty)));
    return true;
  }
  return error(expr.range, format("{} of '{}' must be {}, found {}", what,
                                  input.name, spelling(ty), kindOf(*value)));
}

bool Analysis::finish(const Name &name, bool isEntry, Frame &frame) {
  if (!frame.results)
    return error(name.range, format("{} '{}' returns nothing",
                                    isEntry ? "entry" : "model", name.text));
  std::vector<std::string> seen;
  for (Result &result : *frame.results) {
    if (result.name.empty())
      return error(result.place, "a result of a model needs a name: write "
                                 "'name = ' before it");
    if (llvm::is_contained(seen, result.name))
      return error(result.place,
                   format("two results are called '{}'", result.name));
    seen.push_back(result.name);
    auto tensor = resultTensor(result.value, result.place);
    if (!tensor)
      return error(result.place,
                   format("result '{}' must be a tensor or a number, found {}",
                          result.name, kindOf(result.value)));
    entry.outputs.push_back({result.name, tensor->value,
                             dimNames(tensor->shape), tensor->elem,
                             tensor->shape});
  }
  return true;
}

/// Are the results what `-> types` of the entry says?
bool Analysis::checkResults(ArrayRef<TypePtr> types, const EnvPtr &env) {
  if (!types.empty() && types.size() != entry.outputs.size())
    return error(entry.namePlace,
                 format("entry '{}' returns {}, declared are {}", entry.name,
                        counted(entry.outputs.size(), "result", "results"),
                        types.size()));
  bool ok = true;
  for (auto [type, output] : llvm::zip(types, entry.outputs)) {
    auto shape = shapeOf(*type, env, format("'{}'", output.name));
    auto elem = type->element ? tyOf(*type->element, type->range)
                              : std::optional(output.elem);
    if (!shape || !elem) {
      ok = false;
      continue;
    }
    if (*elem != output.elem || shape->size() != output.shape.size()) {
      ok = error(type->range,
                 format("result '{}' is {}{}, declared here as {}{}",
                        output.name, spelling(output.elem), str(output.shape),
                        spelling(*elem), str(*shape)));
      continue;
    }
    for (auto [given, declared] : llvm::zip(output.shape, *shape))
      ok &= requireEqual(given, declared, type->range,
                         format("result '{}' is {}, declared as {}",
                                output.name, str(output.shape), str(*shape)),
                         {});
  }
  return ok;
}

/// The type of a number that is made a tensor.
Ty Analysis::numberType(const Binding &number) {
  return number.kind == Binding::Scalar ? number.tensor.elem
         : number.kind == Binding::Int  ? Ty::I32
         : number.kind == Binding::Real ? Ty::F32
                                        : Ty::Bool;
}

/// A number as a tensor of rank 0.
std::optional<TensorVal> Analysis::numberTensor(const Binding &number, Ty type,
                                                Range place) {
  return elementwise({}, type, place, false, [&](Body &) -> Node * {
    if (number.kind != Binding::Scalar)
      return fixedNode(number, place);
    Node *node = newNode(Node::Scalar, number.tensor.elem, place);
    node->tensor = number.tensor;
    return node;
  });
}

/// A result as a tensor: a number becomes one of rank 0.
std::optional<TensorVal> Analysis::resultTensor(const Binding &binding,
                                                Range place) {
  if (binding.isNumber())
    return numberTensor(binding, numberType(binding), place);
  if (binding.kind == Binding::Thunk) {
    Equation eq;
    const Info *i = infer(*binding.thunk->expr, *binding.thunk->scope, eq);
    if (!i || !solve(eq))
      return std::nullopt;
    if (i->whole)
      return materialise(*binding.thunk->expr, *binding.thunk->scope);
    return lowerRight(*binding.thunk->expr, *binding.thunk->scope, eq, {});
  }
  return tensorOf(binding, place);
}
