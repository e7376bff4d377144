//===- Ranges.cpp - Are reads in range? -----------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A read is proven, from the ranges of its indices; or checked once per call,
// where it depends on sizes; or checked in a pass over the positions, where it
// depends on data or on a guard.
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

//===----------------------------------------------------------------------===//
// Linear forms and bounds
//===----------------------------------------------------------------------===//

std::optional<Linear> Lowering::linear(const Expr &expr, const Scope &scope,
                                       Equation &eq) {
  const Info &i = info(expr, scope, eq);
  if (i.fixed) {
    if (i.fixed->kind != Binding::Int)
      return std::nullopt;
    return Linear{{}, i.fixed->size};
  }
  auto combined = [&](const Expr &a, const Expr &b,
                      int64_t sign) -> std::optional<Linear> {
    auto x = linear(a, scope, eq), y = linear(b, scope, eq);
    if (!x || !y)
      return std::nullopt;
    x->offset = x->offset + y->offset * sign;
    for (auto &[idx, factor] : y->factors) {
      Size &sum = x->factors[idx];
      sum = sum + factor * sign;
      if (sum.terms.empty())
        x->factors.erase(idx);
    }
    return x;
  };
  switch (expr.kind) {
  case ExprKind::Paren:
    return linear(*cast<ParenExpr>(expr).inner, scope, eq);
  case ExprKind::Name: {
    auto &name = cast<NameExpr>(expr);
    if (auto it = scope.indices.find(name.name); it != scope.indices.end())
      return Linear{{{it->second, Size(1)}}, Size()};
    auto binding = lookup(*scope.env, name.name);
    if (binding && binding->kind == Binding::Thunk)
      return linear(*binding->thunk->expr, *binding->thunk->scope, eq);
    return std::nullopt;
  }
  case ExprKind::Negate: {
    auto x = linear(*cast<NegateExpr>(expr).operand, scope, eq);
    if (!x)
      return std::nullopt;
    x->offset = -x->offset;
    for (auto &entry : x->factors)
      entry.second = -entry.second;
    return x;
  }
  case ExprKind::Binary: {
    auto &binary = cast<BinaryExpr>(expr);
    if (binary.op == BinaryOp::Add || binary.op == BinaryOp::Sub)
      return combined(*binary.lhs, *binary.rhs,
                      binary.op == BinaryOp::Add ? 1 : -1);
    if (binary.op != BinaryOp::Mul)
      return std::nullopt;
    auto x = linear(*binary.lhs, scope, eq), y = linear(*binary.rhs, scope, eq);
    if (!x || !y || (!x->factors.empty() && !y->factors.empty()))
      return std::nullopt;
    if (x->factors.empty())
      std::swap(x, y);
    Size by = y->offset;
    if (by.terms.empty())
      return Linear{};
    x->offset = x->offset * by;
    for (auto &entry : x->factors)
      entry.second = sizes.simplify(entry.second * by);
    return x;
  }
  default:
    return std::nullopt;
  }
}

SmallVector<unsigned> Lowering::positiveAtoms(ArrayRef<Idx *> used) {
  // Where something is evaluated, every loop around it runs at least once.
  SmallVector<unsigned> atoms;
  for (Idx *idx : used)
    if (idx->extent)
      for (auto &term : idx->extent->terms)
        if (idx->extent->terms.size() == 1)
          for (unsigned id : term.first)
            atoms.push_back(id);
  return atoms;
}

