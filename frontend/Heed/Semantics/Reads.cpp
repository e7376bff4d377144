//===- Reads.cpp - Reading tensors
//-----------------------------------------===//
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

#include "Analysis.h"
#include "support/Format.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace heed;
using namespace heed::sema;
using namespace heed::ast;
using llvm::dyn_cast;

/// A constant table. No tensor holds f64 (front.c8): in a body that computes in
/// f64 one of reals is that of their bits, in i64.
TensorVal Analysis::tableTensor(const std::shared_ptr<Table> &table, bool f64,
                                Range place) {
  TensorVal tensor;
  tensor.shape = table->extents();
  tensor.elem = stored(table->elem);
  if (llvm::any_of(table->ints, [](int64_t n) { return n != int32_t(n); }))
    tensor.elem = Ty::I64;
  tensor.value = newTensor();
  sink->push_back(TableData{table, tensor.elem,
                            table->elem == Ty::AnyReal && f64, tensor.value,
                            place});
  return tensor;
}

//===----------------------------------------------------------------------===//
// Collections
//===----------------------------------------------------------------------===//

/// The slice of `collection` at fixed positions, if they are all known.
const TensorVal *Analysis::slice(const Collection &collection,
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
Analysis::reached(const Collection &collection, ArrayRef<Item> items,
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
      error(place,
            format(
                "extent {} of the collection '{}' must be known when compiling",
                sizes.str(collection.shape[axis]), collection.name));
      return std::nullopt;
    }
    box.push_back({low, end});
  }
  return box;
}

using Slices = std::vector<std::pair<std::vector<int64_t>, TensorVal>>;

static Slices slicesIn(const Collection &collection,
                       ArrayRef<std::pair<int64_t, int64_t>> box) {
  Slices slices;
  for (auto &slice : collection.slices)
    if (llvm::all_of(llvm::zip(slice.first, box), [](const auto &at) {
          auto [position, range] = at;
          return range.first <= position && position < range.second;
        }))
      slices.push_back(slice);
  return slices;
}

