//===- Decompose.h - what the decompositions of attn ops share --*- C++ -*-===//
// One linalg.generic a step, and the rows that a normaliser runs over.
#ifndef HEED_DIALECTS_ATTN_DECOMPOSE_H
#define HEED_DIALECTS_ATTN_DECOMPOSE_H

#include "dialects/Attn/Normaliser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

namespace heed::attn::decompose {

using namespace mlir;

using Body = llvm::function_ref<SmallVector<Value>(OpBuilder &, ValueRange)>;

/// Builds upstream ops at one place.
struct Build {
  OpBuilder &b;
  Location loc;

  Value real(Type type, double value) {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  }
  Value lowest(Type type) {
    return arith::ConstantOp::create(
        b, loc,
        b.getFloatAttr(
            type, APFloat::getInf(cast<FloatType>(type).getFloatSemantics(),
                                  /*Negative=*/true)));
  }
  Value truth(bool value) {
    return arith::ConstantOp::create(b, loc, b.getBoolAttr(value));
  }
  Value equals(Value a, Value c) {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, a, c);
  }
  Value andNot(Value a, Value c) {
    return arith::AndIOp::create(b, loc, a,
                                 arith::XOrIOp::create(b, loc, c, truth(true)));
  }
  Value empty(ArrayRef<OpFoldResult> sizes, Type element) {
    return tensor::EmptyOp::create(b, loc, sizes, element);
  }
  Value filled(ArrayRef<OpFoldResult> sizes, Value value) {
    return linalg::FillOp::create(b, loc, ValueRange{value},
                                  ValueRange{empty(sizes, value.getType())})
        .getResult(0);
  }
  Value like(Value value, Type type) {
    return value.getType() == type
               ? value
               : tensor::CastOp::create(b, loc, type, value).getResult();
  }
  /// An element as f32.
  Value wide(Value value) {
    return value.getType().isF32() || value.getType().isF64()
               ? value
               : arith::ExtFOp::create(b, loc, b.getF32Type(), value)
                     .getResult();
  }

  /// One generic; dims in \p reduced are reductions.
  SmallVector<Value> generic(ValueRange ins, ValueRange outs,
                             ArrayRef<AffineMap> maps,
                             ArrayRef<unsigned> reduced, Body body) {
    SmallVector<utils::IteratorType> iterators(maps.front().getNumDims(),
                                               utils::IteratorType::parallel);
    for (unsigned d : reduced)
      iterators[d] = utils::IteratorType::reduction;
    auto op = linalg::GenericOp::create(
        b, loc, outs.getTypes(), ins, outs, maps, iterators,
        [&](OpBuilder &inner, Location, ValueRange args) {
          linalg::YieldOp::create(inner, loc, body(inner, args));
        });
    return llvm::to_vector(llvm::map_range(
        op.getResults(), [](OpResult r) -> Value { return r; }));
  }

  Value expand(AffineExpr expr, ArrayRef<Value> dims, ValueRange symbols) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      return dims[dim.getPosition()];
    if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
      return symbols[symbol.getPosition()];
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      return arith::ConstantIndexOp::create(b, loc, constant.getValue());
    auto binary = cast<AffineBinaryOpExpr>(expr);
    Value lhs = expand(binary.getLHS(), dims, symbols);
    Value rhs = expand(binary.getRHS(), dims, symbols);
    switch (expr.getKind()) {
    case AffineExprKind::Add:
      return arith::AddIOp::create(b, loc, lhs, rhs);
    case AffineExprKind::Mul:
      return arith::MulIOp::create(b, loc, lhs, rhs);
    case AffineExprKind::FloorDiv:
      return arith::FloorDivSIOp::create(b, loc, lhs, rhs);
    case AffineExprKind::CeilDiv:
      return arith::CeilDivSIOp::create(b, loc, lhs, rhs);
    default: { // the remainder that goes with floordiv
      Value quotient = arith::FloorDivSIOp::create(b, loc, lhs, rhs);
      return arith::SubIOp::create(
          b, loc, lhs, arith::MulIOp::create(b, loc, quotient, rhs));
    }
    }
  }

  /// The element of \p tensor at \p map, as f32.
  Value read(Value tensor, AffineMap map, ArrayRef<Value> dims,
             ValueRange symbols) {
    SmallVector<Value> at;
    for (AffineExpr expr : map.getResults())
      at.push_back(expand(expr, dims, symbols));
    return wide(tensor::ExtractOp::create(b, loc, tensor, at));
  }

  /// The same of a term or value of \p op: offsets end at the tensor's ends.
  Value read(AttentionLike op, Value tensor, AffineMap map,
             ArrayRef<Value> dims) {
    SmallVector<Value> at;
    for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
      Value position = expand(expr, dims, op.getSymbols());
      if (op.offsetSign(expr)) {
        Value last = arith::SubIOp::create(
            b, loc, tensor::DimOp::create(b, loc, tensor, axis),
            arith::ConstantIndexOp::create(b, loc, 1));
        Value zero = arith::ConstantIndexOp::create(b, loc, 0);
        position = arith::MinSIOp::create(
            b, loc, arith::MaxSIOp::create(b, loc, position, zero), last);
      }
      at.push_back(position);
    }
    return wide(tensor::ExtractOp::create(b, loc, tensor, at));
  }

  /// The yielded value of \p region on \p args, cloned here.
  Value inlined(Region &region, ValueRange args) {
    IRMapping mapping;
    mapping.map(region.front().getArguments(), args);
    for (Operation &op : region.front().without_terminator())
      b.clone(op, mapping);
    auto yield = cast<YieldOp>(region.front().getTerminator());
    return mapping.lookupOrDefault(yield.getValue());
  }

  /// \p then where \p condition holds, \p otherwise elsewhere; not evaluated
  /// there.
  Value guarded(Value condition, Value otherwise,
                llvm::function_ref<Value(Build)> then) {
    auto op = scf::IfOp::create(
        b, loc, condition,
        [&](OpBuilder &inner, Location) {
          scf::YieldOp::create(inner, loc, then(Build{inner, loc}));
        },
        [&](OpBuilder &inner, Location) {
          scf::YieldOp::create(inner, loc, otherwise);
        });
    return op.getResult(0);
  }
};

/// The extents of \p tensor, as what it was computed from names them.
SmallVector<OpFoldResult> sizesOf(Build at, Value tensor);

/// Scores and what is known of their rows.
struct Rows {
  SmallVector<OpFoldResult> sizes, rowSizes;
  AffineMap all, row;         ///< of loops over all axes
  SmallVector<unsigned> keys; ///< axes that a row runs over
  Type type;
  Value scores, where; ///< where: an i1 tensor, from normalise() on which keys
                       ///< are live; scores with a threshold are less their
                       ///< maximum then
  Value sink;          ///< of the rows' shape, or null
  // Results of normalise().
  Value dead;    ///< i1 per row: no key of it counts
  Value maximum; ///< per row, what scores are taken less, or null
  Value sum;     ///< per row; null if the weights sum to 1 as they are
};

Rows makeRows(MLIRContext *context, ArrayRef<OpFoldResult> sizes,
              ArrayRef<unsigned> keys, Type type);

/// The weight of a score, taken less its row's maximum if there is one.
Value weightOf(Build at, const Normaliser &normaliser, Value score,
               Value maximum);

/// Fills in dead, maximum and sum of \p rows.
void normalise(Build at, Rows &rows, const Normaliser &normaliser,
               bool stabilise);

} // namespace heed::attn::decompose
#endif
