//===- MaskTiles.h - what a solved mask says of each tile -------*- C++ -*-===//
// A mask for given sizes, tile by tile: the ranges of keys and the tests that
// kernels loop by, and inside of the tiles that these leave to an evaluation
// per element the condition itself.
//
// Used by heedc --emit=mask.
#ifndef HEED_PASSES_MASKS_MASKTILES_H
#define HEED_PASSES_MASKS_MASKTILES_H

#include "passes/Masks/MaskBounds.h"
#include "passes/Masks/MaskValues.h"

namespace heed {

/// What is done of a tile: nothing, an evaluation of each element, all without
/// one; or what a call's data says.
enum class TileKind : uint8_t { Empty, Partial, Full, ByData };

struct MaskTiles {
  int64_t queries, keys;         ///< elements; several dims in row-major order
  int64_t tileQueries, tileKeys; ///< elements of a tile but for the last ones
  std::vector<TileKind> tiles;   ///< rows of tiles
  /// Rows of elements, Full where the condition holds: those of partial tiles
  /// and of tiles by data; Empty elsewhere. Nothing where it was not asked for.
  std::vector<TileKind> elements;

  int64_t rows() const { return (queries + tileQueries - 1) / tileQueries; }
  int64_t columns() const { return (keys + tileKeys - 1) / tileKeys; }
  bool operator==(const MaskTiles &other) const {
    return tiles == other.tiles && elements == other.elements;
  }
};

/// The mask of one attention.
class AttentionMask {
public:
  explicit AttentionMask(attn::AttentionLike op);

  /// Batch dims that the mask depends on.
  llvm::SmallVector<unsigned> batchDims() const;
  /// The largest number below 1024 that its condition compares with, or 0.
  int64_t largestConstant() const;
  /// False where it has not one query and one key dim: then nothing was solved,
  /// and every element is evaluated.
  bool isSolved() const { return succeeded(bounds); }
  /// Query and key dims, as sizes of the op.
  llvm::SmallVector<mlir::Value> queryDims() const, keyDims() const;

  /// For one index of each batch dim; the sizes of \p tiles are given, the rest
  /// is filled in.
  void fill(MaskTiles &tiles, MaskValues &values,
            llvm::ArrayRef<int64_t> batchAt, bool withElements);

private:
  void fillTiles(MaskTiles &tiles, MaskValues &values,
                 MaskValues::Variables &variables);
  void fillElements(MaskTiles &tiles, MaskValues &values,
                    MaskValues::Variables &variables);
  void setTables(bool ofKeys, int64_t begin, int64_t end, MaskValues &values,
                 MaskValues::Variables &variables);
  /// Whether some key of \p pieces lies in the block, or all of its keys do.
  MaskValue covers(llvm::ArrayRef<MaskPiece> pieces, bool all, int64_t begin,
                   int64_t last, MaskValues &values,
                   const MaskValues::Variables &variables);

  attn::AttentionLike op;
  mlir::FailureOr<MaskBounds> bounds;
  std::shared_ptr<Exprs> exprs;
  llvm::SmallVector<unsigned> batch, queries, keys; ///< arguments of `where`
  ExprRef where = nullptr; ///< null where it is no expression
};

} // namespace heed
#endif
