//===- RaiseAttentionWeight.cpp - how scores become weights ---------------===//
//
// A function of the scores that is written out: an exponential with or without
// its row's maximum and sum, a sigmoid, a relu, anything else. The softmax op
// is in RaiseAttentionSoftmax.cpp.
#include "passes/Algebra/TensorOps.h"
#include "passes/Algebra/Weights.h"
#include "passes/Mutation.h"
#include "passes/Raise/RaiseAttentionMatcher.h"
#include "support/Format.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {

namespace {

bool isExponential(ExprRef e) {
  return e->isOp("math.exp") || e->isOp("math.exp2");
}

// Whether everything that \p e reads at \p indices is a parameter: then these
// number the hidden units of a layer.
bool readsOnlyParameters(ExprRef e, ArrayRef<unsigned> indices) {
  if (!e->usesAny(indices))
    return true;
  if (e->kind == ExprKind::Read)
    return e->value.getDefiningOp<attn::ParamOp>() != nullptr;
  return llvm::all_of(e->operands, [&](ExprRef operand) {
    return readsOnlyParameters(operand, indices);
  });
}
} // namespace

// Takes apart the reads at the top of an expression; what stands inside of a
// reduction stays.
ExprRef AttentionMatcher::expandTop(ExprRef e) {
  while (e->kind == ExprKind::Read) {
    Operation *def = e->value.getDefiningOp();
    ExprRef inner = def && Exprs::isExpressible(def) && !isTable(def)
                        ? exprs.expand(e)
                        : nullptr;
    if (!inner)
      break;
    e = inner;
  }
  return e;
}

// The body of a reduction over keys, in this sum's keys. Null if it runs over
// others.
ExprRef AttentionMatcher::openOverKeys(ExprRef reduce) {
  if (reduce->binders.size() != keys.size())
    return nullptr;
  SmallVector<unsigned> vars;
  ExprRef body = exprs.open(reduce, vars);
  DenseMap<unsigned, ExprRef> renamed;
  for (auto [from, to] : llvm::zip(vars, keys)) {
    if (exprs.extent(from) != exprs.extent(to))
      return nullptr;
    renamed[from] = exprs.var(to);
  }
  return expandPairs(exprs.substitute(body, renamed));
}

// What \p under is the sum of, over this sum's keys and under its condition, or
// null. A term beside that sum may be a sink's weight.
ExprRef AttentionMatcher::summedBy(ExprRef under, ExprRef &sinkWeight) {
  sinkWeight = nullptr;
  if (under->usesAny(keys) || under->usesAny(m.value))
    return nullptr;
  ExprRef sum = expandTop(under);
  if (sum->isOp("arith.addf"))
    for (int k : {0, 1}) {
      ExprRef first = expandTop(sum->operand(k)),
              second = expandTop(sum->operand(1 - k));
      if (!first->isSum() ||
          !(isExponential(second) || exprs.constantFloat(second) == 1.0))
        continue;
      sinkWeight = second;
      sum = first;
      break;
    }
  ExprRef body = sum->isSum() ? openOverKeys(sum) : nullptr;
  if (!body || !guard)
    return body;
  ExprRef condition = nullptr;
  body = peelGuard(body, condition);
  return condition == guard ? body : nullptr;
}

// Takes what a normaliser sums out of the factors. With others beside it in the
// sum an exponential is a function like any other: where a factor is 0 the
// largest score may be of a key without weight, and less it all others 0.
bool AttentionMatcher::takeSummed(WeightFactors &f, ExprRef summed) {
  if (summed == f.core)
    return true;
  Product product;
  flatten(summed, product);
  WeightFactors left = f;
  if (f.core)
    left.pairs.push_back(f.core);
  auto takeAll = [](ArrayRef<ExprRef> from, SmallVector<ExprRef> &factors) {
    return llvm::all_of(from, [&](ExprRef e) {
      bool found = llvm::is_contained(factors, e);
      if (found)
        takeOne(factors, e);
      return found;
    });
  };
  if (!takeAll(product.over, left.pairs) ||
      !takeAll(product.under, left.pairsUnder) ||
      !hasScores(product, f.exponential))
    return false;
  left.core = summed;
  left.exponential = left.condition = nullptr;
  f = left;
  return true;
}

