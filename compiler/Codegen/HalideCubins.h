// CUDA's machine code beside a kernel's PTX.

#ifndef HEED_COMPILER_CODEGEN_HALIDECUBINS_H
#define HEED_COMPILER_CODEGEN_HALIDECUBINS_H

#include "Halide.h"
#include "compiler/Codegen/HalideCodegen.h"

namespace heed {

/// \p module, whose PTX has machine code for \p code's architectures behind it
/// (runtime/CudaCode.h). Calls ptxas; false and a sentence if that fails.
bool addCubins(Halide::Module &module, const CudaCode &code,
               std::string &error);

} // namespace heed

#endif // HEED_COMPILER_CODEGEN_HALIDECUBINS_H
