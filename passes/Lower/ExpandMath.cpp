//===- ExpandMath.cpp - functions of `math` written out -------------------===//
//
// halide-expand-math: libHalide's exp, log, pow and erf do not hold for every
// float, its tanh is a call for each lane, and some functions it has not at
// all. Here they are `arith` on scalars, which become vectors with what
// surrounds them. test/codegen/expressions.mlir and test/e2e/builtins.py hold
// the error of each.
//
// An op without flags is IEEE 754 as it stands; `contract` lets a product and
// a sum become one FMA.
//
//===----------------------------------------------------------------------===//

#include "dialects/Halide/HalideDialect.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <limits>

namespace heed {
#define GEN_PASS_DEF_HALIDEEXPANDMATH
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
/// 1.5 * 2^23: what is added to it is rounded to a whole number.
constexpr double roundingShift = 12582912.0;
constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

/// Writes functions of one float type at one place.
class Expansion {
public:
  Expansion(OpBuilder &b, Location loc, Type type)
      : b(b), loc(loc), type(type) {}

  Value exp(Value x, bool noOverflow = false);
  Value exp2(Value x);
  Value expM1(Value x, bool noOverflow);
  Value expM1BySeries(Value x);
  Value log(Value x);
  Value log1p(Value x, bool isFraction);
  Value pow(Value x, Value y);
  Value erf(Value x);
  Value tanh(Value x);

