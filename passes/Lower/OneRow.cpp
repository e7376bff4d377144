//===- OneRow.cpp - products of one row, or few ---------------------------===//
//
// What generates text token by token multiplies one row with every weight. The
// kernel is the same, with results of one row in their types.
//
//===----------------------------------------------------------------------===//
#include "passes/Lower/OneRow.h"
#include "passes/KernelKinds.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace heed;

std::optional<ProductRows> heed::rowsOfProduct(func::FuncOp kernel,
                                               const llvm::BitVector &fixed) {
  auto kind = kernel->getAttrOfType<StringAttr>("attn.kind");
  if (!kind || kind.getValue() != nameOf(KernelKind::Contraction))
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
