//===- SettleFactors.cpp - factors that are computed once -----------------===//
#include "passes/Rewrite/SettleFactors.h"
#include "passes/Algebra/Computation.h"
#include "passes/Algebra/Products.h"
#include "passes/Algebra/Proof.h"
#include "passes/Algebra/Weights.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heed;

/// A transcendental function, or a division.
static bool isExpensive(ExprRef e) {
  bool expensive = false;
  Exprs::walk(e, [&](ExprRef part) {
    StringRef name = part->name ? part->name->getStringRef() : StringRef();
    expensive |= name == "arith.divf" ||
                 (name.starts_with("math.") && name != "math.absf");
  });
  return expensive;
}

/// The variables of \p factor in the order of an array that it reads at just
/// these; nothing if there is none, or it contains a sum.
static SmallVector<unsigned> arrayOrder(ExprRef factor) {
  SmallVector<unsigned> order;
  bool sums = false;
  Exprs::walk(factor, [&](ExprRef part) {
    sums |= part->kind == ExprKind::Reduce;
    if (part->kind != ExprKind::Read || !order.empty() ||
        part->operands.size() != factor->freeVars.size())
      return;
    SmallVector<unsigned> vars;
    for (ExprRef index : part->operands)
      if (index->kind == ExprKind::Var &&
          !llvm::is_contained(vars, index->number))
        vars.push_back(index->number);
    if (vars.size() == factor->freeVars.size())
      order = vars;
  });
  return sums ? SmallVector<unsigned>() : order;
}

/// A divisor divides a factor that some loop reads again instead of every
/// product, a parameter if there is one: that is divided once for all calls.
static void foldDivisors(Exprs &exprs, Product &product,
                         ArrayRef<unsigned> loops) {
  llvm::erase_if(product.under, [&](ExprRef divisor) {
    ExprRef *taker = nullptr;
    bool isParameter = false;
    for (ExprRef &factor : product.over) {
      auto isLoopOf = [&](unsigned v) { return factor->uses(v); };
      if (arrayOrder(factor).empty() ||
          !llvm::all_of(divisor->freeVars, isLoopOf) ||
          llvm::all_of(loops, isLoopOf))
        continue;
      bool fromParameters = true;
      Exprs::walk(factor, [&](ExprRef part) {
        if (part->kind == ExprKind::Read)
          fromParameters &= isFromParameters(part->value);
      });
      if (taker && (isParameter || !fromParameters))
        continue;
      taker = &factor;
      isParameter = fromParameters;
    }
    if (taker && !mutated("reorder-products.drop-divisor"))
      *taker = multiply(exprs, {*taker}, {divisor});
    return taker != nullptr;
  });
}

bool heed::settleFactors(Operation *root, DenseSet<Operation *> &erased) {
  auto op = dyn_cast<linalg::GenericOp>(root);
  if (!op || op.getNumResults() != 1 || root->use_empty() ||
      !Exprs::isExpressible(root) || !isContraction(root))
    return false;
  Exprs exprs(root->getContext());
  Value result = root->getResult(0);
  SmallVector<unsigned> loops, summed;
  SmallVector<ExprRef> at;
  exprs.indexVars(result, loops, at);
  SmallVector<unsigned> outputs(loops);
  ExprRef element = exprs.expand(result, at);
  if (!element || !element->isReduceBy("arith.addf"))
    return false;
  ExprRef body = exprs.open(element, summed);
  loops.append(summed);
  Product product;
  flatten(exprs, body, product);
  if (product.over.size() + product.under.size() < 2)
    return false;
  foldDivisors(exprs, product, loops);
  OpBuilder b(root);
  Attempt attempt(b);
  bool changed = false;
  for (SmallVector<ExprRef> *side : {&product.over, &product.under})
    for (ExprRef &factor : *side) {
      SmallVector<unsigned> vars = arrayOrder(factor);
      if (vars.empty() || !isExpensive(factor) ||
          llvm::all_of(loops, [&](unsigned v) { return factor->uses(v); }))
        continue;
      SmallVector<ExprRef> indices;
      for (unsigned v : vars)
        indices.push_back(exprs.var(v));
      factor = exprs.read(writeTensor(b, root->getLoc(), exprs, factor, vars),
                          indices);
      changed = true;
    }
  if (!changed)
    return false;
  ExprRef sum =
      exprs.reduce(OperationName("arith.addf", root->getContext()), summed,
                   multiply(exprs, product.over,
                            mutated("reorder-products.settle-without-divisor")
                                ? ArrayRef<ExprRef>()
                                : product.under));
  Value other = writeTensor(b, root->getLoc(), exprs, sum, outputs);
  if (other.getType() != result.getType() ||
      !prove(exprs, element, other, outputs, attempt).holds) {
    attempt.undo();
    return false;
  }
  result.replaceAllUsesWith(other);
  eraseDeadOps(root, erased);
  return true;
}
