//===- HalideLowering.h - last changes of a kernel's loop nest --*- C++ -*-===//
#ifndef HEED_COMPILER_CODEGEN_HALIDELOWERING_H
#define HEED_COMPILER_CODEGEN_HALIDELOWERING_H

#include <Halide.h>

namespace heed {

/// Adds to \p pipeline what is changed of its loop nest before libHalide makes
/// code for \p target of it. With \p promises only those of its checks stay
/// that hold promises to what a schedule says.
void addLastChanges(Halide::Pipeline &pipeline, const Halide::Target &target,
                    bool promises);

/// Keeps what is computed for a block of a GPU and stored in registers there
/// (HalideRegisters.cpp).
Halide::Internal::IRMutator *makeRegisterPass();

/// Leaves out stores of what has just been loaded from there
/// (HalideOwnStores.cpp).
Halide::Internal::IRMutator *makeOwnStorePass();

/// Makes one part of stages of a block of a GPU that are under one condition
/// (HalideTurns.cpp).
Halide::Internal::IRMutator *makeTurnPass();

} // namespace heed

#endif
