//===- Model.cpp - Signature and results of a model -----------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/Extents.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using namespace mlir;
using llvm::dyn_cast;
using llvm::Twine;

std::string Lowering::written(const Expr &expr) {
  std::string text(expr.range.Start.getPointer(), expr.range.End.getPointer());
  llvm::erase_if(text, [](char c) { return llvm::isSpace(c); });
  return text;
}

const ModelDecl *Lowering::chooseModel() {
  auto &models = program.main->models;
  if (models.empty()) {
    error({}, program.main->path + ": the file has no model");
    return nullptr;
  }
  if (options.model.empty())
    return models.back().get();
  std::vector<StringRef> known;
  for (auto &model : models) {
    if (model->name.text == options.model)
      return model.get();
    known.push_back(model->name.text);
  }
  error({}, program.main->path + ": no model '" + options.model + "'" +
                hint(options.model, known));
  return nullptr;
}

const Expr *Lowering::setting(StringRef name) {
  for (auto &[key, value] : options.settings)
    if (key == name)
      return value.get();
  return nullptr;
}

/// A compile-time constant of the model: its default, or what --set says.
bool Lowering::bindConstant(const Argument &arg, const EnvPtr &env) {
  std::string what = ("constant '" + arg.name.text + "'").str();
  auto value = constant(*arg.defaultValue, env, what);
  if (!value)
    return false;
  if (const Expr *given = setting(arg.name.text)) {
    usedSettings.insert(arg.name.text.str());
    auto set = constant(*given, env, "--set " + arg.name.text);
    if (!set)
      return false;
    if (value->kind == Binding::Real && set->kind == Binding::Int)
      set = Binding::of(double(*set->size.constant()));
    if (value->kind == Binding::Int && set->kind == Binding::Real &&
        set->real == double(int64_t(set->real)))
      set = Binding::of(Size(int64_t(set->real)));
    if (set->kind != value->kind && value->kind != Binding::None)
      return error(arg.name.range, "constant '" + arg.name.text + "' is " +
                                       kindOf(*value) + ", --set gives " +
                                       kindOf(*set));
    value = set;
  }
  value->place = arg.name.range;
  env->names[arg.name.text.str()] = *value;
  return true;
}

