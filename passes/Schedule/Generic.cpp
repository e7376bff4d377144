//===- Generic.cpp - the schedule that is right for every kernel ----------===//
//
// Each func with a reduction, and each output, is stored whole; what is pure
// between them is inlined. The outermost loops run in parallel. No family of
// its own should be slower; this one only has to be right.
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed;

/// The sums of one block of \p sum: as many as its loop over blocks needs, in
/// lanes.
static void scheduleBlock(OpBuilder &b, KernelInfo &kernel, KernelFunc &block,
                          Value sum, const halide::Target &target) {
  Location loc = block.func.getLoc();
  Value func = block.func.getResult();
  std::string at =
      cast<StringAttr>(kernel.find(sum)->updates[0].getRvars()[0]).str();
  halide::ComputeAtOp::create(b, loc, func, sum, at);
  SmallVector<std::string> vars = varsOf(block.func);
  Extent &first = block.extents[0];
  int64_t lanes = target.lanes(std::max(32u, widestBits(block.func)));
  // A sum of no dims has only the number of the block.
  if (vars.size() == 1 || (first.fixed && *first.fixed < lanes))
    return;
  int64_t vectors =
      vectorsOfSum(block, lanes, /*isAlone=*/vars.size() == 2, target);
  for (int64_t stage = 0; stage < 2; ++stage) {
    SmallVector<std::string> order =
        vectorizeSum(b, block.func, stage, lanes, vectors);
    if (stage)
      for (Attribute r : block.updates[0].getRvars())
        order.push_back(cast<StringAttr>(r).str());
    order.append(vars.begin(), vars.end());
    SmallVector<StringRef> names(order.begin(), order.end());
    halide::ReorderOp::create(b, loc, func, stage, names);
  }
}

static void scheduleGeneric(KernelInfo &kernel, const halide::Target &target) {
  OpBuilder b = scheduleBuilder(kernel);
  // Long sums are sums of blocks, each computed where it is added.
  SmallVector<Value> sums;
  for (KernelFunc &f : kernel.funcs)
    if (f.role == FuncRole::Reduction && f.updates.size() == 1)
      sums.push_back(f.func.getResult());
  DenseMap<Value, Value> blocks, blockOf;
  for (Value sum : sums)
    if (Value block = sumByBlocks(kernel, sum, longestSum)) {
      blocks[block] = sum;
      blockOf[sum] = block;
    }
  SmallVector<KernelFunc *> outputs = outputsOf(kernel);
  for (KernelFunc &f : kernel.funcs) {
    bool isOutput = llvm::is_contained(outputs, &f);
    if (f.role == FuncRole::Pure && !isOutput)
      continue;
    if (Value sum = blocks.lookup(f.func.getResult())) {
      scheduleBlock(b, kernel, f, sum, target);
      continue;
    }
    Location loc = f.func.getLoc();
    if (!isOutput)
      halide::ComputeRootOp::create(b, loc, f.func.getResult());
    SmallVector<std::string> vars = varsOf(f.func);
    if (vars.empty())
      continue;
    int64_t lanes = target.lanes(std::max(32u, widestBits(f.func)));
    bool tooShort = f.extents[0].fixed && *f.extents[0].fixed < lanes;
    Value block = blockOf.lookup(f.func.getResult());
    int64_t vectors = vectorsOfSum(block ? *kernel.find(block) : f, lanes,
                                   vars.size() == 1, target);
    for (int64_t stage = 0, end = f.updates.size(); stage <= end; ++stage) {
      // Lanes inside of a reduction, tasks outside of it.
      SmallVector<std::string> order;
      if (!tooShort)
        order = vectorizeSum(b, f.func, stage, lanes, vectors);
      if (stage)
        for (Attribute r : f.updates[stage - 1].getRvars())
          order.push_back(cast<StringAttr>(r).str());
      order.append(vars.begin(), vars.end());
      SmallVector<StringRef> names(order.begin(), order.end());
      if (names.size() > 1)
        halide::ReorderOp::create(b, loc, f.func.getResult(), stage, names);
      parallelOuter(b, f.func, stage, vars, vars.size() > 1 ? 1 : 0,
                    FusedBody::Alone);
    }
  }
}

static std::optional<FamilyPlan> matchAll(const KernelFacts &,
                                          const halide::Target &target) {
  return FamilyPlan{Benefit::Fallback, [&target](KernelInfo &kernel) {
                      scheduleGeneric(kernel, target);
                      return true;
                    }};
}

namespace heed {
Family genericFamily() { return {"generic", matchAll}; }
} // namespace heed
