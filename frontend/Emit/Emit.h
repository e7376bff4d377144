//===- Emit.h - From resolved equations to attn IR --------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_EMIT_EMIT_H
#define HEED_FRONTEND_EMIT_EMIT_H

#include "frontend/Common/Diagnostics.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace heed {
namespace sema {
struct Model;
} // namespace sema

/// A function of linalg, scf and attn ops for each entry (docs/ir.md). Null
/// after an error, which is in `diags`. Loads the dialects it needs.
mlir::OwningOpRef<mlir::ModuleOp> emitModel(mlir::MLIRContext &context,
                                            const sema::Model &model,
                                            const Sources &sources,
                                            Diagnostics &diags);

} // namespace heed

#endif // HEED_FRONTEND_EMIT_EMIT_H
