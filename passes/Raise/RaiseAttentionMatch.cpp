//===- RaiseAttentionMatch.cpp - finds attention in a sum over keys -------===//
//
// The sum's body is a product. One factor is the weight: an element of a
// softmax, or a function of a contraction over pairs of a query and a key; what
// is left with the value's dims is the value. Reads are expanded only as far as
// this needs: a tensor that varies over pairs is taken apart, one that varies
// over queries or keys alone stays.
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Raise/RaiseAttentionMatcher.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace heed {

// 1 / (1 + exp(-x)) over keys stays whole.
void AttentionMatcher::flatten(ExprRef e, Product &product, bool below) {
  heed::flatten(exprs, e, product, below, [&](ExprRef inner) {
    if (!inner->isOp("arith.divf") ||
        exprs.constantFloat(inner->operand(0)) != 1.0)
      return false;
    ExprRef under = inner->operand(1);
    return under->isOp("arith.addf") && under->usesAny(keys) &&
           (exprs.constantFloat(under->operand(0)) == 1.0 ||
            exprs.constantFloat(under->operand(1)) == 1.0);
  });
}

ExprRef AttentionMatcher::expandPairs(ExprRef e) {
  auto wanted = [&](ExprRef read) {
    Operation *def = read->value.getDefiningOp();
    if (def && Exprs::isReshape(def))
      return varies(read);
    if (!def || !Exprs::isExpressible(def) || isTable(def))
      return false;
    // A sum per offset between key and query is computed once for all pairs of
    // that offset: an operand.
    if (varies(read)) {
      bool expands = Exprs::isElementwise(def) ||
                     llvm::none_of(read->operands, [&](ExprRef at) {
                       return at->usesAny(keys) && at->usesAny(m.query);
                     });
      if (expands && !llvm::is_contained(expanded, read))
        expanded.push_back(read);
      return expands;
    }
    // Conditions and additive masks over one side are seen through, so that
    // `where` is a condition on indices.
    if (!read->usesAny(keys) && !read->usesAny(m.query))
      return false;
    if (!Exprs::isElementwise(def))
      return false;
    if (read->type.isInteger())
      return true;
    ExprRef inner = exprs.expand(read);
    return inner &&
           (inner->kind == ExprKind::If || inner->isOp("arith.select")) &&
           (exprs.isMinusInfinity(inner->operand(1)) ||
            exprs.isMinusInfinity(inner->operand(2)));
  };
  if (!m.query.empty())
    return exprs.expandReads(e, wanted);
  // Without queries all of the keys' side varies: what the score's sums read
  // is stored, and not computed again.
  return exprs.replaceOutermost(e, [&](ExprRef read) {
    ExprRef inner = read->kind == ExprKind::Read && wanted(read)
                        ? exprs.expand(read)
                        : nullptr;
    return inner ? expandPairs(inner) : nullptr;
  });
}

// Tells batch, query and value dims from one another: `rest` are the factors
// beside the weight.
bool AttentionMatcher::classify(ArrayRef<ExprRef> rest) {
  SmallVector<unsigned>
      besideKeys; // variables that index a value apart from its keys
  // What is read to look a value up, as its label, is of the pair and no batch.
  std::function<void(ExprRef)> collect = [&](ExprRef e) {
    for (ExprRef operand : e->operands) {
      if (e->kind != ExprKind::Read)
        collect(operand);
      else if (!operand->usesAny(keys))
        llvm::append_range(besideKeys, operand->freeVars);
    }
  };
  llvm::for_each(rest, collect);
  SmallVector<unsigned> candidates;
  for (unsigned v : outputs) {
    if (llvm::is_contained(m.value, v))
      continue;
    (llvm::is_contained(besideKeys, v) ? m.batch : candidates).push_back(v);
  }
  // A dim that neither side shares, like the heads of multi-query attention, is
  // a batch dim all the same: there are as many query dims as key dims, and
  // they stand last.
  unsigned extra =
      candidates.size() > keys.size() ? candidates.size() - keys.size() : 0;
  if (preferred && llvm::is_contained(candidates, *preferred)) {
    llvm::erase(candidates, *preferred);
    candidates.push_back(*preferred);
  }
  shared.assign(candidates.begin(),
                extra ? candidates.end() : candidates.begin());
  m.batch.append(candidates.begin(), candidates.begin() + extra);
  m.query.assign(candidates.begin() + extra, candidates.end());
  llvm::sort(m.batch, [&](unsigned a, unsigned b) {
    return llvm::find(outputs, a) < llvm::find(outputs, b);
  });
  return true;
}

/// Does the variable stand in \p e itself, and not only where something is
/// read?
static bool standsIn(ExprRef e, unsigned v) {
  if (e->kind == ExprKind::Var)
    return e->number == v;
  return e->kind != ExprKind::Read && e->uses(v) &&
         llvm::any_of(e->operands,
                      [&](ExprRef operand) { return standsIn(operand, v); });
}

/// The dim that is the query rather than m.query, if there is one: it meets the
/// key in index arithmetic (`j - i`, `j <= i`), or has as many positions.
std::optional<unsigned> AttentionMatcher::betterQuery() {
  if (m.query.size() != 1 || keys.size() != 1)
    return std::nullopt;
  auto meetings = [&](unsigned v) {
    unsigned count = 0;
    auto look = [&](ExprRef e) {
      count += e->kind == ExprKind::Op && standsIn(e, v) &&
               standsIn(e, keys[0]) &&
               (e->isOp("arith.cmpi") ||
                (e->type.isIntOrIndex() && !e->type.isInteger(1)));
    };
    for (ExprRef e : {m.score, m.where})
      if (e)
        Exprs::walk(e, look);
    for (AttentionTerm &term : m.terms)
      for (ExprRef e : term.operands)
        Exprs::walk(e, look);
    for (ExprRef e : m.values)
      Exprs::walk(e, look);
    return std::pair(count, exprs.extent(v) == exprs.extent(keys[0]));
  };
  unsigned best = m.query[0];
  for (unsigned v : shared)
    if (meetings(v) > meetings(best))
      best = v;
  return best == m.query[0] ? std::nullopt : std::optional(best);
}

FailureOr<AttentionMatch> AttentionMatcher::match(ExprRef sum,
                                                  ExprRef denominator) {
  if (!sum->isSum() || !isa<FloatType>(sum->type))
    return failure();
  whole = denominator;
  ExprRef body = peelGuard(exprs.open(sum, keys), guard);
  Product product;
  flatten(body, product);

  // Candidates for the weight: elements of a softmax first, then in the order
  // in which they were written.
  auto isSoftmax = [](ExprRef e) {
    bool found = false;
    Exprs::walk(e, [&](ExprRef read) {
      found |= read->kind == ExprKind::Read &&
               read->value.getDefiningOp<attn::SoftmaxOp>();
    });
    return found;
  };
  SmallVector<ExprRef> candidates;
  for (bool softmax : {true, false})
    for (ExprRef e : product.over)
      if (e->usesAny(keys) && isSoftmax(e) == softmax)
        candidates.push_back(e);

  AttentionMatch fresh;
  fresh.key = keys;
  std::string firstWhy;
  for (ExprRef candidate : candidates) {
    m = fresh;
    why.clear();
    SmallVector<ExprRef> rest(product.over);
    takeOne(rest, candidate);
    if (mutated("raise-attention.take-equal-factors"))
      llvm::erase(rest, candidate);
    if (matchWeight(candidate, rest, product.under)) {
      // Of dims that no value has, heads and queries, the mask and the offsets
      // tell which are the queries.
      AttentionMatch found = m;
      preferred = betterQuery();
      m = fresh;
      if (!preferred || !matchWeight(candidate, rest, product.under))
        m = found;
      preferred.reset();
      return m;
    }
    if (firstWhy.empty())
      firstWhy = why;
  }
  why = firstWhy;
  return failure();
}

void AttentionMatcher::dropSharedValueDims(ExprRef factor,
                                           ArrayRef<ExprRef> rest) {
  SmallVector<ExprRef> ofKeys;
  for (ExprRef e : rest)
    if (e->usesAny(keys) && e->usesAny(m.value))
      ofKeys.push_back(e);
  for (ExprRef pair : ofKeys) {
    bool meetsQuery = llvm::any_of(outputs, [&](unsigned v) {
      return factor->uses(v) && pair->uses(v) &&
             llvm::any_of(ofKeys, [&](ExprRef e) { return !e->uses(v); });
    });
    SmallVector<unsigned> left;
    for (unsigned v : m.value)
      if (!pair->uses(v))
        left.push_back(v);
    if (meetsQuery && !left.empty() &&
        !mutated("raise-attention.pairs-of-values"))
      m.value = left;
  }
}

bool AttentionMatcher::takeValues(ExprRef factor, ArrayRef<ExprRef> rest,
                                  Product &product) {
  for (unsigned v : outputs)
    if (!factor->uses(v) && llvm::any_of(rest, [&](ExprRef e) {
          return e->uses(v) && e->usesAny(keys);
        }))
      m.value.push_back(v);
  dropSharedValueDims(factor, rest);
  SmallVector<ExprRef> values;
  for (ExprRef e : rest)
    if (m.value.empty() ? llvm::any_of(outputs,
                                       [&](unsigned v) {
                                         return factor->uses(v) && !e->uses(v);
                                       }) &&
                              e->usesAny(keys)
                        : e->usesAny(m.value))
      values.push_back(e);
    else
      product.over.push_back(e);
  if (values.empty())
    return false;
  for (unsigned v : outputs)
    if (!factor->uses(v) && !llvm::is_contained(m.value, v) &&
        llvm::none_of(rest, [&](ExprRef e) { return e->uses(v); }) &&
        !(whole && whole->uses(v)))
      return false;
  if (!classify(values))
    return false;
  addValueTerms(multiply(values, {}));
  return true;
}

void AttentionMatcher::addValueTerms(ExprRef value) {
  ExprRef expanded = value->usesAny(m.query) ? expandPairs(value) : value;
  if (expanded->isOp("arith.addf") && expanded->usesAny(m.query)) {
    addValueTerms(expanded->operand(0));
    addValueTerms(expanded->operand(1));
  } else {
    m.values.push_back(expanded);
  }
}

void AttentionMatcher::openRowFactors(Product &product) {
  for (unsigned k = 0; k < product.over.size();) {
    ExprRef e = product.over[k];
    Operation *def = e->kind == ExprKind::Read && !e->usesAny(keys)
                         ? e->value.getDefiningOp()
                         : nullptr;
    ExprRef inner = def && Exprs::isElementwise(def) && !isTable(def)
                        ? exprs.expand(e)
                        : nullptr;
    if (inner && (inner->isOp("arith.divf") || inner->isOp("arith.mulf"))) {
      product.over.erase(product.over.begin() + k);
      flatten(inner, product);
      continue;
    }
    ++k;
  }
}

SmallVector<ExprRef> AttentionMatcher::softmaxesOf(const Product &product) {
  SmallVector<ExprRef> found;
  for (ExprRef e : product.over)
    Exprs::walk(e, [&](ExprRef read) {
      if (read->kind == ExprKind::Read &&
          read->value.getDefiningOp<attn::SoftmaxOp>() && read->usesAny(keys) &&
          isa<FloatType>(read->type) && !llvm::is_contained(found, read))
        found.push_back(read);
    });
  return found;
}

bool AttentionMatcher::matchWeight(ExprRef factor, ArrayRef<ExprRef> rest,
                                   ArrayRef<ExprRef> under) {
  Product product;
  if (!takeValues(factor, rest, product))
    return false;
  flatten(expandPairs(factor), product);
  for (ExprRef e : under)
    flatten(e, product, /*below=*/true);
  if (whole)
    flatten(whole, product, /*below=*/true);
  openRowFactors(product);

  SmallVector<ExprRef> softmaxes = softmaxesOf(product);
  if (softmaxes.size() > 1)
    return fails("the weight mixes several rows of a softmax");
  if (softmaxes.empty())
    return matchFunction(product);

  // Everything else around the softmax's element is the factor after the
  // normaliser.
  ExprRef softmax = softmaxes.front();
  m.weightParameter = exprs.freshVar();
  ExprRef parameter = exprs.parameter(m.weightParameter, f32());
  ExprRef around = multiply(product.over, product.under);
  around = exprs.replaceOutermost(
      around, [&](ExprRef e) { return e == softmax ? parameter : nullptr; });
  bool mixes = false;
  Exprs::walk(around, [&](ExprRef e) { mixes |= e->kind == ExprKind::Reduce; });
  if (mixes)
    return fails("the weights are summed over another dim before they meet the "
                 "values (heads mix)");
  if (around != parameter)
    m.weight = around;
  return matchSoftmaxOp(softmax);
}

FailureOr<AttentionMatch> matchAttention(Exprs &exprs, ExprRef sum,
                                         ArrayRef<unsigned> outputs,
                                         ExprRef denominator,
                                         std::string &why) {
  why.clear();
  return AttentionMatcher(exprs, outputs, why).match(sum, denominator);
}

} // namespace heed
