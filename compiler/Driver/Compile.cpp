//===- Compile.cpp - from a source to an artefact -------------------------===//
#include "compiler/Driver/CheckModels.h"
#include "compiler/Driver/Compilation.h"
#include "compiler/Driver/Depfile.h"
#include "compiler/Driver/Explain.h"
#include "compiler/Driver/Header.h"
#include "compiler/Driver/Pipeline.h"
#include "compiler/Link/Output.h"
#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace heed;

namespace {

/// Messages of MLIR as ours look: place, kind, text. Remarks have their own way
/// out (Explain.h).
LogicalResult printDiagnostic(mlir::Diagnostic &diagnostic) {
  static const char *const kinds[] = {"note", "warning", "error", "remark"};
  auto print = [&](mlir::Diagnostic &one) {
    if (auto place = dyn_cast<FileLineColLoc>(one.getLocation()))
      llvm::errs() << place.getFilename().getValue() << ':' << place.getLine()
                   << ':' << place.getColumn() << ": ";
    llvm::errs() << kinds[int(one.getSeverity())] << ": " << one << '\n';
  };
  if (diagnostic.getSeverity() == DiagnosticSeverity::Remark)
    return success();
  print(diagnostic);
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    print(note);
  return success();
}

} // namespace

std::string heed::printed(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  os << '\n';
  return text;
}

bool Compilation::write(llvm::StringRef text) {
  std::string error;
  return succeeded(writeWhole(text, output, error)) || fail(error);
}

void Compilation::chooseOutput() {
  output = options.output;
  if (!output.empty())
    return;
  std::string stem =
      options.input == "-" || llvm::sys::fs::is_directory(options.input)
          ? "model"
          : llvm::sys::path::stem(options.input).str();
  switch (options.emit) {
  case Emit::Obj:
    output = heed::format("{}.o", stem);
    break;
  case Emit::Lib:
    output = format("lib{}.a", stem);
    break;
  case Emit::Shared:
    output = format("lib{}.so", stem);
    break;
  case Emit::Exe:
    output = stem;
    break;
  default:
    output = "-";
  }
}

/// The targets of a comma-separated list, each once.
bool Compilation::chooseTargets() {
  SmallVector<llvm::StringRef> names;
  llvm::StringRef(options.target).split(names, ',');
  for (llvm::StringRef name : names) {
    std::string error;
    FailureOr<halide::Target> found = halide::parseTarget(name, error);
    if (failed(found))
      return fail(error);
    if (llvm::none_of(targets, [&](const halide::Target &known) {
          return known.name == found->name;
        }))
      targets.push_back(*found);
  }
  // A device is better than a processor (through its maker's own driver, if
  // there are two ways), and what needs more of that one.
  auto rank = [](const halide::Target &one) {
    return std::make_tuple(one.isGPU(), one.gpu == "cuda", one.features.size(),
                           one.name);
  };
  llvm::sort(targets, [&](const halide::Target &a, const halide::Target &b) {
    return rank(b) < rank(a);
  });
  if (isText() && targets.size() > 1)
    return fail(
        format("expected one target for output of this kind, found '{}'",
               options.target));
  return true;
}

/// Where ptxas is, and for which architectures it is asked.
bool Compilation::chooseCudaCode() {
  if (options.cudaArchs.empty())
    return true;
  if (llvm::none_of(
          targets, [](const halide::Target &one) { return one.gpu == "cuda"; }))
    return fail("--cuda-arch is for the target cuda");
  for (llvm::StringRef name : options.cudaArchs) {
    llvm::StringRef number = name;
    int arch = 0;
    // Kernels' PTX is for 8.0.
    if (!number.consume_front("sm_") || number.getAsInteger(10, arch) ||
        arch < 80 || arch > 999)
      return fail(heed::format("expected an architecture from sm_80 on for "
                               "--cuda-arch, found '{}'",
                               name));
    if (!llvm::is_contained(cudaCode.archs, arch))
      cudaCode.archs.push_back(arch);
  }
  auto found = llvm::sys::findProgramByName("ptxas");
  const char *home = ::getenv("CUDA_HOME");
  if (!found && home)
    found =
        llvm::sys::findProgramByName("ptxas", {heed::format("{}/bin", home)});
  llvm::sys::fs::file_status status;
  if (!found || llvm::sys::fs::status(*found, status))
    return fail("--cuda-arch needs CUDA's assembler: there is no 'ptxas' on "
                "PATH or in CUDA_HOME");
  cudaCode.assembler = *found;
  cudaCode.identity =
      heed::format("{} {} {}", *found, status.getSize(),
                   status.getLastModificationTime().time_since_epoch().count());
  return true;
}

