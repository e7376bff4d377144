//===- ChooseAlgorithm.cpp - how each attention is computed ---------------===//
// The decision is an attribute, so that it can be read and changed in the IR.
#include "passes/Masks/MaskBounds.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Plan/AttentionPlan.h"
#include "passes/Plan/RowBlocks.h"
#include "passes/Plan/StoredTensors.h"
#include "passes/Plan/TwoPasses.h"
#include "passes/Remarks.h"

#include "dialects/Attn/SymbolicDims.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace heed {
#define GEN_PASS_DEF_ATTNCHOOSEALGORITHM
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

constexpr StringLiteral passName = "attn-choose-algorithm";

/// Why the rows of \p op cannot be worked on one tile of queries after the
/// other, or an empty string if they can.
StringRef whyNotRowBlock(attn::AttentionOp op) {
  if (op.numDims(attn::DimKind::Query) == 0)
    return "it has no query dim";
  if (op.getLse())
    return "its log-sum-exp is a result, too";
  return "";
}

using attn::DimKind;
using attn::SymbolicDims;

/// Multiplications that \p op takes where no pair is masked: for each pair of a
/// query and a key those of the scores and of the values.
Size productsOf(attn::AttentionOp op, SymbolicDims &dims) {
  auto sizes = [&](ArrayRef<unsigned> wanted) {
    Size product(1);
    for (unsigned dim : wanted)
      product *= dims.size(op.getSizes()[dim]);
    return product;
  };
  Size ofPair = sizes(llvm::to_vector(llvm::seq<unsigned>(
      op.firstDim(DimKind::Value),
      op.firstDim(DimKind::Value) + op.numDims(DimKind::Value))));
  for (unsigned term = 0; term < op.numTerms(); ++term)
    ofPair += sizes(op.contractDims(term));
  return ofPair * sizes(llvm::to_vector(
                      llvm::seq<unsigned>(0, op.firstDim(DimKind::Contract))));
}

/// Those of the sums of \p group.
Size productsOf(ArrayRef<Operation *> group, SymbolicDims &dims) {
  Size sum;
  for (Operation *op : group) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || !generic.getNumReductionLoops())
      continue;
    Size product(1);
    llvm::BitVector known(generic.getNumLoops());
    for (OpOperand &operand : generic->getOpOperands())
      for (auto [axis, expr] : llvm::enumerate(
               generic.getMatchingIndexingMap(&operand).getResults()))
        if (auto dim = dyn_cast<AffineDimExpr>(expr);
            dim && !known.test(dim.getPosition())) {
          known.set(dim.getPosition());
          product *= dims.dim(operand.get(), axis);
        }
    sum += product;
  }
  return sum;
}

/// The dims of \p map, with one more in front of \p at.
AffineMap withDim(AffineMap map, unsigned at) {
  return map.shiftDims(1, mutated("choose-algorithm.key-not-shifted") ? at + 1
                                                                      : at);
}

ArrayAttr withDim(Builder &b, ArrayAttr maps, unsigned at) {
  SmallVector<AffineMap> result;
  for (AffineMap map : maps.getAsValueRange<AffineMapAttr>())
    result.push_back(withDim(map, at));
  return b.getAffineMapArrayAttr(result);
}

/// \p type with an axis of extent 1 in front of \p axis.
Type withAxis(Value value, int64_t axis) {
  if (!value)
    return Type();
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + axis, 1);
  return type.clone(shape);
}

