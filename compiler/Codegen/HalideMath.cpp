// The functions of `math` as expressions of our own where libHalide's are slow
// or do not hold for every float. Each has a measured bound in test/codegen.

#include "compiler/Codegen/HalideMath.h"
#include "compiler/Codegen/HalideTranslate.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

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

Expr heed::isInfinity(Expr x, bool negative) {
  if (x.type().is_bfloat())
    x = Halide::cast<float>(x);
  Expr infinity;
  Expr bits = negative ? bitsOf(x, 0xfc00, 0xff800000,
                                UINT64_C(0xfff0000000000000), infinity)
                       : bitsOf(x, 0x7c00, 0x7f800000,
                                UINT64_C(0x7ff0000000000000), infinity);
  return bits == infinity;
}

// Halide's vector forms of exp and log hold for finite results alone.

/// A float constant by its value, infinities and NaN included.
static Expr floatConstant(Halide::Type type, double value) {
  if (std::isfinite(value))
    return Halide::Internal::make_const(type, value);
  uint32_t raw = std::isnan(value) ? 0x7fc00000u
                 : value > 0       ? 0x7f800000u
                                   : 0xff800000u;
  Expr single = Halide::reinterpret<float>(
      Halide::Internal::make_const(Halide::UInt(32), raw));
  return Halide::cast(type, single);
}

/// x = n ln 2 + r for a whole n and |r| <= ln 2 / 2, in f32. n is rounded by
/// adding 1.5 * 2^23: the low bits of \p shifted then hold it. ln 2 is in two
/// parts, so that the product of n and the first is exact; r of -0 is -0.
static Expr reduceByLog2(Expr x, Expr &shifted) {
  auto number = [&](double v) { return floatConstant(x.type(), v); };
  auto times = [](Expr a, Expr b) { return strict(Call::strict_mul, a, b); };
  auto minus = [](Expr a, Expr b) { return strict(Call::strict_sub, a, b); };
  Expr magic = number(12582912.0);
  shifted = strict(Call::strict_add, times(x, number(1.44269504088896)), magic);
  Expr n = minus(shifted, magic);
  return minus(x - n * number(0.693145751953125),
               times(n, number(1.42860682030941723e-6)));
}

/// 2^(n - less) of reduceByLog2's n, whose exponent f32 has.
static Expr powerOfTwo(Expr shifted, int less) {
  Halide::Type bits = Halide::Int(32, shifted.type().lanes());
  auto number = [&](int v) { return Halide::Internal::make_const(bits, v); };
  return Halide::reinterpret(
      shifted.type(), (Halide::reinterpret(bits, shifted) << number(23)) +
                          number((127 - less) << 23));
}

/// exp in f32: the power of two by adding n to the exponent, e^r by a
/// polynomial (minimax, 3e-9; 9e-8 with the rounding). libHalide's own takes
/// twice the instructions and holds for finite results alone. With \p
/// noOverflow x is known to stay below 88, or is NaN.
static Expr exactExp(Expr x, bool noOverflow = false) {
  if (x.type().bits() != 32)
    return Halide::exp(x);
  auto number = [&](double v) { return floatConstant(x.type(), v); };
  auto less = [](Expr a, Expr b) { return strict(Call::strict_lt, a, b); };
  auto times = [](Expr a, Expr b) { return strict(Call::strict_mul, a, b); };
  Expr shifted, r = reduceByLog2(x, shifted);
  Expr p = number(0.00138145988);
  for (double c :
       {0.00836871701, 0.0416683881, 0.166665206, 0.499999934, 1.0, 1.0})
    p = p * r + number(c);
  // Results below the least normal number are 0.
  Expr vanishes = less(x, number(-87.3365402));
  if (noOverflow)
    return Halide::select(vanishes, number(0),
                          times(p, powerOfTwo(shifted, 0)));
  Halide::Type bits = Halide::Int(32, x.type().lanes());
  Expr e = Halide::reinterpret(x.type(),
                               Halide::reinterpret(bits, p) +
                                   (Halide::reinterpret(bits, shifted)
                                    << Halide::Internal::make_const(bits, 23)));
  e = Halide::select(vanishes, number(0), e);
  // Where f32 ends, and for NaN, it is x times infinity: at 88.7228394 already,
  // where the exponent of e would be that of a NaN.
  return Halide::select(less(x, number(88.7228394)), e,
                        times(x, number(INFINITY)));
}

