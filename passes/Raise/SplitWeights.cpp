//===- SplitWeights.cpp - a sum of distributions: by terms, or at once ----===//
#include "passes/Raise/SplitWeights.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/Products.h"
#include "passes/Algebra/SplitSums.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Raise/LogSumExp.h"

#include <cmath>

using namespace mlir;

namespace heed {

static attn::SoftmaxOp softmaxOf(ExprRef weight) {
  return weight->value.getDefiningOp<attn::SoftmaxOp>();
}

static bool isWeight(ExprRef e) {
  return e->kind == ExprKind::Read && isa<FloatType>(e->type) && softmaxOf(e);
}

static ExprRef liveOf(Exprs &exprs, ExprRef weight) {
  return exprs.read(softmaxOf(weight).getLive(), weight->operands);
}

//===----------------------------------------------------------------------===//
// Scores that several distributions share
//===----------------------------------------------------------------------===//

/// What a whole row of lanes is at least, on any target.
constexpr int64_t fewestQueries = 16;

/// Whether the product \p sum, over \p keys, has queries enough that a tile of
/// them is full: as many as keys, or a known number.
static bool hasQueries(Exprs &exprs, ExprRef sum, ArrayRef<unsigned> keys) {
  SmallVector<unsigned> terms;
  Product product;
  flatten(exprs, exprs.open(sum, terms), product);
  llvm::SmallDenseSet<unsigned> ofKeys, queries;
  for (ExprRef factor : product.over)
    for (unsigned v : factor->freeVars)
      (factor->usesAny(keys) ? ofKeys : queries).insert(v);
  return llvm::any_of(queries, [&](unsigned v) {
    ExprRef extent = exprs.extent(v);
    if (ofKeys.contains(v) || llvm::is_contained(terms, v) || !extent)
      return false;
    if (std::optional<int64_t> fixed = Exprs::constantInt(extent))
      return *fixed >= fewestQueries;
    return llvm::any_of(
        keys, [&](unsigned key) { return exprs.extent(key) == extent; });
  });
}

/// The products over \p keys that the scores of \p weight are made of; none if
/// a mask of indices leaves pairs out, which an attention of its own skips.
static llvm::SmallDenseSet<ExprRef> productsOf(Exprs &exprs, ExprRef weight,
                                               ArrayRef<unsigned> keys) {
  llvm::SmallDenseSet<ExprRef> products;
  attn::SoftmaxOp softmax = softmaxOf(weight);
  if (!softmax.getWhere().empty())
    return {};
  ExprRef scores = exprs.expandReads(
      exprs.read(softmax.getInput(), weight->operands), [&](ExprRef read) {
        Operation *def = read->value.getDefiningOp();
        return def && read->usesAny(keys) && Exprs::isElementwise(def);
      });
  bool isMasked = false;
  Exprs::walk(scores, [&](ExprRef e) {
    isMasked |= Exprs::isMinusInfinity(e);
    Operation *def =
        e->kind == ExprKind::Read ? e->value.getDefiningOp() : nullptr;
    if (!def || !e->usesAny(keys) || !Exprs::isExpressible(def))
      return;
    ExprRef element = exprs.expand(e);
    if (element && element->isSum() && hasQueries(exprs, element, keys))
      products.insert(e);
  });
  return isMasked ? llvm::SmallDenseSet<ExprRef>() : products;
}

/// Whether \p weights are made of one product of queries and keys: computed
/// once, and in tiles, it serves all of them, and so does the product with the
/// values.
static bool shareProduct(Exprs &exprs, ArrayRef<ExprRef> weights,
                         ArrayRef<unsigned> keys) {
  llvm::SmallDenseSet<ExprRef> shared = productsOf(exprs, weights[0], keys);
  for (ExprRef weight : weights.drop_front()) {
    llvm::SmallDenseSet<ExprRef> products = productsOf(exprs, weight, keys);
    llvm::SmallDenseSet<ExprRef> both;
    for (ExprRef e : products)
      if (shared.contains(e))
        both.insert(e);
    shared = both;
  }
  return !shared.empty();
}

//===----------------------------------------------------------------------===//
// Term by term
//===----------------------------------------------------------------------===//

ExprRef splitWeights(Exprs &exprs, ExprRef sum) {
  // Each term takes a product with the values of its own. Where the scores are
  // the same for all, one pass over them takes fewer; under masks of indices,
  // two terms take about as long as one pass over all pairs at least.
  auto accept = [&](ArrayRef<ExprRef> weights, ArrayRef<unsigned> keys) {
    llvm::SmallDenseSet<ExprRef> scores;
    for (ExprRef weight : weights)
      scores.insert(exprs.read(softmaxOf(weight).getInput(), weight->operands));
    return (weights.size() == 2 || scores.size() == weights.size()) &&
           !shareProduct(exprs, weights, keys);
  };
  auto live = [&](ExprRef weight) { return liveOf(exprs, weight); };
  return splitSum(exprs, sum, {isWeight, accept, live});
}

bool meetsFactors(ExprRef split) {
  if (split->kind == ExprKind::Reduce ||
      mutated("raise-attention.split-meets-factors"))
    return false;
  if (std::optional<double> number = Exprs::constantFloat(split))
    return !std::isfinite(*number);
  if (!split->isOp("arith.addf") && !split->isOp("arith.subf") &&
      !split->isOp("arith.negf") && !split->isOp("arith.mulf"))
    return true;
  return llvm::any_of(split->operands, meetsFactors);
}

Value zeroWithoutKeys(OpBuilder &builder, Value whole,
                      ArrayRef<attn::AttentionOp> attentions) {
  Exprs exprs(builder.getContext());
  SmallVector<unsigned> vars;
  SmallVector<ExprRef> at;
  exprs.indexVars(whole, vars, at);
  auto minusInfinity = exprs.constant(FloatAttr::get(
      builder.getF32Type(), APFloat::getInf(APFloat::IEEEsingle(),
                                            /*Negative=*/true)));
  ExprRef element = exprs.expand(whole, at), live = nullptr;
  for (attn::AttentionOp op : attentions) {
    SmallVector<ExprRef> reads;
    Exprs::walk(element, [&](ExprRef e) {
      if (e->kind == ExprKind::Read && e->value == op.getOutput())
        reads.push_back(e);
    });
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(op);
    attn::AttentionOp withRows = op.getLse() ? op : withLse(builder, op);
    for (ExprRef read : reads) {
      SmallVector<ExprRef> row;
      for (unsigned dim = 0; dim < op.firstDim(attn::DimKind::Key); ++dim)
        row.push_back(read->operands[*op.outputMap().getResultPosition(
            builder.getAffineDimExpr(dim))]);
      // Unordered, as a live NaN makes its row's NaN.
      ExprRef own =
          exprs.compare(arith::CmpFPredicate::UNE,
                        exprs.read(withRows.getLse(), row), minusInfinity);
      live = live ? exprs.op("arith.ori", own->type, {live, own}) : own;
    }
    if (withRows != op) {
      op.getOutput().replaceAllUsesWith(withRows.getOutput());
      op.erase();
    }
  }
  return writeTensor(
      builder, whole.getLoc(), exprs,
      exprs.select(live, exprs.read(whole, at),
                   exprs.constant(FloatAttr::get(builder.getF32Type(), 0.0)),
                   /*guard=*/false),
      vars);
}

//===----------------------------------------------------------------------===//
// At once
//===----------------------------------------------------------------------===//

namespace {

/// factor * sum_keys (live ? weight * values : 0), or what is added to it.
struct JoinedTerm {
  ExprRef whole = nullptr; ///< with its sign
  ExprRef sum = nullptr;   ///< null: no such product
  ExprRef factor = nullptr;
  ExprRef weight = nullptr;
  SmallVector<unsigned> keys;
  Product values;
};

class Joiner {
public:
  Joiner(Exprs &exprs, Operation *root) : exprs(exprs), root(root) {}
  JoinedWeights join(ExprRef element);

private:
  void addTerms(ExprRef e, bool isNegative);
  void readSum(JoinedTerm &term);
  bool sharesValues(const JoinedTerm &first, JoinedTerm &other);
  bool isOnlyRead(Value value, Operation *by);

