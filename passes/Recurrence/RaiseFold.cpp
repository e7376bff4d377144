//===- RaiseFold.cpp - argmax over what comes before ----------------------===//
//
// p[i] = argmax_(j <= i) x[j]: a reduction of several results, of which each
// term makes the next ones of those before. What query i has is one turn more
// of what query i - 1 has: a recurrence with a state for each result. Over what
// comes behind, argmax alone: the new term is the first there.
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorExpr.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Recurrence/CausalBound.h"
#include "passes/Recurrence/RaiseLinearAttention.h"
#include "passes/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {

namespace {

class FoldRaiser {
public:
  explicit FoldRaiser(linalg::LinalgOp reduction)
      : reduction(reduction), exprs(reduction.getContext()), b(reduction) {}
  bool run();

private:
  bool match();
  bool matchStarts();
  bool matchChoice();
  SmallVector<ExprRef> turnAt(ExprRef step, ArrayRef<ExprRef> before);
  SmallVector<ExprRef> turnBehind(ExprRef step, ArrayRef<ExprRef> behind);
  void build();

  linalg::LinalgOp reduction;
  Exprs exprs;
  OpBuilder b;
  ReductionTurn turn;
  unsigned key = 0;
  CausalBound bound;
  SmallVector<ExprRef> starts;
  SmallVector<unsigned> vars; ///< of the states' axes
  /// Of an argmax: a term and its position, which are the next results.
  SmallVector<ExprRef, 2> chosen;
};

/// Whether the states begin with values that no query has for itself.
bool FoldRaiser::matchStarts() {
  SmallVector<ExprRef> at;
  for (unsigned v : turn.outputs)
    at.push_back(exprs.var(v));
  for (OpOperand &init : reduction.getDpsInitsMutable()) {
    ExprRef start = exprs.expand(init.get(), at);
    if (!start || start->uses(bound.query))
      return false;
    starts.push_back(start);
  }
  return true;
}

/// Whether each next result is the term's, or all are those before; the term
/// counts by itself.
bool FoldRaiser::matchChoice() {
  if (turn.next.size() != 2)
    return false;
  for (auto [next, before] : llvm::zip(turn.next, turn.before)) {
    if (!next->isOp("arith.select") || next->operand(2) != before ||
        next->operand(0) != turn.next[0]->operand(0))
      return false;
    chosen.push_back(next->operand(1));
  }
  // A constant may stand elsewhere, too.
  if (chosen[0] == chosen[1] || chosen[0]->kind == ExprKind::Constant)
    return false;
  ExprRef takes = exprs.replaceOutermost(
      turn.next[0]->operand(0), [&](ExprRef e) -> ExprRef {
        return llvm::is_contained(chosen, e) ? exprs.index(0) : nullptr;
      });
  return !takes->uses(key);
}

bool FoldRaiser::match() {
  std::optional<ReductionTurn> found = exprs.turnOf(reduction);
  if (!found || found->reduced.size() != 1)
    return false;
  turn = *found;
  key = turn.reduced[0];
  ExprRef isThere = nullptr;
  Exprs::walk(turn.next[0], [&](ExprRef e) {
    if (std::optional<CausalBound> own = matchCausalBound(e, key, turn.outputs);
        own && !isThere) {
      isThere = e;
      bound = *own;
    }
  });
  if (!isThere || exprs.extent(bound.query) != exprs.extent(key))
    return false;
  auto where = [&](ExprRef next, ExprRef truth) {
    return exprs.rewrite(
        next, [&](ExprRef e) { return e == isThere ? truth : nullptr; });
  };
  // No query has the last key: what is read of it is not to be read.
  ExprRef holds =
      bound.isStrict ? isNotLast(exprs, bound, key) : exprs.truth(true);
  for (auto [next, before] : llvm::zip(turn.next, turn.before)) {
    if (where(next, exprs.truth(false)) != before)
      return false;
    next = where(next, holds);
    if (next->uses(bound.query))
      return false;
  }
  vars = turn.outputs;
  llvm::erase(vars, bound.query);
  return matchStarts() && (!bound.isBehind || matchChoice());
}

/// The results after the term at \p step.
SmallVector<ExprRef> FoldRaiser::turnAt(ExprRef step,
                                        ArrayRef<ExprRef> before) {
  DenseMap<unsigned, ExprRef> position;
  position[key] = step;
  SmallVector<ExprRef> after;
  for (ExprRef next : turn.next)
    after.push_back(exprs.rewrite(
        exprs.substitute(next, position), [&](ExprRef e) -> ExprRef {
          auto *old = llvm::find(turn.before, e);
          return old == turn.before.end() ? nullptr
                                          : before[old - turn.before.begin()];
        }));
  return after;
}

/// The results of the term at \p step and of those behind it.
SmallVector<ExprRef> FoldRaiser::turnBehind(ExprRef step,
                                            ArrayRef<ExprRef> behind) {
  SmallVector<ExprRef> first = turnAt(step, starts);
  if (mutated("raise-linear-attention.last-maximum"))
    return turnAt(step, behind);
  SmallVector<ExprRef> after;
  for (ExprRef next : turn.next)
    after.push_back(exprs.replaceOutermost(next, [&](ExprRef e) -> ExprRef {
      if (auto *own = llvm::find(chosen, e); own != chosen.end())
        return behind[own - chosen.begin()];
      auto *old = llvm::find(turn.before, e);
      return old == turn.before.end() ? nullptr
                                      : first[old - turn.before.begin()];
    }));
  return after;
}

void FoldRaiser::build() {
  Location loc = reduction->getLoc();
  SmallVector<Value> firsts, outs;
  for (auto [start, result] : llvm::zip(starts, reduction->getResults())) {
    auto type = cast<RankedTensorType>(result.getType());
    firsts.push_back(writeTensor(b, loc, exprs, start, vars));
    SmallVector<Value> sizes;
    for (auto [axis, v] : llvm::enumerate(turn.outputs))
      if (type.isDynamicDim(axis))
        sizes.push_back(writeExtent(b, loc, exprs.extent(v)));
    outs.push_back(tensor::EmptyOp::create(b, loc, type, sizes));
  }
  int64_t axis = llvm::find(turn.outputs, bound.query) - turn.outputs.begin();
  unsigned count = outs.size();
  auto scan =
      attn::ScanOp::create(b, loc, arith::ConstantIndexOp::create(b, loc, 0),
                           writeExtent(b, loc, exprs.extent(bound.query)),
                           firsts, outs, SmallVector<int64_t>(count, axis),
                           SmallVector<bool>(count, bound.isBehind));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(&scan.getBody().front());
  ExprRef step = exprs.scalar(scan.step());
  if (bound.isBehind) {
    Type index = b.getIndexType();
    step = exprs.op(
        "arith.subi", index,
        {exprs.op("arith.subi", index, {exprs.extent(key), exprs.index(1)}),
         step});
  }
  SmallVector<ExprRef> own, before;
  for (unsigned v : vars)
    own.push_back(exprs.var(v));
  for (Value state : scan.carried())
    before.push_back(exprs.read(state, own));
  SmallVector<Value> next;
  for (auto [after, state] : llvm::zip(bound.isBehind ? turnBehind(step, before)
                                                      : turnAt(step, before),
                                       scan.carried()))
    next.push_back(
        castTo(b, writeTensor(b, loc, exprs, after, vars), state.getType()));
  bool isBefore =
      bound.isStrict != mutated("raise-linear-attention.fold-other-row");
  attn::StepOp::create(
      b, loc, next, isBefore ? ValueRange(scan.carried()) : ValueRange(next));
  for (auto [result, row] :
       llvm::zip(reduction->getResults(), scan.getStacked())) {
    b.setInsertionPoint(reduction);
    result.replaceAllUsesWith(castTo(b, row, result.getType()));
  }
}

bool FoldRaiser::run() {
  for (Type type : reduction->getResultTypes())
    if (llvm::is_contained(cast<RankedTensorType>(type).getShape(), 0))
      return false;
  if (!match())
    return false;
  build();
  remarkDone(reduction, raiseLinearPass, "prefix",
             bound.isBehind ? "an argmax over what comes behind: a recurrence"
                            : "an argmax over what comes before: a recurrence");
  return true;
}

} // namespace

bool raiseFold(linalg::LinalgOp reduction) {
  return FoldRaiser(reduction).run();
}

} // namespace heed
