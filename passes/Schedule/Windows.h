//===- Windows.h - the schedule of a sum over windows -----------*- C++ -*-===//
//
// What it computes and why: Windows.cpp. WindowRewrite.cpp changes the
// algorithm for it.
//
//===----------------------------------------------------------------------===//
#ifndef HEED_PASSES_SCHEDULE_WINDOWS_H
#define HEED_PASSES_SCHEDULE_WINDOWS_H

#include "passes/Schedule/Schedule.h"
#include "passes/Schedule/WindowTerms.h"

namespace heed {

/// Which dim of the sum is a tile's rows, and which of its loops moves the
/// window along them.
struct WindowPlan {
  unsigned row = kRow;
  unsigned tap = 0;        ///< among the loops of the reduction
  bool sharesRows = false; ///< windows of neighbouring rows overlap
  bool isLong = false;     ///< they have as many steps as there are rows
};

/// The schedule of one kernel, step by step.
class WindowSchedule {
public:
  WindowSchedule(KernelInfo &kernel, const WindowPlan &plan,
                 const halide::Target &target)
      : kernel(kernel), plan(plan), target(target), b(scheduleBuilder(kernel)) {
  }

  bool run();

private:
  bool findTerm();
  bool isDense(halide::ReadOp read);
  bool isStaged(halide::ReadOp read);
  mlir::Value lastPlace(halide::ReadOp read, unsigned axis);
  void chooseTile();
  mlir::Value addTerm(mlir::OpBuilder &in,
                      llvm::ArrayRef<mlir::Value> conditions,
                      mlir::IRMapping &map);
  void rewriteUpdate();
  void pack();
  mlir::Value stage(halide::ReadOp read, unsigned number);
  void stageReads();
  mlir::Value headSize(mlir::Value at);
  void stagePlaces();
  void splitHeads(mlir::OpBuilder &at, mlir::Value rest);
  void clampRest();
  void scheduleOutput();
  void scheduleSum();
  void scheduleTile(int64_t stage);

  KernelFunc &sum() { return *kernel.find(sumFunc); }
  mlir::Block &body() { return update.getSet().front(); }
  mlir::Value column() { return body().getArgument(kColumn); }
  mlir::Value row() { return body().getArgument(plan.row); }

  static constexpr auto guard = halide::TailStrategy::GuardWithIf;

  KernelInfo &kernel;
  const WindowPlan plan;
  const halide::Target &target;
  mlir::OpBuilder b;
  mlir::Location loc = b.getUnknownLoc();
  mlir::Value sumFunc, outFunc;
  halide::UpdateOp update;
  WindowTerm term;
  int64_t lanes = 1, vectors = 1, rows = 1, steps = 1;
  std::string task;    ///< the parallel loop
  bool isLong = false; ///< windows of more steps than a first cache holds
  llvm::SmallVector<mlir::Value> packed;  ///< what columns alone say
  llvm::SmallVector<mlir::Value> staged;  ///< copies of what windows read
  llvm::SmallVector<mlir::Value> places;  ///< of columns
  llvm::SmallVector<mlir::Value> ofHeads; ///< ... of these, one for a head
};

} // namespace heed

#endif
