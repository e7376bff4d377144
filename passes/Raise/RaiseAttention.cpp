//===- RaiseAttention.cpp - from contractions to attention ----------------===//
//
#include "passes/Algebra/Proof.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Passes.h"
#include "passes/Raise/GatheredKeys.h"
#include "passes/Raise/LogSumExp.h"
#include "passes/Raise/QuerySoftmax.h"
#include "passes/Raise/RaiseAttentionMatch.h"
#include "passes/Raise/SplitWeights.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

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
                         : format("{} score terms", op.numTerms());
  if (op.getValues().size() > 1)
    text += format(", {} value terms", op.getValues().size());
  if (!op.getWhere().empty())
    text += ", where";
  if (op.getSink())
    text += ", sink";
  if (!op.getWeight().empty())
    text += ", a factor after the normaliser";
  text += format("; normaliser {}", attn::stringifyMap(op.getMap()));
  if (op.getDivide())
    text += " divided by its sum";
  if (attn::Normaliser::of(op).isShiftable && op.getDivide() &&
      !op.getStabilise())
    text += ", written without a maximum, which kernels subtract";
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
    roots.clear();
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (op->walk([](math::LogOp) {
              return WalkResult::interrupt();
            }).wasInterrupted())
        roots.push_back(op);
    });
    for (Operation *root : roots)
      if (!erased.contains(root) && !root->use_empty() &&
          root->getNumResults() == 1 && Exprs::isExpressible(root))
        raiseLogSumExp(root);
    erased.clear();
    SmallVector<attn::AttentionOp> attentions;
    getOperation()->walk(
        [&](attn::AttentionOp op) { attentions.push_back(op); });
    for (attn::AttentionOp op : attentions)
      while (foldIntoResult(op))
        ;
  }

  // A transposition of the whole output (merged heads), or its conversion to a
  // narrower type, is the way the op writes it. True if something was folded.
  bool foldIntoResult(attn::AttentionOp op) {
    Value output = op.getOutput();
    if (!output.hasOneUse())
      return false;
    Operation *user = *output.user_begin();
    auto type = user->getNumResults() == 1
                    ? dyn_cast<RankedTensorType>(user->getResult(0).getType())
                    : RankedTensorType();
    if (!type || !isa<linalg::LinalgOp>(user) || !Exprs::isElementwise(user))
      return false;
    Exprs exprs(&getContext());
    SmallVector<unsigned> vars;
    SmallVector<ExprRef> at;
    exprs.indexVars(user->getResult(0), vars, at);
    ExprRef element = exprs.expand(user->getResult(0), at);
    if (element && element->isOp("arith.truncf"))
      element = element->operand(0);
    if (!element || element->kind != ExprKind::Read ||
        element->value != output || element->operands.size() != vars.size())
      return false;
    SmallVector<AffineExpr> results;
    for (unsigned v : vars) {
      unsigned axis = llvm::find(element->operands, exprs.var(v)) -
                      element->operands.begin();
      if (axis == vars.size() ||
          exprs.extentOf(output, axis) != exprs.extent(v))
        return false;
      results.push_back(op.outputMap().getResult(axis));
    }
    op.setResultMapAttr(AffineMapAttr::get(AffineMap::get(
        op.outputMap().getNumDims(), 0, results, &getContext())));
    output.setType(type);
    user->getResult(0).replaceAllUsesWith(output);
    eraseDeadOps(user, erased);
    remarkDone(op, passName, "layout",
               "writes its result in the layout and type of its reader");
    return true;
  }

  void raise(Operation *root) {
    Exprs exprs(&getContext());
    Value result = root->getResult(0);
    SmallVector<unsigned> vars;
    SmallVector<ExprRef> at;
    exprs.indexVars(result, vars, at);
    ExprRef element = exprs.expand(result, at);
    if (!element)
      return;
    OpBuilder builder(root);
    if (element->isSum())
      return raiseRoot(builder, root, exprs, element, vars);
    if (!Exprs::isElementwise(root) ||
        joinSums(builder, root, exprs, element, vars))
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
      std::string why;
      std::optional<Raised> raised = raiseSumOrOverQueries(
          builder, root, exprs, sum, outputs, e->operand(1), why);
      if (!raised) {
        if (!why.empty())
          remarkNotRaised(root, why);
        return nullptr;
      }
      announce(*raised);
      changed = true;
      return exprs.read(raised->value, over->operands);
    });
    if (!changed)
      return;
    bool plain = other->kind == ExprKind::Read &&
                 ArrayRef<ExprRef>(other->operands) == ArrayRef<ExprRef>(at);
    replace(builder, root,
            plain ? other->value
                  : writeTensor(builder, root->getLoc(), exprs, other, vars));
  }

  /// A root that is a sum over keys: as it stands, in a band, or in parts.
  void raiseRoot(OpBuilder &builder, Operation *root, Exprs &exprs, ExprRef sum,
                 ArrayRef<unsigned> outputs) {
    std::string gathered, why;
    if (raiseGathered(builder, root, exprs, sum, outputs, gathered))
      return;
    if (auto raised = raiseSumOrOverQueries(builder, root, exprs, sum, outputs,
                                            nullptr, why)) {
      announce(*raised);
      replace(builder, root, raised->value);
    } else if (!raiseSplit(builder, root, exprs, sum, outputs)) {
      if (!gathered.empty())
        remarkDeclined(
            root, passName, "attention",
            format("gathered neighbours are not raised as a band: {}",
                   gathered));
      if (!why.empty())
        remarkNotRaised(root, why);
    }
  }

  struct Raised {
    Value value;
    std::string axioms;
    SmallVector<std::string> notes;
  };

  /// \p sum, over \p denominator if there is one, as an attention. None, with
  /// \p why if it looked like one.
  std::optional<Raised> raiseSum(OpBuilder &builder, Operation *root,
                                 Exprs &exprs, ExprRef sum,
                                 ArrayRef<unsigned> outputs,
                                 ExprRef denominator, std::string &why) {
    FailureOr<AttentionMatch> match =
        matchAttention(exprs, sum, outputs, denominator, why);
    // A quotient is raised for its normaliser: without one the sum alone is the
    // better root, and a row without a key stays what 0 over the divisor is.
    if (succeeded(match) && denominator && !match->dividesAfter)
      return std::nullopt;
    Attempt attempt(builder);
    FailureOr<Value> value = failure();
    if (succeeded(match))
      value = buildAttention(builder, root->getLoc(), exprs, *match, outputs,
                             sum->type, why);
    Proof proof;
    if (succeeded(value)) {
      ExprRef written =
          denominator ? exprs.op("arith.divf", sum->type, {sum, denominator})
                      : sum;
      proof = prove(exprs, written, *value, outputs, attempt);
      if (!proof.holds) {
        why = format("it cannot be proven equal: {}", proof.why);
        value = failure();
      }
    }
    if (failed(value)) {
      attempt.undo();
      return std::nullopt;
    }
    return Raised{*value, proof.axioms, match->notes};
  }

  /// Weights that are a softmax over queries, by the log-sum-exp of each key.
  /// None, with \p why if there is such a softmax.
  std::optional<Raised> raiseOverQueries(OpBuilder &builder, Operation *root,
                                         Exprs &exprs, ExprRef sum,
                                         ArrayRef<unsigned> outputs,
                                         ExprRef denominator,
                                         std::string &why) {
    std::optional<Raised> raised;
    std::string own;
    Attempt attempt(builder);
    if (softmaxOfQueries(builder, root, exprs, outputs, sum, denominator,
                         attempt, own))
      raised = raiseSum(builder, root, exprs, sum, outputs, denominator, own);
    if (!raised) {
      if (!own.empty())
        why = own;
      attempt.undo();
      return std::nullopt;
    }
    remarkFound(raised->value.getDefiningOp(), passName, "over-queries",
                "its softmax runs over queries: the log-sum-exp of each key's "
                "scores is an attention before it");
    for (Operation *op : llvm::reverse(attempt.operations()))
      if (isOpTriviallyDead(op))
        op->erase();
    return raised;
  }

  std::optional<Raised>
  raiseSumOrOverQueries(OpBuilder &builder, Operation *root, Exprs &exprs,
                        ExprRef sum, ArrayRef<unsigned> outputs,
                        ExprRef denominator, std::string &why) {
    std::optional<Raised> raised =
        raiseSum(builder, root, exprs, sum, outputs, denominator, why);
    return raised ? raised
                  : raiseOverQueries(builder, root, exprs, sum, outputs,
                                     denominator, why);
  }

  /// A weight that mixes several distributions: each its own attention. All of
  /// them or none: scores that are stored for one can serve the others.
  bool raiseSplit(OpBuilder &builder, Operation *root, Exprs &exprs,
                  ExprRef sum, ArrayRef<unsigned> outputs) {
    ExprRef split = splitWeights(exprs, sum);
    if (!split)
      return false;
    Attempt attempt(builder);
    Value whole = writeTensor(builder, root->getLoc(), exprs, split, outputs);
    bool ok = prove(exprs, sum, whole, outputs, attempt).holds;
    bool meets = meetsFactors(split);
    SmallVector<std::pair<Operation *, Raised>> parts;
    for (Operation *op : SmallVector<Operation *>(attempt.operations())) {
      auto part = dyn_cast<linalg::LinalgOp>(op);
      if (!ok || !part || !part.getNumReductionLoops())
        continue;
      SmallVector<unsigned> vars;
      SmallVector<ExprRef> at;
      exprs.indexVars(op->getResult(0), vars, at);
      std::string why;
      OpBuilder inner(op);
      std::optional<Raised> raised =
          raiseSum(inner, op, exprs, exprs.expand(op->getResult(0), at), vars,
                   nullptr, why);
      if (raised)
        parts.emplace_back(op, *raised);
      auto made =
          raised ? raised->value.getDefiningOp<attn::AttentionOp>() : nullptr;
      // Which rows have a live key is told by exponentials alone, without a
      // sink's.
      ok &= made &&
            (!meets || (made.getMap() == attn::Map::Exp && !made.getSink()));
    }
    if (!ok) {
      DenseSet<Operation *> gone;
      for (auto &[op, raised] : parts)
        eraseDeadOps(raised.value.getDefiningOp(), gone);
      attempt.undo();
      return false;
    }
    remarkDone(root, passName, "distributed",
               format("its weight mixes {} distributions: each is an attention "
                      "of its own",
                      parts.size()));
    SmallVector<attn::AttentionOp> attentions;
    for (auto &[op, raised] : parts) {
      announce(raised);
      attentions.push_back(raised.value.getDefiningOp<attn::AttentionOp>());
      replace(builder, op, raised.value);
    }
    replace(builder, root,
            meets ? zeroWithoutKeys(builder, whole, attentions) : whole);
    return true;
  }

  /// Sums of the same values whose weights have a product in common: one sum,
  /// of a row block.
  bool joinSums(OpBuilder &builder, Operation *root, Exprs &exprs,
                ExprRef element, ArrayRef<unsigned> vars) {
    JoinedWeights found = joinWeights(exprs, root, element);
    if (!found.sum)
      return false;
    Attempt attempt(builder);
    auto write = [&](ExprRef e) {
      return writeTensor(builder, root->getLoc(), exprs, e, vars);
    };
    auto withRest = [&](ExprRef sum) {
      return found.rest ? exprs.op("arith.addf", sum->type, {found.rest, sum})
                        : sum;
    };
    SmallVector<ExprRef> at;
    for (unsigned v : vars)
      at.push_back(exprs.var(v));
    ExprRef sum = exprs.read(write(found.sum), at);
    if (!prove(exprs, found.written, write(withRest(sum)), vars, attempt)
             .holds) {
      attempt.undo();
      return false;
    }
    Value whole = write(withRest(meetFactors(exprs, found, sum)));
    remarkDone(root, passName, "joined",
               "it mixes distributions over the same scores: one product with "
               "the values for all");
    replace(builder, root, whole);
    return true;
  }

  /// Neighbours that are gathered, as keys under a mask; else \p why not, if
  /// there are some.
  bool raiseGathered(OpBuilder &builder, Operation *root, Exprs &exprs,
                     ExprRef sum, ArrayRef<unsigned> outputs,
                     std::string &why) {
    Attempt attempt(builder);
    ExprRef band = gatherToBand(builder, exprs, root, sum);
    if (!band)
      return false;
    std::optional<Raised> raised =
        raiseSum(builder, root, exprs, band, outputs, nullptr, why);
    if (!raised) {
      attempt.undo();
      return false;
    }
    remarkDone(root, passName, "attention",
               "its gathered neighbours are keys in a band");
    announce(*raised);
    replace(builder, root, raised->value);
    for (Operation *op : llvm::reverse(attempt.operations()))
      if (isOpTriviallyDead(op))
        op->erase();
    return true;
  }

  /// After the attentions, whose results they may be.
  void raiseLogSumExp(Operation *root) {
    Exprs exprs(&getContext());
    SmallVector<unsigned> vars;
    SmallVector<ExprRef> at;
    exprs.indexVars(root->getResult(0), vars, at);
    ExprRef element = exprs.expand(root->getResult(0), at);
    OpBuilder builder(root);
    SmallVector<RaisedLogSumExp> raised;
    Value value =
        element ? raiseLogSumExps(builder, root, exprs, element, vars, raised)
                : Value();
    for (RaisedLogSumExp &lse : raised) {
      if (lse.alone)
        announce({lse.op.getOutput(), lse.axioms, {}});
      remarkDone(lse.op, passName, "log-sum-exp",
                 lse.alone ? "of which the log-sum-exp alone is read"
                           : "the log-sum-exp of its rows is a result, too");
      if (!lse.alone && !lse.axioms.empty())
        remarkFound(lse.op, passName, "proof",
                    format("proven equal by {}", lse.axioms));
    }
    if (value)
      replace(builder, root, value);
  }

  void announce(const Raised &raised) {
    auto op = raised.value.getDefiningOp<attn::AttentionOp>();
    remarkDone(op, passName, "attention",
               format("raised to one attention: {}", describe(op)));
    if (!raised.axioms.empty())
      remarkFound(op, passName, "proof",
                  format("proven equal by {}", raised.axioms));
    for (const std::string &note : raised.notes)
      remarkFound(op, passName, "attention", note);
  }

  static void remarkNotRaised(Operation *root, const std::string &why) {
    remarkDeclined(root, passName, "attention", format("not raised: {}", why));
  }

  void replace(OpBuilder &builder, Operation *root, Value value) {
    Value result = root->getResult(0);
    result.replaceAllUsesWith(castTo(builder, value, result.getType()));
    eraseDeadOps(root, erased); // what only the scores were made of
  }

  DenseSet<Operation *> erased;
};

} // namespace
} // namespace heed
