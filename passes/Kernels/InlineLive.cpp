//===- InlineLive.cpp - which elements of a softmax are present -----------===//
#include "passes/Kernels/InlineLive.h"
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/SymbolicDims.h"
#include "passes/Mutation.h"
#include "passes/Plan/RowBlocks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace heed;

/// Absent elements are those of one value, by its bits: -0, or the logarithm's
/// -inf (of a present element that is the difference of two scores that
/// overflows, which adds no element to any sum). Weights are not negative, so
/// that the bits of -1 part -0 from them, NaN too: by order, since libHalide
/// swaps what is chosen by an inequality, which LLVM then makes no multiply-add
/// under a mask of.
static void inlineLive(Operation *softmax, Value result, Value live,
                       APFloat absent) {
  if (live.use_empty())
    return;
  OpBuilder b(softmax->getContext());
  b.setInsertionPointAfter(softmax);
  Location loc = softmax->getLoc();
  auto type = cast<RankedTensorType>(live.getType());
  SmallVector<Value> sizes;
  for (int64_t d = 0; d < type.getRank(); ++d)
    if (type.isDynamicDim(d))
      sizes.push_back(attn::makeExtent(b, loc, result, d));
  Value empty = tensor::EmptyOp::create(b, loc, type.getShape(),
                                        type.getElementType(), sizes);
  AffineMap id = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      b, loc, TypeRange{type}, ValueRange{result}, ValueRange{empty},
      ArrayRef<AffineMap>{id, id}, iterators,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Type integer =
            b.getIntegerType(args[0].getType().getIntOrFloatBitWidth());
        Value bits = arith::BitcastOp::create(b, loc, integer, args[0]);
        APFloat bound = absent.isNegZero()
                            ? -APFloat::getOne(absent.getSemantics())
                            : absent;
        auto predicate = absent.isNegZero() ? arith::CmpIPredicate::sgt
                                            : arith::CmpIPredicate::ne;
        if (mutated("form-kernels.negate-live"))
          predicate = arith::invertPredicate(predicate);
        Value present = arith::CmpIOp::create(
            b, loc, predicate, bits,
            arith::ConstantOp::create(
                b, loc, b.getIntegerAttr(integer, bound.bitcastToAPInt())));
        linalg::YieldOp::create(b, loc, present);
      });
  if (Attribute block = softmax->getAttr(kRowBlockAttr);
      block && llvm::all_of(live.getUsers(), [&](Operation *user) {
        return user->getAttr(kRowBlockAttr) == block;
      }))
    generic->setAttr(kRowBlockAttr, block);
  live.replaceAllUsesWith(generic.getResult(0));
  if (!mutated("form-kernels.absent-unmarked"))
    softmax->setAttr(kMarksAbsentAttr, b.getUnitAttr());
}

void heed::inlineLive(Operation *op) {
  auto semantics = [](Value result) -> const llvm::fltSemantics & {
    return cast<FloatType>(getElementTypeOrSelf(result)).getFloatSemantics();
  };
  if (auto softmax = dyn_cast<attn::SoftmaxOp>(op))
    ::inlineLive(op, softmax.getResult(), softmax.getLive(),
                 APFloat::getZero(semantics(softmax.getResult()),
                                  !mutated("form-kernels.any-zero-is-absent")));
  else if (auto softmax = dyn_cast<attn::LogSoftmaxOp>(op))
    ::inlineLive(
        op, softmax.getResult(), softmax.getLive(),
        APFloat::getInf(semantics(softmax.getResult()), /*Negative=*/true));
}
