//===- KernelCalls.cpp - what calls of a kernel pass to its pipeline ------===//
#include "passes/Lower/KernelCalls.h"
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/SymbolicDims.h"
#include "passes/Lower/AttentionCalls.h"
#include "passes/Lower/CallerExtents.h"
#include "passes/Lower/MaskTables.h"
#include "passes/Masks/MaskBounds.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace heed;

FailureOr<halide::CallOp> heed::rewriteCall(func::CallOp call,
                                            func::FuncOp kernel) {
  OpBuilder b(call);
  Location loc = call.getLoc();
  Operation *ret = kernel.getBody().front().getTerminator();
  SmallVector<Value> outs;
  for (Value result : ret->getOperands()) {
    auto type = cast<RankedTensorType>(result.getType());
    SmallVector<Value> sizes;
    for (int64_t axis = 0; axis < type.getRank(); ++axis) {
      if (!type.isDynamicDim(axis))
        continue;
      FailureOr<CallerExtent> extent = callerExtent(result, axis);
      if (failed(extent))
        return failure();
      sizes.push_back(getValueOrCreateConstantIndexOp(
          b, loc, extentAt(b, loc, call.getOperands(), *extent)));
    }
    outs.push_back(tensor::EmptyOp::create(b, loc, type.getShape(),
                                           type.getElementType(), sizes));
  }
  auto halideCall =
      halide::CallOp::create(b, loc, call.getResultTypes(), call.getCallee(),
                             call.getOperands(), outs);
  call.replaceAllUsesWith(halideCall.getResults());
  call.erase();
  return halideCall;
}

SmallVector<Value> heed::neededByLse(func::FuncOp kernel) {
  SmallVector<Value> sizes;
  kernel.walk([&](attn::FinishOp finish) {
    auto op = finish.getAccumulator().getDefiningOp<attn::OnlineAttentionOp>();
    if (!finish.getLse() || finish.getLse().use_empty() ||
        op.numDims(attn::DimKind::Value) == 0)
      return;
    Value size = op.getSizes()[op.firstDim(attn::DimKind::Value)];
    if (getConstantIntValue(size).value_or(0) == 0)
      sizes.push_back(size);
  });
  return sizes;
}

void heed::tracePairs(halide::PipelineOp pipeline) {
  OpBuilder b = OpBuilder::atBlockEnd(&pipeline.getBody().front());
  for (auto func : llvm::to_vector(pipeline.getOps<halide::FuncOp>()))
    if (StringRef name = halide::getFuncName(func.getResult());
        name.starts_with("p_full") || name.starts_with("p_part"))
      halide::TraceStoresOp::create(b, func.getLoc(), func.getResult());
}

LogicalResult heed::branchWhereEmpty(ArrayRef<halide::CallOp> calls,
                                     ArrayRef<Value> sizes, StringRef name) {
  for (Value size : sizes) {
    FailureOr<CallerExtent> extent = callerSize(size);
    if (failed(extent))
      return failure();
    for (halide::CallOp call : calls) {
      OpBuilder b(call);
      Location loc = call.getLoc();
      Value count = getValueOrCreateConstantIndexOp(
          b, loc, extentAt(b, loc, call.getInputs(), *extent));
      Value zero = arith::ConstantIndexOp::create(b, loc, 0);
      branch(
          call,
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, count, zero),
          name);
    }
  }
  return success();
}

