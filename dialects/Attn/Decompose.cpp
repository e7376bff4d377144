//===- Decompose.cpp - what attn ops mean, in upstream ops
//--------------------------------===//
// Written to be read as the definition, not to be fast: scores are stored
// whole, and each step is one linalg.generic.
#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace heed::attn;

namespace {

using Body = llvm::function_ref<SmallVector<Value>(OpBuilder &, ValueRange)>;

/// Builds upstream ops at one place.
struct Build {
  OpBuilder &b;
  Location loc;

  Value real(Type type, double value) {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  }
  Value lowest(Type type) {
    return arith::ConstantOp::create(
        b, loc,
        b.getFloatAttr(
            type, APFloat::getInf(cast<FloatType>(type).getFloatSemantics(),
                                  /*Negative=*/true)));
  }
  Value truth(bool value) {
    return arith::ConstantOp::create(b, loc, b.getBoolAttr(value));
  }
  Value equals(Value a, Value c) {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, a, c);
  }
  Value andNot(Value a, Value c) {
    return arith::AndIOp::create(b, loc, a,
                                 arith::XOrIOp::create(b, loc, c, truth(true)));
  }
  Value empty(ArrayRef<OpFoldResult> sizes, Type element) {
    return tensor::EmptyOp::create(b, loc, sizes, element);
  }
  Value filled(ArrayRef<OpFoldResult> sizes, Value value) {
    return linalg::FillOp::create(b, loc, ValueRange{value},
                                  ValueRange{empty(sizes, value.getType())})
        .getResult(0);
  }
  Value like(Value value, Type type) {
    return value.getType() == type
               ? value
               : tensor::CastOp::create(b, loc, type, value).getResult();
  }
  /// An element as f32.
  Value wide(Value value) {
    return value.getType().isF32() || value.getType().isF64()
               ? value
               : arith::ExtFOp::create(b, loc, b.getF32Type(), value)
                     .getResult();
  }

  /// One generic; dims in \p reduced are reductions.
  SmallVector<Value> generic(ValueRange ins, ValueRange outs,
                             ArrayRef<AffineMap> maps,
                             ArrayRef<unsigned> reduced, Body body) {
    SmallVector<utils::IteratorType> iterators(maps.front().getNumDims(),
                                               utils::IteratorType::parallel);
    for (unsigned d : reduced)
      iterators[d] = utils::IteratorType::reduction;
    auto op = linalg::GenericOp::create(
        b, loc, outs.getTypes(), ins, outs, maps, iterators,
        [&](OpBuilder &inner, Location, ValueRange args) {
          linalg::YieldOp::create(inner, loc, body(inner, args));
        });
    return llvm::to_vector(llvm::map_range(
        op.getResults(), [](OpResult r) -> Value { return r; }));
  }

  Value expand(AffineExpr expr, ArrayRef<Value> dims, ValueRange symbols) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      return dims[dim.getPosition()];
    if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
      return symbols[symbol.getPosition()];
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      return arith::ConstantIndexOp::create(b, loc, constant.getValue());
    auto binary = cast<AffineBinaryOpExpr>(expr);
    Value lhs = expand(binary.getLHS(), dims, symbols);
    Value rhs = expand(binary.getRHS(), dims, symbols);
    switch (expr.getKind()) {
    case AffineExprKind::Add:
      return arith::AddIOp::create(b, loc, lhs, rhs);
    case AffineExprKind::Mul:
      return arith::MulIOp::create(b, loc, lhs, rhs);
    case AffineExprKind::FloorDiv:
      return arith::FloorDivSIOp::create(b, loc, lhs, rhs);
    case AffineExprKind::CeilDiv:
      return arith::CeilDivSIOp::create(b, loc, lhs, rhs);
    default: { // the remainder that goes with floordiv
      Value quotient = arith::FloorDivSIOp::create(b, loc, lhs, rhs);
      return arith::SubIOp::create(
          b, loc, lhs, arith::MulIOp::create(b, loc, quotient, rhs));
    }
    }
  }

  /// The element of \p tensor at \p map, as f32.
  Value read(Value tensor, AffineMap map, ArrayRef<Value> dims,
             ValueRange symbols) {
    SmallVector<Value> at;
    for (AffineExpr expr : map.getResults())
      at.push_back(expand(expr, dims, symbols));
    return wide(tensor::ExtractOp::create(b, loc, tensor, at));
  }

  /// The yielded value of \p region on \p args, cloned here.
  Value inlined(Region &region, ValueRange args) {
    IRMapping mapping;
    mapping.map(region.front().getArguments(), args);
    for (Operation &op : region.front().without_terminator())
      b.clone(op, mapping);
    auto yield = cast<YieldOp>(region.front().getTerminator());
    return mapping.lookupOrDefault(yield.getValue());
  }

  /// \p then where \p condition holds, \p otherwise elsewhere; not evaluated
  /// there.
  Value guarded(Value condition, Value otherwise,
                llvm::function_ref<Value(Build)> then) {
    auto op = scf::IfOp::create(
        b, loc, condition,
        [&](OpBuilder &inner, Location) {
          scf::YieldOp::create(inner, loc, then(Build{inner, loc}));
        },
        [&](OpBuilder &inner, Location) {
          scf::YieldOp::create(inner, loc, otherwise);
        });
    return op.getResult(0);
  }
};

