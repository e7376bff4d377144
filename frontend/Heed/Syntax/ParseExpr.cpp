//===- ParseExpr.cpp - Expressions ----------------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ParserCore.h"
#include "support/Format.h"

#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace heed;
using namespace heed::ast;
using llvm::SMLoc;
using llvm::StringRef;

ExprPtr Parser::parseWholeExpr() {
  ExprPtr expr = parseExpr();
  if (!expr)
    return nullptr;
  skipNewlines();
  return atKind(TokenKind::End) ? std::move(expr) : fail("an operator");
}

ExprPtr Parser::parseExpr() {
  Nest nest(*this);
  if (!nest)
    return nullptr;
  return at("if") ? parseIf() : parseLogic(/*isAnd=*/false);
}

ExprPtr Parser::parseExprIn(Place newPlace) {
  auto saved = in(newPlace);
  return parseExpr();
}

ExprPtr Parser::parseIf() {
  SMLoc begin = here();
  take();
  auto node = std::make_unique<IfExpr>();
  if (!(node->condition = parseExprIn(Place::Condition)) || !expect("then") ||
      !(node->thenValue = parseExpr()) || !expect("else") ||
      !(node->elseValue = parseExpr()))
    return nullptr;
  const Expr *children[] = {node->condition.get(), node->thenValue.get(),
                            node->elseValue.get()};
  return finish(std::move(node), begin, children);
}

ExprPtr Parser::parseLogic(bool isAnd) {
  SMLoc begin = here();
  auto operand = [&] { return isAnd ? parseNot() : parseLogic(true); };
  ExprPtr lhs = operand();
  while (lhs && accept(isAnd ? "and" : "or")) {
    auto node = std::make_unique<LogicExpr>();
    node->isAnd = isAnd;
    node->lhs = std::move(lhs);
    if (!(node->rhs = operand()))
      return nullptr;
    const Expr *children[] = {node->lhs.get(), node->rhs.get()};
    lhs = finish(std::move(node), begin, children);
  }
  return lhs;
}

ExprPtr Parser::parseNot() {
  if (!at("not"))
    return parseCompare();
  Nest nest(*this);
  if (!nest)
    return nullptr;
  SMLoc begin = here();
  take();
  auto node = std::make_unique<NotExpr>();
  if (!(node->operand = parseNot()))
    return nullptr;
  const Expr *child = node->operand.get();
  return finish(std::move(node), begin, child);
}

static std::optional<CompareOp> compareOp(const Token &token) {
  if (token.kind != TokenKind::Op)
    return std::nullopt;
  return llvm::StringSwitch<std::optional<CompareOp>>(token.text)
      .Case("==", CompareOp::Eq)
      .Case("!=", CompareOp::Ne)
      .Case("<", CompareOp::Lt)
      .Case("<=", CompareOp::Le)
      .Case(">", CompareOp::Gt)
      .Case(">=", CompareOp::Ge)
      .Default(std::nullopt);
}

ExprPtr Parser::parseCompare() {
  SMLoc begin = here();
  ExprPtr first = parseSum();
  if (!first || !compareOp(token()))
    return first;
  auto node = std::make_unique<CompareExpr>();
  node->operands.push_back(std::move(first));
  while (std::optional<CompareOp> op = compareOp(token())) {
    node->ops.push_back(*op);
    node->opRanges.push_back(take().range);
    node->operands.push_back(parseSum());
    if (!node->operands.back())
      return nullptr;
  }
  std::vector<const Expr *> children;
  for (const ExprPtr &operand : node->operands)
    children.push_back(operand.get());
  return finish(std::move(node), begin, children);
}

/// Takes the operator and its right operand.
ExprPtr Parser::parseBinary(ExprPtr lhs, BinaryOp op,
                            llvm::function_ref<ExprPtr()> parseRight) {
  auto node = std::make_unique<BinaryExpr>();
  node->op = op;
  node->place = place;
  node->opRange = take().range;
  node->lhs = std::move(lhs);
  if (!(node->rhs = parseRight()))
    return nullptr;
  SMLoc begin = node->lhs->range.Start;
  const Expr *children[] = {node->lhs.get(), node->rhs.get()};
  return finish(std::move(node), begin, children);
}

ExprPtr Parser::parseSum() {
  ExprPtr lhs = parseProduct();
  while (lhs && (at("+") || at("-")))
    lhs = parseBinary(std::move(lhs), at("+") ? BinaryOp::Add : BinaryOp::Sub,
                      [&] { return parseProduct(); });
  return lhs;
}

ExprPtr Parser::parseSumIn(Place newPlace) {
  auto saved = in(newPlace);
  return parseSum();
}

