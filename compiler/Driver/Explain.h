//===- Explain.h - what the passes did, for people or programs --*- C++ -*-===//

#ifndef HEED_COMPILER_DRIVER_EXPLAIN_H
#define HEED_COMPILER_DRIVER_EXPLAIN_H

namespace mlir {
class MLIRContext;
} // namespace mlir
namespace llvm {
class raw_ostream;
} // namespace llvm

namespace heed {

/// Prints every remark of passes that run in \p context to \p os, one a line,
/// each only once; \p json: as JSON objects.
void enableExplain(mlir::MLIRContext &context, llvm::raw_ostream &os,
                   bool json);

} // namespace heed

#endif // HEED_COMPILER_DRIVER_EXPLAIN_H
