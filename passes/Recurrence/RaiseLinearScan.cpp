//===- RaiseLinearScan.cpp - recurrences that are linear attentions -------===//
//
// A scan whose states are sums of products, each times a decay, and whose rows
// read them by sums over an axis. How the steps are written does not matter:
// states, updates and rows are seen as expressions.
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/Proof.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Recurrence/LinearMatch.h"
#include "passes/Recurrence/LinearUpdate.h"
#include "passes/Recurrence/RaiseLinearAttention.h"
#include "passes/Recurrence/StepBody.h"
#include "passes/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {
namespace {

/// A state of the scan, over variables for its axes.
struct LinearState {
  SmallVector<unsigned> vars;
  SmallVector<ExprRef> at;
  LinearUpdate update;
  Value last; ///< behind the last step; null while no row read it
};

/// A sum by which a row reads a state.
struct Readout {
  unsigned state = 0;
  bool before = false;
  SmallVector<ExprRef> at;        ///< where it reads the state
  SmallVector<unsigned> summed;   ///< variables
  SmallVector<unsigned> contract; ///< axes of the state, one of each variable
  Product factors;                ///< but the state
};

class ScanRaiser {
public:
  ScanRaiser(attn::ScanOp scan, bool silent)
      : scan(scan), silent(silent), exprs(scan.getContext()), body(scan, exprs),
        b(scan), attempt(b) {}
  bool run();

private:
  bool matchStates();
  std::optional<std::pair<unsigned, bool>> stateOf(Value value);
  bool readsState(ExprRef e);
  std::optional<Readout> matchReadout(ExprRef sum);
  bool matchOperands(const Readout &readout, LinearMatch &match);
  bool matchErase(const Readout &readout, LinearMatch &match);
  bool hasFewValues(const LinearMatch &match);
  ExprRef raise(ExprRef sum);
  ExprRef raiseTerms(ExprRef sum);
  ExprRef overSteps(ExprRef e);
  Value orderedState(Value state, ArrayRef<unsigned> axes, bool back = false) {
    return reorderAxes(b, scan.getLoc(), exprs, state, axes, back);
  }
  bool proveSum(attn::LinearAttentionOp op, ExprRef sum, ExprRef raised,
                const Readout &readout, ArrayRef<unsigned> axes);
  Value stack(unsigned row);
  bool decline(const Twine &why) {
    if (!silent)
      remarkDeclined(scan, raiseLinearPass, "linear-attention",
                     "step by step: " + why);
    return false;
  }