static std::optional<BinaryOp> productOp(const Token &token) {
  if (token.kind != TokenKind::Op)
    return std::nullopt;
  return llvm::StringSwitch<std::optional<BinaryOp>>(token.text)
      .Case("*", BinaryOp::Mul)
      .Case("/", BinaryOp::Div)
      .Case("//", BinaryOp::FloorDiv)
      .Case("%", BinaryOp::Mod)
      .Default(std::nullopt);
}

ExprPtr Parser::parseProduct() {
  ExprPtr lhs = parseUnary();
  while (lhs) {
    std::optional<BinaryOp> op = productOp(token());
    if (!op)
      break;
    lhs = parseBinary(std::move(lhs), *op, [&] { return parseUnary(); });
    // sum(i) a / sum(j) b * c: does `* c` belong to the inner sum? It does, but
    // a reader may think otherwise.
    auto *binary = llvm::dyn_cast_or_null<BinaryExpr>(lhs.get());
    if (!binary || *op != BinaryOp::Div || reductions == 0)
      continue;
    if (auto *inner = llvm::dyn_cast<ReduceExpr>(binary->rhs.get()))
      inner->isBareDivisor = true;
  }
  return lhs;
}

ExprPtr Parser::parseUnary() {
  SMLoc begin = here();
  if (at("if"))
    return failAt(token().range, "an 'if' that is an operand stands in "
                                 "parentheses: (if .. then .. else ..)");
  // These call themselves without a bracket between.
  bool minus = at("-"), reduction = atReduction();
  if (minus || reduction) {
    Nest nest(*this);
    if (!nest)
      return nullptr;
    if (reduction)
      return parseReduction();
    take();
    auto node = std::make_unique<NegateExpr>();
    if (!(node->operand = parseUnary()))
      return nullptr;
    const Expr *child = node->operand.get();
    return finish(std::move(node), begin, child);
  }
  ExprPtr base = parsePrimary();
  if (!base || !at("^"))
    return base;
  Nest nest(*this);
  if (!nest)
    return nullptr;
  return parseBinary(std::move(base), BinaryOp::Pow,
                     [&] { return parseUnary(); });
}

ExprPtr Parser::parseNumber() {
  SMLoc begin = here();
  const Token &number = take();
  if (number.kind == TokenKind::Int) {
    auto node = std::make_unique<IntExpr>();
    if (number.text.getAsInteger(10, node->value))
      return failAt(number.range, "an integer must fit in 64 bits");
    return finish(std::move(node), begin);
  }
  auto node = std::make_unique<RealExpr>();
  // Fails only beyond the largest f64; then inf, as everywhere.
  if (number.text.getAsDouble(node->value))
    node->value = HUGE_VAL;
  return finish(std::move(node), begin);
}

std::unique_ptr<StringExpr> Parser::parseString() {
  if (!atKind(TokenKind::String))
    return fail("a string");
  const Token &string = take();
  auto node = std::make_unique<StringExpr>();
  node->raw = string.text;
  node->range = string.range;
  auto place = [](StringRef at) {
    SMLoc loc = SMLoc::getFromPointer(at.data());
    return Range(loc, loc);
  };
  for (StringRef rest = string.text; !rest.empty();) {
    size_t brace = rest.find_first_of("{}");
    if (brace != 0) {
      node->parts.push_back({rest.take_front(brace), nullptr});
      rest = rest.substr(brace);
      continue;
    }
    size_t end = rest.find_first_of("{}", 1);
    if (rest[0] == '}')
      return failAt(place(rest), "'}' closes nothing in this string");
    if (end == StringRef::npos || rest[end] == '{')
      return failAt(place(rest), "'{' is never closed in this string");
    Parser inner(rest.slice(1, end), diags, "'}'");
    inner.depth = depth;
    inner.place = Place::Bound;
    ExprPtr expr = inner.parseWholeExpr();
    if (!expr)
      return nullptr;
    node->height = std::max(node->height, expr->height + 1);
    node->parts.push_back({{}, std::move(expr)});
    rest = rest.drop_front(end + 1);
  }
  return node;
}

ExprPtr Parser::parseRead() {
  SMLoc begin = here();
  auto node = std::make_unique<ReadExpr>();
  if (!parseEntryName(node->name))
    return nullptr;
  take();
  std::vector<const Expr *> children;
  bool ok = parseUntil("]", [&] {
    Index index;
    if (at("..")) {
      index.range = take().range;
    } else {
      if (!(index.expr = parseExprIn(Place::Index)))
        return false;
      index.range = index.expr->range;
      children.push_back(index.expr.get());
    }
    node->indices.push_back(std::move(index));
    return true;
  });
  return ok ? finish(std::move(node), begin, children) : nullptr;
}