/// Scores and what is known of their rows.
struct Rows {
  SmallVector<OpFoldResult> sizes, rowSizes;
  AffineMap all, row;         ///< of loops over all axes
  SmallVector<unsigned> keys; ///< axes that a row runs over
  Type type;
  Value scores, where; ///< where: an i1 tensor
  Value sink;          ///< of the rows' shape, or null
  // Results of normalise().
  Value dead;    ///< i1 per row: no key of it counts
  Value maximum; ///< per row, or null
  Value sum;     ///< per row
};

Rows makeRows(MLIRContext *context, ArrayRef<OpFoldResult> sizes,
              ArrayRef<unsigned> keys, Type type) {
  Rows rows;
  rows.sizes.assign(sizes.begin(), sizes.end());
  rows.keys.assign(keys.begin(), keys.end());
  rows.type = type;
  SmallVector<AffineExpr> exprs;
  for (unsigned d = 0; d < sizes.size(); ++d)
    if (!llvm::is_contained(keys, d)) {
      exprs.push_back(getAffineDimExpr(d, context));
      rows.rowSizes.push_back(sizes[d]);
    }
  rows.all = AffineMap::getMultiDimIdentityMap(sizes.size(), context);
  rows.row = AffineMap::get(sizes.size(), 0, exprs, context);
  return rows;
}

/// The value of `map` at a score less its row's maximum.
Value applyMap(Build at, Map map, Value score, Value maximum) {
  OpBuilder &b = at.b;
  if (maximum)
    score = arith::SubFOp::create(b, at.loc, score, maximum);
  switch (map) {
  case Map::Exp:
    return math::ExpOp::create(b, at.loc, score);
  case Map::Sigmoid: {
    Value one = at.real(score.getType(), 1);
    Value e =
        math::ExpOp::create(b, at.loc, arith::NegFOp::create(b, at.loc, score));
    return arith::DivFOp::create(b, at.loc, one,
                                 arith::AddFOp::create(b, at.loc, one, e));
  }
  case Map::Relu:
    return arith::MaximumFOp::create(b, at.loc, score,
                                     at.real(score.getType(), 0));
  case Map::Identity:
    return score;
  }
  llvm_unreachable("a map of Attn_Map");
}

