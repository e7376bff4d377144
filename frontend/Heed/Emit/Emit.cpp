//===- Emit.cpp - Scalar expressions in a body ----------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Heed/Semantics/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using namespace mlir;
using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;

TV Lowering::emit(Body &body, const Expr &expr, const Scope &scope,
                  Equation &eq) {
  const Info &i = info(expr, scope, eq);
  if (i.fixed)
    return emitFixed(body, *i.fixed, expr.range);
  if (!body.f64 && i.pure && i.hasReal) {
    if (isReal(i.ty))
      return emitTable(body, expr, scope, eq);
    // A decision on reals of indices alone: exact in f64, where it stands.
    body.f64 = true;
    TV tv = emitNode(body, expr, scope, eq);
    body.f64 = false;
    return tv;
  }
  return emitNode(body, expr, scope, eq);
}

TV Lowering::emitFixed(Body &body, const Binding &binding, Range place) {
  Location at = loc(place);
  switch (binding.kind) {
  case Binding::Bool:
    return {boolConstant(body.builder, binding.flag, at), Ty::Bool, {}};
  case Binding::Int:
    if (auto c = binding.size.constant())
      return {
          arith::ConstantIndexOp::create(body.builder, at, *c), Ty::AnyInt, {}};
    return {emit(binding.size, place), Ty::AnyInt, {}};
  case Binding::Real:
    return {realConstant(body, binding.real, at), Ty::AnyReal, {}};
  default:
    error(place, "expected a number, found " + kindOf(binding));
    return {};
  }
}

Value Lowering::indexValue(Body &body, const Idx *idx, Location at) {
  auto [it, isNew] = body.at.try_emplace(idx);
  if (!isNew)
    return it->second;
  assert(body.kind == Body::Generic && "index of another body");
  auto loop = llvm::find(body.loops, idx);
  assert(loop != body.loops.end() && "index without a loop");
  OpBuilder b(builder.getContext());
  b.setInsertionPointToStart(body.block);
  return it->second = linalg::IndexOp::create(b, at, loop - body.loops.begin());
}

TV Lowering::emitNode(Body &body, const Expr &expr, const Scope &scope,
                      Equation &eq) {
  Location at = loc(expr.range);
  OpBuilder &b = body.builder;
  switch (expr.kind) {
  case ExprKind::Name: {
    auto &name = cast<NameExpr>(expr);
    if (auto it = scope.indices.find(name.name); it != scope.indices.end())
      return {indexValue(body, it->second, at), Ty::AnyInt, {}};
    return emitBinding(body, *lookup(*scope.env, name.name), expr, eq);
  }
  case ExprKind::Read:
    return emitRead(body, cast<ReadExpr>(expr), scope, eq);
  case ExprKind::Paren:
    return emit(body, *cast<ParenExpr>(expr).inner, scope, eq);
  case ExprKind::Negate: {
    TV a = emit(body, *cast<NegateExpr>(expr).operand, scope, eq);
    if (!a)
      return {};
    if (isReal(a.ty))
      return {arith::NegFOp::create(b, at, asReal(body, a, at)), a.ty, a.live};
    Value x = a.value.getType().isIndex() ? a.value : asI64(body, a, at);
    Value zero =
        arith::ConstantOp::create(b, at, b.getIntegerAttr(x.getType(), 0));
    return {arith::SubIOp::create(b, at, zero, x), a.ty, a.live};
  }
  case ExprKind::Not: {
    TV a = emit(body, *cast<NotExpr>(expr).operand, scope, eq);
    if (!a)
      return {};
    Value one = boolConstant(b, 1, at);
    return {arith::XOrIOp::create(b, at, a.value, one), Ty::Bool, {}};
  }
  case ExprKind::Binary:
    return emitBinary(body, cast<BinaryExpr>(expr), scope, eq);
  case ExprKind::Compare:
    return emitCompare(body, cast<CompareExpr>(expr), scope, eq);
  case ExprKind::Logic:
    return emitLogic(body, cast<LogicExpr>(expr), scope, eq);
  case ExprKind::If:
    return emitIf(body, cast<IfExpr>(expr), scope, eq);
  case ExprKind::Call:
    return emitCall(body, cast<CallExpr>(expr), scope, eq);
  case ExprKind::Reduce:
    return emitReduced(body, cast<ReduceExpr>(expr), scope, eq);
  case ExprKind::Softmax:
    return emitNestedSoftmax(body, cast<SoftmaxExpr>(expr), scope, eq);
  default:
    return {};
  }
}

