//===- StreamingRowPlan.cpp - schedule of one query at a time -------------===//
// A task is a part of the keys of one query. Measured figures stand in
// README.md.
#include "passes/Schedule/StreamingPlan.h"
#include "passes/Schedule/StreamingWriter.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed;
using heed::streaming::Writer;

int64_t heed::mostQueriesOfRows(const halide::Target &target) {
  return std::max<int64_t>(1, target.lanes(32) / 4);
}

int64_t heed::mostQueriesOfOwnRows(const halide::Target &target) {
  return std::clamp<int64_t>(target.cores / 2,
                             std::max<int64_t>(1, target.lanes(32) / 8),
                             mostQueriesOfRows(target));
}

/// Not a block or two a row beside full ones: these are compiled short.
static bool isFrequent(const StreamingPlan &plan, const StreamingStage &stage) {
  return !stage.partial || plan.stages.size() == 1;
}

/// Sums in lanes, rows of keys one behind the other: so memory sends the next
/// ones by itself. All members take a row from registers if their number is
/// known; else each takes a few rows, so that it reads its query once for them.
static void scheduleLanesOfRows(Writer &w, const StreamingTerm &term) {
  constexpr int64_t rowsOfMember = 4;
  halide::FuncOp lanes = term.lanes;
  const std::string &step = term.loops.front();
  SmallVector<StringRef> inner{"xi", step};
  if (!w.plan.fixedMembers) {
    w.split(lanes, 1, "xo", "xo", "xk", rowsOfMember);
    w.unroll(lanes, 1, "xk");
    inner.push_back("xk");
  }
  w.aroundMembers(lanes, 1, inner, "xo");
  w.unroll(lanes, 1, step);
  if (w.plan.fixedMembers)
    w.unroll(lanes, 1, w.memberVar());
}

/// The same of rows that are long, or whose length is not known: lanes of all
/// keys are sums in registers.
static void scheduleLanesOfKeys(Writer &w, const StreamingStage &stage,
                                const StreamingTerm &term) {
  halide::FuncOp lanes = term.lanes;
  w.unroll(lanes, 1, "xo");
  SmallVector<std::string> names{"xi", "xo"};
  llvm::append_range(names, llvm::reverse(term.loops));
  std::string inner = names[2];
  std::optional<int64_t> steps = term.contract.back().fixed;
  if (isFrequent(w.plan, stage) && steps && *steps % 4 == 0 && *steps > 4) {
    w.split(lanes, 1, inner, inner, "ri", 4);
    names.insert(names.begin() + 2, "ri");
    w.unroll(lanes, 1, "ri");
  }
  w.reorder(lanes, 1, SmallVector<StringRef>(names.begin(), names.end()));
}

/// T, of as many keys as lanes at a time.
static void scheduleTerm(Writer &w, const StreamingPlan &plan,
                         const StreamingStage &stage,
                         const StreamingTerm &term) {
  int64_t sums = plan.lanes * plan.lanes;
  Value keys = w.factor(stage.scores, 0, "ji");
  halide::FuncOp lanes = term.lanes, f = term.func;
  std::string perMember = plan.members ? w.memberVar() : "jo";
  w.computeAt(lanes, stage.scores, plan.wholeRows ? "jo" : perMember);
  w.computeAt(f, stage.scores, perMember);
  w.oneTile(lanes, plan.wholeRows ? plan.members : w.i(1));
  w.oneTile(f, w.i(1));
  for (halide::FuncOp func : {lanes, f})
    w.boundExtent(func, "kb", w.i(1));
  w.boundExtent(lanes, "x", w.i(sums));
  w.boundExtent(lanes, "jb", w.pieces(keys, plan.lanes));
  w.boundExtent(f, "ii", w.i(1));
  w.boundExtent(f, "jj", keys);
  for (int64_t part : {0, 1}) {
    w.vectors(lanes, part, "x", "xo", "xi");
    w.vectors(f, part, "jj", "jo", "ji");
  }
  w.unroll(lanes, 0, "xo");
  w.reorder(f, 1, {"rl", "ji", "jo"});
  w.acrossLanes(f, 1, "rl");
  if (plan.wholeRows) {
    w.onStack(lanes);
    scheduleLanesOfRows(w, term);
  } else {
    scheduleLanesOfKeys(w, stage, term);
  }
}

