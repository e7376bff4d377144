//===- HostCalls.cpp - host ops to calls of the runtime -------------------===//
//
// `attn-lower-host`: on memrefs, what the host asks of the runtime
// (parameters, checks, memory, kernels) becomes calls of the C functions in
// runtime/host.h, and every entry gets a C function that unpacks
// heed_arguments. Calls that fail don't return (they unwind), so no status is
// passed around.
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/Extents.h"
#include "dialects/Halide/HalideDialect.h"
#include "dialects/Halide/Target.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Host/HostBuilder.h"
#include "passes/Host/HostContract.h"
#include "passes/Host/HostParams.h"
#include "passes/Host/RuntimeType.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Plan/LiveCounts.h"
#include "support/Format.h"
#include "llvm/ADT/StringMap.h"

namespace heed {
#define GEN_PASS_DEF_ATTNLOWERHOST
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

// Layout of HalideRuntime.h, asserted in runtime/Host.c.
constexpr int64_t kHalideBufferBytes = 56, kHalideDimensionBytes = 16;

bool isDense(Value memory) {
  return cast<MemRefType>(memory.getType()).getLayout().isIdentity();
}

/// A view in whose groups several extents are unknown, which upstream's
/// lowering of views does not take: sizes and strides say the same.
void lowerExpand(OpBuilder &b, memref::ExpandShapeOp expand) {
  MemRefType type = expand.getResultType();
  auto severalUnknown = [&](const ReassociationIndices &group) {
    return llvm::count_if(group, [&](int64_t axis) {
             return type.isDynamicDim(axis);
           }) > 1;
  };
  if (llvm::none_of(expand.getReassociationIndices(), severalUnknown))
    return;
  Location loc = expand.getLoc();
  // A row of a larger tensor begins somewhere, and its rows lie apart.
  auto from = memref::ExtractStridedMetadataOp::create(b, loc, expand.getSrc());
  SmallVector<OpFoldResult> sizes = expand.getMixedOutputShape();
  SmallVector<OpFoldResult> strides(sizes.size());
  SmallVector<OpFoldResult> outer = from.getConstifiedMixedStrides();
  for (auto [number, group] :
       llvm::enumerate(expand.getReassociationIndices())) {
    OpFoldResult stride = outer[number];
    for (int64_t axis : llvm::reverse(group)) {
      strides[axis] = stride;
      std::optional<int64_t> known = getConstantIntValue(stride);
      std::optional<int64_t> size = getConstantIntValue(sizes[axis]);
      if (known && size)
        stride = b.getIndexAttr(*known * *size);
      else if (axis != group.front())
        stride = arith::MulIOp::create(
                     b, loc, getValueOrCreateConstantIndexOp(b, loc, stride),
                     getValueOrCreateConstantIndexOp(b, loc, sizes[axis]))
                     .getResult();
    }
  }
  expand.getResult().replaceAllUsesWith(memref::ReinterpretCastOp::create(
      b, loc, type, from.getBaseBuffer(), from.getConstifiedMixedOffset(),
      sizes, strides));
}

/// Replaces host ops, one kind a function; the caller erases them.
class HostCalls : public HostBuilder {
public:
  HostCalls(ModuleOp module, const std::string &prefix)
      : HostBuilder(module), prefix(prefix) {}

  LogicalResult run();

private:
  FailureOr<bool> lower(Operation *op, HostParams &params);

  /// The entry of \p param in this turn of its loops.
  Value numberOf(OpBuilder &b, Location loc, const HostParam &param) {
    Value turn;
    for (scf::ForOp loop : param.loops) {
      int64_t low = *getConstantIntValue(loop.getLowerBound()),
              high = *getConstantIntValue(loop.getUpperBound()),
              step = *getConstantIntValue(loop.getStep());
      auto at = arith::SubIOp::create(
          b, loc, toI64(b, loc, loop.getInductionVar()), i64(b, loc, low));
      Value own = arith::DivSIOp::create(b, loc, at, i64(b, loc, step));
      if (turn) {
        Value turns = i64(b, loc, llvm::divideCeil(high - low, step));
        own = arith::AddIOp::create(
            b, loc, arith::MulIOp::create(b, loc, turn, turns), own);
      }
      turn = own;
    }
    Value first =
        i32(b, loc, mutated("lower-host.first-parameter") ? 0 : param.number);
    if (!turn)
      return first;
    return arith::AddIOp::create(
        b, loc, first, arith::TruncIOp::create(b, loc, b.getI32Type(), turn));
  }

