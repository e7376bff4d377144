//===- RaiseAttention.cpp - contraction, score, normaliser, contraction to
// attn.attention --===//
#include "passes/Passes.h"
#include "passes/RaiseAttentionMatch.h"
#include "passes/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {

#define GEN_PASS_DEF_ATTNRAISEATTENTION
#include "passes/Passes.h.inc"

namespace {

constexpr StringLiteral passName = "attn-raise-attention";

// What was raised, for a remark: "2 score terms, where, sink; exp, divided".
std::string describe(attn::AttentionOp op) {
  std::string text = op.numTerms() == 1
                         ? "one score term"
                         : std::to_string(op.numTerms()) + " score terms";
  if (op.getValues().size() > 1)
    text += ", " + std::to_string(op.getValues().size()) + " value terms";
  if (!op.getWhere().empty())
    text += ", where";
  if (op.getSink())
    text += ", sink";
  if (!op.getWeight().empty())
    text += ", a factor after the normaliser";
  text += "; normaliser " + attn::stringifyMap(op.getMap()).str();
  if (op.getDivide())
    text += " divided by its sum";
  return text;
}

struct RaiseAttention : impl::AttnRaiseAttentionBase<RaiseAttention> {
  void runOnOperation() override {
    // Consumers first: a division after the second product belongs to the
    // attention before it.
    erased.clear();
    SmallVector<Operation *> roots;
    getOperation()->walk([&](linalg::LinalgOp op) { roots.push_back(op); });
    for (Operation *root : llvm::reverse(roots)) {
      if (erased.contains(root) || root->use_empty() ||
          root->getNumResults() != 1 || !Exprs::isExpressible(root) ||
          !isa<FloatType>(getElementTypeOrSelf(root->getResult(0))) ||
          isa<linalg::FillOp>(root))
        continue;
      raise(root);
    }
  }

  void raise(Operation *root) {
    Exprs exprs(&getContext());
    Value result = root->getResult(0);
    SmallVector<unsigned> vars;
    SmallVector<ExprRef> at;
    for (int64_t axis = 0;
         axis < cast<RankedTensorType>(result.getType()).getRank(); ++axis) {
      vars.push_back(exprs.freshVar(exprs.extentOf(result, axis)));
      at.push_back(exprs.var(vars.back()));
    }
    ExprRef element = exprs.expand(result, at);
    if (!element)
      return;
    OpBuilder builder(root);
    if (element->isSum()) {
      if (Value value = raiseSum(builder, root, exprs, element, vars, nullptr))
        replace(builder, root, value);
      return;
    }
    if (!Exprs::isElementwise(root))
      return;
    // x / l where x is a sum over keys.
    bool changed = false;
    ExprRef other = exprs.replaceOutermost(element, [&](ExprRef e) -> ExprRef {
      if (!e->isOp("arith.divf"))
        return nullptr;
      ExprRef over = e->operand(0);
      if (over->kind != ExprKind::Read)
        return nullptr;
      SmallVector<unsigned> outputs;
      for (ExprRef index : over->operands) {
        if (index->kind != ExprKind::Var ||
            llvm::is_contained(outputs, index->number))
          return nullptr;
        outputs.push_back(index->number);
      }
      Operation *def = over->value.getDefiningOp();
      if (!def || !Exprs::isExpressible(def) ||
          llvm::any_of(e->operand(1)->freeVars, [&](unsigned v) {
            return !llvm::is_contained(outputs, v);
          }))
        return nullptr;
      ExprRef sum = exprs.expand(over);
      if (!sum || !sum->isSum())
        return nullptr;
      Value value = raiseSum(builder, root, exprs, sum, outputs, e->operand(1));
      if (!value)
        return nullptr;
      changed = true;
      return exprs.read(value, over->operands);
    });
    if (!changed)
      return;
    bool plain = other->kind == ExprKind::Read &&
                 ArrayRef<ExprRef>(other->operands) == ArrayRef<ExprRef>(at);
    replace(builder, root,
            plain ? other->value
                  : writeTensor(builder, root->getLoc(), exprs, other, vars));
  }

  Value raiseSum(OpBuilder &builder, Operation *root, Exprs &exprs, ExprRef sum,
                 ArrayRef<unsigned> outputs, ExprRef denominator) {
    std::string why;
    FailureOr<AttentionMatch> match =
        matchAttention(exprs, sum, outputs, denominator, why);
    // A quotient is raised for its normaliser: without one the sum alone is the
    // better root.
    if (succeeded(match) && denominator && !match->divide)
      return {};
    FailureOr<Value> value = failure();
    if (succeeded(match))
      value = buildAttention(builder, root->getLoc(), exprs, *match, outputs,
                             sum->type, why);
    if (failed(value)) {
      if (!why.empty())
        remarkDeclined(root, passName, "attention", "not raised: " + why);
      return {};
    }
    auto op = value->getDefiningOp<attn::AttentionOp>();
    remarkDone(op, passName, "attention",
               "raised to one attention: " + describe(op));
    return *value;
  }

  void replace(OpBuilder &builder, Operation *root, Value value) {
    Value result = root->getResult(0);
    if (value.getType() != result.getType())
      value = tensor::CastOp::create(builder, root->getLoc(), result.getType(),
                                     value);
    result.replaceAllUsesWith(value);
    eraseDeadOps(root, erased); // what only the scores were made of
  }

  DenseSet<Operation *> erased;
};

} // namespace
} // namespace heed
