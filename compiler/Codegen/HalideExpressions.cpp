// Expressions: a closed list of arith ops to Halide::Expr; those of math stand
// in HalideMath.cpp.
//
// Halide compiles float arithmetic as if NaN and infinity did not exist. Its
// strict intrinsics (strict_add, ...) are IEEE 754 op by op, so an op without
// fast-math flags becomes one of them. Ops with `contract` or `reassoc` become
// Halide's plain ones: that is what lets LLVM make FMAs.

#include "compiler/Codegen/HalideMath.h"
#include "compiler/Codegen/HalideTranslate.h"
#include "compiler/Codegen/HalideWraps.h"
#include "dialects/Halide/Target.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "support/Format.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace heed;
using Halide::Expr;
using Halide::Internal::Call;

bool HalideExpressions::isBits(Type type) const {
  return halvesAsBits && (type.isF16() || type.isBF16());
}

Halide::Type HalideExpressions::typeOf(Type type) const {
  if (type.isInteger(1))
    return Halide::Bool();
  if (isBits(type))
    return Halide::UInt(16);
  if (auto integer = dyn_cast<IntegerType>(type))
    return Halide::Int(integer.getWidth());
  if (type.isBF16())
    return Halide::BFloat(16);
  return Halide::Float(cast<FloatType>(type).getWidth());
}

Halide::Type HalideExpressions::numberType(Type type) const {
  return isBits(type) ? Halide::Float(32) : typeOf(type);
}

Expr HalideExpressions::number(Value value) {
  Type type = value.getType();
  return isBits(type) ? widened(get(value), type) : get(value);
}

/// By its bits, where a decimal form would not do: Halide folds NaN and
/// infinity in ways of its own.
static Expr byBits(APFloat value, Halide::Type type) {
  bool loses;
  if (type == Halide::Float(32)) // of an f16 or bf16, too
    value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &loses);
  uint64_t bits = value.bitcastToAPInt().getZExtValue();
  return Halide::reinterpret(
      type, Halide::Internal::make_const(Halide::UInt(type.bits()), bits));
}

