//===- Lexer.cpp - From text to tokens ------------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lexer.h"
#include "AST.h"
#include "support/Format.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ConvertUTF.h"

using namespace heed;
using llvm::SMLoc;
using llvm::SMRange;
using llvm::StringRef;

bool heed::isReserved(StringRef word) {
  static const llvm::StringSet<> words = {
      "model",  "fn",    "param", "dim",   "const", "let",   "config",
      "import", "for",   "in",    "if",    "then",  "else",  "where",
      "return", "scan",  "state", "entry", "and",   "or",    "not",
      "true",   "false", "none",  "inf",   "pi",    "concat"};
  return words.contains(word);
}

/// Letters and digits beyond ASCII that may stand in a name: Latin, Greek,
/// Cyrillic, Hebrew, Arabic, Devanagari, subscript digits, letterlike symbols,
/// kana, ideographs, Hangul, mathematical alphabets.
static bool isLetter(uint32_t c) {
  static constexpr uint32_t ranges[][2] = {
      {0xAA, 0xAA},       {0xB5, 0xB5},       {0xBA, 0xBA},
      {0xC0, 0xD6},       {0xD8, 0xF6},       {0xF8, 0x2C1},
      {0x370, 0x374},     {0x376, 0x377},     {0x37B, 0x37D},
      {0x37F, 0x37F},     {0x386, 0x386},     {0x388, 0x3F5},
      {0x3F7, 0x481},     {0x48A, 0x556},     {0x560, 0x588},
      {0x5D0, 0x5EA},     {0x620, 0x64A},     {0x904, 0x939},
      {0x1E00, 0x1FBC},   {0x2080, 0x2089},   {0x2090, 0x209C},
      {0x2102, 0x2102},   {0x210A, 0x2113},   {0x2115, 0x2115},
      {0x2119, 0x211D},   {0x2124, 0x2124},   {0x212A, 0x212D},
      {0x3041, 0x3096},   {0x30A1, 0x30FA},   {0x3400, 0x4DBF},
      {0x4E00, 0x9FFF},   {0xAC00, 0xD7A3},   {0x1D400, 0x1D6C0},
      {0x1D6C2, 0x1D6DA}, {0x1D6DC, 0x1D6FA}, {0x1D6FC, 0x1D714},
      {0x1D716, 0x1D734}, {0x1D736, 0x1D74E}, {0x1D750, 0x1D76E},
      {0x1D770, 0x1D788}, {0x1D78A, 0x1D7A8}, {0x1D7AA, 0x1D7C2},
      {0x1D7C4, 0x1D7FF}};
  return llvm::any_of(ranges,
                      [&](const auto &r) { return r[0] <= c && c <= r[1]; });
}

static bool isDigit(char c) { return llvm::isDigit(c); }

static StringRef closerText(char c) {
  return c == ')' ? ")" : c == ']' ? "]" : "}";
}

static char closerOf(const Token &opener) {
  return opener.text == "(" ? ')' : opener.text == "[" ? ']' : '}';
}

namespace {
class Lexer {
public:
  Lexer(StringRef text, Diagnostics &diags, StringRef endName)
      : text(text), diags(diags), endName(endName) {}
  std::vector<Token> run();

private:
  SMLoc loc(size_t offset) const {
    return SMLoc::getFromPointer(text.data() + offset);
  }
  SMRange range(size_t from, size_t to) const { return {loc(from), loc(to)}; }
  char peek(size_t ahead = 0) const {
    return at + ahead < text.size() ? text[at + ahead] : '\0';
  }

  bool checkEncoding();
  void push(TokenKind kind, size_t from, size_t to);
  void pushBroken(size_t from, size_t to) { push(TokenKind::Broken, from, to); }
  size_t nameEnd(size_t from, bool first) const;
  uint32_t decode(size_t from, size_t &length) const;
  void newline();
  void word();
  void number();
  void string();
  void op();
  void open(size_t from);
  void close(size_t from);
  void closeInnermost(size_t from, size_t to);
  /// Reports the innermost bracket as unclosed and closes it before `from`.
  void closeMissing(size_t from, StringRef why);
  void stray();
  void closeInside(llvm::StringRef swallowed);
  bool endsStatement() const;

