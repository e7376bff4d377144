//===- Analysis.cpp - A model to a module ---------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include "llvm/Support/Path.h"

using namespace heed;
using namespace heed::sema;
using llvm::ArrayRef;
using llvm::StringRef;
using llvm::Twine;

Analysis::Analysis(Model &model, const Program &program,
                   const FrontendOptions &options, const Sources &sources,
                   Diagnostics &diags)
    : model(model), program(program), options(options), sources(sources),
      diags(diags), sizes(model.sizes), sink(&model.steps) {}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

bool Analysis::error(sema::Range place, const Twine &message,
                     ArrayRef<Note> notes) {
  pending.push_back({true, place, message.str(), notes.vec()});
  flushPending();
  return false;
}

void Analysis::warn(sema::Range place, const Twine &message) {
  pending.push_back({false, place, message.str(), {}});
  flushPending();
}

void Analysis::flushPending() {
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

std::string Analysis::hint(StringRef name, llvm::ArrayRef<StringRef> known) {
  return didYouMean(name, known);
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

bool Analysis::run() {
  const ast::ModelDecl *decl = chooseModel();
  if (!decl)
    return false;
  if (!decl->hasSignature || !decl->entries.empty() || !decl->states.empty())
    return error(decl->name.range, "'state' and 'entry' are not supported yet");
  model.name = decl->name.text.str();
  model.source = llvm::sys::path::filename(program.main->path).str();
  model.place = decl->range;
  model.namePlace = decl->name.range;

  Frame frame;
  frame.env = std::make_shared<Env>();
  frame.env->file = decl->file;
  bool ok = bindSignature(*decl, frame.env) &&
            execute(decl->body.stmts, frame) && finish(*decl, frame);
  if (ok)
    for (auto &[name, value] : options.settings)
      if (!usedSettings.count(name)) {
        std::vector<StringRef> known;
        for (const ast::Argument &arg : decl->args)
          known.push_back(arg.name.text);
        ok = error(
            {},
            format("--set {}: model '{}' has no constant or dim of that name{}",
                   name, decl->name.text, hint(name, known)));
      }
  assert((ok || diags.hasErrors()) && "failed without a word");
  return ok;
}

std::shared_ptr<Model> heed::analyse(const Program &program,
                                     const FrontendOptions &options,
                                     const Sources &sources,
                                     Diagnostics &diags) {
  auto model = std::make_shared<Model>();
  bool ok = Analysis(*model, program, options, sources, diags).run();
  return ok ? model : nullptr;
}
