//===- Parser.h - From text to the syntax tree ------------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HEED_SYNTAX_PARSER_H
#define HEED_FRONTEND_HEED_SYNTAX_PARSER_H

#include "AST.h"
#include "frontend/Common/Diagnostics.h"

#include <memory>

namespace heed {

/// Parses one file. `text` is a buffer of `sources`. Imports and configs are
/// not followed: see Loader.h.
/// Never null: on errors (then `diags` has some) the tree holds what was
/// understood, and is fit for nothing but printing.
std::unique_ptr<ast::File> parseFile(llvm::StringRef path, llvm::StringRef text,
                                     Diagnostics &diags);

/// Parses the value of `--set name=value`: a number, bool, none, string
/// (quotes may be left away) or table. `text` is a buffer of the Sources of
/// `diags`. Null after an error.
ast::ExprPtr parseSetting(llvm::StringRef text, Diagnostics &diags);

} // namespace heed

#endif // HEED_FRONTEND_HEED_SYNTAX_PARSER_H
