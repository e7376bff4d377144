//===- MergeProducts.cpp - products of one operand are one kernel ---------===//
//
// Queries, keys and values of one input, the two products of a gated layer:
// contractions of the same tensor with weights of the same shape. Their kernels
// become one, whose schedule reads that tensor, and starts threads, once for
// all of them. A kernel whose epilogue reads the other's result where it writes
// its own takes it from the tile.
//
//===----------------------------------------------------------------------===//
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/Weights.h"
#include "passes/Kernels/KernelFacts.h"
#include "passes/Kernels/KernelKinds.h"
#include "passes/Kernels/MergeCalls.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Plan/StoredTensors.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace heed {
#define GEN_PASS_DEF_ATTNMERGEPRODUCTS
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

/// More would leave too few vectors of a register tile to each.
constexpr size_t mostProducts = 3;

/// A call of a kernel that is one product with a weight and what follows it at
/// the same places.
struct Product {
  func::CallOp call;
  func::FuncOp kernel;
  linalg::GenericOp sum;
  unsigned weight = 0; ///< the operand of the sum
  KernelFacts facts;

  Value onHost(Value inside) const {
    auto argument = dyn_cast<BlockArgument>(inside);
    return argument ? call->getOperand(argument.getArgNumber()) : Value();
  }
  Value result() const { return call->getResult(0); }
};

/// Whether all of \p facts but \p sum are elementwise, over as many loops, and
/// read each other in place: then a tile of the sum is one of the result.
bool isEpilogueOf(const KernelFacts &facts, unsigned sum) {
  unsigned rank = facts.computations[sum].rank();
  return llvm::all_of(facts.computations, [&](const Computation &c) {
    return c.rank() == rank && facts.isReadInPlace(c.source, rank);
  });
}

std::optional<Product> findProduct(func::CallOp call, SymbolTable &symbols,
                                   WeightAnalysis &weights) {
  Product p;
  p.call = call;
  p.kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!p.kernel || !p.kernel->hasAttr(attn::kKernelAttr) ||
      call.getNumResults() != 1)
    return std::nullopt;
  p.facts = factsOf(p.kernel);
  SmallVector<unsigned> sums = p.facts.sums();
  if (!p.facts.isContraction() || p.facts.isPartial || sums.size() != 1)
    return std::nullopt;
  const Computation &c = p.facts.computations[sums[0]];
  if (c.results != 1 || c.rank() < 2 || c.usesOutside ||
      !isEpilogueOf(p.facts, sums[0]))
    return std::nullopt;
  p.sum = p.facts.tensors[c.source].getDefiningOp<linalg::GenericOp>();
  // Nothing but operands is read, and one of them, a weight, by columns.
  unsigned byColumns = 0;
  for (const Read &read : c.reductions[0].reads) {
    if (!p.facts.isInput(read))
      return std::nullopt;
    if (read.follows(kColumn)) {
      ++byColumns;
      p.weight = read.operand;
    }
  }
  if (!p.sum || byColumns != 1)
    return std::nullopt;
  Value weight = p.onHost(p.sum->getOperand(p.weight));
  auto type = dyn_cast<RankedTensorType>(weight.getType());
  if (!type || !type.hasStaticShape() || !weights.of(weight).isWeight())
    return std::nullopt;
  return p;
}

/// The host's values that make \p value, a filled tensor of a kernel.
struct Start {
  Attribute element;
  SmallVector<Value> sizes;
};
std::optional<Start> startOf(Product &p) {
  auto fill = p.sum.getDpsInitOperand(0)->get().getDefiningOp<linalg::FillOp>();
  auto empty = fill ? fill.getOutputs()[0].getDefiningOp<tensor::EmptyOp>()
                    : tensor::EmptyOp();
  Start start;
  if (!empty || !matchPattern(fill.getInputs()[0], m_Constant(&start.element)))
    return std::nullopt;
  for (Value size : empty.getDynamicSizes()) {
    start.sizes.push_back(p.onHost(size));
    if (!start.sizes.back())
      return std::nullopt;
  }
  return start;
}

