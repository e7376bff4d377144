//===- Ranges.cpp - Are reads in range? -----------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A read is proven, from the ranges of its indices and the guards around it; or
// checked once per call, where it depends on sizes; or checked in a pass over
// the positions, where it depends on data. Likewise divisors.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"
#include "support/Format.h"

#include "llvm/ADT/STLExtras.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::Twine;

Shape Analysis::shapeOf(const Binding &binding) {
  switch (binding.kind) {
  case Binding::Tensor:
    return binding.tensor.shape;
  case Binding::Collection:
    return binding.collection->shape;
  case Binding::Stacked:
    return binding.stacked->shape();
  case Binding::Table:
  case Binding::List:
    return binding.table->extents();
  default:
    return {};
  }
}

/// What stands between the brackets, as a form.
Form Analysis::form(const Item &item, const Scope &scope, Equation &eq,
                    Reach &reach) {
  return item.idx ? Form::variable(variable(reach, item.idx))
                  : form(*item.expr, scope, eq, reach);
}

/// Is the position `item` of an axis of extent `extent` in range by the ranges
/// of its indices alone?
bool Analysis::proven(const Item &item, const Size &extent, const Scope &scope,
                      Equation &eq) {
  if (item.idx) {
    if (sizes.equal(*item.idx->extent, extent) ||
        sizes.nonNegative(extent - *item.idx->extent))
      return true;
    // A declared range was checked, unless it is read in a branch only.
    return llvm::any_of(eq.uses, [&](const Equation::Use &use) {
      return use.idx == item.idx && !use.weak && use.extent == extent;
    });
  }
  Bounds range = bounds(*item.expr, scope, eq);
  SmallVector<unsigned> atoms = positiveAtoms(info(*item.expr, scope, eq).used);
  bool low = llvm::any_of(
      range.lower, [&](const Size &s) { return sizes.nonNegative(s, atoms); });
  bool high = llvm::any_of(range.upper, [&](const Size &s) {
    return sizes.nonNegative(extent - 1 - s, atoms);
  });
  if (low && high)
    return true;
  Reach around = reach(eq, false);
  Form at = form(item, scope, eq, around);
  return around.points.ask({{-at - Form(1)}}).kind == Points::Answer::Never &&
         around.points.ask({{at - Form(extent)}}).kind == Points::Answer::Never;
}

bool Analysis::provenRead(const ReadExpr &expr, const Scope &scope,
                          Equation &eq) {
  std::pair key{Key{&expr, scope.env.get()}, running};
  if (auto it = eq.proven.find(key); it != eq.proven.end())
    return it->second;
  SmallVector<Item> axes;
  bool all = items(expr, scope, axes);
  Shape shape = shapeOf(*lookup(*scope.env, expr.name.text));
  for (auto [item, size] : llvm::zip(axes, shape))
    all = all && proven(item, size, scope, eq);
  return eq.proven[key] = all;
}

/// Proves, or checks, that a read is in range where it is reached.
bool Analysis::checkRead(const ReadExpr &expr, const Scope &scope,
                         Equation &eq) {
  if (provenRead(expr, scope, eq) || !firstUnderGuards(expr, scope, eq))
    return true;
  SmallVector<Item> axes;
  if (!items(expr, scope, axes))
    return false;
  Shape shape = shapeOf(*lookup(*scope.env, expr.name.text));
  for (auto [k, pair] : llvm::enumerate(llvm::zip(axes, shape))) {
    auto &[item, extent] = pair;
    if (proven(item, extent, scope, eq))
      continue;
    if (!checkAxis(expr, k, item, extent, scope, eq))
      return false;
  }
  return true;
}

/// False if the same place was treated under these guards already: an inlined
/// expression may stand under several.
bool Analysis::firstUnderGuards(const Expr &expr, const Scope &scope,
                                Equation &eq) {
  return eq.checked
      .insert({{&expr, scope.env.get()}, guardsFrom(eq, 0), running})
      .second;
}

/// One check per call that none of the cases in `when` is at hand.
void Analysis::requireNone(const Points::Answer &answer, Range place,
                           const Twine &message, ArrayRef<Size> values) {
  for (ArrayRef<Points::Condition> all : answer.when) {
    SmallVector<Size> parts;
    std::string text;
    for (const Points::Condition &condition : all) {
      // size >= 0 does not hold: its negative part is above the positive one.
      Size positive, negative;
      for (auto &[monomial, factor] : condition.size.terms)
        (factor > 0 ? positive : negative).terms[monomial] = abs(factor);
      if (condition.tells)
        text += heed::format("{}{} < {}", (text.empty() ? "" : " or "),
                             sizes.str(positive), sizes.str(negative));
      parts.append({positive, negative});
    }
    require(Require::AnyLess, parts, place, message + escape(text), values);
  }
}

