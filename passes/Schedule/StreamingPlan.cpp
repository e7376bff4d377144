//===- StreamingPlan.cpp - tiles and schedule of streaming attention ------===//
//
// Figures: Sapphire Rapids, 2 cores, f32, against the FMA peak of the same run
// (prototype of this schedule): full attention 0.75 to 0.84 from N = 512 to
// 8192, causal 0.66 to 0.80 from N = 1024.
#include "passes/Schedule/StreamingPlan.h"
#include "passes/Schedule/Schedule.h"
#include "passes/Schedule/StreamingOps.h"
#include "passes/Schedule/StreamingWriter.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace heed;
using heed::streaming::Ops;
using heed::streaming::Writer;

namespace {

/// Tiles that one task takes, an i32: of so many queries at most, but no more
/// than leave \p tasksOfCore tasks a core.
Value tilesPerTask(Writer &w, const StreamingPlan &plan, ArrayRef<Extent> batch,
                   int64_t queries, int64_t tasksOfCore) {
  Ops o{w.b, w.loc};
  Value heads = w.i(1);
  for (const Extent &extent : batch)
    heads = o.muli(heads, extent.value);
  Value tiles = o.atLeastOne(o.ceilDiv(plan.queries.value, w.i(plan.tile)));
  Value forCache =
      o.ceilDiv(tiles, w.i(std::max<int64_t>(1, queries / plan.tile)));
  Value forCores =
      o.ceilDiv(w.i(tasksOfCore * plan.target.cores), o.atLeastOne(heads));
  Value tasks = o.mini(tiles, o.maxi(forCache, forCores));
  return o.ceilDiv(tiles, tasks);
}

/// As many as L2 likes.
Value tilesPerTask(Writer &w, const StreamingPlan &plan,
                   ArrayRef<Extent> batch) {
  return tilesPerTask(w, plan, batch, 768, 4);
}

/// The same of a masked attention, whose tiles have different numbers of
/// blocks, and so have many more tasks: one where L2 holds K and V of one head;
/// else two at least, so that a block serves twice.
Value maskedTilesPerTask(Writer &w, const StreamingPlan &plan,
                         ArrayRef<Extent> batch) {
  Ops o{w.b, w.loc};
  Value row = w.i(0);
  for (const Extent &extent : plan.keyRow)
    row = o.addi(row, extent.value);
  // In rows of one number, lest the product overflow.
  Value held = arith::FloorDivSIOp::create(w.b, w.loc, w.i(plan.target.l2 / 4),
                                           o.atLeastOne(row));
  Value beyond = o.less(held, plan.keys.value);
  Value some = o.maxi(w.i(2), tilesPerTask(w, plan, batch, 512, 32));
  return o.select(beyond, some, w.i(1));
}

/// The sum of a term in a register tile, whose rows are \p row.
void scheduleSum(Writer &w, const StreamingTerm &term, halide::FuncOp func,
                 StringRef row) {
  // Only a product is short enough for its steps to be worth unrolling; with
  // the rows of a table it is no faster.
  bool product = term.isProduct && !term.offsets;
  SmallVector<std::string> names;
  for (auto [slot, var] : llvm::enumerate(term.loops)) {
    std::optional<int64_t> extent = term.contract[slot].fixed;
    if (product && slot == 0 && extent && *extent % 4 == 0 && *extent > 4) {
      w.split(func, 1, var, var, "ri", 4);
      names.push_back("ri");
    }
    names.push_back(var);
  }
  SmallVector<StringRef> inner{row};
  inner.append(names.begin(), names.end());
  w.lanes(func, 1, inner);
  w.unroll(func, 1, row);
  if (names.front() == "ri")
    w.unroll(func, 1, "ri");
  w.keepWhole(
      func, 1,
      ArrayRef<StringRef>(inner).drop_front(names.front() == "ri" ? 2 : 1));
}

/// The steps before \p last's: in registers, for one vector of queries.
void scheduleShifts(Writer &w, const StreamingPlan &plan,
                    const StreamingOffsets &offsets, halide::FuncOp last,
                    int64_t stage) {
  int64_t step = plan.lanes / 2, rows = plan.group;
  for (halide::FuncOp f : llvm::reverse(offsets.shifts)) {
    rows += step;
    step /= 2;
    w.computeAt(f, last, "iu");
    w.boundExtent(f, "ii", w.i(plan.lanes));
    w.boundExtent(f, "x", w.i(rows));
    w.reorder(f, 0, {"ii", "x"});
    w.vectorize(f, 0, "ii");
    w.unroll(f, 0, "x");
  }
}

/// Rows of a table that a block reaches, a group at a time.
void scheduleRows(Writer &w, const StreamingPlan &plan,
                  const StreamingOffsets &offsets, halide::FuncOp state) {
  halide::FuncOp rows = offsets.rows;
  w.computeAt(rows, state, "ib");
  w.bound(rows, "x", w.i(offsets.count));
  w.lanes(rows, 0, {"x"});
  w.split(rows, 1, "ii", "iu", "iv", plan.lanes);
  w.vectorize(rows, 1, "iv");
  if (offsets.tile) {
    w.reorder(rows, 1, {"iv", "iu", "y", "rg"});
    w.unroll(rows, 1, "iu");
  } else { // weights are moved vector by vector
    w.reorder(rows, 1, {"iv", "y", "iu", "rg"});
  }
  w.unroll(rows, 1, "y");
  w.keepWhole(rows, 1, {"rg"});
}

/// The loops of update \p number of the state.
void scheduleState(Writer &w, const StreamingPlan &plan, int64_t number) {
  halide::FuncOp state = plan.state;
  SmallVector<StringRef> order{"iv", "iu", "dt", "ib"};
  SmallVector<std::string> batch;
  for (unsigned k = plan.batchDims; k-- > 0;)
    batch.push_back(heed::format("b{}", k));
  order.append(batch.begin(), batch.end());
  SmallVector<StringRef> whole{"dt", "ib"};
  if (number > 0) {
    order.push_back("rk");
    whole.push_back("rk");
  }
  w.split(state, number, "ii", "iu", "iv", plan.lanes);
  w.reorder(state, number, order);
  w.vectorize(state, number, "iv");
  w.unroll(state, number, "iu");
  // Clamps of offsets (j - i) would make three of each block loop, and a
  // kernel with relative terms compile for three times as long; their steady
  // state would run 1.5 times as fast.
  w.keepWhole(state, number, whole);
}

/// Weights times values, and the rows of tables over offsets.
void scheduleProducts(Writer &w, const StreamingPlan &plan,
                      const StreamingStage &stage) {
  halide::FuncOp state = plan.state, products = stage.products;
  w.computeAt(products, state, "dt");
  w.lanes(products, 0, {"dd"});
  w.unroll(products, 0, "dd");
  int64_t part = 1;
  if (stage.plainValues) {
    if (stage.pairedValues) {
      w.lanes(products, part, {"dd", "rj"});
      w.keepWhole(products, part, {"rj"});
    } else {
      // Unrolled by 4 the constant strides of K and V become offsets; by 8
      // registers spill, and by 4 those of a partial block, whose rows are
      // clamped, each by itself, before all loads.
      w.split(products, part, "rj", "ro", "ri", stage.partial ? 2 : 4);
      w.lanes(products, part, {"dd", "ri", "ro"});
      w.unroll(products, part, "ri");
      w.keepWhole(products, part, {"ro"});
    }
    w.unroll(products, part++, "dd");
  }
  for (const StreamingOffsets &table : stage.offsets) {
    for (StringRef loop : {"rx", "re"}) {
      w.lanes(products, part, {"dd", loop});
      w.keepWhole(products, part, {loop});
      w.unroll(products, part++, "dd");
    }
    scheduleRows(w, plan, table, state);
    scheduleShifts(w, plan, table, table.rows, 1);
    for (halide::FuncOp end : {table.low, table.high}) {
      w.computeAt(end, state, "ib");
      w.lanes(end, 0, {});
      w.lanes(end, 1, {"rj"});
      w.keepWhole(end, 1, {"rj"});
    }
  }
  w.boundExtent(products, "dd", w.i(plan.group));
}

/// The window of a table that a block reaches.
void scheduleWindow(Writer &w, const StreamingPlan &plan,
                    const StreamingStage &stage, const StreamingTerm &term) {
  int64_t numbers = stage.block + plan.tile - 1;
  w.computeAt(term.window, plan.state, "ib");
  w.bound(term.window, "x", w.i(llvm::alignTo(numbers, plan.lanes)));
  if (term.windowSteps.empty()) {
    w.vectors(term.window, 0, "x", "xo", "xi");
    return;
  }
  w.bound(term.window, "e", term.windowSum.front().value);
  w.transpose(term.window, term.windowSteps, "x", "e");
}

/// A register tile: the rows of a table, or of keys, that \p f has in `y`.
void scheduleTile(Writer &w, const StreamingPlan &plan,
                  const StreamingTerm &term, halide::FuncOp f) {
  w.boundExtent(f, "y", w.i(plan.group));
  w.boundExtent(f, "rg", w.i(1));
  w.lanes(f, 0, {"y"});
  w.unroll(f, 0, "y");
  scheduleSum(w, term, f, "y");
}

/// While products with rows of a table are computed, those of the next register
/// tile come.
void fetchRows(Writer &w, const StreamingPlan &plan, const StreamingTerm &term,
               const StreamingOffsets &offsets) {
  halide::FuncOp tile = offsets.tile, rows = offsets.rows;
  constexpr int64_t lineBytes = 64, bytes = 4;
  int64_t lines = std::clamp<int64_t>(
      plan.group * offsets.row * bytes / lineBytes, 1, 1024);
  halide::PrefetchSpreadOp::create(
      w.b, w.loc, tile.getResult(), 1, offsets.apartIn, term.loops.front(),
      plan.group * offsets.apart, rows.getResult(), "rg", lines, 1,
      /*secondCache=*/false, /*inOrder=*/false,
      std::clamp<int64_t>(llvm::divideCeil(lines, offsets.row), 1, 64),
      w.b.getI64IntegerAttr(plan.group), w.b.getI64IntegerAttr(offsets.apart));
}

/// A term of \p scores.
void scheduleTerm(Writer &w, const StreamingPlan &plan,
                  const StreamingStage &stage, const StreamingTerm &term,
                  halide::FuncOp scores) {
  if (term.window)
    scheduleWindow(w, plan, stage, term);
  if (term.windowTile) {
    w.computeAt(term.windowTile, scores, "jt");
    w.bound(term.windowTile, "ii", w.i(term.windowLanes));
    scheduleTile(w, plan, term, term.windowTile);
    return;
  }
  w.computeAt(term.func, scores, "jt");
  w.boundExtent(term.func, "jj", w.i(plan.group));
  // Lanes of a table are moved vector by vector.
  w.lanes(term.func, 0, {"jj"}, /*unrolled=*/!term.offsets);
  w.unroll(term.func, 0, "jj");
  if (term.offsets) {
    scheduleShifts(w, plan, *term.offsets, term.func, 0);
    scheduleRows(w, plan, *term.offsets, plan.state);
    w.computeAt(term.offsets->tile, term.offsets->rows, "rg");
    scheduleTile(w, plan, term, term.offsets->tile);
    if (term.offsets->apartIn)
      fetchRows(w, plan, term, *term.offsets);
  } else if (!term.loops.empty()) {
    scheduleSum(w, term, term.func, "jj");
  }
}

/// Scores and their terms. Without a maximum weights are made of scores in
/// registers.
void scheduleScores(Writer &w, const StreamingPlan &plan,
                    const StreamingStage &stage) {
  halide::FuncOp scores = stage.scores ? stage.scores : stage.weights;
  if (stage.scores) {
    w.computeAt(stage.scores, plan.state, "ib");
    w.lanes(stage.scores, 0, {"jt"});
    w.keepWhole(stage.scores, 0, {"jt"});
  }
  if (stage.pairs) {
    w.computeAt(stage.pairs, scores, "jt");
    w.boundExtent(stage.pairs, "y", w.i(plan.group));
    w.boundExtent(stage.pairs, "jt", w.i(1));
    w.lanes(stage.pairs, 0, {"y", "jt"});
    w.unroll(stage.pairs, 0, "y");
  }
  for (const StreamingTerm &term : stage.terms)
    scheduleTerm(w, plan, stage, term, scores);
}

/// The block's maximum, its weights and their sum.
void scheduleWeights(Writer &w, const StreamingPlan &plan,
                     const StreamingStage &stage) {
  halide::FuncOp state = plan.state;
  // A normaliser may have no maximum, or no sum.
  for (halide::FuncOp f : {stage.top, stage.sum}) {
    if (!f)
      continue;
    w.computeAt(f, state, "ib");
    w.lanes(f, 0, {});
    w.lanes(f, 1, {"rg"});
  }
  if (stage.rounded) {
    w.computeAt(stage.rounded, state, "ib");
    w.lanes(stage.rounded, 0, {});
  }
  w.computeAt(stage.weights, state, "ib");
  w.bound(stage.weights, "jj", stage.keys);
  if (stage.scores) {
    w.bound(stage.scores, "jt", stage.groups);
    w.onStack(stage.scores);
  }
  w.onStack(stage.weights);
  w.split(stage.weights, 0, "jj", "jt", "j8", plan.group);
  w.lanes(stage.weights, 0, {"j8", "jt"});
  w.unroll(stage.weights, 0, "j8");
  w.keepWhole(stage.weights, 0, {"jt"});
}

/// All funcs of a block are of one tile of queries.
void boundQueries(Writer &w, const StreamingPlan &plan,
                  const StreamingStage &stage) {
  SmallVector<halide::FuncOp> funcs{stage.pairs,   stage.scores,  stage.top,
                                    stage.rounded, stage.weights, stage.sum,
                                    stage.products};
  for (const StreamingTerm &term : stage.terms) {
    if (!term.windowTile)
      funcs.push_back(term.func);
    if (term.offsets)
      funcs.append({term.offsets->rows, term.offsets->tile});
  }
  for (const StreamingOffsets &table : stage.offsets)
    funcs.append({table.rows, table.low, table.high});
  for (halide::FuncOp f : funcs)
    if (f)
      w.boundExtent(f, "ii", w.i(plan.tile));
}

void scheduleStage(Writer &w, const StreamingPlan &plan,
                   const StreamingStage &stage, int64_t number) {
  scheduleState(w, plan, number);
  scheduleProducts(w, plan, stage);
  scheduleScores(w, plan, stage);
  scheduleWeights(w, plan, stage);
  boundQueries(w, plan, stage);
}

} // namespace

