// Where libHalide's late errors belong. It speaks of funcs, loops and
// allocations by name; a person who edits a schedule wants the directive.

#ifndef HEED_COMPILER_CODEGEN_HALIDEBLAME_H
#define HEED_COMPILER_CODEGEN_HALIDEBLAME_H

#include "dialects/Halide/HalideDialect.h"
#include <string>

namespace heed {

/// Whether libHalide's warning \p message says that an assertion can only fail.
bool saysGuaranteedToFail(llvm::StringRef message);

/// The op of \p pipeline that \p message is about: a directive if it names one
/// for certain, else the first func that it names, else the pipeline. What has
/// a counterpart in the dialect's rules is said in their words.
mlir::Operation *blame(halide::PipelineOp pipeline, std::string &message);

/// The directive that makes libHalide's LLVM fail with \p assertion, and in
/// \p why the reason. Null if it is not known.
mlir::Operation *blameCrash(halide::PipelineOp pipeline,
                            llvm::StringRef assertion, std::string &why);

} // namespace heed

#endif // HEED_COMPILER_CODEGEN_HALIDEBLAME_H
