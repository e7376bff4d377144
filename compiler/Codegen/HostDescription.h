//===- HostDescription.h - the constant that describes a model --*- C++ -*-===//
//
// What `attn.description` says of a model's entries, parameters and kernels, as
// the constant `heed_model_desc` of runtime/host.h.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_COMPILER_CODEGEN_HOSTDESCRIPTION_H
#define HEED_COMPILER_CODEGEN_HOSTDESCRIPTION_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>

namespace llvm {
class Module;
} // namespace llvm

namespace heed {

struct DescriptionOptions {
  std::string name;
  std::string source;
  /// LLVM's names of what the code needs; the runtime checks them.
  llvm::SmallVector<std::string> cpuFeatures;
  /// The target that the code was made for, as heedc calls it.
  std::string target;
  /// What the runtime tells packed weights of this code from others' by.
  std::string key;
  /// The runtime's symbol for the kind of device that kernels run on; empty:
  /// the processor.
  std::string gpu;
  /// Symbols of the descriptions for better targets, best first. They are
  /// others' objects.
  llvm::SmallVector<std::string> variants;
  /// Only the model's other descriptions see this one.
  bool hidden = false;
  /// Also define `heed_models`, which lists it, for dlsym().
  bool listed = false;
  /// Also define `main`, which runs the model as a program.
  bool withMain = false;
};

/// Adds `<prefix>_model` to \p module, which holds the functions that
/// \p description (the module's `attn.description`) names.
void addDescription(llvm::Module &module, mlir::DictionaryAttr description,
                    const DescriptionOptions &options);

} // namespace heed

#endif // HEED_COMPILER_CODEGEN_HOSTDESCRIPTION_H