/// Fills in dead, maximum and sum of \p rows.
void normalise(Build at, Rows &rows, Map map, bool stabilise) {
  OpBuilder &b = at.b;
  Location loc = at.loc;
  AffineMap rowOnly =
      AffineMap::getMultiDimIdentityMap(rows.rowSizes.size(), b.getContext());

  if (map == Map::Exp) {
    // A row counts as masked when no live score lies above -inf. A NaN is
    // larger than all.
    Value maximum =
        at.generic({rows.scores, rows.where},
                   {at.filled(rows.rowSizes, at.lowest(rows.type))},
                   {rows.all, rows.all, rows.row}, rows.keys,
                   [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                     Build in{b, loc};
                     Value s = arith::SelectOp::create(b, loc, v[1], v[0],
                                                       in.lowest(rows.type));
                     return {arith::MaximumFOp::create(b, loc, v[2], s)};
                   })[0];
    rows.dead = at.generic(
        {maximum}, {at.empty(rows.rowSizes, b.getI1Type())}, {rowOnly, rowOnly},
        {}, [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
          Build in{b, loc};
          return {in.equals(v[0], in.lowest(rows.type))};
        })[0];
    if (stabilise && rows.sink)
      maximum =
          at.generic({maximum, rows.sink}, {at.empty(rows.rowSizes, rows.type)},
                     {rowOnly, rowOnly, rowOnly}, {},
                     [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                       return {arith::MaximumFOp::create(b, loc, v[0], v[1])};
                     })[0];
    if (stabilise)
      rows.maximum = maximum;
  } else {
    rows.dead =
        at.generic({rows.where}, {at.filled(rows.rowSizes, at.truth(true))},
                   {rows.all, rows.row}, rows.keys,
                   [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                     return {Build{b, loc}.andNot(v[1], v[0])};
                   })[0];
  }

  Value start = at.filled(rows.rowSizes, at.real(rows.type, 0));
  if (rows.sink) {
    SmallVector<Value> ins{rows.sink};
    if (rows.maximum)
      ins.push_back(rows.maximum);
    SmallVector<AffineMap> maps(ins.size() + 1, rowOnly);
    start = at.generic(
        ins, {at.empty(rows.rowSizes, rows.type)}, maps, {},
        [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
          // A sink of -inf adds nothing, also to a row of
          // nothing else, where the difference is NaN.
          Build in{b, loc};
          Value w = applyMap(in, map, v[0], rows.maximum ? v[1] : Value());
          return {arith::SelectOp::create(b, loc,
                                          in.equals(v[0], in.lowest(rows.type)),
                                          in.real(rows.type, 0), w)};
        })[0];
  }
  SmallVector<Value> ins{rows.scores, rows.where, rows.dead};
  SmallVector<AffineMap> maps{rows.all, rows.all, rows.row};
  if (rows.maximum) {
    ins.push_back(rows.maximum);
    maps.push_back(rows.row);
  }
  maps.push_back(rows.row);
  rows.sum = at.generic(
      ins, {start}, maps, rows.keys,
      [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
        Build in{b, loc};
        Value w = applyMap(in, map, v[0], rows.maximum ? v[3] : Value());
        Value live = in.andNot(v[1], v[2]);
        w = arith::SelectOp::create(b, loc, live, w, in.real(rows.type, 0));
        return {arith::AddFOp::create(b, loc, v.back(), w)};
      })[0];
}

template <typename Op>
FailureOr<SmallVector<Value>> decomposeSoftmax(Op op, OpBuilder &b,
                                               bool logarithm) {
  Location loc = op.getLoc();
  Build at{b, loc};
  auto type = cast<RankedTensorType>(op.getInput().getType());
  SmallVector<unsigned> keys(op.getAxes().begin(), op.getAxes().end());
  Rows rows =
      makeRows(b.getContext(), tensor::getMixedSizes(b, loc, op.getInput()),
               keys, type.getElementType());
  rows.scores = op.getInput();
  rows.sink = op.getSink();
  if (op.getWhere().empty())
    rows.where = at.filled(rows.sizes, at.truth(true));
  else
    rows.where =
        at.generic({}, {at.empty(rows.sizes, b.getI1Type())}, {rows.all}, {},
                   [&](OpBuilder &b, ValueRange) -> SmallVector<Value> {
                     SmallVector<Value> indices;
                     for (int64_t d = 0; d < type.getRank(); ++d)
                       indices.push_back(linalg::IndexOp::create(b, loc, d));
                     return {Build{b, loc}.inlined(op.getWhere(), indices)};
                   })[0];
  normalise(at, rows, Map::Exp, /*stabilise=*/true);

  SmallVector<Value> results = at.generic(
      {rows.scores, rows.where, rows.dead, rows.maximum, rows.sum},
      {at.empty(rows.sizes, rows.type), at.empty(rows.sizes, b.getI1Type())},
      {rows.all, rows.all, rows.row, rows.row, rows.row, rows.all, rows.all},
      {}, [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
        Build in{b, loc};
        Value live = in.andNot(v[1], v[2]);
        Value shifted = arith::SubFOp::create(b, loc, v[0], v[3]);
        Value value, absent;
        if (logarithm) {
          value = arith::SubFOp::create(b, loc, shifted,
                                        math::LogOp::create(b, loc, v[4]));
          absent = in.lowest(rows.type);
        } else {
          value = arith::DivFOp::create(
              b, loc, math::ExpOp::create(b, loc, shifted), v[4]);
          absent = in.real(rows.type, 0);
        }
        return {arith::SelectOp::create(b, loc, live, value, absent), live};
      });
  return SmallVector<Value>{at.like(results[0], op.getResult().getType()),
                            at.like(results[1], op.getLive().getType())};
}

