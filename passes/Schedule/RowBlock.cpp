//===- RowBlock.cpp - whole rows of scores in the scratch of a thread -----===//
// For kernels whose funcs share a loop over queries and have other dims (keys,
// heads) that nothing outside of the kernel sees: talking heads, row-wise
// functions of scores that do not stream. For a tile of queries every func is
// computed whole, one after the other, and read by the next from the cache; no
// buffer spans all queries.
//
// Vector lanes are queries, as in streaming attention: what depends on queries
// is stored [..][tile], inputs that do not (keys, values, tables) are read as
// scalars in their own layout, and reductions over keys add vectors. A sum that
// reuses what it reads runs in register tiles of U places by one or two
// vectors.
// Places past the end of a dim are computed from clamped coordinates and not
// read.
#include "passes/Schedule/RowBlock.h"
#include "passes/Algebra/ElementCost.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

SmallVector<Block *> heed::blocksOf(KernelFunc &f) {
  SmallVector<Block *> blocks{&f.func.getBody().front()};
  for (halide::UpdateOp update : f.updates)
    for (Region *region :
         {&update.getSet(), &update.getWhere(), &update.getAt()})
      if (!region->empty())
        blocks.push_back(&region->front());
  return blocks;
}

Value heed::readerOf(halide::ReadOp read) {
  Operation *parent = read->getParentOp();
  if (auto update = dyn_cast<halide::UpdateOp>(parent))
    return update.getFunc();
  return cast<halide::FuncOp>(parent).getResult();
}

SmallVector<halide::ReadOp> heed::readsOf(Value func) {
  SmallVector<halide::ReadOp> reads;
  for (Operation *user : func.getUsers())
    if (auto read = dyn_cast<halide::ReadOp>(user))
      reads.push_back(read);
  return reads;
}

/// Gives each func the root that alone reads it; what two roots read is a root.
bool RowBlock::assign() {
  for (bool changed = true; changed;) {
    changed = false;
    owner.clear();
    for (KernelFunc &f : llvm::reverse(kernel.funcs)) {
      Value func = f.func.getResult();
      llvm::SetVector<Value> owners;
      for (halide::ReadOp read : readsOf(func))
        if (readerOf(read) != func)
          owners.insert(owner.lookup(readerOf(read)));
      if (roots.contains(func) || owners.size() > 1) {
        changed |= roots.insert(func);
        owner[func] = func;
      } else if (!owners.empty()) {
        owner[func] = owners.front();
      }
      for (halide::UpdateOp update : f.updates)
        if (!update.getAt().empty() || !update.getWhere().empty())
          return false;
    }
    for (Value root : roots)
      if (!shape(root)) {
        changed = true;
        break;
      }
  }
  return true;
}

/// Follows the root's vars to the funcs of its tile. False if one of them does
/// not follow the query: it becomes a root.
bool RowBlock::shape(Value root) {
  KernelFunc *out = kernel.find(root);
  Member &top = members[root];
  top.ids.clear();
  for (size_t d = 0; d < out->extents.size(); ++d)
    top.ids.push_back(d);
  group.clear();
  for (KernelFunc &f : llvm::reverse(kernel.funcs)) {
    Value func = f.func.getResult();
    if (func == root || owner.lookup(func) != root)
      continue;
    Member &member = members[func];
    member.query = -1;
    member.ids.assign(f.extents.size(), -2);
    for (halide::ReadOp read : readsOf(func)) {
      Value reader = readerOf(read);
      if (reader == func)
        continue;
      Member &consumer = members[reader];
      for (auto [d, coordinate] : llvm::enumerate(read.getCoordinates())) {
        auto arg = dyn_cast<BlockArgument>(coordinate);
        int id = arg && arg.getArgNumber() < consumer.ids.size()
                     ? consumer.ids[arg.getArgNumber()]
                     : -1;
        if (member.ids[d] == -2)
          member.ids[d] = id;
        else if (member.ids[d] != id)
          member.ids[d] = -1;
      }
    }
    group.push_back(func);
  }
  std::reverse(group.begin(), group.end());
  if (!chooseQuery(root))
    return true; // nothing to share: the root is computed alone
  for (Value func : group) {
    Member &member = members[func];
    auto *it = llvm::find(member.ids, query);
    if (it != member.ids.end()) {
      member.query = it - member.ids.begin();
      continue;
    }
    KernelFunc *f = kernel.find(func);
    if (f->role == FuncRole::Reduction ||
        countOperations(f->func).costInVectors() > 1) {
      roots.insert(func);
      return false;
    }
  }
  return true;
}

