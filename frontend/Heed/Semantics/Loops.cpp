//===- Loops.cpp - for loops, rolled where they can be --------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop is first analysed with its variable unknown. Whatever then asks for
// its value (a static `if`, a slice of a collection, a width out of a table),
// or a carried name that changes shape, sets `needsUnroll`: the steps are
// dropped and the loop is unrolled.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::cast;

/// The run-time integer that \p expr names, if it names one.
std::optional<TensorVal> Analysis::namedInteger(const Expr &expr,
                                                const Env &env) {
  auto *name = llvm::dyn_cast<NameExpr>(&expr);
  std::optional<Binding> binding;
  if (name)
    binding = lookup(env, name->name);
  if (binding && binding->kind == Binding::Thunk)
    return namedInteger(*binding->thunk->expr, *binding->thunk->scope->env);
  return binding && binding->kind == Binding::Scalar &&
                 isInt(binding->tensor.elem)
             ? std::optional(binding->tensor)
             : std::nullopt;
}

/// How often a loop turns, or how many steps a scan has: a size, or an integer
/// that a call is given.
std::optional<Size> Analysis::countValue(const Expr &expr, const EnvPtr &env,
                                         const llvm::Twine &what) {
  std::optional<TensorVal> scalar = namedInteger(expr, *env);
  if (!scalar)
    return sizeValue(expr, env, what);
  Size count = sizes.dim(cast<NameExpr>(expr).name);
  sink->push_back(BindAtom{
      *count.asAtom(), scalar->value, std::nullopt, {}, false, expr.range});
  return count;
}

/// From where to where the variable of a loop, or of a scan, goes.
std::optional<std::pair<Size, Size>>
Analysis::loopRange(StringRef what, const Name &var, const Expr &lo,
                    const Expr &hi, const EnvPtr &env) {
  auto from = sizeValue(lo, env, format("the start of the {}", what));
  auto to = countValue(hi, env, format("the end of the {}", what));
  if (!from || !to)
    return std::nullopt;
  if (auto known = lookup(*env, var.text)) {
    error(var.range,
          format("{} variable '{}' hides a name in scope", what, var.text),
          known->place.isValid()
              ? ArrayRef<Note>(Note{known->place, "defined here"})
              : ArrayRef<Note>());
    return std::nullopt;
  }
  return std::pair(*from, *to);
}

/// Numbers that a turn binds anew become tensors of rank 0 of the types that
/// they have after one.
void Analysis::holdNumbers(const NumberTypes &types, Env &env) {
  for (auto &[name, type] : types) {
    Binding &number = env.names.find(name)->second;
    if (auto tensor = numberTensor(number, type, number.place))
      number = Binding::of(*tensor, number.place);
  }
}

/// Why a loop whose range is not known cannot be.
static std::string differingTurns(StringRef var, StringRef unlike) {
  return format(
      "each turn of this loop is code of its own, because {}: expected a range "
      "known when compiling (--set gives a size)",
      unlike.empty() ? format("a shape, a kind or a slice depends on '{}'", var)
                     : unlike.str());
}

/// The loop as a step, if each turn is the same code. If not, `again` says that
/// it is worth to be unrolled, or to be looked at again with the numbers in
/// `types` as tensors; all is as it was before, then.
bool Analysis::asOneStep(const ForStmt &stmt, const Size &lo, const Size &hi,
                         Frame &frame, NumberTypes &types, bool &again) {
  bool canUnroll = lo.constant() && hi.constant();
  llvm::SaveAndRestore outerUnroll(needsUnroll);
  Env before = *frame.env;
  size_t messages = pending.size();
  auto factsBefore = sizes.facts();
  auto positiveBefore = positive;
  auto activeBefore = active;
  bool staticBefore = staticArgument;
  auto callsBefore = numCalls;
  size_t checksBefore = checks.size();
  SmallVector<std::pair<Steps *, size_t>> stepsBefore{
      {&entry.steps, entry.steps.size()}};
  for (const RolledLoop &around : loops)
    stepsBefore.emplace_back(around.body, around.body->size());
  unlike.clear();
  auto firstUpdateBefore = firstUpdate;
  bool hasTypes = !types.empty();
  ++rolled;
  ++speculating;
  holdNumbers(types, *frame.env);
  RolledFor loop;
  bool ok = rolledFor(stmt, lo, hi, frame, loop,
                      canUnroll || hasTypes ? nullptr : &types);
  --rolled;
  --speculating;
  again = canUnroll ? needsUnroll : !hasTypes && !types.empty();
  // Where its body gave up without a word, since unrolled it may have been
  // right.
  bool said =
      llvm::any_of(llvm::drop_begin(pending, messages),
                   [](const Pending &message) { return message.isError; });
  if (!ok && !said && needsUnroll && !again)
    error(stmt.range, differingTurns(stmt.var.text, unlike));
  if (!again) {
    flushPending();
    sink->push_back(std::move(loop));
    return ok;
  }
  pending.resize(messages);
  sizes.restoreFacts(factsBefore);
  positive = positiveBefore;
  active = activeBefore;
  staticArgument = staticBefore;
  numCalls = callsBefore;
  checks.erase(checks.begin() + checksBefore, checks.end());
  // What holds outside of the loop was put there.
  for (auto [steps, length] : stepsBefore)
    steps->erase(steps->begin() + length, steps->end());
  firstUpdate = firstUpdateBefore;
  tooManyCopies = false;
  unlike.clear();
  *frame.env = before;
  return false;
}

