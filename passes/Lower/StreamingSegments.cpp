//===- StreamingSegments.cpp - keys of several parts ----------------------===//
//
// Where keys and values are joined of parts, memory rows before those of a
// sequence say, each part has blocks and updates of the state of its own, which
// read it where it lies (Kernels/JoinedRows.h). The state is merged over all of
// them as over the blocks of one: no key is computed in another way.
#include "passes/Kernels/JoinedRows.h"
#include "passes/Lower/StreamingBuilder.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;
using namespace heed::streaming;

/// The keys of \p op that are joined of parts, if any are; all of these have
/// the same cuts.
static std::optional<JoinedRows> joinedKeys(attn::OnlineAttentionOp op) {
  SmallVector<Value> operands(op.getTermOperands());
  llvm::append_range(operands, op.getValues());
  for (Value operand : operands)
    if (std::optional<JoinedRows> rows =
            JoinedRows::of(operand.getDefiningOp()))
      return rows;
  return std::nullopt;
}

/// Cuts are what the model says; one that lies behind the last key leaves a
/// part empty.
SmallVector<Extent> heed::segmentCuts(OpBuilder &b, attn::OnlineAttentionOp op,
                                      const IRMapping &scalars, Extent keys) {
  SmallVector<Extent> cuts;
  std::optional<JoinedRows> rows = joinedKeys(op);
  if (!rows)
    return cuts;
  Ops o{b, op.getLoc()};
  Extent before{o.i(0), 0};
  for (Value cut : rows->cuts) {
    APInt constant;
    if (keys.fixed && before.fixed &&
        matchPattern(cut, m_ConstantInt(&constant))) {
      before.fixed = std::max(*before.fixed,
                              std::min(constant.getSExtValue(), *keys.fixed));
      before.value = o.i(*before.fixed);
    } else {
      Value key = IndexMath::narrow(b, op.getLoc(), scalars.lookup(cut));
      before = {o.maxi(before.value, o.mini(key, keys.value)), std::nullopt};
    }
    cuts.push_back(before);
  }
  return cuts;
}

void Streaming::findSegments(Extent all) {
  SmallVector<Extent> ends = segmentCuts(b, op, scalars, all);
  if (ends.empty()) {
    segments.push_back({0, Value(), all, all.fixed});
    return;
  }
  for (const Extent &cut : ends)
    tiling.cuts.push_back(cut.value);
  ends.push_back(all);
  std::optional<JoinedRows> rows = joinedKeys(op);
  Ops o{b, loc};
  Extent first{o.i(0), 0};
  for (auto [number, end] : llvm::enumerate(ends)) {
    Extent count{o.subi(end.value, first.value), std::nullopt};
    if (first.fixed && end.fixed)
      count = {o.i(*end.fixed - *first.fixed), *end.fixed - *first.fixed};
    segments.push_back({unsigned(number), number ? first.value : Value(), count,
                        count.fixed ? count.fixed : rows->mostRows(number)});
    first = end;
  }
}

namespace {

/// What an element of one part of joined rows needs, and not the choice of the
/// part: its rows are in range, so that no read is clamped.
class PartReader {
public:
  PartReader(Ops &o, Location loc, TensorReads &tensors, JoinedRows &rows,
             unsigned part, Value row, ArrayRef<Value> at, IRMapping map)
      : o(o), loc(loc), tensors(tensors), rows(rows), part(part), row(row),
        at(at), map(std::move(map)) {}

  FailureOr<Value> read();

private:
  LogicalResult translate(Value value);
  bool isRow(Operation *inner);

  Ops &o;
  Location loc;
  TensorReads &tensors;
  JoinedRows &rows;
  unsigned part;
  Value row; ///< of the part
  ArrayRef<Value> at;
  IRMapping map;
};

} // namespace

/// Whether \p inner is the row, counted from the part's first one.
bool PartReader::isRow(Operation *inner) {
  auto difference = dyn_cast<arith::SubIOp>(inner);
  auto loop = difference ? difference.getLhs().getDefiningOp<linalg::IndexOp>()
                         : nullptr;
  return loop && loop.getDim() == rows.axis && part > 0 &&
         difference.getRhs() == rows.cuts[part - 1];
}

