//===- ParseReduction.cpp - Reductions and softmax ------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ParserCore.h"
#include "support/Format.h"

#include "llvm/ADT/StringSwitch.h"

using namespace heed;
using namespace heed::ast;
using llvm::SMLoc;
using llvm::StringRef;

static std::optional<ReduceOp> reduceOp(StringRef name) {
  return llvm::StringSwitch<std::optional<ReduceOp>>(name)
      .Case("sum", ReduceOp::Sum)
      .Case("max", ReduceOp::Max)
      .Case("min", ReduceOp::Min)
      .Case("mean", ReduceOp::Mean)
      .Case("prod", ReduceOp::Prod)
      .Case("any", ReduceOp::Any)
      .Case("all", ReduceOp::All)
      .Case("argmax", ReduceOp::Argmax)
      .Default(std::nullopt);
}

static bool isSoftmax(StringRef name) {
  return name == "softmax" || name == "log_softmax";
}

/// Normalisers that are also functions of whole tensors.
static bool hasThreshold(StringRef name) {
  return name == "sparsemax" || name == "entmax15";
}

bool Parser::atReduction() const {
  if (!atKind(TokenKind::Name) || !at("(", 1))
    return false;
  StringRef name = token().text;
  if (isSoftmax(name))
    return true;
  if (hasThreshold(name))
    return isBinderList();
  std::optional<ReduceOp> op = reduceOp(name);
  if (!op)
    return false;
  return (*op != ReduceOp::Max && *op != ReduceOp::Min) || isBinderList();
}

/// max(..) and min(..) are also functions of two values, sparsemax(..) of a
/// tensor. They run over indices if every argument is a name or name:range and
/// an unsigned operand follows.
bool Parser::isBinderList() const {
  unsigned k = next + 2, close = tokens[next + 1].match;
  bool names = k < close;
  for (unsigned first = k; k < close; ++k) {
    const Token &token = tokens[k];
    if (token.is("where") || token.is(":") || token.is(";"))
      return true;
    bool separator = (k - first) % 2;
    names &= separator ? token.is(",") : token.kind == TokenKind::Name;
    if (token.match)
      k = token.match;
  }
  const Token &after = tokens[close + 1];
  switch (after.kind) {
  case TokenKind::Int:
  case TokenKind::Real:
  case TokenKind::Name:
    return names;
  case TokenKind::Op:
    return names && after.text == "(";
  case TokenKind::Word:
    return names &&
           llvm::StringSwitch<bool>(after.text)
               .Cases({"not", "true", "false", "none", "inf", "pi"}, true)
               .Default(false);
  default:
    return false;
  }
}

bool Parser::parseBinders(std::vector<Binder> &binders) {
  return parseList([&] {
    Binder binder;
    if (!parseName(binder.name, "an index"))
      return false;
    if (at("[")) {
      fail("',' or ')'", "; indices stand in the parentheses, what they run "
                         "over behind them: softmax(j) s[i, j]");
      return false;
    }
    if (accept(":") && !(binder.extent = parseSumIn(Place::Bound)))
      return false;
    binders.push_back(std::move(binder));
    return true;
  });
}

/// Both kinds: their operand must begin on the same line, since a `)` ends a
/// statement.
ExprPtr Parser::parseReduction() {
  if (isSoftmax(token().text) || hasThreshold(token().text))
    return parseSoftmax();
  SMLoc begin = here();
  const Token &op = take();
  auto node = std::make_unique<ReduceExpr>();
  node->op = *reduceOp(op.text);
  node->opRange = op.range;
  take();
  if (!parseBinders(node->binders))
    return nullptr;
  if (accept("where") && !(node->where = parseExprIn(Place::Condition)))
    return nullptr;
  if (at(";"))
    return failAt(token().range, "only softmax takes ';', for its sink");
  if (!expect(")"))
    return nullptr;
  if (atKind(TokenKind::Newline))
    return failNextLine(op.text);
  if (!(node->operand = parseReduceOperand(node->op)))
    return nullptr;
  std::vector<const Expr *> children = {node->where.get(), node->operand.get()};
  for (const Binder &binder : node->binders)
    children.push_back(binder.extent.get());
  return finish(std::move(node), begin, children);
}

