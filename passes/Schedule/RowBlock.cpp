//===- RowBlock.cpp - whole rows of scores in the scratch of a thread -===//
// For kernels whose funcs share a loop over queries and have other dims (keys,
// heads) that nothing outside of the kernel sees: talking heads, row-wise
// functions of scores that do not stream. For a tile of queries every func is
// computed whole, one after the other, and read by the next from the cache; no
// buffer spans all queries.
//
// Vector lanes are queries, as in streaming attention: what depends on queries
// is stored [..][tile], inputs that do not (keys, values, tables) are read as
// scalars in their own layout, and reductions over keys add vectors. A sum that
// reuses what it reads runs in register tiles of U places by one vector.
// Places past the end of a dim are computed from clamped coordinates and not
// read.
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace heed;

namespace {

/// Regions of the func and of its updates that compute something.
SmallVector<Block *> blocksOf(KernelFunc &f) {
  SmallVector<Block *> blocks{&f.func.getBody().front()};
  for (halide::UpdateOp update : f.updates)
    for (Region *region :
         {&update.getSet(), &update.getWhere(), &update.getAt()})
      if (!region->empty())
        blocks.push_back(&region->front());
  return blocks;
}

/// The func that a read belongs to.
Value readerOf(halide::ReadOp read) {
  Operation *parent = read->getParentOp();
  if (auto update = dyn_cast<halide::UpdateOp>(parent))
    return update.getFunc();
  return cast<halide::FuncOp>(parent).getResult();
}

SmallVector<halide::ReadOp> readsOf(Value func) {
  SmallVector<halide::ReadOp> reads;
  for (Operation *user : func.getUsers())
    if (auto read = dyn_cast<halide::ReadOp>(user))
      reads.push_back(read);
  return reads;
}

/// Rough cost of one element.
unsigned costOf(halide::FuncOp func) {
  unsigned cost = 0;
  for (Operation &op : func.getBody().front())
    if (isa<math::MathDialect>(op.getDialect()) || isa<arith::DivFOp>(op))
      cost += 8;
    else if (isa<arith::ArithDialect>(op.getDialect()) &&
             !isa<arith::ConstantOp>(op))
      cost += 1;
  return cost;
}

class RowBlock {
public:
  RowBlock(KernelInfo &kernel, const halide::Target &target)
      : kernel(kernel), lanes(target.lanes(32)),
        places(std::max<int64_t>(1, target.vectorRegisters / 2)) {}

  bool run();

private:
  /// How one func stands in the tile of its root.
  struct Member {
    SmallVector<int> ids; ///< per var the root's var that it follows, or -1
    unsigned query = 0;   ///< the var that follows the root's query
    int tiled = -1;       ///< a sum: the var of its register tile
    int64_t unrolled = 1; ///< ... and its places
    Value accumulators;   ///< the copy of a sum: the sum
  };

  void eraseUnread();
  bool assign();
  bool shape(Value root);
  bool chooseQuery(Value root);
  bool isStored(KernelFunc &f);
  bool shares(int id) { return llvm::is_contained(common, id); }

  void splitSum(Value func);
  void stageReads(Value func);
  void clampReads(Value func);
  void schedule(Value func, Value root, StringRef task);
  void scheduleRoot(Value root);
  void scheduleAlone(Value root);

