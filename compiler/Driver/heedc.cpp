//===- heedc.cpp - the compiler's command line ----------------------------===//
//
// Options of heedc, and nothing else: compile() does the work.
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/Compile.h"
#include "compiler/Link/Process.h"
#include "compiler/Reference/Passes.h"
#include "dialects/Halide/Target.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "runtime/heed.h"
#include "support/Format.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;
using namespace heed;

namespace {

/// What can be asked for; made after libLLVM's own options are gone.
struct CommandLine {
  cl::OptionCategory category{"heedc"};
  cl::opt<std::string> input{cl::Positional,
                             cl::desc("<model.heed | folder | ir.mlir | ->"),
                             cl::cat(category)};
  cl::opt<std::string> output{"o",
                              cl::desc("Where to write ('-': standard output)"),
                              cl::value_desc("file"), cl::cat(category)};
  cl::opt<Emit> emit{
      "emit", cl::desc("What to make:"), cl::init(Emit::Exe), cl::cat(category),
      cl::values(
          clEnumValN(
              Emit::Heed, "heed",
              "the model of a Hugging Face folder, as a start for one's own"),
          clEnumValN(Emit::Ast, "ast", "the syntax tree"),
          clEnumValN(Emit::Attn, "attn", "attn IR, before any pass"),
          clEnumValN(Emit::Mask, "mask",
                     "a picture (SVG) of which tiles of queries and keys each "
                     "attention's mask leaves out"),
          clEnumValN(Emit::Halide, "halide",
                     "kernels with their schedules, and the host"),
          clEnumValN(Emit::Stmt, "stmt", "the kernels' loop nests"),
          clEnumValN(Emit::LLVM, "llvm", "the host's LLVM IR"),
          clEnumValN(Emit::Asm, "asm", "assembly of host and kernels"),
          clEnumValN(Emit::Obj, "obj", "one object, without the runtime"),
          clEnumValN(Emit::Lib, "lib", "a static library, runtime included"),
          clEnumValN(Emit::Shared, "shared", "a shared library"),
          clEnumValN(Emit::Header, "header", "the library's C header"),
          clEnumValN(Emit::Exe, "exe", "a program (default)"))};
  cl::opt<Backend> backend{
      "backend", cl::desc("How to compute:"), cl::init(Backend::Halide),
      cl::cat(category),
      cl::values(
          clEnumValN(Backend::Halide, "halide", "optimised kernels (default)"),
          clEnumValN(Backend::Reference, "reference",
                     "by definition: slow, for comparison"))};
  cl::opt<std::string> target{
      "target",
      cl::desc("host, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, x86-64-v4-vnni, "
               "opencl, cuda; of several, with commas, the program takes the "
               "best that it can run"),
      cl::init("host"), cl::value_desc("names"), cl::cat(category)};
  cl::list<std::string> cudaArchs{
      "cuda-arch", cl::CommaSeparated,
      cl::desc("Of the target cuda: keep machine code for these "
               "architectures beside the PTX, by ptxas"),
      cl::value_desc("sm_80,.."), cl::cat(category)};
  cl::list<std::string> settings{
      "set", cl::desc("Give a constant or dim its value"),
      cl::value_desc("name=value"), cl::cat(category)};
  cl::list<std::string> inputs{
      "input",
      cl::desc("Of --emit=mask: an input's elements along its last axis; the "
               "last number goes on"),
      cl::value_desc("name=number,.."), cl::cat(category)};
  cl::list<std::string> weights{
      "weights",
      cl::desc("Check parameters against this file, or a checkpoint's folder"),
      cl::value_desc("file.safetensors"), cl::cat(category)};
  cl::opt<HeldType> weightsType{
      "weights-type",
      cl::desc("What parameters that a model declares f32 are in memory:"),
      cl::init(HeldType::Stored), cl::cat(category),
      cl::values(clEnumValN(HeldType::Stored, "stored",
                            "what they are in the file of --weights, else f32"),
                 clEnumValN(HeldType::F32, "f32", "f32"),
                 clEnumValN(HeldType::BF16, "bf16",
                            "bf16, rounded when the model is opened"),
                 clEnumValN(HeldType::F16, "f16",
                            "f16, rounded when the model is opened"))};
  cl::opt<HeldType> stateType{
      "state-type",
      cl::desc("What states that a model declares f32 are in memory:"),
      cl::init(HeldType::Stored), cl::cat(category),
      cl::values(clEnumValN(HeldType::Stored, "f32", "f32"),
                 clEnumValN(HeldType::BF16, "bf16",
                            "bf16: what a call writes there is rounded"),
                 clEnumValN(HeldType::F16, "f16",
                            "f16: what a call writes there is rounded"))};
  cl::opt<HeldType> products{
      "products",
      cl::desc("What a matrix product with a bf16 weight multiplies:"),
      cl::init(HeldType::F32), cl::cat(category),
      cl::values(clEnumValN(HeldType::F32, "f32", "f32 (default)"),
                 clEnumValN(HeldType::BF16, "bf16",
                            "bf16: the other operand is rounded, and dot "
                            "products of the target sum in f32"))};
  cl::list<std::string> includes{"I", cl::desc("Where imports are looked up"),
                                 cl::Prefix, cl::value_desc("folder"),
                                 cl::cat(category)};
  cl::opt<std::string> modelDir{"model-dir",
                                cl::desc("Where config files are looked up"),
                                cl::value_desc("folder"), cl::cat(category)};
  cl::opt<std::string> model{
      "model", cl::desc("Which model of the file (default: the last)"),
      cl::value_desc("name"), cl::cat(category)};
  cl::opt<std::string> prefix{
      "prefix",
      cl::desc("What public symbols begin with (default: the model's name)"),
      cl::value_desc("name"), cl::cat(category)};
  cl::opt<Explain> explain{
      "explain",
      cl::desc("Say what became of the model:"),
      cl::init(Explain::No),
      cl::ValueOptional,
      cl::cat(category),
      cl::values(
          clEnumValN(Explain::Summary, "",
                     "how each attention is computed, what it stores and "
                     "costs, and why it is no better"),
          clEnumValN(Explain::All, "all",
                     "all that the passes did, or why they did not"),
          clEnumValN(Explain::Json, "json",
                     "the same, one JSON object a line"))};
  cl::opt<std::string> printTarget{
      "print-target",
      cl::desc("Print the description of this target (default: of --target)"),
      cl::ValueOptional, cl::value_desc("name"), cl::cat(category)};
  cl::opt<bool> timePasses{"time-passes",
                           cl::desc("Print where the compile time went"),
                           cl::cat(category)};
  cl::opt<bool> writeDepfile{
      "MD",
      cl::desc("Write what the output was made of, as a rule of make, to "
               "OUTPUT.d"),
      cl::cat(category)};
  cl::opt<std::string> depfile{"MF", cl::desc("The same, to this file"),
                               cl::value_desc("file"), cl::cat(category)};
  cl::opt<bool> verbose{"v", cl::desc("Print what is read, run and written"),
                        cl::cat(category)};
  cl::opt<bool> saveTemps{
      "save-temps", cl::desc("Keep the IR of each station beside the output"),
      cl::cat(category)};
  cl::opt<bool> fastMath{"fast-math",
                         cl::desc("Allow results to leave the error bounds"),
                         cl::cat(category)};
  cl::opt<bool> unchecked{
      "unchecked", cl::desc("Drop the checks of indices that data holds"),
      cl::cat(category)};
  cl::opt<bool> countPairs{
      "count-pairs",
      cl::desc("Have --profile of the program say for how many pairs of a "
               "query and a key attentions compute a score (slow)"),
      cl::cat(category)};
  cl::opt<bool> reportScores{
      "report-scores",
      cl::desc("Further results of the reference, for heed-check"), cl::Hidden,
      cl::cat(category)};
  cl::opt<bool> declaredTypes{
      "declared-types",
      cl::desc("The reference in the declared types, not in f64, for "
               "heed-check"),
      cl::Hidden, cl::cat(category)};
  cl::opt<double> nudge{
      "nudge",
      cl::desc("What the reference rounds to 16 bits is that part of itself "
               "larger before, for heed-check"),
      cl::init(0), cl::Hidden, cl::cat(category)};
  cl::opt<bool> noMemoryPlan{
      "no-memory-plan",
      cl::desc("An allocation for each buffer, for heed-check"), cl::Hidden,
      cl::cat(category)};
  cl::opt<bool> checkPromises{
      "check-promises",
      cl::desc("Kernels check, when they run, what their schedules say of "
               "their loops, for tests"),
      cl::Hidden, cl::cat(category)};
  cl::opt<bool> noCache{
      "no-cache",
      cl::desc("Compile each kernel, also one that was compiled "
               "before (~/.cache/heed)"),
      cl::cat(category)};
  cl::opt<unsigned> kernelTimeout{
      "kernel-timeout",
      cl::desc("How long a kernel may take to compile (default: 300)"),
      cl::value_desc("seconds"), cl::cat(category)};
  cl::opt<unsigned> level{"O", cl::desc("Optimisation of host code, 0 to 3"),
                          cl::Prefix, cl::init(2), cl::cat(category)};

