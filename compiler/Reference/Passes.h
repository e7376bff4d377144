//===- Passes.h - the passes of the reference backend -----------*- C++ -*-===//
#ifndef HEED_COMPILER_REFERENCE_PASSES_H
#define HEED_COMPILER_REFERENCE_PASSES_H

#include "mlir/Pass/Pass.h"

namespace heed::reference {

#define GEN_PASS_DECL
#include "compiler/Reference/Passes.h.inc"

/// Registers every pass of Passes.td under its name.
void registerPasses();

} // namespace heed::reference

#endif