/// The parts of attn.attention, each a tensor over batch, query and key dims.
struct Scores {
  AttentionOp op;
  Build at;
  unsigned pairs = op.firstDim(DimKind::Contract); ///< batch, query, key dims
  SmallVector<OpFoldResult> sizes = getAsOpFoldResult(op.getSizes());
  AffineMap all = AffineMap::getMultiDimIdentityMap(pairs, op.getContext());

  SmallVector<Value> indices(OpBuilder &b, unsigned count) {
    SmallVector<Value> list;
    for (unsigned d = 0; d < count; ++d)
      list.push_back(linalg::IndexOp::create(b, at.loc, d));
    return list;
  }
  ArrayRef<OpFoldResult> pairSizes() {
    return ArrayRef<OpFoldResult>(sizes).take_front(pairs);
  }

  /// i1: which keys are live.
  Value where() {
    if (op.getWhere().empty())
      return at.filled(pairSizes(), at.truth(true));
    return at.generic(
        {}, {at.empty(pairSizes(), at.b.getI1Type())}, {all}, {},
        [&](OpBuilder &b, ValueRange) -> SmallVector<Value> {
          return {Build{b, at.loc}.inlined(op.getWhere(), indices(b, pairs))};
        })[0];
  }

  /// Score term \p t, 0 where \p where is false: nothing is read there.
  Value term(unsigned t, Value where) {
    SmallVector<unsigned> contract = op.contractDims(t), reduced;
    // The term's own loops: the pairs', then its contract dims.
    unsigned loops = pairs + contract.size();
    MLIRContext *context = op.getContext();
    SmallVector<AffineExpr> pairExprs, contractExprs;
    SmallVector<OpFoldResult> contractSizes;
    for (unsigned d = 0; d < pairs; ++d)
      pairExprs.push_back(getAffineDimExpr(d, context));
    for (auto [k, d] : llvm::enumerate(contract)) {
      reduced.push_back(pairs + k);
      contractExprs.push_back(getAffineDimExpr(pairs + k, context));
      contractSizes.push_back(sizes[d]);
    }
    AffineMap pairMap = AffineMap::get(loops, 0, pairExprs, context);
    SmallVector<Value> ins{where};
    SmallVector<AffineMap> maps{pairMap};
    if (!contract.empty()) { // tells linalg how far they run
      ins.push_back(at.empty(contractSizes, at.b.getI1Type()));
      maps.push_back(AffineMap::get(loops, 0, contractExprs, context));
    }
    maps.push_back(pairMap);
    Type f32 = at.b.getF32Type();
    return at.generic(
        ins, {at.filled(pairSizes(), at.real(f32, 0))}, maps, reduced,
        [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
          SmallVector<Value> own = indices(b, loops);
          SmallVector<Value> dims(op.numLoopDims());
          std::copy(own.begin(), own.begin() + pairs, dims.begin());
          for (auto [k, d] : llvm::enumerate(contract))
            dims[d] = own[pairs + k];
          return {Build{b, at.loc}.guarded(v[0], v.back(), [&](Build in) {
            SmallVector<Value> elements;
            for (auto [k, operand] : llvm::enumerate(op.term(t)))
              elements.push_back(
                  in.read(operand, op.maps(t)[k], dims, op.getSymbols()));
            Value product;
            if (op.pair(t).empty()) {
              product = elements[0];
              for (Value factor : ArrayRef<Value>(elements).drop_front())
                product = arith::MulFOp::create(in.b, in.loc, product, factor);
            } else {
              product = in.inlined(op.pair(t), elements);
            }
            return arith::AddFOp::create(in.b, in.loc, v.back(), product)
                .getResult();
          })};
        })[0];
  }

