//===- KernelFacts.cpp - what a kernel is, as plain data ------------------===//
#include "passes/Kernels/KernelFacts.h"
#include "passes/Algebra/Weights.h"
#include "passes/Kernels/KernelKinds.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace heed;

SmallVector<unsigned> KernelFacts::sums() const {
  SmallVector<unsigned> found;
  for (auto [number, c] : llvm::enumerate(computations))
    if (!c.isElementwise())
      found.push_back(number);
  return found;
}

bool KernelFacts::isReadInPlace(unsigned source, unsigned rank) const {
  auto inPlace = [&](const Computation &reader, ArrayRef<Read> reads) {
    return llvm::all_of(reads, [&](const Read &read) {
      return read.source != source ||
             (reader.rank() == rank && read.isInPlace());
    });
  };
  return llvm::all_of(computations, [&](const Computation &reader) {
    if (!inPlace(reader, reader.reads))
      return false;
    return reader.source == source ||
           llvm::all_of(reader.reductions, [&](const Reduction &reduction) {
             return llvm::none_of(reduction.reads, [&](const Read &read) {
               return read.source == source;
             });
           });
  });
}

bool KernelFacts::isReadInPlace(unsigned number) const {
  const Computation &c = computations[number];
  bool isRead = llvm::is_contained(outputs, number);
  for (const Computation &reader : computations)
    for (const Read &read : reader.reads)
      isRead |= read.source == c.source;
  return isRead && isReadInPlace(c.source, c.rank());
}

SmallVector<unsigned> heed::columnReads(const Reduction &sum, unsigned row) {
  SmallVector<unsigned> columns;
  bool rows = false;
  for (auto [number, read] : llvm::enumerate(sum.reads)) {
    bool byColumn = read.follows(kColumn), byRow = read.follows(row);
    if (byColumn && byRow)
      return {};
    if (byColumn)
      columns.push_back(number);
    rows |= byRow;
  }
  return rows ? columns : SmallVector<unsigned>();
}

/// The argument of \p kernel that every buffer inside has as its extent of the
/// axis before the last.
static std::optional<unsigned> rowArgumentOf(Block &body) {
  std::optional<unsigned> rows;
  for (auto empty : body.getOps<tensor::EmptyOp>()) {
    RankedTensorType type = empty.getType();
    int64_t axis = type.getRank() - 2;
    if (axis < 0 || !type.isDynamicDim(axis))
      return std::nullopt;
    auto size = dyn_cast<BlockArgument>(
        empty.getDynamicSizes()[type.getDynamicDimIndex(axis)]);
    if (!size || (rows && *rows != size.getArgNumber()))
      return std::nullopt;
    rows = size.getArgNumber();
  }
  return rows;
}

static Source describeInput(Value tensor, unsigned number, bool isWeight) {
  Source source;
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type)
    return source;
  source.kind = Source::Input;
  source.number = number;
  source.isWeight = isWeight;
  for (int64_t size : llvm::reverse(type.getShape()))
    source.extents.push_back(ShapedType::isDynamic(size) ? KnownExtent()
                                                         : KnownExtent(size));
  source.elementBytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  return source;
}

static void describeAll(KernelFacts &facts, ArrayRef<Operation *> ops) {
  for (Operation *op : ops)
    if (std::optional<Computation> c = describe(op, facts.tensors))
      facts.computations.push_back(std::move(*c));
    else
      facts.isPartial = true;
  facts.sources.resize(facts.tensors.size());
  for (auto [number, c] : llvm::enumerate(facts.computations))
    facts.sources[c.source] = Source(Source::Computed, number);
}

KernelFacts heed::factsOf(ArrayRef<Operation *> ops) {
  KernelFacts facts;
  describeAll(facts, ops);
  for (auto [number, tensor] : llvm::enumerate(facts.tensors))
    if (facts.sources[number].kind == Source::Other &&
        !isCheap(tensor.getDefiningOp()))
      facts.sources[number] =
          describeInput(tensor, number, isFromParameters(tensor));
  return facts;
}

KernelFacts heed::factsOf(func::FuncOp kernel, const llvm::BitVector &weights) {
  KernelFacts facts;
  if (auto kind = kernel->getAttrOfType<StringAttr>("attn.kind"))
    facts.kind = kind.str();
  Block &body = kernel.getBody().front();
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    if (!isCheap(&op) && isCompute(&op))
      ops.push_back(&op);
  describeAll(facts, ops);
  for (auto [number, tensor] : llvm::enumerate(facts.tensors))
    if (auto argument = dyn_cast<BlockArgument>(tensor)) {
      unsigned k = argument.getArgNumber();
      facts.sources[number] =
          describeInput(tensor, k, k < weights.size() && weights.test(k));
    }
  for (Value result : body.getTerminator()->getOperands())
    for (auto [number, c] : llvm::enumerate(facts.computations))
      if (facts.tensors[c.source] == result)
        facts.outputs.push_back(number);
  facts.rowArgument = rowArgumentOf(body);
  return facts;
}
