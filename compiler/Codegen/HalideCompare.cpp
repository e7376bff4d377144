// Comparisons of numbers, as libHalide keeps them.

#include "compiler/Codegen/HalideMath.h"
#include "compiler/Codegen/HalideTranslate.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;
using Halide::Expr;
using Halide::Internal::Call;

/// Whether x < y; \p low and \p high tell of infinities whether they are
/// negative.
static Expr isLess(Expr x, Expr y, std::optional<bool> low,
                   std::optional<bool> high) {
  if ((low && !*low) || (high && *high))
    return Halide::Internal::const_false();
  if (!low && !high)
    return strict(Call::strict_lt, x, y);
  Expr other = low ? y : x;
  return !isNaN(other) && !isInfinity(other, low.has_value());
}

Expr heed::compareFloats(arith::CmpFPredicate predicate, Expr a, Expr b,
                         Operation *op) {
  std::optional<bool> infinite[2]; // is negative
  for (unsigned k : {0, 1})
    if (FloatAttr value; matchPattern(op->getOperand(k), m_Constant(&value)) &&
                         value.getValue().isInfinity())
      infinite[k] = value.getValue().isNegative();
  auto lt = [&](Expr x, Expr y) {
    bool inOrder = x.same_as(a);
    return isLess(x, y, infinite[!inOrder], infinite[inOrder]);
  };
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

Expr heed::asUnsigned(Expr x) {
  return Halide::cast(x.type().with_code(halide_type_uint), x);
}

/// Whether \p value follows from a whole quotient.
static bool followsFromQuotient(Value value, unsigned depth = 0) {
  Operation *op = value.getDefiningOp();
  if (!op || depth > 8 || !isa<arith::ArithDialect>(op->getDialect()))
    return false;
  return isa<arith::FloorDivSIOp>(op) ||
         llvm::any_of(op->getOperands(), [&](Value operand) {
           return followsFromQuotient(operand, depth + 1);
         });
}

Expr heed::compareIntegers(arith::CmpIPredicate predicate, Expr a, Expr b,
                           Operation *op) {
  if (a.type().is_bool() && predicate != arith::CmpIPredicate::eq &&
      predicate != arith::CmpIPredicate::ne)
    throw TranslationError{op, "order of i1 values is not supported"};
  // Of 2*(x/2) == x, however it is spelt, libHalide 21 takes the answer for the
  // first lane of a tile that starts at a multiple of 2 for all its lanes. Of
  // an order it does not.
  bool isOrdered =
      !a.type().is_bool() && llvm::any_of(op->getOperands(), [](Value value) {
        return followsFromQuotient(value);
      });
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return isOrdered ? a <= b && b <= a : a == b;
  case arith::CmpIPredicate::ne:
    return isOrdered ? a < b || b < a : a != b;
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
