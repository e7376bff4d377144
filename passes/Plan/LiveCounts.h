//===- LiveCounts.h - what masks leave of a call, counted by data -*- C++ -*-=//
//
// Which pairs of a query and a key are live may depend on data: lengths,
// documents, states. Where a profile is asked for, the host counts them by the
// mask's definition, pair by pair.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_PASSES_PLAN_LIVECOUNTS_H
#define HEED_PASSES_PLAN_LIVECOUNTS_H

#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace heed {

/// On host functions that count: no operation of theirs is checked.
inline constexpr llvm::StringLiteral kCountsAttr = "attn.counts";

/// The numbers that are to be counted of one kernel's attentions.
class LiveCounts {
public:
  explicit LiveCounts(mlir::func::FuncOp kernel) : kernel(kernel) {}

  /// The loop dims that the condition of \p op tells apart; empty where it
  /// always holds, or is computed from more than arguments.
  llvm::SmallVector<unsigned> dimsOf(attn::AttentionLike op);

  /// The number of the count of places of \p dims, some of dimsOf(\p op), that
  /// have a live pair.
  unsigned count(attn::AttentionLike op, llvm::ArrayRef<unsigned> dims);

  bool empty() const { return wanted.empty(); }

  /// The function that counts, one i64 for each number, written behind the
  /// kernel if it is not there: with memrefs for tensors, those arguments of
  /// the kernel that \p inputs gets.
  mlir::func::FuncOp write(llvm::SmallVectorImpl<unsigned> &inputs);

private:
  struct Wanted {
    attn::AttentionLike op;
    llvm::SmallVector<unsigned> dims;
  };
  bool isComputable(mlir::Value value, mlir::Block *where);
  llvm::SmallVector<mlir::Value> usedArguments();

  mlir::func::FuncOp kernel;
  llvm::SmallVector<Wanted> wanted;
  llvm::DenseMap<mlir::Value, bool> computable;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<unsigned>> known;
};

} // namespace heed

#endif // HEED_PASSES_PLAN_LIVECOUNTS_H
