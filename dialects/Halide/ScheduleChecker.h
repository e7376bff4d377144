//===- ScheduleChecker.h - loops after each directive -----------*- C++ -*-===//
//
// Used by the verifier of halide.pipeline alone.
#ifndef HEED_DIALECTS_HALIDE_SCHEDULECHECKER_H
#define HEED_DIALECTS_HALIDE_SCHEDULECHECKER_H

#include "dialects/Halide/HalideDialect.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"

namespace heed::halide::schedule {

llvm::SmallVector<llvm::StringRef> strings(mlir::ArrayAttr names);

/// libHalide joins names with '.', and has a loop of its own outside of all.
bool isLoopName(llvm::StringRef name);

/// A loop of a stage.
struct Loop {
  llvm::StringRef name;
  bool reduction = false;
  bool races = false; // its iterations write the same elements for certain
  llvm::StringRef kind = {}; // of the directive that fixed how it runs
  int64_t extent = 0;        // 0 where it is not known here
};

/// The loops of one stage, innermost first.
struct Stage {
  llvm::SmallVector<Loop> loops;
  bool atomic = false;
  bool ordered = true; // libHalide orders the loops of a factored stage anew
  Loop *find(llvm::StringRef name) {
    for (Loop &loop : loops)
      if (loop.name == name)
        return &loop;
    return nullptr;
  }
  size_t position(llvm::StringRef name) { return find(name) - loops.begin(); }
  /// Whether both loops are there and \p outer is \p inner or outside of it.
  bool encloses(llvm::StringRef outer, llvm::StringRef inner) {
    return find(outer) && find(inner) &&
           (!ordered || position(outer) >= position(inner));
  }
  void reorder(llvm::ArrayRef<llvm::StringRef> names) {
    llvm::SmallVector<size_t> places;
    llvm::SmallVector<Loop> moved;
    for (llvm::StringRef name : names) {
      places.push_back(position(name));
      moved.push_back(*find(name));
    }
    llvm::sort(places);
    for (auto [place, loop] : llvm::zip(places, moved))
      loops[place] = loop;
  }
};

/// A stage of a func that reads another one.
struct Site {
  mlir::Value func;
  size_t stage;
};

/// What the directives have made of a func so far.
struct FuncState {
  llvm::SmallVector<Stage> stages;
  /// Pure vars, which bound and align directives name.
  llvm::SmallVector<llvm::StringRef> vars;
  mlir::Operation *firstDirective = nullptr;
  llvm::StringMap<mlir::Operation *> placed; // by name of the directive
  llvm::SmallVector<Site> readers;
  bool isOutput = false;

  /// Computed where it is read: it has a loop nest there if it has updates, but
  /// no place of its own.
  bool isInlined() const {
    mlir::Operation *compute = placed.lookup("compute");
    return !isOutput && (!compute || mlir::isa<ComputeInlineOp>(compute));
  }
};

/// Follows the directives in their order.
class ScheduleChecker {
public:
  explicit ScheduleChecker(PipelineOp pipeline) : pipeline(pipeline) {}
  mlir::LogicalResult check();

private:
  mlir::LogicalResult addDefinitions();
  mlir::LogicalResult apply(mlir::Operation *op);
  mlir::LogicalResult applyToLoops(mlir::Operation *op, Stage &stage,
                                   bool isUpdate, mlir::Value func);
  mlir::LogicalResult applyRFactor(RFactorOp op);
  mlir::LogicalResult checkPlaces();
  mlir::LogicalResult checkPlace(mlir::Operation *op);
  mlir::LogicalResult checkShared(ComputeWithOp op);
  mlir::LogicalResult checkKept(mlir::Value func, FuncState &state);
  bool readsItself(mlir::Value func, mlir::Value what);
  bool isReadOnce(mlir::Value func, mlir::Value block, llvm::StringRef var);
  void addReaders(mlir::Operation *definition, Site site);
  bool reads(mlir::Value func, mlir::Value what,
             llvm::SmallPtrSetImpl<void *> &seen);
  bool isInside(Site site, mlir::Value func, llvm::StringRef var,
                unsigned depth);

  mlir::LogicalResult requireLoop(mlir::Operation *op, Stage &stage,
                                  llvm::StringRef var, mlir::Value func);
  mlir::LogicalResult requireNew(mlir::Operation *op, Stage &stage,
                                 llvm::StringRef var, mlir::Value func);
  mlir::LogicalResult setKind(mlir::Operation *op, Stage &stage,
                              llvm::StringRef var, mlir::Value func);
  mlir::LogicalResult split(mlir::Operation *op, Stage &stage,
                            llvm::StringRef var, llvm::StringRef outer,
                            llvm::StringRef inner, int64_t factor,
                            TailStrategy tail, bool isUpdate, mlir::Value func);

  PipelineOp pipeline;
  llvm::MapVector<mlir::Value, FuncState> funcs;
};

} // namespace heed::halide::schedule

#endif
