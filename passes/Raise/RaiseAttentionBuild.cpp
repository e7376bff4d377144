//===- RaiseAttentionBuild.cpp - writes a matched attention as an op ------===//
//
// An operand must be a tensor read through a semi-affine map. What is a
// function of several tensors, or of a clipped offset, is first written as a
// tensor of its own: over one side's dims, or over the offset j - i.
#include "passes/Mutation.h"
#include "passes/Raise/RaiseAttentionMatch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {
namespace {

struct Operand {
  Value tensor;
  SmallVector<AffineExpr> results;
};

class AttentionBuilder {
public:
  AttentionBuilder(OpBuilder &builder, Location loc, Exprs &exprs,
                   AttentionMatch &match, std::string &why)
      : builder(builder), loc(loc), exprs(exprs), m(match), why(why) {}
  FailureOr<Value> build(ArrayRef<unsigned> outputs, Type element);

private:
  FailureOr<Operand> operand(ExprRef e);
  FailureOr<Operand> overOffset(ExprRef e);
  FailureOr<Operand> overIndices(ExprRef e);
  std::optional<SmallVector<AffineExpr>> affine(ExprRef read);
  ExprRef clampReads(ExprRef e);
  ExprRef multiplied(ExprRef score);
  Value emptyRow(ArrayRef<Value> sizes);
  bool addOperands();
  AffineMapAttr resultMap(ArrayRef<unsigned> outputs);
  void writeRegions(attn::AttentionOp op);
  Value constantIndex(ExprRef e) { return writeExtent(builder, loc, e); }
  void body(Region &region, ArrayRef<unsigned> indices,
            ArrayRef<unsigned> parameters, ExprRef e);

