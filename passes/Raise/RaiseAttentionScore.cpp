//===- RaiseAttentionScore.cpp - a score as terms and a mask --------------===//
//
// A reduction inside the score is a term: a sum over products of what a query
// has, what a key has, and what both have. A score that a condition makes -inf
// is a mask.
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Mutation.h"
#include "passes/Raise/RaiseAttentionMatcher.h"
#include "support/Format.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace heed {

// select(c, x, 0): contributes where c holds.
ExprRef AttentionMatcher::peelGuard(ExprRef e, ExprRef &guard) {
  while (e->kind == ExprKind::If || e->isOp("arith.select")) {
    ExprRef condition = e->operand(0);
    if (exprs.constantFloat(e->operand(2)) == 0.0) {
      e = e->operand(1);
    } else if (exprs.constantFloat(e->operand(1)) == 0.0) {
      if (!mutated("raise-attention.guard-not-negated"))
        condition = exprs.logicalNot(condition);
      e = e->operand(2);
    } else {
      break;
    }
    guard = guard ? exprs.logicalAnd(guard, condition) : condition;
  }
  return e;
}

/// Whether the condition of \p choice asks for a number of pairs that the score
/// is made of, too: it is part of the score, which is computed anyway.
bool AttentionMatcher::asksForScore(ExprRef choice) {
  llvm::SmallDenseSet<ExprRef> sums;
  auto collect = [&](ExprRef e) {
    if (e->kind == ExprKind::Reduce && varies(e))
      sums.insert(e);
  };
  for (unsigned k : {1, 2})
    Exprs::walk(choice->operand(k), collect);
  bool found = false;
  Exprs::walk(choice->operand(0),
              [&](ExprRef e) { found |= sums.contains(e); });
  return found;
}

// A score that is -inf where a condition fails has weight 0 there: the
// condition becomes `where`.
ExprRef AttentionMatcher::peelMask(ExprRef score, ExprRef &where) {
  auto add = [&](ExprRef condition) {
    where = where ? exprs.logicalAnd(where, condition) : condition;
  };
  if (score->kind == ExprKind::If || score->isOp("arith.select")) {
    ExprRef condition = score->operand(0);
    if (asksForScore(score))
      return score;
    if (exprs.isMinusInfinity(score->operand(2))) {
      add(mutated("raise-attention.negate-mask") ? exprs.logicalNot(condition)
                                                 : condition);
      return peelMask(score->operand(1), where);
    }
    if (exprs.isMinusInfinity(score->operand(1))) {
      add(exprs.logicalNot(condition));
      return peelMask(score->operand(2), where);
    }
    return score;
  }
  if (score->isOp("arith.addf") || score->isOp("arith.subf")) {
    ExprRef a = peelMask(score->operand(0), where);
    ExprRef b = score->isOp("arith.addf") ? peelMask(score->operand(1), where)
                                          : score->operand(1);
    if (a == score->operand(0) && b == score->operand(1))
      return score;
    if (exprs.constantFloat(b) == 0.0)
      return a;
    if (score->isOp("arith.addf") && exprs.constantFloat(a) == 0.0)
      return b;
    return exprs.op(*score->name, cast<DictionaryAttr>(score->attr),
                    score->type, {a, b});
  }
  if (score->isOp("arith.extf") || score->isOp("arith.truncf")) {
    ExprRef inner = peelMask(score->operand(0), where);
    return inner == score->operand(0)
               ? score
               : exprs.op(*score->name, cast<DictionaryAttr>(score->attr),
                          score->type, {inner});
  }
  if (score->isOp("arith.mulf") || score->isOp("arith.divf"))
    for (int k : {0, 1}) {
      if (k == 1 && score->isOp("arith.divf"))
        break;
      ExprRef other = score->operand(1 - k), inner = score->operand(k);
      if (!exprs.isPositive(other))
        continue;
      ExprRef peeled = peelMask(inner, where);
      if (peeled != inner)
        return k ? exprs.op(score->name->getStringRef(), score->type,
                            {other, peeled})
                 : exprs.op(score->name->getStringRef(), score->type,
                            {peeled, other});
    }
  return score;
}

// A large negative fill is a score like any other: a row of nothing else gives
// every key the same weight.
void AttentionMatcher::noteFiniteFill() {
  std::optional<double> fill;
  Exprs::walk(m.score, [&](ExprRef e) {
    if (e->isOp("arith.cmpf")) // the bounds of a conversion, for one
      return;
    for (ExprRef operand : e->operands)
      if (auto value = exprs.constantFloat(operand))
        if (*value <= -1e4 && !exprs.isMinusInfinity(operand))
          fill = value;
  });
  if (!fill)
    return;
  std::string text;
  llvm::raw_string_ostream(text)
      << "a score of " << llvm::format("%g", *fill)
      << " is no mask: only -inf is (such a key is computed like any other)";
  m.notes.push_back(text);
}