/// Whether the sums differ in their weights alone.
bool isAlike(Product &a, Product &b) {
  if (a.weight != b.weight ||
      a.sum.getIndexingMaps() != b.sum.getIndexingMaps() ||
      a.sum.getIteratorTypes() != b.sum.getIteratorTypes() ||
      a.sum->getOperandTypes() != b.sum->getOperandTypes() ||
      a.kernel.getResultTypes() != b.kernel.getResultTypes() ||
      !OperationEquivalence::isRegionEquivalentTo(
          &a.sum.getRegion(), &b.sum.getRegion(),
          OperationEquivalence::IgnoreLocations))
    return false;
  for (OpOperand *operand : a.sum.getDpsInputOperands()) {
    unsigned k = operand->getOperandNumber();
    if (k != a.weight &&
        a.onHost(operand->get()) != b.onHost(b.sum->getOperand(k)))
      return false;
  }
  auto from = startOf(a), to = startOf(b);
  return from && to && from->element == to->element && from->sizes == to->sizes;
}

/// What is said of a tensor of \p type whose rows are those of \p p.
struct Words {
  Words(Product &p, Type type, unsigned times) {
    auto tensor = cast<RankedTensorType>(type);
    std::optional<Start> start = startOf(p);
    if (start->sizes.size() != size_t(tensor.getNumDynamicDims()))
      return;
    // Extents of what a call returns are not known; those of this are.
    OpBuilder b(p.call);
    auto like = tensor::EmptyOp::create(b, p.call.getLoc(), tensor.getShape(),
                                        tensor.getElementType(), start->sizes);
    text = format(" {}", storedText(like));
    if (std::string bytes = trafficText(like, times); !bytes.empty())
      text += format(" ({})", bytes);
    like.erase();
  }
  std::string text;
};

class Merger {
public:
  explicit Merger(SymbolTable &symbols) : symbols(symbols) {}

  void run(func::FuncOp model);

private:
  void runIn(Block &block);
  bool joins(ArrayRef<Product> group, Product &next);
  func::FuncOp makeKernel(MutableArrayRef<Product> group,
                          ArrayRef<Value> operands, ArrayRef<Value> results);
  void merge(MutableArrayRef<Product> group);

  SymbolTable &symbols;
  WeightAnalysis weights;
  llvm::StringMap<func::FuncOp> known;
};

SmallVector<func::CallOp> callsOf(ArrayRef<Product> group) {
  return llvm::map_to_vector(group, [](const Product &p) { return p.call; });
}

/// Moves what \p next reads before the group, if it may stand there, and says
/// whether it may be computed with it.
bool Merger::joins(ArrayRef<Product> group, Product &next) {
  auto isReadInPlace = [&](unsigned argument) {
    Value inside = next.kernel.getArgument(argument);
    const auto *source = llvm::find(next.facts.tensors, inside);
    return source != next.facts.tensors.end() &&
           next.facts.isReadInPlace(source - next.facts.tensors.begin(),
                                    next.sum.getNumParallelLoops());
  };
  // A member's result is read from its tile alone.
  for (OpOperand &operand : next.call->getOpOperands())
    if (llvm::any_of(
            group,
            [&](const Product &p) { return operand.get() == p.result(); }) &&
        !isReadInPlace(operand.getOperandNumber()))
      return false;
  return moveOperands(callsOf(group), next.call);
}

/// What one kernel for \p group does not read and write.
std::string savedText(MutableArrayRef<Product> group) {
  Product &first = group.front();
  std::string read, saved;
  for (OpOperand *operand : first.sum.getDpsInputOperands())
    if (operand->getOperandNumber() != first.weight)
      read = Words(first, operand->get().getType(), group.size() - 1).text;
  SmallVector<Value> results = resultsOf(callsOf(group));
  for (Product &p : group)
    if (!llvm::is_contained(results, p.result()))
      saved += heed::format(", writing and reading{}",
                            Words(p, p.result().getType(), 2).text);
  return heed::format("reading{}{}", read, saved);
}

