//===- Compilation.h - one run of heedc ------------------------*- C++ -*-===//
#ifndef HEED_COMPILER_DRIVER_COMPILATION_H
#define HEED_COMPILER_DRIVER_COMPILATION_H

#include "compiler/Codegen/HalideCodegen.h"
#include "compiler/Driver/Compile.h"
#include "compiler/Link/Link.h"
#include "dialects/Halide/Target.h"
#include "support/Format.h"

#include "mlir/Support/Timing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace heed {

/// The text of \p module, for people and for compiling on.
std::string printed(mlir::ModuleOp module);

/// --emit=heed: the model of a checkpoint's folder.
bool printModel(const CompileOptions &options, llvm::raw_ostream &os);

/// --emit=ast: the syntax tree of the input.
bool printTree(const CompileOptions &options, llvm::raw_ostream &os,
               std::vector<std::string> &reads);

/// From a source to an artefact: the input is read (Compile.cpp), taken through
/// the stations for each target (CompileTarget.cpp), and linked.
class Compilation {
public:
  explicit Compilation(const CompileOptions &options) : options(options) {
    timing.setEnabled(options.timePasses);
    timing.setOutput(mlir::createOutputStrategy(
        mlir::DefaultTimingManager::OutputFormat::Text, llvm::errs()));
    total = timing.getRootScope();
  }

  bool run();

private:
  bool fail(const llvm::Twine &message) {
    llvm::errs() << "heedc: error: " << message << '\n';
    return false;
  }
  bool write(llvm::StringRef text);
  /// A line of --verbose.
  template <typename... Parts>
  void say(fmt::format_string<Parts...> text, Parts &&...parts) {
    if (options.verbose)
      llvm::errs() << fmt::format(text, std::forward<Parts>(parts)...) << '\n';
  }
  /// Text of one target, written as soon as it is there.
  bool isText() const {
    return options.emit == Emit::Mask || options.emit == Emit::Halide ||
           options.emit == Emit::Stmt || options.emit == Emit::LLVM ||
           options.emit == Emit::Asm;
  }

  // Compile.cpp
  void chooseOutput();
  bool checkPlaces();
  bool chooseTargets();
  bool chooseCudaCode();
  bool makeOutput();
  bool roundProducts(mlir::ModuleOp module);
  bool compileTargets(mlir::ModuleOp module);
  bool writeDepfile();
  bool findPart(const std::string &name, std::string &path);
  bool linkAll();

  // CompileTarget.cpp
  bool passes(const char *station, mlir::ModuleOp module,
              llvm::function_ref<void(mlir::OpPassManager &)> build);
  bool compileFor(size_t which, mlir::ModuleOp module);
  bool makePicture(mlir::ModuleOp module);
  void setTargetOf(mlir::ModuleOp module);
  bool makeHost(size_t which, mlir::ModuleOp module, std::string &text);
  mlir::OwningOpRef<mlir::ModuleOp> kernelsOf(size_t which,
                                              mlir::ModuleOp module);
  bool compileKernels(mlir::ModuleOp module, HalideOutput output,
                      llvm::function_ref<mlir::LogicalResult()> meanwhile,
                      llvm::SmallVectorImpl<CompiledKernel> &kernels);
  bool compileHost(size_t which, mlir::ModuleOp module, std::string &text);

  /// What the symbols of one target's code begin with. The model's own prefix
  /// is that of the target with the least demands, whose description is public.
  std::string prefixOf(size_t which) const {
    if (which + 1 == targets.size())
      return prefix;
    std::string suffix = targets[which].name;
    llvm::replace(suffix, '-', '_');
    return format("{}_{}", prefix, suffix);
  }

  const CompileOptions &options;
  mlir::DefaultTimingManager timing;
  mlir::TimingScope total;
  mlir::TimingScope *beside = nullptr; ///< of the kernels, while they compile
  std::string output, depfile, modelName, prefix; ///< no depfile: empty
  std::vector<std::string> reads; ///< files that the output is made of
  /// Best first; one of them for IR and other text.
  llvm::SmallVector<halide::Target, 2> targets;
  const halide::Target *target = nullptr;
  CudaCode cudaCode;
  std::string key; ///< of the present target's kernels and host code
  bool hasKernels = false, edited = false;
  /// When work on the present target, or on all of them, began.
  std::chrono::steady_clock::time_point began =
      std::chrono::steady_clock::now();
  std::vector<LinkInput> objects;
};

} // namespace heed

#endif
