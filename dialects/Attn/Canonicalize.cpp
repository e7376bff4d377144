//===- Canonicalize.cpp - attn ops in their simplest form -----------------===//
//
// Only what keeps every bit of every result, NaN and infinities too, and what
// a row without keys yields. So an axis of one element stays: its softmax is
// not 1 where the score is -inf or NaN.
//
//===----------------------------------------------------------------------===//
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/SymbolicDims.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace heed::attn;

namespace {

//===----------------------------------------------------------------------===//
// Tensors of one value
//===----------------------------------------------------------------------===//

/// A tensor of \p type whose every element is \p value; \p extent gives the
/// dynamic ones.
Value filled(OpBuilder &b, Location loc, Type type, double value,
             llvm::function_ref<Value(int64_t)> extent) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<Value> sizes;
  for (int64_t axis = 0; axis < tensor.getRank(); ++axis)
    if (tensor.isDynamicDim(axis))
      sizes.push_back(extent(axis));
  Type element = tensor.getElementType();
  TypedAttr attr = isa<FloatType>(element)
                       ? TypedAttr(b.getFloatAttr(element, value))
                       : TypedAttr(b.getIntegerAttr(element, int64_t(value)));
  Value scalar = arith::ConstantOp::create(b, loc, attr);
  Value empty =
      tensor::EmptyOp::create(b, loc, tensor.getShape(), element, sizes);
  return linalg::FillOp::create(b, loc, scalar, empty).getResult(0);
}

bool isLowest(Value tensor) {
  FloatAttr number;
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    return matchPattern(fill.getInputs()[0], m_Constant(&number)) &&
           number.getValue().isInfinity() && number.getValue().isNegative();
  SplatElementsAttr splat;
  return matchPattern(tensor, m_Constant(&splat)) &&
         splat.getSplatValue<APFloat>().isInfinity() &&
         splat.getSplatValue<APFloat>().isNegative();
}

Value yielded(Region &region) {
  return region.front().getTerminator()->getOperand(0);
}

void clear(PatternRewriter &rewriter, Operation *op, Region &region) {
  rewriter.modifyOpInPlace(op, [&] { rewriter.eraseBlock(&region.front()); });
}

//===----------------------------------------------------------------------===//
// All three: conditions and sinks
//===----------------------------------------------------------------------===//

/// `where` that holds everywhere is none.
template <typename Op> struct DropTrueWhere : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (op.getWhere().empty() || !matchPattern(yielded(op.getWhere()), m_One()))
      return failure();
    clear(rewriter, op, op.getWhere());
    if constexpr (std::is_same_v<Op, AttentionOp>)
      if (!op.getMask().empty())
        clear(rewriter, op, op.getMask());
    return success();
  }
};

/// A sink of -inf has no weight, and a row without keys is empty with it too.
template <typename Op> struct DropLowestSink : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (!op.getSink() || !isLowest(op.getSink()))
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getSinkMutable().clear();
      if constexpr (std::is_same_v<Op, AttentionOp>)
        op.removeSinkMapAttr();
    });
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// `where` that holds nowhere: every row is empty.
template <typename Op> struct FillEmptySoftmax : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (op.getWhere().empty() ||
        !matchPattern(yielded(op.getWhere()), m_Zero()))
      return failure();
    Location loc = op.getLoc();
    auto extent = [&](int64_t axis) {
      return makeExtent(rewriter, loc, op.getInput(), axis);
    };
    double absent = std::is_same_v<Op, LogSoftmaxOp>
                        ? -std::numeric_limits<double>::infinity()
                        : 0;
    Value result =
        filled(rewriter, loc, op.getResult().getType(), absent, extent);
    Value live = filled(rewriter, loc, op.getLive().getType(), 0, extent);
    rewriter.replaceOp(op, {result, live});
    return success();
  }
};

