//===- GPUAttention.cpp - schedule of streaming attention on GPUs ---------===//
//
// A block of threads has a tile of queries of one head, and goes over the keys
// a block at a time: keys, values, scores and weights of it are in shared
// memory. A thread computes the scores of some queries and 8 keys, and of these
// queries 8 value dims, whose sums it keeps in registers.
// Figures: passes/Schedule/README.md.
#include "passes/Schedule/Schedule.h"
#include "passes/Schedule/StreamingPlan.h"
#include "passes/Schedule/StreamingWriter.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed;
using heed::streaming::Writer;

namespace {

struct OnGPU {
  Writer &w;
  const StreamingPlan &plan;

  int64_t threadsX() const { return plan.tile / plan.ownQueries; }
  int64_t groupsOfValues() const {
    return llvm::divideCeil(*plan.values->fixed, plan.group);
  }
  int64_t threadsY() const {
    int64_t most = groupsOfValues();
    for (const StreamingStage &stage : plan.stages)
      most = std::max(most, stage.block / plan.keyGroup);
    return most;
  }
  /// What goes over the keys, a block at a time.
  halide::FuncOp overKeys() const {
    return plan.bySplit ? plan.part : plan.state;
  }
  void threads(halide::FuncOp f, int64_t stage, StringRef x, StringRef y) {
    halide::GPUThreadsOp::create(w.b, w.loc, f.getResult(), stage,
                                 w.b.getStrArrayAttr({x, y}));
  }
  /// A block of threads for each turn of the loops \p own and of those of the
  /// \p batch, which become one.
  void blocks(halide::FuncOp f, SmallVector<StringRef> own,
              SmallVector<std::string> batch) {
    if (!batch.empty()) {
      batch = fuseLoops(w.b, f, 0, batch, FusedBody::ComputesFuncs);
      own.push_back(batch.front());
    }
    halide::GPUBlocksOp::create(w.b, w.loc, f.getResult(), 0,
                                w.b.getStrArrayAttr(own));
  }
  /// Of a func over tiles, from the inside out.
  SmallVector<std::string> batchVars() const {
    SmallVector<std::string> vars;
    for (unsigned k = plan.batchDims; k-- > 0;)
      vars.push_back(heed::format("b{}", k));
    return vars;
  }
  void share(halide::FuncOp f) {
    halide::StoreInOp::create(w.b, w.loc, f.getResult(),
                              halide::MemoryType::GPUShared);
  }
  /// The queries of a func over them: of a thread its own, around what is
  /// \p inner, which is unrolled, too.
  void ownQueries(halide::FuncOp f, int64_t stage, ArrayRef<StringRef> inner,
                  ArrayRef<StringRef> outer) {
    w.split(f, stage, "ii", "tx", "u", plan.ownQueries);
    SmallVector<StringRef> order{"u"};
    order.append(inner.begin(), inner.end());
    order.push_back("tx");
    order.append(outer.begin(), outer.end());
    w.reorder(f, stage, order);
    for (StringRef var : ArrayRef(order).take_front(1 + inner.size()))
      w.unroll(f, stage, var);
  }
  /// All threads bring \p f, whose vars are fused in the order \p from, the
  /// innermost first, \p byFour as many at a time.
  void bring(halide::FuncOp f, SmallVector<std::string> from,
             bool byFour = false) {
    if (byFour)
      w.split(f, 0, from.front(), from.front(), "four", 4);
    std::string all = from.front();
    for (const std::string &var : ArrayRef(from).drop_front()) {
      std::string next = heed::format("{}_{}", all, var);
      halide::FuseOp::create(w.b, w.loc, f.getResult(), 0, all, var, next);
      all = next;
    }
    w.split(f, 0, all, "turn", "ty", threadsX() * threadsY());
    w.split(f, 0, "ty", "ty", "tx", threadsX());
    SmallVector<StringRef> order{"turn", "tx", "ty"};
    if (byFour)
      order.insert(order.begin(), "four");
    w.reorder(f, 0, order);
    if (byFour) {
      w.vectorize(f, 0, "four");
      w.unroll(f, 0, "turn");
    }
    threads(f, 0, "tx", "ty");
    share(f);
  }

