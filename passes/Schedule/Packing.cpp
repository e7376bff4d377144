//===- Packing.cpp - weights in the layout that a kernel reads fastest ----===//
//
// A schedule may find that a func depends on weights alone: it then becomes the
// output of a pipeline of its own, and the kernel reads it as an input. The
// host calls the one before the other; attn-hoist-weights moves that call to
// where the model is opened.
//
//===----------------------------------------------------------------------===//

#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace heed;

/// Adds to \p slice the ops of the pipeline that \p op is computed from, in an
/// order in which they may stand. False if one of them is not the same in every
/// call.
static bool collectSources(const KernelInfo &kernel, Operation *op,
                           llvm::SetVector<Operation *> &slice) {
  if (slice.contains(op))
    return true;
  if (isa<halide::BufferOp>(op)) {
    if (!kernel.weights.contains(op->getResult(0)))
      return false;
  } else if (isa<halide::FuncOp>(op)) {
    // Updates would have to move along.
    for (Operation *user : op->getResult(0).getUsers())
      if (isa<halide::UpdateOp>(user))
        return false;
  } else if (!isa<arith::ArithDialect>(op->getDialect())) {
    return false;
  }
  bool ok = true;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (def && !op->isProperAncestor(def))
        ok = ok && collectSources(kernel, def, slice);
    }
  });
  slice.insert(op);
  return ok;
}

/// Statements about a buffer, which hold wherever it is passed.
static bool isStatement(Operation *op) {
  return isa<halide::SetBoundsOp, halide::SetStrideOp,
             halide::SetHostAlignmentOp>(op);
}

/// Clones what stands outside of funcs: arithmetic on constants.
static void cloneConstant(OpBuilder &b, Value value, IRMapping &map) {
  Operation *def = value.getDefiningOp();
  if (map.contains(value) || !def)
    return;
  for (Value operand : def->getOperands())
    cloneConstant(b, operand, map);
  b.clone(*def, map);
}

/// Clones \p slice to \p b, with what is stated about its buffers, and notes
/// these as inputs of \p packing.
static void cloneSources(OpBuilder &b,
                         const llvm::SetVector<Operation *> &slice,
                         IRMapping &map, Packing &packing) {
  for (Operation *op : slice) {
    b.clone(*op, map);
    if (!isa<halide::BufferOp>(op))
      continue;
    packing.inputs.push_back(cast<halide::BufferOp>(op).getName().str());
    SmallVector<Operation *> users(op->getResult(0).getUsers());
    for (Operation *user : llvm::reverse(users)) {
      if (!isStatement(user))
        continue;
      for (Value operand : user->getOperands())
        cloneConstant(b, operand, map);
      b.clone(*user, map);
    }
  }
}

Value heed::packOnce(
    KernelInfo &kernel, Value func,
    llvm::function_ref<void(OpBuilder &, KernelFunc &)> schedule) {
  KernelFunc *found = kernel.find(func);
  llvm::SetVector<Operation *> slice;
  if (found->role != FuncRole::Pure ||
      !collectSources(kernel, found->func, slice))
    return {};
  Packing packing;
  for (Extent &extent : llvm::reverse(found->extents)) {
    if (!extent.fixed)
      return {};
    packing.sizes.push_back(*extent.fixed);
  }
  Location loc = found->func.getLoc();
  packing.element = halide::getElementTypes(func).front();
  std::string name = packing.name = found->func.getName().str();
  SmallVector<Operation *> inputs = kernel.pipeline.getInputs();

  OpBuilder b(kernel.pipeline);
  packing.pipeline = halide::PipelineOp::create(
      b, loc, heed::format("{}_pack", kernel.pipeline.getSymName()));
  b.setInsertionPointToStart(&packing.pipeline.getBody().front());
  IRMapping map;
  cloneSources(b, slice, map, packing);
  KernelFunc own = *found;
  own.func = cast<halide::FuncOp>(map.lookup(func).getDefiningOp());
  halide::OutputOp::create(b, loc, own.func.getResult());
  for (auto [dim, extent] : llvm::enumerate(own.extents))
    halide::SetBoundsOp::create(b, loc, own.func.getResult(), dim, i32(b, 0),
                                i32(b, *extent.fixed));
  schedule(b, own);

  // The kernel's new input, after the others.
  b.setInsertionPointAfter(inputs.back());
  Value buffer = halide::BufferOp::create(
      b, loc, name, int64_t(packing.sizes.size()), packing.element);
  int64_t stride = 1;
  for (auto [dim, size] : llvm::enumerate(llvm::reverse(packing.sizes))) {
    halide::SetBoundsOp::create(b, loc, buffer, dim, i32(b, 0), i32(b, size));
    if (dim)
      halide::SetStrideOp::create(b, loc, buffer, dim, i32(b, stride));
    stride *= size;
  }
  func.replaceAllUsesWith(buffer);
  halide::FuncOp old = found->func;
  kernel.funcs.remove_if([&](KernelFunc &f) { return f.func == old; });
  old.erase();
  kernel.packings.push_back(std::move(packing));
  return buffer;
}

void heed::dropUnreadBuffers(KernelInfo &kernel) {
  for (Operation *input : kernel.pipeline.getInputs()) {
    if (!isa<halide::BufferOp>(input) ||
        !llvm::all_of(input->getResult(0).getUsers(), isStatement))
      continue;
    for (Operation *user :
         llvm::make_early_inc_range(input->getResult(0).getUsers()))
      user->erase();
    input->erase();
  }
}
