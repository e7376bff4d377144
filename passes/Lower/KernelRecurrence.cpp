//===- KernelRecurrence.cpp - rows that are made of rows before them ------===//
//
// One func of all states, whose outermost dim counts the steps: each step reads
// the row before its own. Of a triangular system each row that is done is taken
// off all behind it. Halide runs the loops of an update in order.
#include "passes/Lower/KernelTranslator.h"

#include "dialects/Attn/Dialect.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

/// The update of \p f: row r + 1 of the states, of row r, for the steps from
/// \p from on.
static LogicalResult writeSteps(OpBuilder &b, attn::RecurrenceOp op,
                                KernelFunc &f, Value steps, Value from,
                                const IRMapping &outside, TensorReads &reads) {
  Location loc = op.getLoc();
  Value one = constantI32(b, loc, 1), zero = constantI32(b, loc, 0);
  auto update = halide::UpdateOp::create(b, loc, f.func.getResult(),
                                         {StringRef("r0")}, {zero, steps});
  size_t rank = f.extents.size();
  // Vars stand innermost first: the last one is the row.
  update.fill(
      b, update.getAt(),
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        SmallVector<Value> at(args.take_front(rank));
        at.back() = mutated("recurrence.overwrite-row")
                        ? args[rank]
                        : arith::AddIOp::create(inner, loc, args[rank], one)
                              .getResult();
        return at;
      });
  bool ok = true;
  update.fill(
      b, update.getSet(),
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        SmallVector<Value> before(args.take_front(rank));
        before.back() = mutated("recurrence.read-start") ? zero : args[rank];
        auto old = halide::ReadOp::create(
            inner, loc, halide::getElementTypes(f.func.getResult()),
            f.func.getResult(), before);
        IRMapping local = outside;
        Block &body = op.getNext().front();
        Value step = arith::AddIOp::create(inner, loc, from, args[rank]);
        local.map(body.getArgument(0),
                  mutated("recurrence.same-step") ? from : step);
        for (size_t d = 1; d < rank; ++d)
          local.map(body.getArgument(d), args[rank - 1 - d]);
        for (auto [k, value] : llvm::enumerate(old.getResults()))
          local.map(body.getArgument(rank + k), value);
        ok = succeeded(translateBody(inner, body, local, {}, reads));
        SmallVector<Value> values;
        for (Value value : body.getTerminator()->getOperands())
          values.push_back(local.lookupOrDefault(value));
        return values;
      });
  f.role = FuncRole::Recurrence;
  f.updates.push_back(update);
  return success(ok);
}

/// The update that takes off row "r0" its factor of each row "r1" before it.
static LogicalResult writeSolve(OpBuilder &b, attn::TriangularSolveOp op,
                                KernelFunc &f, Value steps,
                                TensorReads &reads) {
  Location loc = op.getLoc();
  Value func = f.func.getResult(), zero = constantI32(b, loc, 0);
  // Variables stand innermost first.
  size_t rank = op.getRight().getType().getRank(),
         place = rank - 1 - op.stepAxis();
  auto update =
      halide::UpdateOp::create(b, loc, func, {StringRef("r0"), StringRef("r1")},
                               {zero, steps, zero, steps});
  auto at = [&](ValueRange args, Value step) {
    SmallVector<Value> coordinates(args.take_front(rank));
    coordinates[place] = step;
    return coordinates;
  };
  update.fill(b, update.getWhere(),
              [&](OpBuilder &inner, Location, ValueRange args) {
                auto behind = mutated("recurrence.solve-diagonal")
                                  ? arith::CmpIPredicate::sge
                                  : arith::CmpIPredicate::sgt;
                return SmallVector<Value>{arith::CmpIOp::create(
                    inner, loc, behind, args[rank], args[rank + 1])};
              });
  update.fill(b, update.getAt(), [&](OpBuilder &, Location, ValueRange args) {
    return at(args, args[rank]);
  });
  bool ok = true;
  update.fill(
      b, update.getSet(),
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        auto row = [&](Value step) {
          return halide::ReadOp::create(inner, loc,
                                        halide::getElementTypes(func), func,
                                        at(args, step))
              .getResult(0);
        };
        SmallVector<Value> dims = reversed(at(args, args[rank]));
        dims.resize(op.stepAxis() + 1);
        dims.push_back(args[rank + 1]);
        FailureOr<Value> factor = reads.read(inner, loc, op.getMatrix(), dims);
        ok = succeeded(factor);
        Value old = row(args[rank]), done = row(args[rank + 1]);
        if (!ok)
          return {old};
        auto fused = arith::FastMathFlags::contract;
        Value product = arith::MulFOp::create(inner, loc, *factor, done, fused);
        if (mutated("recurrence.solve-adds"))
          return {arith::AddFOp::create(inner, loc, old, product)};
        return {arith::SubFOp::create(inner, loc, old, product, fused)};
      });
  f.role = FuncRole::Reduction;
  f.updates.push_back(update);
  return success(ok);
}

