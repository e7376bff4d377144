//===- LowerScans.cpp - recurrences as loops over their steps -------------===//
//
// Kernels take rows whose elements lie side by side. So a row along the last
// axis of its tensor, whose elements are a step apart, is computed from that
// tensor like anything else; and of an output whose steps are the last axis the
// rows are kept side by side until the end.
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorExpr.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace heed {
#define GEN_PASS_DEF_ATTNLOWERSCANS
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

/// Whether a part of these sizes of a tensor of \p whole has elements that lie
/// apart: of its last axis it has one, of others perhaps more.
bool isApart(ArrayRef<OpFoldResult> sizes, RankedTensorType whole) {
  auto isOne = [](OpFoldResult size) { return getConstantIntValue(size) == 1; };
  return !sizes.empty() && isOne(sizes.back()) &&
         whole.getShape().back() != 1 && !llvm::all_of(sizes, isOne);
}

/// Computes \p element in place of \p slice.
void replace(Operation *slice, Exprs &exprs, ExprRef element,
             ArrayRef<unsigned> vars) {
  OpBuilder b(slice);
  Type type = slice->getResult(0).getType();
  Value value = writeTensor(b, slice->getLoc(), exprs, element, vars);
  slice->replaceAllUsesWith(ValueRange{castTo(b, value, type)});
  slice->erase();
}

/// The elements of \p slice, computed where they are read.
void readApart(tensor::ExtractSliceOp slice) {
  Exprs exprs(slice.getContext());
  SmallVector<unsigned> vars;
  SmallVector<ExprRef> at;
  exprs.indexVars(slice.getResult(), vars, at);
  ExprRef element = exprs.expand(slice.getResult(), at);
  if (mutated("lower-scans.first-column"))
    element = exprs.rewrite(element, [&](ExprRef e) -> ExprRef {
      return e->kind == ExprKind::Scalar ? exprs.index(0) : nullptr;
    });
  replace(slice, exprs, element, vars);
}

/// The tensor that \p slice is written to, with each element computed: the one
/// of the slice where its position is.
void writeApart(tensor::InsertSliceOp slice) {
  Exprs exprs(slice.getContext());
  SmallVector<unsigned> vars;
  SmallVector<ExprRef> at, row;
  exprs.indexVars(slice.getDest(), vars, at);
  ExprRef here = exprs.truth(true);
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  for (auto [axis, place] : llvm::enumerate(
           llvm::zip(slice.getMixedOffsets(), slice.getMixedSizes()))) {
    auto [offset, size] = place;
    // What is written whole, or at one position.
    bool isWhole = getConstantIntValue(offset) == 0 &&
                   (getConstantIntValue(size) != 1 ||
                    slice.getDestType().getDimSize(axis) == 1);
    if (!dropped.test(axis))
      row.push_back(isWhole ? at[axis] : exprs.index(0));
    if (isWhole)
      continue;
    ExprRef position = exprs.fold(offset);
    if (mutated("lower-scans.write-first"))
      position = exprs.index(0);
    here = exprs.logicalAnd(
        here, exprs.compare(arith::CmpIPredicate::eq, at[axis], position));
  }
  if (mutated("lower-scans.write-others"))
    here = exprs.logicalNot(here);
  ExprRef element = exprs.select(here, exprs.read(slice.getSource(), row),
                                 exprs.read(slice.getDest(), at), false);
  if (mutated("lower-scans.write-everywhere"))
    element = exprs.read(slice.getSource(), row);
  replace(slice, exprs, element, vars);
}

/// Outputs of \p scan whose steps are their last axis get them as the first,
/// and are turned at the end.
void turnOutputs(attn::ScanOp scan) {
  SmallVector<int64_t> axes(scan.getAxes());
  unsigned first = 2 + scan.getStarts().size();
  for (auto [k, axis] : llvm::enumerate(axes)) {
    Value out = scan.getOuts()[k], result = scan.getStacked()[k];
    auto type = cast<RankedTensorType>(out.getType());
    if (axis == 0 || axis != type.getRank() - 1)
      continue;
    Exprs exprs(scan.getContext());
    SmallVector<unsigned> vars;
    SmallVector<ExprRef> at;
    exprs.indexVars(out, vars, at);
    OpBuilder b(scan);
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(b, scan.getLoc(), out);
    std::rotate(sizes.begin(), sizes.end() - 1, sizes.end());
    std::rotate(at.begin(), at.end() - 1, at.end());
    if (mutated("lower-scans.turn-from-end"))
      at[0] = exprs.op("arith.subi", at[0]->type,
                       {exprs.op("arith.subi", at[0]->type,
                                 {exprs.extent(vars.back()), exprs.index(1)}),
                        at[0]});
    Value rows =
        tensor::EmptyOp::create(b, scan.getLoc(), sizes, type.getElementType());
    scan->setOperand(first + k, rows);
    result.setType(rows.getType());
    axis = 0;
    b.setInsertionPointAfter(scan);
    SmallVector<OpOperand *> readers;
    for (OpOperand &use : result.getUses())
      readers.push_back(&use);
    Value turned =
        writeTensor(b, scan.getLoc(), exprs, exprs.read(result, at), vars);
    if (turned.getType() != type)
      turned = tensor::CastOp::create(b, scan.getLoc(), type, turned);
    for (OpOperand *use : readers)
      use->set(turned);
  }
  scan.setAxes(axes);
}

struct LowerScans : heed::impl::AttnLowerScansBase<LowerScans> {
  void runOnOperation() override {
    SmallVector<attn::ScanOp> scans; // inner ones first
    getOperation().walk([&](attn::ScanOp scan) { scans.push_back(scan); });
    IRRewriter rewriter(&getContext());
    for (attn::ScanOp scan : scans) {
      turnOutputs(scan);
      rewriter.setInsertionPoint(scan);
      remarkDone(scan, "attn-lower-scans", "form",
                 "a loop over its steps: sequential");
      rewriter.replaceOp(scan, *scan.decomposeOperation(rewriter));
    }
    SmallVector<tensor::ExtractSliceOp> reads;
    SmallVector<tensor::InsertSliceOp> writes;
    getOperation().walk([&](Operation *op) {
      if (auto read = dyn_cast<tensor::ExtractSliceOp>(op);
          read && isApart(read.getMixedSizes(), read.getSourceType()))
        reads.push_back(read);
      if (auto write = dyn_cast<tensor::InsertSliceOp>(op);
          write && isApart(write.getMixedSizes(), write.getDestType()))
        writes.push_back(write);
    });
    llvm::for_each(reads, readApart);
    llvm::for_each(writes, writeApart);
  }
};

} // namespace
