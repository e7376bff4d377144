//===- MaskBounds.cpp - which keys a tile of queries sees
//------------------===//
// Each comparison is brought to the form  f(i) + g(j) + s >= 0. Over a tile
// f takes its extremes at the first and last query, and g, a chain of shifts,
// products and floor divisions of j, is inverted step by step. For one
// comparison that is what eliminating i and j from the set
// {i0 <= i <= i1, f(i) + g(j) + s >= 0} gives, with exact floors. Conjunctions
// intersect ranges, disjunctions keep several.
#include "passes/MaskBounds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {
namespace {

// Pieces of a union, as they come: they may overlap or be empty.
struct Ranges {
  SmallVector<KeyRange, 2> reach, full;
};

// sign * term
struct Signed {
  int sign;
  ExprRef term;
};
using Sum = SmallVector<Signed, 4>;

class Solver {
public:
  Solver(MaskBounds &bounds, unsigned i, unsigned j)
      : bounds(bounds), exprs(*bounds.exprs), i(i), j(j),
        index(IndexType::get(exprs.context)) {
    first = exprs.var(bounds.first);
    last = exprs.var(bounds.last);
    keys = exprs.var(bounds.keys);
    zero = exprs.index(0);
    one = exprs.index(1);
  }

  Ranges solve(ExprRef e, bool negated = false);
  KeyRange clamp(KeyRange r) { return {max(zero, r.low), min(keys, r.high)}; }

private:
  ExprRef op(StringRef name, ExprRef a, ExprRef b) {
    return exprs.op(name, index, {a, b});
  }
  // Sums are kept in one form, so that equal bounds look equal and read well.
  ExprRef add(ExprRef a, ExprRef b) {
    Sum sum;
    flatten(a, 1, sum);
    flatten(b, 1, sum);
    return total(sum);
  }
  ExprRef sub(ExprRef a, ExprRef b) {
    Sum sum;
    flatten(a, 1, sum);
    flatten(b, -1, sum);
    return total(sum);
  }
  ExprRef mul(ExprRef a, ExprRef b) { return op("arith.muli", a, b); }
  ExprRef neg(ExprRef a) { return sub(zero, a); }
  ExprRef min(ExprRef a, ExprRef b) { return extreme("arith.minsi", a, b); }
  ExprRef max(ExprRef a, ExprRef b) { return extreme("arith.maxsi", a, b); }
  // max(0, max(0, x)) is max(0, x).
  ExprRef extreme(StringRef name, ExprRef a, ExprRef b) {
    auto contains = [&](ExprRef e, ExprRef part) {
      return e == part || (e->isOp(name) &&
                           (e->operand(0) == part || e->operand(1) == part));
    };
    if (contains(a, b))
      return a;
    if (contains(b, a))
      return b;
    if (b->isOp(name) && contains(a, b->operand(0)))
      return extreme(name, a, b->operand(1));
    if (b->isOp(name) && contains(a, b->operand(1)))
      return extreme(name, a, b->operand(0));
    return op(name, a, b);
  }
  ExprRef choose(ExprRef c, ExprRef a, ExprRef b) {
    return exprs.select(c, a, b, /*guard=*/false);
  }
  ExprRef compare(arith::CmpIPredicate predicate, ExprRef a, ExprRef b) {
    auto attrs = DictionaryAttr::get(
        exprs.context,
        NamedAttribute(
            StringAttr::get(exprs.context, "predicate"),
            arith::CmpIPredicateAttr::get(exprs.context, predicate)));
    return exprs.op(OperationName("arith.cmpi", exprs.context), attrs,
                    IntegerType::get(exprs.context, 1), {a, b});
  }
  bool varies(ExprRef e) { return e->uses(i) || e->uses(j); }
  bool mayRead(ExprRef e) {
    bool found = false;
    Exprs::walk(e,
                [&](ExprRef inner) { found |= inner->kind == ExprKind::Read; });
    return found;
  }
  KeyRange all() { return {zero, keys}; }
  Ranges unknown(ExprRef e) {
    if (bounds.exact) {
      bounds.exact = false;
      bounds.unsolved = bounds.text(e);
    }
    return {{all()}, {}};
  }
  Ranges both(Ranges a, Ranges b);
  Ranges few(Ranges r);
  Ranges either(Ranges a, Ranges b);

