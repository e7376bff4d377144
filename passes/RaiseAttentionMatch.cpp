//===- RaiseAttentionMatch.cpp - finds attention in a sum over keys
//------------------------===//
// The sum's body is a product. One factor is the weight: an element of a
// softmax, or a function of a contraction over pairs of a query and a key; what
// is left with the value's dims is the value. Reads are expanded only as far as
// this needs: a tensor that varies over pairs is taken apart, one that varies
// over queries or keys alone stays.
#include "passes/RaiseAttentionMatch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {
namespace {

// over[0] * over[1] * ... / under[0] / ..., where `guard` holds, else 0.
struct Product {
  SmallVector<ExprRef> over, under;
};

class Matcher {
public:
  Matcher(Exprs &exprs, ArrayRef<unsigned> outputs, std::string &why)
      : exprs(exprs), outputs(outputs), why(why) {}
  FailureOr<AttentionMatch> match(ExprRef sum, ExprRef denominator);

private:
  bool classify(ArrayRef<ExprRef> rest);
  std::optional<unsigned> betterQuery();
  bool matchWeight(ExprRef factor, ArrayRef<ExprRef> rest,
                   ArrayRef<ExprRef> under);
  bool matchSoftmaxOp(ExprRef weight);
  bool matchFunction(Product product);
  bool matchNormaliser(ExprRef under, ExprRef core, ExprRef &sinkWeight);
  bool finish(ExprRef score);
  ExprRef terms(ExprRef reduce);
  ExprRef termOf(Product product, ArrayRef<unsigned> contract);
  ExprRef oneIfEmpty(ExprRef scale, ArrayRef<unsigned> contract);

  void flatten(ExprRef e, Product &product, bool below = false);
  ExprRef multiply(ArrayRef<ExprRef> over, ArrayRef<ExprRef> under);
  ExprRef peelGuard(ExprRef e, ExprRef &guard);
  ExprRef peelMask(ExprRef score, ExprRef &where);
  ExprRef expandPairs(ExprRef e);
  bool varies(ExprRef e) {
    return e->usesAny(keys) && (m.query.empty() || e->usesAny(m.query));
  }
  bool fails(const Twine &reason) {
    if (why.empty())
      why = reason.str();
    return false;
  }
  Type f32() { return Float32Type::get(exprs.context); }
  ExprRef f32(double v) { return exprs.constant(FloatAttr::get(f32(), v)); }

