//===- HostParams.h - numbers the parameters of a model ---------*- C++ -*-===//
//
// Every `attn.param` of a module gets the number of an entry in a table that
// the runtime reads when it opens the weights.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_PASSES_HOST_HOSTPARAMS_H
#define HEED_PASSES_HOST_HOSTPARAMS_H

#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/ParamNames.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace heed {

struct HostParam {
  int64_t number;
  /// The operands that the names still hold, renumbered: constants stand in
  /// the names themselves, so that no instance is asked for that nobody reads.
  llvm::SmallVector<mlir::Value> indices;
};

struct HostParams {
  llvm::DenseMap<mlir::Operation *, HostParam> ops;
  /// One dictionary per parameter: names, bounds (pairs, half-open), type,
  /// sizes.
  llvm::SmallVector<mlir::Attribute> table;
};

/// Fails, with a diagnostic, where the range of a loop variable in a name is
/// not constant.
mlir::FailureOr<HostParams> numberParams(mlir::ModuleOp module);

} // namespace heed

#endif // HEED_PASSES_HOST_HOSTPARAMS_H
