//===- Promote.cpp - reference-promote: arithmetic on f32 in f64 ----------===//
#include "compiler/Reference/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed::reference {
#define GEN_PASS_DEF_REFERENCEPROMOTE
#include "compiler/Reference/Passes.h.inc"

namespace {

Type promoted(Type type) {
  if (type.isF32())
    return Float64Type::get(type.getContext());
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(promoted(tensor.getElementType()));
  return type;
}

/// \p value, a scalar or tensor, with elements of \p element: an extension or
/// a rounding. A tensor's is a generic, so that its sizes stay visible.
Value converted(OpBuilder &b, Location loc, Value value, Type element) {
  auto convert = [&](OpBuilder &b, Value scalar) -> Value {
    if (scalar.getType().getIntOrFloatBitWidth() <
        element.getIntOrFloatBitWidth())
      return arith::ExtFOp::create(b, loc, element, scalar);
    return arith::TruncFOp::create(b, loc, element, scalar);
  };
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return convert(b, value);
  Value init = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, value), element);
  AffineMap id = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, init.getType(), value, init, ArrayRef<AffineMap>{id, id},
             loops,
             [&](OpBuilder &inner, Location, ValueRange args) {
               linalg::YieldOp::create(inner, loc, convert(inner, args[0]));
             })
      .getResult(0);
}

bool roundsToHalf(Operation *op) {
  return isa<arith::TruncFOp>(op) &&
         getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth() == 16;
}

/// Whether a small error in its operands may change \p op's result by much. To
/// 16 bits is such a step, and one that starts at the declared type.
bool isDiscrete(Operation *op) {
  return roundsToHalf(op) ||
         isa<arith::CmpFOp, arith::FPToSIOp, arith::FPToUIOp, arith::BitcastOp,
             math::FloorOp, math::CeilOp, math::RoundOp, math::RoundEvenOp,
             math::TruncOp>(op);
}

/// Whether \p value is one number of what was given, in whatever type: nothing
/// is computed of which a kernel's result might be another.
bool isGiven(Value value) {
  while (auto widening = value.getDefiningOp<arith::ExtFOp>())
    value = widening.getIn();
  auto arg = dyn_cast<BlockArgument>(value);
  if (!arg)
    return value.getDefiningOp() &&
           value.getDefiningOp()->getName().getStringRef() == "attn.param";
  Operation *owner = arg.getOwner()->getParentOp();
  if (isa<func::FuncOp>(owner))
    return true;
  auto generic = dyn_cast<linalg::GenericOp>(owner);
  return generic && isGiven(generic.getMatchingOpOperand(arg)->get());
}

/// A constant of f32 as one of f64; others as they are.
TypedAttr promoted(TypedAttr attr, Builder &b) {
  if (!getElementTypeOrSelf(attr.getType()).isF32())
    return attr;
  auto widen = [](APFloat value) {
    bool lossy;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
    return value;
  };
  if (auto scalar = dyn_cast<FloatAttr>(attr))
    return b.getFloatAttr(b.getF64Type(), widen(scalar.getValue()));
  return cast<DenseFPElementsAttr>(attr).mapValues(
      b.getF64Type(),
      [&](const APFloat &value) { return widen(value).bitcastToAPInt(); });
}

/// Makes the readers of \p value, but those that only ask for its size or bits,
/// read \p replacement() instead.
void redirect(Value value, llvm::function_ref<Value()> replacement) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : value.getUses())
    if (!isa<tensor::DimOp, arith::BitcastOp>(use.getOwner()))
      uses.push_back(&use);
  if (uses.empty())
    return;
  Value by = replacement();
  for (OpOperand *use : uses)
    use->set(by);
}

/// Ops of a function by what becomes of them.
struct Parts {
  SmallVector<Operation *> widenings, roundings, others;
  /// Their operands keep the types of a signature.
  SmallVector<std::pair<Operation *, SmallVector<Type>>> calls;
  /// Values that come from outside, in declared types.
  SmallVector<Value> sources;

  explicit Parts(func::FuncOp function) : sources(function.getArguments()) {
    function.getBody().walk([&](Operation *op) { add(op); });
  }

