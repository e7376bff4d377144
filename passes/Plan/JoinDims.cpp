//===- JoinDims.cpp - several query or key dims as one --------------------===//
// Attention over images, windows and volumes has queries (y, x) and keys
// (u, v). Its scores, rows and sums are those of one query dim i = y * X + x
// and one key dim j = u * V + v: where a tensor holds the dims side by side
// that is another view of it, and conditions and biases take their own indices
// from the quotients and remainders of i and j. So it streams as any other, and
// the mask solver sees one interval of keys: that of the outer dim.
#include "dialects/Attn/SymbolicDims.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Plan/AttentionParts.h"
#include "passes/Plan/AttentionPlan.h"
#include "passes/Plan/TwoPasses.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace heed {
#define GEN_PASS_DEF_ATTNJOINDIMS
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;
using attn::DimKind;

namespace {

constexpr StringLiteral passName = "attn-join-dims";

/// The axes of a tensor in groups, all of one axis but `count` from \p axis on.
SmallVector<ReassociationIndices> groups(int64_t rank, int64_t axis,
                                         int64_t count) {
  SmallVector<ReassociationIndices> result;
  for (int64_t a = 0; a < rank; ++a)
    if (a > axis && a < axis + count)
      result.back().push_back(a);
    else
      result.push_back({a});
  return result;
}

/// Axis `a` of the result is axis `order[a]` of \p tensor: a copy.
Value transposed(OpBuilder &b, Location loc, Value tensor,
                 ArrayRef<int64_t> order) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> sizes;
  SmallVector<AffineExpr> from(order.size());
  for (auto [to, axis] : llvm::enumerate(order)) {
    from[axis] = b.getAffineDimExpr(to);
    sizes.push_back(type.isDynamicDim(axis)
                        ? OpFoldResult(attn::makeExtent(b, loc, tensor, axis))
                        : b.getIndexAttr(type.getDimSize(axis)));
  }
  Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  SmallVector<AffineMap> maps{
      AffineMap::get(order.size(), 0, from, b.getContext()),
      b.getMultiDimIdentityMap(order.size())};
  SmallVector<utils::IteratorType> loops(order.size(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, empty.getType(), tensor, empty, maps, loops,
             [](OpBuilder &inner, Location at, ValueRange args) {
               linalg::YieldOp::create(inner, at, args[0]);
             })
      .getResult(0);
}

/// The dims of one kind of an attention become one.
class Join {
public:
  Join(OpBuilder &b, attn::AttentionOp op, DimKind kind)
      : b(b), loc(op.getLoc()), op(op), kind(kind), first(op.firstDim(kind)),
        count(op.numDims(kind)), parts(op) {}

  /// The op that takes the place of all of \p op.
  attn::AttentionOp run();

private:
  bool isJoined(unsigned dim) const {
    return dim >= first && dim < first + count;
  }
  bool reads(AffineExpr expr) const {
    for (unsigned d = first; d < first + count; ++d)
      if (expr.isFunctionOfDim(d))
        return true;
    return false;
  }
  void splitIndex();
  std::optional<unsigned> sideBySide(AffineMap map) const;
  SmallVector<int64_t> orderOf(AffineMap map) const;
  bool isView(const AttentionParts::Operand &operand, unsigned axis);
  AffineMap joinedMap(AffineMap map, std::optional<unsigned> axis) const;
  void join(AttentionParts::Operand &operand);
  Type joinedType(RankedTensorType type, unsigned axis) const;
  void joinRegion(Region &region);
  Value split(Value result, Type type, ArrayRef<unsigned> dims, unsigned axis);

  OpBuilder &b;
  Location loc;
  attn::AttentionOp op;
  DimKind kind;
  unsigned first, count;
  AttentionParts parts;
  attn::SymbolicDims known;
  SmallVector<AffineExpr> places; ///< of old dims, in the new ones
};

/// Sizes and places: of (y, x) with sizes (Y, X) the dim i of size Y * X, and
/// y = i floordiv X, x = i mod X.
void Join::splitIndex() {
  SmallVector<Value> own(op.getSizes().slice(first, count));
  Value product = own[0];
  for (Value size : ArrayRef(own).drop_front())
    product = b.createOrFold<arith::MulIOp>(loc, product, size);
  parts.sizes.erase(parts.sizes.begin() + first,
                    parts.sizes.begin() + first + count);
  parts.sizes.insert(parts.sizes.begin() + first, product);
  parts.dims[unsigned(kind)] = 1;
  for (unsigned d = 0; d < op.numLoopDims(); ++d)
    places.push_back(b.getAffineDimExpr(d < first + count ? std::min(d, first)
                                                          : d - count + 1));
  AffineExpr rest = b.getAffineDimExpr(first);
  for (unsigned k = count; --k > 0;) {
    AffineExpr size;
    if (auto fixed = getConstantIntValue(own[k]); fixed && *fixed > 0) {
      size = b.getAffineConstantExpr(*fixed);
    } else {
      size = b.getAffineSymbolExpr(parts.symbols.size());
      parts.symbols.push_back(own[k]);
    }
    places[first + k] =
        mutated("join-dims.quotient-for-remainder") ? rest : rest % size;
    rest = rest.floorDiv(size);
  }
  places[first] = rest;
}

/// The axis where the joined dims begin, one behind the other.
std::optional<unsigned> Join::sideBySide(AffineMap map) const {
  std::optional<unsigned> begin;
  for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
    if (!reads(expr))
      continue;
    if (!begin)
      begin = axis;
    if (expr != b.getAffineDimExpr(first + axis - *begin) ||
        axis >= *begin + count)
      return std::nullopt;
  }
  if (!begin || !map.isFunctionOfDim(first + count - 1))
    return std::nullopt;
  return begin;
}

