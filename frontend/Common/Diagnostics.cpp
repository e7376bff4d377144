//===- Diagnostics.cpp - Errors, warnings and notes with their places -----===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Diagnostics.h"
#include "support/Format.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/Sequence.h"

#include <algorithm>

using namespace heed;
using llvm::raw_ostream;
using llvm::SMRange;
using llvm::StringRef;
using llvm::Twine;

Diagnostic &Diagnostic::note(SMRange range, const Twine &message) {
  Diagnostic note;
  note.severity = Severity::Note;
  note.range = range;
  note.message = message.str();
  notes.push_back(std::move(note));
  return *this;
}

Diagnostic &Diagnostics::add(Severity severity, SMRange range,
                             const Twine &message) {
  Diagnostic diag;
  diag.severity = severity;
  diag.range = range;
  diag.message = message.str();
  if (range.isValid() &&
      !seen.insert({range.Start.getPointer(),
                    llvm::hash_value(StringRef(diag.message))})
           .second) {
    repeated = std::move(diag);
    return repeated;
  }
  numErrors += severity == Severity::Error;
  diags.push_back(std::move(diag));
  return diags.back();
}

Diagnostic &Diagnostics::error(SMRange range, const Twine &message) {
  return add(Severity::Error, range, message);
}

Diagnostic &Diagnostics::warning(SMRange range, const Twine &message) {
  return add(Severity::Warning, range, message);
}

static size_t numColumns(StringRef text) {
  return llvm::count_if(text,
                        [](unsigned char c) { return (c & 0xC0) != 0x80; });
}

/// Moves `at` forward to where a character begins.
static size_t toCharacter(StringRef text, size_t at) {
  while (at < text.size() &&
         (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80)
    ++at;
  return std::min(at, text.size());
}

/// The line, or as much of a long one as a terminal shows, and a caret below
/// the place, with tildes along the range.
static void printLine(raw_ostream &os, StringRef line, size_t at,
                      size_t length) {
  constexpr size_t maxBefore = 80, maxAfter = 60;
  StringRef before, after;
  if (at > maxBefore) {
    size_t cut = toCharacter(line, at - maxBefore);
    line = line.drop_front(cut);
    at -= cut;
    before = "...";
  }
  if (line.size() > at + maxAfter) {
    line = line.take_front(toCharacter(line, at + maxAfter));
    after = "...";
  }
  length = std::min(length, line.size() - at);
  os << "  " << before;
  for (unsigned char c : line) // control characters would move the cursor
    os << (c < 0x20 && c != '\t' ? ' ' : static_cast<char>(c));
  os << after << "\n  ";
  os.indent(before.size());
  for (char c : line.take_front(at))
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80)
      os << (c == '\t' ? '\t' : ' ');
  os << '^';
  for (size_t k = 1, n = numColumns(line.substr(at, length)); k < n; ++k)
    os << '~';
  os << '\n';
}

void Diagnostics::printOne(raw_ostream &os, const Diagnostic &diag) const {
  Position pos = sources.position(diag.range.Start);
  if (pos.line)
    os << pos.file << ':' << pos.line << ':' << pos.column << ": ";
  switch (diag.severity) {
  case Severity::Error:
    os << "error: ";
    break;
  case Severity::Warning:
    os << "warning: ";
    break;
  case Severity::Note:
    os << "note: ";
    break;
  }
  os << diag.message << '\n';
  if (pos.line) {
    StringRef line = sources.lineAt(diag.range.Start);
    // A place at the newline itself lies one past the line.
    size_t at = std::min<size_t>(diag.range.Start.getPointer() - line.data(),
                                 line.size());
    size_t length = diag.range.End.getPointer() - diag.range.Start.getPointer();
    printLine(os, line, at, length);
  }
  for (const Diagnostic &note : diag.notes)
    printOne(os, note);
}

void Diagnostics::print(raw_ostream &os, unsigned limit) const {
  // File by file in the order of reading, what has no place first.
  auto order = [&](size_t k) {
    return std::pair(sources.order(diags[k].range.Start), k);
  };
  llvm::SmallVector<size_t> sorted = llvm::to_vector(llvm::seq(diags.size()));
  llvm::sort(sorted, [&](size_t a, size_t b) { return order(a) < order(b); });
  unsigned printed = 0;
  for (size_t k : sorted) {
    if (diags[k].severity == Severity::Error && printed++ == limit) {
      os << "error: " << numErrors - limit << " more errors\n";
      return;
    }
    printOne(os, diags[k]);
  }
}

/// How many letters to change; two neighbours that were swapped are one slip.
static unsigned distanceOf(StringRef name, StringRef candidate, unsigned most) {
  if (name.size() == candidate.size()) {
    size_t first = 0;
    while (first < name.size() && name[first] == candidate[first])
      ++first;
    if (first + 1 < name.size() && name[first] == candidate[first + 1] &&
        name[first + 1] == candidate[first] &&
        name.drop_front(first + 2) == candidate.drop_front(first + 2))
      return 1;
  }
  return name.edit_distance_insensitive(candidate, /*AllowReplacements=*/true,
                                        /*MaxEditDistance=*/most);
}

std::optional<StringRef> heed::nearest(StringRef name,
                                       llvm::ArrayRef<StringRef> known) {
  // A third of the letters may be wrong, but never all of a short name.
  unsigned best = std::max<unsigned>(1, name.size() / 3) + 1;
  std::optional<StringRef> found;
  if (name.size() < 2 || name.size() > 64)
    return found;
  for (StringRef candidate : known) {
    if (candidate == name || candidate.size() < 2)
      continue;
    unsigned distance = distanceOf(name, candidate, best);
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

std::string heed::didYouMean(StringRef name, llvm::ArrayRef<StringRef> known) {
  if (std::optional<StringRef> near = nearest(name, known))
    return heed::format("; did you mean '{}'?", *near);
  return "";
}
