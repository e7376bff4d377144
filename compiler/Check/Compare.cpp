//===- Compare.cpp - two tensors, and how far one is from the other -------===//
#include "compiler/Check/Compare.h"
#include <cmath>
#include <limits>

namespace heed::check {

Difference compare(const Array &value, const Array &reference, double tolerance,
                   bool overflows) {
  Difference d;
  if (value.shape != reference.shape || value.type != reference.type) {
    d.shapeDiffers = true;
    return d;
  }
  bool real = isReal(value.type);
  int digits = value.type == HEED_F16 ? 11 : value.type == HEED_BF16 ? 8 : 24;
  int64_t count = reference.count();
  double scale = 0;
  for (int64_t k = 0; k < count; ++k)
    if (double r = std::fabs(reference.get(k)); std::isfinite(r))
      scale = std::max(scale, r);
  if (real && digits < 24)
    tolerance += std::ldexp(1.0, -digits);
  if (!real)
    tolerance = 0;
  for (int64_t k = 0; k < count; ++k) {
    double x = value.get(k), r = reference.get(k);
    bool same;
    if (std::isfinite(r) && std::isfinite(x)) {
      double error = std::fabs(x - r);
      d.maxAbs = std::max(d.maxAbs, error);
      if (error > 0 && r != 0) {
        d.relative = std::max(d.relative, error / std::fabs(r));
        d.ulp = std::max(d.ulp,
                         error / std::ldexp(1.0, std::ilogb(r) + 1 - digits));
      }
      // Below the least normal, kernels have 0.
      same = error <=
             tolerance * scale + (real ? std::numeric_limits<float>::min() : 0);
    } else {
      same = x == r ||
             (std::isnan(x) && (std::isnan(r) || (overflows && std::isinf(r))));
    }
    if (!same && d.firstBad < 0)
      d.firstBad = k;
  }
  d.judged = scale > 0 ? d.maxAbs / scale : d.maxAbs;
  return d;
}

} // namespace heed::check