LogicalResult heed::callMaskTables(halide::CallOp call,
                                   const MaskRequest &request, StringRef name) {
  OpBuilder b(call);
  Location loc = call.getLoc();
  auto op = cast<attn::AttentionLike>(request.op);
  FailureOr<MaskBounds> bounds = readMask(op);
  if (failed(bounds))
    return failure();
  SmallVector<Value> outs;
  SmallVector<Type> types;
  SmallVector<MaskArray> arrays = maskArrays(op, *bounds, request.tiling);
  for (const MaskArray &array : arrays) {
    SmallVector<OpFoldResult> sizes;
    for (MaskArray::Axis axis : array.axes) {
      if (!axis.dim) {
        sizes.push_back(b.getIndexAttr(axis.size));
        continue;
      }
      FailureOr<CallerExtent> extent = callerSize(op.getSizes()[*axis.dim]);
      if (failed(extent))
        return failure();
      OpFoldResult size = extentAt(b, loc, call.getInputs(), *extent);
      if (axis.size > 1) {
        // One piece at least: it is read where there are no keys, too.
        if (extent->fixed) {
          size = b.getIndexAttr(std::max<int64_t>(
              1, llvm::divideCeil(*extent->fixed, axis.size)));
        } else {
          auto number = [&](int64_t value) -> Value {
            return arith::ConstantIndexOp::create(b, loc, value);
          };
          Value some =
              arith::MaxUIOp::create(b, loc, cast<Value>(size), number(1));
          Value up = arith::AddIOp::create(b, loc, some, number(axis.size - 1));
          size =
              arith::DivUIOp::create(b, loc, up, number(axis.size)).getResult();
        }
      }
      if (axis.more > 0) {
        Value more = arith::ConstantIndexOp::create(b, loc, axis.more);
        size = b.createOrFold<arith::AddIOp>(
            loc, getValueOrCreateConstantIndexOp(b, loc, size), more);
      }
      sizes.push_back(size);
    }
    outs.push_back(tensor::EmptyOp::create(b, loc, sizes, array.element));
    types.push_back(outs.back().getType());
  }
  auto tables =
      halide::CallOp::create(b, loc, types, name, call.getInputs(), outs);
  for (auto [array, table] : llvm::zip_equal(arrays, tables.getResults()))
    call.pass(array.name, table);
  return success();
}

halide::CallOp heed::packInputs(halide::CallOp call, KernelInfo &kernel,
                                ArrayRef<StringRef> inputs,
                                ArrayRef<StringAttr> packers) {
  OpBuilder b(call);
  Location loc = call.getLoc();
  llvm::StringMap<Value> operands = call.getArguments(inputs);
  // Before the choice of a form: the others read the same.
  Operation *before = call;
  auto readsFrom = [&](Operation *branch) {
    return llvm::any_of(operands, [&](const auto &input) {
      Operation *def = input.second.getDefiningOp();
      return def && branch->isProperAncestor(def);
    });
  };
  while (isa<scf::IfOp>(before->getParentOp()) &&
         !readsFrom(before->getParentOp()))
    before = before->getParentOp();
  b.setInsertionPoint(before);
  for (auto [packing, packer] : llvm::zip_equal(kernel.packings, packers)) {
    Value out = tensor::EmptyOp::create(b, loc, packing.sizes, packing.element);
    SmallVector<Value> sources;
    for (StringRef input : packing.inputs)
      sources.push_back(operands.lookup(input));
    operands[packing.name] =
        halide::CallOp::create(b, loc, out.getType(), packer.getValue(),
                               sources, out)
            .getResult(0);
  }
  b.setInsertionPoint(call);
  // What it passes as before stays without a name.
  llvm::StringSet<> named;
  if (ArrayAttr names = call.getNamesAttr())
    for (StringRef name : names.getAsValueRange<StringAttr>())
      named.insert(name);
  for (const Packing &packing : kernel.packings)
    named.insert(packing.name);
  SmallVector<StringRef> now = kernel.pipeline.getInputNames();
  SmallVector<Value> unnamed;
  for (StringRef input : now)
    if (!named.contains(input))
      unnamed.push_back(operands.lookup(input));
  auto fresh = halide::CallOp::create(
      b, loc, call.getResultTypes(), call.getCallee(), unnamed, call.getOuts());
  for (StringRef input : now)
    if (named.contains(input))
      fresh.pass(input, operands.lookup(input));
  call.replaceAllUsesWith(fresh.getResults());
  call.erase();
  return fresh;
}