/// The operand begins on the next line. That line is a part of this mistake,
/// unless it is an equation.
ExprPtr Parser::failNextLine(StringRef op) {
  fail(heed::format("the operand of '{}' on the same line", op));
  if (atKind(TokenKind::Name, 1) && !at(",", 2) && !atEquation(1))
    take();
  return nullptr;
}

ExprPtr Parser::parseReduceOperand(ReduceOp op) {
  llvm::SaveAndRestore<unsigned> inside(reductions, reductions + 1);
  if (op == ReduceOp::Any || op == ReduceOp::All)
    return parseTruthOperand();
  return parseProduct();
}

/// any and all reach over one comparison.
ExprPtr Parser::parseTruthOperand() {
  SMLoc begin = here();
  if (at("not")) {
    Nest nest(*this);
    if (!nest)
      return nullptr;
    take();
    auto node = std::make_unique<NotExpr>();
    if (!(node->operand = parseTruthOperand()))
      return nullptr;
    const Expr *child = node->operand.get();
    return finish(std::move(node), begin, child);
  }
  ExprPtr lhs = parseProduct();
  if (!lhs || !atAnyOf({"<", "<=", ">", ">=", "==", "!="}))
    return lhs;
  const Token &op = take();
  auto node = std::make_unique<CompareExpr>();
  node->ops.push_back(*llvm::StringSwitch<std::optional<CompareOp>>(op.text)
                           .Case("==", CompareOp::Eq)
                           .Case("!=", CompareOp::Ne)
                           .Case("<", CompareOp::Lt)
                           .Case("<=", CompareOp::Le)
                           .Case(">", CompareOp::Gt)
                           .Default(CompareOp::Ge));
  node->opRanges.push_back(op.range);
  node->operands.push_back(std::move(lhs));
  node->operands.push_back(parseProduct());
  if (!node->operands.back())
    return nullptr;
  const Expr *children[] = {node->operands[0].get(), node->operands[1].get()};
  return finish(std::move(node), begin, children);
}

ExprPtr Parser::parseSoftmax() {
  SMLoc begin = here();
  const Token &op = take();
  auto node = std::make_unique<SoftmaxExpr>();
  node->name = op.text.str();
  node->opRange = op.range;
  take();
  if (!parseBinders(node->binders))
    return nullptr;
  for (const Binder &binder : node->binders)
    if (binder.extent)
      return failAt(
          binder.extent->range,
          heed::format(
              "'{}' names an index that exists already: it takes no range",
              op.text));
  if (accept("where") && !(node->where = parseExprIn(Place::Condition)))
    return nullptr;
  if (at(";") && hasThreshold(op.text))
    return failAt(token().range, "only softmax takes ';', for its sink");
  if (accept(";")) {
    Name sink;
    if (!parseName(sink, "'sink'"))
      return nullptr;
    if (sink.text != "sink")
      return failAt(sink.range,
                    heed::format("expected 'sink', found '{}'", sink.text));
    if (!expect("=") || !(node->sink = parseExprIn(Place::Value)))
      return nullptr;
  }
  if (!expect(")"))
    return nullptr;
  if (atKind(TokenKind::Newline))
    return failNextLine(op.text);
  if (at("["))
    return fail("an operand", heed::format("; '{}' names indices, and its "
                                           "operand follows: {}(j) s[i, j]",
                                           op.text, op.text));
  {
    llvm::SaveAndRestore<unsigned> inside(reductions, reductions + 1);
    if (!(node->operand = parseUnary()))
      return nullptr;
  }
  if (atAnyOf({"*", "/", "//", "%"})) {
    StringRef sign = token().text;
    return failAt(
        token().range,
        heed::format(
            "'{}' takes one factor: write {}(..) (a {} b) or ({}(..) a) {} b",
            op.text, op.text, sign, op.text, sign));
  }
  const Expr *children[] = {node->where.get(), node->sink.get(),
                            node->operand.get()};
  return finish(std::move(node), begin, children);
}
