//===- MaskSplitter.h - a mask of residues, cut into dense ones -*- C++ -*-===//
#ifndef HEED_PASSES_MASKS_MASKSPLITTER_H
#define HEED_PASSES_MASKS_MASKSPLITTER_H

#include "dialects/Attn/Dialect.h"
#include "passes/Masks/Residues.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace heed {

/// What attn-split-masks makes of one attention.
class MaskSplitter {
public:
  /// \p op came of \p splits choices, each of which doubles the attentions.
  explicit MaskSplitter(attn::AttentionOp op, unsigned splits = 0)
      : op(op), splits(splits), b(op), loc(op.getLoc()), exprs(op.getContext()),
        batchDims(op.numDims(attn::DimKind::Batch)) {}

  void run();

private:
  static constexpr llvm::StringLiteral passName = "attn-split-masks";

  /// Queries or keys, sorted by their remainders of `modulus`: as many places
  /// for each, and in all.
  struct Sorted {
    int64_t modulus;
    ExprRef perClass, places;
  };

  bool isPlain();
  bool readWhere();
  void flatten(ExprRef e, llvm::SmallVectorImpl<ExprRef> &parts);
  std::optional<int64_t> sameClass(ExprRef e) {
    return residueOfPairs(e, exprs.var(i), exprs.var(j));
  }
  std::optional<Residues> keyClasses(ExprRef e) {
    return residuesOf(e, exprs.var(j));
  }
  bool isCut(ExprRef e) { return sameClass(e) || keyClasses(e); }
  bool holdsCut(ExprRef e);

  bool splitByBatch();
  bool splitByClass();
  bool dropKeys();
  std::optional<int64_t> classesToSort();
  bool sortByClass();
  mlir::Value sorted(mlir::Value tensor, int64_t axis, const Sorted &side);
  void sortOperands(attn::AttentionOp fresh, const Sorted &queries,
                    const Sorted &keys);
  mlir::Value inOrder(mlir::Value output, const Sorted &queries);
  ExprRef positionOf(ExprRef place, const Sorted &side);

  /// Indices of the output, whose axes are batch, query and value dims.
  llvm::SmallVector<unsigned> outputVars();
  ExprRef all(llvm::ArrayRef<ExprRef> parts);
  ExprRef number(int64_t value) { return exprs.index(value); }
  ExprRef make(llvm::StringRef name, ExprRef x, ExprRef y) {
    return exprs.op(name, mlir::IndexType::get(op.getContext()), {x, y});
  }
  ExprRef less(ExprRef x, ExprRef y) {
    return exprs.compare(mlir::arith::CmpIPredicate::slt, x, y);
  }
  ExprRef keyCount() {
    return exprs.scalar(op.getSizes()[op.firstDim(attn::DimKind::Key)]);
  }
  mlir::Value numbersOf(mlir::Value size, int64_t modulus);
  attn::AttentionOp cloneWith(llvm::ArrayRef<int64_t> dims,
                              llvm::ArrayRef<mlir::Value> sizes,
                              llvm::ArrayRef<mlir::AffineExpr> places,
                              mlir::Type output);
  attn::AttentionOp withClasses(int64_t modulus);
  void writeWhere(attn::AttentionOp fresh, ExprRef condition,
                  llvm::ArrayRef<unsigned> vars);

  attn::AttentionOp op;
  const unsigned splits;
  mlir::OpBuilder b;
  mlir::Location loc;
  Exprs exprs;
  unsigned batchDims;
  llvm::SmallVector<unsigned> vars; ///< of the batch, i and j
  unsigned i = 0, j = 0;
  llvm::SmallVector<ExprRef> parts; ///< all of which hold
  bool readsData = false;           ///< one of them does
};

} // namespace heed
#endif