  void lowerParam(OpBuilder &b, attn::ParamOp op, const HostParam &param) {
    Location loc = op.getLoc();
    auto type = cast<MemRefType>(op.getResult().getType());
    SmallVector<Value> indices;
    for (unsigned operand : param.indices)
      indices.push_back(mutated("lower-host.parameter-of-turn-0")
                            ? i64(b, loc, 0)
                            : toI64(b, loc, op.getIndices()[operand]));
    Value array = i64Array(b, op, indices);
    Value number = numberOf(b, loc, param);
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

  /// The memory of a slot: what init kept, or what it will keep.
  void lowerKept(OpBuilder &b, Operation *op, Value slot, Value memory,
                 bool fill) {
    Location loc = op->getLoc();
    auto type = cast<MemRefType>(memory.getType());
    Value number = arith::IndexCastOp::create(b, loc, b.getI32Type(), slot);
    SmallVector<Value> sizes;
    for (int64_t size : type.getShape())
      sizes.push_back(i64(b, loc, size));
    Value bytes = i64(
        b, loc, type.getNumElements() * elementBytes(type.getElementType()));
    Value data = call(b, loc, fill ? "heed_host_keep" : "heed_host_kept",
                      pointer, {handle(op), number, bytes});
    memory.replaceAllUsesWith(memrefOver(b, loc, type, data, sizes));
  }

  LogicalResult lowerRequire(OpBuilder &b, attn::RequireOp op) {
    Location loc = op.getLoc();
    Value yes = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
    Value fails =
        mutated("lower-host.negate-require")
            ? op.getCondition()
            : Value(arith::XOrIOp::create(b, loc, op.getCondition(), yes));
    auto branch = scf::IfOp::create(b, loc, fails, /*withElseRegion=*/false);
    OpBuilder inside = branch.getThenBodyBuilder();
    SmallVector<Value> values;
    for (Value value : op.getValues())
      values.push_back(toI64(inside, loc, value));
    Value array = i64Array(inside, op, values);
    // What data says fails as an index out of range does.
    call(inside, loc,
         op->hasAttr(attn::kOfDataAttr) ? "heed_host_range_failed"
                                        : "heed_host_require_failed",
         Type(),
         {handle(op), text(inside, loc, op.getMessage()),
          i32(inside, loc, values.size()), array},
         /*returns=*/false);
    return success();
  }

  void lowerRequireInRange(OpBuilder &b, attn::RequireInRangeOp op) {
    Location loc = op.getLoc();
    auto type = cast<MemRefType>(op.getTensor().getType());
    Strided tensor = decompose(b, loc, op.getTensor());
    auto name = op->getAttrOfType<StringAttr>(attn::kNameAttr);
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

  /// Extents come from the caller: what is computed from some may not fit in 64
  /// bits.
  void lowerExtent(OpBuilder &b, Operation *op, StringRef function) {
    Location loc = op->getLoc();
    Value result = call(b, loc, function, b.getI64Type(),
                        {handle(op), toI64(b, loc, op->getOperand(0)),
                         toI64(b, loc, op->getOperand(1))});
    op->getResult(0).replaceAllUsesWith(toIndex(b, loc, result));
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

  Value halideBuffer(OpBuilder &b, Operation *user, Value memref,
                     Value largest) {
    Location loc = user->getLoc();
    auto type = cast<MemRefType>(memref.getType());
    Strided strided = decompose(b, loc, memref);
    Value buffer = stack(b, user, kHalideBufferBytes);
    Value dimensions = stack(b, user, kHalideDimensionBytes * type.getRank());
    auto [code, bits] = halideType(type.getElementType());
    call(b, loc, "heed_host_buffer", Type(),
         {handle(user), buffer, dimensions, strided.data, i32(b, loc, code),
          i32(b, loc, bits), i32(b, loc, type.getRank()),
          i64Array(b, user, strided.sizes), i64Array(b, user, strided.strides),
          largest});
    return buffer;
  }

  /// What \p op passes, by the names of its pipeline's inputs. The pipeline
  /// behind `else` takes those of the same names.
  llvm::StringMap<Value> argumentsOf(halide::CallOp op) {
    auto own = module.lookupSymbol<halide::PipelineOp>(op.getCallee());
    return own ? op.getArguments(own.getInputNames())
               : llvm::StringMap<Value>();
  }

  static StringRef nameOf(Operation *input) {
    return input->getAttrOfType<StringAttr>("name").getValue();
  }

  LogicalResult lowerKernelCall(OpBuilder &b, halide::CallOp op) {
    Location loc = op.getLoc();
    FailureOr<Value> stands = callKernel(b, op, op.getCallee());
    if (failed(stands) || !op.getOtherwise())
      return stands;
    Value gaveUp = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                         *stands, i32(b, loc, 0));
    auto again = scf::IfOp::create(b, loc, gaveUp, /*withElseRegion=*/false);
    OpBuilder inside = again.getThenBodyBuilder();
    return callKernel(inside, op, *op.getOtherwise());
  }

  /// The code of \p callee, which takes an array of its arguments.
  LLVM::LLVMFuncOp codeOf(OpBuilder &b, Location loc, StringRef callee) {
    std::string symbol = format("{}_argv", callee);
    auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(symbol);
    if (!function) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(module.getBody());
      function = LLVM::LLVMFuncOp::create(
          b, loc, symbol,
          LLVM::LLVMFunctionType::get(b.getI32Type(), {pointer}));
    }
    return function;
  }

  /// Calls \p callee with the inputs of \p op that it takes. Returns an i32: 0
  /// where it gave up.
  FailureOr<Value> callKernel(OpBuilder &b, halide::CallOp op,
                              StringRef callee) {
    Location loc = op.getLoc();
    auto pipeline = module.lookupSymbol<halide::PipelineOp>(callee);
    if (!pipeline)
      return op.emitError("no pipeline '") << callee << "'";
    SmallVector<Operation *> formals = pipeline.getInputs();
    auto limit = pipeline->getAttrOfType<IntegerAttr>(attn::kLargestAttr);
    Value largest = i64(b, loc, limit ? limit.getInt() : attn::kMaxExtent);
    // args[0] is the runtime's: the user context.
    SmallVector<Value> arguments{null(b, loc)};
    llvm::StringMap<Value> passed = argumentsOf(op);
    for (Operation *formal : formals) {
      Value actual = passed.lookup(nameOf(formal));
      if (!actual)
        return op.emitError() << "nothing is passed for input '"
                              << nameOf(formal) << "' of '" << callee << "'";
      if (isa<MemRefType>(actual.getType())) {
        arguments.push_back(halideBuffer(b, op, actual, largest));
        continue;
      }
      Value scalar = actual;
      Type wanted = cast<halide::ParamOp>(formal).getResult().getType();
      if (scalar.getType().isIndex())
        scalar = arith::TruncIOp::create(
            b, loc, wanted,
            call(b, loc, "heed_host_size", b.getI64Type(),
                 {handle(op), toI64(b, loc, scalar), largest}));
      if (wanted.isInteger(1))
        scalar = arith::ExtUIOp::create(b, loc, b.getI8Type(), scalar);
      Value slot = stack(b, op, 8);
      LLVM::StoreOp::create(b, loc, scalar, slot);
      arguments.push_back(slot);
    }
    for (Value out : op.getOuts())
      arguments.push_back(halideBuffer(b, op, out, largest));

    Value array = stack(b, op, 8 * arguments.size());
    for (auto [k, argument] : llvm::enumerate(arguments))
      LLVM::StoreOp::create(b, loc, argument, at(b, loc, array, 8 * k));

    auto *kernel = llvm::find(kernelSymbols, callee);
    auto [flops, bytes] = costOfCall(*this, b, op, passed, pipeline);
    // What the processor reads and writes may be newer on the device.
    bool amongOthers = pipeline.getOnHost() && halide::isForGPU(module);
    return call(b, loc,
                amongOthers ? "heed_device_host_kernel" : "heed_host_kernel",
                b.getI32Type(),
                {handle(op), i32(b, loc, kernel - kernelSymbols.begin()),
                 LLVM::AddressOfOp::create(b, loc, codeOf(b, loc, callee)),
                 array, i32(b, loc, arguments.size()),
                 i32(b, loc, op.getOuts().size()), flops, bytes});
  }

  /// Kernels of two models may meet in one process: their symbols get the
  /// model's prefix. Profiles show the name without it.
  LogicalResult renameKernels() {
    for (auto pipeline : module.getOps<halide::PipelineOp>()) {
      kernelNames.push_back(pipeline.getSymName().str());
      std::string symbol = format("{}_{}", prefix, kernelNames.back());
      if (failed(SymbolTable::replaceAllSymbolUses(
              pipeline.getSymNameAttr(),
              StringAttr::get(module.getContext(), symbol), module)))
        return pipeline.emitError("cannot rename this pipeline");
      pipeline.setSymName(symbol);
      kernelSymbols.push_back(symbol);
    }
    return success();
  }

  const std::string &prefix;
  SmallVector<std::string> kernelNames, kernelSymbols;
};

/// Whether \p op is replaced, and has no reader any more.
FailureOr<bool> HostCalls::lower(Operation *op, HostParams &params) {
  OpBuilder b(op);
  LogicalResult ok = success();
  if (auto param = dyn_cast<attn::ParamOp>(op))
    lowerParam(b, param, params.ops[op]);
  else if (auto kept = dyn_cast<attn::KeptOp>(op))
    lowerKept(b, op, kept.getSlot(), kept.getResult(), /*fill=*/false);
  else if (auto slot = dyn_cast<attn::SlotOp>(op))
    lowerKept(b, op, slot.getSlot(), slot.getMemory(), /*fill=*/true);
  else if (auto require = dyn_cast<attn::RequireOp>(op))
    ok = lowerRequire(b, require);
  else if (auto check = dyn_cast<attn::RequireInRangeOp>(op))
    lowerRequireInRange(b, check);
  else if (auto write = dyn_cast<attn::WriteStateOp>(op))
    lowerWriteState(*this, b, write);
  else if (auto call = dyn_cast<halide::CallOp>(op))
    ok = lowerKernelCall(b, call);
  else if (auto alloc = dyn_cast<memref::AllocOp>(op))
    ok = lowerAlloc(b, alloc);
  else if (auto dealloc = dyn_cast<memref::DeallocOp>(op))
    lowerDealloc(b, dealloc);
  else if (auto abs = dyn_cast<math::AbsIOp>(op))
    lowerAbs(b, abs);
  else if (auto copy = dyn_cast<memref::CopyOp>(op)) {
    // Upstream calls a function for arrays with gaps, which is not the
    // runtime's: they are copied by loops.
    if (isDense(copy.getSource()) && isDense(copy.getTarget()))
      return false;
    linalg::makeMemRefCopyOp(b, op->getLoc(), copy.getSource(),
                             copy.getTarget());
  } else if (isa<arith::MulIOp, arith::AddIOp, arith::SubIOp>(op) &&
             op->getResult(0).getType().isIndex())
    lowerExtent(b, op,
                isa<arith::MulIOp>(op)   ? "heed_host_multiply"
                : isa<arith::AddIOp>(op) ? "heed_host_add"
                                         : "heed_host_subtract");
  else if (auto expand = dyn_cast<memref::ExpandShapeOp>(op)) {
    lowerExpand(b, expand);
    if (!expand->use_empty())
      return false;
  } else if (isa<arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp,
                 arith::CeilDivSIOp>(op) &&
             op->getResult(0).getType().isIndex()) {
    guardDivisor(b, op);
    return false;
  } else
    return false;
  if (failed(ok))
    return failure();
  return true;
}

LogicalResult HostCalls::run() {
  if (failed(verifyHost(module)))
    return failure();
  FailureOr<HostParams> params = numberParams(module);
  if (failed(params) || failed(renameKernels()))
    return failure();
  SmallVector<func::FuncOp> functions;
  llvm::copy_if(
      module.getOps<func::FuncOp>(), std::back_inserter(functions),
      [](func::FuncOp function) { return !function->hasAttr(kCountsAttr); });
  for (func::FuncOp function : functions)
    (void)function.insertArgument(0, pointer, {}, function.getLoc());
  module.walk(
      [&](func::CallOp call) { call->insertOperands(0, handle(call)); });

  SmallVector<Operation *> ops;
  for (func::FuncOp function : functions)
    function.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    FailureOr<bool> isReplaced = lower(op, *params);
    if (failed(isReplaced))
      return failure();
    if (*isReplaced)
      op->erase();
  }
  return makeHostEntries(*this, functions,
                         {prefix, params->table, kernelNames});
}

struct LowerHost : heed::impl::AttnLowerHostBase<LowerHost> {
  using Base::Base;
  void runOnOperation() override {
    if (failed(HostCalls(getOperation(), prefix).run()))
      signalPassFailure();
  }
};

} // namespace
