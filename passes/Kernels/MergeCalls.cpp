//===- MergeCalls.cpp - calls of kernels that become one ------------------===//
#include "passes/Kernels/MergeCalls.h"
#include "dialects/Attn/Dialect.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace heed {

static bool isOneOf(ArrayRef<func::CallOp> group, Operation *op) {
  return llvm::any_of(group, [&](func::CallOp call) { return call == op; });
}

bool moveOperands(ArrayRef<func::CallOp> group, func::CallOp next) {
  func::CallOp front = group.front();
  Operation *first = front;
  llvm::SetVector<Operation *> moved;
  SmallVector<Value> work;
  for (Value operand : next.getOperands())
    if (Operation *def = operand.getDefiningOp(); def && !isOneOf(group, def))
      work.push_back(operand);
  while (!work.empty()) {
    Operation *def = work.pop_back_val().getDefiningOp();
    if (!def || def->getBlock() != first->getBlock() ||
        def->isBeforeInBlock(first))
      continue;
    if (isa<func::CallOp>(def) || !isMemoryEffectFree(def) ||
        def->getNumRegions() != 0)
      return false;
    if (moved.insert(def))
      llvm::append_range(work, def->getOperands());
  }
  SmallVector<Operation *> ops = moved.takeVector();
  llvm::sort(ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : ops)
    op->moveBefore(first);
  return true;
}

SmallVector<Value> resultsOf(ArrayRef<func::CallOp> group) {
  SmallVector<Value> results;
  for (func::CallOp call : group)
    if (!llvm::all_of(call->getUsers(),
                      [&](Operation *user) { return isOneOf(group, user); }))
      results.push_back(call.getResult(0));
  return results;
}

SmallVector<Value> operandsOf(ArrayRef<func::CallOp> group) {
  llvm::SetVector<Value> operands;
  for (func::CallOp call : group)
    for (Value operand : call.getOperands())
      if (Operation *def = operand.getDefiningOp();
          !def || !isOneOf(group, def))
        operands.insert(operand);
  return operands.takeVector();
}

func::FuncOp emptyKernel(func::FuncOp like, Location loc,
                         ArrayRef<Value> operands, ArrayRef<Value> results) {
  OpBuilder b(like.getContext());
  auto kernel =
      func::FuncOp::create(loc, "kernel",
                           b.getFunctionType(TypeRange(ValueRange(operands)),
                                             TypeRange(ValueRange(results))));
  kernel.setPrivate();
  for (StringRef name : {StringRef(attn::kKernelAttr), StringRef("attn.kind")})
    kernel->setAttr(name, like->getAttr(name));
  kernel.addEntryBlock();
  return kernel;
}

} // namespace heed