/// exp(x) - 1 in f32, to 2e-7 of itself also near 0: with p = e^r - 1, r times
/// a polynomial (minimax, 1.4e-8), it is s p - (1 - s) for s = 2^n, where the
/// product is exact and only one of the sums rounds much. That is p itself
/// where n is 0; -0 stays -0. All is halved until the end, where f32 overflows
/// as it should; -1 begins long before the least exponent.
static Expr exactExpM1(Expr x, bool noOverflow) {
  auto number = [&](double v) { return floatConstant(x.type(), v); };
  auto less = [](Expr a, Expr b) { return strict(Call::strict_lt, a, b); };
  auto times = [](Expr a, Expr b) { return strict(Call::strict_mul, a, b); };
  auto minus = [](Expr a, Expr b) { return strict(Call::strict_sub, a, b); };
  x = Halide::select(less(x, number(-80)), number(-80), x);
  if (!noOverflow)
    x = Halide::select(less(number(89), x), number(89), x);
  Expr shifted, r = reduceByLog2(x, shifted);
  Expr p = number(0.00138706563);
  for (double c : {0.00836626161, 0.0416674353, 0.166665465, 0.49999997, 1.0})
    p = p * r + number(c);
  p = times(p, r);
  Expr s = powerOfTwo(shifted, noOverflow ? 0 : 1);
  Expr y = minus(times(s, p), minus(number(noOverflow ? 1 : 0.5), s));
  return noOverflow ? y : times(y, number(2));
}

/// Whether \p x is known to be 88 at most, or NaN: a minimum with a constant.
static bool staysBelowOverflow(Value x) {
  Operation *op = x.getDefiningOp();
  if (!isa_and_nonnull<arith::MinimumFOp>(op))
    return false;
  return llvm::any_of(op->getOperands(), [](Value operand) {
    FloatAttr number;
    return matchPattern(operand, m_Constant(&number)) &&
           number.getValueAsDouble() <= 88;
  });
}

static Expr exactLog(Expr x) {
  if (x.type().bits() != 32)
    return Halide::log(x);
  auto less = [](Expr a, Expr b) { return strict(Call::strict_lt, a, b); };
  auto equal = [](Expr a, Expr b) { return strict(Call::strict_eq, a, b); };
  auto number = [&](double v) { return floatConstant(x.type(), v); };
  Expr l =
      Halide::select(equal(x, number(0)), number(-INFINITY), Halide::log(x));
  l = Halide::select(less(x, number(0)), number(NAN), l);
  return Halide::select(isNaN(x) || isInfinity(x, false), x, l);
}

/// IEEE 754's pow. Halide's vector form of it is exp(y log(x)) without the
/// cases where that is no number though the power is one, and without signs.
static Expr exactPow(Expr x, Expr y) {
  if (x.type().bits() != 32)
    return Halide::pow(x, y);
  auto equal = [](Expr a, Expr b) { return strict(Call::strict_eq, a, b); };
  auto times = [](Expr a, Expr b) { return strict(Call::strict_mul, a, b); };
  auto number = [&](double v) { return floatConstant(x.type(), v); };
  auto isWhole = [&](Expr v) { return equal(Halide::floor(v), v); };
  Expr size = Halide::abs(x);
  Expr p = exactExp(times(y, exactLog(size)));
  Expr isNegative = Halide::reinterpret<int32_t>(x) < 0; // -0 too
  Expr isOdd = isWhole(y) && !isWhole(times(y, number(0.5)));
  p = Halide::select(isNegative && isOdd, times(p, number(-1)), p);
  Expr hasRoot = isWhole(y) || equal(x, number(0)) || isInfinity(size, false) ||
                 isNaN(x) || isNaN(y);
  p = Halide::select(isNegative && !hasRoot, number(NAN), p);
  Expr isOne = equal(y, number(0)) || equal(x, number(1)) ||
               (equal(x, number(-1)) && isInfinity(Halide::abs(y), false));
  return Halide::select(isOne, number(1), p);
}

