//===- SizeUse.h - Sizes that a model computes ------------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_COMMON_SIZEUSE_H
#define HEED_FRONTEND_COMMON_SIZEUSE_H

#include "support/Sizes.h"

#include "llvm/ADT/SmallVector.h"

namespace heed::sema {

/// A size that is computed when the model runs. What is known where it is
/// computed decides how its floor divisions are.
struct SizeUse {
  struct Division {
    unsigned atom;
    bool isDivisorPositive; ///< else the divisor may be 0 where nothing is used
  };
  Size size;
  llvm::SmallVector<Division, 1> divisions;
  bool inLoop = false; ///< else it is computed once, at the entry
};
using SizeUses = llvm::SmallVector<SizeUse, 4>;

/// \p size, to be computed with what \p sizes knows now.
SizeUse useOf(const SizeTable &sizes, const Size &size);

} // namespace heed::sema

#endif // HEED_FRONTEND_COMMON_SIZEUSE_H
