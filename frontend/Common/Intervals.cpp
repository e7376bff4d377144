//===- Intervals.cpp - Bounds of integer expressions ----------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Intervals.h"

using namespace heed;
using namespace heed::sema;

Bounds Intervals::min(const Bounds &a, const Bounds &b) {
  Bounds result;
  for (const Size &s : a.lower)
    for (const Size &t : b.lower)
      result.lower.push_back(nonNegative(t - s)   ? s
                             : nonNegative(s - t) ? t
                                                  : sizes.min(s, t));
  result.upper = a.upper;
  result.upper.append(b.upper.begin(), b.upper.end());
  result.exact = a.exact && b.exact && a.lower.size() == 1 &&
                 b.lower.size() == 1 && result.upper.size() == 2;
  if (result.exact)
    result.upper = {sizes.min(result.upper[0], result.upper[1])};
  return result;
}

Bounds Intervals::max(const Bounds &a, const Bounds &b) {
  Bounds result;
  for (const Size &s : a.upper)
    for (const Size &t : b.upper)
      result.upper.push_back(nonNegative(s - t)   ? s
                             : nonNegative(t - s) ? t
                                                  : sizes.max(s, t));
  result.lower = a.lower;
  result.lower.append(b.lower.begin(), b.lower.end());
  return result;
}
