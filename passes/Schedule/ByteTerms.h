//===- ByteTerms.h - sums of products of bytes ------------------*- C++ -*-===//
#ifndef HEED_PASSES_SCHEDULE_BYTETERMS_H
#define HEED_PASSES_SCHEDULE_BYTETERMS_H

#include "dialects/Halide/Target.h"
#include "passes/Schedule/Panels.h"

namespace heed {

/// A sum whose lanes take several terms a step. Its dims are a panel's lane,
/// then those of the sum it stands for from its rows on, the panel's number,
/// and where there are several products their number; its reduction vars are
/// "part", the terms of a step, and those of the sum.
struct GroupedSum {
  mlir::Value sum;
  mlir::Value panel; ///< what it reads along its columns
  int64_t group;     ///< terms of a step
};

/// Puts a sum of groups in the place of \p sum, where its terms are products of
/// two signed bytes and its elements i32; \p panel is the read of its term that
/// follows its columns. Nothing has changed if it is another sum.
std::optional<GroupedSum> groupTerms(KernelInfo &kernel, mlir::Value sum,
                                     halide::ReadOp panel, PanelShape shape,
                                     const halide::Target &target);

} // namespace heed

#endif
