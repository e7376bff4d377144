//===- DeviceCalls.cpp - hosts whose kernels run on a device --------------===//
//
// Between two kernels a host reads and writes a few tensors itself: copies of
// what a loop carries, tables, scalars. Each such place says so to the runtime,
// which knows which side has the newer data.
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/DeviceCalls.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "passes/Host/HostBuilder.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed;

namespace {

/// Pointers and flags of upstream's deallocation: no kernel knows them.
constexpr StringLiteral deallocation = "dealloc_helper";

bool isTensor(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  return type && !type.getElementType().isIndex();
}

/// \p generic as a copy of its input to its output, element by element.
bool isCopy(linalg::GenericOp generic) {
  auto yield =
      cast<linalg::YieldOp>(generic.getRegion().front().getTerminator());
  return generic.getNumDpsInputs() == 1 && generic.getNumDpsInits() == 1 &&
         llvm::all_of(generic.getIndexingMapsArray(),
                      [](AffineMap map) { return map.isIdentity(); }) &&
         yield.getOperand(0) == generic.getRegionInputArgs().front();
}

class DeviceCalls : public HostBuilder {
public:
  using HostBuilder::HostBuilder;

  LogicalResult run() {
    auto description =
        module->getAttrOfType<DictionaryAttr>("attn.description");
    for (auto [k, attribute] :
         llvm::enumerate(description.getAs<ArrayAttr>("entries"))) {
      auto entry = cast<DictionaryAttr>(attribute);
      frame(entry.getAs<FlatSymbolRefAttr>("run"), k, /*leaves=*/true);
      frame(entry.getAs<FlatSymbolRefAttr>("shapes"), -1, /*leaves=*/false);
    }
    if (auto init = description.getAs<FlatSymbolRefAttr>("init"))
      frame(init, -1, /*leaves=*/true);
    redirect();
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.getName() == deallocation || !hasHandle(function))
        continue;
      SmallVector<Operation *> ops;
      function.walk([&](Operation *op) { ops.push_back(op); });
      for (Operation *op : ops)
        if (failed(guard(op)))
          return failure();
    }
    return success();
  }

private:
  bool hasHandle(func::FuncOp function) {
    return !function.isExternal() && function.getNumArguments() &&
           isa<LLVM::LLVMPointerType>(function.getArgumentTypes().front());
  }

  /// Says where a C function of the model begins and ends.
  void frame(FlatSymbolRefAttr symbol, int64_t entry, bool leaves) {
    auto function = module.lookupSymbol<func::FuncOp>(symbol.getValue());
    OpBuilder b = OpBuilder::atBlockBegin(&function.front());
    Location loc = function.getLoc();
    call(b, loc, "heed_device_enter", Type(),
         {function.getArgument(0), i32(b, loc, entry)});
    if (!leaves)
      return;
    function.walk([&](func::ReturnOp end) {
      b.setInsertionPoint(end);
      call(b, loc, "heed_device_leave", Type(),
           {function.getArgument(0), i32(b, loc, entry)});
    });
  }

  /// Calls of heed_host_* that have a heed_device_*.
  void redirect() {
    for (StringRef name : {"alloc", "free", "param", "keep", "kept", "buffer",
                           "kernel", "update", "check_range"}) {
      auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(
          heed::format("heed_host_{}", name));
      if (!function)
        continue;
      auto other = StringAttr::get(module.getContext(),
                                   heed::format("heed_device_{}", name));
      (void)SymbolTable::replaceAllSymbolUses(function, other, module);
      function.setSymName(other);
    }
  }

  void say(OpBuilder &b, Operation *op, StringRef what, Value memref) {
    if (!isTensor(memref))
      return;
    Location loc = op->getLoc();
    auto type = cast<MemRefType>(memref.getType());
    Strided at = decompose(b, loc, memref);
    call(b, loc, heed::format("heed_device_{}", what), Type(),
         {handle(op), at.data, i64(b, loc, elementBytes(type.getElementType())),
          i32(b, loc, type.getRank()), i64Array(b, op, at.sizes),
          i64Array(b, op, at.strides)});
  }

  void copy(OpBuilder &b, Operation *op, Value from, Value to) {
    Location loc = op->getLoc();
    auto type = cast<MemRefType>(to.getType());
    Strided source = decompose(b, loc, from), target = decompose(b, loc, to);
    call(b, loc, "heed_device_copy", Type(),
         {handle(op), target.data, source.data,
          i64(b, loc, elementBytes(type.getElementType())),
          i32(b, loc, type.getRank()), i64Array(b, op, target.sizes),
          i64Array(b, op, target.strides), i64Array(b, op, source.strides)});
    op->erase();
  }

  /// What \p op reads and writes of tensors.
  LogicalResult guard(Operation *op) {
    OpBuilder b(op);
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      say(b, op, "reads", load.getMemref());
    } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
      say(b, op, "writes", store.getMemref());
    } else if (auto move = dyn_cast<memref::CopyOp>(op)) {
      copy(b, op, move.getSource(), move.getTarget());
    } else if (auto generic = dyn_cast<linalg::GenericOp>(op);
               generic && isCopy(generic)) {
      copy(b, op, generic.getDpsInputs().front(),
           generic.getDpsInits().front());
    } else if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
      for (Value input : structured.getDpsInputs())
        say(b, op, "reads", input);
      for (Value output : structured.getDpsInits())
        say(b, op, "writes", output);
    } else if (auto callee = dyn_cast<func::CallOp>(op)) {
      // A function with a handle asks itself; one without only reads.
      auto function = module.lookupSymbol<func::FuncOp>(callee.getCallee());
      if (!hasHandle(function))
        for (Value argument : callee.getOperands())
          say(b, op, "reads", argument);
    } else if (isUnknown(op)) {
      return op->emitOpError("is not known to code for a device: what does it "
                             "read and write?");
    }
    return success();
  }

  /// Whether it is none of what makes views and memory alone.
  bool isUnknown(Operation *op) {
    if (llvm::none_of(op->getOperands(), isTensor))
      return false;
    return !isa<ViewLikeOpInterface, memref::DimOp,
                memref::ExtractStridedMetadataOp,
                memref::ExtractAlignedPointerAsIndexOp, memref::CastOp,
                UnrealizedConversionCastOp>(op) &&
           !op->hasTrait<OpTrait::IsTerminator>() &&
           !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() && !isPure(op);
  }
};

} // namespace

LogicalResult heed::addDeviceCalls(ModuleOp module) {
  return DeviceCalls(module).run();
}
