//===- RaiseCausalSum.cpp - sums over what comes before, as recurrences ---===//
//
// sum_(j <= i) (sum_e Q[i,e] K[j,e]) V[j,f], whose cost grows with N^2: a
// linear attention, whose cost grows with N.
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/Proof.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Recurrence/CausalBound.h"
#include "passes/Recurrence/LinearMatch.h"
#include "passes/Recurrence/RaiseLinearAttention.h"
#include "passes/Recurrence/StepPower.h"
#include "passes/Recurrence/WriteChunk.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {
namespace {

class SumRaiser {
public:
  explicit SumRaiser(linalg::LinalgOp sum)
      : sum(sum), exprs(sum.getContext()), b(sum), attempt(b) {}
  bool run();

private:
  bool openFactors(Product &product);
  bool match(const CausalReduction &causal);
  bool findAny(const CausalReduction &causal);
  bool place(ExprRef factor, bool below, bool isInner);
  bool matchDecay(ExprRef factor);
  bool matchPower(const StepPower &power);
  bool matchCumulative(ExprRef ofQuery, ExprRef ofKey);
  bool isWorthwhile();
  ExprRef writeAny();
  Value finish(attn::LinearAttentionOp op, Value output);
  bool replace(ExprRef written);

  linalg::LinalgOp sum;
  Exprs exprs;
  OpBuilder b;
  Attempt attempt;
  SmallVector<unsigned> outputs;
  unsigned query = 0, key = 0;
  SmallVector<unsigned> summed; ///< by the inner sum
  Product inner, queries, keys, values, outside;
  ExprRef left = nullptr;    ///< of a key at a query: the factor for decays
  ExprRef once = nullptr;    ///< a decay more, of the query
  bool isCumulative = false; ///< decays since the first step, which may be NaN
  ExprRef seen = nullptr;    ///< what else a key must fulfil; null: nothing
  ExprRef any = nullptr;     ///< of a query: whether such a key is there
  linalg::LinalgOp prefix;   ///< its tensor, where it is a reduction
  LinearMatch found;
};

/// Sees through what pairs of a query and a key enter: one sum of products.
bool SumRaiser::openFactors(Product &product) {
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned k = 0; k < product.over.size() && !changed; ++k) {
      ExprRef e = product.over[k];
      if (!e->uses(query) || !e->uses(key))
        continue;
      if (e->isReduceBy("arith.addf")) {
        if (!summed.empty())
          return false;
        flatten(exprs, exprs.open(e, summed), inner);
        product.over.erase(product.over.begin() + k);
        changed = true;
      } else if (e->kind == ExprKind::Read) {
        ExprRef element = exprs.expand(e);
        if (!element)
          return false;
        product.over.erase(product.over.begin() + k);
        flatten(exprs, element, product);
        changed = true;
      } else if (matchDecay(e)) {
        product.over.erase(product.over.begin() + k);
        changed = true;
      } else {
        return false;
      }
    }
  }
  return !summed.empty();
}

/// Whether \p factor is what decays leave of a key: a power of a number whose
/// exponent counts the steps between, exp of a rate times these, or
/// exp(c_i - c_j) with a sum c over what comes before.
bool SumRaiser::matchDecay(ExprRef factor) {
  if (left)
    return false;
  bool isDecay = false;
  if (std::optional<StepPower> power =
          matchStepPower(exprs, factor, query, key)) {
    isDecay = matchPower(*power);
  } else if (factor->isOp("math.exp")) {
    ExprRef exponent = factor->operand(0);
    isDecay = exponent->isOp("arith.subf") &&
              matchCumulative(exponent->operand(0), exponent->operand(1));
  }
  if (isDecay)
    left = factor;
  return isDecay;
}

/// A power of i - j, or of one less where a query does not see its own key.
bool SumRaiser::matchPower(const StepPower &power) {
  found.decay = power.base;
  isCumulative |= power.isExponential; // exp(g 0) of a g that is NaN
  if (found.before && power.less == 0)
    once = power.base;
  return power.less == 0 || (found.before && power.less == 1);
}

/// exp(c_i - c_j) with c_i = sum_(w <= i) g_w: exp(g_w) for each step between.
bool SumRaiser::matchCumulative(ExprRef ofQuery, ExprRef ofKey) {
  DenseMap<unsigned, ExprRef> rename;
  rename[key] = exprs.var(query);
  if (ofQuery->uses(key) || ofKey->uses(query) ||
      ofQuery->kind != ExprKind::Read ||
      exprs.substitute(ofKey, rename) != ofQuery)
    return false;
  ExprRef total = exprs.expand(ofQuery);
  std::optional<CausalReduction> sums =
      matchCausalReduction(exprs, total, {query});
  if (!sums || !total->isReduceBy("arith.addf") || sums->bound.isBehind ||
      sums->bound.isStrict || sums->seen || sums->segment ||
      sums->term->uses(query))
    return false;
  DenseMap<unsigned, ExprRef> own;
  own[sums->key] = exprs.var(query);
  found.decay =
      exprs.op("math.exp", b.getF32Type(), {exprs.substitute(sums->term, own)});
  isCumulative = true;
  if (found.before)
    once = found.decay;
  return true;
}

