//===- ParseDecl.cpp - Files, functions, models ---------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ParserCore.h"
#include "support/Format.h"

#include "llvm/ADT/StringMap.h"

using namespace heed;
using namespace heed::ast;
using llvm::SMLoc;
using llvm::StringRef;

void Parser::parseFile(File &file) {
  skipNewlines();
  auto atDecl = [&] {
    return atAnyOf({"import", "config", "const", "fn", "model"});
  };
  while (!stopped()) {
    bool known = atDecl();
    if (!parseDecl(file) || !endStmt()) {
      do {
        recover();
        accept("}"); // nothing is open here, so it cannot end a block
        skipNewlines();
        // What follows a head that is wrong may be its body.
      } while (known && !stopped() && !atDecl());
    }
    skipNewlines();
    if (atKind(TokenKind::End))
      return;
  }
}

bool Parser::parseDecl(File &file) {
  SMLoc begin = here();
  if (accept("import")) {
    ImportDecl decl;
    if (!parsePath(decl.path))
      return false;
    decl.range = from(begin);
    file.imports.push_back(decl);
    return true;
  }
  if (accept("config")) {
    ConfigDecl decl;
    if (!parsePath(decl.path))
      return false;
    decl.range = from(begin);
    while (accept(",")) {
      auto stmt = std::make_unique<ConstStmt>();
      SMLoc start = here();
      if (!parseEntryName(stmt->name) || !expect("=") ||
          !(stmt->value = parseTable()))
        return false;
      stmt->range = from(start);
      decl.defaults.push_back(std::move(stmt));
    }
    file.configs.push_back(std::move(decl));
    return true;
  }
  if (at("const"))
    return parseConsts(file.consts);
  if (at("fn"))
    return parseFn(file);
  if (at("model"))
    return parseModel(file);
  if (at("}"))
    fail("'import', 'config', 'const', 'fn' or 'model'");
  else if (!atKind(TokenKind::Name))
    fail("'import', 'config', 'const', 'fn' or 'model'");
  else
    failAt(token().range,
           heed::format("expected 'import', 'config', 'const', 'fn' or "
                        "'model', found '{}'{}",
                        token().text.take_front(40),
                        didYouMean(token().text, {"import", "config", "const",
                                                  "fn", "model"})));
  return false;
}

bool Parser::parsePath(StringRef &path) {
  std::unique_ptr<StringExpr> string = parseString();
  if (!string)
    return false;
  path = string->raw;
  if (!string->isPlain())
    failAt(string->range, "a path takes no {..}");
  else if (path.empty())
    failAt(string->range, "a path must not be empty");
  return string->isPlain() && !path.empty();
}

bool Parser::parseFn(File &file) {
  SMLoc begin = here();
  take();
  auto fn = std::make_unique<FnDecl>();
  fn->file = &file;
  if (!parseName(fn->name) || !parseSignature(fn->args, Owner::Fn))
    return false;
  if (accept("=")) {
    auto stmt = std::make_unique<ReturnStmt>();
    SMLoc bodyBegin = here();
    Result result;
    if (!(result.right = parseExpr()))
      return false;
    result.range = from(bodyBegin);
    stmt->results.push_back(std::move(result));
    push(fn->body.stmts, std::move(stmt), bodyBegin);
    fn->body.range = from(bodyBegin);
  } else if (!at("{")) {
    fail("'=' or '{'");
    return false;
  } else if (!parseBlock(fn->body)) {
    return false;
  }
  fn->range = from(begin);
  file.fns.push_back(std::move(fn));
  return true;
}

bool Parser::parseModel(File &file) {
  SMLoc begin = here();
  take();
  auto model = std::make_unique<ModelDecl>();
  model->file = &file;
  if (!parseName(model->name))
    return false;
  model->hasSignature = at("(");
  if (!model->hasSignature && !at("{")) {
    fail("'(' or '{'");
    return false;
  }
  if (model->hasSignature && !parseSignature(model->args, Owner::Model))
    return false;
  if (!parseModelBody(*model))
    return false;
  model->range = from(begin);
  file.models.push_back(std::move(model));
  return true;
}

bool Parser::parseModelBody(ModelDecl &model) {
  Nest nest(*this);
  SMLoc begin = here();
  if (!nest || !expect("{"))
    return false;
  skipNewlines();
  while (!at("}") && !stopped()) {
    bool ok = at("state")   ? parseStates(model)
              : at("entry") ? parseEntry(model)
                            : parseStmt(model.body.stmts);
    if (!ok || !endStmt())
      recover();
    skipNewlines();
  }
  if (!expect("}"))
    return false;
  model.body.range = from(begin);
  return true;
}

