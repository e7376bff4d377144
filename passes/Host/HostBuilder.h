//===- HostBuilder.h - values and calls of lowered host code ----*- C++ -*-===//
//
// What every part of `attn-lower-host` writes: constants, memory on the stack,
// texts, calls of the runtime's functions, and memrefs over plain pointers.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_PASSES_HOST_HOSTBUILDER_H
#define HEED_PASSES_HOST_HOSTBUILDER_H

#include "dialects/Halide/HalideDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace heed {
namespace attn {
class WriteStateOp;
} // namespace attn

class HostBuilder {
public:
  explicit HostBuilder(mlir::ModuleOp module);

  static int64_t elementBytes(mlir::Type type);

  /// The model's handle, in the function that holds \p op.
  mlir::Value handle(mlir::Operation *op);
  mlir::Value i32(mlir::OpBuilder &b, mlir::Location loc, int64_t value);
  mlir::Value i64(mlir::OpBuilder &b, mlir::Location loc, int64_t value);
  mlir::Value toI64(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value);
  mlir::Value null(mlir::OpBuilder &b, mlir::Location loc);
  /// \p base advanced by \p bytes.
  mlir::Value at(mlir::OpBuilder &b, mlir::Location loc, mlir::Value base,
                 int64_t bytes);

  /// Stack memory in the entry block of the function that holds \p user, so
  /// that loops don't grow it.
  mlir::Value stack(mlir::OpBuilder &b, mlir::Operation *user, int64_t bytes);
  /// \p values in an array on the stack; null if there are none.
  mlir::Value i64Array(mlir::OpBuilder &b, mlir::Operation *user,
                       mlir::ValueRange values);
  /// A C string.
  mlir::Value text(mlir::OpBuilder &b, mlir::Location loc,
                   llvm::StringRef value);
  /// Calls the C function \p name. \p result may be null: it returns nothing.
  mlir::Value call(mlir::OpBuilder &b, mlir::Location loc, llvm::StringRef name,
                   mlir::Type result, mlir::ValueRange arguments,
                   bool returns = true);

  /// A dense row-major memref over \p data; \p sizes are i64, all of them.
  mlir::Value memrefOver(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::MemRefType type, mlir::Value data,
                         mlir::ValueRange sizes);
  /// The first element of a memref, and its sizes and strides as i64.
  struct Strided {
    mlir::Value data;
    llvm::SmallVector<mlir::Value> sizes, strides;
  };
  Strided decompose(mlir::OpBuilder &b, mlir::Location loc, mlir::Value memref);

  mlir::ModuleOp module;
  mlir::LLVM::LLVMPointerType pointer;

private:
  llvm::StringMap<mlir::LLVM::GlobalOp> texts;
};

/// Calls the runtime's function that writes a state (runtime/host.h).
void lowerWriteState(HostBuilder &host, mlir::OpBuilder &b,
                     attn::WriteStateOp op);

/// What \p op costs as a call of \p pipeline with \p arguments, which have the
/// names of its inputs: floating-point operations, and bytes that it must move.
std::pair<mlir::Value, mlir::Value>
costOfCall(HostBuilder &host, mlir::OpBuilder &b, halide::CallOp op,
           const llvm::StringMap<mlir::Value> &arguments,
           halide::PipelineOp pipeline);

/// What a lowered module holds, for its description.
struct HostContents {
  std::string prefix;
  llvm::ArrayRef<mlir::Attribute> params;
  llvm::ArrayRef<std::string> kernels;
};

/// Makes the C functions that the runtime calls: two per model, one for what
/// runs when it is opened. Writes `attn.description`.
mlir::LogicalResult
makeHostEntries(HostBuilder &host, llvm::ArrayRef<mlir::func::FuncOp> functions,
                const HostContents &contents);

} // namespace heed

#endif // HEED_PASSES_HOST_HOSTBUILDER_H
