// Schedule ops: builders, and what each can be checked for alone. What needs
// the whole schedule is in PipelineVerifier.cpp.

#include "dialects/Halide/HalideDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace heed::halide;

bool heed::halide::isScheduleOp(Operation *op) {
  return isa<SplitOp, FuseOp, TileOp, ReorderOp, RenameOp, VectorizeOp,
             UnrollOp, ParallelOp, SerialOp, PartitionOp, AtomicOp, RFactorOp,
             PrefetchOp, PrefetchLinesOp, PrefetchNextOp, PrefetchSpreadOp,
             SpecializeOp, ComputeAtOp, ComputeWithOp, StoreAtOp,
             HoistStorageOp, ComputeRootOp, ComputeInlineOp, StoreRootOp,
             HoistStorageRootOp, StoreInOp, BoundVarOp, BoundExtentOp,
             AlignBoundsOp, AlignStorageOp, ReorderStorageOp, StreamStoresOp,
             TraceStoresOp, GPUBlocksOp, GPUThreadsOp, GPUSingleThreadOp>(op);
}

void SplitOp::build(OpBuilder &builder, OperationState &state, Value func,
                    int64_t stage, StringRef var, StringRef outer,
                    StringRef inner, int64_t factor, TailStrategy tail) {
  build(builder, state, func, stage, var, outer, inner,
        builder.getI64IntegerAttr(factor), Value(), tail);
}

void SplitOp::build(OpBuilder &builder, OperationState &state, Value func,
                    int64_t stage, StringRef var, StringRef outer,
                    StringRef inner, Value factor, TailStrategy tail) {
  build(builder, state, func, stage, var, outer, inner, IntegerAttr(), factor,
        tail);
}

void ReorderOp::build(OpBuilder &builder, OperationState &state, Value func,
                      int64_t stage, ArrayRef<StringRef> vars) {
  build(builder, state, func, stage, builder.getStrArrayAttr(vars));
}

static bool hasDuplicate(ArrayAttr names) {
  llvm::StringSet<> seen;
  return llvm::any_of(names.getAsValueRange<StringAttr>(),
                      [&](StringRef n) { return !seen.insert(n).second; });
}

/// schedule.c1 and schedule.c2.
static LogicalResult verifyTarget(Operation *op) {
  Value func = op->getOperand(0);
  if (!isa_and_nonnull<FuncOp, RFactorOp>(func.getDefiningOp()))
    return op->emitOpError("schedules '")
           << getFuncName(func) << "', expected a halide.func (schedule.c1)";
  Operation *parent = op->getParentOp();
  if (!isa_and_nonnull<PipelineOp, SpecializeOp>(parent))
    return op->emitOpError("stands in '")
           << (parent ? parent->getName().getStringRef() : "")
           << "', expected a pipeline";
  int64_t stages = 2;
  if (func.getDefiningOp<FuncOp>())
    stages = 1 + llvm::count_if(func.getUsers(), [](Operation *user) {
               return isa<UpdateOp>(user);
             });
  if (auto stage = op->getAttrOfType<IntegerAttr>("stage"))
    if (stage.getInt() >= stages)
      return op->emitOpError("names stage ")
             << stage.getInt() << ", but '" << getFuncName(func) << "' has "
             << stages << " (schedule.c2)";
  return success();
}

#define VERIFY_TARGET_ONLY(OP)                                                 \
  LogicalResult OP::verify() { return verifyTarget(*this); }
