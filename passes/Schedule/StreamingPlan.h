//===- StreamingPlan.h - tiles, funcs and schedule --------------*- C++ -*-===//
//
#ifndef HEED_PASSES_SCHEDULE_STREAMINGPLAN_H
#define HEED_PASSES_SCHEDULE_STREAMINGPLAN_H

#include "dialects/Halide/HalideDialect.h"
#include "dialects/Halide/Target.h"
#include "passes/Schedule/KernelInfo.h"

namespace heed {

namespace streaming {
struct Writer;
} // namespace streaming

/// Up to how many queries rows are faster than tiles, measured: with 16 lanes a
/// key costs two queries three quarters of what it costs a narrow tile, whose
/// tasks are heads; rows have tasks for all cores. Where heads share their
/// keys, it is more.
int64_t mostQueriesOfRows(const halide::Target &target);
int64_t mostQueriesOfOwnRows(const halide::Target &target);

/// On a GPU parts of the keys have tiles of their own for as many queries at
/// most and keys at least: two tiles, whose keys the second finds in the cache;
/// and so many keys that to merge two parts is a small part of the work.
constexpr int64_t mostQueriesOfSplit = 8, fewestKeysOfSplit = 256;

/// What a block makes of an operand that is a table over offsets, key less
/// query (StreamingOffsets.cpp): its rows that the block reaches, each computed
/// or weighed once for all keys.
struct StreamingOffsets {
  unsigned operand = 0; ///< of the term; or which value
  /// Vectors moved by their lanes' numbers, a power of two at a time.
  llvm::SmallVector<halide::FuncOp> shifts;
  halide::FuncOp rows;      ///< of a term: its sums; of a value: its weights
  int64_t count = 0;        ///< the most rows that a block reaches
  halide::FuncOp tile;      ///< of a term: a register tile of `rows`
  halide::FuncOp low, high; ///< of a value: weights of all keys beyond its ends
  /// The table, an input, where its rows are known to lie `apart` numbers from
  /// each other and to have `row` of them; else null.
  mlir::Value apartIn;
  int64_t row = 0, apart = 0;
};

/// A score term of one block: a func over (ii, jj, kb, tile, batch), with an
/// update over its contract dims.
struct StreamingTerm {
  halide::FuncOp func;
  halide::FuncOp lanes; ///< of rows: one partial sum a lane
  /// Reduction vars of the sum that it is, if it is one, and their extents.
  llvm::SmallVector<std::string> loops;
  llvm::SmallVector<Extent> contract;
  bool isProduct = false; ///< of operands that a lane shares with others
  std::optional<StreamingOffsets> offsets;
  halide::FuncOp window; ///< the numbers of a table that a block reaches
  /// Where the table's rows are dense: the funcs that transpose them, and the
  /// extents of the sum, of whole vectors.
  llvm::SmallVector<halide::FuncOp> windowSteps;
  llvm::SmallVector<Extent> windowSum;
  /// Keys times the window, a register tile of so many lanes, if keys of a
  /// group share what they read of it; `func` is then read from it.
  halide::FuncOp windowTile;
  int64_t windowLanes = 0;
};

/// What the threads of a GPU bring to shared memory: a func with these own vars
/// from the inside out, each from 0 on.
struct StreamingShared {
  halide::FuncOp func;
  llvm::SmallVector<std::pair<std::string, int64_t>> vars;
  /// Numbers of a key lie side by side in its array, a multiple of four.
  bool asVectors = false;
};

/// The funcs of one update of the state: those of full blocks, or of partial
/// ones.
struct StreamingStage {
  StreamingStage(bool partial, int64_t block)
      : partial(partial), block(block) {}
  std::string name(llvm::StringRef what) const {
    return (what + (partial ? "_part" : "_full") + suffix).str();
  }