// l_i + r_j: what one side reads is a term of its own.
bool AttentionMatcher::termsWithoutContraction() {
  auto isTerm = [&](ExprRef e) {
    return e->kind == ExprKind::Read && isa<FloatType>(e->type) &&
           isOneSided(e) && (e->usesAny(keys) || e->usesAny(m.query));
  };
  bool ofKeys = false, ofQueries = false;
  Exprs::walk(m.score, [&](ExprRef e) {
    ofKeys |= isTerm(e) && e->usesAny(keys);
    ofQueries |= isTerm(e) && e->usesAny(m.query);
  });
  if (!ofKeys || !ofQueries)
    return false;
  m.score = exprs.replaceOutermost(m.score, [&](ExprRef e) {
    return isTerm(e) ? termWithoutContraction(e) : nullptr;
  });
  return true;
}

ExprRef AttentionMatcher::termWithoutContraction(ExprRef operand) {
  AttentionTerm term;
  term.operands.push_back(operand);
  term.result = exprs.freshVar();
  ExprRef result = exprs.parameter(term.result, f32());
  m.terms.push_back(std::move(term));
  return result;
}

// A bias by the offset between key and query, whatever bucket it is looked up
// by, is a number for each offset: a term that is read like one, not looked up
// for each pair.
void AttentionMatcher::termsOverOffsets() {
  if (m.query.size() != 1 || keys.size() != 1)
    return;
  m.score = exprs.replaceOutermost(m.score, [&](ExprRef e) -> ExprRef {
    if (!e->type.isF32() || !varies(e) ||
        llvm::any_of(e->freeVars, [&](unsigned v) {
          return !llvm::is_contained(m.batch, v) &&
                 !llvm::is_contained(m.query, v) &&
                 !llvm::is_contained(keys, v);
        }))
      return nullptr;
    unsigned offset = 0;
    ExprRef shift = nullptr;
    return readsPairs(e) &&
                   exprs.byOffset(e, m.query[0], keys[0], offset, shift)
               ? termWithoutContraction(e)
               : nullptr;
  });
}

bool AttentionMatcher::readsPairs(ExprRef e) {
  bool found = false;
  Exprs::walk(e, [&](ExprRef inner) {
    found |= inner->kind == ExprKind::Read && varies(inner);
  });
  return found;
}

bool AttentionMatcher::isOfPairs(ExprRef e) {
  if (!e->type.isF32() || !readsPairs(e))
    return false;
  bool reduces = false, hasTerm = false;
  exprs.replaceOutermost(e, [&](ExprRef inner) -> ExprRef {
    if (inner->kind != ExprKind::Reduce)
      return nullptr;
    reduces = true;
    AttentionMatch before = m;
    hasTerm |= terms(inner) != nullptr;
    m = before;
    return inner;
  });
  return reduces && !hasTerm;
}

void AttentionMatcher::readStored(ExprRef &score) {
  DenseMap<ExprRef, ExprRef> stored, innermost;
  for (ExprRef read : SmallVector<ExprRef>(expanded)) {
    ExprRef whole = expandPairs(read);
    stored.try_emplace(whole, read);
    innermost[whole] = read; // what others of it are only another index of
  }
  score = exprs.replaceOutermost(score, [&](ExprRef e) {
    ExprRef read = stored.lookup(e);
    return read && isOfPairs(e) ? termWithoutContraction(read) : nullptr;
  });
  if (m.where)
    m.where = exprs.replaceOutermost(m.where, [&](ExprRef e) {
      return e->kind == ExprKind::Reduce ? innermost.lookup(e) : nullptr;
    });
}

bool AttentionMatcher::finish(ExprRef score, bool seesMask) {
  if (attn::Normaliser::of(m.map).excludesLowest && seesMask)
    score = peelMask(score, m.where);
  readStored(score);
  bool ok = true;
  m.score = exprs.replaceOutermost(score, [&](ExprRef e) -> ExprRef {
    if (!ok || e->kind != ExprKind::Reduce)
      return nullptr;
    ExprRef result = terms(e);
    ok &= result != nullptr;
    return result ? result : e;
  });
  if (!ok)
    return fails("a reduction in the score is no sum over products of a query "
                 "and a key");
  if (m.terms.empty() && !termsWithoutContraction())
    return fails("no contraction of queries with keys in the score");
  for (ExprRef e : {m.where, m.weight, m.sink, m.score}) {
    bool bad = false;
    if (e)
      Exprs::walk(e, [&](ExprRef inner) {
        bad |= inner->kind == ExprKind::Reduce;
        bad |= inner->kind == ExprKind::Var && inner->type.isIndex() &&
               e != m.sink &&
               (llvm::is_contained(m.value, inner->number) ||
                llvm::is_contained(m.contract, inner->number));
      });
    if (bad)
      return fails("the mask or the factor after the softmax holds a reduction "
                   "over pairs");
  }
  termsOverOffsets();
  noteFiniteFill();
  return true;
}