  CompileOptions options() {
    CompileOptions options;
    options.input = input;
    options.output = output;
    options.emit = emit;
    options.backend = backend;
    options.target = target;
    options.cudaArchs = cudaArchs;
    options.settings = settings;
    options.inputs = inputs;
    options.weights = weights;
    options.weightsType = weightsType;
    options.stateType = stateType;
    options.products = products;
    options.includes = includes;
    options.modelDir = modelDir;
    options.model = model;
    options.prefix = prefix;
    options.explain = explain;
    options.unchecked = unchecked;
    options.fastMath = fastMath;
    options.countPairs = countPairs;
    options.timePasses = timePasses;
    options.saveTemps = saveTemps;
    options.verbose = verbose;
    options.depfile = depfile;
    options.withDepfile = writeDepfile || !depfile.empty();
    options.optLevel = level;
    options.reportScores = reportScores;
    options.declaredTypes = declaredTypes;
    options.nudge = nudge;
    options.memoryPlan = !noMemoryPlan;
    options.checkPromises = checkPromises;
    options.cache = !noCache;
    if (kernelTimeout.getNumOccurrences())
      options.kernelTimeout = kernelTimeout;
    return options;
  }
};

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  prepareProcess();
  // libLLVM brings hundreds of options of its own, some with our names.
  cl::ResetCommandLineParser();
  CommandLine line;

