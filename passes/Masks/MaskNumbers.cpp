//===- MaskNumbers.cpp - integers of masks, in one form -------------------===//
#include "passes/Masks/MaskSolver.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {
namespace {
constexpr unsigned indexBits = 33; // an index is an i32 in a kernel
constexpr unsigned safeBits = 60;
} // namespace

ExprRef MaskSolver::strip(ExprRef e) {
  // An index fits into 32 bits, but not into fewer.
  while (e->isOp("arith.extsi") ||
         (e->isOp("arith.index_cast") &&
          (e->type.isIndex() || e->type.getIntOrFloatBitWidth() >= 32)))
    e = e->operand(0);
  return e;
}

ExprRef MaskSolver::number(int64_t value) {
  return exprs.constant(IntegerAttr::get(i64, value));
}

// max(0, max(0, x)) is max(0, x).
ExprRef MaskSolver::extreme(StringRef name, ExprRef a, ExprRef b) {
  auto contains = [&](ExprRef e, ExprRef part) {
    return e == part ||
           (e->isOp(name) && (e->operand(0) == part || e->operand(1) == part));
  };
  if (contains(a, b))
    return a;
  if (contains(b, a))
    return b;
  for (unsigned k : {0u, 1u})
    if (b->isOp(name) && contains(a, b->operand(k)))
      return extreme(name, a, b->operand(1 - k));
  return op(name, a, b);
}

ExprRef MaskSolver::compare(arith::CmpIPredicate predicate, ExprRef a,
                            ExprRef b) {
  auto x = Exprs::constantInt(a), y = Exprs::constantInt(b);
  if (x && y && a->type == i64)
    return exprs.truth(arith::applyCmpPredicate(predicate, APInt(64, *x, true),
                                                APInt(64, *y, true)));
  return exprs.compare(predicate, a, b);
}

ExprRef MaskSolver::compare(arith::CmpFPredicate predicate, ExprRef a,
                            ExprRef b) {
  return exprs.compare(predicate, a, b);
}

ExprRef MaskSolver::conjunction(ExprRef a, ExprRef b) {
  if (!a || !b)
    return a ? a : b;
  return exprs.logicalAnd(a, b);
}

ExprRef MaskSolver::disjunction(ExprRef a, ExprRef b) {
  if (a == b)
    return a;
  for (auto [x, y] : {std::pair(a, b), std::pair(b, a)})
    if (auto known = Exprs::constantInt(x))
      return *known ? x : y;
  return exprs.op("arith.ori", i1, {a, b});
}

ExprRef MaskSolver::wide(ExprRef e) {
  e = strip(e);
  if (auto value = Exprs::constantInt(e))
    return number(*value);
  if (e->type.isIndex())
    return exprs.op("arith.index_cast", i64, {e});
  if (e->type == i64)
    return e;
  return exprs.op("arith.extsi", i64, {e});
}

ExprRef MaskSolver::plain(ExprRef e) {
  e = strip(e);
  if (varies(e))
    return e;
  e = wide(e);
  if (bits(e) <= safeBits || clamped.contains(e))
    return e;
  // One such number beside small ones compares as it would unclamped.
  e = min(max(e, number(-(int64_t(1) << safeBits))),
          number(int64_t(1) << safeBits));
  clamped.insert(e);
  return e;
}

void MaskSolver::flatten(ExprRef e, int sign, Sum &sum) {
  e = strip(e);
  // Narrower integers wrap.
  if (e->type.isIndex() || e->type == i64) {
    bool minus = e->isOp("arith.subi");
    if (minus || e->isOp("arith.addi")) {
      flatten(e->operand(0), sign, sum);
      return flatten(e->operand(1), minus ? -sign : sign, sum);
    }
    if (e->isOp("arith.muli"))
      for (int k : {0, 1})
        if (Exprs::isConstantInt(e->operand(k), -1))
          return flatten(e->operand(1 - k), -sign, sum);
  }
  if (Exprs::isConstantInt(e, 0))
    return;
  // i - i cancels.
  for (size_t k = 0; k < sum.size(); ++k)
    if (sum[k].term == plain(e) && sum[k].sign == -sign) {
      sum.erase(sum.begin() + k);
      return;
    }
  sum.push_back({sign, plain(e)});
}

