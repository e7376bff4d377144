//===- GatheredKeys.h - a gather of neighbours as a band --------*- C++ -*-===//
#ifndef HEED_PASSES_RAISE_GATHEREDKEYS_H
#define HEED_PASSES_RAISE_GATHEREDKEYS_H

#include "passes/Algebra/TensorExpr.h"

namespace heed {

/// sum_u softmax(u) s[.., u] * v[.., f + u, ..], with u in 0..K and f a
/// function of the row (i - K//2, the window's begin), as the sum over keys j =
/// f + u that it is: softmax(j where 0 <= j - f < K) s[.., j - f] * v[.., j,
/// ..]. Each u that counts is one j, since its value is read: what stands there
/// must have the condition of that read, if it has one, in the softmax's
/// `where`, too.
///
/// Writes the softmax over j at \p builder's position. Null, and nothing
/// written, if \p sum, whose free variables are \p outputs, is none such.
ExprRef gatherToBand(mlir::OpBuilder &builder, Exprs &exprs,
                     mlir::Operation *root, ExprRef sum);

} // namespace heed
#endif
