//===- QuerySoftmax.cpp - a softmax over queries --------------------------===//
//
// Weights that a key shares out among the queries need a number of each key,
// not of each pair: with it a weight is an exponential like others, and what is
// summed over keys an attention without a division.
#include "passes/Raise/QuerySoftmax.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/Weights.h"
#include "passes/Mutation.h"
#include "passes/Raise/RaiseAttentionMatch.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace heed {

namespace {

class QuerySoftmax {
public:
  QuerySoftmax(OpBuilder &builder, Operation *root, Exprs &exprs,
               Attempt &attempt, std::string &why)
      : builder(builder), root(root), exprs(exprs), attempt(attempt), why(why) {
  }
  bool find(ExprRef sum, ArrayRef<unsigned> outputs);
  bool writeLogSumExps();
  ExprRef replace(ExprRef e);
  bool ok = true; ///< whether all that was replaced is proven

private:
  /// A softmax, and the log-sum-exp of its rows, of which \p axes are left.
  struct Found {
    Value lse = {};
    SmallVector<unsigned> axes = {};
  };
  static bool isWeight(ExprRef e) {
    return e->kind == ExprKind::Read && isa<FloatType>(e->type) &&
           e->value.getDefiningOp<attn::SoftmaxOp>();
  }
  bool isBetween(ExprRef e) {
    return e->kind == ExprKind::Read &&
           between.contains(e->value.getDefiningOp());
  }
  bool sumsWeightsOf(attn::SoftmaxOp softmax);
  bool contractsPairs(ExprRef weight, ArrayRef<unsigned> keys);
  Value writeLogSumExp(attn::SoftmaxOp softmax, Found &found);
  ExprRef condition(attn::SoftmaxOp softmax, ArrayRef<ExprRef> at);
  ExprRef lowest(ExprRef score);
  ExprRef exponential(attn::SoftmaxOp softmax, ArrayRef<ExprRef> at);
  ExprRef weight(attn::SoftmaxOp softmax, ArrayRef<ExprRef> at);
  ExprRef underLive(ExprRef e);
  bool isFactor(ExprRef e, ExprRef weight);
  bool isProven(ExprRef written, ExprRef fresh, attn::SoftmaxOp softmax,
                ArrayRef<ExprRef> at);
  void seeThrough(Value scores);
  Type f32() { return builder.getF32Type(); }
  ExprRef real(double value) {
    return exprs.constant(FloatAttr::get(f32(), value));
  }

  OpBuilder &builder;
  Operation *root;
  Exprs &exprs;
  Attempt &attempt;
  std::string &why;
  llvm::MapVector<Operation *, Found> softmaxes;
  llvm::SetVector<Operation *> between; ///< read a softmax, and root them
};

} // namespace

//===----------------------------------------------------------------------===//
// Which softmax
//===----------------------------------------------------------------------===//

/// Whether the root, and what it is computed from, alone reads \p softmax: then
/// nothing of it is left.
bool QuerySoftmax::sumsWeightsOf(attn::SoftmaxOp softmax) {
  SmallVector<Operation *> work{softmax};
  while (!work.empty())
    for (Operation *user : work.pop_back_val()->getUsers()) {
      Operation *op = root->getBlock()->findAncestorOpInBlock(*user);
      if (op == root || (op && between.contains(op)))
        continue;
      if (!op || !isa<linalg::LinalgOp>(op) || !Exprs::isExpressible(op) ||
          !op->isBeforeInBlock(root))
        return false;
      between.insert(op);
      work.push_back(op);
    }
  return true;
}

/// Whether the scores of \p weight, an element of a softmax, sum products of
/// what a key and a query have together, as where heads mix: these are no keys.
bool QuerySoftmax::contractsPairs(ExprRef weight, ArrayRef<unsigned> keys) {
  auto softmax = weight->value.getDefiningOp<attn::SoftmaxOp>();
  SmallVector<unsigned> queries;
  for (int64_t axis : softmax.getAxes())
    llvm::append_range(queries, weight->operand(axis)->freeVars);
  ExprRef score = exprs.expandReads(
      exprs.read(softmax.getInput(), weight->operands), [&](ExprRef read) {
        Operation *def = read->value.getDefiningOp();
        return def && Exprs::isExpressible(def) && read->usesAny(keys) &&
               read->usesAny(queries);
      });
  bool found = false;
  Exprs::walk(score, [&](ExprRef read) {
    if (read->kind != ExprKind::Read)
      return;
    auto isOf = [&](ArrayRef<unsigned> vars, ArrayRef<unsigned> others) {
      return llvm::any_of(read->operands, [&](ExprRef at) {
        return at->usesAny(vars) && !at->usesAny(others);
      });
    };
    bool isSummed = llvm::any_of(read->freeVars,
                                 [&](unsigned v) { return !weight->uses(v); });
    found |= isSummed && isOf(keys, queries) && isOf(queries, keys);
  });
  return found;
}

