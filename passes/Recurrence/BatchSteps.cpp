//===- BatchSteps.cpp - what no state enters, for all steps at once -------===//
//
// A sum in the body of a recurrence that reads nothing of a state is a function
// of its indices and of the step. Over an index more it stands before the
// recurrence, whose steps read their rows of it: one product in place of one a
// step.
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/Rows.h"
#include "passes/Algebra/TensorExpr.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Recurrence/StepBody.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace heed {
#define GEN_PASS_DEF_ATTNBATCHSTEPS
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

constexpr StringLiteral passName = "attn-batch-steps";

/// One recurrence, and the sums that leave it.
class Batcher {
public:
  explicit Batcher(attn::ScanOp scan) : scan(scan) {}
  void run();

private:
  ExprRef elementOverSteps(Value sum);
  std::optional<bool> countsBack(ExprRef element);
  size_t placeOfSteps(ExprRef element);
  bool isStep(ExprRef e) { return StepBody(scan, *exprs).isStep(e); }
  bool isLast(ExprRef number);
  bool fromZero() { return getConstantIntValue(scan.getLow()) == 0; }
  ExprRef indexed(ExprRef element, bool back);
  Value rowOf(Value all, linalg::LinalgOp sum, size_t place, bool back);
  bool batch(linalg::LinalgOp sum);

  attn::ScanOp scan;
  std::unique_ptr<Exprs> exprs;
  SmallVector<unsigned> vars; ///< of the sum's result
  unsigned steps = 0;         ///< the index more
};

/// The element of \p sum at `vars`, read from outside of the recurrence alone.
/// Null where a state, or what is no expression, enters.
ExprRef Batcher::elementOverSteps(Value sum) {
  SmallVector<ExprRef> at;
  exprs->indexVars(sum, vars, at);
  return StepBody(scan, *exprs).open(exprs->read(sum, at));
}

/// Whether \p number is the last step, the end of the range less 1.
bool Batcher::isLast(ExprRef number) {
  Value high = scan.getHigh();
  if (std::optional<int64_t> end = getConstantIntValue(high))
    return Exprs::constantInt(number) == *end - 1;
  if (number->kind == ExprKind::Scalar) { // computed outside
    Operation *op = number->value.getDefiningOp();
    if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
      return false;
    std::optional<int64_t> by = getConstantIntValue(op->getOperand(1));
    return op->getOperand(0) == high && by == (isa<arith::AddIOp>(op) ? -1 : 1);
  }
  if (!number->isOp("arith.addi") && !number->isOp("arith.subi"))
    return false;
  ExprRef whole = exprs->scalar(high);
  int64_t less = number->isOp("arith.addi") ? -1 : 1;
  for (int k : {0, 1})
    if (number->operand(k) == whole &&
        Exprs::constantInt(number->operand(1 - k)) == less)
      return k == 0 || less == -1;
  return false;
}

/// Whether rows are read from the last to the first, where all are read in one
/// order: then the index more is a position, not a step.
std::optional<bool> Batcher::countsBack(ExprRef element) {
  std::optional<bool> back;
  bool alike = true;
  Exprs::walk(element, [&](ExprRef e) {
    if (e->kind != ExprKind::Read)
      return;
    for (ExprRef at : e->operands) {
      bool forward = isStep(at);
      bool reverse = at->isOp("arith.subi") && isStep(at->operand(1)) &&
                     isLast(at->operand(0));
      if (!forward && !reverse)
        continue;
      alike &= !back || *back == reverse;
      back = reverse;
    }
  });
  return alike ? back : std::nullopt;
}

/// Where the index more stands among `vars`: behind those that stand before it
/// in a tensor that it reads, so that they lie together there as here.
size_t Batcher::placeOfSteps(ExprRef element) {
  std::optional<size_t> place;
  Exprs::walk(element, [&](ExprRef e) {
    if (place || e->kind != ExprKind::Read)
      return;
    size_t before = 0;
    for (ExprRef at : e->operands) {
      if (at->kind == ExprKind::Var && at->number == steps)
        place = before;
      if (at->kind == ExprKind::Var)
        if (auto *own = llvm::find(vars, at->number); own != vars.end())
          before = std::max<size_t>(before, own - vars.begin() + 1);
    }
  });
  return place.value_or(0);
}