bool Analysis::checkAxis(const ReadExpr &expr, unsigned axis, const Item &item,
                         const Size &extent, const Scope &scope, Equation &eq) {
  Range place = item.expr ? item.expr->range : expr.range;
  std::string what = format("'{}' (axis {})", expr.name.text, axis);
  SmallVector<Idx *, 4> used;
  Bounds range;
  if (item.idx) {
    used = {item.idx};
    range.lower = {Size(0)};
    range.upper = {*item.idx->extent - 1};
    range.exact = true;
  } else {
    used = info(*item.expr, scope, eq).used;
    range = bounds(*item.expr, scope, eq);
  }
  if (eq.guards.empty() && range.exact && range.lower.size() == 1 &&
      range.upper.size() == 1)
    return checkRange(range.lower[0], range.upper[0], extent, what, place);
  Reach around = reach(eq, true);
  Form position = form(item, scope, eq, around);
  Points::Answer under = around.points.ask({{-position - Form(1)}}),
                 over = around.points.ask({{position - Form(extent)}});
  using Answer = Points::Answer;
  for (const Answer &answer : {under, over})
    if (answer.kind == Answer::Always)
      return error(
          place,
          format("the index of {} is outside its extent {} in spite of its "
                 "guards{}",
                 what, sizes.str(extent),
                 (answer.sample.empty()
                      ? ""
                      : heed::format(", as for {}", answer.sample))));
  auto isDecided = [](const Answer &answer) {
    return answer.kind == Answer::Never || answer.kind == Answer::BySizes;
  };
  if (!isDecided(under) || !isDecided(over))
    return checkData(item, under.kind != Answer::Never,
                     over.kind != Answer::Never, extent, used, what, place,
                     scope, eq);
  for (const Answer &answer : {under, over}) {
    evaluate(extent, place);
    requireNone(
        answer, place,
        format("a guarded index of {} leaves its extent {} = {{0}}, expected ",
               what, escape(sizes.str(extent))),
        extent);
  }
  return true;
}

/// `end` at the turns of the loops around where it is greatest, or least, if
/// that is known.
Size Analysis::overLoops(Size end, bool greatest) {
  for (const RolledLoop &loop : llvm::reverse(loops)) {
    if (!sizes.mentions(end, loop.turn))
      continue;
    // Between its values in two turns that follow one another lies the same
    // number everywhere, if it is linear.
    Size turn = Size::atom(loop.turn);
    Size step = sizes.substitute(end, loop.turn, turn + 1) - end;
    bool grows = sizes.nonNegative(step);
    if (sizes.mentions(step, loop.turn) ||
        (!grows && !sizes.nonNegative(-step)))
      return end;
    end = sizes.substitute(end, loop.turn,
                           grows == greatest ? loop.hi - 1 : loop.lo);
  }
  return end;
}

/// A position that runs from `first` to `last`, both reached where the loops
/// run.
bool Analysis::checkRange(const Size &first, const Size &last,
                          const Size &extent, const std::string &what,
                          Range place) {
  Size low = first, high = last;
  if (!sizes.isInLoop(extent)) {
    low = overLoops(first, false);
    high = overLoops(last, true);
  }
  SmallVector<unsigned> atoms = positiveAtoms(running);
  bool under = sizes.nonNegative(-low - 1, atoms);
  bool over = sizes.nonNegative(high - extent, atoms);
  if (under || over)
    return error(
        place,
        format("the index of {} runs from {} to {}, outside its extent {}; "
               "{}",
               what, sizes.str(low), sizes.str(high), sizes.str(extent),
               low == high && low.constant() && !extent.is(0)
                   ? heed::format("positions count from 0, the last is {}",
                                  sizes.str(extent - 1))
                   : "move the read under a 'where' or an 'if' that keeps it "
                     "inside"));
  // Sizes decide: one check per call, void where a loop is empty.
  SmallVector<Size> empty;
  for (const Idx *idx : running)
    if (!sizes.nonNegative(*idx->extent - 1) &&
        !llvm::is_contained(empty, *idx->extent))
      empty.push_back(*idx->extent);
  require(
      Require::InRange, {low, high, extent}, place,
      format(
          "the index of {} runs from {{0}} to {{1}}, its extent is {} = {{2}}",
          what, escape(sizes.str(extent))),
      {low, high, extent}, empty, !sizes.nonNegative(low, atoms));
  return true;
}

/// What a message calls the positions: an input by its name, else what the
/// source says.
static std::string positionsName(const Tensor &positions, StringRef text,
                                 bool isTensor) {
  if (!positions.input.empty())
    return positions.input;
  return isTensor ? text.take_until([](char c) { return c == '['; }).str()
                  : heed::format("({})", text);
}

