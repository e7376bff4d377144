//===- SplitReductions.cpp - reductions over dims that lie apart ----------===//
#include "passes/Rewrite/SplitReductions.h"
#include "passes/Algebra/Computation.h"
#include "passes/Algebra/Proof.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace heed;

/// How many of the last indices of \p read are variables of \p summed, each
/// once.
static unsigned trailing(ExprRef read, ArrayRef<unsigned> summed) {
  SmallVector<unsigned> seen;
  for (ExprRef index : llvm::reverse(read->operands)) {
    if (index->kind != ExprKind::Var ||
        !llvm::is_contained(summed, index->number) ||
        llvm::is_contained(seen, index->number))
      break;
    seen.push_back(index->number);
  }
  return seen.size();
}

/// Those of \p summed that are reduced first: they end an array that all of
/// them index. None where that is all of them, and in each array; but where
/// they are reduced to a number, \p isNumber, the last one is, so that there
/// are rows.
static SmallVector<unsigned> innermost(ExprRef body, ArrayRef<unsigned> summed,
                                       bool isNumber) {
  SmallVector<unsigned> first;
  Exprs::walk(body, [&](ExprRef e) {
    if (e->kind != ExprKind::Read || !first.empty() ||
        !llvm::all_of(summed, [&](unsigned v) { return e->uses(v); }))
      return;
    for (ExprRef index : ArrayRef(e->operands).take_back(trailing(e, summed)))
      first.push_back(index->number);
  });
  if (first.size() < summed.size())
    return first;
  if (isNumber)
    return {first.front()};
  // All end it, but another array has the outer ones alone.
  unsigned outer = 0;
  Exprs::walk(body, [&](ExprRef e) {
    if (e->kind != ExprKind::Read || e->uses(first.back()))
      return;
    while (outer < first.size() && e->uses(first[outer]))
      ++outer;
  });
  return outer ? SmallVector<unsigned>(ArrayRef(first).drop_front(outer))
               : SmallVector<unsigned>();
}

/// Fewer terms are not worth an array of their sums.
constexpr int64_t fewestTerms = 8;

static bool areFew(Exprs &exprs, ArrayRef<unsigned> vars) {
  int64_t terms = 1;
  for (unsigned v : vars) {
    std::optional<int64_t> extent = Exprs::constantInt(exprs.extent(v));
    if (!extent)
      return false;
    terms *= *extent;
  }
  return terms < fewestTerms;
}

bool heed::splitReduction(Operation *root, DenseSet<Operation *> &erased) {
  auto op = dyn_cast<linalg::GenericOp>(root);
  if (!op || op.getNumResults() != 1 || root->use_empty() ||
      op.getNumReductionLoops() < 2 || !Exprs::isExpressible(root) ||
      isContraction(root))
    return false;
  Exprs exprs(root->getContext());
  Value result = root->getResult(0);
  SmallVector<unsigned> outputs, summed;
  SmallVector<ExprRef> at;
  exprs.indexVars(result, outputs, at);
  ExprRef element = exprs.expand(result, at);
  if (!element || element->kind != ExprKind::Reduce)
    return false;
  ExprRef body = exprs.open(element, summed);
  SmallVector<unsigned> first = innermost(body, summed, outputs.empty());
  if (first.empty() || first.size() == summed.size() || areFew(exprs, first))
    return false;
  SmallVector<unsigned> rows(outputs), others;
  for (unsigned v : summed)
    if (!llvm::is_contained(first, v)) {
      rows.push_back(v);
      others.push_back(v);
    }
  OpBuilder b(root);
  Attempt attempt(b);
  Value inner = writeTensor(b, root->getLoc(), exprs,
                            exprs.reduce(*element->name, first, body), rows);
  SmallVector<ExprRef> indices;
  for (unsigned v : rows)
    indices.push_back(exprs.var(v));
  Value outer = writeTensor(
      b, root->getLoc(), exprs,
      exprs.reduce(*element->name, others, exprs.read(inner, indices)),
      outputs);
  if (outer.getType() != result.getType() ||
      !prove(exprs, element, outer, outputs, attempt).holds) {
    attempt.undo();
    return false;
  }
  result.replaceAllUsesWith(outer);
  eraseDeadOps(root, erased);
  return true;
}