Bounds Lowering::bounds(const Expr &expr, const Scope &scope, Equation &eq) {
  Bounds result;
  const Info &i = info(expr, scope, eq);
  if (!i.pure)
    result.data = true;
  SmallVector<unsigned> atoms = positiveAtoms(i.used);
  auto nonNegative = [&](const Size &size) {
    return sizes.nonNegative(size, atoms);
  };
  if (auto form = linear(expr, scope, eq)) {
    Size low = form->offset, high = form->offset;
    bool known = true;
    for (auto &[idx, factor] : form->factors) {
      Size span = factor * (*idx->extent - 1);
      if (nonNegative(factor))
        high = high + span;
      else if (nonNegative(-factor))
        low = low + span;
      else
        known = false;
    }
    if (known) {
      result.lower = {sizes.simplify(low)};
      result.upper = {sizes.simplify(high)};
      result.exact = true;
      result.data = false;
      return result;
    }
  }
  auto of = [&](const Expr &part) { return bounds(part, scope, eq); };
  switch (expr.kind) {
  case ExprKind::Paren:
    return of(*cast<ParenExpr>(expr).inner);
  case ExprKind::Name: {
    auto binding = lookup(*scope.env, cast<NameExpr>(expr).name);
    if (binding && binding->kind == Binding::Thunk)
      return bounds(*binding->thunk->expr, *binding->thunk->scope, eq);
    return result;
  }
  case ExprKind::Negate: {
    Bounds x = of(*cast<NegateExpr>(expr).operand);
    for (const Size &s : x.upper)
      result.lower.push_back(-s);
    for (const Size &s : x.lower)
      result.upper.push_back(-s);
    result.exact = x.exact;
    return result;
  }
  case ExprKind::If: {
    Bounds x = of(*cast<IfExpr>(expr).thenValue),
           y = of(*cast<IfExpr>(expr).elseValue);
    for (const Size &a : x.lower)
      for (const Size &b : y.lower)
        result.lower.push_back(sizes.min(a, b));
    for (const Size &a : x.upper)
      for (const Size &b : y.upper)
        result.upper.push_back(sizes.max(a, b));
    return result;
  }
  case ExprKind::Call: {
    auto &call = cast<CallExpr>(expr);
    StringRef name = call.callee.text;
    if (auto it = eq.calls.find({&expr, scope.env.get()});
        it != eq.calls.end()) {
      if (it->second.kind == Binding::Thunk)
        return bounds(*it->second.thunk->expr, *it->second.thunk->scope, eq);
      return result;
    }
    SmallVector<Bounds, 3> x;
    if (!isInt(i.ty))
      return result;
    for (const ExprPtr &arg : call.args) {
      if (!isInt(info(*arg, scope, eq).ty))
        return result;
      x.push_back(of(*arg));
    }
    auto least = [&](const Bounds &a, const Bounds &b) {
      Bounds r;
      for (const Size &s : a.lower)
        for (const Size &t : b.lower)
          r.lower.push_back(nonNegative(t - s)   ? s
                            : nonNegative(s - t) ? t
                                                 : sizes.min(s, t));
      r.upper = a.upper;
      r.upper.append(b.upper.begin(), b.upper.end());
      r.exact = a.exact && b.exact && a.lower.size() == 1 &&
                b.lower.size() == 1 && r.upper.size() == 2;
      if (r.exact)
        r.upper = {sizes.min(r.upper[0], r.upper[1])};
      r.data = a.data || b.data;
      return r;
    };
    auto most = [&](const Bounds &a, const Bounds &b) {
      Bounds r;
      for (const Size &s : a.upper)
        for (const Size &t : b.upper)
          r.upper.push_back(nonNegative(s - t)   ? s
                            : nonNegative(t - s) ? t
                                                 : sizes.max(s, t));
      r.lower = a.lower;
      r.lower.append(b.lower.begin(), b.lower.end());
      r.data = a.data || b.data;
      return r;
    };
    if (name == "min")
      return least(x[0], x[1]);
    if (name == "max")
      return most(x[0], x[1]);
    if (name == "clamp")
      return least(most(x[0], x[1]), x[2]);
    if (name == "relu" || name == "abs") {
      result.lower.push_back(Size(0));
      if (name == "relu")
        result.lower.append(x[0].lower);
      for (const Size &s : x[0].upper)
        for (const Size &t : x[0].lower)
          result.upper.push_back(sizes.max(s, name == "abs" ? -t : Size(0)));
      return result;
    }
    if (name == "i32" || name == "i64")
      return x[0];
    return result;
  }
  case ExprKind::Binary: {
    auto &binary = cast<BinaryExpr>(expr);
    if (!isInt(i.ty))
      return result;
    const Info &right = info(*binary.rhs, scope, eq);
    bool divides =
        binary.op == BinaryOp::FloorDiv || binary.op == BinaryOp::Div;
    if ((divides || binary.op == BinaryOp::Mod) && right.fixed) {
      Size by = right.fixed->size;
      // A division by 0 is an error, or not reached.
      Bounds x = of(*binary.lhs);
      if (!nonNegative(by))
        return result;
      if (divides) {
        for (const Size &s : x.lower)
          result.lower.push_back(nonNegative(s) ? Size(0)
                                                : sizes.floorDiv(s, by));
        if (x.exact)
          result.lower = {sizes.floorDiv(x.lower[0], by)};
        for (const Size &s : x.upper)
          result.upper.push_back(sizes.floorDiv(s, by));
        result.exact = x.exact;
        result.data = x.data;
        return result;
      }
      result.lower.push_back(Size(0));
      result.upper.push_back(by - 1);
      for (const Size &s : x.lower)
        if (nonNegative(s))
          result.upper.append(x.upper);
      return result;
    }
    Bounds x = of(*binary.lhs), y = of(*binary.rhs);
    if (binary.op == BinaryOp::Add || binary.op == BinaryOp::Sub) {
      bool sub = binary.op == BinaryOp::Sub;
      for (const Size &a : x.lower)
        for (const Size &b : sub ? y.upper : y.lower)
          result.lower.push_back(sub ? a - b : a + b);
      for (const Size &a : x.upper)
        for (const Size &b : sub ? y.lower : y.upper)
          result.upper.push_back(sub ? a - b : a + b);
      result.exact = (x.exact && right.fixed) ||
                     (y.exact && info(*binary.lhs, scope, eq).fixed);
      return result;
    }
    if (binary.op == BinaryOp::Mul) {
      const Info &left = info(*binary.lhs, scope, eq);
      const Info &scale = left.fixed ? left : right;
      Bounds &range = left.fixed ? y : x;
      if (!scale.fixed)
        return result;
      bool up = nonNegative(scale.fixed->size);
      if (!up && !nonNegative(-scale.fixed->size))
        return result;
      for (const Size &s : range.lower)
        (up ? result.lower : result.upper).push_back(s * scale.fixed->size);
      for (const Size &s : range.upper)
        (up ? result.upper : result.lower).push_back(s * scale.fixed->size);
      result.exact = range.exact;
    }
    return result;
  }
  default:
    return result;
  }
}

