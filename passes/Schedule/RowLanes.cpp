//===- RowLanes.cpp - reductions of rows, lane by lane --------------------===//
//
// A reduction of a row keeps a partial result per lane of several vectors,
// which hide the latency of its operation, one per lane of the whole vectors
// behind these, and adds up the vectors and then their lanes.
#include "passes/Schedule/RowLanes.h"
#include "passes/Mutation.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

/// The value that leaves every other one as it is.
static TypedAttr neutral(Operation *op, OpBuilder &b) {
  Type type = op->getResult(0).getType();
  if (auto real = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &sem = real.getFloatSemantics();
    if (isa<arith::AddFOp>(op))
      return b.getFloatAttr(type, 0.0);
    return b.getFloatAttr(
        type, mutated("rows.extreme-from-zero")
                  ? APFloat::getZero(sem)
                  : APFloat::getInf(
                        sem, isa<arith::MaxNumFOp, arith::MaximumFOp>(op)));
  }
  unsigned bits = type.getIntOrFloatBitWidth();
  if (isa<arith::AndIOp>(op))
    return b.getIntegerAttr(type, APInt::getAllOnes(bits));
  if (isa<arith::MaxSIOp>(op))
    return b.getIntegerAttr(type, APInt::getSignedMinValue(bits));
  if (isa<arith::MinSIOp>(op))
    return b.getIntegerAttr(type, APInt::getSignedMaxValue(bits));
  return b.getIntegerAttr(type, APInt::getZero(bits));
}

namespace {

/// The funcs of one reduction's lanes.
class LanewiseSum {
public:
  LanewiseSum(KernelInfo &kernel, Value func, Operation *combine, unsigned term,
              int64_t lanes, int64_t vectors);
  Lanes run();
  Value runInStrides(StringRef suffix);

private:
  /// Combines \p old and \p fresh as the reduction does.
  Value joinWith(OpBuilder &inner, Value old, Value fresh);
  /// combine(target[at], the term with the reduction var = \p element); with
  /// isPadded, behind the last term nothing is added, and an extremum sees the
  /// last one again.
  Value apply(OpBuilder &inner, Value target, ValueRange at, Value element,
              ValueRange dims);
  /// A func of \p width lanes, whose iteration r over \p count adds the terms
  /// from \p from + r * width on. After the producers of the terms: where the
  /// update stands.
  Value addPartial(StringRef suffix, StringRef rvar, int64_t width, Value from,
                   Value count);
  /// One vector of all those of \p parts.
  Value addJoined(const Lanes &parts);
  /// Has the reduction add up the lanes of \p from, and then the terms from
  /// \p done on, if that is given.
  void addUp(Value from, Value done);

  KernelInfo &kernel;
  Value func;
  Operation *combine;
  unsigned term;
  int64_t lanes, vectors;
  KernelFunc *f;
  halide::UpdateOp update;
  Location loc;
  Block &body;
  size_t rank;
  Extent extent;
  Type type;
  std::string name;
  SmallVector<std::string> names{"lane"};
  SmallVector<StringRef> vars;
  SmallVector<Extent> extents;
  OpBuilder b;
  Value zero;
  bool isPadded = false;
};

LanewiseSum::LanewiseSum(KernelInfo &kernel, Value func, Operation *combine,
                         unsigned term, int64_t lanes, int64_t vectors)
    : kernel(kernel), func(func), combine(combine), term(term), lanes(lanes),
      vectors(vectors), f(kernel.find(func)), update(f->updates[0]),
      loc(update.getLoc()), body(update.getSet().front()),
      rank(f->extents.size()), extent(f->reductions[0][0]),
      type(combine->getResult(0).getType()), name(f->func.getName().str()),
      extents{{Value(), lanes}}, b(update), zero(i32(b, 0)) {
  llvm::append_range(names, varsOf(f->func));
  vars.assign(names.begin(), names.end());
  extents.append(f->extents);
}

Value LanewiseSum::joinWith(OpBuilder &inner, Value old, Value fresh) {
  IRMapping operands;
  operands.map(combine->getOperand(term), fresh);
  operands.map(combine->getOperand(1 - term), old);
  return inner.clone(*combine, operands)->getResult(0);
}

Value LanewiseSum::apply(OpBuilder &inner, Value target, ValueRange at,
                         Value element, ValueRange dims) {
  IRMapping map;
  for (size_t d = 0; d < rank; ++d)
    map.map(body.getArgument(d), dims[d]);
  Value last = isPadded ? addI32(inner, extent.value, -1) : Value();
  map.map(body.getArgument(rank),
          last ? arith::MinSIOp::create(inner, loc, element, last).getResult()
               : element);
  Value fresh = cloneSlice(inner, combine->getOperand(term), map);
  if (isPadded && isa<arith::AddFOp, arith::AddIOp>(combine) &&
      !mutated("rows.term-behind-end")) {
    Value isTerm = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt,
                                         element, extent.value);
    Value none = arith::ConstantOp::create(inner, loc, neutral(combine, inner));
    fresh = arith::SelectOp::create(inner, loc, isTerm, fresh, none);
  }
  Value old = halide::ReadOp::create(inner, loc, type, target, at).getResult(0);
  // A lane starts from a number, so only the term can be NaN: one instruction
  // from lane to lane, where the op in general waits for three.
  if (target != func && isa<arith::MaxNumFOp, arith::MinNumFOp>(combine)) {
    auto better = isa<arith::MaxNumFOp>(combine) ? arith::CmpFPredicate::OGT
                                                 : arith::CmpFPredicate::OLT;
    Value take = arith::CmpFOp::create(inner, loc, better, fresh, old);
    return arith::SelectOp::create(inner, loc, take, fresh, old).getResult();
  }
  return joinWith(inner, old, fresh);
}

