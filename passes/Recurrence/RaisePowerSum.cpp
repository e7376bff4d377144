//===- RaisePowerSum.cpp - convolutions with powers, as recurrences -------===//
//
// y[t,c] = sum_(j <= t) sum_(e,i) C[e,c] A[e]^(t - j) B[i,e] x[j,i], the kernel
// of a state-space model written out, or the same over lags n = t - j: a
// recurrence whose state has an element for each power,
//   S[e] = A[e] S[e] + sum_i B[i,e] x[t,i],   y[t,c] = sum_e C[e,c] S[e].
// A power of no step is 1, whatever its base: the first step multiplies nothing
// before it. But exp(g 0) of a g that is NaN is NaN.
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/Products.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Recurrence/CausalBound.h"
#include "passes/Recurrence/RaiseLinearAttention.h"
#include "passes/Recurrence/StepPower.h"
#include "passes/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {
namespace {

class PowerSumRaiser {
public:
  explicit PowerSumRaiser(linalg::LinalgOp sum)
      : sum(sum), exprs(sum.getContext()), b(sum) {}
  bool run();

private:
  ExprRef matchBound(ExprRef written);
  ExprRef byPairs(ExprRef term);
  bool openFactors(ExprRef term);
  bool place();
  bool isWorthwhile();
  void build();

  ExprRef at(ExprRef element, unsigned var, ExprRef step) {
    DenseMap<unsigned, ExprRef> position;
    position[var] = step;
    return exprs.substitute(element, position);
  }
  /// The sum over those of \p over that the product depends on.
  ExprRef summed(const Product &product, ArrayRef<unsigned> over) {
    ExprRef body = multiply(exprs, product.over, product.under);
    return over.empty()
               ? body
               : exprs.reduce(OperationName("arith.addf", exprs.context), over,
                              body);
  }

