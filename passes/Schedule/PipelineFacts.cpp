//===- PipelineFacts.cpp - what a pipeline computes, as plain data --------===//
//
// The facts of a kernel (Kernels/KernelFacts.h) from its Halide pipeline: a
// func is a computation, its updates are reductions.
#include "dialects/Halide/HalideNames.h"
#include "passes/Algebra/Windows.h"
#include "passes/Kernels/KernelFacts.h"
#include "passes/Mutation.h"
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

SmallVector<halide::ReadOp> heed::readsOfTerms(halide::UpdateOp update) {
  SmallVector<halide::ReadOp> reads;
  for (auto read : update.getSet().front().getOps<halide::ReadOp>())
    if (read.getFunc() != update.getFunc())
      reads.push_back(read);
  return reads;
}

namespace {

llvm::SmallBitVector loopsOf(Value value, unsigned loops) {
  llvm::SmallBitVector found(loops);
  for (Value arg : argumentsOf(value))
    found.set(cast<BlockArgument>(arg).getArgNumber());
  return found;
}

class PipelineDescriber {
public:
  explicit PipelineDescriber(KernelInfo &kernel) : kernel(kernel) {}
  KernelFacts run();

private:
  unsigned numberOf(Value func) {
    facts.tensors.insert(func);
    return llvm::find(facts.tensors, func) - facts.tensors.begin();
  }
  Read describe(halide::ReadOp read, ArrayRef<KnownExtent> loops);
  Reduction describe(halide::UpdateOp update, ArrayRef<Extent> extents,
                     ArrayRef<Extent> own);
  Computation describe(const KernelFunc &f);

  KernelInfo &kernel;
  KernelFacts facts;
};

Read PipelineDescriber::describe(halide::ReadOp op,
                                 ArrayRef<KnownExtent> loops) {
  Read read;
  read.source = numberOf(op.getFunc());
  for (Value at : op.getCoordinates()) {
    Coordinate coordinate;
    if (auto arg = dyn_cast<BlockArgument>(at))
      coordinate.loop = arg.getArgNumber();
    coordinate.loops = loopsOf(at, loops.size());
    coordinate.window =
        windowOf(at, loops, [](Value value) -> std::optional<unsigned> {
          if (auto arg = dyn_cast<BlockArgument>(value))
            return arg.getArgNumber();
          return std::nullopt;
        });
    read.at.push_back(std::move(coordinate));
  }
  return read;
}

Reduction PipelineDescriber::describe(halide::UpdateOp update,
                                      ArrayRef<Extent> extents,
                                      ArrayRef<Extent> own) {
  Reduction reduction;
  unsigned rank = own.size();
  for (const Extent &extent : extents)
    reduction.extents.push_back(extent.fixed);
  reduction.isGuarded = !update.getWhere().empty();
  reduction.isScattered = !update.getAt().empty();
  reduction.isLong = update->hasAttr(halide::kLongWindowAttr);
  unsigned loops = rank + extents.size();
  SmallVector<KnownExtent> known;
  for (const Extent &extent : own)
    known.push_back(extent.fixed);
  for (const Extent &extent : extents)
    known.push_back(extent.fixed);
  for (halide::ReadOp read : readsOfTerms(update))
    reduction.reads.push_back(describe(read, known));
  unsigned term = 0;
  auto add = dyn_cast_or_null<arith::AddFOp>(combinerOf(update, term));
  if (!add)
    return reduction;
  reduction.combiner = Combiner::Sum;
  if (auto product = add->getOperand(term).getDefiningOp<arith::MulFOp>())
    for (Value value : product->getOperands()) {
      auto read = value.getDefiningOp<halide::ReadOp>();
      reduction.factors.push_back(
          {loopsOf(value, loops),
           read && read.getFunc().getDefiningOp<halide::BufferOp>()});
    }
  return reduction;
}

Computation PipelineDescriber::describe(const KernelFunc &f) {
  Computation c;
  halide::FuncOp func = f.func;
  c.source = numberOf(func.getResult());
  SmallVector<Type> types(halide::getElementTypes(func.getResult()));
  c.results = types.size();
  c.element = types.front();
  for (const Extent &extent : f.extents)
    c.extents.push_back(extent.fixed);
  for (auto read : func.getBody().front().getOps<halide::ReadOp>())
    c.reads.push_back(describe(read, c.extents));
  for (auto [update, extents] : llvm::zip(f.updates, f.reductions))
    c.reductions.push_back(describe(update, extents, f.extents));
  return c;
}

KernelFacts PipelineDescriber::run() {
  facts.kind = kernel.kind.str();
  facts.rows = kernel.rows;
  for (const KernelFunc &f : kernel.funcs)
    facts.computations.push_back(describe(f));
  facts.sources.resize(facts.tensors.size());
  for (auto [number, c] : llvm::enumerate(facts.computations))
    facts.sources[c.source] = Source(Source::Computed, number);
  SmallVector<Operation *> inputs = kernel.pipeline.getInputs();
  for (auto [number, tensor] : llvm::enumerate(facts.tensors))
    if (auto buffer = tensor.getDefiningOp<halide::BufferOp>())
      facts.sources[number] =
          Source(Source::Input, llvm::find(inputs, buffer) - inputs.begin(),
                 kernel.weights.contains(tensor));
  for (halide::FuncOp output : kernel.pipeline.getOutputFuncs())
    for (auto [number, f] : llvm::enumerate(kernel.funcs))
      if (f.func == output)
        facts.outputs.push_back(number);
  facts.hasAlikeSums = hasAlikeSums(kernel);
  return std::move(facts);
}

} // namespace

KernelFacts heed::factsOf(KernelInfo &kernel) {
  return PipelineDescriber(kernel).run();
}
