//===- CausalBound.h - a key that is no later than a query ------*- C++ -*-===//
#ifndef HEED_PASSES_RECURRENCE_CAUSALBOUND_H
#define HEED_PASSES_RECURRENCE_CAUSALBOUND_H

#include "passes/Algebra/TensorExpr.h"

namespace heed {

/// key <= query; `isStrict`: <; `isBehind`: >= or >.
struct CausalBound {
  unsigned query = 0;
  bool isStrict = false, isBehind = false;
};

/// \p condition as such of the variables \p key and one of \p outputs.
std::optional<CausalBound> matchCausalBound(ExprRef condition, unsigned key,
                                            llvm::ArrayRef<unsigned> outputs);

/// Whether \p condition says that \p var is below something, or not above it.
bool isUpperBound(ExprRef condition, unsigned var);

/// That \p key is not the one that no query has by a strict \p bound.
ExprRef isNotLast(Exprs &exprs, const CausalBound &bound, unsigned key);

/// A reduction over what comes before a query, or behind it: of `term` where
/// the key is there, and of nothing else.
struct CausalReduction {
  unsigned key = 0;
  CausalBound bound;
  ExprRef term = nullptr;
  ExprRef seen = nullptr; ///< what else a key must fulfil; null: nothing
  bool isGuarded = false; ///< the term may be read where a key is there alone
  ExprRef segment = nullptr; ///< of the query: the key has the same integer
};

/// \p reduction as such, by one variable of one of \p outputs.
std::optional<CausalReduction>
matchCausalReduction(Exprs &exprs, ExprRef reduction,
                     llvm::ArrayRef<unsigned> outputs);

} // namespace heed
#endif