/// A function with \p operands and \p results that does what \p group does.
func::FuncOp Merger::makeKernel(MutableArrayRef<Product> group,
                                ArrayRef<Value> operands,
                                ArrayRef<Value> results) {
  func::CallOp first = group.front().call;
  func::FuncOp kernel =
      emptyKernel(group.front().kernel, first.getLoc(), operands, results);
  Block *entry = &kernel.getBody().front();
  OpBuilder b(entry, entry->end());
  IRMapping onHost; // from the host's values to the kernel's
  onHost.map(ValueRange(operands), entry->getArguments());
  for (Product &p : group) {
    Block &body = p.kernel.getBody().front();
    IRMapping map;
    for (auto [argument, operand] :
         llvm::zip(body.getArguments(), p.call.getOperands()))
      map.map(argument, onHost.lookup(operand));
    if (&p != &group.front() && mutated("merge-products.first-weight-twice"))
      map.map(p.sum->getOperand(p.weight),
              onHost.lookup(group.front().onHost(
                  group.front().sum->getOperand(p.weight))));
    Value last = body.getArguments().back(), other = first.getOperands().back();
    if (last.getType() == other.getType() &&
        mutated("merge-products.last-operand-of-first"))
      map.map(last, onHost.lookup(other));
    for (Operation &op : body.without_terminator())
      b.clone(op, map);
    onHost.map(p.result(),
               mutated("merge-products.sum-without-epilogue")
                   ? map.lookup(p.sum->getResult(0))
                   : map.lookup(body.getTerminator()->getOperand(0)));
  }
  SmallVector<Value> returned;
  for (Value result : results)
    returned.push_back(onHost.lookup(
        mutated("merge-products.return-first-twice") ? results[0] : result));
  func::ReturnOp::create(b, first.getLoc(), returned);
  return kernel;
}

void Merger::merge(MutableArrayRef<Product> group) {
  SmallVector<func::CallOp> calls = callsOf(group);
  SmallVector<Value> operands = operandsOf(calls), results = resultsOf(calls);
  func::FuncOp kernel = shareKernel(
      makeKernel(group, operands, results),
      format("{}s", group.front().kernel.getName()), known, symbols);
  remarkDone(
      group.back().call, "attn-merge-products", "merged",
      heed::format("{} products of one operand in one kernel, which saves {}",
                   group.size(), savedText(group)));
  func::CallOp first = group.front().call;
  OpBuilder b(first);
  auto call = func::CallOp::create(b, first.getLoc(), kernel, operands);
  if (mutated("merge-products.swap-results"))
    std::reverse(results.begin(), results.end());
  for (auto [result, value] : llvm::zip(results, call.getResults()))
    result.replaceAllUsesWith(value);
  for (Product &p : llvm::reverse(group))
    p.call.erase();
}

void Merger::runIn(Block &block) {
  SmallVector<Product, 0> products;
  for (auto call : block.getOps<func::CallOp>())
    if (std::optional<Product> p = findProduct(call, symbols, weights))
      products.push_back(*p);
  while (!products.empty()) {
    SmallVector<Product, 0> group{products.front()}, rest;
    for (Product &p : llvm::drop_begin(products)) {
      if (group.size() < mostProducts && isAlike(group.front(), p) &&
          joins(group, p))
        group.push_back(p);
      else
        rest.push_back(p);
    }
    if (group.size() > 1)
      merge(group);
    products = std::move(rest);
  }
}

void Merger::run(func::FuncOp model) {
  model.walk([&](Block *block) { runIn(*block); });
}

struct MergeProducts : heed::impl::AttnMergeProductsBase<MergeProducts> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    Merger merger(symbols);
    SmallVector<func::FuncOp> models, kernels;
    for (auto func : getOperation().getOps<func::FuncOp>())
      (func->hasAttr(attn::kKernelAttr) ? kernels : models).push_back(func);
    for (func::FuncOp model : models)
      if (!model.isExternal())
        merger.run(model);
    for (func::FuncOp kernel : kernels)
      if (SymbolTable::symbolKnownUseEmpty(kernel, getOperation()))
        symbols.erase(kernel);
  }
};

} // namespace
