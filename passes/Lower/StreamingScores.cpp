//===- StreamingScores.cpp - scores of streaming attention
//-----------------===//
#include "passes/Lower/StreamingBuilder.h"
#include "passes/Mutation.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;
using namespace heed::streaming;
using attn::DimKind;

/// The value c if the score is `t0 * c` or `t0 / c` of one product term, c a
/// constant or from outside the region: it is folded into the queries once per
/// tile. An empty optional otherwise.
std::optional<Value> Streaming::scoreFactor() {
  Block &body = op.getScore().front();
  if (op.numTerms() != 1 || !op.pair(0).empty())
    return std::nullopt;
  Operation *last = body.getTerminator()->getOperand(0).getDefiningOp();
  Value term = body.getArguments().back();
  if (!last || last->getBlock() != &body ||
      !isa<arith::MulFOp, arith::DivFOp>(last))
    return std::nullopt;
  Value c;
  if (last->getOperand(0) == term)
    c = last->getOperand(1);
  else if (last->getOperand(1) == term && isa<arith::MulFOp>(last))
    c = last->getOperand(0);
  if (!c || c == term)
    return std::nullopt;
  Ops o{b, loc};
  bool multiplied = isa<arith::MulFOp>(last);
  FloatAttr constant;
  if (matchPattern(c, m_Constant(&constant))) {
    double value = constant.getValueAsDouble();
    return o.f(multiplied ? value : 1 / value);
  }
  if (c.getParentRegion() == &op.getScore())
    return std::nullopt;
  Value outside = scalars.lookup(c);
  return multiplied ? outside : o.div(o.f(1), outside);
}

/// The operand of an earlier term that reads the same numbers as operand
/// \p number of \p term, as where a query meets a key and its offset: its place
/// among the operands of all terms.
std::optional<unsigned> Streaming::sameOperand(unsigned term, unsigned number) {
  // Over the term's contracted dims, in their order.
  auto overSlots = [&](unsigned ofTerm, unsigned operand) {
    SmallVector<AffineExpr> dims;
    for (unsigned dim = 0; dim < numDims; ++dim)
      dims.push_back(getAffineDimExpr(dim, op.getContext()));
    SmallVector<unsigned> contract = op.contractDims(ofTerm);
    for (auto [slot, c] : llvm::enumerate(contract))
      dims[c] = getAffineDimExpr(numDims + slot, op.getContext());
    AffineMap map = op.maps(ofTerm)[operand];
    return map.replaceDimsAndSymbols(dims, {}, numDims + contract.size(),
                                     map.getNumSymbols());
  };
  auto sizes = [&](unsigned ofTerm) {
    return llvm::map_to_vector(op.contractDims(ofTerm), [&](unsigned c) {
      return Value(op.getSizes()[c]);
    });
  };
  unsigned position = 0;
  for (unsigned before = 0; before < term; ++before)
    for (unsigned k = 0; k < op.maps(before).size(); ++k, ++position)
      if (op.term(before)[k] == op.term(term)[number] &&
          overSlots(before, k) == overSlots(term, number) &&
          sizes(before) == sizes(term))
        return position;
  return std::nullopt;
}

bool Streaming::isDense(AffineMap map, ArrayRef<unsigned> contract) {
  if (onGPU() || contract.size() != 1 ||
      map.getResults().back() !=
          getAffineDimExpr(contract.front(), op.getContext()))
    return false;
  std::optional<int64_t> extent = size(contract.front()).fixed;
  return !extent || *extent >= plan.lanes;
}

bool Streaming::isRagged(ArrayRef<unsigned> contract) {
  std::optional<int64_t> extent = size(contract.back()).fixed;
  return !extent || *extent % plan.lanes;
}

/// Sizes of \p contract; the last one of whole vectors where it is \p padded.
SmallVector<Extent> Streaming::sumExtents(ArrayRef<unsigned> contract,
                                          bool padded) {
  SmallVector<Extent> extents;
  for (unsigned c : contract)
    extents.push_back(size(c));
  if (!padded)
    return extents;
  Extent &last = extents.back();
  last.value = Ops{b, loc}.alignTo(last, plan.lanes);
  if (last.fixed)
    last.fixed = llvm::alignTo(*last.fixed, plan.lanes);
  return extents;
}

