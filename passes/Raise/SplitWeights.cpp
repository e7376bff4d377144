//===- SplitWeights.cpp - a sum of distributions, term by term ------------===//
#include "passes/Raise/SplitWeights.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/Products.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"

using namespace mlir;

namespace heed {

namespace {

/// A signed product, which has the element \p weight of a softmax in it.
struct WeightTerm {
  Product factors;
  bool isNegative = false;
  ExprRef weight = nullptr;
};

class WeightSplitter {
public:
  explicit WeightSplitter(Exprs &exprs) : exprs(exprs) {}
  ExprRef split(ExprRef sum);

private:
  bool isWeight(ExprRef e) {
    return e->kind == ExprKind::Read && isa<FloatType>(e->type) &&
           e->value.getDefiningOp<attn::SoftmaxOp>() && e->usesAny(keys);
  }
  ExprRef open(ExprRef factor);
  void addTerms(Product product, bool isNegative);
  bool findWeight(WeightTerm &term);
  bool pays();
  ExprRef write(const WeightTerm &term);

  Exprs &exprs;
  SmallVector<unsigned> keys;
  bool hasGuard = false;
  SmallVector<WeightTerm> terms;
};

/// \p factor down to elements of softmaxes and sums of them.
ExprRef WeightSplitter::open(ExprRef factor) {
  return exprs.expandReads(factor, [&](ExprRef read) {
    Operation *def = read->value.getDefiningOp();
    return def && read->usesAny(keys) && isa<FloatType>(read->type) &&
           Exprs::isElementwise(def) && !isTable(def);
  });
}

/// The terms of \p product, whose factors over keys are distributed.
void WeightSplitter::addTerms(Product product, bool isNegative) {
  for (unsigned k = 0; k < product.over.size(); ++k) {
    ExprRef e = product.over[k];
    bool adds = e->isOp("arith.addf") || e->isOp("arith.subf");
    if ((!adds && !e->isOp("arith.negf")) || !e->usesAny(keys))
      continue;
    for (unsigned part = 0; part < e->operands.size(); ++part) {
      Product term;
      for (auto [position, factor] : llvm::enumerate(product.over))
        flatten(exprs, position == k ? e->operand(part) : factor, term);
      term.under.append(product.under);
      bool flips =
          e->isOp("arith.negf") || (e->isOp("arith.subf") && part == 1);
      addTerms(std::move(term), isNegative != flips);
    }
    return;
  }
  terms.push_back({std::move(product), isNegative});
}

bool WeightSplitter::findWeight(WeightTerm &term) {
  for (ExprRef e : term.factors.over) {
    bool hasWeight = false;
    Exprs::walk(e, [&](ExprRef inner) { hasWeight |= isWeight(inner); });
    if (!hasWeight)
      continue;
    if (term.weight || !isWeight(e))
      return false;
    term.weight = e;
  }
  return term.weight != nullptr;
}

/// Each term takes a product with the values of its own. Where the scores are
/// the same for all, one pass over them takes fewer: with two terms, about as
/// long.
bool WeightSplitter::pays() {
  SmallVector<ExprRef> scores;
  for (const WeightTerm &term : terms) {
    auto softmax = cast<attn::SoftmaxOp>(term.weight->value.getDefiningOp());
    ExprRef score = exprs.read(softmax.getInput(), term.weight->operands);
    if (!llvm::is_contained(scores, score))
      scores.push_back(score);
  }
  return terms.size() == 2 || scores.size() == terms.size();
}

ExprRef WeightSplitter::write(const WeightTerm &term) {
  Product pairs, row;
  for (ExprRef e : term.factors.over)
    (e->usesAny(keys) ? pairs : row).over.push_back(e);
  for (ExprRef e : term.factors.under)
    (e->usesAny(keys) ? pairs : row).under.push_back(e);
  if (!row.over.empty() && mutated("raise-attention.split-drops-factor"))
    row.over.pop_back();
  ExprRef body = multiply(exprs, pairs.over, pairs.under);
  if (hasGuard) {
    auto softmax = cast<attn::SoftmaxOp>(term.weight->value.getDefiningOp());
    body = exprs.select(exprs.read(softmax.getLive(), term.weight->operands),
                        body, exprs.constant(FloatAttr::get(body->type, 0.0)),
                        /*guard=*/false);
  }
  row.over.insert(
      row.over.begin(),
      exprs.reduce(OperationName("arith.addf", exprs.context), keys, body));
  return multiply(exprs, row.over, row.under);
}

ExprRef WeightSplitter::split(ExprRef sum) {
  if (!sum->isSum() || !sum->type.isF32())
    return nullptr;
  ExprRef body = exprs.open(sum, keys);
  if (body->isOp("arith.select") &&
      Exprs::constantFloat(body->operand(2)) == 0.0) {
    hasGuard = true;
    body = body->operand(1);
  }
  Product product, opened;
  flatten(exprs, body, product);
  for (ExprRef e : product.over)
    flatten(exprs, open(e), opened);
  for (ExprRef e : product.under)
    flatten(exprs, e, opened, /*below=*/true);
  // As long as no weight is met, a sum stays one factor.
  bool hasWeight = false;
  for (ExprRef e : opened.over)
    Exprs::walk(e, [&](ExprRef inner) { hasWeight |= isWeight(inner); });
  if (!hasWeight)
    return nullptr;
  addTerms(std::move(opened), /*isNegative=*/false);
  if (terms.size() < 2 ||
      !llvm::all_of(terms, [&](WeightTerm &t) { return findWeight(t); }) ||
      !pays())
    return nullptr;
  // A difference begins with what is not subtracted.
  llvm::stable_sort(terms, [](const WeightTerm &a, const WeightTerm &b) {
    return a.isNegative < b.isNegative;
  });
  ExprRef result = write(terms[0]);
  if (terms[0].isNegative)
    result = exprs.op("arith.negf", result->type, {result});
  for (const WeightTerm &term : llvm::drop_begin(terms)) {
    bool subtracts = term.isNegative && !mutated("raise-attention.split-adds");
    result = exprs.op(subtracts ? "arith.subf" : "arith.addf", result->type,
                      {result, write(term)});
  }
  return result;
}

} // namespace

ExprRef splitWeights(Exprs &exprs, ExprRef sum) {
  return WeightSplitter(exprs).split(sum);
}

} // namespace heed
