//===- Config.cpp - JSON as configurations have it ------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Config.h"
#include "Expr.h"
#include "support/Format.h"

#include "llvm/ADT/STLExtras.h"

using namespace heed;
using llvm::StringRef;

std::optional<llvm::json::Object> heed::parseConfig(std::string text,
                                                    std::string &error) {
  // LLVM's reader recurses for every bracket.
  unsigned depth = 0, deepest = 0;
  bool inString = false;
  for (size_t k = 0; k < text.size(); ++k) {
    char c = text[k];
    if (inString && c == '\\')
      ++k;
    else if (c == '"')
      inString = !inString;
    else if (!inString &&
             llvm::StringRef(text).substr(k).starts_with("Infinity"))
      text.replace(k, 8, "1e999");
    else if (!inString && (c == '[' || c == '{'))
      deepest = std::max(deepest, ++depth);
    else if (!inString && (c == ']' || c == '}') && depth)
      --depth;
  }
  if (deepest > ast::maxNesting) {
    error = heed::format("nests deeper than {}", ast::maxNesting);
    return std::nullopt;
  }
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(text);
  if (!json) {
    error = heed::format("is not JSON: {}", llvm::toString(json.takeError()));
    return std::nullopt;
  }
  llvm::json::Object *object = json->getAsObject();
  if (!object) {
    error = "is no JSON object";
    return std::nullopt;
  }
  return std::move(*object);
}

std::vector<StringRef> heed::keysOf(const llvm::json::Object &object) {
  std::vector<StringRef> keys;
  for (const auto &entry : object)
    if (!StringRef(entry.first).contains('.'))
      keys.push_back(entry.first);
  llvm::sort(keys);
  return keys;
}

std::optional<double> heed::spelledNumber(const llvm::json::Value &json) {
  const llvm::json::Object *record = json.getAsObject();
  if (!record || record->size() != 1)
    return std::nullopt;
  auto text = record->getString("__float__");
  double value;
  if (!text || StringRef(text->upper()).getAsDouble(value))
    return std::nullopt;
  return value;
}
