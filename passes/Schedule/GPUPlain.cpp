//===- GPUPlain.cpp - any kernel on a GPU ---------------------------------===//
//
// The fallback of GPUs: each func with a reduction, and each output, is stored
// whole in the device's memory by a grid of its own; what is pure between them
// is inlined. A thread computes one element and its reductions. Right for every
// kernel; tiles in shared memory are other families' work.
#include "passes/Schedule/GPU.h"
#include "support/Format.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace heed;

/// Threads of a block, and how many of them lie along a func's inner dim, so
/// that neighbours read neighbours.
static constexpr int64_t kThreads = 128, kInnerThreads = 32;

/// Places of the dims of \p f that are loops of \p stage: an update that
/// stores elsewhere has none for that dim.
static SmallVector<size_t> dimsOfStage(KernelFunc &f, int64_t stage) {
  SmallVector<size_t> dims;
  for (size_t dim = 0; dim < f.extents.size(); ++dim) {
    if (stage > 0) {
      halide::UpdateOp update = f.updates[stage - 1];
      if (!update.getAt().empty()) {
        Block &at = update.getAt().front();
        if (at.getTerminator()->getOperand(dim) != at.getArgument(dim))
          continue;
      }
    }
    dims.push_back(dim);
  }
  return dims;
}

/// Threads along a dim: as many as there are places, a power of two, up to \p
/// most.
static int64_t threadsAlong(const Extent &extent, int64_t most) {
  if (!extent.fixed || *extent.fixed >= most)
    return most;
  return llvm::PowerOf2Ceil(std::max<int64_t>(1, *extent.fixed));
}

/// Whether the loops of dims that no thread runs along are the first dim of a
/// grid, inside of the blocks of the others. Each of their places has blocks of
/// its own, and of the other two dims of a grid CUDA counts 65535 blocks alone.
static bool outerDimsAreInside(KernelFunc &f) {
  return halide::getTarget(f.func).gpu == "cuda";
}

/// Maps \p stage of \p f: two inner dims to threads and blocks, the others
/// fused to blocks; reductions are loops of a thread. Where more dims are left
/// than fuse, the host launches a grid for each turn of the outermost.
static void mapToGrid(OpBuilder &b, KernelFunc &f, int64_t stage) {
  Location loc = f.func.getLoc();
  Value func = f.func.getResult();
  SmallVector<size_t> dims = dimsOfStage(f, stage);
  if (dims.empty()) {
    halide::GPUSingleThreadOp::create(b, loc, func, stage);
    return;
  }
  SmallVector<std::string> names = varsOf(f.func), order, threads, blocks;
  if (stage)
    for (Attribute r : f.updates[stage - 1].getRvars())
      order.push_back(cast<StringAttr>(r).str());
  int64_t left = kThreads;
  for (size_t dim : ArrayRef(dims).take_front(2)) {
    bool isLast = dims.size() == 1 || dim == dims[1];
    int64_t count = threadsAlong(f.extents[dim], isLast ? left : kInnerThreads);
    left /= count;
    threads.push_back(heed::format("{}t", names[dim]));
    blocks.push_back(names[dim]);
    halide::SplitOp::create(b, loc, func, stage, names[dim], names[dim],
                            threads.back(), count,
                            halide::TailStrategy::GuardWithIf);
  }
  SmallVector<std::string> outer;
  for (size_t dim : ArrayRef(dims).drop_front(std::min<size_t>(2, dims.size())))
    outer.push_back(names[dim]);
  // As many of them as fuseLoops makes one.
  size_t inside = outerDimsAreInside(f) ? std::min<size_t>(3, outer.size()) : 0;
  order.append(threads);
  order.append(outer.begin(), outer.begin() + inside);
  order.append(blocks);
  order.append(outer.begin() + inside, outer.end());
  SmallVector<StringRef> loops(order.begin(), order.end());
  if (loops.size() > 1)
    halide::ReorderOp::create(b, loc, func, stage, loops);
  if (!outer.empty())
    blocks.insert(inside ? blocks.begin() : blocks.end(),
                  fuseLoops(b, f.func, stage, outer, FusedBody::Alone).front());
  auto attr = [&](ArrayRef<std::string> loops) {
    return b.getStrArrayAttr(
        SmallVector<StringRef>(loops.begin(), loops.end()));
  };
  halide::GPUBlocksOp::create(b, loc, func, stage, attr(blocks));
  halide::GPUThreadsOp::create(b, loc, func, stage, attr(threads));
}

void heed::storePlainly(KernelInfo &kernel,
                        const llvm::SmallPtrSetImpl<Value> &done) {
  OpBuilder b = scheduleBuilder(kernel);
  SmallVector<KernelFunc *> outputs = outputsOf(kernel);
  for (KernelFunc &f : kernel.funcs) {
    bool isOutput = llvm::is_contained(outputs, &f);
    if (done.contains(f.func.getResult()) ||
        (f.role == FuncRole::Pure && !isOutput))
      continue;
    if (!isOutput)
      halide::ComputeRootOp::create(b, f.func.getLoc(), f.func.getResult());
    for (int64_t stage = 0, end = f.updates.size(); stage <= end; ++stage)
      mapToGrid(b, f, stage);
  }
}

static std::optional<FamilyPlan> matchOnGPU(const KernelFacts &,
                                            const halide::Target &) {
  return FamilyPlan{Benefit::Fallback, [](KernelInfo &kernel) {
                      storePlainly(kernel, llvm::SmallPtrSet<Value, 1>());
                      return true;
                    }};
}

namespace heed {
Family gpuPlainFamily() { return {"plain GPU", matchOnGPU}; }
} // namespace heed
