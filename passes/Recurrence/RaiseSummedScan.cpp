//===- RaiseSummedScan.cpp - states of several products a step ------------===//
//
// S_t = A_t S_(t-1) + k_t v_t + l_t w_t is the sum of two states that decay
// alike, each with one product. What reads S reads their sum. Mamba-3 adds what
// a step and the one before it write; others write two values by two keys.
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/Proof.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Recurrence/LinearUpdate.h"
#include "passes/Recurrence/RaiseLinearAttention.h"
#include "passes/Recurrence/StepBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace heed {
namespace {

/// A recurrence, and the one whose states are the terms of its own.
class SummedScan {
public:
  explicit SummedScan(attn::ScanOp scan)
      : scan(scan), exprs(scan.getContext()), body(scan, exprs), b(scan) {}
  bool run();

private:
  /// A state over variables for its axes, and what it is the sum of.
  struct State {
    SmallVector<unsigned> vars;
    SmallVector<ExprRef> at;
    SmallVector<LinearUpdate> updates; ///< one or none: it stays whole
    unsigned first = 0;                ///< its part, or the first of them
    unsigned parts() const { return std::max<size_t>(updates.size(), 1); }
  };
  bool match();
  bool write();
  bool prove(const Attempt &attempt, const State &state, ArrayRef<Value> next);
  ExprRef nextOf(const LinearUpdate &update, ExprRef old);
  ExprRef sumOf(const State &state, ValueRange parts);
  Value tensor(const State &state, ExprRef element, Type type) {
    return castTo(b, writeTensor(b, scan.getLoc(), exprs, element, state.vars),
                  type);
  }
  ExprRef number(double value) {
    return exprs.constant(FloatAttr::get(b.getF32Type(), value));
  }

  attn::ScanOp scan, made;
  Exprs exprs;
  StepBody body;
  OpBuilder b;
  std::vector<State> states;
};

bool SummedScan::match() {
  if (!mayBeLinear(scan))
    return false;
  bool found = false;
  unsigned parts = 0;
  for (auto [k, carried] : llvm::enumerate(scan.carried())) {
    State &state = states.emplace_back();
    exprs.indexVars(carried, state.vars, state.at);
    ExprRef next = body.open(
        exprs.read(scan.terminator().getStates()[k], state.at), carried);
    if (next)
      state.updates =
          matchSummedUpdates(exprs, next, exprs.read(carried, state.at));
    found |= !state.updates.empty();
    state.first = parts;
    parts += state.parts();
  }
  return found;
}

ExprRef SummedScan::sumOf(const State &state, ValueRange parts) {
  ExprRef sum = nullptr;
  for (Value part : parts.slice(state.first, state.parts())) {
    ExprRef read = exprs.read(part, state.at);
    sum = sum ? exprs.op("arith.addf", read->type, {sum, read}) : read;
  }
  return sum;
}

/// What \p update makes of \p old in the new recurrence.
ExprRef SummedScan::nextOf(const LinearUpdate &update, ExprRef old) {
  ExprRef added = multiply(exprs, update.product.over, update.product.under);
  if (update.isNegative)
    added = exprs.op("arith.negf", added->type, {added});
  for (ExprRef guard : llvm::reverse(update.guards))
    added = exprs.select(guard, added, number(0.0), /*guard=*/true);
  if (update.decay && !mutated("raise-linear-attention.part-stays"))
    old = exprs.op("arith.mulf", old->type, {old, update.decay});
  return exprs.rewrite(
      exprs.op("arith.addf", old->type, {old, added}), [&](ExprRef e) {
        return body.isStep(e) ? exprs.scalar(made.step()) : nullptr;
      });
}

/// Whether the sum of \p next is what a step makes of the sum of the parts.
bool SummedScan::prove(const Attempt &attempt, const State &state,
                       ArrayRef<Value> next) {
  unsigned k = &state - states.data();
  Value old = scan.carried()[k];
  ExprRef written =
      body.open(exprs.read(scan.terminator().getStates()[k], state.at), old);
  written = exprs.rewrite(written, [&](ExprRef e) -> ExprRef {
    if (body.isStep(e))
      return exprs.scalar(made.step());
    if (e->kind == ExprKind::Read && e->value == old)
      return sumOf(state, made.carried());
    return nullptr;
  });
  Value fresh =
      writeTensor(b, scan.getLoc(), exprs, sumOf(state, next), state.vars);
  return heed::prove(exprs, written, fresh, state.vars, attempt).holds;
}

/// Writes the recurrence of all parts. Whether it is the same.
bool SummedScan::write() {
  Location loc = scan.getLoc();
  SmallVector<Value> starts;
  for (auto [state, start] : llvm::zip(states, scan.getStarts()))
    for (unsigned part = 0; part < state.parts(); ++part)
      starts.push_back(part ? tensor(state, number(0.0), start.getType())
                            : start);
  made =
      attn::ScanOp::create(b, loc, scan.getLow(), scan.getHigh(), starts,
                           scan.getOuts(), scan.getAxes(), scan.getReversed());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&made.getBody().front());
  IRMapping map;
  map.map(scan.step(), made.step());
  for (auto [state, carried] : llvm::zip(states, scan.carried()))
    map.map(carried, state.updates.empty()
                         ? made.carried()[state.first]
                         : tensor(state, sumOf(state, made.carried()),
                                  carried.getType()));
  attn::StepOp end = scan.terminator();
  for (Operation &op : scan.getBody().front().without_terminator())
    b.clone(op, map);
  SmallVector<Value> next, rows;
  for (auto [state, value] : llvm::zip(states, end.getStates())) {
    if (state.updates.empty()) {
      next.push_back(map.lookupOrDefault(value));
      continue;
    }
    Attempt attempt(b);
    for (auto [part, update] : llvm::enumerate(state.updates)) {
      Value old = made.carried()[state.first + part];
      next.push_back(tensor(state, nextOf(update, exprs.read(old, state.at)),
                            old.getType()));
    }
    if (!prove(attempt, state, next))
      return false;
  }
  for (Value row : end.getRows())
    rows.push_back(map.lookupOrDefault(row));
  attn::StepOp::create(b, loc, next, rows);
  return true;
}

bool SummedScan::run() {
  if (!match())
    return false;
  Attempt attempt(b);
  if (!write()) {
    attempt.undo();
    return false;
  }
  b.setInsertionPointAfter(made);
  SmallVector<Value> results, before(scan.getResults());
  for (auto [state, last] : llvm::zip(states, scan.getStates()))
    results.push_back(
        state.updates.empty()
            ? made.getStates()[state.first]
            : tensor(state, sumOf(state, made.getStates()), last.getType()));
  llvm::append_range(results, made.getStacked());
  scan.replaceAllUsesWith(results);
  if (raiseLinearScan(made, /*silent=*/true)) {
    scan.erase();
    return true;
  }
  for (auto [fresh, old] : llvm::zip(results, before))
    fresh.replaceAllUsesWith(old);
  attempt.undo();
  return false;
}

} // namespace

bool raiseSummedScan(attn::ScanOp scan) { return SummedScan(scan).run(); }

} // namespace heed
