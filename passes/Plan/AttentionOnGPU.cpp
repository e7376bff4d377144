//===- AttentionOnGPU.cpp - tiles of attention on GPUs --------------------===//
//
// By formula from the target's shared memory and registers. Measured:
// passes/Schedule/README.md, "GPUs".
#include "passes/Masks/MaskBounds.h"
#include "passes/Mutation.h"
#include "passes/Plan/AttentionPlan.h"
#include "passes/Plan/TwoPasses.h"

#include "dialects/Attn/Normaliser.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace heed;
using attn::DimKind;
using attn::Form;

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
// sum. A mask that reads, scores that read several tables or are several
// products leave no registers for those of four: ptxas spilled.
int64_t heed::queriesOfThread(attn::AttentionLike op,
                              const halide::Target &target) {
  int64_t group = registerGroup(target), ofQuery = 2 * group + 2, others = 48;
  bool fits = (op.getWhere().empty() || comparesOnly(op.getWhere())) &&
              readsOfScore(op) <= 1 && op.numTerms() == 1;
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

/// Whether rows of queries, and of keys, lie side by side, as in [B, H, N, E]
/// but not [B, N, H, E], where how far they lie apart takes the last registers.
static bool hasDenseRows(attn::AttentionLike op) {
  auto isDense = [&](AffineMap map) {
    unsigned axes = map.getNumResults();
    if (axes < 2)
      return false;
    auto row = dyn_cast<AffineDimExpr>(map.getResult(axes - 2));
    return row && llvm::is_contained({DimKind::Query, DimKind::Key},
                                     op.dimKind(row.getPosition()));
  };
  return llvm::all_of(op.getTermMaps().getAsValueRange<AffineMapAttr>(),
                      isDense) &&
         llvm::all_of(op.getValueMaps().getAsValueRange<AffineMapAttr>(),
                      isDense);
}

/// Whether \p where divides places, as of keys of two dims that are one loop,
/// or reads data of queries and of keys.
static bool isLong(Region &where) {
  int64_t reads = 0;
  auto found = where.walk([&](Operation *inner) {
    reads += isa<tensor::ExtractOp>(inner);
    bool divides =
        isa<arith::DivSIOp, arith::FloorDivSIOp, arith::RemSIOp>(inner);
    return divides || reads > 1 ? WalkResult::interrupt()
                                : WalkResult::advance();
  });
  return found.wasInterrupted();
}

bool heed::needsMoreRegisters(attn::AttentionLike op,
                              const halide::Target &target) {
  constexpr int64_t mostOfRow = 128;
  bool isPlain = op.getWhere().empty() && hasPlainScores(op) &&
                 hasEvenRows(op, mostOfRow) && hasDenseRows(op) &&
                 llvm::none_of(op.getValues(), [&](Value value) {
                   return llvm::is_contained(op.getTermOperands(), value);
                 });
  return (queriesOfThread(op, target) > 2 && !isPlain) || op.numTerms() > 1 ||
         isLong(op.getWhere());
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

attn::PlanAttr heed::planOnGPU(attn::AttentionLike op,
                               const halide::Target &target) {
  MLIRContext *context = op->getContext();
  SmallVector<attn::PipelineAttr> pipelines;
  auto add = [&](Form form, const std::optional<GPUAttentionTile> &tile) {
    if (tile)
      pipelines.push_back(attn::PipelineAttr::get(context, form, tile->queries,
                                                  tile->keys, tile->keys));
  };
  add(Form::Split, splitTileOnGPU(op, target));
  add(Form::Tiles, tileOnGPU(op, target));
  // Absent keys are looked for in all blocks: nothing can give up there.
  return attn::PlanAttr::get(context, attn::Algorithm::Streaming,
                             attn::Normaliser::of(op).excludesLowest,
                             /*evaluating=*/false, pipelines);
}