  StringRef text;
  Diagnostics &diags;
  StringRef endName;
  size_t at = 0;
  bool lineStart = true;
  bool tooDeep = false;
  std::pair<size_t, char> lastMissing; ///< where a closing bracket was missing
  std::vector<Token> tokens;
  std::vector<unsigned> brackets; ///< open ones, as numbers of tokens
};
} // namespace

bool Lexer::checkEncoding() {
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.data());
  const llvm::UTF8 *p = begin, *end = begin + text.size();
  if (llvm::isLegalUTF8String(&p, end))
    return true;
  size_t bad = p - begin;
  diags.error(
      loc(bad),
      heed::format("the file is not UTF-8: byte 0x{} here begins no character",
                   llvm::utohexstr(*p, /*LowerCase=*/true, 2)));
  return false;
}

void Lexer::push(TokenKind kind, size_t from, size_t to) {
  Token token;
  token.kind = kind;
  token.text = text.slice(from, to);
  token.range = range(from, to);
  tokens.push_back(token);
  lineStart = false;
}

uint32_t Lexer::decode(size_t from, size_t &length) const {
  const auto *p = reinterpret_cast<const llvm::UTF8 *>(text.data()) + from;
  const llvm::UTF8 *begin = p;
  llvm::UTF32 c = 0, *out = &c;
  llvm::ConvertUTF8toUTF32(&p, p + llvm::getNumBytesForUTF8(*p), &out, &c + 1,
                           llvm::strictConversion);
  length = std::max<size_t>(1, p - begin);
  return c;
}

size_t Lexer::nameEnd(size_t from, bool first) const {
  while (from < text.size()) {
    char c = text[from];
    if (llvm::isAlpha(c) || c == '_' || (isDigit(c) && !first)) {
      ++from;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      size_t length;
      uint32_t letter = decode(from, length);
      bool subscript = letter >= 0x2080 && letter <= 0x2089;
      if (!isLetter(letter) || (first && subscript))
        break;
      from += length;
    } else {
      break;
    }
    first = false;
  }
  return from;
}

bool Lexer::endsStatement() const {
  const Token &last = tokens.back();
  if (last.kind == TokenKind::Newline)
    return false;
  if (last.kind == TokenKind::Op) {
    static const llvm::StringSet<> open = {
        "+", "-",  "*", "/",  "//", "%", "^", "=", "==", "!=",
        "<", "<=", ">", ">=", ",",  ";", ":", "|", "@",  "->"};
    return !open.contains(last.text);
  }
  if (last.kind == TokenKind::Word) {
    static const llvm::StringSet<> open = {"and",  "or",    "not", "then",
                                           "else", "where", "in"};
    return !open.contains(last.text);
  }
  return true;
}

void Lexer::newline() {
  bool inside = !brackets.empty() && tokens[brackets.back()].text != "{";
  if (!inside && !tokens.empty() && endsStatement())
    push(TokenKind::Newline, at, at);
  ++at;
  lineStart = true;
}

void Lexer::closeMissing(size_t from, StringRef why) {
  unsigned index = brackets.back();
  brackets.pop_back();
  StringRef bracket = tokens[index].text;
  StringRef closer = closerText(closerOf(tokens[index]));
  // Several of a kind that miss their ends in one place are one mistake.
  std::pair<size_t, char> missing(from, bracket[0]);
  if (missing != lastMissing)
    diags
        .error(tokens[index].range,
               heed::format("'{}' is never closed", bracket))
        .note(range(from, from),
              heed::format("expected '{}' before {}", closer, why));
  lastMissing = missing;
  tokens[index].isUnclosed = true;
  pushBroken(from, from);
  Token token;
  token.kind = TokenKind::Op;
  token.text = closer;
  token.range = range(from, from);
  tokens[index].match = tokens.size();
  tokens.push_back(token);
}