/// Whether \p result is multiplied and summed along \p axis, as weights that
/// mix heads are: it is wanted whole, and its scores are no pairs of this sum.
static bool areWeights(Value result, unsigned axis) {
  SmallVector<std::pair<Value, unsigned>> work{{result, axis}};
  while (!work.empty()) {
    auto [value, at] = work.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      auto user = dyn_cast<linalg::LinalgOp>(use.getOwner());
      if (!user)
        continue;
      auto dim = dyn_cast<AffineDimExpr>(
          user.getMatchingIndexingMap(&use).getResult(at));
      if (!dim)
        continue;
      unsigned loop = dim.getPosition();
      if (user.getIteratorTypesArray()[loop] == utils::IteratorType::reduction)
        for (OpOperand *input : user.getDpsInputOperands())
          if (input != &use &&
              user.getMatchingIndexingMap(input).isFunctionOfDim(loop))
            return true;
      if (!Exprs::isElementwise(user))
        continue;
      AffineMap map = user.getIndexingMapsArray().back();
      for (auto [axis, to] : llvm::enumerate(map.getResults()))
        if (to == dim)
          work.push_back({user->getResult(0), axis});
    }
  }
  return false;
}

/// Softmaxes over other dims than \p sum, of which a key has a row each.
bool QuerySoftmax::find(ExprRef sum, ArrayRef<unsigned> outputs) {
  // The sum itself, which the root may divide.
  SmallVector<Value> results{root->getResult(0)};
  if (Exprs::isElementwise(root))
    results = llvm::to_vector(
        llvm::make_filter_range(inputsOf(root), [&](Value input) {
          auto type = dyn_cast<RankedTensorType>(input.getType());
          return type && type.getRank() == int64_t(outputs.size());
        }));
  SmallVector<unsigned> keys;
  ExprRef body = exprs.expandReads(exprs.open(sum, keys), [&](ExprRef read) {
    Operation *def = read->value.getDefiningOp();
    return def && read->usesAny(keys) && Exprs::isElementwise(def);
  });
  Exprs::walk(body, [&](ExprRef read) {
    if (!isWeight(read))
      return;
    auto softmax = read->value.getDefiningOp<attn::SoftmaxOp>();
    bool ofQueries = softmax.getMap() == attn::Map::Exp && read->type.isF32();
    bool hasKeys = false;
    for (auto [axis, at] : llvm::enumerate(read->operands)) {
      bool isAxis = llvm::is_contained(softmax.getAxes(), axis);
      for (size_t own = 0; own < outputs.size(); ++own)
        if (isAxis && at->uses(outputs[own]))
          ofQueries &= llvm::none_of(
              results, [&](Value result) { return areWeights(result, own); });
      ofQueries &= !isAxis || !at->usesAny(keys);
      hasKeys |= !isAxis && at->usesAny(keys);
    }
    if (ofQueries && hasKeys && !contractsPairs(read, keys))
      softmaxes.insert({softmax, Found()});
  });
  return !softmaxes.empty() && llvm::all_of(softmaxes, [&](auto &found) {
    return sumsWeightsOf(cast<attn::SoftmaxOp>(found.first));
  });
}

//===----------------------------------------------------------------------===//
// The log-sum-exp
//===----------------------------------------------------------------------===//

/// The softmax's `where`; null without one.
ExprRef QuerySoftmax::condition(attn::SoftmaxOp softmax, ArrayRef<ExprRef> at) {
  return softmax.getWhere().empty()
             ? nullptr
             : exprs.block(softmax.getWhere().front(), at);
}

/// Takes what \p scores are computed from for made, up to what was made reads:
/// so the proof sees as far through them as through the attention.
void QuerySoftmax::seeThrough(Value scores) {
  llvm::DenseSet<Value> read;
  for (Operation *op : attempt.operations())
    read.insert_range(inputsOf(op));
  SmallVector<Value> work{scores};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *def = value.getDefiningOp();
    if (!def || read.contains(value) || attempt.made(def) ||
        !isa<linalg::LinalgOp>(def) || !Exprs::isExpressible(def))
      continue;
    attempt.adopt(def);
    llvm::append_range(work, inputsOf(def));
  }
}

