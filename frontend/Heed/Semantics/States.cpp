//===- States.cpp - What lives from call to call --------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state is an input of every entry, and a result of those that change it: its
// name is bound anew by each line that defines it. Positions on a left side
// keep what stands elsewhere. They are proven to lie inside and to be distinct,
// or checked: before the first line that changes a state, unless they need what
// is known only later, as in a layer's turn. A function changes the states that
// it is given under names of its own.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::cast;
using llvm::dyn_cast;

/// The parts of an expression that stands for a position.
static void partsOf(const Expr &expr,
                    llvm::function_ref<void(const Expr &)> f) {
  switch (expr.kind) {
  case ExprKind::Paren:
    return f(*cast<ParenExpr>(expr).inner);
  case ExprKind::Negate:
    return f(*cast<NegateExpr>(expr).operand);
  case ExprKind::Binary:
    f(*cast<BinaryExpr>(expr).lhs);
    return f(*cast<BinaryExpr>(expr).rhs);
  case ExprKind::Call:
    for (const ExprPtr &arg : cast<CallExpr>(expr).args)
      f(*arg);
    return;
  case ExprKind::If:
    f(*cast<IfExpr>(expr).condition);
    f(*cast<IfExpr>(expr).thenValue);
    return f(*cast<IfExpr>(expr).elseValue);
  case ExprKind::Compare:
    for (const ExprPtr &operand : cast<CompareExpr>(expr).operands)
      f(*operand);
    return;
  case ExprKind::Read:
    for (const Index &index : cast<ReadExpr>(expr).indices)
      if (index.expr)
        f(*index.expr);
    return;
  default:
    return;
  }
}

/// A position of an update: an index over the whole axis, or an expression.
struct Analysis::UpdatePlace {
  Idx *idx = nullptr;
  const Expr *expr = nullptr;
  std::optional<Size> size; ///< of an expression without indices or data
};

/// The indices that a position names, in its order, and what it may not hold.
bool Analysis::addIndices(const Expr &expr, Scope &scope, Equation &eq,
                          llvm::SmallVectorImpl<Idx *> &indices) {
  auto known = [&](StringRef name) { return lookup(*scope.env, name); };
  auto *name = dyn_cast<NameExpr>(&expr);
  if (name && !known(name->name)) {
    if (scope.indices.count(name->name))
      return true;
    Idx *idx = newIndex(name->name, name->range, nullptr, scope, eq);
    if (!idx)
      return false;
    scope.indices[name->name.str()] = idx;
    indices.push_back(idx);
    return true;
  }
  // What a call is given is there before any line of it.
  StringRef read = name ? name->name
                   : expr.kind == ExprKind::Read
                       ? cast<ReadExpr>(expr).name.text
                       : StringRef();
  auto binding = read.empty() ? std::nullopt : known(read);
  bool isComputed = binding && ((binding->kind == Binding::Tensor &&
                                 binding->tensor.value->input.empty()) ||
                                binding->kind == Binding::Stacked ||
                                binding->kind == Binding::Collection ||
                                binding->kind == Binding::Thunk);
  if (isComputed || expr.kind == ExprKind::Reduce ||
      expr.kind == ExprKind::Softmax)
    return error(expr.range,
                 format("the call itself computes '{}': expected positions of "
                        "what it is given, inputs and states before they "
                        "change",
                        written(expr)));
  bool ok = true;
  partsOf(expr, [&](const Expr &part) {
    ok = ok && addIndices(part, scope, eq, indices);
  });
  return ok;
}

/// Is the size known where a state is first updated?
bool Analysis::isEarly(const Size &size) {
  if (sizes.isInLoop(size))
    return false;
  for (unsigned id = firstUpdate->atoms; id < sizes.numAtoms(); ++id)
    if (sizes.atom(id).kind == Atom::Dim && sizes.mentions(size, id))
      return false;
  return true;
}

/// Is all of a position, or a condition, known where a state is first updated?
bool Analysis::isEarly(const Expr &expr, const Scope &scope, Equation &eq) {
  auto *name = dyn_cast<NameExpr>(&expr);
  auto binding = name ? lookup(*scope.env, name->name) : std::nullopt;
  bool early =
      !binding || binding->kind != Binding::Int || isEarly(binding->size);
  for (const Idx *idx : info(expr, scope, eq).used)
    early = early && isEarly(*idx->extent);
  partsOf(expr,
          [&](const Expr &part) { early = early && isEarly(part, scope, eq); });
  return early;
}

