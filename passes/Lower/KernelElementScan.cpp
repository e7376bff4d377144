//===- KernelElementScan.cpp - recurrences of single elements -------------===//
//
// One func of all states, whose outermost dim counts the steps that were done;
// each row reads it at its step. Where the steps are the rows' last axis, the
// states' innermost dim is cut in tiles of a vector, and steps in squares of as
// many: a schedule then turns squares of the inputs and of the rows. What lies
// behind the last row or step of a tile is made of the last one's inputs, and
// nobody reads it.
#include "passes/Lower/KernelTranslator.h"

#include "dialects/Attn/Dialect.h"
#include "passes/Mutation.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

namespace heed {

/// The funcs of one op, step by step.
class ElementScanFuncs {
public:
  ElementScanFuncs(KernelTranslator &kernel, attn::ElementScanOp op)
      : kernel(kernel), op(op), b(kernel.b), loc(op.getLoc()),
        rank(op.getSizes().size()) {}

  LogicalResult run();

private:
  void findExtents();
  LogicalResult writeStates();
  LogicalResult writeStarts();
  LogicalResult writeSteps();
  LogicalResult writeRow(unsigned row);
  void writeLast(unsigned state);
  /// The place of a state's element \p dims (outermost first) after \p done
  /// steps, as the func's vars.
  SmallVector<Value> place(OpBuilder &b, ArrayRef<Value> dims, Value done);
  /// The element of a state at vars \p args: those of a tile's end are the
  /// last one.
  SmallVector<Value> element(OpBuilder &b, ValueRange args);
  halide::ReadOp readStates(OpBuilder &b, ArrayRef<Value> at);
  /// The step of turn \p turn.
  Value stepAt(OpBuilder &inner, Value turn) {
    return arith::AddIOp::create(inner, loc, from, turn);
  }
  Extent tilesOf(const Extent &whole);

  KernelTranslator &kernel;
  attn::ElementScanOp op;
  OpBuilder &b;
  Location loc;
  unsigned rank;
  int64_t lanes = 1; ///< of a tile; 1 if there are no tiles
  Value from;
  Extent steps;
  SmallVector<Extent> sizes; ///< outermost first
  SmallVector<Type> types;
  KernelFunc *states = nullptr;
};

} // namespace heed

void ElementScanFuncs::findExtents() {
  auto extent = [&](Value size, Type type, unsigned axis) {
    auto tensor = cast<RankedTensorType>(type);
    return tensor.isDynamicDim(axis)
               ? Extent{kernel.size32(size), std::nullopt}
               : kernel.fixedExtent(loc, tensor.getDimSize(axis));
  };
  steps = extent(op.getSteps(), op.getRows()[0].getType(), op.getAxis());
  from = kernel.size32(op.getFrom());
  for (Value start : op.getStarts())
    types.push_back(getElementTypeOrSelf(start));
  for (auto [axis, size] : llvm::enumerate(op.getSizes()))
    sizes.push_back(extent(size, op.getStarts()[0].getType(), axis));
  if (op.isAlongRows()) {
    // A state may be wider than what is made of it: two vectors then.
    unsigned bits = 32;
    for (Value row : op.getRows())
      bits = std::max(bits, getElementTypeOrSelf(row).getIntOrFloatBitWidth());
    lanes = kernel.target.lanes(bits);
  }
  if (Value all = op.getAll()) {
    Value some = arith::MaxSIOp::create(b, loc, steps.value, i32(b, 1));
    kernel.info->times =
        arith::DivSIOp::create(b, loc, kernel.size32(all), some);
  }
}

Extent ElementScanFuncs::tilesOf(const Extent &whole) {
  Extent tiles;
  if (whole.fixed)
    return kernel.fixedExtent(loc, (*whole.fixed + lanes - 1) / lanes);
  tiles.value = divI32(b, addI32(b, whole.value, lanes - 1), lanes);
  return tiles;
}

SmallVector<Value> ElementScanFuncs::place(OpBuilder &inner,
                                           ArrayRef<Value> dims, Value done) {
  SmallVector<Value> at(llvm::reverse(dims));
  if (op.isAlongRows()) {
    Value row = at[0];
    at[0] = divI32(inner, row, lanes);
    at.insert(at.begin(), remI32(inner, row, lanes));
  }
  at.push_back(done);
  return at;
}

SmallVector<Value> ElementScanFuncs::element(OpBuilder &inner,
                                             ValueRange args) {
  SmallVector<Value> at(args);
  at.pop_back(); // the steps
  if (op.isAlongRows()) {
    Value row =
        arith::AddIOp::create(inner, loc, mulI32(inner, at[1], lanes), at[0]);
    at.erase(at.begin());
    const Extent &rows = sizes.back();
    if (!rows.fixed || *rows.fixed % lanes)
      row = arith::MinSIOp::create(inner, loc, row,
                                   addI32(inner, rows.value, -1));
    at[0] = row;
  }
  return SmallVector<Value>(llvm::reverse(at));
}

