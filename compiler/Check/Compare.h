//===- Compare.h - how far one tensor is from another -----------*- C++ -*-===//
//
#ifndef HEED_COMPILER_CHECK_COMPARE_H
#define HEED_COMPILER_CHECK_COMPARE_H

#include "compiler/Check/Model.h"

namespace heed::check {

struct Difference {
  double maxAbs = 0;   ///< over finite elements
  double judged = 0;   ///< maxAbs / max |reference|
  double relative = 0; ///< largest elementwise, printed only
  double ulp = 0;      ///< largest, in units of the element type, printed only
  int64_t firstBad =
      -1; ///< position of the first element that is out of bounds
  bool shapeDiffers = false;
  bool ok() const { return firstBad < 0 && !shapeDiffers; }
};

/// Compares element by element. Integers and bools must be equal; reals within
/// \p tolerance of max |reference|, plus one rounding of a 16-bit type and
/// what is below the least normal f32; NaN stands where the reference has one
/// and nowhere else, infinities are equal. If \p overflows, terms of sums may
/// be above the largest f32, which are numbers in the reference's f64: an
/// infinity may then be NaN, the difference of two.
Difference compare(const Array &value, const Array &reference, double tolerance,
                   bool overflows);

} // namespace heed::check

#endif
