//===- GroupedPanels.cpp - where panels of grouped terms are computed
//------===//
#include "passes/Schedule/GroupedTerms.h"
#include "passes/Schedule/Schedule.h"

using namespace mlir;
using namespace heed;

void heed::scheduleGroupedPanel(OpBuilder &at, Value func, PanelShape shape,
                                int64_t group) {
  Location loc = func.getLoc();
  halide::SplitOp::create(at, loc, func, 0, "lane", "lane", "lanev",
                          shape.lanes, halide::TailStrategy::RoundUp);
  halide::VectorizeOp::create(at, loc, func, 0, "lanev");
  halide::BoundExtentOp::create(at, loc, func, "lane", i32(at, shape.width));
  halide::BoundExtentOp::create(at, loc, func, "part", i32(at, group));
  halide::UnrollOp::create(at, loc, func, 0, "part");
}

/// Computes \p func in loop \p loop of \p consumer, of which a turn has one
/// panel.
static void placeInTask(OpBuilder &at, KernelFunc &func, Value consumer,
                        StringRef loop, PanelShape shape) {
  Value value = func.func.getResult();
  Location loc = value.getLoc();
  halide::ComputeAtOp::create(at, loc, value, consumer, loop);
  for (StringRef dim : varsOf(func.func))
    if (dim != "lane" && dim != "part" && dim != "step")
      halide::BoundExtentOp::create(
          at, loc, value, dim,
          i32(at, dim.starts_with("product") ? shape.products : 1));
}

void heed::placePanel(KernelInfo &kernel, const GroupedSum &sum, Value consumer,
                      StringRef loop, PanelShape shape) {
  OpBuilder at = scheduleBuilder(kernel);
  if (sum.packsInTask) {
    placeInTask(at, *kernel.find(sum.panel), consumer, loop, shape);
    scheduleGroupedPanel(at, sum.panel, shape, sum.group);
  }
  if (!sum.columnSums)
    return;
  Value func = sum.columnSums;
  Location loc = func.getLoc();
  KernelFunc *own = kernel.find(func);
  placeInTask(at, *own, consumer, loop, shape);
  halide::BoundExtentOp::create(at, loc, func, "lane", i32(at, shape.width));
  halide::AtomicOp::create(at, loc, func, 1);
  SmallVector<StringRef> order{"part", "nv", "nj"};
  for (Attribute name : own->updates[0].getRvars().getValue().drop_front())
    order.push_back(cast<StringAttr>(name).getValue());
  for (int64_t stage : {0, 1}) {
    halide::SplitOp::create(at, loc, func, stage, "lane", "nj", "nv",
                            shape.lanes, halide::TailStrategy::GuardWithIf);
    if (stage) {
      halide::ReorderOp::create(at, loc, func, stage, order);
      halide::VectorizeOp::create(at, loc, func, stage, "part");
    }
    halide::VectorizeOp::create(at, loc, func, stage, "nv");
    halide::UnrollOp::create(at, loc, func, stage, "nj");
  }
}