/// What is known of the input's extents is known of the results'.
template <typename Op> struct FoldSoftmaxCast : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto cast = op.getInput().template getDefiningOp<tensor::CastOp>();
    if (!tensor::canFoldIntoConsumerOp(cast))
      return failure();
    auto type = llvm::cast<RankedTensorType>(cast.getSource().getType());
    auto live = RankedTensorType::get(type.getShape(), rewriter.getI1Type());
    Location loc = op.getLoc();
    Value sink = op.getSink();
    if (sink) {
      SmallVector<int64_t> shape;
      for (int64_t axis = 0; axis < type.getRank(); ++axis)
        if (!llvm::is_contained(op.getAxes(), axis))
          shape.push_back(type.getDimSize(axis));
      auto wanted = RankedTensorType::get(shape, type.getElementType());
      if (sink.getType() != wanted)
        sink = tensor::CastOp::create(rewriter, loc, wanted, sink);
    }
    auto refined = Op::create(rewriter, loc, type, live, cast.getSource(), sink,
                              op.getAxes());
    refined->setAttrs(op->getAttrDictionary());
    refined.getWhere().takeBody(op.getWhere());
    SmallVector<Value> results;
    for (auto [fresh, old] : llvm::zip(refined->getResults(), op->getResults()))
      results.push_back(
          fresh.getType() == old.getType()
              ? Value(fresh)
              : tensor::CastOp::create(rewriter, loc, old.getType(), fresh));
    rewriter.replaceOp(op, results);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// \p op with these terms and these types of its results; those with a null
/// type are unused. Casts where a type is new.
void rebuild(PatternRewriter &rewriter, AttentionOp op,
             ArrayRef<unsigned> terms, Type output, Type lse, Type weights) {
  SmallVector<Value> operands;
  SmallVector<AffineMap> maps;
  SmallVector<int64_t> arity;
  for (unsigned term : terms) {
    llvm::append_range(operands, op.term(term));
    llvm::append_range(maps, op.maps(term));
    arity.push_back(op.getTermArity()[term]);
  }
  Location loc = op.getLoc();
  auto fresh = AttentionOp::create(
      rewriter, loc, output, lse, weights, op.getSizes(), op.getSymbols(),
      operands, op.getValues(), op.getSink(), op.getEmpty(), op.getDimsAttr(),
      rewriter.getDenseI64ArrayAttr(arity),
      rewriter.getAffineMapArrayAttr(maps), op.getValueMapsAttr(),
      op.getSinkMapAttr(), op.getResultMapAttr(), op.getMapAttr(),
      op.getDivideAttr(), op.getStabiliseAttr(), terms.size());
  fresh->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  fresh.getScore().takeBody(op.getScore());
  fresh.getWhere().takeBody(op.getWhere());
  fresh.getWeight().takeBody(op.getWeight());
  fresh.getMask().takeBody(op.getMask());
  for (auto [position, term] : llvm::enumerate(terms))
    fresh.pair(position).takeBody(op.pair(term));
  SmallVector<Value> results;
  for (auto [old, now] : {std::pair(op.getOutput(), fresh.getOutput()),
                          std::pair(op.getLse(), fresh.getLse()),
                          std::pair(op.getWeights(), fresh.getWeights())}) {
    if (!old)
      continue;
    Value value = now;
    if (now && now.getType() != old.getType())
      value = tensor::CastOp::create(rewriter, loc, old.getType(), now);
    results.push_back(value);
  }
  rewriter.replaceOp(op, results);
}

Type typeOf(Value value) { return value ? value.getType() : Type(); }

/// Log-sum-exp and weights that nobody reads are not computed.
struct DropUnusedResults : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    auto isUnused = [](Value value) { return value && value.use_empty(); };
    if (!isUnused(op.getLse()) && !isUnused(op.getWeights()))
      return failure();
    Value lse = op.getLse(), weights = op.getWeights();
    rebuild(rewriter, op, llvm::to_vector(llvm::seq(op.numTerms())),
            op.getOutput().getType(), isUnused(lse) ? Type() : typeOf(lse),
            isUnused(weights) ? Type() : typeOf(weights));
    return success();
  }
};

