//===- HostBuilder.cpp - values and calls of lowered host code ------------===//

#include "passes/Host/HostBuilder.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "passes/Host/RuntimeType.h"
#include "passes/Mutation.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed;

HostBuilder::HostBuilder(ModuleOp module)
    : module(module), pointer(LLVM::LLVMPointerType::get(module.getContext())) {
}

// compiler/Codegen asserts that these are the runtime's numbers.
int32_t heed::runtimeType(Type type) {
  if (type.isF32())
    return 1;
  if (type.isF16())
    return 2;
  if (type.isBF16())
    return 3;
  if (type.isInteger(8))
    return 4;
  if (type.isInteger(32))
    return 6;
  if (type.isInteger(64))
    return 7;
  if (type.isInteger(1))
    return 8;
  return 0;
}

int64_t HostBuilder::elementBytes(Type type) {
  if (type.isIndex()) // upstream's helper of deallocation stores pointers so
    return 8;
  return (type.getIntOrFloatBitWidth() + 7) / 8;
}

Value HostBuilder::handle(Operation *op) {
  return op->getParentOfType<func::FuncOp>().getArgument(0);
}

Value HostBuilder::i32(OpBuilder &b, Location loc, int64_t value) {
  return LLVM::ConstantOp::create(b, loc, b.getI32Type(), value);
}

Value HostBuilder::i64(OpBuilder &b, Location loc, int64_t value) {
  return LLVM::ConstantOp::create(b, loc, b.getI64Type(), value);
}

Value HostBuilder::toI64(OpBuilder &b, Location loc, Value value) {
  Type type = value.getType();
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
  if (type.isInteger(64))
    return value;
  if (isa<FloatType>(type))
    return arith::FPToSIOp::create(b, loc, b.getI64Type(), value);
  if (type.isInteger(1))
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), value);
  return arith::ExtSIOp::create(b, loc, b.getI64Type(), value);
}

Value HostBuilder::at(OpBuilder &b, Location loc, Value base, int64_t bytes) {
  return LLVM::GEPOp::create(b, loc, pointer, b.getI8Type(), base,
                             ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
}

Value HostBuilder::null(OpBuilder &b, Location loc) {
  return LLVM::ZeroOp::create(b, loc, pointer);
}

Value HostBuilder::stack(OpBuilder &b, Operation *user, int64_t bytes) {
  OpBuilder::InsertionGuard guard(b);
  auto function = user->getParentOfType<func::FuncOp>();
  b.setInsertionPointToStart(&function.getBody().front());
  Value count = i64(b, user->getLoc(), std::max<int64_t>(bytes, 8));
  return LLVM::AllocaOp::create(b, user->getLoc(), pointer, b.getI8Type(),
                                count, /*alignment=*/8);
}

Value HostBuilder::i64Array(OpBuilder &b, Operation *user, ValueRange values) {
  if (values.empty())
    return null(b, user->getLoc());
  Value array = stack(b, user, 8 * values.size());
  for (auto [k, value] : llvm::enumerate(values))
    LLVM::StoreOp::create(b, user->getLoc(), value,
                          at(b, user->getLoc(), array, 8 * k));
  return array;
}

Value HostBuilder::text(OpBuilder &b, Location loc, StringRef value) {
  auto [found, isNew] = texts.try_emplace(value);
  if (isNew) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(module.getBody());
    std::string bytes = value.str();
    bytes.push_back('\0');
    auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
    found->second = LLVM::GlobalOp::create(
        b, loc, type, /*isConstant=*/true, LLVM::Linkage::Private,
        format("heed.text.{}", texts.size()), b.getStringAttr(bytes));
  }
  return LLVM::AddressOfOp::create(b, loc, found->second);
}

Value HostBuilder::call(OpBuilder &b, Location loc, StringRef name, Type result,
                        ValueRange arguments, bool returns) {
  auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
  if (!function) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(module.getBody());
    function = LLVM::LLVMFuncOp::create(
        b, loc, name,
        LLVM::LLVMFunctionType::get(
            result ? result : LLVM::LLVMVoidType::get(module.getContext()),
            SmallVector<Type>(arguments.getTypes())));
    if (!returns)
      function.setPassthroughAttr(b.getStrArrayAttr({"noreturn"}));
  }
  auto op = LLVM::CallOp::create(b, loc, function, arguments);
  return result ? op.getResult() : Value();
}

Value HostBuilder::memrefOver(OpBuilder &b, Location loc, MemRefType type,
                              Value data, ValueRange sizes) {
  LLVMTypeConverter converter(module.getContext());
  auto descriptor =
      MemRefDescriptor::poison(b, loc, converter.convertType(type));
  descriptor.setAllocatedPtr(b, loc, data);
  descriptor.setAlignedPtr(b, loc, data);
  descriptor.setOffset(b, loc, i64(b, loc, 0));
  Value stride = i64(b, loc, 1);
  for (int64_t axis = type.getRank() - 1; axis >= 0; --axis) {
    descriptor.setSize(b, loc, axis, sizes[axis]);
    descriptor.setStride(b, loc, axis, stride);
    if (axis > 0)
      stride = LLVM::MulOp::create(
          b, loc, stride,
          sizes[mutated("lower-host.stride-of-first") ? 0 : axis]);
  }
  return UnrealizedConversionCastOp::create(b, loc, type, Value(descriptor))
      .getResult(0);
}
HostBuilder::Strided HostBuilder::decompose(OpBuilder &b, Location loc,
                                            Value memref) {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memref);
  Strided strided;
  for (Value size : metadata.getSizes())
    strided.sizes.push_back(toI64(b, loc, size));
  for (Value stride : metadata.getStrides())
    strided.strides.push_back(toI64(b, loc, stride));
  Value base = toI64(
      b, loc, memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref));
  int64_t bytes =
      elementBytes(cast<MemRefType>(memref.getType()).getElementType());
  Value offset = LLVM::MulOp::create(
      b, loc, toI64(b, loc, metadata.getOffset()), i64(b, loc, bytes));
  strided.data = LLVM::IntToPtrOp::create(
      b, loc, TypeRange{pointer},
      ValueRange{mutated("lower-host.forget-offset")
                     ? base
                     : Value(LLVM::AddOp::create(b, loc, base, offset))});
  return strided;
}
