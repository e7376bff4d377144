// Expressions: a closed list of arith and math ops to Halide::Expr.
//
// Halide compiles float arithmetic as if NaN and infinity did not exist. Its
// strict intrinsics (strict_add, ...) are IEEE 754 op by op, so an op without
// fast-math flags becomes one of them. Ops with `contract` or `reassoc` become
// Halide's plain ones: that is what lets LLVM make FMAs.

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

Halide::Type heed::toHalideType(Type type) {
  if (type.isInteger(1))
    return Halide::Bool();
  if (auto integer = dyn_cast<IntegerType>(type))
    return Halide::Int(integer.getWidth());
  if (type.isBF16())
    return Halide::BFloat(16);
  return Halide::Float(cast<FloatType>(type).getWidth());
}

Expr HalideExpressions::get(Value value) {
  auto it = exprs.find(value);
  assert(it != exprs.end() &&
         "dominance guarantees that operands are translated first");
  return it->second;
}

static Expr strict(Call::IntrinsicOp op, Expr a, Expr b) {
  Halide::Type type = a.type();
  if (op == Call::strict_lt || op == Call::strict_le || op == Call::strict_eq)
    type = Halide::Bool();
  return Call::make(type, op, {a, b}, Call::PureIntrinsic);
}

static bool isFast(Operation *op) {
  auto fast = dyn_cast<arith::ArithFastMathInterface>(op);
  if (!fast)
    return false;
  arith::FastMathFlags flags = fast.getFastMathFlagsAttr().getValue();
  return bitEnumContainsAny(flags, arith::FastMathFlags::contract |
                                       arith::FastMathFlags::reassoc);
}

static bool ignoresNaN(Operation *op) {
  auto fast = dyn_cast<arith::ArithFastMathInterface>(op);
  return fast && bitEnumContainsAny(fast.getFastMathFlagsAttr().getValue(),
                                    arith::FastMathFlags::nnan);
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

static Expr isNaN(Expr x) {
  if (x.type().is_bfloat())
    x = Halide::cast<float>(x);
  Expr limit; // twice the bits of infinity: without the sign
  Expr bits =
      bitsOf(x, 0xf800, 0xff000000, UINT64_C(0xffe0000000000000), limit);
  return (bits << Halide::Internal::make_one(bits.type())) > limit;
}

static Expr isInfinity(Expr x, bool negative) {
  if (x.type().is_bfloat())
    x = Halide::cast<float>(x);
  Expr infinity;
  Expr bits = negative ? bitsOf(x, 0xfc00, 0xff800000,
                                UINT64_C(0xfff0000000000000), infinity)
                       : bitsOf(x, 0x7c00, 0x7f800000,
                                UINT64_C(0x7ff0000000000000), infinity);
  return bits == infinity;
}

static Expr compareFloats(arith::CmpFPredicate predicate, Expr a, Expr b,
                          Operation *op) {
  auto lt = [](Expr x, Expr y) { return strict(Call::strict_lt, x, y); };
  std::optional<bool> infinite[2]; // is negative
  for (unsigned k : {0, 1})
    if (FloatAttr value; matchPattern(op->getOperand(k), m_Constant(&value)) &&
                         value.getValue().isInfinity())
      infinite[k] = value.getValue().isNegative();
  auto eq = [&](Expr x, Expr y) {
    if (x.same_as(y))
      return !isNaN(x);
    if (infinite[1])
      return isInfinity(a, *infinite[1]);
    if (infinite[0])
      return isInfinity(b, *infinite[0]);
    return strict(Call::strict_eq, x, y);
  };
  // Not strict_le: Halide 21 compiles it as the negation of `y < x`, which is
  // true for NaN.
  auto le = [&](Expr x, Expr y) { return lt(x, y) || eq(x, y); };
  switch (predicate) {
  case arith::CmpFPredicate::AlwaysFalse:
    return Halide::Internal::const_false();
  case arith::CmpFPredicate::OEQ:
    return eq(a, b);
  case arith::CmpFPredicate::OGT:
    return lt(b, a);
  case arith::CmpFPredicate::OGE:
    return le(b, a);
  case arith::CmpFPredicate::OLT:
    return lt(a, b);
  case arith::CmpFPredicate::OLE:
    return le(a, b);
  case arith::CmpFPredicate::ONE:
    return lt(a, b) || lt(b, a);
  case arith::CmpFPredicate::ORD:
    return !isNaN(a) && !isNaN(b);
  case arith::CmpFPredicate::UEQ:
    return !(lt(a, b) || lt(b, a));
  case arith::CmpFPredicate::UGT:
    return !le(a, b);
  case arith::CmpFPredicate::UGE:
    return !lt(a, b);
  case arith::CmpFPredicate::ULT:
    return !le(b, a);
  case arith::CmpFPredicate::ULE:
    return !lt(b, a);
  case arith::CmpFPredicate::UNE:
    return !eq(a, b);
  case arith::CmpFPredicate::UNO:
    return isNaN(a) || isNaN(b);
  case arith::CmpFPredicate::AlwaysTrue:
    return Halide::Internal::const_true();
  }
  throw TranslationError{op, "unknown float predicate"};
}

static Expr asUnsigned(Expr x) {
  return Halide::cast(x.type().with_code(halide_type_uint), x);
}

static Expr compareIntegers(arith::CmpIPredicate predicate, Expr a, Expr b,
                            Operation *op) {
  if (a.type().is_bool() && predicate != arith::CmpIPredicate::eq &&
      predicate != arith::CmpIPredicate::ne)
    throw TranslationError{op, "order of i1 values is not supported"};
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return a < b;
  case arith::CmpIPredicate::sle:
    return a <= b;
  case arith::CmpIPredicate::sgt:
    return a > b;
  case arith::CmpIPredicate::sge:
    return a >= b;
  case arith::CmpIPredicate::ult:
    return asUnsigned(a) < asUnsigned(b);
  case arith::CmpIPredicate::ule:
    return asUnsigned(a) <= asUnsigned(b);
  case arith::CmpIPredicate::ugt:
    return asUnsigned(a) > asUnsigned(b);
  case arith::CmpIPredicate::uge:
    return asUnsigned(a) >= asUnsigned(b);
  }
  throw TranslationError{op, "unknown integer predicate"};
}

