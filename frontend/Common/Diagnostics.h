//===- Diagnostics.h - errors, warnings and notes ---------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collects what a compilation has to say about its sources, and prints it:
//
//   longformer.heed:4:41: error: index 'j' ranges over M = 96 here
//     p[b,h,i,j] = softmax(j) s[b,h,i,j]
//                          ^
//   longformer.heed:3:20: note: but over N = 128 in 'k'
//
// Messages are lower case without full stop and name what was expected and
// what was found. Notes show the other side of a conflict.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_COMMON_DIAGNOSTICS_H
#define HEED_FRONTEND_COMMON_DIAGNOSTICS_H

#include "Source.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace heed {

enum class Severity { Error, Warning, Note };

/// One message. An invalid range (SMRange()) has no place in a source: the
/// message is printed alone.
struct Diagnostic {
  Severity severity = Severity::Error;
  llvm::SMRange range;
  std::string message;
  std::vector<Diagnostic> notes;

  /// Adds a note and returns this diagnostic, to add more.
  Diagnostic &note(llvm::SMRange range, const llvm::Twine &message);
};

class Diagnostics {
public:
  explicit Diagnostics(const Sources &sources) : sources(sources) {}

  /// Both return the new diagnostic, valid as long as this object.
  /// An error repeated at the same place with the same words is kept once.
  Diagnostic &error(llvm::SMRange range, const llvm::Twine &message);
  Diagnostic &warning(llvm::SMRange range, const llvm::Twine &message);
  Diagnostic &error(llvm::SMLoc loc, const llvm::Twine &message) {
    return error(llvm::SMRange(loc, loc), message);
  }

  bool hasErrors() const { return numErrors != 0; }
  unsigned errorCount() const { return numErrors; }
  const std::deque<Diagnostic> &all() const { return diags; }

  /// Prints all, sorted by place; after `limit` errors says how many are left.
  void print(llvm::raw_ostream &os, unsigned limit = 20) const;

private:
  Diagnostic &add(Severity severity, llvm::SMRange range,
                  const llvm::Twine &message);
  void printOne(llvm::raw_ostream &os, const Diagnostic &diag) const;

  const Sources &sources;
  std::deque<Diagnostic> diags;
  /// Place and hash of the words of every message.
  std::set<std::pair<const char *, size_t>> seen;
  Diagnostic repeated; ///< where notes of a repeated error go
  unsigned numErrors = 0;
};

/// The known name nearest to `name`, if any is near enough to be a slip of the
/// hand. Ties go to the one that comes first in `known`.
std::optional<llvm::StringRef> nearest(llvm::StringRef name,
                                       llvm::ArrayRef<llvm::StringRef> known);

/// "; did you mean 'x'?" for the nearest known name, or "".
std::string didYouMean(llvm::StringRef name,
                       llvm::ArrayRef<llvm::StringRef> known);

} // namespace heed

#endif // HEED_FRONTEND_COMMON_DIAGNOSTICS_H
