//===- StreamingBound.cpp - whether scores need no maximum ----------------===//
// One number of a call: 1 if the scores of its attention have a bound for which
// the streaming form without a maximum is right, else 0.
//
//   lanes   sums of squares along a row of an operand, a sum per lane
//   rows    sums of squares of its rows; of values, their largest bits
//   most    the largest bits of all rows: NaN is above all numbers, and stays
//   fits    whether the score, the sink and the values are small enough
//
// Cauchy and Schwarz: |q k| <= |q| |k|. It costs one read of the operands.
#include "passes/Lower/StreamingAttention.h"
#include "passes/Mutation.h"
#include "passes/Plan/ScoreBound.h"
#include "passes/Schedule/Schedule.h"
#include "passes/Schedule/StreamingOps.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heed;
using attn::DimKind;
using streaming::Ops;

namespace {

class BoundWriter {
public:
  BoundWriter(OpBuilder &b, StreamedAttention streamed,
              const IRMapping &scalars, TensorReads &tensors,
              const halide::Target &target)
      : b(b), loc(streamed.online.getLoc()), op(streamed.online),
        finish(streamed.finish), scalars(scalars), tensors(tensors),
        lanes(target.lanes(32)) {}

  LogicalResult run();

private:
  using Body = llvm::function_ref<Value(Ops &, ArrayRef<Value>)>;
  halide::FuncOp func(const std::string &name, ArrayRef<std::string> names,
                      Type type, Body body) {
    SmallVector<StringRef> vars(names.begin(), names.end());
    return halide::FuncOp::create(
        b, loc, name, vars, type,
        [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
          Ops o{inner, loc};
          return {body(o, SmallVector<Value>(args))};
        });
  }
  halide::UpdateOp update(halide::FuncOp f, ArrayRef<std::string> rvars,
                          ArrayRef<Value> extents, Body body) {
    SmallVector<StringRef> names(rvars.begin(), rvars.end());
    auto update = halide::UpdateOp::over(b, loc, f.getResult(), names, extents);
    update.fill(
        b, update.getSet(),
        [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
          Ops o{inner, loc};
          return {body(o, SmallVector<Value>(args))};
        });
    return update;
  }
  /// An element, as f32, at coordinates innermost first.
  Value element(Ops &o, Value tensor, ArrayRef<Value> at);
  Value sizeBits(Ops &o, Value x) {
    if (mutated("score-bound.bits-with-sign"))
      return o.bits(x);
    return arith::AndIOp::create(o.b, o.loc, o.bits(x), o.i(0x7fffffff));
  }
  SmallVector<Extent> extentsOf(Value tensor);
  /// The loops over the rows of an operand.
  struct RowLoops {
    std::string suffix; ///< of funcs' names
    SmallVector<std::string> vars, rvars;
    SmallVector<Value> extents;
    Extent columns;
  };
  /// Their funcs: a number per lane, of all lanes, and stored.
  struct RowSizes {
    halide::FuncOp inLanes, sums, rows;
  };
  RowSizes sizesOfRows(Value tensor, const RowLoops &loops, bool ofSquares);
  void scheduleRows(RowSizes sizes, ArrayRef<std::string> rowVars);
  halide::FuncOp mostOfRows(Value tensor, bool ofSquares);
  halide::FuncOp mostOfAll(Value tensor);
  /// The number whose bits \p most holds.
  Value number(Ops &o, halide::FuncOp most) {
    return o.real(o.read1(most.getResult(), {o.i(0)}));
  }

  OpBuilder &b;
  Location loc;
  attn::OnlineAttentionOp op;
  attn::FinishOp finish;
  const IRMapping &scalars;
  TensorReads &tensors;
  int64_t lanes;
  unsigned count = 0; ///< of operands: funcs have names of their own
  DenseMap<Value, halide::FuncOp> squares;
  bool failedRead = false;
};

} // namespace

Value BoundWriter::element(Ops &o, Value tensor, ArrayRef<Value> at) {
  FailureOr<Value> value =
      tensors.read(o.b, loc, tensor, SmallVector<Value>(llvm::reverse(at)));
  if (failed(value)) {
    failedRead = true;
    return o.f(0);
  }
  return value->getType().isF32()
             ? *value
             : arith::ExtFOp::create(o.b, loc, o.b.getF32Type(), *value)
                   .getResult();
}

