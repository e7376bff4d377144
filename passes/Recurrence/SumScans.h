//===- SumScans.h - rows that sum over states -------------------*- C++ -*-===//
//
// Part of attn-block-scans.
#ifndef HEED_PASSES_RECURRENCE_SUMSCANS_H
#define HEED_PASSES_RECURRENCE_SUMSCANS_H

#include "dialects/Attn/Dialect.h"
#include "passes/Recurrence/StepBody.h"

namespace heed {

/// A recurrence as expressions: elements of the next states over `vars`, one of
/// an axis, of the same elements of the states before; elements of each row
/// over its own of `rowVars`, of the states before and after.
struct ScanElements {
  attn::ScanOp scan;
  Exprs &exprs;
  StepBody &body;
  llvm::ArrayRef<unsigned> vars;
  llvm::ArrayRef<ExprRef> next;
  llvm::ArrayRef<llvm::SmallVector<unsigned>> rowVars;
  llvm::ArrayRef<ExprRef> rows;
};

/// Writes \p elements, whose rows read sums over one axis of the states alone,
/// by attn.sum_scan in place of the recurrence. False, and nothing has changed,
/// if it is none, or it has too many states for registers.
bool writeSumScan(const ScanElements &elements);

} // namespace heed
#endif
