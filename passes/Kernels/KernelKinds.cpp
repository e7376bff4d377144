//===- KernelKinds.cpp - what an op of a model is as a kernel -------------===//
#include "passes/Kernels/KernelKinds.h"

#include "dialects/Attn/Dialect.h"
#include "passes/Plan/RowBlocks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace heed;

StringRef heed::nameOf(KernelKind kind) {
  switch (kind) {
  case KernelKind::Elementwise:
    return "elementwise";
  case KernelKind::Row:
    return "row";
  case KernelKind::Contraction:
    return "contraction";
  case KernelKind::Softmax:
    return "softmax";
  case KernelKind::Attention:
    return "attention";
  case KernelKind::RowBlock:
    return "row block";
  }
  llvm_unreachable("kind of kernel");
}

bool heed::isCheap(Operation *op) {
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op))
    return !isa<ElementsAttr>(constant.getValue()) ||
           isa<SplatElementsAttr>(constant.getValue());
  return isa_and_nonnull<tensor::EmptyOp, linalg::FillOp>(op);
}

bool heed::isCompute(Operation *op) {
  return isa<linalg::LinalgOp, attn::SoftmaxOp, attn::LogSoftmaxOp,
             attn::AttentionOp>(op);
}

static bool isElementwise(Operation *op) {
  auto generic = dyn_cast<linalg::LinalgOp>(op);
  return generic && generic.getNumLoops() == generic.getNumParallelLoops();
}

/// The loops that \p value inside a body is computed from.
static void collectLoops(Value value, llvm::SmallBitVector &loops) {
  Operation *def = value.getDefiningOp();
  if (!def)
    return;
  if (auto index = dyn_cast<linalg::IndexOp>(def))
    loops.set(index.getDim());
  for (Value operand : def->getOperands())
    collectLoops(operand, loops);
}

/// A reduction of which at least two reads leave out a parallel loop: each of
/// their elements is used many times.
static bool isContraction(linalg::LinalgOp op) {
  unsigned loops = op.getNumLoops();
  llvm::SmallBitVector parallel(loops);
  for (auto [dim, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
    if (iterator == utils::IteratorType::parallel)
      parallel.set(dim);
  if (parallel.all())
    return false;
  unsigned reused = 0;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    if (!isa<RankedTensorType>(operand->get().getType()) ||
        operand->get().getDefiningOp<tensor::EmptyOp>())
      continue;
    AffineMap map = op.getMatchingIndexingMap(operand);
    llvm::SmallBitVector used(loops);
    for (unsigned dim = 0; dim < loops; ++dim)
      used[dim] = map.isFunctionOfDim(dim);
    reused += parallel.test(used);
  }
  op->walk([&](tensor::ExtractOp extract) {
    llvm::SmallBitVector used(loops);
    for (Value index : extract.getIndices())
      collectLoops(index, used);
    reused += parallel.test(used);
  });
  return reused >= 2;
}

KernelKind heed::kernelKindOf(Operation *op) {
  if (op->hasAttr(kRowBlockAttr))
    return KernelKind::RowBlock;
  if (isa<attn::AttentionOp>(op))
    return KernelKind::Attention;
  if (isa<attn::SoftmaxOp, attn::LogSoftmaxOp>(op))
    return KernelKind::Softmax;
  auto linalgOp = cast<linalg::LinalgOp>(op);
  if (isElementwise(op))
    return KernelKind::Elementwise;
  return isContraction(linalgOp) ? KernelKind::Contraction : KernelKind::Row;
}

unsigned heed::costOfElement(Operation *op) {
  unsigned cost = 0;
  op->walk([&](Operation *inner) {
    if (inner->getDialect() && isa<math::MathDialect>(inner->getDialect()))
      cost += 8;
    else if (isa<arith::ArithDialect>(inner->getDialect()) &&
             !isa<arith::ConstantOp>(inner))
      cost += 1;
  });
  return cost;
}

bool heed::readsInPlace(Operation *user, Value value) {
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(user->getRegions(), captures);
  if (captures.contains(value))
    return false;
  auto op = dyn_cast<linalg::LinalgOp>(user);
  if (!op)
    return isa<attn::SoftmaxOp, attn::LogSoftmaxOp>(user);
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    if (operand.get() != value)
      return true;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    return isElementwise(user) ? map == out : map.isIdentity();
  });
}

func::FuncOp heed::shareKernel(func::FuncOp kernel, StringRef name,
                               llvm::StringMap<func::FuncOp> &known,
                               SymbolTable &symbols) {
  std::string text; // without names
  llvm::raw_string_ostream os(text);
  kernel.print(os, OpPrintingFlags().useLocalScope().printGenericOpForm());
  func::FuncOp &same = known[text];
  if (same) {
    kernel.erase();
  } else {
    kernel.setName(name);
    symbols.insert(kernel); // makes the name unique
    same = kernel;
  }
  return same;
}