/// The func of an operand, transposed: lanes are queries. \p position is its
/// place among the operands of all terms.
void Streaming::stageQuery(unsigned term, unsigned number, unsigned position) {
  SmallVector<unsigned> contract = op.contractDims(term);
  AffineMap map = op.maps(term)[number];
  Value tensor = op.term(term)[number];
  SmallVector<std::string> names{"ii"};
  for (unsigned c : contract)
    names.push_back(heed::format("e{}", c));
  SmallVector<StringRef> own(names.begin(), names.end());
  // The factor of the score is in one operand.
  bool scaled = factor && !plan.scaledTerm;
  bool rows = plan.byRow, dense = isDense(map, contract);
  bool padded = (rows || dense) && !contract.empty() && isRagged(contract);
  auto element = [&](Ops &o, Value lane, ArrayRef<Value> reduction,
                     const TilePlace &tile) {
    TilePlace at = tile.atLane(lane);
    SmallVector<Value> dims = place(o, at.batch, query(o, at), Value());
    for (auto [slot, c] : llvm::enumerate(contract))
      dims[c] = reduction[slot];
    // The last vector of a row may be read beyond it.
    if (padded)
      dims[contract.back()] =
          o.mini(dims[contract.back()], o.last(size(contract.back()).value));
    Value value = operand(o, tensor, map, dims);
    if (scaled)
      value = o.mul(value, domain() == 1 ? *factor
                           : mutated("streaming.forget-scale")
                               ? o.f(domain())
                               : o.mul(*factor, o.f(domain())));
    return value;
  };
  std::string name = heed::format("q{}", position);
  SmallVector<halide::FuncOp> steps;
  halide::FuncOp f;
  if (dense && !rows)
    f = turned(name, own, steps,
               [&](Ops &o, Value row, Value column, const TilePlace &at) {
                 return element(o, row, {column}, at);
               });
  else
    f = func(name, own, 1,
             [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
               return {element(o, at[0], at.slice(1, contract.size()),
                               TilePlace::ofTile(at.drop_front(own.size())))};
             });
  plan.scaledTerm |= scaled;
  plan.queryFuncs.push_back({f, contract, sumExtents(contract, padded), steps});
  staged[position] = f.getResult();
}

/// Operands of terms that vary over queries and not over keys.
void Streaming::stageQueries() {
  unsigned q = op.firstDim(DimKind::Query), k = op.firstDim(DimKind::Key);
  bool identity = llvm::hasSingleElement(op.getScore().front());
  if (identity && op.numTerms() == 1 && op.pair(0).empty())
    factor = Ops{b, loc}.f(1);
  else
    factor = scoreFactor();
  unsigned position = 0;
  for (unsigned term = 0; term < op.numTerms(); ++term) {
    SmallVector<AffineMap> maps = op.maps(term);
    for (unsigned number = 0; number < maps.size(); ++number) {
      AffineMap map = maps[number];
      staged.emplace_back();
      unsigned index = position++;
      if (!map.isFunctionOfDim(q) || map.isFunctionOfDim(k))
        continue;
      if (std::optional<unsigned> same = sameOperand(term, number)) {
        staged[index] = staged[*same];
        continue;
      }
      stageQuery(term, number, index);
    }
  }
  if (!plan.scaledTerm)
    factor.reset();
}

unsigned Streaming::positionOf(unsigned term, unsigned operand) {
  unsigned position = operand;
  for (unsigned before = 0; before < term; ++before)
    position += op.maps(before).size();
  return position;
}

Value Streaming::termOperand(Ops &o, const StreamingStage &stage, unsigned term,
                             unsigned number, const TilePlace &at,
                             ArrayRef<Value> reduction, Value row) {
  unsigned position = positionOf(term, number);
  for (const auto &[shared, keys] : stage.sharedKeys)
    if (shared == position) {
      halide::FuncOp f = keys.func;
      SmallVector<Value> own{at.key};
      own.append(reduction.begin(), reduction.end());
      own.push_back(at.block);
      return o.read1(f.getResult(), at.with(own));
    }
  if (Value transposed = staged[position]) {
    SmallVector<Value> own{at.lane};
    own.append(reduction.begin(), reduction.end());
    return o.read1(transposed, at.with(own));
  }
  SmallVector<Value> dims = place(o, at.batch, query(o, at), key(o, stage, at));
  for (auto [slot, c] : llvm::enumerate(op.contractDims(term)))
    dims[c] = reduction[slot];
  AffineMap map = op.maps(term)[number];
  bool keyed = map.isFunctionOfDim(op.firstDim(DimKind::Key));
  return operand(o, op.term(term)[number], map,
                 keyed ? ofGroup(o, dims, at.batch) : dims, row);
}

SmallVector<Value> Streaming::termOperands(Ops &o, const StreamingStage &stage,
                                           unsigned term, const TilePlace &at,
                                           ArrayRef<Value> reduction,
                                           Value row) {
  SmallVector<Value> values;
  for (unsigned number = 0; number < op.maps(term).size(); ++number)
    values.push_back(termOperand(o, stage, term, number, at, reduction, row));
  return values;
}

Value Streaming::termValue(Ops &o, unsigned term, ArrayRef<Value> operands) {
  if (op.pair(term).empty())
    return o.tree(SmallVector<Value>(operands),
                  [&](Value x, Value y) -> Value { return o.mul(x, y); });
  IRMapping map = scalars;
  for (auto [arg, value] : llvm::zip(op.pair(term).getArguments(), operands))
    map.map(arg, value);
  failedRead |=
      failed(translateBody(o.b, op.pair(term).front(), map, {}, tensors));
  return map.lookupOrDefault(
      op.pair(term).front().getTerminator()->getOperand(0));
}

