// Numbers of 16 bits where libHalide has no code for them, on devices: it ends
// by an assertion for bf16 in CUDA, and for either in OpenCL. Their bits are
// integers there, and integers make f32 of them.

#include "compiler/Codegen/HalideMath.h"

using namespace heed;
using Halide::Expr;
using Halide::Internal::Call;
using Halide::Internal::make_const;

static Expr word(uint64_t value) { return make_const(Halide::UInt(32), value); }

/// Exponents of f16 are 112 less than those of f32, of which its largest one,
/// that of infinity and NaN, is the largest, too. A subnormal number is a
/// multiple of 2^-24.
static Expr fromHalf(Expr bits) {
  Expr size = bits & word(0x7fff);
  Expr moved = size << word(13);
  Expr small = Halide::reinterpret(
      Halide::UInt(32),
      strict(Call::strict_mul, Halide::cast<float>(Halide::cast<int>(size)),
             make_const(Halide::Float(32), 0x1p-24)));
  Expr number = Halide::select(size >= word(0x7c00), moved | word(0x7f800000),
                               moved + word(112u << 23));
  number = Halide::select(size < word(0x400), small, number);
  return number | ((bits & word(0x8000)) << word(16));
}

/// To even: half of the last place but one bit, and that one where the last
/// place is odd. The sum may reach the exponent, and infinity. Below 2^-14 the
/// last place is 2^-24, that of numbers in [0.5, 1): a sum rounds.
static Expr toHalf(Expr bits) {
  Expr size = bits & word(0x7fffffff);
  Expr odd = (size >> word(13)) & word(1);
  Expr number = (size + word(0xfff) + odd - word(112u << 23)) >> word(13);
  Expr half = make_const(Halide::Float(32), 0.5);
  Expr small = Halide::reinterpret(
                   Halide::UInt(32),
                   strict(Call::strict_add,
                          Halide::reinterpret(Halide::Float(32), size), half)) -
               word(0x3f000000);
  // Of 65520 and more the nearest is infinity.
  number = Halide::select(size >= word(0x477ff000), word(0x7c00), number);
  number = Halide::select(size < word(0x38800000), small, number);
  number = Halide::select(size > word(0x7f800000), word(0x7e00), number);
  return number | ((bits >> word(16)) & word(0x8000));
}

static Expr toBFloat(Expr bits) {
  Expr odd = (bits >> word(16)) & word(1);
  Expr isNaN = (bits & word(0x7fffffff)) > word(0x7f800000);
  return Halide::select(isNaN, bits | word(0x400000),
                        bits + word(0x7fff) + odd) >>
         word(16);
}

Expr heed::widened(Expr bits, mlir::Type type) {
  bits = Halide::cast<uint32_t>(bits);
  return Halide::reinterpret(Halide::Float(32),
                             type.isBF16() ? bits << word(16) : fromHalf(bits));
}

Expr heed::narrowed(Expr x, mlir::Type type) {
  Expr bits = Halide::reinterpret(Halide::UInt(32), x);
  return Halide::cast<uint16_t>(type.isBF16() ? toBFloat(bits) : toHalf(bits));
}
