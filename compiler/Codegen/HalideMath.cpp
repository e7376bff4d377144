// Functions of `math` as libHalide has them. What it has not, or not for every
// float, halide-expand-math has written out.

#include "compiler/Codegen/HalideMath.h"
#include "compiler/Codegen/HalideTranslate.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace heed;
using Halide::Expr;
using Halide::Internal::Call;

Expr heed::strict(Call::IntrinsicOp op, Expr a, Expr b) {
  Halide::Type type = a.type();
  if (op == Call::strict_lt || op == Call::strict_le || op == Call::strict_eq)
    type = Halide::Bool();
  return Call::make(type, op, {a, b}, Call::PureIntrinsic);
}

// LLVM folds an extension of a truncation away where both may be contracted,
// and libHalide has no strict cast. So the rounding is done before the cast, in
// bits and a strict sum: 13 bits fall away, to even; below 2^-14 halves are
// multiples of 2^-24, the last place of numbers in [0.5, 1).
Expr heed::roundedToHalf(Expr x) {
  auto constant = [&](Expr like, uint64_t value) {
    return Halide::Internal::make_const(like.type(), value);
  };
  Halide::Type raw = Halide::UInt(32).with_lanes(x.type().lanes());
  Expr bits = Halide::reinterpret(raw, x);
  Expr size = bits & constant(bits, 0x7fffffff);
  Expr odd = (size >> constant(bits, 13)) & constant(bits, 1);
  Expr normal =
      (size + constant(bits, 0xfff) + odd) & constant(bits, 0xffffe000);
  Expr infinite = constant(bits, 0x7f800000);
  normal =
      Halide::select(normal >= constant(bits, 0x47800000), infinite, normal);
  Expr half = Halide::Internal::make_const(x.type(), 0.5);
  Expr small = strict(
      Call::strict_sub,
      strict(Call::strict_add, Halide::reinterpret(x.type(), size), half),
      half);
  Expr rounded = Halide::select(size > infinite, size, normal);
  rounded = Halide::select(size < constant(bits, 0x38800000),
                           Halide::reinterpret(raw, small), rounded);
  return Halide::reinterpret(x.type(),
                             rounded | (bits & constant(bits, 0x80000000)));
}

// libHalide tells LLVM that a plain sum or product is neither NaN nor infinite,
// even where a strict op reads it: `x == x` of one is then true. In bits it is
// what it is.

static Expr bitsOf(Expr x, uint64_t f16, uint64_t f32, uint64_t f64,
                   Expr &pattern) {
  int width = x.type().bits();
  Halide::Type type = Halide::UInt(width);
  uint64_t value = width == 16 ? f16 : width == 32 ? f32 : f64;
  pattern = Halide::Internal::UIntImm::make(type, value);
  return Halide::reinterpret(type, x);
}

Expr heed::isNaN(Expr x) {
  if (x.type().is_bfloat())
    x = Halide::cast<float>(x);
  Expr limit; // twice the bits of infinity: without the sign
  Expr bits =
      bitsOf(x, 0xf800, 0xff000000, UINT64_C(0xffe0000000000000), limit);
  return (bits << Halide::Internal::make_one(bits.type())) > limit;
}

// No comparison of all bits: that LLVM takes for one of the number.
Expr heed::isInfinity(Expr x, bool negative) {
  if (x.type().is_bfloat())
    x = Halide::cast<float>(x);
  Expr largest; // the finite number beside it
  Expr bits = negative ? bitsOf(x, 0xfbff, 0xff7fffff,
                                UINT64_C(0xffefffffffffffff), largest)
                       : bitsOf(x, 0x7bff, 0x7f7fffff,
                                UINT64_C(0x7fefffffffffffff), largest);
  if (!negative) {
    Halide::Type type = Halide::Int(bits.type().bits());
    bits = Halide::reinterpret(type, bits);
    largest = Halide::reinterpret(type, largest);
  }
  return bits > largest && !isNaN(x);
}

/// The first of a number's bits are the number.
Expr heed::unbounded(Expr x) {
  return Call::make(x.type(), Call::extract_bits,
                    {x, Halide::Internal::make_zero(Halide::UInt(32))},
                    Call::PureIntrinsic);
}

/// Of f32 libHalide's do not hold for every float.
static bool isWrittenOut(Operation *op) {
  if (!op->getResult(0).getType().isF32())
    return false;
  if (auto log = dyn_cast<math::LogOp>(op))
    return log.getFastmath() == arith::FastMathFlags::none;
  return isa<math::ExpOp, math::ErfOp, math::PowFOp, math::TanhOp>(op);
}

Expr HalideExpressions::translateMath(Operation *op) {
  if (isWrittenOut(op))
    throw TranslationError{op, "stands here in f32, expected that "
                               "halide-expand-math has written it out"};
  auto operand = [&](unsigned k) {
    return HalideExpressions::number(op->getOperand(k));
  };
  auto number = [&](double value) {
    return Halide::Internal::make_const(operand(0).type(), value);
  };
  return TypeSwitch<Operation *, Expr>(op)
      .Case([&](math::ExpOp) { return Halide::exp(operand(0)); })
      .Case([&](math::LogOp) { return Halide::log(operand(0)); })
      .Case([&](math::SqrtOp) { return Halide::sqrt(operand(0)); })
      .Case([&](math::RsqrtOp) {
        return strict(Call::strict_div, number(1), Halide::sqrt(operand(0)));
      })
      .Case([&](math::SinOp) { return Halide::sin(operand(0)); })
      .Case([&](math::CosOp) { return Halide::cos(operand(0)); })
      .Case([&](math::TanOp) { return Halide::tan(operand(0)); })
      .Case([&](math::TanhOp) { return Halide::tanh(operand(0)); })
      .Case([&](math::ErfOp) { return Halide::erf(operand(0)); })
      .Case([&](math::PowFOp) { return Halide::pow(operand(0), operand(1)); })
      .Case([&](math::FloorOp) { return Halide::floor(operand(0)); })
      .Case([&](math::CeilOp) { return Halide::ceil(operand(0)); })
      .Case([&](math::TruncOp) { return Halide::trunc(operand(0)); })
      .Case([&](math::RoundEvenOp) { return Halide::round(operand(0)); })
      .Case([&](math::AbsFOp) { return Halide::abs(operand(0)); })
      .Case([&](math::AbsIOp) {
        return Halide::cast(operand(0).type(), Halide::abs(operand(0)));
      })
      .Case([&](math::IsNaNOp) { return isNaN(operand(0)); })
      // There is no intrinsic for it in Halide 21; targets with FMA contract
      // this, the others round twice.
      .Case([&](math::FmaOp) { return operand(0) * operand(1) + operand(2); })
      .Default([&](Operation *) { return Expr(); });
}
