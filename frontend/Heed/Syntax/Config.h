//===- Config.h - JSON as configurations have it ----------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HEED_SYNTAX_CONFIG_H
#define HEED_FRONTEND_HEED_SYNTAX_CONFIG_H

#include "llvm/Support/JSON.h"

#include <optional>
#include <string>
#include <vector>

namespace heed {

/// The object of a config's text, in which Infinity is a number, as Python
/// writes it. Null after an error: "is not JSON: ...".
std::optional<llvm::json::Object> parseConfig(std::string text,
                                              std::string &error);

/// Those that a name in a model can have, sorted: LLVM's object is a hash
/// table.
std::vector<llvm::StringRef> keysOf(const llvm::json::Object &object);

/// {"__float__": "Infinity"}: transformers writes so what JSON has no word for.
std::optional<double> spelledNumber(const llvm::json::Value &json);

} // namespace heed

#endif // HEED_FRONTEND_HEED_SYNTAX_CONFIG_H
