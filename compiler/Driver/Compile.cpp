//===- Compile.cpp - from a source to an artefact -------------------------===//

#include "compiler/Driver/Compile.h"
#include "compiler/Codegen/HalideCodegen.h"
#include "compiler/Codegen/HostDescription.h"
#include "compiler/Codegen/HostObject.h"
#include "compiler/Driver/CheckModels.h"
#include "compiler/Driver/Depfile.h"
#include "compiler/Driver/Explain.h"
#include "compiler/Driver/Header.h"
#include "compiler/Driver/KernelCache.h"
#include "compiler/Driver/Pipeline.h"
#include "compiler/Link/Link.h"
#include "compiler/Link/Output.h"
#include "compiler/Reference/Pipeline.h"
#include "dialects/Attn/Dialect.h"
#include "dialects/Halide/HalideDialect.h"
#include "dialects/Halide/Target.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "support/Format.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace heed;

namespace heed {
bool printTree(const CompileOptions &options, llvm::raw_ostream &os,
               std::vector<std::string> &reads);
} // namespace heed

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

class Compilation {
public:
  explicit Compilation(const CompileOptions &options) : options(options) {
    timing.setEnabled(options.timePasses);
    timing.setOutput(createOutputStrategy(
        DefaultTimingManager::OutputFormat::Text, llvm::errs()));
    total = timing.getRootScope();
  }

  bool run();

private:
  bool fail(const llvm::Twine &message) {
    llvm::errs() << "heedc: error: " << message << '\n';
    return false;
  }
  bool write(llvm::StringRef text) {
    std::string error;
    return succeeded(writeWhole(text, output, error)) || fail(error);
  }
  /// A line of --verbose.
  template <typename... Parts>
  void say(fmt::format_string<Parts...> text, Parts &&...parts) {
    if (options.verbose)
      llvm::errs() << fmt::format(text, std::forward<Parts>(parts)...) << '\n';
  }
  /// Text of one target, written as soon as it is there.
  bool isText() const {
    return options.emit == Emit::Halide || options.emit == Emit::Stmt ||
           options.emit == Emit::LLVM || options.emit == Emit::Asm;
  }
  void chooseOutput();
  bool checkPlaces();
  bool chooseTargets();
  bool makeOutput();
  bool writeDepfile();
  bool passes(const char *station, ModuleOp module,
              llvm::function_ref<void(OpPassManager &)> build);
  bool compileFor(size_t which, ModuleOp module);
  bool makeHost(size_t which, ModuleOp module, std::string &text);
  OwningOpRef<ModuleOp> kernelsOf(size_t which, ModuleOp module);
  bool compileKernels(ModuleOp module, HalideOutput output,
                      llvm::function_ref<LogicalResult()> meanwhile,
                      SmallVectorImpl<CompiledKernel> &kernels);
  bool compileHost(size_t which, ModuleOp module, std::string &text);
  bool findPart(const std::string &name, std::string &path);
  bool linkAll();

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
  DefaultTimingManager timing;
  TimingScope total;
  TimingScope *beside = nullptr; ///< of the kernels, while they compile
  std::string output, depfile, modelName, prefix; ///< no depfile: empty
  std::vector<std::string> reads; ///< files that the output is made of
  /// Best first; one of them for IR and other text.
  SmallVector<halide::Target> targets;
  const halide::Target *target = nullptr;
  bool hasKernels = false, edited = false;
  std::vector<LinkInput> objects;
};

/// A module's text, for people and for compiling on.
std::string printed(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  os << '\n';
  return text;
}

bool hasPipelines(ModuleOp module) {
  return !module.getOps<halide::PipelineOp>().empty();
}

void Compilation::chooseOutput() {
  output = options.output;
  if (!output.empty())
    return;
  std::string stem = options.input == "-"
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
  // What needs more of the processor is better.
  llvm::sort(targets, [](const halide::Target &a, const halide::Target &b) {
    return std::make_pair(b.features.size(), b.name) <
           std::make_pair(a.features.size(), a.name);
  });
  if (isText() && targets.size() > 1)
    return fail(
        format("expected one target for output of this kind, found '{}'",
               options.target));
  return true;
}

bool Compilation::passes(const char *station, ModuleOp module,
                         llvm::function_ref<void(OpPassManager &)> build) {
  say("passes {}{}", station,
      target ? format(" for {}", target->name) : std::string());
  PassManager manager(module.getContext());
  if (options.configure)
    options.configure(manager);
  TimingScope scope = (beside ? *beside : total).nest(station);
  manager.enableTiming(scope);
  build(manager);
  if (failed(manager.run(module)))
    return false;
  if (options.saveTemps) {
    std::string error, base = output == "-" ? "heed" : output;
    if (targets.size() > 1)
      base += heed::format(".{}", target->name);
    std::string file = format("{}.{}.mlir", base, station);
    if (failed(checkOutput(file, options.input, error)) ||
        failed(writeWhole(printed(module), file, error)))
      return fail(error);
  }
  return true;
}

