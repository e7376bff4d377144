//===- ReorderProducts.cpp - the cheapest order of products ---------------===//
//
// sum_j (sum_e Q[i,e] K[j,e]) V[j,f] = sum_e Q[i,e] (sum_j K[j,e] V[j,f]): the
// left side costs N M (E + F), the right side (N + M) E F. Factors that do not
// depend on what is summed, a normaliser among them, move out of the sums.
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/SymbolicDims.h"
#include "passes/Algebra/Proof.h"
#include "passes/AppendSums.h"
#include "passes/Mutation.h"
#include "passes/OrderChoices.h"
#include "passes/Passes.h"
#include "passes/Products.h"
#include "passes/Remarks.h"
#include "passes/SettleFactors.h"
#include "passes/TensorOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace heed {

#define GEN_PASS_DEF_ATTNREORDERPRODUCTS
#include "passes/Passes.h.inc"

namespace {

constexpr StringLiteral passName = "attn-reorder-products";

// One order of a chain of three: two factors first, then the third.
struct Order {
  unsigned third;
  SmallVector<unsigned> first, second;         // variables summed in each step
  SmallVector<SmallVector<unsigned>, 2> costs; // products of extents
};

using attn::SizePolynomial;

// An extent as a polynomial, if it is one.
std::optional<SizePolynomial> sizeOf(attn::SymbolicDims &dims, ExprRef extent) {
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

struct ReorderProducts : impl::AttnReorderProductsBase<ReorderProducts> {
  void runOnOperation() override {
    erased.clear();
    settled.clear();
    getOperation()->walk([&](linalg::LinalgOp op) { work.push_back(op); });
    // Consumers first. What a reordering writes is looked at again: a chain of
    // four factors is a chain of three one of which is a product.
    while (!work.empty()) {
      Operation *root = work.pop_back_val();
      if (!erased.contains(root) && !root->use_empty() &&
          root->getNumResults() == 1 && Exprs::isExpressible(root) &&
          cast<linalg::LinalgOp>(root).getNumReductionLoops() > 0)
        reorder(root);
    }
    erased.clear();
    SmallVector<Operation *> sums;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (op.getNumReductionLoops())
        sums.push_back(op);
    });
    for (Operation *sum : sums)
      if (!erased.contains(sum))
        settleFactors(sum, erased);
    if (!choices.empty()) {
      joinChoices(choices);
      choices.clear();
      // Sums settle their factors each for itself.
      DominanceInfo dominance(getOperation());
      IRRewriter rewriter(&getContext());
      eliminateCommonSubExpressions(rewriter, dominance, getOperation());
    }
    appendSums(getOperation());
  }

  static bool isContraction(Value tensor) {
    auto op = tensor.getDefiningOp<linalg::LinalgOp>();
    return op && op.getNumReductionLoops() > 0 && Exprs::isExpressible(op);
  }

  // Everything but reductions is seen through, down to factors of a product.
  void openFactors(Exprs &exprs, Product &product, ArrayRef<unsigned> keys) {
    for (bool changed = true; changed;) {
      changed = false;
      for (unsigned k = 0; k < product.over.size(); ++k) {
        ExprRef e = product.over[k];
        Operation *def = e->kind == ExprKind::Read && e->usesAny(keys)
                             ? e->value.getDefiningOp()
                             : nullptr;
        if (!def || !Exprs::isElementwise(def))
          continue;
        ExprRef inner = exprs.expand(e);
        if (!inner)
          continue;
        Product parts;
        flatten(exprs, inner, parts);
        if (llvm::none_of(parts.over, [](ExprRef part) {
              return part->kind == ExprKind::Read && isContraction(part->value);
            }))
          continue;
        product.over.erase(product.over.begin() + k);
        product.over.append(parts.over);
        product.under.append(parts.under);
        changed = true;
        break;
      }
    }
  }