void Lexer::word() {
  size_t end = nameEnd(at, /*first=*/true);
  StringRef name = text.slice(at, end);
  bool reserved = isReserved(name);
  if (lineStart && reserved && !brackets.empty()) {
    // These words begin a statement or a declaration and stand nowhere else, so
    // a bracket that is still open was forgotten: say so here, not at the end
    // of the file.
    static const llvm::StringSet<> declarations = {"model", "fn", "import",
                                                   "config"};
    static const llvm::StringSet<> statements = {
        "return", "param", "dim", "const", "let", "for", "scan", "entry"};
    bool outer = declarations.contains(name);
    bool closed = false;
    while (!brackets.empty() &&
           (outer || (statements.contains(name) &&
                      tokens[brackets.back()].text != "{"))) {
      closeMissing(at, heed::format("'{}'", name));
      closed = true;
    }
    if (closed)
      push(TokenKind::Newline, at, at);
  }
  // A line may begin with `else`.
  if (name == "else" && !tokens.empty() &&
      tokens.back().kind == TokenKind::Newline)
    tokens.pop_back();
  push(reserved ? TokenKind::Word : TokenKind::Name, at, end);
  at = end;
  // An entry of a record: names with points, and nothing else, between them. No
  // word is reserved there.
  while (!reserved && peek() == '.' &&
         (end = nameEnd(at + 1, /*first=*/true)) != at + 1) {
    push(TokenKind::Op, at, at + 1);
    push(TokenKind::Name, at + 1, end);
    at = end;
  }
}

void Lexer::number() {
  size_t from = at;
  auto digits = [&] {
    while (isDigit(peek()))
      ++at;
  };
  bool real = false;
  digits();
  if (peek() == '.' && isDigit(peek(1))) {
    ++at;
    digits();
    real = true;
  }
  if (peek() == 'e' || peek() == 'E') {
    size_t sign = peek(1) == '+' || peek(1) == '-';
    if (isDigit(peek(1 + sign))) {
      at += 1 + sign;
      digits();
      real = true;
    }
  }
  size_t end = nameEnd(at, /*first=*/false);
  if (end != at) {
    diags.error(range(from, end),
                heed::format("a number and a name run into each other: '{}'",
                             text.slice(from, std::min(end, from + 32))));
    at = end;
    return pushBroken(from, end);
  }
  if (peek() == '.' && peek(1) != '.') {
    diags.error(range(from, at + 1),
                heed::format("a point needs a digit on both sides: write {}.0",
                             text.slice(from, std::min(at, from + 32))));
    ++at;
    return pushBroken(from, at);
  }
  push(real ? TokenKind::Real : TokenKind::Int, from, at);
}

void Lexer::string() {
  size_t from = at;
  size_t end = text.find_first_of("\"\n", at + 1);
  if (end == StringRef::npos || text[end] == '\n') {
    at = std::min(end, text.size());
    diags.error(range(from, from + 1), "a string must end on its line");
    pushBroken(from, at);
    return closeInside(text.slice(from + 1, at));
  }
  at = end + 1;
  push(TokenKind::String, from, at);
  tokens.back().text = text.slice(from + 1, end);
}

/// The brackets that an unended string has swallowed close nothing twice: what
/// is open before it and closes in it is no second mistake.
void Lexer::closeInside(StringRef swallowed) {
  unsigned inner = 0;
  for (char c : swallowed) {
    if (StringRef("([{").contains(c)) {
      ++inner;
    } else if (StringRef(")]}").contains(c)) {
      if (inner) {
        --inner;
      } else if (!brackets.empty() && closerOf(tokens[brackets.back()]) == c) {
        closeInnermost(at, at);
        tokens.back().text = closerText(c);
      }
    }
  }
}

void Lexer::open(size_t from) {
  brackets.push_back(tokens.size() - 1);
  if (brackets.size() > ast::maxNesting) {
    diags.error(range(from, from + 1),
                heed::format("nesting deeper than {}", ast::maxNesting));
    tooDeep = true;
  }
}

void Lexer::closeInnermost(size_t from, size_t to) {
  push(TokenKind::Op, from, to);
  tokens[brackets.back()].match = tokens.size() - 1;
  brackets.pop_back();
}

