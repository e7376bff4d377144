//===- AttentionForms.cpp - pipelines of one attention --------------------===//
#include "passes/Lower/AttentionForms.h"
#include "dialects/Attn/SymbolicDims.h"
#include "passes/Mutation.h"
#include "passes/Plan/AttentionPlan.h"
#include "passes/Schedule/StreamingPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace heed;
using attn::DimKind;

LogicalResult heed::decomposeAttention(func::FuncOp kernel,
                                       const halide::Target &target) {
  SmallVector<attn::AttentionOp> ops;
  kernel.walk([&](attn::AttentionOp op) { ops.push_back(op); });
  IRRewriter rewriter(kernel.getContext());
  auto tiles = kernel.walk([&](attn::OnlineAttentionOp op) {
    if (!op.plan()) {
      op.emitOpError("has no attn.plan, which attn-choose-algorithm decides");
      return WalkResult::interrupt();
    }
    return WalkResult(verifyTiles(op, target));
  });
  if (tiles.wasInterrupted())
    return failure();
  for (attn::AttentionOp op : ops) {
    attn::PlanAttr plan = op.plan();
    if (!plan)
      return op.emitOpError("has no attn.plan, which attn-choose-algorithm "
                            "decides");
    if (plan.getAlgorithm() == attn::Algorithm::Streaming)
      return op.emitOpError("is planned to stream, expected it as "
                            "attn.online_attention (attn-stream-attention)");
    rewriter.setInsertionPoint(op);
    auto definition =
        dyn_cast<linalg::AggregatedOpInterface>(op.getOperation());
    FailureOr<SmallVector<Value>> values = failure();
    if (definition)
      values = definition.decomposeOperation(rewriter);
    if (failed(values))
      return op.emitOpError("has no definition in upstream ops");
    if (plan.getAlgorithm() == attn::Algorithm::RowBlock)
      kernel->setAttr("attn.kind",
                      StringAttr::get(kernel.getContext(), "row block"));
    rewriter.replaceOp(op, *values);
  }
  return success();
}

static StringRef suffixOf(attn::Form form) {
  switch (form) {
  case attn::Form::Rows:
    return "_few";
  case attn::Form::Split:
    return "_split";
  case attn::Form::Narrow:
    return "_narrow";
  case attn::Form::Tiles:
    return "";
  case attn::Form::Bounded:
    return "_bounded";
  }
  llvm_unreachable("a form");
}

SmallVector<AttentionForm> heed::formsOf(attn::AttentionLike op) {
  SmallVector<AttentionForm> forms;
  for (attn::PipelineAttr pipeline : op.plan().getPipelines())
    if (pipeline.getForm() != attn::Form::Bounded)
      forms.push_back({pipeline.getForm(), suffixOf(pipeline.getForm()).str()});
  return forms;
}

namespace {

/// Comparisons of numbers of queries and keys. What may be constant is on the
/// right: there it folds.
struct Numbers {
  OpBuilder &b;
  Location loc;

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value atMost(Value x, Value y) {
    return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ule, x, y);
  }
  Value both(Value x, Value y) {
    return b.createOrFold<arith::AndIOp>(loc, x, y);
  }
  Value either(Value x, Value y) {
    return b.createOrFold<arith::OrIOp>(loc, x, y);
  }
  Value add(Value x, Value y) {
    return b.createOrFold<arith::AddIOp>(loc, x, y);
  }
  Value mul(Value x, Value y) {
    return b.createOrFold<arith::MulIOp>(loc, x, y);
  }
  Value sub(Value x, Value y) {
    return b.createOrFold<arith::SubIOp>(loc, x, y);
  }
  Value pieces(Value x, int64_t y) {
    return b.createOrFold<arith::CeilDivUIOp>(loc, x, constant(y));
  }
  Value atLeastOne(Value x) {
    return b.createOrFold<arith::MaxUIOp>(loc, x, constant(1));
  }
  Value rest(Value x, int64_t y) {
    return b.createOrFold<arith::RemUIOp>(loc, x, constant(y));
  }
  Value select(Value condition, Value x, Value y) {
    return b.createOrFold<arith::SelectOp>(loc, condition, x, y);
  }
};

