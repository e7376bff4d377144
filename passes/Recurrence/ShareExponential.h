//===- ShareExponential.h - one exponential in place of two -----*- C++ -*-===//
#ifndef HEED_PASSES_RECURRENCE_SHAREEXPONENTIAL_H
#define HEED_PASSES_RECURRENCE_SHAREEXPONENTIAL_H

#include "passes/Algebra/TensorExpr.h"

namespace heed {

/// Of exp(a - max(a, b)) and exp(b - max(a, b)) one is exp(0): where \p
/// elements have both, they have one exponential, of min(a, b) - max(a, b), and
/// two choices. The same to the last bit, NaN and infinities among it.
void shareExponentials(Exprs &exprs, llvm::SmallVectorImpl<ExprRef> &elements);

} // namespace heed
#endif
