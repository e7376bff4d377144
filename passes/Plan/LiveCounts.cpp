//===- LiveCounts.cpp - what masks leave of a call, counted by data -------===//

#include "passes/Plan/LiveCounts.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace heed;

namespace {

/// The argument that \p tensor is, by another type at most.
Value argumentOf(Value tensor) {
  while (auto cast = tensor.getDefiningOp<tensor::CastOp>())
    tensor = cast.getSource();
  return isa<BlockArgument>(tensor) ? tensor : Value();
}

/// Any strides: callers pass parts of larger arrays, too.
Type passedType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return type;
  SmallVector<int64_t> unknown(tensor.getRank(), ShapedType::kDynamic);
  return MemRefType::get(
      unknown, tensor.getElementType(),
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, unknown));
}

Value conditionOf(attn::AttentionLike op) {
  return op.getWhere().front().getTerminator()->getOperand(0);
}

/// Writes numbers of a kernel on memrefs.
class Emitter {
public:
  Emitter(Location loc, IRMapping arguments)
      : loc(loc), arguments(std::move(arguments)) {}

  Value count(OpBuilder &b, attn::AttentionLike op, ArrayRef<unsigned> of,
              ArrayRef<unsigned> others);

private:
  using Body = llvm::function_ref<Value(OpBuilder &, Value)>;
  Value nest(OpBuilder &b, attn::AttentionLike op, ArrayRef<unsigned> dims,
             MutableArrayRef<Value> at, Value init, Body body);
  Value emit(OpBuilder &b, Value value, IRMapping &map);
  Value load(OpBuilder &b, tensor::ExtractOp read, IRMapping &map);

  Location loc;
  IRMapping arguments;
};

/// Elements at positions that are only right where another condition holds are
/// read all the same: then at the nearest position.
Value Emitter::load(OpBuilder &b, tensor::ExtractOp read, IRMapping &map) {
  Value memory = map.lookup(argumentOf(read.getTensor()));
  Value zero = arith::ConstantIndexOp::create(b, loc, 0),
        one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> at;
  for (auto [axis, index] : llvm::enumerate(read.getIndices())) {
    Value extent = memref::DimOp::create(b, loc, memory, axis);
    Value last = arith::SubIOp::create(b, loc, extent, one);
    Value below = arith::MinSIOp::create(b, loc, emit(b, index, map), last);
    at.push_back(arith::MaxSIOp::create(b, loc, below, zero));
  }
  return memref::LoadOp::create(b, loc, memory, at);
}

Value Emitter::emit(OpBuilder &b, Value value, IRMapping &map) {
  if (Value known = map.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  Value result;
  if (auto read = dyn_cast<tensor::ExtractOp>(op)) {
    result = load(b, read, map);
  } else if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    result =
        memref::DimOp::create(b, loc, map.lookup(argumentOf(dim.getSource())),
                              *dim.getConstantIndex());
  } else if (auto distance = dyn_cast<math::AbsIOp>(op)) {
    // Upstream does not lower it of indices.
    Value number = emit(b, distance.getOperand(), map);
    Value zero =
        arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
    Value negative = arith::SubIOp::create(b, loc, zero, number);
    result = arith::MaxSIOp::create(b, loc, number, negative);
  } else {
    for (Value operand : op->getOperands())
      (void)emit(b, operand, map);
    result = b.clone(*op, map)->getResult(0);
  }
  map.map(value, result);
  return result;
}

/// Loops over \p dims, which carry what \p body makes of \p init.
Value Emitter::nest(OpBuilder &b, attn::AttentionLike op,
                    ArrayRef<unsigned> dims, MutableArrayRef<Value> at,
                    Value init, Body body) {
  if (dims.empty())
    return body(b, init);
  IRMapping map = arguments;
  Value size = emit(b, op.getSizes()[dims.front()], map);
  auto loop =
      scf::ForOp::create(b, loc, arith::ConstantIndexOp::create(b, loc, 0),
                         size, arith::ConstantIndexOp::create(b, loc, 1), init);
  OpBuilder inside = OpBuilder::atBlockBegin(loop.getBody());
  at[dims.front()] = loop.getInductionVar();
  Value next =
      nest(inside, op, dims.drop_front(), at, loop.getRegionIterArg(0), body);
  scf::YieldOp::create(inside, loc, next);
  return loop.getResult(0);
}

/// How many places of the dims \p of have a place of \p others where the
/// condition holds.
Value Emitter::count(OpBuilder &b, attn::AttentionLike op,
                     ArrayRef<unsigned> of, ArrayRef<unsigned> others) {
  Block &where = op.getWhere().front();
  SmallVector<Value> at(where.getNumArguments());
  Value zero = arith::ConstantIntOp::create(b, loc, 0, 64);
  return nest(b, op, of, at, zero, [&](OpBuilder &place, Value sum) -> Value {
    Value no = arith::ConstantIntOp::create(place, loc, 0, 1);
    Value any = nest(
        place, op, others, at, no, [&](OpBuilder &pair, Value before) -> Value {
          IRMapping map = arguments;
          for (auto [argument, index] : llvm::zip(where.getArguments(), at))
            if (index)
              map.map(argument, index);
          return arith::OrIOp::create(pair, loc, before,
                                      emit(pair, conditionOf(op), map));
        });
    Value one = arith::ExtUIOp::create(place, loc, place.getI64Type(), any);
    return arith::AddIOp::create(place, loc, sum, one);
  });
}

} // namespace