/// What can be said of folders and files before any work is done.
bool Compilation::checkPlaces() {
  for (const std::string &folder : options.includes)
    if (!llvm::sys::fs::is_directory(folder))
      return fail(format("expected a folder for -I, found '{}'", folder));
  if (!options.modelDir.empty() &&
      !llvm::sys::fs::is_directory(options.modelDir))
    return fail(format("expected a folder for --model-dir, found '{}'",
                       options.modelDir));
  std::vector<std::string> inputs = {
      llvm::sys::fs::is_directory(options.input)
          ? heed::format("{}/config.json", options.input)
          : options.input};
  for (const std::string &path : options.weights)
    inputs.push_back(llvm::sys::fs::is_directory(path)
                         ? format("{}/model.safetensors", path)
                         : path);
  std::string error;
  if (failed(checkOutput(output, inputs, error)))
    return fail(error);
  if (!options.withDepfile)
    return true;
  if (output == "-")
    return fail("expected an output file beside -MD, found standard output");
  depfile =
      options.depfile.empty() ? heed::format("{}.d", output) : options.depfile;
  if (isSameFile(output, depfile))
    return fail(format("expected another file for -MD than for the output, "
                       "found '{}' for both",
                       depfile));
  return succeeded(checkOutput(depfile, inputs, error)) || fail(error);
}

/// After the output, and with it or not at all.
bool Compilation::writeDepfile() {
  std::string error;
  FailureOr<std::string> text = makeDepfile(output, reads, error);
  if (failed(text) || failed(writeWhole(*text, depfile, error)))
    return fail(error);
  say("wrote {}", depfile);
  return true;
}

bool Compilation::run() {
  chooseOutput();
  if (options.optLevel > 3)
    return fail(format("expected an optimisation level from 0 to 3, found {}",
                       options.optLevel));
  if (!checkPlaces() || !chooseTargets() || !chooseCudaCode())
    return false;
  for (const halide::Target &one : targets)
    say("target {} ({})", one.name, one.halide);
  if (!options.inputs.empty() && options.emit != Emit::Mask)
    return fail("--input is for --emit=mask");
  std::string error;
  Replaced before;
  if (!depfile.empty() && failed(before.keep(output, error)))
    return fail(error);
  if (!makeOutput())
    return false;
  say("wrote {}", output);
  if (depfile.empty() || writeDepfile())
    return true;
  before.restore();
  return false;
}

/// --products=bf16: before the first pass, whatever the backend is.
bool Compilation::roundProducts(ModuleOp module) {
  return options.products != HeldType::BF16 ||
         passes("products", module, [](OpPassManager &manager) {
           manager.addNestedPass<func::FuncOp>(createAttnRoundProducts());
         });
}

bool Compilation::makeOutput() {
  if (options.emit == Emit::Heed) {
    std::string text;
    llvm::raw_string_ostream os(text);
    return printModel(options, os) && write(text);
  }
  if (options.emit == Emit::Ast) {
    std::string text;
    llvm::raw_string_ostream os(text);
    return printTree(options, os, reads) && write(text);
  }

  DialectRegistry registry;
  registerPipelineDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  context.getDiagEngine().registerHandler(printDiagnostic);
  context.printOpOnDiagnostic(false);
  if (options.explain != Explain::No)
    enableExplain(context, llvm::errs(), options.explain);

  OwningOpRef<ModuleOp> module;
  {
    TimingScope scope = total.nest("front end");
    module = readInput(context, options, &reads);
  }
  for (const std::string &path : reads)
    say("read {}", path);
  if (!module || !roundProducts(*module))
    return false;
  if (options.emit == Emit::Attn)
    return write(printed(*module));

  // A model of several entries says its name itself.
  if (auto name = (*module)->getAttrOfType<StringAttr>(attn::kModelAttr))
    modelName = name.getValue().str();
  for (auto function : module->getOps<func::FuncOp>())
    if (function->hasAttr(attn::kModelAttr) && modelName.empty())
      modelName = function.getName().str();
  if (modelName.empty())
    return fail(
        format("expected a function with 'attn.model' in '{}'", options.input));
  prefix = options.prefix.empty() ? modelName : options.prefix;
  if (!isSymbolName(prefix))
    return fail(format(
        "expected letters, digits and '_' as prefix of symbols, found '{}'",
        prefix));
  if (prefix == "heed")
    return fail("heed.h has names of its own that begin with 'heed': expected "
                "another prefix of symbols (--prefix)");
  if (options.emit == Emit::Header)
    return write(makeHeader(*module, modelName, prefix));
  if (options.unchecked)
    module->walk([](attn::RequireInRangeOp check) { check.erase(); });

  return compileTargets(*module) && (objects.empty() || linkAll());
}