/// \p op with a query dim of extent 1 (no dim of a query is one query). Its
/// results have an axis more, which stands before the last one: where there is
/// a value dim, that is where a vector of it lies whole.
attn::AttentionOp withQuery(OpBuilder &b, attn::AttentionOp op) {
  unsigned at = op.firstDim(attn::DimKind::Query);
  SmallVector<int64_t> dims(op.getDims());
  dims[unsigned(attn::DimKind::Query)] = 1;
  SmallVector<Value> sizes(op.getSizes());
  sizes.insert(sizes.begin() + at,
               arith::ConstantIndexOp::create(b, op.getLoc(), 1));
  AffineMap output = withDim(op.outputMap(), at);
  int64_t axis = std::max<int64_t>(output.getNumResults(), 1) - 1;
  if (mutated("choose-algorithm.query-axis-first"))
    axis = 0;
  output = output.insertResult(b.getAffineDimExpr(at), axis);
  AffineMapAttr sink = op.getSinkMapAttr();
  auto fresh = attn::AttentionOp::create(
      b, op.getLoc(), withAxis(op.getOutput(), axis), withAxis(op.getLse(), at),
      withAxis(op.getWeights(), at), sizes, op.getSymbols(),
      op.getTermOperands(), op.getValues(), op.getSink(), op.getEmpty(),
      b.getDenseI64ArrayAttr(dims), op.getTermArityAttr(),
      withDim(b, op.getTermMaps(), at), withDim(b, op.getValueMaps(), at),
      sink ? AffineMapAttr::get(withDim(sink.getValue(), at)) : sink,
      AffineMapAttr::get(output), op.getMapAttr(), op.getDivideAttr(),
      op.getStabiliseAttr(), op.numTerms());
  IRMapping mapping;
  for (auto [from, to] : llvm::zip(op->getRegions(), fresh->getRegions()))
    from.cloneInto(&to, mapping);
  for (Region *region :
       {&fresh.getScore(), &fresh.getWhere(), &fresh.getWeight()})
    if (!region->empty())
      region->front().insertArgument(
          mutated("choose-algorithm.query-behind-key") ? at + 1 : at,
          b.getIndexType(), op.getLoc());
  return fresh;
}

/// \p value without the axis of extent 1 that \p like does not have: a view.
Value withoutAxis(OpBuilder &b, Value value, Value like, int64_t axis) {
  int64_t rank = cast<RankedTensorType>(like.getType()).getRank();
  SmallVector<ReassociationIndices> groups(rank);
  for (int64_t from = 0; from <= rank; ++from)
    if (rank > 0)
      groups[std::min(from > axis ? from - 1 : from, rank - 1)].push_back(from);
  return tensor::CollapseShapeOp::create(b, value.getLoc(), like.getType(),
                                         value, groups);
}

struct ChooseAlgorithm : heed::impl::AttnChooseAlgorithmBase<ChooseAlgorithm> {
  void runOnOperation() override {
    getOperation()->walk([&](attn::AttentionOp op) {
      if (!op.plan())
        choose(op);
    });
    int64_t number = 0;
    getOperation()->walk([&](Block *block) {
      if (halide::isForGPU(getOperation()))
        return;
      for (ArrayRef<Operation *> group : findRowBlocks(*block)) {
        Builder b(&getContext());
        for (Operation *op : group)
          op->setAttr(kRowBlockAttr, b.getI64IntegerAttr(number));
        ++number;
        remarkDone(group.back(), passName, "row-block",
                   heed::format("all scores of a tile of queries at once, {} "
                                "operations in one kernel",
                                group.size()));
        SymbolicDims dims;
        remarkCost(group.back(), dims.str(productsOf(group, dims)), "");
      }
    });
    getOperation()->walk([&](Operation *op) {
      if (isa<attn::SoftmaxOp, attn::LogSoftmaxOp>(op) &&
          !op->hasAttr(kRowBlockAttr) && isSummed(op->getResult(0)))
        remarkDeclined(
            op, passName, "softmax",
            heed::format("a softmax by itself: its rows are stored, {}",
                         storedText(op->getResult(0))));
    });
  }

  /// Why \p op does not stream on its target; empty: it does.
  static StringRef whyNot(attn::AttentionOp op) {
    return halide::isForGPU(op)
               ? whyNotStreamingOnGPU(op, halide::getTarget(op))
               : whyNotStreaming(op);
  }

  void choose(attn::AttentionOp op) {
    if (halide::isForGPU(op))
      solve(op);
    StringRef why = whyNot(op);
    if (op.numDims(attn::DimKind::Query) == 0)
      op = oneQuery(op, why);
    if (halide::isForGPU(op)) {
      if (!why.empty())
        return storeScores(op, why);
      stream(op);
      remarkDone(op, passName, "streaming",
                 "one pass over the keys, no scores are stored");
      return remarkProducts(op);
    }
    if (!why.empty())
      return wholeRows(op, why);
    if (!needsSumFirst(op)) {
      stream(op);
      remarkDone(op, passName, "streaming",
                 "one pass over the keys, no scores are stored" +
                     evaluated(op));
      return remarkProducts(op);
    }
    OpBuilder b(op);
    TwoPasses passes = inTwoPasses(b, op);
    stream(passes.sums);
    stream(passes.weights);
    setPlan(passes.whole, attn::Algorithm::RowBlock);
    remarkDone(
        passes.weights, passName, "streaming",
        "two passes over the keys, no scores are stored: its weights are "
        "rounded, so the sums of rows come first" +
            evaluated(passes.weights));
    remarkFound(passes.whole, passName, "large-scores",
                "one pass and all scores of a tile of queries at once where "
                "some row's log-sum-exp is 512 or more");
    remarkProducts(passes.sums);
    remarkProducts(passes.weights);
  }

