//===- IndexMath.cpp - index arithmetic of a pipeline ---------------------===//
#include "passes/Lower/IndexMath.h"

#include "dialects/Halide/HalideDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace heed;

namespace {

/// weight * L + offset, where L bounds every loop and size.
struct Bound {
  int64_t weight = 0, offset = 0;
  bool operator<(const Bound &other) const {
    return std::pair(weight, offset) < std::pair(other.weight, other.offset);
  }
  Bound operator+(const Bound &other) const {
    return {weight + other.weight, offset + other.offset};
  }
  Bound operator*(int64_t by) const { return {weight * by, offset * by}; }
};

/// A value is between -low and high.
struct Reach {
  Bound low, high;
  Bound magnitude() const { return std::max(low, high); }
};

/// Of an i32: more than any bound that fits.
constexpr Bound kAny{1 << 20, 0};
/// Sums of more terms would leave too little to loops and sizes.
constexpr int64_t kMaxWeight = 4;
constexpr int64_t kMaxConstant = 1 << 28;

std::optional<int64_t> constantOf(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  auto integer =
      constant ? dyn_cast<IntegerAttr>(constant.getValue()) : IntegerAttr();
  if (!integer)
    return std::nullopt;
  return integer.getInt();
}

/// What values reach, each looked at once: x - x / 7 * 7 reads x twice, and so
/// may x.
class Reaches {
public:
  /// \p isData: scalars of the pipeline are the user's, no sizes.
  Reach of(Value value, bool isData);
  Reach ofOp(StringRef op, ArrayRef<Value> operands, bool isData);

private:
  Reach compute(Value value, bool isData);

  DenseMap<std::pair<Value, unsigned>, Reach> known;
  unsigned depth = 0;
};

template <typename... Ops> bool is(StringRef name) {
  return ((name == Ops::getOperationName()) || ...);
}

Reach Reaches::ofOp(StringRef op, ArrayRef<Value> operands, bool isData) {
  SmallVector<Reach, 2> of;
  for (Value operand : operands)
    of.push_back(this->of(operand, isData));
  if (is<arith::AddIOp>(op))
    return {of[0].low + of[1].low, of[0].high + of[1].high};
  if (is<arith::SubIOp>(op))
    return {of[0].low + of[1].high, of[0].high + of[1].low};
  if (is<arith::MulIOp>(op)) {
    for (unsigned k : {0, 1})
      if (std::optional<int64_t> by = constantOf(operands[k]);
          by && std::abs(*by) < kMaxConstant) {
        Reach other = of[1 - k];
        if (*by < 0)
          std::swap(other.low, other.high);
        return {other.low * std::abs(*by), other.high * std::abs(*by)};
      }
    return {kAny, kAny};
  }
  if (is<arith::MinSIOp>(op))
    return {std::max(of[0].low, of[1].low), std::min(of[0].high, of[1].high)};
  if (is<arith::MaxSIOp>(op))
    return {std::min(of[0].low, of[1].low), std::max(of[0].high, of[1].high)};
  if (is<arith::SelectOp>(op))
    return {std::max(of[1].low, of[2].low), std::max(of[1].high, of[2].high)};
  if (is<math::AbsIOp>(op))
    return {Bound(), of[0].magnitude()};
  if (is<arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp>(op))
    return {of[0].magnitude(), of[0].magnitude()};
  if (is<arith::RemSIOp>(op))
    return {of[1].magnitude(), of[1].magnitude()};
  if (is<halide::ModOp>(op))
    return {Bound(), of[1].magnitude()};
  return {kAny, kAny};
}

Reach Reaches::of(Value value, bool isData) {
  auto [it, isNew] = known.try_emplace({value, isData}, Reach{kAny, kAny});
  if (!isNew || depth > 100)
    return it->second;
  ++depth;
  Reach reach = compute(value, isData);
  --depth;
  // Far beyond what fits, so that nothing here wraps.
  for (Bound *side : {&reach.low, &reach.high})
    if (side->weight >= kAny.weight || side->offset > 4 * kMaxConstant)
      *side = kAny;
  return known[{value, isData}] = reach;
}

Reach Reaches::compute(Value value, bool isData) {
  if (std::optional<int64_t> constant = constantOf(value)) {
    // As a bound of either side: 0 where it is on the other.
    if (*constant <= -kMaxConstant || *constant >= kMaxConstant)
      return {kAny, kAny};
    return {{0, std::max<int64_t>(-*constant, 0)},
            {0, std::max<int64_t>(*constant, 0)}};
  }
  if (isa<BlockArgument>(value)) // a loop
    return {Bound(), {1, 0}};
  Operation *op = value.getDefiningOp();
  if (isa<halide::ExtentOp>(op))
    return {Bound(), {1, 0}};
  if (isa<halide::LikelyOp>(op))
    return of(op->getOperand(0), isData);
  if (isa<halide::ParamOp>(op) && !isData)
    return {{1, 0}, {1, 0}};
  if (isa<arith::ExtUIOp>(op) &&
      op->getOperand(0).getType().getIntOrFloatBitWidth() < 16)
    return {Bound(), {0, 1 << 8}};
  if (isa<arith::ExtSIOp>(op)) {
    unsigned width = op->getOperand(0).getType().getIntOrFloatBitWidth();
    if (width < 32)
      return {{0, int64_t(1) << (width - 1)}, {0, int64_t(1) << (width - 1)}};
    return of(op->getOperand(0), /*isData=*/true);
  }
  bool isMath = isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
  if (!value.getType().isInteger(32) || !(isMath || isa<halide::ModOp>(op)) ||
      !llvm::all_of(op->getOperandTypes(), llvm::IsaPred<IntegerType>))
    return {kAny, kAny};
  return ofOp(op->getName().getStringRef(),
              SmallVector<Value, 3>(op->getOperands()), isData);
}

bool growsAtMost(const Bound &bound, int64_t &largest) {
  if (bound.weight > kMaxWeight || bound.offset >= kMaxConstant)
    return false;
  if (bound.weight > 1 || bound.offset > 0xffff)
    largest =
        std::min<int64_t>(largest, (INT32_MAX - bound.offset) /
                                       std::max<int64_t>(bound.weight, 1));
  return true;
}

} // namespace

