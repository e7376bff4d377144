//===- LinearUpdate.h - a value that is linear in another -------*- C++ -*-===//
#ifndef HEED_PASSES_RECURRENCE_LINEARUPDATE_H
#define HEED_PASSES_RECURRENCE_LINEARUPDATE_H

#include "passes/Algebra/Products.h"

namespace heed {

/// decay * old + (guards hold ? product : 0), the product negative or not. Of a
/// delta rule the last factor of the product is less `erased` times `held`, a
/// sum over what the state holds.
struct LinearUpdate {
  ExprRef decay = nullptr; ///< null: 1
  llvm::SmallVector<ExprRef> guards;
  Product product;
  bool isNegative = false;
  ExprRef held = nullptr, erased = nullptr;
};

/// \p next as such of \p old, a read. None if it is something else.
std::optional<LinearUpdate> matchLinearUpdate(Exprs &exprs, ExprRef next,
                                              ExprRef old);

/// \p next as the sum of such of \p old, one of each product that is added, if
/// there are several and each falls into factors, none of which has all the
/// axes that their sum as one factor has. Otherwise none.
llvm::SmallVector<LinearUpdate> matchSummedUpdates(Exprs &exprs, ExprRef next,
                                                   ExprRef old);

/// The product as two factors: that of what has one of \p vars, and the rest. A
/// guard holds for both. None where a guard has them.
std::optional<std::pair<ExprRef, ExprRef>>
splitProduct(Exprs &exprs, const LinearUpdate &update,
             llvm::ArrayRef<unsigned> vars);

} // namespace heed
#endif