  // --mlir-print-ir-after=PASS knows what is registered.
  registerPasses();
  reference::registerPasses();
  mlir::registerAsmPrinterCLOptions();
  mlir::registerMLIRContextCLOptions();
  mlir::registerPassManagerCLOptions();
  cl::HideUnrelatedOptions(line.category);
  const std::string version = format("heedc {}.{}.{}\n", HEED_VERSION_MAJOR,
                                     HEED_VERSION_MINOR, HEED_VERSION_PATCH);
  cl::SetVersionPrinter([&](llvm::raw_ostream &os) { os << version; });
  cl::ParseCommandLineOptions(
      argc, argv, "Heed: a model's equations to a native program\n");

  if (line.printTarget.getNumOccurrences()) {
    std::string error;
    mlir::FailureOr<halide::Target> found = halide::parseTarget(
        line.printTarget.empty() ? line.target : line.printTarget, error);
    if (failed(found)) {
      llvm::errs() << "heedc: error: " << error << '\n';
      return 1;
    }
    halide::printTarget(*found, llvm::outs());
    return 0;
  }
  if (line.input.empty()) {
    llvm::errs() << "heedc: error: no input file; see 'heedc --help'\n";
    return 1;
  }
  if (line.verbose)
    llvm::errs() << version;
  CompileOptions options = line.options();
  std::string self = llvm::sys::fs::getMainExecutable(
      argv[0], reinterpret_cast<void *>(&main));
  options.installRoot =
      llvm::sys::path::parent_path(llvm::sys::path::parent_path(self)).str();
  options.configure = [](mlir::PassManager &passes) {
    (void)mlir::applyPassManagerCLOptions(passes);
  };
  return compile(options) ? 0 : 1;
}
