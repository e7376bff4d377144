//===- RaiseAttentionSoftmax.cpp - an element of a softmax op -------------===//
//
// As the weight of an attention: who else reads the op, and where it is absent.
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Raise/LogSumExp.h"
#include "passes/Raise/RaiseAttentionMatcher.h"
#include "support/Format.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {

/// Whether the scores of \p softmax, before or after elementwise functions, are
/// also summed over its axes: a norm of scores.
static bool readByRow(attn::SoftmaxOp softmax) {
  SmallVector<Value> work{softmax.getInput()};
  while (!work.empty()) {
    Value scores = work.pop_back_val();
    auto def = scores.getDefiningOp<linalg::LinalgOp>();
    if (!def)
      continue;
    for (OpOperand &use : scores.getUses()) {
      auto user = dyn_cast<linalg::LinalgOp>(use.getOwner());
      if (!user || !user.getNumReductionLoops() || isOfLogSumExp(user))
        continue;
      AffineMap map = user.getMatchingIndexingMap(&use);
      for (int64_t axis : softmax.getAxes())
        if (auto dim = dyn_cast<AffineDimExpr>(map.getResult(axis));
            dim && user.getIteratorTypesArray()[dim.getPosition()] ==
                       utils::IteratorType::reduction)
          return true;
    }
    if (!Exprs::isElementwise(def))
      continue;
    for (OpOperand *input : def.getDpsInputOperands())
      if (def.getMatchingIndexingMap(input).isIdentity())
        work.push_back(input->get());
  }
  return false;
}

/// Whether \p user is a function of rows of the result of \p softmax alone.
static bool isFunctionOfRow(Operation *user, attn::SoftmaxOp softmax) {
  auto generic = dyn_cast<linalg::LinalgOp>(user);
  return generic && generic.getNumParallelLoops() < generic.getNumLoops() &&
         llvm::all_of(
             generic.getDpsInputs(),
             [&](Value input) {
               return input.getDefiningOp() == softmax ||
                      input.getDefiningOp<tensor::EmptyOp>();
             }) &&
         !generic
              ->walk([](tensor::ExtractOp) { return WalkResult::interrupt(); })
              .wasInterrupted();
}

bool AttentionMatcher::isReadHereAlone(attn::SoftmaxOp softmax) {
  for (OpOperand &use : softmax.getResult().getUses())
    if (!isa<linalg::LinalgOp, tensor::ExtractOp>(use.getOwner()) &&
        !use.getOwner()->getParentOfType<linalg::LinalgOp>())
      return fails("the weights are read elsewhere too: they must be stored");
  if (readByRow(softmax))
    return fails("another function of the row reads the scores");
  // A function of rows of weights: they are worked on row by row, after it.
  for (Operation *user : softmax.getResult().getUsers())
    if (isFunctionOfRow(user, softmax))
      return fails("another function of the row reads the weights");
  return true;
}

bool AttentionMatcher::staysZero(ExprRef e) {
  if (e == exprs.parameter(m.weightParameter, f32()) ||
      exprs.constantFloat(e) == 0.0)
    return true;
  if (e->isOp("arith.mulf"))
    return staysZero(e->operand(0)) || staysZero(e->operand(1));
  if (e->isOp("arith.divf") || e->isOp("arith.extf") || e->isOp("arith.truncf"))
    return staysZero(e->operand(0));
  return e->isOp("arith.select") && staysZero(e->operand(1)) &&
         staysZero(e->operand(2));
}

bool AttentionMatcher::matchSoftmaxOp(ExprRef weight) {
  auto softmax = cast<attn::SoftmaxOp>(weight->value.getDefiningOp());
  SmallVector<unsigned> axes;
  SmallVector<ExprRef> row;
  for (auto [axis, at] : llvm::enumerate(weight->operands)) {
    bool isAxis = llvm::is_contained(softmax.getAxes(), int64_t(axis));
    bool isKey =
        at->kind == ExprKind::Var && llvm::is_contained(keys, at->number);
    if (isAxis ? !isKey : at->usesAny(keys))
      return fails("the values are summed along another axis than the softmax");
    if (isAxis)
      axes.push_back(at->number);
    else
      row.push_back(at);
  }
  if (axes.size() != keys.size())
    return fails("the values are summed over more dims than the softmax");
  if (!isReadHereAlone(softmax))
    return false;
  m.map = softmax.getMap();
  m.divide = m.stabilise = attn::Normaliser::of(m.map).isShiftable;
  if (!softmax.getWhere().empty()) {
    ExprRef where = exprs.block(softmax.getWhere().front(), weight->operands);
    if (!where)
      return fails("the softmax's where holds an op that is not an expression "
                   "of indices");
    m.where = expandPairs(where);
  }
  if (guard) {
    // What the front end makes of "an absent element contributes nothing".
    ExprRef live = exprs.read(softmax.getLive(), weight->operands);
    if (guard != live && !(m.where && expandPairs(guard) == m.where))
      return fails("the sum over the values has a condition of its own");
  } else if (m.weight && !staysZero(m.weight)) {
    // Absent elements are 0 here and not skipped.
    return fails("a weight of 0 does not stay 0 before it meets the values");
  }
  if (softmax.getSink() && !mutated("raise-attention.forget-sink"))
    m.sink = exprs.read(softmax.getSink(), row);
  return finish(expandPairs(exprs.read(softmax.getInput(), weight->operands)));
}

} // namespace heed