/// Whether rows are faster than a tile for so few queries. \p members of a
/// group share their keys, if given.
Value areFew(Numbers &n, const halide::Target &target, Value queries,
             Value members) {
  Value few = n.atMost(queries, n.constant(mostQueriesOfOwnRows(target)));
  if (!members)
    return few;
  Value shared = n.atMost(n.constant(2), members);
  Value some = n.atMost(queries, n.constant(mostQueriesOfRows(target)));
  return n.either(n.both(shared, some), few);
}

/// Time of a tile and a key, measured: a tile of two vectors takes less than
/// two of one.
int64_t timeOf(int64_t vectors) { return vectors == 1 ? 6 : vectors * 5; }

/// What a tile costs beside its keys, as so many keys.
constexpr int64_t keysOfTile = 24;

/// Whether no call has as few queries and as many keys as parts of the keys are
/// for: with M = N, say.
bool areNeverSplit(Value queries, Value keys) {
  attn::SymbolicDims dims;
  Size of = dims.size(queries), seen = dims.size(keys);
  constexpr int64_t most = mostQueriesOfSplit, fewest = fewestKeysOfSplit;
  return dims.isNeverNegative(of - Size(most + 1)) ||
         dims.isNeverNegative(Size(fewest - 1) - seen) ||
         dims.isNeverNegative(of - seen + Size(fewest - 1 - most));
}

} // namespace

SmallVector<Value> heed::shareQueries(OpBuilder &b, Location loc,
                                      const halide::Target &target,
                                      ArrayRef<AttentionForm> forms,
                                      Value queries, Value members) {
  Numbers n{b, loc};
  int64_t lanes = target.lanes(32), vectors = tileVectors(target),
          tile = vectors * lanes;
  bool narrow = forms.size() > 2;
  // Of many tiles what the last one leaves unused is little, and each form
  // reads all keys again.
  constexpr int64_t fewTiles = 16;
  Value zero = n.constant(0),
        isShort = n.atMost(queries, n.constant(fewTiles * tile));
  // A tile of one vector takes as long for any number of queries.
  int64_t unit = narrow ? lanes : tile;
  Value over = n.rest(queries, unit);
  Value spare = n.both(isShort, areFew(n, target, over, members));
  spare = n.both(spare, n.atMost(n.constant(unit), queries));
  spare = n.select(spare, over, zero);
  Value all = areFew(n, target, queries, members);
  Value rows = n.select(all, queries, spare);
  Value left = n.sub(queries, rows);
  SmallVector<Value> shares{rows};
  if (narrow) {
    Value last = n.rest(left, tile);
    int64_t most = timeOf(vectors) / timeOf(1) * lanes;
    Value some = n.both(isShort, n.atMost(last, n.constant(most)));
    shares.push_back(n.select(some, last, zero));
    left = n.sub(
        left, mutated("attention-plan.rest-is-narrow") ? last : shares.back());
  }
  shares.push_back(left);
  return shares;
}

Value heed::isFastest(OpBuilder &b, Location loc, attn::AttentionLike op,
                      const halide::Target &target,
                      ArrayRef<AttentionForm> forms, size_t number,
                      Value queries, Value keys, Value members,
                      function_ref<Value(int64_t, int64_t)> reach) {
  Numbers n{b, loc};
  if (forms[number].form == attn::Form::Rows)
    return areFew(n, target, queries, members);
  if (forms[number].form == attn::Form::Split && areNeverSplit(queries, keys))
    return arith::ConstantIntOp::create(b, loc, /*value=*/0, /*width=*/1);
  if (forms[number].form == attn::Form::Split)
    return n.both(n.atMost(queries, n.constant(mostQueriesOfSplit)),
                  n.atMost(n.constant(fewestKeysOfSplit), keys));
  // Of a mask whose reach is not known each tile sees the keys before it: with
  // T tiles of W queries, M - N and W (T + 1) / 2 of them.
  auto cost = [&](attn::Form form) -> Value {
    int64_t vectors = form == attn::Form::Narrow ? 1 : tileVectors(target);
    int64_t width = vectors * target.lanes(32);
    Value tiles = b.createOrFold<arith::DivUIOp>(
        loc, n.add(queries, n.constant(width - 1)), n.constant(width));
    Value all = n.mul(tiles, n.constant(timeOf(vectors)));
    if (op.getWhere().empty())
      return all;
    if (Value seen = reach(width, op.plan().pipeline(form).getPiece()))
      return n.mul(all, n.add(seen, n.constant(keysOfTile)));
    Value more =
        n.sub(b.createOrFold<arith::MaxUIOp>(loc, keys, queries), queries);
    Value after = n.mul(more, n.constant(2));
    Value before = n.mul(n.add(tiles, n.constant(1)), n.constant(width));
    Value seen = n.add(n.add(after, before), n.constant(2 * keysOfTile));
    return n.mul(all, seen);
  };
  return n.atMost(cost(forms[number].form), cost(attn::Form::Tiles));
}

