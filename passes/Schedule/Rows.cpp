//===- Rows.cpp - schedule of softmax, norms and other reductions of rows -===//
//
// A row is worked on while it is in the cache: its reductions one after the
// other, then its elements. Lanes are places in the row: a sum keeps one
// partial result per lane of four vectors, which hide the latency of an
// addition, and adds the vectors and then their lanes at its end. Whole vectors
// that are left over have partial results of their own; what is left over after
// these is added element by element. Rows are independent and run in parallel.
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace heed;

namespace {

/// The value that leaves every other one as it is.
TypedAttr neutral(Operation *op, OpBuilder &b) {
  Type type = op->getResult(0).getType();
  if (auto real = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &sem = real.getFloatSemantics();
    if (isa<arith::AddFOp>(op))
      return b.getFloatAttr(type, 0.0);
    return b.getFloatAttr(
        type,
        APFloat::getInf(sem, isa<arith::MaxNumFOp, arith::MaximumFOp>(op)));
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

/// Whether consecutive elements of the reduction are consecutive in memory in
/// some read.
bool reducesInnermost(halide::UpdateOp update, unsigned rank) {
  Value r = update.getSet().front().getArgument(rank);
  for (auto read : update.getSet().front().getOps<halide::ReadOp>())
    if (!read.getCoordinates().empty() &&
        argumentsOf(read.getCoordinates().front()).contains(r))
      return true;
  return false;
}

/// Places a func inside the loop over rows.
void placeAtRow(OpBuilder &b, Value func, Value out, StringRef at) {
  halide::ComputeAtOp::create(b, func.getLoc(), func, out, at);
}

/// A reduction by lanes: the partial results of \p vectors vectors, of the
/// whole vectors behind them, and of both together, whose lanes the func adds.
struct Lanes {
  Value partial;
  Value rest;   ///< null if there are no such vectors
  Value joined; ///< null if one vector is all
};

/// Splits update 0 of \p func, over one reduction var, in partial results of
/// \p vectors vectors of \p lanes, what is left, and their sum.
Lanes sumByLanes(KernelInfo &kernel, Value func, Operation *combine,
                 unsigned term, int64_t lanes, int64_t vectors) {
  KernelFunc *f = kernel.find(func);
  halide::UpdateOp update = f->updates[0];
  Location loc = update.getLoc();
  Block &body = update.getSet().front();
  size_t rank = f->extents.size();
  Extent extent = f->reductions[0][0];
  Type type = combine->getResult(0).getType();
  std::string name = f->func.getName().str();
  SmallVector<std::string> names{"lane"};
  for (std::string &var : varsOf(f->func))
    names.push_back(var);
  SmallVector<StringRef> vars(names.begin(), names.end());
  SmallVector<Extent> extents{{Value(), lanes}};
  extents.append(f->extents);
  OpBuilder b(update);
  Value zero = i32(b, 0);

  auto joinWith = [&](OpBuilder &inner, Value old, Value fresh) -> Value {
    IRMapping operands;
    operands.map(combine->getOperand(term), fresh);
    operands.map(combine->getOperand(1 - term), old);
    return inner.clone(*combine, operands)->getResult(0);
  };
  // combine(target[at], term with the reduction var = element)
  auto apply = [&](OpBuilder &inner, Value target, ValueRange at, Value element,
                   ValueRange dims) -> Value {
    IRMapping map;
    for (size_t d = 0; d < rank; ++d)
      map.map(body.getArgument(d), dims[d]);
    map.map(body.getArgument(rank), element);
    Value fresh = cloneSlice(inner, combine->getOperand(term), map);
    Value old =
        halide::ReadOp::create(inner, loc, type, target, at).getResult(0);
    // A lane starts from a number, so only the term can be NaN: one instruction
    // from lane to lane, where the op in general waits for three.
    if (target != func && isa<arith::MaxNumFOp, arith::MinNumFOp>(combine)) {
      auto better = isa<arith::MaxNumFOp>(combine) ? arith::CmpFPredicate::OGT
                                                   : arith::CmpFPredicate::OLT;
      Value take = arith::CmpFOp::create(inner, loc, better, fresh, old);
      return arith::SelectOp::create(inner, loc, take, fresh, old).getResult();
    }
    return joinWith(inner, old, fresh);
  };
  // A func of \p width lanes, whose turn r over \p count adds the terms from
  // \p from + r * width on. After the producers of the terms: where the update
  // stands.
  auto addPartial = [&](StringRef suffix, StringRef rvar, int64_t width,
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
                  if (from)
                    element = arith::AddIOp::create(inner, loc, from, element);
                  return SmallVector<Value>{
                      apply(inner, target, args.drop_back(), element,
                            args.drop_front().drop_back())};
                });
    kernel.find(target)->updates.push_back(blocks);
    kernel.find(target)->reductions.push_back({{count, std::nullopt}});
    return target;
  };

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
    extents[0].fixed = lanes;
    result.joined =
        addFunc(kernel, update, name + "_joined", vars, type, extents,
                [&](OpBuilder &inner, ValueRange args) -> Value {
                  auto read = [&](Value source, int64_t vector) {
                    SmallVector<Value> at(args);
                    at[0] = addI32(inner, args[0], vector * lanes);
                    return halide::ReadOp::create(inner, loc, type, source, at)
                        .getResult(0);
                  };
                  Value sum = read(result.partial, 0);
                  for (int64_t vector = 1; vector < vectors; ++vector)
                    sum = joinWith(inner, sum, read(result.partial, vector));
                  return result.rest
                             ? joinWith(inner, sum, read(result.rest, 0))
                             : sum;
                })
            .func.getResult();
    from = result.joined;
  }
  auto join = halide::UpdateOp::create(b, loc, func, ArrayRef<StringRef>{"rl"},
                                       ValueRange{zero, i32(b, lanes)});
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
  f->reductions[0] = {{Value(), lanes}};
  if (!extent.fixed || *extent.fixed % lanes != 0) {
    Value count = arith::SubIOp::create(b, loc, extent.value, done);
    auto tail = halide::UpdateOp::create(
        b, loc, func, ArrayRef<StringRef>{"rt"}, ValueRange{done, count});
    tail.fill(b, tail.getSet(),
              [&](OpBuilder &inner, Location, ValueRange args) {
                return SmallVector<Value>{apply(inner, func, args.drop_back(),
                                                args.back(), args.drop_back())};
              });
    f->updates.push_back(tail);
    f->reductions.push_back({{count, std::nullopt}});
  }
  update.erase();
  return result;
}

