//===- Steps.cpp - Steps as ops ------------------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

using namespace heed;
using namespace heed::sema;
using namespace mlir;
using llvm::cast;

void Emitter::emit(const Steps &steps) {
  using Any = Step::variant;
  for (const Step &step : steps)
    std::visit([&](const auto &one) { emit(one); },
               static_cast<const Any &>(step));
}

static mlir::Type elementOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementType();
}

static SmallVector<ReassociationIndices> reassociation(const Groups &groups) {
  SmallVector<ReassociationIndices> result;
  for (auto &group : groups)
    result.emplace_back(group.begin(), group.end());
  return result;
}

Value Emitter::value(const Tensor *tensor) {
  auto found = narrow.find(tensor);
  return found == narrow.end()
             ? held(tensor)
             : withElements(held(tensor), irType(found->second));
}

/// The extents of \p value. Dims are of arguments and parameters alone
/// (front.c5): others have the extents of what they were written into.
static SmallVector<OpFoldResult> sizesOf(OpBuilder &b, Value value) {
  if (auto arg = dyn_cast<BlockArgument>(value))
    if (auto loop = dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp()))
      return sizesOf(b, loop.getTiedLoopInit(arg)->get());
  if (auto result = dyn_cast<OpResult>(value)) {
    unsigned number = result.getResultNumber();
    Operation *op = result.getOwner();
    if (auto empty = dyn_cast<tensor::EmptyOp>(op))
      return empty.getMixedSizes();
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      return expand.getMixedOutputShape();
    if (auto same = dyn_cast<tensor::CastOp>(op))
      return sizesOf(b, same.getSource());
    if (auto loops = dyn_cast<linalg::LinalgOp>(op))
      return sizesOf(b, loops.getDpsInitOperand(number)->get());
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return sizesOf(b, loop.getInits()[number]);
    if (auto update = dyn_cast<attn::UpdateStateOp>(op))
      return sizesOf(b, update.getState());
    if (auto softmax = dyn_cast<attn::SoftmaxOp>(op))
      return sizesOf(b, softmax.getInput());
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      SmallVector<OpFoldResult> sizes;
      for (auto [k, size] : llvm::enumerate(slice.getMixedSizes()))
        if (!slice.getDroppedDims().test(k))
          sizes.push_back(size);
      return sizes;
    }
  }
  return tensor::getMixedSizes(b, value.getLoc(), value);
}

Value Emitter::withElements(Value value, mlir::Type elem, Value like) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == elem)
    return value;
  Location at = value.getLoc();
  Value init = tensor::EmptyOp::create(
      builder, at, sizesOf(builder, like ? like : value), elem);
  SmallVector<AffineMap> maps(2,
                              builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, at, init.getType(), value, init, maps, loops,
             [&](OpBuilder &b, Location at, ValueRange args) {
               linalg::YieldOp::create(b, at, toType(b, args[0], elem, at));
             })
      .getResult(0);
}

void Emitter::holdAs(const Tensor *from, const Tensor *to, Value value) {
  tensors[to] = value;
  if (auto found = narrow.find(from); found != narrow.end())
    narrow[to] = Ty(found->second);
}

void Emitter::emit(const Collapse &step) {
  Value from = held(step.from);
  mlir::Type elem = elementOf(from);
  Value to = step.isEmpty
                 ? filled(builder.getZeroAttr(elem), step.shape, step.place)
                 : Value(tensor::CollapseShapeOp::create(
                       builder, loc(step.place), tensorType(elem, step.shape),
                       from, reassociation(step.groups)));
  holdAs(step.from, step.to, to);
}

/// \p from with sizes as \p to has them: of a weight the file gives a number
/// for an axis that is cut into sizes of which a call gives one.
static Value castToExpand(OpBuilder &b, Location loc, Value from,
                          RankedTensorType to, const Groups &groups) {
  auto type = cast<RankedTensorType>(from.getType());
  SmallVector<int64_t> shape(type.getShape());
  for (auto [size, group] : llvm::zip(shape, groups))
    if (llvm::any_of(group, [&](auto axis) { return to.isDynamicDim(axis); }))
      size = ShapedType::kDynamic;
  auto wanted = RankedTensorType::get(shape, type.getElementType());
  return wanted == type ? from : tensor::CastOp::create(b, loc, wanted, from);
}

void Emitter::emit(const Expand &step) {
  Value from = held(step.from);
  SmallVector<OpFoldResult> outputs;
  for (const SizeUse &use : step.shape) {
    if (auto c = use.size.constant())
      outputs.push_back(builder.getIndexAttr(*c));
    else
      outputs.push_back(emit(use, step.place));
  }
  RankedTensorType type = tensorType(elementOf(from), step.shape);
  from = castToExpand(builder, loc(step.place), from, type, step.groups);
  holdAs(step.from, step.to,
         tensor::ExpandShapeOp::create(builder, loc(step.place), type, from,
                                       reassociation(step.groups), outputs));
}

void Emitter::emit(const Zeros &step) {
  auto zero = cast<TypedAttr>(builder.getZeroAttr(irType(step.elem)));
  tensors[step.result] = filled(zero, step.shape, step.place);
}

