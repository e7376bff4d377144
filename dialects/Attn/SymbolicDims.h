//===- SymbolicDims.h - extents as polynomials of a model's sizes -*- C++ -*-=//
//
// An extent is a number, or computed from other extents. This analysis follows
// it to what it starts from: the dims of arguments, which a model names, and
// values that it can't look into. Two extents with the same polynomial
// (support/Sizes.h) are equal in every call; what `attn.require` asks for at
// the beginning of a function holds for all of its sizes.
//
//===----------------------------------------------------------------------===//
#ifndef HEED_DIALECTS_ATTN_SYMBOLICDIMS_H
#define HEED_DIALECTS_ATTN_SYMBOLICDIMS_H

#include "support/Sizes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace heed::attn {

/// Where the extent of an axis comes from: exactly one of a number, an index
/// that the IR computes, and an axis of a tensor that nothing is known about.
struct ExtentSource {
  std::optional<int64_t> fixed;
  mlir::Value size;
  mlir::Value tensor;
  int64_t axis = -1;

  bool operator==(const ExtentSource &other) const {
    return fixed == other.fixed && size == other.size &&
           tensor == other.tensor && axis == other.axis;
  }
};

/// Follows casts, reshapes, inits, `attn` ops and what loops carry, from axis
/// \p axis of the tensor or memref \p shaped. No op is made, and no dim of a
/// tensor that stands as a value is looked through.
ExtentSource traceExtent(mlir::Value shaped, int64_t axis);

/// The same as a value; a tensor that nothing is known about is measured at
/// \p b.
mlir::Value makeExtent(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value tensor, int64_t axis);

/// Valid as long as the ops that it has looked at are not changed.
class SymbolicDims {
public:
  SymbolicDims() = default;
  /// As an analysis of a pass manager; nothing is computed before it is asked
  /// for.
  explicit SymbolicDims(mlir::Operation *) {}

  /// The extent of axis \p axis of the tensor or memref \p shaped.
  Size dim(mlir::Value shaped, int64_t axis);
  /// The number of elements of \p shaped.
  Size elements(mlir::Value shaped);
  /// The value of \p size, an index or integer.
  Size size(mlir::Value size);

  /// How many parts of \p by, 1 or more, hold \p size, 0 or more.
  Size parts(const Size &size, int64_t by) {
    std::optional<Size> whole = size.dividedBy(Size(by));
    return whole ? *whole : table.floorDiv(size + Size(by - 1), Size(by));
  }

  /// No call that passes its requirements makes it negative. May be false
  /// though.
  bool isNeverNegative(const Size &size) const;
  /// Equal in every call that passes its requirements. May be false though.
  bool equal(const Size &a, const Size &b) const { return table.equal(a, b); }

  /// What an atom stands for: an axis of a tensor or memref, or (-1) the value
  /// of an integer. Null for what is computed from other sizes.
  struct Source {
    mlir::Value value;
    int64_t axis = -1;
  };
  Source source(unsigned atom) const { return sources.lookup(atom); }

  /// In the model's names: "4*B*N + 16"; what has no name is "?", a number
  /// behind it tells several apart.
  std::string str(const Size &size) const { return table.str(size); }

private:
  void learn(mlir::Value value);
  void assume(mlir::Value condition);
  Size intern(Source source);
  Size computed(mlir::Operation *op);
  Size opaque(mlir::Operation *op, const Size &left, const Size &right);

  SizeTable table{/*byName=*/true};
  llvm::DenseMap<unsigned, Source> sources;
  llvm::DenseMap<mlir::Value, Size> sizes;
  /// The atoms of what the table has no form for: op, operands.
  std::map<std::tuple<const void *, Size, Size>, unsigned> opaques;
  /// Functions whose requirements are known.
  llvm::SmallPtrSet<mlir::Operation *, 2> learned;
};

} // namespace heed::attn

#endif
