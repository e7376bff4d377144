//===- MaskSolver.cpp - conditions on i and j as ranges of keys -----------===//
// Each comparison is brought to the form  f(i) + g(j) + s >= 0. Over a tile
// f takes its extremes at the first and last query, and g, a chain of shifts,
// products and floor divisions of j, is inverted step by step. For one
// comparison that is what eliminating i and j from the set
// {i0 <= i <= i1, f(i) + g(j) + s >= 0} gives, with exact floors. Conjunctions
// intersect ranges, disjunctions keep several. Two bounds of j - i, one from
// below and one from above, leave a condition of their own when i and j are
// eliminated: it is kept, so that intersections of bands are exact.
#include "passes/Masks/MaskSolver.h"
#include "passes/Mutation.h"

using namespace mlir;

namespace heed {

using arith::CmpIPredicate;

MaskSolver::MaskSolver(MaskBounds &bounds)
    : bounds(bounds), exprs(*bounds.exprs), i(bounds.query), j(bounds.key),
      i64(IntegerType::get(exprs.context, 64)),
      i1(IntegerType::get(exprs.context, 1)) {
  first = wide(exprs.var(bounds.first));
  last = wide(exprs.var(bounds.last));
  blockFirst = wide(exprs.var(bounds.blockFirst));
  blockLast = wide(exprs.var(bounds.blockLast));
  keys = wide(exprs.var(bounds.keys));
  zero = number(0);
  one = number(1);
}

MaskSolver::Pieces MaskSolver::unknown(ExprRef e) {
  if (bounds.exact && !onlyRanges) {
    bounds.exact = false;
    bounds.unsolved = bounds.text(e);
  }
  return {{all()}, {}};
}

MaskSolver::Pieces MaskSolver::both(const Pieces &a, const Pieces &b) {
  auto pick = [&](ExprRef x, ExprRef y, bool greater) {
    return !x ? y : !y ? x : greater ? max(x, y) : min(x, y);
  };
  auto meet = [&](const MaskPiece &x, const MaskPiece &y) {
    MaskPiece p{max(x.low, y.low), min(x.high, y.high),
                conjunction(x.test, y.test),
                pick(x.offsetLow, y.offsetLow, true),
                pick(x.offsetHigh, y.offsetHigh, false)};
    return p;
  };
  auto intersect = [&](ArrayRef<MaskPiece> xs, ArrayRef<MaskPiece> ys) {
    SmallVector<MaskPiece, 2> result;
    for (const MaskPiece &x : xs)
      for (const MaskPiece &y : ys)
        result.push_back(meet(x, y));
    return result;
  };
  return few({intersect(a.reach, b.reach), intersect(a.full, b.full)});
}

MaskSolver::Pieces MaskSolver::either(Pieces a, const Pieces &b) {
  if (!mutated("solve-masks.drop-second-piece"))
    a.reach.append(b.reach);
  a.full.append(b.full);
  return few(a);
}

// Eliminating i and j from low <= j - i <= high leaves low <= high.
MaskPiece MaskSolver::eliminated(MaskPiece piece) {
  if (!piece.offsetLow || !piece.offsetHigh)
    return piece;
  ExprRef slack = sub(piece.offsetHigh, piece.offsetLow);
  piece.high =
      choose(compare(CmpIPredicate::sge, slack, zero), piece.high, zero);
  piece.offsetLow = piece.offsetHigh = nullptr;
  return piece;
}

MaskPiece MaskSolver::clamp(MaskPiece piece) {
  piece.low = max(zero, piece.low);
  bool bounded = piece.high->isOp("arith.select") &&
                 piece.high->operand(1) == keys &&
                 piece.high->operand(2) == zero;
  if (!bounded)
    piece.high = min(keys, piece.high);
  return eliminated(piece);
}

// Beyond four pieces their number would explode: the union becomes a test.
MaskSolver::Pieces MaskSolver::few(Pieces r) {
  for (bool full : {false, true}) {
    auto &pieces = full ? r.full : r.reach;
    SmallVector<MaskPiece, 2> distinct;
    for (const MaskPiece &x : pieces) {
      bool empty =
          x.high == zero || (x.test && Exprs::isConstantInt(x.test, 0));
      if (!empty && llvm::none_of(distinct, [&](const MaskPiece &y) {
            return x.low == y.low && x.high == y.high && x.test == y.test;
          }))
        distinct.push_back(x);
    }
    pieces = distinct;
    if (pieces.size() <= 4)
      continue;
    ExprRef any = exprs.truth(false);
    for (const MaskPiece &piece : pieces) {
      MaskPiece x = eliminated(piece);
      auto atMost = [&](ExprRef a, ExprRef b) {
        return compare(CmpIPredicate::sle, a, b);
      };
      auto less = [&](ExprRef a, ExprRef b) {
        return compare(CmpIPredicate::slt, a, b);
      };
      ExprRef here =
          full ? conjunction(atMost(x.low, blockFirst), less(blockLast, x.high))
               : conjunction(less(x.low, x.high),
                             conjunction(atMost(x.low, blockLast),
                                         less(blockFirst, x.high)));
      any = disjunction(any, conjunction(here, x.test));
    }
    pieces = {all()};
    pieces.front().test = any;
  }
  return r;
}

// The j with g(j) >= bound, or g(j) <= bound.
std::optional<MaskPiece> MaskSolver::invert(ExprRef g, bool atLeast,
                                            ExprRef bound) {
  Sum sum;
  flatten(g, 1, sum);
  Signed inner{0, nullptr};
  for (Signed s : sum) {
    if (s.term->uses(i) || (s.term->uses(j) && inner.term))
      return std::nullopt;
    if (s.term->uses(j))
      inner = s;
    else
      bound = s.sign > 0 ? sub(bound, s.term) : add(bound, s.term);
  }
  if (!inner.term)
    return std::nullopt;
  if (inner.sign < 0) {
    bound = neg(bound);
    atLeast = !atLeast;
  }
  ExprRef t = inner.term;
  if (t->kind == ExprKind::Var)
    return atLeast ? MaskPiece{bound, keys}
                   : MaskPiece{zero, mutated("solve-masks.end-minus-one")
                                         ? bound
                                         : add(bound, one)};
  if (!t->type.isIndex() && t->type != i64)
    return std::nullopt;
  if (t->isOp("arith.floordivsi") && isPositiveSize(t->operand(1)) &&
      !varies(t->operand(1))) {
    ExprRef d = plain(t->operand(1));
    ExprRef edge = mul(bound, d);
    if (!atLeast && !mutated("solve-masks.floor-without-rest"))
      edge = add(edge, sub(d, one));
    return invert(t->operand(0), atLeast, edge);
  }
  if (t->isOp("arith.muli"))
    for (int k : {0, 1})
      if (isPositiveSize(t->operand(k)) && !varies(t->operand(k))) {
        ExprRef a = plain(t->operand(k));
        ExprRef rounded =
            atLeast ? op("arith.floordivsi", add(bound, sub(a, one)), a)
                    : op("arith.floordivsi", bound, a);
        return invert(t->operand(1 - k), atLeast, rounded);
      }
  return std::nullopt;
}

// `outer` and what does not vary, >= 0, with the outermost step of `outer`
// undone.
std::optional<MaskSolver::Pieces> MaskSolver::undoStep(const Signed &outer,
                                                       const Sum &rest) {
  ExprRef t = outer.term;
  bool atLeast = outer.sign > 0;
  if (!t->type.isIndex() && t->type != i64)
    return std::nullopt;
  auto with = [&](const Sum &sum, ExprRef x, int sign, ExprRef more = nullptr,
                  int moreSign = 1) {
    Sum next = sum;
    flatten(x, sign, next);
    if (more)
      flatten(more, moreSign, next);
    return atLeastZero(next);
  };
  auto join = [&](std::optional<Pieces> a, std::optional<Pieces> b,
                  bool conjunction) -> std::optional<Pieces> {
    if (!a || !b)
      return std::nullopt;
    return conjunction ? both(*a, *b) : either(*a, *b);
  };
  if (t->isOp("math.absi"))
    return join(with(rest, t->operand(0), outer.sign),
                with(rest, t->operand(0), -outer.sign), !atLeast);
  if (t->isOp("arith.minsi") || t->isOp("arith.maxsi"))
    return join(with(rest, t->operand(0), outer.sign),
                with(rest, t->operand(1), outer.sign),
                t->isOp("arith.minsi") == atLeast);
  // x // d >= c: x >= c * d; x // d <= c: x <= c * d + d - 1
  ExprRef c = atLeast ? neg(total(rest)) : total(rest);
  if (t->isOp("arith.floordivsi") && isPositiveSize(t->operand(1)) &&
      !varies(t->operand(1))) {
    ExprRef d = plain(t->operand(1));
    if (atLeast)
      return with({}, t->operand(0), 1, mul(c, d), -1);
    return with({}, t->operand(0), -1, add(mul(c, d), sub(d, one)));
  }
  if (t->isOp("arith.muli"))
    for (int k : {0, 1})
      if (isPositiveSize(t->operand(k)) && !varies(t->operand(k))) {
        ExprRef a = plain(t->operand(k));
        ExprRef rounded = atLeast
                              ? op("arith.floordivsi", add(c, sub(a, one)), a)
                              : op("arith.floordivsi", c, a);
        return with({}, t->operand(1 - k), atLeast ? 1 : -1, rounded,
                    atLeast ? -1 : 1);
      }
  return std::nullopt;
}

std::optional<MaskSolver::Pieces> MaskSolver::atLeastZero(const Sum &sum) {
  if (!fits(sum))
    return std::nullopt;
  Sum ofPair, ofKey, rest;
  for (Signed s : sum)
    (s.term->uses(i) && s.term->uses(j) ? ofPair
     : s.term->uses(j)                  ? ofKey
                                        : rest)
        .push_back(s);
  // A function of i and j together is undone from outside if nothing else
  // varies, and so are the steps of j alone that `invert` does not know.
  if (!ofPair.empty()) {
    bool alone = ofPair.size() == 1 && ofKey.empty() &&
                 llvm::none_of(rest, [&](Signed s) { return varies(s.term); });
    return alone ? undoStep(ofPair[0], rest) : std::nullopt;
  }
  if (ofKey.size() == 1 &&
      (ofKey[0].term->isOp("math.absi") || ofKey[0].term->isOp("arith.minsi") ||
       ofKey[0].term->isOp("arith.maxsi")))
    return undoStep(ofKey[0], rest);

  std::optional<Interval> others = sumInterval(rest);
  if (!others)
    return std::nullopt;
  if (ofKey.empty()) {
    auto where = [&](ExprRef bound) {
      ExprRef holds = compare(CmpIPredicate::sge, bound, zero);
      return MaskPiece{zero, choose(holds, keys, zero)};
    };
    return Pieces{{where(others->high)}, {where(others->low)}};
  }
  ExprRef g = total(ofKey);
  auto reach = invert(g, /*atLeast=*/true, neg(others->high));
  auto full = invert(
      g, /*atLeast=*/true,
      neg(mutated("solve-masks.full-as-reach") ? others->high : others->low));
  if (!reach || !full)
    return std::nullopt;
  // j - i + s >= 0, or i - j + s >= 0.
  Sum fixed, ofQuery;
  for (Signed s : rest)
    (varies(s.term) ? ofQuery : fixed).push_back(s);
  if (ofKey.size() == 1 && ofKey[0].term->kind == ExprKind::Var &&
      ofQuery.size() == 1 && ofQuery[0].term->kind == ExprKind::Var &&
      ofQuery[0].sign == -ofKey[0].sign) {
    if (ofKey[0].sign > 0)
      reach->offsetLow = neg(total(fixed));
    else
      reach->offsetHigh = total(fixed);
  }
  return Pieces{{*reach}, {*full}};
}

MaskSolver::Pieces MaskSolver::comparison(ExprRef e, bool negated) {
  auto predicate = CmpIPredicate(
      cast<IntegerAttr>(cast<DictionaryAttr>(e->attr).get("predicate"))
          .getInt());
  if (negated && !mutated("solve-masks.comparison-not-negated"))
    predicate = arith::invertPredicate(predicate);
  ExprRef a = e->operand(0), b = e->operand(1);
  // a - b >= 0 with what makes it strict
  auto atLeast = [&](ExprRef a, ExprRef b, bool strict) {
    Sum sum;
    flatten(a, 1, sum);
    flatten(b, -1, sum);
    if (strict && !mutated("solve-masks.strict-as-weak"))
      flatten(one, -1, sum);
    return atLeastZero(sum);
  };
  std::optional<Pieces> x, y;
  switch (a->type.isInteger(1) ? CmpIPredicate::ult : predicate) {
  case CmpIPredicate::sle:
    x = atLeast(b, a, false);
    break;
  case CmpIPredicate::slt:
    x = atLeast(b, a, true);
    break;
  case CmpIPredicate::sge:
    x = atLeast(a, b, false);
    break;
  case CmpIPredicate::sgt:
    x = atLeast(a, b, true);
    break;
  case CmpIPredicate::eq:
    x = atLeast(a, b, false);
    y = x ? atLeast(b, a, false) : std::nullopt;
    if (x && y)
      return both(*x, *y);
    return data(e, negated);
  case CmpIPredicate::ne:
    x = atLeast(a, b, true);
    y = x ? atLeast(b, a, true) : std::nullopt;
    if (x && y)
      return either(*x, *y);
    return data(e, negated);
  default:
    break;
  }
  return x ? *x : data(e, negated);
}

// A condition that blocks are tested for.
MaskSolver::Pieces MaskSolver::data(ExprRef e, bool negated) {
  if (onlyRanges)
    return {{all()}, {}};
  Test t = test(e);
  if (negated)
    t = negation(t);
  if (Exprs::isConstantInt(t.must, 0) && Exprs::constantInt(t.may))
    return unknown(e);
  if (!e->uses(j)) {
    auto where = [&](ExprRef holds) {
      return MaskPiece{zero, choose(holds, keys, zero)};
    };
    return few({{where(t.may)}, {where(t.must)}});
  }
  auto with = [&](MaskPiece piece, ExprRef test) {
    piece.test = Exprs::constantInt(test) && !Exprs::isConstantInt(test, 0)
                     ? nullptr
                     : test;
    return piece;
  };
  return few({{with(all(), t.may)}, {with(all(), t.must)}});
}

MaskSolver::Pieces MaskSolver::solve(ExprRef e, bool negated) {
  if (auto value = Exprs::constantInt(e))
    return (*value != 0) != negated ? Pieces{{all()}, {all()}} : Pieces{};
  if (!varies(e)) {
    ExprRef holds = negated ? exprs.logicalNot(e) : e;
    MaskPiece r{zero, choose(holds, keys, zero)};
    return {{r}, {r}};
  }
  // One table for all that reads data at i alone or at j alone. What bounds j
  // besides stays a range.
  if (!onlyRanges && isSingle(e) && readsData(e)) {
    Pieces tested = data(e, negated);
    if (e->uses(i) || tested.reach.size() != 1 || !tested.reach[0].test)
      return tested;
    onlyRanges = true;
    Pieces ranges = solve(e, negated);
    onlyRanges = false;
    for (MaskPiece &piece : ranges.reach)
      piece.test = conjunction(piece.test, tested.reach[0].test);
    return {ranges.reach, tested.full};
  }
  if (e->isOp("arith.andi") || e->isOp("arith.ori")) {
    Pieces a = solve(e->operand(0), negated), b = solve(e->operand(1), negated);
    return (e->isOp("arith.andi") != negated) !=
                   mutated("solve-masks.or-for-and")
               ? both(a, b)
               : either(a, b);
  }
  if (e->isOp("arith.xori"))
    for (int k : {0, 1})
      if (e->operand(k)->kind == ExprKind::Constant)
        return solve(e->operand(1 - k), !negated);
  if (e->kind == ExprKind::If || e->isOp("arith.select")) {
    ExprRef c = e->operand(0), yes = e->operand(1), no = e->operand(2);
    return either(both(solve(c), solve(yes, negated)),
                  both(solve(c, /*negated=*/true), solve(no, negated)));
  }
  if (e->isOp("arith.cmpi"))
    return comparison(e, negated);
  return data(e, negated);
}

} // namespace heed
