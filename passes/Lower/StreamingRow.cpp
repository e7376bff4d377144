//===- StreamingRow.cpp - one query at a time in streaming attention ------===//
// A tile of queries would leave most lanes idle when there are few of them
// (one, where text is generated), and too few tasks. Here a task is one query
// and a part of its keys, in blocks of B keys:
//
//   T  [B]        scores: lanes are the contracted dim, which are added up at
//                 the end, of as many keys at a time
//   S, P [B]      lanes are keys
//   PV [F]        lanes are the value dim, 8 keys at a time
//   part [F]      tuple (accumulator, m, l), merged over the blocks of a part
//   st [F]        the parts of a row, merged
//
// Only blocks that are not full evaluate the mask. An absent key has weight 0,
// and its row of V is cleared by a mask of bits: NaN in V does not show.
//
// T to PV are in StreamingRowBlock.cpp, the schedule in StreamingRowPlan.cpp;
// here are the groups that read the same keys, the parts and their merge.
#include "passes/Lower/AttentionForms.h"
#include "passes/Lower/StreamingBuilder.h"
#include "passes/Mutation.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OwningOpRef.h"

using namespace mlir;
using namespace heed;
using namespace heed::streaming;
using attn::DimKind;

std::optional<SharedKeys> heed::sharedKeys(attn::AttentionLike op) {
  if (op.numDims(DimKind::Batch) == 0)
    return std::nullopt;
  unsigned dim = op.numDims(DimKind::Batch) - 1;
  // With a mask of its own, each would visit the blocks of all.
  if (!op.getWhere().empty() && !op.getWhere().getArgument(dim).use_empty())
    return std::nullopt;
  SmallVector<AffineMap> maps;
  for (unsigned term = 0; term < op.numTerms(); ++term)
    llvm::append_range(maps, op.maps(term));
  for (unsigned value = 0; value < op.getValues().size(); ++value)
    maps.push_back(op.valueMap(value));
  AffineExpr self = getAffineDimExpr(dim, op->getContext()), quotient;
  for (AffineMap map : maps) {
    if (!map.isFunctionOfDim(op.firstDim(DimKind::Key)))
      continue;
    for (AffineExpr expr : map.getResults()) {
      if (!expr.isFunctionOfDim(dim))
        continue;
      if (quotient && quotient != expr)
        return std::nullopt;
      quotient = expr;
    }
  }
  if (!quotient)
    return SharedKeys();
  auto isNumber = [](AffineExpr expr) {
    return isa<AffineSymbolExpr, AffineConstantExpr>(expr);
  };
  auto division = dyn_cast<AffineBinaryOpExpr>(quotient);
  if (!division || division.getKind() != AffineExprKind::FloorDiv ||
      !isNumber(division.getRHS()))
    return std::nullopt;
  if (division.getLHS() == self)
    return SharedKeys{getAffineConstantExpr(1, op->getContext()),
                      division.getRHS()};
  auto product = dyn_cast<AffineBinaryOpExpr>(division.getLHS());
  if (!product || product.getKind() != AffineExprKind::Mul ||
      product.getLHS() != self || !isNumber(product.getRHS()))
    return std::nullopt;
  return SharedKeys{product.getRHS(), division.getRHS()};
}

/// How many members groups have, where all sizes that say it are known.
KnownExtent Streaming::knownMembers() {
  OwningOpRef<ModuleOp> constants = ModuleOp::create(loc);
  OpBuilder numbers(constants->getBodyRegion());
  bool known = true;
  std::optional<KeyGroups> groups =
      groupsOf(numbers, loc, op, [&](Value number) -> Value {
        APInt constant;
        known &= matchPattern(number, m_ConstantInt(&constant));
        return arith::ConstantIndexOp::create(
            numbers, loc, known ? constant.getSExtValue() : 1);
      });
  APInt members;
  if (!known || !groups ||
      !matchPattern(groups->members, m_ConstantInt(&members)))
    return std::nullopt;
  return members.getSExtValue();
}

/// Cuts the innermost batch dim. How is told by the caller: of what depends on
/// a condition or a remainder Halide knows no place.
void Streaming::cutGroups() {
  if (!sharedKeys(op))
    return;
  Ops o{b, loc};
  auto input = [&](StringRef name) -> Value {
    return halide::ParamOp::create(b, loc, b.getI32Type(), name);
  };
  // Said, the memory of a block is of a known size.
  plan.members = o.mini(o.atLeastOne(input(kMembersInput)), o.i(mostMembers));
  if ((plan.fixedMembers = knownMembers()))
    plan.members = o.i(*plan.fixedMembers);
  plan.shared = o.atLeastOne(input(kNeighboursInput));
}

