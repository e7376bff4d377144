//===- Reads.cpp - Reading tensors in a body ------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A read whose positions are distinct indices over whole axes is an operand of
// the generic with a permutation map; so is x[.., h*E + e], after an
// expand_shape. Every other read is a tensor.extract in the body.
//
//===----------------------------------------------------------------------===//

#include "frontend/Heed/Semantics/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using namespace mlir;
using llvm::cast;
using llvm::dyn_cast;
using llvm::Twine;

/// A stored element as a value: f16 and bf16 are computed with in f32.
TV Lowering::loaded(Body &body, Value raw, Ty ty, Location at) {
  if (!isReal(ty))
    return {raw, ty, {}};
  // A table of reals in a body that computes in f64: see tableTensor.
  if (raw.getType().isInteger(64))
    raw = arith::BitcastOp::create(body.builder, at, builder.getF64Type(), raw);
  return {asReal(body, {raw, ty, {}}, at), ty, {}};
}

static bool isGenericOperand(const Body &body, ArrayRef<Idx *> axes) {
  if (body.kind != Body::Generic)
    return false;
  for (auto [k, idx] : llvm::enumerate(axes))
    if (!llvm::is_contained(body.loops, idx) ||
        llvm::is_contained(axes.take_front(k), idx))
      return false;
  return true;
}

Value Lowering::operand(Body &body, Value tensor, ArrayRef<Idx *> axes,
                        Location at) {
  MLIRContext *context = builder.getContext();
  SmallVector<AffineExpr> exprs;
  for (Idx *idx : axes)
    exprs.push_back(getAffineDimExpr(
        llvm::find(body.loops, idx) - body.loops.begin(), context));
  AffineMap map = AffineMap::get(body.loops.size(), 0, exprs, context);
  for (unsigned k = 0; k < body.operands.size(); ++k)
    if (body.operands[k] == tensor && body.maps[k] == map)
      return body.block->getArgument(k);
  body.operands.push_back(tensor);
  body.maps.push_back(map);
  return body.block->insertArgument(
      body.operands.size() - 1,
      cast<RankedTensorType>(tensor.getType()).getElementType(), at);
}

/// tensor[axes] for axes that run over the whole tensor.
TV Lowering::readTensor(Body &body, const TensorVal &tensor,
                        ArrayRef<Idx *> axes, Location at) {
  auto element = [&](Value source) -> Value {
    if (isGenericOperand(body, axes))
      return operand(body, source, axes, at);
    SmallVector<Value> indices;
    for (Idx *idx : axes)
      indices.push_back(indexValue(body, idx, at));
    return tensor::ExtractOp::create(body.builder, at, source, indices);
  };
  TV tv = loaded(body, element(tensor.value), tensor.elem, at);
  if (tensor.live)
    tv.live = element(tensor.live);
  return tv;
}

/// A constant table. No tensor holds f64 (front.c8): in a body that computes in
/// f64 one of reals is that of their bits, in i64.
TensorVal Lowering::tableTensor(const Table &table, bool f64, Location at) {
  TensorVal tensor;
  tensor.shape = table.extents();
  tensor.elem = stored(table.elem);
  if (llvm::any_of(table.ints, [](int64_t n) { return n != int32_t(n); }))
    tensor.elem = Ty::I64;
  bool byBits = table.elem == Ty::AnyReal && f64;
  mlir::Type elem = byBits ? builder.getI64Type() : irType(tensor.elem);
  auto type = RankedTensorType::get(table.shape, elem);
  SmallVector<Attribute> values;
  for (int64_t value : table.ints)
    values.push_back(builder.getIntegerAttr(elem, value));
  for (double value : table.reals)
    values.push_back(byBits
                         ? Attribute(builder.getIntegerAttr(
                               elem, int64_t(llvm::bit_cast<uint64_t>(value))))
                         : builder.getFloatAttr(elem, value));
  tensor.value = arith::ConstantOp::create(
      builder, at, DenseElementsAttr::get(type, values));
  return tensor;
}

//===----------------------------------------------------------------------===//
// Collections
//===----------------------------------------------------------------------===//