Value Streaming::termSum(Ops &o, unsigned term, Value state,
                         ArrayRef<Value> operands) {
  if (operands.size() == 2 && op.pair(term).empty())
    return o.fma(state, operands[0], operands[1]);
  return o.sum(state, termValue(o, term, operands));
}

/// The factor in the queries leaves an empty sum alone: 1 / sqrt(E) times 0 is
/// NaN where E is 0.
Value Streaming::emptySum(Ops &o, ArrayRef<unsigned> contract) {
  FloatAttr constant;
  bool finite = factor && matchPattern(*factor, m_Constant(&constant)) &&
                constant.getValue().isFinite();
  bool mayBeEmpty =
      factor && !finite && llvm::any_of(contract, [&](unsigned c) {
        return !size(c).fixed || *size(c).fixed == 0;
      });
  return mayBeEmpty ? o.mul(o.zero(), *factor) : o.zero();
}

bool Streaming::readsPairs(ArrayRef<AffineMap> maps) {
  unsigned query = op.firstDim(DimKind::Query), key = op.firstDim(DimKind::Key);
  return llvm::any_of(maps, [&](AffineMap map) {
    return map.isFunctionOfDim(query) && map.isFunctionOfDim(key);
  });
}

StreamingTerm Streaming::termOf(unsigned term) {
  StreamingTerm result;
  for (unsigned dim : op.contractDims(term))
    result.loops.push_back(heed::format("r{}", dim));
  result.isProduct = op.pair(term).empty() && !readsPairs(op.maps(term));
  return result;
}

/// T(ii, jj, kb, ...): one score term of a tile and a block.
void Streaming::stageTerm(StreamingStage &stage, unsigned term) {
  if (std::optional<unsigned> table = tableOf(term))
    return op.contractDims(term).empty() ? stageTableNumbers(stage, term)
                                         : stageTableTerm(stage, term, *table);
  if (std::optional<unsigned> table = tableOfKeys(term))
    return stageKeyTable(stage, term, *table);
  SmallVector<unsigned> contract = op.contractDims(term);
  if (onGPU() && !contract.empty())
    shareKeys(stage, term);
  std::string name = heed::format("{}{}", stage.name("t"), term);
  auto f = func(
      name, {"ii", "jj", "kb"}, 1,
      [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
        if (!contract.empty())
          return {emptySum(o, contract)};
        return {termValue(
            o, term, termOperands(o, stage, term, TilePlace::ofPair(at), {}))};
      });
  StreamingTerm &own = stage.terms.emplace_back(termOf(term));
  own.func = f;
  if (contract.empty())
    return;
  SmallVector<Value> extents;
  for (unsigned c : contract) {
    extents.push_back(size(c).value);
    own.contract.push_back(size(c));
  }
  SmallVector<StringRef> rvars(own.loops.begin(), own.loops.end());
  update(f, rvars, extents,
         [&](Ops &o, ArrayRef<Value> at,
             ArrayRef<Value> loops) -> SmallVector<Value> {
           return {termSum(
               o, term, o.read1(f.getResult(), at),
               termOperands(o, stage, term, TilePlace::ofPair(at), loops))};
         });
}

Value Streaming::scoreAt(Ops &o, StreamingStage &stage, const TilePlace &at) {
  SmallVector<Value> terms;
  for (auto [number, term] : llvm::enumerate(stage.terms))
    terms.push_back(term.offsets ? tableTerm(o, stage, number, at)
                                 : o.read1(term.func.getResult(), at.pair()));
  Value s = terms.front();
  if (!factor) {
    // In full blocks, too, a key is below the number of keys: said, arithmetic
    // with it is i32.
    s = region(o, op.getScore(), at.batch, query(o, at),
               o.mini(key(o, stage, at), o.last(keys)), terms);
    if (domain() != 1)
      s = o.mul(s, o.f(domain()));
  }
  if (!shifted)
    return s;
  Value seen = live(o, stage, at);
  // A thread with no key that is there would skip its products: to ask each
  // time costs more, and what they were before stays in registers.
  if (seen && onGPU())
    seen = o.hidden(seen, at.lane);
  if (!seen || !marked)
    return o.select(seen, s, o.f(lowest));
  // A select of floats is one of finite ones to LLVM.
  constexpr int64_t minusInfinity = 0xFF800000 - (int64_t(1) << 32);
  return o.real(o.select(seen, o.bits(s), o.i(minusInfinity)));
}

/// Whether the score chooses by its numbers or by i and j.
bool Streaming::scoreChooses() {
  return op.getScore()
      .walk([](Operation *inner) {
        return isa<arith::CmpIOp, arith::SelectOp, scf::IfOp>(inner)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The score of a key in a group.
Value Streaming::scoreInGroup(Ops &o, StreamingStage &stage,
                              const TilePlace &at) {
  return scoreAt(
      o, stage,
      at.atKey(o.addi(o.muli(at.group, o.i(plan.keyGroup)), at.inGroup)));
}
