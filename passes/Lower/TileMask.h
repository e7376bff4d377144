//===- TileMask.h - the blocks that a tile visits ---------------*- C++ -*-===//
//
// The conditions of the loops over key blocks. A mask that is one range of
// keys, whatever the data, is written into them. Any other mask has tables,
// which a pipeline of its own computes before (MaskTables.h): Halide moves a
// condition out of inner loops, and trims loops by it, only if what it reads
// are inputs.
#ifndef HEED_PASSES_LOWER_TILEMASK_H
#define HEED_PASSES_LOWER_TILEMASK_H

#include "passes/Lower/MaskExpressions.h"

namespace heed {

/// Which segment of the keys is cut in blocks, where it is not all of them: its
/// number, its first key, null if it is 0, and how many blocks it fills.
struct MaskedKeys {
  unsigned segment = 0;
  mlir::Value first, wholeBlocks;
};

class TileMask {
public:
  /// Declares the tables, if there are any, as further inputs of the pipeline
  /// at \p b.
  TileMask(mlir::OpBuilder &b, mlir::Location loc, const MaskBounds &bounds,
           const MaskTiling &tiling, const mlir::IRMapping &scalars,
           TensorReads &tensors);

  /// Whether \p tile of batch element \p batch visits full block \p block, or
  /// partial block \p piece. Each key that a query sees is visited once. Blocks
  /// are counted in their segment of the keys.
  mlir::Value visitsFull(mlir::OpBuilder &b, mlir::Value block,
                         mlir::Value tile, llvm::ArrayRef<mlir::Value> batch,
                         MaskedKeys keys = {});
  mlir::Value visitsPartial(mlir::OpBuilder &b, mlir::Value piece,
                            mlir::Value tile, llvm::ArrayRef<mlir::Value> batch,
                            MaskedKeys keys = {});
  /// Whether \p tile visits \p piece at all, full or not.
  mlir::Value visits(mlir::OpBuilder &b, mlir::Value piece, mlir::Value tile,
                     llvm::ArrayRef<mlir::Value> batch, MaskedKeys keys = {});
  /// Whether any block may be full.
  bool anyFull() const { return !write.bounds.full.empty(); }
  bool failed() const { return write.failed; }

private:
  /// Of a block of a segment: its number among those of all keys, as tables
  /// count, and its first key.
  struct BlockPlace {
    mlir::Value number, low;
  };
  BlockPlace placeOf(mlir::OpBuilder &b, mlir::Value block, int64_t size,
                     const MaskedKeys &keys);
  /// One of the numbers of the tile's row.
  mlir::Value row(mlir::OpBuilder &b, int64_t place, mlir::Value tile,
                  llvm::ArrayRef<mlir::Value> batch);
  /// Whether one of \p pieces, the first of which has its ends at \p place, has
  /// keys among (or all of) the \p size keys of \p block, of any segment.
  mlir::Value any(mlir::OpBuilder &b, llvm::ArrayRef<MaskPiece> pieces,
                  int64_t place, bool all, mlir::Value block, int64_t size,
                  mlir::Value tile, llvm::ArrayRef<mlir::Value> batch);

  MaskExpressions write;
  mlir::Value range, live; ///< buffers, or null
  llvm::SmallVector<llvm::SmallVector<mlir::Value, 3>> tables; ///< buffers
};

} // namespace heed

#endif
