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
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace heed {

struct HostParam {
  /// The first of its entries, and how many there are.
  int64_t number = 0, count = 1;
  /// The operands, by their places, that the names of its one entry still hold,
  /// renumbered: constants stand in the names themselves.
  llvm::SmallVector<unsigned> indices;
  /// The loops, outermost first, whose turn an entry is of; none where there is
  /// one entry for all.
  llvm::SmallVector<mlir::scf::ForOp> loops;
};

struct HostParams {
  llvm::DenseMap<mlir::Operation *, HostParam> ops;
  /// One dictionary per parameter: names, bounds (pairs, half-open), type,
  /// sizes; `init` where no call reads it.
  llvm::SmallVector<mlir::Attribute> table;
};

/// Fails, with a diagnostic, where a number in a name is not known for each
/// turn of the loops around.
mlir::FailureOr<HostParams> numberParams(mlir::ModuleOp module);

} // namespace heed

#endif // HEED_PASSES_HOST_HOSTPARAMS_H