/// The pipelines alone, as the host's passes leave them: simplified, and with
/// the names that their functions have.
OwningOpRef<ModuleOp> Compilation::kernelsOf(size_t which, ModuleOp module) {
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(module.getLoc());
  (*kernels)->setAttrs(module->getAttrs());
  for (auto pipeline : module.getOps<halide::PipelineOp>()) {
    auto copy = cast<halide::PipelineOp>(pipeline->clone());
    copy.setSymName(
        format("{}_{}", prefixOf(which), pipeline.getSymName().str()));
    kernels->push_back(copy);
  }
  PassManager manager(module.getContext());
  buildCodegenPipeline(manager);
  return succeeded(manager.run(*kernels)) ? std::move(kernels) : nullptr;
}

bool Compilation::compileKernels(ModuleOp module, HalideOutput form,
                                 llvm::function_ref<LogicalResult()> meanwhile,
                                 SmallVectorImpl<CompiledKernel> &kernels) {
  TimingScope scope = total.nest("kernels");
  beside = &scope;
  llvm::scope_exit after([&] { beside = nullptr; });
  HalideCodegenOptions codegen;
  codegen.meanwhile = meanwhile;
  codegen.output = form;
  codegen.promises = edited || options.checkPromises;
  codegen.warnings = edited;
  codegen.seconds = options.kernelTimeout.value_or(codegen.seconds);
  std::string refused;
  std::unique_ptr<KernelCache> cache;
  if (options.cache && form == HalideOutput::Object)
    cache = KernelCache::open(refused);
  codegen.store = cache.get();
  if (!refused.empty())
    llvm::errs() << format("heedc: warning: kernels are not cached: {}\n",
                           refused);
  if (failed(compileHalidePipelines(module, *target, codegen, kernels)))
    return false;
  for (const CompiledKernel &kernel : kernels)
    say("kernel {} {}", kernel.name,
        kernel.cached ? heed::format("from {}", cache->path()) : "compiled");
  if (options.timePasses) {
    llvm::errs() << "kernels: "
                 << llvm::count_if(kernels,
                                   [](const CompiledKernel &kernel) {
                                     return kernel.cached;
                                   })
                 << " of " << kernels.size() << " from the cache\n";
    for (const CompiledKernel &kernel : kernels)
      if (!kernel.cached)
        llvm::errs() << format("{:8.2f} s of processor time  {}\n",
                               kernel.processor, kernel.name);
  }
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
  std::vector<std::string> inputs = options.weights;
  inputs.push_back(options.input);
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
  if (!checkPlaces() || !chooseTargets())
    return false;
  for (const halide::Target &one : targets)
    say("target {} ({})", one.name, one.halide);
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

bool Compilation::makeOutput() {
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
  if (!module)
    return false;
  if (options.emit == Emit::Attn)
    return write(printed(*module));

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

  for (size_t which = 0; which < targets.size(); ++which) {
    bool last = which + 1 == targets.size();
    OwningOpRef<ModuleOp> copy = last ? std::move(module) : module->clone();
    if (!compileFor(which, *copy))
      return false;
  }
  return objects.empty() || linkAll();
}

/// From IR to the objects of one target, or to text that is written.
bool Compilation::compileFor(size_t which, ModuleOp module) {
  target = &targets[which];
  if (options.backend == Backend::Reference) {
    if (!passes("reference", module, [&](OpPassManager &manager) {
          reference::Options reference;
          reference.reportScores = options.reportScores;
          reference.declaredTypes = options.declaredTypes;
          reference::buildPipeline(manager, reference);
        }))
      return false;
  } else if (hasPipelines(module)) {
    edited = true;
  } else {
    halide::setTarget(module, *target);
    if (!passes("attn", module, [&](OpPassManager &manager) {
          buildKernelPipeline(manager, options.fastMath);
        }))
      return false;
  }
  if (options.emit == Emit::Halide)
    return write(printed(module));

  std::string host;
  SmallVector<CompiledKernel> kernels;
  HalideOutput form = options.emit == Emit::Stmt  ? HalideOutput::Statement
                      : options.emit == Emit::Asm ? HalideOutput::Assembly
                                                  : HalideOutput::Object;
  auto hostToo = [&] {
    return success(options.emit == Emit::Stmt || makeHost(which, module, host));
  };
  if (options.emit == Emit::LLVM) {
    if (failed(hostToo()))
      return false;
  } else {
    OwningOpRef<ModuleOp> pipelines = kernelsOf(which, module);
    if (!pipelines || !compileKernels(*pipelines, form, hostToo, kernels))
      return false;
  }
  if (isText()) {
    for (const CompiledKernel &kernel : kernels)
      host += options.emit == Emit::Stmt ? heed::format("{}\n", kernel.bytes)
                                         : heed::format("\n{}", kernel.bytes);
    return write(host);
  }
  objects.push_back(
      {heed::format("{}_host", prefixOf(which)), std::move(host)});
  for (CompiledKernel &kernel : kernels)
    objects.push_back({kernel.name, std::move(kernel.bytes)});
  hasKernels |= !kernels.empty();
  return true;
}

/// From the IR of kernels and host to the host's code, as object or text.
bool Compilation::makeHost(size_t which, ModuleOp module, std::string &text) {
  if (!passes("host", module, [&](OpPassManager &manager) {
        // The reference runs as little of ours as it can.
        buildHostPipeline(manager, prefixOf(which),
                          options.memoryPlan &&
                              options.backend != Backend::Reference);
      }))
    return false;
  for (auto pipeline :
       llvm::make_early_inc_range(module.getOps<halide::PipelineOp>()))
    pipeline.erase();
  return passes("llvm", module, buildLLVMPipeline) &&
         compileHost(which, module, text);
}

/// The host program and the model's description.
bool Compilation::compileHost(size_t which, ModuleOp module,
                              std::string &text) {
  bool isPublic = which + 1 == targets.size();
  TimingScope scope = (beside ? *beside : total).nest("host code");
  HostTarget hostTarget = hostTargetOfCpu(
      target->name == "x86-64" ||
              llvm::StringRef(target->name).starts_with("x86-64-")
          ? target->name
          : "x86-64");
  if (!target->triple.empty())
    hostTarget.triple = target->triple;
  hostTarget.optLevel = options.optLevel;
  hostTarget.fastMath =
      options.fastMath && options.backend != Backend::Reference;
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine =
      makeTargetMachine(hostTarget, error);
  if (!machine)
    return fail(error);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code =
      translateHost(module, context, *machine, hostTarget);
  if (!code)
    return false;
  DescriptionOptions description;
  description.name = modelName;
  description.source = llvm::sys::path::filename(options.input).str();
  description.target = target->name;
  for (const std::string &feature : target->features)
    if (feature != "sse2") // every x86-64 processor has it
      description.cpuFeatures.push_back(feature);
  description.hidden = !isPublic;
  for (size_t other = 0; isPublic && other < which; ++other)
    description.variants.push_back(heed::format("{}_model", prefixOf(other)));
  description.withMain = isPublic && options.emit == Emit::Exe;
  description.listed = isPublic && options.emit == Emit::Shared;
  addDescription(*code,
                 module->getAttrOfType<DictionaryAttr>("attn.description"),
                 description);

  SmallVector<char> bytes;
  llvm::raw_svector_ostream os(bytes);
  HostOutput form = options.emit == Emit::LLVM  ? HostOutput::LLVM
                    : options.emit == Emit::Asm ? HostOutput::Assembly
                                                : HostOutput::Object;
  if (failed(emitHost(*code, *machine, form, os)))
    return fail(
        format("LLVM makes no such output for '{}'", hostTarget.triple));
  text.assign(bytes.begin(), bytes.end());
  return true;
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
  std::string archive_;
  if (hasKernels) {
    std::string path;
    if (!findPart(format("halide_runtime-{}.o", targets.back().name), path))
      return false;
    auto object = llvm::MemoryBuffer::getFile(path);
    if (!object)
      return fail(
          format("cannot read '{}': {}", path, object.getError().message()));
    objects.push_back({"halide_runtime", (*object)->getBuffer().str()});
  }
  if (!findPart("libheed_runtime.a", archive_))
    return false;
  switch (options.emit) {
  case Emit::Lib: {
    std::string interface;
    return findPart("libheed.a", interface) &&
           (succeeded(archive(objects, archive_, interface,
                              heed::format("{}_model", prefix), output, error,
                              commands)) ||
            fail(error));
  }
  case Emit::Shared:
    return succeeded(link(LinkKind::Shared, objects, archive_,
                          heed::format("{}_model", prefix), output, error,
                          commands)) ||
           fail(error);
  default:
    return succeeded(link(LinkKind::Program, objects, archive_, prefix, output,
                          error, commands)) ||
           fail(error);
  }
}

} // namespace

bool heed::compile(const CompileOptions &options) {
  return Compilation(options).run();
}
