//===- KernelGeneric.cpp - a linalg op of a kernel as a func --------------===//
//
// Loops of the result are the func's dims. Those of a reduction are an update's
// loops, which starts from what the op is given as its initial value.
#include "dialects/Halide/HalideNames.h"
#include "passes/Lower/KernelTranslator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace heed;

namespace heed {

/// The func of one op, step by step.
class GenericFunc {
public:
  GenericFunc(KernelTranslator &kernel, linalg::LinalgOp op)
      : kernel(kernel), op(op), loc(op.getLoc()),
        body(op->getRegion(0).front()) {
    for (Value result : op->getResults())
      types.push_back(getElementTypeOrSelf(result.getType()));
  }

  LogicalResult run() {
    return failed(findExtents()) || failed(assignLoops()) ? failure() : write();
  }

private:
  using Values = FailureOr<SmallVector<Value>>;

  LogicalResult findExtents();
  LogicalResult assignLoops();
  LogicalResult write();
  /// What the body yields at a place of the result and of the reduction; \p
  /// state is the result so far, empty for the initial value.
  Values evaluate(OpBuilder &b, ArrayRef<Value> dims, ArrayRef<Value> rvars,
                  ArrayRef<Value> state);
  /// What the body's argument for \p operand is at loops \p at.
  FailureOr<Value> argument(OpBuilder &b, OpOperand &operand,
                            ArrayRef<Value> at, ArrayRef<Value> state);
  Values initial(OpBuilder &b, ArrayRef<Value> dims);

  KernelTranslator &kernel;
  linalg::LinalgOp op;
  Location loc;
  Block &body;
  SmallVector<Type> types;               ///< of the results
  SmallVector<Extent> extents;           ///< of the loops
  SmallVector<Extent> parallel, reduced; ///< ... of each kind
  SmallVector<unsigned> parallelLoops, reducedLoops;
};

} // namespace heed

/// Extents of the loops, from whatever operand has them plainly.
LogicalResult GenericFunc::findExtents() {
  extents.resize(op.getNumLoops());
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (!type)
      continue;
    AffineMap indexing = op.getMatchingIndexingMap(&operand);
    for (auto [axis, expr] : llvm::enumerate(indexing.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
        FailureOr<Extent> found = kernel.extent(kernel.b, operand.get(), axis);
        if (failed(found))
          return failure();
        Extent &known = extents[dim.getPosition()];
        if (!known.value || (!known.fixed && found->fixed))
          known = *found;
      }
  }
  return success();
}

LogicalResult GenericFunc::assignLoops() {
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (OpOperand &init : op.getDpsInitsMutable())
    if (op.getMatchingIndexingMap(&init) != out)
      return op.emitError("results with different maps in one operation");
  for (AffineExpr expr : out.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim)
      return op.emitError("a result's map is no permutation of loops");
    parallelLoops.push_back(dim.getPosition());
    parallel.push_back(extents[dim.getPosition()]);
  }
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (auto [loop, iterator] : llvm::enumerate(iterators))
    if (iterator == utils::IteratorType::reduction) {
      reducedLoops.push_back(loop);
      reduced.push_back(extents[loop]);
    }
  for (Extent &e : extents)
    if (!e.value)
      return op.emitError("a loop's extent is not that of an operand's axis");
  return success();
}

FailureOr<Value> GenericFunc::argument(OpBuilder &b, OpOperand &operand,
                                       ArrayRef<Value> at,
                                       ArrayRef<Value> state) {
  if (op.isDpsInit(&operand) && !state.empty())
    return state[operand.getOperandNumber() - op.getNumDpsInputs()];
  if (!isa<RankedTensorType>(operand.get().getType()))
    return kernel.map.lookupOrDefault(operand.get());
  SmallVector<Value> coordinates;
  IndexMath math(b, loc, kernel.largest);
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults())
    coordinates.push_back(
        IndexMath::narrow(b, loc, expandAffine(math, expr, at, {})));
  return kernel.read(b, loc, operand.get(), coordinates);
}

GenericFunc::Values GenericFunc::evaluate(OpBuilder &b, ArrayRef<Value> dims,
                                          ArrayRef<Value> rvars,
                                          ArrayRef<Value> state) {
  SmallVector<Value> at(extents.size());
  for (auto [loop, value] : llvm::zip(parallelLoops, dims))
    at[loop] = value;
  for (auto [loop, value] : llvm::zip(reducedLoops, rvars))
    at[loop] = value;
  IRMapping local = kernel.map;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument arg = body.getArgument(operand.getOperandNumber());
    if (arg.use_empty())
      continue;
    FailureOr<Value> value = argument(b, operand, at, state);
    if (failed(value))
      return failure();
    local.map(arg, *value);
  }
  if (failed(translateBody(b, body, local, at, kernel)))
    return failure();
  SmallVector<Value> values;
  for (Value yielded : body.getTerminator()->getOperands())
    values.push_back(local.lookupOrDefault(yielded));
  return values;
}

GenericFunc::Values GenericFunc::initial(OpBuilder &b, ArrayRef<Value> dims) {
  SmallVector<Value> values;
  for (Value init : op.getDpsInits()) {
    FailureOr<Value> value = kernel.read(b, loc, init, dims);
    if (failed(value))
      return failure();
    values.push_back(*value);
  }
  return values;
}

LogicalResult GenericFunc::write() {
  bool isReduction = !reducedLoops.empty();
  FailureOr<KernelFunc *> f =
      kernel.func(loc, isReduction ? "sum" : "f", types, parallel,
                  [&](OpBuilder &inner, ArrayRef<Value> dims) -> Values {
                    return isReduction ? initial(inner, dims)
                                       : evaluate(inner, dims, {}, {});
                  });
  if (failed(f))
    return failure();
  Value result = (*f)->func.getResult();
  if (isReduction &&
      failed(kernel.update(loc, **f, reduced,
                           [&](OpBuilder &inner, ArrayRef<Value> dims,
                               ArrayRef<Value> rvars) -> Values {
                             auto state = halide::ReadOp::create(
                                 inner, loc, types, result, reversed(dims));
                             SmallVector<Value> states(state.getResults());
                             Values values =
                                 evaluate(inner, dims, rvars, states);
                             if (succeeded(values))
                               relaxSums(*values);
                             return values;
                           })))
    return failure();
  if (op->hasAttr(halide::kLongWindowAttr))
    (*f)->updates.back()->setAttr(halide::kLongWindowAttr,
                                  UnitAttr::get(op->getContext()));
  for (auto [k, value] : llvm::enumerate(op->getResults())) {
    KernelSource source;
    source.func = result;
    source.element = k;
    source.extents = parallel;
    kernel.sources[value] = std::move(source);
  }
  return success();
}

LogicalResult KernelTranslator::generic(linalg::LinalgOp op) {
  return GenericFunc(*this, op).run();
}