// \p maximum = max_j score (and the sink), under the sum's own condition?
bool AttentionMatcher::isRowMaximum(ExprRef maximum, ExprRef score,
                                    ExprRef sink) {
  auto isMaximum = [](ExprRef e, bool reduces) {
    for (StringRef name : {"arith.maximumf", "arith.maxnumf"})
      if (reduces ? e->isReduceBy(name) : e->isOp(name))
        return true;
    return false;
  };
  ExprRef e = expandTop(maximum);
  if (sink) {
    if (!isMaximum(e, /*reduces=*/false))
      return false;
    int k = expandTop(e->operand(0)) == expandTop(sink)   ? 1
            : expandTop(e->operand(1)) == expandTop(sink) ? 0
                                                          : -1;
    if (k < 0)
      return false;
    e = expandTop(e->operand(k));
  }
  ExprRef body = isMaximum(e, /*reduces=*/true) ? openOverKeys(e) : nullptr;
  if (!body)
    return false;
  if (!guard)
    return body == score;
  return (body->kind == ExprKind::If || body->isOp("arith.select")) &&
         body->operand(0) == guard && body->operand(1) == score &&
         exprs.isMinusInfinity(body->operand(2));
}

// The score of exp(exponent) or exp2(exponent), which may be 0 where \p
// condition fails. Null, with why, if no op says what it says.
ExprRef AttentionMatcher::matchExponential(ExprRef exponential,
                                           ExprRef condition,
                                           ExprRef sinkWeight) {
  m.map = attn::Map::Exp;
  ExprRef exponent = exponential->operand(0);
  auto natural = [&](ExprRef e) {
    return e && exponential->isOp("math.exp2")
               ? exprs.op("arith.mulf", e->type, {e, f32(0.693147180559945309)})
               : e;
  };
  ExprRef maximum = nullptr, sink = nullptr;
  if (exponent->isOp("arith.subf") && !exponent->operand(1)->usesAny(keys))
    maximum = exponent->operand(1);
  if (sinkWeight) {
    if (isExponential(sinkWeight) && sinkWeight->name != exponential->name) {
      fails("the term beside the sum in the normaliser has another base");
      return nullptr;
    }
    ExprRef inner = isExponential(sinkWeight) ? sinkWeight->operand(0) : f32(0);
    if (!maximum)
      sink = inner;
    else if (inner->isOp("arith.subf") && inner->operand(1) == maximum)
      sink = inner->operand(0);
    if (!sink) {
      fails("the term beside the sum in the normaliser subtracts another "
            "maximum than the scores");
      return nullptr;
    }
  }
  if (!m.divide || !maximum) {
    m.sink = natural(sink);
    return natural(exponent);
  }
  // What a row subtracts from all its scores cancels in the division: the op's
  // own maximum does its work, if it is the same one.
  if (!condition && isRowMaximum(maximum, exponent->operand(0), sink)) {
    m.sink = natural(sink);
    m.stabilise = true;
    return natural(exponent->operand(0));
  }
  if (sink) {
    fails("what the scores subtract is not the maximum of them and the sink");
    return nullptr;
  }
  m.notes.push_back("what the scores subtract is not their row's maximum: it "
                    "is computed before");
  return natural(exponent);
}

// The score of a weight that is no exponential.
ExprRef AttentionMatcher::matchOtherMap(ExprRef core) {
  auto isOne = [&](ExprRef e) { return exprs.constantFloat(e) == 1.0; };
  auto isZero = [&](ExprRef e) { return exprs.constantFloat(e) == 0.0; };
  m.map = attn::Map::Identity;
  if (core->isOp("arith.divf") && isOne(core->operand(0)) &&
      core->operand(1)->isOp("arith.addf")) {
    ExprRef sum = core->operand(1);
    for (int k : {0, 1}) {
      if (!isOne(sum->operand(k)) || !sum->operand(1 - k)->isOp("math.exp"))
        continue;
      ExprRef inner = sum->operand(1 - k)->operand(0);
      m.map = attn::Map::Sigmoid;
      if (mutated("raise-attention.sigmoid-not-negated"))
        return inner;
      return inner->isOp("arith.negf")
                 ? inner->operand(0)
                 : exprs.op("arith.mulf", inner->type, {inner, f32(-1.0)});
    }
  } else if ((core->isOp("arith.maximumf") || core->isOp("arith.maxnumf")) &&
             (isZero(core->operand(0)) || isZero(core->operand(1)))) {
    m.map = attn::Map::Relu;
    return isZero(core->operand(0)) ? core->operand(1) : core->operand(0);
  }
  return core;
}

