//===- AST.cpp - How the parts of the syntax tree are spelled -------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AST.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ErrorHandling.h"

using namespace heed;
using llvm::StringRef;

std::optional<ast::ElementType> ast::elementType(StringRef name) {
  return llvm::StringSwitch<std::optional<ElementType>>(name)
      .Case("f16", ElementType::F16)
      .Case("bf16", ElementType::BF16)
      .Case("f32", ElementType::F32)
      .Case("f64", ElementType::F64)
      .Case("i8", ElementType::I8)
      .Case("u8", ElementType::U8)
      .Case("i16", ElementType::I16)
      .Case("i32", ElementType::I32)
      .Case("i64", ElementType::I64)
      .Case("bool", ElementType::Bool)
      .Default(std::nullopt);
}

StringRef ast::spelling(ElementType type) {
  static constexpr StringRef names[] = {"f16", "bf16", "f32", "f64", "i8",
                                        "u8",  "i16",  "i32", "i64", "bool"};
  return names[static_cast<unsigned>(type)];
}

StringRef ast::spelling(BinaryOp op) {
  static constexpr StringRef names[] = {"+", "-", "*", "/", "//", "%", "^"};
  return names[static_cast<unsigned>(op)];
}

StringRef ast::spelling(CompareOp op) {
  static constexpr StringRef names[] = {"==", "!=", "<", "<=", ">", ">="};
  return names[static_cast<unsigned>(op)];
}

StringRef ast::spelling(ReduceOp op) {
  static constexpr StringRef names[] = {"sum",  "max", "min", "mean",
                                        "prod", "any", "all", "argmax"};
  return names[static_cast<unsigned>(op)];
}