  attn::ScanOp scan;
  bool silent;
  Exprs exprs;
  StepBody body;
  OpBuilder b;
  Attempt attempt;
  SmallVector<LinearState, 1> states;
  SmallVector<Value> kept; ///< states before a step, then behind it
  unsigned steps = 0;      ///< the variable in place of the step
  std::string why;
};

/// Which state \p value is, and whether before the step.
std::optional<std::pair<unsigned, bool>> ScanRaiser::stateOf(Value value) {
  auto *found = llvm::find(kept, value);
  if (found == kept.end())
    return std::nullopt;
  unsigned k = found - kept.begin();
  return std::pair(unsigned(k % states.size()), k < states.size());
}

bool ScanRaiser::readsState(ExprRef e) {
  bool reads = false;
  Exprs::walk(e, [&](ExprRef inner) {
    reads |= inner->kind == ExprKind::Read && stateOf(inner->value);
  });
  return reads;
}

bool ScanRaiser::matchStates() {
  attn::StepOp end = scan.terminator();
  kept.assign(scan.carried().begin(), scan.carried().end());
  kept.append(end.getStates().begin(), end.getStates().end());
  states.resize(scan.getStarts().size());
  for (auto [k, state] : llvm::enumerate(states)) {
    Value before = scan.carried()[k];
    exprs.indexVars(before, state.vars, state.at);
    ExprRef next = body.open(exprs.read(end.getStates()[k], state.at), before);
    std::optional<LinearUpdate> update =
        next ? matchLinearUpdate(exprs, next, exprs.read(before, state.at))
             : std::nullopt;
    if (!update) {
      why = "a state's next value is more than a decay times itself and a "
            "product";
      return false;
    }
    state.update = *update;
  }
  return true;
}

/// \p sum as a read of a state over one of its axes, or several.
std::optional<Readout> ScanRaiser::matchReadout(ExprRef sum) {
  Readout readout;
  Product product;
  flatten(exprs, exprs.open(sum, readout.summed), product);
  ExprRef read = nullptr;
  for (ExprRef e : product.over) {
    bool isState = e->kind == ExprKind::Read && stateOf(e->value);
    if (isState && !read)
      read = e;
    else if (readsState(e))
      return std::nullopt;
    else
      readout.factors.over.push_back(e);
  }
  readout.factors.under = product.under;
  if (!read ||
      llvm::any_of(product.under, [&](ExprRef e) { return readsState(e); }))
    return std::nullopt;
  std::tie(readout.state, readout.before) = *stateOf(read->value);
  readout.at.assign(read->operands.begin(), read->operands.end());
  const LinearState &state = states[readout.state];
  readout.contract.resize(readout.summed.size());
  SmallVector<bool> seen(readout.summed.size());
  for (auto [axis, at] : llvm::enumerate(readout.at)) {
    auto *var = at->kind == ExprKind::Var
                    ? llvm::find(readout.summed, at->number)
                    : readout.summed.end();
    if (var == readout.summed.end()) {
      if (at->usesAny(readout.summed))
        return std::nullopt;
      continue;
    }
    unsigned k = var - readout.summed.begin();
    if (seen[k] || exprs.extent(*var) != exprs.extent(state.vars[axis]))
      return std::nullopt;
    seen[k] = true;
    readout.contract[k] = axis;
  }
  return llvm::all_of(seen, [](bool s) { return s; }) ? std::optional(readout)
                                                      : std::nullopt;
}

/// \p e with the variable in place of the step.
ExprRef ScanRaiser::overSteps(ExprRef e) {
  ExprRef at = exprs.var(steps);
  return exprs.rewrite(
      e, [&](ExprRef inner) { return body.isStep(inner) ? at : nullptr; });
}

/// The operands of \p match, and which variables are of which kind.
bool ScanRaiser::matchOperands(const Readout &readout, LinearMatch &match) {
  LinearState &state = states[readout.state];
  const LinearUpdate &update = state.update;
  // The query, over the variables of the state.
  DenseMap<unsigned, ExprRef> rename;
  for (auto [axis, at] : llvm::enumerate(readout.at))
    if (at->kind == ExprKind::Var &&
        exprs.extent(at->number) == exprs.extent(state.vars[axis]))
      rename.try_emplace(at->number, state.at[axis]);
  Product query;
  auto takeQuery = [&](ArrayRef<ExprRef> from, SmallVectorImpl<ExprRef> &to) {
    for (ExprRef e : from)
      if (e->usesAny(readout.summed))
        to.push_back(exprs.substitute(e, rename));
  };
  takeQuery(readout.factors.over, query.over);
  takeQuery(readout.factors.under, query.under);
  match.query = overSteps(multiply(exprs, query.over, query.under));
  for (unsigned axis : readout.contract)
    match.contract.push_back(state.vars[axis]);
  if (llvm::any_of(match.query->freeVars, [&](unsigned v) {
        return v != steps && !llvm::is_contained(state.vars, v);
      }))
    return false; // queries of several heads for one state
  // Keys have the factors with a summed axis; an axis that neither they nor the
  // query has is one of values.
  std::optional<std::pair<ExprRef, ExprRef>> product =
      splitProduct(exprs, update, match.contract);
  if (!product)
    return false;
  match.key = overSteps(product->first);
  match.values = overSteps(product->second);
  match.decay = update.decay ? overSteps(update.decay) : nullptr;
  if (update.held && !matchErase(readout, match))
    return false;
  SmallVector<unsigned> rest;
  for (unsigned v : state.vars)
    if (!llvm::is_contained(match.contract, v))
      rest.push_back(v);
  auto isOfKey = [&](unsigned v) {
    return match.key->uses(v) || match.query->uses(v) ||
           (match.erase && match.erase->uses(v));
  };
  // Heads may share their keys and decay each by its own.
  bool ofDecay = llvm::any_of(rest, [&](unsigned v) {
    return !isOfKey(v) && !(match.decay && match.decay->uses(v));
  });
  for (unsigned v : rest) {
    bool isBatch =
        isOfKey(v) || (ofDecay && match.decay && match.decay->uses(v));
    (isBatch ? match.batch : match.value).push_back(v);
  }
  match.step = steps;
  match.before = readout.before;
  return !match.values->usesAny(match.contract) &&
         !(match.decay && match.decay->usesAny(match.value)) &&
         !hasFewValues(match);
}

/// Whether channels of keys decay each by its own, and fewer than eight values
/// are written by a key: blocks of steps take less work than products do.
bool ScanRaiser::hasFewValues(const LinearMatch &match) {
  if (!match.decay || !match.decay->usesAny(match.contract))
    return false;
  int64_t values = match.value.empty() ? 0 : 1;
  for (unsigned v : match.value)
    values *= Exprs::constantInt(exprs.extent(v)).value_or(8);
  return values < 8;
}

/// What is erased of the state before a value is written: a sum over the axes
/// that \p readout sums over, at the same place of the others.
bool ScanRaiser::matchErase(const Readout &readout, LinearMatch &match) {
  const LinearState &state = states[readout.state];
  std::optional<Readout> held = matchReadout(state.update.held);
  SmallVector<unsigned> read(readout.contract);
  llvm::sort(read);
  if (held)
    llvm::sort(held->contract);
  // A step that erases nothing is none of a key of 0: the state may be
  // infinite.
  if (!held || held->state != readout.state || !held->before ||
      held->contract != read || !state.update.guards.empty())
    return false;
  DenseMap<unsigned, ExprRef> rename;
  for (auto [axis, at] : llvm::enumerate(held->at)) {
    if (!llvm::is_contained(held->contract, axis) && at != state.at[axis])
      return false;
    if (at != state.at[axis])
      rename[at->number] = state.at[axis];
  }
  auto own = [&](ArrayRef<ExprRef> factors) {
    return llvm::map_to_vector(
        factors, [&](ExprRef e) { return exprs.substitute(e, rename); });
  };
  SmallVector<ExprRef> over = own(held->factors.over),
                       under = own(held->factors.under);
  over.push_back(state.update.erased);
  // What the key has not is of the value and of what is taken off it alike.
  for (ExprRef e : ArrayRef(state.update.product.over).drop_back())
    if (!e->usesAny(match.contract) &&
        !mutated("raise-linear-attention.erase-whole"))
      over.push_back(e);
  match.erase = overSteps(multiply(exprs, over, under));
  return true;
}

/// Whether a step of \p op makes what the body does of the state, and reads of
/// it what \p sum does.
bool ScanRaiser::proveSum(attn::LinearAttentionOp op, ExprRef sum,
                          ExprRef raised, const Readout &readout,
                          ArrayRef<unsigned> axes) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(scan.terminator());
  unsigned k = readout.state;
  LinearState &state = states[k];
  Value carried = scan.carried()[k];
  auto [next, output] =
      op.makeStep(b, scan.step(), orderedState(carried, axes));
  Value row = output;
  SmallVector<unsigned> order;
  for (unsigned axis : axes)
    order.push_back(state.vars[axis]);
  ExprRef written = body.open(
      exprs.read(scan.terminator().getStates()[k], state.at), carried);
  Proof proof = prove(exprs, written, next, order, attempt);
  if (proof.holds) {
    // The row in place of the op's output, which has the step as an axis more.
    ExprRef fresh = exprs.rewrite(raised, [&](ExprRef e) -> ExprRef {
      if (e->kind != ExprKind::Read || e->value != op.getOutput())
        return nullptr;
      SmallVector<ExprRef> at(e->operands.begin(), e->operands.end());
      at.erase(at.begin() + op.stepDim());
      return exprs.read(row, at);
    });
    ExprRef old = body.open(sum, SmallVector<Value>(scan.carried()));
    proof = prove(exprs, old,
                  writeTensor(b, scan.getLoc(), exprs, fresh, sum->freeVars),
                  sum->freeVars, attempt);
  }
  if (!proof.holds)
    why = "it cannot be proven equal: " + proof.why;
  return proof.holds;
}

