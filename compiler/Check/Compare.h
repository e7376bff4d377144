//===- Compare.h - how far one tensor is from another -----------*- C++ -*-===//
//
#ifndef HEED_COMPILER_CHECK_COMPARE_H
#define HEED_COMPILER_CHECK_COMPARE_H

#include "compiler/Check/Model.h"

namespace heed::check {

/// Of results in f32: |x - reference| / max |reference| of the row.
constexpr double kBound = 1e-5;

struct Difference {
  double maxAbs = 0;   ///< over finite elements
  double judged = 0;   ///< maxAbs / max |reference|
  double byRow = 0;    ///< largest of a row, against max |reference| of the row
  double relative = 0; ///< largest elementwise, printed only
  double ulp = 0;      ///< largest, in units of the element type, printed only
  int64_t firstBad =
      -1; ///< position of the first element that is out of bounds
  double bad = 0, allowed = 0; ///< its error and bound, against its row
  bool shapeDiffers = false;
  bool ok() const { return firstBad < 0 && !shapeDiffers; }
};

/// The same result by other ways.
struct Measured {
  const Array *written = nullptr; ///< as the equations are written, in f32
  /// The same where what is below the least normal f32 is 0, where every
  /// operation rounds up or down, and of inputs changed by a rounding; and the
  /// reference of these.
  std::vector<const Array *> others;
  /// Of a 16-bit type: the reference where what is rounded to 16 bits was
  /// larger by kBound of itself, and where it was smaller. Null where not asked
  /// for.
  const Array *above = nullptr, *below = nullptr;
  /// Terms may be so large that the reference's f64 overflows as well.
  bool overflows = false;

  /// Whether f32 may have no number there: sums of which each has one may be
  /// 0 and infinite together.
  bool isOpen(int64_t at) const;

  /// Whether \p x is the number on the other side of a tie of two of 16 bits.
  bool isTied(int64_t at, double x) const;
};

/// In what kernels may differ from the equations beside rounding.
struct Licence {
  /// A sum of products in another order may be infinite where the reference is
  /// NaN, and the other way round (docs/language.md, distribute).
  bool reordered = false;
  /// What logarithms are taken of has an error of its own size: theirs does not
  /// fall below it where they are near 0.
  bool logarithms = false;
  /// Weights are exponentials of scores less their log-sum-exp, which is
  /// rounded as they are: by so much of the largest score they are off.
  bool overQueries = false;
  double largestScore = 0;
  /// Factors are rounded to bf16 (--products=bf16): one that another order of
  /// sums computes may be the next bf16.
  bool roundsFactors = false;
};

/// Compares element by element. A row is what the last axis runs over.
///
/// Integers and bools must be equal. Reals must be within 1e-5 of their row's
/// max |reference|, plus one rounding of a 16-bit type and what is below the
/// least normal f32; NaN stands where the reference has one and nowhere else,
/// infinities are equal.
///
/// \p measured, if given, says what f32 can give: an element may be as wrong as
/// `written` and the `others` are in rows of its size, times a small factor; it
/// may overflow where `written` does, and an integer be what it is there. If
/// `overflows`, nothing is asked where the reference, `written` or one of the
/// `others` has no number. A number of 16 bits may be what `above` or `below`
/// has there: the next one may be further than one rounding, which is half of
/// their distance.
///
/// With \p licence for logarithms reals may be off by 8 * 2^-24 in any row, for
/// weights over queries by as much of the row's largest times the largest
/// score, and where factors are rounded to bf16 by 2^-8 of the row's largest.
Difference compare(const Array &value, const Array &reference,
                   const Measured *measured, Licence licence);

} // namespace heed::check

#endif
