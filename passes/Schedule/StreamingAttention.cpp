//===- StreamingAttention.cpp - attention without an N x M buffer
//---------------------------===//
// The algorithm; StreamingPlan.cpp has its tiles and its schedule. For a tile
// of TQ queries (vector lanes) and a block of B keys:
//
//   Q  [e][TQ]       queries, transposed once per tile           scores are in
//   the log2 domain S  [B/8][TQ]     tuple of 8 scores and their maximum P
//   [B][TQ]       2^(S - m), m the block'"'"'s maximum rounded to an integer st
//   [F/8][TQ]     tuple (8 accumulators, m, l), merged over the blocks: a
//   rescale is a multiplication by 2^integer
//
// Full blocks and partial ones are two updates of st, with copies of S and P of
// their own; only the second evaluates the mask. There a weight below zero
// marks an absent key, whose product is selected away: NaN in K or V does not
// show.
#include "passes/Schedule/StreamingAttention.h"
#include "passes/Schedule/StreamingPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;
using attn::DimKind;

namespace {

constexpr double log2e = 1.44269504088896340736;
// The maximum before any key: every finite score is at least this.
constexpr double lowest = -3.4028234663852886e38;
constexpr auto relaxed =
    arith::FastMathFlags::contract | arith::FastMathFlags::reassoc;

/// Scalar expressions at one place.
struct Ops {
  OpBuilder &b;
  Location loc;

  Value i(int64_t value) { return constantI32(b, loc, value); }
  Value f(double value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  Value addi(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value muli(Value x, Value y) { return arith::MulIOp::create(b, loc, x, y); }
  Value mini(Value x, Value y) { return arith::MinSIOp::create(b, loc, x, y); }
  Value clamp(Value x, Value high) {
    return mini(arith::MaxSIOp::create(b, loc, x, i(0)), high);
  }
  Value last(Value extent) { return addi(extent, i(-1)); }
  Value floorDiv(Value x, int64_t y) {
    return arith::FloorDivSIOp::create(b, loc, x, i(y));
  }
  Value mod(Value x, int64_t y) {
    return halide::ModOp::create(b, loc, x, i(y));
  }
  Value less(Value x, Value y) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
  }
  Value atMost(Value x, Value y) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, x, y);
  }
  Value both(Value x, Value y) {
    return !x ? y : !y ? x : arith::AndIOp::create(b, loc, x, y).getResult();
  }
  Value negate(Value x) {
    return arith::XOrIOp::create(
        b, loc, x, arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
  }
  Value select(Value c, Value x, Value y) {
    return c ? arith::SelectOp::create(b, loc, c, x, y).getResult() : x;
  }
  // Strict: in this order, NaN and infinities kept.
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
  Value greater(Value x, Value y) {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, y);
  }
  /// x > y ? x : y, one instruction; y if either is NaN.
  Value larger(Value x, Value y) {
    return arith::SelectOp::create(b, loc, greater(x, y), x, y);
  }
  /// x + y * z as one operation where the machine has it.
  Value fma(Value x, Value y, Value z) {
    return arith::AddFOp::create(
        b, loc, x, arith::MulFOp::create(b, loc, y, z, relaxed), relaxed);
  }
  Value sum(Value x, Value y) {
    return arith::AddFOp::create(b, loc, x, y, relaxed);
  }
  Value bits(Value x) {
    return arith::BitcastOp::create(b, loc, b.getI32Type(), x);
  }
  Value real(Value x) {
    return arith::BitcastOp::create(b, loc, b.getF32Type(), x);
  }
  Value shl(Value x, int64_t n) {
    return arith::ShLIOp::create(b, loc, x, i(n));
  }
  SmallVector<Value> read(Value func, ArrayRef<Value> at) {
    auto read =
        halide::ReadOp::create(b, loc, halide::getElementTypes(func), func, at);
    return SmallVector<Value>(read.getResults());
  }
  Value read1(Value func, ArrayRef<Value> at) { return read(func, at).front(); }
  Value tree(SmallVector<Value> values,
             llvm::function_ref<Value(Value, Value)> combine) {
    while (values.size() > 1) {
      SmallVector<Value> next;
      for (size_t k = 0; k + 1 < values.size(); k += 2)
        next.push_back(combine(values[k], values[k + 1]));
      if (values.size() % 2)
        next.push_back(values.back());
      values = next;
    }
    return values.front();
  }

