//===- MergeElementwise.cpp - what a step computes by elements is a kernel
//-===//
//
// The cell and the output of a recurrent layer, and what a length keeps of
// them: kernels of elements of one shape, in a loop, that read each other's
// results. They become one kernel with several results; what it alone reads is
// not stored.
//
//===----------------------------------------------------------------------===//
#include "dialects/Attn/Dialect.h"
#include "passes/Kernels/KernelFacts.h"
#include "passes/Kernels/KernelKinds.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace heed {
#define GEN_PASS_DEF_ATTNMERGEELEMENTWISE
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

/// More would leave too few registers to each.
constexpr size_t mostResults = 4;

/// A call of a kernel of elements.
struct Elements {
  func::CallOp call;
  func::FuncOp kernel;
  KernelFacts facts;

  Value result() const { return call->getResult(0); }
  RankedTensorType type() const {
    return cast<RankedTensorType>(result().getType());
  }
  /// Whether operand \p number is read where the result is written alone.
  bool readsInPlace(unsigned number) const {
    func::FuncOp inside = kernel;
    const auto *source =
        llvm::find(facts.tensors, Value(inside.getArgument(number)));
    return source != facts.tensors.end() &&
           facts.isReadInPlace(source - facts.tensors.begin(),
                               type().getRank());
  }
};

std::optional<Elements> findElements(func::CallOp call, SymbolTable &symbols) {
  Elements e;
  e.call = call;
  e.kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!e.kernel || !e.kernel->hasAttr(attn::kKernelAttr) ||
      call.getNumResults() != 1)
    return std::nullopt;
  e.facts = factsOf(e.kernel);
  if (e.facts.kind != nameOf(KernelKind::Elementwise) || e.facts.isPartial ||
      !e.facts.sums().empty() || e.type().getRank() == 0)
    return std::nullopt;
  return e;
}

class ElementsMerger {
public:
  ElementsMerger(ModuleOp module, SymbolTable &symbols)
      : module(module), symbols(symbols) {}

  void runIn(Block &block);

private:
  using Group = SmallVector<Elements, 0>;
  bool isMember(const Group &group, Operation *op) {
    return llvm::any_of(group, [&](const Elements &e) { return e.call == op; });
  }
  bool isResult(const Group &group, Value value) {
    Operation *def = value.getDefiningOp();
    return def && isMember(group, def);
  }
  SmallVector<Value> resultsOf(const Group &group);
  bool joins(Group &group, const Elements &next);
  bool moveOperands(const Group &group, const Elements &next);
  func::FuncOp makeKernel(const Group &group, ArrayRef<Value> operands,
                          ArrayRef<Value> results);
  void merge(const Group &group);

  ModuleOp module;
  SymbolTable &symbols;
  llvm::StringMap<func::FuncOp> known;
};

/// What others than \p group read of it.
SmallVector<Value> ElementsMerger::resultsOf(const Group &group) {
  SmallVector<Value> results;
  for (const Elements &e : group)
    if (!llvm::all_of(e.result().getUsers(),
                      [&](Operation *user) { return isMember(group, user); }))
      results.push_back(e.result());
  return results;
}

