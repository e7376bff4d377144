//===- ReportScores.cpp - reference-report-scores: how large scores become ===//
//
// The bound of heed-check grows with the scores, and its inputs must hold empty
// rows: both are measured, by results of the reference beside the model's own.
//
//===----------------------------------------------------------------------===//

#include "compiler/Reference/Passes.h"
#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace heed::reference {
#define GEN_PASS_DEF_REFERENCEREPORTSCORES
#include "compiler/Reference/Passes.h.inc"

namespace {

bool isReduction(linalg::GenericOp op) { return op.getNumReductionLoops() > 0; }

/// \p value and the tensors that it is computed from, back to the contractions
/// and no further. Nothing if there is no contraction: what is read as it
/// stands carries no error.
void scoresOf(Value value, SetVector<Value> &scores) {
  SetVector<Value> seen;
  bool contracted = false;
  std::function<void(Value)> walk = [&](Value v) {
    if (!isa<FloatType>(getElementTypeOrSelf(v)) ||
        !isa<RankedTensorType>(v.getType()))
      return;
    Operation *def = v.getDefiningOp();
    if (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                        tensor::CastOp>(def))
      return walk(def->getOperand(0));
    auto op = dyn_cast_or_null<linalg::GenericOp>(def);
    if (!op || !seen.insert(v))
      return;
    if (isReduction(op)) {
      contracted = true;
      return;
    }
    for (Value input : op.getInputs())
      walk(input);
    op.getRegion().walk(
        [&](tensor::ExtractOp read) { walk(read.getTensor()); });
  };
  walk(value);
  if (contracted)
    scores.insert(seen.begin(), seen.end());
}

/// The largest finite magnitude, and the fewest and most live keys of a row.
enum { Largest, Fewest, Most, NumReported };
using Reported = SmallVector<Value>;

/// The condition under which the body of \p op adds its term, `where` of a sum.
/// Null if that is no such sum.
Value conditionOf(linalg::GenericOp op) {
  if (!isReduction(op) || op.getNumDpsInits() != 1)
    return {};
  Value out = op.getRegionOutputArgs().front();
  auto add = op.getBody()
                 ->getTerminator()
                 ->getOperand(0)
                 .getDefiningOp<arith::AddFOp>();
  if (!out.getType().isF32() || !add ||
      (add.getLhs() != out && add.getRhs() != out))
    return {};
  Value term = add.getLhs() == out ? add.getRhs() : add.getLhs();
  if (auto select = term.getDefiningOp<arith::SelectOp>())
    if (matchPattern(select.getFalseValue(), m_AnyZeroFloat()))
      return select.getCondition();
  if (auto either = term.getDefiningOp<scf::IfOp>();
      either && !either.getElseRegion().empty())
    if (matchPattern(either.elseYield().getOperand(0), m_AnyZeroFloat()))
      return either.getCondition();
  return {};
}

struct ReportScores : impl::ReferenceReportScoresBase<ReportScores> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!function->hasAttr(attn::kModelAttr) || function.isExternal())
      return;
    // The scores of a function beside softmax are what an exponential takes
    // (softmax written out, sigmoid), where a contraction made it.
    function.walk([&](Operation *op) {
      if (isa<attn::SoftmaxOp, attn::LogSoftmaxOp>(op))
        scoresOf(op->getOperand(0), scores);
      else if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
        bool hasExp = false;
        generic.getRegion().walk([&](Operation *inner) {
          hasExp |= isa<math::ExpOp, math::Exp2Op, math::ExpM1Op>(inner);
        });
        for (Value input : generic.getInputs())
          if (hasExp)
            scoresOf(input, scores);
      }
    });

    // A sum beside softmax says itself whether its row is empty.
    hasSoftmax = function
                     .walk([](Operation *op) {
                       return isa<attn::SoftmaxOp>(op) ? WalkResult::interrupt()
                                                       : WalkResult::advance();
                     })
                     .wasInterrupted();

    Operation *end = function.getBody().front().getTerminator();
    IRRewriter b(&getContext());
    b.setInsertionPointToStart(&function.getBody().front());
    Reported report;
    for (double start : {0.0, std::numeric_limits<double>::infinity(), 0.0})
      report.push_back(arith::ConstantOp::create(
          b, end->getLoc(),
          DenseElementsAttr::get(RankedTensorType::get({}, b.getF32Type()),
                                 float(start))));
    report = measure(b, function.getBody().front(), report);
    end->insertOperands(end->getNumOperands(), report);
    const char *names[] = {"largest score", "fewest live keys",
                           "most live keys"};
    for (auto [name, value] : llvm::zip(names, report))
      (void)function.insertResult(
          function.getNumResults(), value.getType(),
          b.getDictionaryAttr(
              {b.getNamedAttr(attn::kNameAttr, b.getStringAttr(name)),
               b.getNamedAttr(attn::kDimsAttr, b.getArrayAttr({}))}));
  }

  /// Adds to \p block what measures its scores; the measures after it.
  Reported measure(IRRewriter &b, Block &block, Reported report) {
    SmallVector<Operation *> ops;
    for (Operation &op : block)
      ops.push_back(&op);
    for (Operation *op : ops) {
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        report = throughLoop(b, loop, std::move(report));
        continue;
      }
      b.setInsertionPointAfter(op);
      for (Value result : op->getResults())
        if (scores.contains(result))
          report[Largest] = largest(b, result, report[Largest]);
      if (auto softmax = dyn_cast<attn::SoftmaxOp>(op))
        countLive(b, softmax, report);
      else if (auto sum = dyn_cast<linalg::GenericOp>(op))
        countSummed(b, sum, report);
    }
    return report;
  }

  Reported throughLoop(IRRewriter &b, scf::ForOp loop, Reported report) {
    bool any = false;
    loop.getBody()->walk([&](Operation *op) {
      auto sum = dyn_cast<linalg::GenericOp>(op);
      any |= isa<attn::SoftmaxOp>(op) || (sum && conditionOf(sum)) ||
             llvm::any_of(op->getResults(),
                          [&](Value v) { return scores.contains(v); });
    });
    if (!any)
      return report;
    b.setInsertionPoint(loop);
    FailureOr<LoopLikeOpInterface> wider = loop.replaceWithAdditionalYields(
        b, report, /*replaceInitOperandUsesInLoop=*/false,
        [&](OpBuilder &, Location, ArrayRef<BlockArgument> carried) {
          // The body moves to the new loop afterwards.
          return measure(b, *loop.getBody(),
                         Reported(carried.begin(), carried.end()));
        });
    return Reported((*wider)->getResults().take_back(NumReported));
  }

  /// max of \p before and the finite |elements| of \p tensor.
  Value largest(OpBuilder &b, Value tensor, Value before) {
    Location loc = tensor.getLoc();
    int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
    AffineMap none = AffineMap::get(rank, 0, b.getContext());
    return linalg::GenericOp::create(
               b, loc, before.getType(), tensor, before,
               ArrayRef<AffineMap>{b.getMultiDimIdentityMap(rank), none},
               SmallVector<utils::IteratorType>(rank,
                                                utils::IteratorType::reduction),
               [&](OpBuilder &in, Location, ValueRange args) {
                 Value x = args[0];
                 if (!x.getType().isF32())
                   x = arith::ExtFOp::create(in, loc, in.getF32Type(), x);
                 Value size = math::AbsFOp::create(in, loc, x);
                 Value infinity = arith::ConstantOp::create(
                     in, loc,
                     in.getF32FloatAttr(
                         std::numeric_limits<float>::infinity()));
                 Value finite = arith::CmpFOp::create(
                     in, loc, arith::CmpFPredicate::OLT, size, infinity);
                 Value larger =
                     arith::MaximumFOp::create(in, loc, args[1], size);
                 linalg::YieldOp::create(
                     in, loc,
                     arith::SelectOp::create(in, loc, finite, larger, args[1])
                         .getResult());
               })
        .getResult(0);
  }

  /// Keys of a row that are in `where` and whose score is above -inf.
  void countLive(OpBuilder &b, attn::SoftmaxOp softmax, Reported &report) {
    Location loc = softmax.getLoc();
    Value score = softmax->getOperand(0);
    int64_t rank = cast<RankedTensorType>(score.getType()).getRank();
    SmallVector<OpFoldResult> extents;
    SmallVector<AffineExpr> rows;
    SmallVector<utils::IteratorType> loops;
    SmallVector<OpFoldResult> all = tensor::getMixedSizes(b, loc, score);
    for (int64_t axis = 0; axis < rank; ++axis) {
      bool summed = llvm::is_contained(softmax.getAxes(), axis);
      loops.push_back(summed ? utils::IteratorType::reduction
                             : utils::IteratorType::parallel);
      if (summed)
        continue;
      rows.push_back(b.getAffineDimExpr(axis));
      extents.push_back(all[axis]);
    }
    Type f32 = b.getF32Type();
    auto constant = [&](OpBuilder &in, double value) {
      return arith::ConstantOp::create(in, loc, in.getF32FloatAttr(value));
    };
    Value counts =
        linalg::FillOp::create(
            b, loc, ValueRange{constant(b, 0)},
            ValueRange{tensor::EmptyOp::create(b, loc, extents, f32)})
            .getResult(0);
    AffineMap id = b.getMultiDimIdentityMap(rank);
    counts =
        linalg::GenericOp::create(
            b, loc, counts.getType(), ValueRange{score, softmax.getLive()},
            counts,
            ArrayRef<AffineMap>{id, id,
                                AffineMap::get(rank, 0, rows, b.getContext())},
            loops,
            [&](OpBuilder &in, Location, ValueRange args) {
              Type type = args[0].getType();
              Value lowest = arith::ConstantOp::create(
                  in, loc,
                  in.getFloatAttr(type,
                                  -std::numeric_limits<double>::infinity()));
              Value above = arith::CmpFOp::create(
                  in, loc, arith::CmpFPredicate::UNE, args[0], lowest);
              Value live = arith::AndIOp::create(in, loc, above, args[1]);
              Value one = arith::UIToFPOp::create(in, loc, f32, live);
              linalg::YieldOp::create(
                  in, loc,
                  arith::AddFOp::create(in, loc, args[2], one).getResult());
            })
            .getResult(0);
    countRows(b, counts, report);
  }

  /// Keys of a row that the `where` of a sum lets in.
  void countSummed(IRRewriter &b, linalg::GenericOp sum, Reported &report) {
    if (hasSoftmax || !conditionOf(sum))
      return;
    auto counter = cast<linalg::GenericOp>(b.clone(*sum));
    OpBuilder in(counter.getBody()->getTerminator());
    Value one = arith::UIToFPOp::create(in, sum.getLoc(), in.getF32Type(),
                                        conditionOf(counter));
    counter.getBody()->getTerminator()->setOperand(
        0, arith::AddFOp::create(in, sum.getLoc(),
                                 counter.getRegionOutputArgs().front(), one));
    b.setInsertionPointAfter(counter);
    countRows(b, counter.getResult(0), report);
  }

  /// The fewest and the most keys of all rows.
  void countRows(OpBuilder &b, Value counts, Reported &report) {
    Location loc = counts.getLoc();
    int64_t rank = cast<RankedTensorType>(counts.getType()).getRank();
    AffineMap over = b.getMultiDimIdentityMap(rank);
    AffineMap none = AffineMap::get(rank, 0, b.getContext());
    SmallVector<utils::IteratorType> every(rank,
                                           utils::IteratorType::reduction);
    for (unsigned which : {Fewest, Most})
      report[which] =
          linalg::GenericOp::create(
              b, loc, report[which].getType(), counts, report[which],
              ArrayRef<AffineMap>{over, none}, every,
              [&](OpBuilder &in, Location, ValueRange args) {
                Value chosen =
                    which == Fewest
                        ? Value(arith::MinimumFOp::create(in, loc, args))
                        : Value(arith::MaximumFOp::create(in, loc, args));
                linalg::YieldOp::create(in, loc, chosen);
              })
              .getResult(0);
  }

  SetVector<Value> scores;
  bool hasSoftmax = false;
};

} // namespace
} // namespace heed::reference
