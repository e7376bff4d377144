//===- KernelReads.cpp - what an op reads of a kernel before it -----------===//
#include "passes/Kernels/KernelReads.h"
#include "passes/Algebra/Computation.h"
#include "passes/Kernels/Families.h"
#include "passes/Kernels/KernelKinds.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace heed;

bool heed::readsInBranch(Operation *user, Value value) {
  return user
      ->walk([&](tensor::ExtractOp read) {
        return read.getTensor() == value && read->getParentOp() != user
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

bool heed::sumsAlong(Operation *user, Value value) {
  KernelFacts facts = factsOf(user);
  if (facts.computations.empty() || facts.computations[0].isElementwise())
    return false;
  const Computation &c = facts.computations[0];
  return llvm::any_of(c.reductions[0].reads, [&](const Read &read) {
    if (facts.tensors[read.source] != value || read.operand < 0)
      return false;
    for (unsigned loop = c.term(), end = loop + c.reductions[0].extents.size();
         loop < end; ++loop)
      if (read.follows(loop))
        return true;
    return false;
  });
}

bool heed::isComputedOnce(Operation *product, Value value) {
  KernelFacts facts = factsOf(product);
  auto number = llvm::find(facts.tensors, value) - facts.tensors.begin();
  return llvm::any_of(
      families(halide::isForGPU(product)), [&](const Family &family) {
        return family.computesOnce && !facts.computations.empty() &&
               family.computesOnce(facts, 0, number);
      });
}

bool heed::readsWindow(Operation *user, Value value) {
  KernelFacts facts = factsOf(user);
  return !facts.computations.empty() && isWindowSum(facts.computations[0]) &&
         llvm::all_of(
             facts.computations[0].reductions[0].reads, [&](const Read &read) {
               return facts.tensors[read.source] != value || read.isWindow();
             });
}

bool heed::standsBeside(Operation *product, Operation *sum) {
  KernelFacts facts = factsOf({product, sum});
  return llvm::any_of(families(halide::isForGPU(product)),
                      [&](const Family &family) {
                        return family.takesBeside && !facts.isPartial &&
                               family.takesBeside(facts, 0, 1);
                      });
}

bool heed::isComputedInProduct(Operation *op) {
  SmallVector<Operation *> sums;
  Operation *product = nullptr;
  for (Operation *user : op->getUsers()) {
    if (user->getBlock() != op->getBlock() || !isCompute(user))
      return false;
    if (kernelKindOf(user) != KernelKind::Contraction)
      sums.push_back(user);
    else if (product && product != user)
      return false;
    else
      product = user;
  }
  return product && op->getNumResults() == 1 &&
         isComputedOnce(product, op->getResult(0)) &&
         llvm::all_of(sums, [&](Operation *sum) {
           return kernelKindOf(sum) == KernelKind::Row &&
                  standsBeside(product, sum);
         });
}