/// \p x, of which libHalide knows no bounds. Where it knows those of a variable
/// it writes each step of a polynomial as four products of the bounds of the
/// step before: it never ends. The first of a number's bits are the number.
static Expr unbounded(Expr x) {
  return Call::make(x.type(), Call::extract_bits,
                    {x, Halide::Internal::make_zero(Halide::UInt(32))},
                    Call::PureIntrinsic);
}

/// erf in f32: x times a polynomial in x^2 (minimax relative to erf for |x| <=
/// 3.7, 4e-8; 3e-7 with the rounding), whose variable runs from -1 to 1 so that
/// no digits cancel. Beyond, the polynomial grows above 1, where it is cut off.
/// No division: with one, a vector takes twice as long.
static Expr exactErf(Expr x) {
  auto number = [&](double v) { return floatConstant(x.type(), v); };
  auto less = [](Expr a, Expr b) { return strict(Call::strict_lt, a, b); };
  if (x.type().bits() != 32) {
    // Halide's gives NaN for infinities; beyond 10 it is 1 in any float type.
    Expr inside = Halide::select(less(number(10), x), number(10), x);
    return Halide::erf(
        Halide::select(less(inside, number(-10)), number(-10), inside));
  }
  Expr t = unbounded(x * (x * number(0.146092042)) - number(1));
  Expr p = number(0.000695840688);
  for (double c :
       {-0.00180315028, 0.00164642255, -0.00275597908, 0.0081483284,
        -0.0151678305, 0.0232948754, -0.035649199, 0.0520735979, -0.0705803409,
        0.0905333832, -0.112629719, 0.140794754, -0.190468222, 0.382137477})
    p = p * t + number(c);
  p = strict(Call::strict_mul, p, x);
  p = Halide::select(less(number(1), p), number(1), p);
  return Halide::select(less(p, number(-1)), number(-1), p);
}

Expr HalideExpressions::translateMath(Operation *op) {
  auto operand = [&](unsigned k) { return get(op->getOperand(k)); };
  auto number = [&](double value) {
    return Halide::Internal::make_const(operand(0).type(), value);
  };
  return TypeSwitch<Operation *, Expr>(op)
      .Case([&](math::ExpOp exp) {
        return exactExp(operand(0), staysBelowOverflow(exp.getOperand()));
      })
      .Case([&](math::ExpM1Op expM1) {
        return operand(0).type().bits() == 32
                   ? exactExpM1(operand(0),
                                staysBelowOverflow(expM1.getOperand()))
                   : Expr();
      })
      .Case([&](math::LogOp) { return exactLog(operand(0)); })
      .Case([&](math::SqrtOp) { return Halide::sqrt(operand(0)); })
      .Case([&](math::RsqrtOp) {
        return strict(Call::strict_div, number(1), Halide::sqrt(operand(0)));
      })
      .Case([&](math::SinOp) { return Halide::sin(operand(0)); })
      .Case([&](math::CosOp) { return Halide::cos(operand(0)); })
      .Case([&](math::TanOp) { return Halide::tan(operand(0)); })
      .Case([&](math::TanhOp) { return Halide::tanh(operand(0)); })
      .Case([&](math::ErfOp) { return exactErf(operand(0)); })
      .Case([&](math::PowFOp) { return exactPow(operand(0), operand(1)); })
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