StreamingPlan::Groups StreamingPlan::scheduleOutput(Writer &w,
                                                    ArrayRef<Extent> batch) {
  OpBuilder &b = w.b;
  Location loc = w.loc;
  w.split(output, 0, queryVar, "tile", "row", tile);
  w.split(output, 0, "tile", "task", "ti",
          masked ? maskedTilesPerTask(w, *this, batch)
                 : tilesPerTask(w, *this, batch));
  SmallVector<std::string> order;
  Groups groups{w.i(1), w.i(group), ""};
  if (lse) {
    // Columns are the value dim and the log-sum-exp.
    halide::ComputeRootOp::create(b, loc, output.getResult());
    if (!values)
      order.push_back("column");
  }
  if (values) {
    Extent extent = *values;
    int64_t width = lanes;
    while (!lse && extent.fixed && width > 1 && *extent.fixed % width)
      width /= 2;
    if (width > 1) {
      w.split(output, 0, valueVar, valueVar, "dv", width);
      w.vectorize(output, 0, "dv");
      order.push_back("dv");
    }
    order.push_back(valueVar);
    groups.padded = Ops{b, loc}.alignTo(extent, group);
    groups.count = extent.fixed ? w.i(llvm::divideCeil(*extent.fixed, group))
                                : Ops{b, loc}.floorDiv(groups.padded, group);
  }
  order.append({"row", "ti", "task"});
  SmallVector<std::string> outer(llvm::reverse(batchVars));
  order.append(outer.begin(), outer.end());
  w.reorder(output, 0, SmallVector<StringRef>(order.begin(), order.end()));
  SmallVector<std::string> tasks{"task"};
  tasks.append(outer);
  groups.task = parallelOuter(b, output, 0, tasks, 0, FusedBody::ComputesFuncs);
  return groups;
}

