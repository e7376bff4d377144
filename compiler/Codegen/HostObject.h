//===- HostObject.h - Host IR to LLVM IR, assembly and objects --*- C++ -*-===//
//
// The host program of a model, in the LLVM dialect, through LLVM's
// TargetMachine.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_COMPILER_CODEGEN_HOSTOBJECT_H
#define HEED_COMPILER_CODEGEN_HOSTOBJECT_H

#include "mlir/Support/LLVM.h"
#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
class raw_pwrite_stream;
} // namespace llvm

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace heed {

/// The CPU that host code is made for. Names are LLVM's: cpu "x86-64-v3",
/// features "+avx512f,-sse4a".
struct HostTarget {
  std::string triple;
  std::string cpu;
  std::string features;
  /// 0 to 3, as in clang's -O.
  unsigned optLevel = 2;
  /// Allow reassociation and friends in the code that LLVM makes.
  bool fastMath = false;
};

/// The machine that this process runs on.
HostTarget hostTargetOfThisMachine();

/// One of LLVM's CPU names ("x86-64-v4"), with this machine's triple.
HostTarget hostTargetOfCpu(llvm::StringRef cpu);

/// Fails with \p error when LLVM does not know the triple or the CPU.
std::unique_ptr<llvm::TargetMachine> makeTargetMachine(const HostTarget &target,
                                                       std::string &error);

/// Translates \p module (LLVM dialect only) and optimises it for \p machine.
/// Null when translation fails; the diagnostic has been emitted.
std::unique_ptr<llvm::Module> translateHost(mlir::ModuleOp module,
                                            llvm::LLVMContext &context,
                                            llvm::TargetMachine &machine,
                                            const HostTarget &target);

enum class HostOutput { LLVM, Assembly, Object };

/// Writes \p module in the form \p output. It holds nothing that depends on
/// time, place or environment.
mlir::LogicalResult emitHost(llvm::Module &module, llvm::TargetMachine &machine,
                             HostOutput output, llvm::raw_pwrite_stream &os);

} // namespace heed

#endif // HEED_COMPILER_CODEGEN_HOSTOBJECT_H