/// For each target what compileFor does, and with --explain what became of it.
bool Compilation::compileTargets(ModuleOp module) {
  auto compileAndExplain = [&](size_t which, ModuleOp module) {
    if (!compileFor(which, module))
      return false;
    auto now = std::chrono::steady_clock::now();
    explainTarget(module, targets.size() > 1 ? targets[which].name : "",
                  std::chrono::duration<double>(now - began).count());
    began = now;
    return true;
  };
  const size_t last = targets.size() - 1;
  for (size_t which = 0; which < last; ++which) {
    OwningOpRef<ModuleOp> copy = module.clone();
    if (!compileAndExplain(which, *copy))
      return false;
  }
  return compileAndExplain(last, module);
}

/// Where a part of every program lies: in lib/ of a build tree, in lib/heed/
/// once installed.
bool Compilation::findPart(const std::string &name, std::string &path) {
  for (const char *folder : {"/lib/", "/lib/heed/"}) {
    path = options.installRoot + folder + name;
    if (llvm::sys::fs::exists(path))
      return true;
  }
  return fail(
      format("expected '{}' in '{}/lib/heed'", name, options.installRoot));
}

bool Compilation::linkAll() {
  TimingScope scope = total.nest("link");
  std::string error;
  llvm::raw_ostream *commands = options.verbose ? &llvm::errs() : nullptr;
  if (options.emit == Emit::Obj)
    return succeeded(link(LinkKind::Object, objects, {}, "", output, error,
                          commands)) ||
           fail(error);
  SmallVector<std::string> runtimes;
  // Of devices first: the description of one names its functions.
  for (const halide::Target &one : targets)
    if (one.isGPU() &&
        !findPart(format("libheed_{}.a", one.gpu), runtimes.emplace_back()))
      return false;
  bool hasDevice = !runtimes.empty();
  if (hasDevice && !findPart("libheed_device.a", runtimes.emplace_back()))
    return false;
  if (hasKernels || hasDevice) {
    std::string path;
    // What a device needs besides is in its own archive.
    if (!findPart(format("halide_runtime-{}.o", targets.back().isGPU()
                                                    ? "x86-64"
                                                    : targets.back().name),
                  path))
      return false;
    auto object = llvm::MemoryBuffer::getFile(path);
    if (!object)
      return fail(
          format("cannot read '{}': {}", path, object.getError().message()));
    objects.push_back({"halide_runtime", (*object)->getBuffer().str()});
  }
  if (!findPart("libheed_runtime.a", runtimes.emplace_back()))
    return false;
  switch (options.emit) {
  case Emit::Lib: {
    std::string interface;
    return findPart("libheed.a", interface) &&
           (succeeded(archive(objects, runtimes, interface,
                              heed::format("{}_model", prefix), output, error,
                              commands)) ||
            fail(error));
  }
  case Emit::Shared:
    return succeeded(link(LinkKind::Shared, objects, runtimes,
                          heed::format("{}_model", prefix), output, error,
                          commands)) ||
           fail(error);
  default:
    return succeeded(link(LinkKind::Program, objects, runtimes, prefix, output,
                          error, commands)) ||
           fail(error);
  }
}

bool heed::compile(const CompileOptions &options) {
  if (!llvm::sys::fs::is_directory(options.input))
    return Compilation(options).run();
  CompileOptions all = options;
  if (all.modelDir.empty())
    all.modelDir = all.input;
  if (all.weights.empty())
    all.weights.push_back(all.input);
  return Compilation(all).run();
}
