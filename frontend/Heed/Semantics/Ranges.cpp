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

#include "Lowering.h"

#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using namespace mlir;
using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;
using llvm::Twine;

Shape Lowering::shapeOf(const Binding &binding) {
  switch (binding.kind) {
  case Binding::Tensor:
    return binding.tensor.shape;
  case Binding::Collection:
    return binding.collection->shape;
  case Binding::Table:
  case Binding::List:
    return binding.table->extents();
  default:
    return {};
  }
}

/// What stands between the brackets, as a form.
Form Lowering::form(const Item &item, const Scope &scope, Equation &eq,
                    Reach &reach) {
  return item.idx ? Form::variable(variable(reach, item.idx))
                  : form(*item.expr, scope, eq, reach);
}

/// Is the position `item` of an axis of extent `extent` in range by the ranges
/// of its indices alone?
bool Lowering::proven(const Item &item, const Size &extent, const Scope &scope,
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

bool Lowering::provenRead(const ReadExpr &expr, const Scope &scope,
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
bool Lowering::checkRead(const ReadExpr &expr, const Scope &scope,
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
bool Lowering::firstUnderGuards(const Expr &expr, const Scope &scope,
                                Equation &eq) {
  return eq.checked
      .insert({{&expr, scope.env.get()}, guardsFrom(eq, 0), running})
      .second;
}

/// One check per call that none of the cases in `when` is at hand.
void Lowering::requireNone(const Points::Answer &answer, Range place,
                           const Twine &message, ArrayRef<Value> values) {
  Location at = loc(place);
  for (ArrayRef<Points::Condition> all : answer.when) {
    SmallVector<std::pair<Value, Value>> parts;
    SmallVector<Size> of;
    std::string text;
    for (const Points::Condition &condition : all) {
      // size >= 0 does not hold: its negative part is above the positive one.
      Size positive, negative;
      for (auto &[monomial, factor] : condition.size.terms)
        (factor > 0 ? positive : negative).terms[monomial] =
            factor > 0 ? factor : -factor;
      if (condition.tells)
        text += (text.empty() ? "" : " or ") + sizes.str(positive) + " < " +
                sizes.str(negative);
      parts.push_back({emit(positive, place), emit(negative, place)});
      of.push_back(condition.size);
    }
    require(
        of, place, message + escape(text),
        [&](OpBuilder &b) -> Value {
          Value any;
          for (auto &[low, high] : parts) {
            Value less = arith::CmpIOp::create(b, at, arith::CmpIPredicate::slt,
                                               low, high);
            any = any ? Value(arith::OrIOp::create(b, at, any, less)) : less;
          }
          return any;
        },
        values);
  }
}

bool Lowering::checkAxis(const ReadExpr &expr, unsigned axis, const Item &item,
                         const Size &extent, const Scope &scope, Equation &eq) {
  Range place = item.expr ? item.expr->range : expr.range;
  std::string what =
      ("'" + expr.name.text + "' (axis " + llvm::Twine(axis) + ")").str();
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
          "the index of " + what + " is outside its extent " +
              sizes.str(extent) + " in spite of its guards" +
              (answer.sample.empty() ? "" : ", as for " + answer.sample));
  auto isDecided = [](const Answer &answer) {
    return answer.kind == Answer::Never || answer.kind == Answer::BySizes;
  };
  if (!isDecided(under) || !isDecided(over))
    return checkData(item, under.kind != Answer::Never,
                     over.kind != Answer::Never, extent, used, what, place,
                     scope, eq);
  for (const Answer &answer : {under, over})
    requireNone(answer, place,
                "a guarded index of " + what + " leaves its extent " +
                    escape(sizes.str(extent)) + " = {0}, expected ",
                emit(extent, place));
  return true;
}

/// A position that runs from `low` to `high`, both reached where the loops run.
bool Lowering::checkRange(const Size &low, const Size &high, const Size &extent,
                          const std::string &what, Range place) {
  SmallVector<unsigned> atoms = positiveAtoms(running);
  bool under = sizes.nonNegative(-low - 1, atoms);
  bool over = sizes.nonNegative(high - extent, atoms);
  if (under || over)
    return error(place, "the index of " + what + " runs from " +
                            sizes.str(low) + " to " + sizes.str(high) +
                            ", outside its extent " + sizes.str(extent) +
                            "; move the read under a 'where' or an 'if' that "
                            "keeps it inside");
  // Sizes decide: one check per call, void where a loop is empty.
  Value lowest = emit(low, place), highest = emit(high, place),
        limit = emit(extent, place);
  SmallVector<Size> of;
  SmallVector<Value> loops;
  for (const Idx *idx : running) {
    if (sizes.nonNegative(*idx->extent - 1) ||
        llvm::is_contained(of, *idx->extent))
      continue;
    loops.push_back(emit(*idx->extent, place));
    of.push_back(*idx->extent);
  }
  of.append({low, high, extent});
  Location at = loc(place);
  require(of, place,
          "the index of " + what + " runs from {0} to {1}, its extent is " +
              escape(sizes.str(extent)) + " = {2}",
          [&](OpBuilder &b) -> Value {
            Value zero = arith::ConstantIndexOp::create(b, at, 0);
            Value ok = arith::CmpIOp::create(b, at, arith::CmpIPredicate::slt,
                                             highest, limit);
            if (!sizes.nonNegative(low, atoms))
              ok = arith::AndIOp::create(
                  b, at, ok,
                  arith::CmpIOp::create(b, at, arith::CmpIPredicate::sge,
                                        lowest, zero));
            for (Value loop : loops)
              ok = arith::OrIOp::create(
                  b, at, ok,
                  arith::CmpIOp::create(b, at, arith::CmpIPredicate::eq, loop,
                                        zero));
            return ok;
          },
          {lowest, highest, limit});
  return true;
}

/// A pass over the positions that data decides. Of several indices the last
/// one is reduced away: the least and the greatest position of each row. Where
/// data only decides whether a position is reached, all indices are that it
/// does not have itself.
bool Lowering::checkData(const Item &item, bool under, bool over,
                         const Size &extent, SmallVector<Idx *, 4> used,
                         const std::string &what, Range place,
                         const Scope &scope, Equation &eq) {
  Location at = loc(place);
  Value zero = emit(Size(0), place);
  // What a message calls the positions: an input by its name, else what the
  // source says.
  std::string text = item.expr ? written(*item.expr) : item.idx->name;
  auto check = [&](Value positions, Value limit, bool isTensor = false) {
    auto op =
        attn::RequireInRangeOp::create(builder, at, positions, zero, limit,
                                       builder.getStringAttr(unquoted(what)));
    std::string name =
        isTensor ? text.substr(0, text.find('[')) : "(" + text + ")";
    if (auto arg = dyn_cast<BlockArgument>(positions);
        arg && arg.getOwner() == entry)
      if (auto input = cast<mlir::func::FuncOp>(entry->getParentOp())
                           .getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                         attn::kNameAttr))
        name = input.str();
    op->setAttr(attn::kNameAttr, builder.getStringAttr(name));
  };
  if (item.expr && eq.guards.empty()) {
    for (Ty ty : {Ty::I32, Ty::I64, Ty::I8})
      if (auto tensor = plainRead(*item.expr, scope, eq, used, ty)) {
        check(tensor->value, emit(extent, place), true);
        return true;
      }
  }
  size_t own = used.size();
  addGuardIndices(eq, used);
  bool readsData = item.expr && !info(*item.expr, scope, eq).pure;
  // A place that is not reached counts as position 0, which is in range of an
  // extent of 1; where the extent is 0 all that is reached moves up by one.
  Value limit = emit(sizes.max(extent, Size(1)), place);
  Size empty = sizes.max(Size(1) - extent, Size(0));
  // Reads inside the position are checked by its own emission.
  auto position = [&](Body &body, bool up) -> Value {
    TV tv = underGuards(
        body, eq, 0, Ty::I64, at,
        [&]() -> TV {
          TV x = item.idx ? TV{indexValue(body, item.idx, at), Ty::I64, {}}
                          : emit(body, *item.expr, scope, eq);
          if (!x || !up || empty.is(0))
            return x;
          Value more = asI64(body, {emit(empty, place), Ty::AnyInt, {}}, at);
          return {
              arith::AddIOp::create(body.builder, at, asI64(body, x, at), more),
              Ty::I64,
              {}};
        },
        [&]() -> TV {
          return {arith::ConstantIntOp::create(body.builder, at, 0, 64),
                  Ty::I64,
                  {}};
        });
    return tv ? asI64(body, tv, at) : Value();
  };
  if (used.size() < 2) {
    auto positions =
        elementwise(used, Ty::I64, place, false, [&](Body &body) -> TV {
          return {position(body, true), Ty::I64, {}};
        });
    if (!positions)
      return false;
    check(positions->value, limit);
    return true;
  }
  size_t numRows = readsData || own == used.size() ? used.size() - 1 : own;
  ArrayRef<Idx *> rows = ArrayRef<Idx *>(used).take_front(numRows),
                  last = ArrayRef<Idx *>(used).drop_front(numRows);
  for (bool up : {false, true}) {
    if (!(up ? over : under))
      continue;
    Value init = filled(builder.getI64IntegerAttr(0), shapeOf(rows), place);
    Values worst = generic(
        place, rows, last, {init}, false,
        [&](Body &body, ArrayRef<Value> acc) -> Values {
          Value x = position(body, up);
          if (!x)
            return {};
          if (up)
            return {arith::MaxSIOp::create(body.builder, at, acc[0], x)};
          return {arith::MinSIOp::create(body.builder, at, acc[0], x)};
        });
    if (worst.empty())
      return false;
    check(worst[0], limit);
  }
  return true;
}

/// Proves, or checks, that an integer divisor made of indices and sizes is not
/// 0 where it is reached. False after an error.
bool Lowering::checkDivisor(const BinaryExpr &expr, const Scope &scope,
                            Equation &eq) {
  if (!firstUnderGuards(expr, scope, eq))
    return true;
  std::string text = ("integer '" + ast::spelling(expr.op) + "' by zero").str();
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
    requireNone(zero, place, text + ", expected ", {});
    return true;
  case Points::Answer::Unknown:
    break;
  }
  // A pass over the divisor: the places where it is 0 are counted.
  Location at = loc(place);
  SmallVector<Idx *, 4> used = info(*expr.rhs, scope, eq).used;
  addGuardIndices(eq, used);
  ArrayRef<Idx *> rows = used, last;
  if (!used.empty()) {
    rows = ArrayRef<Idx *>(used).drop_back();
    last = ArrayRef<Idx *>(used).take_back();
  }
  Value init = filled(builder.getI64IntegerAttr(0), shapeOf(rows), place);
  Values zeros =
      generic(place, rows, last, {init}, false,
              [&](Body &body, ArrayRef<Value> acc) -> Values {
                auto none = [&]() -> TV {
                  return {arith::ConstantIntOp::create(body.builder, at, 0, 64),
                          Ty::I64,
                          {}};
                };
                TV tv = underGuards(
                    body, eq, 0, Ty::I64, at,
                    [&]() -> TV {
                      TV x = emit(body, *expr.rhs, scope, eq);
                      if (!x)
                        return {};
                      Value value = asI64(body, x, at);
                      Value is = arith::CmpIOp::create(body.builder, at,
                                                       arith::CmpIPredicate::eq,
                                                       value, none().value);
                      return {arith::ExtUIOp::create(body.builder, at,
                                                     builder.getI64Type(), is),
                              Ty::I64,
                              {}};
                    },
                    none);
                if (!tv)
                  return {};
                return {arith::AddIOp::create(body.builder, at, acc[0],
                                              asI64(body, tv, at))};
              });
  if (zeros.empty())
    return false;
  attn::RequireInRangeOp::create(
      builder, at, zeros[0], emit(Size(0), place), emit(Size(1), place),
      builder.getStringAttr("the number of divisions by zero"));
  return true;
}

std::string Lowering::unquoted(StringRef text) {
  std::string result;
  for (char c : text)
    if (c != '\'')
      result += c;
  return result;
}
