//===- Generics.cpp - linalg.generic, reductions, softmax -----------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

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

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// The type in which a reduction accumulates, and its neutral element.
TypedAttr Lowering::neutral(ReduceOp op, Ty ty, bool f64) {
  Builder &b = builder;
  if (ty == Ty::Bool)
    return b.getBoolAttr(op == ReduceOp::All);
  if (isReal(ty)) {
    mlir::Type type = f64 ? mlir::Type(b.getF64Type()) : b.getF32Type();
    double inf = std::numeric_limits<double>::infinity();
    double value = op == ReduceOp::Prod  ? 1
                   : op == ReduceOp::Max ? -inf
                   : op == ReduceOp::Min ? inf
                                         : 0;
    return b.getFloatAttr(type, value);
  }
  mlir::Type type = ty == Ty::I64 || ty == Ty::AnyInt ? b.getI64Type()
                    : ty == Ty::I8                    ? b.getI8Type()
                                                      : b.getI32Type();
  unsigned bits = type.getIntOrFloatBitWidth();
  llvm::APInt value =
      op == ReduceOp::Prod  ? llvm::APInt(bits, 1)
      : op == ReduceOp::Max ? llvm::APInt::getSignedMinValue(bits)
      : op == ReduceOp::Min ? llvm::APInt::getSignedMaxValue(bits)
                            : llvm::APInt(bits, 0);
  return b.getIntegerAttr(type, value);
}

/// `value` as an element of type `type`.
static Value fit(OpBuilder &b, Location at, Value value, mlir::Type type) {
  mlir::Type from = value.getType();
  if (from == type)
    return value;
  if (from.isIndex())
    return b.createOrFold<arith::IndexCastOp>(at, type, value);
  unsigned have = from.getIntOrFloatBitWidth(),
           want = type.getIntOrFloatBitWidth();
  if (llvm::isa<FloatType>(type))
    return have < want ? Value(arith::ExtFOp::create(b, at, type, value))
                       : Value(arith::TruncFOp::create(b, at, type, value));
  if (from.isInteger(1))
    return arith::ExtUIOp::create(b, at, type, value);
  return have < want ? Value(arith::ExtSIOp::create(b, at, type, value))
                     : Value(arith::TruncIOp::create(b, at, type, value));
}

static Value combine(OpBuilder &b, Location at, ReduceOp op, Value acc,
                     Value x) {
  bool real = llvm::isa<FloatType>(x.getType());
  switch (op) {
  case ReduceOp::Sum:
  case ReduceOp::Mean:
    return real ? Value(arith::AddFOp::create(b, at, acc, x))
                : Value(arith::AddIOp::create(b, at, acc, x));
  case ReduceOp::Prod:
    return real ? Value(arith::MulFOp::create(b, at, acc, x))
                : Value(arith::MulIOp::create(b, at, acc, x));
  case ReduceOp::Max:
    return real ? Value(arith::MaximumFOp::create(b, at, acc, x))
                : Value(arith::MaxSIOp::create(b, at, acc, x));
  case ReduceOp::Min:
    return real ? Value(arith::MinimumFOp::create(b, at, acc, x))
                : Value(arith::MinSIOp::create(b, at, acc, x));
  case ReduceOp::Any:
    return arith::OrIOp::create(b, at, acc, x);
  case ReduceOp::All:
    return arith::AndIOp::create(b, at, acc, x);
  case ReduceOp::Argmax:
    break;
  }
  return {};
}

/// Indices that the guards around a reduction read, if its parts need them.
void Lowering::addGuardIndices(const Scope &inner, Equation &eq,
                               ArrayRef<const Expr *> parts,
                               SmallVectorImpl<Idx *> &used) {
  bool needed = llvm::any_of(parts, [&](const Expr *part) {
    return part && needsGuard(*part, inner, eq);
  });
  if (!needed)
    return;
  for (const Guard &guard : eq.guards)
    for (Idx *idx : info(*guard.condition, *guard.scope, eq).used)
      if (!llvm::is_contained(used, idx))
        used.push_back(idx);
}