Value IndexMath::asNarrow(Value x) {
  if (x.getType().isInteger(32))
    return x;
  auto ext = x.getDefiningOp<arith::ExtSIOp>();
  bool is = ext && ext.getIn().getType().isInteger(32);
  return is ? ext.getIn() : Value();
}

Value IndexMath::narrow(OpBuilder &b, Location loc, Value x) {
  if (Value known = asNarrow(x))
    return known;
  return arith::TruncIOp::create(b, loc, b.getI32Type(), x);
}

Value IndexMath::wide(Value x) {
  if (x.getType().isInteger(64))
    return x;
  return arith::ExtSIOp::create(b, loc, b.getI64Type(), x);
}

bool IndexMath::isNonNegative(Value x) {
  Value narrow = asNarrow(x);
  return narrow &&
         !(Bound() < Reaches().of(narrow, /*isData=*/x != narrow).low);
}

/// Whether \p op on these as i32 is what it is on them as i64.
bool IndexMath::fits(StringRef op, ArrayRef<Value> operands) {
  for (Value operand : operands)
    if (!operand.getType().isInteger(1) && !asNarrow(operand))
      return false;
  // What compares or chooses does not grow.
  if (is<arith::CmpIOp, arith::MinSIOp, arith::MaxSIOp, arith::SelectOp,
         halide::ModOp, arith::RemSIOp>(op))
    return true;
  Reach reach = Reaches().ofOp(op, operands, /*isData=*/false);
  return growsAtMost(reach.low, largest) && growsAtMost(reach.high, largest);
}

bool IndexMath::unify(StringRef op, MutableArrayRef<Value> operands) {
  bool isNarrow = fits(op, operands), isData = false;
  for (Value &operand : operands) {
    if (operand.getType().isInteger(1))
      continue;
    isData |= isNarrow && operand.getType().isInteger(64);
    operand = isNarrow ? asNarrow(operand) : wide(operand);
  }
  return isData;
}

template <typename Op> Value IndexMath::make(Value x, Value y) {
  SmallVector<Value> operands{x, y};
  bool isData = unify(Op::getOperationName(), operands);
  Value result = Op::create(b, loc, operands[0], operands[1]);
  return isData ? wide(result) : result;
}

Value IndexMath::add(Value x, Value y) { return make<arith::AddIOp>(x, y); }
Value IndexMath::mul(Value x, Value y) { return make<arith::MulIOp>(x, y); }
Value IndexMath::floorDiv(Value x, Value y) {
  return make<arith::FloorDivSIOp>(x, y);
}
Value IndexMath::ceilDiv(Value x, Value y) {
  return make<arith::CeilDivSIOp>(x, y);
}
Value IndexMath::mod(Value x, Value y) { return make<halide::ModOp>(x, y); }

Value IndexMath::constant(int64_t value) {
  if (value < INT32_MIN || value > INT32_MAX)
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
}