  void reorder(Operation *root) {
    Exprs exprs(&getContext());
    Value result = root->getResult(0);
    SmallVector<unsigned> outputs;
    SmallVector<ExprRef> at;
    exprs.indexVars(result, outputs, at);
    ExprRef element = exprs.expand(result, at);
    if (!element || !element->isReduceBy("arith.addf"))
      return;
    SmallVector<unsigned> summed;
    ExprRef body = exprs.open(element, summed);
    bool guarded = body->kind == ExprKind::If || body->isOp("arith.select");
    if (guarded) {
      body = body->operand(1);
      if (!isa<FloatType>(body->type))
        return;
      guarded = !mutated("reorder-products.forget-condition");
    }
    Product product;
    flatten(exprs, body, product);
    openFactors(exprs, product, summed);

    // The inner contraction: a factor over what is summed that reads one.
    ExprRef inner = nullptr;
    Product within;
    for (ExprRef e : product.over)
      if (e->kind == ExprKind::Read && isContraction(e->value) &&
          e->usesAny(summed) && !isFromParameters(e->value) &&
          !settled.contains({root, e->value.getDefiningOp()})) {
        ExprRef sum = exprs.expand(e);
        if (!sum || !sum->isReduceBy("arith.addf"))
          continue;
        SmallVector<unsigned> vars;
        ExprRef innerBody = exprs.open(sum, vars);
        Product parts;
        flatten(exprs, innerBody, parts);
        bool plain = llvm::all_of(parts.over, [&](ExprRef part) {
          bool ok = true;
          Exprs::walk(part, [&](ExprRef e) {
            ok &= e->kind != ExprKind::Reduce &&
                  !(e->kind == ExprKind::Read && isFromParameters(e->value));
          });
          return ok;
        });
        // One factor must not depend on what the outer sum runs over.
        bool splits = llvm::any_of(parts.over, [&](ExprRef part) {
          return part->usesAny(vars) && !part->usesAny(summed);
        });
        if (!plain || !splits || parts.over.size() < 2)
          continue;
        if (guarded) {
          remarkDeclined(root, passName, "products",
                         "left in the written order: the sum has a condition "
                         "that depends on the pair");
          return;
        }
        inner = e;
        takeOne(product.over, e);
        if (mutated("reorder-products.take-equal-factors"))
          llvm::erase(product.over, e);
        within = std::move(parts);
        summed.append(vars);
        break;
      }
    if (!inner)
      return;
    arrange(root, exprs, product, within, outputs, summed, element);
  }

