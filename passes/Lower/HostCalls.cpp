//===- HostCalls.cpp - host ops to calls of the runtime -------------------===//
//
// `attn-lower-host`: on memrefs, what the host asks of the runtime
// (parameters, checks, memory, kernels) becomes calls of the C functions in
// runtime/host.h, and every entry gets a C function that unpacks heed_buffers.
// Calls that fail don't return (they unwind), so no status is passed around.
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/Dialect.h"
#include "dialects/Halide/HalideDialect.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Lower/HostParams.h"
#include "passes/Passes.h"
#include "passes/VerifyContract.h"

namespace heed {
#define GEN_PASS_DEF_ATTNLOWERHOST
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;

namespace {

// Layout of runtime/host.h.
constexpr int64_t kBufferBytes = 144, kBufferType = 8, kBufferRank = 12,
                  kBufferShape = 16;
constexpr int64_t kHalideBufferBytes = 56, kHalideDimensionBytes = 16;

/// heed_type of runtime/heed.h; 0 if there is none.
int32_t runtimeType(Type type) {
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

int64_t elementBytes(Type type) {
  if (type.isIndex()) // upstream's helper of deallocation stores pointers so
    return 8;
  return (type.getIntOrFloatBitWidth() + 7) / 8;
}

struct LowerHost : heed::impl::AttnLowerHostBase<LowerHost> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(heed::verifyHost(module)))
      return signalPassFailure();
    auto params = heed::numberParams(module);
    if (failed(params) || failed(renameKernels(module)))
      return signalPassFailure();

    pointer = LLVM::LLVMPointerType::get(&getContext());
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      (void)function.insertArgument(0, pointer, {}, function.getLoc());
    module.walk(
        [&](func::CallOp call) { call->insertOperands(0, handle(call)); });

