//===- Library.h - The standard library, compiled in ------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HEED_SYNTAX_LIBRARY_H
#define HEED_FRONTEND_HEED_SYNTAX_LIBRARY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace heed {

struct LibraryFile {
  llvm::StringRef path; ///< as an import names it: "attention.heed"
  llvm::StringRef text;
};

/// The files of lib/, sorted by path.
llvm::ArrayRef<LibraryFile> libraryFiles();

} // namespace heed

#endif // HEED_FRONTEND_HEED_SYNTAX_LIBRARY_H