/// Adds \p factor to the operand that has it.
bool SumRaiser::place(ExprRef factor, bool below, bool isInner) {
  bool hasQuery = factor->uses(query), hasKey = factor->uses(key);
  if (hasQuery && hasKey)
    return false;
  Product &to =
      isInner ? (hasQuery ? queries : keys) : (hasKey ? values : outside);
  (below ? to.under : to.over).push_back(factor);
  return true;
}

/// Whether \p seen, of a key, holds for the first one where it does for any:
/// that the key is below a length, or not the last, or nothing of the key.
bool isOfFirst(Exprs &exprs, ExprRef seen, const CausalReduction &causal) {
  if (!seen->uses(causal.key) ||
      seen == isNotLast(exprs, causal.bound, causal.key))
    return true;
  if ((seen->isOp("arith.select") || seen->kind == ExprKind::If) &&
      seen->operand(2) == exprs.truth(false))
    return isOfFirst(exprs, seen->operand(0), causal) &&
           isOfFirst(exprs, seen->operand(1), causal);
  return isUpperBound(seen, causal.key);
}

/// What says of a query whether it sees a key that fulfils more than its bound:
/// no key, no output, where a state of zeros has one if the query is no number.
/// Whether it can be said, and the decays before the first such key do nothing.
bool SumRaiser::findAny(const CausalReduction &causal) {
  if (isOfFirst(exprs, seen, causal)) {
    DenseMap<unsigned, ExprRef> first;
    first[key] = exprs.index(0);
    any = exprs.substitute(seen, first);
    return true;
  }
  if (found.decay && !isCumulative) {
    // Zeros by an infinite decay are no zeros.
    std::optional<double> decay = Exprs::constantFloat(found.decay);
    if (!decay || !std::isfinite(*decay))
      return false;
  }
  any = exprs.reduce(
      OperationName("arith.ori", exprs.context), key,
      exprs.select(exprs.compare(found.before ? arith::CmpIPredicate::slt
                                              : arith::CmpIPredicate::sle,
                                 exprs.var(key), exprs.var(query)),
                   seen, exprs.truth(false), causal.isGuarded));
  return true;
}

bool SumRaiser::match(const CausalReduction &causal) {
  if (causal.bound.isBehind || causal.segment)
    return false;
  key = causal.key;
  query = causal.bound.query;
  found.before = causal.bound.isStrict;
  Product product;
  flatten(exprs, causal.term, product);
  if (!openFactors(product))
    return false;
  for (auto [all, isInner] : {std::pair(&product, false), {&inner, true}}) {
    for (ExprRef e : all->over)
      if (!place(e, false, isInner))
        return false;
    for (ExprRef e : all->under)
      if (!place(e, true, isInner))
        return false;
  }
  DenseMap<unsigned, ExprRef> rename;
  rename[key] = exprs.var(query);
  seen = causal.seen;
  auto ofKey = [&](const Product &factors) {
    ExprRef factor = multiply(exprs, factors.over, factors.under);
    if (seen && !mutated("raise-linear-attention.see-masked"))
      factor = exprs.select(seen, factor,
                            exprs.constant(FloatAttr::get(factor->type, 0.0)),
                            causal.isGuarded);
    return exprs.substitute(factor, rename);
  };
  found.query = multiply(exprs, queries.over, queries.under);
  found.key = ofKey(keys);
  found.values = ofKey(values);
  found.step = query;
  found.contract = summed;
  for (unsigned v : outputs)
    if (v != query)
      (found.query->uses(v) || found.key->uses(v) ||
               (found.decay && found.decay->uses(v))
           ? found.batch
           : found.value)
          .push_back(v);
  found.fresh = !isCumulative && !mutated("raise-linear-attention.first-sees");
  if (seen && !findAny(causal))
    return false;
  auto isKnown = [&](ExprRef e) {
    return !e || llvm::all_of(e->freeVars, [&](unsigned v) {
      return llvm::is_contained(outputs, v) || llvm::is_contained(summed, v);
    });
  };
  return isKnown(found.query) && isKnown(found.key) && isKnown(found.values) &&
         isKnown(found.decay) && !found.values->usesAny(summed) &&
         !(found.decay && found.decay->usesAny(found.value));
}

/// Whether the state costs less than the pairs, as far as sizes are known.
bool SumRaiser::isWorthwhile() {
  auto product = [&](ArrayRef<unsigned> vars) -> std::optional<int64_t> {
    int64_t all = 1;
    for (unsigned v : vars) {
      std::optional<int64_t> size = Exprs::constantInt(exprs.extent(v));
      if (!size)
        return std::nullopt;
      all *= *size;
    }
    return all;
  };
  std::optional<int64_t> steps = product(query), e = product(summed),
                         f = product(found.value);
  if (steps == 0 || e == 0 || f == 0)
    return false;
  return !steps || !e || !f || *steps * (*e + *f) / 2 > 2 * *e * *f;
}