/// Whether all rows of keys and of values have a known number of vectors, so
/// few that a turn of a loop reads one from end to end.
bool Streaming::hasShortRows() {
  constexpr int64_t mostVectors = 16;
  auto isShort = [&](ArrayRef<unsigned> dims) {
    return dims.size() == 1 && size(dims[0]).fixed &&
           *size(dims[0]).fixed <= mostVectors * plan.lanes;
  };
  for (unsigned term = 0; term < op.numTerms(); ++term)
    if (!isShort(op.contractDims(term)))
      return false;
  return op.numDims(DimKind::Value) == 1 &&
         isShort(op.firstDim(DimKind::Value));
}

/// The blocks of a part that are full, or the others, which evaluate the mask.
void Streaming::rowStage(const KeySegment &segment, bool partial, Value blocks,
                         Condition visited) {
  StreamingStage &stage =
      stageOf(segment, partial, partial ? plan.piece : plan.block);
  stage.valueSteps = stage.block / (stage.block % 8 ? 4 : 8);
  // Where nothing is read at the keys' own numbers, their order is free.
  auto byNumber = [&](Region &region) {
    return !region.empty() &&
           !region.getArgument(op.firstDim(DimKind::Key)).use_empty();
  };
  bool products = true;
  for (unsigned term = 0; term < op.numTerms(); ++term)
    products &= !op.contractDims(term).empty();
  if (!partial && !plan.wholeRows && products && !byNumber(op.getScore()) &&
      !byNumber(op.getWeight()))
    stage.places = 4;
  Ops o{b, loc};
  stage.groups = o.i(stage.block / plan.lanes);
  if (partial && stage.block > plan.lanes) {
    // No more than there are; without a mask only the last block is partial.
    Value most = plan.masked ? segment.count.value
                             : o.mod(segment.count.value, stage.block);
    stage.groups = o.mini(o.ceilDiv(most, o.i(plan.lanes)), stage.groups);
  }
  for (unsigned term = 0; term < op.numTerms(); ++term)
    rowTerm(stage, term);
  rowScores(stage);
  rowWeights(stage);
  rowProducts(stage);
  stage.update = update(
      plan.part, {"rk"}, {blocks},
      [&](Ops &o, ArrayRef<Value> args, ArrayRef<Value> loops) {
        TilePlace at = TilePlace::ofPart(args).inBlock(loops[0]);
        return merged(
            o, o.read(plan.part.getResult(), args),
            {o.read1(stage.products.getResult(), at.inGroups())},
            shifted ? o.read1(stage.rounded.getResult(), at.row()) : Value(),
            summed ? o.read1(stage.sum.getResult(), at.row()) : Value());
      });
  where(stage.update, visited);
}

/// A part is so many blocks that there are a few tasks a core.
Streaming::RowParts Streaming::cutParts(ArrayRef<Extent> batch) {
  Ops outside{b, loc};
  Value all = queries;
  for (const Extent &extent : batch)
    all = outside.muli(all, extent.value);
  Value tasks = outside.i(8 * plan.target.cores);
  // Neighbours that read the same rows are one task, and its part of these rows
  // lies in half of L2.
  Value blocks;
  for (const KeySegment &segment : segments) {
    Value more = outside.ceilDiv(segment.count.value, outside.i(plan.block));
    blocks = blocks ? outside.addi(blocks, more) : more;
  }
  Value most = blocks;
  if (plan.shared) {
    tasks = outside.muli(tasks, plan.shared);
    Value row = outside.i(0);
    for (const Extent &extent : plan.keyRow)
      row = outside.addi(row, extent.value);
    Value held = arith::FloorDivSIOp::create(
        b, loc, outside.i(plan.target.l2 / 4 / 2 / plan.block),
        outside.atLeastOne(row));
    most = outside.select(outside.less(outside.i(1), plan.shared),
                          outside.atLeastOne(held), blocks);
  }
  Value wanted = outside.ceilDiv(tasks, outside.atLeastOne(all));
  Value length =
      outside.atLeastOne(outside.mini(outside.ceilDiv(blocks, wanted), most));
  Value count = outside.atLeastOne(outside.ceilDiv(blocks, length));
  return {blocks, length, count};
}