halide::ReadOp ElementScanFuncs::readStates(OpBuilder &inner,
                                            ArrayRef<Value> at) {
  Value func = states->func.getResult();
  return halide::ReadOp::create(inner, loc, halide::getElementTypes(func), func,
                                at);
}

/// All that the states are, of which nothing is known before the updates.
LogicalResult ElementScanFuncs::writeStates() {
  SmallVector<std::string> names;
  SmallVector<Extent> extents;
  for (unsigned axis = 0; axis < rank; ++axis) {
    names.insert(names.begin(), format("d{}", axis));
    extents.insert(extents.begin(), sizes[axis]);
  }
  Extent done;
  if (op.isAlongRows()) {
    names[0] = "tile";
    names.insert(names.begin(), "lane");
    extents[0] = tilesOf(extents[0]);
    extents.insert(extents.begin(), kernel.fixedExtent(loc, lanes));
    done = tilesOf(steps);
    if (done.fixed)
      done = kernel.fixedExtent(loc, *done.fixed * lanes + 1);
    else
      done.value = addI32(b, mulI32(b, done.value, lanes), 1);
  } else if (steps.fixed) {
    done = kernel.fixedExtent(loc, *steps.fixed + 1);
  } else {
    done.value = addI32(b, steps.value, 1);
  }
  names.push_back("t");
  extents.push_back(done);
  SmallVector<StringRef> vars(names.begin(), names.end());
  KernelFunc f;
  f.func = halide::FuncOp::create(
      b, loc, "state", vars, types,
      [&](OpBuilder &inner, Location, ValueRange) {
        SmallVector<Value> values;
        for (Type type : types)
          values.push_back(halide::UndefOp::create(inner, loc, type));
        return values;
      });
  f.extents = extents;
  f.role = FuncRole::Recurrence;
  kernel.info->funcs.push_back(std::move(f));
  states = &kernel.info->funcs.back();
  return success();
}

/// Before the first step they are as they start.
LogicalResult ElementScanFuncs::writeStarts() {
  auto update = halide::UpdateOp::create(b, loc, states->func.getResult(),
                                         ArrayRef<StringRef>(), ValueRange());
  update.fill(b, update.getAt(),
              [&](OpBuilder &inner, Location, ValueRange args) {
                SmallVector<Value> at(args);
                at.back() = i32(inner, 0);
                return at;
              });
  bool ok = true;
  update.fill(
      b, update.getSet(),
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        SmallVector<Value> values;
        for (Value start : op.getStarts()) {
          FailureOr<Value> value =
              kernel.read(inner, loc, start, element(inner, args));
          ok &= succeeded(value);
          values.push_back(ok ? *value : Value());
        }
        return ok ? values : SmallVector<Value>();
      });
  states->updates.push_back(update);
  states->reductions.emplace_back();
  return success(ok);
}

/// Each step makes the next of what was before it.
LogicalResult ElementScanFuncs::writeSteps() {
  bool isTiled = op.isAlongRows();
  Value zero = i32(b, 0);
  SmallVector<StringRef> names{"r0"};
  Extent outer = isTiled ? tilesOf(steps) : steps;
  SmallVector<Value> bounds{zero, outer.value};
  if (isTiled) {
    names.push_back("r1");
    bounds = {zero, i32(b, lanes), zero, outer.value};
  }
  auto update =
      halide::UpdateOp::create(b, loc, states->func.getResult(), names, bounds);
  size_t vars = states->extents.size();
  auto turnOf = [&](OpBuilder &inner, ValueRange args) -> Value {
    if (!isTiled)
      return args[vars];
    return arith::AddIOp::create(
        inner, loc, mulI32(inner, args[vars + 1], lanes), args[vars]);
  };
  update.fill(b, update.getAt(),
              [&](OpBuilder &inner, Location, ValueRange args) {
                SmallVector<Value> at(args.take_front(vars));
                at.back() = addI32(inner, turnOf(inner, args), 1);
                return at;
              });
  bool ok = true;
  update.fill(
      b, update.getSet(),
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        Value turn = turnOf(inner, args), step = turn;
        SmallVector<Value> at(args.take_front(vars)), values;
        at.back() = mutated("element-scan.read-start") ? zero : turn;
        if (isTiled && (!steps.fixed || *steps.fixed % lanes))
          step = arith::MinSIOp::create(
              inner, loc, halide::LikelyOp::create(inner, loc, step),
              addI32(inner, steps.value, -1));
        if (mutated("element-scan.same-step"))
          step = zero;
        SmallVector<Value> old(readStates(inner, at).getResults());
        ok = succeeded(kernel.stepOf(inner, op.getNext(), stepAt(inner, step),
                                     element(inner, args.take_front(vars)), old,
                                     values));
        return values;
      });
  states->updates.push_back(update);
  SmallVector<Extent> extents{outer};
  if (isTiled)
    extents.insert(extents.begin(), kernel.fixedExtent(loc, lanes));
  states->reductions.push_back(extents);
  return success(ok);
}

