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

Shape Lowering::shapeOf(const Binding &binding) {
  switch (binding.kind) {
  case Binding::Tensor:
    return binding.tensor.shape;
  case Binding::Collection:
    return binding.collection->shape;
  case Binding::Table:
    return binding.table->extents();
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
        return underGuards(body, eq, Ty::I64, at, value, [&]() -> TV {
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