    SmallVector<Operation *> ops;
    for (func::FuncOp function : functions)
      function.walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops) {
      OpBuilder b(op);
      LogicalResult ok = success();
      if (auto param = dyn_cast<heed::attn::ParamOp>(op))
        lowerParam(b, param, params->ops[op]);
      else if (auto require = dyn_cast<heed::attn::RequireOp>(op))
        ok = lowerRequire(b, require);
      else if (auto check = dyn_cast<heed::attn::RequireInRangeOp>(op))
        lowerRequireInRange(b, check);
      else if (auto call = dyn_cast<heed::halide::CallOp>(op))
        ok = lowerKernelCall(b, call);
      else if (auto alloc = dyn_cast<memref::AllocOp>(op))
        ok = lowerAlloc(b, alloc);
      else if (auto dealloc = dyn_cast<memref::DeallocOp>(op))
        lowerDealloc(b, dealloc);
      else if (auto abs = dyn_cast<math::AbsIOp>(op))
        lowerAbs(b, abs);
      else if (auto product = dyn_cast<arith::MulIOp>(op);
               product && product.getType().isIndex())
        lowerProduct(b, product);
      else if (isa<arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp,
                   arith::CeilDivSIOp>(op) &&
               op->getResult(0).getType().isIndex()) {
        guardDivisor(b, op);
        continue;
      } else
        continue;
      if (failed(ok))
        return signalPassFailure();
      op->erase();
    }
    if (failed(makeEntries(module, functions, params->table)))
      return signalPassFailure();
  }

  //===--- values ---------------------------------------------------------===//

  Value handle(Operation *op) {
    return op->getParentOfType<func::FuncOp>().getArgument(0);
  }
  Value i32(OpBuilder &b, Location loc, int64_t value) {
    return LLVM::ConstantOp::create(b, loc, b.getI32Type(), value);
  }
  Value i64(OpBuilder &b, Location loc, int64_t value) {
    return LLVM::ConstantOp::create(b, loc, b.getI64Type(), value);
  }
  Value toI64(OpBuilder &b, Location loc, Value value) {
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
  Value at(OpBuilder &b, Location loc, Value base, int64_t bytes) {
    return LLVM::GEPOp::create(b, loc, pointer, b.getI8Type(), base,
                               ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
  }
  Value null(OpBuilder &b, Location loc) {
    return LLVM::ZeroOp::create(b, loc, pointer);
  }

  /// Stack memory in the function's entry block, so that loops don't grow it.
  Value stack(OpBuilder &b, Operation *user, int64_t bytes) {
    OpBuilder::InsertionGuard guard(b);
    auto function = user->getParentOfType<func::FuncOp>();
    b.setInsertionPointToStart(&function.getBody().front());
    Value count = i64(b, user->getLoc(), std::max<int64_t>(bytes, 8));
    return LLVM::AllocaOp::create(b, user->getLoc(), pointer, b.getI8Type(),
                                  count, /*alignment=*/8);
  }
  Value i64Array(OpBuilder &b, Operation *user, ValueRange values) {
    if (values.empty())
      return null(b, user->getLoc());
    Value array = stack(b, user, 8 * values.size());
    for (auto [k, value] : llvm::enumerate(values))
      LLVM::StoreOp::create(b, user->getLoc(), value,
                            at(b, user->getLoc(), array, 8 * k));
    return array;
  }
  Value text(OpBuilder &b, Location loc, StringRef value) {
    auto [found, isNew] = texts.try_emplace(value);
    if (isNew) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(getOperation().getBody());
      std::string bytes = value.str();
      bytes.push_back('\0');
      auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
      found->second = LLVM::GlobalOp::create(
          b, loc, type, /*isConstant=*/true, LLVM::Linkage::Private,
          "heed.text." + std::to_string(texts.size()), b.getStringAttr(bytes));
    }
    return LLVM::AddressOfOp::create(b, loc, found->second);
  }
  Value call(OpBuilder &b, Location loc, StringRef name, Type result,
             ValueRange arguments, bool returns = true) {
    auto function = getOperation().lookupSymbol<LLVM::LLVMFuncOp>(name);
    if (!function) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(getOperation().getBody());
      function = LLVM::LLVMFuncOp::create(
          b, loc, name,
          LLVM::LLVMFunctionType::get(
              result ? result : LLVM::LLVMVoidType::get(&getContext()),
              SmallVector<Type>(arguments.getTypes())));
      if (!returns)
        function.setPassthroughAttr(b.getStrArrayAttr({"noreturn"}));
    }
    auto op = LLVM::CallOp::create(b, loc, function, arguments);
    return result ? op.getResult() : Value();
  }

  /// A dense row-major memref over \p data; \p sizes are i64, all of them.
  Value memrefOver(OpBuilder &b, Location loc, MemRefType type, Value data,
                   ValueRange sizes) {
    LLVMTypeConverter converter(&getContext());
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
        stride = LLVM::MulOp::create(b, loc, stride, sizes[axis]);
    }
    return UnrealizedConversionCastOp::create(b, loc, type, Value(descriptor))
        .getResult(0);
  }
  struct Strided {
    Value data;
    SmallVector<Value> sizes, strides;
  };
  Strided decompose(OpBuilder &b, Location loc, Value memref) {
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
        ValueRange{LLVM::AddOp::create(b, loc, base, offset)});
    return strided;
  }

  //===--- ops ------------------------------------------------------------===//

  void lowerParam(OpBuilder &b, heed::attn::ParamOp op,
                  const heed::HostParam &param) {
    Location loc = op.getLoc();
    auto type = cast<MemRefType>(op.getResult().getType());
    SmallVector<Value> indices;
    for (Value index : param.indices)
      indices.push_back(toI64(b, loc, index));
    Value array = i64Array(b, op, indices);
    Value number = i32(b, loc, param.number);
    SmallVector<Value> sizes;
    for (int64_t axis = 0; axis < type.getRank(); ++axis)
      sizes.push_back(type.isDynamicDim(axis)
                          ? call(b, loc, "heed_host_param_extent",
                                 b.getI64Type(),
                                 {handle(op), number, array, i32(b, loc, axis)})
                          : i64(b, loc, type.getDimSize(axis)));
    Value data =
        call(b, loc, "heed_host_param", pointer, {handle(op), number, array});
    op.getResult().replaceAllUsesWith(memrefOver(b, loc, type, data, sizes));
  }

  LogicalResult lowerRequire(OpBuilder &b, heed::attn::RequireOp op) {
    Location loc = op.getLoc();
    Value yes = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
    Value fails = arith::XOrIOp::create(b, loc, op.getCondition(), yes);
    auto branch = scf::IfOp::create(b, loc, fails, /*withElseRegion=*/false);
    OpBuilder inside = branch.getThenBodyBuilder();
    SmallVector<Value> values;
    for (Value value : op.getValues())
      values.push_back(toI64(inside, loc, value));
    Value array = i64Array(inside, op, values);
    call(inside, loc, "heed_host_require_failed", Type(),
         {handle(op), text(inside, loc, op.getMessage()),
          i32(inside, loc, values.size()), array},
         /*returns=*/false);
    return success();
  }

  void lowerRequireInRange(OpBuilder &b, heed::attn::RequireInRangeOp op) {
    Location loc = op.getLoc();
    auto type = cast<MemRefType>(op.getTensor().getType());
    Strided tensor = decompose(b, loc, op.getTensor());
    auto name = op->getAttrOfType<StringAttr>(heed::attn::kNameAttr);
    Value nameText = name ? text(b, loc, name.getValue()) : null(b, loc);
    call(b, loc, "heed_host_check_range", Type(),
         {handle(op), tensor.data,
          i32(b, loc, runtimeType(type.getElementType())),
          i32(b, loc, type.getRank()), i64Array(b, op, tensor.sizes),
          i64Array(b, op, tensor.strides), toI64(b, loc, op.getLo()),
          toI64(b, loc, op.getHi()), nameText, text(b, loc, op.getWhat())});
  }

  LogicalResult lowerAlloc(OpBuilder &b, memref::AllocOp op) {
    Location loc = op.getLoc();
    MemRefType type = op.getType();
    if (!type.getLayout().isIdentity())
      return op.emitError("expected a dense row-major allocation, found ")
             << type;
    SmallVector<Value> sizes;
    unsigned dynamic = 0;
    for (int64_t size : type.getShape())
      sizes.push_back(ShapedType::isDynamic(size)
                          ? toI64(b, loc, op.getDynamicSizes()[dynamic++])
                          : i64(b, loc, size));
    Value bytes = call(b, loc, "heed_host_bytes", b.getI64Type(),
                       {i32(b, loc, type.getRank()), i64Array(b, op, sizes),
                        i64(b, loc, elementBytes(type.getElementType()))});
    Value data = call(b, loc, "heed_host_alloc", pointer, {handle(op), bytes});
    op.getResult().replaceAllUsesWith(memrefOver(b, loc, type, data, sizes));
    return success();
  }

  void lowerDealloc(OpBuilder &b, memref::DeallocOp op) {
    Location loc = op.getLoc();
    Value base = toI64(
        b, loc,
        memref::ExtractAlignedPointerAsIndexOp::create(b, loc, op.getMemref()));
    call(b, loc, "heed_host_free", Type(),
         {handle(op), LLVM::IntToPtrOp::create(b, loc, TypeRange{pointer},
                                               ValueRange{base})});
  }

  /// Upstream lowers `math.absi` neither of indices nor through libm.
  void lowerAbs(OpBuilder &b, math::AbsIOp op) {
    Location loc = op.getLoc();
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(op.getType()));
    Value negative = arith::SubIOp::create(b, loc, zero, op.getOperand());
    op.getResult().replaceAllUsesWith(
        arith::MaxSIOp::create(b, loc, op.getOperand(), negative));
  }

  Value toIndex(OpBuilder &b, Location loc, Value value) {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
  }

  /// Extents come from the caller: a product of some may not fit in 64 bits.
  void lowerProduct(OpBuilder &b, arith::MulIOp op) {
    Location loc = op.getLoc();
    Value product = call(
        b, loc, "heed_host_multiply", b.getI64Type(),
        {handle(op), toI64(b, loc, op.getLhs()), toI64(b, loc, op.getRhs())});
    op.getResult().replaceAllUsesWith(toIndex(b, loc, product));
  }

  /// Likewise an extent that divides may be 0.
  void guardDivisor(OpBuilder &b, Operation *op) {
    Value divisor = op->getOperand(1);
    if (getConstantIntValue(divisor))
      return;
    Value checked = call(b, op->getLoc(), "heed_host_divisor", b.getI64Type(),
                         {handle(op), toI64(b, op->getLoc(), divisor)});
    op->setOperand(1, toIndex(b, op->getLoc(), checked));
  }

  /// Halide's code and bits of an element type.
  std::pair<int32_t, int32_t> halideType(Type type) {
    if (type.isInteger(1))
      return {1, 1};
    if (isa<IntegerType>(type))
      return {0, int32_t(type.getIntOrFloatBitWidth())};
    return {type.isBF16() ? 4 : 2, int32_t(type.getIntOrFloatBitWidth())};
  }

  Value halideBuffer(OpBuilder &b, Operation *user, Value memref) {
    Location loc = user->getLoc();
    auto type = cast<MemRefType>(memref.getType());
    Strided strided = decompose(b, loc, memref);
    Value buffer = stack(b, user, kHalideBufferBytes);
    Value dimensions = stack(b, user, kHalideDimensionBytes * type.getRank());
    auto [code, bits] = halideType(type.getElementType());
    call(b, loc, "heed_host_buffer", Type(),
         {handle(user), buffer, dimensions, strided.data, i32(b, loc, code),
          i32(b, loc, bits), i32(b, loc, type.getRank()),
          i64Array(b, user, strided.sizes),
          i64Array(b, user, strided.strides)});
    return buffer;
  }

  LogicalResult lowerKernelCall(OpBuilder &b, heed::halide::CallOp op) {
    Location loc = op.getLoc();
    auto pipeline =
        getOperation().lookupSymbol<heed::halide::PipelineOp>(op.getCallee());
    if (!pipeline)
      return op.emitError("no pipeline '") << op.getCallee() << "'";
    SmallVector<Operation *> formals = pipeline.getInputs();
    // args[0] is the runtime's: the user context.
    SmallVector<Value> arguments{null(b, loc)};
    for (auto [actual, formal] : llvm::zip_equal(op.getInputs(), formals)) {
      if (isa<MemRefType>(actual.getType())) {
        arguments.push_back(halideBuffer(b, op, actual));
        continue;
      }
      Value scalar = actual;
      Type wanted = cast<heed::halide::ParamOp>(formal).getResult().getType();
      if (scalar.getType().isIndex())
        scalar = arith::IndexCastOp::create(b, loc, wanted, scalar);
      if (wanted.isInteger(1))
        scalar = arith::ExtUIOp::create(b, loc, b.getI8Type(), scalar);
      Value slot = stack(b, op, 8);
      LLVM::StoreOp::create(b, loc, scalar, slot);
      arguments.push_back(slot);
    }
    for (Value out : op.getOuts())
      arguments.push_back(halideBuffer(b, op, out));

    Value array = stack(b, op, 8 * arguments.size());
    for (auto [k, argument] : llvm::enumerate(arguments))
      LLVM::StoreOp::create(b, loc, argument, at(b, loc, array, 8 * k));

    std::string symbol = (op.getCallee() + "_argv").str();
    auto function = getOperation().lookupSymbol<LLVM::LLVMFuncOp>(symbol);
    if (!function) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(getOperation().getBody());
      function = LLVM::LLVMFuncOp::create(
          b, loc, symbol,
          LLVM::LLVMFunctionType::get(b.getI32Type(), {pointer}));
    }
    auto kernel = llvm::find(kernelSymbols, op.getCallee());
    auto zero = LLVM::ConstantOp::create(b, loc, b.getF64Type(),
                                         b.getF64FloatAttr(0.0));
    call(b, loc, "heed_host_kernel", Type(),
         {handle(op), i32(b, loc, kernel - kernelSymbols.begin()),
          LLVM::AddressOfOp::create(b, loc, function), array, zero, zero});
    return success();
  }

  /// Kernels of two models may meet in one process: their symbols get the
  /// model's prefix. Profiles show the name without it.
  LogicalResult renameKernels(ModuleOp module) {
    for (auto pipeline : module.getOps<heed::halide::PipelineOp>()) {
      kernelNames.push_back(pipeline.getSymName().str());
      std::string symbol = prefix + "_" + kernelNames.back();
      if (failed(SymbolTable::replaceAllSymbolUses(
              pipeline.getSymNameAttr(), StringAttr::get(&getContext(), symbol),
              module)))
        return pipeline.emitError("cannot rename this pipeline");
      pipeline.setSymName(symbol);
      kernelSymbols.push_back(symbol);
    }
    return success();
  }

  //===--- entries --------------------------------------------------------===//

  /// The argument that heed_buffer number \p k of \p buffers holds.
  Value unpack(OpBuilder &b, Location loc, Type type, Value buffers,
               int64_t k) {
    Value buffer = at(b, loc, buffers, kBufferBytes * k);
    Value data = LLVM::LoadOp::create(b, loc, pointer, buffer);
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref) {
      Type stored = type.isInteger(1) ? b.getI8Type()
                    : type.isIndex()  ? b.getI64Type()
                                      : type;
      Value value = LLVM::LoadOp::create(b, loc, stored, data);
      if (type.isInteger(1))
        return arith::CmpIOp::create(
            b, loc, arith::CmpIPredicate::ne, value,
            arith::ConstantOp::create(b, loc, b.getIntegerAttr(stored, 0)));
      return value;
    }
    SmallVector<Value> sizes;
    for (int64_t axis = 0; axis < memref.getRank(); ++axis)
      sizes.push_back(memref.isDynamicDim(axis)
                          ? LLVM::LoadOp::create(
                                b, loc, b.getI64Type(),
                                at(b, loc, buffer, kBufferShape + 8 * axis))
                                .getResult()
                          : i64(b, loc, memref.getDimSize(axis)));
    return memrefOver(b, loc, memref, data, sizes);
  }

  /// What the description says of one argument or result.
  Attribute describe(Builder &b, func::FuncOp model, unsigned argument,
                     unsigned k) {
    Type type = model.getArgumentTypes()[argument];
    NamedAttrList entry;
    auto name =
        model.getArgAttrOfType<StringAttr>(argument, heed::attn::kNameAttr);
    entry.set("name", name ? name : b.getStringAttr("x" + std::to_string(k)));
    SmallVector<int64_t> sizes;
    SmallVector<Attribute> extents;
    Type element = type;
    if (auto memref = dyn_cast<MemRefType>(type)) {
      element = memref.getElementType();
      auto dims =
          model.getArgAttrOfType<ArrayAttr>(argument, heed::attn::kDimsAttr);
      for (int64_t axis = 0; axis < memref.getRank(); ++axis) {
        bool isDynamic = memref.isDynamicDim(axis);
        sizes.push_back(isDynamic ? -1 : memref.getDimSize(axis));
        if (dims && axis < int64_t(dims.size()))
          extents.push_back(dims[axis]);
        else
          extents.push_back(b.getStringAttr(
              isDynamic ? "?" : std::to_string(memref.getDimSize(axis))));
      }
    } else {
      entry.set("scalar", b.getUnitAttr());
      if (Attribute value =
              model.getArgAttr(argument, heed::attn::kDefaultAttr))
        entry.set("default", value);
    }
    entry.set("type", TypeAttr::get(element));
    entry.set("extents", b.getArrayAttr(extents));
    entry.set("sizes", b.getDenseI64ArrayAttr(sizes));
    return entry.getDictionary(&getContext());
  }

  LogicalResult makeEntries(ModuleOp module, ArrayRef<func::FuncOp> functions,
                            ArrayRef<Attribute> params) {
    OpBuilder b(&getContext());
    SmallVector<Attribute> entries;
    for (func::FuncOp model : functions) {
      if (!model->hasAttr(heed::attn::kModelAttr))
        continue;
      auto shapes = module.lookupSymbol<func::FuncOp>(
          (model.getName() + ".shapes").str());
      if (!shapes)
        return model.emitError("expected '@")
               << model.getName() << ".shapes', which attn-form-entries makes";
      model.setPrivate();
      SmallVector<Attribute> inputs, outputs;
      SmallVector<unsigned> outputArguments;
      for (unsigned k = 1; k < model.getNumArguments(); ++k) {
        if (model.getArgAttr(k, "attn.result")) {
          outputs.push_back(describe(b, model, k, outputs.size()));
          outputArguments.push_back(k);
        } else {
          inputs.push_back(describe(b, model, k, inputs.size()));
        }
      }
      Location loc = model.getLoc();
      std::string base = prefix + "." + model.getName().str();
      b.setInsertionPointToEnd(module.getBody());
      auto type =
          b.getFunctionType({pointer, pointer, pointer}, b.getI32Type());

      auto run = func::FuncOp::create(b, loc, base + ".run", type);
      b.setInsertionPointToStart(run.addEntryBlock());
      SmallVector<Value> arguments{run.getArgument(0)};
      unsigned in = 0, out = 0;
      for (unsigned k = 1; k < model.getNumArguments(); ++k) {
        bool isResult = bool(model.getArgAttr(k, "attn.result"));
        arguments.push_back(unpack(b, loc, model.getArgumentTypes()[k],
                                   run.getArgument(isResult ? 2 : 1),
                                   isResult ? out++ : in++));
      }
      func::CallOp::create(b, loc, model, arguments);
      func::ReturnOp::create(b, loc, i32(b, loc, 0));

      b.setInsertionPointToEnd(module.getBody());
      auto ask = func::FuncOp::create(b, loc, base + ".ask", type);
      b.setInsertionPointToStart(ask.addEntryBlock());
      arguments.assign({ask.getArgument(0)});
      for (unsigned k = 1; k < shapes.getNumArguments(); ++k)
        arguments.push_back(unpack(b, loc, shapes.getArgumentTypes()[k],
                                   ask.getArgument(1), k - 1));
      auto extents = func::CallOp::create(b, loc, shapes, arguments);
      unsigned next = 0;
      for (auto [k, argument] : llvm::enumerate(outputArguments)) {
        auto result = cast<MemRefType>(model.getArgumentTypes()[argument]);
        Value buffer = at(b, loc, ask.getArgument(2), kBufferBytes * k);
        LLVM::StoreOp::create(b, loc,
                              i32(b, loc, runtimeType(result.getElementType())),
                              at(b, loc, buffer, kBufferType));
        LLVM::StoreOp::create(b, loc, i32(b, loc, result.getRank()),
                              at(b, loc, buffer, kBufferRank));
        for (int64_t axis = 0; axis < result.getRank(); ++axis)
          LLVM::StoreOp::create(b, loc,
                                toI64(b, loc, extents.getResult(next++)),
                                at(b, loc, buffer, kBufferShape + 8 * axis));
      }
      func::ReturnOp::create(b, loc, i32(b, loc, 0));

      NamedAttrList entry;
      entry.set("name", model.getNameAttr());
      entry.set("inputs", b.getArrayAttr(inputs));
      entry.set("outputs", b.getArrayAttr(outputs));
      entry.set("run", FlatSymbolRefAttr::get(run.getNameAttr()));
      entry.set("shapes", FlatSymbolRefAttr::get(ask.getNameAttr()));
      entries.push_back(entry.getDictionary(&getContext()));
      // What they said stands in the description now; LLVM has no such names.
      for (func::FuncOp function : {model, shapes})
        for (unsigned k = 0; k < function.getNumArguments(); ++k)
          function.setArgAttrs(k, ArrayRef<NamedAttribute>());
    }
    if (entries.empty())
      return module.emitError("expected a function with 'attn.model'");
    NamedAttrList description;
    description.set("entries", b.getArrayAttr(entries));
    description.set("params", b.getArrayAttr(params));
    SmallVector<StringRef> names(kernelNames.begin(), kernelNames.end());
    description.set("kernels", b.getStrArrayAttr(names));
    description.set("prefix", b.getStringAttr(prefix));
    module->setAttr("attn.description",
                    description.getDictionary(&getContext()));
    return success();
  }

  LLVM::LLVMPointerType pointer;
  llvm::StringMap<LLVM::GlobalOp> texts;
  SmallVector<std::string> kernelNames, kernelSymbols;
};

} // namespace