  /// 2^t for t <= 0.5 and for NaN: t is split into an integer n and f in [-1/2,
  /// 1/2] by adding 1.5 * 2^23, whose low bits then hold n (and the
  /// exponent'"'"'s bias, 127); 2^f is a polynomial (Chebyshev, 3.5e-6
  /// relative). Below -120 the result is exactly 0: n becomes -127, whose power
  /// has the bits of 0.0, and no denormal number arises.
  Value exp2(Value t) {
    Value tiny =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, t, f(-120));
    t = arith::SelectOp::create(b, loc, tiny, f(-127), t);
    Value magic = f(12582912.0 + 127.0);
    Value z = add(t, magic);
    Value fraction = sub(t, sub(z, magic));
    Value p = f(0.00966636837);
    for (double c : {0.0559219755, 0.240223497, 0.693121016, 1.0})
      p = fma(f(c), p, fraction);
    return mul(p, real(shl(bits(z), 23)));
  }
  /// 2^y for an integer y <= 0 (exactly 0 below -126); any value if y is NaN.
  Value power(Value y) {
    Value n =
        arith::FPToSIOp::create(b, loc, b.getI32Type(), larger(y, f(-127)));
    return real(shl(addi(n, i(127)), 23));
  }
};

class Streaming {
public:
  Streaming(OpBuilder &b, attn::AttentionOp op, const IRMapping &scalars,
            TensorReads &tensors, const halide::Target &target,
            const KeyRangesFn &ranges)
      : b(b), op(op), loc(op.getLoc()), scalars(scalars), tensors(tensors),
        ranges(ranges), plan(op, target) {}

  FailureOr<halide::FuncOp> run();

private:
  using Body = llvm::function_ref<SmallVector<Value>(Ops &, ArrayRef<Value>)>;
  /// A func over `own` vars and then the tile and the batch; \p body gets all
  /// of them.
  halide::FuncOp func(StringRef name, ArrayRef<StringRef> own,
                      unsigned elements, Body body);
  halide::UpdateOp update(halide::FuncOp func, ArrayRef<StringRef> rvars,
                          ArrayRef<Value> extents, Body body);

  Extent size(unsigned dim);
  Value query(Ops &o, Value tile, Value lane) {
    return o.mini(o.addi(o.muli(tile, o.i(plan.tile)), lane), o.last(queries));
  }
  /// Loop dims at a place: batch, query and key; the others are filled in by
  /// the caller.
  SmallVector<Value> place(ArrayRef<Value> batch, Value i, Value j);
  Value operand(Ops &o, Value tensor, AffineMap map, ArrayRef<Value> dims);
  Value region(Ops &o, Region &region, ArrayRef<Value> batch, Value i, Value j,
               ArrayRef<Value> more);

  void stageQueries();
  void stageTerm(StreamingStage &stage, unsigned term,
                 llvm::function_ref<Value(Ops &, Value, Value)> key);
  LogicalResult stage(bool partial);
  halide::FuncOp finish();
  std::optional<Value> scoreFactor();

  OpBuilder &b;
  attn::AttentionOp op;
  Location loc;
  const IRMapping &scalars;
  TensorReads &tensors;
  const KeyRangesFn &ranges;
  StreamingPlan plan;

  unsigned batchDims = 0, numDims = 0;
  Value queries, keys;
  SmallVector<Value> staged; ///< per term operand: its transposed func, or null
  std::optional<Value>
      factor; ///< the whole score region, if it is a product with this
  bool failedRead = false;
};

halide::FuncOp Streaming::func(StringRef name, ArrayRef<StringRef> own,
                               unsigned elements, Body body) {
  SmallVector<std::string> names(own.begin(), own.end());
  names.push_back("ib");
  for (unsigned k = batchDims; k-- > 0;)
    names.push_back("b" + std::to_string(k));
  SmallVector<StringRef> vars(names.begin(), names.end());
  SmallVector<Type> types(elements, b.getF32Type());
  return halide::FuncOp::create(
      b, loc, name, vars, types,
      [&](OpBuilder &inner, Location where, ValueRange args) {
        Ops o{inner, where};
        return body(o, SmallVector<Value>(args));
      });
}