/// \p sum, which reads a state, of the output of a linear attention. Null if it
/// is none.
ExprRef ScanRaiser::raise(ExprRef sum) {
  std::optional<Readout> readout = matchReadout(sum);
  LinearMatch match;
  if (!readout) {
    why = "a row reads a state otherwise than by a query";
    return nullptr;
  }
  if (!matchOperands(*readout, match)) {
    why = "keys, values, queries and decays do not fall apart by axes";
    return nullptr;
  }
  LinearState &state = states[readout->state];
  SmallVector<unsigned> axes;
  for (unsigned v : match.stateVars())
    axes.push_back(llvm::find(state.vars, v) - state.vars.begin());
  b.setInsertionPoint(scan);
  Value start = scan.getStarts()[readout->state];
  // A start of zeros is a tensor that was filled with them.
  ExprRef first = exprs.expand(start, state.at);
  if (!first || Exprs::constantFloat(first) != 0.0)
    match.start = orderedState(start, axes);
  attn::LinearAttentionOp op =
      buildLinearAttention(b, scan.getLoc(), exprs, match);
  if (!state.last)
    state.last = orderedState(op.getState(), axes, /*back=*/true);
  SmallVector<ExprRef> at;
  for (unsigned v : match.batch)
    at.push_back(readout->at[llvm::find(state.vars, v) - state.vars.begin()]);
  at.push_back(exprs.var(steps));
  for (unsigned v : match.value)
    at.push_back(readout->at[llvm::find(state.vars, v) - state.vars.begin()]);
  Product outside;
  outside.over.push_back(exprs.read(op.getOutput(), at));
  for (ExprRef e : readout->factors.over)
    if (!e->usesAny(readout->summed) &&
        !mutated("raise-linear-attention.drop-factor"))
      outside.over.push_back(e);
  for (ExprRef e : readout->factors.under)
    if (!e->usesAny(readout->summed))
      outside.under.push_back(e);
  ExprRef raised = multiply(exprs, outside.over, outside.under);
  // A sum over nothing is 0 by whatever it was divided.
  if (outside.over.size() > 1 || !outside.under.empty())
    raised =
        exprs.unlessEmpty(readout->summed, raised,
                          exprs.constant(FloatAttr::get(b.getF32Type(), 0.0)));
  return proveSum(op, sum, raised, *readout, axes) ? raised : nullptr;
}

