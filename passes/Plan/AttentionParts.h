//===- AttentionParts.h - an attention to be built anew ---------*- C++ -*-===//
// What attn-join-dims changes of an attention: its loop dims, and what of its
// terms stands in operands.
#ifndef HEED_PASSES_PLAN_ATTENTIONPARTS_H
#define HEED_PASSES_PLAN_ATTENTIONPARTS_H

#include "dialects/Attn/Dialect.h"

namespace heed {

struct AttentionParts {
  struct Operand {
    mlir::Value tensor;
    mlir::AffineMap map;
  };
  /// Those of \p op, as they are.
  explicit AttentionParts(attn::AttentionOp op);
  /// An op of these parts with the regions of \p op: `score` still takes all
  /// terms of that. Symbols that no map uses are left out.
  attn::AttentionOp build(mlir::OpBuilder &b, attn::AttentionOp op) const;

  mlir::Type output, lse;
  llvm::SmallVector<int64_t> dims;
  llvm::SmallVector<mlir::Value> sizes, symbols;
  llvm::SmallVector<unsigned> numbers; ///< which terms of the old op
  llvm::SmallVector<llvm::SmallVector<Operand>> terms;
  llvm::SmallVector<Operand> values;
  std::optional<Operand> sink;
  mlir::AffineMap outputMap;
};

/// \p op with the terms that can't be operands of joined dims in its `score`:
/// numbers at an offset of one query and one key dim, and products that depend
/// on few dims, which are computed before. Or null and \p why.
attn::AttentionOp withoutPairTerms(mlir::OpBuilder &b, attn::AttentionOp op,
                                   llvm::StringRef &why);

} // namespace heed

#endif
