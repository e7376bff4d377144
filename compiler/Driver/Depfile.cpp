//===- Depfile.cpp - what an output was made of, for make and ninja -------===//

#include "compiler/Driver/Depfile.h"
#include "support/Format.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace {

/// \p path as a word of a rule. Backslashes stand for themselves but before
/// what they would escape, where they are doubled.
std::string word(StringRef path) {
  std::string text;
  size_t backslashes = 0;
  for (char c : path) {
    if (c == ' ' || c == '\t' || c == '#' || c == ':') {
      text.append(backslashes, '\\');
      text += '\\';
    } else if (c == '$') {
      text += '$';
    }
    text += c;
    backslashes = c == '\\' ? backslashes + 1 : 0;
  }
  return text;
}

} // namespace

mlir::FailureOr<std::string> heed::makeDepfile(StringRef output,
                                               ArrayRef<std::string> inputs,
                                               std::string &error) {
  std::string text = word(output) + ':';
  StringSet<> seen;
  auto isLine = [](StringRef path) { return !path.contains('\n'); };
  for (StringRef path : inputs)
    if (seen.insert(path).second) {
      text += heed::format(" \\\n  {}", word(path));
      if (!isLine(path))
        output = path;
    }
  if (isLine(output))
    return text + '\n';
  error =
      format("cannot name '{}' as a dependency: it holds a line break", output);
  return mlir::failure();
}