/// Whether \p value is computed from arguments of the kernel and indices of \p
/// where alone, by what hosts can do without the runtime.
bool LiveCounts::isComputable(Value value, Block *where) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() == where ||
           argument.getOwner() == &kernel.getBody().front();
  auto [at, isNew] = computable.try_emplace(value, false);
  if (!isNew)
    return at->second;
  Operation *op = value.getDefiningOp();
  bool yes;
  if (auto read = dyn_cast<tensor::ExtractOp>(op))
    yes = argumentOf(read.getTensor()) &&
          llvm::all_of(read.getIndices(),
                       [&](Value v) { return isComputable(v, where); });
  else if (auto dim = dyn_cast<tensor::DimOp>(op))
    yes = argumentOf(dim.getSource()) && dim.getConstantIndex();
  else
    yes =
        (isa<arith::ArithDialect>(op->getDialect()) || isa<math::AbsIOp>(op)) &&
        op->getNumRegions() == 0 && op->getNumResults() == 1 &&
        llvm::all_of(op->getOperands(),
                     [&](Value v) { return isComputable(v, where); });
  return computable[value] = yes;
}

SmallVector<unsigned> LiveCounts::dimsOf(attn::AttentionLike op) {
  auto [at, isNew] = known.try_emplace(op);
  if (!isNew || op.getWhere().empty() || matchPattern(conditionOf(op), m_One()))
    return at->second;
  Block &where = op.getWhere().front();
  SmallVector<unsigned> dims;
  for (BlockArgument argument : where.getArguments())
    if (!argument.use_empty())
      dims.push_back(argument.getArgNumber());
  if (isComputable(conditionOf(op), &where) &&
      llvm::all_of(dims, [&](unsigned dim) {
        return isComputable(op.getSizes()[dim], &where);
      }))
    known[op] = dims;
  return known[op];
}

unsigned LiveCounts::count(attn::AttentionLike op, ArrayRef<unsigned> dims) {
  auto *same = llvm::find_if(wanted, [&](const Wanted &each) {
    return each.op == op && ArrayRef(each.dims) == dims;
  });
  if (same == wanted.end()) {
    wanted.push_back({op, SmallVector<unsigned>(dims)});
    return wanted.size() - 1;
  }
  return same - wanted.begin();
}

/// The arguments of the kernel that the counts are computed from.
SmallVector<Value> LiveCounts::usedArguments() {
  llvm::SetVector<Value> seen;
  for (Wanted &each : wanted) {
    seen.insert(conditionOf(each.op));
    for (unsigned dim : dimsOf(each.op))
      seen.insert(each.op.getSizes()[dim]);
  }
  for (size_t k = 0; k < seen.size(); ++k)
    if (Operation *op = seen[k].getDefiningOp())
      seen.insert(op->operand_begin(), op->operand_end());
  SmallVector<Value> used;
  llvm::copy_if(kernel.getArguments(), std::back_inserter(used),
                [&](Value argument) { return seen.contains(argument); });
  return used;
}

func::FuncOp LiveCounts::write(SmallVectorImpl<unsigned> &inputs) {
  Location loc = kernel.getLoc();
  SmallVector<Value> used = usedArguments();
  SmallVector<Type> types;
  for (Value argument : used) {
    inputs.push_back(cast<BlockArgument>(argument).getArgNumber());
    types.push_back(passedType(argument.getType()));
  }
  OpBuilder b(kernel->getContext());
  b.setInsertionPointAfter(kernel);
  std::string name = format("{}_live_pairs", kernel.getName().str());
  auto module = kernel->getParentOfType<ModuleOp>();
  if (auto written = module.lookupSymbol<func::FuncOp>(name))
    return written;
  SmallVector<Type> results(wanted.size(), b.getI64Type());
  auto function =
      func::FuncOp::create(b, loc, name, b.getFunctionType(types, results));
  function.setPrivate();
  function->setAttr(kCountsAttr, b.getUnitAttr());
  b.setInsertionPointToStart(function.addEntryBlock());
  IRMapping arguments;
  for (auto [argument, own] : llvm::zip(used, function.getArguments()))
    arguments.map(argument, own);
  SmallVector<Value> counts;
  for (Wanted &each : wanted) {
    SmallVector<unsigned> others;
    llvm::copy_if(
        dimsOf(each.op), std::back_inserter(others),
        [&](unsigned dim) { return !llvm::is_contained(each.dims, dim); });
    counts.push_back(
        Emitter(loc, arguments).count(b, each.op, each.dims, others));
  }
  func::ReturnOp::create(b, loc, counts);
  return function;
}