  /// The scores, -inf where \p where is false.
  Value scores(Value where) {
    SmallVector<Value> ins{where};
    for (unsigned t = 0; t < op.numTerms(); ++t)
      ins.push_back(term(t, where));
    SmallVector<AffineMap> maps(ins.size() + 1, all);
    Type f32 = at.b.getF32Type();
    return at.generic(ins, {at.empty(pairSizes(), f32)}, maps, {},
                      [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                        SmallVector<Value> args = indices(b, pairs);
                        args.append(v.begin() + 1,
                                    v.begin() + 1 + op.numTerms());
                        Build in{b, at.loc};
                        return {in.guarded(v[0], in.lowest(f32), [&](Build in) {
                          return in.inlined(op.getScore(), args);
                        })};
                      })[0];
  }
};

} // namespace

FailureOr<SmallVector<Value>> SoftmaxOp::decomposeOperation(OpBuilder &b) {
  return decomposeSoftmax(*this, b, /*logarithm=*/false);
}

FailureOr<SmallVector<Value>> LogSoftmaxOp::decomposeOperation(OpBuilder &b) {
  return decomposeSoftmax(*this, b, /*logarithm=*/true);
}

FailureOr<SmallVector<Value>> AttentionOp::decomposeOperation(OpBuilder &b) {
  Location loc = getLoc();
  Build at{b, loc};
  MLIRContext *context = getContext();
  Type f32 = b.getF32Type();
  Scores parts{*this, at};
  SmallVector<unsigned> keys;
  for (unsigned k = 0; k < numDims(DimKind::Key); ++k)
    keys.push_back(firstDim(DimKind::Key) + k);
  Rows rows = makeRows(context, parts.pairSizes(), keys, f32);
  rows.where = parts.where();
  rows.scores = parts.scores(rows.where);
  unsigned rowDims = firstDim(DimKind::Key);
  AffineMap rowOnly = AffineMap::getMultiDimIdentityMap(rowDims, context);
  if (getSink())
    rows.sink =
        at.generic({}, {at.empty(rows.rowSizes, f32)}, {rowOnly}, {},
                   [&](OpBuilder &b, ValueRange) -> SmallVector<Value> {
                     SmallVector<Value> dims = parts.indices(b, rowDims);
                     dims.resize(numLoopDims());
                     return {Build{b, loc}.read(getSink(), *getSinkMap(), dims,
                                                getSymbols())};
                   })[0];
  normalise(at, rows, getMap(), getStabilise());

  // Weights, and which keys count in the end.
  SmallVector<Value> ins{rows.scores, rows.where, rows.dead, rows.sum};
  SmallVector<AffineMap> maps{rows.all, rows.all, rows.row, rows.row};
  if (rows.maximum) {
    ins.push_back(rows.maximum);
    maps.push_back(rows.row);
  }
  maps.append(2, rows.all);
  SmallVector<Value> weights = at.generic(
      ins, {at.empty(rows.sizes, f32), at.empty(rows.sizes, b.getI1Type())},
      maps, {}, [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
        Build in{b, loc};
        SmallVector<Value> args = parts.indices(b, parts.pairs);
        Value live = in.andNot(v[1], v[2]);
        Value weight = in.guarded(live, in.real(f32, 0), [&](Build in) {
          Value w = applyMap(in, getMap(), v[0], rows.maximum ? v[4] : Value());
          if (getDivide())
            w = arith::DivFOp::create(in.b, loc, w, v[3]);
          if (getWeight().empty())
            return w;
          args.push_back(w);
          return in.inlined(getWeight(), args);
        });
        return {weight, live};
      });

  // Loops of the value product: batch, query, key, value.
  unsigned loops = parts.pairs + numDims(DimKind::Value);
  SmallVector<AffineExpr> pairExprs, outExprs;
  for (unsigned d = 0; d < parts.pairs; ++d)
    pairExprs.push_back(getAffineDimExpr(d, context));
  SmallVector<OpFoldResult> outSizes;
  auto loopOf = [&](unsigned d) {
    return d < parts.pairs ? d : d - numDims(DimKind::Contract);
  };
  for (AffineExpr expr : outputMap().getResults()) {
    unsigned d = cast<AffineDimExpr>(expr).getPosition();
    outExprs.push_back(getAffineDimExpr(loopOf(d), context));
    outSizes.push_back(parts.sizes[d]);
  }
  AffineMap pairMap = AffineMap::get(loops, 0, pairExprs, context);
  AffineMap outMap = AffineMap::get(loops, 0, outExprs, context);
  Value start = at.filled(outSizes, at.real(f32, 0));
  if (getEmpty()) {
    SmallVector<AffineExpr> rowExprs;
    for (unsigned d = 0; d < rowDims; ++d)
      rowExprs.push_back(getAffineDimExpr(
          llvm::find(outputMap().getResults(), getAffineDimExpr(d, context)) -
              outputMap().getResults().begin(),
          context));
    AffineMap own = AffineMap::getMultiDimIdentityMap(outSizes.size(), context);
    start =
        at.generic({rows.dead}, {at.empty(outSizes, f32)},
                   {AffineMap::get(outSizes.size(), 0, rowExprs, context), own},
                   {}, [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                     return {arith::SelectOp::create(
                         b, loc, v[0], getEmpty(), Build{b, loc}.real(f32, 0))};
                   })[0];
  }
  Value output = at.generic(
      {weights[0], weights[1]}, {start}, {pairMap, pairMap, outMap}, keys,
      [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
        SmallVector<Value> own = parts.indices(b, loops);
        SmallVector<Value> dims(numLoopDims());
        for (unsigned d = 0; d < numLoopDims(); ++d)
          if (dimKind(d) != DimKind::Contract)
            dims[d] = own[loopOf(d)];
        return {Build{b, loc}.guarded(v[1], v[2], [&](Build in) {
          Value sum;
          for (auto [k, operand] : llvm::enumerate(getValues())) {
            Value element = in.read(operand, valueMap(k), dims, getSymbols());
            sum =
                sum ? arith::AddFOp::create(in.b, loc, sum, element).getResult()
                    : element;
          }
          Value product = arith::MulFOp::create(in.b, loc, v[0], sum);
          return arith::AddFOp::create(in.b, loc, v[2], product).getResult();
        })};
      })[0];
  auto outType = cast<RankedTensorType>(getOutput().getType());
  if (!outType.getElementType().isF32()) {
    AffineMap id = AffineMap::getMultiDimIdentityMap(outSizes.size(), context);
    output = at.generic(
        {output}, {at.empty(outSizes, outType.getElementType())}, {id, id}, {},
        [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
          return {
              arith::TruncFOp::create(b, loc, outType.getElementType(), v[0])};
        })[0];
  }
  SmallVector<Value> results{at.like(output, outType)};
  if (getLse()) {
    SmallVector<Value> ins{rows.sum};
    if (rows.maximum)
      ins.push_back(rows.maximum);
    SmallVector<AffineMap> lseMaps(ins.size() + 1, rowOnly);
    Value lse = at.generic(
        ins, {at.empty(rows.rowSizes, f32)}, lseMaps, {},
        [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
          Value log = math::LogOp::create(b, loc, v[0]); // -inf of an empty row
          if (rows.maximum)
            log = arith::AddFOp::create(b, loc, log, v[1]);
          return {log};
        })[0];
    results.push_back(at.like(lse, getLse().getType()));
  }
  if (getWeights())
    results.push_back(at.like(weights[0], getWeights().getType()));
  return results;
}
