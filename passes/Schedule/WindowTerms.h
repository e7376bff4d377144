//===- WindowTerms.h - what a sum over windows adds, and where --*- C++ -*-===//
#ifndef HEED_PASSES_SCHEDULE_WINDOWTERMS_H
#define HEED_PASSES_SCHEDULE_WINDOWTERMS_H

#include "passes/Schedule/Rewrite.h"

namespace heed {

/// Whether \p value is \p arg or computed from it.
bool dependsOn(mlir::Value value, mlir::Value arg);

/// Whether \p value is computed inside of its region from coordinates alone.
bool isArithmetic(mlir::Value value);

/// \p coordinate without the limits around it, which depend on no loop; of 64
/// bits where they are.
mlir::Value withoutLimits(mlir::Value coordinate);

/// Whether \p x is a sum of \p arg and what does not depend on it.
bool movesWith(mlir::Value x, mlir::Value arg);

/// Whether Halide knows bounds of \p x where it knows those of the loops: sums,
/// and products with what depends on none.
bool hasBounds(mlir::Value x);

/// \p x, which hasBounds, in 32 bits: the same where it is inside of an array,
/// whose extents have 32; a condition keeps the rest out.
mlir::Value narrowed(mlir::OpBuilder &b, mlir::Value x);

/// What an update adds, and where.
struct WindowTerm {
  mlir::Operation *combine = nullptr; ///< the addition, or the like
  unsigned number = 0;                ///< the operand of it that is the term
  mlir::Value value;                  ///< the term
  llvm::SmallVector<mlir::Value> conditions;
};

/// The term of \p update, sum + term or where(condition) sum + term; nothing
/// for others.
std::optional<WindowTerm> termOf(halide::UpdateOp update);

/// The parts of \p conditions that hold together.
llvm::SmallVector<mlir::Value>
conjuncts(llvm::ArrayRef<mlir::Value> conditions);

} // namespace heed

#endif
