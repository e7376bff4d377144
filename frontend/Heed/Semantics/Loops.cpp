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

/// Does the function change the state that it calls so? One that calls itself
/// may.
bool Analysis::changes(const FnDecl &fn, StringRef state) {
  if (llvm::is_contained(asked, &fn))
    return true;
  asked.push_back(&fn);
  llvm::scope_exit leave([&] { asked.pop_back(); });
  std::vector<std::string> names;
  boundNames(fn.body.stmts, *fn.file, names);
  return llvm::is_contained(names, state);
}

static bool mentions(const Expr &expr, StringRef name) {
  auto *own = llvm::dyn_cast<NameExpr>(&expr);
  bool does = own && own->name == name;
  ast::forEachChild(expr,
                    [&](const Expr &part) { does |= mentions(part, name); });
  return does;
}

/// Does the left side leave a row of each step, at the position `step`?
static bool hasRow(const Left &left, StringRef step) {
  return llvm::any_of(left.indices, [&](const LeftIndex &item) {
    return item.kind == LeftIndex::Plain
               ? item.name.text == step
               : item.kind == LeftIndex::Affine && mentions(*item.expr, step);
  });
}

/// The names that have a row of each step, at any depth of a scan's block.
static void rowNames(const std::vector<StmtPtr> &stmts, StringRef step,
                     llvm::function_ref<void(StringRef)> add) {
  for (const StmtPtr &stmt : stmts)
    switch (stmt->kind) {
    case StmtKind::Equation:
      if (auto &left = cast<EquationStmt>(*stmt).left; hasRow(left, step))
        add(left.name.text);
      break;
    case StmtKind::For:
      rowNames(cast<ForStmt>(*stmt).body.stmts, step, add);
      break;
    case StmtKind::If:
      rowNames(cast<IfStmt>(*stmt).thenBlock.stmts, step, add);
      rowNames(cast<IfStmt>(*stmt).elseBlock.stmts, step, add);
      break;
    case StmtKind::Scan:
      rowNames(cast<ScanStmt>(*stmt).body.stmts, step, add);
      break;
    default:
      break;
    }
}

/// The names that a block binds, at any depth, and the states that its calls
/// change. Of a scan those are its states and what has a row of each step.
/// Long: one kind of statement after the other.
void Analysis::boundNames(const std::vector<StmtPtr> &stmts,
                          const ast::File &file,
                          std::vector<std::string> &names) {
  auto add = [&](StringRef name) {
    if (!llvm::is_contained(names, name))
      names.push_back(name.str());
  };
  auto addStates = [&](const Expr &right) {
    const FnDecl *fn = changesStates(right, file);
    if (!fn)
      return;
    auto &call = cast<CallExpr>(inParens(right));
    auto addState = [&](const Argument &formal, const Expr &given) {
      if (auto *name = llvm::dyn_cast<NameExpr>(&given);
          name && formal.isState && changes(*fn, formal.name.text))
        add(name->name);
    };
    for (auto [formal, given] : llvm::zip(fn->args, call.args))
      addState(formal, *given);
    for (const NamedArgument &given : call.named)
      for (const Argument &formal : fn->args)
        if (formal.name.text == given.name.text)
          addState(formal, *given.value);
  };
  for (const StmtPtr &stmt : stmts) {
    switch (stmt->kind) {
    case StmtKind::Equation:
      add(cast<EquationStmt>(*stmt).left.name.text);
      addStates(*cast<EquationStmt>(*stmt).right);
      break;
    case StmtKind::Call:
      addStates(*cast<CallStmt>(*stmt).call);
      break;
    case StmtKind::Bind:
      addStates(*cast<BindStmt>(*stmt).right);
      for (const Name &name : cast<BindStmt>(*stmt).names)
        add(name.text);
      break;
    case StmtKind::Param:
      add(cast<ParamStmt>(*stmt).name.text);
      break;
    case StmtKind::Const:
      add(cast<ConstStmt>(*stmt).name.text);
      break;
    case StmtKind::Let:
      add(cast<LetStmt>(*stmt).name.text);
      break;
    case StmtKind::For:
      boundNames(cast<ForStmt>(*stmt).body.stmts, file, names);
      break;
    case StmtKind::If:
      boundNames(cast<IfStmt>(*stmt).thenBlock.stmts, file, names);
      boundNames(cast<IfStmt>(*stmt).elseBlock.stmts, file, names);
      break;
    case StmtKind::Scan: {
      auto &scan = cast<ScanStmt>(*stmt);
      for (const Carried &state : scan.state)
        add(state.name.text);
      rowNames(scan.body.stmts, scan.var.text, add);
      break;
    }
    default:
      break;
    }
  }
}

/// What a block that has ended had for itself is not there any more.
void Analysis::noteEnded(const std::vector<StmtPtr> &stmts, StringRef text,
                         Range place, Env &env) {
  std::vector<std::string> names;
  boundNames(stmts, *env.file, names);
  for (const std::string &name : names)
    if (!env.names.count(name))
      env.ended.insert_or_assign(name, Note{place, text.str()});
}

/// After an error: what a block would have bound is not worth a message.
void Analysis::poison(const Stmt &stmt, Env &env) {
  std::vector<std::string> names;
  switch (stmt.kind) {
  case StmtKind::For:
    boundNames(cast<ForStmt>(stmt).body.stmts, *env.file, names);
    break;
  case StmtKind::If:
    boundNames(cast<IfStmt>(stmt).thenBlock.stmts, *env.file, names);
    boundNames(cast<IfStmt>(stmt).elseBlock.stmts, *env.file, names);
    break;
  case StmtKind::Scan:
    boundNames(cast<ScanStmt>(stmt).body.stmts, *env.file, names);
    for (const Carried &state : cast<ScanStmt>(stmt).state)
      names.push_back(state.name.text.str());
    break;
  case StmtKind::While:
    boundNames(cast<WhileStmt>(stmt).body.stmts, *env.file, names);
    for (const Carried &state : cast<WhileStmt>(stmt).state)
      names.push_back(state.name.text.str());
    break;
  default:
    break;
  }
  for (const std::string &name : names)
    env.names[name] = Binding();
}

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

/// The loop as a step, if each turn is the same code. If not, `again` says that
/// it is worth to be unrolled, or to be looked at again with the numbers in
/// `types` as tensors; all is as it was before, then.
/// Long: what is tried is undone.
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
    error(stmt.range, format("each turn of this loop is code of its own, "
                             "because a shape, a kind or a slice depends on "
                             "'{}': expected a range known when compiling "
                             "(--set gives a size)",
                             stmt.var.text));
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
  firstUpdate = firstUpdateBefore;
  tooManyCopies = false;
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
  loops.push_back({step.turn, lo, hi});
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
      type = now.kind == Binding::Tensor ? now.tensor.elem : numberType(now);
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
