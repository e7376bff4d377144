//===- Scans.cpp - Recurrences --------------------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The body of a scan is analysed once, with its variable unknown. A state is
// bound anew by each line that defines it. A line with the variable on its left
// side leaves a row: in the body its name stands for the row of this step alone
// (Binding::Stacked), behind it for the rows of all steps.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;

Shape Stacked::shape() const {
  Shape shape = row.shape;
  for (const Axis &one : axes)
    shape.insert(shape.begin() + one.axis, one.extent);
  return shape;
}

/// Does the size depend on the step of a scan around?
bool Analysis::isStep(const Size &size) {
  return llvm::any_of(scans, [&](const OpenScan &scan) {
    return sizes.mentions(size, scan.turn);
  });
}

bool Analysis::isState(StringRef name, const Env &env) {
  return llvm::any_of(scans, [&](const OpenScan &scan) {
    return scan.env == &env && llvm::is_contained(scan.states, name);
  });
}

//===----------------------------------------------------------------------===//
// The statement
//===----------------------------------------------------------------------===//

/// What a state is before the first step: a whole tensor, or one value.
/// Long: a whole tensor first, of which each axis may differ, then one value.
std::optional<TensorVal> Analysis::startOf(const Carried &state,
                                           const EnvPtr &env) {
  StringRef name = state.name.text;
  auto shape = shapeOf(*state.type, env, format("'{}'", name));
  if (!shape)
    return std::nullopt;
  if (!state.type->element) {
    error(state.type->range, "a state needs an element type");
    return std::nullopt;
  }
  auto elem = tyOf(*state.type->element, state.type->range);
  if (!elem)
    return std::nullopt;
  const Expr &init = *state.init;
  Scope scope;
  scope.env = env;
  Equation eq;
  const Info *i = infer(init, scope, eq);
  if (!i)
    return std::nullopt;
  if (i->isNoValue() || !takes(*elem, i->ty)) {
    error(init.range,
          format("'{}' starts with {}, expected {}", name,
                 i->isNoValue() ? kindOf(*i) : spelling(i->ty).str(),
                 spelling(*elem)));
    return std::nullopt;
  }
  if (i->whole) {
    Binding whole;
    if (!lowerWhole(init, scope, nullptr, whole))
      return std::nullopt;
    auto tensor = tensorOf(whole, init.range);
    if (!tensor)
      return std::nullopt;
    if (tensor->shape.size() != shape->size()) {
      error(init.range,
            format("'{}' starts with {}, expected {}", name,
                   counted(tensor->shape.size(), "axis", "axes"),
                   shape->size()),
            Note{state.name.range, "declared here"});
      return std::nullopt;
    }
    for (auto [k, pair] : llvm::enumerate(llvm::zip(tensor->shape, *shape))) {
      auto [given, declared] = pair;
      if (!requireEqual(given, declared, init.range,
                        format("'{}' starts with {} in axis {}, expected {}",
                               name, sizes.str(given), k, sizes.str(declared)),
                        Note{state.name.range, "declared here"}))
        return std::nullopt;
    }
    tensor->shape = *shape;
    return tensor->elem == *elem ? *tensor
                                 : convert(*tensor, *elem, init.range);
  }
  for (const Size &extent : *shape) {
    Idx &idx = newIdx(eq);
    idx.extent = extent;
    idx.declared = true;
    eq.whole.push_back(&idx);
  }
  if (!solve(eq))
    return std::nullopt;
  return elementwise(eq.whole, *elem, init.range, false, [&](Body &body) {
    return i->fixed ? fixedNode(*i->fixed, init.range)
                    : resolve(body, init, scope, eq);
  });
}