  Value number(double value) {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  bool isF32() const { return type.isF32(); }

private:
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value less(Value x, Value y) {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, y);
  }
  Value equal(Value x, Value y) {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x, y);
  }
  Value select(Value c, Value x, Value y) {
    return arith::SelectOp::create(b, loc, c, x, y);
  }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  Value either(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
  Value isNaN(Value x) { return math::IsNaNOp::create(b, loc, x); }
  Value integer(int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  }
  Value bits(Value x) {
    return arith::BitcastOp::create(b, loc, b.getI32Type(), x);
  }
  Value ofBits(Value x) { return arith::BitcastOp::create(b, loc, type, x); }

  Value horner(Value x, ArrayRef<double> coefficients,
               arith::FastMathFlags flags = arith::FastMathFlags::contract);
  Value between(Value x, double low, double high);
  Value nearZero(Value x, Value near, Value far);
  Value reduceByLog2(Value x, Value &shifted, int bias = 0);
  Value exponentOf(Value shifted);
  Value powerWithin(Value x, Value p, Value exponent, Value vanishes,
                    double end);

  OpBuilder &b;
  Location loc;
  Type type;
};

/// c[0] + x (c[1] + x (..)).
Value Expansion::horner(Value x, ArrayRef<double> coefficients,
                        arith::FastMathFlags flags) {
  Value y = number(coefficients.back());
  for (double c : llvm::reverse(coefficients.drop_back()))
    y = arith::AddFOp::create(
        b, loc, arith::MulFOp::create(b, loc, y, x, flags), number(c), flags);
  return y;
}

/// NaN passes both comparisons.
Value Expansion::between(Value x, double low, double high) {
  x = select(less(number(high), x), number(high), x);
  return select(less(x, number(low)), number(low), x);
}

/// \p near where |x| < 1/2, else \p far. NaN is far.
Value Expansion::nearZero(Value x, Value near, Value far) {
  return select(less(math::AbsFOp::create(b, loc, x), number(0.5)), near, far);
}

/// x = n ln 2 + r for a whole n and |r| <= ln 2 / 2, in f32. n is rounded by
/// adding a number: the low bits of \p shifted then hold it, and \p bias. ln 2
/// is in two parts, so that the product of n and the first is exact; r of -0 is
/// -0.
Value Expansion::reduceByLog2(Value x, Value &shifted, int bias) {
  auto relaxed = arith::FastMathFlags::contract;
  auto product = [&](Value y, double c) -> Value {
    return arith::MulFOp::create(b, loc, y, number(c), relaxed);
  };
  Value magic = number(roundingShift + bias);
  shifted = arith::AddFOp::create(b, loc, product(x, 1.44269504088896), magic,
                                  relaxed);
  Value n = sub(shifted, magic);
  Value r =
      arith::SubFOp::create(b, loc, x, product(n, 0.693145751953125), relaxed);
  // Relaxed too, both parts would become one again.
  return sub(r, mul(n, number(1.42860682030941723e-6)));
}

/// n of reduceByLog2, where the exponent of an f32 stands.
Value Expansion::exponentOf(Value shifted) {
  return arith::ShLIOp::create(b, loc, bits(shifted), integer(23));
}

/// exp in f32: the power of two by adding n to the exponent, e^r by a
/// polynomial (minimax, 3e-9; 9e-8 with the rounding). libHalide's own takes
/// twice the instructions and holds for finite results alone. With \p
/// noOverflow x is known to stay below 88, or is NaN.
Value Expansion::exp(Value x, bool noOverflow) {
  if (!isF32())
    return math::ExpOp::create(b, loc, x);
  Value shifted, r = reduceByLog2(x, shifted, noOverflow ? 127 : 0);
  Value p = horner(r, {1.0, 1.0, 0.499999934, 0.166665206, 0.0416683881,
                       0.00836871701, 0.00138145988});
  // Results below the least normal number are 0.
  Value vanishes = less(
      x, number(mutated("expand-math.exp-vanishes-late") ? -99 : -87.3365402));
  Value exponent = exponentOf(shifted);
  if (noOverflow) // a product with 2^n, so that NaN stays
    return select(vanishes, number(0), mul(p, ofBits(exponent)));
  // f32 ends at 88.7228394, where the exponent would be that of a NaN.
  return powerWithin(x, p, exponent, vanishes, 88.7228394);
}

/// 2^n p, n where \p exponent has it: 0 where it \p vanishes, infinity from \p
/// end on, NaN where x is NaN.
Value Expansion::powerWithin(Value x, Value p, Value exponent, Value vanishes,
                             double end) {
  Value e = ofBits(arith::AddIOp::create(b, loc, bits(p), exponent));
  e = select(vanishes, number(0), e);
  if (mutated("expand-math.exp-has-no-end"))
    return e;
  return select(less(x, number(end)), e, add(x, number(infinity)));
}

/// 2^x in f32, as exp; what is left of x behind a whole number is exact, and
/// |x| does not magnify an error (minimax, 2e-9; 8e-8 with the rounding).
Value Expansion::exp2(Value x) {
  if (!isF32())
    return exp(mul(x, number(0.6931471805599453)));
  Value magic = number(roundingShift);
  Value shifted = add(x, magic), r = sub(x, sub(shifted, magic));
  Value p = horner(r, {1.0, 0.69314718, 0.240226477, 0.0555033237,
                       0.00961843692, 0.00133988739, 0.00015353362});
  return powerWithin(x, p, exponentOf(shifted), less(x, number(-126)), 128);
}

/// exp(x) - 1 in f32, to 2e-7 of itself also near 0: with p = e^r - 1, r times
/// a polynomial (minimax, 1.4e-8), it is s p - (1 - s) for s = 2^n, where the
/// product is exact and only one of the sums rounds much. That is p itself
/// where n is 0; -0 stays -0. All is halved until the end, where f32 overflows
/// as it should; -1 begins long before the least exponent.
Value Expansion::expM1(Value x, bool noOverflow) {
  x = select(less(x, number(-80)), number(-80), x);
  if (!noOverflow)
    x = select(less(number(89), x), number(89), x);
  Value shifted, r = reduceByLog2(x, shifted, /*bias=*/noOverflow ? 127 : 126);
  Value p = mul(horner(r, {1.0, 0.49999997, 0.166665465, 0.0416674353,
                           0.00836626161, 0.00138706563}),
                r);
  Value s = ofBits(exponentOf(shifted));
  Value y = sub(mul(s, p), sub(number(noOverflow ? 1 : 0.5), s));
  return noOverflow ? y : mul(y, number(2));
}

/// exp(x) - 1 in other types than f32; near 0, where that cancels, Taylor's
/// series of it, as a multiple of x so that -0 stays -0. The first term left
/// out is below 2^-54 of the sum.
Value Expansion::expM1BySeries(Value x) {
  SmallVector<double> series;
  double factorial = 1;
  for (int k = 1; k <= 15; ++k)
    series.push_back(1 / (factorial *= k));
  return nearZero(x, mul(x, horner(x, series)), sub(exp(x), number(1)));
}

/// log in f32: of x = 2^n (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), n ln 2 and f
/// and f^2 times a polynomial (minimax, 3e-8; 1e-7 with the rounding).
/// libHalide's takes half as long again and holds for normal numbers alone.
Value Expansion::log(Value x) {
  if (!isF32())
    return math::LogOp::create(b, loc, x);
  constexpr int64_t rootOfHalf = 0x3f3504f3, mantissa = (1 << 23) - 1;
  auto relaxed = arith::FastMathFlags::contract;
  Value isSmall = less(x, number(1.17549435e-38)); // not a normal number
  Value normal = select(isSmall, mul(x, number(1 << 23)), x);
  Value behind =
      arith::SubIOp::create(b, loc, bits(normal), integer(rootOfHalf));
  Value n = arith::SIToFPOp::create(
      b, loc, type, arith::ShRSIOp::create(b, loc, behind, integer(23)));
  n = select(isSmall, sub(n, number(23)), n);
  Value ofRoot = arith::AndIOp::create(b, loc, behind, integer(mantissa));
  Value f =
      sub(ofBits(arith::AddIOp::create(b, loc, ofRoot, integer(rootOfHalf))),
          number(1));
  Value p = horner(f, {-0.499999911, 0.333339512, -0.250017554, 0.199620724,
                       -0.165705085, 0.149179742, -0.143075213, 0.0873484388});
  auto productPlus = [&](Value y, Value z, Value more) -> Value {
    return arith::AddFOp::create(
        b, loc, arith::MulFOp::create(b, loc, y, z, relaxed), more, relaxed);
  };
  Value l = productPlus(n, number(0.693147182), productPlus(mul(f, f), p, f));
  l = select(less(x, number(infinity)), l, x); // NaN stays
  double ofZero = mutated("expand-math.log-of-zero") ? 0 : -infinity;
  l = select(equal(x, number(0)), number(ofZero), l);
  return select(less(x, number(0)), number(notANumber), l);
}

/// log(1 + x). Of a fraction, from 0 to 1, x times a polynomial (minimax, 3e-8;
/// 1.5e-7 in f32). Else, near 0, where 1 + x loses x, the series of 2 atanh(s)
/// for s = x / (2 + x), |s| < 1/3, to 2^-26 (f64: 2^-54) of the sum.
Value Expansion::log1p(Value x, bool isFraction) {
  if (isFraction && isF32())
    return mul(x, horner(x, {1.0, -0.499996483, 0.33321324, -0.248571634,
                             0.191536546, -0.137538031, 0.079204537,
                             -0.0300657917, 0.00536482455}));
  SmallVector<double> series;
  for (int k = 0; k < (type.isF64() ? 16 : 8); ++k)
    series.push_back(2.0 / (2 * k + 1));
  Value s = arith::DivFOp::create(b, loc, x, add(x, number(2)));
  Value near = mul(s, horner(mul(s, s), series, arith::FastMathFlags::none));
  return nearZero(x, near, log(add(x, number(1))));
}

/// IEEE 754's pow in f32. libHalide's is exp(y log(x)) without the cases where
/// that is no number though the power is one, and without signs.
Value Expansion::pow(Value x, Value y) {
  auto isWhole = [&](Value v) {
    return equal(math::FloorOp::create(b, loc, v), v);
  };
  auto isInfinite = [&](Value v) { return equal(v, number(infinity)); };
  auto no = [&](Value v) -> Value {
    Value yes = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
    return arith::XOrIOp::create(b, loc, v, yes);
  };
  Value size = math::AbsFOp::create(b, loc, x);
  Value p = exp(mul(y, log(size)));
  Value isNegative = arith::CmpIOp::create( // -0 too
      b, loc, arith::CmpIPredicate::slt, bits(x), integer(0));
  Value isOdd = both(isWhole(y), no(isWhole(mul(y, number(0.5)))));
  if (!mutated("expand-math.pow-has-no-sign"))
    p = select(both(isNegative, isOdd), mul(p, number(-1)), p);
  Value hasRoot = either(either(isWhole(y), equal(x, number(0))),
                         either(isInfinite(size), either(isNaN(x), isNaN(y))));
  p = select(both(isNegative, no(hasRoot)), number(notANumber), p);
  Value sizeOfPower = math::AbsFOp::create(b, loc, y);
  Value isOne = either(either(equal(y, number(0)), equal(x, number(1))),
                       both(equal(x, number(-1)), isInfinite(sizeOfPower)));
  return select(isOne, number(1), p);
}

/// erf in f32: x times a polynomial in x^2 (minimax relative to erf for |x| <=
/// 3.7, 4e-8; 3e-7 with the rounding), whose variable runs from -1 to 1 so that
/// no digits cancel. Beyond, the polynomial grows above 1, where it is cut off.
/// No division: with one, a vector takes twice as long. In other types
/// libHalide's, which gives NaN for infinities; beyond 10 it is 1 in any.
Value Expansion::erf(Value x) {
  if (!isF32())
    return math::ErfOp::create(b, loc, between(x, -10, 10));
  auto relaxed = arith::FastMathFlags::contract;
  Value scaled = arith::MulFOp::create(b, loc, x, number(0.146092042), relaxed);
  Value t = arith::SubFOp::create(
      b, loc, arith::MulFOp::create(b, loc, x, scaled, relaxed), number(1),
      relaxed);
  t = halide::UnboundedOp::create(b, loc, t);
  Value p =
      mul(horner(t, {0.382137477, -0.190468222, 0.140794754, -0.112629719,
                     0.0905333832, -0.0705803409, 0.0520735979, -0.035649199,
                     0.0232948754, -0.0151678305, 0.0081483284, -0.00275597908,
                     0.00164642255, -0.00180315028, 0.000695840688}),
          x);
  return mutated("expand-math.erf-grows") ? p : between(p, -1, 1);
}

/// tanh(x) in f32, where libHalide calls libm for each lane: x times a quotient
/// of polynomials in x^2, least in its largest relative error over |x| <= 8.2
/// (8e-9; 3.2e-7 in f32). It is 1 at 0, so that tiny numbers and -0 stay what
/// they are, and with FMAs 1 at 8.2 and nowhere above. Thirteen operations, of
/// which one is a division.
Value Expansion::tanh(Value x) {
  x = between(x, -8.2, mutated("expand-math.tanh-ends-early") ? 2 : 8.2);
  Value square = mul(x, x);
  Value over = horner(square, {1, 0.13432130217552185, 0.0035566953010857105,
                               2.1637408281094395e-05, 1.4840713546959705e-08});
  Value under = horner(square, {1, 0.4676545560359955, 0.026108333840966225,
                                0.00033864553552120924, 8.370674322577543e-07});
  return arith::DivFOp::create(b, loc, mul(x, over), under);
}

/// What is known of a number, unless it is NaN.
struct Known {
  bool atLeast0 = false, atMost0 = false, atMost1 = false, below88 = false;
};

/// Whether \p op is min(a, b) - max(a, b), which is 0 at most, or NaN.
bool isLeastLessMost(Operation *op) {
  if (!isa_and_nonnull<arith::SubFOp>(op))
    return false;
  auto least = op->getOperand(0).getDefiningOp<arith::MinimumFOp>();
  auto most = op->getOperand(1).getDefiningOp<arith::MaximumFOp>();
  auto both = [](Operation *of) {
    return std::pair(of->getOperand(0), of->getOperand(1));
  };
  return least && most &&
         (both(least) == both(most) ||
          both(least) == std::pair(most.getRhs(), most.getLhs()));
}

/// What is known of \p x, looking at \p depth operations.
Known rangeOf(Value x, unsigned depth = 6) {
  FloatAttr number;
  if (matchPattern(x, m_Constant(&number))) {
    double value = number.getValueAsDouble();
    return {value >= 0, value <= 0, value <= 1, value <= 88};
  }
  Operation *op = x.getDefiningOp();
  if (!op || depth == 0 || op->getNumOperands() == 0)
    return {};
  Known a = rangeOf(op->getOperand(0), depth - 1), c, known;
  if (op->getNumOperands() == 2)
    c = rangeOf(op->getOperand(1), depth - 1);
  if (isa<math::AbsFOp, math::SqrtOp, math::ExpOp, math::Exp2Op>(op))
    known.atLeast0 = true;
  if (isa<math::ExpOp, math::Exp2Op>(op)) {
    known.atMost1 = a.atMost0;
  } else if (isa<arith::NegFOp>(op)) {
    known = {a.atMost0, a.atLeast0};
  } else if (isa<arith::MulFOp>(op)) {
    known = {op->getOperand(0) == op->getOperand(1) ||
                 (a.atLeast0 && c.atLeast0) || (a.atMost0 && c.atMost0),
             (a.atLeast0 && c.atMost0) || (a.atMost0 && c.atLeast0)};
  } else if (isa<arith::AddFOp>(op)) {
    known = {a.atLeast0 && c.atLeast0, a.atMost0 && c.atMost0};
  } else if (isa<arith::SubFOp>(op)) {
    known = {a.atLeast0 && c.atMost0,
             isLeastLessMost(op) || (a.atMost0 && c.atLeast0)};
  } else if (isa<arith::MinimumFOp>(op)) {
    known = {a.atLeast0 && c.atLeast0, a.atMost0 || c.atMost0,
             a.atMost1 || c.atMost1, a.below88 || c.below88};
  } else if (isa<arith::MaximumFOp>(op)) {
    known = {a.atLeast0 || c.atLeast0, a.atMost0 && c.atMost0,
             a.atMost1 && c.atMost1, a.below88 && c.below88};
  }
  known.atMost1 |= known.atMost0;
  known.below88 |= known.atMost1;
  return known;
}

/// What \p op is, of whose operand \p known is known, written out before it;
/// null if it stays.
Value expand(OpBuilder &b, Operation *op, Known known) {
  if (op->getNumResults() != 1)
    return {};
  b.setInsertionPoint(op);
  Expansion e(b, op->getLoc(), op->getResult(0).getType());
  auto x = [&] { return op->getOperand(0); };
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](math::ExpOp) {
        return e.isF32() ? e.exp(x(), known.below88) : Value();
      })
      .Case([&](math::ExpM1Op) {
        return e.isF32() ? e.expM1(x(), known.below88) : e.expM1BySeries(x());
      })
      .Case([&](math::Exp2Op) { return e.exp2(x()); })
      .Case([&](math::LogOp) { return e.isF32() ? e.log(x()) : Value(); })
      .Case([&](math::Log1pOp) {
        return e.log1p(x(), known.atLeast0 && known.atMost1);
      })
      .Case([&](math::Log2Op) {
        return e.mul(e.log(x()), e.number(1.4426950408889634));
      })
      .Case([&](math::ErfOp) { return e.erf(x()); })
      .Case([&](math::PowFOp) {
        return e.isF32() ? e.pow(x(), op->getOperand(1)) : Value();
      })
      .Case([&](math::TanhOp) { return e.isF32() ? e.tanh(x()) : Value(); })
      .Default([](Operation *) { return Value(); });
}

struct ExpandMath : heed::impl::HalideExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    OpBuilder b(&getContext());
    // What is known of operands is read off before any of them is written out.
    SmallVector<std::pair<Operation *, Known>> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<math::MathDialect>(op->getDialect()) && op->getNumOperands())
        ops.emplace_back(op, rangeOf(op->getOperand(0)));
    });
    for (auto [op, known] : ops)
      if (Value written = expand(b, op, known)) {
        op->getResult(0).replaceAllUsesWith(written);
        op->erase();
      }
  }
};

} // namespace