  KernelInfo &kernel;
  int64_t lanes, places;
  llvm::SetVector<Value> roots;
  DenseMap<Value, Value> owner; ///< of a func: the root whose tile it is in
  DenseMap<Value, Member> members;
  // Of the root that is worked on:
  SmallVector<int> common; ///< vars that all funcs of the tile follow
  int query = -1;
  SmallVector<Value> group; ///< its funcs, in order
};

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
    auto it = llvm::find(member.ids, query);
    if (it != member.ids.end()) {
      member.query = it - member.ids.begin();
      continue;
    }
    KernelFunc *f = kernel.find(func);
    if (f->role == FuncRole::Reduction || costOf(f->func) > 1) {
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
      auto at = llvm::find(member.ids, id);
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
    if (!out->extents[id].fixed || *out->extents[id].fixed >= lanes)
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
  if (f.role == FuncRole::Reduction || members[f.func.getResult()].accumulators)
    return true;
  if (costOf(f.func) <= 1)
    return false;
  llvm::SmallPtrSet<Operation *, 4> stages;
  bool summed = false;
  for (halide::ReadOp read : readsOf(f.func.getResult())) {
    stages.insert(read->getParentOp());
    summed |= isa<halide::UpdateOp>(read->getParentOp());
  }
  return summed || stages.size() > 1;
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
  Value tiled = body.getArgument(member.tiled);
  bool reuses = llvm::any_of(body.getOps<halide::ReadOp>(), [&](auto read) {
    return read.getFunc() != func &&
           llvm::none_of(read.getCoordinates(), [&](Value coordinate) {
             return argumentsOf(coordinate).contains(tiled);
           });
  });
  if (reuses) {
    std::optional<int64_t> extent = f->extents[member.tiled].fixed;
    member.unrolled = extent ? std::clamp<int64_t>(*extent, 1, places) : places;
  }
  // sum_r x * c is c * sum_r x.
  Operation *scale = nullptr;
  Value yielded = body.getTerminator()->getOperand(0);
  if (auto add = yielded.getDefiningOp<arith::AddFOp>())
    for (Value term : add->getOperands())
      if (Operation *op = term.getDefiningOp();
          op && op->hasOneUse() && isa<arith::MulFOp, arith::DivFOp>(op) &&
          op->getOperand(1).getParentRegion() != body.getParent())
        scale = op;
  SmallVector<std::string> names = varsOf(f->func);
  SmallVector<StringRef> vars(names.begin(), names.end());
  SmallVector<Extent> extents = f->extents, reductions = f->reductions[0];
  Type type = halide::getElementTypes(func).front();
  SmallVector<halide::ReadOp> readers;
  for (halide::ReadOp read : readsOf(func))
    if (readerOf(read) != func)
      readers.push_back(read);
  KernelFunc &copy = addFunc(
      kernel, update->getNextNode(), (f->func.getName() + "_tile").str(), vars,
      type, extents, [&](OpBuilder &inner, ValueRange args) -> Value {
        Value value =
            halide::ReadOp::create(inner, func.getLoc(), type, func, args)
                .getResult(0);
        if (!scale)
          return value;
        IRMapping map;
        map.map(scale->getOperand(0), value);
        Operation *applied = inner.clone(*scale, map);
        applied->setAttr("fastmath",
                         arith::FastMathFlagsAttr::get(
                             inner.getContext(), arith::FastMathFlags::none));
        Value scaled = applied->getResult(0);
        // A sum of nothing is not divided: 0 / 0 is no 0.
        for (const Extent &extent : reductions)
          if (!extent.fixed)
            scaled = arith::SelectOp::create(
                inner, func.getLoc(),
                arith::CmpIOp::create(inner, func.getLoc(),
                                      arith::CmpIPredicate::sgt, extent.value,
                                      i32(inner, 0)),
                scaled, value);
        return scaled;
      });
  if (scale) {
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
      KernelFunc *g = kernel.find(func);
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
      SmallVector<std::string> names{"q"};
      SmallVector<Extent> extents{g->extents[member.query]};
      SmallVector<Value> from{body.getArgument(member.query)};
      Member place;
      place.ids = {query};
      for (size_t k = 0; k < body.getNumArguments(); ++k) {
        if (k == member.query || !used.contains(body.getArgument(k)))
          continue;
        names.push_back("k" + std::to_string(k));
        extents.push_back(k < rank ? g->extents[k]
                                   : g->reductions[number][k - rank]);
        from.push_back(body.getArgument(k));
        place.ids.push_back(k < rank ? member.ids[k] : -1);
      }
      SmallVector<StringRef> vars(names.begin(), names.end());
      std::string name = "staged" + std::to_string(kernel.funcs.size());
      KernelFunc &staged =
          addFunc(kernel, g->func, name, vars, read.getResult(0).getType(),
                  extents, [&](OpBuilder &inner, ValueRange args) {
                    IRMapping map;
                    map.map(from, args);
                    return cloneSlice(inner, read.getResult(0), map);
                  });
      Value stored = staged.func.getResult();
      place.accumulators = stored; // stored whatever it costs
      members[stored] = place;
      owner[stored] = root;
      group.insert(llvm::find(group, func), stored);
      OpBuilder here(read);
      auto fresh = halide::ReadOp::create(
          here, read.getLoc(), read.getResult(0).getType(), stored, from);
      read.getResult(0).replaceAllUsesWith(fresh.getResult(0));
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
      Value last = addI32(before, f->extents[d].value, -1);
      Value clamped =
          arith::MinSIOp::create(b, block->getParentOp()->getLoc(), var, last);
      for (OpOperand *use : uses)
        use->set(clamped);
    }
  }
}

