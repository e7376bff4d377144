//===- Bodies.cpp - Tensors from the code of one element -----------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"

using namespace heed;
using namespace heed::sema;
using namespace mlir;
using llvm::cast;

Value Emitter::emptyTensor(mlir::Type elem, ArrayRef<SizeUse> shape,
                           Range place) {
  SmallVector<Value> dynamic;
  for (const SizeUse &use : shape)
    if (!use.size.constant())
      dynamic.push_back(emit(use, place));
  return tensor::EmptyOp::create(builder, loc(place), extents(shape), elem,
                                 dynamic);
}

Value Emitter::filled(mlir::TypedAttr value, ArrayRef<SizeUse> shape,
                      Range place) {
  Location at = loc(place);
  Value constant = arith::ConstantOp::create(builder, at, value);
  Value empty = emptyTensor(value.getType(), shape, place);
  return linalg::FillOp::create(builder, at, constant, empty).getResult(0);
}

/// Nothing unused stays in the code: an operand without a reader only where it
/// bounds a loop behind the first `parallel` that nothing else bounds.
static void dropUnused(Code &code, unsigned parallel) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*code.block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (unsigned k = code.operands.size(); k-- > 0;) {
    if (!code.block->getArgument(k).use_empty())
      continue;
    bool needed = false;
    for (unsigned loop = parallel; loop < code.loops.size(); ++loop) {
      auto has = [&](AffineMap map) { return map.isFunctionOfDim(loop); };
      bool other = false;
      for (unsigned j = 0; j < code.maps.size(); ++j)
        other |= j != k && has(code.maps[j]);
      needed |= has(code.maps[k]) && !other;
    }
    if (needed)
      continue;
    code.block->eraseArgument(k);
    code.operands.erase(code.operands.begin() + k);
    code.maps.erase(code.maps.begin() + k);
  }
}

SmallVector<Value, 2> Emitter::generic(Range place, ArrayRef<Idx *> parallel,
                                       ArrayRef<Idx *> reduced,
                                       ArrayRef<SizeUse> reducedExtents,
                                       ArrayRef<Value> inits, bool f64,
                                       Fill fill) {
  Location at = loc(place);
  MLIRContext *context = builder.getContext();
  Region region;
  Code code(Code::Generic, OpBuilder(context));
  code.block = &region.emplaceBlock();
  code.builder.setInsertionPointToEnd(code.block);
  code.loops.append(parallel.begin(), parallel.end());
  code.loops.append(reduced.begin(), reduced.end());
  code.f64 = f64;
  SmallVector<Value, 2> accumulators;
  for (Value init : inits)
    accumulators.push_back(code.block->addArgument(
        cast<ShapedType>(init.getType()).getElementType(), at));
  SmallVector<Value, 2> results = fill(code, accumulators);
  linalg::YieldOp::create(code.builder, at, results);

  unsigned loops = code.loops.size();
  SmallVector<AffineExpr> outer;
  for (unsigned k = 0; k < parallel.size(); ++k)
    outer.push_back(getAffineDimExpr(k, context));
  AffineMap outMap = AffineMap::get(loops, 0, outer, context);
  // A loop that no operand bounds gets one that has only a shape.
  for (unsigned k = parallel.size(); k < loops; ++k) {
    bool bounded = llvm::any_of(code.maps, [&](AffineMap map) {
      return llvm::is_contained(map.getResults(), getAffineDimExpr(k, context));
    });
    if (bounded)
      continue;
    code.operands.push_back(emptyTensor(
        builder.getI1Type(), reducedExtents[k - parallel.size()], place));
    code.maps.push_back(
        AffineMap::get(loops, 0, getAffineDimExpr(k, context), context));
    code.block->insertArgument(code.operands.size() - 1, builder.getI1Type(),
                               at);
  }
  dropUnused(code, parallel.size());
  SmallVector<AffineMap> maps(code.maps.begin(), code.maps.end());
  maps.append(inits.size(), outMap);
  SmallVector<utils::IteratorType> iterators(parallel.size(),
                                             utils::IteratorType::parallel);
  iterators.append(reduced.size(), utils::IteratorType::reduction);
  SmallVector<mlir::Type> types;
  for (Value init : inits)
    types.push_back(init.getType());
  auto op = linalg::GenericOp::create(builder, at, types, code.operands, inits,
                                      maps, iterators);
  op.getRegion().takeBody(region);
  return SmallVector<Value, 2>(op.getResults());
}

void Emitter::emit(const Elementwise &step) {
  Location at = loc(step.place);
  Value init = emptyTensor(irType(step.elem), step.shape, step.place);
  Values results =
      generic(step.place, step.axes, {}, {}, init, step.f64,
              [&](Code &code, ArrayRef<Value>) -> Values {
                return {toStorage(code, emit(code, step.node), step.elem, at)};
              });
  tensors[step.result] = results[0];
  if (!step.live)
    return;
  // Where the result is present: a tensor of its own, dropped if nobody asks.
  init = emptyTensor(builder.getI1Type(), step.shape, step.place);
  Value live = generic(step.place, step.axes, {}, {}, init, false,
                       [&](Code &code, ArrayRef<Value>) -> Values {
                         return {emit(code, step.node).live};
                       })[0];
  // Handed on as it is: no tensor of its own after all.
  auto op = live.getDefiningOp<linalg::GenericOp>();
  auto yielded = op.getBlock()->getTerminator()->getOperand(0);
  if (auto arg = dyn_cast<BlockArgument>(yielded);
      arg && op.getIndexingMapsArray()[arg.getArgNumber()].isIdentity()) {
    live = op.getInputs()[arg.getArgNumber()];
    op.erase();
    if (init.use_empty())
      init.getDefiningOp()->erase();
  }
  tensors[step.live] = live;
}

void Emitter::emit(const Extreme &step) {
  Location at = loc(step.place);
  Value init = filled(builder.getI64IntegerAttr(0), step.shape, step.place);
  tensors[step.result] =
      generic(step.place, step.axes, step.ids, step.idExtents, init, false,
              [&](Code &code, ArrayRef<Value> acc) -> Values {
                OpBuilder &b = code.builder;
                Value x = asI64(code, emit(code, step.node), at);
                switch (step.kind) {
                case Extreme::Least:
                  return {arith::MinSIOp::create(b, at, acc[0], x)};
                case Extreme::Greatest:
                  return {arith::MaxSIOp::create(b, at, acc[0], x)};
                case Extreme::Sum:
                  return {arith::AddIOp::create(b, at, acc[0], x)};
                }
                return {};
              })[0];
}