bool Analysis::executeFor(const ForStmt &stmt, Frame &frame) {
  auto range = loopRange("loop", stmt.var, *stmt.lo, *stmt.hi, frame.env);
  if (!range)
    return false;
  auto &[lo, hi] = *range;
  auto from = lo.constant(), to = hi.constant();
  // One turn or none is no loop.
  NumberTypes types;
  if (!from || !to || *to - *from > 1) {
    bool again = false;
    bool ok = asOneStep(stmt, lo, hi, frame, types, again);
    if (again && !types.empty())
      ok = asOneStep(stmt, lo, hi, frame, types, again);
    if (!again)
      return ok;
  }
  return unrolledFor(stmt, *from, *to, frame);
}

bool Analysis::unrolledFor(const ForStmt &stmt, int64_t lo, int64_t hi,
                           Frame &frame) {
  constexpr int64_t most = 65536;
  if (hi > lo && uint64_t(hi) - uint64_t(lo) > uint64_t(most))
    return error(stmt.var.range,
                 format("each turn of this loop is code of its own, because a "
                        "shape, a kind or a slice depends on '{}': expected at "
                        "most {} turns, found {}",
                        stmt.var.text, most, uint64_t(hi) - uint64_t(lo)));
  std::vector<std::string> outside;
  for (auto &entry : frame.env->names)
    outside.push_back(entry.first);
  for (int64_t turn = lo; turn < hi; ++turn) {
    Binding var = Binding::of(Size(turn));
    var.place = stmt.var.range;
    frame.env->names[stmt.var.text.str()] = var;
    bool ok = execute(stmt.body.stmts, frame);
    for (auto it = frame.env->names.begin(); it != frame.env->names.end();)
      it = llvm::is_contained(outside, it->first) ? std::next(it)
                                                  : frame.env->names.erase(it);
    if (!ok)
      return false;
    if (frame.results)
      return error(stmt.range, "'return' inside a loop");
  }
  return true;
}

/// The tensors that the body binds anew come in and go out: `carried`. False if
/// something else than a tensor is bound, but for numbers where `types` is
/// there: these get an entry.
bool Analysis::carry(const ForStmt &stmt, const Env &env, RolledFor &step,
                     std::vector<std::string> &carried, NumberTypes *types) {
  std::vector<std::string> names;
  boundNames(stmt.body.stmts, *env.file, names);
  for (const std::string &name : names) {
    auto it = env.names.find(name);
    if (it == env.names.end())
      continue;
    if (it->second.kind == Binding::Poison)
      return false;
    if (types && it->second.isNumber()) {
      types->emplace(name, Ty::F32);
      continue;
    }
    if (it->second.kind != Binding::Tensor) {
      needsUnroll = true;
      return false;
    }
    carried.push_back(name);
    step.inits.push_back(it->second.tensor.value);
    if (it->second.tensor.live)
      step.inits.push_back(it->second.tensor.live);
  }
  for (size_t k = 0; k < step.inits.size(); ++k) {
    step.inside.push_back(newTensor());
    step.results.push_back(newTensor());
  }
  return true;
}

/// Binds the carried names to `values`, which are what they were before.
static void rebind(Env &env, const Env &before, ArrayRef<std::string> carried,
                   ArrayRef<const Tensor *> values) {
  unsigned next = 0;
  for (const std::string &name : carried) {
    const Binding &old = before.names.find(name)->second;
    TensorVal tensor = old.tensor;
    tensor.value = values[next++];
    if (tensor.live)
      tensor.live = values[next++];
    env.names[name] = Binding::of(tensor, old.place);
  }
}