/// \p element with the index more in place of the step.
ExprRef Batcher::indexed(ExprRef element, bool back) {
  Type index = IndexType::get(scan.getContext());
  ExprRef high = exprs->scalar(scan.getHigh());
  ExprRef low = exprs->scalar(scan.getLow());
  steps = exprs->freshVar(
      fromZero() ? high : exprs->op("arith.subi", index, {high, low}));
  ExprRef at = exprs->var(steps);
  ExprRef last = exprs->op("arith.subi", index, {high, exprs->index(1)});
  ExprRef step = fromZero() || mutated("batch-steps.forget-start")
                     ? at
                     : exprs->op("arith.addi", index, {at, low});
  if (back != mutated("batch-steps.other-end"))
    step = exprs->op("arith.subi", index, {last, at});
  element = exprs->rewrite(
      element, [&](ExprRef e) { return isStep(e) ? step : nullptr; });
  // A row counted back stands at the position itself.
  return !back ? element : exprs->rewrite(element, [&](ExprRef e) {
    return e->isOp("arith.subi") && e->operand(1) == step &&
                   isLast(e->operand(0))
               ? at
               : nullptr;
  });
}

/// The row of \p all that the step reads in place of \p sum.
Value Batcher::rowOf(Value all, linalg::LinalgOp sum, size_t place, bool back) {
  OpBuilder before(scan), b(sum);
  Location loc = sum->getLoc();
  auto type = cast<RankedTensorType>(sum->getResult(0).getType());
  attn::RowPlace at;
  at.offsets.assign(vars.size(), b.getIndexAttr(0));
  at.dropped.assign(vars.size(), false);
  at.dropped[place] = true;
  for (auto [k, v] : llvm::enumerate(vars)) {
    size_t own = k - (k > place);
    if (k == place)
      at.sizes.push_back(b.getIndexAttr(1));
    else if (type.isDynamicDim(own))
      at.sizes.push_back(writeExtent(before, loc, exprs->extent(v)));
    else
      at.sizes.push_back(b.getIndexAttr(type.getDimSize(own)));
  }
  Value position = scan.step();
  if (mutated("batch-steps.first-row")) {
    position = scan.getLow();
  } else if (back && !mutated("batch-steps.count-forward")) {
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    Value last = arith::SubIOp::create(b, loc, scan.getHigh(), one);
    position = arith::SubIOp::create(b, loc, last, position);
  } else if (!fromZero()) {
    position = arith::SubIOp::create(b, loc, position, scan.getLow());
  }
  at.offsets[place] = position;
  return attn::readRow(b, loc, all, at, type);
}

bool Batcher::batch(linalg::LinalgOp sum) {
  Value result = sum->getResult(0);
  // There is no slice of a tensor that is known to be empty.
  if (llvm::is_contained(cast<RankedTensorType>(result.getType()).getShape(),
                         0))
    return false;
  exprs = std::make_unique<Exprs>(scan.getContext());
  vars.clear();
  ExprRef element = elementOverSteps(result);
  if (!element)
    return false;
  bool steady = true;
  Exprs::walk(element, [&](ExprRef e) { steady &= !isStep(e); });
  OpBuilder b(scan);
  if (steady) {
    Value all = writeTensor(b, sum->getLoc(), *exprs, element, vars);
    result.replaceAllUsesWith(castTo(b, all, result.getType()));
    remarkDone(scan, passName, "recurrence",
               "a sum that is the same in every step is computed before");
    return true;
  }
  std::optional<bool> back = countsBack(element);
  if (!back || (*back && !fromZero()))
    return false;
  element = indexed(element, *back);
  size_t place = placeOfSteps(element);
  vars.insert(vars.begin() + place, steps);
  Value all = writeTensor(b, sum->getLoc(), *exprs, element, vars);
  result.replaceAllUsesWith(rowOf(all, sum, place, *back));
  remarkDone(scan, passName, "recurrence",
             "a sum that no state enters is computed for all steps at once");
  return true;
}

void Batcher::run() {
  SmallVector<linalg::LinalgOp> sums;
  Operation *check = nullptr;
  for (Operation &op : scan.getBody().front()) {
    // It may say that what comes behind it may be read.
    if (isa<attn::RequireOp, attn::RequireInRangeOp>(op)) {
      check = &op;
      break;
    }
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (linalgOp && linalgOp.getNumReductionLoops() &&
        linalgOp->getNumResults() == 1 && Exprs::isExpressible(linalgOp))
      sums.push_back(linalgOp);
  }
  if (check)
    remarkDeclined(check, passName, "recurrence",
                   "what each step checks is checked before it is read");
  // The last first: a sum of sums leaves with them.
  DenseSet<Operation *> erased;
  for (linalg::LinalgOp sum : llvm::reverse(sums))
    if (!erased.contains(sum) && !sum->use_empty() && batch(sum))
      eraseDeadOps(sum, erased);
}

struct BatchSteps : heed::impl::AttnBatchStepsBase<BatchSteps> {
  void runOnOperation() override {
    SmallVector<attn::ScanOp> scans; // inner ones first
    getOperation().walk([&](attn::ScanOp scan) { scans.push_back(scan); });
    for (attn::ScanOp scan : scans)
      Batcher(scan).run();
  }
};

} // namespace