  OpBuilder &builder;
  Location loc;
  Exprs &exprs;
  AttentionMatch &m;
  std::string &why;
  SmallVector<unsigned> loops;
  DenseMap<unsigned, unsigned> position;
  SmallVector<Value> symbols;
  SmallVector<Operand> termOperands, values, sink; ///< at most one sink
};

std::optional<SmallVector<AffineExpr>> AttentionBuilder::affine(ExprRef read) {
  size_t known = symbols.size();
  SmallVector<AffineExpr> results;
  for (ExprRef at : read->operands) {
    AffineExpr e = exprs.toAffine(at, position, symbols);
    if (!e) {
      symbols.resize(known);
      return std::nullopt;
    }
    results.push_back(e);
  }
  return results;
}

FailureOr<Operand> AttentionBuilder::operand(ExprRef e) {
  // The op extends f16 and bf16 itself.
  auto strip = [](ExprRef inner) {
    return inner->isOp("arith.extf") && (inner->operand(0)->type.isF16() ||
                                         inner->operand(0)->type.isBF16())
               ? inner->operand(0)
               : inner;
  };
  e = strip(e);
  if (e->kind == ExprKind::Read) {
    if (auto results = affine(e)) {
      Operand found{e->value, *results};
      // See through what only reindexes: transposes, slices, repeated heads. A
      // reshaped view is as good as what it views: it is seen through for what
      // may lie behind.
      while (Operation *def = e->value.getDefiningOp()) {
        bool reshapes = Exprs::isReshape(def);
        ExprRef inner =
            reshapes || Exprs::isElementwise(def) ? exprs.expand(e) : nullptr;
        if (!inner || strip(inner)->kind != ExprKind::Read)
          break;
        e = strip(inner);
        if (reshapes)
          continue;
        if (auto next = affine(e))
          found = Operand{e->value, *next};
      }
      return found;
    }
  }
  bool pairs = e->usesAny(m.key) && e->usesAny(m.query);
  return pairs ? overOffset(e) : overIndices(e);
}

// Inside a table every position is computed, also those that no pair reaches
// under the mask: reads stay in range.
ExprRef AttentionBuilder::clampReads(ExprRef e) {
  return exprs.rewrite(e, [&](ExprRef inner) -> ExprRef {
    if (inner->kind != ExprKind::Read)
      return nullptr;
    SmallVector<ExprRef> at;
    for (unsigned axis = 0; axis < inner->operands.size(); ++axis) {
      ExprRef index = inner->operand(axis),
              extent = exprs.extentOf(inner->value, axis);
      bool plain =
          index->kind == ExprKind::Var && exprs.extent(index->number) == extent;
      if (!plain) {
        Type type = index->type;
        ExprRef last = exprs.op("arith.subi", type, {extent, exprs.index(1)});
        index = exprs.op("arith.minsi", type, {index, last});
        index = exprs.op("arith.maxsi", type, {index, exprs.index(0)});
      }
      at.push_back(index);
    }
    return exprs.read(inner->value, at);
  });
}

// f(clip(j - i), ...): a table over u = j - i - low in [0, high - low], whose
// ends serve beyond them. Other functions of j - i: over u = j - i + (N - 1) in
// [0, N + M - 1).
FailureOr<Operand> AttentionBuilder::overOffset(ExprRef e) {
  for (unsigned i : m.query)
    for (unsigned j : m.key) {
      if (!e->uses(i) || !e->uses(j))
        continue;
      unsigned u = 0;
      ExprRef shift = nullptr;
      ExprRef table = exprs.byClampedOffset(e, i, j, u, shift);
      if (!table)
        table = exprs.byOffset(e, i, j, u, shift);
      if (!table)
        continue;
      SmallVector<unsigned> vars;
      for (unsigned v : loops)
        if (table->uses(v))
          vars.push_back(v);
      // Offsets are rows; of numbers alone, they follow one another.
      bool rows = table->usesAny(m.contract) || table->usesAny(m.value);
      vars.insert(rows ? vars.begin() : vars.end(), u);
      Operand result;
      result.tensor = writeTensor(builder, loc, exprs, clampReads(table), vars);
      Value shiftValue = constantIndex(shift);
      auto *known = llvm::find(symbols, shiftValue);
      unsigned symbol = known - symbols.begin();
      if (known == symbols.end())
        symbols.push_back(shiftValue);
      AffineExpr offset = getAffineDimExpr(position[j], exprs.context) -
                          getAffineDimExpr(position[i], exprs.context) +
                          getAffineSymbolExpr(symbol, exprs.context);
      if (mutated("raise-attention.offset-plus-one"))
        offset = offset + 1;
      for (unsigned v : vars)
        result.results.push_back(
            v == u ? offset : getAffineDimExpr(position[v], exprs.context));
      return result;
    }
  why = "an operand varies over pairs in another way than by the offset "
        "between key and query";
  return failure();
}

// A function of one side: a tensor over its variables. A variable that only
// occurs within one index expression (a group's head) is replaced by that
// index, so that nothing is computed twice.
FailureOr<Operand> AttentionBuilder::overIndices(ExprRef e) {
  SmallVector<unsigned> vars;
  Operand result;
  for (unsigned v : loops) {
    if (!e->uses(v))
      continue;
    ExprRef within = nullptr, extent = nullptr;
    bool plain = false;
    Exprs::walk(e, [&](ExprRef inner) {
      if (inner->kind != ExprKind::Read)
        return;
      for (auto [axis, at] : llvm::enumerate(inner->operands)) {
        if (!at->uses(v))
          continue;
        plain |= at->kind == ExprKind::Var || (within && within != at) ||
                 at->freeVars.size() != 1;
        within = at;
        extent = exprs.extentOf(inner->value, axis);
      }
    });
    // Elsewhere than in a read's index?
    ExprRef rest = within ? exprs.replaceOutermost(e,
                                                   [&](ExprRef inner) {
                                                     return inner == within
                                                                ? exprs.index(0)
                                                                : nullptr;
                                                   })
                          : e;
    AffineExpr index = within && !plain && !rest->uses(v)
                           ? exprs.toAffine(within, position, symbols)
                           : AffineExpr();
    if (index) {
      unsigned fresh = exprs.freshVar(extent);
      e = exprs.replaceOutermost(e, [&](ExprRef inner) {
        return inner == within ? exprs.var(fresh) : nullptr;
      });
      vars.push_back(fresh);
      result.results.push_back(index);
    } else {
      vars.push_back(v);
      result.results.push_back(getAffineDimExpr(position[v], exprs.context));
    }
  }
  result.tensor = writeTensor(builder, loc, exprs, e, vars);
  return result;
}

/// Arithmetic in floating point on scalars from outside alone.
static bool isScalarFormula(ExprRef e) {
  if (e->kind != ExprKind::Op || !isa<FloatType>(e->type) ||
      !e->freeVars.empty())
    return false;
  bool plain = true, hasScalar = false;
  Exprs::walk(e, [&](ExprRef inner) {
    plain &= inner->kind == ExprKind::Constant ||
             inner->kind == ExprKind::Scalar || inner->kind == ExprKind::Op;
    hasScalar |= inner->kind == ExprKind::Scalar;
    // A division by zero that is not reached must not trap.
    if (inner->kind == ExprKind::Op && inner->type.isIntOrIndex() &&
        inner->operands.size() == 2)
      plain &= inner->isOp("arith.addi") || inner->isOp("arith.subi") ||
               inner->isOp("arith.muli") || inner->isOp("arith.cmpi");
  });
  return plain && hasScalar;
}

/// Divisions by what is one number for all pairs, as products with its
/// reciprocal: one rounding more, and no division for each pair.
ExprRef AttentionBuilder::multiplied(ExprRef score) {
  return exprs.rewrite(score, [&](ExprRef e) -> ExprRef {
    if (!e->isOp("arith.divf") || e->operand(0)->freeVars.empty())
      return nullptr;
    ExprRef by = e->operand(1);
    Type type = by->type;
    if (by->kind == ExprKind::Constant) {
      auto number = dyn_cast<FloatAttr>(by->attr);
      if (!number)
        return nullptr;
      APFloat reciprocal(number.getValue().getSemantics(), 1);
      reciprocal.divide(number.getValue(), APFloat::rmNearestTiesToEven);
      if (!reciprocal.isNormal())
        return nullptr;
      by = exprs.constant(FloatAttr::get(type, reciprocal));
    } else if (by->kind == ExprKind::Scalar || isScalarFormula(by)) {
      by = exprs.op("arith.divf", type,
                    {exprs.constant(FloatAttr::get(type, 1)), by});
    } else {
      return nullptr;
    }
    return exprs.op("arith.mulf", type, {e->operand(0), by});
  });
}

void AttentionBuilder::body(Region &region, ArrayRef<unsigned> indices,
                            ArrayRef<unsigned> parameters, ExprRef e) {
  // What is one number for all pairs is computed once, outside.
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(region.getParentOp());
    e = exprs.replaceOutermost(e, [&](ExprRef inner) -> ExprRef {
      if (!isScalarFormula(inner))
        return nullptr;
      return exprs.scalar(ExprWriter(builder, loc).write(inner));
    });
  }
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&region);
  ExprWriter writer(builder, loc);
  for (unsigned v : indices)
    writer.bind(v, block->addArgument(builder.getIndexType(), loc));
  for (unsigned p : parameters)
    writer.bind(p, block->addArgument(builder.getF32Type(), loc));
  attn::YieldOp::create(builder, loc, writer.write(e));
}