/// The blocks of a part: the full ones, and the others.
void Streaming::rowStages(const RowParts &parts) {
  Ops outside{b, loc};
  Value before;
  for (const KeySegment &segment : segments) {
    Value blocks = outside.ceilDiv(segment.count.value, outside.i(plan.block));
    segmentStages(parts, segment, before, blocks);
    before = before ? outside.addi(before, blocks) : blocks;
  }
}

/// Whether a block, which may be a piece of one, is of the part: a loop over
/// all blocks is trimmed to those by Halide, which knows no bounds of a block's
/// number that is a sum.
static Value blockIsOfPart(Ops &o, const TilePlace &at, Value blocksOfPart,
                           Value before, int64_t pieces) {
  auto count = [&](Value blocks) {
    return pieces == 1 ? blocks : o.muli(blocks, o.i(pieces));
  };
  Value kb = before ? o.addi(count(before), at.block) : at.block,
        length = count(blocksOfPart), first = o.muli(at.part, length);
  if (mutated("streaming.parts-overlap"))
    return o.both(o.atMost(first, kb), o.atMost(kb, o.addi(first, length)));
  return o.both(o.atMost(first, kb), o.less(kb, o.addi(first, length)));
}

/// Those of one segment of the keys, \p blocks behind the \p before of others.
void Streaming::segmentStages(const RowParts &parts, const KeySegment &segment,
                              Value before, Value blocks) {
  auto ofPart = [&](Ops &o, const TilePlace &at, int64_t pieces) {
    return blockIsOfPart(o, at, parts.length, before, pieces);
  };
  // Tables of a mask tell full blocks of another size.
  bool tables = mask && bounds->needsTables();
  bool anyFull = !tables && this->anyFull() && segment.holds(plan.block);
  const Extent &count = segment.count;
  const int64_t pieces = plan.block / plan.piece;
  bool whole = !plan.masked && count.fixed && *count.fixed % plan.block == 0;
  MaskedKeys masked;
  if (segments.size() > 1)
    masked = {segment.number, segment.first,
              Ops{b, loc}.floorDiv(segment.count.value, plan.block)};
  if (anyFull)
    rowStage(segment, /*partial=*/false, blocks,
             [&](Ops &o, ArrayRef<Value> args, ArrayRef<Value> loops) {
               TilePlace at = TilePlace::ofPart(args).inBlock(loops[0]);
               Value inside = ofPart(o, at, 1);
               if (!mask || masked.wholeBlocks)
                 inside = o.both(
                     inside,
                     o.less(at.block, o.floorDiv(count.value, plan.block)));
               if (!mask)
                 return inside;
               SmallVector<Value> batch(llvm::reverse(batchAt(o, at.batch)));
               return o.both(inside, mask->visitsFull(o.b, at.block, at.tile,
                                                      batch, masked));
             });
  if (!whole || !anyFull)
    rowStage(
        segment, /*partial=*/true,
        pieces == 1
            ? blocks
            : Ops{b, loc}.ceilDiv(count.value, Ops{b, loc}.i(plan.piece)),
        [&](Ops &o, ArrayRef<Value> args, ArrayRef<Value> loops) {
          TilePlace at = TilePlace::ofPart(args).inBlock(loops[0]);
          Value inside = ofPart(o, at, pieces);
          if (!mask)
            return anyFull
                       ? o.both(inside,
                                o.atMost(o.floorDiv(count.value, plan.block),
                                         at.block))
                       : inside;
          SmallVector<Value> batch(llvm::reverse(batchAt(o, at.batch)));
          Value tile = o.floorDiv(at.tile, tiling.tile);
          return o.both(
              inside,
              anyFull ? mask->visitsPartial(o.b, at.block, tile, batch, masked)
                      : mask->visits(o.b, at.block, tile, batch, masked));
        });
}

namespace {

/// Coordinates of `part`. With members of groups the first behind the tile is
/// the member.
enum PartCoordinate : unsigned {
  LaneOfPart,
  ColumnOfPart,
  NumberOfPart,
  TileOfPart,
  BatchOfPart,
};

} // namespace

