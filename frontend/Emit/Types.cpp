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

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

using namespace heed;
using namespace heed::sema;
using namespace mlir;
using llvm::cast;
using llvm::isa;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

mlir::Type Emitter::irType(Ty ty) {
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

SmallVector<int64_t> Emitter::extents(ArrayRef<SizeUse> shape) {
  SmallVector<int64_t> result;
  for (const SizeUse &use : shape) {
    auto c = use.size.constant();
    result.push_back(c ? *c : mlir::ShapedType::kDynamic);
  }
  return result;
}

mlir::RankedTensorType Emitter::tensorType(mlir::Type elem,
                                           ArrayRef<SizeUse> shape) {
  return mlir::RankedTensorType::get(extents(shape), elem);
}

//===----------------------------------------------------------------------===//
// Conversions of values
//===----------------------------------------------------------------------===//

mlir::Type Emitter::realType(const Code &code) {
  return code.f64 ? mlir::Type(builder.getF64Type())
                  : mlir::Type(builder.getF32Type());
}

mlir::Type Emitter::bodyType(const Code &code, Ty ty) {
  if (ty == Ty::Bool)
    return builder.getI1Type();
  if (isReal(ty))
    return realType(code);
  if (ty == Ty::AnyInt)
    return builder.getIndexType();
  return builder.getI64Type();
}

Value Emitter::realConstant(Code &code, double value, Location at) {
  mlir::Type type = realType(code);
  llvm::APFloat number(value);
  bool lost;
  number.convert(cast<FloatType>(type).getFloatSemantics(),
                 llvm::APFloat::rmNearestTiesToEven, &lost);
  return arith::ConstantOp::create(code.builder, at,
                                   builder.getFloatAttr(type, number));
}

Value Emitter::asI64(Code &code, const TV &tv, Location at) {
  mlir::Type i64 = builder.getI64Type();
  mlir::Type type = tv.value.getType();
  if (type == i64)
    return tv.value;
  if (type.isIndex())
    return code.builder.createOrFold<arith::IndexCastOp>(at, i64, tv.value);
  return arith::ExtSIOp::create(code.builder, at, i64, tv.value);
}

Value Emitter::asIndex(Code &code, const TV &tv, Location at) {
  if (tv.value.getType().isIndex())
    return tv.value;
  return code.builder.createOrFold<arith::IndexCastOp>(
      at, builder.getIndexType(), tv.value);
}

Value Emitter::asReal(Code &code, const TV &tv, Location at) {
  mlir::Type want = realType(code), type = tv.value.getType();
  if (type == want)
    return tv.value;
  if (isa<FloatType>(type)) {
    if (type.getIntOrFloatBitWidth() < want.getIntOrFloatBitWidth())
      return arith::ExtFOp::create(code.builder, at, want, tv.value);
    return arith::TruncFOp::create(code.builder, at, want, tv.value);
  }
  if (auto constant = tv.value.getDefiningOp<arith::ConstantIndexOp>())
    return realConstant(code, double(constant.value()), at);
  Value integer = tv.value;
  if (type.isIndex())
    integer = asI64(code, tv, at);
  return arith::SIToFPOp::create(code.builder, at, want, integer);
}

Value Emitter::asType(Code &code, const TV &tv, Ty ty, Location at) {
  if (ty == Ty::Bool)
    return tv.value;
  if (isReal(ty))
    return asReal(code, tv, at);
  return ty == Ty::AnyInt ? asIndex(code, tv, at) : asI64(code, tv, at);
}

/// `value`, a number or bool, as an element of type `type`.
Value Emitter::toType(OpBuilder &b, Value value, mlir::Type type, Location at) {
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
Value Emitter::toStorage(Code &code, const TV &tv, Ty ty, Location at) {
  Value value = isReal(ty) ? asReal(code, tv, at) : tv.value;
  return toType(code.builder, value, irType(ty), at);
}

/// Both operands in `index` where one of them is an index, else in i64.
std::pair<Value, Value> Emitter::asIntegers(Code &code, const TV &x,
                                            const TV &y, Location at) {
  bool index = (x.value.getType().isIndex() && y.ty != Ty::I64) ||
               (y.value.getType().isIndex() && x.ty != Ty::I64);
  if (index)
    return {asIndex(code, x, at), asIndex(code, y, at)};
  return {asI64(code, x, at), asI64(code, y, at)};
}

Value Emitter::boolConstant(OpBuilder &b, bool value, Location at) {
  return arith::ConstantIntOp::create(b, at, value, 1);
}
