//===- OrderChoices.h - orders that the sizes of a call choose --*- C++ -*-===//
#ifndef HEED_PASSES_REWRITE_ORDERCHOICES_H
#define HEED_PASSES_REWRITE_ORDERCHOICES_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace heed {

/// Two orders of a chain of products: the first branch of \p choice takes
/// \p fresh products, the second one \p written.
struct OrderChoice {
  mlir::scf::IfOp choice;
  mlir::Value fresh, written;
};

/// Elementwise ops that alone read what choices yield move into the branches,
/// where they can be the epilogue of a product; choices that meet in one (a sum
/// and its normaliser) become one choice, by the sum of their products.
void joinChoices(llvm::SmallVectorImpl<OrderChoice> &choices);

} // namespace heed
#endif