  void output();
  void parts();
  void queries();
  void state(halide::FuncOp st, ArrayRef<std::string> loops,
             halide::FuncOp task, StringRef block);
  void shared(const StreamingStage &stage, StreamingShared array,
              StringRef loop);
  void ofGroups(const StreamingStage &stage, halide::FuncOp f,
                halide::MemoryType memory, StringRef loop);
  void scores(const StreamingStage &stage, StringRef loop);
  void weights(const StreamingStage &stage, StringRef loop);
  void products(const StreamingStage &stage);
  void registers();
};

/// A product of a thread's own places, in registers.
void own(Writer &w, halide::FuncOp f, int64_t stage, ArrayRef<StringRef> vars,
         ArrayRef<std::string> loops) {
  SmallVector<StringRef> order(vars);
  order.append(loops.begin(), loops.end());
  w.reorder(f, stage, order);
  for (StringRef var : vars)
    w.unroll(f, stage, var);
}

void OnGPU::output() {
  halide::FuncOp out = plan.output;
  w.split(out, 0, plan.queryVar, "tile", "row", plan.tile);
  w.split(out, 0, "row", "tx", "u", plan.ownQueries);
  w.split(out, 0, plan.valueVar, "dt", "dd", plan.group);
  SmallVector<std::string> outer(llvm::reverse(plan.batchVars));
  SmallVector<StringRef> order{"dd", "u", "tx", "dt", "tile"};
  order.append(outer.begin(), outer.end());
  w.reorder(out, 0, order);
  w.unroll(out, 0, "dd");
  w.unroll(out, 0, "u");
  threads(out, 0, "tx", "dt");
  blocks(out, {"tile"}, outer);
}

/// Parts of the keys: a block of threads has one of a tile.
void OnGPU::parts() {
  halide::FuncOp parts = plan.parts;
  halide::ComputeRootOp::create(w.b, w.loc, parts.getResult());
  w.bound(parts, "ii", w.i(plan.tile));
  w.bound(parts, "dt", w.i(groupsOfValues()));
  SmallVector<std::string> batch = batchVars();
  SmallVector<StringRef> outer{"dt", "kp", "ib"};
  outer.append(batch.begin(), batch.end());
  ownQueries(parts, 0, {}, outer);
  threads(parts, 0, "tx", "dt");
  blocks(parts, {"kp", "ib"}, batch);
}

void OnGPU::queries() {
  for (const StreamingQuery &q : plan.queryFuncs) {
    if (plan.bySplit)
      w.computeAt(q.func, plan.parts, "kp");
    else
      w.computeAt(q.func, plan.output, "tile");
    w.oneTile(q.func);
    w.bound(q.func, "ii", w.i(plan.tile));
    SmallVector<std::string> from;
    for (auto [slot, c] : llvm::enumerate(q.contract)) {
      from.push_back(heed::format("e{}", c));
      w.bound(q.func, from.back(), q.extents[slot].value);
    }
    from.push_back("ii");
    bring(q.func, from);
  }
}

/// A state in the loop \p block of \p task; its updates go over \p loops.
void OnGPU::state(halide::FuncOp st, ArrayRef<std::string> loops,
                  halide::FuncOp task, StringRef block) {
  w.computeAt(st, task, block);
  // Of one group of value dims libHalide makes no threads.
  bool isOneGroup = *plan.values->fixed <= plan.group;
  halide::StoreInOp::create(w.b, w.loc, st.getResult(),
                            isOneGroup ? halide::MemoryType::GPUShared
                                       : halide::MemoryType::Register);
  w.oneTile(st);
  w.bound(st, "ii", w.i(plan.tile));
  w.bound(st, "dt", w.i(groupsOfValues()));
  if (st == plan.part)
    w.boundExtent(st, "kp", w.i(1));
  for (int64_t stage = 0, end = loops.size(); stage <= end; ++stage) {
    SmallVector<std::string> outer{"dt"};
    if (st == plan.part)
      outer.push_back("kp");
    outer.push_back("ib");
    outer.append(batchVars());
    if (stage)
      outer.push_back(loops[stage - 1]);
    ownQueries(st, stage, {},
               SmallVector<StringRef>(outer.begin(), outer.end()));
    threads(st, stage, "tx", "dt");
  }
}

/// Neighbouring threads bring what lies side by side.
void OnGPU::shared(const StreamingStage &stage, StreamingShared array,
                   StringRef loop) {
  w.computeAt(array.func, overKeys(), loop);
  w.oneTile(array.func);
  w.boundExtent(array.func, "kb", w.i(1));
  SmallVector<std::string> from;
  for (const auto &[var, extent] : array.vars) {
    w.bound(array.func, var, w.i(extent));
    from.push_back(var);
  }
  // Keys lie with their contracted dims inside. Where these come as vectors a
  // thread reads them so, too; its neighbours read the same.
  if (from.front() == "jj") {
    std::rotate(from.begin(), from.begin() + 1, from.end());
    // Where a warp has a query's keys, they are side by side.
    if (array.asVectors && !plan.bySplit) {
      SmallVector<StringRef> order(from.begin(), from.end());
      order.push_back("kb");
      order.push_back("ib");
      SmallVector<std::string> batch = batchVars();
      order.append(batch.begin(), batch.end());
      halide::ReorderStorageOp::create(w.b, w.loc, array.func.getResult(),
                                       order);
    } else {
      halide::AlignStorageOp::create(w.b, w.loc, array.func.getResult(), "jj",
                                     stage.block + (plan.bySplit ? 1 : 4));
    }
  }
  int64_t count = 1;
  for (const auto &[var, extent] : array.vars)
    count *= extent;
  bring(array.func, from,
        array.asVectors && count % (4 * threadsX() * threadsY()) == 0);
}

/// A func over queries and groups of keys: of a thread, its own of both.
void OnGPU::ofGroups(const StreamingStage &stage, halide::FuncOp f,
                     halide::MemoryType memory, StringRef loop) {
  w.computeAt(f, overKeys(), loop);
  w.oneTile(f);
  w.boundExtent(f, "kb", w.i(1));
  w.bound(f, "ii", w.i(plan.tile));
  w.bound(f, "jt", stage.groups);
  halide::StoreInOp::create(w.b, w.loc, f.getResult(), memory);
  ownQueries(f, 0, {}, {"jt"});
  threads(f, 0, "tx", "jt");
}

void OnGPU::scores(const StreamingStage &stage, StringRef loop) {
  halide::FuncOp s = stage.scores;
  ofGroups(stage, s, halide::MemoryType::Register, loop);
  if (stage.pairs) {
    w.computeAt(stage.pairs, s, "tx");
    w.oneTile(stage.pairs);
    w.boundExtent(stage.pairs, "kb", w.i(1));
    w.boundExtent(stage.pairs, "ii", w.i(plan.ownQueries));
    w.boundExtent(stage.pairs, "y", w.i(plan.keyGroup));
    w.boundExtent(stage.pairs, "jt", w.i(1));
    own(w, stage.pairs, 0, {"ii", "y"}, {});
  }
  for (const StreamingTerm &term : stage.terms) {
    w.computeAt(term.func, s, "tx");
    w.oneTile(term.func);
    w.boundExtent(term.func, "kb", w.i(1));
    w.boundExtent(term.func, "ii", w.i(plan.ownQueries));
    w.boundExtent(term.func, "jj", w.i(plan.keyGroup));
    own(w, term.func, 0, {"ii", "jj"}, {});
    if (term.loops.empty())
      continue;
    SmallVector<std::string> loops(term.loops.begin(), term.loops.end());
    // As many that the loop's own instructions are few of all.
    int64_t steps = plan.ownQueries * plan.keyGroup <= 8 ? 16 : 8;
    while (steps > 1 && *term.contract[0].fixed % steps != 0)
      steps /= 2;
    if (steps >= 4) {
      w.split(term.func, 1, loops[0], loops[0], "ri", steps);
      loops.insert(loops.begin(), "ri");
    }
    own(w, term.func, 1, {"ii", "jj"}, loops);
    if (loops.front() == "ri")
      w.unroll(term.func, 1, "ri");
  }
}

/// The maximum of a row, its weights and their sum.
void OnGPU::weights(const StreamingStage &stage, StringRef loop) {
  for (halide::FuncOp f : {stage.top, stage.sum}) {
    if (!f)
      continue;
    w.computeAt(f, overKeys(), loop);
    w.oneTile(f);
    w.boundExtent(f, "kb", w.i(1));
    w.bound(f, "ii", w.i(plan.tile));
    share(f);
    for (int64_t number : {0, 1}) {
      w.split(f, number, "ii", "ty", "tx", threadsX());
      if (number) {
        w.reorder(f, number, {"rg", "tx", "ty"});
        w.unroll(f, number, "rg");
      }
      threads(f, number, "tx", "ty");
    }
  }
  for (halide::FuncOp f : {stage.groupTops, stage.groupSums})
    if (f)
      ofGroups(stage, f, halide::MemoryType::GPUShared, loop);
  ofGroups(stage, stage.ownWeights, halide::MemoryType::Register, loop);
  halide::FuncOp p = stage.weights;
  w.computeAt(p, overKeys(), loop);
  w.oneTile(p);
  w.boundExtent(p, "kb", w.i(1));
  w.bound(p, "ii", w.i(plan.tile));
  w.bound(p, "jj", stage.keys);
  share(p);
  w.split(p, 0, "jj", "jt", "jv", plan.keyGroup);
  ownQueries(p, 0, {"jv"}, {"jt"});
  threads(p, 0, "tx", "jt");
}

void OnGPU::products(const StreamingStage &stage) {
  halide::FuncOp pv = stage.products;
  w.computeAt(pv, overKeys(), "tx");
  w.oneTile(pv);
  w.boundExtent(pv, "kb", w.i(1));
  w.boundExtent(pv, "dt", w.i(1));
  w.boundExtent(pv, "ii", w.i(plan.ownQueries));
  w.boundExtent(pv, "dd", w.i(plan.group));
  own(w, pv, 0, {"ii", "dd"}, {});
  // Few scores leave registers for twice as many keys at a time.
  w.split(pv, 1, "rj", "rj", "ri", plan.keyGroup < 4 ? 8 : 4);
  own(w, pv, 1, {"ii", "dd"}, {"ri", "rj"});
  w.unroll(pv, 1, "ri");
}

/// Of a thread that needs more registers as many as three blocks of 128 threads
/// find on a multiprocessor, which has those of two of 256. More blocks of 64
/// queries have no shared memory on an A100 either, and a thread's many sums
/// hide what it waits for.
void OnGPU::registers() {
  constexpr int64_t step = 8; // ptxas gives them by eight
  int64_t most = plan.target.threadRegisters * (2 * 256) / (3 * 128);
  plan.output->getParentOfType<halide::PipelineOp>().setRegisters(
      llvm::alignDown(most, step));
}

} // namespace

void StreamingPlan::scheduleOnGPU(OpBuilder &b, Location loc) {
  Writer w{b, loc, *this};
  OnGPU gpu{w, *this};
  gpu.output();
  SmallVector<std::string> overKeys;
  for (const StreamingStage &stage : stages)
    overKeys.push_back("rk" + stage.suffix);
  if (bySplit) {
    gpu.parts();
    gpu.queries();
    gpu.state(part, overKeys, parts, "kp");
    gpu.state(state, {"rp"}, output, "tile");
  } else {
    gpu.queries();
    gpu.state(state, overKeys, output, "tile");
  }
  if (moreRegisters)
    gpu.registers();
  for (const StreamingStage &stage : stages) {
    std::string loop = "rk" + stage.suffix;
    for (const auto &[position, keys] : stage.sharedKeys)
      gpu.shared(stage, keys, loop);
    gpu.scores(stage, loop);
    gpu.weights(stage, loop);
    if (stage.sharedValues)
      gpu.shared(stage, *stage.sharedValues, loop);
    gpu.products(stage);
  }
}
