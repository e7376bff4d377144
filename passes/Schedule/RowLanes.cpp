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

Lanes heed::sumByLanes(KernelInfo &kernel, Value func, Operation *combine,
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
  // A func of \p width lanes, whose iteration r over \p count adds the terms
  // from
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
                  if (from && !mutated("rows.rest-from-first"))
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
        addFunc(kernel, update, heed::format("{}_joined", name), vars, type,
                extents,
                [&](OpBuilder &inner, ValueRange args) -> Value {
                  auto read = [&](Value source, int64_t vector) {
                    SmallVector<Value> at(args);
                    at[0] = addI32(inner, args[0], vector * lanes);
                    return halide::ReadOp::create(inner, loc, type, source, at)
                        .getResult(0);
                  };
                  Value sum = read(result.partial, 0);
                  for (int64_t vector = 1;
                       vector < vectors - mutated("rows.drop-last-vector");
                       ++vector)
                    sum = joinWith(inner, sum, read(result.partial, vector));
                  return result.rest && !mutated("rows.drop-whole-vectors")
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
  if ((!extent.fixed || *extent.fixed % lanes != 0) &&
      !mutated("rows.drop-tail")) {
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