/// The output of empty rows; null for 0.
Value AttentionBuilder::emptyRow(ArrayRef<Value> sizes) {
  if (m.empty == EmptyRow::Zero)
    return {};
  auto real = [&](const APFloat &value) -> Value {
    return arith::ConstantOp::create(
        builder, loc, FloatAttr::get(builder.getF32Type(), value));
  };
  Value nan = real(APFloat::getQNaN(APFloat::IEEEsingle()));
  if (m.empty == EmptyRow::NaN)
    return nan;
  Value none = real(APFloat::getZero(APFloat::IEEEsingle())), result = nan;
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  for (unsigned v : m.key)
    result = arith::SelectOp::create(
        builder, loc,
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                              sizes[position[v]], zero),
        none, result);
  return result;
}

bool AttentionBuilder::addOperands() {
  auto add = [&](ExprRef e, SmallVectorImpl<Operand> &to) {
    FailureOr<Operand> found = operand(e);
    if (succeeded(found))
      to.push_back(*found);
    return succeeded(found);
  };
  for (AttentionTerm &term : m.terms)
    for (ExprRef e : term.operands)
      if (!add(e, termOperands))
        return false;
  for (ExprRef e : m.values)
    if (!add(e, values))
      return false;
  return !m.sink || add(m.sink, sink);
}

