//===- RowBlockRewrite.cpp - staged and clamped reads ---------------------===//
#include "passes/Mutation.h"
#include "passes/Schedule/RowBlock.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heed;

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
  // A sum reads what it is over one behind the other.
  SmallVector<size_t> order;
  for (size_t k = rank; k < body.getNumArguments(); ++k)
    order.push_back(k);
  for (size_t k = 0; k < rank; ++k)
    order.push_back(k);
  for (size_t k : order) {
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
      if ((shares(member.ids[d]) && member.ids[d] != query) ||
          static_cast<int>(d) == member.block)
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
      int64_t off = mutated("row-block.clamp-before-last") ? -2 : -1;
      const Extent &extent = f->extents[d];
      Value last = extent.fixed ? i32(before, *extent.fixed + off)
                                : addI32(before, extent.value, off);
      Value clamped =
          arith::MinSIOp::create(b, block->getParentOp()->getLoc(), var, last);
      for (OpOperand *use : uses)
        use->set(clamped);
    }
  }
}
