//===- MergeLoops.cpp - neighbouring dims of a kernel as one dim ----------===//
#include "passes/Kernels/MergeLoops.h"
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

/// Where tensors of a kernel have loops \p loop and the next one as neighbours:
/// the first one's axis, or none.
class Tensors {
public:
  explicit Tensors(unsigned loop) : loop(loop) {}

  bool analyse(Block &body);
  std::optional<unsigned> axisOf(Value value) const {
    return axes.lookup(value);
  }
  bool isMerged(Value value) const { return axisOf(value).has_value(); }
  void replace(Value old, Value fresh) { axes[fresh] = axes.lookup(old); }

  const unsigned loop;

private:
  bool set(Value value, std::optional<unsigned> axis) {
    return axes.try_emplace(value, axis).first->second == axis;
  }
  bool analyse(linalg::GenericOp op);
  bool analyse(linalg::GenericOp op, OpOperand &operand);

  llvm::MapVector<Value, std::optional<unsigned>> axes;
};

bool Tensors::analyse(linalg::GenericOp op, OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  std::optional<unsigned> axis;
  if (map.isFunctionOfDim(loop) || map.isFunctionOfDim(loop + 1)) {
    MLIRContext *context = op.getContext();
    axis = llvm::find(map.getResults(), getAffineDimExpr(loop, context)) -
           map.getResults().begin();
    if (*axis + 1 >= map.getNumResults() ||
        map.getResult(*axis + 1) != getAffineDimExpr(loop + 1, context))
      return false;
    for (auto [k, expr] : llvm::enumerate(map.getResults()))
      if (k != *axis && k != *axis + 1 &&
          (expr.isFunctionOfDim(loop) || expr.isFunctionOfDim(loop + 1)))
        return false;
  }
  return set(operand.get(), axis) &&
         (!op.isDpsInit(&operand) || set(op.getTiedOpResult(&operand), axis));
}

bool Tensors::analyse(linalg::GenericOp op) {
  auto iterators = op.getIteratorTypesArray();
  // An epilogue has fewer loops than the sum before it.
  bool ok = true;
  op->walk([&](tensor::ExtractOp extract) {
    ok &= set(extract.getTensor(), std::nullopt);
  });
  if (iterators.size() <= loop + 1)
    return ok &&
           llvm::all_of(op->getOperands(),
                        [&](Value v) { return set(v, std::nullopt); }) &&
           llvm::all_of(op->getResults(),
                        [&](Value v) { return set(v, std::nullopt); });
  if (iterators[loop] != iterators[loop + 1])
    return false;
  op->walk([&](linalg::IndexOp index) {
    ok &= (index.getDim() != loop && index.getDim() != loop + 1) ||
          mutated("form-kernels.merge-counted-rows");
  });
  for (OpOperand &operand : op->getOpOperands())
    ok = ok && analyse(op, operand);
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
    if (!set(fill.getOutputs()[0], axisOf(fill.getResult(0))))
      return false;
  bool any = false;
  for (auto &[value, axis] : axes) {
    any |= axis.has_value();
    if (axis && !isa<BlockArgument>(value) &&
        !isa<linalg::GenericOp, linalg::FillOp, tensor::EmptyOp>(
            value.getDefiningOp()))
      return false;
  }
  return any;
}

RankedTensorType mergedType(Type type, unsigned axis) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  int64_t second = shape[axis + 1];
  shape.erase(shape.begin() + axis + 1);
  if (ShapedType::isDynamic(shape[axis]) || ShapedType::isDynamic(second))
    shape[axis] = ShapedType::kDynamic;
  else
    shape[axis] *= second;
  return RankedTensorType::get(shape, tensor.getElementType());
}

/// Of a tensor of \p rank axes, \p axis and the next one are one.
SmallVector<ReassociationIndices> groupsOf(int64_t rank, unsigned axis) {
  SmallVector<ReassociationIndices> groups;
  for (int64_t k = 0; k < rank; ++k)
    if (k == axis + 1)
      groups.back().push_back(k);
    else
      groups.push_back({k});
  return groups;
}

