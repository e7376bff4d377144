//===- Residues.h - conditions on remainders of positions -------*- C++ -*-===//
#ifndef HEED_PASSES_MASKS_RESIDUES_H
#define HEED_PASSES_MASKS_RESIDUES_H

#include "passes/Algebra/TensorExpr.h"

namespace heed {

/// s, if \p e is (i - j) % s == 0 or i % s == j % s of \p query and \p key.
std::optional<int64_t> residueOfPairs(ExprRef e, ExprRef query, ExprRef key);

/// Remainders first .. first + count - 1 by `modulus`.
struct Residues {
  int64_t modulus, first, count;
};

/// Those of \p position that the comparison \p e lets pass: neighbours, and at
/// most half of all.
std::optional<Residues> residuesOf(ExprRef e, ExprRef position);

} // namespace heed
#endif
