//===- MaskExpressions.h - a mask's expressions in a pipeline ---*- C++ -*-===//
#ifndef HEED_PASSES_LOWER_MASKEXPRESSIONS_H
#define HEED_PASSES_LOWER_MASKEXPRESSIONS_H

#include "passes/Lower/Expressions.h"
#include "passes/Lower/MaskTiling.h"
#include "passes/Masks/MaskBounds.h"

namespace heed {

/// Writes expressions of a solved mask as those of a pipeline.
class MaskExpressions {
public:
  using Bindings = llvm::SmallVector<std::pair<unsigned, mlir::Value>>;

  MaskExpressions(const MaskBounds &bounds, const MaskTiling &tiling,
                  mlir::Location loc, const mlir::IRMapping &scalars,
                  TensorReads &tensors)
      : bounds(bounds), tiling(tiling), loc(loc), scalars(scalars),
        tensors(tensors) {}

  /// What every expression may need: \p tile, and one index per batch dim, of
  /// which those may be null that the mask does not use.
  Bindings tile(mlir::OpBuilder &b, mlir::Value tile,
                llvm::ArrayRef<mlir::Value> batch) const;
  /// \p roots with values for their variables. Numbers are i32.
  llvm::SmallVector<mlir::Value> write(mlir::OpBuilder &b,
                                       llvm::ArrayRef<ExprRef> roots,
                                       const Bindings &bindings);
  /// The element of a table, of the type below.
  mlir::Value element(mlir::OpBuilder &b, const MaskTable &table,
                      const Bindings &bindings);

  /// Where `any` finds numbers of the tile's row, and what a table holds at a
  /// place (tile or piece, then batch, as the table's dims): least, greatest,
  /// odd.
  using Row = llvm::function_ref<mlir::Value(int64_t place)>;
  using Table = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      size_t number, llvm::ArrayRef<mlir::Value> at)>;
  /// Whether one of \p pieces, the first of which has its ends at \p place of
  /// the row, has keys among those of \p block, of \p size keys; or \p all of
  /// them.
  mlir::Value any(mlir::OpBuilder &b, llvm::ArrayRef<MaskPiece> pieces,
                  int64_t place, bool all, mlir::Value block, int64_t size,
                  mlir::Value tile, llvm::ArrayRef<mlir::Value> batch, Row row,
                  Table table);
  /// How many blocks of keys, of the tiling, stand before segment \p number.
  mlir::Value blocksBefore(mlir::OpBuilder &b, size_t number) const;
  /// How many pieces of keys there are.
  mlir::Value numPieces(mlir::OpBuilder &b) const;
  /// The first key of \p block, of \p size keys, which divides a block, and
  /// where its segment ends.
  struct Keys {
    mlir::Value low, end;
  };
  Keys keysOf(mlir::OpBuilder &b, mlir::Value block, int64_t size) const;
  /// The smaller of two entries of a table, or the larger: of truth values both
  /// or either, of reals a number rather than NaN.
  mlir::Value extreme(mlir::OpBuilder &b, mlir::Value x, mlir::Value y,
                      bool greatest) const;

  const MaskBounds &bounds;
  MaskTiling tiling;
  mlir::Location loc;
  bool failed = false; ///< something had no translation; it was said

private:
  llvm::SmallVector<mlir::Value> writeAsIs(mlir::OpBuilder &b,
                                           llvm::ArrayRef<ExprRef> roots,
                                           const Bindings &bindings);

  const mlir::IRMapping &scalars;
  TensorReads &tensors;
};

/// What the arrays of \p table hold: of indices, which data enter, an i64.
mlir::Type elementType(const MaskTable &table);

/// Places in a tile's row of the table `range`: pieces and blocks between which
/// all happens; then the ends of each piece of the union, in keys.
enum MaskRow { FirstPiece, EndPiece, FirstFull, EndFull, Ends };

} // namespace heed

#endif