/// Evaluates `then` under the conditions of all guards that are not enforced
/// in `body` yet.
TV Lowering::underGuards(Body &body, Equation &eq, size_t first, Ty ty,
                         Location at, llvm::function_ref<TV()> then,
                         llvm::function_ref<TV()> otherwise) {
  while (first < eq.guards.size() && eq.guards[first].in == &body)
    ++first;
  if (first >= eq.guards.size())
    return then();
  Guard guard = eq.guards[first];
  auto before = std::exchange(body.f64, false);
  TV condition = emit(body, *guard.condition, *guard.scope, eq);
  body.f64 = before;
  if (!condition)
    return {};
  Value value = condition.value;
  if (!guard.positive)
    value = arith::XOrIOp::create(
        body.builder, at, value,
        arith::ConstantIntOp::create(body.builder, at, 1, 1));
  const Body *enforced = std::exchange(eq.guards[first].in, &body);
  TV tv = branch(
      body, value, ty, false, at,
      [&] { return underGuards(body, eq, first + 1, ty, at, then, otherwise); },
      otherwise);
  eq.guards[first].in = enforced;
  return tv;
}

std::optional<Reduced> Lowering::emitReduce(const ReduceExpr &expr,
                                            const Scope &scope, Equation &eq,
                                            ArrayRef<Idx *> axes, bool f64) {
  Location at = loc(expr.range);
  Scope inner = inside(expr, scope, eq);
  SmallVector<Idx *, 2> ids = eq.binders[{&expr, scope.env.get()}];
  const Info &operand = info(*expr.operand, inner, eq);
  Ty ty = info(expr, scope, eq).ty;
  bool isArgmax = expr.op == ReduceOp::Argmax;
  if (isArgmax || expr.op == ReduceOp::Max || expr.op == ReduceOp::Min)
    ty = operand.ty;
  if (expr.op == ReduceOp::Mean)
    ty = isReal(operand.ty) ? operand.ty : Ty::I64;
  TypedAttr zero = neutral(isArgmax ? ReduceOp::Max : expr.op, ty, f64);
  mlir::Type accType = zero.getType();
  Shape shape = shapeOf(axes);
  SmallVector<Value, 2> inits = {filled(zero, shape, expr.range)};
  if (isArgmax)
    inits.push_back(filled(builder.getI64IntegerAttr(-1), shape, expr.range));
  bool guarded = needsGuard(*expr.operand, inner, eq) ||
                 (expr.where && needsGuard(*expr.where, inner, eq));

  auto fill = [&](Body &body, ArrayRef<Value> acc) -> SmallVector<Value, 2> {
    OpBuilder &b = body.builder;
    // The next accumulators, given the term and where it counts (null: always).
    auto next = [&](const TV &term, Value counts) -> SmallVector<Value, 2> {
      Value x = fit(b, at,
                    isReal(ty) && term.ty != Ty::Bool ? asReal(body, term, at)
                                                      : term.value,
                    accType);
      if (!isArgmax) {
        if (counts)
          x = arith::SelectOp::create(b, at, counts, x,
                                      arith::ConstantOp::create(b, at, zero));
        return {combine(b, at, expr.op, acc[0], x)};
      }
      // The first maximum wins, and a NaN wins over numbers.
      Value none =
          arith::CmpIOp::create(b, at, arith::CmpIPredicate::slt, acc[1],
                                arith::ConstantIntOp::create(b, at, 0, 64));
      Value better;
      if (isReal(ty)) {
        Value more =
            arith::CmpFOp::create(b, at, arith::CmpFPredicate::OGT, x, acc[0]);
        Value nan =
            arith::CmpFOp::create(b, at, arith::CmpFPredicate::UNO, x, x);
        Value had = arith::CmpFOp::create(b, at, arith::CmpFPredicate::ORD,
                                          acc[0], acc[0]);
        better = arith::OrIOp::create(b, at, more,
                                      arith::AndIOp::create(b, at, nan, had));
      } else {
        better =
            arith::CmpIOp::create(b, at, arith::CmpIPredicate::sgt, x, acc[0]);
      }
      Value take = arith::OrIOp::create(b, at, none, better);
      if (counts)
        take = arith::AndIOp::create(b, at, take, counts);
      Value position;
      for (Idx *idx : ids) {
        Value k = asI64(body, {indexValue(body, idx, at), Ty::AnyInt, {}}, at);
        if (position) {
          Value n =
              asI64(body, {emit(*idx->extent, expr.range), Ty::AnyInt, {}}, at);
          k = arith::AddIOp::create(
              b, at, arith::MulIOp::create(b, at, position, n), k);
        }
        position = k;
      }
      return {arith::SelectOp::create(b, at, take, x, acc[0]),
              arith::SelectOp::create(b, at, take, position, acc[1])};
    };
    auto term = [&]() -> SmallVector<Value, 2> {
      size_t depth = eq.guards.size();
      Value condition;
      if (expr.where) {
        TV where = emit(body, *expr.where, inner, eq);
        if (!where)
          return {};
        condition = where.value;
        eq.guards.push_back({expr.where.get(), true, &inner, &body});
      }
      llvm::scope_exit leave([&] { eq.guards.resize(depth); });
      bool inIf = condition && needsGuard(*expr.operand, inner, eq);
      auto value = [&]() -> SmallVector<Value, 2> {
        TV tv = emit(body, *expr.operand, inner, eq);
        if (!tv)
          return {};
        Value counts = inIf ? Value() : condition;
        if (tv.live && (expr.op == ReduceOp::Sum || expr.op == ReduceOp::Mean))
          counts = counts ? Value(arith::AndIOp::create(b, at, counts, tv.live))
                          : tv.live;
        return next(tv, counts);
      };
      return inIf ? ifElse(body, condition, at, acc, value) : value();
    };
    if (!guarded)
      return term();
    return guardedTerm(body, eq, 0, at, acc, term);
  };
  auto results = generic(expr.range, axes, ids, inits, f64, fill);
  if (results.empty())
    return std::nullopt;

  Reduced reduced;
  reduced.value = {
      results[isArgmax ? 1 : 0], isArgmax ? Ty::I64 : ty, shape, {}};
  if (expr.op == ReduceOp::Mean && expr.where) {
    Value zeros = filled(builder.getI64IntegerAttr(0), shape, expr.range);
    auto count = generic(
        expr.range, axes, ids, {zeros}, false,
        [&](Body &body, ArrayRef<Value> acc) -> SmallVector<Value, 2> {
          auto one = [&]() -> SmallVector<Value, 2> {
            TV where = emit(body, *expr.where, inner, eq);
            if (!where)
              return {};
            Value add = arith::ExtUIOp::create(
                body.builder, at, builder.getI64Type(), where.value);
            return {arith::AddIOp::create(body.builder, at, acc[0], add)};
          };
          if (!needsGuard(*expr.where, inner, eq))
            return one();
          return guardedTerm(body, eq, 0, at, acc, one);
        });
    if (count.empty())
      return std::nullopt;
    reduced.count = {count[0], Ty::I64, shape, {}};
  }
  return reduced;
}