/// PV, rows of V one behind the other, in register tiles: some vectors of the
/// value dims of all members, if their number is known.
static void scheduleProductsOfRows(Writer &w, halide::FuncOp products) {
  const StreamingPlan &plan = w.plan;
  // Beside the sums the weights of eight keys, and a third for rows.
  int64_t sums = (plan.target.vectorRegisters - 8) * 2 / 3,
          members = plan.fixedMembers.value_or(1),
          inTile = std::max<int64_t>(1, sums / members);
  while (*plan.valueVectors % inTile)
    --inTile;
  w.split(products, 1, "do", "do", "dv", inTile);
  w.unroll(products, 1, "dv");
  if (plan.fixedMembers) {
    std::string member = w.memberVar();
    w.reorder(products, 1, {"iv", "dv", member, "rx", "do", "rj"});
    w.unroll(products, 1, member);
  } else {
    w.aroundMembers(products, 1, {"iv", "dv", "rx", "do"}, "rj");
  }
}

static void scheduleProducts(Writer &w, const StreamingPlan &plan,
                             const StreamingStage &stage) {
  halide::FuncOp products = stage.products;
  w.computeAt(products, plan.part, "rk");
  w.vectors(products, 0, "dt", "do", "iv");
  w.vectors(products, 1, "dt", "do", "iv");
  w.unroll(products, 1, "rx");
  if (plan.wholeRows) {
    scheduleProductsOfRows(w, products);
  } else {
    w.aroundMembers(products, 1, {"iv", "rx", "do"}, "rj");
    if (isFrequent(plan, stage) && plan.valueVectors && *plan.valueVectors <= 8)
      for (int64_t part : {0, 1})
        w.unroll(products, part, "do");
  }
  for (int64_t part : {0, 1})
    w.keepWhole(products, part, {"do"});
  w.keepWhole(products, 1, {"rj"});
}

static void scheduleBlock(Writer &w, StreamingPlan &plan,
                          const StreamingStage &stage) {
  for (halide::FuncOp f : {stage.scores, stage.weights}) {
    w.computeAt(f, plan.part, "rk");
    w.vectors(f, 0, "jj", "jo", "ji");
    w.keepWhole(f, 0, {"jo"});
  }
  // A few keys come from memory, and all members take them from L1.
  w.aroundMembers(stage.scores, 0, {"ji"}, "jo");
  for (const StreamingTerm &term : stage.terms)
    if (!term.loops.empty())
      scheduleTerm(w, plan, stage, term);
  for (halide::FuncOp f : {stage.topLanes, stage.sumLanes}) {
    if (!f)
      continue;
    w.computeAt(f, plan.part, "rk");
    w.bound(f, "ll", w.i(plan.lanes));
    w.vectorize(f, 0, "ll");
    w.reorder(f, 1, {"ll", "rg"});
    w.vectorize(f, 1, "ll");
  }
  for (halide::FuncOp f : {stage.rounded, stage.sum})
    if (f)
      w.computeAt(f, plan.part, "rk");

  scheduleProducts(w, plan, stage);
  for (halide::FuncOp f :
       {stage.scores, stage.weights, stage.topLanes, stage.sumLanes,
        stage.rounded, stage.sum, stage.products}) {
    if (!f)
      continue;
    if (f != stage.topLanes && f != stage.sumLanes)
      w.boundExtent(f, "ii", w.i(1));
    w.boundExtent(f, "kb", w.i(1));
    w.oneTile(f, plan.members);
    w.onStack(f);
  }
}

