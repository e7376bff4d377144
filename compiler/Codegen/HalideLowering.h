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

} // namespace heed

#endif
