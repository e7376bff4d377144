//===- ChunkLinear.cpp - the forms of a linear attention ------------------===//
//
// A step is a product with a vector and adds another to the state: little work
// on much memory. A chunk of steps is products of matrices, and the state
// passes from chunk to chunk.
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Recurrence/PartsLoop.h"
#include "passes/Recurrence/WriteChunk.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace heed {
#define GEN_PASS_DEF_ATTNCHUNKLINEARATTENTION
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

/// The part of \p tensor, read by \p map, of \p length steps from \p first.
Value stepsOf(OpBuilder &b, attn::LinearAttentionOp op, Value tensor,
              AffineMap map, OpFoldResult first, OpFoldResult length) {
  if (!map.isFunctionOfDim(op.stepDim()))
    return tensor;
  SmallVector<OpFoldResult> offsets, sizes,
      strides(map.getNumResults(), b.getIndexAttr(1));
  for (AffineExpr result : map.getResults()) {
    unsigned dim = cast<AffineDimExpr>(result).getPosition();
    bool isStep = dim == op.stepDim();
    offsets.push_back(isStep ? first : b.getIndexAttr(0));
    sizes.push_back(isStep ? length : getAsOpFoldResult(op.getSizes()[dim]));
  }
  return tensor::ExtractSliceOp::create(b, op.getLoc(), tensor, offsets, sizes,
                                        strides);
}

Value floatConstant(OpBuilder &b, Location loc, double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}

/// The products of decays that are the same in each step, of \p steps of them.
DecayProducts sameInEach(OpBuilder &b, attn::LinearAttentionOp op,
                         int64_t steps, Value powers) {
  if (!powers || decaysByChannel(op))
    return {};
  return DecayProducts(b, op, op.getDecay(), /*key=*/{}, b.getIndexAttr(steps),
                       /*start=*/{}, powers);
}

/// A chunk; \p hasState says whether there is a state yet, null: always, if one
/// is given.
LinearChunk chunkAt(OpBuilder &b, attn::LinearAttentionOp op,
                    const DecayProducts &same, Value powers, OpFoldResult first,
                    OpFoldResult length, Value state, Value hasState = {}) {
  Location loc = op.getLoc();
  Value parts[attn::LinearAttentionOp::NumParts];
  for (auto [which, part] : llvm::enumerate(parts))
    if (Value whole = op.part(which))
      part = stepsOf(b, op, whole, op.map(which), first, length);
  auto [query, key, value, decay, erase] = parts;
  LinearChunk chunk{query, key, value, erase, state, same, length, hasState};
  chunk.sameDecay = same ? decay : Value();
  if (!decay || same)
    return chunk;
  Value start = floatConstant(b, loc, state != nullptr);
  if (hasState)
    start = arith::SelectOp::create(b, loc, hasState, start,
                                    floatConstant(b, loc, 0));
  chunk.decays = DecayProducts(
      b, op, decay, decaysByChannel(op) ? key : Value(), length, start, powers);
  return chunk;
}

/// All steps as one chunk.
void writeWhole(attn::LinearAttentionOp op, int64_t steps) {
  OpBuilder b(op);
  Value powers = decayPowers(b, op, steps);
  DecayProducts same = sameInEach(b, op, steps, powers);
  auto [output, state] =
      writeChunk(b, op,
                 chunkAt(b, op, same, powers, b.getIndexAttr(0),
                         b.getIndexAttr(steps), op.getStart()));
  op.getOutput().replaceAllUsesWith(
      castTo(b, output, op.getOutput().getType()));
  op.getState().replaceAllUsesWith(castTo(b, state, op.getState().getType()));
  op.erase();
}

/// A loop over chunks of at most \p size steps.
void writeChunks(attn::LinearAttentionOp op, int64_t size) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value powers = decayPowers(b, op, size);
  DecayProducts same = sameInEach(b, op, size, powers);
  auto outputType = cast<RankedTensorType>(op.getOutput().getType());
  SmallVector<OpFoldResult> sizes;
  for (unsigned dim = 0; dim < op.numLoops(); ++dim)
    if (dim < op.firstContract() || dim >= op.firstValue())
      sizes.push_back(getAsOpFoldResult(op.getSizes()[dim]));
  Value out =
      tensor::EmptyOp::create(b, loc, sizes, outputType.getElementType());
  Value low = arith::ConstantIndexOp::create(b, loc, 0);
  auto write = [&](ValueRange carried, Value first, OpFoldResult length) {
    Value hasState;
    if (!op.getStart())
      hasState =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, first, low);
    auto [rows, state] = writeChunk(
        b, op,
        chunkAt(b, op, same, powers, first, length, carried[0], hasState));
    SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
        strides(sizes.size(), b.getIndexAttr(1)), part(sizes);
    offsets[op.stepDim()] = mutated("chunk.first-place")
                                ? OpFoldResult(b.getIndexAttr(0))
                                : OpFoldResult(first);
    part[op.stepDim()] = length;
    Value next = tensor::InsertSliceOp::create(b, loc, rows, carried[1],
                                               offsets, part, strides);
    return SmallVector<Value>{mutated("chunk.keep-state") ? carried[0] : state,
                              next};
  };
  scf::ForOp loop = loopOverParts(
      b, loc, low, op.getSizes()[op.stepDim()], b.getIndexAttr(size),
      {op.makeStart(b), castTo(b, out, outputType)}, write);
  op.getOutput().replaceAllUsesWith(loop.getResult(1));
  op.getState().replaceAllUsesWith(loop.getResult(0));
  op.erase();
}

