//===- OneRow.h - products of one row ---------------------------*- C++ -*-===//
#ifndef HEED_PASSES_LOWER_ONEROW_H
#define HEED_PASSES_LOWER_ONEROW_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include <optional>

namespace heed {

namespace halide {
struct Target;
}

/// If \p kernel is a contraction of rows, whose number only a call knows, with
/// weights (arguments in \p fixed) that come from memory: the argument that is
/// the number of rows.
std::optional<unsigned> rowsOfProduct(mlir::func::FuncOp kernel,
                                      const halide::Target &target,
                                      const llvm::BitVector &fixed);

/// Gives the results of such a kernel one row.
void makeOneRow(mlir::func::FuncOp kernel);

} // namespace heed

#endif
