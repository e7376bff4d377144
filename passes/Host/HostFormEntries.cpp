//===- HostFormEntries.cpp - models to entry points in destination style --===//
//
// `attn-form-entries`: a model that returns tensors becomes a function that
// writes them where its caller says, beside a function that only tells their
// extents. What is kept when a model is opened is written where it stays.
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/SymbolicDims.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "passes/Lower/KernelCalls.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "support/Format.h"
#include "llvm/ADT/SetVector.h"

namespace heed {
#define GEN_PASS_DEF_ATTNFORMENTRIES
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;

namespace {

/// The extent of \p tensor along \p axis as a value that computes no element,
/// or null. New ops go to \p builder's insertion point, which must stand after
/// everything the extent is made of.
Value extentOf(OpBuilder &builder, Value tensor, int64_t axis) {
  heed::attn::ExtentSource source = heed::attn::traceExtent(tensor, axis);
  Location loc = tensor.getLoc();
  if (source.fixed)
    return arith::ConstantIndexOp::create(builder, loc, *source.fixed);
  if (source.size)
    return source.size;
  auto result = dyn_cast<OpResult>(source.tensor);
  if (!result || isa<heed::attn::ParamOp>(result.getOwner()))
    return tensor::DimOp::create(builder, loc, source.tensor, source.axis);
  Operation *op = result.getOwner();
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    // Heads merge: the extents of a group multiply.
    Value product;
    ReassociationIndices group =
        collapse.getReassociationIndices()[source.axis];
    for (int64_t part : group) {
      Value extent = extentOf(builder, collapse.getSrc(), part);
      if (!extent)
        return nullptr;
      product =
          product && !heed::mutated("form-entries.last-of-merged-extents")
              ? Value(arith::MulIOp::create(builder, loc, product, extent))
              : extent;
    }
    return product;
  }
  if (auto loop = dyn_cast<scf::ForOp>(op))
    // A value that a rolled loop carries keeps its extents.
    return extentOf(builder, loop.getInitArgs()[result.getResultNumber()],
                    source.axis);
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    // Two ways to compute a tensor: either tells the extents, as long as they
    // come from outside.
    heed::attn::SymbolicDims dims;
    Value yes = branch.thenYield().getOperand(result.getResultNumber()),
          no = branch.elseYield().getOperand(result.getResultNumber());
    if (!dims.equal(dims.dim(yes, source.axis), dims.dim(no, source.axis)))
      return nullptr;
    for (Value yielded : {yes, no}) {
      Value extent = extentOf(builder, yielded, source.axis);
      if (extent &&
          !branch->isAncestor(extent.getParentRegion()->getParentOp()))
        return extent;
    }
    return nullptr;
  }
  if (auto shaped = dyn_cast<ReifyRankedShapedTypeOpInterface>(op)) {
    ReifiedRankedShapedTypeDims extents;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(op);
    if (succeeded(shaped.reifyResultShapes(builder, extents)))
      return getValueOrCreateConstantIndexOp(
          builder, loc, extents[result.getResultNumber()][source.axis]);
  }
  return nullptr;
}

/// Adds to \p slice what \p value is made of. Fails where an element of a
/// tensor would have to be computed, and names the culprit.
LogicalResult sliceBackward(Value value, llvm::SetVector<Operation *> &slice) {
  Operation *op = value.getDefiningOp();
  if (!op || slice.contains(op))
    return success();
  bool isSimple = isa<tensor::DimOp, heed::attn::ParamOp>(op) ||
                  isa_and_nonnull<arith::ArithDialect>(op->getDialect());
  if (!isSimple || op->getNumRegions())
    return op->emitError("an extent of a result depends on computed elements");
  for (Value operand : op->getOperands())
    if (failed(sliceBackward(operand, slice)))
      return failure();
  slice.insert(op);
  return success();
}

/// A dim of a computed tensor, replaced by what the tensor's extent is made of.
void forwardDims(func::FuncOp function) {
  SmallVector<tensor::DimOp> dims;
  function.walk([&](tensor::DimOp dim) { dims.push_back(dim); });
  for (tensor::DimOp dim : dims) {
    std::optional<int64_t> axis = dim.getConstantIndex();
    Operation *source = dim.getSource().getDefiningOp();
    if (!axis || !source || isa<heed::attn::ParamOp>(source))
      continue;
    OpBuilder builder(dim);
    if (Value extent = extentOf(builder, dim.getSource(), *axis)) {
      dim.replaceAllUsesWith(extent);
      dim.erase();
    }
  }
}

