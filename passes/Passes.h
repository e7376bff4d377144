//===- Passes.h - creation and registration ---------------------*- C++ -*-===//
//
#ifndef HEED_PASSES_PASSES_H
#define HEED_PASSES_PASSES_H

#include "mlir/Pass/Pass.h"

namespace heed {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

/// Registers every pass of Passes.td under its name.
void registerPasses();

} // namespace heed

#endif
