//===- HostTables.cpp - what the processor computes for a GPU -------------===//
//
// Tables of positions are f64 for their exactness: angles, slopes, buckets of
// distances. Not every device has f64, and on many that do it is slow, and a
// power or a cosine of it is long code. The processor computes such a table
// beside the device, which gets it once.
#include "passes/Lower/HostTables.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heed;

/// More than constants of it, as states begin with.
static bool computesDoubles(Operation *kernel) {
  return kernel
      ->walk([&](Operation *op) {
        bool computes = isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
                            op->getDialect()) &&
                        !isa<arith::ConstantOp, arith::ExtFOp>(op) &&
                        llvm::any_of(op->getResultTypes(),
                                     [](Type type) { return type.isF64(); });
        return computes ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

llvm::StringSet<> heed::findHostTables(const KernelCalls &callers) {
  llvm::StringSet<> found;
  auto isOnHost = [&](Value input) {
    auto call = input.getDefiningOp<halide::CallOp>();
    return !isa<ShapedType>(input.getType()) ||
           (call && found.contains(call.getCallee()));
  };
  for (size_t before = 1; before != found.size();) {
    before = found.size();
    for (const auto &[kernel, calls] : callers)
      if (computesDoubles(kernel) &&
          llvm::all_of(calls, [&](halide::CallOp call) {
            return llvm::all_of(call.getInputs(), isOnHost);
          }))
        found.insert(cast<func::FuncOp>(kernel).getName());
  }
  return found;
}
