//===- LongWindows.cpp - windows as long as the rows that they slide over -===//
//
// Where a window has as many steps as there are rows it is long whenever the
// rows are many (a convolution with a kernel as long as the sequence), also if
// only a call knows how long. A kernel alone does not see that two extents are
// one: the model requires it.
#include "dialects/Attn/Dialect.h"
#include "dialects/Halide/HalideNames.h"
#include "passes/Algebra/Computation.h"
#include "passes/Algebra/TensorExpr.h"
#include "passes/Kernels/KernelKinds.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace heed;

/// Whether \p sum reads at coordinates that its only term loop shares with a
/// loop as long as that.
static bool isLong(Exprs &exprs, linalg::LinalgOp sum) {
  SmallVector<unsigned> outputs, terms;
  SmallVector<ExprRef> at;
  exprs.indexVars(sum->getResult(0), outputs, at);
  ExprRef written = exprs.expand(sum->getResult(0), at);
  if (!written || !written->isSum())
    return false;
  ExprRef body = exprs.open(written, terms);
  if (terms.size() != 1)
    return false;
  bool found = false;
  Exprs::walk(body, [&](ExprRef e) {
    if (e->kind == ExprKind::Read)
      for (ExprRef place : e->operands)
        for (unsigned v : outputs)
          found |= place->uses(terms[0]) && place->uses(v) &&
                   exprs.extent(v) == exprs.extent(terms[0]);
  });
  return found;
}

void heed::markLongWindows(func::FuncOp model) {
  Exprs exprs(model.getContext());
  model.walk([&](linalg::LinalgOp op) {
    if (op.getNumReductionLoops() == 1 && op->getNumResults() == 1 &&
        isWindowSum(op) && isLong(exprs, op))
      op->setAttr(halide::kLongWindowAttr, UnitAttr::get(op->getContext()));
  });
}