VERIFY_TARGET_ONLY(RenameOp)
VERIFY_TARGET_ONLY(VectorizeOp)
VERIFY_TARGET_ONLY(UnrollOp)
VERIFY_TARGET_ONLY(ParallelOp)
VERIFY_TARGET_ONLY(SerialOp)
VERIFY_TARGET_ONLY(PartitionOp)
VERIFY_TARGET_ONLY(AtomicOp)
VERIFY_TARGET_ONLY(PrefetchOp)
VERIFY_TARGET_ONLY(PrefetchLinesOp)
VERIFY_TARGET_ONLY(PrefetchNextOp)
VERIFY_TARGET_ONLY(PrefetchSpreadOp)
VERIFY_TARGET_ONLY(ComputeRootOp)
VERIFY_TARGET_ONLY(ComputeInlineOp)
VERIFY_TARGET_ONLY(StoreRootOp)
VERIFY_TARGET_ONLY(HoistStorageRootOp)
VERIFY_TARGET_ONLY(StoreInOp)
VERIFY_TARGET_ONLY(BoundVarOp)
VERIFY_TARGET_ONLY(BoundExtentOp)
VERIFY_TARGET_ONLY(AlignStorageOp)
VERIFY_TARGET_ONLY(TraceStoresOp)
VERIFY_TARGET_ONLY(GPUSingleThreadOp)
#undef VERIFY_TARGET_ONLY

template <typename Op> static LogicalResult verifyGPU(Op op) {
  size_t count = op.getVars().size();
  if (count < 1 || count > 3)
    return op.emitOpError("names ")
           << count << " vars, expected one to three (gpu.c1)";
  return verifyTarget(op);
}
LogicalResult GPUBlocksOp::verify() { return verifyGPU(*this); }
LogicalResult GPUThreadsOp::verify() { return verifyGPU(*this); }

LogicalResult SplitOp::verify() {
  if (getFactor().has_value() == static_cast<bool>(getDynamicFactor()))
    return emitOpError(
        "expected either a number or a value as factor (split.c1)");
  APInt factor;
  if (getDynamicFactor() &&
      matchPattern(getDynamicFactor(), m_ConstantInt(&factor)) && factor.sle(0))
    return emitOpError("factor is ")
           << factor.getSExtValue() << ", expected a positive one (split.c1)";
  if (getOuter() == getInner())
    return emitOpError("calls both loops '") << getOuter() << "' (split.c2)";
  return verifyTarget(*this);
}

SplitOp FactorOp::getSplit() {
  for (Operation *op = (*this)->getPrevNode(); op; op = op->getPrevNode())
    if (auto split = dyn_cast<SplitOp>(op);
        split && split.getFunc() == getFunc() &&
        split.getStage() == getStage() && split.getInner() == getLoop())
      return split;
  return {};
}

LogicalResult FactorOp::verify() {
  if (!getSplit())
    return emitOpError("found no halide.split above that makes loop '")
           << getLoop() << "' of '" << getFuncName(getFunc())
           << "' (factor.c1)";
  return success();
}

LogicalResult FuseOp::verify() {
  if (getInner() == getOuter())
    return emitOpError("fuses '") << getInner() << "' with itself (fuse.c1)";
  return verifyTarget(*this);
}

LogicalResult TileOp::verify() {
  size_t n = getVars().size();
  if (getOuter().size() != n || getInner().size() != n ||
      getFactors().size() != n ||
      llvm::any_of(getFactors(), [](int64_t factor) {
        return factor <= 0 || factor > std::numeric_limits<int32_t>::max();
      }))
    return emitOpError("expected as many outer vars, inner vars and positive "
                       "factors as vars (tile.c1)");
  return verifyTarget(*this);
}

LogicalResult ReorderOp::verify() {
  if (hasDuplicate(getVars()))
    return emitOpError("names a var twice (reorder.c1)");
  return verifyTarget(*this);
}

void ReorderStorageOp::build(OpBuilder &builder, OperationState &state,
                             Value func, ArrayRef<StringRef> vars) {
  build(builder, state, func, builder.getStrArrayAttr(vars));
}

LogicalResult ReorderStorageOp::verify() {
  if (getVars().size() < 2)
    return emitOpError("expected two vars or more (reorder_storage.c1)");
  if (hasDuplicate(getVars()))
    return emitOpError("names a var twice (reorder_storage.c1)");
  if (failed(verifyTarget(*this)))
    return failure();
  auto func = getFunc().getDefiningOp<FuncOp>();
  if (func && func.getVars().size() != getVars().size())
    return emitOpError("names ")
           << getVars().size() << " vars of '" << getFuncName(getFunc())
           << "', which has " << func.getVars().size()
           << " (reorder_storage.c2)";
  return success();
}

