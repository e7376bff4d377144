//===- RowBlock.h - rows of scores in scratch -------------------*- C++ -*-===//
//
// Found in RowBlock.cpp, rewritten in RowBlockRewrite.cpp, RowBlockTiles.cpp,
// RowBlockTerms.cpp and RowBlockTurn.cpp, scheduled in RowBlockSchedule.cpp.
#ifndef HEED_PASSES_SCHEDULE_ROWBLOCK_H
#define HEED_PASSES_SCHEDULE_ROWBLOCK_H

#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace heed {

/// Regions of the func and of its updates that compute something.
llvm::SmallVector<mlir::Block *> blocksOf(KernelFunc &f);

/// The func that a read belongs to.
mlir::Value readerOf(halide::ReadOp read);

llvm::SmallVector<halide::ReadOp> readsOf(mlir::Value func);

/// The tiles of one kernel: what is computed whole for a tile of queries, and
/// how.
class RowBlock {
public:
  RowBlock(KernelInfo &kernel, const halide::Target &target)
      : kernel(kernel), target(target), vector(target.lanes(32)),
        lanes(vector) {}

  bool run();

private:
  /// How one func stands in the tile of its root.
  struct Member {
    /// Per var the root's var that it follows, or -1.
    llvm::SmallVector<int> ids;
    int query = -1;           ///< the var that follows the root's query
    int tiled = -1;           ///< a sum: the var of its register tile
    int64_t unrolled = 1;     ///< ... and its places
    int block = -1;           ///< ... of a part of a sum: the part's number
    mlir::Value accumulators; ///< the copy of a sum: the sum
  };
  /// A func that is transposed by squares.
  struct Turned {
    unsigned along = 0; ///< the var along which what it reads lies
    llvm::SmallVector<halide::FuncOp> steps;
  };

  bool assign();
  bool shape(mlir::Value root);
  bool chooseQuery(mlir::Value root);
  bool isStored(KernelFunc &f);
  void chooseLanes(mlir::Value root);
  bool shares(int id) { return llvm::is_contained(common, id); }

  void chooseTile(KernelFunc &f);
  int64_t costOfTile(KernelFunc &f, int dim, int64_t width);
  bool sumInBlocks(KernelFunc &f);
  void splitSum(mlir::Value func);
  void maskTerms(mlir::Value func);
  void stageWeights(mlir::Value func);
  void stageReads(mlir::Value func);
  mlir::Value stage(mlir::Value func, mlir::Block &body,
                    llvm::ArrayRef<Extent> reductions, mlir::Value value,
                    mlir::OpBuilder &here,
                    const llvm::SmallPtrSetImpl<mlir::Value> &used);
  bool fillsSquares(const Extent &extent);
  void stageRows(mlir::Value func);
  void stageResults(mlir::Value root);
  void turn(mlir::Value func, Turned &how);
  void scheduleTurned(mlir::Value func, Turned &how);
  void clampReads(mlir::Value func);
  void schedule(mlir::Value func, mlir::Value root, llvm::StringRef task);
  void scheduleLoops(KernelFunc &f, llvm::StringRef tiled, bool isCopy);
  void fetchAhead(KernelFunc &f, mlir::Value copy, llvm::StringRef tiled);
  void scheduleRoot(mlir::Value root);
  void scheduleAlone(mlir::Value root);

  KernelInfo &kernel;
  const halide::Target &target;
  const int64_t vector; ///< queries of a vector
  llvm::SetVector<mlir::Value> roots;
  /// Of a func: the root whose tile it is in.
  llvm::DenseMap<mlir::Value, mlir::Value> owner;
  llvm::DenseMap<mlir::Value, Member> members;
  llvm::MapVector<mlir::Value, Turned> turned;
  // Of the root that is worked on:
  llvm::SmallVector<int> common; ///< vars that all funcs of the tile follow
  int query = -1;
  llvm::SmallVector<mlir::Value> group; ///< its funcs, in order
  int64_t lanes;                        ///< queries of its tile
  int64_t places = 1; ///< of a register tile, which has all lanes of each
};

} // namespace heed

#endif
