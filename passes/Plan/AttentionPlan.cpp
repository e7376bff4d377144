//===- AttentionPlan.cpp - how an attention is computed -------------------===//
#include "passes/Plan/AttentionPlan.h"
#include "passes/Masks/MaskBounds.h"
#include "passes/Mutation.h"
#include "passes/Plan/ScoreBound.h"
#include "passes/Plan/TwoPasses.h"
#include "support/Format.h"

#include "dialects/Attn/Normaliser.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace heed;
using attn::DimKind;
using attn::Form;

StringRef heed::whyNotStreaming(attn::AttentionOp op) {
  if (StringRef why = whyNeverStreaming(op); !why.empty())
    return why;
  if (op.numDims(DimKind::Query) != 1 || op.numDims(DimKind::Key) != 1)
    return "it has several query or key dims";
  if (op.numDims(DimKind::Value) > 1 &&
      !mutated("choose-algorithm.two-value-dims-stream"))
    return "it has several value dims";
  return "";
}

StringRef heed::whyNeverStreaming(attn::AttentionOp op) {
  if (attn::Normaliser::of(op).hasThreshold() &&
      !mutated("choose-algorithm.threshold-streams"))
    return "its normaliser finds a threshold in the whole row";
  // Divided, an exponential may be taken less any maximum.
  if (op.getStabilise() && !op.getDivide() &&
      !mutated("attention-plan.undivided-streams"))
    return "its exponentials of differences from the maximum are not divided";
  if (needsSumFirst(op) && !hasTwoPasses(op))
    return "the factor after its normaliser is no product with the weight";
  if (op.getWeights() && !op.getWeights().use_empty())
    return "its weights are a result";
  if (op.getLse() && !op.getDivide())
    return "its log-sum-exp is a result, and it is not divided by the sum";
  return "";
}

int64_t heed::registerGroup(const halide::Target &target) {
  return target.isGPU() || target.vectorRegisters >= 32 ? 8 : 4;
}

// Accumulators, one row of vectors and a broadcast fill the registers: (group +
// 1) * vectors + 1 <= registers. A dozen accumulators hide the latency of the
// multiply-add; 8 x 3 of 32 registers ran no faster than 8 x 2, whose tiles
// leave less unused at the end of the queries and at the edges of a mask.
int64_t heed::tileVectors(const halide::Target &target) {
  int64_t group = registerGroup(target),
          most = (target.vectorRegisters - 1) / (group + 1);
  return std::clamp<int64_t>(llvm::divideCeil(12, group), 1,
                             std::max<int64_t>(1, most));
}

bool heed::needsTables(attn::AttentionLike op) {
  if (op.getWhere().empty())
    return false;
  FailureOr<MaskBounds> mask = readMask(op);
  return failed(mask) || mask->needsTables();
}

/// Whether scores are likely to exclude keys whose values are not finite: what
/// keys are read from is their value, too, or something is added to products of
/// queries and keys. Then all blocks are computed like those of a mask, which
/// skip absent keys' values. In others only infinite numbers in both, a key and
/// its value, make a product of 0 and infinity, a NaN.
static bool mayExclude(attn::AttentionLike op) {
  if (!attn::Normaliser::of(op).excludesLowest)
    return false;
  unsigned key = op.firstDim(attn::DimKind::Key);
  bool contracts = false, adds = false;
  for (unsigned term = 0; term < op.numTerms(); ++term) {
    bool product = !op.contractDims(term).empty();
    contracts |= product;
    for (auto [operand, map] : llvm::zip(op.term(term), op.maps(term))) {
      if (!map.isFunctionOfDim(key))
        continue;
      if (llvm::is_contained(op.getValues(), operand))
        return true;
      bool byOffset = llvm::any_of(map.getResults(), [&](AffineExpr expr) {
        return op.offsetSign(expr).has_value();
      });
      adds |= !product && !byOffset;
    }
  }
  // A number that all keys of a row share excludes all of them or none, unless
  // the score chooses who gets it.
  Region &score = op.getScore();
  ValueRange keys = score.getArguments().slice(key, op.numDims(DimKind::Key));
  bool chooses = false;
  score.walk([&](Operation *inner) {
    chooses |= isa<arith::SelectOp, scf::IfOp>(inner);
  });
  score.walk([&](Operation *inner) {
    auto read = dyn_cast<tensor::ExtractOp>(inner);
    if (read && isa<FloatType>(read.getType())) {
      llvm::SmallSetVector<Value, 8> needed;
      needed.insert_range(read.getIndices());
      for (size_t k = 0; k < needed.size(); ++k)
        if (Operation *def = needed[k].getDefiningOp())
          needed.insert_range(def->getOperands());
      adds |= chooses ||
              llvm::any_of(keys, [&](Value j) { return needed.contains(j); });
    }
    for (Value operand : inner->getOperands())
      adds |= chooses && isa<FloatType>(operand.getType()) &&
              !score.isAncestor(operand.getParentRegion()) &&
              !matchPattern(operand, m_Constant());
  });
  return contracts && adds;
}