/// One tensor of the slices in `box`, from position 0 on.
std::optional<TensorVal>
Analysis::assemble(const Collection &collection,
                   ArrayRef<std::pair<int64_t, int64_t>> box, Range place) {
  // Every position must be defined.
  Slices slices = slicesIn(collection, box);
  int64_t total = 1;
  for (auto [low, end] : box)
    total *= std::max<int64_t>(end - low, 0);
  if (collection.fixed.empty() || int64_t(slices.size()) != total) {
    std::string defined;
    for (auto &slice : collection.slices)
      defined += format("{}{}", defined.empty() ? "" : ", ",
                        fmt::join(slice.first, "/"));
    error(place,
          format("undefined slices of the collection '{}' are read: {} "
                 "of {} are defined{}",
                 collection.name, slices.size(), total,
                 (defined.empty() ? "" : heed::format(" ({})", defined))));
    return std::nullopt;
  }
  // One body that reads each slice where it is.
  Equation eq;
  SmallVector<Idx *, 4> free, fixed;
  for (auto [k, size] : llvm::enumerate(collection.shape)) {
    Idx &idx = newIdx(eq);
    idx.extent = size;
    eq.whole.push_back(&idx);
    const auto *position = llvm::find(collection.fixed, k);
    if (position == collection.fixed.end()) {
      free.push_back(&idx);
      continue;
    }
    idx.extent = Size(
        std::max<int64_t>(box[position - collection.fixed.begin()].second, 0));
    fixed.push_back(&idx);
  }
  if (slices.empty()) {
    Shape shape = shapeOf(eq.whole);
    const Tensor *result = newTensor();
    sink->push_back(Zeros{collection.elem, uses(shape), result, place});
    return TensorVal{result, collection.elem, shape, nullptr};
  }
  auto join = [&](bool live) {
    Ty ty = live ? Ty::Bool : collection.elem;
    return elementwise(eq.whole, ty, place, false, [&](Body &) {
      Node *node = newNode(Node::Slices, ty, place);
      node->flag = live;
      node->axes = free;
      node->fixed = fixed;
      for (auto &[positions, tensor] : slices)
        node->slices.push_back({tensor, positions});
      return node;
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
std::optional<TensorVal> Analysis::source(const ReadExpr &expr,
                                          const Scope &scope, Equation &eq,
                                          bool f64,
                                          llvm::SmallVectorImpl<Item> &items) {
  auto binding = lookup(*scope.env, expr.name.text);
  if (binding->kind == Binding::Table)
    return tableTensor(binding->table, f64, expr.range);
  if (binding->kind == Binding::Stacked)
    return rowOfStep(expr, *binding->stacked, scope, eq, items);
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
    error(expr.range,
          format("an undefined slice of '{}' is read", expr.name.text));
    return std::nullopt;
  }
  if (rolled) {
    needsUnroll = true;
    return std::nullopt;
  }
  auto box = reached(collection, items, scope, eq, expr.range);
  return box ? assemble(collection, *box, expr.range) : std::nullopt;
}

/// The indices of h*E + e from the outermost in, and what they span; none if
/// the factors are others.
static SmallVector<Idx *, 2> digitsOf(std::map<Idx *, Size, ByNumber> rest,
                                      SizeTable &sizes, Size &unit) {
  // Innermost first: the index whose factor is what those before it span. One
  // of a single turn spans nothing: another with the same factor may follow.
  SmallVector<Idx *, 2> group;
  while (!rest.empty()) {
    auto fits = [&](const auto &entry) {
      return sizes.equal(entry.second, unit);
    };
    auto it = llvm::find_if(rest, [&](const auto &entry) {
      return fits(entry) && entry.first->extent->is(1);
    });
    if (it == rest.end())
      it = llvm::find_if(rest, fits);
    if (it == rest.end())
      return {};
    group.insert(group.begin(), it->first);
    unit = sizes.simplify(unit * *it->first->extent);
    rest.erase(it);
  }
  return group;
}

/// Turns an axis read at h*E + e into two axes h and e.
bool Analysis::split(const ReadExpr &expr, const Scope &scope, Equation &eq,
                     llvm::SmallVectorImpl<Item> &items, TensorVal &tensor) {
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
    Size unit(1);
    SmallVector<Idx *, 2> group = digitsOf(linear->factors, sizes, unit);
    if (group.size() < 2 || !sizes.equal(unit, tensor.shape[k]))
      return false;
    any = true;
    groups.push_back(group);
  }
  if (!any)
    return false;
  Groups merged;
  SmallVector<Item> expanded;
  Shape shape;
  for (auto &group : groups) {
    SmallVector<int64_t, 2> dims;
    for (Idx *idx : group) {
      dims.push_back(shape.size());
      shape.push_back(group.size() == 1 ? tensor.shape[&group - groups.begin()]
                                        : *idx->extent);
      expanded.push_back({idx, nullptr});
    }
    merged.push_back(dims);
  }
  auto expand = [&](const Tensor *from) {
    const Tensor *to = newTensor();
    sink->push_back(Expand{from, to, uses(shape), merged, expr.range});
    return to;
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
Analysis::wholeAxes(ArrayRef<Item> items, const TensorVal &tensor) {
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
std::optional<TensorVal> Analysis::plainRead(const Expr &expr,
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

Node *Analysis::resolveRead(Body &body, const ReadExpr &expr,
                            const Scope &scope, Equation &eq) {
  SmallVector<Item> items;
  if (!this->items(expr, scope, items))
    return nullptr;
  if (const Info &i = info(expr, scope, eq); i.whole && expr.indices.size())
    for (Idx *idx : ArrayRef<Idx *>(eq.whole).take_front(i.whole->size()))
      items.push_back({idx, nullptr});
  auto tensor = source(expr, scope, eq, body.f64, items);
  if (!tensor)
    return nullptr;
  if (body.kind == Body::Generic &&
      (!scans.empty() || scope.env->states.count(expr.name.text)) &&
      !takeRow(expr, scope, eq, items, *tensor))
    return nullptr;
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
      axes && body.kind == Body::Generic && body.hasLoops(*axes)) {
    Node *node = elementNode(*tensor, *axes, expr.range);
    if (lookup(*scope.env, expr.name.text)->kind == Binding::Table)
      node->ty = info(expr, scope, eq).ty;
    return node;
  }
  if (!checkRead(expr, scope, eq))
    return nullptr;
  Node *node = newNode(Node::Extract, info(expr, scope, eq).ty, expr.range);
  node->tensor = *tensor;
  node->absent = tensor->live;
  for (const Item &item : items) {
    node->operands.push_back(item.idx ? indexNode(item.idx, expr.range)
                                      : resolve(body, *item.expr, scope, eq));
    if (!node->operands.back())
      return nullptr;
  }
  return node;
}
