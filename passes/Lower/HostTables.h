//===- HostTables.h - what the processor computes for a GPU -----*- C++ -*-===//
#ifndef HEED_PASSES_LOWER_HOSTTABLES_H
#define HEED_PASSES_LOWER_HOSTTABLES_H

#include "dialects/Halide/Target.h"
#include "passes/Lower/Summary.h"

#include "llvm/ADT/StringSet.h"

namespace heed {

/// Names of the kernels of \p callers that compute in f64 and read no tensor
/// but what such kernels write.
llvm::StringSet<> findHostTables(const KernelCalls &callers);

/// Whether \p kernel is one of them, lowered for \p target, the processor's of
/// its GPU.
inline bool isHostTable(mlir::Operation *kernel, const halide::Target &target) {
  return halide::isForGPU(kernel) && !target.isGPU();
}

} // namespace heed

#endif
