//===- Format.h - {fmt} for messages, reports and generated text *- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every text that a person reads is written by {fmt}, in the syntax of Python's
// str.format. Here stands what it must know of LLVM and MLIR beside it:
//
//   format("'{}' has rank {}, expected {}", name, type.getRank(), 2)
//   emitError() << ...  stays where MLIR prints a value or a type itself
//
// llvm::StringRef, SmallString and Twine are strings; whatever LLVM prints
// (types, attributes, locations, APInt) is printed with `printed(x)`.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_SUPPORT_FORMAT_H
#define HEED_SUPPORT_FORMAT_H

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>

template <>
struct fmt::formatter<llvm::StringRef> : fmt::formatter<fmt::string_view> {
  template <typename Context>
  auto format(llvm::StringRef text, Context &context) const {
    return fmt::formatter<fmt::string_view>::format({text.data(), text.size()},
                                                    context);
  }
};

template <unsigned Size>
struct fmt::formatter<llvm::SmallString<Size>>
    : fmt::formatter<llvm::StringRef> {};

template <>
struct fmt::formatter<llvm::Twine> : fmt::formatter<llvm::StringRef> {
  template <typename Context>
  auto format(const llvm::Twine &text, Context &context) const {
    llvm::SmallString<128> storage;
    return fmt::formatter<llvm::StringRef>::format(text.toStringRef(storage),
                                                   context);
  }
};

namespace heed {

/// Called as heed::format where an argument is LLVM's, which has a function of
/// that name.
using fmt::format;

/// "1 axis", "3 axes".
template <typename Count>
std::string counted(Count count, llvm::StringRef one, llvm::StringRef many) {
  return fmt::format("{} {}", count, count == Count(1) ? one : many);
}

/// \p value as LLVM and MLIR print it.
template <typename T> std::string printed(const T &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

} // namespace heed

#endif // HEED_SUPPORT_FORMAT_H
