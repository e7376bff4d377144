//===- Statements.cpp - Equations, dims, results --------------------------===//
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
using llvm::cast;
using llvm::dyn_cast;

bool Analysis::execute(const std::vector<StmtPtr> &stmts, Frame &frame) {
  bool ok = true;
  for (const StmtPtr &stmt : stmts) {
    if (frame.results)
      return error(stmt->range, "a statement after 'return'");
    if (!execute(*stmt, frame)) {
      ok = false;
      poison(*stmt, *frame.env);
    }
    if (needsUnroll)
      return false;
  }
  return ok;
}

bool Analysis::execute(const Stmt &stmt, Frame &frame) {
  switch (stmt.kind) {
  case StmtKind::Equation: {
    auto &eq = cast<EquationStmt>(stmt);
    Binding result;
    bool ok =
        executeEquation(eq.left, *eq.right, eq.where.get(), frame, result);
    return assign(eq.left.name, ok ? result : Binding(), *frame.env) && ok;
  }
  case StmtKind::Bind:
    return executeBind(cast<BindStmt>(stmt), frame);
  case StmtKind::Return:
    return executeReturn(cast<ReturnStmt>(stmt), frame);
  case StmtKind::Param:
    return executeParam(cast<ParamStmt>(stmt), frame);
  case StmtKind::Dim:
    return executeDim(cast<DimStmt>(stmt), frame);
  case StmtKind::Let:
    return executeLet(cast<LetStmt>(stmt), frame);
  case StmtKind::Const: {
    auto &decl = cast<ConstStmt>(stmt);
    auto value = constant(*decl.value, frame.env,
                          format("constant '{}'", decl.name.text));
    Binding binding = value ? *value : Binding();
    binding.place = decl.name.range;
    frame.env->names[decl.name.text.str()] = binding;
    return value.has_value();
  }
  case StmtKind::For:
    if (!executeFor(cast<ForStmt>(stmt), frame))
      return false;
    noteEnded(cast<ForStmt>(stmt).body.stmts,
              "it is local to this loop: what is defined before the loop has "
              "its last value afterwards",
              stmt.range, *frame.env);
    return true;
  case StmtKind::If:
    return executeIf(cast<IfStmt>(stmt), frame);
  case StmtKind::Scan:
    if (!executeScan(cast<ScanStmt>(stmt), frame))
      return false;
    noteEnded(cast<ScanStmt>(stmt).body.stmts,
              "it is local to a step of this scan: a state, or a row of each "
              "step, is there afterwards",
              stmt.range, *frame.env);
    return true;
  case StmtKind::While:
    return error(stmt.range, "'while' is not supported yet");
  case StmtKind::Call:
    return executeCall(cast<CallStmt>(stmt), frame);
  }
  return false;
}

bool Analysis::executeIf(const IfStmt &stmt, Frame &frame) {
  auto value = staticValue(*stmt.condition, frame.env, "the condition of 'if'");
  if (!value)
    return false;
  if (value->kind != Binding::Bool)
    return error(
        stmt.condition->range,
        format("the condition of 'if' must be bool, found {}", kindOf(*value)));
  if (value->flag)
    return execute(stmt.thenBlock.stmts, frame);
  return execute(stmt.elseBlock.stmts, frame);
}

/// A call alone: a message, or a function that changes states and has no
/// result.
bool Analysis::executeCall(const CallStmt &stmt, Frame &frame) {
  auto &call = *stmt.call;
  if (call.callee.text == "append" || call.callee.text == "scatter")
    return error(stmt.range,
                 format("'{}' is not supported yet", call.callee.text));
  if (call.callee.text == "error" &&
      !program.findFn(*frame.env->file, "error")) {
    Equation eq;
    Scope scope;
    scope.env = frame.env;
    return infer(call, scope, eq) != nullptr;
  }
  const FnDecl *fn = changesStates(call, *frame.env->file);
  auto results =
      fn ? executeCall(*fn, call, frame) : std::vector<sema::Result>(1);
  if (!results)
    return false;
  return results->empty() ||
         error(stmt.range, format("the result of '{}' is not used: bind it "
                                  "to a name",
                                  call.callee.text));
}

/// A call that stands alone on its line: its results as they are bound to
/// names.
std::optional<std::vector<sema::Result>>
Analysis::executeCall(const FnDecl &fn, const CallExpr &expr, Frame &frame) {
  Equation eq;
  Scope scope;
  scope.env = frame.env;
  auto results = call(fn, expr, scope, eq);
  if (!results)
    return std::nullopt;
  for (sema::Result &result : *results) {
    if (result.value.kind != Binding::Thunk)
      continue;
    Binding whole;
    if (!lowerWhole(*result.value.thunk->expr, *result.value.thunk->scope,
                    nullptr, whole))
      return std::nullopt;
    result.value = whole;
  }
  return results;
}