// Whether keys and values look like weights that are inputs: they are the same
// for all rows, none of whose dims is as long as the keys, as one of
// self-attention is; and rows have more dims than keys, or values lie along the
// keys, as the rows of a layer's matrix do.
bool AttentionMatcher::isFeedForward() {
  if (m.query.empty() || !llvm::all_of(m.batch, [&](unsigned v) {
        return llvm::is_contained(shared, v);
      }))
    return false;
  SmallVector<unsigned> rows(m.query);
  llvm::append_range(rows, shared);
  for (unsigned row : rows)
    for (unsigned key : keys)
      if (exprs.extent(row) == exprs.extent(key))
        return false;
  if (!shared.empty())
    return true;
  bool alongKeys = true;
  for (ExprRef value : m.values)
    Exprs::walk(value, [&](ExprRef e) {
      if (e->kind == ExprKind::Read && e->usesAny(keys))
        alongKeys &= e->operands.back()->usesAny(keys);
    });
  return alongKeys;
}

AttentionMatcher::WeightFactors
AttentionMatcher::factorsOf(const Product &product) {
  WeightFactors f;
  for (ExprRef e : product.over)
    (e->usesAny(keys) ? f.pairs : f.scales).push_back(e);
  for (ExprRef e : product.under)
    (e->usesAny(keys) ? f.pairsUnder : f.scalesUnder).push_back(e);
  for (ExprRef e : f.pairs) {
    ExprRef where = nullptr, inner = peelGuard(e, where);
    if (!isExponential(inner))
      continue;
    f.core = e;
    f.condition = where;
    f.exponential = inner;
    takeOne(f.pairs, e);
    break;
  }
  return f;
}

bool AttentionMatcher::hasScores(const Product &product, ExprRef core) {
  bool found = core && varies(core);
  for (ExprRef e : product.over)
    Exprs::walk(
        e, [&](ExprRef inner) { found |= inner->isSum() && varies(inner); });
  return found;
}

bool AttentionMatcher::hasParametersAsValues() {
  bool fromParameters = true;
  for (ExprRef value : m.values)
    Exprs::walk(value, [&](ExprRef e) {
      if (e->kind == ExprKind::Read)
        fromParameters &= isFromParameters(e->value);
    });
  return fromParameters;
}

void AttentionMatcher::takeNormaliser(WeightFactors &f, ExprRef &sinkWeight) {
  for (ExprRef e : f.scalesUnder) {
    ExprRef summed = summedBy(e, sinkWeight);
    bool isWeight = summed && (!sinkWeight || summed == f.core || !f.core);
    if (!isWeight || !takeSummed(f, summed))
      continue;
    Product wholeUnder;
    if (whole)
      flatten(whole, wholeUnder);
    m.dividesAfter = whole && llvm::is_contained(wholeUnder.over, e);
    m.divide = true;
    takeOne(f.scalesUnder, e);
    return;
  }
  sinkWeight = nullptr;
}

bool AttentionMatcher::chooseEmptyRow(const WeightFactors &f) {
  if (!m.divide || m.sink)
    return true;
  if (f.exponential && guard && !m.dividesAfter)
    return fails("the weights are divided before a sum that has a condition: "
                 "a row without a key would be 0 where others of weight 0 "
                 "are NaN");
  m.empty = mutated("raise-attention.empty-row-is-zero") ? EmptyRow::Zero
            : m.dividesAfter                             ? EmptyRow::NaN
            : f.exponential                              ? EmptyRow::NaNIfKeys
                                                         : EmptyRow::Zero;
  return true;
}

