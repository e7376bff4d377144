//===- WidenSums.cpp - states that each step adds to, as f64 --------------===//
//
// An f32 that each of N steps adds to is rounded N times; where terms are alike
// always the same way, so that 2^20 equal ones are 1 % off in the end. An f64
// loses nothing that an f32 shows. A state that decays forgets its roundings
// and stays an f32.
#include "passes/Recurrence/WidenSums.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorExpr.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Recurrence/LinearUpdate.h"
#include "passes/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace heed {
#define GEN_PASS_DEF_ATTNWIDENSUMS
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

/// One state of a recurrence.
class Widener {
public:
  Widener(attn::ScanOp scan, unsigned state)
      : scan(scan), state(state), exprs(scan.getContext()), b(scan) {}
  /// Whether the next state is the old one with something added.
  bool isSum();
  bool run();

private:
  bool open();
  bool isMadeOfState(Value value);
  bool hasState(ExprRef e);
  ExprRef wide(ExprRef e);
  Value tensorIn(OpBuilder &b, Value tensor, Type type);
  BlockArgument carried() { return scan.getBody().getArgument(1 + state); }

  attn::ScanOp scan;
  unsigned state;
  Exprs exprs;
  OpBuilder b;
  SmallVector<unsigned> vars; ///< of the state's axes
  SmallVector<ExprRef> at;
  ExprRef old = nullptr, next = nullptr;
  ExprRef longOld = nullptr;
};

} // namespace

ExprRef heed::inType(Exprs &exprs, Type type, ExprRef element) {
  if (element->type == type)
    return element;
  bool isWider =
      type.getIntOrFloatBitWidth() > element->type.getIntOrFloatBitWidth();
  return exprs.op(isWider ? "arith.extf" : "arith.truncf", type, {element});
}

/// \p tensor with elements of \p type.
Value Widener::tensorIn(OpBuilder &b, Value tensor, Type type) {
  SmallVector<unsigned> own;
  SmallVector<ExprRef> place;
  exprs.indexVars(tensor, own, place);
  ExprRef element = inType(exprs, type, exprs.read(tensor, place));
  return castTo(b, writeTensor(b, scan.getLoc(), exprs, element, own),
                RankedTensorType::get(
                    cast<RankedTensorType>(tensor.getType()).getShape(), type));
}

/// Whether \p value, of a step, is computed from the state before.
bool Widener::isMadeOfState(Value value) {
  SmallVector<Value> todo{value};
  DenseSet<Operation *> seen;
  while (!todo.empty()) {
    Value each = todo.pop_back_val();
    if (each == carried())
      return true;
    Operation *op = each.getDefiningOp();
    if (!op || !scan.getBody().isAncestor(op->getParentRegion()) ||
        !seen.insert(op).second)
      continue;
    op->walk([&](Operation *inner) {
      llvm::append_range(todo, inner->getOperands());
    });
  }
  return false;
}

bool Widener::hasState(ExprRef e) {
  bool has = false;
  Exprs::walk(e, [&](ExprRef inner) {
    has |= inner->kind == ExprKind::Read && inner->value == carried();
  });
  return has;
}

/// The next state as an expression of the one before. What is not made of that
/// stays a tensor of the step.
bool Widener::open() {
  Value made = scan.terminator().getStates()[state];
  if (!getElementTypeOrSelf(made).isF32() || !made.getDefiningOp() ||
      made.getParentBlock() != &scan.getBody().front())
    return false;
  exprs.indexVars(carried(), vars, at);
  old = exprs.read(carried(), at);
  next = exprs.expandReads(exprs.read(made, at), [&](ExprRef read) {
    return read->value != carried() && isMadeOfState(read->value);
  });
  return true;
}

bool Widener::isSum() {
  if (!open())
    return false;
  std::optional<LinearUpdate> update = matchLinearUpdate(exprs, next, old);
  return update && !update->erased &&
         (!update->decay || Exprs::constantFloat(update->decay) == 1.0);
}

