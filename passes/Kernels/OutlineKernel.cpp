//===- OutlineKernel.cpp - a cluster of ops becomes a kernel --------------===//
#include "passes/Kernels/OutlineKernel.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Kernels/MergeLoops.h"
#include "passes/Mutation.h"
#include "passes/Plan/RowBlocks.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace heed;

/// Makes neighbouring dims of \p kernel, which \p last ends, one wherever they
/// can be: of rows those alone that a sum runs over, for the others are tasks.
static SmallVector<RestoreResults>
mergeAllLoops(func::FuncOp kernel, KernelKind kind, Operation *last,
              OpBuilder &b, SmallVectorImpl<Value> &passed) {
  unsigned loops = 0, first = kind == KernelKind::Row ? ~0u : 0;
  kernel.walk([&](linalg::LinalgOp op) {
    loops = std::max<unsigned>(loops, op.getNumLoops());
    if (op.getNumReductionLoops())
      first = std::min<unsigned>(first, op.getNumParallelLoops());
  });
  SmallVector<RestoreResults> restore;
  for (unsigned loop = first; loop < loops && loop + 1 < loops; ++loop) {
    size_t before = restore.size();
    while (RestoreResults next = mergeLoops(kernel, loop, b, passed))
      restore.push_back(next);
    if (restore.size() > before)
      remarkDone(last, "attn-form-kernels",
                 loop ? "dims-merged" : "rows-merged",
                 loop ? "dims that lie together are one dim"
                      : "rows of a batch are rows of one matrix");
  }
  return restore;
}

namespace {

/// What a kernel computes: ops in order, and the values from outside that they
/// read.
struct KernelBody {
  SmallVector<Operation *> ops;
  llvm::SetVector<Value> arguments;
};

} // namespace

/// What is cheap is computed in the kernel, before its first use; everything
/// else from outside is an argument.
static KernelBody bodyOf(const Cluster &cluster) {
  llvm::SmallPtrSet<Operation *, 8> members(cluster.ops.begin(),
                                            cluster.ops.end()),
      placed;
  KernelBody body;
  auto place = [&](auto &&self, Operation *op) -> void {
    if (!placed.insert(op).second)
      return;
    llvm::SetVector<Value> inputs(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), inputs);
    for (Value input : inputs) {
      Operation *def = input.getDefiningOp();
      if (def && members.contains(def))
        continue;
      if (isCheap(def))
        self(self, def);
      else
        body.arguments.insert(input);
    }
    body.ops.push_back(op);
  };
  for (Operation *op : cluster.ops)
    place(place, op);
  return body;
}

/// The function of \p kind that computes \p results by \p body.
static func::FuncOp makeKernel(const KernelBody &body, ValueRange results,
                               KernelKind kind, Location loc) {
  OpBuilder b(results[0].getContext());
  ArrayRef<Value> arguments = body.arguments.getArrayRef();
  auto type =
      b.getFunctionType(TypeRange(ValueRange(arguments)), TypeRange(results));
  auto kernel = func::FuncOp::create(loc, "kernel", type);
  kernel.setPrivate();
  kernel->setAttr(attn::kKernelAttr, b.getUnitAttr());
  kernel->setAttr("attn.kind", b.getStringAttr(nameOf(kind)));
  Block *entry = kernel.addEntryBlock();
  b.setInsertionPointToStart(entry);
  IRMapping map;
  map.map(arguments, entry->getArguments());
  for (Operation *op : body.ops)
    b.clone(*op, map)->removeAttr(kRowBlockAttr);
  SmallVector<Value> returned;
  for (Value result : results)
    returned.push_back(map.lookup(result));
  func::ReturnOp::create(b, loc, returned);
  return kernel;
}

void heed::outlineKernel(const Cluster &cluster, func::FuncOp model,
                         llvm::StringMap<func::FuncOp> &known,
                         SymbolTable &symbols) {
  Operation *last = cluster.ops.back();
  Location loc = last->getLoc();
  SmallVector<Value> results;
  for (Value result : last->getResults())
    if (!result.use_empty())
      results.push_back(result);
  if (results.empty())
    return;

  KernelBody body = bodyOf(cluster);
  func::FuncOp kernel = makeKernel(body, results, cluster.kind, loc);
  SmallVector<Value> passed(body.arguments.getArrayRef());
  if (passed.size() > 1 && passed[0].getType() == passed[1].getType() &&
      mutated("form-kernels.swap-arguments"))
    std::swap(passed[0], passed[1]);
  OpBuilder b(last);
  SmallVector<RestoreResults> restore;
  if (cluster.kind == KernelKind::Contraction ||
      cluster.kind == KernelKind::Row)
    restore = mergeAllLoops(kernel, cluster.kind, last, b, passed);

  std::string symbol = format("{}_{}", model.getName(), nameOf(cluster.kind));
  llvm::replace(symbol, ' ', '_');
  size_t before = known.size();
  func::FuncOp same = shareKernel(kernel, symbol, known, symbols);
  if (known.size() == before)
    remarkDone(last, "attn-form-kernels", "shared",
               format("shares the kernel {}", same.getName()));
  b.setInsertionPoint(last);
  auto call = func::CallOp::create(b, loc, same, passed);
  SmallVector<Value> values(call.getResults());
  for (RestoreResults &next : llvm::reverse(restore))
    values = next(b, values);
  for (auto [result, value] : llvm::zip(results, values))
    result.replaceAllUsesWith(value);
  for (Operation *op : llvm::reverse(cluster.ops))
    op->erase();
}
