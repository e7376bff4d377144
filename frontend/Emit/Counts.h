//===- Counts.h - Which states can be taken back ----------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_EMIT_COUNTS_H
#define HEED_FRONTEND_EMIT_COUNTS_H

#include "mlir/IR/BuiltinOps.h"

namespace heed {

/// Marks states for heed_state_trim(), as `attn.trim` of the arguments: "count"
/// a state of integers that an entry assigns of what it was and that positions
/// of updates are made of. Where a model has one, others are "recurrent" if
/// they are read and an entry that advances a count assigns them, or updates
/// them without a counted position, or any entry does so with what they were;
/// "ring" if they lie at remainders that are not those of pages.
void markCounts(mlir::ModuleOp module);

} // namespace heed

#endif // HEED_FRONTEND_EMIT_COUNTS_H
