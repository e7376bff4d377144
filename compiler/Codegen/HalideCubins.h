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

/// Has ptxas, and a driver, give a thread of each kernel of \p module, for
/// CUDA, \p registers at most. Comes before any machine code.
void limitRegisters(Halide::Module &module, int64_t registers);

} // namespace heed

#endif // HEED_COMPILER_CODEGEN_HALIDECUBINS_H
