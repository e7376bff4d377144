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
/// once: every one as it comes, or what they say of attentions when \p context
/// ends. A line for each model and target says what it takes; it comes last, or
/// before those of attentions.
void enableExplain(mlir::MLIRContext &context, llvm::raw_ostream &os,
                   Explain form);

/// Tells the printer that all of \p module was compiled for \p target, which
/// took so many \p seconds; empty: for the only one.
void explainTarget(mlir::ModuleOp module, llvm::StringRef target,
                   double seconds);

} // namespace heed

#endif // HEED_COMPILER_DRIVER_EXPLAIN_H