/// scf.if that yields new accumulators, or the old ones.
SmallVector<Value, 2>
Lowering::ifElse(Body &body, Value condition, Location at,
                 ArrayRef<Value> otherwise,
                 llvm::function_ref<SmallVector<Value, 2>()> then) {
  SmallVector<mlir::Type, 2> types;
  for (Value value : otherwise)
    types.push_back(value.getType());
  auto ifOp = scf::IfOp::create(body.builder, at, types, condition, true);
  OpBuilder::InsertionGuard guard(body.builder);
  body.builder.setInsertionPointToEnd(ifOp.thenBlock());
  SmallVector<Value, 2> values = then();
  if (values.empty())
    return {};
  scf::YieldOp::create(body.builder, at, values);
  body.builder.setInsertionPointToEnd(ifOp.elseBlock());
  scf::YieldOp::create(body.builder, at, otherwise);
  return SmallVector<Value, 2>(ifOp.getResults());
}

SmallVector<Value, 2>
Lowering::guardedTerm(Body &body, Equation &eq, size_t first, Location at,
                      ArrayRef<Value> otherwise,
                      llvm::function_ref<SmallVector<Value, 2>()> then) {
  while (first < eq.guards.size() && eq.guards[first].in == &body)
    ++first;
  if (first >= eq.guards.size())
    return then();
  Guard guard = eq.guards[first];
  TV condition = emit(body, *guard.condition, *guard.scope, eq);
  if (!condition)
    return {};
  Value value = condition.value;
  if (!guard.positive)
    value = arith::XOrIOp::create(
        body.builder, at, value,
        arith::ConstantIntOp::create(body.builder, at, 1, 1));
  const Body *enforced = std::exchange(eq.guards[first].in, &body);
  auto results = ifElse(body, value, at, otherwise, [&] {
    return guardedTerm(body, eq, first + 1, at, otherwise, then);
  });
  eq.guards[first].in = enforced;
  return results;
}