  linalg::LinalgOp sum;
  Exprs exprs;
  OpBuilder b;
  SmallVector<unsigned> outputs, reduced; ///< reduced: but for the key
  unsigned query = 0, key = 0;
  Product factors;
  SmallVector<ExprRef> bases;
  bool isExponential = false; ///< one of them
  /// Loops of the state; of reduced ones, those that it is read over, and those
  /// that are summed before.
  SmallVector<unsigned> state, contract, before;
  Product queries, keys;
};

/// The terms up to the query, and no other condition: these, or null.
ExprRef PowerSumRaiser::matchBound(ExprRef written) {
  if (!written || !written->isReduceBy("arith.addf") || !written->type.isF32())
    return nullptr;
  ExprRef body = exprs.open(written, reduced);
  if ((body->kind != ExprKind::If && !body->isOp("arith.select")) ||
      Exprs::constantFloat(body->operand(2)) != 0.0)
    return nullptr;
  for (unsigned candidate : reduced) {
    std::optional<CausalBound> bound =
        matchCausalBound(body->operand(0), candidate, outputs);
    if (!bound || bound->isStrict || bound->isBehind ||
        exprs.extent(bound->query) != exprs.extent(candidate))
      continue;
    key = candidate;
    query = bound->query;
    llvm::erase(reduced, key);
    return body->operand(1);
  }
  return nullptr;
}

/// \p term over lags as one over keys: a lag is the query less the key.
ExprRef PowerSumRaiser::byPairs(ExprRef term) {
  Type index = b.getIndexType();
  unsigned position = exprs.freshVar(exprs.extent(key));
  ExprRef lag =
      exprs.op("arith.subi", index, {exprs.var(query), exprs.var(position)});
  auto isPlace = [&](ExprRef e) {
    return e->isOp("arith.subi") &&
           Exprs::stripExtension(e->operand(0)) == exprs.var(query) &&
           Exprs::stripExtension(e->operand(1)) == exprs.var(key);
  };
  DenseMap<unsigned, ExprRef> turn;
  turn[key] = lag;
  ExprRef turned = exprs.substitute(
      exprs.rewrite(term,
                    [&](ExprRef e) {
                      return isPlace(e) ? exprs.var(position) : nullptr;
                    }),
      turn);
  key = position;
  return turned;
}

/// Sees through sums of products and tensors that a query and a key enter, down
/// to the powers.
bool PowerSumRaiser::openFactors(ExprRef term) {
  flatten(exprs, term, factors);
  for (unsigned k = 0; k < factors.over.size();) {
    ExprRef e = factors.over[k];
    bool isPair = e->uses(query) && e->uses(key);
    std::optional<StepPower> power = matchStepPower(exprs, e, query, key);
    ExprRef inner = nullptr;
    if (power && power->less == 0) {
      bases.push_back(power->base);
      isExponential |= power->isExponential;
    } else if (isPair && e->isReduceBy("arith.addf"))
      inner = exprs.open(e, reduced);
    else if (isPair && e->kind == ExprKind::Read)
      inner = exprs.expand(e);
    if (!inner && (!power || power->less)) {
      if (isPair)
        return false;
      ++k;
      continue;
    }
    factors.over.erase(factors.over.begin() + k);
    if (inner)
      flatten(exprs, inner, factors);
  }
  return !bases.empty();
}

/// Which factors are the state's, and which are of its readers.
bool PowerSumRaiser::place() {
  SmallVector<ExprRef> all(factors.over);
  llvm::append_range(all, factors.under);
  auto add = [](SmallVectorImpl<unsigned> &to, unsigned v) {
    if (!llvm::is_contained(to, v))
      to.push_back(v);
  };
  for (unsigned v : outputs)
    if (v != query &&
        (llvm::any_of(bases, [&](ExprRef e) { return e->uses(v); }) ||
         llvm::any_of(all,
                      [&](ExprRef e) { return e->uses(key) && e->uses(v); })))
      add(state, v);
  // What is reduced by itself is summed before, unless a power, a query or an
  // axis of the result has it.
  for (unsigned v : reduced) {
    auto isOfReaders = [&](ExprRef e) {
      return e->uses(v) &&
             (e->uses(query) || llvm::any_of(outputs, [&](unsigned other) {
                return e->uses(other) && !llvm::is_contained(state, other);
              }));
    };
    bool isState = llvm::any_of(bases, [&](ExprRef e) { return e->uses(v); }) ||
                   llvm::any_of(all, isOfReaders);
    (isState ? contract : before).push_back(v);
  }
  for (unsigned v : contract)
    if (llvm::any_of(bases, [&](ExprRef e) { return e->uses(v); }) ||
        llvm::any_of(all, [&](ExprRef e) {
          return e->uses(v) && (e->uses(key) || e->usesAny(before));
        }))
      add(state, v);
  for (auto [list, isUnder] :
       {std::pair(&factors.over, false), std::pair(&factors.under, true)})
    for (ExprRef e : *list) {
      bool isKey = e->uses(key) || e->usesAny(before);
      if (isKey && (e->uses(query) || llvm::any_of(outputs, [&](unsigned v) {
                      return e->uses(v) && !llvm::is_contained(state, v);
                    })))
        return false;
      Product &to = isKey ? keys : queries;
      (isUnder ? to.under : to.over).push_back(e);
    }
  return true;
}

/// Whether states cost less than the pairs of a query and a key, as far as
/// sizes are known.
bool PowerSumRaiser::isWorthwhile() {
  std::optional<int64_t> steps = Exprs::constantInt(exprs.extent(query));
  int64_t size = 1;
  for (unsigned v : contract)
    size *= Exprs::constantInt(exprs.extent(v)).value_or(1);
  return !steps || *steps > 4 * size;
}

void PowerSumRaiser::build() {
  Location loc = sum.getLoc();
  auto type = cast<RankedTensorType>(sum->getResult(0).getType());
  ExprRef zero = exprs.constant(FloatAttr::get(type.getElementType(), 0.0));
  // What a step adds, for all steps at once.
  SmallVector<unsigned> own{query};
  own.append(state);
  Value added = writeTensor(
      b, loc, exprs, at(summed(keys, before), key, exprs.var(query)), own);
  Value start = writeTensor(b, loc, exprs, zero, state);
  SmallVector<Value> sizes;
  for (auto [axis, v] : llvm::enumerate(outputs))
    if (type.isDynamicDim(axis))
      sizes.push_back(writeExtent(b, loc, exprs.extent(v)));
  Value out = tensor::EmptyOp::create(b, loc, type, sizes);
  int64_t axis = llvm::find(outputs, query) - outputs.begin();
  auto scan =
      attn::ScanOp::create(b, loc, arith::ConstantIndexOp::create(b, loc, 0),
                           writeExtent(b, loc, exprs.extent(query)),
                           ValueRange(start), ValueRange(out), {axis}, {false});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(&scan.getBody().front());
  ExprRef step = exprs.scalar(scan.step());
  SmallVector<ExprRef> place;
  for (unsigned v : state)
    place.push_back(exprs.var(v));
  SmallVector<ExprRef> atStep{step};
  atStep.append(place);
  ExprRef term = exprs.read(added, atStep);
  SmallVector<ExprRef> decayed(bases);
  decayed.push_back(exprs.read(scan.carried()[0], place));
  ExprRef both =
      exprs.op("arith.addf", zero->type, {multiply(exprs, decayed), term});
  ExprRef isFirst =
      exprs.compare(arith::CmpIPredicate::eq, step, exprs.index(0));
  Value next = castTo(
      b,
      writeTensor(b, loc, exprs,
                  isExponential !=
                          mutated("raise-linear-attention.no-first-power")
                      ? both
                      : exprs.select(isFirst, term, both, /*guard=*/false),
                  state),
      start.getType());
  Product read = queries;
  read.over.push_back(exprs.read(next, place));
  SmallVector<unsigned> axes(outputs);
  llvm::erase(axes, query);
  Value row =
      writeTensor(b, loc, exprs, at(summed(read, contract), query, step), axes);
  attn::StepOp::create(b, loc, ValueRange(next), ValueRange(row));
  b.setInsertionPoint(sum);
  sum->getResult(0).replaceAllUsesWith(castTo(b, scan.getStacked()[0], type));
}

bool PowerSumRaiser::run() {
  Value result = sum->getResult(0);
  if (llvm::is_contained(cast<RankedTensorType>(result.getType()).getShape(),
                         0))
    return false;
  SmallVector<ExprRef> place;
  exprs.indexVars(result, outputs, place);
  ExprRef term = matchBound(exprs.expand(result, place));
  if (!term)
    return false;
  // Powers of a lag alone: the terms are by lags.
  SmallVector<unsigned> ofKeys(reduced);
  unsigned lag = key;
  if (!openFactors(term)) {
    factors = {};
    bases.clear();
    isExponential = false;
    reduced = ofKeys;
    key = lag;
    if (!openFactors(byPairs(term)))
      return false;
  }
  if (!this->place() || !isWorthwhile())
    return false;
  build();
  remarkDone(sum, raiseLinearPass, "linear-attention",
             "a convolution with powers: a recurrence");
  return true;
}

} // namespace

bool raisePowerSum(linalg::LinalgOp sum) { return PowerSumRaiser(sum).run(); }

} // namespace heed
