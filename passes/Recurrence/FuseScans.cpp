//===- FuseScans.cpp - recurrences side by side ---------------------------===//
//
// A recurrence that reads what another leaves in the same step, or in the step
// before, is one recurrence with it: the states of both stand side by side, and
// the rows between them are numbers of a step. So is what is made of rows
// element by element. A sum of exponentials that is stabilised by a running
// maximum, and its logarithm, store nothing but their result.
//
// Of recurrences alone whose elements are each its own: of others a step is
// several kernels, whatever stands in it.
#include "passes/Algebra/TensorExpr.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Recurrence/OwnSteps.h"
#include "passes/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace heed {
#define GEN_PASS_DEF_ATTNFUSESCANS
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

/// Two recurrences, the second of which reads the first.
class Fusion {
public:
  Fusion(attn::ScanOp first, attn::ScanOp second)
      : exprs(first.getContext()), vars(variables(exprs, second)),
        first(first, exprs, vars), second(second, exprs, vars), b(second) {}
  bool run();

private:
  static SmallVector<unsigned> variables(Exprs &exprs, attn::ScanOp scan) {
    SmallVector<unsigned> vars;
    SmallVector<ExprRef> at;
    if (!scan.getStarts().empty())
      exprs.indexVars(scan.carried()[0], vars, at);
    return vars;
  }
  bool match();
  ExprRef readFirst(ExprRef e);
  ExprRef isFirstStep(ExprRef step);
  bool findReads();
  attn::ScanOp make();
  void write(OwnSteps &side, ArrayRef<Value> old, Value step,
             SmallVectorImpl<Value> &states, SmallVectorImpl<Value> &left);

  Exprs exprs;
  SmallVector<unsigned> vars;
  OwnSteps first, second;
  OpBuilder b;
  /// The number that the row of the first, or its state before the step, has
  /// in the elements of the second.
  DenseMap<unsigned, unsigned> rowNow, stateBefore;
};

ExprRef Fusion::isFirstStep(ExprRef step) {
  return exprs.compare(arith::CmpIPredicate::eq, step, exprs.index(0));
}

/// A read of a row of the first recurrence in this step of the second, or in
/// the one before, as a number of the step. Null if it is something else.
ExprRef Fusion::readFirst(ExprRef e) {
  auto asRow =
      [&](ExprRef read) -> std::optional<std::pair<unsigned, ExprRef>> {
    if (read->kind != ExprKind::Read || !first.isResult(read->value))
      return std::nullopt;
    for (auto [k, rows] : llvm::enumerate(first.scan.getStacked())) {
      if (rows != read->value)
        continue;
      SmallVector<ExprRef> place(ArrayRef<ExprRef>(read->operands));
      unsigned axis = first.scan.getAxes()[k];
      ExprRef position = place[axis];
      place.erase(place.begin() + axis);
      if (ArrayRef<ExprRef>(place) == ArrayRef<ExprRef>(second.at))
        return std::pair<unsigned, ExprRef>(k, position);
    }
    return std::nullopt;
  };
  auto parameterOf = [&](DenseMap<unsigned, unsigned> &known, unsigned number,
                         Type type) {
    auto [it, isNew] = known.try_emplace(number, 0);
    if (isNew)
      it->second = exprs.freshVar();
    return exprs.parameter(it->second, type);
  };
  /// The state that row \p k is after a step.
  auto stateOf = [&](unsigned k) -> std::optional<unsigned> {
    for (auto [j, state] : llvm::enumerate(first.yielded))
      if (first.rows[k] == exprs.read(state, first.at))
        return j;
    return std::nullopt;
  };
  ExprRef step = second.step();
  if (e->isOp("arith.select") && e->operand(0) == isFirstStep(step)) {
    auto row = asRow(e->operand(2));
    if (!row || row->second != first.placeBefore(row->first, step))
      return nullptr;
    std::optional<unsigned> state = stateOf(row->first);
    if (!state)
      return nullptr;
    ExprRef start = exprs.expand(first.scan.getStarts()[*state], first.at);
    // What it starts with is what it is before the first step.
    if (start == e->operand(1))
      return parameterOf(stateBefore, *state, e->type);
    return nullptr;
  }
  auto row = asRow(e);
  if (!row)
    return nullptr;
  if (row->second == first.placeOf(row->first, step))
    return parameterOf(rowNow, row->first, e->type);
  std::optional<unsigned> state = stateOf(row->first);
  if (!state || row->second != first.placeBefore(row->first, step))
    return nullptr;
  ExprRef before = parameterOf(stateBefore, *state, e->type);
  if (mutated("fuse-scans.start-for-first"))
    return before;
  return exprs.select(isFirstStep(step),
                      parameterOf(rowNow, row->first, e->type), before,
                      /*guard=*/false);
}

/// Whether all that the second one reads of the first is of this step or of the
/// one before.
bool Fusion::findReads() {
  bool reads = false, others = false;
  for (auto *elements : {&second.next, &second.rows})
    for (ExprRef &element : *elements) {
      element = exprs.replaceOutermost(element, [&](ExprRef e) {
        ExprRef number = readFirst(e);
        reads |= number != nullptr;
        return number;
      });
      Exprs::walk(element, [&](ExprRef e) {
        others |= (e->kind == ExprKind::Read || e->kind == ExprKind::Scalar) &&
                  first.isResult(e->value);
      });
    }
  return reads && !others;
}

