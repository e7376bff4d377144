//===- CompileTarget.cpp - from IR to the code of one target --------------===//
#include "compiler/Codegen/DeviceCalls.h"
#include "compiler/Codegen/HostDescription.h"
#include "compiler/Codegen/HostObject.h"
#include "compiler/Driver/Compilation.h"
#include "compiler/Driver/KernelCache.h"
#include "compiler/Driver/MaskPicture.h"
#include "compiler/Driver/Pipeline.h"
#include "compiler/Link/Output.h"
#include "compiler/Reference/Pipeline.h"
#include "dialects/Attn/Dialect.h"
#include "dialects/Halide/HalideDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Remarks.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Path.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace heed;

static bool hasPipelines(ModuleOp module) {
  return !module.getOps<halide::PipelineOp>().empty();
}

/// Of all that code is made of; what the source's file is called is not.
static std::string keyOf(ModuleOp module) {
  Attribute source = module->removeAttr(attn::kSourceAttr);
  std::string key = keyOfCode(printed(module));
  if (source)
    module->setAttr(attn::kSourceAttr, source);
  return key;
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
    if (target && targets.size() > 1)
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
  codegen.cudaCode = cudaCode;
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

/// --emit=mask: up to where masks are solved and tiles chosen.
bool Compilation::makePicture(ModuleOp module) {
  if (options.backend == Backend::Reference)
    return fail("--emit=mask shows what kernels leave out: the reference "
                "leaves out nothing");
  if (hasPipelines(module))
    return fail(format("--emit=mask needs a source or attn IR, '{}' is IR of "
                       "kernels",
                       options.input));
  halide::setTarget(module, *target);
  std::string error;
  if (!passes("attn", module, [](OpPassManager &manager) {
        // Of positions as the model numbers them.
        buildAttentionPipeline(manager, /*split=*/false);
      }))
    return false;
  FailureOr<MaskPicture> picture =
      drawMasks(module, modelName, options.inputs, error);
  return succeeded(picture) ? write(svgOf(*picture)) : fail(error);
}

/// Says in \p module what it is compiled for.
void Compilation::setTargetOf(ModuleOp module) {
  halide::Target chosen = *target;
  chosen.bf16Products = options.products == HeldType::BF16;
  halide::setTarget(module, chosen);
  if (chosen.bf16Products && !target->hasFeature("avx512bf16"))
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(attn::kModelAttr))
        remarkDeclined(function, "attn-to-halide", "products",
                       heed::format("products of bf16 are computed in f32: "
                                    "target '{}' has no dot product of bf16",
                                    target->name));
}

/// From IR to the objects of one target, or to text that is written.
bool Compilation::compileFor(size_t which, ModuleOp module) {
  target = &targets[which];
  if (options.emit == Emit::Mask)
    return makePicture(module);
  if (options.backend == Backend::Reference) {
    if (!passes("reference", module, [&](OpPassManager &manager) {
          reference::Options reference;
          reference.reportScores = options.reportScores;
          reference.declaredTypes = options.declaredTypes;
          reference.nudge = options.nudge;
          reference::buildPipeline(manager, reference);
        }))
      return false;
  } else if (hasPipelines(module)) {
    edited = true;
  } else {
    setTargetOf(module);
    if (options.countPairs)
      module->setAttr(attn::kCountPairsAttr,
                      UnitAttr::get(module.getContext()));
    if (!passes("attn", module, [&](OpPassManager &manager) {
          buildKernelPipeline(manager, options.fastMath);
        }))
      return false;
  }
  if (options.emit == Emit::Halide)
    return write(printed(module));

  key = keyOf(module);
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
  if (target->isGPU() && options.backend != Backend::Reference &&
      failed(addDeviceCalls(module)))
    return false;
  return passes("llvm", module, buildLLVMPipeline) &&
         compileHost(which, module, text);
}

/// The host program and the model's description.
bool Compilation::compileHost(size_t which, ModuleOp module,
                              std::string &text) {
  bool isPublic = which + 1 == targets.size();
  TimingScope scope = (beside ? *beside : total).nest("host code");
  // LLVM knows the psABI's levels alone.
  llvm::StringRef cpu = target->name;
  cpu.consume_back("-vnni");
  HostTarget hostTarget = hostTargetOfCpu(
      cpu == "x86-64" || cpu.starts_with("x86-64-") ? cpu : "x86-64");
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
  description.key = key;
  for (const std::string &feature : target->features)
    if (feature != "sse2") // every x86-64 processor has it
      description.cpuFeatures.push_back(feature);
  if (target->isGPU() && options.backend != Backend::Reference)
    description.gpu = heed::format("heed_{}", target->gpu);
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