/// The attention whose queries are the softmax's rows and whose values are 1.
Value QuerySoftmax::writeLogSumExp(attn::SoftmaxOp softmax, Found &found) {
  Location loc = softmax.getLoc();
  SmallVector<unsigned> vars, rows, keys;
  SmallVector<ExprRef> at, ofKeys, ofRows;
  exprs.indexVars(softmax.getInput(), vars, at);
  for (auto [axis, v] : llvm::enumerate(vars)) {
    bool isAxis = llvm::is_contained(softmax.getAxes(), axis);
    (isAxis ? keys : rows).push_back(v);
    (isAxis ? ofKeys : ofRows).push_back(at[axis]);
  }
  ExprRef where = condition(softmax, at);
  if (!softmax.getWhere().empty() && !where)
    return {};
  ExprRef weight =
      exprs.op("math.exp", f32(), {exprs.read(softmax.getInput(), at)});
  ExprRef one =
      exprs.read(writeTensor(builder, loc, exprs, real(1), keys), ofKeys);
  auto sum = [&](ExprRef e) {
    if (where)
      e = exprs.select(where, e, real(0), /*guard=*/true);
    return exprs.reduce(OperationName("arith.addf", exprs.context), keys, e);
  };
  ExprRef under = sum(weight);
  if (softmax.getSink())
    under =
        exprs.op("arith.addf", f32(),
                 {under, exprs.op("math.exp", f32(),
                                  {exprs.read(softmax.getSink(), ofRows)})});
  FailureOr<AttentionMatch> match =
      matchAttention(exprs, sum(exprs.op("arith.mulf", f32(), {weight, one})),
                     rows, under, why);
  if (failed(match) || !match->divide || match->weight ||
      match->map != attn::Map::Exp)
    return {};
  match->lse = true;
  match->stabilise = true;
  match->empty = EmptyRow::Zero;
  SmallVector<unsigned> order(match->batch);
  llvm::append_range(order, match->query);
  for (unsigned v : order)
    found.axes.push_back(llvm::find(vars, v) - vars.begin());
  FailureOr<Value> value =
      buildAttention(builder, loc, exprs, *match, rows, f32(), why);
  return failed(value) ? Value()
                       : value->getDefiningOp<attn::AttentionOp>().getLse();
}

bool QuerySoftmax::writeLogSumExps() {
  for (auto &[op, found] : softmaxes) {
    auto softmax = cast<attn::SoftmaxOp>(op);
    found.lse = writeLogSumExp(softmax, found);
    if (!found.lse)
      return false;
    SmallVector<unsigned> vars;
    SmallVector<ExprRef> at;
    exprs.indexVars(softmax.getInput(), vars, at);
    seeThrough(softmax.getInput());
    if (!isProven(exprs.read(softmax.getResult(), at), weight(softmax, at),
                  softmax, at))
      return false;
  }
  return true;
}

/// Whether \p fresh is \p written, for all that they hang on. Variables of
/// the axes of \p softmax, at \p at, come last, as those of sums do: a
/// condition has one form then.
bool QuerySoftmax::isProven(ExprRef written, ExprRef fresh,
                            attn::SoftmaxOp softmax, ArrayRef<ExprRef> at) {
  llvm::SetVector<unsigned> own, vars;
  for (int64_t axis : softmax.getAxes())
    own.insert_range(at[axis]->freeVars);
  for (unsigned v : written->freeVars)
    if (!own.contains(v))
      vars.insert(v);
  vars.insert_range(own);
  if (!llvm::all_of(fresh->freeVars,
                    [&](unsigned v) { return vars.contains(v); }))
    return false;
  DenseMap<unsigned, ExprRef> to;
  SmallVector<unsigned> renamed;
  for (unsigned v : vars) {
    renamed.push_back(exprs.freshVar(exprs.extent(v)));
    to[v] = exprs.var(renamed.back());
  }
  Value value = writeTensor(builder, root->getLoc(), exprs,
                            exprs.substitute(fresh, to), renamed);
  Proof proof =
      prove(exprs, exprs.substitute(written, to), value, renamed, attempt);
  if (!proof.holds)
    why = format("its softmax over queries cannot be proven equal to "
                 "exponentials: {}",
                 proof.why);
  return proof.holds;
}

//===----------------------------------------------------------------------===//
// The weights
//===----------------------------------------------------------------------===//

ExprRef QuerySoftmax::lowest(ExprRef score) {
  return exprs.compare(arith::CmpFPredicate::OEQ, score,
                       real(-std::numeric_limits<double>::infinity()));
}

