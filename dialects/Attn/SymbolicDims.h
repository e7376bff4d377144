//===- SymbolicDims.h - extents as polynomials of a model's sizes -*- C++ -*-=//
//
// An extent is a number, or computed from other extents. This analysis follows
// it to what it starts from: the dims of arguments, which a model names, and
// values that it can't look into. Two extents with the same polynomial are
// equal in every call; a difference without negative coefficients is never
// negative.
//
//===----------------------------------------------------------------------===//
#ifndef HEED_DIALECTS_ATTN_SYMBOLICDIMS_H
#define HEED_DIALECTS_ATTN_SYMBOLICDIMS_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DynamicAPInt.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

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

/// A sum of products of symbols with integer coefficients. A symbol is a number
/// that SymbolicDims gives.
class SizePolynomial {
public:
  /// Symbols in ascending order; one that occurs twice is a square.
  using Product = std::vector<unsigned>;

  SizePolynomial(int64_t constant = 0);
  static SizePolynomial symbol(unsigned number);

  SizePolynomial &operator+=(const SizePolynomial &other);
  SizePolynomial &operator-=(const SizePolynomial &other);
  SizePolynomial operator*(const SizePolynomial &other) const;
  SizePolynomial &operator*=(const SizePolynomial &other) {
    return *this = *this * other;
  }
  friend SizePolynomial operator+(SizePolynomial a, const SizePolynomial &b) {
    return a += b;
  }
  friend SizePolynomial operator-(SizePolynomial a, const SizePolynomial &b) {
    return a -= b;
  }
  bool operator==(const SizePolynomial &other) const {
    return coefficients == other.coefficients;
  }
  bool operator!=(const SizePolynomial &other) const {
    return !(*this == other);
  }

  /// The value, if it is the same for all sizes.
  std::optional<int64_t> constant() const;
  /// The quotient by \p divisor, if it is one for all sizes.
  std::optional<SizePolynomial> dividedBy(const SizePolynomial &divisor) const;
  /// No sizes, which are never negative, make it negative. May be false though.
  bool isNeverNegative() const;
  /// The value with every symbol \p size.
  double estimate(double size) const;
  const std::map<Product, llvm::DynamicAPInt> &terms() const {
    return coefficients;
  }

private:
  void add(const Product &product, const llvm::DynamicAPInt &coefficient);

  /// No coefficient is zero.
  std::map<Product, llvm::DynamicAPInt> coefficients;
};

/// Valid as long as the ops that it has looked at are not changed.
class SymbolicDims {
public:
  SymbolicDims() = default;
  /// As an analysis of a pass manager; nothing is computed before it is asked
  /// for.
  explicit SymbolicDims(mlir::Operation *) {}

  /// The extent of axis \p axis of the tensor or memref \p shaped.
  SizePolynomial dim(mlir::Value shaped, int64_t axis);
  /// The number of elements of \p shaped.
  SizePolynomial elements(mlir::Value shaped);
  /// The value of \p size, an index or integer.
  SizePolynomial size(mlir::Value size);

  /// A symbol is an axis of a tensor, a value, or an operation on polynomials
  /// that makes none (`name` is that of an `arith` op).
  struct Symbol {
    mlir::Value value;
    int64_t axis = -1; // of `value`, if that is a tensor or memref
    /// The dim's name, equal for all dims of a function that are checked to be
    /// equal; null without one.
    mlir::StringAttr name;
    llvm::StringRef op;
    std::vector<SizePolynomial> operands;
  };
  const Symbol &symbol(unsigned number) const { return symbols[number]; }

  /// In the model's names: "4*B*N + 16"; what has no name is "?", a number
  /// behind it tells several apart.
  std::string str(const SizePolynomial &polynomial) const;
  /// Computes \p polynomial at \p builder, where all that its symbols stand for
  /// is known.
  mlir::Value write(mlir::OpBuilder &builder, mlir::Location loc,
                    const SizePolynomial &polynomial) const;

private:
  SizePolynomial intern(Symbol symbol);
  SizePolynomial computed(mlir::Operation *op);
  std::string str(unsigned symbol) const;

  std::vector<Symbol> symbols;
  llvm::DenseMap<mlir::Value, SizePolynomial> sizes;
};

} // namespace heed::attn

#endif
