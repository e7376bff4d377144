//===- Remarks.h - what a pass did, or why not ------------------*- C++ -*-===//
//
// One sentence each, through MLIR's remark engine: category is the pass, name
// the op or model concerned. `--explain=all` prints them; `heed-opt
// --remarks-filter=attn-.*` does the same for a pass run alone.
#ifndef HEED_PASSES_REMARKS_H
#define HEED_PASSES_REMARKS_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/Twine.h"

namespace heed {

/// \p pass and \p name outlive the call (string literals). \p op says where.
inline mlir::remark::RemarkOpts
remarkOptions(mlir::Operation *op, llvm::StringRef pass, llvm::StringRef name) {
  auto *function = llvm::isa<mlir::FunctionOpInterface>(op)
                       ? op
                       : op->getParentOfType<mlir::FunctionOpInterface>();
  auto options = mlir::remark::RemarkOpts::name(name).category(pass);
  if (function)
    options = options.function(
        mlir::cast<mlir::FunctionOpInterface>(function).getName());
  return options;
}

/// \p pass did \p what.
inline void remarkDone(mlir::Operation *op, llvm::StringRef pass,
                       llvm::StringRef name, const llvm::Twine &what) {
  mlir::remark::passed(op->getLoc(), remarkOptions(op, pass, name))
      << what.str();
}
/// \p pass left \p op alone: \p why.
inline void remarkDeclined(mlir::Operation *op, llvm::StringRef pass,
                           llvm::StringRef name, const llvm::Twine &why) {
  mlir::remark::missed(op->getLoc(), remarkOptions(op, pass, name))
      << why.str();
}
/// \p pass found out \p what without changing anything.
inline void remarkFound(mlir::Operation *op, llvm::StringRef pass,
                        llvm::StringRef name, const llvm::Twine &what) {
  mlir::remark::analysis(op->getLoc(), remarkOptions(op, pass, name))
      << what.str();
}

} // namespace heed
#endif