/// The slice of `collection` at fixed positions, if they are all known.
const TensorVal *Lowering::slice(const Collection &collection,
                                 ArrayRef<Item> items, const Scope &scope,
                                 Equation &eq) {
  std::vector<int64_t> at;
  for (unsigned axis : collection.fixed) {
    if (items[axis].idx)
      return nullptr;
    const Info &i = info(*items[axis].expr, scope, eq);
    auto c = i.fixed ? i.fixed->size.constant() : std::nullopt;
    if (!c)
      return nullptr;
    at.push_back(*c);
  }
  auto it = collection.slices.find(at);
  return it == collection.slices.end() ? nullptr : &it->second;
}

/// The positions from 0 on that a read of a collection may reach, by axis that
/// its slices fix: the least and the one behind the last.
std::optional<SmallVector<std::pair<int64_t, int64_t>, 4>>
Lowering::reached(const Collection &collection, ArrayRef<Item> items,
                  const Scope &scope, Equation &eq, Range place) {
  SmallVector<std::pair<int64_t, int64_t>, 4> box;
  for (unsigned axis : collection.fixed) {
    int64_t low = 0, end = INT64_MAX;
    auto below = [&](const Size &size) {
      if (auto c = size.constant())
        end = std::min(end, *c);
    };
    below(collection.shape[axis]);
    if (!items.empty() && items[axis].idx) {
      below(*items[axis].idx->extent);
    } else if (!items.empty()) {
      Bounds range = bounds(*items[axis].expr, scope, eq);
      for (const Size &size : range.upper)
        below(size + 1);
      for (const Size &size : range.lower)
        if (auto c = size.constant())
          low = std::max(low, *c);
    }
    if (end == INT64_MAX) {
      error(place, "extent " + sizes.str(collection.shape[axis]) +
                       " of the collection '" + collection.name +
                       "' must be known when compiling");
      return std::nullopt;
    }
    box.push_back({low, end});
  }
  return box;
}

/// One tensor of the slices in `box`, from position 0 on.
std::optional<TensorVal>
Lowering::assemble(const Collection &collection,
                   ArrayRef<std::pair<int64_t, int64_t>> box, Range place) {
  // Every position must be defined.
  std::vector<std::pair<std::vector<int64_t>, TensorVal>> slices;
  int64_t total = 1;
  for (auto [low, end] : box)
    total *= std::max<int64_t>(end - low, 0);
  for (auto &slice : collection.slices)
    if (llvm::all_of(llvm::zip(slice.first, box), [](const auto &at) {
          auto [position, range] = at;
          return range.first <= position && position < range.second;
        }))
      slices.push_back(slice);
  if (collection.fixed.empty() || int64_t(slices.size()) != total) {
    std::string defined;
    for (auto &slice : collection.slices)
      defined += (defined.empty() ? "" : ", ") +
                 llvm::join(llvm::map_range(
                                slice.first,
                                [](int64_t n) { return std::to_string(n); }),
                            "/");
    error(place, "undefined slices of the collection '" + collection.name +
                     "' are read: " + Twine(slices.size()) + " of " +
                     Twine(total) + " are defined" +
                     (defined.empty() ? "" : " (" + defined + ")"));
    return std::nullopt;
  }
  // One body that reads each slice where it is.
  Location at = loc(place);
  Equation eq;
  SmallVector<Idx *, 4> free;
  for (auto [k, size] : llvm::enumerate(collection.shape)) {
    Idx &idx = eq.pool.emplace_back();
    idx.extent = size;
    eq.whole.push_back(&idx);
    auto fixed = llvm::find(collection.fixed, k);
    if (fixed == collection.fixed.end())
      free.push_back(&idx);
    else
      idx.extent = Size(
          std::max<int64_t>(box[fixed - collection.fixed.begin()].second, 0));
  }
  if (slices.empty()) {
    Shape shape = shapeOf(eq.whole);
    auto zero = cast<TypedAttr>(builder.getZeroAttr(irType(collection.elem)));
    return TensorVal{filled(zero, shape, place), collection.elem, shape, {}};
  }
  auto join = [&](bool live) {
    Ty ty = live ? Ty::Bool : collection.elem;
    return elementwise(eq.whole, ty, place, false, [&](Body &body) -> TV {
      std::function<Value(size_t)> from = [&](size_t k) -> Value {
        auto &[positions, tensor] = slices[k];
        TV tv = readTensor(body, tensor, free, at);
        Value mine = !live     ? tv.value
                     : tv.live ? tv.live
                               : boolConstant(body.builder, true, at);
        if (k + 1 == slices.size())
          return mine;
        Value here;
        for (auto [axis, position] : llvm::zip(collection.fixed, positions)) {
          Value same = arith::CmpIOp::create(
              body.builder, at, arith::CmpIPredicate::eq,
              indexValue(body, eq.whole[axis], at),
              arith::ConstantIndexOp::create(body.builder, at, position));
          here =
              here ? Value(arith::AndIOp::create(body.builder, at, here, same))
                   : same;
        }
        return arith::SelectOp::create(body.builder, at, here, mine,
                                       from(k + 1));
      };
      return {from(0), ty, {}};
    });
  };
  auto result = join(false);
  if (result &&
      llvm::any_of(slices, [](auto &slice) { return bool(slice.second.live); }))
    if (auto live = join(true))
      result->live = live->value;
  return result;
}