/// Dims that a parameter of the model itself names plainly, where the weights
/// are known: inputs must agree with them.
void Lowering::bindDimsOfWeights(const ModelDecl &model, const EnvPtr &env) {
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

bool Lowering::bindSignature(const ModelDecl &model, const EnvPtr &env,
                             func::FuncOp &func) {
  bool ok = true;
  SmallVector<const Argument *> inputs;
  for (const Argument &arg : model.args) {
    if (arg.type) {
      // An input whose default is none is left away by --set NAME=none.
      const Expr *given = setting(arg.name.text);
      bool optional =
          arg.defaultValue && arg.defaultValue->kind == ExprKind::None;
      if (given && optional && given->kind == ExprKind::None) {
        usedSettings.insert(arg.name.text.str());
        Binding none;
        none.kind = Binding::None;
        none.place = arg.name.range;
        env->names[arg.name.text.str()] = none;
        continue;
      }
      inputs.push_back(&arg);
      continue;
    }
    ok &= bindConstant(arg, env);
  }
  if (!ok)
    return false;
  bindDimsOfWeights(model, env);
  // --set of a dim fixes it, and so do weights.
  SmallVector<mlir::Type> types;
  SmallVector<Location> locs;
  for (const Argument *arg : inputs) {
    auto ty = arg->type->element ? tyOf(*arg->type->element, arg->type->range)
                                 : std::nullopt;
    if (!arg->type->element)
      error(arg->type->range,
            "input '" + arg->name.text + "' needs an element type");
    if (!ty)
      return false;
    SmallVector<int64_t> dims;
    for (const Extent &extent : arg->type->extents) {
      if (extent.isDots())
        return error(extent.range, "'..' in the signature of a model");
      std::vector<const NameExpr *> unknown;
      freeNames(*extent.extent, *env, unknown);
      for (const NameExpr *name : unknown)
        if (const Expr *given = setting(name->name)) {
          usedSettings.insert(name->name.str());
          auto size = sizeValue(*given, env, "--set " + name->name);
          if (!size)
            return false;
          Binding dim = Binding::of(*size);
          dim.place = name->range;
          dim.isDim = true;
          env->names[name->name.str()] = dim;
        } else if (auto it = dimsOfWeights.find(name->name);
                   it != dimsOfWeights.end()) {
          Binding dim = Binding::of(Size(it->second));
          dim.place = name->range;
          dim.isDim = true;
          env->names[name->name.str()] = dim;
        }
      unknown.clear();
      freeNames(*extent.extent, *env, unknown);
      int64_t n = ShapedType::kDynamic;
      if (unknown.empty()) {
        auto size = sizeValue(*extent.extent, env,
                              "an extent of '" + arg->name.text + "'");
        if (!size)
          return false;
        if (auto c = size->constant())
          n = *c;
      }
      dims.push_back(n);
    }
    bool isTensor = arg->type->hasExtents;
    types.push_back(isTensor
                        ? mlir::Type(RankedTensorType::get(dims, irType(*ty)))
                        : irType(*ty));
    locs.push_back(loc(arg->name.range));
  }
  func = func::FuncOp::create(builder, loc(model.name.range), model.name.text,
                              builder.getFunctionType(types, {}));
  func->setAttr(attn::kModelAttr, builder.getUnitAttr());
  entry = func.addEntryBlock();
  for (auto [arg, at] : llvm::zip(entry->getArguments(), locs))
    arg.setLoc(at);
  // Dims and checks go before this op, mathematics after it.
  builder.setInsertionPointToEnd(entry);
  mark = arith::ConstantIndexOp::create(builder, func.getLoc(), 0);
  prologue = OpBuilder(mark);

  std::vector<Extents> shapes;
  for (auto [arg, value, type] :
       llvm::zip(inputs, entry->getArguments(), types)) {
    unsigned number = value.getArgNumber();
    func.setArgAttr(number, attn::kNameAttr,
                    builder.getStringAttr(arg->name.text));
    Ty ty = *tyOf(*arg->type->element, {});
    Binding binding;
    binding.place = arg->name.range;
    binding.tensor.value = value;
    binding.tensor.elem = ty;
    if (!arg->type->hasExtents) {
      binding.kind = Binding::Scalar;
      if (arg->defaultValue && arg->defaultValue->kind != ExprKind::None &&
          !scalarDefault(*arg, ty, env, func, number))
        return false;
      env->names[arg->name.text.str()] = binding;
      continue;
    }
    if (arg->defaultValue && arg->defaultValue->kind != ExprKind::None)
      return error(arg->defaultValue->range,
                   "a tensor takes no default but none");
    binding.kind = Binding::Tensor;
    env->names[arg->name.text.str()] = binding;
    Shape shape;
    auto tensor = llvm::cast<RankedTensorType>(type);
    for (auto [k, extent] : llvm::enumerate(arg->type->extents)) {
      if (!tensor.isDynamicDim(k)) {
        shape.push_back(Size(tensor.getDimSize(k)));
        continue;
      }
      Value dim = tensor::DimOp::create(prologue, loc(extent.range), value, k);
      // An extent to be solved is called what the model writes: (2*R+1).
      auto *name = dyn_cast<NameExpr>(extent.extent.get());
      shape.push_back(sizes.dim(
          name ? name->name.str() : "(" + written(*extent.extent) + ")", dim));
    }
    shapes.push_back(
        {arg->type.get(), shape, arg->name.text.str(), arg->name.range});
  }
  if (!bindShapes(shapes, env, true))
    return false;
  for (const Argument *arg : inputs) {
    if (!arg->type->hasExtents)
      continue;
    auto shape = shapeOf(*arg->type, env, "'" + arg->name.text + "'");
    if (!shape)
      return false;
    env->names[arg->name.text.str()].tensor.shape = *shape;
  }
  for (auto [number, arg] : llvm::enumerate(inputs))
    if (arg->type->hasExtents)
      func.setArgAttr(number, attn::kDimsAttr,
                      dimsAttr(env->names[arg->name.text.str()].tensor.shape));
  return true;
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

ArrayAttr Lowering::dimsAttr(ArrayRef<Size> shape) {
  SmallVector<Attribute> dims;
  for (const Size &size : shape) {
    std::string text = sizes.str(size);
    // An extent that stands alone needs no brackets: 2*R+1. Those of
    // (N + 3)//4 are not around the whole.
    if (size.asAtom() && text.front() == '(' &&
        matchingBracket(text) + 1 == text.size())
      text = text.substr(1, text.size() - 2);
    dims.push_back(builder.getStringAttr(text));
  }
  return builder.getArrayAttr(dims);
}

bool Lowering::scalarDefault(const Argument &arg, Ty ty, const EnvPtr &env,
                             func::FuncOp func, unsigned number) {
  auto value = staticValue(*arg.defaultValue, env,
                           "the default of '" + arg.name.text + "'");
  if (!value)
    return false;
  mlir::Type type = irType(ty);
  auto integer =
      value->kind == Binding::Int ? value->size.constant() : std::nullopt;
  Attribute attr;
  if (isReal(ty) && (integer || value->kind == Binding::Real))
    attr = builder.getFloatAttr(type, integer ? double(*integer) : value->real);
  else if (ty == Ty::Bool && value->kind == Binding::Bool)
    attr = builder.getBoolAttr(value->flag);
  else if (isInt(ty) && integer)
    attr = builder.getIntegerAttr(type, *integer);
  if (!attr)
    return error(arg.defaultValue->range, "the default of '" + arg.name.text +
                                              "' must be " + spelling(ty) +
                                              ", found " + kindOf(*value));
  func.setArgAttr(number, attn::kDefaultAttr, attr);
  return true;
}

/// Why no kernel can index a tensor of the model, "" if all can. Extents that
/// only a call knows are checked then.
static std::string tooLarge(func::FuncOp func) {
  std::string found;
  auto look = [&](mlir::Type value, bool isStored) {
    auto type = dyn_cast<RankedTensorType>(value);
    if (!type || !found.empty())
      return;
    for (int64_t extent : type.getShape())
      if (extent > attn::kMaxExtent)
        found = ("an extent of " + Twine(extent) + ", expected at most " +
                 Twine(attn::kMaxExtent))
                    .str();
    if (!isStored || !found.empty())
      return;
    if (type.getRank() > attn::kMaxRank)
      found = (Twine(type.getRank()) + " axes, expected at most " +
               Twine(attn::kMaxRank))
                  .str();
    int64_t row = 1;
    for (int64_t extent : llvm::reverse(type.getShape())) {
      if (extent > 1 && row > INT32_MAX)
        found = ("rows of more than " + Twine(INT32_MAX) + " elements").str();
      if (!ShapedType::isDynamic(extent))
        row = std::min(row * extent, int64_t(INT32_MAX) + 1);
    }
  };
  for (mlir::Type type : func.getArgumentTypes())
    look(type, true);
  for (mlir::Type type : func.getResultTypes())
    look(type, true);
  func.walk([&](Operation *op) {
    for (mlir::Type type : op->getResultTypes())
      look(type, isa<attn::ParamOp>(op));
  });
  return found;
}

bool Lowering::finish(const ModelDecl &model, Frame &frame, func::FuncOp func) {
  if (!frame.results)
    return error(model.name.range,
                 "model '" + model.name.text + "' returns nothing");
  SmallVector<Value> values;
  SmallVector<mlir::Type> types;
  std::vector<std::string> seen;
  SmallVector<DictionaryAttr> attrs;
  for (Result &result : *frame.results) {
    if (result.name.empty())
      return error(result.place, "a result of a model needs a name: write "
                                 "'name = ' before it");
    if (llvm::is_contained(seen, result.name))
      return error(result.place,
                   "two results are called '" + result.name + "'");
    seen.push_back(result.name);
    auto tensor = resultTensor(result.value, result.place);
    if (!tensor)
      return error(result.place, "result '" + result.name +
                                     "' must be a tensor or a number, found " +
                                     kindOf(result.value));
    values.push_back(tensor->value);
    types.push_back(tensor->value.getType());
    attrs.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr(attn::kNameAttr,
                              builder.getStringAttr(result.name)),
         builder.getNamedAttr(attn::kDimsAttr, dimsAttr(tensor->shape))}));
  }
  func::ReturnOp::create(builder, loc(model.range), values);
  func.setFunctionType(
      builder.getFunctionType(func.getFunctionType().getInputs(), types));
  for (auto [k, attr] : llvm::enumerate(attrs))
    func.setResultAttrs(k, attr);
  if (std::string what = tooLarge(func); !what.empty())
    return error(model.name.range,
                 "a tensor of '" + model.name.text + "' has " + what);
  return true;
}

