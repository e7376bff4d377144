//===- Loader.h - A file with all that it imports ---------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Follows `import` (relative to the importing file, then the folders of -I,
// then the standard library, which is compiled in) and `config` (in the model's
// folder), and answers which declaration a name of a file means.
//
// The functions of the standard library are visible everywhere without an
// import; importing one of its files is allowed and changes nothing.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HEED_SYNTAX_LOADER_H
#define HEED_FRONTEND_HEED_SYNTAX_LOADER_H

#include "AST.h"
#include "Library.h"
#include "frontend/Common/Diagnostics.h"

#include <memory>
#include <string>
#include <vector>

namespace heed {

struct LoadOptions {
  std::vector<std::string> includeFolders; ///< -I, in order
  std::string modelFolder; ///< --model-dir; empty: the main file's folder
  /// Files that are compiled in, as if they lay in that folder, and what
  /// others write before their paths to import them.
  std::string shippedFolder, shippedName;
  llvm::ArrayRef<LibraryFile> shipped;
};

/// Every file of a compilation. Owns the trees; their text lies in the Sources.
struct Program {
  ast::File *main = nullptr; ///< null if it could not be read
  std::vector<std::unique_ptr<ast::File>> files; ///< main, imports, library
  std::vector<std::string> reads; ///< paths of all that was read from disk

  /// The function that `name(` means in `file`: its own, else one of its
  /// imports (theirs included), else the standard library's; null if none.
  const ast::FnDecl *findFn(const ast::File &file, llvm::StringRef name) const;

  /// The constant `name` of `file`: its own, one of its configs', or one of its
  /// imports'; null if none. `--set` is not looked at.
  const ast::ConstStmt *findConst(const ast::File &file,
                                  llvm::StringRef name) const;

  /// All names of functions and constants visible in `file`, sorted, for
  /// nearest-name hints.
  std::vector<llvm::StringRef> visibleFns(const ast::File &file) const;
  std::vector<llvm::StringRef> visibleConsts(const ast::File &file) const;
};

/// Reads `path` ("-": standard input) and everything it needs into `sources`,
/// whose Diagnostics `diags` is. On errors the program holds what was read.
Program loadProgram(llvm::StringRef path, const LoadOptions &options,
                    Sources &sources, Diagnostics &diags);

/// The same for text that is already in memory; `path` names it in messages
/// and is what imports are relative to.
Program loadProgramText(llvm::StringRef path, llvm::StringRef text,
                        const LoadOptions &options, Sources &sources,
                        Diagnostics &diags);

} // namespace heed

#endif // HEED_FRONTEND_HEED_SYNTAX_LOADER_H