Expr HalideExpressions::get(Value value) {
  auto it = exprs.find(value);
  assert(it != exprs.end() &&
         "dominance guarantees that operands are translated first");
  return it->second;
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

/// Whether an op's result is only written to an output of the pipeline: then
/// nothing in the kernel reads what a cast has rounded.
static bool isOnlyStored(Operation *op) {
  auto func = op->getParentOfType<halide::FuncOp>();
  auto isStored = [](Operation *user) { return isa<halide::YieldOp>(user); };
  auto isOutput = [](Operation *user) {
    return isa<halide::OutputOp>(user) ||
           !isa<halide::ReadOp, halide::UpdateOp>(user);
  };
  return func && op->getParentOp() == func &&
         llvm::all_of(op->getUsers(), isStored) &&
         llvm::all_of(func->getUsers(), isOutput) &&
         llvm::any_of(func->getUsers(), [](Operation *user) {
           return isa<halide::OutputOp>(user);
         });
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

static Expr constant(arith::ConstantOp op, Halide::Type type) {
  if (auto value = dyn_cast<IntegerAttr>(op.getValue())) {
    if (type.is_bool())
      return Halide::Internal::make_const(type,
                                          value.getValue().getZExtValue());
    return Halide::Internal::make_const(type, value.getValue().getSExtValue());
  }
  APFloat value = cast<FloatAttr>(op.getValue()).getValue();
  if (!type.is_float())
    return Halide::Internal::make_const(type,
                                        value.bitcastToAPInt().getZExtValue());
  if (!value.isFinite())
    return byBits(value, type);
  bool loses;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
  return Halide::Internal::make_const(type, value.convertToDouble());
}

static FloatAttr constantZero(Value value) {
  FloatAttr zero;
  return matchPattern(throughReads(value), m_Constant(&zero)) &&
                 zero.getValue().isZero()
             ? zero
             : FloatAttr();
}

/// Whether \p value is made of constants alone; \p depth ops are looked at, one
/// in another.
static bool isConstant(Value value, unsigned depth = 8) {
  value = throughReads(value);
  Operation *op = value.getDefiningOp();
  if (!op || !depth)
    return false;
  return op->hasTrait<OpTrait::ConstantLike>() ||
         (isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
          llvm::all_of(op->getOperands(), [&](Value operand) {
            return isConstant(operand, depth - 1);
          }));
}

/// Whether \p value may be known when a kernel is compiled, and NaN, infinite,
/// or so large that a product with another one is: a literal, what is computed
/// of literals, or a choice of such.
static bool isConstantNotFinite(Value value) {
  constexpr int largest = 40; // of binary exponents; f32 has 127
  value = throughReads(value);
  FloatAttr number;
  if (matchPattern(value, m_Constant(&number)))
    return !number.getValue().isFinite() ||
           (!number.getValue().isZero() && ilogb(number.getValue()) > largest);
  if (!isa<FloatType>(value.getType()))
    return false;
  if (auto select = value.getDefiningOp<arith::SelectOp>())
    return isConstantNotFinite(select.getTrueValue()) ||
           isConstantNotFinite(select.getFalseValue());
  return isConstant(value);
}

/// \p x, whose value LLVM does not know: what it makes of numbers that it does
/// may be NaN, which it takes for anything in a plain sum or product. Devices'
/// compilers have no such fence.
static Expr hidden(Expr x, Operation *op) {
  if (!x.type().is_float() || halide::getTarget(op).isGPU())
    return x;
  return Call::make(x.type(),
                    format("llvm.arithmetic.fence.f{}", x.type().bits()), {x},
                    Call::PureExtern);
}

static bool isProductWithZero(Value value) {
  auto product = throughReads(value).getDefiningOp<arith::MulFOp>();
  return product &&
         (constantZero(product.getLhs()) || constantZero(product.getRhs()));
}

/// Long: one case for each op of arith.
Expr HalideExpressions::translateArith(Operation *op) {
  auto operand = [&](unsigned k) { return number(op->getOperand(k)); };
  // A choice may differ from lane to lane: the strict op will do, as it does
  // for an infinity that meets what is not known.
  auto known = [&](unsigned k) {
    Value value = throughReads(op->getOperand(k));
    FloatAttr number;
    bool isKnown =
        llvm::all_of(op->getOperands(), [](Value v) { return isConstant(v); });
    bool hides = isConstantNotFinite(value) &&
                 !value.getDefiningOp<arith::SelectOp>() &&
                 (isKnown || !matchPattern(value, m_Constant(&number)) ||
                  !number.getValue().isInfinity());
    return hides ? hidden(operand(k), op) : operand(k);
  };
  auto floats = [&](Call::IntrinsicOp strictOp, auto plain) -> Expr {
    Expr a = known(0), b = known(1);
    return isFast(op) && llvm::none_of(op->getOperands(), isConstantNotFinite)
               ? plain(a, b)
               : strict(strictOp, a, b);
  };
  auto cast = [&](Expr value) {
    return Halide::cast(numberType(op->getResult(0).getType()), value);
  };
  auto unsignedly = [&](auto apply) {
    return Halide::cast(operand(0).type(),
                        apply(asUnsigned(operand(0)), asUnsigned(operand(1))));
  };
  auto integers = [&](auto apply) {
    return mayWrap(op) ? unsignedly(apply) : apply(operand(0), operand(1));
  };
  // The larger where `greater`, of floats; NaN as `propagate` says.
  auto extreme = [&](bool greater, bool propagate) -> Expr {
    Expr a = operand(0), b = operand(1);
    if (ignoresNaN(op))
      return greater ? Halide::max(a, b) : Halide::min(a, b);
    // A number that is known is no NaN: the other one is taken unless it is
    // beyond, which is one instruction.
    if (propagate) {
      FloatAttr number;
      for (unsigned k = 0; k < 2; ++k)
        if (matchPattern(op->getOperand(k), m_Constant(&number)) &&
            !number.getValue().isNaN()) {
          Expr known = operand(k), x = operand(1 - k);
          Expr isBeyond = greater ? strict(Call::strict_lt, x, known)
                                  : strict(Call::strict_lt, known, x);
          return Halide::select(isBeyond, known, x);
        }
    }
    Expr takeA =
        greater ? strict(Call::strict_lt, b, a) : strict(Call::strict_lt, a, b);
    return propagate ? Halide::select(takeA || isNaN(a), a, b)
                     : Halide::select(takeA || isNaN(b), a, b);
  };
  bool isBool =
      op->getNumResults() == 1 && op->getResult(0).getType().isInteger(1);
  return TypeSwitch<Operation *, Expr>(op)
      .Case(
          [&](arith::ConstantOp c) { return constant(c, typeOf(c.getType())); })
      .Case([&](arith::AddFOp) {
        return floats(Call::strict_add, [](Expr a, Expr b) { return a + b; });
      })
      .Case([&](arith::SubFOp) {
        return floats(Call::strict_sub, [](Expr a, Expr b) { return a - b; });
      })
      .Case([&](arith::MulFOp) {
        // Halide takes 0 times anything for 0, and LLVM a product with that.
        for (unsigned k : {0, 1})
          if (FloatAttr zero = constantZero(op->getOperand(k)))
            return strict(Call::strict_mul, known(1 - k),
                          byBits(zero.getValue(), operand(k).type()));
        if (llvm::any_of(op->getOperands(), isProductWithZero))
          return strict(Call::strict_mul, operand(0), operand(1));
        return floats(Call::strict_mul, [](Expr a, Expr b) { return a * b; });
      })
      .Case([&](arith::DivFOp) -> Expr {
        // Halide refuses to divide by a zero that it sees. The product with
        // the infinity of its sign is the same in every case.
        if (FloatAttr zero = constantZero(op->getOperand(1))) {
          Expr x = known(0);
          APFloat inf = APFloat::getInf(zero.getValue().getSemantics(),
                                        zero.getValue().isNegative());
          return strict(Call::strict_mul, x, hidden(byBits(inf, x.type()), op));
        }
        if (FloatAttr zero = constantZero(op->getOperand(0)))
          return strict(Call::strict_div,
                        hidden(byBits(zero.getValue(), operand(0).type()), op),
                        known(1));
        return floats(Call::strict_div, [](Expr a, Expr b) { return a / b; });
      })
      .Case([&](arith::NegFOp) {
        Expr x = operand(0);
        return strict(Call::strict_mul, x,
                      Halide::Internal::make_const(x.type(), -1.0));
      })
      .Case([&](arith::MaximumFOp) { return extreme(true, true); })
      .Case([&](arith::MinimumFOp) { return extreme(false, true); })
      .Case([&](arith::MaxNumFOp max) {
        // One instruction of CUDA's, which LLVM knows by the intrinsic's name.
        if (max.getType().isF32() && halide::getTarget(op).gpu == "cuda")
          return Call::make(Halide::Float(32), "llvm.maxnum.f32",
                            {operand(0), operand(1)}, Call::PureExtern);
        return extreme(true, false);
      })
      .Case([&](arith::MinNumFOp) { return extreme(false, false); })
      .Case([&](arith::CmpFOp cmp) {
        return compareFloats(cmp.getPredicate(), operand(0), operand(1), op);
      })
      .Case([&](arith::CmpIOp cmp) {
        return compareIntegers(cmp.getPredicate(), operand(0), operand(1), op);
      })
      .Case([&](arith::SelectOp) -> Expr {
        // Of a select of conditions Halide trims loops by one side alone.
        if (isBool)
          return (operand(0) && operand(1)) || (!operand(0) && operand(2));
        return Halide::select(operand(0), get(op->getOperand(1)),
                              get(op->getOperand(2)));
      })
      .Case([&](arith::AddIOp) {
        return isBool ? operand(0) != operand(1)
                      : integers([](Expr a, Expr b) { return a + b; });
      })
      .Case([&](arith::SubIOp) {
        return isBool ? operand(0) != operand(1)
                      : integers([](Expr a, Expr b) { return a - b; });
      })
      .Case([&](arith::MulIOp) {
        return isBool ? operand(0) && operand(1)
                      : integers([](Expr a, Expr b) { return a * b; });
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
        if (op->getResult(0).getType().isF16() && x.type().bits() == 32 &&
            x.type().is_float() && !halvesAsBits && !isOnlyStored(op))
          x = roundedToHalf(x);
        return cast(x);
      })
      .Case<arith::ExtUIOp, arith::UIToFPOp>([&](auto) {
        return cast(operand(0).type().is_bool() ? operand(0)
                                                : asUnsigned(operand(0)));
      })
      .Case([&](arith::BitcastOp) {
        return Halide::reinterpret(typeOf(op->getResult(0).getType()),
                                   get(op->getOperand(0)));
      })
      .Default([&](Operation *) { return Expr(); });
}

/// Long: one case for each op of an expression.
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
  } else if (auto likely = dyn_cast<halide::LikelyOp>(op)) {
    value = Halide::likely(get(likely.getValue()));
  } else if (auto unbounded = dyn_cast<halide::UnboundedOp>(op)) {
    value = heed::unbounded(get(unbounded.getValue()));
  } else if (auto exp2 = dyn_cast<halide::DeviceExp2Op>(op)) {
    if (halide::getTarget(op).gpu != "cuda")
      throw TranslationError{op, "stands in a pipeline for another target, "
                                 "expected CUDA's"};
    // LLVM knows its intrinsic by the name.
    value = Call::make(Halide::Float(32), "llvm.nvvm.ex2.approx.ftz.f",
                       {get(exp2.getX())}, Call::PureExtern);
  } else if (auto undef = dyn_cast<halide::UndefOp>(op)) {
    value = Halide::undef(typeOf(undef.getResult().getType()));
  } else if (auto giveUp = dyn_cast<halide::GiveUpOp>(op)) {
    // A branch: a call takes as long as the rest of a small tile's end.
    Expr yes = get(giveUp.getCondition());
    Expr call =
        Call::make(Halide::Float(32), "heed_kernel_gives_up",
                   {Halide::user_context_value(), Halide::cast<int32_t>(yes)},
                   Call::Extern);
    value =
        Call::make(Halide::Float(32), Call::if_then_else,
                   {yes, call, Halide::cast<float>(1)}, Call::PureIntrinsic);
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
  Type type = op->getResult(0).getType();
  if (isBits(type) && value.type().is_float())
    value = narrowed(value, type);
  set(op->getResult(0), value);
  return true;
}
