//===- MergeSteps.cpp - the step of a matrix that lives on is one kernel --===//
//
// A step of a recurrence reads a state, a matrix a head, and writes a new one,
// with sums over both: the delta rule's k^T S, the row q^T S'. As kernels one
// behind the other each reads the whole state from memory. They become one
// kernel with several results, if a schedule family computes it head by head.
#include "dialects/Attn/Dialect.h"
#include "passes/Kernels/Families.h"
#include "passes/Kernels/KernelKinds.h"
#include "passes/Kernels/MergeCalls.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"

namespace heed {
#define GEN_PASS_DEF_ATTNMERGESTEPS
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

/// More would leave too few registers to each.
constexpr size_t mostStepResults = 4;

using StepGroup = SmallVector<func::CallOp>;

/// Whether \p value lies in memory before the step: what a model or a loop is
/// given, or a part of it.
bool isGiven(Value value) {
  while (auto slice = value.getDefiningOp<tensor::ExtractSliceOp>())
    value = slice.getSource();
  return isa<BlockArgument>(value);
}

/// Whether \p value is a result, what a loop goes on with, or a part of that.
bool livesOn(Value value) {
  return llvm::any_of(
      value.getUsers(),
      llvm::IsaPred<func::ReturnOp, scf::YieldOp, tensor::InsertSliceOp,
                    attn::UpdateStateOp>);
}

class StepMerger {
public:
  StepMerger(ModuleOp module)
      : symbols(module), target(halide::getTarget(module)) {}

  void mergeIn(Block &block);
  void dropUncalled(ModuleOp module);

private:
  bool isMember(func::CallOp call);
  bool replacesState(func::CallOp call);
  bool add(StepGroup &group, func::CallOp call);
  StepGroup findReaders(func::CallOp first);
  void replace(ArrayRef<func::CallOp> group, func::FuncOp kernel,
               SmallVector<Value> operands, ArrayRef<Value> results);
  bool merge(ArrayRef<func::CallOp> group);

  SymbolTable symbols;
  halide::Target target;
  llvm::StringMap<func::FuncOp> known;
  func::FuncOp last; ///< of the kernels made
};

/// Whether \p call is a kernel of elements or rows with one result.
bool StepMerger::isMember(func::CallOp call) {
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!kernel || !kernel->hasAttr(attn::kKernelAttr) ||
      call.getNumResults() != 1)
    return false;
  auto kind = kernel->getAttrOfType<StringAttr>("attn.kind");
  return kind && (kind == nameOf(KernelKind::Elementwise) ||
                  kind == nameOf(KernelKind::Row));
}

/// Whether \p call makes a tensor of one that was there before and is alike.
bool StepMerger::replacesState(func::CallOp call) {
  if (!isMember(call))
    return false;
  auto type = dyn_cast<RankedTensorType>(call.getResult(0).getType());
  return type && type.getRank() > 1 &&
         llvm::any_of(call.getOperands(), [&](Value operand) {
           return operand.getType() == type && isGiven(operand);
         });
}

/// Adds \p call to \p group, behind what it reads of kernels that are no part
/// of it and stand further down than its first one: a normaliser, say.
bool StepMerger::add(StepGroup &group, func::CallOp call) {
  if (llvm::is_contained(group, call))
    return true;
  if (!isMember(call))
    return false;
  StepGroup longer = group;
  for (Value operand : call.getOperands())
    if (auto other = operand.getDefiningOp<func::CallOp>();
        other && other->getBlock() == call->getBlock() &&
        group.front()->isBeforeInBlock(other) && !add(longer, other))
      return false;
  if (!mayMoveOperands(longer, call))
    return false;
  longer.push_back(call);
  group = longer;
  return true;
}

/// \p first and what reads it, or each other, further down.
StepGroup StepMerger::findReaders(func::CallOp first) {
  StepGroup group{first};
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode())
    if (auto call = dyn_cast<func::CallOp>(op);
        call && llvm::any_of(call.getOperands(), [&](Value operand) {
          return llvm::is_contained(group,
                                    operand.getDefiningOp<func::CallOp>());
        }))
      add(group, call);
  return group;
}

