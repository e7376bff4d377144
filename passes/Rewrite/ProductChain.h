//===- ProductChain.h - a chain of three products, its orders ---*- C++ -*-===//
#ifndef HEED_PASSES_REWRITE_PRODUCTCHAIN_H
#define HEED_PASSES_REWRITE_PRODUCTCHAIN_H

#include "dialects/Attn/SymbolicDims.h"
#include "passes/Algebra/Products.h"

namespace heed {

/// An extent as a polynomial, if it is one.
std::optional<Size> sizeOf(attn::SymbolicDims &dims, ExprRef extent);

/// Sums over sums of products,
///   sum_outer product * sum_inner within
/// as factors by the variables they have: a factor over fewer variables has
/// joined one over more.
struct ProductChain {
  llvm::SmallVector<ExprRef> nodes;
  /// What depends on nothing that is summed stands after the sum that it left:
  /// both of them, or the outer one.
  Product outsideInner, outside;
  llvm::SmallVector<unsigned> outer, inner, summed; ///< all: the outer first
};

/// None if a divisor fits no factor. A chain of two gets a third factor of 1.
std::optional<ProductChain> makeChain(Exprs &exprs, const Product &product,
                                      const Product &within,
                                      llvm::ArrayRef<unsigned> outer,
                                      llvm::ArrayRef<unsigned> inner);

/// One order of a chain of three: two factors first, then the third.
struct ProductOrder {
  unsigned third;
  llvm::SmallVector<unsigned> first, second; ///< variables summed in each step
  /// The variables of each step: it takes the product of their extents.
  llvm::SmallVector<llvm::SmallVector<unsigned>, 2> costs;
};

/// Those of the three whose first step sums: without, it is an outer product,
/// which is never better.
llvm::SmallVector<ProductOrder, 3> ordersOf(const ProductChain &chain);

/// How many products an order takes, but for a factor that all of them have.
class OrderCosts {
public:
  /// \p outputs: the variables of the chain's result.
  OrderCosts(Exprs &exprs, llvm::ArrayRef<ProductOrder> orders,
             llvm::ArrayRef<unsigned> outputs);

  /// None if an extent is no polynomial of sizes.
  std::optional<Size> of(const ProductOrder &order);
  /// Computes it at \p builder.
  mlir::Value write(mlir::OpBuilder &builder, mlir::Location loc,
                    const ProductOrder &order);
  /// Whether the sizes decide, and for \p a in all calls.
  bool isCheaper(const std::optional<Size> &a,
                 const std::optional<Size> &b) const {
    return a && b && *a != *b && dims.isNeverNegative(*b - *a);
  }
  std::string str(const Size &cost) const { return dims.str(cost); }

private:
  Exprs &exprs;
  attn::SymbolicDims dims;
  llvm::SmallVector<unsigned> common;
};

/// The order of \p chain that stands there, and the best of the others. Null
/// if there is none, or if it gains nothing whatever the sizes are.
std::pair<const ProductOrder *, const ProductOrder *>
writtenAndOther(const ProductChain &chain, llvm::ArrayRef<ProductOrder> orders,
                OrderCosts &costs);

} // namespace heed

#endif