Value LanewiseSum::addPartial(StringRef suffix, StringRef rvar, int64_t width,
                              Value from, Value count) {
  extents[0].fixed = width;
  KernelFunc &partial = addFunc(
      kernel, update, name + suffix.str(), vars, type, extents,
      [&](OpBuilder &inner, ValueRange) -> Value {
        return arith::ConstantOp::create(inner, loc, neutral(combine, inner));
      });
  Value target = partial.func.getResult();
  partial.role = FuncRole::Reduction;
  auto blocks = halide::UpdateOp::create(b, loc, target, ArrayRef(rvar),
                                         ValueRange{zero, count});
  blocks.fill(b, blocks.getSet(),
              [&](OpBuilder &inner, Location, ValueRange args) {
                Value element = arith::AddIOp::create(
                    inner, loc, mulI32(inner, args.back(), width), args[0]);
                if (from && !mutated("rows.rest-from-first"))
                  element = arith::AddIOp::create(inner, loc, from, element);
                return SmallVector<Value>{apply(inner, target, args.drop_back(),
                                                element,
                                                args.drop_front().drop_back())};
              });
  kernel.find(target)->updates.push_back(blocks);
  kernel.find(target)->reductions.push_back({{count, std::nullopt}});
  return target;
}

Value LanewiseSum::addJoined(const Lanes &parts) {
  extents[0].fixed = lanes;
  auto join = [&](OpBuilder &inner, ValueRange args) -> Value {
    auto read = [&](Value source, int64_t vector) {
      SmallVector<Value> at(args);
      at[0] = addI32(inner, args[0], vector * lanes);
      return halide::ReadOp::create(inner, loc, type, source, at).getResult(0);
    };
    Value sum = read(parts.partial, 0);
    for (int64_t vector = 1;
         vector < vectors - mutated("rows.drop-last-vector"); ++vector)
      sum = joinWith(inner, sum, read(parts.partial, vector));
    return parts.rest && !mutated("rows.drop-whole-vectors")
               ? joinWith(inner, sum, read(parts.rest, 0))
               : sum;
  };
  return addFunc(kernel, update, heed::format("{}_joined", name), vars, type,
                 extents, join)
      .func.getResult();
}

void LanewiseSum::addUp(Value from, Value done) {
  Value all = i32(b, lanes);
  auto join = halide::UpdateOp::create(b, loc, func, ArrayRef<StringRef>{"rl"},
                                       ValueRange{zero, all});
  join.fill(b, join.getSet(), [&](OpBuilder &inner, Location, ValueRange args) {
    SmallVector<Value> at{args.back()};
    llvm::append_range(at, args.drop_back());
    Value fresh =
        halide::ReadOp::create(inner, loc, type, from, at).getResult(0);
    Value old = halide::ReadOp::create(inner, loc, type, func, args.drop_back())
                    .getResult(0);
    return SmallVector<Value>{joinWith(inner, old, fresh)};
  });
  f = kernel.find(func);
  f->updates[0] = join;
  f->reductions[0] = {{all, lanes}};
  if (!done || (extent.fixed && *extent.fixed % lanes == 0) ||
      mutated("rows.drop-tail"))
    return;
  Value count = arith::SubIOp::create(b, loc, extent.value, done);
  auto tail = halide::UpdateOp::create(b, loc, func, ArrayRef<StringRef>{"rt"},
                                       ValueRange{done, count});
  tail.fill(b, tail.getSet(), [&](OpBuilder &inner, Location, ValueRange args) {
    return SmallVector<Value>{
        apply(inner, func, args.drop_back(), args.back(), args.drop_back())};
  });
  f->updates.push_back(tail);
  f->reductions.push_back({{count, std::nullopt}});
}

