// The halide dialect's C++ classes: dialect, type, enumerations and ops.

#ifndef HEED_DIALECTS_HALIDE_HALIDEDIALECT_H
#define HEED_DIALECTS_HALIDE_HALIDEDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringMap.h"

namespace heed::halide {
class FuncOp;
} // namespace heed::halide

#include "dialects/Halide/HalideDialect.h.inc"
#include "dialects/Halide/HalideEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Halide/HalideTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Halide/HalideAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/Halide/HalideOps.h.inc"

namespace heed::halide {

/// Number of dims of the func or buffer \p func; -1 if it is defined by
/// neither.
int64_t getRank(mlir::Value func);

/// Element types of the func or buffer \p func, several for a tuple.
llvm::SmallVector<mlir::Type> getElementTypes(mlir::Value func);

/// Name of the func or buffer \p func, empty if it is defined by neither.
llvm::StringRef getFuncName(mlir::Value func);

/// Whether \p op is a directive of a schedule (its operand 0 is the func).
bool isScheduleOp(mlir::Operation *op);

/// Lets upstream one-shot bufferisation turn `halide.call` on tensors into one
/// on memrefs, in place.
void registerBufferization(mlir::DialectRegistry &registry);

} // namespace heed::halide

#endif // HEED_DIALECTS_HALIDE_HALIDEDIALECT_H
