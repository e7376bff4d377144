//===- RuntimeType.h - element types as the runtime calls them --*- C++ -*-===//
#ifndef HEED_PASSES_HOST_RUNTIMETYPE_H
#define HEED_PASSES_HOST_RUNTIMETYPE_H

#include "mlir/IR/Types.h"

namespace heed {

/// heed_type of runtime/heed.h; 0 if there is none.
int32_t runtimeType(mlir::Type type);

} // namespace heed

#endif