/// Whether \p func is worth storing for a row: a transcendental function that
/// more than one stage reads.
bool isDear(halide::FuncOp func) {
  bool dear = false;
  func->walk([&](Operation *op) {
    dear |= isa<math::MathDialect>(op->getDialect()) &&
            !isa<math::SqrtOp, math::AbsFOp>(op);
  });
  llvm::SmallPtrSet<Operation *, 4> readers;
  for (Operation *user : func.getResult().getUsers())
    if (isa<halide::ReadOp>(user))
      readers.insert(user->getParentOp());
  return dear && readers.size() > 1;
}

/// Arrays that \p func, or what is computed inside of it, reads place by place
/// along its rows.
void collectRows(halide::FuncOp func, llvm::SmallSetVector<Value, 4> &arrays) {
  Block &body = func.getBody().front();
  for (auto read : body.getOps<halide::ReadOp>()) {
    OperandRange at = read.getCoordinates();
    if (at.size() < 2 || at[0] != body.getArgument(0) ||
        llvm::all_of(at.drop_front(),
                     [](Value row) { return argumentsOf(row).empty(); }))
      continue;
    Operation *source = read.getFunc().getDefiningOp();
    if (isa<halide::BufferOp>(source))
      arrays.insert(read.getFunc());
    else if (auto inner = dyn_cast<halide::FuncOp>(source);
             inner && !isDear(inner))
      collectRows(inner, arrays);
  }
}