std::unique_ptr<CallExpr> Parser::parseCall() {
  SMLoc begin = here();
  auto node = std::make_unique<CallExpr>();
  if (!parseName(node->callee))
    return nullptr;
  take();
  std::vector<const Expr *> children;
  bool ok = parseUntil(")", [&] {
    if (atKind(TokenKind::Name) && at("=", 1)) {
      NamedArgument arg;
      parseName(arg.name);
      take();
      for (const NamedArgument &other : node->named)
        if (other.name.text == arg.name.text) {
          diags
              .error(
                  arg.name.range,
                  heed::format("argument '{}' is given twice", arg.name.text))
              .note(other.name.range, "first here");
          return false;
        }
      if (!(arg.value = parseExpr()))
        return false;
      children.push_back(arg.value.get());
      node->named.push_back(std::move(arg));
      return true;
    }
    if (!node->named.empty()) {
      fail("a named argument, as the one before is");
      return false;
    }
    ExprPtr arg = parseExpr();
    if (!arg)
      return false;
    children.push_back(arg.get());
    node->args.push_back(std::move(arg));
    return true;
  });
  if (!ok)
    return nullptr;
  ExprPtr done = finish(std::move(node), begin, children);
  return std::unique_ptr<CallExpr>(
      llvm::cast_or_null<CallExpr>(done.release()));
}

ExprPtr Parser::parsePrimary() {
  SMLoc begin = here();
  const Token &first = token();
  switch (first.kind) {
  case TokenKind::Int:
  case TokenKind::Real:
    return parseNumber();
  case TokenKind::String:
    return parseString();
  case TokenKind::Name: {
    if (at("(", 1))
      return parseCall();
    size_t last = 0; // of the tokens of the name
    while (at(".", last + 1))
      last += 2;
    if (at("[", last + 1))
      return parseRead();
    auto node = std::make_unique<NameExpr>();
    Name name;
    if (!parseEntryName(name))
      return nullptr;
    node->name = name.text;
    return finish(std::move(node), begin);
  }
  default:
    break;
  }
  if (accept("(")) {
    auto node = std::make_unique<ParenExpr>();
    if (!(node->inner = parseExpr()) || !expect(")"))
      return nullptr;
    const Expr *child = node->inner.get();
    return finish(std::move(node), begin, child);
  }
  if (at("true") || at("false")) {
    auto node = std::make_unique<BoolExpr>();
    node->value = take().text == "true";
    return finish(std::move(node), begin);
  }
  if (at("inf") || at("pi")) {
    auto node = std::make_unique<RealExpr>();
    node->value = take().text == "pi" ? M_PI : HUGE_VAL;
    return finish(std::move(node), begin);
  }
  if (accept("none"))
    return finish(std::make_unique<NoneExpr>(), begin);
  if (at("concat"))
    return failAt(first.range, "'concat' is the whole right side of an "
                               "equation: give it a name first");
  if (at("*") && next > 0 && tokens[next - 1].is("*"))
    return failAt(first.range, "expected a value, found '*'; a power is "
                               "written '^'");
  if (at("["))
    return failAt(first.range, "a table stands only in a constant: const t = "
                               "[..], and behind the ';' of a signature");
  return fail("a value");
}

ExprPtr Parser::parseTable() {
  if (!at("["))
    return parseExpr();
  Nest nest(*this);
  if (!nest)
    return nullptr;
  SMLoc begin = here();
  take();
  auto node = std::make_unique<TableExpr>();
  std::vector<const Expr *> children;
  bool ok = parseUntil("]", [&] {
    ExprPtr row = parseTable();
    if (!row)
      return false;
    children.push_back(row.get());
    node->rows.push_back(std::move(row));
    return true;
  });
  return ok ? finish(std::move(node), begin, children) : nullptr;
}

ExprPtr Parser::parseWholeTable() {
  ExprPtr table = parseTable();
  if (!table)
    return nullptr;
  skipNewlines();
  return atKind(TokenKind::End) ? std::move(table) : fail("an operator");
}

/// The right side of an equation.
ExprPtr Parser::parseRight() {
  if (!at("concat"))
    return parseExpr();
  SMLoc begin = here();
  take();
  auto node = std::make_unique<ConcatExpr>();
  if (!expect("(") || !parseName(node->index, "an index") || !expect(")"))
    return nullptr;
  if (!at("("))
    return fail(heed::format("the parts in parentheses: concat({})(a, b)",
                             node->index.text));
  const Token &open = take();
  std::vector<const Expr *> children;
  bool ok = parseUntil(")", [&] {
    ExprPtr part = parseExpr();
    if (!part)
      return false;
    children.push_back(part.get());
    node->parts.push_back(std::move(part));
    return true;
  });
  if (!ok)
    return nullptr;
  if (node->parts.empty())
    return failAt(open.range, "expected at least one part, found none");
  return finish(std::move(node), begin, children);
}