TV Lowering::emitBinding(Body &body, const Binding &binding, const Expr &expr,
                         Equation &eq) {
  Location at = loc(expr.range);
  switch (binding.kind) {
  case Binding::Thunk:
    return emit(body, *binding.thunk->expr, *binding.thunk->scope, eq);
  case Binding::Scalar:
    return loaded(body, binding.tensor.value, binding.tensor.elem, at);
  case Binding::Tensor:
  case Binding::Table:
  case Binding::Collection: {
    std::optional<TensorVal> tensor;
    if (binding.kind == Binding::Table)
      tensor = tableTensor(*binding.table, body.f64, at);
    else
      tensor = tensorOf(binding, expr.range);
    if (!tensor)
      return {};
    return readTensor(
        body, *tensor,
        ArrayRef<Idx *>(eq.whole).take_front(tensor->shape.size()), at);
  }
  default:
    return emitFixed(body, binding, expr.range);
  }
}

/// A value of indices, dims and static values alone.
TV Lowering::emitTable(Body &body, const Expr &expr, const Scope &scope,
                       Equation &eq) {
  const Info &i = info(expr, scope, eq);
  Location at = loc(expr.range);
  if (isa<ParenExpr>(expr))
    return emit(body, *cast<ParenExpr>(expr).inner, scope, eq);
  // A table of the text is one already.
  if (isa<ReadExpr>(expr))
    return emitNode(body, expr, scope, eq);
  if (auto *name = dyn_cast<NameExpr>(&expr))
    if (auto binding = lookup(*scope.env, name->name);
        binding && binding->kind == Binding::Thunk)
      return emit(body, *binding->thunk->expr, *binding->thunk->scope, eq);
  // A sum or product of parts over fewer indices each stays one: a table of
  // slopes times a distance, not a table of H×N×M biases.
  if (i.used.size() >= 2 && !i.whole) {
    if (auto *binary = dyn_cast<BinaryExpr>(&expr);
        binary && binary->op != BinaryOp::Pow &&
        binary->op != BinaryOp::FloorDiv && binary->op != BinaryOp::Mod) {
      auto fewer = [&](const Expr &part) {
        const Info &p = info(part, scope, eq);
        return p.used.size() < i.used.size() || !p.hasReal;
      };
      if (fewer(*binary->lhs) && fewer(*binary->rhs))
        return emitBinary(body, *binary, scope, eq);
    }
    if (isa<NegateExpr>(expr))
      return emitNode(body, expr, scope, eq);
  }
  SmallVector<Idx *, 4> used(i.used);
  for (Idx *idx : eq.whole)
    if (i.whole)
      used.push_back(idx);
  size_t depth = eq.guards.size();
  llvm::scope_exit leave([&] { eq.guards.resize(depth); });
  Hoisted hoisted = hoist({&expr}, scope, eq, used, {});
  Ty ty = i.ty == Ty::AnyReal ? Ty::F32 : i.ty;
  auto fill = [&](Body &inner) -> TV {
    auto value = [&] { return emitNode(inner, expr, scope, eq); };
    if (!needsGuard(expr, scope, eq))
      return value();
    return underGuards(
        inner, eq, hoisted.firstGuard, i.ty, at, value,
        [&]() -> TV { return {realConstant(inner, 0, at), Ty::AnyReal, {}}; });
  };
  if (hoisted.axes.empty()) {
    llvm::SaveAndRestore run(running, Equation::Loops());
    Body host(Body::Host, builder);
    host.f64 = true;
    TV tv = fill(host);
    if (!tv)
      return {};
    host.f64 = false;
    return {asReal(host, {tv.value, Ty::AnyReal, {}}, at), i.ty, {}};
  }
  Equation::Place key{{&expr, scope.env.get()}, hoisted.guards};
  auto it = eq.tables.find(key);
  if (it == eq.tables.end()) {
    auto table = elementwise(hoisted.axes, Ty::F32, expr.range, true, fill);
    if (!table)
      return {};
    it = eq.tables.emplace(key, std::make_pair(*table, hoisted.axes)).first;
  }
  TV tv = readTensor(body, it->second.first, it->second.second, at);
  tv.ty = i.ty == Ty::AnyReal ? Ty::AnyReal : ty;
  return tv;
}
