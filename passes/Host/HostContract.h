//===- HostContract.h - host code before it becomes LLVM --------*- C++ -*-===//
#ifndef HEED_PASSES_HOST_HOSTCONTRACT_H
#define HEED_PASSES_HOST_HOSTCONTRACT_H

#include "mlir/IR/BuiltinOps.h"

namespace heed {

/// The rules of docs/ir.md, section 5: what `attn-lower-host` needs to find.
mlir::LogicalResult verifyHost(mlir::ModuleOp module);

} // namespace heed
#endif