/// Is it a tensor that the next turn can take for the one before?
static bool isLike(const SizeTable &sizes, const Binding &now,
                   const TensorVal &old) {
  const TensorVal &tensor = now.tensor;
  if (now.kind != Binding::Tensor || tensor.elem != old.elem ||
      tensor.shape.size() != old.shape.size() ||
      bool(tensor.live) != bool(old.live))
    return false;
  return llvm::all_of(llvm::zip(tensor.shape, old.shape), [&](auto pair) {
    return sizes.equal(std::get<0>(pair), std::get<1>(pair));
  });
}

/// How a name that a turn binds anew is no longer what it was.
std::string Analysis::changed(StringRef name, const Binding &now,
                              const TensorVal &old) {
  auto text = [&](const TensorVal &tensor) {
    return spelling(tensor.elem).str() + str(tensor.shape);
  };
  if (now.kind != Binding::Tensor || text(now.tensor) == text(old))
    return {};
  return format("'{}' is {} before it and {} after a turn", name, text(old),
                text(now.tensor));
}

/// Has a tensor from outside another value after a turn, and is not carried?
static bool bindsMore(const Env &before, const Env &after,
                      ArrayRef<std::string> carried) {
  return llvm::any_of(before.names, [&](const auto &entry) {
    auto &[name, old] = entry;
    auto now = after.names.find(name);
    return old.kind == Binding::Tensor && !llvm::is_contained(carried, name) &&
           (now == after.names.end() || now->second.kind != Binding::Tensor ||
            now->second.tensor.value != old.tensor.value);
  });
}

/// Long: what a turn begins with, runs and leaves, and what is undone of it.
bool Analysis::rolledFor(const ForStmt &stmt, const Size &lo, const Size &hi,
                         Frame &frame, RolledFor &step, NumberTypes *types) {
  bool canUnroll = lo.constant() && hi.constant();
  step.place = stmt.range;
  step.lo = useOf(sizes, lo);
  step.hi = useOf(sizes, hi);
  std::vector<std::string> carried;
  if (!carry(stmt, *frame.env, step, carried, types))
    return false;
  llvm::SaveAndRestore into(sink, &step.body);

  Env before = *frame.env;
  auto constant = lo.constant();
  int64_t least = constant ? *constant : sizes.nonNegative(lo) ? 0 : INT64_MIN;
  Size turn = sizes.loop(stmt.var.text, least);
  step.turn = *turn.asAtom();
  loops.push_back({step.turn, lo, hi, &step.body});
  // What is checked in the body is known only where the body runs.
  auto factsBefore = sizes.facts();
  auto positiveBefore = positive;
  llvm::scope_exit leave([&] {
    if (!surelyRuns(loops.back())) {
      sizes.restoreFacts(factsBefore);
      positive = positiveBefore;
    }
    loops.pop_back();
  });
  Binding var = Binding::of(turn);
  var.place = stmt.var.range;
  frame.env->names[stmt.var.text.str()] = var;
  rebind(*frame.env, before, carried, step.inside);
  bool ok = execute(stmt.body.stmts, frame);
  if (frame.results)
    ok = error(stmt.range, "'return' inside a loop");
  for (const std::string &name : carried) {
    if (!ok)
      break;
    Binding &now = frame.env->names[name];
    const TensorVal &old = before.names[name].tensor;
    if (!canUnroll && now.isNumber() && old.shape.empty() &&
        takes(old.elem, numberType(now)))
      if (auto tensor = numberTensor(now, old.elem, now.place))
        now = Binding::of(*tensor, now.place);
    if (!isLike(sizes, now, old)) {
      needsUnroll = true;
      unlike = changed(name, now, old);
      ok = false;
      break;
    }
    step.yields.push_back(now.tensor.value);
    if (now.tensor.live)
      step.yields.push_back(now.tensor.live);
  }
  if (ok && types && !types->empty())
    for (auto &[name, type] : *types) {
      const Binding &now = frame.env->names[name];
      auto known = now.kind == Binding::Int ? now.size.constant() : 0;
      type = now.kind == Binding::Tensor         ? now.tensor.elem
             : !known || llvm::isInt<32>(*known) ? numberType(now)
                                                 : Ty::I64;
    }
  else if (types)
    types->clear();
  if (ok && bindsMore(before, *frame.env, carried)) {
    needsUnroll = true;
    ok = false;
  }
  *frame.env = before;
  if (!ok) {
    for (const std::string &name : carried)
      frame.env->names[name] = Binding();
    return false;
  }
  rebind(*frame.env, before, carried, step.results);
  return true;
}

bool Analysis::surelyRuns(const RolledLoop &loop) const {
  return sizes.nonNegative(loop.hi - loop.lo - 1);
}
