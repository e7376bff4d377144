//===- StepPower.h - a power of the steps between two -----------*- C++ -*-===//
#ifndef HEED_PASSES_RECURRENCE_STEPPOWER_H
#define HEED_PASSES_RECURRENCE_STEPPOWER_H

#include "passes/Algebra/TensorExpr.h"

namespace heed {

/// base^(query - key - less).
struct StepPower {
  ExprRef base = nullptr;
  int64_t less = 0;
  bool isExponential = false; ///< the base is exp of a number: of NaN, NaN^0
};

/// \p factor as a power of a number whose exponent counts the steps between the
/// variables \p key and \p query, or as exp of a rate times these.
std::optional<StepPower> matchStepPower(Exprs &exprs, ExprRef factor,
                                        unsigned query, unsigned key);

} // namespace heed
#endif