  Exprs &exprs;
  ArrayRef<unsigned> outputs;
  std::string &why;
  AttentionMatch m;
  SmallVector<unsigned> keys;
  SmallVector<unsigned> shared;      // dims of the output that no value has
  std::optional<unsigned> preferred; // of these, the query
  ExprRef guard = nullptr;           // of the whole sum
  ExprRef whole = nullptr;           // what divides the whole sum
};

// A table: computed in f64 from indices and sizes, once. It stays a table.
bool isTable(Operation *op) {
  bool found = false;
  op->walk([&](Operation *inner) {
    found |=
        llvm::any_of(inner->getResultTypes(), [](Type t) { return t.isF64(); });
  });
  return found;
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

void Matcher::flatten(ExprRef e, Product &product, bool below) {
  if (e->isOp("arith.mulf")) {
    flatten(e->operand(0), product, below);
    return flatten(e->operand(1), product, below);
  }
  if (e->isOp("arith.divf")) {
    // 1 / (1 + exp(-x)) stays whole.
    ExprRef under = e->operand(1);
    bool sigmoid = under->isOp("arith.addf") &&
                   (exprs.constantFloat(under->operand(0)) == 1.0 ||
                    exprs.constantFloat(under->operand(1)) == 1.0);
    if (!(sigmoid && exprs.constantFloat(e->operand(0)) == 1.0 &&
          under->usesAny(keys))) {
      flatten(e->operand(0), product, below);
      return flatten(under, product, !below);
    }
  }
  if (!below && exprs.constantFloat(e) == 1.0)
    return;
  (below ? product.under : product.over).push_back(e);
}

ExprRef Matcher::multiply(ArrayRef<ExprRef> over, ArrayRef<ExprRef> under) {
  ExprRef result = over.empty() ? f32(1.0) : over[0];
  for (ExprRef e : over.drop_front(over.empty() ? 0 : 1))
    result = exprs.op("arith.mulf", result->type, {result, e});
  for (ExprRef e : under)
    result = exprs.op("arith.divf", result->type, {result, e});
  return result;
}

// select(c, x, 0): contributes where c holds.
ExprRef Matcher::peelGuard(ExprRef e, ExprRef &guard) {
  while (e->kind == ExprKind::If || e->isOp("arith.select")) {
    ExprRef condition = e->operand(0);
    if (exprs.constantFloat(e->operand(2)) == 0.0) {
      e = e->operand(1);
    } else if (exprs.constantFloat(e->operand(1)) == 0.0) {
      condition = exprs.logicalNot(condition);
      e = e->operand(2);
    } else {
      break;
    }
    guard = guard ? exprs.logicalAnd(guard, condition) : condition;
  }
  return e;
}

// A score that is -inf where a condition fails has weight 0 there: the
// condition becomes `where`.
ExprRef Matcher::peelMask(ExprRef score, ExprRef &where) {
  auto add = [&](ExprRef condition) {
    where = where ? exprs.logicalAnd(where, condition) : condition;
  };
  if (score->kind == ExprKind::If || score->isOp("arith.select")) {
    ExprRef condition = score->operand(0);
    if (exprs.isMinusInfinity(score->operand(2))) {
      add(condition);
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

ExprRef Matcher::expandPairs(ExprRef e) {
  return exprs.expandReads(e, [&](ExprRef read) {
    Operation *def = read->value.getDefiningOp();
    if (!def || !Exprs::isExpressible(def) || isTable(def))
      return false;
    if (varies(read))
      return true;
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
  });
}

// Tells batch, query and value dims from one another: `rest` are the factors
// beside the weight.
bool Matcher::classify(ArrayRef<ExprRef> rest) {
  SmallVector<unsigned>
      besideKeys; // variables that index a value apart from its keys
  for (ExprRef e : rest)
    Exprs::walk(e, [&](ExprRef read) {
      if (read->kind == ExprKind::Read)
        for (ExprRef at : read->operands)
          if (!at->usesAny(keys))
            llvm::append_range(besideKeys, at->freeVars);
    });
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

/// The dim that is the query rather than m.query, if there is one: it meets the
/// key in index arithmetic (`j - i`, `j <= i`), or has as many positions.
std::optional<unsigned> Matcher::betterQuery() {
  if (m.query.size() != 1 || keys.size() != 1)
    return std::nullopt;
  auto meetings = [&](unsigned v) {
    unsigned count = 0;
    auto look = [&](ExprRef e) {
      count += e->kind == ExprKind::Op && e->uses(v) && e->uses(keys[0]) &&
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

FailureOr<AttentionMatch> Matcher::match(ExprRef sum, ExprRef denominator) {
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
    SmallVector<ExprRef> rest;
    for (ExprRef e : product.over)
      if (e != candidate)
        rest.push_back(e);
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

bool Matcher::matchWeight(ExprRef factor, ArrayRef<ExprRef> rest,
                          ArrayRef<ExprRef> under) {
  // Value dims: those that the weight does not have.
  SmallVector<ExprRef> values;
  Product product;
  for (unsigned v : outputs)
    if (!factor->uses(v) && llvm::any_of(rest, [&](ExprRef e) {
          return e->uses(v) && e->usesAny(keys);
        }))
      m.value.push_back(v);
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

  // `v + a` over pairs are two value terms; over keys alone it is one tensor.
  ExprRef value = multiply(values, {});
  std::function<void(ExprRef)> split = [&](ExprRef e) {
    ExprRef expanded = e->usesAny(m.query) ? expandPairs(e) : e;
    if (expanded->isOp("arith.addf") && expanded->usesAny(m.query)) {
      split(expanded->operand(0));
      split(expanded->operand(1));
    } else {
      m.values.push_back(expanded);
    }
  };
  split(value);

  flatten(expandPairs(factor), product);
  for (ExprRef e : under)
    flatten(e, product, /*below=*/true);
  if (whole)
    flatten(whole, product, /*below=*/true);
  // 1 / l as a tensor of its own.
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

  ExprRef softmax = nullptr;
  bool several = false;
  for (ExprRef e : product.over)
    Exprs::walk(e, [&](ExprRef read) {
      if (read->kind != ExprKind::Read ||
          !read->value.getDefiningOp<attn::SoftmaxOp>() ||
          !read->usesAny(keys) || !isa<FloatType>(read->type))
        return;
      several |= softmax && softmax != read;
      softmax = read;
    });
  if (several)
    return fails("the weight mixes several rows of a softmax");
  if (!softmax)
    return matchFunction(std::move(product));

  // Everything else around the softmax's element is the factor after the
  // normaliser.
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

/// Whether the scores of \p softmax, before or after elementwise functions, are
/// also summed over its axes: a norm of scores.
static bool readByRow(attn::SoftmaxOp softmax) {
  SmallVector<Value> work{softmax.getInput()};
  while (!work.empty()) {
    Value scores = work.pop_back_val();
    auto def = scores.getDefiningOp<linalg::LinalgOp>();
    if (!def)
      continue;
    for (OpOperand &use : scores.getUses()) {
      auto user = dyn_cast<linalg::LinalgOp>(use.getOwner());
      if (!user || !user.getNumReductionLoops())
        continue;
      AffineMap map = user.getMatchingIndexingMap(&use);
      for (int64_t axis : softmax.getAxes())
        if (auto dim = dyn_cast<AffineDimExpr>(map.getResult(axis));
            dim && user.getIteratorTypesArray()[dim.getPosition()] ==
                       utils::IteratorType::reduction)
          return true;
    }
    if (!Exprs::isElementwise(def))
      continue;
    for (OpOperand *input : def.getDpsInputOperands())
      if (def.getMatchingIndexingMap(input).isIdentity())
        work.push_back(input->get());
  }
  return false;
}

bool Matcher::matchSoftmaxOp(ExprRef weight) {
  auto result = cast<OpResult>(weight->value);
  auto softmax = cast<attn::SoftmaxOp>(result.getOwner());
  SmallVector<unsigned> axes;
  SmallVector<ExprRef> row;
  for (auto [axis, at] : llvm::enumerate(weight->operands)) {
    if (!llvm::is_contained(softmax.getAxes(), int64_t(axis))) {
      if (at->usesAny(keys))
        return fails(
            "the values are summed along another axis than the softmax");
      row.push_back(at);
      continue;
    }
    if (at->kind != ExprKind::Var || !llvm::is_contained(keys, at->number))
      return fails("the values are summed along another axis than the softmax");
    axes.push_back(at->number);
  }
  if (axes.size() != keys.size())
    return fails("the values are summed over more dims than the softmax");
  for (OpOperand &use : softmax.getResult().getUses())
    if (!isa<linalg::LinalgOp, tensor::ExtractOp>(use.getOwner()) &&
        !use.getOwner()->getParentOfType<linalg::LinalgOp>())
      return fails("the weights are read elsewhere too: they must be stored");
  if (readByRow(softmax))
    return fails("another function of the row reads the scores");
  // A function of rows of weights: they are worked on row by row, after it.
  for (Operation *user : softmax.getResult().getUsers())
    if (auto generic = dyn_cast<linalg::LinalgOp>(user);
        generic && generic.getNumParallelLoops() < generic.getNumLoops() &&
        llvm::all_of(generic.getDpsInputs(),
                     [&](Value input) {
                       return input.getDefiningOp() == softmax ||
                              input.getDefiningOp<tensor::EmptyOp>();
                     }) &&
        !generic
             ->walk([](tensor::ExtractOp) { return WalkResult::interrupt(); })
             .wasInterrupted())
      return fails("another function of the row reads the weights");
  m.map = attn::Map::Exp;
  m.divide = m.stabilise = true;
  if (!softmax.getWhere().empty()) {
    ExprRef where = exprs.block(softmax.getWhere().front(), weight->operands);
    if (!where)
      return fails("the softmax's where holds an op that is not an expression "
                   "of indices");
    m.where = expandPairs(where);
  }
  if (guard) {
    // What the front end makes of "an absent element contributes nothing".
    ExprRef live = exprs.read(softmax.getLive(), weight->operands);
    if (guard != live && !(m.where && expandPairs(guard) == m.where))
      return fails("the sum over the values has a condition of its own");
  } else if (m.weight) {
    // Absent elements are 0 here and not skipped: what is made of them must
    // stay 0.
    ExprRef parameter = exprs.parameter(m.weightParameter, f32());
    std::function<bool(ExprRef)> vanishes = [&](ExprRef e) {
      if (e == parameter || exprs.constantFloat(e) == 0.0)
        return true;
      if (e->isOp("arith.mulf"))
        return vanishes(e->operand(0)) || vanishes(e->operand(1));
      if (e->isOp("arith.divf") || e->isOp("arith.extf") ||
          e->isOp("arith.truncf"))
        return vanishes(e->operand(0));
      if (e->isOp("arith.select"))
        return vanishes(e->operand(1)) && vanishes(e->operand(2));
      return false;
    };
    if (!vanishes(m.weight))
      return fails("a weight of 0 does not stay 0 before it meets the values");
  }
  if (softmax.getSink())
    m.sink = exprs.read(softmax.getSink(), row);
  return finish(expandPairs(exprs.read(softmax.getInput(), weight->operands)));
}

// \p under = sum_j core (+ a sink's weight)?
bool Matcher::matchNormaliser(ExprRef under, ExprRef core,
                              ExprRef &sinkWeight) {
  if (under->usesAny(keys) || under->usesAny(m.value))
    return false;
  ExprRef sum = exprs.expandReads(under, [&](ExprRef read) {
    Operation *def = read->value.getDefiningOp();
    return def && Exprs::isExpressible(def) && !isTable(def) &&
           read->freeVars == under->freeVars;
  });
  sinkWeight = nullptr;
  if (sum->isOp("arith.addf"))
    for (int k : {0, 1})
      if (sum->operand(k)->isSum() && sum->operand(1 - k)->isOp("math.exp")) {
        sinkWeight = sum->operand(1 - k);
        sum = sum->operand(k);
        break;
      }
  if (!sum->isSum() || sum->binders.size() != keys.size())
    return false;
  SmallVector<unsigned> vars;
  ExprRef body = exprs.open(sum, vars);
  DenseMap<unsigned, ExprRef> renamed;
  for (auto [from, to] : llvm::zip(vars, keys)) {
    if (exprs.extent(from) != exprs.extent(to))
      return false;
    renamed[from] = exprs.var(to);
  }
  ExprRef condition = nullptr;
  body = peelGuard(expandPairs(exprs.substitute(body, renamed)), condition);
  return body == core &&
         (condition == guard ||
          (condition && guard && expandPairs(guard) == condition));
}

// Computed from the model's parameters alone.
bool isParameter(Value tensor) {
  Operation *def = tensor.getDefiningOp();
  if (!def)
    return false;
  if (isa<attn::ParamOp>(def))
    return true;
  if (!Exprs::isExpressible(def))
    return false;
  bool found = false, other = false;
  def->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (isa<RankedTensorType>(operand.getType()) &&
          !operand.getDefiningOp<tensor::EmptyOp>() &&
          !operand.getDefiningOp<linalg::FillOp>())
        (isParameter(operand) ? found : other) = true;
  });
  return found && !other;
}

bool Matcher::matchFunction(Product product) {
  // The weight is whatever varies over pairs; the rest scales it.
  SmallVector<ExprRef> pairs, scales;
  for (ExprRef e : product.over)
    (e->usesAny(keys) ? pairs : scales).push_back(e);
  SmallVector<ExprRef> pairsUnder, scalesUnder;
  for (ExprRef e : product.under)
    (e->usesAny(keys) ? pairsUnder : scalesUnder).push_back(e);
  if (guard)
    guard = expandPairs(guard);

  bool hasContraction = false;
  for (ExprRef e : pairs)
    Exprs::walk(e, [&](ExprRef inner) {
      hasContraction |= inner->isSum() && varies(inner);
    });
  if (!hasContraction)
    return false;

  // A feed-forward layer has this form too, with parameters as values: two
  // products with an activation serve it better.
  bool fromParameters = true;
  for (ExprRef value : m.values)
    Exprs::walk(value, [&](ExprRef e) {
      if (e->kind == ExprKind::Read)
        fromParameters &= isParameter(e->value);
    });
  if (fromParameters)
    return fails("its values are parameters: a feed-forward layer");

  // exp(s - m) * rest, or a function of the scores as a whole.
  ExprRef core = nullptr, exponent = nullptr;
  for (ExprRef &e : pairs)
    if (e->isOp("math.exp")) {
      core = e;
      exponent = e->operand(0);
      llvm::erase(pairs, core);
      break;
    }
  if (!core) {
    core = multiply(pairs, pairsUnder);
    pairs.clear();
    pairsUnder.clear();
  }
  ExprRef sinkWeight = nullptr;
  for (ExprRef e : scalesUnder)
    if (matchNormaliser(e, core, sinkWeight)) {
      m.divide = true;
      llvm::erase(scalesUnder, e);
      break;
    }
  if (sinkWeight && !exponent)
    return fails("a term beside the sum in the normaliser is no sink");

  ExprRef score = core;
  if (exponent) {
    m.map = attn::Map::Exp;
    score = exponent;
    ExprRef maximum = nullptr;
    // What a row subtracts from all its scores cancels in the division: the
    // op's own maximum does its work.
    if (m.divide && score->isOp("arith.subf") &&
        !score->operand(1)->usesAny(keys)) {
      maximum = score->operand(1);
      score = score->operand(0);
    }
    if (m.divide)
      m.stabilise = true;
    if (sinkWeight) {
      ExprRef sink = sinkWeight->operand(0);
      if (maximum) {
        if (!sink->isOp("arith.subf") || sink->operand(1) != maximum)
          return fails("the term beside the sum in the normaliser subtracts "
                       "another maximum than the scores");
        sink = sink->operand(0);
      }
      m.sink = sink;
    }
  } else {
    auto isOne = [&](ExprRef e) { return exprs.constantFloat(e) == 1.0; };
    auto isZero = [&](ExprRef e) { return exprs.constantFloat(e) == 0.0; };
    m.map = attn::Map::Identity;
    if (core->isOp("arith.divf") && isOne(core->operand(0)) &&
        core->operand(1)->isOp("arith.addf")) {
      ExprRef sum = core->operand(1);
      for (int k : {0, 1})
        if (isOne(sum->operand(k)) && sum->operand(1 - k)->isOp("math.exp")) {
          ExprRef inner = sum->operand(1 - k)->operand(0);
          ExprRef minusOne = f32(-1.0);
          m.map = attn::Map::Sigmoid;
          if (inner->isOp("arith.negf"))
            score = inner->operand(0);
          else
            score = exprs.op("arith.mulf", inner->type, {inner, minusOne});
        }
    } else if ((core->isOp("arith.maximumf") || core->isOp("arith.maxnumf")) &&
               (isZero(core->operand(0)) || isZero(core->operand(1)))) {
      m.map = attn::Map::Relu;
      score = isZero(core->operand(0)) ? core->operand(1) : core->operand(0);
    }
    Product linear;
    if (m.map == attn::Map::Identity)
      flatten(score, linear);
    bool isLinear = m.map == attn::Map::Identity &&
                    llvm::all_of(linear.over, [&](ExprRef e) {
                      return e->isSum() || !e->usesAny(keys);
                    });
    if (isLinear && !guard)
      return false; // a chain of products: attn-reorder-products
    if (!guard && readsOnlyParameters(score, keys))
      return fails("a feed-forward layer: its keys are parameters, and no "
                   "normaliser runs over them");
  }

  if (!pairs.empty() || !pairsUnder.empty() || !scales.empty() ||
      !scalesUnder.empty()) {
    m.weightParameter = exprs.freshVar();
    llvm::append_range(pairs, scales);
    llvm::append_range(pairsUnder, scalesUnder);
    pairs.insert(pairs.begin(), exprs.parameter(m.weightParameter, f32()));
    m.weight = multiply(pairs, pairsUnder);
  }
  m.where = guard;
  return finish(score);
}

bool Matcher::finish(ExprRef score) {
  if (m.map == attn::Map::Exp)
    score = peelMask(score, m.where);
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
  if (m.terms.empty())
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
  return true;
}

// sum_e body, as a score expression over parameters of new terms. Null if it
// can't be one.
ExprRef Matcher::terms(ExprRef reduce) {
  if (!reduce->isSum() || !varies(reduce))
    return nullptr;
  SmallVector<unsigned> vars;
  ExprRef body = exprs.open(reduce, vars);
  // Terms share contract dims of equal extent.
  SmallVector<unsigned> contract;
  DenseMap<unsigned, ExprRef> renamed;
  for (unsigned v : vars) {
    auto shared = llvm::find_if(m.contract, [&](unsigned c) {
      return exprs.extent(c) == exprs.extent(v) &&
             !llvm::is_contained(contract, c);
    });
    unsigned chosen = shared == m.contract.end() ? v : *shared;
    if (shared == m.contract.end())
      m.contract.push_back(v);
    contract.push_back(chosen);
    renamed[v] = exprs.var(chosen);
  }
  Product product;
  flatten(exprs.substitute(body, renamed), product);
  return termOf(std::move(product), contract);
}

/// 1 where the range of \p contract is empty, else \p scale.
ExprRef Matcher::oneIfEmpty(ExprRef scale, ArrayRef<unsigned> contract) {
  for (unsigned v : contract) {
    ExprRef extent = exprs.extent(v);
    if (!extent || Exprs::constantInt(extent).value_or(0) > 0)
      continue;
    Builder b(exprs.context);
    auto equal =
        arith::CmpIPredicateAttr::get(exprs.context, arith::CmpIPredicate::eq);
    ExprRef empty =
        exprs.op(OperationName("arith.cmpi", exprs.context),
                 b.getDictionaryAttr(b.getNamedAttr("predicate", equal)),
                 b.getI1Type(), {extent, exprs.index(0)});
    scale = exprs.select(empty, f32(1.0), scale, /*guard=*/false);
  }
  return scale;
}

ExprRef Matcher::termOf(Product product, ArrayRef<unsigned> contract) {
  // A sum over pairs distributes; `(q + u) * (k + w)` needs no such thing, each
  // side is a tensor.
  for (ExprRef &e : product.over)
    if (varies(e) && (e->isOp("arith.addf") || e->isOp("arith.subf"))) {
      ExprRef parts[2];
      ExprRef factor = e;
      for (int k : {0, 1}) {
        Product part = product;
        for (ExprRef &f : part.over)
          if (f == factor)
            f = factor->operand(k);
        Product flat;
        for (ExprRef f : part.over)
          flatten(f, flat);
        flat.under = part.under;
        if (!(parts[k] = termOf(std::move(flat), contract)))
          return nullptr;
      }
      return exprs.op(factor->name->getStringRef(), f32(), parts);
    }

  auto oneSided = [&](ExprRef e) {
    return !e->usesAny(keys) || !e->usesAny(m.query);
  };
  SmallVector<ExprRef> query, key, both, outside;
  SmallVector<ExprRef> queryUnder, keyUnder, outsideUnder;
  for (ExprRef e : product.over)
    (!e->usesAny(contract) ? outside
     : !oneSided(e)        ? both
     : e->usesAny(keys)    ? key
                           : query)
        .push_back(e);
  for (ExprRef e : product.under) {
    if (e->usesAny(contract) && !oneSided(e))
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

  // Factors over pairs: a read is an operand (by offset, as a rule); a function
  // of one-sided parts is a `pair`.
  SmallVector<ExprRef> functions;
  for (ExprRef e : both)
    if (e->kind == ExprKind::Read)
      term.operands.push_back(e);
    else
      functions.push_back(e);
  if (!functions.empty()) {
    SmallVector<ExprRef> factors;
    auto parameterOf = [&](ExprRef operand) {
      auto found = llvm::find(term.operands, operand);
      unsigned position = found - term.operands.begin();
      if (found == term.operands.end())
        term.operands.push_back(operand);
      while (term.parameters.size() < term.operands.size())
        term.parameters.push_back(exprs.freshVar());
      return exprs.parameter(term.parameters[position], f32());
    };
    for (ExprRef e : SmallVector<ExprRef>(term.operands))
      factors.push_back(parameterOf(e));
    for (ExprRef e : functions)
      factors.push_back(
          exprs.replaceOutermost(e, [&](ExprRef inner) -> ExprRef {
            if (inner->freeVars.empty() || !isa<FloatType>(inner->type))
              return nullptr;
            return oneSided(inner) || inner->kind == ExprKind::Read
                       ? parameterOf(inner)
                       : nullptr;
          }));
    term.pair = multiply(factors, {});
    bool closed = true;
    Exprs::walk(term.pair, [&](ExprRef e) {
      closed &= e->kind != ExprKind::Read && e->kind != ExprKind::Reduce &&
                !(e->kind == ExprKind::Var && e->type.isIndex());
    });
    if (!closed)
      return nullptr;
  }
  if (term.operands.empty())
    return nullptr;
  for (ExprRef e : term.operands)
    if (!isa<FloatType>(e->type))
      return nullptr;
  term.result = exprs.freshVar();
  ExprRef result = exprs.parameter(term.result, f32());
  m.terms.push_back(std::move(term));
  // An empty sum is 0 whatever it was scaled by (1 / sqrt(E) with E = 0).
  for (SmallVector<ExprRef> *factors : {&outside, &outsideUnder})
    for (ExprRef &e : *factors)
      if (e->freeVars.empty() && e->kind != ExprKind::Constant)
        e = oneIfEmpty(e, contract);
  outside.insert(outside.begin(), result);
  return multiply(outside, outsideUnder);
}

} // namespace

FailureOr<AttentionMatch> matchAttention(Exprs &exprs, ExprRef sum,
                                         ArrayRef<unsigned> outputs,
                                         ExprRef denominator,
                                         std::string &why) {
  why.clear();
  return Matcher(exprs, outputs, why).match(sum, denominator);
}

} // namespace heed
