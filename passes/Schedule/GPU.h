//===- GPU.h - what the families of GPUs share ------------------*- C++ -*-===//
#ifndef HEED_PASSES_SCHEDULE_GPU_H
#define HEED_PASSES_SCHEDULE_GPU_H

#include "passes/Schedule/Schedule.h"

namespace heed {

/// Stores \p funcs, and each output, whole in the device's memory, by a grid of
/// threads with an element each; a func of \p done has its schedule already.
void storePlainly(KernelInfo &kernel,
                  const llvm::SmallPtrSetImpl<mlir::Value> &done);

/// A tile of a product that a block of threads computes: rows x columns, as
/// many of each a thread, and the terms of a step, which lie in shared memory.
struct GPUTile {
  int64_t rows, columns, ownRows, ownColumns;

  static constexpr int64_t steps = 16;
  int64_t threadsX() const { return columns / ownColumns; }
  int64_t threadsY() const { return rows / ownRows; }
  int64_t threads() const { return threadsX() * threadsY(); }
  /// Product FMAs over the instructions of a step.
  double slots() const;
};

/// Whether \p out reads \p sum as f64. LLVM then widens all of a thread's sums
/// where the loop over steps ends, each to two registers.
bool isWidened(mlir::Value sum, mlir::Value out);

/// The tile that computes \p count products of \p rows x \p columns soonest, by
/// what is known of their extents. A thread's sums take \p sumRegisters each.
GPUTile chooseGPUTile(KnownExtent rows, KnownExtent columns, int64_t count,
                      int64_t sumRegisters, const halide::Target &target);

} // namespace heed

#endif