/// A term that the score does not use is not computed; two that are the same
/// are one.
struct SimplifyTerms : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    Block &score = op.getScore().front();
    unsigned indices = op.firstDim(DimKind::Contract);
    auto argument = [&](unsigned term) {
      return score.getArgument(indices + term);
    };
    for (unsigned a = 0; a < op.numTerms(); ++a)
      for (unsigned b = a + 1; b < op.numTerms(); ++b)
        if (op.term(a) == op.term(b) && op.maps(a) == op.maps(b) &&
            op.pair(a).empty() && op.pair(b).empty() &&
            !argument(b).use_empty()) {
          rewriter.replaceAllUsesWith(argument(b), argument(a));
          return success();
        }
    SmallVector<unsigned> kept;
    for (unsigned term = 0; term < op.numTerms(); ++term)
      if (!argument(term).use_empty())
        kept.push_back(term);
    if (kept.empty()) // There is a term, even if the score is a constant.
      kept.push_back(0);
    if (kept.size() == op.numTerms())
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      for (unsigned term = op.numTerms(); term-- > 0;)
        if (!llvm::is_contained(kept, term))
          score.eraseArgument(indices + term);
    });
    rebuild(rewriter, op, kept, op.getOutput().getType(), typeOf(op.getLse()),
            typeOf(op.getWeights()));
    return success();
  }
};

/// Symbols that no map uses are dropped, equal ones are one.
struct SimplifySymbols : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<AffineMap> maps(
        op.getTermMaps().getAsValueRange<AffineMapAttr>());
    llvm::append_range(maps,
                       op.getValueMaps().getAsValueRange<AffineMapAttr>());
    if (op.getSinkMap())
      maps.push_back(*op.getSinkMap());
    llvm::SetVector<Value> kept;
    SmallVector<AffineExpr> replacements;
    for (auto [k, symbol] : llvm::enumerate(op.getSymbols())) {
      bool isUsed = llvm::any_of(maps, [&, k = k](AffineMap map) {
        return map.isFunctionOfSymbol(k);
      });
      if (isUsed)
        kept.insert(symbol);
      // Any expression stands for what does not occur.
      replacements.push_back(
          isUsed ? getAffineSymbolExpr(llvm::find(kept, symbol) - kept.begin(),
                                       op.getContext())
                 : getAffineConstantExpr(0, op.getContext()));
    }
    if (kept.size() == op.getSymbols().size())
      return failure();
    auto renumber = [&](AffineMap map) {
      return map.replaceDimsAndSymbols({}, replacements, map.getNumDims(),
                                       kept.size());
    };
    auto renumberAll = [&](ArrayAttr attr) {
      return rewriter.getAffineMapArrayAttr(
          llvm::map_to_vector(attr.getAsValueRange<AffineMapAttr>(), renumber));
    };
    rewriter.modifyOpInPlace(op, [&] {
      op.setTermMapsAttr(renumberAll(op.getTermMaps()));
      op.setValueMapsAttr(renumberAll(op.getValueMaps()));
      if (op.getSinkMap())
        op.setSinkMapAttr(AffineMapAttr::get(renumber(*op.getSinkMap())));
      op.getSymbolsMutable().assign(kept.getArrayRef());
    });
    return success();
  }
};

/// What says no more than its absence: `weight` that yields the weight, `pair`
/// that multiplies, a result map in loop order, zeros for empty rows.
struct DropDefaults : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  static bool multiplies(Region &pair) {
    Block &block = pair.front();
    if (block.getNumArguments() == 1)
      return yielded(pair) == block.getArgument(0);
    auto product = yielded(pair).getDefiningOp<arith::MulFOp>();
    return block.getNumArguments() == 2 && product &&
           product.getFastmath() == arith::FastMathFlags::none &&
           product.getLhs() == block.getArgument(0) &&
           product.getRhs() == block.getArgument(1);
  }

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getWeight().empty() &&
        yielded(op.getWeight()) ==
            op.getWeight().front().getArguments().back()) {
      clear(rewriter, op, op.getWeight());
      return success();
    }
    for (Region &pair : op.getPairs())
      if (!pair.empty() && multiplies(pair)) {
        clear(rewriter, op, pair);
        return success();
      }
    if (op.getResultMap()) {
      AffineMap written = *op.getResultMap();
      auto order = written.getResults();
      if (llvm::is_sorted(order, [](AffineExpr a, AffineExpr b) {
            return cast<AffineDimExpr>(a).getPosition() <
                   cast<AffineDimExpr>(b).getPosition();
          })) {
        rewriter.modifyOpInPlace(op, [&] { op.removeResultMapAttr(); });
        return success();
      }
    }
    if (op.getEmpty() && matchPattern(op.getEmpty(), m_PosZeroFloat())) {
      rewriter.modifyOpInPlace(op, [&] { op.getEmptyMutable().clear(); });
      return success();
    }
    return failure();
  }
};

