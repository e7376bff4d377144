//===- Lexer.h - From text to tokens ----------------------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HEED_SYNTAX_LEXER_H
#define HEED_FRONTEND_HEED_SYNTAX_LEXER_H

#include "frontend/Common/Diagnostics.h"

#include <vector>

namespace heed {

enum class TokenKind {
  Name,    ///< no reserved word
  Word,    ///< a reserved word
  Int,     ///< digits
  Real,    ///< with a point or an exponent
  String,  ///< `text` is what stands between the quotes
  Op,      ///< brackets, operators, punctuation
  Newline, ///< ends a statement
  Broken,  ///< something already reported; the parser fails here silently
  End
};

struct Token {
  TokenKind kind = TokenKind::End;
  llvm::StringRef text;
  llvm::SMRange range;
  /// Of an opening bracket: the number of the token that closes it.
  unsigned match = 0;
  /// Of an opening bracket: it was reported, and closed by guess.
  bool isUnclosed = false;

  bool is(llvm::StringRef spelling) const {
    return (kind == TokenKind::Op || kind == TokenKind::Word) &&
           text == spelling;
  }
};

/// The tokens of `text`, which lies in a buffer of the Sources of `diags`.
/// The last is Newline, then End. Brackets always match: those that do not are
/// reported and mended. A newline inside ( ) or [ ], or after a token that
/// cannot end a statement, is no token.
/// Text that is not UTF-8, or nests deeper than ast::maxNesting, is one error
/// and gives no tokens but the last two.
/// `end` is what messages call the end of the text.
std::vector<Token> lex(llvm::StringRef text, Diagnostics &diags,
                       llvm::StringRef end = "the end of the file");

bool isReserved(llvm::StringRef word);

} // namespace heed

#endif // HEED_FRONTEND_HEED_SYNTAX_LEXER_H
