//===- Nodes.cpp - Scalar expressions in a body --------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace heed;
using namespace heed::sema;
using namespace mlir;
using llvm::cast;

TV Emitter::emit(Code &code, const Node *node) {
  // A tensor of its own, a check: once, wherever the node is evaluated first.
  if (!node->before.empty() && seen.insert(node).second)
    emit(node->before);
  TV tv = emitNode(code, *node);
  assert(bool(tv.live) == node->absent && "presence was not foreseen");
  tv.ty = node->ty;
  return tv;
}

/// Long: one kind of node after the other.
TV Emitter::emitNode(Code &code, const Node &node) {
  Location at = loc(node.place);
  OpBuilder &b = code.builder;
  switch (node.kind) {
  case Node::Bool:
    return {boolConstant(b, node.flag, at), node.ty, {}};
  case Node::Int:
    if (auto c = node.size.size.constant())
      return {arith::ConstantIndexOp::create(b, at, *c), node.ty, {}};
    return {emit(node.size, node.place), node.ty, {}};
  case Node::Real:
    return {realConstant(code, node.real, at), node.ty, {}};
  case Node::Zero:
    return {arith::ConstantIntOp::create(b, at, 0, 64), node.ty, {}};
  case Node::Index:
    return {indexValue(code, node.idx, at), node.ty, {}};
  case Node::Scalar:
    return loaded(code, held(node.tensor.value), node.tensor.elem, at);
  case Node::Element:
    return element(code, node.tensor, node.axes, at);
  case Node::Extract:
    return extract(code, node);
  case Node::Negate: {
    TV a = emit(code, node.operands[0]);
    if (isReal(a.ty))
      return {arith::NegFOp::create(b, at, asReal(code, a, at)), a.ty, a.live};
    Value x = a.value.getType().isIndex() ? a.value : asI64(code, a, at);
    Value zero =
        arith::ConstantOp::create(b, at, b.getIntegerAttr(x.getType(), 0));
    return {arith::SubIOp::create(b, at, zero, x), a.ty, a.live};
  }
  case Node::Not: {
    TV a = emit(code, node.operands[0]);
    Value one = boolConstant(b, 1, at);
    return {arith::XOrIOp::create(b, at, a.value, one), Ty::Bool, {}};
  }
  case Node::Binary:
    return emitBinary(code, node);
  case Node::Compare:
    return emitCompare(code, node);
  case Node::Logic:
    return emitLogic(code, node);
  case Node::If:
    return emitIf(code, node);
  case Node::Call:
    return emitCall(code, node);
  case Node::Cast:
    return emitCast(code, node.ty, emit(code, node.operands[0]), at);
  case Node::InF64: {
    llvm::SaveAndRestore exact(code.f64, true);
    return emit(code, node.operands[0]);
  }
  case Node::Host: {
    Code host(Code::Host, builder);
    host.f64 = true;
    TV tv = emit(host, node.operands[0]);
    host.f64 = false;
    return {asReal(host, {tv.value, Ty::AnyReal, {}}, at), node.ty, {}};
  }
  case Node::Guarded: {
    auto values = [&](const Node *side) -> Values {
      return {asType(code, emit(code, side), node.ty, at)};
    };
    Values results = underGuards(
        code, node.guards, 0, bodyType(code, node.ty), at,
        [&] { return values(node.operands[0]); },
        [&] { return values(node.operands[1]); });
    return {results[0], node.ty, {}};
  }
  case Node::Mean:
    return emitMean(code, node);
  case Node::Shift: {
    TV x = emit(code, node.operands[0]);
    Value more = asI64(code, {emit(node.size, node.place), Ty::AnyInt, {}}, at);
    Value position = asI64(code, x, at);
    if (!matchPattern(more, m_Zero())) {
      Value zero = arith::ConstantIntOp::create(b, at, 0, 64);
      Value isNegative = arith::CmpIOp::create(b, at, arith::CmpIPredicate::slt,
                                               position, zero);
      more = arith::SelectOp::create(b, at, isNegative, zero, more);
    }
    return {arith::AddIOp::create(b, at, position, more), node.ty, {}};
  }
  case Node::IsZero: {
    Value x = asI64(code, emit(code, node.operands[0]), at);
    Value is =
        arith::CmpIOp::create(b, at, arith::CmpIPredicate::eq, x,
                              arith::ConstantIntOp::create(b, at, 0, 64));
    return {arith::ExtUIOp::create(b, at, b.getI64Type(), is), node.ty, {}};
  }
  case Node::Concat:
    return {concat(code, node, 0), node.ty, {}};
  case Node::Slices:
    return {slices(code, node, 0), node.ty, {}};
  }
  return {};
}

/// Of nothing a mean is 0: its sum is divided by 1.
TV Emitter::emitMean(Code &code, const Node &node) {
  Location at = loc(node.place);
  OpBuilder &b = code.builder;
  Value sum = asReal(code, emit(code, node.operands[0]), at), count;
  if (node.operands.size() > 1) {
    TV n = emit(code, node.operands[1]);
    Value one = arith::ConstantIntOp::create(b, at, 1, 64);
    Value atLeastOne = arith::MaxSIOp::create(b, at, n.value, one);
    count = arith::SIToFPOp::create(b, at, realType(code), atLeastOne);
  } else if (auto c = node.size.size.constant()) {
    count = realConstant(code, double(*c), at);
  } else {
    count = asReal(code, {emit(node.size, node.place), Ty::AnyInt, {}}, at);
  }
  return {arith::DivFOp::create(b, at, sum, count), node.ty, {}};
}

