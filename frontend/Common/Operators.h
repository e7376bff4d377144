//===- Operators.h - Operators, comparisons and reductions ------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_COMMON_OPERATORS_H
#define HEED_FRONTEND_COMMON_OPERATORS_H

#include "llvm/ADT/StringRef.h"

namespace heed::sema {

enum class BinaryOp { Add, Sub, Mul, Div, FloorDiv, Mod, Pow };
enum class CompareOp { Eq, Ne, Lt, Le, Gt, Ge };
enum class ReduceOp { Sum, Max, Min, Mean, Prod, Any, All, Argmax };

/// As messages say them, and Heed's texts.
llvm::StringRef spelling(BinaryOp op);
llvm::StringRef spelling(CompareOp op);
llvm::StringRef spelling(ReduceOp op);

} // namespace heed::sema

#endif // HEED_FRONTEND_COMMON_OPERATORS_H
