//===- RowBlockRewrite.cpp - register tiles, staged and clamped reads -----===//
#include "passes/Mutation.h"
#include "passes/Schedule/RowBlock.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heed;

/// Whether the terms of \p body, of \p func, read what does not follow \p
/// place.
static bool reusesReads(Block &body, Value func, Value place) {
  return llvm::any_of(body.getOps<halide::ReadOp>(), [&](auto read) {
    return read.getFunc() != func &&
           llvm::none_of(read.getCoordinates(), [&](Value coordinate) {
             return argumentsOf(coordinate).contains(place);
           });
  });
}

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

/// A sum with vars of its own gets a register tile: its accumulators, and a
/// copy that is stored. A factor that all terms share moves to the copy.
void RowBlock::splitSum(Value func) {
  KernelFunc *f = kernel.find(func);
  Member &member = members[func];
  if (f->role != FuncRole::Reduction || f->updates.size() != 1 ||
      halide::getElementTypes(func).size() != 1)
    return;
  for (auto [d, id] : llvm::enumerate(member.ids))
    if (!shares(id)) {
      member.tiled = d;
      break;
    }
  if (member.tiled < 0)
    return;
  halide::UpdateOp update = f->updates[0];
  Block &body = update.getSet().front();
  if (reusesReads(body, func, body.getArgument(member.tiled))) {
    std::optional<int64_t> extent = f->extents[member.tiled].fixed;
    member.unrolled = extent ? std::clamp<int64_t>(*extent, 1, places) : places;
  }
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

/// Stores \p value, that \p body of \p func, over \p reductions, computes of
/// its arguments \p used, lanes innermost. Returns what a read at \p here
/// finds.
Value RowBlock::stage(Value func, Block &body, ArrayRef<Extent> reductions,
                      Value value, OpBuilder &here,
                      const llvm::SmallPtrSetImpl<Value> &used) {
  KernelFunc *g = kernel.find(func);
  Member &member = members[func];
  size_t rank = g->extents.size();
  SmallVector<std::string> names{"q"};
  SmallVector<Extent> extents{g->extents[member.query]};
  SmallVector<Value> from{body.getArgument(member.query)};
  Member place;
  place.ids = {query};
  place.query = 0;
  for (size_t k = 0; k < body.getNumArguments(); ++k) {
    if (static_cast<int>(k) == member.query ||
        !used.contains(body.getArgument(k)))
      continue;
    size_t loop = k < rank ? 0 : k - rank;
    if (loop && mutated("row-block.staged-to-first-extent"))
      loop = 0;
    names.push_back(heed::format("k{}", k));
    extents.push_back(k < rank ? g->extents[k] : reductions[loop]);
    from.push_back(body.getArgument(k));
    place.ids.push_back(k < rank ? member.ids[k] : -1);
  }
  SmallVector<StringRef> vars(names.begin(), names.end());
  std::string name = heed::format("staged{}", kernel.funcs.size());
  KernelFunc &staged = addFunc(kernel, g->func, name, vars, value.getType(),
                               extents, [&](OpBuilder &inner, ValueRange args) {
                                 IRMapping map;
                                 map.map(from, args);
                                 return cloneSlice(inner, value, map);
                               });
  Value stored = staged.func.getResult();
  place.accumulators = stored; // stored whatever it costs
  members[stored] = place;
  owner[stored] = owner.lookup(func);
  group.insert(llvm::find(group, func), stored);
  if (from.size() > 1 && mutated("row-block.staged-at-first"))
    from.back() = i32(here, 0);
  return halide::ReadOp::create(here, value.getLoc(), value.getType(), stored,
                                from)
      .getResult(0);
}

/// What a sum reads of an input per query, and reuses, is stored by lanes
/// first.
void RowBlock::stageReads(Value func) {
  KernelFunc *f = kernel.find(func);
  if (f->role != FuncRole::Reduction)
    return;
  Value root = owner.lookup(func);
  size_t rank = f->extents.size();
  for (auto [number, update] : llvm::enumerate(f->updates)) {
    Block &body = update.getSet().front();
    for (auto read :
         llvm::make_early_inc_range(body.getOps<halide::ReadOp>())) {
      if (owner.lookup(read.getFunc()) == root || read->getNumResults() != 1)
        continue;
      Member &member = members[func];
      llvm::SmallPtrSet<Value, 4> used;
      for (Value coordinate : read.getCoordinates())
        for (Value arg : argumentsOf(coordinate))
          used.insert(arg);
      bool reused = false;
      for (size_t d = 0; d < rank; ++d)
        reused |= !shares(member.ids[d]) && !used.contains(body.getArgument(d));
      if (!reused || !used.contains(body.getArgument(member.query)))
        continue;
      OpBuilder here(read);
      Value value = read.getResult(0);
      value.replaceAllUsesWith(
          stage(func, body, f->reductions[number], value, here, used));
      read.erase();
    }
  }
}

/// Inputs are read at clamped coordinates: a tile may run past the last query,
/// a register tile past the last place.
void RowBlock::clampReads(Value func) {
  KernelFunc *f = kernel.find(func);
  Value root = owner.lookup(func);
  Member &member = members[func];
  for (Block *block : blocksOf(*f)) {
    OpBuilder b(block, block->begin());
    for (size_t d = 0; d < f->extents.size(); ++d) {
      if (shares(member.ids[d]) && member.ids[d] != query)
        continue;
      BlockArgument var = block->getArgument(d);
      SmallVector<OpOperand *> uses;
      for (OpOperand &use : var.getUses()) {
        auto read = dyn_cast<halide::ReadOp>(use.getOwner());
        if (!read || owner.lookup(read.getFunc()) != root)
          uses.push_back(&use);
      }
      if (uses.empty())
        continue;
      OpBuilder before(f->func);
      Value last = addI32(before, f->extents[d].value,
                          mutated("row-block.clamp-before-last") ? -2 : -1);
      Value clamped =
          arith::MinSIOp::create(b, block->getParentOp()->getLoc(), var, last);
      for (OpOperand *use : uses)
        use->set(clamped);
    }
  }
}
