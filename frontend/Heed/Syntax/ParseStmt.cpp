//===- ParseStmt.cpp - Statements and types -------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ParserCore.h"
#include "support/Format.h"

using namespace heed;
using namespace heed::ast;
using llvm::SMLoc;
using llvm::StringRef;

/// One statement gives several when it declares several names; all of them are
/// then appended. True unless it failed.
static bool appendConsts(std::vector<StmtPtr> &out,
                         std::vector<std::unique_ptr<ConstStmt>> &consts) {
  for (std::unique_ptr<ConstStmt> &stmt : consts)
    out.push_back(std::move(stmt));
  return true;
}

/// What other languages write there, and what is written here.
static std::string hintAt(llvm::ArrayRef<Token> tokens, unsigned next) {
  const Token &found = tokens[next];
  if (found.is("if"))
    return "; a choice is written (if .. then .. else ..)";
  if (found.is("where"))
    return "; a 'where' stands in the parentheses of a reduction or a softmax, "
           "and behind an update of a state";
  if (found.is("@"))
    return "; a product of matrices is written sum(k) a[i, k] * b[k, j]";
  if (next == 0 || !(found.kind == TokenKind::Name || found.is("(")))
    return "";
  if (!tokens[next - 1].is(")"))
    return tokens[next - 1].is("]") ? "; a product is written with '*'" : "";
  for (unsigned open = next - 1; open-- > 1;)
    if (tokens[open].match == next - 1)
      return tokens[open - 1].kind == TokenKind::Name
                 ? heed::format("; '{}' is no reduction, these are sum, mean, "
                                "prod, max, min, argmax, any and all",
                                tokens[open - 1].text)
                 : std::string("; a product is written with '*'");
  return "";
}

bool Parser::endStmt() {
  if (at("}") || atKind(TokenKind::End))
    return true;
  if (atKind(TokenKind::Newline)) {
    take();
    return true;
  }
  fail("an operator or the end of the statement", hintAt(tokens, next));
  return false;
}

void Parser::parseStmtOrRecover(std::vector<StmtPtr> &out) {
  if (!parseStmt(out) || !endStmt())
    recover();
  skipNewlines();
}

bool Parser::parseBlock(Block &block) {
  Nest nest(*this);
  SMLoc begin = here();
  if (!nest || !expect("{"))
    return false;
  skipNewlines();
  while (!at("}") && !stopped())
    parseStmtOrRecover(block.stmts);
  if (!expect("}"))
    return false;
  block.range = from(begin);
  return true;
}

bool Parser::parseStmt(std::vector<StmtPtr> &out) {
  if (at("return"))
    return parseReturn(out);
  if (at("if"))
    return parseStaticIf(out);
  if (at("for"))
    return parseFor(out);
  if (at("scan"))
    return parseScan(out);
  if (at("param"))
    return parseParams(out);
  if (at("dim"))
    return parseDims(out);
  if (at("let"))
    return parseLets(out);
  if (at("const")) {
    std::vector<std::unique_ptr<ConstStmt>> consts;
    return parseConsts(consts) && appendConsts(out, consts);
  }
  if (at("state") || at("entry")) {
    failAt(token().range,
           heed::format("'{}' stands in the outermost block of a model",
                        token().text));
    return false;
  }
  if (atAnyOf({"+", "-", "*", "/", "//", "%", "^", "and", "or"})) {
    failAt(token().range,
           heed::format("expected a statement, found '{}'; an operator stands "
                        "at the end of the line before",
                        token().text));
    return false;
  }
  if (!atKind(TokenKind::Name)) {
    fail("a statement");
    return false;
  }
  // No reserved word: a tensor may have this name.
  if (token().text == "while" && !at("[", 1) && !at("=", 1) && !at(",", 1))
    return parseWhile(out);
  if (at("(", 1)) {
    SMLoc begin = here();
    auto stmt = std::make_unique<CallStmt>();
    if (!(stmt->call = parseCall()))
      return false;
    push(out, std::move(stmt), begin);
    return true;
  }
  return parseEquation(out);
}

bool Parser::atEquation(unsigned ahead) const {
  if (!atKind(TokenKind::Name, ahead))
    return false;
  const Token &after = token(ahead + 1);
  return after.is("[") ? tokens[after.match + 1].is("=") : after.is("=");
}

