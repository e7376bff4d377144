//===- StoredTensors.h - tensors between kernels as text --------*- C++ -*-===//
#ifndef HEED_PASSES_PLAN_STOREDTENSORS_H
#define HEED_PASSES_PLAN_STOREDTENSORS_H

#include "mlir/IR/Value.h"
#include <string>

namespace heed {

/// "[B, H, N + M - 1, 64] of f32": the extents of \p tensor in the model's
/// words, "?" for one that no input tells.
std::string storedText(mlir::Value tensor);

/// "512*B*N bytes": what it takes to go over \p tensor so many times, to write
/// it once and read it once if nothing else is said; empty if an extent has no
/// words.
std::string trafficText(mlir::Value tensor, unsigned times = 2);

} // namespace heed

#endif