void mergeLoops(linalg::GenericOp op, const Tensors &tensors) {
  MLIRContext *context = op.getContext();
  unsigned loops = op.getNumLoops(), loop = tensors.loop;
  if (loops <= loop + 1)
    return;
  SmallVector<AffineExpr> dims;
  for (unsigned d = 0; d < loops; ++d)
    dims.push_back(getAffineDimExpr(d > loop ? d - 1 : d, context));
  SmallVector<Attribute> maps;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (std::optional<unsigned> axis = tensors.axisOf(operand.get()))
      map = map.dropResult(*axis + 1);
    map = map.replaceDimsAndSymbols(dims, {}, loops - 1, 0);
    maps.push_back(AffineMapAttr::get(map));
  }
  op.setIndexingMapsAttr(ArrayAttr::get(context, maps));
  SmallVector<Attribute> iterators(op.getIteratorTypes().getValue());
  iterators.erase(iterators.begin() + loop + 1);
  op.setIteratorTypesAttr(ArrayAttr::get(context, iterators));
  op->walk([&](linalg::IndexOp index) {
    if (index.getDim() > loop && !mutated("form-kernels.keep-index-of-loop"))
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

/// \p size, of a tensor of a kernel, in the values that the host has \p passed.
OpFoldResult onHost(OpFoldResult size, ArrayRef<Value> passed) {
  if (auto argument = dyn_cast_if_present<Value>(size))
    return passed[cast<BlockArgument>(argument).getArgNumber()];
  return size;
}

/// What a call of the kernel returned before its loops were merged.
struct Returned {
  SmallVector<SmallVector<OpFoldResult>> shapes; ///< none of what stays
  SmallVector<Type> types;
  SmallVector<unsigned> axes;
};

/// None where the host does not know a shape.
std::optional<Returned> returnedBy(Block &body, const Tensors &tensors,
                                   ArrayRef<Value> passed) {
  Returned returned;
  for (Value result : body.getTerminator()->getOperands()) {
    SmallVector<OpFoldResult> &shape = returned.shapes.emplace_back();
    returned.types.push_back(result.getType());
    returned.axes.push_back(tensors.axisOf(result).value_or(0));
    if (!tensors.isMerged(result))
      continue;
    for (OpFoldResult size : sizesOf(result))
      shape.push_back(onHost(size, passed));
    if (shape.empty())
      return std::nullopt;
  }
  return returned;
}

void mergeArguments(Block &body, const Tensors &tensors, OpBuilder &b,
                    Location loc, MutableArrayRef<Value> arguments) {
  for (auto [k, argument] : llvm::enumerate(arguments)) {
    std::optional<unsigned> axis = tensors.axisOf(body.getArgument(k));
    if (!axis)
      continue;
    auto type = mergedType(argument.getType(), *axis);
    argument = tensor::CollapseShapeOp::create(
        b, loc, type, argument, groupsOf(type.getRank() + 1, *axis));
    body.getArgument(k).setType(type);
  }
}

/// The number of places of both loops is an argument of its own, which is added
/// to \p arguments; \p passed are those that the sizes of \p body are given by.
void mergeBuffers(Block &body, Tensors &tensors, OpBuilder &b, Location loc,
                  ArrayRef<Value> passed, SmallVectorImpl<Value> &arguments) {
  llvm::MapVector<std::pair<Value, Value>, Value> products;
  auto onHostAsValue = [&](OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, loc, onHost(size, passed));
  };
  for (auto empty :
       llvm::make_early_inc_range(body.getOps<tensor::EmptyOp>())) {
    std::optional<unsigned> axis = tensors.axisOf(empty);
    if (!axis)
      continue;
    auto type = mergedType(empty.getType(), *axis);
    SmallVector<OpFoldResult> own = sizesOf(empty);
    if (type.isDynamicDim(*axis)) {
      Value first = onHostAsValue(own[*axis]);
      Value second = onHostAsValue(own[*axis + 1]);
      Value &both = products[{first, second}];
      if (!both) {
        both = body.addArgument(b.getIndexType(), loc);
        arguments.push_back(arith::MulIOp::create(b, loc, first, second));
      }
      own[*axis] = both;
    }
    own.erase(own.begin() + *axis + 1);
    SmallVector<Value> sizes;
    for (auto [k, size] : llvm::enumerate(own))
      if (type.isDynamicDim(k))
        sizes.push_back(cast<Value>(size));
    OpBuilder at(empty);
    Value fresh = tensor::EmptyOp::create(at, loc, type, sizes);
    // Its users' maps are asked for by their operands.
    empty.getResult().replaceAllUsesWith(fresh);
    tensors.replace(empty, fresh);
    empty.erase();
  }
}

void mergeOps(Block &body, const Tensors &tensors) {
  for (Operation &op : body.without_terminator()) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      mergeLoops(generic, tensors);
    if (isa<linalg::LinalgOp>(op))
      for (Value result : op.getResults())
        if (std::optional<unsigned> axis = tensors.axisOf(result))
          result.setType(mergedType(result.getType(), *axis));
  }
}

} // namespace

RestoreResults heed::mergeLoops(func::FuncOp kernel, unsigned loop,
                                OpBuilder &b,
                                SmallVectorImpl<Value> &arguments) {
  Block &body = kernel.getBody().front();
  Tensors tensors(loop);
  if (!tensors.analyse(body))
    return {};
  Location loc = kernel.getLoc();
  // Sizes inside are numbers of these, not of what becomes of them.
  SmallVector<Value> passed(arguments.begin(), arguments.end());
  std::optional<Returned> returned = returnedBy(body, tensors, passed);
  if (!returned)
    return {};
  mergeArguments(body, tensors, b, loc, arguments);
  mergeBuffers(body, tensors, b, loc, passed, arguments);
  mergeOps(body, tensors);
  SmallVector<Type> results(body.getTerminator()->getOperandTypes());
  kernel.setFunctionType(
      b.getFunctionType(TypeRange(body.getArgumentTypes()), results));

  return [returned = std::move(*returned), loc](OpBuilder &at,
                                                ValueRange values) {
    SmallVector<Value> restored(values);
    for (auto [value, shape, type, axis] :
         llvm::zip(restored, returned.shapes, returned.types, returned.axes))
      if (!shape.empty())
        value = tensor::ExpandShapeOp::create(
            at, loc, cast<RankedTensorType>(type), value,
            groupsOf(shape.size(), axis), shape);
    return restored;
  };
}