/// exp(s - l), and of a score of -inf 0, whatever l is: all scores of its key
/// may be -inf, or one NaN.
ExprRef QuerySoftmax::exponential(attn::SoftmaxOp softmax,
                                  ArrayRef<ExprRef> at) {
  const Found &found = softmaxes.find(softmax)->second;
  SmallVector<ExprRef> row;
  for (unsigned axis : found.axes)
    row.push_back(at[axis]);
  ExprRef score = exprs.read(softmax.getInput(), at);
  ExprRef less =
      exprs.op("arith.subf", f32(), {score, exprs.read(found.lse, row)});
  if (!mutated("raise-attention.keys-of-lowest-scores"))
    less = exprs.select(lowest(score),
                        real(-std::numeric_limits<double>::infinity()), less,
                        /*guard=*/false);
  return exprs.op("math.exp", f32(), {less});
}

/// An element of the softmax: 0 where it is absent.
ExprRef QuerySoftmax::weight(attn::SoftmaxOp softmax, ArrayRef<ExprRef> at) {
  ExprRef where = condition(softmax, at), e = exponential(softmax, at);
  return where ? exprs.select(where, e, real(0), /*guard=*/true) : e;
}

/// Whether \p e is \p weight times something.
bool QuerySoftmax::isFactor(ExprRef e, ExprRef weight) {
  if (e == weight)
    return true;
  if (e->isOp("arith.mulf"))
    return isFactor(e->operand(0), weight) || isFactor(e->operand(1), weight);
  return e->isOp("arith.divf") && isFactor(e->operand(0), weight);
}

/// if live then p * x else 0, what the front end makes of "an absent element
/// contributes nothing", as if where then exp(s - l) * x else 0: an exponential
/// of -inf is absent itself. Null if \p e is none such.
ExprRef QuerySoftmax::underLive(ExprRef e) {
  if (!(e->kind == ExprKind::If || e->isOp("arith.select")) ||
      Exprs::constantFloat(e->operand(2)) != 0.0)
    return nullptr;
  ExprRef live = e->operand(0);
  auto softmax = live->kind == ExprKind::Read
                     ? live->value.getDefiningOp<attn::SoftmaxOp>()
                     : attn::SoftmaxOp();
  if (!softmax || !softmaxes.contains(softmax) ||
      live->value != softmax.getLive())
    return nullptr;
  ExprRef own = exprs.read(softmax.getResult(), live->operands);
  ExprRef product = exprs.expandReads(e->operand(1), [&](ExprRef read) {
    return isBetween(read) && Exprs::isElementwise(read->value.getDefiningOp());
  });
  if (!isFactor(product, own))
    return nullptr;
  ExprRef where = condition(softmax, live->operands),
          fresh = exprs.replaceOutermost(product, [&](ExprRef inner) {
            return inner == own ? exponential(softmax, live->operands)
                                : nullptr;
          });
  auto guarded = [&](ExprRef inner) {
    return where ? exprs.select(where, inner, e->operand(2),
                                e->kind == ExprKind::If)
                 : inner;
  };
  ok = ok && isProven(exprs.select(live, product, e->operand(2),
                                   e->kind == ExprKind::If),
                      guarded(fresh), softmax, live->operands);
  return guarded(replace(fresh));
}

ExprRef QuerySoftmax::replace(ExprRef e) {
  return exprs.replaceOutermost(e, [&](ExprRef inner) -> ExprRef {
    if (!ok)
      return inner;
    if (ExprRef fresh = underLive(inner))
      return fresh;
    if (inner->kind == ExprKind::Reduce) {
      SmallVector<unsigned> vars;
      ExprRef body = replace(exprs.open(inner, vars));
      return exprs.reduce(*inner->name, vars, body);
    }
    if (isBetween(inner)) {
      ExprRef expanded = exprs.expand(inner);
      ok &= expanded != nullptr;
      return expanded ? replace(expanded) : inner;
    }
    Operation *def =
        inner->kind == ExprKind::Read ? inner->value.getDefiningOp() : nullptr;
    if (!def || !softmaxes.contains(def))
      return nullptr;
    // Elsewhere what is absent would have to be told.
    ok &= isWeight(inner);
    return ok ? weight(cast<attn::SoftmaxOp>(def), inner->operands) : inner;
  });
}

bool softmaxOfQueries(OpBuilder &builder, Operation *root, Exprs &exprs,
                      ArrayRef<unsigned> outputs, ExprRef &sum,
                      ExprRef &denominator, Attempt &attempt,
                      std::string &why) {
  QuerySoftmax softmax(builder, root, exprs, attempt, why);
  if (!softmax.find(sum, outputs) || !softmax.writeLogSumExps())
    return false;
  sum = softmax.replace(sum);
  if (denominator)
    denominator = softmax.replace(denominator);
  return softmax.ok;
}

} // namespace heed
