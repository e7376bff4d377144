//===- Lowering.cpp - A model to a module ---------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/Path.h"

using namespace heed;
using namespace heed::sema;
using namespace mlir;
using llvm::Twine;

Lowering::Lowering(MLIRContext &context, const Program &program,
                   const FrontendOptions &options, const Sources &sources,
                   Diagnostics &diags)
    : program(program), options(options), sources(sources), diags(diags),
      builder(&context), prologue(&context) {}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

bool Lowering::error(sema::Range place, const Twine &message,
                     ArrayRef<Note> notes) {
  pending.push_back({true, place, message.str(), notes.vec()});
  flushPending();
  return false;
}

void Lowering::warn(sema::Range place, const Twine &message) {
  pending.push_back({false, place, message.str(), {}});
  flushPending();
}

void Lowering::flushPending() {
  // Inside a loop that may yet be unrolled nothing is final.
  if (speculating)
    return;
  for (Pending &message : pending) {
    Diagnostic &diag = message.isError
                           ? diags.error(message.place, message.message)
                           : diags.warning(message.place, message.message);
    for (Note &note : message.notes)
      diag.note(note.place, note.text);
  }
  pending.clear();
}

Location Lowering::loc(sema::Range range) {
  if (!range.isValid())
    return builder.getUnknownLoc();
  Position position = sources.position(range.Start);
  return FileLineColLoc::get(builder.getContext(), position.file, position.line,
                             position.column);
}

std::string Lowering::hint(StringRef name, std::vector<StringRef> known) {
  return didYouMean(name, known);
}

std::string Lowering::plural(size_t count, StringRef one, StringRef many) {
  return (Twine(count) + " " + (count == 1 ? one : many)).str();
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

OwningOpRef<ModuleOp> Lowering::run() {
  const ast::ModelDecl *model = chooseModel();
  if (!model)
    return nullptr;
  if (!model->hasSignature || !model->entries.empty() ||
      !model->states.empty()) {
    error(model->name.range, "'state' and 'entry' are not supported yet");
    return nullptr;
  }
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc(model->range));
  (*module)->setAttr(
      attn::kSourceAttr,
      builder.getStringAttr(llvm::sys::path::filename(program.main->path)));
  builder.setInsertionPointToEnd(module->getBody());

  Frame frame;
  frame.env = std::make_shared<Env>();
  frame.env->file = model->file;
  func::FuncOp func;
  bool ok = bindSignature(*model, frame.env, func) &&
            execute(model->body.stmts, frame) && finish(*model, frame, func);
  if (ok)
    for (auto &[name, value] : options.settings)
      if (!usedSettings.count(name)) {
        std::vector<StringRef> known;
        for (const ast::Argument &arg : model->args)
          known.push_back(arg.name.text);
        ok = error({}, "--set " + name + ": model '" + model->name.text +
                           "' has no constant or dim of that name" +
                           hint(name, known));
      }
  if (!ok) {
    assert(diags.hasErrors() && "failed without a word");
    return nullptr;
  }
  mark->erase();
  // Values that nothing uses go; the rest stays as it was written.
  PassManager passes(builder.getContext());
  passes.addPass(createCSEPass());
  if (failed(verify(*module)) || failed(passes.run(*module))) {
    error(model->name.range, "internal error: the IR of model '" +
                                 model->name.text + "' is not valid");
    return nullptr;
  }
  return module;
}

OwningOpRef<ModuleOp> heed::compileHeed(MLIRContext &context,
                                        const Program &program,
                                        const FrontendOptions &options,
                                        const Sources &sources,
                                        Diagnostics &diags) {
  context.loadDialect<arith::ArithDialect, attn::AttnDialect, func::FuncDialect,
                      linalg::LinalgDialect, math::MathDialect, scf::SCFDialect,
                      tensor::TensorDialect>();
  return Lowering(context, program, options, sources, diags).run();
}