AffineMapAttr AttentionBuilder::resultMap(ArrayRef<unsigned> outputs) {
  SmallVector<unsigned> loopOrder;
  for (auto *kind : {&m.batch, &m.query, &m.value})
    loopOrder.append(kind->begin(), kind->end());
  if (ArrayRef<unsigned>(loopOrder) == outputs)
    return {};
  SmallVector<AffineExpr> dims;
  for (unsigned v : outputs)
    dims.push_back(getAffineDimExpr(position[v], builder.getContext()));
  return AffineMapAttr::get(
      AffineMap::get(loops.size(), 0, dims, builder.getContext()));
}

void AttentionBuilder::writeRegions(attn::AttentionOp op) {
  SmallVector<unsigned> pairVars, termResults;
  for (auto *kind : {&m.batch, &m.query, &m.key})
    pairVars.append(kind->begin(), kind->end());
  for (auto [k, term] : llvm::enumerate(m.terms)) {
    termResults.push_back(term.result);
    if (term.pair)
      body(op.getPairs()[k], {}, term.parameters, term.pair);
  }
  body(op.getScore(), pairVars, termResults, multiplied(m.score));
  if (m.where)
    body(op.getWhere(), pairVars, {}, m.where);
  if (m.weight)
    body(op.getWeight(), pairVars, {m.weightParameter}, m.weight);
}

FailureOr<Value> AttentionBuilder::build(ArrayRef<unsigned> outputs,
                                         Type element) {
  SmallVector<int64_t> dims, arity, shape;
  for (auto *kind : {&m.batch, &m.query, &m.key, &m.contract, &m.value}) {
    dims.push_back(kind->size());
    loops.append(kind->begin(), kind->end());
  }
  SmallVector<Value> sizes;
  for (auto [k, v] : llvm::enumerate(loops)) {
    position[v] = k;
    sizes.push_back(writeExtent(builder, loc, exprs.extent(v)));
  }
  if (!addOperands())
    return failure();
  for (AttentionTerm &term : m.terms)
    arity.push_back(term.operands.size());
  for (unsigned v : outputs)
    shape.push_back(
        Exprs::constantInt(exprs.extent(v)).value_or(ShapedType::kDynamic));

  // Only now are all symbols of the maps known.
  auto mapsOf = [&](ArrayRef<Operand> operands) {
    SmallVector<AffineMap> maps;
    for (const Operand &operand : operands)
      maps.push_back(AffineMap::get(loops.size(), symbols.size(),
                                    operand.results, builder.getContext()));
    return maps;
  };
  auto tensorsOf = [](ArrayRef<Operand> operands) {
    return llvm::map_to_vector(operands,
                               [](const Operand &o) { return o.tensor; });
  };
  auto flag = [&](bool isSet) {
    return isSet ? builder.getUnitAttr() : UnitAttr();
  };
  SmallVector<int64_t> rows;
  for (auto *kind : {&m.batch, &m.query})
    for (unsigned v : *kind)
      rows.push_back(
          Exprs::constantInt(exprs.extent(v)).value_or(ShapedType::kDynamic));
  Type lse;
  if (m.lse)
    lse = RankedTensorType::get(rows, builder.getF32Type());
  auto op = attn::AttentionOp::create(
      builder, loc, RankedTensorType::get(shape, element), lse, Type(), sizes,
      symbols, tensorsOf(termOperands), tensorsOf(values),
      m.sink ? sink.front().tensor : Value(), emptyRow(sizes),
      builder.getDenseI64ArrayAttr(dims), builder.getDenseI64ArrayAttr(arity),
      builder.getAffineMapArrayAttr(mapsOf(termOperands)),
      builder.getAffineMapArrayAttr(mapsOf(values)),
      m.sink ? AffineMapAttr::get(mapsOf(sink).front()) : AffineMapAttr(),
      resultMap(outputs), attn::MapAttr::get(builder.getContext(), m.map),
      flag(m.divide), flag(m.stabilise), m.terms.size());
  writeRegions(op);
  return op.getOutput();
}

} // namespace

FailureOr<Value> buildAttention(OpBuilder &builder, Location loc, Exprs &exprs,
                                AttentionMatch match,
                                ArrayRef<unsigned> outputs, Type element,
                                std::string &why) {
  return AttentionBuilder(builder, loc, exprs, match, why)
      .build(outputs, element);
}

} // namespace heed