/// A pass over the positions that data decides. Of several indices the last
/// one is reduced away: the least and the greatest position of each row. Where
/// data only decides whether a position is reached, all indices are that it
/// does not have itself.
bool Analysis::checkData(const Item &item, bool under, bool over,
                         const Size &extent, SmallVector<Idx *, 4> used,
                         const std::string &what, Range place,
                         const Scope &scope, Equation &eq) {
  evaluate(Size(0), place);
  std::string text = item.expr ? written(*item.expr) : item.idx->name;
  auto check = [&](const Tensor *positions, const Size &limit,
                   bool isTensor = false) {
    sink->push_back(
        RequireInRange{positions, useOf(sizes, limit), unquoted(what),
                       positionsName(*positions, text, isTensor), place});
    return true;
  };
  if (item.expr && eq.guards.empty())
    for (Ty ty : {Ty::I32, Ty::I64, Ty::I8})
      if (auto tensor = plainRead(*item.expr, scope, eq, used, ty))
        return check(tensor->value, extent, true);
  size_t own = used.size();
  addGuardIndices(eq, used);
  bool readsData = item.expr && !info(*item.expr, scope, eq).pure;
  // A place that is not reached counts as position 0, which is in range of an
  // extent of 1; where the extent is 0 all that is reached moves up by one,
  // where it is asked whether something is above the end: -1 would become 0.
  Size limit = sizes.max(extent, Size(1));
  evaluate(limit, place);
  Size empty = sizes.max(Size(1) - extent, Size(0));
  // Reads inside the position are checked by its own nodes.
  auto position = [&](Body &body, bool up) -> Node * {
    return underGuards(
        body, eq, 0, Ty::I64, place,
        [&]() -> Node * {
          Node *x = item.idx ? indexNode(item.idx, place, Ty::I64)
                             : resolve(body, *item.expr, scope, eq);
          if (!x || !up || empty.is(0))
            return x;
          Node *shifted = newNode(Node::Shift, Ty::I64, place, x);
          shifted->size = useOf(sizes, empty);
          return shifted;
        },
        newNode(Node::Zero, Ty::I64, place));
  };
  size_t numRows = readsData || own == used.size() ? used.size() - 1 : own;
  for (bool up : {false, true}) {
    // Of an extent that is not 0 one pass over all positions sees both ends.
    bool isFew = used.size() < 2;
    if (!(up ? over : under) || (isFew && !up && over && empty.is(0)))
      continue;
    auto fill = [&](Body &body) { return position(body, up); };
    const Tensor *worst = nullptr;
    if (!isFew)
      worst = extreme(up ? Extreme::Greatest : Extreme::Least,
                      ArrayRef<Idx *>(used).take_front(numRows),
                      ArrayRef<Idx *>(used).drop_front(numRows), place, fill);
    else if (auto all = elementwise(used, Ty::I64, place, false, fill))
      worst = all->value;
    if (!worst)
      return false;
    check(worst, limit);
  }
  return true;
}

const Tensor *Analysis::extreme(Extreme::Kind kind, ArrayRef<Idx *> axes,
                                ArrayRef<Idx *> ids, Range place,
                                llvm::function_ref<Node *(Body &)> fill) {
  Extreme step;
  step.kind = kind;
  step.axes.assign(axes.begin(), axes.end());
  step.ids.assign(ids.begin(), ids.end());
  step.shape = uses(shapeOf(axes));
  step.idExtents = uses(shapeOf(ids));
  step.place = place;
  step.node = bodyNode(axes, ids, false, fill);
  if (!step.node)
    return nullptr;
  step.result = newTensor();
  const Tensor *result = step.result;
  sink->push_back(std::move(step));
  return result;
}

/// Proves, or checks, that an integer divisor made of indices and sizes is not
/// 0 where it is reached. False after an error.
bool Analysis::checkDivisor(const BinaryExpr &expr, const Scope &scope,
                            Equation &eq) {
  if (!firstUnderGuards(expr, scope, eq))
    return true;
  std::string text = format("integer '{}' by zero", ast::spelling(expr.op));
  Range place = expr.opRange;
  Reach around = reach(eq, true);
  Form divisor = form(*expr.rhs, scope, eq, around);
  Points::Answer zero = around.points.ask({{divisor, true}});
  switch (zero.kind) {
  case Points::Answer::Never:
    return true;
  case Points::Answer::Always:
    return error(place,
                 text + (zero.sample.empty() ? "" : ", as for ") + zero.sample);
  case Points::Answer::BySizes:
    requireNone(zero, place, format("{}, expected ", text), {});
    return true;
  case Points::Answer::Unknown:
    break;
  }
  // A pass over the divisor: the places where it is 0 are counted.
  SmallVector<Idx *, 4> used = info(*expr.rhs, scope, eq).used;
  addGuardIndices(eq, used);
  ArrayRef<Idx *> rows = used, last;
  if (!used.empty()) {
    rows = ArrayRef<Idx *>(used).drop_back();
    last = ArrayRef<Idx *>(used).take_back();
  }
  const Tensor *zeros =
      extreme(Extreme::Sum, rows, last, place, [&](Body &body) {
        return underGuards(
            body, eq, 0, Ty::I64, place,
            [&]() -> Node * {
              Node *x = resolve(body, *expr.rhs, scope, eq);
              return x ? newNode(Node::IsZero, Ty::I64, place, x) : nullptr;
            },
            newNode(Node::Zero, Ty::I64, place));
      });
  if (!zeros)
    return false;
  sink->push_back(RequireInRange{zeros, useOf(sizes, Size(1)),
                                 "the number of divisions by zero", "", place});
  return true;
}

std::string Analysis::unquoted(StringRef text) {
  std::string result;
  for (char c : text)
    if (c != '\'')
      result += c;
  return result;
}