/// The order of axes in which they would be side by side where the last of them
/// is; empty if some axis is another function of them.
SmallVector<int64_t> Join::orderOf(AffineMap map) const {
  SmallVector<int64_t> own(count, -1), order;
  int64_t last = -1;
  for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
    if (!reads(expr))
      continue;
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || own[dim.getPosition() - first] >= 0)
      return {};
    own[dim.getPosition() - first] = last = axis;
  }
  if (llvm::is_contained(own, -1))
    return {};
  for (int64_t axis = 0; axis < map.getNumResults(); ++axis)
    if (axis == last)
      order.append(own);
    else if (!llvm::is_contained(own, axis))
      order.push_back(axis);
  return order;
}

/// Whether the axes of \p operand from \p axis on are those of the joined dims
/// and no longer, the outermost aside.
bool Join::isView(const AttentionParts::Operand &operand, unsigned axis) {
  for (unsigned k = 1; k < count; ++k)
    if (!known.equal(known.dim(operand.tensor, axis + k),
                     known.size(op.getSizes()[first + k])) &&
        !mutated("join-dims.longer-axis-as-view"))
      return false;
  return true;
}

AffineMap Join::joinedMap(AffineMap map, std::optional<unsigned> axis) const {
  SmallVector<AffineExpr> results;
  for (auto [a, expr] : llvm::enumerate(map.getResults())) {
    if (axis && a > *axis && a < *axis + count)
      continue;
    results.push_back(axis && a == *axis ? b.getAffineDimExpr(first)
                                         : expr.replaceDims(places));
  }
  return AffineMap::get(map.getNumDims() - count + 1, parts.symbols.size(),
                        results, b.getContext());
}

void Join::join(AttentionParts::Operand &operand) {
  AffineMap map = operand.map;
  std::optional<unsigned> axis = sideBySide(map);
  // Keys and values are read once for each tile of queries, so that a copy is
  // cheap; queries are read once.
  if (!axis && kind != DimKind::Query)
    if (SmallVector<int64_t> order = orderOf(map); !order.empty()) {
      operand.tensor = transposed(b, loc, operand.tensor, order);
      SmallVector<AffineExpr> results;
      for (int64_t from : order)
        results.push_back(map.getResult(from));
      map = AffineMap::get(map.getNumDims(), map.getNumSymbols(), results,
                           b.getContext());
      operand.map = map;
      axis = sideBySide(map);
    }
  if (axis && !isView(operand, *axis))
    axis.reset();
  if (axis)
    operand.tensor = tensor::CollapseShapeOp::create(
        b, loc, operand.tensor, groups(map.getNumResults(), *axis, count));
  operand.map = joinedMap(map, axis);
}

/// \p type with one axis for those from \p axis on.
Type Join::joinedType(RankedTensorType type, unsigned axis) const {
  return tensor::CollapseShapeOp::inferCollapsedType(
      type, groups(type.getRank(), axis, count));
}

/// A region that takes the joined index computes the others from it.
void Join::joinRegion(Region &region) {
  if (region.empty() || kind == DimKind::Value)
    return;
  Block &body = region.front();
  OpBuilder inner = OpBuilder::atBlockBegin(&body);
  Value rest = body.insertArgument(first, b.getIndexType(), loc);
  SmallVector<Operation *> made;
  auto create = [&](auto tag, Value x, Value y) {
    using Op = decltype(tag);
    auto result = Op::create(inner, loc, x, y);
    made.push_back(result);
    return result.getResult();
  };
  for (unsigned k = count; --k > 0;) {
    Value size =
        op.getSizes()[first + (mutated("join-dims.outer-divides") ? 0 : k)];
    Value quotient = create(arith::FloorDivSIOp(), rest, size);
    Value whole = create(arith::MulIOp(), quotient, size);
    body.getArgument(first + k + 1)
        .replaceAllUsesWith(create(arith::SubIOp(), rest, whole));
    rest = quotient;
  }
  body.getArgument(first + 1).replaceAllUsesWith(
      mutated("join-dims.outer-index-is-joined") ? body.getArgument(first)
                                                 : rest);
  body.eraseArguments(first + 1, count);
  for (Operation *operation : llvm::reverse(made))
    if (operation->use_empty())
      operation->erase();
}

