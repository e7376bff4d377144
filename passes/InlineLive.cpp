//===- InlineLive.cpp - which rows of a softmax are live, again -----------===//
#include "passes/InlineLive.h"
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/SymbolicDims.h"
#include "passes/RowBlocks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace heed;

void heed::inlineLive(Operation *op) {
  auto inline_ = [](auto softmax) {
    Value live = softmax.getLive();
    if (live.use_empty())
      return;
    OpBuilder b(softmax->getContext());
    b.setInsertionPointAfter(softmax);
    Location loc = softmax.getLoc();
    auto type = cast<RankedTensorType>(live.getType());
    SmallVector<Value> sizes;
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (type.isDynamicDim(d))
        sizes.push_back(attn::makeExtent(b, loc, softmax.getInput(), d));
    Value empty = tensor::EmptyOp::create(b, loc, type.getShape(),
                                          type.getElementType(), sizes);
    AffineMap id = b.getMultiDimIdentityMap(type.getRank());
    SmallVector<utils::IteratorType> iterators(type.getRank(),
                                               utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(
        b, loc, TypeRange{type}, ValueRange{}, ValueRange{empty},
        ArrayRef<AffineMap>{id}, iterators,
        [&](OpBuilder &b, Location loc, ValueRange) {
          Region &where = softmax.getWhere();
          Value result;
          if (where.empty()) {
            result = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
          } else {
            IRMapping map;
            for (auto [d, arg] : llvm::enumerate(where.getArguments()))
              map.map(arg, linalg::IndexOp::create(b, loc, d).getResult());
            for (Operation &inner : where.front().without_terminator())
              b.clone(inner, map);
            result = map.lookupOrDefault(
                where.front().getTerminator()->getOperand(0));
          }
          linalg::YieldOp::create(b, loc, result);
        });
    if (Attribute block = softmax->getAttr(kRowBlockAttr);
        block && llvm::all_of(live.getUsers(), [&](Operation *user) {
          return user->getAttr(kRowBlockAttr) == block;
        }))
      generic->setAttr(kRowBlockAttr, block);
    live.replaceAllUsesWith(generic.getResult(0));
  };
  if (auto softmax = dyn_cast<attn::SoftmaxOp>(op))
    inline_(softmax);
  else if (auto softmax = dyn_cast<attn::LogSoftmaxOp>(op))
    inline_(softmax);
}
