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

Analysis::Analysis(Entry &entry, const Program &program,
                   const FrontendOptions &options, const Sources &sources,
                   Diagnostics &diags, std::set<std::string> &usedSettings)
    : Knowledge(entry, program, options, sources, diags, usedSettings) {}

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
// The model and its entries
//===----------------------------------------------------------------------===//

/// The model that is asked for; null after an error.
static const ast::ModelDecl *chooseModel(const Program &program,
                                         const FrontendOptions &options,
                                         Diagnostics &diags) {
  auto &models = program.main->models;
  if (models.empty()) {
    diags.error(sema::Range(),
                format("{}: the file has no model", program.main->path));
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
  diags.error(sema::Range(),
              format("{}: no model '{}'{}", program.main->path, options.model,
                     didYouMean(options.model, known)));
  return nullptr;
}

/// What the entries of a model share stands in its body, their inputs do not.
static bool checkEntries(const ast::ModelDecl &decl, Diagnostics &diags) {
  bool ok = true;
  auto fail = [&](sema::Range place, const Twine &message) -> Diagnostic & {
    ok = false;
    return diags.error(place, message);
  };
  if (decl.entries.empty() && !decl.hasSignature)
    fail(decl.name.range, format("model '{}' has neither inputs nor an 'entry'",
                                 decl.name.text));
  llvm::StringMap<sema::Range> seen;
  for (const ast::EntryDecl &entry : decl.entries) {
    auto [first, isNew] = seen.try_emplace(entry.name.text, entry.name.range);
    if (!isNew)
      fail(entry.name.range,
           format("two entries are called '{}'", entry.name.text))
          .note(first->second, "first here");
  }
  for (const ast::StateDecl &state : decl.states) {
    auto also = [&](ArrayRef<ast::Argument> args) {
      for (const ast::Argument &arg : args)
        if (arg.name.text == state.name.text)
          fail(arg.name.range,
               format("'{}' is a state of the model", arg.name.text))
              .note(state.name.range, "declared here");
    };
    also(decl.args);
    for (const ast::EntryDecl &entry : decl.entries)
      also(entry.args);
    for (const ast::StateDecl &other : decl.states)
      if (&other < &state && other.name.text == state.name.text)
        fail(state.name.range,
             format("two states are called '{}'", state.name.text))
            .note(other.name.range, "first here");
  }
  if (!decl.states.empty() && decl.entries.empty())
    fail(decl.states.front().name.range,
         "a state lives from call to call of the entries of a model: expected "
         "an 'entry'");
  for (const ast::Argument &arg : decl.args)
    if (!decl.entries.empty() && arg.type)
      fail(arg.name.range,
           format("'{}' is an input of the model, expected inputs in the "
                  "signatures of its entries",
                  arg.name.text));
  return ok;
}

bool Analysis::run(const ast::ModelDecl &decl, const ast::EntryDecl *own) {
  const ast::Name &name = own ? own->name : decl.name;
  entry.name = name.text.str();
  entry.place = own ? own->range : decl.range;
  entry.namePlace = name.range;

  Frame frame;
  frame.env = std::make_shared<Env>();
  frame.env->file = decl.file;
  std::vector<const ast::Argument *> args;
  for (const ast::Argument &arg : decl.args)
    args.push_back(&arg);
  if (own)
    for (const ast::Argument &arg : own->args)
      args.push_back(&arg);
  for (const ast::StateDecl &state : decl.states) {
    states.push_back({state.name, state.type, nullptr, false});
    if (state.start)
      starts[state.name.text] = state.start.get();
    frame.env->states.insert(state.name.text.str());
  }
  for (const ast::Argument &state : states)
    args.push_back(&state);
  bool ok =
      bindSignature(decl, args, frame.env) && execute(decl.body.stmts, frame);
  if (ok && own) {
    if (frame.results)
      ok = error(frame.results->front().place,
                 "a result outside the entries of the model");
    ok = ok && execute(own->body.stmts, frame);
  }
  ok = ok && finish(name, own, frame) &&
       (!own || checkResults(own->results, frame.env)) && finishStates(frame);
  assert((ok || diags.hasErrors()) && "failed without a word");
  return ok;
}

/// A --set that no entry has taken.
static bool checkSettings(const ast::ModelDecl &decl,
                          const FrontendOptions &options,
                          const std::set<std::string> &used,
                          Diagnostics &diags) {
  std::vector<StringRef> known;
  auto add = [&](ArrayRef<ast::Argument> args) {
    for (const ast::Argument &arg : args)
      known.push_back(arg.name.text);
  };
  add(decl.args);
  for (const ast::EntryDecl &entry : decl.entries)
    add(entry.args);
  for (auto &[name, value] : options.settings)
    if (!used.count(name)) {
      diags.error(sema::Range(),
                  format("--set {}: model '{}' has no constant or dim of that "
                         "name{}",
                         name, decl.name.text, didYouMean(name, known)));
      return false;
    }
  return true;
}

std::shared_ptr<Model> heed::analyse(const Program &program,
                                     const FrontendOptions &options,
                                     const Sources &sources,
                                     Diagnostics &diags) {
  const ast::ModelDecl *decl = chooseModel(program, options, diags);
  if (!decl || !checkEntries(*decl, diags))
    return nullptr;
  auto model = std::make_shared<Model>();
  model->name = decl->name.text.str();
  model->source = llvm::sys::path::filename(program.main->path).str();
  model->place = decl->range;
  std::set<std::string> usedSettings;
  bool ok = true;
  auto analyseOne = [&](const ast::EntryDecl *own) {
    Analysis one(model->entries.emplace_back(), program, options, sources,
                 diags, usedSettings);
    ok &= one.run(*decl, own);
  };
  for (const ast::EntryDecl &own : decl->entries)
    analyseOne(&own);
  if (decl->entries.empty())
    analyseOne(nullptr);
  ok = ok && checkSettings(*decl, options, usedSettings, diags);
  return ok && !diags.hasErrors() ? model : nullptr;
}
