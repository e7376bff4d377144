//===- Reciprocals.cpp - one division a row instead of one an element -----===//
//
// x / y, where y is one number of a row, is x * (1 / y): a division of vectors
// takes as long as a dozen other operations. 1 / y leaves the range of floats
// before x / y does where y is near its ends; there y and x are scaled first,
// exactly, so that what is left is one rounding more.
#include "passes/Mutation.h"
#include "passes/Schedule/Rewrite.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;

namespace {

/// Whether the reciprocal of \p x is a normal number, 0, infinity or NaN where
/// \p x is one: x / y is then x * (1 / y) but for one rounding more.
bool hasReciprocal(Value x) {
  Operation *op = x.getDefiningOp();
  if (!op)
    return false;
  if (isa<math::SqrtOp>(op))
    return true;
  if (isa<arith::MaxNumFOp, arith::MaximumFOp>(op)) {
    FloatAttr number;
    return matchPattern(op->getOperand(1), m_Constant(&number)) &&
           number.getValue().isNormal() && !number.getValue().isNegative() &&
           hasReciprocal(op->getOperand(0));
  }
  auto read = dyn_cast<halide::ReadOp>(op);
  auto func = read && read->getNumResults() == 1
                  ? read.getFunc().getDefiningOp<halide::FuncOp>()
                  : halide::FuncOp();
  return func &&
         llvm::none_of(func.getResult().getUsers(),
                       llvm::IsaPred<halide::UpdateOp>) &&
         hasReciprocal(func.getBody().front().getTerminator()->getOperand(0));
}

/// Whether a choice is made in the body by what \p value comes to: another last
/// digit may then be another choice.
bool isDecisive(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<arith::CmpFOp, arith::FPToSIOp, arith::FPToUIOp, math::FloorOp,
               math::CeilOp, math::RoundEvenOp, math::TruncOp>(user) ||
           llvm::any_of(user->getResults(), isDecisive);
  });
}

} // namespace

void heed::multiplyByReciprocals(KernelFunc &f, size_t inner) {
  Block &body = f.func.getBody().front();
  auto isOfRow = [&](Value x) {
    llvm::SmallPtrSet<Value, 4> args = argumentsOf(x);
    return llvm::none_of(body.getArguments().take_front(inner),
                         [&](Value place) { return args.contains(place); });
  };
  for (auto quotient :
       llvm::make_early_inc_range(body.getOps<arith::DivFOp>())) {
    Value over = quotient.getLhs(), by = quotient.getRhs();
    bool isNear = hasReciprocal(by);
    if (isOfRow(over) || !isOfRow(by) || !(isNear || by.getType().isF32()) ||
        isDecisive(quotient))
      continue;
    OpBuilder b(quotient);
    Location loc = quotient.getLoc();
    auto number = [&](double value) -> Value {
      return arith::ConstantOp::create(b, loc,
                                       b.getFloatAttr(by.getType(), value));
    };
    auto times = [&](Value x, Value y) -> Value {
      return arith::MulFOp::create(b, loc, x, y, quotient.getFastmathAttr());
    };
    if (!isNear) {
      // 0, infinity and NaN come out right either way.
      Value size = math::AbsFOp::create(b, loc, by);
      auto choose = [&](arith::CmpFPredicate predicate, double limit,
                        double scale, Value other) -> Value {
        Value is =
            arith::CmpFOp::create(b, loc, predicate, size, number(limit));
        return arith::SelectOp::create(b, loc, is, number(scale), other);
      };
      Value scale = choose(
          arith::CmpFPredicate::OLT, 0x1p-100, 0x1p64,
          choose(arith::CmpFPredicate::OGT, 0x1p100, 0x1p-64, number(1)));
      // Never contracted or reordered: the scaling alone keeps the range.
      by = arith::MulFOp::create(b, loc, by, scale);
      if (!mutated("rows.scale-divisor-alone"))
        over = arith::MulFOp::create(b, loc, over, scale);
    }
    Value share = arith::DivFOp::create(b, loc, number(1), by);
    quotient.replaceAllUsesWith(times(over, share));
    quotient.erase();
  }
}