  bool partial;
  int64_t block;      ///< keys, at most
  std::string suffix; ///< of names, where there are several segments
  /// Of tiles, i32: blocks, groups of keys and keys in each, those of them that
  /// meet values, and the first block's first key in its segment, null if it
  /// is 0.
  mlir::Value blocks, groups, keys, present, first;
  unsigned segment = 0; ///< of the keys
  /// Of that segment, i32: the first key, null if it is 0, how many
  /// there are, and full blocks of them, null where there is one segment.
  mlir::Value begin, count, whole;
  bool besideFull = false; ///< another stage has the segment's full blocks
  std::vector<StreamingTerm> terms;
  halide::FuncOp pairs; ///< scores one by one, where they are no products alone
  halide::FuncOp scores, top, rounded, weights, sum, products;
  halide::FuncOp topLanes, sumLanes; ///< of rows
  int64_t valueSteps = 0;            ///< of rows: of some keys each
  int64_t places = 1;        ///< of rows: neighbours are keys of so many places
  bool plainValues = true;   ///< `products` begins with a sum over the keys
  bool pairedValues = false; ///< of elements that lane and key have alone
  llvm::SmallVector<StreamingOffsets> offsets; ///< value terms by offset
  halide::UpdateOp update;
  /// On GPUs: operands with keys, by their place among the operands of all
  /// terms, and values, as a block has them in shared memory.
  llvm::SmallVector<std::pair<unsigned, StreamingShared>> sharedKeys;
  std::optional<StreamingShared> sharedValues;
  /// On GPUs: weights of a thread's own queries and keys and their sum, in
  /// registers; and what threads tell each other of a query, in shared memory:
  /// the maxima of their groups of scores, and these sums.
  halide::FuncOp ownWeights, groupTops, groupSums;
};

/// An operand that varies over queries only, transposed once per tile.
struct StreamingQuery {
  halide::FuncOp func;
  llvm::SmallVector<unsigned> contract;
  llvm::SmallVector<Extent> extents;
  /// Where its rows are dense: the funcs that transpose them.
  llvm::SmallVector<halide::FuncOp> steps;
};

/// Everything that the schedule needs to know; the algorithm fills in the
/// funcs.
struct StreamingPlan {
  /// Writes the schedule of all funcs at \p b, for a batch of \p batch dims.
  void schedule(mlir::OpBuilder &b, mlir::Location loc,
                llvm::ArrayRef<Extent> batch);
  /// The same of rows.
  void scheduleRows(mlir::OpBuilder &b, mlir::Location loc);
  /// The same of tiles on a GPU (GPUAttention.cpp).
  void scheduleOnGPU(mlir::OpBuilder &b, mlir::Location loc);

  halide::Target target;
  bool byRow = false;           ///< a query at a time
  bool bySplit = false;         ///< on a GPU: the keys in parts
  int64_t lanes = 0;            ///< of an f32 vector
  int64_t group = 1;            ///< keys, or value dims, of a register tile
  int64_t vectors = 1;          ///< vectors of a register tile
  int64_t tile = 1;             ///< queries: lanes x vectors
  int64_t block = 0, piece = 0; ///< keys of a full and of a partial block;
                                ///< block is a multiple of piece
  int64_t ownQueries = 1;       ///< of a thread of a GPU
  int64_t keyGroup = 1;         ///< keys of a register tile
  bool moreRegisters = false;   ///< than a full multiprocessor has for a thread
  bool masked = false;  ///< keys may be absent, by `where` or by their scores
  bool careful = false; ///< any block may have absent keys, see mayExclude
  bool scaledTerm = false; ///< the score's factor is folded into a staged query
  unsigned batchDims = 0;
  std::optional<int64_t> valueVectors; ///< of rows, where it is known
  Extent queries, keys;
  llvm::SmallVector<Extent> keyRow; ///< contracted and value dims of a key

  llvm::SmallVector<StreamingQuery> queryFuncs;
  /// With `begins`, the state begins with the one block of the first; the
  /// others are its updates.
  std::vector<StreamingStage> stages;
  bool begins = false;
  halide::FuncOp state, scale, divided, output;
  /// Sums of the accumulators in each lane of a tile, the greatest of their
  /// bits, and a 1 for which the tile gives up if that is a NaN. Null where
  /// absent keys are looked for.
  halide::FuncOp sums, most, stands;
  /// Of rows, and of parts of the keys: the state of some keys, and all of
  /// these.
  halide::FuncOp part, parts;
  /// Of tiles with a value dim: `divided` with its rows dense.
  halide::FuncOp rowsOut;
  llvm::SmallVector<halide::FuncOp> rowsOutSteps;
  halide::FuncOp lse; ///< of a tile, where it is a result
  /// Of rows: the innermost batch dim is cut into groups of `members`, which
  /// read the same keys; `shared` of these groups do so, too. Null where no
  /// two elements do.
  mlir::Value members, shared;
  KnownExtent fixedMembers;
  bool wholeRows = false; ///< of rows: a key's, and of values, are read so
  /// Of rows: vars of `parts`, from the inside out, and their extents (i32).
  llvm::SmallVector<std::pair<std::string, mlir::Value>> tasks;
  /// Vars of the output: of batch dims in loop order, of queries, and of the
  /// value dim if there is one, with its extent.
  llvm::SmallVector<std::string> batchVars;
  std::string queryVar, valueVar;
  std::optional<Extent> values;

private:
  /// Of tiles, i32: groups of value dims, and the dims with which the last one
  /// is full; and the loop of the output that is a task.
  struct Groups {
    mlir::Value count, padded;
    std::string task;
  };
  /// The output: a task is some tiles of one batch element.
  Groups scheduleOutput(streaming::Writer &w, llvm::ArrayRef<Extent> batch);
  /// What a tile's results go through.
  void scheduleResults(streaming::Writer &w, const Groups &groups);
  void scheduleQueries(streaming::Writer &w, llvm::StringRef task);
  // The same of rows.
  void scheduleOutputOfRows(streaming::Writer &w);
  void scheduleParts(streaming::Writer &w);
  void scheduleQueriesOfRows(streaming::Writer &w, llvm::StringRef task);
};

} // namespace heed

#endif
