//===- Einsum.h - numpy.einsum's texts as models ----------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_EINSUM_EINSUM_H
#define HEED_FRONTEND_EINSUM_EINSUM_H

#include "frontend/Common/Diagnostics.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace heed {

/// The attn IR of \p text, "bhie,bhje->bhij": a model `einsum` of inputs x0,
/// x1, .. in f32, whose result is y. The dims of letter e are called E. \p text
/// is one of `sources`. Null after an error, which is in `diags`.
mlir::OwningOpRef<mlir::ModuleOp>
compileEinsum(mlir::MLIRContext &context, llvm::StringRef text,
              llvm::StringRef file, const Sources &sources, Diagnostics &diags);

} // namespace heed

#endif // HEED_FRONTEND_EINSUM_EINSUM_H