/// What a loop carries lies side by side: what may be part of another tensor is
/// copied before a turn takes it.
void carryDense(func::FuncOp function) {
  auto copyParts = [](Operation *before, MutableArrayRef<OpOperand> carried) {
    for (OpOperand &one : carried) {
      Value value = one.get();
      // What is written in place is what was carried.
      if (!isa<RankedTensorType>(value.getType()) ||
          value.getDefiningOp<tensor::InsertSliceOp>() ||
          !heed::mayLieApart(value))
        continue;
      OpBuilder builder(before);
      one.set(bufferization::AllocTensorOp::create(
          builder, before->getLoc(), cast<RankedTensorType>(value.getType()),
          ValueRange(), value));
    }
  };
  function.walk([&](scf::ForOp loop) {
    copyParts(loop, loop.getInitArgsMutable());
    Operation *yield = loop.getBody()->getTerminator();
    copyParts(yield, yield->getOpOperands());
  });
}

/// A copy of \p op, which computes nothing new, for each use behind the first.
void unshare(Operation *op) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : op->getUses())
    uses.push_back(&use);
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  for (OpOperand *use : ArrayRef(uses).drop_front(uses.empty() ? 0 : 1))
    use->set(builder.clone(*op)->getResult(0));
}

/// A tensor for each op that starts from it, filled or empty. Of one that
/// several share, the elimination of empty tensors would make a single result's
/// memory: the others would overwrite that result, and of the branches of an
/// `scf.if` only one would write where the result belongs.
void unshareInits(func::FuncOp function) {
  SmallVector<Operation *> fills, empties;
  function.walk([&](linalg::FillOp fill) {
    if (fill.getOutputs()[0].getDefiningOp<tensor::EmptyOp>())
      fills.push_back(fill);
  });
  llvm::for_each(fills, unshare);
  function.walk([&](tensor::EmptyOp empty) { empties.push_back(empty); });
  llvm::for_each(empties, unshare);
}

/// \p memory with the axes that \p collapse merges, or null. It stands as early
/// as the extents do, so that what computes the tensor can write there.
Value splitAxes(tensor::CollapseShapeOp collapse, Value memory,
                Operation *exit) {
  OpBuilder builder(exit);
  auto type = cast<RankedTensorType>(collapse.getSrc().getType());
  Operation *last = nullptr;
  SmallVector<OpFoldResult> extents;
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    if (!type.isDynamicDim(axis)) {
      extents.push_back(builder.getIndexAttr(type.getDimSize(axis)));
      continue;
    }
    Value extent = extentOf(builder, collapse.getSrc(), axis);
    if (!extent)
      return nullptr;
    extents.push_back(extent);
    Operation *def = extent.getDefiningOp();
    def = def ? exit->getBlock()->findAncestorOpInBlock(*def) : nullptr;
    if (def && (!last || last->isBeforeInBlock(def)))
      last = def;
  }
  if (extents.size() > 1 && heed::mutated("form-entries.swap-split-axes"))
    std::swap(extents[0], extents[1]);
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(exit->getBlock());
  return memref::ExpandShapeOp::create(
      builder, collapse.getLoc(), type.getShape(), memory,
      collapse.getReassociationIndices(), extents);
}

/// Writes \p value to \p memory in front of \p exit: a value of branches in
/// each of them, merged axes before they are merged, so that what computes it
/// can write in place.
void materialize(Value value, Value memory, Operation *exit) {
  auto choice = value.getDefiningOp<scf::IfOp>();
  if (choice && value.hasOneUse()) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    for (scf::YieldOp yield : {choice.thenYield(), choice.elseYield()})
      if (yield == choice.thenYield() ||
          !heed::mutated("form-entries.forget-else"))
        materialize(yield.getOperand(number), memory, yield);
    return;
  }
  if (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>();
      collapse && value.hasOneUse() && collapse.getSrc().hasOneUse())
    if (Value split = splitAxes(collapse, memory, exit))
      return materialize(collapse.getSrc(), split, exit);
  OpBuilder builder(exit);
  bufferization::MaterializeInDestinationOp::create(
      builder, exit->getLoc(), TypeRange{}, value, memory,
      /*restrict=*/true, /*writable=*/true);
}