/// Does `expr` have another value for each value of `idx`, whatever else is
/// given? Then it is, but for a ring's remainder, the index and something else.
/// `isAlone`: a ring that may be too small is an error of the call, as nothing
/// else tells its positions apart.
bool Analysis::isInjective(const Expr &expr, const Idx *idx, const Scope &scope,
                           Equation &eq, bool isAlone) {
  auto mentions = [&](const Expr &part) {
    return llvm::is_contained(info(part, scope, eq).used, idx);
  };
  const Expr &e = inParens(expr);
  if (auto *name = dyn_cast<NameExpr>(&e)) {
    auto it = scope.indices.find(name->name);
    return it != scope.indices.end() && it->second == idx;
  }
  auto *binary = dyn_cast<BinaryExpr>(&e);
  if (!binary)
    return false;
  bool left = mentions(*binary->lhs), right = mentions(*binary->rhs);
  if (binary->op == BinaryOp::Mod && left && !right) {
    const Info &ring = info(*binary->rhs, scope, eq);
    if (!ring.fixed || ring.fixed->kind != Binding::Int ||
        !isInjective(*binary->lhs, idx, scope, eq, isAlone))
      return false;
    bool fits = sizes.nonNegative(ring.fixed->size - *idx->extent);
    if (!fits && !isAlone)
      return false;
    if (!fits)
      requireLessEqual(*idx->extent, ring.fixed->size, expr.range,
                       format("'{}' runs over {} = {{0}} positions of a ring "
                              "of {} = {{1}}: expected no more than it has, in "
                              "one call",
                              idx->name, sizes.str(*idx->extent),
                              sizes.str(ring.fixed->size)));
    return true;
  }
  if ((binary->op != BinaryOp::Add && binary->op != BinaryOp::Sub) ||
      left == right)
    return false;
  return isInjective(left ? *binary->lhs : *binary->rhs, idx, scope, eq,
                     isAlone);
}

/// Is one position x // n and another x % n, and x another one for each value
/// of `idx`? They tell x apart together.
bool Analysis::areDigits(ArrayRef<UpdatePlace> places, const Idx *idx,
                         const Scope &scope, Equation &eq) {
  auto parts = [](const UpdatePlace &at) -> const BinaryExpr * {
    return at.expr && !at.size ? dyn_cast<BinaryExpr>(&inParens(*at.expr))
                               : nullptr;
  };
  auto same = [](const Expr &x, const Expr &y) {
    return written(inParens(x)) == written(inParens(y));
  };
  for (const UpdatePlace &high : places)
    for (const UpdatePlace &low : places) {
      const BinaryExpr *a = parts(high), *b = parts(low);
      if (!a || !b || b->op != BinaryOp::Mod ||
          (a->op != BinaryOp::Div && a->op != BinaryOp::FloorDiv) ||
          !same(*a->lhs, *b->lhs) || !same(*a->rhs, *b->rhs))
        continue;
      // A divisor of a call's data may be 0.
      const Info &by = info(*a->rhs, scope, eq);
      if (by.fixed && by.fixed->kind == Binding::Int &&
          isInjective(*a->lhs, idx, scope, eq, /*isAlone=*/false))
        return true;
    }
  return false;
}

/// Is it known that no two elements go to one place? Of indices that no axis
/// has for itself there is at most one, and it tells positions of an axis
/// apart. Where something else may tell them apart, too, another position or a
/// condition, what is not known is left to a check of the places.
bool Analysis::areDistinct(ArrayRef<UpdatePlace> places,
                           ArrayRef<Idx *> indices, bool isGuarded,
                           const Scope &scope, Equation &eq) {
  SmallVector<Idx *> shared;
  for (Idx *idx : indices)
    if (llvm::none_of(places,
                      [&](const UpdatePlace &at) { return at.idx == idx; }))
      shared.push_back(idx);
  if (shared.size() != 1)
    return shared.empty();
  auto mentions = [&](const UpdatePlace &at) {
    return at.expr && !at.size &&
           llvm::is_contained(info(*at.expr, scope, eq).used, shared[0]);
  };
  bool isAlone = !isGuarded && llvm::count_if(places, mentions) == 1;
  return llvm::any_of(places,
                      [&](const UpdatePlace &at) {
                        return mentions(at) && isInjective(*at.expr, shared[0],
                                                           scope, eq, isAlone);
                      }) ||
         areDigits(places, shared[0], scope, eq);
}

