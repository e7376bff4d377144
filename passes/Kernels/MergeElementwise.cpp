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
#include "passes/Kernels/MergeCalls.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"
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

using Group = SmallVector<Elements, 0>;

SmallVector<func::CallOp> callsOf(const Group &group) {
  return llvm::map_to_vector(group, [](const Elements &e) { return e.call; });
}

bool isResult(const Group &group, Value value) {
  return llvm::any_of(group,
                      [&](const Elements &e) { return e.result() == value; });
}

/// Whether \p next may be computed with \p group; what it reads then stands
/// before that.
bool joins(const Group &group, const Elements &next) {
  if (next.type().getShape() != group.front().type().getShape() ||
      llvm::none_of(next.call->getOperands(),
                    [&](Value operand) { return isResult(group, operand); }))
    return false;
  for (OpOperand &operand : next.call->getOpOperands())
    if (isResult(group, operand.get()) &&
        !next.readsInPlace(operand.getOperandNumber()) &&
        !mutated("merge-elementwise.read-elsewhere"))
      return false;
  SmallVector<func::CallOp> calls = callsOf(group), all = calls;
  all.push_back(next.call);
  return resultsOf(all).size() <= mostResults && moveOperands(calls, next.call);
}

void merge(const Group &group, llvm::StringMap<func::FuncOp> &known,
           SymbolTable &symbols) {
  SmallVector<func::CallOp> calls = callsOf(group);
  SmallVector<Value> operands = operandsOf(calls), results = resultsOf(calls);
  func::FuncOp kernel =
      shareKernel(mergedKernel(calls, operands, results, symbols),
                  format("{}s", calls.front().getCallee()), known, symbols);
  remarkDone(calls.back(), "attn-merge-elementwise", "merged",
             format("{} kernels of elements of one shape in one, of which "
                    "others read {} result{}",
                    group.size(), results.size(),
                    results.size() == 1 ? "" : "s"));
  OpBuilder b(calls.front());
  auto call = func::CallOp::create(b, calls.front().getLoc(), kernel, operands);
  if (mutated("merge-elementwise.swap-results") &&
      llvm::all_equal(ValueRange(results).getTypes()))
    std::reverse(results.begin(), results.end());
  for (auto [result, value] : llvm::zip(results, call.getResults()))
    result.replaceAllUsesWith(value);
  for (func::CallOp member : llvm::reverse(calls))
    member.erase();
}

void mergeIn(Block &block, llvm::StringMap<func::FuncOp> &known,
             SymbolTable &symbols) {
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
    if (group.size() > 1 && !resultsOf(callsOf(group)).empty())
      merge(group, known, symbols);
    all = std::move(rest);
  }
}

struct MergeElementwise
    : heed::impl::AttnMergeElementwiseBase<MergeElementwise> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::StringMap<func::FuncOp> known;
    SmallVector<func::FuncOp> models, kernels;
    for (auto func : getOperation().getOps<func::FuncOp>())
      (func->hasAttr(attn::kKernelAttr) ? kernels : models).push_back(func);
    // Outside of loops a call more is little of what there is to do.
    for (func::FuncOp model : models)
      model.walk(
          [&](scf::ForOp loop) { mergeIn(*loop.getBody(), known, symbols); });
    for (func::FuncOp kernel : kernels)
      if (SymbolTable::symbolKnownUseEmpty(kernel, getOperation()))
        symbols.erase(kernel);
  }
};

} // namespace
