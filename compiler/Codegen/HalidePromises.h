// Promises about the region of a func (`halide.bound`, `halide.bound_extent`):
// one that is known to be wrong is an error at its op. Without that an edited
// number of a schedule could change results, since kernels check no promise.

#ifndef HEED_COMPILER_CODEGEN_HALIDEPROMISES_H
#define HEED_COMPILER_CODEGEN_HALIDEPROMISES_H

#include "dialects/Halide/HalideDialect.h"
#include <string>

namespace heed {

/// Whether libHalide's warning \p message says that an assertion can only fail.
bool saysGuaranteedToFail(llvm::StringRef message);

/// If \p message is about a promise: the op that made it, and the message in
/// our words. Null otherwise.
mlir::Operation *explainBrokenPromise(halide::PipelineOp pipeline,
                                      std::string &message);

} // namespace heed

#endif // HEED_COMPILER_CODEGEN_HALIDEPROMISES_H
