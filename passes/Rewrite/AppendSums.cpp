//===- AppendSums.cpp - a sum beside a product as one more row ------------===//
#include "passes/Rewrite/AppendSums.h"
#include "passes/Algebra/Computation.h"
#include "passes/Algebra/Proof.h"
#include "passes/Algebra/TensorExpr.h"
#include "passes/Mutation.h"
#include "passes/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace heed;

namespace {

/// Whether the result of \p op is a sum and nothing that it starts from.
bool startsFromZero(linalg::GenericOp op) {
  Exprs exprs(op.getContext());
  SmallVector<unsigned> vars;
  SmallVector<ExprRef> at;
  exprs.indexVars(op.getResult(0), vars, at);
  ExprRef element = exprs.expand(op.getResult(0), at);
  return element && element->isReduceBy("arith.addf");
}

/// sum_j a[.., j, e]: the array and its axis j.
struct ColumnSum {
  Value array;
  unsigned axis;
};

std::optional<ColumnSum> columnSumOf(linalg::GenericOp op) {
  if (op.getNumResults() != 1 || op.getNumDpsInputs() != 1 ||
      op.getNumReductionLoops() != 1)
    return std::nullopt;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInputOperand(0));
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!map.isProjectedPermutation() || map.getNumResults() != op.getNumLoops())
    return std::nullopt;
  Block &body = *op.getBlock();
  auto add = dyn_cast<arith::AddFOp>(body.front());
  if (!add || body.getOperations().size() != 2 ||
      body.getTerminator()->getOperand(0) != add.getResult() ||
      !llvm::is_contained(add->getOperands(), body.getArgument(0)) ||
      !llvm::is_contained(add->getOperands(), body.getArgument(1)))
    return std::nullopt;
  if (!startsFromZero(op))
    return std::nullopt;
  // The other axes in order are the result's.
  unsigned axis = 0, next = 0;
  for (unsigned k = 0; k < map.getNumResults(); ++k) {
    unsigned loop = map.getDimPosition(k);
    if (op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction) {
      axis = k;
      continue;
    }
    if (next >= out.getNumResults() || out.getResult(next) != map.getResult(k))
      return std::nullopt;
    ++next;
  }
  return ColumnSum{op.getDpsInputs()[0], axis};
}

/// The loops of sum_j a[.., j, e] b[.., j, f]: j, e, f. All others both have.
struct StateLoops {
  unsigned summed, column, other;
};

/// Of \p op, whose operand number \p array is a, if it is one.
std::optional<StateLoops> stateLoopsOf(linalg::GenericOp op, unsigned array) {
  AffineMap maps[2];
  for (unsigned k : {0, 1})
    maps[k] = op.getMatchingIndexingMap(op.getDpsInputOperand(k));
  SmallVector<unsigned> summed, column, other;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction)
      summed.push_back(loop);
    else if (!maps[1 - array].isFunctionOfDim(loop))
      column.push_back(loop);
    else if (!maps[array].isFunctionOfDim(loop))
      other.push_back(loop);
  if (summed.size() != 1 || column.size() != 1 || other.size() != 1)
    return std::nullopt;
  return StateLoops{summed[0], column[0], other[0]};
}

/// Whether \p op is sum_j a[.., j, e] b[.., j, f] with \p sum's a and j, which
/// is its operand number \p position.
bool multiplies(linalg::GenericOp op, const ColumnSum &sum,
                unsigned &position) {
  if (op.getNumDpsInputs() != 2 || !isStateProduct(op) || !startsFromZero(op))
    return false;
  auto add = op.getBlock()
                 ->getTerminator()
                 ->getOperand(0)
                 .getDefiningOp<arith::AddFOp>();
  if (op.getBlock()->getOperations().size() != 3 || !add)
    return false;
  auto product = isa_and_nonnull<arith::MulFOp>(add.getLhs().getDefiningOp())
                     ? add.getLhs().getDefiningOp<arith::MulFOp>()
                     : add.getRhs().getDefiningOp<arith::MulFOp>();
  if (!product ||
      !llvm::is_contained(product->getOperands(),
                          op.getBlock()->getArgument(0)) ||
      !llvm::is_contained(product->getOperands(),
                          op.getBlock()->getArgument(1)))
    return false;
  for (unsigned k = 0; k < 2; ++k) {
    if (op.getDpsInputs()[k] != sum.array)
      continue;
    AffineMap map = op.getMatchingIndexingMap(op.getDpsInputOperand(k));
    unsigned loop = map.getDimPosition(sum.axis);
    if (op.getIteratorTypesArray()[loop] != utils::IteratorType::reduction ||
        !stateLoopsOf(op, k))
      continue;
    position = k;
    return true;
  }
  return false;
}

