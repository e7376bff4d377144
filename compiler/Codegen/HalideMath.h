// What holds for every float in an Expr. Private to this library.

#ifndef HEED_COMPILER_CODEGEN_HALIDEMATH_H
#define HEED_COMPILER_CODEGEN_HALIDEMATH_H

#include "Halide.h"

namespace heed {

/// One of libHalide's strict intrinsics: IEEE 754, whatever surrounds it.
Halide::Expr strict(Halide::Internal::Call::IntrinsicOp op, Halide::Expr a,
                    Halide::Expr b);

/// Whether \p x is NaN, told by its bits.
Halide::Expr isNaN(Halide::Expr x);
/// Whether \p x is infinity, the negative one where \p negative.
Halide::Expr isInfinity(Halide::Expr x, bool negative);

/// \p x, of which libHalide knows no bounds.
Halide::Expr unbounded(Halide::Expr x);

/// \p x, an f32, rounded to the nearest f16, still as f32.
Halide::Expr roundedToHalf(Halide::Expr x);

} // namespace heed

#endif // HEED_COMPILER_CODEGEN_HALIDEMATH_H