/// Such a call of one result.
bool Analysis::executeCall(const FnDecl &fn, const CallExpr &expr, Frame &frame,
                           Binding &result) {
  auto results = executeCall(fn, expr, frame);
  if (results && results->size() != 1)
    return error(expr.range,
                 format("'{}' has {}, one name is given", expr.callee.text,
                        counted(results->size(), "result", "results")),
                 Note{fn.name.range, "defined here"});
  if (results)
    result = results->front().value;
  return results.has_value();
}

bool Analysis::executeBind(const BindStmt &stmt, Frame &frame) {
  auto poison = [&] {
    for (const Name &name : stmt.names)
      frame.env->names[name.text.str()] = Binding();
    return false;
  };
  auto *call = dyn_cast<CallExpr>(stmt.right.get());
  const FnDecl *fn =
      call ? program.findFn(*frame.env->file, call->callee.text) : nullptr;
  if (!fn) {
    error(stmt.right->range,
          "several names on the left need a function with as many results");
    return poison();
  }
  auto results = executeCall(*fn, *call, frame);
  if (!results)
    return poison();
  if (results->size() != stmt.names.size()) {
    error(stmt.range,
          format("'{}' has {}, {} names are given", call->callee.text,
                 counted(results->size(), "result", "results"),
                 stmt.names.size()),
          Note{fn->name.range, "defined here"});
    return poison();
  }
  bool ok = true;
  for (auto [name, result] : llvm::zip(stmt.names, *results))
    ok &= assign(name, result.value, *frame.env);
  return ok;
}

bool Analysis::executeReturn(const ReturnStmt &stmt, Frame &frame) {
  std::vector<Result> results;
  bool ok = true;
  for (const ast::Result &item : stmt.results) {
    Result result;
    result.place = item.range;
    if (item.left && isModelState(item.left->name.text, *frame.env)) {
      ok = error(item.left->name.range,
                 format("a result with the name of the state '{}': expected "
                        "another name, or a line before 'return'",
                        item.left->name.text));
      continue;
    }
    if (item.left) {
      if (!executeEquation(*item.left, *item.right, nullptr, frame,
                           result.value)) {
        ok = false;
        result.value = Binding();
      }
      result.name = item.left->name.text.str();
      result.value.place = item.left->name.range;
      frame.env->names[result.name] = result.value; // for later results
    } else {
      if (auto *name = dyn_cast<NameExpr>(item.right.get()))
        result.name = name->name.str();
      Scope scope;
      scope.env = frame.env;
      ok &= lowerWhole(*item.right, scope, frame.outer, result.value);
    }
    results.push_back(std::move(result));
  }
  if (!ok)
    return false;
  frame.results = std::move(results);
  return true;
}

//===----------------------------------------------------------------------===//
// Dims, collections
//===----------------------------------------------------------------------===//

bool Analysis::executeDim(const DimStmt &stmt, Frame &frame) {
  StringRef name = stmt.name.text;
  // A dim that --set gives is a constraint on that value.
  std::optional<Binding> old = lookup(*frame.env, name);
  auto value = sizeValue(*stmt.value, frame.env, format("dim '{}'", name));
  if (!value) {
    if (!old)
      frame.env->names[name.str()] = Binding();
    return false;
  }
  if (!old) {
    Binding dim = Binding::of(*value);
    dim.place = stmt.name.range;
    dim.isDim = true;
    frame.env->names[name.str()] = dim;
    return true;
  }
  if (old->kind == Binding::Poison)
    return false;
  if (old->kind != Binding::Int)
    return error(stmt.name.range,
                 format("'{}' is in scope and is no dim", name),
                 Note{old->place, "defined here"});
  SmallVector<Note, 1> notes;
  if (old->place.isValid())
    notes.push_back({old->place, format("'{}' comes from here", name)});
  return requireEqual(old->size, *value, stmt.value->range,
                      format("dim '{}' is {}, expected {}", name,
                             sizes.str(old->size), sizes.str(*value)),
                      notes,
                      format("dim '{}' is {{0}}, expected {} = {{1}}", name,
                             escape(sizes.str(*value))));
}

bool Analysis::executeLet(const LetStmt &stmt, Frame &frame) {
  auto shape = shapeOf(*stmt.type, frame.env, format("'{}'", stmt.name.text));
  Binding binding;
  if (shape && stmt.type->element) {
    if (auto ty = tyOf(*stmt.type->element, stmt.type->range)) {
      binding.kind = Binding::Collection;
      binding.collection = std::make_shared<Collection>();
      binding.collection->elem = *ty;
      binding.collection->shape = *shape;
      binding.collection->name = stmt.name.text.str();
    }
  } else if (shape) {
    error(stmt.type->range, "a collection needs an element type");
  }
  binding.place = stmt.name.range;
  frame.env->names[stmt.name.text.str()] = binding;
  return binding.kind != Binding::Poison;
}