//===----------------------------------------------------------------------===//
// Reads with indices
//===----------------------------------------------------------------------===//

/// The tensor that `name[..]` reads, with fixed axes of a collection left out
/// of `items`.
std::optional<TensorVal> Lowering::source(const ReadExpr &expr,
                                          const Scope &scope, Equation &eq,
                                          bool f64,
                                          SmallVectorImpl<Item> &items) {
  auto binding = lookup(*scope.env, expr.name.text);
  if (binding->kind == Binding::Table)
    return tableTensor(*binding->table, f64, loc(expr.range));
  if (binding->kind != Binding::Collection)
    return tensorOf(*binding, expr.range);
  const Collection &collection = *binding->collection;
  if (const TensorVal *tensor = slice(collection, items, scope, eq)) {
    for (unsigned axis : llvm::reverse(collection.fixed))
      items.erase(items.begin() + axis);
    return *tensor;
  }
  bool known = llvm::all_of(collection.fixed, [&](unsigned axis) {
    return !items[axis].idx && info(*items[axis].expr, scope, eq).fixed &&
           info(*items[axis].expr, scope, eq).fixed->size.constant();
  });
  if (known && !collection.fixed.empty()) {
    error(expr.range, "an undefined slice of '" + expr.name.text + "' is read");
    return std::nullopt;
  }
  if (rolled) {
    needsUnroll = true;
    return std::nullopt;
  }
  auto box = reached(collection, items, scope, eq, expr.range);
  return box ? assemble(collection, *box, expr.range) : std::nullopt;
}

/// Turns an axis read at h*E + e into two axes h and e.
bool Lowering::split(const ReadExpr &expr, const Scope &scope, Equation &eq,
                     SmallVectorImpl<Item> &items, TensorVal &tensor) {
  // Each axis: its indices from the outermost in.
  SmallVector<SmallVector<Idx *, 2>> groups;
  bool any = false;
  for (auto [k, item] : llvm::enumerate(items)) {
    if (item.idx) {
      groups.push_back({item.idx});
      continue;
    }
    auto linear = this->linear(*item.expr, scope, eq);
    if (!linear || !linear->offset.terms.empty())
      return false;
    // Innermost first: the index whose factor is what those before it span.
    SmallVector<Idx *, 2> group;
    Size unit(1);
    auto rest = linear->factors;
    while (!rest.empty()) {
      auto it = llvm::find_if(rest, [&](const auto &entry) {
        return sizes.equal(entry.second, unit);
      });
      if (it == rest.end())
        return false;
      group.insert(group.begin(), it->first);
      unit = sizes.simplify(unit * *it->first->extent);
      rest.erase(it);
    }
    if (group.size() < 2 || !sizes.equal(unit, tensor.shape[k]))
      return false;
    any = true;
    groups.push_back(group);
  }
  if (!any)
    return false;
  SmallVector<ReassociationIndices> reassociation;
  SmallVector<Item> expanded;
  Shape shape;
  for (auto &group : groups) {
    ReassociationIndices dims;
    for (Idx *idx : group) {
      dims.push_back(shape.size());
      shape.push_back(group.size() == 1 ? tensor.shape[&group - groups.begin()]
                                        : *idx->extent);
      expanded.push_back({idx, nullptr});
    }
    reassociation.push_back(dims);
  }
  Location at = loc(expr.range);
  SmallVector<OpFoldResult> outputs;
  for (const Size &size : shape)
    outputs.push_back(emitExtent(size, expr.range));
  auto expand = [&](Value value) -> Value {
    auto elem = cast<RankedTensorType>(value.getType()).getElementType();
    return tensor::ExpandShapeOp::create(builder, at, tensorType(elem, shape),
                                         value, reassociation, outputs);
  };
  tensor.value = expand(tensor.value);
  if (tensor.live)
    tensor.live = expand(tensor.live);
  tensor.shape = shape;
  items.assign(expanded.begin(), expanded.end());
  return true;
}

