//===- MergeRows.cpp - a batch of rows as one dim of rows -----------------===//
#include "passes/Kernels/MergeRows.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace heed;

namespace {

/// Which tensors of a kernel have loops 0 and 1 as their axes 0 and 1.
class Tensors {
public:
  bool analyse(Block &body);
  bool isMerged(Value value) const { return merged.lookup(value); }
  bool any() const {
    return llvm::any_of(merged, [](auto &entry) { return entry.second; });
  }

  void replace(Value old, Value fresh) { merged[fresh] = merged.lookup(old); }

private:
  bool set(Value value, bool is) {
    return merged.try_emplace(value, is).first->second == is;
  }
  bool analyse(linalg::GenericOp op);

  llvm::MapVector<Value, bool> merged;
};

bool Tensors::analyse(linalg::GenericOp op) {
  auto iterators = op.getIteratorTypesArray();
  if (iterators.size() < 2 || iterators[0] != utils::IteratorType::parallel ||
      iterators[1] != utils::IteratorType::parallel)
    return false;
  bool ok = true;
  op->walk([&](linalg::IndexOp index) {
    ok &= index.getDim() > 1 || mutated("form-kernels.merge-counted-rows");
  });
  op->walk([&](tensor::ExtractOp extract) {
    ok &= set(extract.getTensor(), false);
  });
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    bool is = map.isFunctionOfDim(0) || map.isFunctionOfDim(1);
    if (is) {
      if (map.getNumResults() < 2 ||
          map.getResult(0) != getAffineDimExpr(0, op.getContext()) ||
          map.getResult(1) != getAffineDimExpr(1, op.getContext()))
        return false;
      for (AffineExpr rest : map.getResults().drop_front(2))
        ok &= !rest.isFunctionOfDim(0) && !rest.isFunctionOfDim(1);
    }
    ok &= set(operand.get(), is);
    if (op.isDpsInit(&operand))
      ok &= set(op.getTiedOpResult(&operand), is);
  }
  return ok;
}

bool Tensors::analyse(Block &body) {
  for (Operation &op : body.without_terminator())
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (!analyse(generic))
        return false;
    } else if (!isa<linalg::FillOp, tensor::EmptyOp, arith::ConstantOp>(op)) {
      return false;
    }
  for (auto fill : body.getOps<linalg::FillOp>())
    if (!set(fill.getOutputs()[0], isMerged(fill.getResult(0))))
      return false;
  for (auto &[value, is] : merged)
    if (is && !isa<BlockArgument>(value) &&
        !isa<linalg::GenericOp, linalg::FillOp, tensor::EmptyOp>(
            value.getDefiningOp()))
      return false;
  return any();
}

RankedTensorType mergedType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  ArrayRef<int64_t> shape = tensor.getShape();
  bool fixed =
      !ShapedType::isDynamic(shape[0]) && !ShapedType::isDynamic(shape[1]);
  SmallVector<int64_t> merged{fixed ? shape[0] * shape[1]
                                    : ShapedType::kDynamic};
  llvm::append_range(merged, shape.drop_front(2));
  return RankedTensorType::get(merged, tensor.getElementType());
}

SmallVector<ReassociationIndices> firstTwo(int64_t rank) {
  SmallVector<ReassociationIndices> groups{{0, 1}};
  for (int64_t axis = 2; axis < rank; ++axis)
    groups.push_back({axis});
  return groups;
}

void mergeLoops(linalg::GenericOp op, const Tensors &tensors) {
  MLIRContext *context = op.getContext();
  unsigned loops = op.getNumLoops();
  SmallVector<AffineExpr> dims{getAffineDimExpr(0, context)};
  for (unsigned d = 0; d + 1 < loops; ++d)
    dims.push_back(getAffineDimExpr(d, context));
  SmallVector<Attribute> maps;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (tensors.isMerged(operand.get()))
      map = map.dropResult(1);
    map = map.replaceDimsAndSymbols(dims, {}, loops - 1, 0);
    maps.push_back(AffineMapAttr::get(map));
  }
  op.setIndexingMapsAttr(ArrayAttr::get(context, maps));
  op.setIteratorTypesAttr(
      ArrayAttr::get(context, op.getIteratorTypes().getValue().drop_front()));
  op->walk([](linalg::IndexOp index) {
    if (!mutated("form-kernels.keep-index-of-loop"))
      index.setDim(index.getDim() - 1);
  });
}

