//===- Source.h - Source buffers and places in them -------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Owns the text of every file of a compilation. Trees, tokens and diagnostics
// point into these buffers, so a Sources outlives all of them.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_COMMON_SOURCE_H
#define HEED_FRONTEND_COMMON_SOURCE_H

#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/StringSaver.h"

namespace heed {

/// A place as people count: lines and columns from 1, columns in characters
/// (not bytes). `line` is 0 for an unknown place.
struct Position {
  llvm::StringRef file;
  unsigned line = 0, column = 0;
};

class Sources {
public:
  /// Adds a file and returns its text (lives as long as the Sources).
  llvm::StringRef add(llvm::StringRef path, llvm::StringRef text);

  /// Keeps a string that no file holds (names out of a config file).
  llvm::StringRef keep(llvm::StringRef text);

  Position position(llvm::SMLoc loc) const;

  /// The whole line `loc` stands in, without its newline; empty if unknown.
  llvm::StringRef lineAt(llvm::SMLoc loc) const;

  /// Sorts places: by file, in the order of add(), then by offset. An unknown
  /// place comes first.
  std::pair<unsigned, const char *> order(llvm::SMLoc loc) const {
    unsigned id = loc.isValid() ? mgr.FindBufferContainingLoc(loc) : 0;
    return {id, loc.getPointer()};
  }

  /// For tools that want LLVM's own class.
  llvm::SourceMgr &manager() { return mgr; }
  const llvm::SourceMgr &manager() const { return mgr; }

private:
  llvm::SourceMgr mgr;
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver{allocator};
};

} // namespace heed

#endif // HEED_FRONTEND_COMMON_SOURCE_H