void Lexer::close(size_t from) {
  char c = text[from];
  auto closes = [&](unsigned index) { return closerOf(tokens[index]) == c; };
  // The bracket that this one closes may lie below others that were forgotten.
  auto found = std::find_if(brackets.rbegin(), brackets.rend(), closes);
  // A ) or ] never reaches over a block.
  bool blocked = c != '}' && std::any_of(brackets.rbegin(), found, [&](auto i) {
                   return tokens[i].text == "{";
                 });
  if (found == brackets.rend() || blocked) {
    if (c == '}' || brackets.empty() || tokens[brackets.back()].text == "{") {
      diags.error(range(from, from + 1),
                  heed::format("'{}' closes nothing", c));
      return pushBroken(from, from + 1);
    }
    // (x] is a slip in one of the two: it closes.
    const Token &opener = tokens[brackets.back()];
    char wanted = closerOf(opener);
    diags
        .error(range(from, from + 1),
               heed::format("expected '{}', found '{}'", wanted, c))
        .note(opener.range, heed::format("'{}' is open here", opener.text));
    closeInnermost(from, from + 1);
    tokens.back().text = closerText(wanted);
    return;
  }
  while (!closes(brackets.back()))
    closeMissing(from, heed::format("'{}'", std::string(1, c)));
  closeInnermost(from, from + 1);
}

void Lexer::stray() {
  size_t length;
  uint32_t c = decode(at, length);
  StringRef shown = text.substr(at, length);
  std::string message = "unexpected character ";
  if (c < 0x20 || c == 0x7F || (c >= 0x80 && c < 0xA0))
    message += heed::format("U+{}", llvm::utohexstr(c, /*LowerCase=*/false, 4));
  else
    message += heed::format("'{}'", shown);
  if (c == '&')
    message += "; write 'and'";
  else if (c == '!')
    message += "; write 'not'";
  else if (c == '?')
    message += "; a choice is written if .. then .. else ..";
  else if (c == '\'')
    message += "; a string stands in double quotes";
  else if (c == 0x2212)
    message += "; a minus is '-'";
  else if (c == 0xD7 || c == 0xB7 || c == 0x22C5)
    message += "; a product is '*'";
  else if (c == '.')
    message += isDigit(peek(1)) ? "; a number begins with a digit" : "";
  size_t from = at;
  at += length;
  // `&&` and the like are one mistake.
  while (c < 0x80 && at < text.size() && text[at] == static_cast<char>(c))
    ++at;
  // So is 'a'.
  if (c == '\'')
    if (size_t end = text.find_first_of("'\n", at);
        end != StringRef::npos && text[end] == '\'')
      at = end + 1;
  diags.error(range(from, at), message);
  pushBroken(from, at);
}

void Lexer::op() {
  static constexpr StringRef two[] = {"..", "//", "<=", ">=", "==", "!=", "->"};
  size_t from = at;
  StringRef rest = text.substr(at);
  for (StringRef spelling : two)
    if (rest.starts_with(spelling)) {
      at += 2;
      return push(TokenKind::Op, from, at);
    }
  char c = rest[0];
  if (!StringRef("-+*/%^=<>()[]{},:;|@").contains(c))
    return stray();
  ++at;
  if (StringRef(")]}").contains(c))
    return close(from);
  push(TokenKind::Op, from, at);
  if (StringRef("([{").contains(c))
    open(from);
}

std::vector<Token> Lexer::run() {
  bool legal = checkEncoding();
  text.consume_front("\xEF\xBB\xBF"); // a byte order mark says nothing
  if (!legal)
    at = text.size();
  while (at < text.size() && !tooDeep) {
    char c = text[at];
    if (c == ' ' || c == '\t' || c == '\r')
      ++at;
    else if (c == '#')
      at = std::min(text.find('\n', at), text.size());
    else if (c == '\n')
      newline();
    else if (isDigit(c))
      number();
    else if (nameEnd(at, /*first=*/true) != at)
      word();
    else if (c == '"')
      string();
    else
      op();
  }
  if (tooDeep) {
    tokens.clear();
    brackets.clear();
    at = text.size();
  }
  while (!brackets.empty())
    closeMissing(text.size(), endName);
  push(TokenKind::Newline, at, at);
  push(TokenKind::End, at, at);
  return std::move(tokens);
}

std::vector<Token> heed::lex(StringRef text, Diagnostics &diags,
                             StringRef end) {
  return Lexer(text, diags, end).run();
}
