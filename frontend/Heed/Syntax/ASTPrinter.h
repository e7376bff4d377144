//===- ASTPrinter.h - The syntax tree as text -------------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HEED_SYNTAX_ASTPRINTER_H
#define HEED_FRONTEND_HEED_SYNTAX_ASTPRINTER_H

#include "AST.h"

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace heed {

/// Prints a file as nested lists, one statement a line: what
/// `heedc --emit=ast` shows. Stable, and without places.
void printAST(const ast::File &file, llvm::raw_ostream &os);
void printAST(const ast::Expr &expr, llvm::raw_ostream &os);

} // namespace heed

#endif // HEED_FRONTEND_HEED_SYNTAX_ASTPRINTER_H
