//===- MergeCalls.cpp - calls of kernels that become one ------------------===//
#include "passes/Kernels/MergeCalls.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Mutation.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace heed {

static bool isOneOf(ArrayRef<func::CallOp> group, Operation *op) {
  return llvm::any_of(group, [&](func::CallOp call) { return call == op; });
}

/// What \p next needs that stands between the first of \p group and itself, in
/// order; nothing if a call or a region is among it.
static std::optional<SmallVector<Operation *>>
operandsBetween(ArrayRef<func::CallOp> group, func::CallOp next) {
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
      return std::nullopt;
    if (moved.insert(def))
      llvm::append_range(work, def->getOperands());
  }
  SmallVector<Operation *> ops = moved.takeVector();
  llvm::sort(ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ops;
}

bool mayMoveOperands(ArrayRef<func::CallOp> group, func::CallOp next) {
  return operandsBetween(group, next).has_value();
}

bool moveOperands(ArrayRef<func::CallOp> group, func::CallOp next) {
  std::optional<SmallVector<Operation *>> ops = operandsBetween(group, next);
  if (!ops)
    return false;
  func::CallOp first = group.front();
  for (Operation *op : *ops)
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

func::FuncOp mergedKernel(ArrayRef<func::CallOp> group,
                          ArrayRef<Value> operands, ArrayRef<Value> results,
                          SymbolTable &symbols) {
  func::CallOp first = group.front();
  auto calleeOf = [&](func::CallOp call) {
    return symbols.lookup<func::FuncOp>(call.getCallee());
  };
  func::FuncOp kernel =
      emptyKernel(calleeOf(first), first.getLoc(), operands, results);
  Block *entry = &kernel.getBody().front();
  OpBuilder b(entry, entry->end());
  IRMapping onHost; // from the host's values to the kernel's
  onHost.map(ValueRange(operands), entry->getArguments());
  for (func::CallOp call : group) {
    func::FuncOp inside = calleeOf(call);
    Block &body = inside.getBody().front();
    IRMapping map;
    for (auto [argument, operand] :
         llvm::zip(body.getArguments(), call.getOperands()))
      map.map(argument,
              onHost.lookup(operand.getDefiningOp() &&
                                    isOneOf(group, operand.getDefiningOp()) &&
                                    mutated("merge-elementwise.first-result")
                                ? first.getResult(0)
                                : operand));
    // A table of indices alone has no operands.
    Value last = body.args_empty() ? Value() : body.getArguments().back();
    Value other =
        first.getOperands().empty() ? Value() : first.getOperands().back();
    if (last && other && last.getType() == other.getType() &&
        mutated("merge-elementwise.last-operand-of-first"))
      map.map(last, onHost.lookup(other));
    for (Operation &op : body.without_terminator())
      b.clone(op, map);
    onHost.map(call.getResult(0),
               map.lookup(body.getTerminator()->getOperand(0)));
  }
  SmallVector<Value> returned;
  for (Value result : results)
    returned.push_back(
        onHost.lookup(mutated("merge-elementwise.return-first-twice") &&
                              result.getType() == results[0].getType()
                          ? results[0]
                          : result));
  func::ReturnOp::create(b, first.getLoc(), returned);
  return kernel;
}

} // namespace heed
