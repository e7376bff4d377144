//===- Header.h - the C header of a compiled model --------------*- C++ -*-===//

#ifndef HEED_COMPILER_DRIVER_HEADER_H
#define HEED_COMPILER_DRIVER_HEADER_H

#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace heed {

/// Declares `<prefix>_model` and says what its inputs and outputs are.
/// \p module is attn IR.
std::string makeHeader(mlir::ModuleOp module, const std::string &model,
                       const std::string &prefix);

} // namespace heed

#endif // HEED_COMPILER_DRIVER_HEADER_H
