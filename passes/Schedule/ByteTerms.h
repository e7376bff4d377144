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
  mlir::Value panel;      ///< what it reads along its columns
  mlir::Value columnSums; ///< of a panel, that it starts from; or null
  bool packsInTask;       ///< the panel has no place yet
  int64_t group;          ///< terms of a step
};

/// Puts a sum of groups in the place of \p sum, where its terms are products of
/// two signed bytes and its elements i32; \p panel is the read of its term that
/// follows its columns. Nothing has changed if it is another sum.
/// \p packsInTask: what cannot be packed once is packed where it is used, as a
/// task has all rows.
std::optional<GroupedSum> groupTerms(KernelInfo &kernel, mlir::Value sum,
                                     halide::ReadOp panel, PanelShape shape,
                                     bool packsInTask,
                                     const halide::Target &target);

/// The loops of \p func inside of a panel, whose steps have \p group terms.
void scheduleBytePanel(mlir::OpBuilder &at, mlir::Value func, PanelShape shape,
                       int64_t group);

/// Computes what \p sum needs of a panel in loop \p loop of \p consumer, of
/// which a turn has one: it stays in the cache then.
void placePanel(KernelInfo &kernel, const GroupedSum &sum, mlir::Value consumer,
                llvm::StringRef loop, PanelShape shape);

} // namespace heed

#endif