/// Is \p value the state \p old with updates alone, also in loops? Then it lies
/// where that does.
bool isUpdated(Value value, Value old) {
  if (value == old)
    return true;
  if (auto update = value.getDefiningOp<heed::attn::UpdateStateOp>())
    return isUpdated(update.getState(), old);
  auto loop = value.getDefiningOp<scf::ForOp>();
  if (!loop)
    return false;
  unsigned number = cast<OpResult>(value).getResultNumber();
  return isUpdated(loop.getInitArgs()[number], old) &&
         isUpdated(loop.getYieldedValues()[number],
                   loop.getRegionIterArg(number));
}

/// The argument of the state of that name.
unsigned stateOf(func::FuncOp model, Attribute name) {
  unsigned k = 0;
  while (!model.getArgAttr(k, heed::attn::kStateAttr) ||
         model.getArgAttr(k, heed::attn::kNameAttr) != name)
    ++k;
  return k;
}

/// The extents of all results but states, in the order of their axes.
FailureOr<SmallVector<Value>> extentsOfResults(func::FuncOp model) {
  Operation *exit = model.getBody().front().getTerminator();
  OpBuilder inModel(exit);
  SmallVector<Value> extents;
  for (auto [k, result] : llvm::enumerate(exit->getOperands())) {
    if (model.getResultAttr(k, heed::attn::kStateAttr))
      continue; // it keeps its shape
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type)
      return model.emitError("a model's results are ranked tensors");
    for (int64_t axis = 0; axis < type.getRank(); ++axis) {
      Value extent = extentOf(inModel, result,
                              heed::mutated("form-entries.reverse-axes")
                                  ? type.getRank() - 1 - axis
                                  : axis);
      if (!extent)
        return model.emitError("no extent is known for axis ")
               << axis << " of a result";
      extents.push_back(extent);
    }
  }
  return extents;
}

/// Checks of the sizes come along: asking for shapes reports the same mistakes
/// as running does.
void addChecks(func::FuncOp model, llvm::SetVector<Operation *> &slice) {
  for (auto check : model.getBody().front().getOps<heed::attn::RequireOp>()) {
    llvm::SetVector<Operation *> wanted = slice;
    bool ok = true;
    for (Value operand : check->getOperands()) {
      DiagnosticEngine::HandlerID handler =
          check.getContext()->getDiagEngine().registerHandler(
              [](Diagnostic &) { return success(); });
      ok = ok && succeeded(sliceBackward(operand, wanted));
      check.getContext()->getDiagEngine().eraseHandler(handler);
    }
    if (!ok)
      continue;
    slice = wanted;
    slice.insert(check);
  }
}

/// A function \p name that does what \p slice of \p model does, and returns
/// \p extents.
void makeShapes(func::FuncOp model, StringRef name, ArrayRef<Value> extents,
                const llvm::SetVector<Operation *> &slice) {
  OpBuilder builder(model->getContext());
  builder.setInsertionPointAfter(model);
  auto function = func::FuncOp::create(
      builder, model.getLoc(), name,
      builder.getFunctionType(
          model.getArgumentTypes(),
          SmallVector<Type>(extents.size(), builder.getIndexType())));
  function.setPrivate();
  function->setAttr("attn.shapes_of",
                    FlatSymbolRefAttr::get(model.getNameAttr()));
  builder.setInsertionPointToStart(function.addEntryBlock());
  IRMapping mapping;
  mapping.map(model.getArguments(), function.getArguments());
  for (Operation &op : model.getBody().front())
    if (slice.contains(&op))
      builder.clone(op, mapping);
  SmallVector<Value> mapped;
  for (Value extent : extents)
    mapped.push_back(mapping.lookupOrDefault(extent));
  func::ReturnOp::create(builder, model.getLoc(), mapped);
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    function.setArgAttr(i, "bufferization.writable",
                        builder.getBoolAttr(false));
}

