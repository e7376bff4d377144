//===- Windows.cpp - loops that meet in one place -------------------------===//
#include "passes/Algebra/Windows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;

namespace {

/// A loop in a sum: the number that it is multiplied by, and its extent.
struct Step {
  int64_t factor;
  std::optional<int64_t> extent;
};

/// Whether iterations of both meet in one place: no step of one passes all of
/// the other.
bool meet(Step a, Step b) {
  int64_t inner = std::abs(a.factor), outer = std::abs(b.factor);
  if (inner > outer)
    return meet(b, a);
  return inner != 0 && a.extent != 1 && b.extent != 1 &&
         !(a.extent && *a.extent * inner <= outer);
}

/// Adds to \p factors the numbers that loops of \p index are multiplied by,
/// times
/// \p factor; what is no such sum of loops is left out.
void addFactors(Value index, int64_t factor, SmallVectorImpl<int64_t> &factors,
                llvm::function_ref<std::optional<unsigned>(Value)> loopOf) {
  if (std::optional<unsigned> loop = loopOf(index)) {
    factors[*loop] += factor;
    return;
  }
  Operation *op = index.getDefiningOp();
  if (!op)
    return;
  auto add = [&](Value part, int64_t by) {
    addFactors(part, by, factors, loopOf);
  };
  if (isa<arith::AddIOp, arith::MinSIOp, arith::MaxSIOp>(op)) {
    // A limit depends on no loop.
    add(op->getOperand(0), factor);
    add(op->getOperand(1), factor);
  } else if (isa<arith::SubIOp>(op)) {
    add(op->getOperand(0), factor);
    add(op->getOperand(1), -factor);
  } else if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op)) {
    add(op->getOperand(0), factor);
  } else if (isa<arith::MulIOp>(op)) {
    APInt number;
    for (unsigned k = 0; k < 2; ++k)
      if (matchPattern(op->getOperand(k), m_ConstantInt(&number)) &&
          number.getSignificantBits() < 32)
        add(op->getOperand(1 - k), factor * number.getSExtValue());
  }
}

/// Likewise of an expression.
void addFactors(ExprRef index, int64_t factor,
                DenseMap<unsigned, int64_t> &factors) {
  if (index->kind == ExprKind::Var) {
    factors[index->number] += factor;
  } else if (index->isOp("arith.addi")) {
    addFactors(index->operand(0), factor, factors);
    addFactors(index->operand(1), factor, factors);
  } else if (index->isOp("arith.subi")) {
    addFactors(index->operand(0), factor, factors);
    addFactors(index->operand(1), -factor, factors);
  } else if (index->isOp("arith.muli")) {
    for (unsigned k : {0, 1})
      if (std::optional<int64_t> number = Exprs::constantInt(index->operand(k)))
        addFactors(index->operand(1 - k), factor * *number, factors);
  }
}

} // namespace

llvm::SmallBitVector
heed::windowOf(Value index, ArrayRef<std::optional<int64_t>> extents,
               llvm::function_ref<std::optional<unsigned>(Value)> loopOf) {
  SmallVector<int64_t> factors(extents.size(), 0);
  addFactors(index, 1, factors, loopOf);
  llvm::SmallBitVector window(extents.size());
  for (unsigned a = 0; a < factors.size(); ++a)
    for (unsigned b = 0; b < a; ++b)
      if (meet({factors[a], extents[a]}, {factors[b], extents[b]})) {
        window.set(a);
        window.set(b);
      }
  return window;
}

bool heed::moveWindow(Exprs &exprs, ExprRef index, ArrayRef<unsigned> places,
                      ArrayRef<unsigned> steps) {
  DenseMap<unsigned, int64_t> factors;
  addFactors(index, 1, factors);
  auto step = [&](unsigned loop) {
    ExprRef extent = exprs.extent(loop);
    return Step{factors.lookup(loop),
                extent ? Exprs::constantInt(extent) : std::nullopt};
  };
  return llvm::any_of(places, [&](unsigned place) {
    return llvm::any_of(
        steps, [&](unsigned by) { return meet(step(place), step(by)); });
  });
}
