//===- Intervals.h - Bounds of integer expressions --------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between which sizes an integer lies that changes with indices or data.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_COMMON_INTERVALS_H
#define HEED_FRONTEND_COMMON_INTERVALS_H

#include "support/Sizes.h"

#include "llvm/ADT/SmallVector.h"

namespace heed::sema {

/// What is known about an integer: each of `lower` is a lower bound, each of
/// `upper` an upper one (inclusive).
struct Bounds {
  llvm::SmallVector<Size, 2> lower, upper;
  bool exact = false; ///< a single bound on both sides, which is reached
};

/// Bounds of what is made of bounded integers, where the atoms in `positive`
/// are at least 1.
class Intervals {
public:
  Intervals(SizeTable &sizes, llvm::ArrayRef<unsigned> positive)
      : sizes(sizes), positive(positive) {}

  bool nonNegative(const Size &size) const {
    return sizes.nonNegative(size, positive);
  }
  Bounds min(const Bounds &a, const Bounds &b);
  Bounds max(const Bounds &a, const Bounds &b);

  SizeTable &sizes;

private:
  llvm::ArrayRef<unsigned> positive;
};

} // namespace heed::sema

#endif // HEED_FRONTEND_COMMON_INTERVALS_H