/// The query: of the vars that all sums follow, the one that most of what they
/// read does not depend on.
bool RowBlock::chooseQuery(Value root) {
  common.clear();
  query = -1;
  KernelFunc *out = kernel.find(root);
  bool any = false;
  for (size_t d = 0; d < out->extents.size(); ++d)
    common.push_back(d);
  for (Value func : group)
    if (kernel.find(func)->role == FuncRole::Reduction) {
      ArrayRef<int> ids = members[func].ids;
      // A sum that follows no var of the root is a table.
      if (llvm::all_of(ids, [](int id) { return id < 0; }))
        continue;
      any = true;
      llvm::erase_if(common,
                     [&](int id) { return !llvm::is_contained(ids, id); });
    }
  if (!any || common.empty())
    return false;
  int64_t best = -1;
  for (int id : common) {
    int64_t score = 0;
    for (Value func : group) {
      KernelFunc *f = kernel.find(func);
      Member &member = members[func];
      auto *at = llvm::find(member.ids, id);
      if (f->role != FuncRole::Reduction || at == member.ids.end())
        continue;
      unsigned var = at - member.ids.begin();
      for (halide::UpdateOp update : f->updates) {
        Block &body = update.getSet().front();
        for (auto read : body.getOps<halide::ReadOp>())
          if (owner.lookup(read.getFunc()) != root &&
              llvm::none_of(read.getCoordinates(), [&](Value coordinate) {
                return argumentsOf(coordinate).contains(body.getArgument(var));
              }))
            score += 4;
      }
    }
    // Lanes want to be many.
    if (!out->extents[id].fixed || *out->extents[id].fixed >= vector)
      score += 2;
    if (score > best) {
      best = score;
      query = id;
    }
  }
  // The root writes vectors of its innermost var.
  if (query != 0)
    llvm::erase(common, 0);
  return true;
}

bool RowBlock::isStored(KernelFunc &f) {
  const Member &member = members[f.func.getResult()];
  if (f.role == FuncRole::Reduction || member.accumulators)
    return true;
  // Without lanes there is nothing to store by; `shape` found it cheap.
  if (member.query < 0)
    return false;
  // A condition is a mask register where it is computed, and is none any more
  // where it was stored.
  bool isCondition =
      halide::getElementTypes(f.func.getResult()).front().isInteger(1);
  if (countOperations(f.func).costInVectors() <=
      (isCondition ? mostCheapOperations : 1))
    return false;
  llvm::SmallPtrSet<Operation *, 4> stages;
  bool summed = false;
  for (halide::ReadOp read : readsOf(f.func.getResult())) {
    stages.insert(read->getParentOp());
    summed |= isa<halide::UpdateOp>(read->getParentOp());
  }
  return summed || stages.size() > 1;
}

/// Two vectors of queries a tile where that leaves tasks enough and what is
/// stored stays in the second cache: keys and values are then read half as
/// often.
void RowBlock::chooseLanes(Value root) {
  KernelFunc *out = kernel.find(root);
  std::optional<int64_t> tasks = 1;
  auto multiply = [](std::optional<int64_t> &product, KnownExtent by) {
    product = product && by ? std::optional(*product * *by) : std::nullopt;
  };
  for (int id : common)
    if (id != query)
      multiply(tasks, out->extents[id].fixed);
  multiply(tasks, out->extents[query].fixed);
  // One func is read while the next one is written.
  int64_t largest = 0;
  bool fits = true;
  for (Value func : group) {
    KernelFunc *f = kernel.find(func);
    const Member &member = members[func];
    if (!isStored(*f))
      continue;
    std::optional<int64_t> places = 1;
    for (auto [d, id] : llvm::enumerate(member.ids))
      if (!shares(id) && static_cast<int>(d) != member.query)
        multiply(places, f->extents[d].fixed);
    fits &= places.has_value();
    largest = std::max(largest, places.value_or(0) * 4);
  }
  fits &= 2 * largest * 2 * vector <= target.l2 * 3 / 4;
  bool isWide = fits && tasks && *tasks >= 2 * vector * 2 * target.cores;
  lanes = isWide ? 2 * vector : vector;
  places = std::max<int64_t>(1, target.vectorRegisters / (isWide ? 4 : 2));
}

bool RowBlock::run() {
  dropUnreadFuncs(kernel); // they would count as readers
  for (halide::FuncOp func : kernel.pipeline.getOutputFuncs())
    roots.insert(func.getResult());
  if (!assign())
    return false;
  bool tiles = false;
  for (Value root : roots) {
    shape(root);
    tiles |= query >= 0;
  }
  if (!tiles)
    return false;
  stateDenseStrides(kernel);
  for (Value root : roots) {
    shape(root);
    if (query < 0)
      scheduleAlone(root);
    else
      scheduleRoot(root);
  }
  return true;
}

static std::optional<FamilyPlan> matchRowBlock(const KernelFacts &facts,
                                               const halide::Target &target) {
  if (facts.kind != "row block")
    return std::nullopt;
  return FamilyPlan{Benefit::WholeRowBlock, [&target](KernelInfo &kernel) {
                      separateOutputs(kernel);
                      return RowBlock(kernel, target).run();
                    }};
}

namespace heed {
Family rowBlockFamily() { return {"row block", matchRowBlock}; }
} // namespace heed