Lanes LanewiseSum::run() {
  Lanes result;
  int64_t width = vectors * lanes;
  Value whole = divI32(b, extent.value, width);
  result.partial = addPartial("_lanes", "rb", width, Value(), whole);
  Value done = mulI32(b, whole, width);
  Value from = result.partial;
  if (vectors > 1) {
    if (!extent.fixed || *extent.fixed % width >= lanes) {
      Value left = arith::SubIOp::create(b, loc, extent.value, done);
      Value count = divI32(b, left, lanes);
      result.rest = addPartial("_rest", "rw", lanes, done, count);
      done = arith::AddIOp::create(b, loc, done, mulI32(b, count, lanes));
    }
    from = result.joined = addJoined(result);
  }
  addUp(from, done);
  update.erase();
  return result;
}

Value LanewiseSum::runInStrides(StringRef suffix) {
  int64_t width = vectors * lanes;
  isPadded = !extent.fixed || *extent.fixed % width;
  Value steps = divI32(b, addI32(b, extent.value, width - 1), width);
  Value sums =
      addPartial(suffix, "rb", lanes, Value(), mulI32(b, steps, vectors));
  if (extent.fixed)
    kernel.find(sums)->reductions[0][0].fixed =
        llvm::divideCeil(*extent.fixed, width) * vectors;
  isPadded = false;
  addUp(sums, Value());
  update.erase();
  return sums;
}

} // namespace

Value heed::sumInStrides(KernelInfo &kernel, Value func, StringRef suffix,
                         int64_t lanes, int64_t together) {
  unsigned term = 0;
  Operation *combine = combinerOf(kernel.find(func)->updates[0], term);
  return LanewiseSum(kernel, func, combine, term, lanes, together)
      .runInStrides(suffix);
}

Lanes heed::sumByLanes(KernelInfo &kernel, Value func, Operation *combine,
                       unsigned term, int64_t lanes, int64_t vectors) {
  return LanewiseSum(kernel, func, combine, term, lanes, vectors).run();
}

bool heed::reducesInnermost(const Computation &c, int64_t lanes) {
  const Reduction *sum = c.onlySum();
  auto follows = [](const Read &read, unsigned loop) {
    return !read.at.empty() && read.at.front().loops[loop];
  };
  bool isShort = c.rank() == 0 || (c.extents[0] && *c.extents[0] < lanes);
  bool hasColumns = !isShort && llvm::any_of(sum->reads, [&](const Read &read) {
    return follows(read, kColumn) && read.follows(c.term());
  });
  return llvm::any_of(sum->reads, [&](const Read &read) {
    return follows(read, c.term()) && (!hasColumns || read.follows(kColumn));
  });
}

/// Whether computations read the reductions, of \p rowRank dims, at their own
/// row alone.
static bool readsAtRow(const KernelFacts &facts, unsigned rowRank) {
  auto inStep = [&](const Computation &reader, const Read &read) {
    const Source &source = facts.sources[read.source];
    if (source.kind != Source::Computed ||
        facts.computations[source.number].isElementwise())
      return true;
    if (reader.rank() < rowRank)
      return false;
    for (auto [k, coordinate] : llvm::enumerate(read.at))
      if (coordinate.loop != reader.rank() - rowRank + k)
        return false;
    return true;
  };
  return llvm::all_of(facts.computations, [&](const Computation &reader) {
    bool ok = llvm::all_of(
        reader.reads, [&](const Read &read) { return inStep(reader, read); });
    for (const Reduction &reduction : reader.reductions)
      ok &= llvm::all_of(reduction.reads, [&](const Read &read) {
        return inStep(reader, read);
      });
    return ok;
  });
}

std::optional<RowsPlan> heed::planRows(const KernelFacts &facts,
                                       int64_t lanes) {
  SmallVector<unsigned> sums = facts.sums();
  if (facts.outputs.size() != 1 || sums.empty())
    return std::nullopt;
  unsigned rowRank = facts.computations[sums[0]].rank(),
           outRank = facts.computations[facts.outputs[0]].rank();
  bool columns = false;
  for (unsigned number : sums) {
    const Computation &c = facts.computations[number];
    if (!c.onlySum() || c.rank() != rowRank)
      return std::nullopt;
    columns |= !reducesInnermost(c, lanes);
  }
  if (rowRank == 0 || outRank < rowRank || !readsAtRow(facts, rowRank))
    return std::nullopt;
  RowsPlan plan{outRank - rowRank, columns};
  if (columns && (plan.inner != 0 || sums.size() != 1))
    return std::nullopt;
  return plan;
}

