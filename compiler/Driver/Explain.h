//===- Explain.h - what the passes did, for people or programs --*- C++ -*-===//

#ifndef HEED_COMPILER_DRIVER_EXPLAIN_H
#define HEED_COMPILER_DRIVER_EXPLAIN_H

#include "compiler/Driver/Compile.h"

namespace mlir {
class MLIRContext;
} // namespace mlir
namespace llvm {
class raw_ostream;
} // namespace llvm

namespace heed {

/// Prints the remarks of passes that run in \p context to \p os, each only
/// once: every one as it comes, or a summary when \p context ends.
void enableExplain(mlir::MLIRContext &context, llvm::raw_ostream &os,
                   Explain form);

} // namespace heed

#endif // HEED_COMPILER_DRIVER_EXPLAIN_H
