//===- OneRow.cpp - a kernel for results of one row -----------------------===//
#include "passes/Kernels/OneRow.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace heed;

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
