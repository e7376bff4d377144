//===- Operators.cpp - Operators, comparisons and reductions --------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Operators.h"

using namespace heed;
using llvm::StringRef;

StringRef sema::spelling(BinaryOp op) {
  static constexpr StringRef names[] = {"+", "-", "*", "/", "//", "%", "^"};
  return names[static_cast<unsigned>(op)];
}

StringRef sema::spelling(CompareOp op) {
  static constexpr StringRef names[] = {"==", "!=", "<", "<=", ">", ">="};
  return names[static_cast<unsigned>(op)];
}

StringRef sema::spelling(ReduceOp op) {
  static constexpr StringRef names[] = {"sum",  "max", "min", "mean",
                                        "prod", "any", "all", "argmax"};
  return names[static_cast<unsigned>(op)];
}