/// Has loop \p var of \p func, which goes along a row, fetch the next row of
/// what it reads while it computes this one. Within a page the processor does
/// so by itself.
void prefetchRows(OpBuilder &b, KernelInfo &kernel, Value func, StringRef var,
                  Value out) {
  constexpr int64_t page = 4096;
  KernelFunc *f = kernel.find(func);
  if (f->extents[0].fixed &&
      *f->extents[0].fixed * widestBits(f->func) < page * 8)
    return;
  llvm::SmallSetVector<Value, 4> arrays;
  collectRows(f->func, arrays);
  for (Value array : arrays)
    halide::PrefetchNextOp::create(b, f->func.getLoc(), func, 0, array, var,
                                   out, "row");
}

} // namespace

bool heed::scheduleRows(KernelInfo &kernel, const halide::Target &target) {
  SmallVector<KernelFunc *> outputs = outputsOf(kernel);
  if (outputs.size() != 1)
    return false;
  size_t rowRank = 0;
  bool any = false;
  for (KernelFunc &f : kernel.funcs) {
    if (f.role != FuncRole::Reduction)
      continue;
    if (halide::getElementTypes(f.func.getResult()).size() != 1 ||
        f.updates.size() != 1 || f.reductions[0].size() != 1 ||
        !f.updates[0].getWhere().empty() || !f.updates[0].getAt().empty() ||
        (any && f.extents.size() != rowRank))
      return false;
    any = true;
    rowRank = f.extents.size();
  }
  size_t outRank = outputs[0]->extents.size();
  if (!any || rowRank == 0 || outRank < rowRank)
    return false;
  // Reductions are read at the row of their reader alone.
  for (KernelFunc &f : kernel.funcs) {
    if (f.role != FuncRole::Reduction)
      continue;
    for (Operation *user : f.func.getResult().getUsers()) {
      auto read = dyn_cast<halide::ReadOp>(user);
      if (!read || read->getParentOp() == f.updates[0])
        continue;
      auto reader = dyn_cast<halide::FuncOp>(read->getParentOp());
      KernelFunc *owner =
          reader ? kernel.find(reader.getResult())
                 : kernel.find(
                       cast<halide::UpdateOp>(read->getParentOp()).getFunc());
      size_t inner = owner->extents.size() - rowRank;
      for (auto [k, coordinate] : llvm::enumerate(read.getCoordinates())) {
        auto arg = dyn_cast<BlockArgument>(coordinate);
        if (!arg || arg.getArgNumber() != inner + k)
          return false;
      }
    }
  }

  separateOutputs(kernel);
  stateDenseStrides(kernel);
  KernelFunc *out = outputsOf(kernel)[0];
  Value outFunc = out->func.getResult();
  Location loc = out->func.getLoc();
  SmallVector<std::string> vars = varsOf(out->func);
  size_t inner = outRank - rowRank;
  SmallVector<Value> reductions, dear;
  for (KernelFunc &f : kernel.funcs) {
    if (f.role == FuncRole::Reduction)
      reductions.push_back(f.func.getResult());
    else if (f.func.getResult() != outFunc && isDear(f.func) && inner &&
             f.extents.size() == outRank)
      dear.push_back(f.func.getResult());
  }
  OpBuilder b = scheduleBuilder(kernel);
  auto guard = halide::TailStrategy::GuardWithIf;

  // Columns: the places of a reduction lie a row apart, so lanes are the
  // innermost dim of the result.
  bool columns = false;
  for (Value r : reductions)
    columns |= !reducesInnermost(kernel.find(r)->updates[0], rowRank);
  if (columns) {
    if (inner != 0 || reductions.size() != 1)
      return false;
    int64_t lanes = target.lanes(std::max(32u, widestBits(out->func)));
    halide::SplitOp::create(b, loc, outFunc, 0, vars[0], "vb", "v", lanes,
                            guard);
    halide::VectorizeOp::create(b, loc, outFunc, 0, "v");
    std::string r =
        cast<StringAttr>(kernel.find(reductions[0])->updates[0].getRvars()[0])
            .str();
    halide::ComputeAtOp::create(b, loc, reductions[0], outFunc, "vb");
    for (int64_t stage = 0; stage < 2; ++stage)
      vectorizeInner(b, kernel.find(reductions[0])->func, stage, vars[0],
                     lanes);
    std::string v = vars[0] + "v";
    if (Value block = sumByBlocks(kernel, reductions[0], longestSum)) {
      if (kernel.find(reductions[0])->updates.size() > 1) {
        vectorizeInner(b, kernel.find(reductions[0])->func, 2, vars[0], lanes);
        halide::ReorderOp::create(b, loc, reductions[0], 2, {v, vars[0], r});
      }
      halide::ComputeAtOp::create(b, loc, block, reductions[0], r + "_b");
      for (int64_t stage = 0; stage < 2; ++stage)
        vectorizeInner(b, kernel.find(block)->func, stage, vars[0], lanes);
      halide::ReorderOp::create(b, loc, block, 1, {v, vars[0], r});
      r += "_b";
    }
    halide::ReorderOp::create(b, loc, reductions[0], 1, {v, vars[0], r});
    SmallVector<std::string> loops{"vb"};
    loops.append(vars.begin() + 1, vars.end());
    parallelOuter(b, out->func, 0, loops, loops.size() > 1 ? 1 : 0);
    return true;
  }

  // The loops of the output: places in the row, then eight rows a task.
  int64_t outLanes = target.lanes(std::max(32u, widestBits(out->func)));
  if (inner && !(out->extents[0].fixed && *out->extents[0].fixed < outLanes))
    vectorizeInner(b, out->func, 0, vars[0], outLanes);
  SmallVector<std::string> loops =
      fuseLoops(b, out->func, 0, ArrayRef(vars).drop_front(inner));
  halide::SplitOp::create(b, loc, outFunc, 0, loops[0], "task", "row", 8,
                          guard);
  loops[0] = "task";
  for (const std::string &loop : loops)
    halide::ParallelOp::create(b, loc, outFunc, 0, loop);

  for (Value func : dear) {
    KernelFunc *f = kernel.find(func);
    placeAtRow(b, func, outFunc, "row");
    vectorizeInner(b, f->func, 0, varsOf(f->func)[0],
                   target.lanes(std::max(32u, widestBits(f->func))));
    prefetchRows(b, kernel, func, varsOf(f->func)[0], outFunc);
  }
  if (inner)
    prefetchRows(b, kernel, outFunc, vars[0], outFunc);
  for (Value func : reductions) {
    KernelFunc *f = kernel.find(func);
    unsigned term = 0;
    Operation *combine = combinerOf(f->updates[0], term);
    int64_t lanes = target.lanes(std::max(32u, widestBits(f->func)));
    Extent extent = f->reductions[0][0];
    if (combine && !(extent.fixed && *extent.fixed < lanes)) {
      constexpr int64_t several = 4;
      int64_t vectors =
                  extent.fixed && *extent.fixed < several * lanes ? 1 : several,
              width = vectors * lanes;
      Lanes split = sumByLanes(kernel, func, combine, term, lanes, vectors);
      auto schedule = [&](Value partial, int64_t count, size_t stages) {
        halide::BoundExtentOp::create(b, loc, partial, "lane", i32(b, count));
        for (size_t stage = 0; stage < stages; ++stage)
          halide::VectorizeOp::create(b, loc, partial, stage, "lane");
      };
      placeAtRow(b, split.partial, outFunc, "row");
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
        placeAtRow(b, split.rest, outFunc, "row");
        schedule(split.rest, lanes, 2);
      }
      if (split.joined) {
        placeAtRow(b, split.joined, outFunc, "row");
        schedule(split.joined, lanes, 1);
      }
    }
    placeAtRow(b, func, outFunc, "row");
  }
  return true;
}
