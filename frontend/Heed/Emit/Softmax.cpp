//===- Softmax.cpp - attn.softmax from softmax ----------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Heed/Semantics/Lowering.h"

#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using namespace mlir;

std::optional<TensorVal> Lowering::emitSoftmax(const SoftmaxExpr &expr,
                                               const Scope &scope, Equation &eq,
                                               ArrayRef<Idx *> axes,
                                               size_t firstGuard) {
  Location at = loc(expr.range);
  llvm::SaveAndRestore run(running, loopsOf(axes));
  SmallVector<Idx *, 2> ids = eq.binders[{&expr, scope.env.get()}];
  Shape shape = shapeOf(axes);
  SmallVector<int64_t> positions;
  SmallVector<Idx *, 4> others;
  for (auto [k, idx] : llvm::enumerate(axes)) {
    if (llvm::is_contained(ids, idx))
      positions.push_back(k);
    else
      others.push_back(idx);
  }
  // The scores, a tensor of their own.
  std::optional<TensorVal> scores =
      plainRead(*expr.operand, scope, eq, axes, Ty::F32);
  if (!scores) {
    size_t depth = eq.guards.size();
    if (expr.where)
      eq.guards.push_back({expr.where.get(), true, &scope, nullptr});
    bool guarded = needsGuard(*expr.operand, scope, eq);
    scores = elementwise(
        axes, Ty::F32, expr.operand->range, false, [&](Body &body) -> TV {
          auto value = [&] { return emit(body, *expr.operand, scope, eq); };
          if (!guarded)
            return value();
          return underGuards(
              body, eq, firstGuard, Ty::F32, at, value,
              [&]() -> TV { return {realConstant(body, 0, at), Ty::F32, {}}; });
        });
    eq.guards.resize(depth);
    if (!scores)
      return std::nullopt;
  }
  Value sink;
  if (expr.sink) {
    auto tensor = plainRead(*expr.sink, scope, eq, others, Ty::F32);
    if (!tensor)
      tensor = elementwise(
          others, Ty::F32, expr.sink->range, false, [&](Body &body) -> TV {
            auto value = [&] { return emit(body, *expr.sink, scope, eq); };
            if (!needsGuard(*expr.sink, scope, eq))
              return value();
            return underGuards(
                body, eq, firstGuard, Ty::F32, at, value, [&]() -> TV {
                  return {realConstant(body, 0, at), Ty::F32, {}};
                });
          });
    if (!tensor)
      return std::nullopt;
    sink = tensor->value;
  }
  Region region;
  if (expr.where) {
    Body body(Body::Where, OpBuilder(builder.getContext()));
    body.block = &region.emplaceBlock();
    body.builder.setInsertionPointToEnd(body.block);
    for (Idx *idx : axes) {
      body.at[idx] = body.block->addArgument(builder.getIndexType(), at);
      body.loops.push_back(idx);
    }
    TV where;
    if (needsGuard(*expr.where, scope, eq))
      where = underGuards(
          body, eq, firstGuard, Ty::Bool, at,
          [&] { return emit(body, *expr.where, scope, eq); },
          [&]() -> TV {
            return {boolConstant(body.builder, 0, at), Ty::Bool, {}};
          });
    else
      where = emit(body, *expr.where, scope, eq);
    if (!where)
      return std::nullopt;
    attn::YieldOp::create(body.builder, at, where.value);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*body.block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
  // A tensor that is read as it is may have an extent that only a check makes
  // the number that the index ranges over.
  auto cast = [&](Value value, const Shape &of) {
    mlir::Type type = tensorType(builder.getF32Type(), of);
    return value.getType() == type ? value : castTo(value, type, expr.range);
  };
  scores->value = cast(scores->value, shape);
  if (sink)
    sink = cast(sink, shapeOf(others));
  mlir::Type result = tensorType(builder.getF32Type(), shape);
  mlir::Type live = tensorType(builder.getI1Type(), shape);
  Operation *op;
  if (expr.isLog()) {
    auto softmax = attn::LogSoftmaxOp::create(builder, at, result, live,
                                              scores->value, sink, positions);
    softmax.getWhere().takeBody(region);
    op = softmax;
  } else {
    auto softmax = attn::SoftmaxOp::create(builder, at, result, live,
                                           scores->value, sink, positions);
    // Others have the names that the op gives them.
    softmax.setMap(attn::symbolizeMap(expr.name).value_or(attn::Map::Exp));
    softmax.getWhere().takeBody(region);
    op = softmax;
  }
  TensorVal tensor{op->getResult(0), Ty::F32, shape, {}};
  if (!expr.isLog())
    tensor.live = op->getResult(1);
  return tensor;
}

TV Lowering::emitNestedSoftmax(Body &body, const SoftmaxExpr &expr,
                               const Scope &scope, Equation &eq) {
  // A guard that reads an index of the softmax chooses among results: each of
  // them is made of all scores.
  auto guards = eq.guards;
  llvm::scope_exit leave([&] { eq.guards = guards; });
  llvm::erase_if(eq.guards, [&](const Guard &guard) {
    return guard.condition &&
           llvm::any_of(info(*guard.condition, *guard.scope, eq).used,
                        [&](Idx *idx) {
                          return llvm::is_contained(
                              eq.binders[{&expr, scope.env.get()}], idx);
                        });
  });
  Hoisted hoisted =
      hoist({expr.operand.get(), expr.where.get(), expr.sink.get()}, scope, eq,
            info(expr, scope, eq).used, {});
  SmallVector<Idx *, 4> axes = hoisted.axes;
  inLoopOrder(axes, body);
  Equation::Place key{{&expr, scope.env.get()}, hoisted.guards};
  auto it = eq.softmaxes.find(key);
  if (it == eq.softmaxes.end()) {
    auto tensor = emitSoftmax(expr, scope, eq, axes, hoisted.firstGuard);
    if (!tensor)
      return {};
    it = eq.softmaxes.emplace(key, std::make_pair(*tensor, axes)).first;
  }
  TV tv =
      readTensor(body, it->second.first, it->second.second, loc(expr.range));
  tv.ty = info(expr, scope, eq).ty;
  return tv;
}
