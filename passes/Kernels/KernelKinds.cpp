//===- KernelKinds.cpp - what an op of a model is as a kernel -------------===//
#include "passes/Kernels/KernelKinds.h"

#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/Computation.h"
#include "passes/Plan/RowBlocks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

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
  case KernelKind::Recurrence:
    return "recurrence";
  case KernelKind::ElementScan:
    return "element scan";
  case KernelKind::SumScan:
    return "sum scan";
  case KernelKind::TriangularSolve:
    return "triangular solve";
  case KernelKind::StateStep:
    return "state step";
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
             attn::AttentionOp, attn::RecurrenceOp, attn::ElementScanOp,
             attn::SumScanOp, attn::TriangularSolveOp>(op);
}

KernelKind heed::kernelKindOf(Operation *op) {
  if (op->hasAttr(kRowBlockAttr))
    return KernelKind::RowBlock;
  if (isa<attn::AttentionOp>(op))
    return KernelKind::Attention;
  if (isa<attn::RecurrenceOp>(op))
    return KernelKind::Recurrence;
  if (isa<attn::ElementScanOp>(op))
    return KernelKind::ElementScan;
  if (isa<attn::SumScanOp>(op))
    return KernelKind::SumScan;
  if (isa<attn::TriangularSolveOp>(op))
    return KernelKind::TriangularSolve;
  if (isa<attn::SoftmaxOp, attn::LogSoftmaxOp>(op))
    return KernelKind::Softmax;
  auto linalgOp = cast<linalg::LinalgOp>(op);
  if (linalgOp.getNumLoops() == linalgOp.getNumParallelLoops())
    return KernelKind::Elementwise;
  return isContraction(op) || isWindowSum(op) ? KernelKind::Contraction
                                              : KernelKind::Row;
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