/// A reduction inside an expression: a generic of its own, read here.
TV Lowering::emitReduced(Body &body, const ReduceExpr &expr, const Scope &scope,
                         Equation &eq) {
  const Info &i = info(expr, scope, eq);
  Location at = loc(expr.range);
  Scope inner = inside(expr, scope, eq);
  SmallVector<Idx *, 4> axes(i.used);
  SmallVector<Idx *, 2> ids = eq.binders[{&expr, scope.env.get()}];
  addGuardIndices(inner, eq, {expr.operand.get(), expr.where.get()}, axes);
  llvm::erase_if(axes, [&](Idx *idx) { return llvm::is_contained(ids, idx); });
  inLoopOrder(axes, body);
  Key key{&expr, scope.env.get()};
  auto it = eq.reduced.find(key);
  if (it == eq.reduced.end() || body.f64) {
    auto reduced = emitReduce(expr, scope, eq, axes, body.f64);
    if (!reduced)
      return {};
    eq.reduced.erase(key);
    it = eq.reduced.emplace(key, std::make_pair(*reduced, axes)).first;
  }
  const Reduced &reduced = it->second.first;
  TV tv = readTensor(body, reduced.value, it->second.second, at);
  if (expr.op == ReduceOp::Argmax)
    return {tv.value, Ty::I32, {}};
  if (expr.op != ReduceOp::Mean) {
    tv.ty = i.ty;
    return tv;
  }
  Value sum = asReal(body, tv, at), count;
  OpBuilder &b = body.builder;
  if (reduced.count.value) {
    TV n = readTensor(body, reduced.count, it->second.second, at);
    Value one = arith::ConstantIntOp::create(b, at, 1, 64);
    Value atLeastOne = arith::MaxSIOp::create(b, at, n.value, one);
    count = arith::SIToFPOp::create(b, at, realType(body), atLeastOne);
  } else {
    Size n(1);
    for (Idx *idx : ids)
      n = n * *idx->extent;
    n = sizes.max(n, Size(1));
    if (auto c = n.constant())
      count = realConstant(body, double(*c), at);
    else
      count = asReal(body, {emit(n, expr.range), Ty::AnyInt, {}}, at);
  }
  return {arith::DivFOp::create(b, at, sum, count), i.ty, {}};
}

/// The order of the loops of `body` for the axes that it has.
void Lowering::inLoopOrder(SmallVectorImpl<Idx *> &axes, const Body &body) {
  auto position = [&](Idx *idx) {
    return llvm::find(body.loops, idx) - body.loops.begin();
  };
  llvm::sort(axes, [&](Idx *a, Idx *b) { return position(a) < position(b); });
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

std::optional<TensorVal> Lowering::emitSoftmax(const SoftmaxExpr &expr,
                                               const Scope &scope, Equation &eq,
                                               ArrayRef<Idx *> axes) {
  Location at = loc(expr.range);
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
          return underGuards(body, eq, 0, Ty::F32, at, value, [&]() -> TV {
            return {realConstant(body, 0, at), Ty::F32, {}};
          });
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
          others, Ty::F32, expr.sink->range, false,
          [&](Body &body) { return emit(body, *expr.sink, scope, eq); });
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
          body, eq, 0, Ty::Bool, at,
          [&] { return emit(body, *expr.where, scope, eq); },
          [&]() -> TV {
            return {arith::ConstantIntOp::create(body.builder, at, 0, 1),
                    Ty::Bool,
                    {}};
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
  mlir::Type result = tensorType(builder.getF32Type(), shape);
  mlir::Type live = tensorType(builder.getI1Type(), shape);
  Operation *op;
  if (expr.isLog) {
    auto softmax = attn::LogSoftmaxOp::create(builder, at, result, live,
                                              scores->value, sink, positions);
    softmax.getWhere().takeBody(region);
    op = softmax;
  } else {
    auto softmax = attn::SoftmaxOp::create(builder, at, result, live,
                                           scores->value, sink, positions);
    softmax.getWhere().takeBody(region);
    op = softmax;
  }
  TensorVal tensor{op->getResult(0), Ty::F32, shape, {}};
  if (expr.where && !expr.isLog)
    tensor.live = op->getResult(1);
  return tensor;
}

TV Lowering::emitNestedSoftmax(Body &body, const SoftmaxExpr &expr,
                               const Scope &scope, Equation &eq) {
  SmallVector<Idx *, 4> axes(info(expr, scope, eq).used);
  addGuardIndices(scope, eq, {expr.operand.get(), expr.where.get()}, axes);
  inLoopOrder(axes, body);
  Key key{&expr, scope.env.get()};
  auto it = eq.softmaxes.find(key);
  if (it == eq.softmaxes.end()) {
    auto tensor = emitSoftmax(expr, scope, eq, axes);
    if (!tensor)
      return {};
    it = eq.softmaxes.emplace(key, std::make_pair(*tensor, axes)).first;
  }
  TV tv =
      readTensor(body, it->second.first, it->second.second, loc(expr.range));
  tv.ty = info(expr, scope, eq).ty;
  return tv;
}