  // \p product: the factors of the outer sum but the inner contraction, whose
  // factors are \p within.
  void arrange(Operation *root, Exprs &exprs, Product &product, Product &within,
               ArrayRef<unsigned> outputs, ArrayRef<unsigned> summed,
               ExprRef written) {
    ArrayRef<unsigned> outerVars = summed.take_front(written->binders.size());
    ArrayRef<unsigned> innerVars = summed.drop_front(written->binders.size());
    // Nodes: factors by the variables they have; a factor over fewer variables
    // joins one over more. What leaves the sums stands after the one it left.
    SmallVector<ExprRef> nodes;
    Product outside, outsideInner;
    auto subset = [&](ExprRef a, ExprRef b) {
      return llvm::all_of(a->freeVars, [&](unsigned v) { return b->uses(v); });
    };
    auto one = [&](Type type) {
      return exprs.constant(FloatAttr::get(type, 1.0));
    };
    auto join = [&](ExprRef e, bool below, bool isInner) {
      if (!e->usesAny(summed)) {
        Product &out = isInner ? outsideInner : outside;
        (below ? out.under : out.over).push_back(e);
        return true;
      }
      ExprRef *chosen = nullptr;
      auto stays = [&](ExprRef node) {
        return llvm::all_of(innerVars,
                            [&](unsigned v) { return node->uses(v); });
      };
      for (ExprRef &node : nodes)
        if ((subset(e, node) || (!below && subset(node, e))) &&
            (!chosen || (isInner && !stays(*chosen) && stays(node))))
          chosen = &node;
      if (chosen) {
        // It would be infinite where the sum that it leaves is empty.
        if (isInner && !stays(*chosen) && !stays(e) &&
            !mutated("reorder-products.factor-of-empty-sum"))
          e = exprs.unlessEmpty(innerVars, e, one(e->type));
        *chosen = exprs.op(below ? "arith.divf" : "arith.mulf", e->type,
                           {*chosen, e});
        return true;
      }
      if (below)
        return false;
      nodes.push_back(e);
      return true;
    };
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
      join(e, false, isInner);
    for (ExprRef e : product.under)
      if (!join(e, true, false))
        return;
    for (ExprRef e : within.under)
      if (!join(e, true, true))
        return;
    if (nodes.size() == 2) // sum_j sum_e q k: the value is 1
      nodes.push_back(one(Float32Type::get(&getContext())));
    if (nodes.size() != 3) {
      remarkDeclined(root, passName, "products",
                     "left in the written order: a chain of more than three "
                     "factors");
      return;
    }

    SmallVector<Order, 3> orders;
    for (unsigned third = 0; third < 3; ++third) {
      Order order;
      order.third = third;
      ExprRef x = nodes[(third + 1) % 3], y = nodes[(third + 2) % 3];
      SmallVector<unsigned> all, kept;
      for (ExprRef e : {x, y})
        for (unsigned v : e->freeVars)
          if (!llvm::is_contained(all, v))
            all.push_back(v);
      for (unsigned v : all) {
        bool later = nodes[third]->uses(v);
        if (llvm::is_contained(summed, v) &&
            (!later || mutated("reorder-products.sum-too-early")))
          order.first.push_back(v);
        else
          kept.push_back(v);
      }
      for (unsigned v : nodes[third]->freeVars)
        if (!llvm::is_contained(kept, v))
          kept.push_back(v);
      for (unsigned v : kept)
        if (llvm::is_contained(summed, v))
          order.second.push_back(v);
      order.costs = {all, kept};
      // Without a sum in the first step it is an outer product: never better.
      if (!order.first.empty())
        orders.push_back(order);
    }
    // What stands in every step costs the same factor in all orders.
    SmallVector<unsigned> common;
    for (unsigned v : outputs)
      if (llvm::all_of(orders, [&](const Order &order) {
            return llvm::all_of(order.costs, [&](ArrayRef<unsigned> cost) {
              return llvm::is_contained(cost, v);
            });
          }))
        common.push_back(v);

    // The written order sums the inner contraction in its first step.
    auto isWritten = [&](const Order &order) {
      return llvm::all_of(innerVars, [&](unsigned v) {
        return llvm::is_contained(order.first, v);
      });
    };
    attn::SymbolicDims dims;
    auto costOf = [&](const Order &order) -> std::optional<SizePolynomial> {
      SizePolynomial total = 0;
      for (ArrayRef<unsigned> cost : order.costs) {
        SizePolynomial one = 1;
        for (unsigned v : cost)
          if (!llvm::is_contained(common, v)) {
            std::optional<SizePolynomial> extent =
                sizeOf(dims, exprs.extent(v));
            if (!extent)
              return std::nullopt;
            one *= *extent;
          }
        total += one;
      }
      return total;
    };
    // Whether the sizes decide, and for \p a in all calls.
    auto isCheaper = [](const std::optional<SizePolynomial> &a,
                        const std::optional<SizePolynomial> &b) {
      return a && b && *a != *b && (*b - *a).isNeverNegative();
    };
    const Order *before = nullptr, *after = nullptr;
    for (const Order &order : orders)
      if (isWritten(order))
        before = &order;
    for (const Order &order : orders) {
      if (&order == before)
        continue;
      // The order that keeps no pair of output dims in between is the one
      // worth choosing; of two with known costs the cheaper.
      if (!after || isCheaper(costOf(order), costOf(*after)))
        after = &order;
    }
    if (!before || !after)
      return;

    // No gain whatever the sizes: the written order's products divide one of
    // the other's.
    auto divides = [&](ArrayRef<unsigned> a) {
      return llvm::any_of(after->costs, [&](ArrayRef<unsigned> b) {
        return llvm::all_of(
            a, [&](unsigned v) { return llvm::is_contained(b, v); });
      });
    };
    if (divides(before->costs[0]) && divides(before->costs[1]))
      return;

    OpBuilder builder(root);
    Attempt attempt(builder);
    Location loc = root->getLoc();
    // A factor that is more than a read is a tensor: computed once.
    auto settle = [&]() {
      for (ExprRef &node : nodes) {
        if (node->kind == ExprKind::Read || node->freeVars.empty())
          continue;
        SmallVector<ExprRef> at;
        for (unsigned v : node->freeVars)
          at.push_back(exprs.var(v));
        node = exprs.read(
            writeTensor(builder, loc, exprs, node, node->freeVars), at);
      }
    };
    // Null, with a remark, if it is not what was written.
    auto write = [&](const Order &order, bool again = false) -> Value {
      ExprRef x = nodes[(order.third + 1) % 3],
              y = nodes[(order.third + 2) % 3];
      Type type = x->type;
      auto times = [&](ExprRef a, ExprRef b) {
        if (Exprs::constantFloat(a) == 1.0)
          return b;
        return Exprs::constantFloat(b) == 1.0
                   ? a
                   : exprs.op("arith.mulf", type, {a, b});
      };
      OperationName add("arith.addf", &getContext());
      ExprRef first = exprs.reduce(add, order.first, times(x, y));
      // Axes: shared with the output first, then what is summed next, then the
      // rest of the output: the second step reads rows.
      SmallVector<unsigned> axes;
      for (unsigned pass = 0; pass < 3; ++pass)
        for (unsigned v : first->freeVars) {
          bool isSummed = llvm::is_contained(summed, v);
          bool shared = nodes[order.third]->uses(v);
          if (pass == (isSummed ? 1u : shared ? 0u : 2u))
            axes.push_back(v);
        }
      SmallVector<ExprRef> at;
      for (unsigned v : axes)
        at.push_back(exprs.var(v));
      if (at.size() > 1 && mutated("reorder-products.swap-axes"))
        std::swap(at[0], at[1]);
      Value intermediate = writeTensor(builder, loc, exprs, first, axes);
      ExprRef second = times(nodes[order.third], exprs.read(intermediate, at));
      if (!order.second.empty())
        second = exprs.reduce(add, order.second, second);
      ExprRef zero = exprs.constant(FloatAttr::get(type, 0.0));
      auto applyOutside = [&](Product &factors, ArrayRef<unsigned> left) {
        for (ExprRef e : factors.over)
          if (!mutated("reorder-products.drop-factor"))
            second = times(second, e);
        for (ExprRef e : factors.under)
          second = exprs.op(mutated("reorder-products.multiply-for-divide")
                                ? "arith.mulf"
                                : "arith.divf",
                            type, {second, e});
        if ((!factors.over.empty() || !factors.under.empty()) &&
            !mutated("reorder-products.scale-empty-sum"))
          second = exprs.unlessEmpty(left, second, zero);
      };
      applyOutside(outsideInner, summed);
      applyOutside(outside, outerVars);
      Value value = writeTensor(builder, loc, exprs, second, outputs);
      Proof proof = prove(exprs, written, value, outputs, attempt);
      if (!proof.holds) {
        remarkDeclined(root, passName, "products",
                       "left in the written order: the other cannot be proven "
                       "equal: " +
                           proof.why);
        return {};
      }
      // Known sizes settle an order; a choice at run time would breed choices.
      if (again && order.second.size()) {
        settled.insert({value.getDefiningOp(), intermediate.getDefiningOp()});
        work.push_back(intermediate.getDefiningOp());
        work.push_back(value.getDefiningOp());
      }
      Type wanted = root->getResult(0).getType();
      if (value.getType() != wanted)
        value = tensor::CastOp::create(builder, loc, wanted, value);
      return value;
    };

    Value result = root->getResult(0);
    std::optional<SizePolynomial> costBefore = costOf(*before),
                                  costAfter = costOf(*after);
    if ((costBefore && costBefore == costAfter) ||
        isCheaper(costBefore, costAfter)) {
      remarkDeclined(root, passName, "products",
                     "left in the written order: it costs " +
                         dims.str(*costBefore) + " products, not " +
                         dims.str(*costAfter));
      return;
    }
    if (isCheaper(costAfter, costBefore)) {
      settle();
      Value value = write(*after, /*again=*/true);
      if (!value)
        return attempt.undo();
      result.replaceAllUsesWith(value);
      remarkDone(root, passName, "products",
                 "reordered: " + dims.str(*costAfter) +
                     " products instead of " + dims.str(*costBefore));
    } else {
      // Both orders, chosen when the sizes are known.
      settle();
      auto total = [&](const Order &order) {
        Value sum;
        for (ArrayRef<unsigned> cost : order.costs) {
          Value one;
          for (unsigned v : cost)
            if (!llvm::is_contained(common, v)) {
              Value extent = writeExtent(builder, loc, exprs.extent(v));
              one = one ? arith::MulIOp::create(builder, loc, one, extent)
                              .getResult()
                        : extent;
            }
          if (!one)
            one = arith::ConstantIndexOp::create(builder, loc, 1);
          sum = sum ? arith::AddIOp::create(builder, loc, sum, one).getResult()
                    : one;
        }
        return sum;
      };
      Value old = total(*before), fresh = total(*after);
      Value cheaper = arith::CmpIOp::create(
          builder, loc, arith::CmpIPredicate::slt, fresh, old);
      auto choice = scf::IfOp::create(builder, loc, result.getType(), cheaper,
                                      /*addThenBlock=*/true,
                                      /*addElseBlock=*/true);
      for (const Order *order : {after, before}) {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPointToStart(order == after ? choice.thenBlock()
                                                        : choice.elseBlock());
        Value value = write(*order);
        if (!value)
          return attempt.undo();
        scf::YieldOp::create(builder, loc, value);
      }
      result.replaceAllUsesWith(choice.getResult(0));
      choices.push_back({choice, fresh, old});
      remarkDone(root, passName, "products",
                 "two orders, chosen by the sizes of each call");
    }
    // A new op may lie where an erased one lay.
    for (Operation *op : attempt.operations())
      erased.erase(op);
    eraseDeadOps(root, erased);
  }

  SmallVector<Operation *> work;
  DenseSet<Operation *> erased;
  SmallVector<OrderChoice> choices;
  /// A sum and a contraction that it reads, in an order that was chosen.
  DenseSet<std::pair<Operation *, Operation *>> settled;
};

} // namespace
} // namespace heed
