//===- Computation.h - what one op computes, as plain data ------*- C++ -*-===//
//
// The loops of a tensor op, or of a func of a pipeline, and what it reads at
// which of their places. Both are described alike, so that a question about
// them has one answer before and after lowering.
//
// Loops have numbers: the dims of the result first, the innermost one is 0,
// then the dims that are summed (or reduced in another way), again from the
// inside to the outside. Of a product y[.., m, n] = sum_r a[.., m, r] b[.., r,
// n] with a result of two dims n is loop 0, the column; m is 1, the row; and r
// is 2.
#ifndef HEED_PASSES_ALGEBRA_COMPUTATION_H
#define HEED_PASSES_ALGEBRA_COMPUTATION_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace heed {

/// The columns and the rows of a product.
constexpr unsigned kColumn = 0, kRow = 1;

/// An extent, where the types say it.
using KnownExtent = std::optional<int64_t>;

/// One coordinate of a read.
struct Coordinate {
  std::optional<unsigned> loop; ///< it is this loop's variable, unchanged
  llvm::SmallBitVector loops;   ///< what it is computed from
  /// Loops that are added up so that several of their iterations meet in one
  /// place: i and t of i + t, but not h and e of 64 h + e where e < 64.
  llvm::SmallBitVector window;
};

/// A tensor (or func, or buffer) that is read.
struct Read {
  unsigned source = 0; ///< its number among those that the describer was given
  /// The operand of the op; -1 for a read inside of its body.
  int operand = -1;
  llvm::SmallVector<Coordinate, 4> at; ///< innermost first

  bool follows(unsigned loop) const;
  /// Whether several iterations of its loops meet in one place.
  bool isWindow() const;
  /// Whether it is read at the first coordinates' loops 0, 1, ..
  bool isInPlace() const;
};

/// One factor of the terms of a sum.
struct Factor {
  llvm::SmallBitVector loops; ///< that it depends on
  bool isElement = false;     ///< of an input, as it lies there
};

/// How the terms of a reduction are combined.
enum class Combiner { Sum, Other };

/// One reduction over some loops.
struct Reduction {
  llvm::SmallVector<KnownExtent> extents; ///< of its loops, innermost first
  llvm::SmallVector<Read> reads;          ///< of its terms
  Combiner combiner = Combiner::Other;
  /// Where a term is a product of two values: these, in order.
  llvm::SmallVector<Factor, 2> factors;
  bool isGuarded = false;   ///< leaves out places of its loops
  bool isScattered = false; ///< adds at computed places
  bool isLong = false;      ///< a window of as many steps as there are rows
};

struct Computation {
  llvm::SmallVector<KnownExtent> extents; ///< of the result, innermost first
  llvm::SmallVector<Read> reads; ///< of an element before anything is added
  llvm::SmallVector<Reduction, 1> reductions; ///< one after the other
  unsigned results = 1;                       ///< values of an element
  mlir::Type element;                         ///< the first one's type
  unsigned source = 0;                        ///< the number of its result
  bool usesOutside = false; ///< its body uses values that are no operands

  unsigned rank() const { return extents.size(); }
  bool isElementwise() const { return reductions.empty(); }
  /// The loops of the first reduction begin here.
  unsigned term() const { return rank(); }
  /// Its only reduction, if that is over one loop, whole and of single values;
  /// null otherwise.
  const Reduction *onlySum() const;
};

/// Describes \p op, an op of linalg whose results are written at permutations
/// of its loops; nothing for others. Tensors that it reads get numbers in
/// \p sources, operands that only have a shape do not.
std::optional<Computation> describe(mlir::Operation *op,
                                    llvm::SetVector<mlir::Value> &sources);

/// Whether at least two reads of its terms leave out a dim of the result: each
/// of their elements is used many times.
bool isContraction(const Computation &c);
bool isContraction(mlir::Operation *op);

/// Whether \p c's reduction reads a window around each place: a convolution,
/// whose terms are met by neighbours again.
bool isWindowSum(const Computation &c);
bool isWindowSum(mlir::Operation *op);

/// Whether \p read is an operand, at loops alone, each at most once.
bool isAtLoops(const Read &read);
/// Whether all terms of \p c's reduction are.
bool readsAtLoops(const Computation &c);

/// Whether \p c is sum_r a[.., r, m] b[.., r, n] over a length that only a call
/// knows or, in a batch, that is large, with few enough m and n that the sum
/// stays in a cache: the state of linear attention. Factors whose terms lie
/// side by side are rows of a layer, a state only in a batch of unknown length.
bool isStateSum(const Computation &c);
/// Likewise \p op, whose factors are no parameters.
bool isStateProduct(mlir::Operation *op);

/// Whether a matrix of these extents stays in the first or the second cache
/// while rows go by.
bool isSmallMatrix(KnownExtent rows, KnownExtent columns);

/// Whether \p user reads \p value at its own place only: where it writes, or
/// where its loops stand.
bool readsInPlace(mlir::Operation *user, mlir::Value value);

} // namespace heed

#endif