/// Makes \p func, a reduction of a row, one of lanes, and schedules what comes
/// of it but for \p func itself. \p combine and \p term as of combinerOf.
static void scheduleLanes(OpBuilder &b, KernelInfo &kernel, Value func,
                          Value outFunc, StringRef at, Operation *combine,
                          unsigned term, int64_t lanes) {
  constexpr int64_t several = 4;
  Location loc = outFunc.getLoc();
  Extent extent = kernel.find(func)->reductions[0][0];
  int64_t vectors =
              extent.fixed && *extent.fixed < several * lanes ? 1 : several,
          width = vectors * lanes;
  Lanes split = sumByLanes(kernel, func, combine, term, lanes, vectors);
  auto computeAt = [&](Value partial) {
    halide::ComputeAtOp::create(b, loc, partial, outFunc, at);
  };
  auto schedule = [&](Value partial, int64_t count, size_t stages) {
    halide::BoundExtentOp::create(b, loc, partial, "lane", i32(b, count));
    for (size_t stage = 0; stage < stages; ++stage)
      halide::VectorizeOp::create(b, loc, partial, stage, "lane");
  };
  computeAt(split.partial);
  // A lane adds few terms in a row.
  Value block = sumByBlocks(kernel, split.partial, longestSum / width);
  schedule(split.partial, width,
           1 + kernel.find(split.partial)->updates.size());
  if (block) {
    // A block of all lanes, not one a lane.
    halide::ReorderOp::create(b, loc, split.partial, 1, {"lane", "rb_b"});
    halide::ComputeAtOp::create(b, loc, block, split.partial, "rb_b");
    schedule(block, width, 2);
  }
  if (split.rest) {
    computeAt(split.rest);
    schedule(split.rest, lanes, 2);
  }
  if (split.joined) {
    computeAt(split.joined);
    schedule(split.joined, lanes, 1);
  }
}

void heed::scheduleLaneSum(OpBuilder &b, KernelInfo &kernel, Value func,
                           Value outFunc, StringRef at,
                           const halide::Target &target) {
  KernelFunc *f = kernel.find(func);
  unsigned term = 0;
  Operation *combine = combinerOf(f->updates[0], term);
  int64_t lanes = target.lanes(std::max(32u, widestBits(f->func)));
  Extent extent = f->reductions[0][0];
  bool lanewise = combine && !(extent.fixed && *extent.fixed < lanes);
  if (lanewise)
    scheduleLanes(b, kernel, func, outFunc, at, combine, term, lanes);
  halide::ComputeAtOp::create(b, outFunc.getLoc(), func, outFunc, at);
  // As one chain, lane by lane, each addition waits for the one before; as
  // one expression LLVM makes a tree of it.
  if (lanewise)
    halide::UnrollOp::create(b, outFunc.getLoc(), func, 1, "rl");
}

void heed::scheduleColumnSum(OpBuilder &b, KernelInfo &kernel, Value sum,
                             Value block, Value outFunc, StringRef at,
                             int64_t lanes, int64_t vectors) {
  Location loc = outFunc.getLoc();
  KernelFunc &f = *kernel.find(sum);
  std::string column = varsOf(f.func)[0],
              r = cast<StringAttr>(f.updates.back().getRvars()[0]).str();
  halide::ComputeAtOp::create(b, loc, sum, outFunc, at);
  // Lanes inside of the loop over terms.
  auto schedule = [&](Value func, int64_t stage, StringRef terms) {
    SmallVector<std::string> loops =
        vectorizeSum(b, kernel.find(func)->func, stage, lanes, vectors);
    if (terms.empty())
      return;
    loops.push_back(terms.str());
    loops.push_back(column);
    SmallVector<StringRef> order(loops.begin(), loops.end());
    halide::ReorderOp::create(b, loc, func, stage, order);
  };
  schedule(sum, 0, "");
  if (block) {
    std::string of = cast<StringAttr>(f.updates[0].getRvars()[0]).str();
    r = cast<StringAttr>(kernel.find(block)->updates[0].getRvars()[0]).str();
    if (f.updates.size() > 1)
      schedule(sum, 2, r);
    halide::ComputeAtOp::create(b, loc, block, sum, of);
    schedule(block, 0, "");
    schedule(block, 1, r);
    r = of;
  }
  schedule(sum, 1, r);
}
