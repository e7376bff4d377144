//===- Weights.cpp - what a value of the host depends on ------------------===//

#include "passes/Algebra/Weights.h"
#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/Mutation.h"

using namespace mlir;
using namespace heed;

std::optional<ConstantLoop> heed::constantLoop(scf::ForOp loop) {
  std::optional<int64_t> low = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> high = getConstantIntValue(loop.getUpperBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (!low || !high || !step || *step <= 0)
    return std::nullopt;
  return ConstantLoop{
      *low, std::max<int64_t>(0, (*high - *low + *step - 1) / *step), *step};
}

llvm::SetVector<Value> heed::inputsOf(Operation *op) {
  llvm::SetVector<Value> inputs(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), inputs);
  return inputs;
}

/// A call of a kernel computes its results from its operands alone.
static bool callsKernel(Operation *op) {
  auto call = dyn_cast<func::CallOp>(op);
  if (!call)
    return false;
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  return callee && callee->hasAttr(attn::kKernelAttr);
}

const Dependence &WeightAnalysis::of(Value value) {
  if (Operation *op = value.getDefiningOp())
    return of(op);
  auto [it, isNew] = arguments.try_emplace(value);
  if (isNew)
    if (auto loop = dyn_cast<scf::ForOp>(value.getParentBlock()->getParentOp());
        loop && value == loop.getInductionVar()) {
      it->second.fixedButSizes = true;
      if (constantLoop(loop)) {
        it->second.fixed = true;
        it->second.loops.insert(loop);
      }
    }
  return it->second;
}

const Dependence &WeightAnalysis::of(Operation *op) {
  if (auto it = ops.find(op); it != ops.end())
    return it->second;
  Dependence found = compute(op);
  return ops[op] = std::move(found);
}

Dependence WeightAnalysis::compute(Operation *op) {
  Dependence result;
  bool kept = isa<attn::KeptOp>(op);
  if (!kept && !callsKernel(op) &&
      (!isMemoryEffectFree(op) || isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op)))
    return result;
  result.fixed = result.fixedButSizes = true;
  result.weights = kept || isa<attn::ParamOp>(op);
  SmallVector<Operation *> loops;
  for (Value input : inputsOf(op)) {
    const Dependence &on = of(input);
    result.fixed &= on.fixed;
    result.fixedButSizes &= on.fixedButSizes;
    if (on.fixed && on.weights && mutated("hoist-weights.any-weight-fixes"))
      result.fixed = true;
    result.weights |= on.weights;
    if (!mutated("hoist-weights.forget-loop"))
      loops.append(on.loops.begin(), on.loops.end());
    // Nothing else matters of what a call gives.
    if (!result.fixed && !result.fixedButSizes)
      break;
  }
  // An outer loop is an ancestor of the inner ones.
  llvm::sort(loops,
             [](Operation *a, Operation *b) { return a->isProperAncestor(b); });
  result.loops.insert(loops.begin(), loops.end());
  if (isa<tensor::DimOp, tensor::EmptyOp>(op))
    result.fixedButSizes = true;
  return result;
}

bool heed::isFromParameters(Value tensor) {
  WeightAnalysis analysis;
  const Dependence &on = analysis.of(tensor);
  return on.fixedButSizes && on.weights;
}
