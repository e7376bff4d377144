//===- HostObject.cpp - Host IR to LLVM IR, assembly and objects ----------===//
//
// The host program of a model, in the LLVM dialect, through LLVM's
// TargetMachine.
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/HostObject.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "support/Format.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"

using namespace heed;

HostTarget heed::hostTargetOfThisMachine() {
  HostTarget target;
  target.triple = llvm::sys::getProcessTriple();
  target.cpu = llvm::sys::getHostCPUName().str();
  llvm::SubtargetFeatures features;
  // A StringMap has no fixed order; the features are sorted so that the same
  // machine always makes the same bytes.
  std::vector<std::string> names;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    names.push_back((feature.second ? "+" : "-") + feature.first().str());
  llvm::sort(names, [](llvm::StringRef a, llvm::StringRef b) {
    return a.drop_front() < b.drop_front();
  });
  for (const std::string &name : names)
    features.AddFeature(name);
  target.features = features.getString();
  return target;
}

HostTarget heed::hostTargetOfCpu(llvm::StringRef cpu) {
  HostTarget target;
  target.triple = llvm::sys::getProcessTriple();
  target.cpu = cpu.str();
  return target;
}

static llvm::OptimizationLevel optimizationLevel(unsigned level) {
  switch (level) {
  case 0:
    return llvm::OptimizationLevel::O0;
  case 1:
    return llvm::OptimizationLevel::O1;
  case 2:
    return llvm::OptimizationLevel::O2;
  default:
    return llvm::OptimizationLevel::O3;
  }
}

std::unique_ptr<llvm::TargetMachine>
heed::makeTargetMachine(const HostTarget &target, std::string &error) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;

  llvm::Triple triple(target.triple);
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found)
    return nullptr;
  llvm::TargetOptions options;
  if (target.fastMath)
    options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  std::unique_ptr<llvm::TargetMachine> machine(found->createTargetMachine(
      triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
      std::nullopt,
      target.optLevel == 0 ? llvm::CodeGenOptLevel::None
                           : llvm::CodeGenOptLevel::Default));
  if (!machine) {
    error = format("LLVM makes no code for '{}'", target.triple);
    return nullptr;
  }
  if (!target.cpu.empty() &&
      !machine->getMCSubtargetInfo()->isCPUStringValid(target.cpu)) {
    error = format("unknown CPU '{}'", target.cpu);
    return nullptr;
  }
  return machine;
}

std::unique_ptr<llvm::Module> heed::translateHost(mlir::ModuleOp module,
                                                  llvm::LLVMContext &context,
                                                  llvm::TargetMachine &machine,
                                                  const HostTarget &target) {
  mlir::registerBuiltinDialectTranslation(*module.getContext());
  mlir::registerLLVMDialectTranslation(*module.getContext());
  std::unique_ptr<llvm::Module> result =
      mlir::translateModuleToLLVMIR(module, context, "heed");
  if (!result)
    return nullptr;
  result->setTargetTriple(machine.getTargetTriple());
  result->setDataLayout(machine.createDataLayout());
  for (llvm::Function &function : *result) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    if (!machine.getTargetFeatureString().empty())
      function.addFnAttr("target-features", machine.getTargetFeatureString());
  }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::OptimizationLevel level = optimizationLevel(target.optLevel);
  llvm::ModulePassManager passes =
      level == llvm::OptimizationLevel::O0
          ? builder.buildO0DefaultPipeline(level)
          : builder.buildPerModuleDefaultPipeline(level);
  passes.run(*result, modules);
  return result;
}

mlir::LogicalResult heed::emitHost(llvm::Module &module,
                                   llvm::TargetMachine &machine,
                                   HostOutput output,
                                   llvm::raw_pwrite_stream &os) {
  if (output == HostOutput::LLVM) {
    module.print(os, nullptr);
    return mlir::success();
  }
  llvm::legacy::PassManager codegen;
  if (machine.addPassesToEmitFile(codegen, os, nullptr,
                                  output == HostOutput::Assembly
                                      ? llvm::CodeGenFileType::AssemblyFile
                                      : llvm::CodeGenFileType::ObjectFile))
    return mlir::failure();
  codegen.run(module);
  return mlir::success();
}
