//===- Compile.h - from a source to an artefact -----------------*- C++ -*-===//
//
// What heedc does, as a function: heed-check compiles in process with it.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_COMPILER_DRIVER_COMPILE_H
#define HEED_COMPILER_DRIVER_COMPILE_H

#include "frontend/Common/Types.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class PassManager;
} // namespace mlir

namespace heed {

enum class Emit {
  Heed,
  Ast,
  Attn,
  Mask,
  Halide,
  Stmt,
  LLVM,
  Asm,
  Obj,
  Lib,
  Shared,
  Header,
  Exe
};
enum class Backend { Halide, Reference };
/// Summary: for each attention what was done of it and why no more; All: every
/// remark; Json: every remark as an object.
enum class Explain { No, Summary, All, Json };

struct CompileOptions {
  /// A .heed or .mlir file, a Hugging Face checkpoint's folder, or "-". Such a
  /// folder has the config and, unless others are given, the weights.
  std::string input;
  /// Empty: the input's name with the ending of its kind, for text "-".
  std::string output;
  Emit emit = Emit::Exe;
  Backend backend = Backend::Halide;
  /// One, or several with commas: the runtime takes the best that the
  /// processor can run.
  std::string target = "host";
  std::vector<std::string> settings, weights, includes;
  /// Data for Emit::Mask: name=number,number,..
  std::vector<std::string> inputs;
  HeldType weightsType = HeldType::Stored, stateType = HeldType::Stored;
  std::string modelDir;
  /// Which model of the file; empty: the last one.
  std::string model;
  /// What public symbols begin with; empty: the model's name.
  std::string prefix;
  Explain explain = Explain::No;
  /// BF16: what meets a bf16 weight in a product is rounded to bf16.
  HeldType products = HeldType::F32;
  bool unchecked = false, fastMath = false, timePasses = false,
       saveTemps = false;
  /// Kernels count the pairs of a query and a key that they compute.
  bool countPairs = false;
  /// What is done, file by file and command by command, on stderr.
  bool verbose = false;
  /// A rule of make that says what the output was made of is written, to
  /// depfile or, if that is empty, to the output's name with `.d` after it.
  bool withDepfile = false;
  std::string depfile;
  /// Kernels that were compiled before are taken from the user's cache.
  bool cache = true;
  /// For heed-check: the reference's further results, the reference without
  /// f64, and kernels without the last pass on the host.
  bool reportScores = false, declaredTypes = false, memoryPlan = true;
  /// For heed-check: what the reference rounds to 16 bits is that part of
  /// itself larger before.
  double nudge = 0;
  /// Kernels check what their schedules promise, as those of IR that a person
  /// edited do.
  bool checkPromises = false;
  unsigned optLevel = 2;
  /// Seconds that a kernel may take to compile; nothing: the default.
  std::optional<unsigned> kernelTimeout;
  /// Architectures for which CUDA's machine code is kept, as "sm_90".
  std::vector<std::string> cudaArchs;
  /// Where bin/ and lib/ of this installation lie.
  std::string installRoot;
  /// Called on every pass manager before it runs.
  std::function<void(mlir::PassManager &)> configure;
};

/// Parses and checks options.input, up to attn IR (or halide IR, if that is
/// what the file holds). Diagnostics go to the context's handlers and, for a
/// source's own errors, to stderr. Null on failure. \p reads, unless null, gets
/// the paths of all files that were read: the input, its imports and configs,
/// and the weights.
mlir::OwningOpRef<mlir::ModuleOp>
readInput(mlir::MLIRContext &context, const CompileOptions &options,
          std::vector<std::string> *reads = nullptr);

/// Compiles and writes one artefact, whole or not at all. False after an error,
/// which has been reported on stderr.
bool compile(const CompileOptions &options);

} // namespace heed

#endif // HEED_COMPILER_DRIVER_COMPILE_H