  Exprs &exprs;
  Operation *root;
  SmallVector<JoinedTerm> terms;
};

bool Joiner::isOnlyRead(Value value, Operation *by) {
  return llvm::all_of(value.getUsers(),
                      [&](Operation *user) { return by->isAncestor(user); });
}

/// The sum of \p term's product, if it has the form of one and nothing else
/// reads it or its distribution.
void Joiner::readSum(JoinedTerm &term) {
  Product product, inside;
  flatten(exprs, term.whole, product);
  auto isSum = [&](ExprRef e) {
    if (e->kind != ExprKind::Read || !e->type.isF32())
      return false;
    Operation *def = e->value.getDefiningOp();
    if (!def || !Exprs::isExpressible(def) || Exprs::isElementwise(def) ||
        !isOnlyRead(e->value, root))
      return false;
    ExprRef element = exprs.expand(e);
    return element && element->isSum();
  };
  auto *at = llvm::find_if(product.over, isSum);
  if (at == product.over.end())
    return;
  Operation *def = (*at)->value.getDefiningOp();
  ExprRef sum = exprs.expand(*at);
  product.over.erase(at);
  ExprRef body = exprs.open(sum, term.keys);
  if (!body->isOp("arith.select") ||
      Exprs::constantFloat(body->operand(2)) != 0.0)
    return;
  flatten(exprs, body->operand(1), inside);
  auto *weight = llvm::find_if(inside.over, isWeight);
  if (weight == inside.over.end() ||
      body->operand(0) != liveOf(exprs, *weight) ||
      llvm::any_of(softmaxOf(*weight)->getResults(),
                   [&](Value v) { return !isOnlyRead(v, def); }))
    return;
  term.weight = *weight;
  inside.over.erase(weight);
  term.values = inside;
  term.factor = multiply(exprs, product.over, product.under);
  term.sum = sum;
}

void Joiner::addTerms(ExprRef e, bool isNegative) {
  bool subtracts = e->isOp("arith.subf");
  if (e->isOp("arith.addf") || subtracts) {
    addTerms(e->operand(0), isNegative);
    addTerms(e->operand(1), isNegative != subtracts);
    return;
  }
  if (e->isOp("arith.negf"))
    return addTerms(e->operand(0), !isNegative);
  JoinedTerm term;
  term.whole = e;
  readSum(term);
  if (isNegative) {
    term.whole = exprs.op("arith.negf", e->type, {term.whole});
    if (term.sum)
      term.factor = exprs.op("arith.negf", e->type, {term.factor});
  }
  terms.push_back(std::move(term));
}

/// Whether \p other sums the same values as \p first, with weights of the same
/// products. Its keys become those of \p first.
bool Joiner::sharesValues(const JoinedTerm &first, JoinedTerm &other) {
  if (first.keys.size() != other.keys.size())
    return false;
  DenseMap<unsigned, ExprRef> keys;
  for (auto [from, to] : llvm::zip(other.keys, first.keys)) {
    if (exprs.extent(from) != exprs.extent(to))
      return false;
    keys[from] = exprs.var(to);
  }
  auto renamed = [&](ArrayRef<ExprRef> factors) {
    SmallVector<ExprRef> result;
    for (ExprRef e : factors)
      result.push_back(exprs.substitute(e, keys));
    llvm::sort(result, [](ExprRef a, ExprRef b) { return a->id < b->id; });
    return result;
  };
  auto sorted = [](SmallVector<ExprRef> factors) {
    llvm::sort(factors, [](ExprRef a, ExprRef b) { return a->id < b->id; });
    return factors;
  };
  ExprRef weight = exprs.substitute(other.weight, keys);
  if (renamed(other.values.over) != sorted(first.values.over) ||
      renamed(other.values.under) != sorted(first.values.under) ||
      !shareProduct(exprs, {first.weight, weight}, first.keys))
    return false;
  other.weight = weight;
  return true;
}

JoinedWeights Joiner::join(ExprRef element) {
  addTerms(element, /*isNegative=*/false);
  auto *first = llvm::find_if(terms, [](const JoinedTerm &t) { return t.sum; });
  if (first == terms.end())
    return {};
  auto add = [&](ExprRef a, ExprRef b) {
    return a ? exprs.op("arith.addf", b->type, {a, b}) : b;
  };
  auto times = [&](ExprRef factor, ExprRef by) {
    return exprs.op("arith.mulf", by->type, {factor, by});
  };
  ExprRef weights = nullptr, live = nullptr,
          zero = exprs.constant(FloatAttr::get(element->type, 0.0));
  JoinedWeights joined;
  unsigned count = 0;
  for (JoinedTerm &term : terms) {
    if (!term.sum || (&term != first && !sharesValues(*first, term))) {
      joined.rest = add(joined.rest, term.whole);
      joined.written = add(joined.written, term.whole);
      continue;
    }
    ++count;
    joined.written = add(joined.written, times(term.factor, term.sum));
    std::optional<double> number = Exprs::constantFloat(term.factor);
    if (!number || !std::isfinite(*number))
      joined.none = add(joined.none, times(term.factor, zero));
    ExprRef own = liveOf(exprs, term.weight);
    bool drops = live && mutated("raise-attention.join-forgets-live");
    live = !live || drops ? own : exprs.op("arith.ori", own->type, {live, own});
    weights = add(weights, mutated("raise-attention.join-drops-factor")
                               ? term.weight
                               : times(term.factor, term.weight));
  }
  if (count < 2)
    return {};
  SmallVector<ExprRef> over{weights};
  llvm::append_range(over, first->values.over);
  ExprRef body = exprs.select(live, multiply(exprs, over, first->values.under),
                              zero, /*guard=*/false);
  joined.sum = exprs.reduce(OperationName("arith.addf", exprs.context),
                            first->keys, body);
  return joined;
}

} // namespace

ExprRef meetFactors(Exprs &exprs, const JoinedWeights &joined, ExprRef sum) {
  if (!joined.none || mutated("raise-attention.join-forgets-factors"))
    return sum;
  ExprRef zero = exprs.constant(FloatAttr::get(sum->type, 0.0));
  return exprs.select(exprs.compare(arith::CmpFPredicate::OEQ, sum, zero),
                      joined.none, sum, /*guard=*/false);
}

JoinedWeights joinWeights(Exprs &exprs, Operation *root, ExprRef element) {
  return Joiner(exprs, root).join(element);
}

} // namespace heed