/// No tensor holds f64 (front.c8): a table of reals for a body that computes in
/// f64 is that of their bits, in i64.
void Emitter::emit(const TableData &step) {
  const Table &table = *step.table;
  mlir::Type elem = step.byBits ? builder.getI64Type() : irType(step.elem);
  auto type = RankedTensorType::get(table.shape, elem);
  SmallVector<Attribute> values;
  for (int64_t value : table.ints)
    values.push_back(builder.getIntegerAttr(elem, value));
  for (double value : table.reals)
    values.push_back(step.byBits
                         ? Attribute(builder.getIntegerAttr(
                               elem, int64_t(llvm::bit_cast<uint64_t>(value))))
                         : builder.getFloatAttr(elem, value));
  tensors[step.result] = arith::ConstantOp::create(
      builder, loc(step.place), DenseElementsAttr::get(type, values));
}

void Emitter::emit(const Evaluate &step) { emit(step.size, step.place); }

void Emitter::emit(const BindAtom &step) {
  if (!step.tensor) {
    atoms[step.atom] = emit(step.size, step.place);
    return;
  }
  OpBuilder &b = step.inLoop ? builder : prologue;
  Location at = loc(step.place);
  Value from = held(step.tensor);
  if (step.axis) {
    atoms[step.atom] = tensor::DimOp::create(b, at, from, *step.axis);
    return;
  }
  Value number = arith::IndexCastOp::create(b, at, b.getIndexType(), from);
  Value zero = arith::ConstantIndexOp::create(b, at, 0);
  atoms[step.atom] = arith::MaxSIOp::create(b, at, number, zero);
}

void Emitter::emit(const Parameter &step) {
  OpBuilder &b = step.inLoop ? builder : prologue;
  SmallVector<Value> indices;
  for (const SizeUse &use : step.indices)
    indices.push_back(emit(use, step.place));
  auto param = attn::ParamOp::create(
      b, loc(step.place), RankedTensorType::get(step.dims, irType(step.held)),
      strings(step.names), indices);
  if (!step.dimNames.empty())
    param->setAttr(attn::kDimsAttr, strings(step.dimNames));
  tensors[step.result] = param.getResult();
  if (step.held != step.elem)
    narrow[step.result] = step.elem;
}

/// Whether carried tensor \p k of a loop is changed in no other way than by
/// updates of some of its elements: a state, which stays where it is.
static bool isUpdated(const RolledFor &loop, size_t k) {
  const Tensor *now = loop.yields[k];
  for (const Step &step : llvm::reverse(loop.body)) {
    if (auto *update = std::get_if<UpdateState>(&step)) {
      if (update->to == now)
        now = update->from;
    } else if (auto *inner = std::get_if<RolledFor>(&step)) {
      auto *found = llvm::find(inner->results, now);
      if (found == inner->results.end())
        continue;
      size_t number = found - inner->results.begin();
      if (!isUpdated(*inner, number))
        return false;
      now = inner->inits[number];
    }
  }
  return now == loop.inside[k];
}

void Emitter::emit(const RolledFor &step) {
  Location at = loc(step.place);
  Value from = emit(step.lo, step.place), to = emit(step.hi, step.place);
  Value one = arith::ConstantIndexOp::create(builder, at, 1);
  SmallVector<Value> inits;
  SmallVector<bool> isHeld;
  for (auto [k, init] : llvm::enumerate(step.inits)) {
    isHeld.push_back(narrow.contains(init) && isUpdated(step, k));
    inits.push_back(isHeld.back() ? held(init) : value(init));
  }
  auto loop = scf::ForOp::create(builder, at, from, to, one, inits);
  OpBuilder::InsertionGuard guard(builder);
  if (inits.empty())
    loop.getBody()->getTerminator()->erase();
  builder.setInsertionPointToEnd(loop.getBody());
  atoms[step.turn] = loop.getInductionVar();
  for (auto [k, arg] : llvm::enumerate(loop.getRegionIterArgs())) {
    tensors[step.inside[k]] = arg;
    if (isHeld[k])
      holdAs(step.inits[k], step.inside[k], arg);
  }
  emit(step.body);
  SmallVector<Value> yields;
  for (auto [tensor, init, stays] : llvm::zip(step.yields, inits, isHeld)) {
    Value now = stays ? held(tensor) : value(tensor);
    // An extent may be a number here and a dim there.
    if (now.getType() != init.getType())
      now = tensor::CastOp::create(builder, at, init.getType(), now);
    yields.push_back(now);
  }
  scf::YieldOp::create(builder, at, yields);
  for (auto [k, result] : llvm::enumerate(loop.getResults())) {
    tensors[step.results[k]] = result;
    if (isHeld[k])
      holdAs(step.inits[k], step.results[k], result);
  }
}

