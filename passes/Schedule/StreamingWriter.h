//===- StreamingWriter.h - schedule ops of streaming attention --*- C++ -*-===//
#ifndef HEED_PASSES_SCHEDULE_STREAMINGWRITER_H
#define HEED_PASSES_SCHEDULE_STREAMINGWRITER_H

#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/StreamingPlan.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace heed::streaming {

using namespace mlir;

/// Schedule ops of one pipeline, in a shorter notation.
struct Writer {
  OpBuilder &b;
  Location loc;
  const StreamingPlan &plan;

  Value i(int64_t value) { return constantI32(b, loc, value); }
  /// Factors divide the promised extents, so the guard is proved away; with an
  /// edited factor that does not divide, nothing beyond a promise is computed.
  template <typename Factor>
  void split(halide::FuncOp f, int64_t stage, StringRef var, StringRef outer,
             StringRef inner, Factor factor) {
    halide::SplitOp::create(b, loc, f.getResult(), stage, var, outer, inner,
                            factor, halide::TailStrategy::GuardWithIf);
  }
  Value factor(halide::FuncOp f, int64_t stage, StringRef loop) {
    return halide::FactorOp::create(b, loc, b.getI32Type(), f.getResult(),
                                    stage, loop);
  }
  /// Pieces of \p size that \p all neighbours lie in, which begin at a multiple
  /// of their number: exact where one divides the other, else one more for the
  /// ends.
  Value pieces(Value all, int64_t size) {
    Value piece = i(size);
    Value up = arith::AddIOp::create(b, loc, all, i(size - 1));
    auto cuts = [&](Value x, Value y) -> Value {
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                   halide::ModOp::create(b, loc, x, y), i(0));
    };
    Value ends =
        arith::AndIOp::create(b, loc, cuts(all, piece), cuts(piece, all));
    return arith::AddIOp::create(
        b, loc, arith::FloorDivSIOp::create(b, loc, up, piece),
        arith::SelectOp::create(b, loc, ends, i(1), i(0)));
  }
  void reorder(halide::FuncOp f, int64_t stage, ArrayRef<StringRef> vars) {
    halide::ReorderOp::create(b, loc, f.getResult(), stage, vars);
  }
  void vectorize(halide::FuncOp f, int64_t stage, StringRef var) {
    halide::VectorizeOp::create(b, loc, f.getResult(), stage, var);
  }
  /// A reduction whose steps are the lanes of vectors.
  void acrossLanes(halide::FuncOp f, int64_t stage, StringRef var) {
    halide::AtomicOp::create(b, loc, f.getResult(), stage);
    vectorize(f, stage, var);
  }
  void unroll(halide::FuncOp f, int64_t stage, StringRef var) {
    halide::UnrollOp::create(b, loc, f.getResult(), stage, var);
  }
  /// Not of the heap where the call decides on its size.
  void onStack(halide::FuncOp f) {
    halide::StoreInOp::create(b, loc, f.getResult(), halide::MemoryType::Stack);
  }
  /// Leaves loops whole: steady states of their own, with the clamps of the
  /// last keys and queries simplified, double the code and gain nothing.
  void keepWhole(halide::FuncOp f, int64_t stage, ArrayRef<StringRef> vars) {
    for (StringRef var : vars)
      halide::PartitionOp::create(b, loc, f.getResult(), stage, var,
                                  halide::Partition::Never);
  }
  void computeAt(halide::FuncOp f, halide::FuncOp consumer, StringRef var) {
    halide::ComputeAtOp::create(b, loc, f.getResult(), consumer.getResult(),
                                var);
  }
  void bound(halide::FuncOp f, StringRef var, Value extent) {
    halide::BoundVarOp::create(b, loc, f.getResult(), var, i(0), extent);
  }
  void boundExtent(halide::FuncOp f, StringRef var, Value extent) {
    halide::BoundExtentOp::create(b, loc, f.getResult(), var, extent);
  }
  /// One tile of one batch element, and \p members of it: without this, rows
  /// get dynamic allocations and loops of unknown extent. Of tiles nothing is
  /// to be said, libHalide sees it; what is said costs it time (each bound is a
  /// name more, in each loop around).
  void oneTile(halide::FuncOp f, Value members = {}) {
    boundExtent(f, "ib", i(1));
    for (unsigned k = 0; k < plan.batchDims; ++k)
      boundExtent(f, heed::format("b{}", k), i(1));
    if (members && plan.members)
      boundExtent(f, memberVar(), members);
  }
  std::string memberVar() { return heed::format("b{}", plan.batchDims); }
  /// Loops \p inner, then that over members, then \p outer and \p more, which
  /// would else come inside of the loop over members.
  void aroundMembers(halide::FuncOp f, int64_t stage, ArrayRef<StringRef> inner,
                     StringRef outer, ArrayRef<StringRef> more = {}) {
    SmallVector<StringRef> order(inner);
    std::string member = memberVar();
    if (plan.members)
      order.push_back(member);
    order.push_back(outer);
    order.append(more.begin(), more.end());
    reorder(f, stage, order);
  }
  /// Loop \p var is cut in vectors, whose last may be a part of one.
  void vectors(halide::FuncOp f, int64_t stage, StringRef var, StringRef outer,
               StringRef inner) {
    split(f, stage, var, outer, inner, plan.lanes);
    vectorize(f, stage, inner);
  }
  /// Schedules \p f, a transposed func over \p lane and \p other: a
  /// square at a time, its \p steps in each.
  void transpose(halide::FuncOp f, ArrayRef<halide::FuncOp> steps,
                 StringRef lane, StringRef other);
  /// Lanes are queries: the innermost loops are iv (a vector) and iu
  /// (unrolled), then `others`.
  void lanes(halide::FuncOp f, int64_t stage, ArrayRef<StringRef> others,
             bool unrolled = true) {
    split(f, stage, "ii", "iu", "iv", plan.lanes);
    SmallVector<StringRef> order{"iv"};
    if (unrolled)
      order.push_back("iu");
    order.append(others.begin(), others.end());
    if (!unrolled)
      order.push_back("iu");
    reorder(f, stage, order);
    vectorize(f, stage, "iv");
    if (unrolled)
      unroll(f, stage, "iu");
  }
};

} // namespace heed::streaming

#endif
