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

/// Whether a tile needs tables of its mask, or looks at all keys.
bool needsTables(attn::AttentionLike op) {
  if (op.getWhere().empty())
    return false;
  FailureOr<MaskBounds> mask = readMask(op);
  return failed(mask) || mask->needsTables();
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

bool heed::comparesOnly(Region &where) {
  return !where
              .walk([](Operation *inner) {
                return inner->hasTrait<OpTrait::ConstantLike>() ||
                               inner->hasTrait<OpTrait::IsTerminator>() ||
                               isa<arith::AddIOp, arith::SubIOp, arith::CmpIOp,
                                   arith::AndIOp, arith::OrIOp,
                                   arith::IndexCastOp>(inner)
                           ? WalkResult::advance()
                           : WalkResult::interrupt();
              })
              .wasInterrupted();
}

/// Whether scores are one term of products, times a number at most.
static bool hasPlainScores(attn::AttentionLike op) {
  return op.numTerms() == 1 && op.pair(0).empty() &&
         std::distance(op.getScore().front().begin(),
                       op.getScore().front().end()) <= 3;
}

/// The size of \p dim of \p op, 0 where it is not known.
static int64_t fixedSize(attn::AttentionLike op, unsigned dim) {
  return getConstantIntValue(op.getSizes()[dim]).value_or(0);
}

/// Tables that a score reads at places of its own.
static int64_t readsOfScore(attn::AttentionLike op) {
  int64_t reads = 0;
  auto count = [&](tensor::ExtractOp) { ++reads; };
  op.getScore().walk(count);
  for (unsigned term = 0; term < op.numTerms(); ++term)
    op.pair(term).walk(count);
  return reads;
}

// A query has the sums of a group and those of a block, its maximum and its
// sum. A mask that reads, or scores that read several tables, leave no
// registers for those of four: ptxas spilled.
int64_t heed::queriesOfThread(attn::AttentionLike op,
                              const halide::Target &target) {
  int64_t group = registerGroup(target), ofQuery = 2 * group + 2, others = 48;
  bool fits = (op.getWhere().empty() || comparesOnly(op.getWhere())) &&
              readsOfScore(op) <= 1;
  return fits && 4 * ofQuery + others <= target.threadRegisters ? 4 : 2;
}

/// Whether all of what a block of a GPU brings is in rows of a power of two, at
/// most \p most. Places of others are a register for each turn of the loop that
/// brings them, and so are many turns.
static bool hasEvenRows(attn::AttentionLike op, int64_t most) {
  for (unsigned dim = op.firstDim(DimKind::Contract); dim < op.numLoopDims();
       ++dim)
    if (int64_t size = fixedSize(op, dim);
        !llvm::isPowerOf2_64(size) || size > most)
      return false;
  return true;
}

bool heed::needsMoreRegisters(attn::AttentionLike op,
                              const halide::Target &target) {
  constexpr int64_t mostOfRow = 128;
  bool isPlain =
      op.getWhere().empty() && hasPlainScores(op) && hasEvenRows(op, mostOfRow);
  return queriesOfThread(op, target) > 2 && !isPlain;
}

// As few as the threads that have sums of values leave, so that all threads
// have scores, too, but eight scores at least: of fewer, half of the
// instructions would be loads. Eight, too, of scores that read several tables:
// each place takes two registers beside the sums.
int64_t heed::keysOfThread(attn::AttentionLike op, const halide::Target &target,
                           int64_t queries, int64_t keys) {
  int64_t group = registerGroup(target),
          ownQueries = queriesOfThread(op, target),
          alongQueries = queries / ownQueries,
          values = fixedSize(op, op.firstDim(DimKind::Value)), least = 8,
          most = std::max<int64_t>(128, alongQueries *
                                            llvm::divideCeil(values, group));
  bool readsMuch = readsOfScore(op) > 1;
  for (int64_t own : {2, 3, 4, 6})
    if (own * ownQueries >= least && keys % own == 0 &&
        (readsMuch || alongQueries * (keys / own) <= most))
      return own;
  return group;
}

namespace {

/// Queries and keys of a block of threads, and those of a thread.
struct GPUAttentionTile {
  int64_t queries, keys, ownQueries, ownKeys;
};

/// Every device has blocks of so many threads.
constexpr int64_t mostThreads = 256;

} // namespace

/// Whether queries, keys or values, scores and weights of \p tile fit into
/// shared memory, and its threads are at most \p most.
static bool fitsOnGPU(attn::AttentionLike op, const halide::Target &target,
                      const GPUAttentionTile &tile, int64_t most) {
  const int64_t group = registerGroup(target);
  auto [queries, keys, ownQueries, ownKeys] = tile;
  int64_t ofQuery = 0, ofKey = 0;
  for (unsigned term = 0; term < op.numTerms(); ++term) {
    int64_t length = 1;
    for (unsigned dim : op.contractDims(term))
      length *= fixedSize(op, dim);
    if (op.contractDims(term).empty())
      length = 0;
    ofQuery += length;
    ofKey += length;
  }
  int64_t values =
      llvm::alignTo(fixedSize(op, op.firstDim(DimKind::Value)), group);
  // The state is in registers, unless the last group is no whole one.
  if (fixedSize(op, op.firstDim(DimKind::Value)) % group)
    ofQuery += values + values / group * 2;
  int64_t groups = keys / ownKeys;
  // Values come where keys were. Of each query and group there is a sum of
  // weights, of each query a maximum and a sum.
  int64_t numbers = queries * ofQuery + std::max(ofKey, values) * (keys + 4) +
                    queries * (keys + groups + 2);
  int64_t threads = queries / ownQueries *
                    std::max<int64_t>(llvm::divideCeil(values, group), groups);
  return numbers * 4 <= target.sharedBytes && threads <= most;
}

/// The first tile of at most \p most threads that fits; none: nothing does.
static std::optional<GPUAttentionTile>
tileOfThreads(attn::AttentionLike op, const halide::Target &target,
              int64_t most) {
  const int64_t ownQueries = queriesOfThread(op, target);
  // Beside a mask and the places of odd rows six scores of a query spilled.
  bool isCrowded = !op.getWhere().empty() &&
                   !hasEvenRows(op, std::numeric_limits<int64_t>::max());
  for (auto [queries, keys] : {std::pair<int64_t, int64_t>{64, 48},
                               {64, 32},
                               {32, 48},
                               {32, 32},
                               {16, 32},
                               {32, 16},
                               {16, 16}}) {
    GPUAttentionTile tile{queries, keys, ownQueries,
                          keysOfThread(op, target, queries, keys)};
    bool spills = isCrowded && ownQueries > 2 && tile.ownKeys > 4 &&
                  tile.ownKeys < registerGroup(target);
    if (!spills && fitsOnGPU(op, target, tile, most))
      return tile;
  }
  return std::nullopt;
}

/// The same of a part of the keys. A block of keys is what all threads bring in
/// a few steps, so that memory is asked for much at a time.
static std::optional<GPUAttentionTile>
splitTileOnGPU(attn::AttentionLike op, const halide::Target &target) {
  for (int64_t keys : {64, 32, 16})
    if (GPUAttentionTile tile{4, keys, 1, keysOfSplitThread};
        fitsOnGPU(op, target, tile, mostThreads))
      return tile;
  return std::nullopt;
}

/// The same of queries, of as many threads as every device's blocks have. Of
/// threads with more registers two blocks of so many are none of a
/// multiprocessor.
static std::optional<GPUAttentionTile> tileOnGPU(attn::AttentionLike op,
                                                 const halide::Target &target) {
  constexpr int64_t withMoreRegisters = 192;
  if (needsMoreRegisters(op, target))
    if (auto tile = tileOfThreads(op, target, withMoreRegisters))
      return tile;
  return tileOfThreads(op, target, mostThreads);
}

StringRef heed::whyNotStreamingOnGPU(attn::AttentionOp op,
                                     const halide::Target &target) {
  if (StringRef why = whyNotStreaming(op); !why.empty())
    return why;
  if (op.numDims(DimKind::Query) != 1 || op.numDims(DimKind::Value) != 1)
    return "it has no query or no value dim";
  if (needsSumFirst(op))
    return "its weights are rounded";
  if (op.getLse() && !op.getLse().use_empty())
    return "its log-sum-exp is a result";
  for (unsigned dim = op.firstDim(DimKind::Contract); dim < op.numLoopDims();
       ++dim)
    if (!getConstantIntValue(op.getSizes()[dim]) ||
        *getConstantIntValue(op.getSizes()[dim]) == 0)
      return "the size of its heads is 0 or not known (64 and 128 stream)";
  if (needsTables(op))
    return "the keys that a tile reaches are found by tables";
  if (!tileOnGPU(op, target))
    return "no tile of it fits into shared memory";
  return "";
}

attn::PlanAttr heed::streamingPlan(attn::AttentionLike op,
                                   const halide::Target &target) {
  MLIRContext *context = op->getContext();
  if (target.isGPU()) {
    SmallVector<attn::PipelineAttr> pipelines;
    auto add = [&](Form form, const std::optional<GPUAttentionTile> &tile) {
      if (tile)
        pipelines.push_back(attn::PipelineAttr::get(
            context, form, tile->queries, tile->keys, tile->keys));
    };
    add(Form::Split, splitTileOnGPU(op, target));
    add(Form::Tiles, tileOnGPU(op, target));
    // Absent keys are looked for in all blocks: nothing can give up there.
    return attn::PlanAttr::get(context, attn::Algorithm::Streaming,
                               attn::Normaliser::of(op).excludesLowest,
                               /*evaluating=*/false, pipelines);
  }
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