// sum_e body, as a score expression over parameters of new terms. Null if it
// can't be one.
ExprRef AttentionMatcher::terms(ExprRef reduce) {
  // A term is f32; sums of integers are exact and stay what they are.
  if (!reduce->isSum() || !reduce->type.isF32() || !varies(reduce))
    return nullptr;
  SmallVector<unsigned> vars;
  ExprRef body = exprs.open(reduce, vars);
  // Terms share contract dims of equal extent.
  SmallVector<unsigned> contract;
  DenseMap<unsigned, ExprRef> renamed;
  for (unsigned v : vars) {
    auto *shared = llvm::find_if(m.contract, [&](unsigned c) {
      return exprs.extent(c) == exprs.extent(v) &&
             !llvm::is_contained(contract, c);
    });
    unsigned chosen = shared == m.contract.end() ? v : *shared;
    if (shared == m.contract.end())
      m.contract.push_back(v);
    contract.push_back(chosen);
    renamed[v] = exprs.var(chosen);
  }
  // A sum under a condition over pairs is a term where that holds, else 0.
  ExprRef condition = nullptr;
  body = peelGuard(exprs.substitute(body, renamed), condition);
  if (condition && condition->usesAny(contract))
    return nullptr;
  Product product;
  flatten(body, product);
  ExprRef term = termOf(std::move(product), contract);
  return term && condition
             ? exprs.select(condition, term, f32(0.0), /*guard=*/false)
             : term;
}

/// 1 where the range of \p contract is empty, else \p scale.
ExprRef AttentionMatcher::oneIfEmpty(ExprRef scale,
                                     ArrayRef<unsigned> contract) {
  for (unsigned v : contract) {
    ExprRef extent = exprs.extent(v);
    if (!extent || Exprs::constantInt(extent).value_or(0) > 0)
      continue;
    ExprRef empty =
        exprs.compare(arith::CmpIPredicate::eq, extent, exprs.index(0));
    scale = exprs.select(empty, f32(1.0), scale, /*guard=*/false);
  }
  return scale;
}

ExprRef AttentionMatcher::distribute(const Product &product, unsigned sum,
                                     ArrayRef<unsigned> contract) {
  ExprRef whole = product.over[sum], parts[2];
  for (int k : {0, 1}) {
    Product flat;
    for (auto [position, f] : llvm::enumerate(product.over))
      flatten(position == sum ? whole->operand(k) : f, flat);
    flat.under.append(product.under);
    if (!(parts[k] = termOf(std::move(flat), contract)))
      return nullptr;
  }
  return exprs.op(mutated("raise-attention.add-for-subtract")
                      ? "arith.addf"
                      : whole->name->getStringRef(),
                  f32(), parts);
}

// Whether \p e adds up products, summed over features, of what a query and what
// a key has.
bool AttentionMatcher::isSumOfChains(ExprRef e) {
  if (e->isSum()) {
    SmallVector<unsigned> vars;
    Product product;
    flatten(exprs.open(e, vars), product);
    product.over.append(product.under);
    return llvm::all_of(product.over, [&](ExprRef factor) {
      bool isPlain = isOneSided(factor);
      Exprs::walk(factor, [&](ExprRef inner) {
        isPlain &= inner->kind != ExprKind::Reduce;
      });
      return isPlain;
    });
  }
  if (e->isOp("arith.addf") || e->isOp("arith.subf") || e->isOp("arith.negf"))
    return llvm::all_of(e->operands,
                        [&](ExprRef part) { return isSumOfChains(part); });
  if (!e->isOp("arith.mulf") && !e->isOp("arith.divf"))
    return false;
  Product product;
  flatten(e, product);
  unsigned sums = 0;
  for (ExprRef factor : product.over)
    if (factor->usesAny(keys) &&
        (++sums > 1 || factor == e || !isSumOfChains(factor))) // 1 / (1 + k)
      return false;
  return sums == 1 && llvm::none_of(product.under, [&](ExprRef factor) {
           return factor->usesAny(keys);
         });
}

bool AttentionMatcher::isRead(ExprRef e) {
  return e->kind == ExprKind::Read ||
         (e->isOp("arith.extf") && e->operand(0)->kind == ExprKind::Read);
}