  ExprRef plain(ExprRef e);
  void flatten(ExprRef e, int sign, Sum &sum);
  std::optional<std::pair<ExprRef, ExprRef>> interval(ExprRef e);
  bool isPositiveSize(ExprRef e);
  Ranges atLeastZero(Sum sum, ExprRef origin);
  std::optional<KeyRange> invert(ExprRef g, bool atLeast, ExprRef bound);
  ExprRef total(ArrayRef<Signed> sum);

  MaskBounds &bounds;
  Exprs &exprs;
  unsigned i, j;
  Type index;
  ExprRef first, last, keys, zero, one;
};

Ranges Solver::both(Ranges a, Ranges b) {
  auto intersect = [&](ArrayRef<KeyRange> xs, ArrayRef<KeyRange> ys) {
    SmallVector<KeyRange, 2> result;
    for (KeyRange x : xs)
      for (KeyRange y : ys)
        result.push_back({max(x.low, y.low), min(x.high, y.high)});
    return result;
  };
  return few({intersect(a.reach, b.reach), intersect(a.full, b.full)});
}

Ranges Solver::either(Ranges a, Ranges b) {
  a.reach.append(b.reach);
  a.full.append(b.full);
  return few(a);
}

// Beyond four pieces the work per tile would outgrow what it saves.
Ranges Solver::few(Ranges r) {
  for (auto *pieces : {&r.reach, &r.full}) {
    llvm::erase_if(*pieces, [&](KeyRange x) { return x.high == zero; });
    SmallVector<KeyRange, 2> distinct;
    for (KeyRange x : *pieces)
      if (llvm::none_of(distinct, [&](KeyRange y) {
            return x.low == y.low && x.high == y.high;
          }))
        distinct.push_back(x);
    *pieces = distinct;
  }
  if (r.reach.size() > 4)
    r.reach = {all()};
  if (r.full.size() > 4)
    r.full.resize(4);
  return r;
}

// Integers of any width as index: what the mask compares fits.
ExprRef Solver::plain(ExprRef e) {
  e = Exprs::stripExtension(e);
  if (auto value = Exprs::constantInt(e); value && !e->type.isIndex())
    return exprs.index(*value);
  if (e->type.isIndex() || varies(e))
    return e;
  return exprs.op("arith.index_cast", index, {e});
}

void Solver::flatten(ExprRef e, int sign, Sum &sum) {
  e = Exprs::stripExtension(e);
  bool minus = e->isOp("arith.subi");
  if (minus || e->isOp("arith.addi")) {
    flatten(e->operand(0), sign, sum);
    return flatten(e->operand(1), minus ? -sign : sign, sum);
  }
  if (e->isOp("arith.muli"))
    for (int k : {0, 1})
      if (Exprs::isConstantInt(e->operand(k), -1))
        return flatten(e->operand(1 - k), -sign, sum);
  if (Exprs::isConstantInt(e, 0))
    return;
  // i - i cancels.
  for (size_t k = 0; k < sum.size(); ++k)
    if (sum[k].term == plain(e) && sum[k].sign == -sign) {
      sum.erase(sum.begin() + k);
      return;
    }
  sum.push_back({sign, plain(e)});
}

ExprRef Solver::total(ArrayRef<Signed> sum) {
  ExprRef result = nullptr;
  int64_t constant = 0;
  for (int sign : {1, -1})
    for (Signed s : sum) {
      if (s.sign != sign)
        continue;
      if (auto value = Exprs::constantInt(s.term))
        constant += sign * *value;
      else if (!result)
        result = sign > 0 ? s.term : op("arith.subi", zero, s.term);
      else
        result = op(sign > 0 ? "arith.addi" : "arith.subi", result, s.term);
    }
  if (!result)
    return exprs.index(constant);
  if (constant > 0)
    return op("arith.addi", result, exprs.index(constant));
  return constant ? op("arith.subi", result, exprs.index(-constant)) : result;
}

// Sizes and literals that divide or multiply: known to be above 0.
bool Solver::isPositiveSize(ExprRef e) {
  e = Exprs::stripExtension(e);
  if (auto value = Exprs::constantInt(e))
    return *value > 0;
  return e->kind == ExprKind::Scalar && e->value.getDefiningOp<tensor::DimOp>();
}

// The least and the greatest value of e over the queries of a tile.
std::optional<std::pair<ExprRef, ExprRef>> Solver::interval(ExprRef e) {
  e = Exprs::stripExtension(e);
  if (e->uses(j))
    return std::nullopt;
  if (!e->uses(i))
    return std::make_pair(plain(e), plain(e));
  if (e->kind == ExprKind::Var)
    return std::make_pair(first, last);
  if (e->kind != ExprKind::Op)
    return std::nullopt;
  if (e->isOp("arith.select")) {
    auto a = interval(e->operand(1)), b = interval(e->operand(2));
    if (!a || !b)
      return std::nullopt;
    return std::make_pair(min(a->first, b->first), max(a->second, b->second));
  }
  SmallVector<std::pair<ExprRef, ExprRef>, 2> parts;
  for (ExprRef operand : e->operands) {
    auto part = interval(operand);
    if (!part)
      return std::nullopt;
    parts.push_back(*part);
  }
  if (e->isOp("math.absi"))
    return std::make_pair(max(zero, max(parts[0].first, neg(parts[0].second))),
                          max(neg(parts[0].first), parts[0].second));
  if (parts.size() != 2)
    return std::nullopt;
  auto [a, b] = std::make_pair(parts[0], parts[1]);
  if (e->isOp("arith.addi"))
    return std::make_pair(add(a.first, b.first), add(a.second, b.second));
  if (e->isOp("arith.subi"))
    return std::make_pair(sub(a.first, b.second), sub(a.second, b.first));
  if (e->isOp("arith.minsi"))
    return std::make_pair(min(a.first, b.first), min(a.second, b.second));
  if (e->isOp("arith.maxsi"))
    return std::make_pair(max(a.first, b.first), max(a.second, b.second));
  if (e->isOp("arith.floordivsi") && isPositiveSize(e->operand(1)))
    return std::make_pair(op("arith.floordivsi", a.first, b.first),
                          op("arith.floordivsi", a.second, b.first));
  if (e->isOp("arith.muli"))
    for (int k : {0, 1})
      if (isPositiveSize(e->operand(k))) {
        auto x = parts[1 - k];
        ExprRef factor = parts[k].first;
        return std::make_pair(mul(x.first, factor), mul(x.second, factor));
      }
  return std::nullopt;
}

// The j with g(j) >= bound, or g(j) <= bound.
std::optional<KeyRange> Solver::invert(ExprRef g, bool atLeast, ExprRef bound) {
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
    return atLeast ? KeyRange{bound, keys} : KeyRange{zero, add(bound, one)};
  if (t->isOp("arith.floordivsi") && isPositiveSize(t->operand(1)) &&
      !varies(t->operand(1))) {
    ExprRef d = plain(t->operand(1));
    ExprRef edge = mul(bound, d);
    if (!atLeast)
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

Ranges Solver::atLeastZero(Sum sum, ExprRef origin) {
  SmallVector<Signed> ofPair, ofKey, rest;
  for (Signed s : sum)
    (s.term->uses(i) && s.term->uses(j) ? ofPair
     : s.term->uses(j)                  ? ofKey
                                        : rest)
        .push_back(s);

  // A function of i - j alone: undo its outermost step.
  if (!ofPair.empty() ||
      (ofKey.size() == 1 && !ofKey[0].term->operands.empty() &&
       ofKey[0].term->operands.size() <= 2)) {
    bool alone = ofPair.size() == 1 && ofKey.empty() &&
                 llvm::none_of(rest, [&](Signed s) { return varies(s.term); });
    bool keyAlone = ofPair.empty() && (ofKey[0].term->isOp("math.absi") ||
                                       ofKey[0].term->isOp("arith.minsi") ||
                                       ofKey[0].term->isOp("arith.maxsi"));
    if (!ofPair.empty() && !alone)
      return unknown(origin);
    if (alone || keyAlone) {
      Signed outer = alone ? ofPair[0] : ofKey[0];
      ExprRef t = outer.term;
      bool atLeast = outer.sign > 0;
      // sum' = rest with `sign * x` added
      auto with = [&](ExprRef x, int sign, ExprRef more = nullptr,
                      int moreSign = 1) {
        Sum next(rest.begin(), rest.end());
        flatten(x, sign, next);
        if (more)
          flatten(more, moreSign, next);
        return next;
      };
      if (t->isOp("math.absi")) {
        Ranges a = atLeastZero(with(t->operand(0), outer.sign), origin);
        Ranges b = atLeastZero(with(t->operand(0), -outer.sign), origin);
        return atLeast ? either(a, b) : both(a, b);
      }
      if (t->isOp("arith.minsi") || t->isOp("arith.maxsi")) {
        Ranges a = atLeastZero(with(t->operand(0), outer.sign), origin);
        Ranges b = atLeastZero(with(t->operand(1), outer.sign), origin);
        return t->isOp("arith.minsi") == atLeast ? both(a, b) : either(a, b);
      }
      // x // d >= c: x >= c * d; x // d <= c: x <= c * d + d - 1
      ExprRef c = atLeast ? neg(total(rest)) : total(rest);
      if (t->isOp("arith.floordivsi") && isPositiveSize(t->operand(1)) &&
          !varies(t->operand(1))) {
        ExprRef d = plain(t->operand(1));
        rest.clear();
        if (atLeast)
          return atLeastZero(with(t->operand(0), 1, mul(c, d), -1), origin);
        return atLeastZero(with(t->operand(0), -1, add(mul(c, d), sub(d, one))),
                           origin);
      }
      if (t->isOp("arith.muli"))
        for (int k : {0, 1})
          if (isPositiveSize(t->operand(k)) && !varies(t->operand(k))) {
            ExprRef a = plain(t->operand(k));
            rest.clear();
            ExprRef rounded =
                atLeast ? op("arith.floordivsi", add(c, sub(a, one)), a)
                        : op("arith.floordivsi", c, a);
            return atLeastZero(with(t->operand(1 - k), atLeast ? 1 : -1,
                                    rounded, atLeast ? -1 : 1),
                               origin);
          }
      return unknown(origin);
    }
  }

  ExprRef least = zero, greatest = zero;
  for (Signed s : rest) {
    auto part = interval(s.term);
    if (!part)
      return unknown(origin);
    least = s.sign > 0 ? add(least, part->first) : sub(least, part->second);
    greatest =
        s.sign > 0 ? add(greatest, part->second) : sub(greatest, part->first);
  }
  if (ofKey.empty()) {
    auto where = [&](ExprRef bound) {
      ExprRef holds = compare(arith::CmpIPredicate::sge, bound, zero);
      return KeyRange{zero, choose(holds, keys, zero)};
    };
    return {{where(greatest)}, {where(least)}};
  }
  ExprRef g = total(ofKey);
  auto reach = invert(g, /*atLeast=*/true, neg(greatest));
  auto full = invert(g, /*atLeast=*/true, neg(least));
  if (!reach || !full)
    return unknown(origin);
  return {{*reach}, {*full}};
}

Ranges Solver::solve(ExprRef e, bool negated) {
  if (auto value = Exprs::constantInt(e))
    return (*value != 0) != negated ? Ranges{{all()}, {all()}} : Ranges{};
  if (!varies(e)) {
    ExprRef holds = negated ? exprs.logicalNot(e) : e;
    KeyRange r{zero, choose(holds, keys, zero)};
    return {{r}, {r}};
  }
  if (e->isOp("arith.andi") || e->isOp("arith.ori")) {
    Ranges a = solve(e->operand(0), negated), b = solve(e->operand(1), negated);
    return e->isOp("arith.andi") != negated ? both(a, b) : either(a, b);
  }
  if (e->isOp("arith.xori"))
    for (int k : {0, 1})
      if (e->operand(k)->kind == ExprKind::Constant)
        return solve(e->operand(1 - k), !negated);
  if (e->kind == ExprKind::If || e->isOp("arith.select")) {
    ExprRef c = e->operand(0), yes = e->operand(1), no = e->operand(2);
    // What a branch reads may be out of range where it is not taken: only the
    // per-element evaluation may read it.
    bool guarded = e->kind == ExprKind::If;
    auto branch = [&](ExprRef x) {
      return guarded && mayRead(x) ? unknown(x) : solve(x, negated);
    };
    return either(both(solve(c), branch(yes)),
                  both(solve(c, /*negated=*/true), branch(no)));
  }
  if (e->isOp("arith.cmpi")) {
    auto predicate = arith::CmpIPredicate(
        cast<IntegerAttr>(cast<DictionaryAttr>(e->attr).get("predicate"))
            .getInt());
    if (negated)
      predicate = arith::invertPredicate(predicate);
    // a - b >= 0 with what makes it strict
    auto atLeast = [&](ExprRef a, ExprRef b, bool strict) {
      Sum sum;
      flatten(a, 1, sum);
      flatten(b, -1, sum);
      if (strict)
        flatten(one, -1, sum);
      return atLeastZero(sum, e);
    };
    ExprRef a = e->operand(0), b = e->operand(1);
    if (a->type.isInteger(1))
      return unknown(e);
    switch (predicate) {
    case arith::CmpIPredicate::sle:
      return atLeast(b, a, false);
    case arith::CmpIPredicate::slt:
      return atLeast(b, a, true);
    case arith::CmpIPredicate::sge:
      return atLeast(a, b, false);
    case arith::CmpIPredicate::sgt:
      return atLeast(a, b, true);
    case arith::CmpIPredicate::eq:
      return both(atLeast(a, b, false), atLeast(b, a, false));
    case arith::CmpIPredicate::ne:
      return either(atLeast(a, b, true), atLeast(b, a, true));
    default:
      return unknown(e);
    }
  }
  return unknown(e);
}

} // namespace

FailureOr<MaskBounds> solveMask(attn::AttentionOp op) {
  using attn::DimKind;
  if (op.numDims(DimKind::Query) != 1 || op.numDims(DimKind::Key) != 1)
    return failure();
  MaskBounds bounds;
  bounds.exprs = std::make_shared<Exprs>(op.getContext());
  Exprs &exprs = *bounds.exprs;
  bounds.first = exprs.freshVar();
  bounds.last = exprs.freshVar();
  bounds.queries = exprs.freshVar();
  bounds.keys = exprs.freshVar();
  unsigned i = exprs.freshVar(), j = exprs.freshVar();
  SmallVector<ExprRef> arguments;
  for (unsigned k = 0; k < op.numDims(DimKind::Batch); ++k) {
    bounds.batch.push_back(exprs.freshVar());
    arguments.push_back(exprs.var(bounds.batch.back()));
  }
  arguments.push_back(exprs.var(i));
  arguments.push_back(exprs.var(j));

  Solver solver(bounds, i, j);
  Ranges ranges;
  if (op.getWhere().empty()) {
    ranges = solver.solve(exprs.truth(true));
  } else {
    ExprRef where = exprs.block(op.getWhere().front(), arguments);
    if (!where) {
      bounds.exact = false;
      bounds.unsolved = "an op that is no expression of indices";
      ranges.reach = {{exprs.index(0), exprs.var(bounds.keys)}};
    } else {
      // N and M are what the op says, whatever SSA value spells them.
      DenseMap<Value, ExprRef> sizes;
      unsigned query = op.firstDim(DimKind::Query);
      sizes[op.getSizes()[query]] = exprs.var(bounds.queries);
      sizes[op.getSizes()[query + 1]] = exprs.var(bounds.keys);
      where = exprs.rewrite(where, [&](ExprRef e) -> ExprRef {
        return e->kind == ExprKind::Scalar ? sizes.lookup(e->value) : nullptr;
      });
      ranges = solver.solve(where);
    }
  }
  for (KeyRange r : ranges.reach)
    bounds.reach.push_back(solver.clamp(r));
  for (KeyRange r : ranges.full)
    bounds.full.push_back(solver.clamp(r));
  return bounds;
}

MaskRanges MaskBounds::write(OpBuilder &b, Location loc,
                             const MaskTile &tile) const {
  using arith::CmpIPredicate;
  ExprWriter writer(b, loc);
  writer.bind(first, tile.first);
  writer.bind(last, tile.last);
  writer.bind(queries, tile.queries);
  writer.bind(keys, tile.keys);
  for (auto [v, value] : llvm::zip(batch, tile.batch))
    writer.bind(v, value);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  auto min = [&](Value x, Value y) -> Value {
    return b.createOrFold<arith::MinSIOp>(loc, x, y);
  };
  auto max = [&](Value x, Value y) -> Value {
    return b.createOrFold<arith::MaxSIOp>(loc, x, y);
  };
  auto choose = [&](Value c, Value x, Value y) -> Value {
    return b.createOrFold<arith::SelectOp>(loc, c, x, y);
  };
  auto compare = [&](CmpIPredicate predicate, Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  };
  using Range = std::pair<Value, Value>;
  // Within [0, M]; an empty piece is [M, M).
  auto values = [&](ArrayRef<KeyRange> pieces) {
    SmallVector<Range> result;
    for (KeyRange r : pieces) {
      Value low = writer.write(r.low), high = writer.write(r.high);
      Value empty = compare(CmpIPredicate::sge, low, high);
      low = choose(empty, tile.keys, low);
      result.push_back({low, max(low, high)});
    }
    return result;
  };

  MaskRanges ranges;
  ranges.reach = values(reach);
  // Sorted by a network, then each starts where those before it end.
  auto &pieces = ranges.reach;
  for (size_t round = 0; round + 1 < pieces.size(); ++round)
    for (size_t k = 0; k + 1 < pieces.size() - round; ++k) {
      Range x = pieces[k], y = pieces[k + 1];
      Value ordered = compare(CmpIPredicate::sle, x.first, y.first);
      pieces[k] = {min(x.first, y.first), choose(ordered, x.second, y.second)};
      pieces[k + 1] = {max(x.first, y.first),
                       choose(ordered, y.second, x.second)};
    }
  ranges.hull = {tile.keys, tile.keys};
  if (!pieces.empty()) {
    Value end = pieces[0].second;
    // An empty piece ends at M: it must not stretch the hull.
    Value hullEnd = zero;
    for (auto [k, r] : llvm::enumerate(pieces)) {
      Value empty = compare(CmpIPredicate::sge, r.first, r.second);
      hullEnd = max(hullEnd, choose(empty, zero, r.second));
      if (k == 0)
        continue;
      r.first = max(r.first, end);
      r.second = max(r.first, r.second);
      end = max(end, r.second);
    }
    ranges.hull = {min(pieces[0].first, hullEnd), hullEnd};
  }
  // Full pieces that touch are one; of others the longer.
  ranges.full = {zero, zero};
  for (auto [k, r] : llvm::enumerate(values(full))) {
    if (k == 0) {
      ranges.full = r;
      continue;
    }
    Range x = ranges.full, y = r;
    Value touch = compare(CmpIPredicate::sle, max(x.first, y.first),
                          min(x.second, y.second));
    Value both = arith::AndIOp::create(
        b, loc, compare(CmpIPredicate::slt, x.first, x.second),
        compare(CmpIPredicate::slt, y.first, y.second));
    Value merge = arith::AndIOp::create(b, loc, touch, both);
    Value longer =
        compare(CmpIPredicate::sge,
                arith::SubIOp::create(b, loc, x.second, x.first).getResult(),
                arith::SubIOp::create(b, loc, y.second, y.first).getResult());
    ranges.full = {
        choose(merge, min(x.first, y.first), choose(longer, x.first, y.first)),
        choose(merge, max(x.second, y.second),
               choose(longer, x.second, y.second))};
  }
  return ranges;
}

std::unique_ptr<Block> MaskBounds::block(MLIRContext *context, Location loc,
                                         MaskRanges &ranges) const {
  auto block = std::make_unique<Block>();
  OpBuilder b(context);
  b.setInsertionPointToStart(block.get());
  Type index = b.getIndexType();
  MaskTile tile;
  tile.first = block->addArgument(index, loc);
  tile.last = block->addArgument(index, loc);
  tile.queries = block->addArgument(index, loc);
  tile.keys = block->addArgument(index, loc);
  for (size_t k = 0; k < batch.size(); ++k)
    tile.batch.push_back(block->addArgument(index, loc));
  ranges = write(b, loc, tile);
  attn::YieldOp::create(b, loc, tile.first);
  return block;
}

std::string MaskBounds::text(ExprRef e) const {
  auto call = [&](StringRef name) {
    std::string s = name.str() + "(";
    llvm::raw_string_ostream os(s);
    llvm::interleaveComma(e->operands, os,
                          [&](ExprRef operand) { os << text(operand); });
    return s + ")";
  };
  auto infix = [&](StringRef sign) {
    return "(" + text(e->operand(0)) + " " + sign.str() + " " +
           text(e->operand(1)) + ")";
  };
  if (auto value = Exprs::constantInt(e))
    return e->type.isInteger(1) ? (*value ? "True" : "False")
                                : std::to_string(*value);
  if (e->kind == ExprKind::Var) {
    for (auto [v, name] : {std::pair(first, "i0"), std::pair(last, "i1"),
                           std::pair(queries, "N"), std::pair(keys, "M"),
                           std::pair(keys + 1, "i"), std::pair(keys + 2, "j")})
      if (e->number == v)
        return name;
    for (auto [k, v] : llvm::enumerate(batch))
      if (e->number == v)
        return "b" + std::to_string(k);
  }
  auto nameOf = [&](Value value) -> std::string {
    auto attrOf = [](Value argument, StringRef name) -> Attribute {
      auto arg = dyn_cast<BlockArgument>(argument);
      auto function =
          arg ? dyn_cast_or_null<func::FuncOp>(arg.getOwner()->getParentOp())
              : nullptr;
      return function ? function.getArgAttr(arg.getArgNumber(), name)
                      : Attribute();
    };
    if (auto name = dyn_cast_or_null<StringAttr>(attrOf(value, "attn.name")))
      return name.str();
    if (auto dim = value.getDefiningOp<tensor::DimOp>())
      if (auto names =
              dyn_cast_or_null<ArrayAttr>(attrOf(dim.getSource(), "attn.dims")))
        if (auto k = dim.getConstantIndex(); k && *k < int64_t(names.size()))
          if (auto name = dyn_cast<StringAttr>(names[*k]))
            return name.str();
    return "value";
  };
  if (e->kind == ExprKind::Scalar)
    return nameOf(e->value);
  if (e->kind == ExprKind::Read) {
    std::string s = nameOf(e->value) + "[";
    llvm::raw_string_ostream os(s);
    llvm::interleaveComma(e->operands, os,
                          [&](ExprRef operand) { os << text(operand); });
    return s + "]";
  }
  if (e->kind == ExprKind::If || e->isOp("arith.select"))
    return "(" + text(e->operand(1)) + " if " + text(e->operand(0)) + " else " +
           text(e->operand(2)) + ")";
  if (Exprs::stripExtension(e) != e)
    return text(Exprs::stripExtension(e));
  if (e->isOp("arith.addi"))
    return infix("+");
  if (e->isOp("arith.subi"))
    return infix("-");
  if (e->isOp("arith.muli"))
    return infix("*");
  if (e->isOp("arith.floordivsi"))
    return infix("//");
  if (e->isOp("arith.andi"))
    return infix("and");
  if (e->isOp("arith.ori"))
    return infix("or");
  if (e->isOp("arith.xori"))
    return infix("!=");
  if (e->isOp("arith.cmpi")) {
    static constexpr StringLiteral signs[] = {"==", "!=", "<",  "<=", ">",
                                              ">=", "<",  "<=", ">",  ">="};
    return infix(
        signs[cast<IntegerAttr>(cast<DictionaryAttr>(e->attr).get("predicate"))
                  .getInt()]);
  }
  if (e->isOp("arith.minsi"))
    return call("min");
  if (e->isOp("arith.maxsi"))
    return call("max");
  if (e->isOp("math.absi"))
    return call("abs");
  return e->kind == ExprKind::Op ? call(e->name->stripDialect()) : "?";
}

} // namespace heed