halide::UpdateOp Streaming::update(halide::FuncOp func,
                                   ArrayRef<StringRef> rvars,
                                   ArrayRef<Value> extents, Body body) {
  SmallVector<Value> bounds;
  for (Value extent : extents) {
    bounds.push_back(constantI32(b, loc, 0));
    bounds.push_back(extent);
  }
  auto update =
      halide::UpdateOp::create(b, loc, func.getResult(), rvars, bounds);
  update.fill(b, update.getSet(),
              [&](OpBuilder &inner, Location where, ValueRange args) {
                Ops o{inner, where};
                return body(o, SmallVector<Value>(args));
              });
  return update;
}

Extent Streaming::size(unsigned dim) {
  Extent extent{scalars.lookup(op.getSizes()[dim]), std::nullopt};
  APInt constant;
  if (matchPattern(op.getSizes()[dim], m_ConstantInt(&constant)))
    extent.fixed = constant.getSExtValue();
  return extent;
}

SmallVector<Value> Streaming::place(ArrayRef<Value> batch, Value i, Value j) {
  SmallVector<Value> dims(numDims);
  // Vars stand innermost first.
  for (unsigned k = 0; k < batchDims; ++k)
    dims[k] = batch[batchDims - 1 - k];
  dims[op.firstDim(DimKind::Query)] = i;
  dims[op.firstDim(DimKind::Key)] = j;
  return dims;
}

Value Streaming::operand(Ops &o, Value tensor, AffineMap map,
                         ArrayRef<Value> dims) {
  SmallVector<Value> symbols, at;
  for (Value symbol : op.getSymbols())
    symbols.push_back(scalars.lookup(symbol));
  // Dims that the map does not use may have no value here.
  SmallVector<Value> known(dims);
  for (Value &dim : known)
    if (!dim)
      dim = o.i(0);
  for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
    Value c = expandAffine(o.b, loc, expr, known, symbols);
    if (!isa<AffineDimExpr>(expr)) {
      FailureOr<Extent> extent = tensors.extent(o.b, tensor, axis);
      failedRead |= failed(extent);
      if (succeeded(extent))
        c = o.clamp(c, o.last(extent->value));
    }
    at.push_back(c);
  }
  FailureOr<Value> value = tensors.read(o.b, loc, tensor, at);
  failedRead |= failed(value);
  if (failed(value))
    return o.f(0);
  return value->getType().isF32()
             ? *value
             : arith::ExtFOp::create(o.b, loc, o.b.getF32Type(), *value)
                   .getResult();
}

Value Streaming::region(Ops &o, Region &region, ArrayRef<Value> batch, Value i,
                        Value j, ArrayRef<Value> more) {
  IRMapping map = scalars;
  SmallVector<Value> arguments(llvm::reverse(batch));
  arguments.push_back(i);
  arguments.push_back(j);
  SmallVector<Value> loops = arguments;
  arguments.append(more.begin(), more.end());
  for (auto [arg, value] : llvm::zip(region.getArguments(), arguments))
    map.map(arg, value);
  if (failed(translateBody(o.b, region.front(), map, loops, tensors))) {
    failedRead = true;
    return o.f(0);
  }
  return map.lookup(region.front().getTerminator()->getOperand(0));
}

/// The value c if the score is `t0 * c` or `t0 / c` of one product term, c from
/// outside the region: it is folded into the queries once per tile. An empty
/// optional otherwise.
std::optional<Value> Streaming::scoreFactor() {
  Block &body = op.getScore().front();
  if (op.numTerms() != 1 || !op.pair(0).empty() ||
      body.getOperations().size() != 2)
    return std::nullopt;
  Operation &first = body.front();
  Value term = body.getArguments().back();
  if (!isa<arith::MulFOp, arith::DivFOp>(first) ||
      body.getTerminator()->getOperand(0) != first.getResult(0))
    return std::nullopt;
  Value c = first.getOperand(0) == term ? first.getOperand(1)
            : isa<arith::MulFOp>(first) ? first.getOperand(0)
                                        : Value();
  if (!c || c == term || c.getParentRegion() == &op.getScore())
    return std::nullopt;
  Ops o{b, loc};
  Value outside = scalars.lookup(c);
  return isa<arith::MulFOp>(first) ? outside : o.div(o.f(1), outside);
}

