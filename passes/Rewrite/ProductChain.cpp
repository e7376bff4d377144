//===- ProductChain.cpp - a chain of three products, its orders -----------===//
#include "passes/Rewrite/ProductChain.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

namespace {

// Whether \p e depends on all of \p vars.
bool usesAll(ExprRef e, ArrayRef<unsigned> vars) {
  return llvm::all_of(vars, [&](unsigned v) { return e->uses(v); });
}

// Puts the factors of a chain into its nodes, one after the other.
struct ChainBuilder {
  Exprs &exprs;
  ProductChain &chain;

  ExprRef one(Type type) { return exprs.constant(FloatAttr::get(type, 1.0)); }

  // False for a divisor, \p below, that fits no node.
  bool join(ExprRef e, bool below, bool isInner) {
    if (!e->usesAny(chain.summed)) {
      Product &out = isInner ? chain.outsideInner : chain.outside;
      (below ? out.under : out.over).push_back(e);
      return true;
    }
    ExprRef *chosen = nullptr;
    auto stays = [&](ExprRef node) { return usesAll(node, chain.inner); };
    for (ExprRef &node : chain.nodes)
      if ((usesAll(node, e->freeVars) ||
           (!below && usesAll(e, node->freeVars))) &&
          (!chosen || (isInner && !stays(*chosen) && stays(node))))
        chosen = &node;
    if (chosen) {
      // It would be infinite where the sum that it leaves is empty.
      if (isInner && !stays(*chosen) && !stays(e))
        e = exprs.unlessEmpty(chain.inner, e, one(e->type));
      *chosen =
          exprs.op(below ? "arith.divf" : "arith.mulf", e->type, {*chosen, e});
      return true;
    }
    if (below)
      return false;
    chain.nodes.push_back(e);
    return true;
  }
};

} // namespace

std::optional<Size> heed::sizeOf(attn::SymbolicDims &dims, ExprRef extent) {
  if (auto number = Exprs::constantInt(extent))
    return *number;
  if (extent->kind == ExprKind::Scalar)
    return dims.size(extent->value);
  if (!extent->isOp("arith.addi") && !extent->isOp("arith.muli"))
    return std::nullopt;
  auto left = sizeOf(dims, extent->operand(0)),
       right = sizeOf(dims, extent->operand(1));
  if (!left || !right)
    return std::nullopt;
  return extent->isOp("arith.addi") ? *left + *right : *left * *right;
}

std::optional<ProductChain>
heed::makeChain(Exprs &exprs, const Product &product, const Product &within,
                ArrayRef<unsigned> outer, ArrayRef<unsigned> inner) {
  ProductChain chain;
  chain.outer.assign(outer.begin(), outer.end());
  chain.inner.assign(inner.begin(), inner.end());
  chain.summed = chain.outer;
  chain.summed.append(chain.inner);
  ChainBuilder builder{exprs, chain};

  SmallVector<std::pair<ExprRef, bool>> bySize;
  for (ExprRef e : product.over)
    bySize.emplace_back(e, false);
  for (ExprRef e : within.over)
    bySize.emplace_back(e, true);
  llvm::sort(bySize, [](auto &x, auto &y) {
    ExprRef a = x.first, b = y.first;
    if (a->freeVars.size() != b->freeVars.size())
      return a->freeVars.size() > b->freeVars.size();
    return a->id != b->id ? a->id < b->id : x.second < y.second;
  });
  for (auto [e, isInner] : bySize)
    builder.join(e, false, isInner);
  for (ExprRef e : product.under)
    if (!builder.join(e, true, false))
      return std::nullopt;
  for (ExprRef e : within.under)
    if (!mutated("reorder-products.forget-inner-divisor") &&
        !builder.join(e, true, true))
      return std::nullopt;
  if (chain.nodes.size() == 2) // sum_j sum_e q k: the value is 1
    chain.nodes.push_back(builder.one(Float32Type::get(exprs.context)));
  return chain;
}