/// \p result with the axes of the old \p type, which are loop dims \p dims, for
/// the joined one.
Value Join::split(Value result, Type type, ArrayRef<unsigned> dims,
                  unsigned axis) {
  auto shaped = cast<RankedTensorType>(type);
  SmallVector<OpFoldResult> sizes;
  for (auto [a, dim] : llvm::enumerate(dims))
    sizes.push_back(shaped.isDynamicDim(a)
                        ? OpFoldResult(op.getSizes()[dim])
                        : b.getIndexAttr(shaped.getDimSize(a)));
  return tensor::ExpandShapeOp::create(
      b, loc, shaped, result, groups(shaped.getRank(), axis, count), sizes);
}

attn::AttentionOp Join::run() {
  splitIndex();
  for (auto &term : parts.terms)
    for (auto &operand : term)
      join(operand);
  for (auto &operand : parts.values)
    join(operand);
  if (parts.sink)
    join(*parts.sink);

  // A result whose axes are not side by side is written so, and copied.
  auto type = cast<RankedTensorType>(op.getOutput().getType());
  AffineMap map = op.outputMap();
  SmallVector<int64_t> order;
  if (kind != DimKind::Key && !sideBySide(map)) {
    order = orderOf(map);
    SmallVector<int64_t> shape;
    SmallVector<AffineExpr> results;
    for (int64_t axis : order) {
      shape.push_back(type.getDimSize(axis));
      results.push_back(map.getResult(axis));
    }
    type = type.clone(shape);
    map = AffineMap::get(map.getNumDims(), 0, results, b.getContext());
  }
  std::optional<unsigned> axis = sideBySide(map);
  parts.outputMap = joinedMap(map, axis);
  parts.outputMap =
      AffineMap::get(parts.outputMap.getNumDims(), 0,
                     parts.outputMap.getResults(), b.getContext());
  parts.output = axis ? joinedType(type, *axis) : Type(type);
  bool joinsRows = kind == DimKind::Query;
  if (op.getLse() && joinsRows)
    parts.lse =
        joinedType(cast<RankedTensorType>(op.getLse().getType()), first);
  attn::AttentionOp fresh = parts.build(b, op);
  for (Region *region :
       {&fresh.getScore(), &fresh.getWhere(), &fresh.getWeight()})
    joinRegion(*region);

  Value output = fresh.getOutput();
  if (axis) {
    SmallVector<unsigned> dims;
    for (AffineExpr expr : map.getResults())
      dims.push_back(cast<AffineDimExpr>(expr).getPosition());
    output = split(output, type, dims, *axis);
  }
  if (!order.empty())
    output = transposed(b, loc, output, invertPermutationVector(order));
  op.getOutput().replaceAllUsesWith(output);
  if (op.getLse())
    op.getLse().replaceAllUsesWith(
        joinsRows
            ? split(fresh.getLse(), op.getLse().getType(),
                    llvm::to_vector(llvm::seq<unsigned>(0, first + count)),
                    first)
            : Value(fresh.getLse()));
  return fresh;
}

struct JoinDims : heed::impl::AttnJoinDimsBase<JoinDims> {
  void runOnOperation() override {
    SmallVector<attn::AttentionOp> ops;
    getOperation()->walk([&](attn::AttentionOp op) {
      if (!op.plan() && op.getMask().empty() && hasSeveral(op))
        ops.push_back(op);
    });
    for (attn::AttentionOp op : ops)
      join(op);
  }

  static bool hasSeveral(attn::AttentionOp op) {
    return llvm::any_of(
        kinds, [&](const auto &kind) { return op.numDims(kind.first) > 1; });
  }

  void join(attn::AttentionOp op) {
    StringRef why = needsSumFirst(op)
                        ? "its weights are rounded, or no product with them"
                        : whyNeverStreaming(op);
    OpBuilder b(op);
    attn::AttentionOp now = why.empty() ? withoutPairTerms(b, op, why) : op;
    if (!why.empty())
      return remarkDeclined(op, passName, "dims",
                            heed::format("its dims stay apart: {}", why));
    std::string joined;
    for (auto [kind, name] : kinds) {
      if (op.numDims(kind) < 2)
        continue;
      joined += heed::format("{}{} {} dims", joined.empty() ? "" : ", ",
                             op.numDims(kind), name);
      b.setInsertionPoint(now);
      attn::AttentionOp next = Join(b, now, kind).run();
      if (now != op)
        now.erase();
      now = next;
    }
    remarkDone(now, passName, "dims",
               heed::format("one dim instead of {}", joined));
    op.erase();
  }

  static constexpr std::pair<DimKind, StringLiteral> kinds[] = {
      {DimKind::Query, "query"},
      {DimKind::Key, "key"},
      {DimKind::Value, "value"}};
};

} // namespace