std::optional<KeyGroups> heed::groupsOf(OpBuilder &b, Location loc,
                                        attn::AttentionLike op,
                                        function_ref<Value(Value)> number) {
  std::optional<SharedKeys> shared = sharedKeys(op);
  if (!shared)
    return std::nullopt;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value one = constant(1);
  auto atLeastOne = [&](Value x) -> Value {
    return b.createOrFold<arith::MaxUIOp>(loc, x, one);
  };
  auto divide = [&](Value x, Value y) -> Value {
    return b.createOrFold<arith::DivUIOp>(loc, x, y);
  };
  /// \p x if \p y is a multiple of \p of, else \p other.
  auto ifMultiple = [&](Value y, Value of, Value x, Value other) -> Value {
    Value left = b.createOrFold<arith::RemUIOp>(loc, y, of);
    Value none = b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq,
                                               left, constant(0));
    return b.createOrFold<arith::SelectOp>(loc, none, x, other);
  };
  auto valueOf = [&](AffineExpr expr) -> Value {
    if (auto fixed = dyn_cast<AffineConstantExpr>(expr))
      return constant(fixed.getValue());
    return number(op.getSymbols()[cast<AffineSymbolExpr>(expr).getPosition()]);
  };
  Value all = number(op.getSizes()[op.numDims(DimKind::Batch) - 1]);
  Value alike = atLeastOne(all);
  if (shared->count) {
    Value groups = atLeastOne(valueOf(shared->groups)),
          count = atLeastOne(valueOf(shared->count));
    alike = mutated("attention-plan.any-groups")
                ? divide(count, groups)
                : ifMultiple(count, groups, divide(count, groups), one);
    alike = ifMultiple(all, alike, alike, one);
  }
  Value members = one;
  for (int64_t count = 2; count <= mostMembers; ++count)
    if (mutated("attention-plan.most-members"))
      members = constant(count);
    else
      members = ifMultiple(alike, constant(count), constant(count), members);
  return KeyGroups{members, divide(alike, members)};
}

Value heed::partsOf(OpBuilder &b, Location loc, attn::AttentionLike op,
                    const halide::Target &target,
                    function_ref<Value(Value)> number) {
  constexpr int64_t tasksOfMultiprocessor = 4, fewestBlocks = 2;
  Numbers n{b, loc};
  attn::PipelineAttr split = op.plan().pipeline(attn::Form::Split);
  auto sizeOf = [&](unsigned dim) { return number(op.getSizes()[dim]); };
  Value tiles =
      n.pieces(sizeOf(op.firstDim(DimKind::Query)), split.getQueries());
  for (unsigned dim = 0; dim < op.numDims(DimKind::Batch); ++dim)
    tiles = n.mul(tiles, sizeOf(dim));
  Value wanted = b.createOrFold<arith::CeilDivUIOp>(
            loc, n.constant(tasksOfMultiprocessor * target.multiprocessors),
            n.atLeastOne(tiles)),
        most = n.pieces(sizeOf(op.firstDim(DimKind::Key)),
                        fewestBlocks * split.getBlock());
  return n.atLeastOne(b.createOrFold<arith::MinUIOp>(loc, wanted, most));
}