/// The state after a step, or a call, with the type that it was declared with.
const Tensor *Analysis::afterStep(const Name &state, const TensorVal &start,
                                  const Binding &now, StringRef when) {
  StringRef name = state.text;
  auto fail = [&](const llvm::Twine &found, const llvm::Twine &expected) {
    error(now.place,
          format("the state '{}' is {} {}, expected {}", name, found.str(),
                 when, expected.str()),
          Note{state.range, "declared here"});
    return nullptr;
  };
  if (now.kind == Binding::Poison)
    return nullptr;
  auto tensor = resultTensor(now, now.place);
  if (!tensor || tensor->shape.size() != start.shape.size())
    return fail(tensor ? str(tensor->shape) : kindOf(now), str(start.shape));
  for (auto [after, declared] : llvm::zip(tensor->shape, start.shape))
    if (!requireEqual(after, declared, now.place,
                      format("the state '{}' is {} {}, expected {}", name,
                             str(tensor->shape), when, str(start.shape)),
                      Note{state.range, "declared here"}))
      return nullptr;
  if (!takes(start.elem, tensor->elem))
    return fail(
        spelling(tensor->elem),
        format("{}: write {}( )", spelling(start.elem), spelling(start.elem)));
  tensor->live = nullptr; // what is absent is 0
  if (tensor->elem != start.elem)
    tensor = convert(*tensor, start.elem, now.place);
  return tensor->value;
}

/// What the names that steps leave are behind the scan.
void Analysis::stackRows(const OpenScan &scan, const Env &env, Scan &step,
                         std::map<std::string, Binding> &stacks) {
  for (auto &[name, binding] : env.names) {
    if (binding.kind != Binding::Stacked)
      continue;
    Stacked rest = *binding.stacked;
    const auto *own = llvm::find_if(
        rest.axes, [&](const auto &axis) { return axis.turn == scan.turn; });
    if (own == rest.axes.end())
      continue;
    // Where the axis stands in the row of the scan around, if there is one.
    unsigned axis = own->axis;
    for (const Stacked::Axis &other : rest.axes)
      axis -= other.axis < own->axis;
    TensorVal &row = rest.row;
    auto stack = [&](const Tensor *of, Ty elem) {
      const Tensor *result = newTensor();
      Shape shape = row.shape;
      shape.insert(shape.begin() + axis, scan.hi - scan.lo);
      step.stacks.push_back(
          {of, result, elem, axis, own->isReversed, uses(shape)});
      return result;
    };
    row.value = stack(row.value, row.elem);
    if (row.live)
      row.live = stack(row.live, Ty::Bool);
    row.shape.insert(row.shape.begin() + axis, scan.hi - scan.lo);
    rest.axes.erase(own);
    Binding &result = stacks[name];
    result = Binding::of(row, binding.place);
    if (!rest.axes.empty()) {
      result.kind = Binding::Stacked;
      result.stacked = std::make_shared<Stacked>(rest);
    }
  }
}