LogicalResult ElementScanFuncs::writeRow(unsigned row) {
  SmallVector<std::string> names;
  SmallVector<Extent> extents(sizes);
  for (unsigned axis = 0; axis < rank; ++axis)
    names.push_back(format("d{}", axis));
  names.insert(names.begin() + op.getAxis(), "t");
  extents.insert(extents.begin() + op.getAxis(), steps);
  Value tensor = op.getRows()[row];
  bool ok = true;
  kernel.addOutput(
      loc, getElementTypeOrSelf(tensor), names, extents, tensor,
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        SmallVector<Value> dims(llvm::reverse(args)), values, both;
        Value turn = dims[op.getAxis()];
        dims.erase(dims.begin() + op.getAxis());
        if (op.getReversed() != mutated("element-scan.other-direction"))
          turn = arith::SubIOp::create(inner, loc,
                                       addI32(inner, steps.value, -1), turn);
        Value after =
            mutated("element-scan.row-before") ? turn : addI32(inner, turn, 1);
        for (Value done : {turn, after})
          llvm::append_range(
              both, readStates(inner, place(inner, dims, done)).getResults());
        ok = succeeded(kernel.stepOf(inner, op.getLeave(), stepAt(inner, turn),
                                     dims, both, values));
        return ok ? SmallVector<Value>{values[row]} : SmallVector<Value>();
      });
  return success(ok);
}

void ElementScanFuncs::writeLast(unsigned state) {
  SmallVector<std::string> names;
  for (unsigned axis = 0; axis < rank; ++axis)
    names.push_back(format("d{}", axis));
  kernel.addOutput(
      loc, types[state], names, sizes, op.getStates()[state],
      [&](OpBuilder &inner, Location, ValueRange args) {
        SmallVector<Value> dims(llvm::reverse(args));
        Value done = mutated("element-scan.drop-last-step")
                         ? addI32(inner, steps.value, -1)
                         : steps.value;
        return SmallVector<Value>{
            readStates(inner, place(inner, dims, done)).getResult(state)};
      });
}

LogicalResult ElementScanFuncs::run() {
  findExtents();
  if (failed(writeStates()) || failed(writeStarts()) || failed(writeSteps()))
    return failure();
  auto isReturned = [](Value result) { return !result.use_empty(); };
  for (unsigned row = 0; row < op.getRows().size(); ++row)
    if (isReturned(op.getRows()[row]) && failed(writeRow(row)))
      return failure();
  for (unsigned state = 0; state < types.size(); ++state)
    if (isReturned(op.getStates()[state]))
      writeLast(state);
  return success();
}

LogicalResult KernelTranslator::stepOf(OpBuilder &inner, Region &region,
                                       Value step, ArrayRef<Value> dims,
                                       ArrayRef<Value> elements,
                                       SmallVectorImpl<Value> &values) {
  Block &body = region.front();
  IRMapping local = map;
  SmallVector<Value> taken{step};
  llvm::append_range(taken, dims);
  llvm::append_range(taken, elements);
  for (auto [arg, value] : llvm::zip_equal(body.getArguments(), taken))
    local.map(arg, value);
  if (failed(translateBody(inner, body, local, {}, *this)))
    return failure();
  for (Value value : body.getTerminator()->getOperands())
    values.push_back(local.lookupOrDefault(value));
  return success();
}

halide::FuncOp KernelTranslator::addOutput(Location loc, Type type,
                                           ArrayRef<std::string> names,
                                           ArrayRef<Extent> extents,
                                           Value tensor,
                                           halide::UpdateOp::BodyFn body) {
  SmallVector<StringRef> vars(
      llvm::reverse(SmallVector<StringRef>(names.begin(), names.end())));
  KernelFunc f;
  f.func = halide::FuncOp::create(b, loc, format("row{}", counter++), vars,
                                  type, body);
  f.extents.assign(extents.rbegin(), extents.rend());
  KernelSource source;
  source.func = f.func.getResult();
  source.extents.assign(extents.begin(), extents.end());
  sources[tensor] = std::move(source);
  info->funcs.push_back(f);
  return f.func;
}

LogicalResult KernelTranslator::elementScan(attn::ElementScanOp op) {
  return ElementScanFuncs(*this, op).run();
}