  /// What a remark says of a mask that a plan has evaluated.
  static std::string evaluated(attn::AttentionOp op) {
    return op.plan().getEvaluating()
               ? "; the mask is evaluated before, and keys that no query of a "
                 "tile sees are passed over"
               : "";
  }

  /// The mask of an op that this pass has made, and of one of a GPU, whose
  /// kernels read no tables: there a tile goes over one range of keys.
  static void solve(attn::AttentionOp op) {
    if (op.getWhere().empty())
      return;
    bool isSolved = !op.getMask().empty();
    FailureOr<MaskBounds> bounds = isSolved ? readMask(op) : solveMask(op);
    if (failed(bounds))
      return;
    bool inOneRange = halide::isForGPU(op) && bounds->needsTables();
    if (inOneRange)
      bounds = bounds->inOneRange();
    if (inOneRange || !isSolved)
      writeMask(op, *bounds);
  }

  /// Plans \p op, which whyNot() has nothing against.
  void stream(attn::AttentionOp op) {
    solve(op);
    op->setAttr(attn::kPlanAttr, streamingPlan(op, halide::getTarget(op)));
  }

  void setPlan(attn::AttentionOp op, attn::Algorithm algorithm) {
    op->setAttr(attn::kPlanAttr, attn::PlanAttr::get(op.getContext(), algorithm,
                                                     /*excluding=*/false,
                                                     /*evaluating=*/false, {}));
  }

  /// Plans \p op by its definition, a tile of queries after the other if that
  /// can be. It does not stream: \p why.
  void wholeRows(attn::AttentionOp op, StringRef why) {
    StringRef rows = whyNotRowBlock(op);
    setPlan(op, rows.empty() ? attn::Algorithm::RowBlock
                             : attn::Algorithm::Materialised);
    if (rows.empty())
      remarkDone(
          op, passName, "row-block",
          heed::format("all scores of a tile of queries at once: {}", why));
    else
      remarkDeclined(
          op, passName, "materialised",
          heed::format("the scores are stored: {}, and {}", why, rows));
    remarkProducts(op);
  }

  /// Plans \p op by its definition, a kernel after the other: it does not
  /// stream on a GPU, \p why.
  void storeScores(attn::AttentionOp op, StringRef why) {
    setPlan(op, attn::Algorithm::Materialised);
    remarkDeclined(op, passName, "materialised",
                   heed::format("the scores are stored: {}", why));
    remarkProducts(op);
  }

  void remarkProducts(attn::AttentionOp op) {
    SymbolicDims dims;
    remarkCost(op, dims.str(productsOf(op, dims)),
               op.getWhere().empty() ? "" : ", less where it is masked");
  }

  /// Whether some operation sums elements of \p tensor, or of what is computed
  /// from it element by element.
  bool isSummed(Value tensor) {
    return llvm::any_of(tensor.getUsers(), [&](Operation *user) {
      auto generic = dyn_cast<linalg::GenericOp>(user);
      return generic && (generic.getNumReductionLoops() ||
                         llvm::any_of(generic.getResults(), [&](Value result) {
                           return isSummed(result);
                         }));
    });
  }

  void remarkCost(Operation *op, StringRef products, StringRef but) {
    remarkFound(op, passName, "cost",
                heed::format("costs {} products{}", products, but));
  }

  /// An attention without a query dim, if it streams with one of extent 1; else
  /// \p why it does not.
  attn::AttentionOp oneQuery(attn::AttentionOp op, StringRef &why) {
    OpBuilder b(op);
    attn::AttentionOp fresh = withQuery(b, op);
    solve(fresh); // a GPU has kernels for some masks alone
    why = whyNot(fresh);
    if (!why.empty()) {
      fresh.erase();
      return op;
    }
    fresh->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    for (auto [old, now] : llvm::zip(op->getResults(), fresh->getResults())) {
      auto shape = cast<RankedTensorType>(now.getType()).getShape();
      int64_t axis = old == op.getOutput()
                         ? std::max<int64_t>(shape.size() - 1, 1) - 1
                         : op.firstDim(attn::DimKind::Query);
      old.replaceAllUsesWith(withoutAxis(b, now, old, axis));
    }
    op.erase();
    return fresh;
  }
};

} // namespace