/// Where a product of both can stand; null if nowhere.
Operation *placeFor(Operation *sum, Operation *product, Value other) {
  bool sumFirst = sum->isBeforeInBlock(product);
  Operation *first = sumFirst ? sum : product,
            *second = sumFirst ? product : sum;
  Operation *def = other.getDefiningOp();
  if (!def || def->getBlock() != first->getBlock() ||
      def->isBeforeInBlock(first))
    return first;
  for (Operation *user : first->getUsers()) {
    Operation *here = first->getBlock()->findAncestorOpInBlock(*user);
    if (!here || here->isBeforeInBlock(second))
      return nullptr;
  }
  return second;
}

/// A sum and a product of one array as one product with a row more.
class Appended {
public:
  /// Needs the product's loops, and that \p array is the operand that \p sum
  /// adds up.
  Appended(linalg::GenericOp sum, linalg::GenericOp product, unsigned array);

  /// Writes the product with a row more, and what it has of both.
  void write(OpBuilder &b);
  bool isProven(Attempt &attempt);
  void replace();

private:
  ExprRef read(unsigned operand, unsigned atRow);
  ExprRef element(OpBuilder &b);
  Value writeBoth(OpBuilder &b);
  Value writePart(OpBuilder &b, Location loc, ExprRef atRow,
                  ArrayRef<unsigned> vars);
  AffineMap mapOf(unsigned operand) {
    return product.getMatchingIndexingMap(product.getDpsInputOperand(operand));
  }

  linalg::GenericOp sum, product;
  const unsigned array;
  const StateLoops which;
  Exprs exprs;
  SmallVector<unsigned> loops; ///< a variable for each loop of the product
  ExprRef rows = nullptr;      ///< that the product has
  unsigned row = 0;            ///< runs over one more
  SmallVector<unsigned> outputs, kept; ///< axes of the product and of the sum
  SmallVector<unsigned> shared;        ///< of the product's: neither e nor f
  Value both, ofProduct, ofSum;
};

Appended::Appended(linalg::GenericOp sum, linalg::GenericOp product,
                   unsigned array)
    : sum(sum), product(product), array(array),
      which(*stateLoopsOf(product, array)), exprs(product.getContext()) {
  for (unsigned loop = 0; loop < product.getNumLoops(); ++loop)
    loops.push_back(exprs.freshVar());
  for (unsigned k = 0; k < 2; ++k)
    for (unsigned axis = 0; axis < mapOf(k).getNumResults(); ++axis)
      if (unsigned loop = loops[mapOf(k).getDimPosition(axis)];
          !exprs.extent(loop))
        exprs.setExtent(loop, exprs.extentOf(product.getDpsInputs()[k], axis));
  rows = exprs.extent(loops[which.other]);
  row = exprs.freshVar(exprs.index(*Exprs::constantInt(rows) + 1));
  AffineMap out = product.getMatchingIndexingMap(product.getDpsInitOperand(0));
  for (unsigned axis = 0; axis < out.getNumResults(); ++axis) {
    unsigned loop = out.getDimPosition(axis);
    outputs.push_back(loops[loop]);
    if (loop != which.column && loop != which.other)
      shared.push_back(loops[loop]);
  }
  AffineMap summed = mapOf(array);
  for (unsigned axis = 0; axis < summed.getNumResults(); ++axis)
    if (unsigned loop = summed.getDimPosition(axis); loop != which.summed)
      kept.push_back(loops[loop]);
}