/// Whether \p sum is over products of which each factor that has keys is read
/// with an axis of queries besides: no key is of two queries. A neighbour, or a
/// row of a table, is read where the two meet in one index, and is of several.
bool AttentionMatcher::hasOwnKeys(ExprRef sum) {
  if (!sum->isSum() || !sum->usesAny(keys))
    return false;
  SmallVector<unsigned> vars;
  Product product;
  flatten(exprs.open(sum, vars), product);
  return llvm::all_of(product.over, [&](ExprRef e) {
    return !e->usesAny(keys) ||
           (e->kind == ExprKind::Read &&
            llvm::any_of(e->operands, [&](ExprRef at) {
              return at->usesAny(m.query) && !at->usesAny(keys);
            }));
  });
}

ExprRef AttentionMatcher::scoreOfMap(ExprRef core) {
  ExprRef score = matchOtherMap(core);
  Product linear;
  bool isLinear = attn::Normaliser::of(m.map).isLinear;
  if (isLinear)
    flatten(score, linear);
  isLinear &= llvm::all_of(
      linear.over, [&](ExprRef e) { return e->isSum() || !e->usesAny(keys); });
  if (!guard && attn::Normaliser::of(m.map).isLinear)
    isLinear |= isSumOfChains(score);
  if (isLinear && !guard)
    return nullptr; // chains of products: attn-reorder-products
  if (isLinear &&
      llvm::any_of(linear.over, [&](ExprRef e) { return hasOwnKeys(e); })) {
    fails("each query has keys of its own, and nothing normalises over them: "
          "products");
    return nullptr;
  }
  StringRef why;
  if (!guard && readsOnlyParameters(score, keys))
    why = "its keys are parameters";
  else if (!guard && !m.divide && m.map == attn::Map::Identity &&
           readsOnlyParameters(score, m.query))
    why = "its queries are parameters"; // values, projected: no scores
  else if (!guard && !m.divide && isFeedForward())
    why = "all rows share its keys and values";
  if (why.empty())
    return score;
  fails(heed::format(
      "a feed-forward layer: {}, and no normaliser runs over them", why));
  return nullptr;
}

bool AttentionMatcher::matchFunction(const Product &product) {
  if (guard)
    guard = expandPairs(guard);
  WeightFactors f = factorsOf(product);
  if (!hasScores(product, f.core))
    return false;
  // A feed-forward layer has this form too, with parameters as values: two
  // products with an activation serve it better.
  if (hasParametersAsValues())
    return fails("its values are parameters: a feed-forward layer");
  ExprRef sinkWeight = nullptr;
  takeNormaliser(f, sinkWeight);
  if (!f.core) {
    f.core = multiply(f.pairs, f.pairsUnder);
    f.pairs.clear();
    f.pairsUnder.clear();
  }
  if (sinkWeight && !f.exponential)
    return fails("a term beside the sum in the normaliser is no sink");

  ExprRef score = f.exponential
                      ? matchExponential(f.exponential, f.condition, sinkWeight)
                      : nullptr;
  if ((f.exponential && !score) || !chooseEmptyRow(f))
    return false;
  if (f.exponential && !guard && !m.divide && readsOnlyParameters(score, keys))
    return fails("random features, or a feed-forward layer: its keys are "
                 "parameters, and no normaliser runs over them");
  if (!f.exponential && !(score = scoreOfMap(f.core)))
    return false;
  // A weight of 0 is written as no absence: what it multiplies may be NaN. So
  // it is a score of -inf, and no mask.
  if (f.condition)
    score = exprs.select(f.condition, score,
                         f32(-std::numeric_limits<double>::infinity()),
                         /*guard=*/f.core->kind == ExprKind::If);

  if (!f.pairs.empty() || !f.pairsUnder.empty() || !f.scales.empty() ||
      !f.scalesUnder.empty()) {
    m.weightParameter = exprs.freshVar();
    llvm::append_range(f.pairs, f.scales);
    llvm::append_range(f.pairsUnder, f.scalesUnder);
    f.pairs.insert(f.pairs.begin(), exprs.parameter(m.weightParameter, f32()));
    m.weight = multiply(f.pairs, f.pairsUnder);
  }
  if (guard && !mutated("raise-attention.forget-where"))
    m.where = guard;
  return finish(score, /*seesMask=*/!f.condition);
}

} // namespace heed