/// A position or a condition as data, over the indices that it names; where a
/// guard does not hold it is 0.
std::optional<UpdateState::Position>
Analysis::overIndices(const Expr &expr, Ty ty, const Scope &scope, Equation &eq,
                      ArrayRef<Idx *> indices) {
  SmallVector<Idx *, 4> needed(info(expr, scope, eq).used);
  addGuardIndices(eq, needed);
  UpdateState::Position position;
  SmallVector<Idx *> used;
  for (auto [number, idx] : llvm::enumerate(indices))
    if (llvm::is_contained(needed, idx)) {
      position.indices.push_back(number);
      used.push_back(idx);
    }
  auto value = [&](Body &body) -> Node * {
    Node *x = resolve(body, expr, scope, eq);
    return x && ty == Ty::I64 ? newNode(Node::Shift, ty, expr.range, x) : x;
  };
  auto tensor =
      elementwise(used, ty, expr.range, false, [&](Body &body) -> Node * {
        if (eq.guards.empty())
          return value(body);
        return underGuards(
            body, eq, 0, ty, expr.range, [&] { return value(body); },
            newNode(Node::Zero, Ty::I64, expr.range));
      });
  if (!tensor)
    return std::nullopt;
  position.tensor = tensor->value;
  return position;
}

/// Where the line writes: each axis by an index of its own, or at positions.
bool Analysis::placesOf(const Left &left, const Shape &shape, Scope &scope,
                        Equation &eq, std::vector<UpdatePlace> &places,
                        llvm::SmallVectorImpl<Idx *> &indices) {
  if (left.indices.size() != shape.size())
    return error(left.range, format("'{}' has {}, {} are given", left.name.text,
                                    counted(shape.size(), "axis", "axes"),
                                    left.indices.size()));
  for (auto [k, item] : llvm::enumerate(left.indices)) {
    UpdatePlace &at = places.emplace_back();
    if (item.kind == LeftIndex::Dots)
      return error(item.range, "'..' on the left side of an update");
    if (item.kind == LeftIndex::Affine) {
      at.expr = item.expr.get();
    } else if (!isPosition(item, *scope.env)) {
      at.idx =
          leftIndex(item.name.text, item.range, item.extent.get(), scope, eq);
      if (!at.idx)
        return false;
      eq.uses.push_back({at.idx, shape[k],
                         format("'{}' (axis {})", left.name.text, k),
                         item.range, false});
    } else {
      NameExpr &name = plainPositions.emplace_back();
      name.name = item.name.text;
      name.range = item.range;
      at.expr = &name;
    }
  }
  // After the plain ones: an index is that of its own axis.
  bool ok = true;
  for (UpdatePlace &at : places) {
    if (at.idx) {
      indices.push_back(at.idx);
      continue;
    }
    ReadExpr as;
    as.name = left.name;
    as.range = left.range;
    Info all;
    size_t before = indices.size();
    auto *name = dyn_cast<NameExpr>(&inParens(*at.expr));
    auto known = name ? lookup(*scope.env, name->name) : std::nullopt;
    // A size alone, also the turn of a loop.
    if (!known || known->kind != Binding::Int)
      ok = ok && addIndices(*at.expr, scope, eq, indices);
    const Info *i =
        ok ? inferPosition(as, *at.expr, scope, eq, false, all) : nullptr;
    ok = i;
    if (i && i->fixed && i->fixed->kind == Binding::Int &&
        indices.size() == before)
      at.size = i->fixed->size;
  }
  return ok;
}

/// Each axis of the state as an index of the values or a position, which lies
/// inside.
bool Analysis::resolvePlaces(const Left &left, const Shape &shape,
                             ArrayRef<UpdatePlace> places,
                             ArrayRef<Idx *> indices, const Scope &scope,
                             bool early, Equation &eq, UpdateState &step) {
  for (auto [k, at] : llvm::enumerate(places)) {
    const Size &extent = shape[k];
    std::string what = format("'{}' (axis {})", left.name.text, k);
    if (at.idx) {
      step.axes.push_back(llvm::find(indices, at.idx) - indices.begin());
      if (!requireEqual(*at.idx->extent, extent, left.range,
                        format("index '{}' runs over {}, but {} has {}",
                               at.idx->name, describe(*at.idx->extent), what,
                               describe(extent)),
                        {}))
        return false;
      continue;
    }
    step.axes.push_back(-int64_t(step.positions.size()) - 1);
    if (at.size) {
      if ((!sizes.nonNegative(*at.size) ||
           !sizes.nonNegative(extent - *at.size - 1)) &&
          !checkRange(*at.size, *at.size, extent, what, left.range))
        return false;
      step.positions.push_back({nullptr, {}, useOf(sizes, *at.size)});
      continue;
    }
    Item item{nullptr, at.expr};
    ReadExpr as;
    as.name = left.name;
    as.range = left.range;
    llvm::SaveAndRestore into(sink, early ? &checks : sink);
    if (!proven(item, extent, scope, eq) &&
        !checkAxis(as, k, item, extent, scope, eq))
      return false;
    auto position = overIndices(*at.expr, Ty::I64, scope, eq, indices);
    if (!position)
      return false;
    step.positions.push_back(*position);
  }
  return true;
}

