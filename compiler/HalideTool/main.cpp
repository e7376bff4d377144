// heed-halide: compiles a .mlir file of halide.pipelines, without any other
// part of the compiler.

#include "compiler/Codegen/HalideCodegen.h"
#include "compiler/Link/Output.h"
#include "compiler/Link/Process.h"
#include "dialects/Halide/HalideDialect.h"
#include "dialects/Halide/Target.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "passes/Passes.h"
#include "support/Format.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

using namespace llvm;

static cl::OptionCategory category("heed-halide");
static cl::opt<std::string> input(cl::Positional, cl::desc("<input.mlir>"),
                                  cl::init("-"));
static cl::opt<std::string>
    output("o",
           cl::desc("output file; for objects, a folder that gets NAME.o each"),
           cl::value_desc("path"), cl::init("-"), cl::cat(category));
static cl::opt<std::string> targetName(
    "target",
    cl::desc("host or a level of x86-64; the default is the module's"),
    cl::init(""), cl::cat(category));
static cl::opt<heed::HalideOutput> emit(
    "emit", cl::desc("what to make:"), cl::init(heed::HalideOutput::Object),
    cl::values(clEnumValN(heed::HalideOutput::Object, "obj", "objects"),
               clEnumValN(heed::HalideOutput::Statement, "stmt",
                          "Halide's loop nests, as text"),
               clEnumValN(heed::HalideOutput::Assembly, "asm", "assembly")),
    cl::cat(category));
static cl::opt<bool>
    checks("checks",
           cl::desc("kernels check their buffers and answer bounds queries"),
           cl::cat(category));
static cl::opt<bool>
    noUserContext("no-user-context",
                  cl::desc("kernels take no first argument for the runtime"),
                  cl::cat(category));
static cl::opt<bool>
    printTarget("print-target",
                cl::desc("print the target description and exit"),
                cl::cat(category));
static cl::opt<bool> runtime(
    "runtime",
    cl::desc("with objects, also write Halide's runtime as halide_runtime.o"),
    cl::cat(category));
static cl::opt<bool> runtimeOnly(
    "runtime-only",
    cl::desc("write Halide's runtime for the target to -o, without an input"),
    cl::cat(category));
static cl::opt<bool>
    printTimes("time",
               cl::desc("print the seconds that each kernel took to stderr"),
               cl::cat(category));
static cl::opt<unsigned> jobs("jobs", cl::desc("kernels compiled at a time"),
                              cl::init(0), cl::cat(category));

static int fail(const Twine &message) {
  errs() << "heed-halide: " << message << "\n";
  return 1;
}

static bool writeFile(StringRef path, StringRef bytes) {
  std::string error;
  if (succeeded(heed::writeWhole(bytes, path.str(), error)))
    return true;
  errs() << "heed-halide: " << error << "\n";
  return false;
}

/// The IR of the input file, with exact expansions of the functions that
/// libHalide has no exact ones for; null after a message.
static mlir::OwningOpRef<mlir::ModuleOp> readModule(mlir::MLIRContext &context,
                                                    SourceMgr &sources) {
  std::string error;
  std::unique_ptr<MemoryBuffer> file = mlir::openInputFile(input, &error);
  if (!file) {
    fail(error);
    return nullptr;
  }
  sources.AddNewSourceBuffer(std::move(file), SMLoc());
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module)
    return nullptr;
  mlir::PassManager manager(&context);
  manager.addPass(heed::createHalideExpandMath());
  return succeeded(manager.run(*module)) ? std::move(module) : nullptr;
}

static int writeRuntime(const heed::halide::Target &target, StringRef path) {
  std::string object, error;
  if (failed(heed::compileHalideRuntime(target, !noUserContext, object, error)))
    return fail(error);
  return writeFile(path, object) ? 0 : 1;
}

/// An object for each kernel and, where it is asked for, the runtime, into the
/// folder -o.
static int writeObjects(ArrayRef<heed::CompiledKernel> kernels,
                        const heed::halide::Target &target) {
  if (output == "-")
    return fail("objects need a folder: -o DIR");
  if (std::error_code code = sys::fs::create_directories(output))
    return fail(heed::format("{}: {}", output, code.message()));
  for (const heed::CompiledKernel &kernel : kernels)
    if (!writeFile(heed::format("{}/{}.o", output, kernel.name), kernel.bytes))
      return 1;
  return runtime
             ? writeRuntime(target, heed::format("{}/halide_runtime.o", output))
             : 0;
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  heed::prepareProcess();
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "heed-halide: compiles halide.pipelines\n");
  std::string error;
  mlir::FailureOr<heed::halide::Target> target = heed::halide::parseTarget(
      targetName.empty() ? "host" : StringRef(targetName), error);
  if (failed(target))
    return fail(error);
  if (printTarget) {
    heed::halide::printTarget(*target, outs());
    return 0;
  }

  if (runtimeOnly)
    return writeRuntime(*target, output);

  mlir::MLIRContext context;
  context.printOpOnDiagnostic(false);
  context.loadDialect<heed::halide::HalideDialect, mlir::arith::ArithDialect,
                      mlir::math::MathDialect>();
  SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  auto module = readModule(context, sources);
  if (!module)
    return 1;
  if (targetName.empty())
    *target = heed::halide::getTarget(*module);

  heed::HalideCodegenOptions options;
  options.output = emit;
  options.checks = checks;
  options.userContext = !noUserContext;
  options.jobs = jobs;
  SmallVector<heed::CompiledKernel> kernels;
  if (failed(heed::compileHalidePipelines(*module, *target, options, kernels)))
    return 1;
  if (printTimes)
    for (heed::CompiledKernel &kernel : kernels)
      errs() << kernel.name << " " << heed::format("{:.2f}", kernel.seconds)
             << " s\n";
  if (emit != heed::HalideOutput::Object) {
    std::string text;
    for (heed::CompiledKernel &kernel : kernels)
      text += kernel.bytes;
    return writeFile(output, text) ? 0 : 1;
  }
  return writeObjects(kernels, *target);
}