/// Operands of terms that vary over queries and not over keys, transposed:
/// lanes are queries.
void Streaming::stageQueries() {
  unsigned q = op.firstDim(DimKind::Query), k = op.firstDim(DimKind::Key);
  bool identity = llvm::hasSingleElement(op.getScore().front());
  if (identity && op.numTerms() == 1 && op.pair(0).empty())
    factor = Ops{b, loc}.f(1);
  else
    factor = scoreFactor();
  unsigned position = 0;
  for (unsigned term = 0; term < op.numTerms(); ++term) {
    SmallVector<unsigned> contract = op.contractDims(term);
    SmallVector<AffineMap> maps = op.maps(term);
    for (unsigned number = 0; number < maps.size(); ++number) {
      AffineMap map = maps[number];
      Value tensor = op.term(term)[number];
      staged.emplace_back();
      unsigned index = position++;
      if (!map.isFunctionOfDim(q) || map.isFunctionOfDim(k))
        continue;
      SmallVector<std::string> names{"ii"};
      for (unsigned c : contract)
        names.push_back("e" + std::to_string(c));
      SmallVector<StringRef> own(names.begin(), names.end());
      bool scaled = factor && !plan.scaledTerm;
      auto f = func(("q" + Twine(index)).str(), own, 1,
                    [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
                      ArrayRef<Value> rest = at.drop_front(own.size());
                      SmallVector<Value> dims =
                          place(rest.drop_front(),
                                query(o, rest.front(), at[0]), Value());
                      for (auto [slot, c] : llvm::enumerate(contract))
                        dims[c] = at[1 + slot];
                      Value value = operand(o, tensor, map, dims);
                      if (scaled)
                        value = o.mul(value, o.mul(*factor, o.f(log2e)));
                      return {value};
                    });
      plan.scaledTerm |= scaled;
      plan.queryFuncs.push_back({f, contract, {}});
      for (unsigned c : contract)
        plan.queryFuncs.back().extents.push_back(size(c));
      staged[index] = f.getResult();
    }
  }
  if (!plan.scaledTerm)
    factor.reset();
}

/// T(ii, jj, kb, ...): one score term of a tile and a block.
void Streaming::stageTerm(StreamingStage &stage, unsigned term,
                          llvm::function_ref<Value(Ops &, Value, Value)> key) {
  SmallVector<unsigned> contract = op.contractDims(term);
  SmallVector<AffineMap> maps = op.maps(term);
  unsigned first = 0;
  for (unsigned before = 0; before < term; ++before)
    first += op.maps(before).size();
  auto pair = [&](Ops &o, ArrayRef<Value> at, ArrayRef<Value> reduction) {
    Value lane = at[0];
    ArrayRef<Value> rest = at.drop_front(3);
    SmallVector<Value> dims = place(
        rest.drop_front(), query(o, rest.front(), lane), key(o, at[2], at[1]));
    for (auto [slot, c] : llvm::enumerate(contract))
      dims[c] = reduction[slot];
    SmallVector<Value> values;
    for (auto [number, map] : llvm::enumerate(maps)) {
      if (Value transposed = staged[first + number]) {
        SmallVector<Value> coordinates{lane};
        coordinates.append(reduction.begin(), reduction.end());
        coordinates.append(rest.begin(), rest.end());
        values.push_back(o.read1(transposed, coordinates));
      } else {
        values.push_back(operand(o, op.term(term)[number], map, dims));
      }
    }
    return values;
  };
  auto combine = [&](Ops &o, ArrayRef<Value> values,
                     ArrayRef<Value> at) -> Value {
    if (op.pair(term).empty())
      return o.tree(SmallVector<Value>(values),
                    [&](Value x, Value y) -> Value { return o.mul(x, y); });
    IRMapping map = scalars;
    for (auto [arg, value] : llvm::zip(op.pair(term).getArguments(), values))
      map.map(arg, value);
    failedRead |=
        failed(translateBody(o.b, op.pair(term).front(), map, {}, tensors));
    return map.lookupOrDefault(
        op.pair(term).front().getTerminator()->getOperand(0));
  };
  std::string name = (stage.name("t") + Twine(term)).str();
  auto f = func(name, {"ii", "jj", "kb"}, 1,
                [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
                  if (!contract.empty())
                    return {o.f(0)};
                  return {combine(o, pair(o, at, {}), at)};
                });
  stage.terms.push_back({f, contract.size(), {}});
  if (contract.empty())
    return;
  SmallVector<std::string> names;
  SmallVector<Value> extents;
  for (unsigned c : contract) {
    names.push_back("r" + std::to_string(c));
    extents.push_back(size(c).value);
    stage.terms.back().contract.push_back(size(c));
  }
  SmallVector<StringRef> rvars(names.begin(), names.end());
  size_t rank = 4 + batchDims;
  update(f, rvars, extents,
         [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
           ArrayRef<Value> at = args.take_front(rank),
                           reduction = args.drop_front(rank);
           SmallVector<Value> values = pair(o, at, reduction);
           Value state = o.read1(f.getResult(), at);
           if (values.size() == 2 && op.pair(term).empty())
             return {o.fma(state, values[0], values[1])};
           return {o.sum(state, combine(o, values, at))};
         });
}