//===----------------------------------------------------------------------===//
// Reads
//===----------------------------------------------------------------------===//

Shape Lowering::shapeOf(const Binding &binding) {
  switch (binding.kind) {
  case Binding::Tensor:
    return binding.tensor.shape;
  case Binding::Collection:
    return binding.collection->shape;
  case Binding::Table: {
    Shape shape;
    for (int64_t n : binding.table->shape)
      shape.push_back(Size(n));
    return shape;
  }
  default:
    return {};
  }
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
  return low && high;
}

bool Lowering::provenRead(const ReadExpr &expr, const Scope &scope,
                          Equation &eq) {
  Key key{&expr, scope.env.get()};
  if (auto it = eq.proven.find(key); it != eq.proven.end())
    return it->second;
  SmallVector<Item> axes;
  bool all = items(expr, scope, axes);
  Shape shape = shapeOf(*lookup(*scope.env, expr.name.text));
  for (auto [item, size] : llvm::zip(axes, shape))
    all = all && proven(item, size, scope, eq);
  return eq.proven[key] = all;
}

void sema::forEachChild(const Expr &expr,
                        llvm::function_ref<void(const Expr &)> f) {
  auto visit = [&](const ExprPtr &child) {
    if (child)
      f(*child);
  };
  switch (expr.kind) {
  case ExprKind::Read:
    for (const ast::Index &index : cast<ReadExpr>(expr).indices)
      visit(index.expr);
    break;
  case ExprKind::Call:
    for (const ExprPtr &arg : cast<CallExpr>(expr).args)
      visit(arg);
    for (const NamedArgument &arg : cast<CallExpr>(expr).named)
      visit(arg.value);
    break;
  case ExprKind::Paren:
    return visit(cast<ParenExpr>(expr).inner);
  case ExprKind::Negate:
    return visit(cast<NegateExpr>(expr).operand);
  case ExprKind::Not:
    return visit(cast<NotExpr>(expr).operand);
  case ExprKind::Binary:
    visit(cast<BinaryExpr>(expr).lhs);
    return visit(cast<BinaryExpr>(expr).rhs);
  case ExprKind::Compare:
    for (const ExprPtr &operand : cast<CompareExpr>(expr).operands)
      visit(operand);
    break;
  case ExprKind::Logic:
    visit(cast<LogicExpr>(expr).lhs);
    return visit(cast<LogicExpr>(expr).rhs);
  case ExprKind::If:
    visit(cast<IfExpr>(expr).condition);
    visit(cast<IfExpr>(expr).thenValue);
    return visit(cast<IfExpr>(expr).elseValue);
  case ExprKind::Reduce:
    visit(cast<ReduceExpr>(expr).where);
    return visit(cast<ReduceExpr>(expr).operand);
  case ExprKind::Softmax:
    visit(cast<SoftmaxExpr>(expr).where);
    visit(cast<SoftmaxExpr>(expr).sink);
    return visit(cast<SoftmaxExpr>(expr).operand);
  default:
    break;
  }
}