/// The extents of a tensor of a kernel: constants and the kernel's arguments.
SmallVector<OpFoldResult> sizesOf(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (auto empty = dyn_cast<tensor::EmptyOp>(def)) {
      SmallVector<OpFoldResult> sizes = empty.getMixedSizes();
      for (OpFoldResult &size : sizes)
        if (std::optional<int64_t> fixed = getConstantIntValue(size))
          size = OpBuilder(def).getIndexAttr(*fixed);
      return sizes;
    }
    auto op = cast<linalg::LinalgOp>(def);
    value =
        op.getDpsInitOperand(cast<OpResult>(value).getResultNumber())->get();
  }
  return {};
}

} // namespace

RestoreResults heed::mergeRows(func::FuncOp kernel, OpBuilder &b,
                               SmallVectorImpl<Value> &arguments) {
  Block &body = kernel.getBody().front();
  Tensors tensors;
  if (!tensors.analyse(body))
    return {};
  Location loc = kernel.getLoc();
  // What the host knows of results and of buffers inside, in its own values.
  SmallVector<Value> passed(arguments.begin(), arguments.end());
  auto onHost = [passed](OpFoldResult size) -> OpFoldResult {
    if (auto argument = dyn_cast_if_present<Value>(size))
      return passed[cast<BlockArgument>(argument).getArgNumber()];
    return size;
  };
  SmallVector<SmallVector<OpFoldResult>> shapes;
  SmallVector<Type> types;
  for (Value result : body.getTerminator()->getOperands()) {
    shapes.emplace_back();
    types.push_back(result.getType());
    if (!tensors.isMerged(result))
      continue;
    for (OpFoldResult size : sizesOf(result))
      shapes.back().push_back(onHost(size));
    if (shapes.back().empty())
      return {};
  }

  for (auto [k, argument] : llvm::enumerate(arguments)) {
    if (!tensors.isMerged(body.getArgument(k)))
      continue;
    auto type = mergedType(argument.getType());
    argument = tensor::CollapseShapeOp::create(b, loc, type, argument,
                                               firstTwo(type.getRank() + 1));
    body.getArgument(k).setType(type);
  }
  // The number of rows is an argument of its own.
  llvm::MapVector<std::pair<Value, Value>, Value> products;
  for (auto empty :
       llvm::make_early_inc_range(body.getOps<tensor::EmptyOp>())) {
    if (!tensors.isMerged(empty))
      continue;
    auto type = mergedType(empty.getType());
    SmallVector<Value> sizes;
    if (type.isDynamicDim(0)) {
      SmallVector<OpFoldResult> own = sizesOf(empty);
      Value first = getValueOrCreateConstantIndexOp(b, loc, onHost(own[0]));
      Value second = getValueOrCreateConstantIndexOp(b, loc, onHost(own[1]));
      Value &rows = products[{first, second}];
      if (!rows) {
        rows = body.addArgument(b.getIndexType(), loc);
        arguments.push_back(arith::MulIOp::create(b, loc, first, second));
      }
      sizes.push_back(rows);
    }
    llvm::append_range(sizes,
                       empty.getDynamicSizes().take_back(
                           type.getNumDynamicDims() - type.isDynamicDim(0)));
    OpBuilder at(empty);
    Value fresh = tensor::EmptyOp::create(at, loc, type, sizes);
    // Its users' maps are asked for by their operands.
    empty.getResult().replaceAllUsesWith(fresh);
    tensors.replace(empty, fresh);
    empty.erase();
  }
  for (Operation &op : body.without_terminator()) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      mergeLoops(generic, tensors);
    if (isa<linalg::LinalgOp>(op))
      for (Value result : op.getResults())
        if (tensors.isMerged(result))
          result.setType(mergedType(result.getType()));
  }
  SmallVector<Type> results(body.getTerminator()->getOperandTypes());
  kernel.setFunctionType(
      b.getFunctionType(TypeRange(body.getArgumentTypes()), results));

  return [shapes, types, loc](OpBuilder &at, ValueRange values) {
    SmallVector<Value> restored(values);
    for (auto [value, shape, type] : llvm::zip(restored, shapes, types))
      if (!shape.empty())
        value =
            tensor::ExpandShapeOp::create(at, loc, cast<RankedTensorType>(type),
                                          value, firstTwo(shape.size()), shape);
    return restored;
  };
}