/// Calls \p kernel in place of what makes \p results in \p group.
void StepMerger::replace(ArrayRef<func::CallOp> group, func::FuncOp kernel,
                         SmallVector<Value> operands, ArrayRef<Value> results) {
  func::CallOp first = group.front();
  kernel =
      shareKernel(kernel, format("{}_step", first.getCallee()), known, symbols);
  if (last && last != kernel &&
      last.getFunctionType() == kernel.getFunctionType() &&
      mutated("merge-steps.share-by-type"))
    kernel = last;
  last = kernel;
  if (operands.size() > 1 && operands[0].getType() == operands[1].getType() &&
      mutated("merge-steps.swap-operands"))
    std::swap(operands[0], operands[1]);
  if (operands.front() != operands.back() &&
      operands.front().getType() == operands.back().getType() &&
      mutated("merge-steps.first-operand-last"))
    operands.back() = operands.front();
  for (size_t k = 1; k < group.size(); ++k)
    moveOperands(group.take_front(k), group[k]);
  OpBuilder b(first);
  auto call = func::CallOp::create(b, first.getLoc(), kernel, operands);
  SmallVector<Value> made(call.getResults());
  if (llvm::all_equal(ValueRange(made).getTypes()) &&
      mutated("merge-steps.swap-results"))
    std::reverse(made.begin(), made.end());
  for (auto [result, value] : llvm::zip(results, made)) {
    Type type = result.getType();
    const auto *old = llvm::find_if(operands, [&](Value operand) {
      return operand.getType() == type && isGiven(operand);
    });
    bool isKept = old != operands.end() && mutated("merge-steps.keep-state");
    Value(result).replaceAllUsesWith(isKept ? *old : value);
  }
}

/// Makes one kernel of \p group, if a family wants to have it.
bool StepMerger::merge(ArrayRef<func::CallOp> group) {
  SmallVector<Value> operands = operandsOf(group), results = resultsOf(group);
  Value state = group.front()->getResult(0);
  if (results.size() < 2 || results.size() > mostStepResults ||
      llvm::none_of(results, [&](Value result) {
        return result.getType() == state.getType() && livesOn(result);
      }))
    return false;
  func::FuncOp kernel = mergedKernel(group, operands, results, symbols);
  kernel->setAttr("attn.kind", StringAttr::get(kernel.getContext(),
                                               nameOf(KernelKind::StateStep)));
  KernelFacts facts = factsOf(kernel);
  bool isWanted =
      llvm::any_of(families(target.isGPU()), [&](const Family &family) {
        return family.takesStep && family.takesStep(facts, target);
      });
  if (!isWanted) {
    kernel.erase();
    return false;
  }
  remarkDone(
      group.back(), "attn-merge-steps", "merged",
      format("{} kernels in one, which reads the state once", group.size()));
  replace(group, kernel, operands, results);
  for (func::CallOp member : llvm::reverse(group))
    member.erase();
  return true;
}

void StepMerger::mergeIn(Block &block) {
  StepGroup seeds;
  for (auto call : block.getOps<func::CallOp>())
    if (replacesState(call))
      seeds.push_back(call);
  llvm::SmallPtrSet<Operation *, 8> gone;
  for (func::CallOp seed : seeds) {
    if (gone.contains(seed))
      continue;
    StepGroup group = findReaders(seed);
    // What comes last may be no part of the step.
    for (size_t count = group.size(); count > 1; --count) {
      StepGroup part(ArrayRef(group).take_front(count));
      if (!merge(part))
        continue;
      gone.insert_range(llvm::map_range(
          part, [](func::CallOp call) { return call.getOperation(); }));
      break;
    }
  }
}

void StepMerger::dropUncalled(ModuleOp module) {
  SmallVector<func::FuncOp> kernels;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(attn::kKernelAttr) &&
        SymbolTable::symbolKnownUseEmpty(function, module))
      kernels.push_back(function);
  for (func::FuncOp kernel : kernels)
    symbols.erase(kernel);
}

struct MergeSteps : heed::impl::AttnMergeStepsBase<MergeSteps> {
  void runOnOperation() override {
    StepMerger merger(getOperation());
    SmallVector<func::FuncOp> models;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function->hasAttr(attn::kKernelAttr))
        models.push_back(function);
    for (func::FuncOp model : models)
      model.walk([&](Block *block) { merger.mergeIn(*block); });
    merger.dropUncalled(getOperation());
  }
};

} // namespace
