//===- RowsOfScans.cpp - what is made of rows is a row --------------------===//
//
// Part of attn-fuse-scans.
#include "passes/Algebra/TensorExpr.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Recurrence/OwnSteps.h"
#include "passes/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace heed;

namespace {

/// \p scan without the rows that nobody reads, and with \p more, of which each
/// has its steps where its tensor \p outs has them. The body's terminator has
/// its rows already.
attn::ScanOp withRows(attn::ScanOp scan, ArrayRef<bool> keeps,
                      ArrayRef<Value> outs, int64_t axis, bool isReversed,
                      ArrayRef<Value> more) {
  OpBuilder b(scan);
  SmallVector<Value> all, rows;
  SmallVector<int64_t> axes;
  SmallVector<bool> reversed;
  attn::StepOp end = scan.terminator();
  for (unsigned k = 0; k < keeps.size(); ++k)
    if (keeps[k]) {
      all.push_back(scan.getOuts()[k]);
      rows.push_back(end.getRows()[k]);
      axes.push_back(scan.getAxes()[k]);
      reversed.push_back(scan.getReversed()[k]);
    }
  for (Value out : outs) {
    all.push_back(out);
    axes.push_back(axis);
    reversed.push_back(isReversed);
  }
  llvm::append_range(rows, more);
  end.getRowsMutable().assign(rows);
  auto made =
      attn::ScanOp::create(b, scan.getLoc(), scan.getLow(), scan.getHigh(),
                           scan.getStarts(), all, axes, reversed);
  made.getBody().takeBody(scan.getBody());
  for (auto [from, to] : llvm::zip(scan.getStates(), made.getStates()))
    from.replaceAllUsesWith(to);
  unsigned place = 0;
  for (unsigned k = 0; k < keeps.size(); ++k)
    if (keeps[k])
      scan.getStacked()[k].replaceAllUsesWith(made.getStacked()[place++]);
  return made;
}

/// An op whose elements are made of rows of a recurrence at their own places.
class RowMaker {
public:
  RowMaker(attn::ScanOp scan, Operation *op)
      : scan(scan), op(op), exprs(scan.getContext()) {}
  /// The recurrence that leaves it, in place of the other. Null if it is none.
  attn::ScanOp run();

private:
  bool match();
  bool isBefore(Value value);

  attn::ScanOp scan;
  Operation *op;
  Exprs exprs;
  SmallVector<unsigned> vars;
  ExprRef element = nullptr;
  std::optional<unsigned> like; ///< a row that it reads
};

/// Whether \p value is there when the recurrence begins.
bool RowMaker::isBefore(Value value) {
  Operation *def = value.getDefiningOp();
  if (!def)
    return true;
  Operation *here = scan->getBlock()->findAncestorOpInBlock(*def);
  return !here || here->isBeforeInBlock(scan);
}

bool RowMaker::match() {
  SmallVector<ExprRef> at;
  exprs.indexVars(op->getResult(0), vars, at);
  element = exprs.expand(op->getResult(0), at);
  if (!element)
    return false;
  // What is between is seen through.
  element = exprs.expandReads(element, [&](ExprRef read) {
    Operation *def = read->value.getDefiningOp();
    return def && def->getBlock() == scan->getBlock() &&
           scan->isBeforeInBlock(def) && Exprs::isElementwise(def);
  });
  bool isRow = true;
  Exprs::walk(element, [&](ExprRef e) {
    isRow &= e->kind != ExprKind::Reduce;
    if (e->kind == ExprKind::Scalar)
      isRow &= isBefore(e->value);
    if (e->kind != ExprKind::Read)
      return;
    for (auto [k, row] : llvm::enumerate(scan.getStacked()))
      if (row == e->value) {
        if (!like)
          like = k;
        isRow &= ArrayRef<ExprRef>(e->operands) == ArrayRef<ExprRef>(at) &&
                 scan.getAxes()[k] == scan.getAxes()[*like] &&
                 scan.getReversed()[k] == scan.getReversed()[*like];
        return;
      }
    isRow &= isBefore(e->value);
  });
  if (!isRow || !like)
    return false;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Value row = scan.getStacked()[*like];
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    if (exprs.extentOf(row, axis) != exprs.extent(vars[axis]))
      return false;
  return true;
}

attn::ScanOp RowMaker::run() {
  if (!match())
    return nullptr;
  unsigned axis = scan.getAxes()[*like];
  bool isReversed = scan.getReversed()[*like];
  Value result = op->getResult(0);
  Location loc = op->getLoc();
  OpBuilder b(scan);
  SmallVector<Value> sizes;
  auto type = cast<RankedTensorType>(result.getType());
  for (auto [k, v] : llvm::enumerate(vars))
    if (type.isDynamicDim(k))
      sizes.push_back(writeExtent(b, loc, exprs.extent(v)));
  Value out = tensor::EmptyOp::create(b, loc, type, sizes);
  attn::StepOp end = scan.terminator();
  b.setInsertionPoint(end);
  ExprRef place = exprs.scalar(scan.step());
  if (isReversed != mutated("fuse-scans.other-place"))
    place = exprs.op("arith.subi", place->type,
                     {exprs.op("arith.subi", place->type,
                               {exprs.fold(getAsOpFoldResult(scan.getHigh())),
                                exprs.index(1)}),
                      place});
  element = exprs.rewrite(element, [&](ExprRef e) -> ExprRef {
    if (e->kind != ExprKind::Read)
      return nullptr;
    for (auto [k, row] : llvm::enumerate(scan.getStacked()))
      if (row == e->value) {
        SmallVector<ExprRef> own(ArrayRef<ExprRef>(e->operands));
        own.erase(own.begin() + axis);
        return exprs.read(
            end.getRows()[mutated("fuse-scans.first-row") ? 0 : k], own);
      }
    return nullptr;
  });
  DenseMap<unsigned, ExprRef> turn;
  turn[vars[axis]] = place;
  element = exprs.substitute(element, turn);
  vars.erase(vars.begin() + axis);
  Value row = writeTensor(b, loc, exprs, element, vars);
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + axis);
  row = castTo(b, row, RankedTensorType::get(shape, type.getElementType()));
  attn::ScanOp made =
      withRows(scan, SmallVector<bool>(scan.getStacked().size(), true), {out},
               axis, isReversed, {row});
  result.replaceAllUsesWith(made.getStacked().back());
  scan.erase();
  remarkDone(made, "attn-fuse-scans", "recurrence",
             "what is made of its rows is a row of it");
  return made;
}

} // namespace

void heed::takeRows(attn::ScanOp scan) {
  for (bool changed = true; changed;) {
    changed = false;
    SmallVector<Operation *> users;
    for (Value row : scan.getStacked())
      for (Operation *user : row.getUsers())
        if (user->getBlock() == scan->getBlock() &&
            user->getNumResults() == 1 && Exprs::isElementwise(user) &&
            !Exprs::isReshape(user) && !user->use_empty() &&
            !llvm::is_contained(users, user))
          users.push_back(user);
    for (Operation *user : users)
      if (attn::ScanOp made = RowMaker(scan, user).run()) {
        DenseSet<Operation *> erased;
        eraseDeadOps(user, erased);
        scan = made;
        changed = true;
        break;
      }
  }
  SmallVector<bool> keeps;
  for (Value row : scan.getStacked())
    keeps.push_back(!row.use_empty());
  if (llvm::is_contained(keeps, false) && llvm::is_contained(keeps, true)) {
    withRows(scan, keeps, {}, 0, false, {});
    scan.erase();
  }
}