/// `any` as a tensor that is read: a prefix is a recurrence of its own.
ExprRef SumRaiser::writeAny() {
  if (!any->isReduceBy("arith.ori"))
    return any;
  SmallVector<unsigned> vars;
  SmallVector<ExprRef> at;
  for (unsigned v : outputs)
    if (any->uses(v)) {
      vars.push_back(v);
      at.push_back(exprs.var(v));
    }
  Value seen = writeTensor(b, sum.getLoc(), exprs, any, vars);
  prefix = seen.getDefiningOp<linalg::LinalgOp>();
  return exprs.read(seen, at);
}

/// What the sum is, of \p output of \p op, or of what it is compared with.
Value SumRaiser::finish(attn::LinearAttentionOp op, Value output) {
  SmallVector<ExprRef> place;
  for (unsigned v : found.outputVars())
    place.push_back(exprs.var(v));
  SmallVector<ExprRef> over{exprs.read(output, place)};
  over.append(outside.over);
  if (once && output == op.getOutput())
    over.push_back(once);
  if (over.size() == 1 && outside.under.empty() && !any &&
      (found.fresh || !found.before) && found.outputVars() == outputs)
    return output;
  ExprRef element = multiply(exprs, over, outside.under);
  if (output != op.getOutput())
    return writeTensor(b, sum.getLoc(), exprs, element, outputs);
  // What stands outside meets no key where there is none.
  ExprRef zero = exprs.constant(FloatAttr::get(b.getF32Type(), 0.0));
  if (found.before && !mutated("raise-linear-attention.first-meets"))
    element = exprs.select(exprs.compare(arith::CmpIPredicate::eq,
                                         exprs.var(query), exprs.index(0)),
                           zero, element, /*guard=*/false);
  if (any && !mutated("raise-linear-attention.see-none"))
    element = exprs.select(writeAny(), element, zero, /*guard=*/false);
  return writeTensor(b, sum.getLoc(), exprs, element, outputs);
}

/// The op, if the products of all its pairs are \p written.
bool SumRaiser::replace(ExprRef written) {
  attn::LinearAttentionOp op =
      buildLinearAttention(b, sum.getLoc(), exprs, found);
  LinearChunk whole;
  whole.query = op.getQuery();
  whole.key = op.getKey();
  whole.value = op.getValue();
  whole.length = op.getSizes()[op.stepDim()];
  whole.pairsAlone = true;
  if (left) {
    SmallVector<unsigned> own(found.batch);
    own.append({query, key});
    whole.left = writeTensor(b, sum.getLoc(), exprs, left, own);
  }
  if (seen) {
    // What a masked key's zeros leave, NaN at most, `any` or a key that is seen
    // says too.
    SmallVector<unsigned> own(found.batch);
    own.push_back(key);
    whole.seen = writeTensor(b, sum.getLoc(), exprs, seen, own);
  }
  auto [all, last] = writeChunk(b, op, whole);
  Value compared = finish(op, all);
  Proof proof = prove(exprs, written, compared, outputs, attempt);
  if (!proof.holds) {
    remarkDeclined(sum, raiseLinearPass, "linear-attention",
                   format("left as a sum over pairs: a linear attention cannot "
                          "be proven equal: {}",
                          proof.why));
    attempt.undo();
    return false;
  }
  Value value = finish(op, op.getOutput()), result = sum->getResult(0);
  result.replaceAllUsesWith(castTo(b, value, result.getType()));
  DenseSet<Operation *> erased;
  for (Value made : {compared, last})
    eraseDeadOps(made.getDefiningOp(), erased);
  if (prefix && raisePrefix(prefix))
    eraseDeadOps(prefix, erased);
  return true;
}

bool SumRaiser::run() {
  Value result = sum->getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  if (!type.getElementType().isF32() || llvm::is_contained(type.getShape(), 0))
    return false;
  SmallVector<ExprRef> at;
  exprs.indexVars(result, outputs, at);
  ExprRef written = exprs.expand(result, at);
  std::optional<CausalReduction> causal =
      matchCausalReduction(exprs, written, outputs);
  if (!causal || !written->isReduceBy("arith.addf") || !match(*causal))
    return false;
  if (!isWorthwhile()) {
    remarkDeclined(sum, raiseLinearPass, "form",
                   "left as a sum over pairs: there are few steps, and a state "
                   "would cost more");
    return false;
  }
  if (!replace(written))
    return false;
  remarkDone(sum, raiseLinearPass, "linear-attention",
             "a sum over what comes before: a linear attention");
  return true;
}

} // namespace

bool raiseCausalSum(linalg::LinalgOp sum) { return SumRaiser(sum).run(); }

} // namespace heed
