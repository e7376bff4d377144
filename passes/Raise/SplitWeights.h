//===- SplitWeights.h - a sum of distributions, term by term ----*- C++ -*-===//
#ifndef HEED_PASSES_RAISE_SPLITWEIGHTS_H
#define HEED_PASSES_RAISE_SPLITWEIGHTS_H

#include "passes/Algebra/TensorExpr.h"

namespace heed {

/// sum_j (c a[.., j] - d b[.., j]) v[j, ..] = c sum_j a v - d sum_j b v where a
/// and b are elements of softmaxes (differential attention; distributions that
/// a gate mixes): an expression with one sum for each element of a softmax, the
/// factors that do not depend on j outside. The elements that a softmax leaves
/// out are left out of its own sum alone. Null if \p sum is none such, or if
/// one pass over all scores serves it better.
///
/// Distributes and moves factors, no more; whoever writes it proves it.
ExprRef splitWeights(Exprs &exprs, ExprRef sum);

} // namespace heed
#endif
