//===- RowBlockTiles.cpp - register tiles of a row block's sums -----------===//
//
// A sum with vars of its own, heads or keys, is computed in register tiles:
// some places of one of them by the tile's queries.
#include "passes/Mutation.h"
#include "passes/Schedule/RowBlock.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

/// Multiply-adds in flight that keep the units busy: two a cycle, each of which
/// takes four.
static constexpr int64_t inFlight = 8;

/// The op that scales a term of the sum in \p body by what is the same for all
/// terms, or null: sum_r x * c is c * sum_r x.
static Operation *commonScale(Block &body) {
  Operation *scale = nullptr;
  Value yielded = body.getTerminator()->getOperand(0);
  if (auto add = yielded.getDefiningOp<arith::AddFOp>())
    for (Value term : add->getOperands())
      if (Operation *op = term.getDefiningOp();
          op && op->hasOneUse() && isa<arith::MulFOp, arith::DivFOp>(op) &&
          op->getOperand(1).getParentRegion() != body.getParent())
        scale = op;
  return scale;
}

/// \p value, a sum over \p reductions, scaled as \p scale does with its terms.
static Value scaled(OpBuilder &b, Location loc, Value value, Operation *scale,
                    ArrayRef<Extent> reductions) {
  IRMapping map;
  map.map(scale->getOperand(0), value);
  Operation *applied = b.clone(*scale, map);
  applied->setAttr("fastmath", arith::FastMathFlagsAttr::get(
                                   b.getContext(), arith::FastMathFlags::none));
  Value result = applied->getResult(0);
  // A sum of nothing is not divided: 0 / 0 is no 0.
  for (const Extent &extent : reductions)
    if (!extent.fixed)
      result = arith::SelectOp::create(
          b, loc,
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, extent.value,
                                i32(b, 0)),
          result, value);
  return result;
}

/// Whether \p read, of a term of \p f, depends on var \p var.
static bool follows(halide::ReadOp read, KernelFunc &f, int var) {
  Block &body = f.updates[0].getSet().front();
  return llvm::any_of(read.getCoordinates(), [&](Value coordinate) {
    return argumentsOf(coordinate).contains(body.getArgument(var));
  });
}

/// What the terms of \p f read: of each read whether it follows the queries,
/// and whether it follows \p dim.
static SmallVector<std::pair<bool, bool>> whatTermsFollow(KernelFunc &f,
                                                          int query, int dim) {
  SmallVector<std::pair<bool, bool>> reads;
  for (halide::ReadOp read : readsOfTerms(f.updates[0]))
    reads.push_back({follows(read, f, query), follows(read, f, dim)});
  return reads;
}

/// Places of a register tile of \p most along \p extent: tiles are alike.
static int64_t placesOf(KnownExtent extent, int64_t most) {
  if (!extent)
    return most;
  int64_t tiles = std::max<int64_t>(1, llvm::divideCeil(*extent, most));
  return std::max<int64_t>(1, llvm::divideCeil(*extent, tiles));
}

/// Of a register tile of \p width places along \p dim: a thousand times the
/// time that one of its multiply-adds takes, of which there are two a cycle, as
/// there are loads.
int64_t RowBlock::costOfTile(KernelFunc &f, int dim, int64_t width) {
  int64_t vectors = lanes / vector, loads = 0, products = width * vectors;
  int query = members[f.func.getResult()].query;
  for (auto [ofQuery, ofDim] : whatTermsFollow(f, query, dim))
    loads += (ofQuery ? vectors : 1) * (ofDim ? width : 1);
  int64_t computed = 1000, extent = f.extents[dim].fixed.value_or(width);
  if (extent > 0)
    computed = 1000 * llvm::alignTo(extent, width) / extent;
  return computed * std::max({loads, products, inFlight}) / products;
}

/// The var of the register tile: the one along which least is loaded for a
/// multiply-add, of those that are alike the first. What heads mix is a vector
/// for all of them, which they share, and other numbers for each key.
void RowBlock::chooseTile(KernelFunc &f) {
  Member &member = members[f.func.getResult()];
  int64_t best = 0;
  for (auto [d, id] : llvm::enumerate(member.ids)) {
    KnownExtent extent = f.extents[d].fixed;
    // Of heads there may be one.
    if (shares(id) || (member.tiled >= 0 && !extent))
      continue;
    bool reuses = llvm::any_of(whatTermsFollow(f, member.query, d),
                               [](auto read) { return !read.second; });
    // Without reuse, as many as hide how long one takes.
    int64_t most = reuses ? places : inFlight * vector / lanes;
    int64_t width = reuses || extent ? placesOf(extent, most) : 1;
    int64_t cost = costOfTile(f, d, width);
    if (member.tiled < 0 || cost < best) {
      member.tiled = d;
      member.unrolled = width;
      best = cost;
    }
  }
}

