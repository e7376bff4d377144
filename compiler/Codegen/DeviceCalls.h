//===- DeviceCalls.h - hosts whose kernels run on a device ------*- C++ -*-===//

#ifndef HEED_COMPILER_CODEGEN_DEVICECALLS_H
#define HEED_COMPILER_CODEGEN_DEVICECALLS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"

namespace heed {

/// Of a host that `attn-lower-host` has lowered, on memrefs: what it asks of
/// the runtime is asked of heed_device_* (runtime/host.h), which know that a
/// tensor may be newer on the device, and what it reads and writes itself is
/// said before. Fails at an op of which it is not known what it reads.
mlir::LogicalResult addDeviceCalls(mlir::ModuleOp module);

} // namespace heed

#endif // HEED_COMPILER_CODEGEN_DEVICECALLS_H