/// Halide divides so that the remainder is never negative: for positive
/// divisors that is the floor.
static Expr floorDiv(Expr a, Expr b) {
  if (Halide::Internal::is_positive_const(b))
    return a / b;
  return Halide::select(b > 0, a / b, (-a) / (-b));
}

/// \p b without zeros: a lane that a guard switches off is divided too, and its
/// divisor may be 0, which would stop the process.
static Expr divisor(Expr b) {
  if (Halide::Internal::is_const(b) && !Halide::Internal::is_const_zero(b))
    return b;
  Expr one = Halide::Internal::make_one(b.type());
  return Halide::select(b == Halide::Internal::make_zero(b.type()), one, b);
}

static Expr constant(arith::ConstantOp op) {
  Halide::Type type = toHalideType(op.getType());
  if (auto value = dyn_cast<IntegerAttr>(op.getValue())) {
    if (type.is_bool())
      return Halide::Internal::make_const(type,
                                          value.getValue().getZExtValue());
    return Halide::Internal::make_const(type, value.getValue().getSExtValue());
  }
  APFloat value = cast<FloatAttr>(op.getValue()).getValue();
  // By its bits where a decimal form would not do: Halide folds NaN and
  // infinity in ways of its own.
  if (!value.isFinite()) {
    uint64_t bits = value.bitcastToAPInt().getZExtValue();
    Halide::Type raw = Halide::UInt(type.bits());
    return Halide::reinterpret(type, Halide::Internal::make_const(raw, bits));
  }
  bool loses;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
  return Halide::Internal::make_const(type, value.convertToDouble());
}