namespace {

/// Keys of a full and of a partial block.
struct Blocks {
  int64_t block, piece;
};

/// Of a masked attention blocks end at the borders of tiles of \p tile
/// queries, so that a causal diagonal cuts pieces of one tile.
Blocks maskedBlocks(int64_t tile) {
  return {tile * std::max<int64_t>(1, 72 / tile), tile};
}

/// Of others, of \p keys where that is known: from 64 to 192 keys a long call
/// takes as long, and of a short one more are in whole blocks. Scores and
/// weights of a block are less than L1 then.
Blocks plainBlocks(std::optional<int64_t> keys, int64_t group) {
  const int64_t step = llvm::alignTo(16, group);
  int64_t block = 64;
  if (keys) {
    block =
        std::max(step, std::min<int64_t>(block, llvm::alignDown(*keys, step)));
    for (int64_t size = block; size * 2 >= block && size > 0; size -= step)
      if (*keys % size == 0) {
        block = size;
        break;
      }
  }
  return {block, block};
}

/// Whether each query has keys of its own, known by tables: then a tile of
/// more queries reaches more keys. Keys that are there or not for all, as those
/// behind a sentence, and equal numbers of two tables of data, as segments
/// have, do not tell.
bool isSparse(attn::AttentionLike op) {
  FailureOr<MaskBounds> mask = readMask(op);
  if (op.getWhere().empty() || failed(mask) || !mask->needsTables())
    return false;
  if (mask->reach.size() > 1)
    return true;
  auto uses = [&](ExprRef e, bool ofKeys) {
    bool found = ofKeys ? e->uses(mask->blockFirst) || e->uses(mask->blockLast)
                        : e->uses(mask->first) || e->uses(mask->last);
    for (const MaskTable &table : mask->tables) {
      bool data = false;
      Exprs::walk(table.value, [&](ExprRef inner) {
        data |= inner->kind == ExprKind::Read;
      });
      if (table.ofKeys == ofKeys && !(ofKeys && data))
        found |= e->uses(table.least) || e->uses(table.greatest);
    }
    return found;
  };
  return llvm::any_of(mask->reach, [&](const MaskPiece &piece) {
    return uses(piece.low, false) ||
           (piece.test && uses(piece.test, false) && uses(piece.test, true));
  });
}

/// Whether an operand has an element of its own for each query and key: terms
/// of pairs are much code already.
bool readsPairs(attn::AttentionLike op) {
  SmallVector<AffineMap> maps;
  for (unsigned term = 0; term < op.numTerms(); ++term)
    maps.append(op.maps(term));
  for (unsigned value = 0; value < op.getValues().size(); ++value)
    maps.push_back(op.valueMap(value));
  return llvm::any_of(maps, [&](AffineMap map) {
    return map.isFunctionOfDim(op.firstDim(DimKind::Query)) &&
           map.isFunctionOfDim(op.firstDim(DimKind::Key));
  });
}

/// Whether the condition is evaluated before, to know which pieces of keys are
/// live: where some of it depends on data of pairs, or is no range of keys.
/// That costs a few integer operations for each pair, for all heads at once,
/// where a live pair costs a multiplication for each of E and F; where tables
/// of data leave tiles out by themselves, it is more than these few pairs cost.
bool evaluatesMask(attn::AttentionLike op) {
  if (op.getWhere().empty())
    return false;
  FailureOr<MaskBounds> mask = readMask(op);
  return succeeded(mask) && !mask->reach.empty() && !mask->exact &&
         mask->tables.empty();
}

} // namespace