bool AttentionMatcher::addPair(AttentionTerm &term,
                               ArrayRef<ExprRef> functions) {
  auto parameterOf = [&](ExprRef operand) {
    auto *found = llvm::find(term.operands, operand);
    unsigned position = found - term.operands.begin();
    if (found == term.operands.end())
      term.operands.push_back(operand);
    while (term.parameters.size() < term.operands.size())
      term.parameters.push_back(exprs.freshVar());
    return exprs.parameter(term.parameters[position], f32());
  };
  SmallVector<ExprRef> factors;
  for (ExprRef e : SmallVector<ExprRef>(term.operands))
    factors.push_back(parameterOf(e));
  for (ExprRef e : functions)
    factors.push_back(exprs.replaceOutermost(e, [&](ExprRef inner) -> ExprRef {
      if (inner->freeVars.empty() || !isa<FloatType>(inner->type))
        return nullptr;
      if (!isOneSided(inner) && !isRead(inner))
        return nullptr;
      // Parameters are f32, whatever an operand is stored as.
      ExprRef parameter = parameterOf(inner);
      return inner->type.isF32()
                 ? parameter
                 : exprs.op("arith.truncf", inner->type, {parameter});
    }));
  term.pair = multiply(factors, {});
  bool closed = true;
  Exprs::walk(term.pair, [&](ExprRef e) {
    closed &= e->kind != ExprKind::Read && e->kind != ExprKind::Reduce &&
              !(e->kind == ExprKind::Var && e->type.isIndex());
  });
  return closed;
}

ExprRef AttentionMatcher::scaled(ExprRef term, SmallVector<ExprRef> outside,
                                 SmallVector<ExprRef> under,
                                 ArrayRef<unsigned> contract) {
  for (SmallVector<ExprRef> *factors : {&outside, &under})
    for (ExprRef &e : *factors)
      if (e->freeVars.empty() && e->kind != ExprKind::Constant &&
          !mutated("raise-attention.scale-empty-term"))
        e = oneIfEmpty(e, contract);
  if (!outside.empty() && mutated("raise-attention.drop-factor-of-term"))
    outside.pop_back();
  outside.insert(outside.begin(), term);
  return multiply(outside, under);
}

ExprRef AttentionMatcher::termOf(Product product, ArrayRef<unsigned> contract) {
  // A sum over pairs distributes; `(q + u) * (k + w)` needs no such thing, each
  // side is a tensor. Beside another factor over pairs it stays whole, a
  // `pair`: (q - k) * (q - k) by its terms q q - 2 q k + k k would cancel.
  SmallVector<unsigned, 1> overPairs;
  for (auto [position, e] : llvm::enumerate(product.over))
    if (varies(e))
      overPairs.push_back(position);
  ExprRef sum = overPairs.size() == 1 ? product.over[overPairs[0]] : ExprRef();
  if (sum && (sum->isOp("arith.addf") || sum->isOp("arith.subf")))
    return distribute(product, overPairs[0], contract);

  SmallVector<ExprRef> query, key, both, outside;
  SmallVector<ExprRef> queryUnder, keyUnder, outsideUnder;
  for (ExprRef e : product.over)
    (!e->usesAny(contract) ? outside
     : !isOneSided(e)      ? both
     : e->usesAny(keys)    ? key
                           : query)
        .push_back(e);
  for (ExprRef e : product.under) {
    if (e->usesAny(contract) && !isOneSided(e))
      return nullptr;
    (!e->usesAny(contract) ? outsideUnder
     : e->usesAny(keys)    ? keyUnder
                           : queryUnder)
        .push_back(e);
  }
  AttentionTerm term;
  term.contract.assign(contract.begin(), contract.end());
  if (!query.empty() || !queryUnder.empty())
    term.operands.push_back(multiply(query, queryUnder));
  if (!key.empty() || !keyUnder.empty())
    term.operands.push_back(multiply(key, keyUnder));
  // Factors over pairs: a read is an operand (by offset, as a rule), a function
  // of one-sided parts a part of the `pair`.
  SmallVector<ExprRef> functions;
  for (ExprRef e : both)
    (isRead(e) ? term.operands : functions).push_back(e);
  if (!functions.empty() && !addPair(term, functions))
    return nullptr;
  if (term.operands.empty() || !llvm::all_of(term.operands, [](ExprRef e) {
        return isa<FloatType>(e->type);
      }))
    return nullptr;
  term.result = exprs.freshVar();
  ExprRef result = exprs.parameter(term.result, f32());
  m.terms.push_back(std::move(term));
  return scaled(result, std::move(outside), std::move(outsideUnder), contract);
}

} // namespace heed