template <typename RowStep>
static attn::RowPlace placeOf(OpBuilder &b, const RowStep &step,
                              llvm::function_ref<Value(const SizeUse &)> code) {
  attn::RowPlace place;
  size_t position = 0, other = 0;
  for (size_t k = 0; k < step.axes.size() + step.shape.size(); ++k) {
    bool isAt = position < step.axes.size() && step.axes[position] == k;
    const SizeUse &use =
        isAt ? step.positions[position++] : step.shape[other++];
    OpFoldResult number;
    if (auto constant = use.size.constant())
      number = b.getIndexAttr(*constant);
    else
      number = code(use);
    place.offsets.push_back(isAt ? number : b.getIndexAttr(0));
    place.sizes.push_back(isAt ? b.getIndexAttr(1) : number);
    place.dropped.push_back(isAt);
  }
  return place;
}

/// Rows of no element: MLIR has no slice of a tensor that is known to be empty.
static bool isEmpty(const SizeUses &shape) {
  return llvm::any_of(
      shape, [](const SizeUse &use) { return use.size.constant() == 0; });
}

void Emitter::emit(const ReadRow &step) {
  Value from = held(step.from);
  if (isEmpty(step.shape)) {
    holdAs(step.from, step.to,
           emptyTensor(elementOf(from), step.shape, step.place));
    return;
  }
  attn::RowPlace place = placeOf(
      builder, step, [&](const SizeUse &use) { return emit(use, step.place); });
  holdAs(step.from, step.to,
         attn::readRow(builder, loc(step.place), from, place,
                       tensorType(elementOf(from), step.shape)));
}

void Emitter::emit(const WriteRow &step) {
  Value row = value(step.row);
  if (isEmpty(step.shape)) {
    tensors[step.to] = value(step.from);
    return;
  }
  attn::RowPlace place = placeOf(
      builder, step, [&](const SizeUse &use) { return emit(use, step.place); });
  RankedTensorType type = tensorType(elementOf(row), step.shape);
  if (row.getType() != type)
    row = tensor::CastOp::create(builder, loc(step.place), type, row);
  tensors[step.to] =
      attn::writeRow(builder, loc(step.place), row, value(step.from), place);
}

void Emitter::emit(const UpdateState &step) {
  Value state = held(step.from);
  Value values = withElements(value(step.values), elementOf(state));
  int64_t rank = cast<RankedTensorType>(values.getType()).getRank();
  SmallVector<Value> positions;
  SmallVector<AffineMap> maps;
  auto mapOf = [&](const UpdateState::Position &position) {
    SmallVector<AffineExpr> dims;
    for (unsigned index : position.indices)
      dims.push_back(builder.getAffineDimExpr(index));
    return AffineMap::get(rank, 0, dims, builder.getContext());
  };
  for (const UpdateState::Position &position : step.positions) {
    maps.push_back(mapOf(position));
    positions.push_back(position.tensor ? value(position.tensor)
                                        : emit(position.size, step.place));
  }
  Value mask;
  if (step.where.tensor) {
    mask = value(step.where.tensor);
    maps.push_back(mapOf(step.where));
  }
  auto update = attn::UpdateStateOp::create(
      builder, loc(step.place), values, state, positions, mask,
      builder.getDenseI64ArrayAttr(step.axes),
      builder.getAffineMapArrayAttr(maps), !step.isDistinct);
  update->setAttr(attn::kNameAttr, builder.getStringAttr(step.name));
  holdAs(step.from, step.to, update);
}

void Emitter::emit(const Scan &step) {
  Location at = loc(step.place);
  Value from = emit(step.lo, step.place), to = emit(step.hi, step.place);
  SmallVector<Value> starts, outs;
  SmallVector<int64_t> axes;
  SmallVector<bool> reversed;
  for (const Tensor *start : step.starts)
    starts.push_back(value(start));
  for (const Scan::Stack &stack : step.stacks) {
    outs.push_back(emptyTensor(irType(stack.elem), stack.shape, step.place));
    axes.push_back(stack.axis);
    reversed.push_back(stack.isReversed);
  }
  auto scan =
      attn::ScanOp::create(builder, at, from, to, starts, outs, axes, reversed);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&scan.getBody().front());
  atoms[step.turn] = scan.step();
  for (auto [tensor, arg] : llvm::zip(step.inside, scan.carried()))
    tensors[tensor] = arg;
  emit(step.body);
  // An extent may be a number here and a dim there.
  auto as = [&](Value now, mlir::Type type) {
    return now.getType() == type
               ? now
               : Value(tensor::CastOp::create(builder, at, type, now));
  };
  SmallVector<Value> after, rows;
  for (auto [tensor, start] : llvm::zip(step.after, starts))
    after.push_back(as(value(tensor), start.getType()));
  for (auto [stack, out] : llvm::zip(step.stacks, outs)) {
    auto type = cast<RankedTensorType>(out.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape.erase(shape.begin() + stack.axis);
    rows.push_back(as(value(stack.row),
                      RankedTensorType::get(shape, type.getElementType())));
  }
  attn::StepOp::create(builder, at, after, rows);
  for (auto [tensor, result] : llvm::zip(step.results, scan.getStates()))
    tensors[tensor] = result;
  for (auto [stack, result] : llvm::zip(step.stacks, scan.getStacked()))
    tensors[stack.result] = result;
}