bool Parser::parseReturn(std::vector<StmtPtr> &out) {
  SMLoc begin = here();
  take();
  auto stmt = std::make_unique<ReturnStmt>();
  bool ok = parseList([&] {
    Result result;
    SMLoc resultBegin = here();
    if (atEquation()) {
      result.left.emplace();
      if (!parseLeft(*result.left) || !expect("=") ||
          !(result.right = parseRight()))
        return false;
    } else if (!(result.right = parseExpr())) {
      return false;
    }
    result.range = from(resultBegin);
    stmt->results.push_back(std::move(result));
    return true;
  });
  if (ok)
    push(out, std::move(stmt), begin);
  return ok;
}

bool Parser::parseEquation(std::vector<StmtPtr> &out) {
  SMLoc begin = here();
  if (at(",", 1)) {
    auto stmt = std::make_unique<BindStmt>();
    bool ok = parseList([&] {
      stmt->names.emplace_back();
      return parseName(stmt->names.back());
    });
    if (!ok || !expect("=") || !(stmt->right = parseExpr()))
      return false;
    push(out, std::move(stmt), begin);
    return true;
  }
  auto stmt = std::make_unique<EquationStmt>();
  if (!parseLeft(stmt->left))
    return false;
  if (at("==")) {
    failAt(token().range, "expected '=', found '=='; a comparison is no "
                          "statement");
    return false;
  }
  if (!expect("=") || !(stmt->right = parseRight()))
    return false;
  if (accept("where") && !(stmt->where = parseExprIn(ast::Place::Condition)))
    return false;
  push(out, std::move(stmt), begin);
  return true;
}

bool Parser::parseLeft(Left &left) {
  SMLoc begin = here();
  if (!parseName(left.name))
    return false;
  if (accept("[")) {
    left.hasIndices = true;
    bool ok = parseUntil("]", [&] {
      LeftIndex index;
      SMLoc indexBegin = here();
      if (!parseLeftIndex(index))
        return false;
      index.range = from(indexBegin);
      left.indices.push_back(std::move(index));
      return true;
    });
    if (!ok)
      return false;
  }
  left.range = from(begin);
  return true;
}

bool Parser::parseLeftIndex(LeftIndex &index) {
  if (accept("..")) {
    index.kind = LeftIndex::Dots;
    return true;
  }
  if (atKind(TokenKind::Name) && (at(":", 1) || at(",", 1) || at("]", 1))) {
    parseName(index.name);
    return !accept(":") || (index.extent = parseSumIn(Place::Bound));
  }
  index.kind = LeftIndex::Affine;
  return bool(index.expr = parseSumIn(Place::Index));
}

bool Parser::parseStaticIf(std::vector<StmtPtr> &out) {
  Nest nest(*this);
  if (!nest)
    return false;
  SMLoc begin = here();
  take();
  auto stmt = std::make_unique<IfStmt>();
  if (!(stmt->condition = parseExprIn(Place::Condition)))
    return false;
  if (at("then")) {
    failAt(token().range, "expected '{', found 'then'; an 'if' that chooses a "
                          "value stands on the right of an equation");
    return false;
  }
  if (!parseBlock(stmt->thenBlock))
    return false;
  // The lexer has taken away a newline before `else`.
  if (accept("else")) {
    stmt->hasElse = true;
    SMLoc elseBegin = here();
    bool ok = at("if") ? parseStaticIf(stmt->elseBlock.stmts)
                       : parseBlock(stmt->elseBlock);
    if (!ok)
      return false;
    stmt->elseBlock.range = from(elseBegin);
  }
  push(out, std::move(stmt), begin);
  return true;
}

bool Parser::parseBounds(ExprPtr &lo, ExprPtr &hi) {
  return expect("in") && (lo = parseSumIn(Place::Bound)) && expect("..") &&
         (hi = parseSumIn(Place::Bound));
}

bool Parser::parseFor(std::vector<StmtPtr> &out) {
  SMLoc begin = here();
  take();
  auto stmt = std::make_unique<ForStmt>();
  if (!parseName(stmt->var, "a loop variable") ||
      !parseBounds(stmt->lo, stmt->hi) || !parseBlock(stmt->body))
    return false;
  push(out, std::move(stmt), begin);
  return true;
}

bool Parser::parseCarried(std::vector<Carried> &state) {
  while (accept(",")) {
    std::vector<Name> names;
    TypePtr type;
    if (!parseTyped(names, type) || !expect("="))
      return false;
    std::shared_ptr<Expr> init = parseExpr();
    if (!init)
      return false;
    for (const Name &name : names)
      state.push_back({name, type, init});
  }
  return true;
}

bool Parser::parseScan(std::vector<StmtPtr> &out) {
  SMLoc begin = here();
  take();
  auto stmt = std::make_unique<ScanStmt>();
  if (!parseName(stmt->var, "a loop variable") ||
      !parseBounds(stmt->lo, stmt->hi) || !parseCarried(stmt->state) ||
      !parseBlock(stmt->body))
    return false;
  push(out, std::move(stmt), begin);
  return true;
}