/// The distinct indices of `items` if each runs over its whole axis.
std::optional<SmallVector<Idx *, 4>>
Lowering::wholeAxes(ArrayRef<Item> items, const TensorVal &tensor) {
  SmallVector<Idx *, 4> axes;
  for (auto [item, size] : llvm::zip(items, tensor.shape)) {
    if (!item.idx || llvm::is_contained(axes, item.idx) ||
        !sizes.equal(*item.idx->extent, size))
      return std::nullopt;
    axes.push_back(item.idx);
  }
  return axes;
}

/// The tensor itself, if `expr` reads all of it in the order of `axes`.
std::optional<TensorVal> Lowering::plainRead(const Expr &expr,
                                             const Scope &scope, Equation &eq,
                                             ArrayRef<Idx *> axes, Ty elem) {
  if (auto *paren = dyn_cast<ParenExpr>(&expr))
    return plainRead(*paren->inner, scope, eq, axes, elem);
  auto *read = dyn_cast<ReadExpr>(&expr);
  if (!read)
    return std::nullopt;
  auto binding = lookup(*scope.env, read->name.text);
  if (binding->kind != Binding::Tensor || binding->tensor.elem != elem)
    return std::nullopt;
  SmallVector<Item> items;
  if (!this->items(*read, scope, items))
    return std::nullopt;
  auto all = wholeAxes(items, binding->tensor);
  if (!all || ArrayRef<Idx *>(*all) != axes)
    return std::nullopt;
  return binding->tensor;
}

TV Lowering::emitRead(Body &body, const ReadExpr &expr, const Scope &scope,
                      Equation &eq) {
  Location at = loc(expr.range);
  SmallVector<Item> items;
  if (!this->items(expr, scope, items))
    return {};
  if (const Info &i = info(expr, scope, eq); i.whole && expr.indices.size())
    for (Idx *idx : ArrayRef<Idx *>(eq.whole).take_front(i.whole->size()))
      items.push_back({idx, nullptr});
  auto tensor = source(expr, scope, eq, body.f64, items);
  if (!tensor)
    return {};
  Key key{&expr, scope.env.get()};
  if (body.kind == Body::Generic) {
    if (auto known = eq.splits.find(key); known != eq.splits.end()) {
      tensor = known->second.first;
      items.assign(known->second.second.begin(), known->second.second.end());
    } else if (split(expr, scope, eq, items, *tensor)) {
      eq.splits.emplace(key, std::make_pair(*tensor, SmallVector<Item>(items)));
    }
  }
  if (auto axes = wholeAxes(items, *tensor);
      axes && isGenericOperand(body, *axes)) {
    TV tv = readTensor(body, *tensor, *axes, at);
    if (lookup(*scope.env, expr.name.text)->kind == Binding::Table)
      tv.ty = info(expr, scope, eq).ty;
    return tv;
  }
  if (!checkRead(expr, scope, eq))
    return {};
  SmallVector<Value> indices;
  for (const Item &item : items) {
    if (item.idx) {
      indices.push_back(indexValue(body, item.idx, at));
      continue;
    }
    TV index = emit(body, *item.expr, scope, eq);
    if (!index)
      return {};
    indices.push_back(asIndex(body, index, at));
  }
  Value raw =
      tensor::ExtractOp::create(body.builder, at, tensor->value, indices);
  TV tv = loaded(body, raw, tensor->elem, at);
  tv.ty = info(expr, scope, eq).ty;
  if (tensor->live)
    tv.live =
        tensor::ExtractOp::create(body.builder, at, tensor->live, indices);
  return tv;
}