/// What is known of extents: of operands through casts, of results by sizes.
struct RefineTypes : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  /// \p type with the extents that \p size knows, by axis.
  static Type refine(Type type, llvm::function_ref<Value(int64_t)> size) {
    if (!type)
      return type;
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape(tensor.getShape());
    for (auto [axis, extent] : llvm::enumerate(shape))
      if (ShapedType::isDynamic(extent))
        if (auto known = getConstantIntValue(size(axis)); known && *known >= 0)
          extent = *known;
    return tensor.clone(shape);
  }

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    auto isStaticCast = [](OpOperand &operand) {
      return tensor::canFoldIntoConsumerOp(
          operand.get().getDefiningOp<tensor::CastOp>());
    };
    if (llvm::any_of(op->getOpOperands(), isStaticCast)) {
      rewriter.modifyOpInPlace(op, [&] {
        for (OpOperand &operand : op->getOpOperands())
          if (isStaticCast(operand))
            operand.set(
                operand.get().getDefiningOp<tensor::CastOp>().getSource());
      });
      return success();
    }
    auto loop = [&](int64_t axis) { return op.getSizes()[axis]; };
    AffineMap map = op.outputMap();
    Type output = refine(op.getOutput().getType(),
                         [&](int64_t axis) {
                           return op.getSizes()[map.getDimPosition(axis)];
                         }),
         lse = refine(typeOf(op.getLse()), loop),
         weights = refine(typeOf(op.getWeights()), loop);
    if (output == op.getOutput().getType() && lse == typeOf(op.getLse()) &&
        weights == typeOf(op.getWeights()))
      return failure();
    rebuild(rewriter, op, llvm::to_vector(llvm::seq(op.numTerms())), output,
            lse, weights);
    return success();
  }
};

/// `where` that holds nowhere: every row is empty.
struct FillEmptyAttention : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getWhere().empty() ||
        !matchPattern(yielded(op.getWhere()), m_Zero()))
      return failure();
    // The log-sum-exp of an empty row is the sink, whose rows may be shared.
    FloatAttr empty;
    if ((op.getLse() && op.getSink()) ||
        (op.getEmpty() && !matchPattern(op.getEmpty(), m_Constant(&empty))))
      return failure();
    Location loc = op.getLoc();
    auto loop = [&](int64_t axis) { return op.getSizes()[axis]; };
    AffineMap map = op.outputMap();
    SmallVector<Value> results{filled(
        rewriter, loc, op.getOutput().getType(),
        empty ? empty.getValueAsDouble() : 0,
        [&](int64_t axis) { return op.getSizes()[map.getDimPosition(axis)]; })};
    if (op.getLse())
      results.push_back(filled(rewriter, loc, op.getLse().getType(),
                               -std::numeric_limits<double>::infinity(), loop));
    if (op.getWeights())
      results.push_back(
          filled(rewriter, loc, op.getWeights().getType(), 0, loop));
    rewriter.replaceOp(op, results);
    return success();
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

void SoftmaxOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *context) {
  patterns.add<DropTrueWhere<SoftmaxOp>, DropLowestSink<SoftmaxOp>,
               FillEmptySoftmax<SoftmaxOp>, FoldSoftmaxCast<SoftmaxOp>>(
      context);
}

void LogSoftmaxOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                               MLIRContext *context) {
  patterns.add<DropTrueWhere<LogSoftmaxOp>, DropLowestSink<LogSoftmaxOp>,
               FillEmptySoftmax<LogSoftmaxOp>, FoldSoftmaxCast<LogSoftmaxOp>>(
      context);
}

void AttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<DropTrueWhere<AttentionOp>, DropLowestSink<AttentionOp>,
               FillEmptyAttention, DropUnusedResults, SimplifyTerms,
               SimplifySymbols, DropDefaults, RefineTypes>(context);
}
