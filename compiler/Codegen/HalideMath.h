// What holds for every float in an Expr. Private to this library.

#ifndef HEED_COMPILER_CODEGEN_HALIDEMATH_H
#define HEED_COMPILER_CODEGEN_HALIDEMATH_H

#include "Halide.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace heed {

/// One of libHalide's strict intrinsics: IEEE 754, whatever surrounds it.
Halide::Expr strict(Halide::Internal::Call::IntrinsicOp op, Halide::Expr a,
                    Halide::Expr b);

/// Whether \p x is NaN, told by its bits.
Halide::Expr isNaN(Halide::Expr x);
/// Whether \p x is infinity, the negative one where \p negative.
Halide::Expr isInfinity(Halide::Expr x, bool negative);

/// The comparison that \p op makes of \p a and \p b.
Halide::Expr compareFloats(mlir::arith::CmpFPredicate predicate, Halide::Expr a,
                           Halide::Expr b, mlir::Operation *op);
Halide::Expr compareIntegers(mlir::arith::CmpIPredicate predicate,
                             Halide::Expr a, Halide::Expr b,
                             mlir::Operation *op);

/// An integer's bits as an unsigned number.
Halide::Expr asUnsigned(Halide::Expr x);

/// \p x, of which libHalide knows no bounds.
Halide::Expr unbounded(Halide::Expr x);

/// \p x, an f32, rounded to the nearest f16, still as f32.
Halide::Expr roundedToHalf(Halide::Expr x);

/// The f32 that \p bits are as a number of \p type, f16 or bf16. Exact.
Halide::Expr widened(Halide::Expr bits, mlir::Type type);
/// The bits of the number of \p type that is nearest to \p x, an f32: ties to
/// even, NaN stays NaN.
Halide::Expr narrowed(Halide::Expr x, mlir::Type type);

} // namespace heed

#endif // HEED_COMPILER_CODEGEN_HALIDEMATH_H