/// Long: one decision after the other about the same line.
bool Analysis::executeUpdate(const Left &left, const Expr &right,
                             const Expr *where, Frame &frame, Binding &result) {
  EnvPtr env = frame.env;
  const TensorVal old = env->names.find(left.name.text)->second.tensor;
  if (!scans.empty())
    return error(left.range,
                 format("the state '{}' is updated in a scan", left.name.text));
  Scope scope;
  scope.env = env;
  Equation eq;
  eq.wholeAllowed = false;
  std::vector<UpdatePlace> places;
  SmallVector<Idx *> indices;
  if (!placesOf(left, old.shape, scope, eq, places, indices))
    return false;
  if (where) {
    const Info *i = addIndices(*where, scope, eq, indices)
                        ? infer(*where, scope, eq)
                        : nullptr;
    if (!i || !boolean(*i, where->range, "the condition of an update"))
      return false;
  }
  auto row = rightSide(right, scope, eq, indices);
  if (!row)
    return false;
  if (!takes(old.elem, row->elem))
    return error(left.range,
                 format("an element of '{}' is {}, expected {}: write {}( )",
                        left.name.text, spelling(row->elem), spelling(old.elem),
                        spelling(old.elem)));
  row->live = nullptr; // what is absent is 0
  auto input = llvm::find_if(entry.inputs, [&](const ModelInput &one) {
    return one.isState && one.name == left.name.text;
  });
  // In memory a state may be of a narrower type.
  Ty held = input == entry.inputs.end() ? old.elem : input->held;
  if (row->elem != held)
    row = convert(*row, held, left.range);
  UpdateState step;
  step.from = old.value;
  step.values = row->value;
  step.place = left.range;
  step.name = left.name.text.str();
  // A loop's step comes behind those of its turns: what they bind is late.
  if (!firstUpdate)
    firstUpdate = {entry.steps.size(),
                   loops.empty() ? sizes.numAtoms() : loops.front().turn};
  bool early = !where || isEarly(*where, scope, eq);
  for (const UpdatePlace &at : places)
    early = early && (!at.expr || at.size || isEarly(*at.expr, scope, eq));
  {
    llvm::SaveAndRestore into(sink, early ? &checks : sink);
    step.isDistinct = areDistinct(places, indices, where, scope, eq);
    if (where) {
      auto mask = overIndices(*where, Ty::Bool, scope, eq, indices);
      if (!mask)
        return false;
      step.where = *mask;
      eq.guards.push_back({where, true, &scope, nullptr});
    }
  }
  if (!resolvePlaces(left, old.shape, places, indices, scope, early, eq, step))
    return false;
  TensorVal whole = old;
  whole.value = step.to = newTensor();
  sink->push_back(std::move(step));
  result = Binding::of(whole, left.name.range);
  return true;
}

/// Is it a state of the model, and no name that a scan around carries?
bool Analysis::isModelState(StringRef name, const Env &env) {
  return env.states.count(name) && !isState(name, env);
}

/// Binds a name. A state keeps its type; what does not fit it is told at the
/// end of the call.
bool Analysis::assign(const Name &name, Binding value, Env &env) {
  Binding &now = env.names[name.text.str()];
  const Binding before = now;
  now = value;
  now.place = name.range;
  if (!isModelState(name.text, env) || before.kind != Binding::Tensor ||
      value.kind == Binding::Poison)
    return true;
  if (!scans.empty())
    return error(name.range,
                 format("the state '{}' is assigned in a scan", name.text));
  auto tensor = resultTensor(now, now.place);
  if (!tensor || tensor->shape.size() != before.tensor.shape.size() ||
      !takes(before.tensor.elem, tensor->elem))
    return true;
  tensor->live = nullptr; // what is absent is 0
  if (tensor->elem != before.tensor.elem)
    tensor = convert(*tensor, before.tensor.elem, now.place);
  now = Binding::of(*tensor, now.place);
  return true;
}

/// Each state that the entry has changed is a result.
bool Analysis::finishStates(Frame &frame) {
  bool ok = true;
  for (const Argument &state : states) {
    StringRef name = state.name.text;
    auto input = llvm::find_if(entry.inputs, [&](const ModelInput &one) {
      return one.isState && one.name == name;
    });
    const Binding &now = frame.env->names[name.str()];
    if (now.kind == Binding::Tensor && now.tensor.value == input->tensor)
      continue;
    TensorVal start{input->tensor, input->elem, input->shape};
    const Tensor *after = afterStep(state.name, start, now, "after a call");
    ok &= bool(after);
    entry.outputs.push_back(
        {name.str(), after, input->dimNames, input->elem, start.shape, true});
  }
  if (firstUpdate)
    entry.steps.insert(entry.steps.begin() + firstUpdate->step,
                       std::make_move_iterator(checks.begin()),
                       std::make_move_iterator(checks.end()));
  return ok;
}