/// A long sum, whose terms' vectors would come from the second cache for each
/// register tile, is one of blocks that stay in the first cache while all tiles
/// take them in turn. False if it is none, or if it reads rows of an input,
/// which are turned whole (RowBlockTurn.cpp).
bool RowBlock::sumInBlocks(KernelFunc &f) {
  Value func = f.func.getResult();
  Member member = members[func];
  KnownExtent columns = f.extents[member.tiled].fixed;
  ArrayRef<Extent> reductions = f.reductions[0];
  Value root = owner.lookup(func);
  for (halide::ReadOp read : readsOfTerms(f.updates[0]))
    if (owner.lookup(read.getFunc()) != root && follows(read, f, member.query))
      return false;
  bool sharesVectors =
      llvm::any_of(whatTermsFollow(f, member.query, member.tiled),
                   [](auto read) { return read.first && !read.second; });
  if (!sharesVectors || !columns || *columns <= member.unrolled ||
      reductions.size() != 1 || !reductions[0].fixed ||
      commonScale(f.updates[0].getSet().front()))
    return false;
  constexpr int64_t bytes = 4;
  if (*reductions[0].fixed * lanes * bytes <= target.l1 / 2)
    return false;
  // A step's vectors, its row and the one of the next block, beside the sums.
  int64_t held = target.l1 * 3 / 4 - *columns * lanes * bytes;
  int64_t block = llvm::bit_floor<uint64_t>(
      std::max<int64_t>(0, held / ((lanes + 2 * *columns) * bytes)));
  if (block < 16)
    return false;
  Value part = sumByBlocks(kernel, func, block);
  if (!part)
    return false;
  members[func].accumulators = part;
  owner[part] = owner.lookup(func);
  member.block = member.ids.size();
  member.ids.push_back(-1);
  members[part] = member;
  group.insert(llvm::find(group, func), part);
  return true;
}

/// A sum with vars of its own gets a register tile: its accumulators, and a
/// copy that is stored. A factor that all terms share moves to the copy.
void RowBlock::splitSum(Value func) {
  KernelFunc *f = kernel.find(func);
  Member &member = members[func];
  if (f->role != FuncRole::Reduction || f->updates.size() != 1 ||
      halide::getElementTypes(func).size() != 1)
    return;
  chooseTile(*f);
  if (member.tiled < 0 || sumInBlocks(*f))
    return;
  halide::UpdateOp update = f->updates[0];
  Block &body = update.getSet().front();
  Operation *scale = commonScale(body);
  SmallVector<std::string> names = varsOf(f->func);
  SmallVector<StringRef> vars(names.begin(), names.end());
  SmallVector<Extent> extents = f->extents, reductions = f->reductions[0];
  Type type = halide::getElementTypes(func).front();
  SmallVector<halide::ReadOp> readers;
  for (halide::ReadOp read : readsOf(func))
    if (readerOf(read) != func)
      readers.push_back(read);
  KernelFunc &copy = addFunc(
      kernel, update->getNextNode(), heed::format("{}_tile", f->func.getName()),
      vars, type, extents, [&](OpBuilder &inner, ValueRange args) -> Value {
        Value value =
            halide::ReadOp::create(inner, func.getLoc(), type, func, args)
                .getResult(0);
        return !scale || mutated("row-block.forget-scale")
                   ? value
                   : scaled(inner, func.getLoc(), value, scale, reductions);
      });
  if (scale && !mutated("row-block.scale-twice")) {
    Value term = scale->getOperand(0);
    scale->getResult(0).replaceAllUsesWith(term);
    scale->erase();
    if (auto product = term.getDefiningOp<arith::MulFOp>())
      product.setFastmath(arith::FastMathFlags::contract |
                          arith::FastMathFlags::reassoc);
  }
  Value stored = copy.func.getResult();
  for (halide::ReadOp read : readers)
    read->replaceUsesOfWith(func, stored);
  Member place = members[func];
  place.accumulators = func;
  members[stored] = place;
  owner[stored] = owner.lookup(func);
  group.insert(llvm::find(group, func) + 1, stored);
}
