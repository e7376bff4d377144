//===- ParserCore.cpp - Tokens, errors and nesting of the parser ----------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ParserCore.h"
#include "Parser.h"
#include "support/Format.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace heed;
using namespace heed::ast;
using llvm::SMLoc;
using llvm::StringRef;
using llvm::Twine;

heed::Parser::Parser(StringRef text, Diagnostics &diags, StringRef endName)
    : diags(diags), endName(endName), tokens(lex(text, diags, endName)) {}

const Token &Parser::token(unsigned ahead) const {
  return tokens[std::min<size_t>(next + ahead, tokens.size() - 1)];
}

bool Parser::atAnyOf(llvm::ArrayRef<StringRef> spellings) const {
  return llvm::any_of(spellings, [&](StringRef s) { return at(s); });
}

const Token &Parser::take() {
  const Token &taken = token();
  lastEnd = taken.range.End;
  if (next + 1 < tokens.size())
    ++next;
  return taken;
}

bool Parser::accept(StringRef spelling) {
  if (!at(spelling))
    return false;
  take();
  return true;
}

bool Parser::expect(StringRef spelling) {
  if (accept(spelling))
    return true;
  fail(heed::format("'{}'", spelling));
  return false;
}

bool Parser::parseName(Name &name, StringRef what) {
  if (!atKind(TokenKind::Name)) {
    fail(what);
    return false;
  }
  const Token &taken = take();
  name = {taken.text, taken.range};
  return true;
}

bool Parser::parseEntryName(Name &name) {
  if (!parseName(name))
    return false;
  Name part;
  while (accept("."))
    if (!parseName(part))
      return false;
    else
      name = {StringRef(name.text.begin(), part.text.end() - name.text.begin()),
              llvm::SMRange(name.range.Start, part.range.End)};
  return true;
}

bool Parser::parseUntil(StringRef close, llvm::function_ref<bool()> item) {
  while (!at(close)) {
    if (!item())
      return false;
    if (!accept(",") && !at(close)) {
      fail(heed::format("',' or '{}'", close));
      return false;
    }
  }
  take();
  return true;
}

bool Parser::parseList(llvm::function_ref<bool()> item) {
  do {
    if (!item())
      return false;
  } while (accept(","));
  return true;
}

void Parser::skipNewlines() {
  while (atKind(TokenKind::Newline))
    take();
}

/// In a list that the lexer closed by guess, whatever is wrong is the bracket.
bool Parser::inUnclosed() const {
  for (unsigned k = 0; k < next; ++k)
    if (tokens[k].isUnclosed && tokens[k].text != "{" &&
        tokens[k].match >= next)
      return true;
  return false;
}

static std::string describe(const Token &token, StringRef endName) {
  StringRef text = token.text;
  std::string shown = text.take_front(40).str();
  if (text.size() > 40) {
    while (!shown.empty() && (shown.back() & 0xC0) == 0x80)
      shown.pop_back(); // not half a character
    shown += "...";
  }
  switch (token.kind) {
  case TokenKind::Newline:
    return "the end of the line";
  case TokenKind::End:
    return endName.str();
  case TokenKind::String:
    return heed::format("the string \"{}\"", shown);
  case TokenKind::Word:
    return heed::format("the reserved word '{}'", shown);
  default:
    return heed::format("'{}'", shown);
  }
}

std::nullptr_t Parser::fail(StringRef wanted, const Twine &hint) {
  const Token *found = &token();
  // The newline before the end of the text is not one that anybody wrote.
  if (found->kind == TokenKind::Newline && token(1).kind == TokenKind::End &&
      endName != "the end of the file")
    found = &token(1);
  if (found->kind != TokenKind::Broken && !stopped() && !inUnclosed())
    diags.error(found->range,
                heed::format("expected {}, found {}{}", wanted,
                             describe(*found, endName), hint.str()));
  return nullptr;
}

std::nullptr_t Parser::failAt(Range range, const Twine &message) {
  diags.error(range, message);
  return nullptr;
}

/// No statement and no declaration begins with it: its line goes on from the
/// one before.
static bool continues(const Token &token) {
  switch (token.kind) {
  case TokenKind::Op:
    return token.text != "}";
  case TokenKind::Word:
    return llvm::StringSwitch<bool>(token.text)
        .Cases({"then", "else", "where", "in", "and", "or", "not"}, true)
        .Cases({"true", "false", "none", "inf", "pi"}, true)
        .Default(false);
  case TokenKind::Int:
  case TokenKind::Real:
  case TokenKind::String:
    return true;
  default:
    return false;
  }
}

void Parser::recover() {
  // Back to before a newline that was taken with the statement.
  while (!stopped() && !at("}")) {
    if (atKind(TokenKind::Newline) && !continues(token(1)))
      return;
    const Token &taken = take();
    // Brackets that opened here are skipped as a whole.
    if (taken.match)
      next = taken.match + 1;
  }
}

heed::Parser::Nest::Nest(Parser &parser) : parser(parser) {
  fits = ++parser.depth <= maxNesting;
  if (fits)
    return;
  if (!parser.stopped())
    parser.diags.error(parser.token().range,
                       heed::format("nesting deeper than {}", maxNesting));
  parser.stop();
}

ExprPtr Parser::finish(std::unique_ptr<Expr> node, SMLoc begin,
                       llvm::ArrayRef<const Expr *> children) {
  node->range = from(begin);
  for (const Expr *child : children)
    if (child)
      node->height = std::max(node->height, child->height + 1);
  if (node->height <= maxHeight)
    return node;
  // The end of the chain is where the reader has to cut.
  return failAt(
      {node->range.End, node->range.End},
      heed::format(
          "an expression higher than {} operators: give a part of it a name",
          maxHeight));
}

std::unique_ptr<File> heed::parseFile(StringRef path, StringRef text,
                                      Diagnostics &diags) {
  auto file = std::make_unique<File>();
  file->path = path.str();
  Parser(text, diags).parseFile(*file);
  return file;
}

ExprPtr heed::parseSetting(StringRef text, Diagnostics &diags) {
  // A bare word is a string, so that a shell need not quote it twice.
  StringRef word = text.trim();
  bool isWord = !word.empty() && !isReserved(word) &&
                (llvm::isAlpha(word[0]) || word[0] == '_') &&
                llvm::all_of(word, [](char c) {
                  return llvm::isAlnum(c) || StringRef("_-./").contains(c);
                });
  if (isWord) {
    auto string = std::make_unique<StringExpr>();
    string->raw = word;
    string->parts.push_back({word, nullptr});
    string->range = {SMLoc::getFromPointer(word.begin()),
                     SMLoc::getFromPointer(word.end())};
    return string;
  }
  return Parser(text, diags, "the end of the value").parseWholeTable();
}