attn::PlanAttr heed::streamingPlan(attn::AttentionLike op,
                                   const halide::Target &target) {
  if (target.isGPU())
    return planOnGPU(op, target);
  MLIRContext *context = op->getContext();
  const int64_t lanes = target.lanes(32), vectors = tileVectors(target);
  bool excluding = mayExclude(op), masked = excluding || !op.getWhere().empty();
  auto tiles = [&](Form form, int64_t queries) {
    auto [block, piece] =
        masked ? maskedBlocks(queries)
               : plainBlocks(getConstantIntValue(
                                 op.getSizes()[op.firstDim(DimKind::Key)]),
                             registerGroup(target));
    return attn::PipelineAttr::get(context, form, queries, block, piece);
  };
  attn::PipelineAttr wide =
      tiles(Form::Tiles, lanes * (isSparse(op) ? 1 : vectors));
  // Enough that the merge of a block and its sums over lanes do not show.
  int64_t keysOfRow = 128;
  int64_t pieceOfRow = keysOfRow;
  bool tables = needsTables(op);
  if (FailureOr<MaskBounds> mask = readMask(op); succeeded(mask)) {
    if (mask->needsTables()) // those of tiles serve here, too: a pipeline less
      keysOfRow = pieceOfRow = wide.getPiece();
    else if (!excluding && !mask->full.empty()) // less is read beyond the ends
      pieceOfRow = std::max<int64_t>(16, lanes);
  }
  SmallVector<attn::PipelineAttr> pipelines{
      attn::PipelineAttr::get(context, Form::Rows, 1, keysOfRow, pieceOfRow)};
  // Tables of a mask are cut as tiles are: one width.
  if (!tables && !readsPairs(op) && vectors > 1)
    pipelines.push_back(tiles(Form::Narrow, lanes));
  pipelines.push_back(wide);
  if (!excluding && gainsByScoreBound(op))
    pipelines.push_back(
        attn::PipelineAttr::get(context, Form::Bounded, wide.getQueries(),
                                wide.getBlock(), wide.getPiece()));
  return attn::PlanAttr::get(context, attn::Algorithm::Streaming, excluding,
                             evaluatesMask(op), pipelines);
}

LogicalResult heed::verifyTiles(attn::AttentionLike op,
                                const halide::Target &target) {
  const int64_t lanes = target.isGPU() ? queriesOfThread(op, target)
                                       : target.lanes(32),
                group = registerGroup(target);
  bool masked = op.plan().getExcluding() || !op.getWhere().empty();
  for (attn::PipelineAttr pipeline : op.plan().getPipelines()) {
    bool rows = pipeline.getForm() == Form::Rows,
         split = pipeline.getForm() == Form::Split;
    if (pipeline.getForm() != Form::Tiles && split != target.isGPU())
      return op->emitOpError()
             << format("has a pipeline '{}' in its plan, which {} do not have",
                       stringifyForm(pipeline.getForm()),
                       target.isGPU() ? "GPUs" : "processors");
    bool whole = rows ? pipeline.getQueries() == 1
                      : (split || pipeline.getQueries() % lanes == 0) &&
                            pipeline.getBlock() % group == 0 &&
                            pipeline.getPiece() % group == 0;
    if (!whole || (!masked && pipeline.getBlock() != pipeline.getPiece()))
      return op->emitOpError() << format(
                 "has a pipeline '{}' with tiles of {} queries, blocks of {} "
                 "keys and pieces of {} in its plan, expected {}{}",
                 stringifyForm(pipeline.getForm()), pipeline.getQueries(),
                 pipeline.getBlock(), pipeline.getPiece(),
                 rows ? "one query"
                      : format("multiples of {} queries and {} keys", lanes,
                               group),
                 masked ? "" : ", and blocks of one piece without a mask");
  }
  return success();
}
