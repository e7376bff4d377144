//===- Emit.cpp - A model as a module ------------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emit.h"
#include "Counts.h"
#include "Emitter.h"

#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/Extents.h"
#include "frontend/Common/Diagnostics.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "support/Format.h"

using namespace heed;
using namespace heed::sema;
using namespace mlir;

Emitter::Emitter(MLIRContext &context, const Entry &entry,
                 const Sources &sources)
    : entry(entry), sources(sources), builder(&context), prologue(&context) {}

static Location locationOf(MLIRContext *context, const Sources &sources,
                           sema::Range range) {
  if (!range.isValid())
    return UnknownLoc::get(context);
  Position position = sources.position(range.Start);
  return FileLineColLoc::get(context, position.file, position.line,
                             position.column);
}

Location Emitter::loc(sema::Range range) {
  return locationOf(builder.getContext(), sources, range);
}

ArrayAttr Emitter::strings(ArrayRef<std::string> texts) {
  SmallVector<Attribute> all;
  for (const std::string &text : texts)
    all.push_back(builder.getStringAttr(text));
  return builder.getArrayAttr(all);
}

static Attribute defaultAttr(Builder &b, mlir::Type type,
                             const std::variant<bool, int64_t, double> &value) {
  if (auto *real = std::get_if<double>(&value))
    return b.getFloatAttr(type, *real);
  if (auto *flag = std::get_if<bool>(&value))
    return b.getBoolAttr(*flag);
  return b.getIntegerAttr(type, std::get<int64_t>(value));
}

void Emitter::signature(func::FuncOp func) {
  for (auto [number, input] : llvm::enumerate(entry.inputs)) {
    func.setArgAttr(number, attn::kNameAttr, builder.getStringAttr(input.name));
    if (input.isTensor)
      func.setArgAttr(number, attn::kDimsAttr, strings(input.dimNames));
    if (input.isState)
      func.setArgAttr(number, attn::kStateAttr, builder.getUnitAttr());
    if (input.defaultValue)
      func.setArgAttr(
          number, attn::kDefaultAttr,
          defaultAttr(builder, irType(input.isState ? input.held : input.elem),
                      *input.defaultValue));
    func.getArgument(number).setLoc(loc(input.place));
    tensors[input.tensor] = func.getArgument(number);
    if (input.isState && input.held != input.elem)
      narrow[input.tensor] = input.elem;
  }
}

/// A state after the call, in its type in memory.
Value Emitter::stateAfter(const ModelOutput &output) {
  auto before = llvm::find_if(entry.inputs, [&](const ModelInput &input) {
    return input.isState && input.name == output.name;
  });
  return withElements(held(output.tensor), irType(before->held),
                      held(before->tensor));
}

void Emitter::outputs(func::FuncOp func) {
  SmallVector<Value> values;
  SmallVector<mlir::Type> types;
  for (const ModelOutput &output : entry.outputs) {
    values.push_back(output.isState ? stateAfter(output)
                                    : value(output.tensor));
    types.push_back(values.back().getType());
  }
  func::ReturnOp::create(builder, loc(entry.place), values);
  func.setFunctionType(
      builder.getFunctionType(func.getFunctionType().getInputs(), types));
  for (auto [k, output] : llvm::enumerate(entry.outputs)) {
    NamedAttrList about;
    about.set(attn::kNameAttr, builder.getStringAttr(output.name));
    about.set(attn::kDimsAttr, strings(output.dimNames));
    if (output.isState)
      about.set(attn::kStateAttr, builder.getUnitAttr());
    func.setResultAttrs(k, about.getDictionary(builder.getContext()));
  }
}

func::FuncOp Emitter::run(ModuleOp module) {
  builder.setInsertionPointToEnd(module.getBody());
  SmallVector<mlir::Type> types;
  for (const ModelInput &input : entry.inputs) {
    mlir::Type elem = irType(input.isState ? input.held : input.elem);
    types.push_back(input.isTensor ? RankedTensorType::get(input.dims, elem)
                                   : elem);
  }
  auto func = func::FuncOp::create(builder, loc(entry.namePlace), entry.name,
                                   builder.getFunctionType(types, {}));
  func->setAttr(attn::kModelAttr, builder.getUnitAttr());
  // Dims and checks go before this op, mathematics after it.
  builder.setInsertionPointToEnd(func.addEntryBlock());
  mark = arith::ConstantIndexOp::create(builder, func.getLoc(), 0);
  prologue = OpBuilder(mark);
  signature(func);
  emit(entry.steps);
  outputs(func);
  mark->erase();
  return func;
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
        found = heed::format("an extent of {}, expected at most {}", extent,
                             attn::kMaxExtent);
    if (!isStored || !found.empty())
      return;
    if (type.getRank() > attn::kMaxRank)
      found = heed::format("{} axes, expected at most {}", type.getRank(),
                           attn::kMaxRank);
    int64_t row = 1;
    for (int64_t extent : llvm::reverse(type.getShape())) {
      if (extent > 1 && row > INT32_MAX)
        found = heed::format("rows of more than {} elements", INT32_MAX);
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

OwningOpRef<ModuleOp> heed::emitModel(MLIRContext &context,
                                      const sema::Model &model,
                                      const Sources &sources,
                                      Diagnostics &diags) {
  context.loadDialect<arith::ArithDialect, attn::AttnDialect, func::FuncDialect,
                      linalg::LinalgDialect, math::MathDialect, scf::SCFDialect,
                      tensor::TensorDialect>();
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(locationOf(&context, sources, model.place));
  Builder builder(&context);
  (*module)->setAttr(attn::kSourceAttr, builder.getStringAttr(model.source));
  if (model.entries.size() > 1 || model.entries.front().name != model.name)
    (*module)->setAttr(attn::kModelAttr, builder.getStringAttr(model.name));
  for (const Entry &entry : model.entries) {
    func::FuncOp func = Emitter(context, entry, sources).run(*module);
    if (std::string what = tooLarge(func); !what.empty()) {
      diags.error(entry.namePlace,
                  heed::format("a tensor of '{}' has {}", entry.name, what));
      return nullptr;
    }
  }
  // Values that nothing uses go; the rest stays as it was written.
  PassManager passes(&context);
  passes.addPass(createCSEPass());
  if (failed(verify(*module)) || failed(passes.run(*module))) {
    diags.error(
        model.entries.front().namePlace,
        heed::format("internal error: the IR of model '{}' is not valid",
                     model.name));
    return nullptr;
  }
  markCounts(*module);
  return module;
}