/// The part that the joined index is in, from the piece `first` on.
Value Emitter::concat(Code &code, const Node &node, size_t first) {
  Location at = loc(node.place);
  OpBuilder &b = code.builder;
  const Piece &piece = node.pieces[first];
  Value n = indexValue(code, node.idx, at);
  auto read = [&]() -> TV {
    if (node.flag && !piece.tensor.live)
      return {boolConstant(b, 1, at), Ty::Bool, {}};
    SmallVector<Value> indices;
    for (Idx *idx : node.axes) {
      Value position = indexValue(code, idx, at);
      if (idx == node.idx && !piece.start.size.terms.empty())
        position = arith::SubIOp::create(b, at, position,
                                         emit(piece.start, node.place));
      indices.push_back(position);
    }
    Value source = held(node.flag ? piece.tensor.live : piece.tensor.value);
    return loaded(code, tensor::ExtractOp::create(b, at, source, indices),
                  node.ty, at);
  };
  if (first + 1 == node.pieces.size())
    return read().value;
  Value before = arith::CmpIOp::create(b, at, arith::CmpIPredicate::slt, n,
                                       emit(piece.end, node.place));
  return branch(code, before, node.ty, false, at, read,
                [&]() -> TV {
                  return {concat(code, node, first + 1), node.ty, {}};
                })
      .value;
}

/// The slice at the positions of the fixed axes, from the slice `first` on.
Value Emitter::slices(Code &code, const Node &node, size_t first) {
  Location at = loc(node.place);
  OpBuilder &b = code.builder;
  auto &[tensor, positions] = node.slices[first];
  TV tv = element(code, tensor, node.axes, at);
  Value mine = !node.flag ? tv.value
               : tv.live  ? tv.live
                          : boolConstant(b, true, at);
  if (first + 1 == node.slices.size())
    return mine;
  Value here;
  for (auto [idx, position] : llvm::zip(node.fixed, positions)) {
    Value same = arith::CmpIOp::create(
        b, at, arith::CmpIPredicate::eq, indexValue(code, idx, at),
        arith::ConstantIndexOp::create(b, at, position));
    here = here ? Value(arith::AndIOp::create(b, at, here, same)) : same;
  }
  return arith::SelectOp::create(b, at, here, mine,
                                 slices(code, node, first + 1));
}

//===----------------------------------------------------------------------===//
// Indices and elements
//===----------------------------------------------------------------------===//

Value Emitter::indexValue(Code &code, const Idx *idx, Location at) {
  auto [it, isNew] = code.at.try_emplace(idx);
  if (!isNew)
    return it->second;
  assert(code.kind == Code::Generic && "index of another body");
  auto *loop = llvm::find(code.loops, idx);
  assert(loop != code.loops.end() && "index without a loop");
  OpBuilder b(builder.getContext());
  b.setInsertionPointToStart(code.block);
  return it->second = linalg::IndexOp::create(b, at, loop - code.loops.begin());
}

/// A stored element as a value: f16 and bf16 are computed with in f32.
TV Emitter::loaded(Code &code, Value raw, Ty ty, Location at) {
  if (!isReal(ty))
    return {raw, ty, {}};
  // f64 by its bits: see TableData, and the accumulators of reductions.
  if (raw.getType().isInteger(64))
    raw = arith::BitcastOp::create(code.builder, at, builder.getF64Type(), raw);
  return {asReal(code, {raw, ty, {}}, at), ty, {}};
}

static bool isGenericOperand(const Code &code, ArrayRef<Idx *> axes) {
  if (code.kind != Code::Generic)
    return false;
  for (auto [k, idx] : llvm::enumerate(axes))
    if (!llvm::is_contained(code.loops, idx) ||
        llvm::is_contained(axes.take_front(k), idx))
      return false;
  return true;
}

Value Emitter::operand(Code &code, Value tensor, ArrayRef<Idx *> axes,
                       Location at) {
  MLIRContext *context = builder.getContext();
  SmallVector<AffineExpr> exprs;
  for (Idx *idx : axes)
    exprs.push_back(getAffineDimExpr(
        llvm::find(code.loops, idx) - code.loops.begin(), context));
  AffineMap map = AffineMap::get(code.loops.size(), 0, exprs, context);
  for (unsigned k = 0; k < code.operands.size(); ++k)
    if (code.operands[k] == tensor && code.maps[k] == map)
      return code.block->getArgument(k);
  code.operands.push_back(tensor);
  code.maps.push_back(map);
  return code.block->insertArgument(
      code.operands.size() - 1,
      cast<RankedTensorType>(tensor.getType()).getElementType(), at);
}

/// tensor[axes] for axes that run over the whole tensor.
TV Emitter::element(Code &code, const TensorVal &tensor, ArrayRef<Idx *> axes,
                    Location at) {
  auto of = [&](Value source) -> Value {
    if (isGenericOperand(code, axes))
      return operand(code, source, axes, at);
    SmallVector<Value> indices;
    for (Idx *idx : axes)
      indices.push_back(indexValue(code, idx, at));
    return tensor::ExtractOp::create(code.builder, at, source, indices);
  };
  TV tv = loaded(code, of(held(tensor.value)), tensor.elem, at);
  if (tensor.live)
    tv.live = of(value(tensor.live));
  return tv;
}

TV Emitter::extract(Code &code, const Node &node) {
  Location at = loc(node.place);
  OpBuilder &b = code.builder;
  SmallVector<Value> indices;
  for (const Node *index : node.operands)
    indices.push_back(asIndex(code, emit(code, index), at));
  Value raw =
      tensor::ExtractOp::create(b, at, held(node.tensor.value), indices);
  TV tv = loaded(code, raw, node.tensor.elem, at);
  if (node.tensor.live)
    tv.live =
        tensor::ExtractOp::create(b, at, value(node.tensor.live), indices);
  return tv;
}