/// Long: what is open in the body is closed behind it.
bool Analysis::executeScan(const ScanStmt &stmt, Frame &frame) {
  auto range = loopRange("scan", stmt.var, *stmt.lo, *stmt.hi, frame.env);
  if (!range)
    return false;
  Size lo = range->first, hi = range->second;
  if (!sizes.nonNegative(hi - lo)) {
    if (sizes.nonNegative(lo - hi - 1))
      return error(stmt.hi->range, format("the scan goes from {} to {}: it "
                                          "ends before it begins",
                                          sizes.str(lo), sizes.str(hi)));
    requireLessEqual(lo, hi, stmt.hi->range,
                     "the scan goes from {0} to {1}: it ends before it begins");
  }
  Scan step;
  step.place = stmt.range;
  step.lo = useOf(sizes, lo);
  step.hi = useOf(sizes, hi);
  std::vector<TensorVal> starts;
  OpenScan scan{0, lo, hi, frame.env.get(), {}};
  for (const Carried &state : stmt.state) {
    if (llvm::is_contained(scan.states, state.name.text))
      return error(state.name.range,
                   format("two states are called '{}'", state.name.text));
    auto start = startOf(state, frame.env);
    if (!start)
      return false;
    starts.push_back(*start);
    step.starts.push_back(start->value);
    step.inside.push_back(newTensor());
    step.results.push_back(newTensor());
    scan.states.push_back(state.name.text.str());
  }

  Env before = *frame.env;
  auto bindStates = [&](ArrayRef<const Tensor *> values) {
    for (auto [state, start, value] : llvm::zip(stmt.state, starts, values)) {
      TensorVal tensor = start;
      tensor.value = value;
      frame.env->names[state.name.text.str()] =
          Binding::of(tensor, state.name.range);
    }
  };
  std::map<std::string, Binding> stacks;
  auto body = [&] {
    llvm::SaveAndRestore into(sink, &step.body);
    auto constant = lo.constant();
    int64_t least = constant                ? *constant
                    : sizes.nonNegative(lo) ? 0
                                            : INT64_MIN;
    Size turn = sizes.loop(stmt.var.text, least);
    scan.turn = step.turn = *turn.asAtom();
    loops.push_back({step.turn, lo, hi, &step.body});
    scans.push_back(scan);
    ++rolled;
    // What is checked in the body is known only where the body runs.
    auto factsBefore = sizes.facts();
    auto positiveBefore = positive;
    llvm::scope_exit leave([&] {
      if (!surelyRuns(loops.back())) {
        sizes.restoreFacts(factsBefore);
        positive = positiveBefore;
      }
      loops.pop_back();
      scans.pop_back();
      --rolled;
    });
    Binding var = Binding::of(turn);
    var.place = stmt.var.range;
    frame.env->names[stmt.var.text.str()] = var;
    bindStates(step.inside);
    if (!execute(stmt.body.stmts, frame))
      return false;
    if (frame.results)
      return error(stmt.range, "'return' inside a scan");
    for (auto [state, start] : llvm::zip(stmt.state, starts)) {
      const Tensor *after =
          afterStep(state.name, start, frame.env->names[state.name.text.str()],
                    "after a step");
      if (!after)
        return false;
      step.after.push_back(after);
    }
    stackRows(scan, *frame.env, step, stacks);
    return true;
  };
  bool ok = body();
  *frame.env = before;
  if (needsUnroll && !speculating)
    return error(stmt.range,
                 format("the steps of a scan are one code: no shape, kind or "
                        "slice of a collection may depend on '{}'",
                        stmt.var.text));
  if (!ok)
    return false;
  if (!stacks.empty() && namedInteger(*stmt.hi, *frame.env))
    return error(
        stmt.hi->range,
        format("'{}' has a row of each step, and how many there are is "
               "no size: expected a dim, found the run-time scalar {}",
               stacks.begin()->first, sizes.str(hi)));
  bindStates(step.results);
  for (auto &[name, binding] : stacks)
    frame.env->names[name] = binding;
  sink->push_back(std::move(step));
  return true;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// What `y[.., t, ..]` on a left side makes of `row`, which is over the axes
/// without a position.
std::optional<Binding> Analysis::asRow(const TensorVal &row,
                                       ArrayRef<std::optional<Size>> positions,
                                       const Env &env, Range place) {
  auto stacked = std::make_shared<Stacked>();
  stacked->row = row;
  for (auto [axis, position] : llvm::enumerate(positions)) {
    if (!position)
      continue;
    const OpenScan *of = nullptr;
    bool isReversed = false;
    std::string either;
    for (const OpenScan &scan : scans)
      if (scan.env == &env && sizes.mentions(*position, scan.turn)) {
        of = &scan;
        either = format(", {} or {}", sizes.str(Size::atom(scan.turn)),
                        sizes.str(scan.reversed()));
        isReversed = sizes.equal(*position, scan.reversed());
        if (!isReversed && *position != Size::atom(scan.turn))
          of = nullptr;
      }
    bool isTwice = of && llvm::any_of(stacked->axes, [&](const auto &other) {
                     return other.turn == of->turn;
                   });
    if (!of || isTwice) {
      error(place,
            format("a position on the left side is {}, expected the "
                   "step of a scan, or counted back from its last one{}, "
                   "each in one place",
                   sizes.str(*position), either));
      return std::nullopt;
    }
    stacked->axes.push_back(
        {unsigned(axis), of->turn, *position, of->hi, isReversed});
  }
  Binding binding = Binding::of(row, place);
  binding.kind = Binding::Stacked;
  binding.stacked = stacked;
  return binding;
}

/// The state with a row at positions of its axes.
std::optional<TensorVal>
Analysis::updated(const TensorVal &state, const TensorVal &row,
                  ArrayRef<std::optional<Size>> positions, StringRef name,
                  Range place) {
  WriteRow step;
  Shape rest;
  for (auto [k, position] : llvm::enumerate(positions)) {
    const Size &extent = state.shape[k];
    if (!position) {
      rest.push_back(extent);
      continue;
    }
    if ((!sizes.nonNegative(*position) ||
         !sizes.nonNegative(extent - *position - 1)) &&
        !checkRange(*position, *position, extent,
                    format("'{}' (axis {})", name, k), place))
      return std::nullopt;
    step.axes.push_back(k);
    step.positions.push_back(useOf(sizes, *position));
  }
  for (auto [own, extent] : llvm::zip(row.shape, rest))
    if (!requireEqual(own, extent, place,
                      format("a row of '{}' is {}, expected {}", name,
                             str(row.shape), str(rest)),
                      {}))
      return std::nullopt;
  if (!takes(state.elem, row.elem)) {
    error(place, format("a row of '{}' is {}, expected {}: write {}( )", name,
                        spelling(row.elem), spelling(state.elem),
                        spelling(state.elem)));
    return std::nullopt;
  }
  TensorVal converted =
      row.elem == state.elem ? row : convert(row, state.elem, place);
  step.from = state.value;
  step.row = converted.value;
  step.to = newTensor();
  step.shape = uses(rest);
  step.place = place;
  TensorVal result = state;
  result.value = step.to;
  sink->push_back(std::move(step));
  return result;
}

/// The row of this step that `name[..]` reads; its axes go from `items`.
std::optional<TensorVal>
Analysis::rowOfStep(const ReadExpr &expr, const Stacked &stacked,
                    const Scope &scope, Equation &eq,
                    llvm::SmallVectorImpl<Item> &items) {
  for (const Stacked::Axis &axis : llvm::reverse(stacked.axes)) {
    const Item &item = items[axis.axis];
    const Info *i = item.idx ? nullptr : &info(*item.expr, scope, eq);
    if (!i || !i->fixed || !sizes.equal(i->fixed->size, axis.position)) {
      error(item.expr ? item.expr->range : expr.range,
            format("only the row of this step of '{}' is there: expected the "
                   "position {}; rows of earlier steps are those of a state",
                   expr.name.text, sizes.str(axis.position)));
      return std::nullopt;
    }
    items.erase(items.begin() + axis.axis);
  }
  return stacked.row;
}

/// Positions that depend on the step alone, and of a state of the model those
/// that are sizes, are those of a row, which is a tensor of its own where it is
/// known to lie inside.
bool Analysis::takeRow(const ReadExpr &expr, const Scope &scope, Equation &eq,
                       llvm::SmallVectorImpl<Item> &items, TensorVal &tensor) {
  ReadRow step;
  Shape rest;
  SmallVector<Item> others;
  for (auto [k, item] : llvm::enumerate(items)) {
    const Info *i = item.idx ? nullptr : &info(*item.expr, scope, eq);
    if (!i || !i->fixed || i->fixed->kind != Binding::Int ||
        !(isStep(i->fixed->size) || scope.env->states.count(expr.name.text))) {
      rest.push_back(tensor.shape[k]);
      others.push_back(item);
      continue;
    }
    step.axes.push_back(k);
    step.positions.push_back(useOf(sizes, i->fixed->size));
  }
  if (step.axes.empty())
    return true;
  if (!checkRead(expr, scope, eq))
    return false;
  if (!eq.guards.empty() && !provenRead(expr, scope, eq))
    return true; // a guard alone keeps it inside
  step.shape = uses(rest);
  step.place = expr.range;
  auto take = [&](const Tensor *from) {
    step.from = from;
    step.to = newTensor();
    sink->push_back(step);
    return step.to;
  };
  tensor.value = take(tensor.value);
  if (tensor.live)
    tensor.live = take(tensor.live);
  tensor.shape = rest;
  items.assign(others.begin(), others.end());
  return true;
}
