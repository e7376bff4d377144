//===- QuerySoftmax.h - a softmax over queries --------------------*- C++ -*-=//
#ifndef HEED_PASSES_RAISE_QUERYSOFTMAX_H
#define HEED_PASSES_RAISE_QUERYSOFTMAX_H

#include "passes/Algebra/Proof.h"
#include "passes/Algebra/TensorExpr.h"

namespace heed {

/// A sum over keys of weights that are a softmax over queries (slots that
/// compete for an input), maybe divided by another such sum, over weights that
/// each key has by itself; its elements are numbered by \p outputs:
///
///   softmax(i) s[i,j] = exp(s[i,j] - l[j]),  l[j] = log(sum(i) exp(s[i,j]))
///
/// l is the log-sum-exp of an attention whose queries are the keys. Each
/// softmax that is replaced is proven, and read by \p root and what it is
/// computed from alone. Writes the attention at \p builder's position, as
/// \p attempt's; \p sum and \p denominator, if there is one, become the new
/// ones. False, and nothing said of them, where there is no such softmax, or,
/// with \p why, none that could be replaced.
bool softmaxOfQueries(mlir::OpBuilder &builder, mlir::Operation *root,
                      Exprs &exprs, llvm::ArrayRef<unsigned> outputs,
                      ExprRef &sum, ExprRef &denominator, Attempt &attempt,
                      std::string &why);

} // namespace heed
#endif