/// What the product reads of \p operand in row \p atRow.
ExprRef Appended::read(unsigned operand, unsigned atRow) {
  AffineMap map = mapOf(operand);
  SmallVector<ExprRef> at;
  for (unsigned axis = 0; axis < map.getNumResults(); ++axis) {
    unsigned loop = map.getDimPosition(axis);
    at.push_back(exprs.var(loop == which.other ? atRow : loops[loop]));
  }
  return exprs.read(product.getDpsInputs()[operand], at);
}

/// An element of the product with a row more: that row takes 1 for b.
ExprRef Appended::element(OpBuilder &b) {
  ExprRef inside =
      exprs.compare(arith::CmpIPredicate::slt, exprs.var(row), rows);
  ExprRef a = read(array, row);
  ExprRef factor = exprs.select(
      inside, read(1 - array, row),
      exprs.constant(b.getFloatAttr(cast<FloatType>(a->type), 1.0)),
      /*guard=*/true);
  return exprs.reduce(OperationName("arith.addf", b.getContext()),
                      {loops[which.summed]},
                      exprs.op("arith.mulf", a->type, {a, factor}));
}

Value Appended::writeBoth(OpBuilder &b) {
  ExprRef total = element(b);
  SmallVector<unsigned> axes(shared);
  axes.append({row, loops[which.column]});
  return writeTensor(b, product.getLoc(), exprs, total, axes);
}

/// The elements of row \p atRow, with \p vars as axes.
Value Appended::writePart(OpBuilder &b, Location loc, ExprRef atRow,
                          ArrayRef<unsigned> vars) {
  SmallVector<ExprRef> at;
  for (unsigned v : shared)
    at.push_back(exprs.var(v));
  at.append({atRow, exprs.var(loops[which.column])});
  return writeTensor(b, loc, exprs, exprs.read(both, at), vars);
}

void Appended::write(OpBuilder &b) {
  both = writeBoth(b);
  ofProduct =
      writePart(b, product.getLoc(), exprs.var(loops[which.other]), outputs);
  ofSum = writePart(
      b, sum.getLoc(),
      mutated("reorder-products.sum-from-first-row") ? exprs.index(0) : rows,
      kept);
}

bool Appended::isProven(Attempt &attempt) {
  // Whether \p fresh has the elements of \p op's result at \p vars.
  auto isSame = [&](linalg::GenericOp op, Value fresh,
                    ArrayRef<unsigned> vars) {
    SmallVector<ExprRef> at;
    for (unsigned v : vars)
      at.push_back(exprs.var(v));
    return fresh.getType() == op.getResult(0).getType() &&
           prove(exprs, exprs.expand(op.getResult(0), at), fresh, vars, attempt)
               .holds;
  };
  return isSame(product, ofProduct, outputs) && isSame(sum, ofSum, kept);
}

void Appended::replace() {
  remarkDone(product, "attn-reorder-products", "sum-appended",
             "a sum of the same terms is one more row of the product");
  product.getResult(0).replaceAllUsesWith(ofProduct);
  sum.getResult(0).replaceAllUsesWith(ofSum);
  product.erase();
  sum.erase();
}

bool append(linalg::GenericOp sum, linalg::GenericOp product, unsigned array) {
  Operation *place = placeFor(sum, product, product.getDpsInputs()[1 - array]);
  if (!place)
    return false;
  OpBuilder b(place);
  Attempt attempt(b);
  Appended appended(sum, product, array);
  appended.write(b);
  if (!appended.isProven(attempt)) {
    attempt.undo();
    return false;
  }
  appended.replace();
  return true;
}

} // namespace

void heed::appendSums(func::FuncOp func) {
  SmallVector<linalg::GenericOp> sums;
  func.walk([&](linalg::GenericOp op) {
    if (columnSumOf(op))
      sums.push_back(op);
  });
  for (linalg::GenericOp sum : sums) {
    ColumnSum column = *columnSumOf(sum);
    for (Operation *user : column.array.getUsers()) {
      auto product = dyn_cast<linalg::GenericOp>(user);
      unsigned position = 0;
      if (product && product != sum && product->getBlock() == sum->getBlock() &&
          multiplies(product, column, position) &&
          append(sum, product, position))
        break;
    }
  }
}