bool Parser::parseStates(ModelDecl &model) {
  take();
  return parseList([&] {
    std::vector<Name> names;
    TypePtr type;
    if (!parseTyped(names, type))
      return false;
    std::shared_ptr<Expr> start;
    if (accept("=") && !(start = parseExpr()))
      return false;
    for (const Name &name : names)
      model.states.push_back({name, type, start});
    return true;
  });
}

bool Parser::parseEntry(ModelDecl &model) {
  SMLoc begin = here();
  take();
  EntryDecl entry;
  if (!parseName(entry.name) || !parseSignature(entry.args, Owner::Entry))
    return false;
  if (accept("->") && !parseList([&] {
        entry.results.push_back(parseType());
        return bool(entry.results.back());
      }))
    return false;
  if (!parseBlock(entry.body))
    return false;
  entry.range = from(begin);
  model.entries.push_back(std::move(entry));
  return true;
}

/// Of a fn, names without a type are arguments of any.
bool Parser::settleUntyped(std::vector<Argument> &pending, Owner owner,
                           bool late, std::vector<Argument> &args) {
  for (Argument &arg : pending) {
    if (owner != Owner::Fn) {
      failAt(arg.name.range,
             heed::format("input '{}' needs a type{}", arg.name.text,
                          (late ? ", or a value" : "")));
      return false;
    }
    args.push_back(std::move(arg));
  }
  pending.clear();
  return true;
}

/// One name, with what follows it: a type, which is also that of the names in
/// `pending`, a value, or neither.
bool Parser::parseArgument(std::vector<Argument> &pending, Owner owner,
                           bool late, std::vector<Argument> &args) {
  Argument arg;
  arg.afterSemicolon = late;
  if (!parseName(arg.name, owner == Owner::Fn ? "a parameter" : "an input"))
    return false;
  if (accept(":")) {
    if (late && owner == Owner::Fn &&
        !settleUntyped(pending, owner, late, args))
      return false;
    pending.push_back(std::move(arg));
    TypePtr type = parseType();
    if (!type)
      return false;
    if (at("=") && pending.size() > 1) {
      failAt(token().range, "one value for several names: give each its own");
      return false;
    }
    if (accept("=") && !(pending.back().defaultValue = parseTable()))
      return false;
    for (Argument &waiting : pending) {
      waiting.type = type;
      args.push_back(std::move(waiting));
    }
    pending.clear();
    return true;
  }
  if (!at("=")) {
    pending.push_back(std::move(arg));
    return true;
  }
  if (!late && owner != Owner::Fn) {
    failAt(
        arg.name.range,
        heed::format("'{}' has a value but no type: constants stand behind ';'",
                     arg.name.text));
    return false;
  }
  take();
  if (!settleUntyped(pending, owner, late, args) ||
      !(arg.defaultValue = parseTable()))
    return false;
  args.push_back(std::move(arg));
  return true;
}

/// state a, b: T
bool Parser::parseStateArguments(std::vector<Argument> &pending, Owner owner,
                                 std::vector<Argument> &args) {
  take();
  std::vector<Name> names;
  TypePtr type;
  if (!settleUntyped(pending, owner, /*late=*/false, args) ||
      !parseTyped(names, type))
    return false;
  for (const Name &name : names)
    args.push_back({name, type, nullptr, false, true});
  return true;
}

/// (a, b: T, c: T; d = 1, e: i32 = 2): names wait for the type that follows
/// them, except behind the `;` of a fn, where a type belongs to one name.
bool Parser::parseSignature(std::vector<Argument> &args, Owner owner) {
  std::vector<Argument> pending;
  bool late = false;
  if (!expect("("))
    return false;
  while (!at(")")) {
    if (at(";")) {
      if (late) {
        failAt(token().range, "a signature has one ';'");
        return false;
      }
      take();
      if (!settleUntyped(pending, owner, late, args))
        return false;
      late = true;
      continue;
    }
    bool ok = owner == Owner::Fn && !late && at("state")
                  ? parseStateArguments(pending, owner, args)
                  : parseArgument(pending, owner, late, args);
    if (!ok)
      return false;
    if (at(")") || at(";"))
      continue;
    if (!accept(",")) {
      fail("',', ';' or ')'");
      return false;
    }
  }
  if (!settleUntyped(pending, owner, late, args))
    return false;
  take();
  return checkSignature(args);
}

bool Parser::checkSignature(llvm::ArrayRef<Argument> args) {
  llvm::StringMap<Range> seen;
  for (const Argument &arg : args) {
    auto [first, isNew] = seen.try_emplace(arg.name.text, arg.name.range);
    if (isNew)
      continue;
    diags
        .error(arg.name.range,
               heed::format("parameter '{}' occurs twice", arg.name.text))
        .note(first->second, "first here");
    return false;
  }
  return true;
}