ExprRef MaskSolver::total(ArrayRef<Signed> sum) {
  ExprRef result = nullptr;
  int64_t constant = 0;
  for (int sign : {1, -1})
    for (Signed s : sum) {
      if (s.sign != sign)
        continue;
      ExprRef term = wide(s.term);
      if (auto value = Exprs::constantInt(term))
        constant += sign * *value;
      else if (!result)
        result = sign > 0 ? term : op("arith.subi", zero, term);
      else
        result = op(sign > 0 ? "arith.addi" : "arith.subi", result, term);
    }
  if (!result)
    return number(constant);
  if (constant > 0)
    return op("arith.addi", result, number(constant));
  return constant ? op("arith.subi", result, number(-constant)) : result;
}

ExprRef MaskSolver::add(ExprRef a, ExprRef b) {
  Sum sum;
  flatten(a, 1, sum);
  flatten(b, 1, sum);
  return total(sum);
}

ExprRef MaskSolver::sub(ExprRef a, ExprRef b) {
  Sum sum;
  flatten(a, 1, sum);
  flatten(b, -1, sum);
  return total(sum);
}

unsigned MaskSolver::bits(ExprRef e) {
  if (auto value = Exprs::constantInt(e))
    return APInt(64, *value, true).getSignificantBits();
  e = strip(e);
  if (e->type.isIndex())
    return indexBits;
  unsigned width = e->type.getIntOrFloatBitWidth();
  if (e->kind != ExprKind::Op || width < 64)
    return width;
  auto widest = [&](unsigned from) {
    unsigned result = 0;
    for (ExprRef operand : ArrayRef(e->operands).drop_front(from))
      result = std::max(result, bits(operand));
    return result;
  };
  if (e->isOp("arith.addi") || e->isOp("arith.subi") || e->isOp("math.absi"))
    return std::min(width, widest(0) + 1);
  if (e->isOp("arith.muli")) {
    // d * (x // d) is at most a divisor away from x.
    for (unsigned k : {0, 1})
      if (ExprRef quotient = strip(e->operand(k));
          quotient->isOp("arith.floordivsi") &&
          strip(quotient->operand(1)) == strip(e->operand(1 - k)))
        return std::min(
            width,
            std::max(bits(quotient->operand(0)), bits(e->operand(1 - k))) + 1);
    return std::min(width, bits(e->operand(0)) + bits(e->operand(1)));
  }
  if (e->isOp("arith.minsi") || e->isOp("arith.maxsi"))
    return widest(0);
  if (e->isOp("arith.floordivsi"))
    return std::min(width, bits(e->operand(0)) + 1);
  if (e->isOp("arith.select"))
    return widest(1);
  return width;
}

bool MaskSolver::fits(ArrayRef<Signed> sum) {
  return llvm::count_if(
             sum, [&](Signed s) { return clamped.contains(s.term); }) <= 1 &&
         llvm::all_of(sum, [&](Signed s) {
           return clamped.contains(s.term) || bits(s.term) <= safeBits;
         });
}

bool MaskSolver::isPositiveSize(ExprRef e) {
  e = strip(e);
  if (auto value = Exprs::constantInt(e))
    return *value > 0;
  return e->kind == ExprKind::Scalar &&
         (e->value.getDefiningOp<tensor::DimOp>() ||
          positive.contains(e->value));
}

void MaskSolver::assumePositive(Value size) {
  positive.insert(size);
  if (auto product = size.getDefiningOp<arith::MulIOp>())
    for (Value factor : product->getOperands())
      assumePositive(factor);
}

bool MaskSolver::readsData(ExprRef e) {
  bool found = false;
  Exprs::walk(e, [&](ExprRef inner) {
    found |= inner->kind == ExprKind::Read && varies(inner);
  });
  return found;
}

} // namespace heed