/// The sum of squares of each row of \p tensor, or the largest of its elements'
/// sizes, as bits.
BoundWriter::RowSizes
BoundWriter::sizesOfRows(Value tensor, const RowLoops &loops, bool ofSquares) {
  Ops outside{b, loc};
  Value columns = loops.columns.value;
  Type f32 = b.getF32Type(), type = ofSquares ? f32 : b.getI32Type();
  auto start = [&](Ops &o, ArrayRef<Value>) {
    return ofSquares ? o.zero() : o.i(0);
  };
  auto next = [&](Ops &o, Value state, Value column, ArrayRef<Value> row) {
    SmallVector<Value> at{column};
    at.append(row.begin(), row.end());
    Value x = element(o, tensor, at);
    return ofSquares ? o.fma(state, x, x) : o.maxi(state, sizeBits(o, x));
  };
  // Of each lane, then of all, and of what fills no vector.
  SmallVector<std::string> laneVars{"l"};
  laneVars.append(loops.vars);
  halide::FuncOp inLanes =
      func(heed::format("lanes{}", loops.suffix), laneVars, type, start);
  update(inLanes, {"re"}, {outside.floorDiv(columns, lanes)},
         [&](Ops &o, ArrayRef<Value> args) {
           ArrayRef<Value> at = args.drop_back();
           return next(o, o.read1(inLanes.getResult(), at),
                       o.addi(o.muli(args.back(), o.i(lanes)), at[0]),
                       at.drop_front());
         });
  halide::FuncOp sums =
      func(heed::format("row{}", loops.suffix), loops.vars, type, start);
  update(sums, {"rl"}, {outside.i(lanes)}, [&](Ops &o, ArrayRef<Value> args) {
    ArrayRef<Value> at = args.drop_back();
    SmallVector<Value> lane{args.back()};
    lane.append(at.begin(), at.end());
    Value old = o.read1(sums.getResult(), at),
          one = o.read1(inLanes.getResult(), lane);
    return ofSquares ? o.sum(old, one) : o.maxi(old, one);
  });
  if ((!loops.columns.fixed || *loops.columns.fixed % lanes != 0) &&
      !mutated("score-bound.whole-vectors"))
    update(sums, {"rt"}, {outside.mod(columns, lanes)},
           [&](Ops &o, ArrayRef<Value> args) {
             ArrayRef<Value> at = args.drop_back();
             Value full = o.muli(o.floorDiv(columns, lanes), o.i(lanes));
             return next(o, o.read1(sums.getResult(), at),
                         o.addi(full, args.back()), at);
           });
  halide::FuncOp rows = func(heed::format("rows{}", loops.suffix), loops.vars,
                             type, [&](Ops &o, ArrayRef<Value> at) {
                               return o.read1(sums.getResult(), at);
                             });
  return {inLanes, sums, rows};
}

/// The largest sum of squares of a row of \p tensor, or the largest of its
/// elements' sizes, as bits.
halide::FuncOp BoundWriter::mostOfRows(Value tensor, bool ofSquares) {
  RowLoops loops;
  loops.suffix = heed::format("{}", count++);
  SmallVector<Extent> extents = extentsOf(tensor);
  if (failedRead)
    return {};
  loops.columns = extents[0];
  for (size_t k = 1; k < extents.size(); ++k) {
    loops.vars.push_back(heed::format("d{}", k));
    loops.rvars.push_back(heed::format("r{}", k));
    loops.extents.push_back(extents[k].value);
  }
  RowSizes sizes = sizesOfRows(tensor, loops, ofSquares);
  halide::FuncOp most =
      func(heed::format("most{}", loops.suffix), {"one"}, b.getI32Type(),
           [](Ops &o, ArrayRef<Value>) { return o.i(0); });
  update(most, loops.rvars, loops.extents, [&](Ops &o, ArrayRef<Value> args) {
    Value x = o.read1(sizes.rows.getResult(), args.drop_front());
    Value bits = ofSquares ? sizeBits(o, x) : x;
    if (mutated("score-bound.last-row"))
      return bits;
    return o.maxi(o.read1(most.getResult(), {args[0]}), bits);
  });
  scheduleRows(sizes, loops.vars);
  halide::ComputeRootOp::create(b, loc, most.getResult());
  return most;
}

/// A row's sums lie in registers, 64 rows are a task.
void BoundWriter::scheduleRows(RowSizes sizes, ArrayRef<std::string> rowVars) {
  auto [inLanes, sums, rows] = sizes;
  Ops o{b, loc};
  halide::BoundVarOp::create(b, loc, inLanes.getResult(), "l", o.i(0),
                             o.i(lanes));
  for (int64_t stage : {0, 1})
    halide::VectorizeOp::create(b, loc, inLanes.getResult(), stage, "l");
  halide::AtomicOp::create(b, loc, sums.getResult(), 1);
  halide::VectorizeOp::create(b, loc, sums.getResult(), 1, "rl");
  halide::ComputeRootOp::create(b, loc, rows.getResult());
  const std::string &row = rowVars.front();
  halide::SplitOp::create(b, loc, rows.getResult(), 0, row, "task", row, 64,
                          halide::TailStrategy::GuardWithIf);
  for (halide::FuncOp f : {inLanes, sums})
    halide::ComputeAtOp::create(b, loc, f.getResult(), rows.getResult(), row);
  SmallVector<std::string> tasks{"task"};
  tasks.append(rowVars.begin() + 1, rowVars.end());
  parallelOuter(b, rows, 0, tasks, 0, FusedBody::ComputesFuncs);
}