/// A result as a tensor: a number becomes one of rank 0.
std::optional<TensorVal> Lowering::resultTensor(const Binding &binding,
                                                Range place) {
  if (binding.kind == Binding::Thunk || binding.kind == Binding::Int ||
      binding.kind == Binding::Real || binding.kind == Binding::Bool ||
      binding.kind == Binding::Scalar) {
    Equation eq;
    Ty ty = binding.kind == Binding::Int    ? Ty::I32
            : binding.kind == Binding::Real ? Ty::F32
            : binding.kind == Binding::Bool ? Ty::Bool
                                            : Ty::AnyInt;
    if (binding.kind == Binding::Scalar)
      ty = binding.tensor.elem;
    if (binding.kind == Binding::Thunk) {
      const Info *i = infer(*binding.thunk->expr, *binding.thunk->scope, eq);
      if (!i || !solve(eq))
        return std::nullopt;
      if (i->whole)
        return materialise(*binding.thunk->expr, *binding.thunk->scope);
      return lowerRight(*binding.thunk->expr, *binding.thunk->scope, eq, {});
    }
    Location at = loc(place);
    return elementwise({}, ty, place, false, [&](Body &body) -> TV {
      if (binding.kind == Binding::Scalar)
        return loaded(body, binding.tensor.value, ty, at);
      return emitFixed(body, binding, place);
    });
  }
  return tensorOf(binding, place);
}