void StreamingPlan::scheduleResults(Writer &w, const Groups &groups) {
  if (rowsOut) {
    w.computeAt(rowsOut, output, groups.task);
    w.bound(rowsOut, "ii", w.i(tile));
    w.bound(rowsOut, "d", Ops{w.b, w.loc}.alignTo(*values, lanes));
    w.transpose(rowsOut, rowsOutSteps, "d", "ii");
    w.computeAt(divided, rowsOut, "ib");
  } else {
    w.computeAt(divided, output, groups.task);
  }
  w.bound(divided, "ii", w.i(tile));
  w.bound(divided, "d", groups.padded);
  w.split(divided, 0, "d", "dt", "d8", group);
  w.lanes(divided, 0, {"d8", "dt"}, /*unrolled=*/false);
  w.unroll(divided, 0, "d8");
  if (scale) {
    w.computeAt(scale, output, groups.task);
    w.bound(scale, "ii", w.i(tile));
    w.lanes(scale, 0, {});
  }
  if (sums) {
    w.bound(sums, "ii", w.i(tile));
    w.lanes(sums, 0, {});
    w.lanes(sums, 1, {"rd"});
    w.keepWhole(sums, 1, {"rd"});
    w.acrossLanes(most, 1, "rl");
    // A tile at a time, whose size is known: of a task's it would be the heap.
    for (halide::FuncOp f : {sums, most, stands})
      w.computeAt(f, scale ? scale : divided, "ib");
  }
}

