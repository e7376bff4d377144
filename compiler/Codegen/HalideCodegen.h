// Compiles halide.pipelines to machine code. No Halide type appears here: users
// are compiled without exceptions.

#ifndef HEED_COMPILER_CODEGEN_HALIDECODEGEN_H
#define HEED_COMPILER_CODEGEN_HALIDECODEGEN_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <string>
#include <vector>

namespace heed::halide {
struct Target;
} // namespace heed::halide

namespace heed {

enum class HalideOutput {
  Object,    ///< relocatable object code
  Statement, ///< Halide's loop nest as text, after lowering
  Assembly,  ///< the target's assembly text
};

/// Objects that were compiled before. Const functions: what is found is none of
/// a compilation's state.
class KernelStore {
public:
  virtual ~KernelStore() = default;
  /// The object of \p content, which is all that decides on its code, but for
  /// this compiler and its libraries.
  virtual std::optional<std::string> find(llvm::StringRef content) const = 0;
  virtual void store(llvm::StringRef content, llvm::StringRef object) const = 0;
};

/// How long a kernel may take to compile unless somebody says otherwise.
constexpr unsigned kKernelSeconds = 300;

/// Machine code that is kept beside CUDA's PTX.
struct CudaCode {
  std::vector<int> archs; ///< 90 for sm_90; empty: none
  std::string assembler;  ///< ptxas
  std::string identity;   ///< another one's is another
};

struct HalideCodegenOptions {
  HalideOutput output = HalideOutput::Object;
  /// Put before each pipeline's name to make the C function's.
  std::string symbolPrefix;
  /// Kernels compiled at a time; 0 for as many as the compiling machine has
  /// cores.
  unsigned jobs = 0;
  /// Kernels check shapes, strides and bounds of what they are passed, and
  /// answer bounds queries. Without, they trust the host, which has checked.
  bool checks = false;
  /// Kernels check the promises of their schedule (`halide.bound`,
  /// `halide.bound_extent`), and nothing else: for schedules that a person may
  /// have edited.
  bool promises = false;
  /// What libHalide warns of is a warning at its op, for schedules that a
  /// person wrote; else a remark.
  bool warnings = true;
  /// Seconds of wall time after which a kernel's compilation is ended: an
  /// error. Kernels take some, on a crowded machine ten times as many.
  unsigned seconds = kKernelSeconds;
  /// The first C argument is a `void *` that every call of the runtime gets.
  bool userContext = true;
  CudaCode cudaCode;
  /// What the calling process does once while kernels compile; if it fails,
  /// they are ended.
  llvm::function_ref<mlir::LogicalResult()> meanwhile;
  /// Where objects are looked up before they are compiled, and kept; may be
  /// null.
  const KernelStore *store = nullptr;
};

struct CompiledKernel {
  std::string name;     ///< the pipeline's, without prefix
  std::string symbol;   ///< the C function's
  std::string bytes;    ///< object code or text, as the options say
  double seconds = 0;   ///< wall time of its compilation
  double processor = 0; ///< its processor time, in seconds
  bool cached = false;  ///< it was compiled before
};

/// Compiles every pipeline of \p module, in the order of the module, for \p
/// target. The same input gives the same bytes: each kernel is compiled in a
/// process of its own, since libHalide numbers its names process-wide. Fails
/// with diagnostics at the ops that libHalide rejects; the other kernels are
/// compiled then too.
mlir::LogicalResult
compileHalidePipelines(mlir::ModuleOp module, const halide::Target &target,
                       const HalideCodegenOptions &options,
                       llvm::SmallVectorImpl<CompiledKernel> &kernels);

/// The part of Halide's runtime that kernels for \p target call (memory, tasks,
/// errors), as one object. Its functions are weak, so that a program may bring
/// its own. Fails with a sentence in \p error.
mlir::LogicalResult compileHalideRuntime(const halide::Target &target,
                                         bool userContext, std::string &object,
                                         std::string &error);

} // namespace heed

#endif // HEED_COMPILER_CODEGEN_HALIDECODEGEN_H