/// Whether values decay each by its own.
bool decaysByValue(attn::LinearAttentionOp op) {
  return op.getDecay() &&
         llvm::any_of(llvm::seq(op.firstValue(), op.numLoops()),
                      [&](unsigned dim) {
                        return op.map(attn::LinearAttentionOp::Decay)
                            .isFunctionOfDim(dim);
                      });
}

/// Whether columns of the state are long enough for vectors and short enough
/// for the first cache, where they stay over the steps (attn-block-scans): each
/// number of them is then read and written once a step, in products with a row
/// of keys and one of queries, and nothing is computed of pairs of steps. A sum
/// of very many products, of which none decays, is rounded less by chunks.
bool hasShortColumns(attn::LinearAttentionOp op) {
  constexpr int64_t mostPlaces = 128, leastColumns = 16, mostAdded = 1 << 16;
  if (op.getNumContract() != 1 || op.getNumValue() != 1)
    return false;
  auto known = [&](unsigned dim) {
    return getConstantIntValue(op.getSizes()[dim]).value_or(0);
  };
  AffineMap values = op.map(attn::LinearAttentionOp::Values);
  for (unsigned k = 0; k + 1 < values.getNumResults(); ++k)
    if (values.getResult(k).isFunctionOfDim(op.firstValue()))
      return false; // columns lie apart
  int64_t places = known(op.firstContract()), steps = known(op.stepDim());
  bool fades = op.getDecay() || (steps > 0 && steps <= mostAdded);
  return fades && places > 0 && places <= mostPlaces &&
         known(op.firstValue()) >= leastColumns;
}

/// How many steps a chunk has: what a step's state costs, as often as the pairs
/// within a chunk do.
int64_t chunkSize(attn::LinearAttentionOp op) {
  if (decaysByChannel(op))
    return 16;
  auto product = [&](unsigned first, unsigned count) -> std::optional<int64_t> {
    int64_t all = 1;
    for (Value size : op.getSizes().slice(first, count)) {
      std::optional<int64_t> number = getConstantIntValue(size);
      if (!number)
        return std::nullopt;
      all *= *number;
    }
    return all;
  };
  std::optional<int64_t> e = product(op.firstContract(), op.getNumContract()),
                         f = product(op.firstValue(), op.getNumValue());
  constexpr int64_t least = 64, most = 512;
  if (!e || !f)
    return least;
  int64_t even = *e * *f / std::max<int64_t>(*e + *f, 1);
  return std::clamp(int64_t(llvm::PowerOf2Ceil(even)), least, most);
}

struct ChunkLinearAttention
    : heed::impl::AttnChunkLinearAttentionBase<ChunkLinearAttention> {
  static constexpr StringLiteral passName = "attn-chunk-linear-attention";

  void runOnOperation() override {
    SmallVector<attn::LinearAttentionOp> ops;
    getOperation().walk([&](attn::LinearAttentionOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (attn::LinearAttentionOp op : ops) {
      std::optional<int64_t> steps =
          getConstantIntValue(op.getSizes()[op.stepDim()]);
      if (steps && *steps <= 1) {
        remarkDone(op, passName, "recurrence", "one step");
        rewriter.setInsertionPoint(op);
        rewriter.replaceOp(op, *op.decomposeOperation(rewriter));
        continue;
      }
      int64_t size = chunkSize(op);
      if (decaysByValue(op)) {
        remarkDone(op, passName, "recurrence",
                   "step by step: values decay each by its own");
        rewriter.setInsertionPoint(op);
        rewriter.replaceOp(op, *op.decomposeOperation(rewriter));
      } else if (steps && *steps <= size) {
        remarkDone(op, passName, "recurrence",
                   format("parallel: {} steps are products of each with those "
                          "before it",
                          *steps));
        writeWhole(op, *steps);
      } else if (hasShortColumns(op)) {
        remarkDone(op, passName, "recurrence",
                   "sequential: columns of the state stay in the first cache");
        rewriter.setInsertionPoint(op);
        rewriter.replaceOp(op, *op.decomposeOperation(rewriter));
      } else if (!op.getNumValue()) {
        remarkDone(op, passName, "recurrence",
                   "a sum of keys, which queries read: the state is no larger "
                   "than a key");
        rewriter.setInsertionPoint(op);
        rewriter.replaceOp(op, *op.decomposeOperation(rewriter));
      } else {
        remarkDone(
            op, passName, "recurrence",
            format("chunked: products within {} steps{}, and a state "
                   "from chunk to chunk",
                   size,
                   decaysByChannel(op) ? " by the decays of channels" : ""));
        writeChunks(op, size);
      }
    }
  }
};

} // namespace