static bool isView(Operation *op) {
  return isa_and_nonnull<tensor::CastOp, tensor::CollapseShapeOp,
                         tensor::ExpandShapeOp>(op);
}

/// Whether \p value is part of another tensor.
static bool isSlice(Value value) {
  Operation *def = value.getDefiningOp();
  if (isView(def))
    return isSlice(def->getOperand(0));
  if (auto branch = dyn_cast_or_null<scf::IfOp>(def)) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    return isSlice(branch.thenYield().getOperand(number)) ||
           isSlice(branch.elseYield().getOperand(number));
  }
  return isa_and_nonnull<tensor::ExtractSliceOp>(def);
}

/// Whether \p value becomes part of another tensor.
static bool isInserted(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto insert = dyn_cast<tensor::InsertSliceOp>(user))
      return use.get() == insert.getSource();
    if (isa<scf::YieldOp>(user) && isa<scf::IfOp>(user->getParentOp()))
      return isInserted(user->getParentOp()->getResult(use.getOperandNumber()));
    return isView(user) && isInserted(user->getResult(0));
  });
}

bool heed::mayLieApart(Value tensor) {
  while (isView(tensor.getDefiningOp())) {
    if (isInserted(tensor))
      return true;
    tensor = tensor.getDefiningOp()->getOperand(0);
  }
  return isSlice(tensor) || isInserted(tensor);
}

void heed::allowSlices(KernelInfo &kernel, ArrayRef<halide::CallOp> calls,
                       ArrayRef<StringRef> inputs) {
  llvm::StringSet<> names;
  llvm::SmallPtrSet<Value, 4> apart;
  for (halide::CallOp call : calls) {
    for (auto [name, actual] : llvm::zip(inputs, call.getInputs()))
      if (isa<RankedTensorType>(actual.getType()) && mayLieApart(actual) &&
          !mutated("kernel-algorithm.slices-are-dense"))
        names.insert(name);
    if (llvm::any_of(call->getResults(), isInserted))
      for (halide::FuncOp output : kernel.pipeline.getOutputFuncs())
        apart.insert(output.getResult());
  }
  for (Operation *input : kernel.pipeline.getInputs())
    if (names.contains(input->getAttrOfType<StringAttr>("name").getValue()))
      apart.insert(input->getResult(0));
  for (auto stride : llvm::make_early_inc_range(
           kernel.pipeline.getBody().front().getOps<halide::SetStrideOp>()))
    if (stride.getDim() > 0 && apart.contains(stride.getFunc()))
      stride.erase();
}

/// Whether \p count is 0 or above \p most for all sizes: each of its terms
/// is. 197 rows a picture are never one row.
static bool isNoneOrMore(const Size &count, int64_t most) {
  return llvm::all_of(count.terms, [&](const auto &term) {
    return term.second > llvm::DynamicAPInt(most);
  });
}

SmallVector<halide::CallOp> heed::branchAtRows(ArrayRef<halide::CallOp> calls,
                                               unsigned rows, int64_t most,
                                               StringRef name) {
  attn::SymbolicDims dims;
  SmallVector<halide::CallOp> chosen;
  for (halide::CallOp call : calls) {
    Value count = call.getInputs()[rows];
    Size rowsOfCall = dims.size(count);
    if (isNoneOrMore(rowsOfCall, most) ||
        dims.isNeverNegative(rowsOfCall - (most + 1)))
      continue;
    OpBuilder b(call);
    Location loc = call.getLoc();
    Value isFew = arith::CmpIOp::create(
        b, loc,
        most == 1 ? arith::CmpIPredicate::eq : arith::CmpIPredicate::sle, count,
        arith::ConstantIndexOp::create(b, loc, most));
    chosen.push_back(branch(call, isFew, name));
  }
  return chosen;
}
