//===- IndexMath.h - index arithmetic of a pipeline -------------*- C++ -*-===//
//
// Halide's coordinates are i32, the language's integers i64. Loops and sizes
// are below a limit that the host checks when it calls a kernel, so sums of few
// of them fit; products of sizes, and what data or scalars of the user enter,
// are computed in i64. Nothing wraps that would not wrap in i64.
//
//===----------------------------------------------------------------------===//
#ifndef HEED_PASSES_LOWER_INDEXMATH_H
#define HEED_PASSES_LOWER_INDEXMATH_H

#include "mlir/IR/Builders.h"

namespace heed {

/// Values are i32, or i64 where an i32 may not hold them. An i64 that extends
/// an i32 is as good as that i32, and is data.
class IndexMath {
public:
  /// \p largest becomes smaller where a result needs it.
  IndexMath(mlir::OpBuilder &b, mlir::Location loc, int64_t &largest)
      : b(b), loc(loc), largest(largest) {}

  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value floorDiv(mlir::Value x, mlir::Value y);
  mlir::Value ceilDiv(mlir::Value x, mlir::Value y);
  mlir::Value mod(mlir::Value x, mlir::Value y);
  mlir::Value constant(int64_t value);

  /// Gives the operands of an \p op that computes with indices one type that
  /// holds its result. True: they are i32 and one was data, so that an index
  /// that results is to be extended again.
  bool unify(llvm::StringRef op, llvm::MutableArrayRef<mlir::Value> operands);

  /// Whether \p x, an index, is known to be at least 0.
  static bool isNonNegative(mlir::Value x);

  /// \p x as an i64, and as an i32 that is known to hold it.
  mlir::Value wide(mlir::Value x);
  static mlir::Value narrow(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value x);
  /// The i32 that \p x is or extends, or null.
  static mlir::Value asNarrow(mlir::Value x);

private:
  template <typename Op> mlir::Value make(mlir::Value x, mlir::Value y);
  bool fits(llvm::StringRef op, llvm::ArrayRef<mlir::Value> operands);

  mlir::OpBuilder &b;
  mlir::Location loc;
  int64_t &largest;
};

} // namespace heed

#endif
