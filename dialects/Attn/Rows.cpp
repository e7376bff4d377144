//===- Rows.cpp - rows of tensors -----------------------------------------===//
#include "dialects/Attn/Rows.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace heed::attn;

/// The axes of the tensor for each of the row: those that it has not join a
/// neighbour.
static SmallVector<ReassociationIndices> groupsOf(const RowPlace &place) {
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices first;
  for (auto [axis, dropped] : llvm::enumerate(place.dropped)) {
    if (!dropped)
      groups.emplace_back(std::exchange(first, {}));
    (groups.empty() ? first : groups.back()).push_back(axis);
  }
  return groups;
}

/// Whether another axis is known to have one element.
static bool isAmbiguous(const RowPlace &place) {
  for (auto [size, dropped] : llvm::zip(place.sizes, place.dropped))
    if (!dropped && getConstantIntValue(size) == 1)
      return true;
  return false;
}

static RankedTensorType wholeType(RankedTensorType row, const RowPlace &place) {
  SmallVector<int64_t> shape;
  for (auto [size, dropped] : llvm::zip(place.sizes, place.dropped))
    shape.push_back(
        dropped ? 1 : getConstantIntValue(size).value_or(ShapedType::kDynamic));
  return RankedTensorType::get(shape, row.getElementType());
}

static SmallVector<OpFoldResult> stridesOf(OpBuilder &b,
                                           const RowPlace &place) {
  return SmallVector<OpFoldResult>(place.sizes.size(), b.getIndexAttr(1));
}

RowPlace heed::attn::firstAxisAt(OpBuilder &b, Location loc, Value tensor,
                                 OpFoldResult position) {
  RowPlace place;
  place.sizes = tensor::getMixedSizes(b, loc, tensor);
  place.offsets.assign(place.sizes.size(), b.getIndexAttr(0));
  place.dropped.assign(place.sizes.size(), false);
  place.offsets[0] = position;
  place.sizes[0] = b.getIndexAttr(1);
  place.dropped[0] = true;
  return place;
}

Value heed::attn::readRow(OpBuilder &b, Location loc, Value tensor,
                          const RowPlace &place, RankedTensorType type) {
  bool reshapes = isAmbiguous(place);
  Value row = tensor::ExtractSliceOp::create(
      b, loc, reshapes ? wholeType(type, place) : type, tensor, place.offsets,
      place.sizes, stridesOf(b, place));
  return reshapes ? tensor::CollapseShapeOp::create(b, loc, type, row,
                                                    groupsOf(place))
                  : row;
}

Value heed::attn::writeRow(OpBuilder &b, Location loc, Value row, Value tensor,
                           const RowPlace &place) {
  auto type = cast<RankedTensorType>(row.getType());
  if (isAmbiguous(place))
    row = tensor::ExpandShapeOp::create(b, loc, wholeType(type, place), row,
                                        groupsOf(place), place.sizes);
  return tensor::InsertSliceOp::create(b, loc, row, tensor, place.offsets,
                                       place.sizes, stridesOf(b, place));
}