/// \p sum, or each of the terms that it falls into, of outputs of linear
/// attentions. Null if one is none.
ExprRef ScanRaiser::raiseTerms(ExprRef sum) {
  // A bonus for the step's own key stands beside the state.
  ExprRef split =
      distribute(exprs, sum, [&](ExprRef e) { return readsState(e); });
  if (!split)
    return raise(sum);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(scan.terminator());
  Proof proof = prove(
      exprs, sum, writeTensor(b, scan.getLoc(), exprs, split, sum->freeVars),
      sum->freeVars, attempt);
  if (!proof.holds) {
    why = "it cannot be proven equal: " + proof.why;
    return nullptr;
  }
  bool fails = false;
  split = exprs.rewrite(split, [&](ExprRef e) -> ExprRef {
    if (fails || !e->isReduceBy("arith.addf") || !readsState(e))
      return nullptr;
    ExprRef raised = raiseTerms(e);
    fails |= !raised;
    return raised;
  });
  return fails ? nullptr : split;
}

/// The output that \p row makes over all steps. Null if a state enters
/// otherwise than by a linear attention.
Value ScanRaiser::stack(unsigned row) {
  Value value = scan.terminator().getRows()[row];
  SmallVector<unsigned> vars;
  SmallVector<ExprRef> at;
  exprs.indexVars(value, vars, at);
  // A row that is a state is no sum of it.
  ExprRef element = body.open(exprs.read(value, at), kept);
  if (!element)
    return {};
  bool fails = false;
  element = exprs.rewrite(element, [&](ExprRef e) -> ExprRef {
    if (fails || !e->isReduceBy("arith.addf") || !readsState(e))
      return nullptr;
    ExprRef raised = raiseTerms(e);
    fails |= !raised;
    return raised;
  });
  if (fails || readsState(element))
    return {};
  element = overSteps(element);
  unsigned place = scan.getAxes()[row], position = steps;
  if (scan.getReversed()[row]) {
    ExprRef length = exprs.extent(steps);
    position = exprs.freshVar(length);
    Type index = IndexType::get(scan.getContext());
    ExprRef last = exprs.op("arith.subi", index, {length, exprs.index(1)});
    DenseMap<unsigned, ExprRef> turned;
    turned[steps] =
        mutated("raise-linear-attention.forget-direction")
            ? exprs.var(position)
            : exprs.op("arith.subi", index, {last, exprs.var(position)});
    element = exprs.substitute(element, turned);
  }
  vars.insert(vars.begin() + place, position);
  b.setInsertionPoint(scan);
  Value all;
  bool isPlain = element->kind == ExprKind::Read &&
                 element->value.getDefiningOp<attn::LinearAttentionOp>() &&
                 element->operands.size() == vars.size();
  for (auto [k, v] : llvm::enumerate(vars))
    isPlain = isPlain && element->operands[k] == exprs.var(v);
  all = isPlain ? element->value
                : writeTensor(b, scan.getLoc(), exprs, element, vars);
  return castTo(b, all, scan.getStacked()[row].getType());
}

