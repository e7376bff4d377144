//===- Heed.h - From a program to attn IR -----------------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_HEED_HEED_H
#define HEED_FRONTEND_HEED_HEED_H

#include "frontend/Heed/Semantics/Semantics.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace heed {

/// Analyses and emits one model of `program`. Null after an error, which is in
/// `diags`.
mlir::OwningOpRef<mlir::ModuleOp> compileHeed(mlir::MLIRContext &context,
                                              const Program &program,
                                              const FrontendOptions &options,
                                              const Sources &sources,
                                              Diagnostics &diags);

} // namespace heed

#endif // HEED_FRONTEND_HEED_HEED_H