SmallVector<ProductOrder, 3> heed::ordersOf(const ProductChain &chain) {
  SmallVector<ProductOrder, 3> orders;
  for (unsigned third = 0; third < 3; ++third) {
    ProductOrder order;
    order.third = third;
    ExprRef x = chain.nodes[(third + 1) % 3], y = chain.nodes[(third + 2) % 3];
    SmallVector<unsigned> all, kept;
    for (ExprRef e : {x, y})
      for (unsigned v : e->freeVars)
        if (!llvm::is_contained(all, v))
          all.push_back(v);
    for (unsigned v : all) {
      bool later = chain.nodes[third]->uses(v);
      if (llvm::is_contained(chain.summed, v) &&
          (!later || mutated("reorder-products.sum-too-early")))
        order.first.push_back(v);
      else
        kept.push_back(v);
    }
    for (unsigned v : chain.nodes[third]->freeVars)
      if (!llvm::is_contained(kept, v))
        kept.push_back(v);
    for (unsigned v : kept)
      if (llvm::is_contained(chain.summed, v))
        order.second.push_back(v);
    order.costs = {all, kept};
    if (!order.first.empty())
      orders.push_back(order);
  }
  return orders;
}

OrderCosts::OrderCosts(Exprs &exprs, ArrayRef<ProductOrder> orders,
                       ArrayRef<unsigned> outputs)
    : exprs(exprs) {
  for (unsigned v : outputs)
    if (llvm::all_of(orders, [&](const ProductOrder &order) {
          return llvm::all_of(order.costs, [&](ArrayRef<unsigned> cost) {
            return llvm::is_contained(cost, v);
          });
        }))
      common.push_back(v);
}

std::optional<Size> OrderCosts::of(const ProductOrder &order) {
  Size total = 0;
  for (ArrayRef<unsigned> cost : order.costs) {
    Size one = 1;
    for (unsigned v : cost)
      if (!llvm::is_contained(common, v)) {
        std::optional<Size> extent = sizeOf(dims, exprs.extent(v));
        if (!extent)
          return std::nullopt;
        one *= *extent;
      }
    total += one;
  }
  return total;
}

Value OrderCosts::write(OpBuilder &builder, Location loc,
                        const ProductOrder &order) {
  Value sum;
  for (ArrayRef<unsigned> cost : order.costs) {
    Value one;
    for (unsigned v : cost)
      if (!llvm::is_contained(common, v)) {
        Value extent = writeExtent(builder, loc, exprs.extent(v));
        one = one ? arith::MulIOp::create(builder, loc, one, extent).getResult()
                  : extent;
      }
    if (!one)
      one = arith::ConstantIndexOp::create(builder, loc, 1);
    sum = sum ? arith::AddIOp::create(builder, loc, sum, one).getResult() : one;
  }
  return sum;
}

std::pair<const ProductOrder *, const ProductOrder *>
heed::writtenAndOther(const ProductChain &chain, ArrayRef<ProductOrder> orders,
                      OrderCosts &costs) {
  // The written order sums the inner contraction in its first step.
  const ProductOrder *written = nullptr, *other = nullptr;
  for (const ProductOrder &order : orders)
    if (llvm::all_of(chain.inner, [&](unsigned v) {
          return llvm::is_contained(order.first, v);
        }))
      written = &order;
  for (const ProductOrder &order : orders) {
    if (&order == written)
      continue;
    // The order that keeps no pair of output dims in between is the one worth
    // choosing; of two with known costs the cheaper.
    if (!other || costs.isCheaper(costs.of(order), costs.of(*other)))
      other = &order;
  }
  if (!written || !other)
    return {};
  // No gain whatever the sizes: the written order's products divide one of the
  // other's.
  auto divides = [&](ArrayRef<unsigned> a) {
    return llvm::any_of(other->costs, [&](ArrayRef<unsigned> b) {
      return llvm::all_of(a,
                          [&](unsigned v) { return llvm::is_contained(b, v); });
    });
  };
  if (divides(written->costs[0]) && divides(written->costs[1]))
    return {};
  return {written, other};
}
