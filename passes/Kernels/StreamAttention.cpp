//===- StreamAttention.cpp - planned attentions as online ones ------------===//
// What an attention that streams carries from block to block of keys becomes
// results of an op of its own; what is made of it at the end of a row is
// another. Both are one kernel, as nothing of the state is stored.
#include "passes/Kernels/StreamedAttention.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"

#include "dialects/Attn/Normaliser.h"
#include "support/Format.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace heed {
#define GEN_PASS_DEF_ATTNSTREAMATTENTION
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;
using attn::DimKind;

/// The axes of an accumulator: batch, query and value dims of \p op.
static SmallVector<unsigned> axesOf(attn::AttentionLike op) {
  SmallVector<unsigned> dims;
  for (unsigned d = 0; d < op.numLoopDims(); ++d)
    if (op.dimKind(d) != DimKind::Key && op.dimKind(d) != DimKind::Contract)
      dims.push_back(d);
  return dims;
}

StreamedAttention::StreamedAttention(attn::OnlineAttentionOp op) : online(op) {
  for (Operation *user : op->getUsers())
    finish = dyn_cast<attn::FinishOp>(user);
}

AffineMap StreamedAttention::outputMap() {
  SmallVector<unsigned> dims = axesOf(online);
  SmallVector<AffineExpr> exprs;
  for (AffineExpr expr : finish.outputMap().getResults())
    exprs.push_back(getAffineDimExpr(
        dims[cast<AffineDimExpr>(expr).getPosition()], online.getContext()));
  return AffineMap::get(online.numLoopDims(), 0, exprs, online.getContext());
}

StreamedAttention heed::stream(OpBuilder &b, attn::AttentionOp op) {
  Location loc = op.getLoc();
  const auto &normaliser = attn::Normaliser::of(op);
  SmallVector<unsigned> dims = axesOf(op);
  SmallVector<int64_t> shape;
  for (unsigned dim : dims)
    shape.push_back(
        getConstantIntValue(op.getSizes()[dim]).value_or(ShapedType::kDynamic));
  Type f32 = b.getF32Type(), none;
  unsigned rowDims = op.firstDim(DimKind::Key);
  auto row = RankedTensorType::get(ArrayRef(shape).take_front(rowDims), f32);
  // Divided, an exponential may be taken less any maximum.
  bool divided = op.getDivide() && !mutated("stream-attention.never-divided"),
       shifted = normaliser.isShiftable && divided &&
                 !mutated("stream-attention.without-maximum");
  StreamedAttention streamed;
  streamed.online = attn::OnlineAttentionOp::create(
      b, loc, RankedTensorType::get(shape, f32), shifted ? row : none,
      divided ? row : none, op.getSizes(), op.getSymbols(),
      op.getTermOperands(), op.getValues(), op.getDimsAttr(),
      op.getTermArityAttr(), op.getTermMapsAttr(), op.getValueMapsAttr(),
      op.getMapAttr(), op.numTerms());
  streamed.online->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  for (auto [from, to] :
       llvm::zip(op->getRegions(), streamed.online->getRegions()))
    if (&from != &op.getWeight() || !mutated("stream-attention.forget-weight"))
      to.takeBody(from);

  AffineMapAttr sinkMap, resultMap;
  Value sink = divided && !mutated("stream-attention.forget-sink")
                   ? op.getSink()
                   : Value();
  // Batch and query dims stand first in both numberings.
  if (sink)
    sinkMap = AffineMapAttr::get(
        AffineMap::get(dims.size(), op.getSymbols().size(),
                       op.getSinkMap()->getResults(), b.getContext()));
  SmallVector<AffineExpr> exprs;
  for (AffineExpr expr : op.outputMap().getResults())
    exprs.push_back(b.getAffineDimExpr(
        llvm::find(dims, cast<AffineDimExpr>(expr).getPosition()) -
        dims.begin()));
  auto results = AffineMap::get(dims.size(), 0, exprs, b.getContext());
  if (!results.isIdentity() && !mutated("stream-attention.loop-order"))
    resultMap = AffineMapAttr::get(results);
  streamed.finish = attn::FinishOp::create(
      b, loc, op.getOutput().getType(),
      op.getLse() && divided ? op.getLse().getType() : none,
      streamed.online.getAccumulator(), streamed.online.getMaximum(),
      streamed.online.getSum(), sink,
      sink ? ValueRange(op.getSymbols()) : ValueRange(),
      divided ? op.getEmpty() : Value(), sinkMap, resultMap);
  return streamed;
}

attn::AttentionOp heed::joined(OpBuilder &b, StreamedAttention streamed) {
  auto [online, finish] = streamed;
  UnitAttr divide = online.getSum() ? b.getUnitAttr() : UnitAttr(),
           stabilise = online.getMaximum() ? b.getUnitAttr() : UnitAttr();
  AffineMapAttr sinkMap;
  if (auto map = finish.getSinkMap())
    sinkMap = AffineMapAttr::get(
        AffineMap::get(online.numLoopDims(), map->getNumSymbols(),
                       map->getResults(), b.getContext()));
  AffineMap output = streamed.outputMap();
  SmallVector<unsigned> dims = axesOf(online), order;
  for (AffineExpr expr : output.getResults())
    order.push_back(cast<AffineDimExpr>(expr).getPosition());
  auto op = attn::AttentionOp::create(
      b, online.getLoc(), finish.getOutput().getType(),
      finish.getLse() ? finish.getLse().getType() : Type(), Type(),
      online.getSizes(), online.getSymbols(), online.getTermOperands(),
      online.getValues(), finish.getSink(), finish.getEmpty(),
      online.getDimsAttr(), online.getTermArityAttr(), online.getTermMapsAttr(),
      online.getValueMapsAttr(), sinkMap,
      order == dims ? AffineMapAttr() : AffineMapAttr::get(output),
      online.getMapAttr(), divide, stabilise, online.numTerms());
  IRMapping mapping;
  for (auto [from, to] : llvm::zip(online->getRegions(), op->getRegions()))
    from.cloneInto(&to, mapping);
  return op;
}

namespace {

struct StreamAttention : heed::impl::AttnStreamAttentionBase<StreamAttention> {
  void runOnOperation() override {
    SmallVector<attn::AttentionOp> ops;
    getOperation()->walk([&](attn::AttentionOp op) {
      attn::PlanAttr plan = op.plan();
      auto function = op->getParentOfType<func::FuncOp>();
      if (function && function->hasAttr(attn::kKernelAttr) && plan &&
          plan.getAlgorithm() == attn::Algorithm::Streaming)
        ops.push_back(op);
    });
    for (attn::AttentionOp op : ops) {
      OpBuilder b(op);
      StreamedAttention streamed = stream(b, op);
      op.getOutput().replaceAllUsesWith(streamed.finish.getOutput());
      if (op.getLse() && streamed.finish.getLse())
        op.getLse().replaceAllUsesWith(streamed.finish.getLse());
      remarkDone(streamed.online, "attn-stream-attention", "state",
                 heed::format("a row carries its accumulator{} from one block "
                              "of keys to the next",
                              streamed.online.getMaximum() ? ", maximum and sum"
                              : streamed.online.getSum()   ? " and sum"
                                                           : ""));
      op.erase();
    }
  }
};

} // namespace