bool Parser::parseWhile(std::vector<StmtPtr> &out) {
  SMLoc begin = here();
  take();
  auto stmt = std::make_unique<WhileStmt>();
  if (!(stmt->condition = parseExprIn(Place::Condition)) ||
      !parseCarried(stmt->state) || !parseBlock(stmt->body))
    return false;
  push(out, std::move(stmt), begin);
  return true;
}

/// a, b: type @ "x" | "y", "z" and further groups after a comma.
bool Parser::parseParams(std::vector<StmtPtr> &out) {
  SMLoc begin = here();
  take();
  return parseList([&] {
    std::vector<Name> names;
    TypePtr type;
    if (!parseTyped(names, type))
      return false;
    std::vector<std::vector<std::unique_ptr<StringExpr>>> files;
    SMLoc at = here();
    auto alternatives = [&] {
      files.emplace_back();
      do {
        files.back().push_back(parseString());
        if (!files.back().back())
          return false;
      } while (accept("|"));
      return true;
    };
    if (accept("@")) {
      if (!alternatives())
        return false;
      // A comma before a string goes on with the names in the checkpoint, one
      // before a name with the next group.
      while (this->at(",") && atKind(TokenKind::String, 1)) {
        take();
        if (!alternatives())
          return false;
      }
      if (files.size() != names.size()) {
        auto count = [](size_t n, StringRef what) {
          return heed::format("{} {}{}", n, what, (n == 1 ? "" : "s"));
        };
        failAt(from(at), heed::format("{} but {} in the checkpoint",
                                      count(names.size(), "parameter"),
                                      count(files.size(), "name")));
        return false;
      }
    }
    for (size_t k = 0; k < names.size(); ++k) {
      auto stmt = std::make_unique<ParamStmt>();
      stmt->name = names[k];
      stmt->type = type;
      if (!files.empty())
        stmt->files = std::move(files[k]);
      push(out, std::move(stmt), begin);
    }
    return true;
  });
}

bool Parser::parseDims(std::vector<StmtPtr> &out) {
  take();
  return parseList([&] {
    SMLoc begin = here();
    auto stmt = std::make_unique<DimStmt>();
    if (!parseName(stmt->name) || !expect("=") ||
        !(stmt->value = parseExprIn(Place::Dim)))
      return false;
    push(out, std::move(stmt), begin);
    return true;
  });
}

bool Parser::parseLets(std::vector<StmtPtr> &out) {
  take();
  return parseList([&] {
    SMLoc begin = here();
    std::vector<Name> names;
    TypePtr type;
    if (!parseTyped(names, type))
      return false;
    for (const Name &name : names) {
      auto stmt = std::make_unique<LetStmt>();
      stmt->name = name;
      stmt->type = type;
      push(out, std::move(stmt), begin);
    }
    return true;
  });
}

bool Parser::parseConsts(std::vector<std::unique_ptr<ConstStmt>> &out) {
  take();
  return parseList([&] {
    SMLoc begin = here();
    auto stmt = std::make_unique<ConstStmt>();
    if (!parseName(stmt->name) || !expect("=") || !(stmt->value = parseTable()))
      return false;
    stmt->range = from(begin);
    out.push_back(std::move(stmt));
    return true;
  });
}

/// a, b: type
bool Parser::parseTyped(std::vector<Name> &names, TypePtr &type) {
  bool ok = parseList([&] {
    names.emplace_back();
    return parseName(names.back());
  });
  return ok && expect(":") && (type = parseType());
}

TypePtr Parser::parseType() {
  SMLoc begin = here();
  auto type = std::make_shared<Type>();
  if (!at("[")) {
    Name name;
    if (!parseName(name, "a type"))
      return nullptr;
    type->element = elementType(name.text);
    if (!type->element) {
      std::string hint = didYouMean(
          name.text, {"f16", "bf16", "f32", "i8", "i32", "i64", "bool"});
      return failAt(name.range, heed::format("unknown element type '{}'{}",
                                             name.text, hint));
    }
  }
  if (accept("[")) {
    type->hasExtents = true;
    bool ok = parseUntil("]", [&] {
      Extent extent;
      SMLoc extentBegin = here();
      if (!accept("..") && !(extent.extent = parseExprIn(Place::Dim)))
        return false;
      extent.range = from(extentBegin);
      type->extents.push_back(std::move(extent));
      return true;
    });
    if (!ok)
      return nullptr;
  }
  type->range = from(begin);
  return type;
}
