//===- SplitSums.cpp - a sum of sums of products, term by term ------------===//
#include "passes/Algebra/SplitSums.h"
#include "passes/Algebra/Products.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"

using namespace mlir;

namespace heed {

namespace {

/// A signed product, which has \p part as a factor.
struct SignedTerm {
  Product factors;
  bool isNegative = false;
  ExprRef part = nullptr;
};

class Splitter {
public:
  Splitter(Exprs &exprs, const SumSplit &how) : exprs(exprs), how(how) {}
  ExprRef split(ExprRef sum);

private:
  bool hasPart(ExprRef e);
  ExprRef open(ExprRef factor);
  void addTerms(Product product, bool isNegative);
  bool findPart(SignedTerm &term);
  ExprRef write(const SignedTerm &term);

  Exprs &exprs;
  const SumSplit &how;
  SmallVector<unsigned> keys;
  bool hasGuard = false;
  SmallVector<SignedTerm> terms;
};

bool Splitter::hasPart(ExprRef e) {
  bool found = false;
  Exprs::walk(e, [&](ExprRef inner) {
    found |= inner->kind == ExprKind::Read && inner->usesAny(keys) &&
             how.isPart(inner);
  });
  return found;
}

/// \p factor down to parts and sums of them.
ExprRef Splitter::open(ExprRef factor) {
  return exprs.expandReads(factor, [&](ExprRef read) {
    Operation *def = read->value.getDefiningOp();
    return def && read->usesAny(keys) && isa<FloatType>(read->type) &&
           Exprs::isElementwise(def) && !isTable(def);
  });
}

/// The terms of \p product, whose factors over keys are distributed.
void Splitter::addTerms(Product product, bool isNegative) {
  for (unsigned k = 0; k < product.over.size(); ++k) {
    ExprRef e = product.over[k];
    bool adds = e->isOp("arith.addf") || e->isOp("arith.subf");
    if ((!adds && !e->isOp("arith.negf")) || !hasPart(e))
      continue;
    for (unsigned side = 0; side < e->operands.size(); ++side) {
      Product term;
      for (auto [position, factor] : llvm::enumerate(product.over))
        flatten(exprs, position == k ? e->operand(side) : factor, term);
      term.under.append(product.under);
      bool flips =
          e->isOp("arith.negf") || (e->isOp("arith.subf") && side == 1);
      addTerms(std::move(term), isNegative != flips);
    }
    return;
  }
  terms.push_back({std::move(product), isNegative});
}

bool Splitter::findPart(SignedTerm &term) {
  for (ExprRef e : term.factors.over) {
    if (!hasPart(e))
      continue;
    if (term.part || e->kind != ExprKind::Read || !how.isPart(e))
      return false;
    term.part = e;
  }
  return term.part != nullptr;
}

ExprRef Splitter::write(const SignedTerm &term) {
  Product pairs;
  SmallVector<ExprRef> before;
  pairs.under = term.factors.under;
  for (ExprRef e : term.factors.over)
    (e->usesAny(keys) ? pairs.over : before).push_back(e);
  if (!before.empty() && mutated("raise-attention.split-drops-factor"))
    before.pop_back();
  ExprRef body = multiply(exprs, pairs.over, pairs.under);
  if (hasGuard)
    body = exprs.select(how.guardOf(term.part), body,
                        exprs.constant(FloatAttr::get(body->type, 0.0)),
                        /*guard=*/false);
  before.insert(
      before.begin(),
      exprs.reduce(OperationName("arith.addf", exprs.context), keys, body));
  return multiply(exprs, before);
}

ExprRef Splitter::split(ExprRef sum) {
  if (!sum->isSum() || !sum->type.isF32())
    return nullptr;
  ExprRef body = exprs.open(sum, keys);
  if (how.guardOf && body->isOp("arith.select") &&
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
  if (llvm::none_of(opened.over, [&](ExprRef e) { return hasPart(e); }))
    return nullptr;
  addTerms(std::move(opened), /*isNegative=*/false);
  SmallVector<ExprRef> parts;
  for (SignedTerm &term : terms) {
    if (!findPart(term))
      return nullptr;
    parts.push_back(term.part);
  }
  if (terms.size() < 2 || !how.accept(parts, keys))
    return nullptr;
  // A difference begins with what is not subtracted.
  auto *first = llvm::find_if(
      terms, [](const SignedTerm &term) { return !term.isNegative; });
  if (first != terms.end())
    std::rotate(terms.begin(), first, first + 1);
  ExprRef result = write(terms[0]);
  if (terms[0].isNegative)
    result = exprs.op("arith.negf", result->type, {result});
  for (const SignedTerm &term : llvm::drop_begin(terms)) {
    bool subtracts = term.isNegative && !mutated("raise-attention.split-adds");
    result = exprs.op(subtracts ? "arith.subf" : "arith.addf", result->type,
                      {result, write(term)});
  }
  return result;
}

} // namespace

ExprRef splitSum(Exprs &exprs, ExprRef sum, const SumSplit &how) {
  return Splitter(exprs, how).split(sum);
}

} // namespace heed