struct FormEntries : heed::impl::AttnFormEntriesBase<FormEntries> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> models;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr("attn.model"))
        models.push_back(function);
    for (func::FuncOp model : models) {
      forwardDims(model);
      carryDense(model);
      if (!heed::mutated("form-entries.share-inits"))
        unshareInits(model);
      if (failed(addShapes(model)) || failed(passDestinations(model)))
        return signalPassFailure();
    }
    SmallVector<heed::attn::KeepOp> keeps;
    getOperation().walk([&](heed::attn::KeepOp op) { keeps.push_back(op); });
    for (heed::attn::KeepOp op : keeps)
      keepInPlace(op);
  }

  /// What is kept is computed where it stays. The memory is asked for as soon
  /// as its slot is known, so that a computation after that may write there.
  void keepInPlace(heed::attn::KeepOp op) {
    auto type = cast<RankedTensorType>(op.getValue().getType());
    OpBuilder builder(op);
    builder.setInsertionPointAfterValue(op.getSlot());
    Value memory = heed::attn::SlotOp::create(
        builder, op.getLoc(),
        MemRefType::get(type.getShape(), type.getElementType()), op.getSlot());
    builder.setInsertionPoint(op);
    bufferization::MaterializeInDestinationOp::create(
        builder, op.getLoc(), TypeRange{}, op.getValue(), memory,
        /*restrict=*/true, /*writable=*/true);
    op.erase();
  }

  /// Makes `@<model>.shapes`: same arguments, extents of all results.
  LogicalResult addShapes(func::FuncOp model) {
    std::string name = heed::format("{}.shapes", model.getName());
    if (model->getParentOfType<ModuleOp>().lookupSymbol(name))
      return model.emitError("the model is an entry already: '")
             << name << "' stands beside it";
    FailureOr<SmallVector<Value>> extents = extentsOfResults(model);
    if (failed(extents))
      return failure();
    llvm::SetVector<Operation *> slice;
    for (Value extent : *extents)
      if (failed(sliceBackward(extent, slice)))
        return failure();
    addChecks(model, slice);
    makeShapes(model, name, *extents, slice);
    return success();
  }

  /// Makes the state that result \p k is memory that the call changes, if it is
  /// updated alone. Otherwise what it is after the call has memory of its own.
  bool updateInPlace(func::FuncOp model, unsigned k) {
    Operation *exit = model.getBody().front().getTerminator();
    unsigned state =
        stateOf(model, model.getResultAttr(k, heed::attn::kNameAttr));
    Value argument = model.getArgument(state);
    if (!isUpdated(exit->getOperand(k), argument))
      return false;
    auto type = cast<RankedTensorType>(argument.getType());
    auto memory = MemRefType::get(type.getShape(), type.getElementType());
    OpBuilder builder(&model.getBody().front(),
                      model.getBody().front().begin());
    auto tensor = bufferization::ToTensorOp::create(
        builder, model.getLoc(), type, argument, /*restrict=*/true,
        /*writable=*/true);
    argument.replaceAllUsesExcept(tensor, tensor);
    argument.setType(memory);
    SmallVector<Type> inputs(model.getArgumentTypes());
    inputs[state] = memory;
    model.setFunctionType(
        builder.getFunctionType(inputs, model.getFunctionType().getResults()));
    model.removeArgAttr(state, "bufferization.writable");
    builder.setInsertionPoint(exit);
    bufferization::MaterializeInDestinationOp::create(
        builder, exit->getLoc(), TypeRange{}, exit->getOperand(k), argument,
        /*restrict=*/true, /*writable=*/true);
    return true;
  }

  /// Results become memref arguments at the end, borrowed from the caller.
  LogicalResult passDestinations(func::FuncOp model) {
    Operation *exit = model.getBody().front().getTerminator();
    OpBuilder builder(exit);
    for (unsigned i = 0; i < model.getNumArguments(); ++i)
      if (isa<RankedTensorType>(model.getArgumentTypes()[i]))
        model.setArgAttr(i, "bufferization.writable",
                         builder.getBoolAttr(false));
    unsigned numResults = exit->getNumOperands();
    for (unsigned k = 0; k < numResults; ++k) {
      if (model.getResultAttr(k, heed::attn::kStateAttr) &&
          updateInPlace(model, k))
        continue;
      auto type = cast<RankedTensorType>(exit->getOperand(k).getType());
      DictionaryAttr attributes = model.getResultAttrDict(k);
      unsigned index = model.getNumArguments();
      if (failed(model.insertArgument(
              index, MemRefType::get(type.getShape(), type.getElementType()),
              attributes, model.getLoc())))
        return failure();
      model.setArgAttr(index, "attn.result", builder.getUnitAttr());
      unsigned from =
          k && exit->getOperand(0).getType() == exit->getOperand(k).getType() &&
                  heed::mutated("form-entries.write-first-result")
              ? 0
              : k;
      materialize(exit->getOperand(from), model.getArgument(index), exit);
    }
    exit->setOperands({});
    llvm::BitVector all(numResults, true);
    return model.eraseResults(all);
  }
};

} // namespace
