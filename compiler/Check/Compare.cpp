//===- Compare.cpp - two tensors, and how far one is from the other -------===//
#include "compiler/Check/Compare.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace heed::check {

/// How many times as wrong as the equations in f32 a result may be: kernels sum
/// in another order and exponentiate in base 2.
constexpr double kTimes = 16;
/// Rows up to this many times as large tell what f32 gives in a row: one row
/// alone may be right by chance.
constexpr double kAlike = 8;

/// The bound of exponentials of scores that are small, relative to them: so
/// their sum's logarithm is off, however small itself. Of larger scores it is
/// as many times as large.
constexpr double kOfLogarithm = 8 * 0x1p-24;

namespace {

/// The rows of a tensor: their largest finite elements, and what f32 as written
/// allows in them.
struct Rows {
  int64_t length = 1;
  std::vector<double> scale, allowed;

  Rows(const Array &reference, const Measured *measured, double relative) {
    int64_t count = reference.count();
    if (!reference.shape.empty() && count)
      length = reference.shape.back();
    scale.assign(count / length, 0);
    std::vector<double> error(scale.size(), 0);
    for (int64_t k = 0; k < count; ++k) {
      double r = reference.get(k);
      if (!std::isfinite(r))
        continue;
      double &largest = scale[k / length];
      largest = std::max(largest, std::fabs(r));
      auto note = [&](const Array *other) {
        if (double x = other->get(k); std::isfinite(x))
          error[k / length] = std::max(error[k / length], std::fabs(x - r));
      };
      if (!measured)
        continue;
      note(measured->written);
      for (const Array *other : measured->others)
        note(other);
    }
    allowed.resize(scale.size());
    for (size_t row = 0; row < scale.size(); ++row)
      allowed[row] = relative * scale[row];
    if (!measured)
      return;
    // Rows by size; the largest error of all up to each.
    std::vector<size_t> order(scale.size());
    for (size_t k = 0; k < order.size(); ++k)
      order[k] = k;
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return scale[a] < scale[b]; });
    double worst = 0;
    size_t seen = 0;
    for (size_t row : order) {
      for (; seen < order.size() && scale[order[seen]] <= kAlike * scale[row];
           ++seen)
        worst = std::max(worst, error[order[seen]]);
      allowed[row] = std::max(allowed[row], kTimes * worst);
    }
  }
};

} // namespace

bool Measured::isOpen(int64_t at) const {
  auto isNoNumber = [&](const Array *array) {
    return !std::isfinite(array->get(at));
  };
  return overflows && (isNoNumber(written) || llvm::any_of(others, isNoNumber));
}

bool Measured::isTied(int64_t at, double x) const {
  return (above && x == above->get(at)) || (below && x == below->get(at));
}

Difference compare(const Array &value, const Array &reference,
                   const Measured *measured, Licence licence) {
  Difference d;
  if (value.shape != reference.shape || value.type != reference.type) {
    d.shapeDiffers = true;
    return d;
  }
  bool real = isReal(value.type);
  int digits = value.type == HEED_F16 ? 11 : value.type == HEED_BF16 ? 8 : 24;
  double rounding = digits < 24 ? std::ldexp(1.0, -digits) : 0;
  const Array *written = measured ? measured->written : nullptr;
  Rows rows(reference, measured, real ? kBound + rounding : 0);
  double scale = 0;
  for (double row : rows.scale)
    scale = std::max(scale, row);
  for (int64_t k = 0; k < reference.count(); ++k) {
    double x = value.get(k), r = reference.get(k), error = 0;
    size_t row = k / rows.length;
    // Below the least normal, kernels have 0.
    double allowed =
        rows.allowed[row] + (real ? std::numeric_limits<float>::min() : 0);
    if (real && licence.logarithms)
      allowed = std::max(allowed, kOfLogarithm);
    if (real && licence.overQueries)
      allowed = std::max(allowed,
                         kOfLogarithm * licence.largestScore * rows.scale[row]);
    if (real && licence.roundsFactors)
      allowed = std::max(allowed, 0x1p-8 * rows.scale[row]);
    bool same;
    if (!real) {
      error = std::fabs(x - r);
      same = x == r || (written && x == written->get(k));
    } else if (std::isfinite(r) && std::isfinite(x)) {
      error = std::fabs(x - r);
      same = error <= allowed ||
             (measured && (measured->isOpen(k) || measured->isTied(k, x)));
    } else if (std::isfinite(r)) {
      same = (written && !std::isfinite(written->get(k))) ||
             (measured && measured->isOpen(k));
    } else {
      same = x == r || (std::isnan(x) && std::isnan(r)) ||
             (licence.reordered && !std::isfinite(x)) ||
             (measured && measured->overflows);
    }
    d.maxAbs = std::max(d.maxAbs, error);
    if (error > 0 && r != 0) {
      d.relative = std::max(d.relative, error / std::fabs(r));
      d.ulp =
          std::max(d.ulp, error / std::ldexp(1.0, std::ilogb(r) + 1 - digits));
    }
    double unit = rows.scale[row] > 0 ? rows.scale[row] : 1;
    d.byRow = std::max(d.byRow, error / unit);
    if (!same && d.firstBad < 0) {
      d.firstBad = k;
      d.bad = error / unit;
      d.allowed = allowed / unit;
    }
  }
  d.judged = scale > 0 ? d.maxAbs / scale : d.maxAbs;
  return d;
}

} // namespace heed::check