/// Moves what \p next reads before \p group, if it may stand there.
bool ElementsMerger::moveOperands(const Group &group, const Elements &next) {
  Operation *first = group.front().call;
  llvm::SetVector<Operation *> moved;
  SmallVector<Value> work(next.call->getOperands());
  while (!work.empty()) {
    Operation *def = work.pop_back_val().getDefiningOp();
    if (!def || isMember(group, def) || def->getBlock() != first->getBlock() ||
        def->isBeforeInBlock(first))
      continue;
    if (isa<func::CallOp>(def) || !isMemoryEffectFree(def) ||
        def->getNumRegions() != 0 ||
        llvm::any_of(def->getOperands(),
                     [&](Value value) { return isResult(group, value); }))
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

bool ElementsMerger::joins(Group &group, const Elements &next) {
  if (next.type().getShape() != group.front().type().getShape() ||
      llvm::none_of(next.call->getOperands(),
                    [&](Value operand) { return isResult(group, operand); }))
    return false;
  for (OpOperand &operand : next.call->getOpOperands())
    if (isResult(group, operand.get()) &&
        !next.readsInPlace(operand.getOperandNumber()) &&
        !mutated("merge-elementwise.read-elsewhere"))
      return false;
  Group whole(group);
  whole.push_back(next);
  return resultsOf(whole).size() <= mostResults && moveOperands(group, next);
}

/// A function with \p operands and \p results that does what \p group does.
func::FuncOp ElementsMerger::makeKernel(const Group &group,
                                        ArrayRef<Value> operands,
                                        ArrayRef<Value> results) {
  func::CallOp first = group.front().call;
  OpBuilder b(module.getContext());
  auto kernel =
      func::FuncOp::create(first.getLoc(), "kernel",
                           b.getFunctionType(TypeRange(ValueRange(operands)),
                                             TypeRange(ValueRange(results))));
  kernel.setPrivate();
  for (StringRef name : {StringRef(attn::kKernelAttr), StringRef("attn.kind")})
    kernel->setAttr(name, group.front().kernel->getAttr(name));
  Block *entry = kernel.addEntryBlock();
  b.setInsertionPointToStart(entry);
  IRMapping onHost; // from the host's values to the kernel's
  onHost.map(ValueRange(operands), entry->getArguments());
  for (const Elements &e : group) {
    func::FuncOp inside = e.kernel;
    Block &body = inside.getBody().front();
    IRMapping map;
    for (auto [argument, operand] :
         llvm::zip(body.getArguments(), e.call->getOperands()))
      map.map(argument,
              onHost.lookup(isResult(group, operand) &&
                                    mutated("merge-elementwise.first-result")
                                ? group.front().result()
                                : operand));
    Value last = body.getArguments().back(), other = first.getOperands().back();
    if (last.getType() == other.getType() &&
        mutated("merge-elementwise.last-operand-of-first"))
      map.map(last, onHost.lookup(other));
    for (Operation &op : body.without_terminator())
      b.clone(op, map);
    onHost.map(e.result(), map.lookup(body.getTerminator()->getOperand(0)));
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

void ElementsMerger::merge(const Group &group) {
  llvm::SetVector<Value> operands;
  for (const Elements &e : group)
    for (Value operand : e.call->getOperands())
      if (!isResult(group, operand))
        operands.insert(operand);
  SmallVector<Value> results = resultsOf(group);
  func::FuncOp kernel = shareKernel(
      makeKernel(group, operands.getArrayRef(), results),
      format("{}s", group.front()
                        .call->getAttrOfType<FlatSymbolRefAttr>("callee")
                        .getValue()),
      known, symbols);
  remarkDone(group.back().call, "attn-merge-elementwise", "merged",
             format("{} kernels of elements of one shape in one, of which "
                    "others read {} result{}",
                    group.size(), results.size(),
                    results.size() == 1 ? "" : "s"));
  OpBuilder b(group.front().call);
  auto call = func::CallOp::create(b, group.front().call->getLoc(), kernel,
                                   operands.getArrayRef());
  if (mutated("merge-elementwise.swap-results") &&
      llvm::all_equal(ValueRange(results).getTypes()))
    std::reverse(results.begin(), results.end());
  for (auto [result, value] : llvm::zip(results, call.getResults()))
    result.replaceAllUsesWith(value);
  for (const Elements &e : llvm::reverse(group))
    e.call->erase();
}

void ElementsMerger::runIn(Block &block) {
  Group all;
  for (auto call : block.getOps<func::CallOp>())
    if (std::optional<Elements> e = findElements(call, symbols))
      all.push_back(*e);
  while (!all.empty()) {
    Group group{all.front()}, rest;
    for (const Elements &e : llvm::drop_begin(all)) {
      if (joins(group, e))
        group.push_back(e);
      else
        rest.push_back(e);
    }
    if (group.size() > 1)
      merge(group);
    all = std::move(rest);
  }
}

struct MergeElementwise
    : heed::impl::AttnMergeElementwiseBase<MergeElementwise> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    ElementsMerger merger(getOperation(), symbols);
    SmallVector<func::FuncOp> models, kernels;
    for (auto func : getOperation().getOps<func::FuncOp>())
      (func->hasAttr(attn::kKernelAttr) ? kernels : models).push_back(func);
    // Outside of loops a call more is little of what there is to do.
    for (func::FuncOp model : models)
      model.walk([&](scf::ForOp loop) { merger.runIn(*loop.getBody()); });
    for (func::FuncOp kernel : kernels)
      if (SymbolTable::symbolKnownUseEmpty(kernel, getOperation()))
        symbols.erase(kernel);
  }
};

} // namespace
