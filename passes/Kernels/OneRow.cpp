//===- OneRow.cpp - products of one row, or few ---------------------------===//
//
// What generates text token by token multiplies one row with every weight. The
// kernel is the same, with results of one row in their types.
//
//===----------------------------------------------------------------------===//
#include "passes/Kernels/OneRow.h"
#include "passes/Kernels/KernelKinds.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace heed;

static bool isContraction(func::FuncOp kernel) {
  auto kind = kernel->getAttrOfType<StringAttr>("attn.kind");
  return kind && kind.getValue() == nameOf(KernelKind::Contraction);
}

std::optional<ProductRows> heed::rowsOfProduct(func::FuncOp kernel,
                                               const llvm::BitVector &fixed) {
  if (!isContraction(kernel))
    return std::nullopt;
  // Rows and columns; only the rows are not known.
  std::optional<unsigned> rows;
  for (auto empty : kernel.getBody().front().getOps<tensor::EmptyOp>()) {
    auto type = empty.getType();
    if (type.getRank() != 2 || type.getNumDynamicDims() != 1 ||
        !type.isDynamicDim(0))
      return std::nullopt;
    auto size = dyn_cast<BlockArgument>(empty.getDynamicSizes()[0]);
    if (!size || (rows && *rows != size.getArgNumber()))
      return std::nullopt;
    rows = size.getArgNumber();
  }
  int64_t bytes = 0;
  for (auto op : kernel.getBody().front().getOps<linalg::GenericOp>()) {
    AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
    if (op.getNumDpsInits() != 1 || op.getNumParallelLoops() != 2 ||
        !isa<AffineDimExpr>(out.getResult(0)))
      return std::nullopt;
    if (op.getNumLoops() == op.getNumParallelLoops())
      continue;
    unsigned row = cast<AffineDimExpr>(out.getResult(0)).getPosition();
    for (OpOperand *operand : op.getDpsInputOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand->get());
      auto type = dyn_cast<RankedTensorType>(operand->get().getType());
      if (argument && type && fixed.test(argument.getArgNumber()) &&
          type.hasStaticShape() &&
          !op.getMatchingIndexingMap(operand).isFunctionOfDim(row))
        bytes += type.getNumElements() * type.getElementTypeBitWidth() / 8;
    }
  }
  if (!rows)
    return std::nullopt;
  return ProductRows{*rows, bytes};
}

std::optional<DotProducts> heed::dotProductsOf(func::FuncOp kernel,
                                               const llvm::BitVector &fixed) {
  if (!isContraction(kernel))
    return std::nullopt;
  // Only the rows, in the axis before the last, need not be known.
  std::optional<unsigned> rows;
  Block &body = kernel.getBody().front();
  for (auto empty : body.getOps<tensor::EmptyOp>()) {
    RankedTensorType type = empty.getType();
    int64_t axis = type.getRank() - 2;
    if (axis < 0 || !type.isDynamicDim(axis))
      return std::nullopt;
    auto size = dyn_cast<BlockArgument>(
        empty.getDynamicSizes()[type.getDynamicDimIndex(axis)]);
    if (!size || (rows && *rows != size.getArgNumber()))
      return std::nullopt;
    rows = size.getArgNumber();
  }
  SmallVector<unsigned> matrices;
  std::optional<int64_t> terms;
  for (auto op : body.getOps<linalg::GenericOp>()) {
    SmallVector<unsigned> sums;
    op.getReductionDims(sums);
    if (sums.empty())
      continue;
    AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
    if (sums.size() != 1 || out.getNumResults() < 2)
      return std::nullopt;
    auto row = dyn_cast<AffineDimExpr>(out.getResult(out.getNumResults() - 2)),
         column = dyn_cast<AffineDimExpr>(out.getResults().back());
    if (!row || !column)
      return std::nullopt;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand->get());
      AffineMap map = op.getMatchingIndexingMap(operand);
      auto last = map.getNumResults()
                      ? dyn_cast<AffineDimExpr>(map.getResults().back())
                      : AffineExpr();
      if (!argument || argument.getOwner() != &body || !last ||
          cast<AffineDimExpr>(last).getPosition() != sums[0])
        return std::nullopt;
      auto type = cast<RankedTensorType>(argument.getType());
      if (int64_t size = type.getShape().back(); !ShapedType::isDynamic(size))
        terms = std::min(terms.value_or(size), size);
      bool byRow = map.isFunctionOfDim(row.getPosition());
      if (byRow == map.isFunctionOfDim(column.getPosition()))
        return std::nullopt;
      if (byRow)
        continue;
      if (fixed.test(argument.getArgNumber()))
        return std::nullopt;
      matrices.push_back(argument.getArgNumber());
    }
  }
  if (!rows || matrices.empty())
    return std::nullopt;
  return DotProducts{*rows, matrices, terms};
}

void heed::makeOneRow(func::FuncOp kernel) {
  Block &body = kernel.getBody().front();
  auto one = [](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return RankedTensorType::get({1, tensor.getDimSize(1)},
                                 tensor.getElementType());
  };
  for (auto empty :
       llvm::make_early_inc_range(body.getOps<tensor::EmptyOp>())) {
    OpBuilder b(empty);
    Value fresh = tensor::EmptyOp::create(b, empty.getLoc(),
                                          one(empty.getType()), ValueRange());
    empty.getResult().replaceAllUsesWith(fresh);
    empty.erase();
  }
  for (Operation &op : body.without_terminator())
    if (isa<linalg::LinalgOp>(op))
      for (Value result : op.getResults())
        result.setType(one(result.getType()));
  kernel.setFunctionType(
      FunctionType::get(kernel.getContext(), kernel.getArgumentTypes(),
                        TypeRange(body.getTerminator()->getOperandTypes())));
}