void StreamingPlan::scheduleQueries(Writer &w, StringRef task) {
  for (StreamingQuery &q : queryFuncs) {
    w.computeAt(q.func, output, task);
    w.bound(q.func, "ii", w.i(tile));
    SmallVector<std::string> names;
    for (auto [slot, c] : llvm::enumerate(q.contract)) {
      names.push_back(heed::format("e{}", c));
      w.bound(q.func, names.back(), q.extents[slot].value);
    }
    if (q.steps.empty())
      w.lanes(q.func, 0, SmallVector<StringRef>(names.begin(), names.end()),
              /*unrolled=*/false);
    else
      w.transpose(q.func, q.steps, "ii", names[0]);
  }
}

void StreamingPlan::schedule(OpBuilder &b, Location loc,
                             ArrayRef<Extent> batch) {
  Writer w{b, loc, *this};
  Groups groups = scheduleOutput(w, batch);
  scheduleResults(w, groups);
  scheduleQueries(w, groups.task);
  w.computeAt(state, output, groups.task);
  w.bound(state, "ii", w.i(tile));
  w.bound(state, "dt", groups.count);
  if (!begins)
    w.lanes(state, 0, {"dt"}, /*unrolled=*/false);
  for (auto [number, stage] : llvm::enumerate(stages))
    scheduleStage(w, *this, stage, begins ? number : number + 1);
  if (lse) {
    w.computeAt(lse, output, groups.task);
    w.bound(lse, "ii", w.i(tile));
    w.lanes(lse, 0, {});
  }
}