  void add(Operation *op) {
    auto fromTo = [&](auto from, auto to) {
      return from(getElementTypeOrSelf(op->getOperand(0))) &&
             to(getElementTypeOrSelf(op->getResult(0)));
    };
    auto isF32 = [](Type type) { return type.isF32(); };
    auto isF64 = [](Type type) { return type.isF64(); };
    StringRef name = op->getName().getStringRef();
    if (isa<arith::ExtFOp>(op) && fromTo(isF32, isF64))
      widenings.push_back(op);
    else if (isa<arith::TruncFOp>(op) && fromTo(isF64, isF32))
      roundings.push_back(op);
    else if (name == "attn.param" || name == "attn.kept")
      sources.push_back(op->getResult(0));
    else if (name == "attn.keep")
      calls.emplace_back(op, llvm::to_vector(op->getOperandTypes()));
    else if (isa<func::CallOp>(op)) {
      calls.emplace_back(op, llvm::to_vector(op->getOperandTypes()));
      llvm::append_range(sources, op->getResults());
    } else
      others.push_back(op);
  }
};

struct Promote : impl::ReferencePromoteBase<Promote> {
  using ReferencePromoteBase::ReferencePromoteBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    if (failed(checkTypes(function)))
      return signalPassFailure();
    OpBuilder b(&getContext());
    roundDiscrete(function, b);
    Parts parts(function);
    for (Operation *op : parts.others)
      promote(op, b);
    redirectToF64(parts, b);
    for (Operation *op : parts.widenings) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    }
    for (auto &[call, types] : parts.calls)
      restore(call, types, b);
    SmallVector<Type> results(function.getResultTypes());
    if (f64Results)
      for (Type &type : results)
        type = promoted(type);
    function.walk([&](func::ReturnOp op) { restore(op, results, b); });
    function.setFunctionType(
        FunctionType::get(&getContext(), function.getArgumentTypes(), results));
  }

private:
  /// Bodies of what the pass understands hold numbers and ranked tensors.
  LogicalResult checkTypes(func::FuncOp function) {
    auto isOther = [](Type type) {
      return isa<BaseMemRefType, UnrankedTensorType, VectorType>(type);
    };
    WalkResult found = function.walk([&](Operation *op) {
      SmallVector<Type> types(op->getOperandTypes());
      llvm::append_range(types, op->getResultTypes());
      if (op == function)
        llvm::append_range(types, function.getArgumentTypes());
      auto *other = llvm::find_if(types, isOther);
      if (other == types.end())
        return WalkResult::advance();
      op->emitError("expected numbers and ranked tensors, found ") << *other;
      return WalkResult::interrupt();
    });
    return failure(found.wasInterrupted());
  }

  /// What feeds a discrete op is widened and rounded: later the widening falls
  /// away and the rounding stays.
  void roundDiscrete(func::FuncOp function, OpBuilder &b) {
    Type f32 = b.getF32Type();
    function.walk([&](Operation *op) {
      if (!isDiscrete(op))
        return;
      b.setInsertionPoint(op);
      for (OpOperand &operand : op->getOpOperands())
        if (operand.get().getType() == f32) {
          Value wide = arith::ExtFOp::create(b, op->getLoc(), b.getF64Type(),
                                             operand.get());
          if (nudge != 0 && roundsToHalf(op) && !isGiven(operand.get()))
            wide = arith::MulFOp::create(
                b, op->getLoc(), wide,
                arith::ConstantOp::create(b, op->getLoc(),
                                          b.getF64FloatAttr(1 + nudge)));
          operand.set(arith::TruncFOp::create(b, op->getLoc(), f32, wide));
        }
    });
  }

  void promote(Operation *op, OpBuilder &b) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      constant.setValueAttr(promoted(constant.getValue(), b));
    for (OpResult result : op->getResults())
      result.setType(promoted(result.getType()));
    for (Region &region : op->getRegions())
      for (BlockArgument arg : region.getArguments())
        arg.setType(promoted(arg.getType()));
  }

  /// What has a declared type is used in f64.
  void redirectToF64(const Parts &parts, OpBuilder &b) {
    Type f64 = b.getF64Type();
    for (Operation *op : parts.roundings) {
      b.setInsertionPointAfter(op);
      redirect(op->getResult(0), [&] {
        return converted(b, op->getLoc(), op->getResult(0), f64);
      });
    }
    for (Value source : parts.sources) {
      if (!getElementTypeOrSelf(source).isF32())
        continue;
      b.setInsertionPointAfterValue(source);
      redirect(source,
               [&] { return converted(b, source.getLoc(), source, f64); });
    }
  }

  /// Narrows operands to the types of a signature.
  void restore(Operation *op, TypeRange types, OpBuilder &b) {
    b.setInsertionPoint(op);
    for (auto [operand, type] : llvm::zip(op->getOpOperands(), types)) {
      Type want = getElementTypeOrSelf(type);
      if (getElementTypeOrSelf(operand.get()) != want)
        operand.set(converted(b, op->getLoc(), operand.get(), want));
    }
  }
};

} // namespace
} // namespace heed::reference