Expr HalideExpressions::translateArith(Operation *op) {
  auto operand = [&](unsigned k) { return get(op->getOperand(k)); };
  auto floats = [&](Call::IntrinsicOp strictOp, auto plain) -> Expr {
    Expr a = operand(0), b = operand(1);
    return isFast(op) ? plain(a, b) : strict(strictOp, a, b);
  };
  auto cast = [&](Expr value) {
    return Halide::cast(toHalideType(op->getResult(0).getType()), value);
  };
  auto unsignedly = [&](auto apply) {
    return Halide::cast(operand(0).type(),
                        apply(asUnsigned(operand(0)), asUnsigned(operand(1))));
  };
  // The larger where `greater`, of floats; NaN as `propagate` says.
  auto extreme = [&](bool greater, bool propagate) -> Expr {
    Expr a = operand(0), b = operand(1);
    if (ignoresNaN(op))
      return greater ? Halide::max(a, b) : Halide::min(a, b);
    Expr takeA =
        greater ? strict(Call::strict_lt, b, a) : strict(Call::strict_lt, a, b);
    return propagate ? Halide::select(takeA || isNaN(a), a, b)
                     : Halide::select(takeA || isNaN(b), a, b);
  };
  bool isBool =
      op->getNumResults() == 1 && op->getResult(0).getType().isInteger(1);
  return TypeSwitch<Operation *, Expr>(op)
      .Case([&](arith::ConstantOp c) { return constant(c); })
      .Case([&](arith::AddFOp) {
        return floats(Call::strict_add, [](Expr a, Expr b) { return a + b; });
      })
      .Case([&](arith::SubFOp) {
        return floats(Call::strict_sub, [](Expr a, Expr b) { return a - b; });
      })
      .Case([&](arith::MulFOp) {
        return floats(Call::strict_mul, [](Expr a, Expr b) { return a * b; });
      })
      .Case([&](arith::DivFOp) {
        return floats(Call::strict_div, [](Expr a, Expr b) { return a / b; });
      })
      .Case([&](arith::NegFOp) {
        Expr x = operand(0);
        return strict(Call::strict_mul, x,
                      Halide::Internal::make_const(x.type(), -1.0));
      })
      .Case([&](arith::MaximumFOp) { return extreme(true, true); })
      .Case([&](arith::MinimumFOp) { return extreme(false, true); })
      .Case([&](arith::MaxNumFOp) { return extreme(true, false); })
      .Case([&](arith::MinNumFOp) { return extreme(false, false); })
      .Case([&](arith::CmpFOp cmp) {
        return compareFloats(cmp.getPredicate(), operand(0), operand(1), op);
      })
      .Case([&](arith::CmpIOp cmp) {
        return compareIntegers(cmp.getPredicate(), operand(0), operand(1), op);
      })
      .Case([&](arith::SelectOp) {
        return Halide::select(operand(0), operand(1), operand(2));
      })
      .Case([&](arith::AddIOp) {
        return isBool ? operand(0) != operand(1) : operand(0) + operand(1);
      })
      .Case([&](arith::SubIOp) {
        return isBool ? operand(0) != operand(1) : operand(0) - operand(1);
      })
      .Case([&](arith::MulIOp) {
        return isBool ? operand(0) && operand(1) : operand(0) * operand(1);
      })
      .Case([&](arith::DivSIOp) {
        return Halide::div_round_to_zero(operand(0), divisor(operand(1)));
      })
      .Case([&](arith::RemSIOp) {
        return Halide::mod_round_to_zero(operand(0), divisor(operand(1)));
      })
      .Case(
          [&](arith::FloorDivSIOp) { return floorDiv(operand(0), operand(1)); })
      .Case([&](arith::CeilDivSIOp) {
        return -floorDiv(-operand(0), operand(1));
      })
      .Case([&](arith::DivUIOp) {
        return unsignedly([](Expr a, Expr b) { return a / b; });
      })
      .Case([&](arith::RemUIOp) {
        return unsignedly([](Expr a, Expr b) { return a % b; });
      })
      .Case([&](arith::MaxSIOp) { return Halide::max(operand(0), operand(1)); })
      .Case([&](arith::MinSIOp) { return Halide::min(operand(0), operand(1)); })
      .Case([&](arith::MaxUIOp) {
        return unsignedly([](Expr a, Expr b) { return Halide::max(a, b); });
      })
      .Case([&](arith::MinUIOp) {
        return unsignedly([](Expr a, Expr b) { return Halide::min(a, b); });
      })
      .Case([&](arith::AndIOp) {
        return isBool ? operand(0) && operand(1) : operand(0) & operand(1);
      })
      .Case([&](arith::OrIOp) {
        return isBool ? operand(0) || operand(1) : operand(0) | operand(1);
      })
      .Case([&](arith::XOrIOp) {
        return isBool ? operand(0) != operand(1) : operand(0) ^ operand(1);
      })
      .Case([&](arith::ShLIOp) { return operand(0) << asUnsigned(operand(1)); })
      .Case(
          [&](arith::ShRSIOp) { return operand(0) >> asUnsigned(operand(1)); })
      .Case([&](arith::ShRUIOp) {
        return Halide::cast(operand(0).type(),
                            asUnsigned(operand(0)) >> asUnsigned(operand(1)));
      })
      .Case<arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp, arith::FPToSIOp,
            arith::ExtSIOp, arith::TruncIOp>([&](auto typed) -> Expr {
        Expr x = operand(0);
        // i1 is signed in extsi and sitofp: true is -1.
        if (x.type().is_bool() && isa<arith::ExtSIOp, arith::SIToFPOp>(op))
          return Halide::select(x, cast(Expr(-1)), cast(Expr(0)));
        if (isBool) // trunci keeps the lowest bit
          return (x & Halide::Internal::make_one(x.type())) !=
                 Halide::Internal::make_zero(x.type());
        return cast(x);
      })
      .Case<arith::ExtUIOp, arith::UIToFPOp>([&](auto) {
        return cast(operand(0).type().is_bool() ? operand(0)
                                                : asUnsigned(operand(0)));
      })
      .Case([&](arith::BitcastOp) {
        return Halide::reinterpret(toHalideType(op->getResult(0).getType()),
                                   operand(0));
      })
      .Default([&](Operation *) { return Expr(); });
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

/// exp in f32: x = n ln 2 + r, the power of two by adding n to the exponent,
/// e^r by a polynomial (minimax for |r| <= ln 2 / 2, 3e-9; 9e-8 with the
/// rounding). libHalide's own takes twice the instructions and holds for finite
/// results alone. n is rounded by adding 1.5 * 2^23, whose low bits then hold
/// it.
static Expr exactExp(Expr x) {
  if (x.type().bits() != 32)
    return Halide::exp(x);
  auto number = [&](double v) { return floatConstant(x.type(), v); };
  auto less = [](Expr a, Expr b) { return strict(Call::strict_lt, a, b); };
  auto times = [](Expr a, Expr b) { return strict(Call::strict_mul, a, b); };
  auto minus = [](Expr a, Expr b) { return strict(Call::strict_sub, a, b); };
  Expr magic = number(12582912.0);
  Expr shifted =
      strict(Call::strict_add, times(x, number(1.44269504088896)), magic);
  Expr n = minus(shifted, magic);
  // ln 2 in two parts: the product of n and the first is exact.
  Expr r = minus(x - n * number(0.693359375), times(n, number(-2.12194440e-4)));
  Expr p = number(0.00138145988);
  for (double c :
       {0.00836871701, 0.0416683881, 0.166665206, 0.499999934, 1.0, 1.0})
    p = p * r + number(c);
  Halide::Type bits = Halide::Int(32, x.type().lanes());
  Expr e = Halide::reinterpret(x.type(),
                               Halide::reinterpret(bits, p) +
                                   (Halide::reinterpret(bits, shifted)
                                    << Halide::Internal::make_const(bits, 23)));
  // Results below the least normal number are 0. Where f32 ends, and for NaN,
  // it is x times infinity.
  e = Halide::select(less(x, number(-87.3365402)), number(0), e);
  return Halide::select(less(x, number(88.7228470)), e,
                        times(x, number(INFINITY)));
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

/// Halide's erf gives NaN for infinities; beyond 10 it is 1 in any float type.
static Expr exactErf(Expr x) {
  Expr limit = floatConstant(x.type(), 10), low = floatConstant(x.type(), -10);
  Expr inside = Halide::select(strict(Call::strict_lt, limit, x), limit, x);
  return Halide::erf(
      Halide::select(strict(Call::strict_lt, inside, low), low, inside));
}

Expr HalideExpressions::translateMath(Operation *op) {
  auto operand = [&](unsigned k) { return get(op->getOperand(k)); };
  auto number = [&](double value) {
    return Halide::Internal::make_const(operand(0).type(), value);
  };
  return TypeSwitch<Operation *, Expr>(op)
      .Case([&](math::ExpOp) { return exactExp(operand(0)); })
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

bool HalideExpressions::translateExpression(Operation *op) {
  if (auto readOp = dyn_cast<halide::ReadOp>(op)) {
    std::vector<Expr> coordinates;
    for (Value c : readOp.getCoordinates())
      coordinates.push_back(get(c));
    std::vector<Expr> values = read(readOp.getFunc(), coordinates);
    for (auto [result, value] : llvm::zip(readOp.getValues(), values))
      set(result, value);
    return true;
  }
  Expr value;
  if (auto mux = dyn_cast<halide::MuxOp>(op)) {
    std::vector<Expr> values;
    for (Value v : mux.getValues())
      values.push_back(get(v));
    value = values.size() == 1 ? values[0]
                               : Halide::mux(get(mux.getIndex()), values);
  } else if (auto mod = dyn_cast<halide::ModOp>(op)) {
    value = get(mod.getLhs()) % get(mod.getRhs());
  } else if (auto undef = dyn_cast<halide::UndefOp>(op)) {
    value = Halide::undef(toHalideType(undef.getResult().getType()));
  } else if (auto extent = dyn_cast<halide::ExtentOp>(op)) {
    value = bound(extent.getFunc(), extent.getDim(), true);
  } else if (auto factor = dyn_cast<halide::FactorOp>(op)) {
    halide::SplitOp split = factor.getSplit();
    value = split.getDynamicFactor()
                ? get(split.getDynamicFactor())
                : Expr(static_cast<int32_t>(*split.getFactor()));
  } else if (auto min = dyn_cast<halide::MinOp>(op)) {
    value = bound(min.getFunc(), min.getDim(), false);
  } else if (isa<arith::ArithDialect>(op->getDialect())) {
    for (Type type : llvm::concat<Type>(llvm::to_vector(op->getOperandTypes()),
                                        llvm::to_vector(op->getResultTypes())))
      if (!type.isIntOrFloat())
        throw TranslationError{
            op, "has no counterpart in Halide, which knows scalars alone"};
    value = translateArith(op);
  } else if (isa<math::MathDialect>(op->getDialect())) {
    value = translateMath(op);
  } else {
    return false;
  }
  if (!value.defined())
    throw TranslationError{op, "has no counterpart in Halide"};
  set(op->getResult(0), value);
  return true;
}
