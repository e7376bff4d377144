//===- Contract.h - what the contracts between stations share ---*- C++ -*-===//
//
// Each attn-verify pass checks the numbered rules of one section of docs/ir.md;
// a message ends with the number of its rule.
#ifndef HEED_PASSES_CONTRACT_H
#define HEED_PASSES_CONTRACT_H

#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace heed {

/// Calls \p check on every op of \p root in order until one of them fails.
inline mlir::LogicalResult
checkEach(mlir::Operation *root,
          llvm::function_ref<mlir::LogicalResult(mlir::Operation *)> check) {
  return mlir::failure(
      root->walk<mlir::WalkOrder::PreOrder>(
              [&](mlir::Operation *op) { return mlir::WalkResult(check(op)); })
          .wasInterrupted());
}

/// Whether \p type is one of \p scalars, given as MLIR writes them.
bool isScalarOf(mlir::Type type, llvm::ArrayRef<llvm::StringRef> scalars);

/// Whether the op's name is one of \p names, or begins with one that ends in
/// '.': a whole dialect.
bool isNamed(mlir::Operation *op, llvm::ArrayRef<llvm::StringRef> names);

/// \p rule of sections 3 and 4: \p op may stand in host code on tensors, beside
/// what \p further names.
mlir::LogicalResult checkHostOp(mlir::Operation *op, llvm::StringRef rule,
                                llvm::ArrayRef<llvm::StringRef> further);

} // namespace heed
#endif
