//===- HalideWraps.h - Integers that wrap -----------------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HEED_COMPILER_CODEGEN_HALIDEWRAPS_H
#define HEED_COMPILER_CODEGEN_HALIDEWRAPS_H

#include "mlir/IR/Operation.h"

namespace heed {

/// What \p value is: where it reads a func that is defined once, what that one
/// yields, as Halide puts it in its place.
mlir::Value throughReads(mlir::Value value);

/// Whether the result of \p op, a sum, difference or product of i64, may lie
/// outside of i64: then it wraps. False of what is made of loop variables and
/// sizes, whose products are far below.
bool mayWrap(mlir::Operation *op);

} // namespace heed

#endif // HEED_COMPILER_CODEGEN_HALIDEWRAPS_H