bool Lowering::needsGuard(const Expr &expr, const Scope &scope, Equation &eq) {
  auto found = eq.infos.find({&expr, scope.env.get()});
  // Not inferred: a branch that is not there.
  if (found == eq.infos.end() || found->second.fixed)
    return false;
  if (auto *read = dyn_cast<ReadExpr>(&expr))
    if (!provenRead(*read, scope, eq))
      return true;
  const Binding *named = nullptr;
  std::optional<Binding> binding;
  if (auto *name = dyn_cast<NameExpr>(&expr)) {
    if (!scope.indices.count(name->name))
      binding = lookup(*scope.env, name->name);
    named = binding ? &*binding : nullptr;
  } else if (isa<CallExpr>(expr)) {
    auto it = eq.calls.find({&expr, scope.env.get()});
    if (it != eq.calls.end())
      named = &it->second;
  }
  if (named)
    return named->kind == Binding::Thunk &&
           needsGuard(*named->thunk->expr, *named->thunk->scope, eq);
  bool any = false;
  std::optional<Scope> inner;
  if (auto *reduce = dyn_cast<ReduceExpr>(&expr))
    inner = inside(*reduce, scope, eq);
  forEachChild(expr, [&](const Expr &child) {
    any = any || needsGuard(child, inner ? *inner : scope, eq);
  });
  return any;
}

/// Proves, or checks, that a read is in range where it is reached.
bool Lowering::checkRead(const ReadExpr &expr, const Scope &scope,
                         Equation &eq) {
  if (provenRead(expr, scope, eq))
    return true;
  Key key{&expr, scope.env.get()};
  if (!eq.checked.insert(key).second)
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
  SmallVector<unsigned> atoms = positiveAtoms(used);
  if (eq.guards.empty() && range.exact && range.lower.size() == 1 &&
      range.upper.size() == 1) {
    Size low = range.lower[0], high = range.upper[0];
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
    SmallVector<Size> of = {low, high, extent};
    SmallVector<Value> loops;
    for (Idx *idx : used) {
      if (sizes.nonNegative(*idx->extent - 1))
        continue;
      loops.push_back(emit(*idx->extent, place));
      of.push_back(*idx->extent);
    }
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
  // A pass over all positions.
  Value zero = emit(Size(0), place), limit = emit(extent, place);
  if (item.expr && eq.guards.empty()) {
    for (Ty ty : {Ty::I32, Ty::I64, Ty::I8})
      if (auto tensor = plainRead(*item.expr, scope, eq, used, ty)) {
        attn::RequireInRangeOp::create(builder, loc(place), tensor->value, zero,
                                       limit,
                                       builder.getStringAttr(unquoted(what)));
        return true;
      }
  }
  for (const Guard &guard : eq.guards)
    for (Idx *idx : info(*guard.condition, *guard.scope, eq).used)
      if (!llvm::is_contained(used, idx))
        used.push_back(idx);
  // Where a guard excludes a position, the pass sees one that is in range.
  Size least = sizes.max(extent, Size(1));
  if (!eq.guards.empty())
    limit = emit(least, place);
  // Reads inside the position are checked by its own emission.
  auto positions =
      elementwise(used, Ty::I64, place, false, [&](Body &body) -> TV {
        Location at = loc(place);
        auto value = [&]() -> TV {
          if (item.idx)
            return {indexValue(body, item.idx, at), Ty::I64, {}};
          return emit(body, *item.expr, scope, eq);
        };
        return underGuards(body, eq, 0, Ty::I64, at, value, [&]() -> TV {
          return {arith::ConstantIntOp::create(body.builder, at, 0, 64),
                  Ty::I64,
                  {}};
        });
      });
  if (!positions)
    return false;
  attn::RequireInRangeOp::create(builder, loc(place), positions->value, zero,
                                 limit, builder.getStringAttr(unquoted(what)));
  return true;
}

std::string Lowering::unquoted(StringRef text) {
  std::string result;
  for (char c : text)
    if (c != '\'')
      result += c;
  return result;
}
