//===- BoundNames.cpp - What a block binds --------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which names the statements of a loop, a scan or a branch give a value, found
// in the text alone: what is carried from turn to turn, what is not there
// afterwards, and what an error leaves without a value.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::cast;

/// Does the function change the state that it calls so? One that calls itself
/// may.
bool Analysis::changes(const FnDecl &fn, StringRef state) {
  if (llvm::is_contained(asked, &fn))
    return true;
  asked.push_back(&fn);
  llvm::scope_exit leave([&] { asked.pop_back(); });
  std::vector<std::string> names;
  boundNames(fn.body.stmts, *fn.file, names);
  return llvm::is_contained(names, state);
}

/// Does the left side leave a row of each step, at the position `step`?
static bool hasRow(const Left &left, StringRef step) {
  return llvm::any_of(left.indices, [&](const LeftIndex &item) {
    return item.kind == LeftIndex::Plain
               ? item.name.text == step
               : item.kind == LeftIndex::Affine &&
                     ast::anyName(*item.expr,
                                  [&](StringRef name) { return name == step; });
  });
}

/// The names that have a row of each step, at any depth of a scan's block.
static void rowNames(const std::vector<StmtPtr> &stmts, StringRef step,
                     llvm::function_ref<void(StringRef)> add) {
  for (const StmtPtr &stmt : stmts)
    switch (stmt->kind) {
    case StmtKind::Equation:
      if (auto &left = cast<EquationStmt>(*stmt).left; hasRow(left, step))
        add(left.name.text);
      break;
    case StmtKind::For:
      rowNames(cast<ForStmt>(*stmt).body.stmts, step, add);
      break;
    case StmtKind::If:
      rowNames(cast<IfStmt>(*stmt).thenBlock.stmts, step, add);
      rowNames(cast<IfStmt>(*stmt).elseBlock.stmts, step, add);
      break;
    case StmtKind::Scan:
      rowNames(cast<ScanStmt>(*stmt).body.stmts, step, add);
      break;
    default:
      break;
    }
}

/// The names that a block binds, at any depth, and the states that its calls
/// change. Of a scan those are its states and what has a row of each step.
/// Long: one kind of statement after the other.
void Analysis::boundNames(const std::vector<StmtPtr> &stmts,
                          const ast::File &file,
                          std::vector<std::string> &names) {
  auto add = [&](StringRef name) {
    if (!llvm::is_contained(names, name))
      names.push_back(name.str());
  };
  auto addStates = [&](const Expr &right) {
    const FnDecl *fn = changesStates(right, file);
    if (!fn)
      return;
    auto &call = cast<CallExpr>(inParens(right));
    auto addState = [&](const Argument &formal, const Expr &given) {
      if (auto *name = llvm::dyn_cast<NameExpr>(&given);
          name && formal.isState && changes(*fn, formal.name.text))
        add(name->name);
    };
    for (auto [formal, given] : llvm::zip(fn->args, call.args))
      addState(formal, *given);
    for (const NamedArgument &given : call.named)
      for (const Argument &formal : fn->args)
        if (formal.name.text == given.name.text)
          addState(formal, *given.value);
  };
  for (const StmtPtr &stmt : stmts) {
    switch (stmt->kind) {
    case StmtKind::Equation:
      add(cast<EquationStmt>(*stmt).left.name.text);
      addStates(*cast<EquationStmt>(*stmt).right);
      break;
    case StmtKind::Call:
      addStates(*cast<CallStmt>(*stmt).call);
      break;
    case StmtKind::Bind:
      addStates(*cast<BindStmt>(*stmt).right);
      for (const Name &name : cast<BindStmt>(*stmt).names)
        add(name.text);
      break;
    case StmtKind::Param:
      add(cast<ParamStmt>(*stmt).name.text);
      break;
    case StmtKind::Const:
      add(cast<ConstStmt>(*stmt).name.text);
      break;
    case StmtKind::Let:
      add(cast<LetStmt>(*stmt).name.text);
      break;
    case StmtKind::For:
      boundNames(cast<ForStmt>(*stmt).body.stmts, file, names);
      break;
    case StmtKind::If:
      boundNames(cast<IfStmt>(*stmt).thenBlock.stmts, file, names);
      boundNames(cast<IfStmt>(*stmt).elseBlock.stmts, file, names);
      break;
    case StmtKind::Scan: {
      auto &scan = cast<ScanStmt>(*stmt);
      for (const Carried &state : scan.state)
        add(state.name.text);
      rowNames(scan.body.stmts, scan.var.text, add);
      break;
    }
    default:
      break;
    }
  }
}

/// What a block that has ended had for itself is not there any more.
void Analysis::noteEnded(const std::vector<StmtPtr> &stmts, StringRef text,
                         Range place, Env &env) {
  std::vector<std::string> names;
  boundNames(stmts, *env.file, names);
  for (const std::string &name : names)
    if (!env.names.count(name))
      env.ended.insert_or_assign(name, Note{place, text.str()});
}

/// After an error: what a block would have bound is not worth a message.
void Analysis::poison(const Stmt &stmt, Env &env) {
  std::vector<std::string> names;
  switch (stmt.kind) {
  case StmtKind::For:
    boundNames(cast<ForStmt>(stmt).body.stmts, *env.file, names);
    break;
  case StmtKind::If:
    boundNames(cast<IfStmt>(stmt).thenBlock.stmts, *env.file, names);
    boundNames(cast<IfStmt>(stmt).elseBlock.stmts, *env.file, names);
    break;
  case StmtKind::Scan:
    boundNames(cast<ScanStmt>(stmt).body.stmts, *env.file, names);
    for (const Carried &state : cast<ScanStmt>(stmt).state)
      names.push_back(state.name.text.str());
    break;
  case StmtKind::While:
    boundNames(cast<WhileStmt>(stmt).body.stmts, *env.file, names);
    for (const Carried &state : cast<WhileStmt>(stmt).state)
      names.push_back(state.name.text.str());
    break;
  default:
    break;
  }
  for (const std::string &name : names)
    env.names[name] = Binding();
}
