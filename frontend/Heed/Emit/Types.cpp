//===- Types.cpp - Types of values, and conversions -----------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Integers that come from indices and sizes are `index`; integers that come
// from data keep their type until they are computed with, then they are i64
// (or `index`, where they meet an index). Reals are f32, in a table f64.
//
//===----------------------------------------------------------------------===//

#include "frontend/Heed/Semantics/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using namespace mlir;
using llvm::cast;
using llvm::isa;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

mlir::Type Lowering::irType(Ty ty) {
  switch (ty) {
  case Ty::Bool:
    return builder.getI1Type();
  case Ty::I8:
    return builder.getI8Type();
  case Ty::AnyInt:
  case Ty::I32:
    return builder.getI32Type();
  case Ty::I64:
    return builder.getI64Type();
  case Ty::F16:
    return builder.getF16Type();
  case Ty::BF16:
    return builder.getBF16Type();
  case Ty::AnyReal:
  case Ty::F32:
    return builder.getF32Type();
  }
  return {};
}

SmallVector<int64_t> Lowering::extents(ArrayRef<Size> shape) {
  SmallVector<int64_t> result;
  for (const Size &size : shape) {
    auto c = size.constant();
    result.push_back(c ? *c : mlir::ShapedType::kDynamic);
  }
  return result;
}

mlir::RankedTensorType Lowering::tensorType(mlir::Type elem,
                                            ArrayRef<Size> shape) {
  return mlir::RankedTensorType::get(extents(shape), elem);
}

//===----------------------------------------------------------------------===//
// Conversions of values
//===----------------------------------------------------------------------===//

mlir::Type Lowering::realType(const Body &body) {
  return body.f64 ? mlir::Type(builder.getF64Type())
                  : mlir::Type(builder.getF32Type());
}

mlir::Type Lowering::bodyType(const Body &body, Ty ty) {
  if (ty == Ty::Bool)
    return builder.getI1Type();
  if (isReal(ty))
    return realType(body);
  if (ty == Ty::AnyInt)
    return builder.getIndexType();
  return builder.getI64Type();
}

Value Lowering::realConstant(Body &body, double value, Location at) {
  mlir::Type type = realType(body);
  llvm::APFloat number(value);
  bool lost;
  number.convert(cast<FloatType>(type).getFloatSemantics(),
                 llvm::APFloat::rmNearestTiesToEven, &lost);
  return arith::ConstantOp::create(body.builder, at,
                                   builder.getFloatAttr(type, number));
}

Value Lowering::asI64(Body &body, const TV &tv, Location at) {
  mlir::Type i64 = builder.getI64Type();
  mlir::Type type = tv.value.getType();
  if (type == i64)
    return tv.value;
  if (type.isIndex())
    return body.builder.createOrFold<arith::IndexCastOp>(at, i64, tv.value);
  return arith::ExtSIOp::create(body.builder, at, i64, tv.value);
}

Value Lowering::asIndex(Body &body, const TV &tv, Location at) {
  if (tv.value.getType().isIndex())
    return tv.value;
  return body.builder.createOrFold<arith::IndexCastOp>(
      at, builder.getIndexType(), tv.value);
}

Value Lowering::asReal(Body &body, const TV &tv, Location at) {
  mlir::Type want = realType(body), type = tv.value.getType();
  if (type == want)
    return tv.value;
  if (isa<FloatType>(type)) {
    if (type.getIntOrFloatBitWidth() < want.getIntOrFloatBitWidth())
      return arith::ExtFOp::create(body.builder, at, want, tv.value);
    return arith::TruncFOp::create(body.builder, at, want, tv.value);
  }
  if (auto constant = tv.value.getDefiningOp<arith::ConstantIndexOp>())
    return realConstant(body, double(constant.value()), at);
  Value integer = tv.value;
  if (type.isIndex())
    integer = asI64(body, tv, at);
  return arith::SIToFPOp::create(body.builder, at, want, integer);
}

Value Lowering::asType(Body &body, const TV &tv, Ty ty, Location at) {
  if (ty == Ty::Bool)
    return tv.value;
  if (isReal(ty))
    return asReal(body, tv, at);
  return ty == Ty::AnyInt ? asIndex(body, tv, at) : asI64(body, tv, at);
}

/// `value`, a number or bool, as an element of type `type`.
Value Lowering::toType(OpBuilder &b, Value value, mlir::Type type,
                       Location at) {
  mlir::Type from = value.getType();
  if (from == type)
    return value;
  if (from.isIndex() || type.isIndex())
    return b.createOrFold<arith::IndexCastOp>(at, type, value);
  unsigned have = from.getIntOrFloatBitWidth(),
           want = type.getIntOrFloatBitWidth();
  if (isa<FloatType>(type) && !isa<FloatType>(from))
    return arith::SIToFPOp::create(b, at, type, value);
  if (isa<FloatType>(type))
    return have < want ? Value(arith::ExtFOp::create(b, at, type, value))
                       : Value(arith::TruncFOp::create(b, at, type, value));
  if (from.isInteger(1))
    return arith::ExtUIOp::create(b, at, type, value);
  return have < want ? Value(arith::ExtSIOp::create(b, at, type, value))
                     : Value(arith::TruncIOp::create(b, at, type, value));
}

/// The element that a tensor of type `ty` stores.
Value Lowering::toStorage(Body &body, const TV &tv, Ty ty, Location at) {
  Value value = isReal(ty) ? asReal(body, tv, at) : tv.value;
  return toType(body.builder, value, irType(ty), at);
}

/// Both operands in `index` where one of them is an index, else in i64.
std::pair<Value, Value> Lowering::asIntegers(Body &body, const TV &x,
                                             const TV &y, Location at) {
  bool index = (x.value.getType().isIndex() && y.ty != Ty::I64) ||
               (y.value.getType().isIndex() && x.ty != Ty::I64);
  if (index)
    return {asIndex(body, x, at), asIndex(body, y, at)};
  return {asI64(body, x, at), asI64(body, y, at)};
}

Value Lowering::boolConstant(OpBuilder &b, bool value, Location at) {
  return arith::ConstantIntOp::create(b, at, value, 1);
}