bool ScanRaiser::run() {
  if (!mayBeLinear(scan))
    return false;
  exprs.assumePositive(scan.getHigh());
  if (!matchStates())
    return decline(why);
  std::optional<int64_t> length = getConstantIntValue(scan.getHigh());
  steps = exprs.freshVar(length ? exprs.index(*length)
                                : exprs.scalar(scan.getHigh()));
  SmallVector<Value> stacked, last;
  for (unsigned row = 0; row < scan.getStacked().size(); ++row) {
    stacked.push_back(stack(row));
    if (!stacked.back()) {
      attempt.undo();
      return decline(why.empty() ? "a row reads a state otherwise than by a "
                                   "query"
                                 : why);
    }
  }
  for (LinearState &state : states) {
    if (!state.last) {
      attempt.undo();
      return decline("a state that no row reads");
    }
    last.push_back(state.last);
  }
  remarkDone(scan, raiseLinearPass, "linear-attention",
             "a linear attention: its state is a sum of products");
  for (auto [result, value] : llvm::zip(scan.getStates(), last))
    result.replaceAllUsesWith(value);
  for (auto [result, value] : llvm::zip(scan.getStacked(), stacked))
    result.replaceAllUsesWith(value);
  scan.erase();
  return true;
}

} // namespace

bool raiseLinearScan(attn::ScanOp scan, bool silent) {
  return ScanRaiser(scan, silent).run();
}

} // namespace heed