LogicalResult PartReader::translate(Value value) {
  Operation *inner = value.getDefiningOp();
  if (!inner || map.contains(value) ||
      !rows.op.getRegion().isAncestor(inner->getParentRegion()))
    return success();
  if (isRow(inner)) {
    map.map(value, row);
    return success();
  }
  for (Value operand : inner->getOperands())
    if (failed(translate(operand)))
      return failure();
  auto read = dyn_cast<tensor::ExtractOp>(inner);
  if (!read)
    return translateOp(o.b, inner, map, at, tensors);
  SmallVector<Value> coordinates;
  for (Value index : read.getIndices())
    coordinates.push_back(IndexMath::narrow(o.b, loc, map.lookup(index)));
  FailureOr<Value> element =
      tensors.read(o.b, loc, read.getTensor(), coordinates);
  if (succeeded(element))
    map.map(value, *element);
  return element;
}

FailureOr<Value> PartReader::read() {
  Value element = rows.parts[part]->getTerminator()->getOperand(0);
  if (failed(translate(element)))
    return failure();
  Value result = rows.op.getBody()->getTerminator()->getOperand(0);
  Value chosen = map.lookup(element);
  // A number that was as narrow is not rounded again.
  if (auto wide = chosen.getDefiningOp<arith::ExtFOp>();
      wide && wide.getIn().getType() == result.getType())
    return wide.getIn();
  map.map(rows.chosen, chosen);
  if (failed(translate(result)))
    return failure();
  return map.lookup(result);
}

/// The element of \p tensor at \p at, which is in the part of the stage that is
/// being written.
FailureOr<Value> Streaming::readInSegment(Ops &o, Value tensor,
                                          ArrayRef<Value> at) {
  std::optional<JoinedRows> rows =
      segment ? JoinedRows::of(tensor.getDefiningOp()) : std::nullopt;
  if (!rows)
    return tensors.read(o.b, loc, tensor, at);
  unsigned part = mutated("streaming.read-first-part") ? 0 : segment->number;
  // Counted from the segment's first key on, which its part's is then: of the
  // difference LLVM does not see that it moves by one from key to key.
  Value row = at[rows->axis];
  auto sum = row.getDefiningOp<arith::AddIOp>();
  if (segment->first)
    row = sum && sum.getLhs() == segment->first ? sum.getRhs()
                                                : o.subi(row, segment->first);
  return PartReader(o, loc, tensors, *rows, part, row, at, scalars).read();
}

Value Streaming::firstRow(Ops &o, const StreamingStage &stage, Value kb) {
  Value at = o.muli(kb, stage.keys ? stage.keys : o.i(stage.block));
  return stage.first ? o.addi(stage.first, at) : at;
}

Value Streaming::keyOf(Ops &o, const StreamingStage &stage, Value row) {
  return stage.begin ? o.addi(stage.begin, row) : row;
}

/// How many blocks there are, and of how many keys. Without a mask, the keys
/// that no full block holds are one more, in as many steps as they need. Full
/// blocks are of a constant size: with a size of the call LLVM loads the
/// numbers of V one by one before it needs them, and spills them.
void Streaming::cutBlocks(StreamingStage &stage) {
  Ops o{b, loc};
  const int64_t group = plan.keyGroup, most = stage.block / group;
  Value count = segment->count.value;
  stage.blocks = o.floorDiv(count, stage.block);
  stage.groups = o.i(most);
  stage.keys = stage.present = o.i(stage.block);
  if (!stage.partial)
    return;
  if (plan.masked) {
    if (segments.size() > 1)
      stage.whole = o.floorDiv(count, plan.block);
    stage.blocks = o.floorDiv(o.addi(count, o.i(stage.block - 1)), stage.block);
    return;
  }
  Value left = o.mod(count, plan.block);
  if (mutated("streaming.drop-last-keys"))
    left = o.muli(o.floorDiv(left, group), o.i(group));
  stage.first = o.muli(stage.blocks, o.i(plan.block));
  // The state begins with those of one segment, and is updated by others.
  if (segments.size() > 1)
    stage.blocks = o.mini(left, o.i(1));
  // The least of two, so that Halide knows how much memory it needs.
  stage.groups =
      o.mini(o.floorDiv(o.addi(left, o.i(group - 1)), group), o.i(most));
  stage.keys = o.muli(stage.groups, o.i(group));
  stage.present = o.mini(left, o.i(stage.block));
}

StreamingStage &Streaming::stageOf(const KeySegment &segment, bool partial,
                                   int64_t block) {
  StreamingStage &stage = plan.stages.emplace_back(partial, block);
  stage.segment = segment.number;
  stage.begin = segment.first;
  stage.count = segment.count.value;
  if (segments.size() > 1)
    stage.suffix = std::to_string(segment.number);
  this->segment = &segment;
  return stage;
}
