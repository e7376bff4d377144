//===- WindowTerms.cpp - what a sum over windows adds, and where ----------===//
#include "passes/Schedule/WindowTerms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;

bool heed::dependsOn(Value value, Value arg) {
  return value == arg || argumentsOf(value).contains(arg);
}

bool heed::isArithmetic(Value value) {
  Operation *def = value.getDefiningOp();
  if (!def || isa<halide::PipelineOp>(def->getParentOp()))
    return true;
  return isa<arith::ArithDialect>(def->getDialect()) &&
         llvm::all_of(def->getOperands(), isArithmetic);
}

Value heed::withoutLimits(Value coordinate) {
  if (auto narrow = coordinate.getDefiningOp<arith::TruncIOp>())
    coordinate = narrow.getIn();
  while (Operation *op = coordinate.getDefiningOp()) {
    if (!isa<arith::MinSIOp, arith::MaxSIOp>(op))
      break;
    bool first = argumentsOf(op->getOperand(0)).empty(),
         second = argumentsOf(op->getOperand(1)).empty();
    if (first == second)
      break;
    coordinate = op->getOperand(first ? 1 : 0);
  }
  return coordinate;
}

bool heed::movesWith(Value x, Value arg) {
  if (x == arg)
    return true;
  Operation *op = x.getDefiningOp();
  if (auto wide = dyn_cast_or_null<arith::ExtSIOp>(op))
    return movesWith(wide.getIn(), arg);
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
    return false;
  Value left = op->getOperand(0), right = op->getOperand(1);
  if (isa<arith::AddIOp>(op) && dependsOn(right, arg))
    std::swap(left, right);
  return movesWith(left, arg) && !dependsOn(right, arg);
}

bool heed::hasBounds(Value x) {
  if (argumentsOf(x).empty() || isa<BlockArgument>(x))
    return true;
  Operation *op = x.getDefiningOp();
  // Strides and dilations of windows that a copy is small for.
  constexpr int64_t most = 64;
  if (isa<arith::MulIOp>(op) &&
      llvm::none_of(op->getOperands(), [](Value factor) {
        std::optional<int64_t> known = getConstantIntValue(factor);
        return known && std::abs(*known) <= most;
      }))
    return false;
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ExtSIOp>(op) &&
         llvm::all_of(op->getOperands(), hasBounds);
}

Value heed::narrowed(OpBuilder &b, Value x) {
  if (x.getType().isInteger(32))
    return x;
  Operation *op = x.getDefiningOp();
  if (auto wide = dyn_cast<arith::ExtSIOp>(op))
    return wide.getIn();
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return arith::TruncIOp::create(b, x.getLoc(), b.getI32Type(), x);
  Value left = narrowed(b, op->getOperand(0)),
        right = narrowed(b, op->getOperand(1));
  if (isa<arith::AddIOp>(op))
    return arith::AddIOp::create(b, x.getLoc(), left, right);
  if (isa<arith::SubIOp>(op))
    return arith::SubIOp::create(b, x.getLoc(), left, right);
  return arith::MulIOp::create(b, x.getLoc(), left, right);
}

static bool isZero(Value value) {
  return matchPattern(value, m_PosZeroFloat());
}

std::optional<WindowTerm> heed::termOf(halide::UpdateOp update) {
  Block &body = update.getSet().front();
  Operation *yield = body.getTerminator();
  if (yield->getNumOperands() != 1)
    return std::nullopt;
  auto isOld = [&](Value value) {
    auto read = value.getDefiningOp<halide::ReadOp>();
    if (!read || read.getFunc() != update.getFunc())
      return false;
    for (auto [d, coordinate] : llvm::enumerate(read.getCoordinates()))
      if (coordinate != body.getArgument(d))
        return false;
    return true;
  };
  WindowTerm term;
  Value value = yield->getOperand(0);
  while (auto select = value.getDefiningOp<arith::SelectOp>()) {
    if (!isOld(select.getFalseValue()))
      return std::nullopt;
    term.conditions.push_back(select.getCondition());
    value = select.getTrueValue();
  }
  term.combine = value.getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::MaximumFOp, arith::MinimumFOp,
                       arith::MaxNumFOp, arith::MinNumFOp>(term.combine))
    return std::nullopt;
  term.number = isOld(term.combine->getOperand(0)) ? 1 : 0;
  if (!isOld(term.combine->getOperand(1 - term.number)))
    return std::nullopt;
  term.value = term.combine->getOperand(term.number);
  // A term that is nothing elsewhere. The sum's sign of zero is free.
  while (auto select = term.value.getDefiningOp<arith::SelectOp>()) {
    if (!isa<arith::AddFOp>(term.combine) || !isZero(select.getFalseValue()))
      break;
    term.conditions.push_back(select.getCondition());
    term.value = select.getTrueValue();
  }
  return term;
}

SmallVector<Value> heed::conjuncts(ArrayRef<Value> conditions) {
  SmallVector<Value> parts, work(llvm::reverse(conditions));
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (auto both = next.getDefiningOp<arith::AndIOp>())
      work.append({both.getRhs(), both.getLhs()});
    else
      parts.push_back(next);
  }
  return parts;
}
