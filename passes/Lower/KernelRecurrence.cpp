//===- KernelRecurrence.cpp - states with all that they were --------------===//
//
// One func of all states, whose outermost dim counts the steps: each step reads
// the row before its own. Halide runs the loop of an update in order.
#include "passes/Lower/KernelTranslator.h"

#include "dialects/Attn/Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

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
  Value one = constantI32(b, loc, 1), zero = constantI32(b, loc, 0);
  Value steps = arith::SubIOp::create(b, loc, extents[0].value, one);
  KnownExtent known;
  if (extents[0].fixed)
    known = *extents[0].fixed - 1;
  Value from = size32(op.getFrom());
  auto update = halide::UpdateOp::create(b, loc, f.func.getResult(),
                                         {StringRef("r0")}, {zero, steps});
  size_t rank = extents.size();
  // Vars innermost first: the last one is the step's row.
  update.fill(
      b, update.getAt(),
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        SmallVector<Value> at(args.take_front(rank));
        at.back() = arith::AddIOp::create(inner, loc, args[rank], one);
        return at;
      });
  bool ok = true;
  update.fill(
      b, update.getSet(),
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        SmallVector<Value> before(args.take_front(rank));
        before.back() = args[rank];
        auto old = halide::ReadOp::create(inner, loc, types, f.func.getResult(),
                                          before);
        IRMapping local = map;
        Block &body = op.getNext().front();
        local.map(
            body.getArgument(0),
            arith::AddIOp::create(inner, loc, from, args[rank]).getResult());
        for (size_t d = 1; d < rank; ++d)
          local.map(body.getArgument(d), args[rank - 1 - d]);
        for (auto [k, value] : llvm::enumerate(old.getResults()))
          local.map(body.getArgument(rank + k), value);
        ok = succeeded(translateBody(inner, body, local, {}, *this));
        SmallVector<Value> values;
        for (Value value : body.getTerminator()->getOperands())
          values.push_back(local.lookupOrDefault(value));
        return values;
      });
  if (!ok)
    return failure();
  f.role = FuncRole::Recurrence;
  f.updates.push_back(update);
  f.reductions.push_back({{steps, known}});
  for (auto [k, result] : llvm::enumerate(op.getHistories())) {
    KernelSource source;
    source.func = f.func.getResult();
    source.element = k;
    source.extents = extents;
    sources[result] = std::move(source);
  }
  return success();
}