/// Extents of \p tensor, innermost first.
SmallVector<Extent> BoundWriter::extentsOf(Value tensor) {
  SmallVector<Extent> extents;
  for (int64_t axis = cast<RankedTensorType>(tensor.getType()).getRank();
       axis-- > 0;) {
    FailureOr<Extent> extent = tensors.extent(b, tensor, axis);
    failedRead |= failed(extent);
    extents.push_back(succeeded(extent) ? *extent : Extent());
  }
  return extents;
}

/// The largest of the elements' sizes of \p tensor, few, as bits.
halide::FuncOp BoundWriter::mostOfAll(Value tensor) {
  SmallVector<std::string> loops;
  SmallVector<Value> extents;
  for (const Extent &extent : extentsOf(tensor)) {
    loops.push_back(heed::format("r{}", loops.size()));
    extents.push_back(extent.value);
  }
  if (failedRead)
    return {};
  halide::FuncOp most =
      func(heed::format("most{}", count++), {"one"}, b.getI32Type(),
           [](Ops &o, ArrayRef<Value>) { return o.i(0); });
  update(most, loops, extents, [&](Ops &o, ArrayRef<Value> args) {
    return o.maxi(o.read1(most.getResult(), {args[0]}),
                  sizeBits(o, element(o, tensor, args.drop_front())));
  });
  halide::ComputeRootOp::create(b, loc, most.getResult());
  return most;
}

LogicalResult BoundWriter::run() {
  SmallVector<std::pair<halide::FuncOp, halide::FuncOp>> terms;
  for (unsigned term = 0; term < op.numTerms(); ++term) {
    SmallVector<halide::FuncOp> factors;
    for (Value tensor : op.term(term)) {
      halide::FuncOp &most = squares[tensor];
      if (!most)
        most = mostOfRows(tensor, /*ofSquares=*/true);
      factors.push_back(most);
    }
    terms.push_back({factors[0], factors[1]});
  }
  halide::FuncOp values = mostOfRows(op.getValues()[0], /*ofSquares=*/false);
  halide::FuncOp sink =
      finish.getSink() ? mostOfAll(finish.getSink()) : nullptr;
  if (failedRead)
    return failure();
  Value keys = IndexMath::narrow(
      b, loc, scalars.lookup(op.getSizes()[op.firstDim(DimKind::Key)]));
  halide::FuncOp fits =
      func("fits", {"one"}, b.getI32Type(), [&](Ops &o, ArrayRef<Value>) {
        auto atMost = [&](Value x, double limit) -> Value {
          return arith::CmpFOp::create(o.b, loc, arith::CmpFPredicate::OLE, x,
                                       o.f(limit));
        };
        auto norm = [&](halide::FuncOp most) -> Value {
          // More than what is lost of squares that are no normal numbers.
          return math::SqrtOp::create(o.b, loc,
                                      o.add(number(o, most), o.f(0x1p-100)));
        };
        SmallVector<Value> bounds;
        for (auto [x, y] : terms)
          bounds.push_back(mutated("score-bound.forget-keys")
                               ? norm(x)
                               : o.mul(norm(x), norm(y)));
        Value score = boundOfScore(o.b, op, bounds, [&](Value scalar) -> Value {
          return scalars.lookup(scalar);
        });
        // Rounding: sums of squares of up to 2^17 numbers are right to a
        // hundredth.
        const double limit = 0.98 * mostOfBoundedScore * streaming::ln2;
        Value holds = atMost(score, limit);
        // A cap bounds infinity, too; what is finite is simpler to be sure of.
        for (Value bound : bounds)
          holds = o.both(holds, atMost(bound, -streaming::lowest));
        Value inValues = arith::SIToFPOp::create(o.b, loc, o.b.getF32Type(),
                                                 o.atLeastOne(keys));
        if (!mutated("score-bound.forget-values"))
          holds =
              o.both(holds, atMost(o.mul(number(o, values), inValues),
                                   std::exp2(125 - 2 * mostOfBoundedScore)));
        if (sink && !mutated("score-bound.forget-sink"))
          holds = o.both(holds, atMost(number(o, sink), limit));
        return o.select(holds, o.i(1), o.i(0));
      });
  halide::OutputOp::create(b, loc, fits.getResult());
  halide::SetBoundsOp::create(b, loc, fits.getResult(), 0,
                              constantI32(b, loc, 0), constantI32(b, loc, 1));
  return failure(failedRead);
}

LogicalResult heed::writeScoreBound(OpBuilder &b, StreamedAttention op,
                                    const IRMapping &scalars,
                                    TensorReads &tensors,
                                    const halide::Target &target) {
  return BoundWriter(b, op, scalars, tensors, target).run();
}
