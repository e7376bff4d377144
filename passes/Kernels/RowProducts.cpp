//===- RowProducts.cpp - products of rows with a small matrix -------------===//
#include "passes/Kernels/RowProducts.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Kernels/KernelKinds.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace heed;

namespace {

/// Elements of a matrix that stays in the first or the second cache while rows
/// go by.
constexpr int64_t smallMatrix = 128 * 129;

/// The loops of a product: the outermost ones that all share, then these.
struct ProductLoops {
  linalg::GenericOp op;
  unsigned row, column, sum;
};

/// Reads tensors at its loops alone and has one sum as its result.
linalg::GenericOp plainSum(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || generic.getNumResults() != 1 ||
      generic.getNumReductionLoops() != 1 ||
      llvm::any_of(generic.getIndexingMapsArray(),
                   [](AffineMap map) { return !map.isProjectedPermutation(); }))
    return {};
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(generic->getRegions(), captures);
  if (llvm::any_of(captures, [](Value value) {
        return isa<RankedTensorType>(value.getType());
      }))
    return {};
  return generic;
}

unsigned sumLoop(linalg::GenericOp op) {
  SmallVector<unsigned> loops;
  op.getReductionDims(loops);
  return loops.front();
}

AffineMap outputMap(linalg::GenericOp op) {
  return op.getMatchingIndexingMap(op.getDpsInitOperand(0));
}

std::optional<ProductLoops> loopsOf(Operation *op) {
  if (kernelKindOf(op) != KernelKind::Contraction)
    return std::nullopt;
  linalg::GenericOp product = plainSum(op);
  if (!product)
    return std::nullopt;
  AffineMap out = outputMap(product);
  unsigned rank = out.getNumResults();
  if (rank < 2)
    return std::nullopt;
  return ProductLoops{product, out.getDimPosition(rank - 2),
                      out.getDimPosition(rank - 1), sumLoop(product)};
}

} // namespace

bool heed::isRowProduct(Operation *op) {
  std::optional<ProductLoops> loops = loopsOf(op);
  if (!loops)
    return false;
  SmallVector<int64_t> extents = loops->op.getStaticLoopRanges();
  int64_t columns = extents[loops->column], terms = extents[loops->sum];
  if (ShapedType::isDynamic(columns) || ShapedType::isDynamic(terms) ||
      columns * terms > smallMatrix)
    return false;
  bool rows = false, matrix = false;
  for (OpOperand *operand : loops->op.getDpsInputOperands()) {
    AffineMap map = loops->op.getMatchingIndexingMap(operand);
    bool byRow = map.isFunctionOfDim(loops->row),
         byColumn = map.isFunctionOfDim(loops->column);
    if (byRow && byColumn)
      return false;
    if (byColumn && isFromParameters(operand->get()))
      return false;
    rows |= byRow;
    matrix |= byColumn;
  }
  return rows && matrix;
}

bool heed::isStateProduct(Operation *op) {
  std::optional<ProductLoops> loops = loopsOf(op);
  if (!loops || loops->op.getNumDpsInputs() != 2)
    return false;
  SmallVector<int64_t> extents = loops->op.getStaticLoopRanges();
  int64_t columns = extents[loops->column], rows = extents[loops->row];
  if (ShapedType::isDynamic(columns) || ShapedType::isDynamic(rows) ||
      columns * rows > smallMatrix || columns * rows == 0 ||
      !ShapedType::isDynamic(extents[loops->sum]))
    return false;
  unsigned ofRows = 0;
  for (OpOperand *operand : loops->op.getDpsInputOperands()) {
    AffineMap map = loops->op.getMatchingIndexingMap(operand);
    bool byRow = map.isFunctionOfDim(loops->row);
    if (isFromParameters(operand->get()) || !map.isFunctionOfDim(loops->sum) ||
        byRow == map.isFunctionOfDim(loops->column))
      return false;
    ofRows += byRow;
  }
  return ofRows == 1;
}

bool heed::areTermsOfState(Operation *op, Value terms) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || generic.getNumResults() != 1 ||
      generic.getNumReductionLoops() != 1)
    return false;
  AffineMap out = outputMap(generic);
  unsigned rank = out.getNumResults(), sum = sumLoop(generic);
  if (rank < 2 || !out.isProjectedPermutation())
    return false;
  unsigned row = out.getDimPosition(rank - 2),
           column = out.getDimPosition(rank - 1);
  SmallVector<int64_t> extents = generic.getStaticLoopRanges();
  if (ShapedType::isDynamic(extents[row]) ||
      ShapedType::isDynamic(extents[column]) ||
      extents[row] * extents[column] > smallMatrix ||
      !ShapedType::isDynamic(extents[sum]))
    return false;
  bool found = false;
  for (OpOperand *operand : generic.getDpsInputOperands()) {
    if (operand->get() != terms)
      continue;
    AffineMap map = generic.getMatchingIndexingMap(operand);
    if (!map.isProjectedPermutation() || !map.isFunctionOfDim(sum) ||
        map.isFunctionOfDim(row) == map.isFunctionOfDim(column))
      return false;
    found = true;
  }
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(op->getRegions(), captures);
  return found && !captures.contains(terms);
}

bool heed::areRowsOf(Operation *op, Value rows) {
  std::optional<ProductLoops> loops = loopsOf(op);
  bool found = false;
  for (OpOperand *operand : loops->op.getDpsInputOperands()) {
    if (operand->get() != rows)
      continue;
    AffineMap map = loops->op.getMatchingIndexingMap(operand);
    unsigned rank = map.getNumResults();
    if (rank < 2 || map.getDimPosition(rank - 1) != loops->sum ||
        map.getDimPosition(rank - 2) != loops->row)
      return false;
    found = true;
  }
  return found;
}

bool heed::isSumOfRows(Operation *op, Operation *product) {
  linalg::GenericOp sum = plainSum(op);
  std::optional<ProductLoops> loops = loopsOf(product);
  if (!sum || kernelKindOf(op) != KernelKind::Row || !loops)
    return false;
  auto type = cast<RankedTensorType>(product->getResult(0).getType());
  auto own = cast<RankedTensorType>(op->getResult(0).getType());
  return own.getElementType() == type.getElementType() &&
         own.getShape() == type.getShape().drop_back() &&
         sum.getStaticLoopRanges()[sumLoop(sum)] ==
             loops->op.getStaticLoopRanges()[loops->sum];
}

bool heed::sumsAlong(Operation *user, Value value) {
  auto op = dyn_cast<linalg::GenericOp>(user);
  if (!op)
    return false;
  SmallVector<unsigned> sums;
  op.getReductionDims(sums);
  return llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
    return operand->get() == value && llvm::any_of(sums, [&](unsigned loop) {
             return op.getMatchingIndexingMap(operand).isFunctionOfDim(loop);
           });
  });
}