void StreamingPlan::scheduleOutputOfRows(Writer &w) {
  SmallVector<std::string> order;
  if (lse) {
    // Columns are the value dim and the log-sum-exp.
    halide::ComputeRootOp::create(w.b, w.loc, output.getResult());
    if (!values)
      order.push_back("column");
  }
  if (values) {
    w.vectors(output, 0, valueVar, valueVar, "dv");
    order.append({"dv", valueVar});
    if (std::optional<int64_t> extent = values->fixed)
      valueVectors = llvm::divideCeil(*extent, lanes);
  }
  order.push_back(queryVar);
  llvm::append_range(order, llvm::reverse(batchVars));
  // Little work, as there are few rows: no tasks.
  w.reorder(output, 0, SmallVector<StringRef>(order.begin(), order.end()));

  w.computeAt(state, output, queryVar);
  for (int64_t stage : {0, 1}) {
    w.vectors(state, stage, "dt", "do", "iv");
    w.keepWhole(state, stage, {"do"});
  }
  w.reorder(state, 1, {"iv", "do", "rp"});
  for (halide::FuncOp f : {scale, lse, sums, most, stands})
    if (f)
      w.computeAt(f, output, queryVar);
  for (halide::FuncOp f : {state, scale, lse, sums, most, stands}) {
    if (!f)
      continue;
    if (f != most && f != stands)
      w.bound(f, "ii", w.i(f == sums ? lanes : 1));
    w.oneTile(f);
  }
  if (sums) {
    w.vectorize(sums, 0, "ii");
    w.reorder(sums, 1, {"ii", "rd"});
    w.vectorize(sums, 1, "ii");
    w.acrossLanes(most, 1, "rl");
  }
}

void StreamingPlan::scheduleParts(Writer &w) {
  halide::ComputeRootOp::create(w.b, w.loc, parts.getResult());
  for (auto &[var, count] : tasks)
    w.bound(parts, var, count);
  std::string task = tasks.front().first;
  if (members) {
    w.bound(parts, "member", members);
    // The innermost digit counts the neighbours.
    w.split(parts, 0, task, task, "neighbour", shared);
    task = "neighbour";
  }
  for (auto &[var, count] : tasks)
    halide::ParallelOp::create(w.b, w.loc, parts.getResult(), 0, var);
  w.vectors(parts, 0, "column", "column", "cv");
  w.keepWhole(parts, 0, {"column"});
  w.computeAt(part, parts, task);
  w.bound(part, "ii", w.i(1));
  w.boundExtent(part, "kp", w.i(1));
  w.oneTile(part, members);
  w.onStack(part);
  for (size_t stage = 0; stage <= stages.size(); ++stage) {
    w.vectors(part, stage, "dt", "do", "iv");
    w.keepWhole(part, stage, {"do"});
    if (stage == 0)
      continue;
    w.aroundMembers(part, stage, {"iv", "do"}, "rk", {"ii", "kp", "ib"});
    w.keepWhole(part, stage, {"rk"});
  }
  scheduleQueriesOfRows(w, task);
}

void StreamingPlan::scheduleQueriesOfRows(Writer &w, StringRef task) {
  for (StreamingQuery &q : queryFuncs) {
    w.computeAt(q.func, parts, task);
    w.bound(q.func, "ii", w.i(1));
    w.oneTile(q.func, members);
    w.onStack(q.func);
    for (auto [slot, c] : llvm::enumerate(q.contract))
      w.bound(q.func, heed::format("e{}", c), q.extents[slot].value);
    if (!q.contract.empty()) {
      std::string inner = heed::format("e{}", q.contract.back());
      w.vectors(q.func, 0, inner, inner, "ev");
    }
  }
}

void StreamingPlan::scheduleRows(OpBuilder &b, Location loc) {
  Writer w{b, loc, *this};
  scheduleOutputOfRows(w);
  scheduleParts(w);
  for (const StreamingStage &stage : stages)
    scheduleBlock(w, *this, stage);
}
