//===- CheckModels.h - what IR from a file says of models -------*- C++ -*-===//

#ifndef HEED_COMPILER_DRIVER_CHECKMODELS_H
#define HEED_COMPILER_DRIVER_CHECKMODELS_H

#include "mlir/IR/BuiltinOps.h"

namespace heed {

/// The front end makes models as docs/ir.md describes them; a person may have
/// written others. Fails with a diagnostic where the signature of one is not
/// what the later stations build on.
mlir::LogicalResult checkModels(mlir::ModuleOp module);

/// Whether C and the linker take it as the beginning of a symbol.
bool isSymbolName(llvm::StringRef name);

} // namespace heed

#endif // HEED_COMPILER_DRIVER_CHECKMODELS_H
