//===- StepRegion.cpp - the regions of attn.element_scan ------------------===//
#include "passes/Recurrence/StepRegion.h"
#include "dialects/Attn/Dialect.h"

using namespace mlir;
using namespace heed;

void StepRegion::write(Region &region, ArrayRef<ExprRef> elements,
                       ArrayRef<SmallVector<unsigned>> vars,
                       ArrayRef<Value> tensors) {
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&region);
  ExprWriter writer(b, loc);
  auto add = [&](Type type) { return block->addArgument(type, loc); };
  writer.bind(exprs.scalar(step), add(b.getIndexType()));
  SmallVector<Value> indices, read;
  for (unsigned k = 0; k < rank; ++k)
    indices.push_back(add(b.getIndexType()));
  for (Value tensor : tensors)
    read.push_back(add(getElementTypeOrSelf(tensor)));
  for (ArrayRef<unsigned> own : vars) {
    SmallVector<ExprRef> place;
    for (auto [v, index] : llvm::zip_equal(own, indices)) {
      writer.bind(v, index);
      place.push_back(exprs.var(v));
    }
    // A state that a step leaves as it is stands in it twice.
    llvm::SmallPtrSet<Value, 4> bound;
    for (auto [tensor, element] : llvm::zip_equal(tensors, read))
      if (bound.insert(tensor).second)
        writer.bind(exprs.read(tensor, place), element);
  }
  SmallVector<Value> values;
  for (ExprRef element : elements)
    values.push_back(writer.write(element));
  attn::NextOp::create(b, loc, values);
}