/// What tasks write. A var of tasks is a number of two digits, a remainder and
/// a quotient: Halide has to see that each stands for one point, and of a
/// remainder of a quotient it does not (nor of the remainder that a fused loop
/// makes). The innermost batch dim comes first, as its elements may share keys.
SmallVector<Streaming::Number> Streaming::cutTasks(ArrayRef<Extent> batch,
                                                   Value parts) {
  Ops outside{b, loc};
  SmallVector<Digit> digits{{NumberOfPart, parts}, {TileOfPart, queries}};
  const unsigned firstBatch = BatchOfPart + (plan.members != nullptr);
  for (auto [k, extent] : llvm::enumerate(llvm::reverse(batch)))
    digits.insert(k == 0 ? digits.begin() : digits.end(),
                  {unsigned(firstBatch + k), extent.value});
  SmallVector<Number> tasks;
  for (auto [k, digit] : llvm::enumerate(digits)) {
    if (k % 2 == 0) {
      tasks.emplace_back();
      plan.tasks.emplace_back(heed::format("task_{}", tasks.size()),
                              digit.radix);
    } else {
      Value &count = plan.tasks.back().second;
      count = outside.muli(count, digit.radix);
    }
    // Divided by, even where there are no tasks.
    tasks.back().push_back({digit.coordinate, outside.atLeastOne(digit.radix)});
  }
  return tasks;
}

/// The parts as the tasks write them: column, member and the numbers of tasks.
void Streaming::writeTasks(ArrayRef<Number> tasks) {
  SmallVector<StringRef> vars{"column"};
  if (plan.members)
    vars.push_back("member");
  for (const auto &task : plan.tasks)
    vars.push_back(task.first);
  plan.parts = halide::FuncOp::create(
      b, loc, "parts", vars,
      SmallVector<Type>(plan.group + shifted + summed, b.getF32Type()),
      [&](OpBuilder &inner, Location where, ValueRange args) {
        Ops o{inner, where};
        SmallVector<Value> at(plan.part.getVars().size());
        at[LaneOfPart] = o.i(0);
        at[ColumnOfPart] = args[0];
        if (plan.members)
          at[BatchOfPart] = args[1];
        for (auto [number, left] :
             llvm::zip(tasks, args.take_back(tasks.size()))) {
          Value rest = left;
          for (const Digit &digit : ArrayRef(number).drop_back()) {
            Value next =
                arith::FloorDivSIOp::create(inner, where, rest, digit.radix);
            at[digit.coordinate] = arith::SubIOp::create(
                inner, where, rest, o.muli(next, digit.radix));
            rest = next;
          }
          at[number.back().coordinate] = rest;
        }
        return o.read(plan.part.getResult(), at);
      });
}

/// The state, of the parts that the tasks wrote.
void Streaming::mergeParts(ArrayRef<Number> tasks, Value parts) {
  auto merge = [&](Ops &o, ArrayRef<Value> args, ArrayRef<Value> loops) {
    TilePlace state = TilePlace::ofState(args);
    Value column = state.group;
    SmallVector<Value> place = state.with({state.lane, column, loops[0]});
    SmallVector<Value> index{column};
    if (plan.members) {
      Value inner = place[BatchOfPart];
      place[BatchOfPart] =
          arith::FloorDivSIOp::create(o.b, o.loc, inner, plan.members);
      // A remainder, whose range Halide knows.
      Value member = halide::ModOp::create(o.b, o.loc, inner, plan.members);
      index.push_back(member);
      place.insert(place.begin() + BatchOfPart, member);
    }
    for (const Number &number : tasks) {
      Value task;
      for (const Digit &digit : llvm::reverse(number))
        task = task ? o.addi(o.muli(task, digit.radix), place[digit.coordinate])
                    : place[digit.coordinate];
      index.push_back(task);
    }
    SmallVector<Value> part = o.read(plan.parts.getResult(), index);
    return merged(o, o.read(plan.state.getResult(), args), {part[0]},
                  shifted ? part[topElement()] : Value(),
                  summed ? part[sumElement()] : Value());
  };
  update(plan.state, {"rp"}, {parts}, merge);
}

/// Parts of the keys, and their merge.
LogicalResult Streaming::rows(SmallVector<Extent> batch) {
  // Funcs of a part of the keys have a var for the members of a group.
  if (plan.members) {
    ++batchDims;
    Extent &inner = batch.back();
    inner = {arith::FloorDivSIOp::create(b, loc, inner.value, plan.members),
             std::nullopt};
  }
  RowParts parts = cutParts(batch);
  plan.wholeRows = hasShortRows();
  plan.part = func("part", {"ii", "dt", "kp"}, plan.group + shifted + summed,
                   [&](Ops &o, ArrayRef<Value>) { return initialState(o); });
  rowStages(parts);
  segment = nullptr;
  SmallVector<Number> tasks = cutTasks(batch, parts.count);
  writeTasks(tasks);
  // What follows is of single elements again.
  batchDims = op.numDims(DimKind::Batch);
  beginState();
  mergeParts(tasks, parts.count);
  return failure(failedRead);
}
