//===- Generics.cpp - linalg.generic, reductions, softmax -----------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Heed/Semantics/Lowering.h"

#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"

#include <limits>

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using namespace mlir;
using llvm::cast;
using llvm::dyn_cast;

//===----------------------------------------------------------------------===//
// One generic
//===----------------------------------------------------------------------===//

Value Lowering::emptyTensor(mlir::Type elem, ArrayRef<Size> shape,
                            Range place) {
  SmallVector<Value> dynamic;
  for (const Size &size : shape)
    if (!size.constant())
      dynamic.push_back(emit(size, place));
  return tensor::EmptyOp::create(builder, loc(place), extents(shape), elem,
                                 dynamic);
}

Value Lowering::filled(mlir::TypedAttr value, ArrayRef<Size> shape,
                       Range place) {
  Location at = loc(place);
  Value constant = arith::ConstantOp::create(builder, at, value);
  Value empty = emptyTensor(value.getType(), shape, place);
  return linalg::FillOp::create(builder, at, constant, empty).getResult(0);
}

Equation::Loops Lowering::loopsOf(ArrayRef<Idx *> a, ArrayRef<Idx *> b) {
  Equation::Loops all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

SmallVector<Value, 2> Lowering::generic(Range place, ArrayRef<Idx *> parallel,
                                        ArrayRef<Idx *> reduced,
                                        ArrayRef<Value> inits, bool f64,
                                        Fill fill) {
  Location at = loc(place);
  MLIRContext *context = builder.getContext();
  Region region;
  Body body(Body::Generic, OpBuilder(context));
  body.block = &region.emplaceBlock();
  body.builder.setInsertionPointToEnd(body.block);
  body.loops.append(parallel.begin(), parallel.end());
  body.loops.append(reduced.begin(), reduced.end());
  body.f64 = f64;
  SmallVector<Value, 2> accumulators;
  for (Value init : inits)
    accumulators.push_back(body.block->addArgument(
        cast<ShapedType>(init.getType()).getElementType(), at));
  llvm::SaveAndRestore run(running, loopsOf(parallel, reduced));
  SmallVector<Value, 2> results = fill(body, accumulators);
  if (results.empty())
    return {};
  linalg::YieldOp::create(body.builder, at, results);

  unsigned loops = body.loops.size();
  SmallVector<AffineExpr> outer;
  for (unsigned k = 0; k < parallel.size(); ++k)
    outer.push_back(getAffineDimExpr(k, context));
  AffineMap outMap = AffineMap::get(loops, 0, outer, context);
  // A loop that no operand bounds gets one that has only a shape.
  for (unsigned k = parallel.size(); k < loops; ++k) {
    bool bounded = llvm::any_of(body.maps, [&](AffineMap map) {
      return llvm::is_contained(map.getResults(), getAffineDimExpr(k, context));
    });
    if (bounded)
      continue;
    body.operands.push_back(
        emptyTensor(builder.getI1Type(), {*body.loops[k]->extent}, place));
    body.maps.push_back(
        AffineMap::get(loops, 0, getAffineDimExpr(k, context), context));
    body.block->insertArgument(body.operands.size() - 1, builder.getI1Type(),
                               at);
  }
  // Nothing unused stays in the body.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*body.block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (unsigned k = body.operands.size(); k-- > 0;) {
    if (!body.block->getArgument(k).use_empty())
      continue;
    // Needed only if it bounds a reduced loop that nothing else bounds.
    bool needed = false;
    for (unsigned loop = parallel.size(); loop < loops; ++loop) {
      auto has = [&](AffineMap map) {
        return llvm::is_contained(map.getResults(),
                                  getAffineDimExpr(loop, context));
      };
      bool other = false;
      for (unsigned j = 0; j < body.maps.size(); ++j)
        other |= j != k && has(body.maps[j]);
      needed |= has(body.maps[k]) && !other;
    }
    if (needed)
      continue;
    body.block->eraseArgument(k);
    body.operands.erase(body.operands.begin() + k);
    body.maps.erase(body.maps.begin() + k);
  }

  SmallVector<AffineMap> maps(body.maps.begin(), body.maps.end());
  maps.append(inits.size(), outMap);
  SmallVector<utils::IteratorType> iterators(parallel.size(),
                                             utils::IteratorType::parallel);
  iterators.append(reduced.size(), utils::IteratorType::reduction);
  SmallVector<mlir::Type> types;
  for (Value init : inits)
    types.push_back(init.getType());
  auto op = linalg::GenericOp::create(builder, at, types, body.operands, inits,
                                      maps, iterators);
  op.getRegion().takeBody(region);
  return SmallVector<Value, 2>(op.getResults());
}

Shape Lowering::shapeOf(ArrayRef<Idx *> axes) {
  Shape shape;
  for (Idx *idx : axes)
    shape.push_back(*idx->extent);
  return shape;
}

std::optional<TensorVal>
Lowering::elementwise(ArrayRef<Idx *> axes, Ty elem, Range place, bool f64,
                      llvm::function_ref<TV(Body &)> fill, bool *absent) {
  Shape shape = shapeOf(axes);
  Value init = emptyTensor(irType(elem), shape, place);
  auto results =
      generic(place, axes, {}, {init}, f64,
              [&](Body &body, ArrayRef<Value>) -> SmallVector<Value, 2> {
                TV tv = fill(body);
                if (!tv)
                  return {};
                if (absent)
                  *absent = bool(tv.live);
                return {toStorage(body, tv, elem, loc(place))};
              });
  if (results.empty())
    return std::nullopt;
  return TensorVal{results[0], elem, shape, {}};
}