bool Fusion::match() {
  attn::ScanOp one = first.scan, other = second.scan;
  auto end = [&](attn::ScanOp scan) {
    return exprs.fold(getAsOpFoldResult(scan.getHigh()));
  };
  if (one->getBlock() != other->getBlock() || end(one) != end(other))
    return false;
  // Its results are there where the second one's are.
  for (Operation *user : one->getUsers()) {
    Operation *here = one->getBlock()->findAncestorOpInBlock(*user);
    if (!here || (here != other && here->isBeforeInBlock(other)))
      return false;
  }
  for (Value operand : other->getOperands())
    if (first.isResult(operand))
      return false;
  return first.match() && second.match() && findReads();
}

/// The elements of \p side in the body of the new recurrence, of the states
/// \p old.
void Fusion::write(OwnSteps &side, ArrayRef<Value> old, Value step,
                   SmallVectorImpl<Value> &states,
                   SmallVectorImpl<Value> &left) {
  Location loc = side.scan.getLoc();
  SmallVector<Value> made;
  auto replaced = [&](ExprRef element) {
    return exprs.rewrite(element, [&](ExprRef e) -> ExprRef {
      if (e->kind == ExprKind::Scalar && e->value == side.scan.step())
        return exprs.scalar(step);
      if (e->kind == ExprKind::Var) {
        for (auto &[row, number] : rowNow)
          if (number == e->number)
            return exprs.read(left[row], side.at);
        for (auto &[state, number] : stateBefore)
          if (number == e->number)
            return exprs.read(mutated("fuse-scans.state-after") ? states[state]
                                                                : old[state],
                              side.at);
      }
      if (e->kind != ExprKind::Read)
        return nullptr;
      unsigned skipped = &side == &second ? first.carried.size() : 0;
      for (auto [k, state] : llvm::enumerate(side.carried))
        if (e->value == state)
          return exprs.read(old[skipped + k], e->operands);
      for (auto [k, state] : llvm::enumerate(side.yielded))
        if (e->value == state && k < made.size())
          return exprs.read(made[k], e->operands);
      return nullptr;
    });
  };
  for (auto [element, state] : llvm::zip(side.next, side.carried)) {
    Value value =
        castTo(b, writeTensor(b, loc, exprs, replaced(element), side.vars),
               state.getType());
    states.push_back(value);
    made.push_back(value);
  }
  if (mutated("fuse-scans.rows-of-start"))
    made.assign(old.begin() + (&side == &second ? first.carried.size() : 0),
                old.end());
  for (auto [element, row] :
       llvm::zip(side.rows, side.scan.terminator().getRows())) {
    ExprRef own = replaced(element);
    bool isState =
        own->kind == ExprKind::Read && llvm::is_contained(states, own->value);
    left.push_back(isState
                       ? own->value
                       : castTo(b, writeTensor(b, loc, exprs, own, side.vars),
                                row.getType()));
  }
}

/// The recurrence of both.
attn::ScanOp Fusion::make() {
  SmallVector<Value> starts, outs;
  SmallVector<int64_t> axes;
  SmallVector<bool> reversed;
  for (attn::ScanOp scan : {first.scan, second.scan}) {
    llvm::append_range(starts, scan.getStarts());
    llvm::append_range(outs, scan.getOuts());
    llvm::append_range(axes, scan.getAxes());
    llvm::append_range(reversed, scan.getReversed());
  }
  attn::ScanOp other = second.scan;
  auto made =
      attn::ScanOp::create(b, other.getLoc(), other.getLow(), other.getHigh(),
                           starts, outs, axes, reversed);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(&made.getBody().front());
  SmallVector<Value> old(made.carried()), states, rows;
  write(first, old, made.step(), states, rows);
  write(second, old, made.step(), states, rows);
  attn::StepOp::create(b, other.getLoc(), states, rows);
  return made;
}

bool Fusion::run() {
  attn::ScanOp one = first.scan, other = second.scan;
  if (!match())
    return false;
  attn::ScanOp made = make();
  unsigned states = one.getStates().size(), rows = one.getStacked().size();
  SmallVector<Value> a(made.getStates().take_front(states)),
      c(made.getStates().drop_front(states));
  llvm::append_range(a, made.getStacked().take_front(rows));
  llvm::append_range(c, made.getStacked().drop_front(rows));
  other.replaceAllUsesWith(c);
  other.erase();
  one.replaceAllUsesWith(a);
  one.erase();
  remarkDone(made, "attn-fuse-scans", "recurrence",
             "one recurrence with the one that it reads: their states stand "
             "side by side");
  return true;
}

struct FuseScans : heed::impl::AttnFuseScansBase<FuseScans> {
  void runOnOperation() override {
    SmallVector<attn::ScanOp> scans;
    auto find = [&] {
      scans.clear();
      getOperation().walk([&](attn::ScanOp scan) { scans.push_back(scan); });
    };
    auto fuseOne = [&] {
      for (attn::ScanOp second : scans)
        for (attn::ScanOp first : scans)
          if (first != second && first->getBlock() == second->getBlock() &&
              first->isBeforeInBlock(second) && Fusion(first, second).run())
            return true;
      return false;
    };
    for (find(); fuseOne(); find())
      ;
    for (attn::ScanOp scan : scans) {
      Exprs exprs(&getContext());
      SmallVector<unsigned> vars;
      SmallVector<ExprRef> at;
      if (scan.getStarts().empty())
        continue;
      exprs.indexVars(scan.carried()[0], vars, at);
      if (OwnSteps(scan, exprs, vars).match())
        takeRows(scan);
    }
  }
};

} // namespace