void RowBlock::schedule(Value func, Value root, StringRef task) {
  KernelFunc *f = kernel.find(func);
  Member &member = members[func];
  Location loc = func.getLoc();
  OpBuilder b = scheduleBuilder(kernel);
  SmallVector<std::string> names = varsOf(f->func);
  std::string q = names[member.query];
  bool isCopy = member.accumulators && member.accumulators != func;
  bool inTile = member.tiled >= 0 && !isCopy;
  std::string tiled = member.tiled >= 0 ? names[member.tiled] : "";

  SmallVector<StringRef> storage{q};
  for (StringRef name : names)
    if (name != q)
      storage.push_back(name);
  if (inTile) {
    // The copy's loop over register tiles.
    Value copy;
    for (halide::ReadOp read : readsOf(func))
      if (readerOf(read) != func)
        copy = readerOf(read);
    halide::ComputeAtOp::create(b, loc, func, copy, tiled);
  } else {
    halide::ComputeAtOp::create(b, loc, func, root, task);
  }
  if (storage.size() > 1)
    halide::ReorderStorageOp::create(b, loc, func, storage);
  halide::BoundExtentOp::create(b, loc, func, q, i32(b, lanes));
  for (auto [d, name] : llvm::enumerate(names)) {
    if (name == q)
      continue;
    if (inTile && static_cast<int>(d) == member.tiled)
      halide::BoundExtentOp::create(b, loc, func, name,
                                    i32(b, member.unrolled));
    else if (inTile || shares(member.ids[d]))
      halide::BoundExtentOp::create(b, loc, func, name, i32(b, 1));
  }
  for (int64_t stage = 0, end = f->updates.size(); stage <= end; ++stage) {
    SmallVector<std::string> order{q};
    if (isCopy) {
      halide::SplitOp::create(b, loc, func, stage, tiled, tiled, "place",
                              member.unrolled, halide::TailStrategy::RoundUp);
      order.push_back("place");
      order.push_back(tiled);
    } else if (inTile) {
      order.push_back(tiled);
    }
    if (stage)
      for (Attribute r : f->updates[stage - 1].getRvars())
        order.push_back(cast<StringAttr>(r).str());
    for (StringRef name : names)
      if (!llvm::is_contained(order, name))
        order.push_back(name.str());
    halide::ReorderOp::create(
        b, loc, func, stage,
        SmallVector<StringRef>(order.begin(), order.end()));
    halide::VectorizeOp::create(b, loc, func, stage, q);
    if (isCopy)
      halide::UnrollOp::create(b, loc, func, stage, "place");
    else if (inTile)
      halide::UnrollOp::create(b, loc, func, stage, tiled);
  }
}

/// A root with a tile: its loops, then the funcs inside of them.
void RowBlock::scheduleRoot(Value root) {
  for (Value func : SmallVector<Value>(group))
    splitSum(func);
  for (Value func : SmallVector<Value>(group))
    stageReads(func);
  for (Value func : group)
    clampReads(func);

  KernelFunc *out = kernel.find(root);
  Location loc = root.getLoc();
  OpBuilder b = scheduleBuilder(kernel);
  auto guard = halide::TailStrategy::GuardWithIf;
  bool isOutput = llvm::is_contained(outputsOf(kernel), out);
  if (!isOutput)
    halide::ComputeRootOp::create(b, loc, root);
  SmallVector<std::string> names = varsOf(out->func), order;
  std::string q = names[query];
  int64_t width = lanes;
  for (Type type : halide::getElementTypes(root))
    width = std::min<int64_t>(width, 32 * lanes / type.getIntOrFloatBitWidth());
  halide::SplitOp::create(b, loc, root, 0, q, "tile", "row", lanes, guard);
  if (query == 0) {
    halide::VectorizeOp::create(b, loc, root, 0, "row");
    order.push_back("row");
  } else if (!(out->extents[0].fixed && *out->extents[0].fixed < width)) {
    vectorizeInner(b, out->func, 0, names[0], width);
    order.push_back(names[0] + "v");
  }
  SmallVector<std::string> outer{"tile"};
  for (auto [d, name] : llvm::enumerate(names)) {
    if (static_cast<int>(d) == query)
      continue;
    (shares(d) ? outer : order).push_back(name);
  }
  if (query != 0)
    order.push_back("row");
  size_t first = order.size();
  order.append(outer);
  halide::ReorderOp::create(b, loc, root, 0,
                            SmallVector<StringRef>(order.begin(), order.end()));
  std::string task = parallelOuter(b, out->func, 0, order, first);
  for (Value func : group)
    if (isStored(*kernel.find(func)))
      schedule(func, root, task);
}

/// A root without a tile: rows of its own reductions, or elementwise.
void RowBlock::scheduleAlone(Value root) {
  OpBuilder b = scheduleBuilder(kernel);
  SmallVector<Value> funcs(group);
  funcs.push_back(root);
  SmallVector<KernelFunc *> outputs = outputsOf(kernel);
  for (Value func : funcs) {
    KernelFunc *f = kernel.find(func);
    if (f->role == FuncRole::Pure && func != root)
      continue;
    if (!llvm::is_contained(outputs, f))
      halide::ComputeRootOp::create(b, func.getLoc(), func);
    SmallVector<std::string> vars = varsOf(f->func);
    for (int64_t stage = 0, end = f->updates.size(); stage <= end; ++stage)
      parallelOuter(b, f->func, stage, vars, vars.size() > 1 ? 1 : 0);
  }
}

/// Erases funcs that nothing reads: they would count as readers.
void RowBlock::eraseUnread() {
  SmallVector<KernelFunc *> outputs = outputsOf(kernel);
  for (KernelFunc &f : llvm::reverse(kernel.funcs)) {
    Value func = f.func.getResult();
    if (llvm::is_contained(outputs, &f) ||
        llvm::any_of(readsOf(func),
                     [&](auto read) { return readerOf(read) != func; }))
      continue;
    for (halide::UpdateOp update : f.updates)
      update.erase();
    f.func.erase();
    f.func = halide::FuncOp();
  }
  llvm::erase_if(kernel.funcs, [](KernelFunc &f) { return !f.func; });
}

bool RowBlock::run() {
  eraseUnread();
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

} // namespace

bool heed::scheduleRowBlock(KernelInfo &kernel, const halide::Target &target) {
  separateOutputs(kernel);
  return RowBlock(kernel, target).run();
}