LogicalResult RFactorOp::verify() {
  if (failed(verifyTarget(*this)))
    return failure();
  if (getStage() == 0)
    return emitOpError("expected an update, found stage 0 (rfactor.c1)");
  if (getRvars().empty() || getRvars().size() != getVars().size())
    return emitOpError(
        "expected one new var for each reduction var (rfactor.c2)");
  return success();
}

LogicalResult SpecializeOp::verify() {
  if (failed(verifyTarget(*this)))
    return failure();
  for (Operation &op : getBody().front()) {
    auto stage = op.getAttrOfType<IntegerAttr>("stage");
    if (!isScheduleOp(&op) || op.getOperand(0) != getFunc() || !stage ||
        stage.getInt() != static_cast<int64_t>(getStage()) ||
        isa<RFactorOp>(op))
      return op.emitOpError("stands in halide.specialize, which holds "
                            "directives of stage ")
             << getStage() << " of '" << getFuncName(getFunc())
             << "' alone (specialize.c1)";
  }
  return success();
}

/// at.c1 as far as it concerns the op alone.
template <typename Op> static LogicalResult verifyAt(Op op) {
  if (op.getConsumer() == op.getFunc())
    return op.emitOpError("places '")
           << getFuncName(op.getFunc()) << "' inside itself (at.c1)";
  if (!isa_and_nonnull<FuncOp, RFactorOp>(op.getConsumer().getDefiningOp()))
    return op.emitOpError("places '")
           << getFuncName(op.getFunc()) << "' at a buffer (at.c1)";
  return verifyTarget(op);
}
LogicalResult ComputeAtOp::verify() { return verifyAt(*this); }
LogicalResult StoreAtOp::verify() { return verifyAt(*this); }
LogicalResult HoistStorageOp::verify() { return verifyAt(*this); }

LogicalResult ComputeWithOp::verify() {
  if (failed(verifyTarget(*this)))
    return failure();
  auto isPlainOutput = [](Value func) {
    return isa_and_nonnull<FuncOp>(func.getDefiningOp()) &&
           llvm::any_of(func.getUsers(), llvm::IsaPred<OutputOp>) &&
           llvm::none_of(func.getUsers(), [&](Operation *user) {
             auto update = dyn_cast<UpdateOp>(user);
             return update && update.getFunc() == func;
           });
  };
  for (Value func : {getFunc(), getOther()})
    if (!isPlainOutput(func))
      return emitOpError("names '")
             << getFuncName(func)
             << "', expected an output without updates (compute_with.c1)";
  if (getFunc() == getOther())
    return emitOpError("computes '")
           << getFuncName(getFunc()) << "' with itself (compute_with.c1)";
  return success();
}

LogicalResult StreamStoresOp::verify() {
  if (failed(verifyTarget(*this)))
    return failure();
  if (llvm::none_of(getFunc().getUsers(),
                    [](Operation *user) { return isa<OutputOp>(user); }) ||
      getElementTypes(getFunc()).size() != 1)
    return emitOpError("names '")
           << getFuncName(getFunc())
           << "', expected an output of one element type (stream_stores.c1)";
  return success();
}

LogicalResult AlignBoundsOp::verify() {
  if (getRemainder() >= getModulus())
    return emitOpError("remainder ")
           << getRemainder() << " is not below the modulus " << getModulus()
           << " (align_bounds.c1)";
  if (llvm::any_of(getFunc().getUsers(),
                   [](Operation *user) { return isa<OutputOp>(user); }))
    return emitOpError("aligns the output '")
           << getFuncName(getFunc())
           << "', which would be written past its end (align_bounds.c2)";
  return verifyTarget(*this);
}
