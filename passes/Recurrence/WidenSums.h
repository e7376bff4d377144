//===- WidenSums.h - states as f64 ------------------------------*- C++ -*-===//
#ifndef HEED_PASSES_RECURRENCE_WIDENSUMS_H
#define HEED_PASSES_RECURRENCE_WIDENSUMS_H

#include "passes/Algebra/TensorExpr.h"

#include <cstdint>
#include <optional>

namespace heed {

namespace attn {
class ScanOp;
}

/// Whether an f32 that each of \p steps changes may leave the error bound: it
/// is rounded as often, always the same way where they are alike. Null: an
/// unknown number.
inline bool roundsTooOften(std::optional<int64_t> steps) {
  return !steps || *steps > 256;
}

/// \p element, a float, as one of \p type.
ExprRef inType(Exprs &exprs, mlir::Type type, ExprRef element);

/// Carries the f32 state number \p state of \p scan as f64: each step adds to
/// it in f64, and others read it rounded. Whether it did: where the next state
/// is made of it by sums, products and choices.
bool widenState(attn::ScanOp scan, unsigned state);

} // namespace heed
#endif