/// One update of the state and the funcs of its blocks.
LogicalResult Streaming::stage(bool partial) {
  StreamingStage &stage =
      plan.stages.emplace_back(partial, partial ? plan.piece : plan.block);
  int64_t block = stage.block;
  const int64_t group = plan.group;
  bool masked = !op.getWhere().empty();
  auto firstKey = [&](Ops &o, Value kb) {
    Value at = o.muli(kb, o.i(block));
    return partial && !masked
               ? o.addi(o.muli(o.floorDiv(keys, plan.block), o.i(plan.block)),
                        at)
               : at;
  };
  auto key = [&](Ops &o, Value kb, Value jj) {
    Value j = o.addi(firstKey(o, kb), jj);
    return partial ? o.mini(j, o.last(keys)) : j;
  };
  // Whether query `lane` of the tile sees key jj of the block; null where all
  // do.
  auto live = [&](Ops &o, Value lane, Value jj, Value kb,
                  ArrayRef<Value> rest) -> Value {
    if (!partial)
      return Value();
    Value inside = o.less(o.addi(firstKey(o, kb), jj), keys);
    if (!masked)
      return inside;
    Value seen = region(o, op.getWhere(), rest.drop_front(),
                        query(o, rest.front(), lane), key(o, kb, jj), {});
    return o.both(inside, seen);
  };
  for (unsigned term = 0; term < op.numTerms(); ++term)
    stageTerm(stage, term, key);

  // S: a group of scores and their maximum, in the log2 domain.
  stage.scores = func(
      stage.name("s"), {"ii", "jt", "kb"}, group + 1,
      [&](Ops &o, ArrayRef<Value> at) {
        ArrayRef<Value> rest = at.drop_front(3);
        SmallVector<Value> values;
        for (int64_t y = 0; y < group; ++y) {
          Value jj = o.addi(o.muli(at[1], o.i(group)), o.i(y));
          SmallVector<Value> coordinates{at[0], jj, at[2]};
          coordinates.append(rest.begin(), rest.end());
          SmallVector<Value> terms;
          for (StreamingTerm &term : stage.terms)
            terms.push_back(o.read1(term.func.getResult(), coordinates));
          Value s = terms.front();
          if (!factor) {
            s = region(o, op.getScore(), rest.drop_front(),
                       query(o, rest.front(), at[0]), key(o, at[2], jj), terms);
            s = o.mul(s, o.f(log2e));
          }
          values.push_back(
              o.select(live(o, at[0], jj, at[2], rest), s, o.f(lowest)));
        }
        values.push_back(
            o.tree(values, [&](Value x, Value y) { return o.larger(x, y); }));
        return values;
      });
  Value scores = stage.scores.getResult();
  size_t rank = 2 + 1 + batchDims; // ii, kb, ib, batch

  stage.top = func(stage.name("top"), {"ii", "kb"}, 1,
                   [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
                     return {o.f(lowest)};
                   });
  auto inGroup = [&](ArrayRef<Value> at, Value jt) {
    SmallVector<Value> coordinates{at[0], jt};
    coordinates.append(at.begin() + 1, at.end());
    return coordinates;
  };
  update(stage.top, {"rg"}, {constantI32(b, loc, block / group)},
         [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
           ArrayRef<Value> at = args.take_front(rank);
           return {o.larger(o.read1(stage.top.getResult(), at),
                            o.read(scores, inGroup(at, args[rank]))[group])};
         });
  stage.rounded = func(stage.name("m"), {"ii", "kb"}, 1,
                       [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
                         return {math::RoundEvenOp::create(
                             o.b, o.loc, o.read1(stage.top.getResult(), at))};
                       });
  stage.weights =
      func(stage.name("p"), {"ii", "jj", "kb"}, 1,
           [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
             ArrayRef<Value> rest = at.drop_front(3);
             SmallVector<Value> row{at[0]};
             row.append(at.begin() + 2, at.end());
             SmallVector<Value> values =
                 o.read(scores, inGroup(row, o.floorDiv(at[1], group)));
             values.pop_back();
             Value s = halide::MuxOp::create(o.b, o.loc, o.b.getF32Type(),
                                             o.mod(at[1], group), values);
             Value p =
                 o.exp2(o.sub(s, o.read1(stage.rounded.getResult(), row)));
             return {o.select(live(o, at[0], at[1], at[2], rest), p, o.f(-1))};
           });
  Value weights = stage.weights.getResult();
  auto weightAt = [&](Ops &o, ArrayRef<Value> at, Value jj) {
    return o.read1(weights, inGroup(at, jj));
  };
  auto absent = [&](Ops &o, Value p) -> Value {
    return arith::CmpFOp::create(o.b, o.loc, arith::CmpFPredicate::OLT, p,
                                 o.f(0));
  };

  stage.sum = func(
      stage.name("l"), {"ii", "kb"}, 1,
      [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> { return {o.f(0)}; });
  update(stage.sum, {"rg"}, {constantI32(b, loc, block / group)},
         [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
           ArrayRef<Value> at = args.take_front(rank);
           SmallVector<Value> values;
           for (int64_t y = 0; y < group; ++y) {
             Value p = weightAt(o, at,
                                o.addi(o.muli(args[rank], o.i(group)), o.i(y)));
             values.push_back(partial ? o.select(absent(o, p), o.f(0), p) : p);
           }
           return {o.sum(
               o.read1(stage.sum.getResult(), at),
               o.tree(values, [&](Value x, Value y) { return o.sum(x, y); }))};
         });

  // PV(ii, dd, dt, kb, ...): the block'"'"'s part of `group` value dims.
  unsigned valueDim = op.firstDim(DimKind::Value);
  bool hasValueDim = op.numDims(DimKind::Value) == 1;
  stage.products = func(
      stage.name("pv"), {"ii", "dd", "dt", "kb"}, 1,
      [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> { return {o.f(0)}; });
  size_t productRank = 5 + batchDims;
  update(stage.products, {"rj"}, {constantI32(b, loc, block)},
         [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
           ArrayRef<Value> at = args.take_front(productRank),
                           rest = at.drop_front(4);
           Value jj = args[productRank], kb = at[3];
           SmallVector<Value> row{at[0], kb};
           row.append(rest.begin(), rest.end());
           Value p = weightAt(o, row, jj);
           SmallVector<Value> dims =
               place(rest.drop_front(), query(o, rest.front(), at[0]),
                     key(o, kb, jj));
           if (hasValueDim) {
             Value d = o.addi(o.muli(at[2], o.i(group)), at[1]);
             Extent extent = size(valueDim);
             dims[valueDim] = extent.fixed && *extent.fixed % group == 0
                                  ? d
                                  : o.mini(d, o.last(extent.value));
           }
           SmallVector<Value> values;
           for (auto [number, tensor] : llvm::enumerate(op.getValues()))
             values.push_back(operand(o, tensor, op.valueMap(number), dims));
           Value v =
               o.tree(values, [&](Value x, Value y) { return o.add(x, y); });
           Value state = o.read1(stage.products.getResult(), at);
           Value next = o.fma(state, p, v);
           return {partial ? o.select(absent(o, p), state, next) : next};
         });

  // The merge of the block into the state.
  Value state = plan.state.getResult();
  size_t stateRank = 3 + batchDims; // ii, dt, ib, batch
  Value blocks;
  Ops outside{b, loc};
  if (!partial)
    blocks = outside.floorDiv(keys, block);
  else if (masked)
    blocks = outside.floorDiv(outside.addi(keys, outside.i(block - 1)), block);
  else
    blocks = outside.floorDiv(
        outside.addi(outside.mod(keys, plan.block), outside.i(block - 1)),
        block);
  stage.update =
      update(plan.state, {"rk"}, {blocks}, [&](Ops &o, ArrayRef<Value> args) {
        ArrayRef<Value> at = args.take_front(stateRank),
                        rest = at.drop_front(2);
        SmallVector<Value> row{at[0], args[stateRank]};
        row.append(rest.begin(), rest.end());
        SmallVector<Value> old = o.read(state, at), values;
        Value before = old[group],
              here = o.read1(stage.rounded.getResult(), row);
        Value both = o.larger(before, here);
        Value c0 = o.power(o.sub(before, both)),
              c1 = o.power(o.sub(here, both));
        for (int64_t y = 0; y < group; ++y) {
          SmallVector<Value> product{at[0], o.i(y), at[1], args[stateRank]};
          product.append(rest.begin(), rest.end());
          values.push_back(o.fma(o.mul(old[y], c0),
                                 o.read1(stage.products.getResult(), product),
                                 c1));
        }
        values.push_back(both);
        values.push_back(o.fma(o.mul(old[group + 1], c0),
                               o.read1(stage.sum.getResult(), row), c1));
        return values;
      });
  // Only tiles that hold a query; of a masked op only blocks that the tile
  // reaches, each in one of the two updates.
  stage.update.fill(
      b, stage.update.getWhere(),
      [&](OpBuilder &inner, Location where,
          ValueRange args) -> SmallVector<Value> {
        Ops o{inner, where};
        Value tile = args[2], rk = args[stateRank];
        Value first = o.muli(tile, o.i(plan.tile));
        Value condition = o.less(first, queries);
        if (!masked || !ranges)
          return {condition};
        SmallVector<Value> batch(llvm::reverse(args.slice(3, batchDims)));
        KeyRanges r = ranges(inner, where,
                             QueryTile{first, plan.tile, queries, keys, batch});
        auto isFull = [&](Value block) {
          Value low = o.muli(block, o.i(plan.block));
          return o.both(o.atMost(r.fullLow, low),
                        o.atMost(o.addi(low, o.i(plan.block)), r.fullHigh));
        };
        if (!partial)
          return {o.both(condition, isFull(rk))};
        Value low = o.muli(rk, o.i(block));
        condition = o.both(condition,
                           o.both(o.less(low, r.reachHigh),
                                  o.less(r.reachLow, o.addi(low, o.i(block)))));
        return {
            o.both(condition, o.negate(isFull(o.floorDiv(low, plan.block))))};
      });
  return failure(failedRead);
}

/// Division, and the output in its own layout.
halide::FuncOp Streaming::finish() {
  const int64_t group = plan.group;
  Value state = plan.state.getResult();
  plan.scale = func(
      "scale", {"ii"}, 1,
      [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
        SmallVector<Value> first{at[0], o.i(0)};
        first.append(at.begin() + 1, at.end());
        SmallVector<Value> values = o.read(state, first);
        Value m = values[group], l = values[group + 1], c = o.f(1);
        if (Value sink = op.getSink()) {
          ArrayRef<Value> rest = at.drop_front(1);
          SmallVector<Value> dims =
              place(rest.drop_front(), query(o, rest.front(), at[0]), Value());
          Value t = o.mul(operand(o, sink, *op.getSinkMap(), dims), o.f(log2e));
          // Merged like a block with one key and no value; the exact
          // exponential, as t - both may be any number.
          Value both = o.larger(m, math::RoundEvenOp::create(o.b, o.loc, t));
          c = o.power(o.sub(m, both));
          l = o.fma(
              math::ExpOp::create(
                  o.b, o.loc, o.mul(o.sub(t, both), o.f(0.69314718055994531))),
              l, c);
        }
        if (!op.getDivide())
          return {c};
        Value none = arith::CmpFOp::create(
            o.b, o.loc, arith::CmpFPredicate::OEQ, l, o.f(0));
        return {o.select(none, o.f(0), o.div(c, l))};
      });
  plan.divided =
      func("tile", {"ii", "d"}, 1,
           [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
             ArrayRef<Value> rest = at.drop_front(2);
             SmallVector<Value> place{at[0], o.floorDiv(at[1], group)},
                 row{at[0]};
             place.append(rest.begin(), rest.end());
             row.append(rest.begin(), rest.end());
             SmallVector<Value> values = o.read(state, place);
             values.resize(group);
             Value value = halide::MuxOp::create(o.b, o.loc, o.b.getF32Type(),
                                                 o.mod(at[1], group), values);
             // A row without a live key has accumulators of exactly 0.
             return {o.mul(value, o.read1(plan.scale.getResult(), row))};
           });

  AffineMap map = op.outputMap();
  auto type = cast<RankedTensorType>(op.getOutput().getType());
  SmallVector<std::string> names;
  for (int64_t axis = type.getRank(); axis-- > 0;)
    names.push_back("d" + std::to_string(axis));
  SmallVector<StringRef> vars(names.begin(), names.end());
  plan.output = halide::FuncOp::create(
      b, loc, "o", vars, type.getElementType(),
      [&](OpBuilder &inner, Location where,
          ValueRange args) -> SmallVector<Value> {
        Ops o{inner, where};
        SmallVector<Value> dims(numDims, o.i(0));
        for (auto [axis, expr] : llvm::enumerate(map.getResults()))
          dims[cast<AffineDimExpr>(expr).getPosition()] =
              args[type.getRank() - 1 - axis];
        Value i = dims[op.firstDim(DimKind::Query)];
        Value d = op.numDims(DimKind::Value) ? dims[op.firstDim(DimKind::Value)]
                                             : o.i(0);
        SmallVector<Value> at{o.mod(i, plan.tile), d, o.floorDiv(i, plan.tile)};
        for (unsigned k = batchDims; k-- > 0;)
          at.push_back(dims[k]);
        Value value = o.read1(plan.divided.getResult(), at);
        if (!type.getElementType().isF32())
          value = arith::TruncFOp::create(inner, where, type.getElementType(),
                                          value);
        return {value};
      });
  for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
    unsigned dim = cast<AffineDimExpr>(expr).getPosition();
    std::string var = "d" + std::to_string(axis);
    plan.outputVars[dim] = var;
    plan.outputExtents[dim] = size(dim);
  }
  return plan.output;
}

FailureOr<halide::FuncOp> Streaming::run() {
  batchDims = op.numDims(DimKind::Batch);
  numDims = op.numLoopDims();
  Extent n = size(op.firstDim(DimKind::Query)),
         m = size(op.firstDim(DimKind::Key));
  queries = n.value;
  keys = m.value;
  plan.chooseTiles(n, m, batchDims);
  stageQueries();
  const int64_t group = plan.group;
  plan.state =
      func("st", {"ii", "dt"}, group + 2, [&](Ops &o, ArrayRef<Value>) {
        SmallVector<Value> values(group, o.f(0));
        values.push_back(o.f(lowest));
        values.push_back(o.f(0));
        return values;
      });
  bool masked = !op.getWhere().empty();
  if ((!masked || ranges) && failed(stage(/*partial=*/false)))
    return failure();
  bool whole = !masked && m.fixed && *m.fixed % plan.block == 0;
  if (!whole && failed(stage(/*partial=*/true)))
    return failure();
  halide::FuncOp output = finish();
  if (failedRead)
    return failure();
  SmallVector<Extent> batch;
  for (unsigned k = 0; k < batchDims; ++k)
    batch.push_back(size(k));
  plan.schedule(b, loc, batch);
  return output;
}

} // namespace

StringRef heed::whyNotStreaming(attn::AttentionOp op) {
  if (op.numDims(DimKind::Query) != 1 || op.numDims(DimKind::Key) != 1)
    return "it has several query or key dims";
  if (op.numDims(DimKind::Value) > 1)
    return "it has several value dims";
  if (op.getMap() != attn::Map::Exp || !op.getStabilise())
    return "its normaliser is not a stabilised exponential";
  if (!op.getWeight().empty())
    return "it has a factor after the normaliser";
  if (op.getLse() || op.getWeights())
    return "its log-sum-exp or its weights are results";
  return "";
}

FailureOr<halide::FuncOp>
heed::buildStreamingAttention(OpBuilder &b, attn::AttentionOp op,
                              const IRMapping &scalars, TensorReads &tensors,
                              const halide::Target &target,
                              const KeyRangesFn &ranges) {
  return Streaming(b, op, scalars, tensors, target, ranges).run();
}
