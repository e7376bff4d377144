//===- MaskIntervals.cpp - conditions on intervals of i and j -------------===//
// What no range expresses is evaluated on intervals: over a tile and a block,
// may the condition hold somewhere, must it hold everywhere? i and j run over
// their intervals, and so does what depends on one of them alone: where its
// interval is not simple arithmetic, a table has it, computed from the data.
#include "passes/Masks/MaskSolver.h"
#include "passes/Mutation.h"

using namespace mlir;

namespace heed {

using arith::CmpFPredicate;
using arith::CmpIPredicate;

static unsigned occurrences(ExprRef e, unsigned var) {
  if (e->kind == ExprKind::Var)
    return e->number == var;
  unsigned count = 0;
  for (ExprRef operand : e->operands)
    count += occurrences(operand, var);
  return count;
}

const MaskTable *MaskSolver::table(ExprRef e) {
  bool writable = true;
  Exprs::walk(
      e, [&](ExprRef inner) { writable &= inner->kind != ExprKind::Reduce; });
  if (!writable || !isSingle(e) || onlyRanges)
    return nullptr;
  for (const MaskTable &known : bounds.tables)
    if (known.value == e)
      return &known;
  MaskTable t{e, e->uses(j), exprs.freshVar(), exprs.freshVar(), std::nullopt};
  if (isa<FloatType>(e->type))
    t.odd = exprs.freshVar();
  bounds.tables.push_back(t);
  return &bounds.tables.back();
}

std::optional<MaskSolver::Interval> MaskSolver::tableInterval(ExprRef e) {
  const MaskTable *t = table(e);
  if (!t)
    return std::nullopt;
  ExprRef low = exprs.parameter(t->least, e->type),
          high = exprs.parameter(t->greatest, e->type);
  if (t->odd)
    return Interval{low, high, exprs.parameter(*t->odd, i1)};
  return Interval{wide(low), wide(high)};
}

std::optional<MaskSolver::Interval> MaskSolver::interval(ExprRef e) {
  e = strip(e);
  if (!e->type.isIntOrIndex() || e->type.isInteger(1))
    return std::nullopt;
  if (!varies(e))
    return Interval{wide(e), wide(e)};
  if (e->kind == ExprKind::Var)
    return e->number == i ? Interval{first, last}
                          : Interval{blockFirst, blockLast};
  // Arithmetic on intervals is exact only if the variable occurs once.
  if (isSingle(e) && (readsData(e) || occurrences(e, e->uses(i) ? i : j) > 1))
    return tableInterval(e);
  if (e->type.isIndex() || e->type == i64)
    if (auto result = stepInterval(e))
      return result;
  return isSingle(e) ? tableInterval(e) : std::nullopt;
}

std::optional<MaskSolver::Interval> MaskSolver::stepInterval(ExprRef e) {
  if (e->kind != ExprKind::Op && e->kind != ExprKind::If)
    return std::nullopt;
  if (e->isOp("arith.addi") || e->isOp("arith.subi")) {
    Sum sum;
    flatten(e, 1, sum);
    return sumInterval(sum);
  }
  if (e->kind == ExprKind::If || e->isOp("arith.select")) {
    auto a = interval(e->operand(1)), b = interval(e->operand(2));
    if (!a || !b)
      return std::nullopt;
    if (ExprRef c = e->operand(0); !varies(c))
      return Interval{choose(c, a->low, b->low), choose(c, a->high, b->high)};
    return Interval{min(a->low, b->low), max(a->high, b->high)};
  }
  SmallVector<Interval, 2> parts;
  for (ExprRef operand : e->operands) {
    auto part = interval(operand);
    if (!part || bits(operand) > 60)
      return std::nullopt;
    parts.push_back(*part);
  }
  if (e->isOp("math.absi"))
    return Interval{max(zero, max(parts[0].low, neg(parts[0].high))),
                    max(neg(parts[0].low), parts[0].high)};
  if (parts.size() != 2)
    return std::nullopt;
  Interval a = parts[0], b = parts[1];
  if (e->isOp("arith.minsi"))
    return Interval{min(a.low, b.low), min(a.high, b.high)};
  if (e->isOp("arith.maxsi"))
    return Interval{max(a.low, b.low), max(a.high, b.high)};
  if (e->isOp("arith.floordivsi") && isPositiveSize(e->operand(1)))
    return Interval{op("arith.floordivsi", a.low, b.low),
                    op("arith.floordivsi", a.high, b.low)};
  if (e->isOp("arith.muli"))
    for (int k : {0, 1})
      if (isPositiveSize(e->operand(k)) &&
          bits(e->operand(0)) + bits(e->operand(1)) <= 62) {
        Interval x = parts[1 - k];
        return Interval{mul(x.low, parts[k].low), mul(x.high, parts[k].low)};
      }
  return std::nullopt;
}

// x - d * (x // d), or less that, among the terms: the interval of the
// remainder with its sign, and the other terms.
std::optional<MaskSolver::Interval> MaskSolver::takeRemainder(Sum &sum) {
  for (const Signed &s : sum) {
    if (!s.term->isOp("arith.muli"))
      continue;
    const int sign = -s.sign;
    for (unsigned k : {0, 1}) {
      ExprRef d = s.term->operand(k), quotient = s.term->operand(1 - k);
      if (varies(d) || !quotient->isOp("arith.floordivsi") ||
          quotient->operand(1) != d)
        continue;
      Sum x, rest = sum;
      flatten(quotient->operand(0), sign, x);
      llvm::erase_if(rest, [&](Signed t) { return t.term == s.term; });
      bool whole = true;
      for (const Signed &part : x) {
        auto *found = llvm::find_if(rest, [&](Signed t) {
          return t.term == part.term && t.sign == part.sign;
        });
        whole &= found != rest.end();
        if (found != rest.end())
          rest.erase(found);
      }
      for (Signed &part : x)
        part.sign *= sign;
      std::optional<Interval> of = whole ? sumInterval(x) : std::nullopt;
      if (!of)
        continue;
      // It grows with x while the quotient stays, and has the divisor's sign.
      ExprRef by = plain(d), q = op("arith.floordivsi", of->low, by);
      ExprRef stays =
          compare(CmpIPredicate::eq, q, op("arith.floordivsi", of->high, by));
      ExprRef low = choose(stays, sub(of->low, mul(q, by)),
                           min(zero, add(by, one))),
              high = choose(stays, sub(of->high, mul(q, by)),
                            max(zero, sub(by, one)));
      sum = rest;
      return sign > 0 ? Interval{low, high} : Interval{neg(high), neg(low)};
    }
  }
  return std::nullopt;
}

// Terms of i are one function of i, and so are those of j.
std::optional<MaskSolver::Interval>
MaskSolver::sumInterval(ArrayRef<Signed> terms) {
  ExprRef low = zero, high = zero;
  Sum sum(terms.begin(), terms.end());
  while (auto remainder = takeRemainder(sum)) {
    low = add(low, remainder->low);
    high = add(high, remainder->high);
  }
  if (!fits(sum))
    return std::nullopt;
  auto include = [&](int sign, ExprRef term) {
    auto part = interval(term);
    if (!part)
      return false;
    low = sign > 0 ? add(low, part->low) : sub(low, part->high);
    high = sign > 0 ? add(high, part->high) : sub(high, part->low);
    return true;
  };
  Sum ofQuery, ofKey;
  for (Signed s : sum) {
    if (isSingle(s.term))
      (s.term->uses(i) ? ofQuery : ofKey).push_back(s);
    else if (!include(s.sign, s.term))
      return std::nullopt;
  }
  for (const Sum &part : {ofQuery, ofKey}) {
    if (part.empty())
      continue;
    if (part.size() == 1) {
      if (!include(part[0].sign, part[0].term))
        return std::nullopt;
      continue;
    }
    auto joint = tableInterval(total(part));
    if (!joint)
      return std::nullopt;
    low = add(low, joint->low);
    high = add(high, joint->high);
  }
  return Interval{low, high};
}

MaskSolver::Test MaskSolver::integerTest(ExprRef e) {
  auto predicate = CmpIPredicate(
      cast<IntegerAttr>(cast<DictionaryAttr>(e->attr).get("predicate"))
          .getInt());
  ExprRef a = e->operand(0), b = e->operand(1);
  std::optional<Interval> x, y;
  bool apart = !(a->uses(i) && b->uses(i)) && !(a->uses(j) && b->uses(j));
  if (apart) {
    x = interval(a);
    y = interval(b);
  } else {
    Sum sum;
    flatten(a, 1, sum);
    flatten(b, -1, sum);
    x = sumInterval(sum);
    y = Interval{zero, zero};
  }
  if (!x || !y)
    return anything();
  auto atMost = [&](const Interval &p, const Interval &q, CmpIPredicate sign) {
    return Test{compare(sign, p.low, q.high),
                compare(sign,
                        mutated("solve-masks.must-as-may") ? p.low : p.high,
                        q.low)};
  };
  auto equal = [&] {
    Test below = atMost(*x, *y, CmpIPredicate::sle),
         above = atMost(*y, *x, CmpIPredicate::sle);
    return Test{conjunction(below.may, above.may),
                conjunction(below.must, above.must)};
  };
  switch (predicate) {
  case CmpIPredicate::slt:
    return atMost(*x, *y, CmpIPredicate::slt);
  case CmpIPredicate::sle:
    return atMost(*x, *y, CmpIPredicate::sle);
  case CmpIPredicate::sgt:
    return atMost(*y, *x, CmpIPredicate::slt);
  case CmpIPredicate::sge:
    return atMost(*y, *x, CmpIPredicate::sle);
  case CmpIPredicate::eq:
    return equal();
  case CmpIPredicate::ne:
    return negation(equal());
  default:
    return anything();
  }
}

std::optional<MaskSolver::Interval> MaskSolver::realInterval(ExprRef e) {
  if (!varies(e))
    return Interval{e, e, compare(CmpFPredicate::UNO, e, e)};
  if (isSingle(e))
    return tableInterval(e);
  if (e->isOp("arith.sitofp")) {
    auto x = interval(e->operand(0));
    if (!x || bits(e->operand(0)) > 60)
      return std::nullopt;
    return Interval{exprs.op("arith.sitofp", e->type, {x->low}),
                    exprs.op("arith.sitofp", e->type, {x->high}),
                    exprs.truth(false)};
  }
  if (e->isOp("math.absf")) {
    auto x = realInterval(e->operand(0));
    if (!x)
      return std::nullopt;
    ExprRef none = exprs.constant(FloatAttr::get(e->type, 0));
    auto back = [&](ExprRef end) {
      return exprs.op("arith.subf", e->type, {none, end});
    };
    auto above = [&](ExprRef a, ExprRef b) {
      return compare(CmpFPredicate::OGT, a, b);
    };
    ExprRef low = choose(above(x->low, none), x->low,
                         choose(above(none, x->high), back(x->high), none));
    ExprRef high = choose(above(back(x->low), x->high), back(x->low), x->high);
    return Interval{low, high, x->odd};
  }
  if (!e->isOp("arith.addf") && !e->isOp("arith.subf"))
    return std::nullopt;
  auto x = realInterval(e->operand(0)), y = realInterval(e->operand(1));
  if (!x || !y)
    return std::nullopt;
  bool minus = e->isOp("arith.subf");
  auto combine = [&](ExprRef a, ExprRef b) {
    return exprs.op(*e->name, cast<DictionaryAttr>(e->attr), e->type, {a, b});
  };
  // Rounding is monotone. inf - inf is NaN, at an end and perhaps elsewhere.
  Interval r{combine(x->low, minus ? y->high : y->low),
             combine(x->high, minus ? y->low : y->high), nullptr};
  r.odd = disjunction(disjunction(x->odd, y->odd),
                      compare(CmpFPredicate::UNO, r.low, r.high));
  for (const Interval &part : {*x, *y})
    for (ExprRef end : {part.low, part.high})
      r.odd = disjunction(r.odd,
                          compare(CmpFPredicate::UNO, end,
                                  exprs.op("arith.subf", e->type, {end, end})));
  return r;
}

MaskSolver::Test MaskSolver::realTest(ExprRef e) {
  auto predicate = CmpFPredicate(
      cast<IntegerAttr>(cast<DictionaryAttr>(e->attr).get("predicate"))
          .getInt());
  auto x = realInterval(e->operand(0)), y = realInterval(e->operand(1));
  if (!x || !y)
    return anything();
  auto below = [&](const Interval &p, const Interval &q, CmpFPredicate sign) {
    return Test{compare(sign, p.low, q.high), compare(sign, p.high, q.low)};
  };
  Test strict = below(*x, *y, CmpFPredicate::OLT),
       weak = below(*x, *y, CmpFPredicate::OLE),
       strictBack = below(*y, *x, CmpFPredicate::OLT),
       weakBack = below(*y, *x, CmpFPredicate::OLE);
  Test equal{conjunction(weak.may, weakBack.may),
             conjunction(weak.must, weakBack.must)};
  auto pick = [&]() -> std::optional<Test> {
    switch (predicate) {
    case CmpFPredicate::OLT:
      return strict;
    case CmpFPredicate::OLE:
      return weak;
    case CmpFPredicate::OGT:
      return strictBack;
    case CmpFPredicate::OGE:
      return weakBack;
    case CmpFPredicate::OEQ:
      return equal;
    case CmpFPredicate::UNE:
      return negation(equal);
    case CmpFPredicate::UGE:
      return negation(strict);
    case CmpFPredicate::UGT:
      return negation(weak);
    case CmpFPredicate::ULE:
      return negation(strictBack);
    case CmpFPredicate::ULT:
      return negation(weakBack);
    default:
      return std::nullopt;
    }
  };
  std::optional<Test> t = pick();
  if (!t)
    return anything();
  ExprRef odd = disjunction(x->odd, y->odd);
  return {disjunction(t->may, odd),
          conjunction(t->must, exprs.logicalNot(odd))};
}

MaskSolver::Test MaskSolver::test(ExprRef e) {
  if (!varies(e))
    return {e, e};
  if (isSingle(e)) {
    const MaskTable *t = table(e);
    return t ? Test{exprs.parameter(t->greatest, i1),
                    exprs.parameter(t->least, i1)}
             : anything();
  }
  auto meet = [&](Test a, Test b) {
    return Test{conjunction(a.may, b.may), conjunction(a.must, b.must)};
  };
  auto join = [&](Test a, Test b) {
    return Test{disjunction(a.may, b.may), disjunction(a.must, b.must)};
  };
  auto differ = [&](ExprRef a, ExprRef b) {
    Test x = test(a), y = test(b);
    return join(meet(x, negation(y)), meet(negation(x), y));
  };
  if (e->isOp("arith.andi"))
    return meet(test(e->operand(0)), test(e->operand(1)));
  if (e->isOp("arith.ori"))
    return join(test(e->operand(0)), test(e->operand(1)));
  if (e->isOp("arith.xori"))
    return differ(e->operand(0), e->operand(1));
  if (e->kind == ExprKind::If || e->isOp("arith.select")) {
    Test c = test(e->operand(0)), yes = test(e->operand(1)),
         no = test(e->operand(2));
    return {disjunction(conjunction(c.may, yes.may),
                        conjunction(exprs.logicalNot(c.must), no.may)),
            conjunction(disjunction(exprs.logicalNot(c.may), yes.must),
                        disjunction(c.must, no.must))};
  }
  if (e->isOp("arith.cmpf"))
    return realTest(e);
  if (e->isOp("arith.cmpi")) {
    if (!e->operand(0)->type.isInteger(1))
      return integerTest(e);
    auto predicate = CmpIPredicate(
        cast<IntegerAttr>(cast<DictionaryAttr>(e->attr).get("predicate"))
            .getInt());
    if (predicate == CmpIPredicate::ne)
      return differ(e->operand(0), e->operand(1));
    if (predicate == CmpIPredicate::eq)
      return negation(differ(e->operand(0), e->operand(1)));
  }
  return anything();
}

} // namespace heed