LogicalResult KernelTranslator::recurrence(attn::RecurrenceOp op) {
  Location loc = op.getLoc();
  auto whole = cast<RankedTensorType>(op.getHistories()[0].getType());
  SmallVector<Extent> extents;
  for (int64_t axis = 0; axis < whole.getRank(); ++axis) {
    Value size = axis ? op.getSizes()[axis - 1] : op.getRows();
    extents.push_back(whole.isDynamicDim(axis)
                          ? Extent{size32(size), std::nullopt}
                          : fixedExtent(loc, whole.getDimSize(axis)));
  }
  SmallVector<Type> types;
  for (Value start : op.getStarts())
    types.push_back(getElementTypeOrSelf(start));
  FailureOr<KernelFunc *> states =
      func(loc, "state", types, extents,
           [&](OpBuilder &inner,
               ArrayRef<Value> dims) -> FailureOr<SmallVector<Value>> {
             SmallVector<Value> values;
             for (Value start : op.getStarts()) {
               FailureOr<Value> value =
                   read(inner, loc, start, dims.drop_front());
               if (failed(value))
                 return failure();
               values.push_back(*value);
             }
             return values;
           });
  if (failed(states))
    return failure();
  KernelFunc &f = **states;
  Value steps = arith::SubIOp::create(
      b, loc, extents[0].value,
      constantI32(b, loc, 1 + mutated("recurrence.drop-last-step")));
  KnownExtent known;
  if (extents[0].fixed)
    known = *extents[0].fixed - 1;
  f.reductions.push_back({{steps, known}});
  if (failed(writeSteps(b, op, f, steps, size32(op.getFrom()), map, *this)))
    return failure();
  for (auto [k, result] : llvm::enumerate(op.getHistories())) {
    KernelSource source;
    source.func = f.func.getResult();
    source.element = mutated("recurrence.first-state") ? 0 : k;
    source.extents = extents;
    sources[result] = std::move(source);
  }
  return success();
}

LogicalResult KernelTranslator::triangularSolve(attn::TriangularSolveOp op) {
  Location loc = op.getLoc();
  auto type = op.getRight().getType();
  SmallVector<Extent> extents;
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    FailureOr<Extent> size = extent(b, op.getRight(), axis);
    if (failed(size))
      return failure();
    extents.push_back(*size);
  }
  FailureOr<KernelFunc *> rows =
      func(loc, "solution", type.getElementType(), extents,
           [&](OpBuilder &inner,
               ArrayRef<Value> dims) -> FailureOr<SmallVector<Value>> {
             FailureOr<Value> value = read(inner, loc, op.getRight(), dims);
             if (failed(value))
               return failure();
             return SmallVector<Value>{*value};
           });
  if (failed(rows))
    return failure();
  KernelFunc &f = **rows;
  Extent steps = extents[op.stepAxis()];
  if (failed(writeSolve(b, op, f, steps.value, *this)))
    return failure();
  f.reductions.push_back({steps, steps});
  KernelSource source;
  source.func = f.func.getResult();
  source.extents = extents;
  sources[op.getResult()] = std::move(source);
  return success();
}