/// \p e in f64, of the state in f64. Null if it is more than sums, products and
/// choices of that.
ExprRef Widener::wide(ExprRef e) {
  Type type = b.getF64Type();
  if (e == old)
    return longOld;
  if (!hasState(e))
    return exprs.op("arith.extf", type, {e});
  bool chooses = e->kind == ExprKind::If || e->isOp("arith.select");
  if (!chooses && !e->isOp("arith.addf") && !e->isOp("arith.subf") &&
      !e->isOp("arith.mulf"))
    return nullptr;
  ExprRef first = wide(e->operand(chooses)),
          second = wide(e->operand(1 + chooses));
  if (!first || !second || (chooses && hasState(e->operand(0))))
    return nullptr;
  if (chooses) {
    if (mutated("widen-sums.other-branch"))
      std::swap(first, second);
    return exprs.select(e->operand(0), first, second, e->kind == ExprKind::If);
  }
  if (e->isOp("arith.subf") && mutated("widen-sums.turn-difference"))
    std::swap(first, second);
  if (e->isOp("arith.addf") && mutated("widen-sums.forget-sum"))
    return first;
  return exprs.op(e->name->getStringRef(), type, {first, second});
}

bool Widener::run() {
  if (!next && !open())
    return false;
  longOld = old;
  if (!wide(next))
    return false;
  Location loc = scan.getLoc();
  auto longType = RankedTensorType::get(
      cast<RankedTensorType>(carried().getType()).getShape(), b.getF64Type());
  scan.getStartsMutable()[state].set(castTo(
      b, tensorIn(b, scan.getStarts()[state], b.getF64Type()), longType));
  Value last = scan.getStates()[state];
  SmallVector<OpOperand *> readers;
  for (OpOperand &use : last.getUses())
    readers.push_back(&use);
  last.setType(longType);
  OpBuilder behind(scan->getNextNode());
  if (!readers.empty()) {
    Value rounded = tensorIn(
        behind,
        mutated("widen-sums.start-stays") ? scan.getStarts()[state] : last,
        b.getF32Type());
    for (OpOperand *use : readers)
      use->set(rounded);
  }

  // In the step.
  Value made = scan.terminator().getStates()[state];
  Operation *maker = made.getDefiningOp();
  readers.clear();
  for (OpOperand &use : carried().getUses())
    readers.push_back(&use);
  carried().setType(longType);
  OpBuilder inside(&scan.getBody().front(), scan.getBody().front().begin());
  Value before = tensorIn(inside, carried(), b.getF32Type());
  for (OpOperand *use : readers)
    use->set(before);
  longOld = exprs.read(carried(), at);
  inside.setInsertionPointAfter(maker);
  Value longMade = castTo(
      inside, writeTensor(inside, loc, exprs, wide(next), vars), longType);
  Value after = castTo(inside, tensorIn(inside, longMade, b.getF32Type()),
                       made.getType());
  made.replaceAllUsesWith(mutated("widen-sums.row-before") ? before : after);
  attn::StepOp end = scan.terminator();
  end.getStatesMutable()[state].set(
      mutated("widen-sums.keep-state") ? Value(carried()) : longMade);
  DenseSet<Operation *> erased;
  eraseDeadOps(maker, erased);
  if (before.use_empty())
    eraseDeadOps(before.getDefiningOp(), erased);
  return true;
}

bool heed::widenState(attn::ScanOp scan, unsigned state) {
  return Widener(scan, state).run();
}

namespace {

struct WidenSums : heed::impl::AttnWidenSumsBase<WidenSums> {
  void runOnOperation() override {
    getOperation().walk([&](attn::ScanOp scan) {
      std::optional<int64_t> low = getConstantIntValue(scan.getLow()),
                             high = getConstantIntValue(scan.getHigh()), steps;
      if (low && high)
        steps = *high - *low;
      if (!roundsTooOften(steps))
        return;
      for (unsigned k = 0; k < scan.getStarts().size(); ++k)
        if (Widener widener(scan, k); widener.isSum() && widener.run())
          remarkDone(scan, "attn-widen-sums", "recurrence",
                     "a state that each step adds to is carried as f64");
    });
  }
};

} // namespace
