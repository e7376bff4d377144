//===- ReorderProducts.cpp - the cheapest order of products ---------------===//
//
// sum_j (sum_e Q[i,e] K[j,e]) V[j,f] = sum_e Q[i,e] (sum_j K[j,e] V[j,f]): the
// left side costs N M (E + F), the right side (N + M) E F. Factors that do not
// depend on what is summed, a normaliser among them, move out of the sums.
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/SymbolicDims.h"
#include "passes/Algebra/Products.h"
#include "passes/Algebra/Proof.h"
#include "passes/Algebra/SplitSums.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Algebra/Weights.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "passes/Rewrite/AppendSums.h"
#include "passes/Rewrite/OrderChoices.h"
#include "passes/Rewrite/ProductChain.h"
#include "passes/Rewrite/SettleFactors.h"
#include "passes/Rewrite/SplitReductions.h"
#include "support/Format.h"

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

// A chain that is written in another order: where it stands, and what it is
// compared with.
struct Rewrite {
  Operation *root;
  Exprs &exprs;
  ProductChain &chain;
  ArrayRef<unsigned> outputs;
  ExprRef written;
  OpBuilder &builder;
  Attempt &attempt;
};

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
        if (!splitReduction(sum, erased))
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

  // The factors of a contraction that an outer sum reads, if what it sums can
  // be summed in another order: \p vars are the inner, \p summed the outer
  // loops.
  static std::optional<Product> openInner(Exprs &exprs, ExprRef read,
                                          SmallVectorImpl<unsigned> &vars,
                                          ArrayRef<unsigned> summed) {
    ExprRef sum = exprs.expand(read);
    if (!sum || !sum->isReduceBy("arith.addf"))
      return std::nullopt;
    Product parts;
    flatten(exprs, exprs.open(sum, vars), parts);
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
      return std::nullopt;
    return parts;
  }

  /// A sum of chains: each is a sum of its own, whose order is chosen then.
  bool split(Operation *root, Exprs &exprs, ExprRef written,
             ArrayRef<unsigned> outputs) {
    auto isPart = [](ExprRef read) {
      return isContraction(read->value) && !isFromParameters(read->value);
    };
    auto accept = [&](ArrayRef<ExprRef> parts, ArrayRef<unsigned> keys) {
      return llvm::all_of(parts, [&](ExprRef part) {
        SmallVector<unsigned> vars;
        return openInner(exprs, part, vars, keys).has_value();
      });
    };
    ExprRef sums = splitSum(exprs, written, {isPart, accept});
    if (!sums)
      return false;
    OpBuilder builder(root);
    Attempt attempt(builder);
    Value value = writeTensor(builder, root->getLoc(), exprs, sums, outputs);
    if (value.getType() != root->getResult(0).getType() ||
        !prove(exprs, written, value, outputs, attempt).holds) {
      attempt.undo();
      return false;
    }
    for (Operation *op : attempt.operations()) {
      erased.erase(op); // a new op may lie where an erased one lay
      if (isa<linalg::LinalgOp>(op))
        work.push_back(op);
    }
    remarkDone(root, passName, "products",
               "a sum of chains of products: each is summed by itself");
    root->getResult(0).replaceAllUsesWith(value);
    eraseDeadOps(root, erased);
    return true;
  }

  void reorder(Operation *root) {
    Exprs exprs(&getContext());
    Value result = root->getResult(0);
    SmallVector<unsigned> outputs;
    SmallVector<ExprRef> at;
    exprs.indexVars(result, outputs, at);
    ExprRef element = exprs.expand(result, at);
    if (!element || !element->isReduceBy("arith.addf") ||
        split(root, exprs, element, outputs))
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
    for (ExprRef e : product.over) {
      if (e->kind != ExprKind::Read || !isContraction(e->value) ||
          !e->usesAny(summed) || isFromParameters(e->value) ||
          settled.contains({root, e->value.getDefiningOp()}))
        continue;
      SmallVector<unsigned> vars;
      std::optional<Product> within = openInner(exprs, e, vars, summed);
      if (!within)
        continue;
      if (guarded) {
        remarkDeclined(root, passName, "products",
                       "left in the written order: the sum has a condition "
                       "that depends on the pair");
        return;
      }
      Product rest = product;
      takeOne(rest.over, e);
      if (mutated("reorder-products.take-equal-factors"))
        llvm::erase(rest.over, e);
      summed.append(vars);
      return arrange(root, exprs, rest, *within, outputs, summed, element);
    }
  }

  // \p product: the factors of the outer sum but the inner contraction, whose
  // factors are \p within.
  void arrange(Operation *root, Exprs &exprs, Product &product, Product &within,
               ArrayRef<unsigned> outputs, ArrayRef<unsigned> summed,
               ExprRef written) {
    ArrayRef<unsigned> outerVars = summed.take_front(written->binders.size());
    ArrayRef<unsigned> innerVars = summed.drop_front(written->binders.size());
    std::optional<ProductChain> chain =
        makeChain(exprs, product, within, outerVars, innerVars);
    if (!chain)
      return;
    if (chain->nodes.size() != 3) {
      remarkDeclined(root, passName, "products",
                     "left in the written order: a chain of more than three "
                     "factors");
      return;
    }

    SmallVector<ProductOrder, 3> orders = ordersOf(*chain);
    OrderCosts costs(exprs, orders, outputs);
    auto [before, after] = writtenAndOther(*chain, orders, costs);
    if (!before)
      return;
    std::optional<Size> costBefore = costs.of(*before),
                        costAfter = costs.of(*after);
    if ((costBefore && costBefore == costAfter) ||
        costs.isCheaper(costBefore, costAfter)) {
      remarkDeclined(root, passName, "products",
                     format("left in the written order: it costs {} products, "
                            "not {}",
                            costs.str(*costBefore), costs.str(*costAfter)));
      return;
    }

    OpBuilder builder(root);
    Attempt attempt(builder);
    Rewrite rewrite{root, exprs, *chain, outputs, written, builder, attempt};
    Value result = root->getResult(0);
    settleNodes(rewrite);
    if (costs.isCheaper(costAfter, costBefore)) {
      Value value = write(rewrite, *after, /*again=*/true);
      if (!value)
        return attempt.undo();
      result.replaceAllUsesWith(value);
      remarkDone(root, passName, "products",
                 format("reordered: {} products instead of {}",
                        costs.str(*costAfter), costs.str(*costBefore)));
    } else {
      std::optional<OrderChoice> choice =
          writeChoice(rewrite, *before, *after, costs);
      if (!choice)
        return attempt.undo();
      result.replaceAllUsesWith(choice->choice.getResult(0));
      choices.push_back(*choice);
      remarkDone(root, passName, "products",
                 "two orders, chosen by the sizes of each call");
    }
    // A new op may lie where an erased one lay.
    for (Operation *op : attempt.operations())
      erased.erase(op);
    eraseDeadOps(root, erased);
  }

  // A factor that is more than a read is a tensor: computed once.
  void settleNodes(Rewrite &r) {
    for (ExprRef &node : r.chain.nodes) {
      if (node->kind == ExprKind::Read || node->freeVars.empty())
        continue;
      SmallVector<ExprRef> at;
      for (unsigned v : node->freeVars)
        at.push_back(r.exprs.var(v));
      node = r.exprs.read(writeTensor(r.builder, r.root->getLoc(), r.exprs,
                                      node, node->freeVars),
                          at);
    }
  }

  // The axes of what the first step of an order computes: shared with the
  // output first, then what is summed next, then the rest of the output: the
  // second step, which multiplies by \p third, reads rows.
  static SmallVector<unsigned> axesBetween(const ProductChain &chain,
                                           ExprRef first, ExprRef third) {
    SmallVector<unsigned> axes;
    for (unsigned pass = 0; pass < 3; ++pass)
      for (unsigned v : first->freeVars) {
        bool isSummed = llvm::is_contained(chain.summed, v);
        bool shared = third->uses(v);
        if (pass == (isSummed ? 1u : shared ? 0u : 2u))
          axes.push_back(v);
      }
    return axes;
  }

  static ExprRef times(Exprs &exprs, ExprRef a, ExprRef b) {
    if (Exprs::constantFloat(a) == 1.0)
      return b;
    return Exprs::constantFloat(b) == 1.0
               ? a
               : exprs.op("arith.mulf", a->type, {a, b});
  }

  // \p sum with factors that have left it; it runs over \p left, and is
  // \p zero over nothing.
  static ExprRef applyOutside(Exprs &exprs, ExprRef sum, const Product &factors,
                              ArrayRef<unsigned> left, ExprRef zero) {
    if (factors.over.empty() && factors.under.empty())
      return sum;
    for (ExprRef e : factors.over)
      if (!mutated("reorder-products.drop-factor"))
        sum = times(exprs, sum, e);
    for (ExprRef e : factors.under)
      sum = exprs.op(mutated("reorder-products.multiply-for-divide")
                         ? "arith.mulf"
                         : "arith.divf",
                     sum->type, {sum, e});
    return mutated("reorder-products.scale-empty-sum")
               ? sum
               : exprs.unlessEmpty(left, sum, zero);
  }

  // The two steps of \p order: what the first computes, and the result.
  std::pair<Value, Value> writeSteps(Rewrite &r, const ProductOrder &order) {
    Exprs &exprs = r.exprs;
    ProductChain &chain = r.chain;
    Location loc = r.root->getLoc();
    ExprRef x = chain.nodes[(order.third + 1) % 3],
            y = chain.nodes[(order.third + 2) % 3],
            third = chain.nodes[order.third];
    OperationName add("arith.addf", &getContext());
    ExprRef first = exprs.reduce(add, order.first, times(exprs, x, y));
    SmallVector<unsigned> axes = axesBetween(chain, first, third);
    SmallVector<ExprRef> at;
    for (unsigned v : axes)
      at.push_back(exprs.var(v));
    if (at.size() > 1 && mutated("reorder-products.swap-axes"))
      std::swap(at[0], at[1]);
    Value between = writeTensor(r.builder, loc, exprs, first, axes);
    ExprRef second = times(exprs, third, exprs.read(between, at));
    if (!order.second.empty())
      second = exprs.reduce(add, order.second, second);
    ExprRef zero = exprs.constant(FloatAttr::get(x->type, 0.0));
    second =
        applyOutside(exprs, second, chain.outsideInner, chain.summed, zero);
    second = applyOutside(exprs, second, chain.outside, chain.outer, zero);
    return {between, writeTensor(r.builder, loc, exprs, second, r.outputs)};
  }

  // Null, with a remark, if it is not what was written.
  Value write(Rewrite &r, const ProductOrder &order, bool again = false) {
    auto [between, value] = writeSteps(r, order);
    Proof proof = prove(r.exprs, r.written, value, r.outputs, r.attempt);
    if (!proof.holds) {
      remarkDeclined(r.root, passName, "products",
                     format("left in the written order: the other cannot be "
                            "proven equal: {}",
                            proof.why));
      return {};
    }
    // Known sizes settle an order; a choice at run time would breed choices.
    if (again && order.second.size()) {
      settled.insert({value.getDefiningOp(), between.getDefiningOp()});
      work.push_back(between.getDefiningOp());
      work.push_back(value.getDefiningOp());
    }
    return castTo(r.builder, value, r.root->getResult(0).getType());
  }

  // Both orders, chosen when the sizes are known. None if one of them is not
  // what was written.
  std::optional<OrderChoice> writeChoice(Rewrite &r, const ProductOrder &before,
                                         const ProductOrder &after,
                                         OrderCosts &costs) {
    OpBuilder &builder = r.builder;
    Location loc = r.root->getLoc();
    Value old = costs.write(builder, loc, before),
          fresh = costs.write(builder, loc, after);
    Value cheaper = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::slt, fresh, old);
    auto choice =
        scf::IfOp::create(builder, loc, r.root->getResult(0).getType(), cheaper,
                          /*addThenBlock=*/true, /*addElseBlock=*/true);
    for (bool isAfter : {true, false}) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(isAfter ? choice.thenBlock()
                                               : choice.elseBlock());
      Value value = write(r, isAfter ? after : before);
      if (!value)
        return std::nullopt;
      scf::YieldOp::create(builder, loc, value);
    }
    return OrderChoice{choice, fresh, old};
  }

  SmallVector<Operation *> work;
  DenseSet<Operation *> erased;
  SmallVector<OrderChoice> choices;
  /// A sum and a contraction that it reads, in an order that was chosen.
  DenseSet<std::pair<Operation *, Operation *>> settled;
};

} // namespace
} // namespace heed
