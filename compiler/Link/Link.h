//===- Link.h - objects to programs and libraries ---------------*- C++ -*-===//
//
// The system's C compiler as linker driver, and archives through LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_COMPILER_LINK_LINK_H
#define HEED_COMPILER_LINK_LINK_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace heed {

/// One object file in memory.
struct LinkInput {
  std::string name;
  std::string bytes;
};

enum class LinkKind { Program, Shared, Object };

/// Links \p inputs and the archives \p archives to \p output. Of a shared
/// library only the symbol \p exports and those of heed.h are
/// visible. On failure nothing is left behind and \p error says why. \p say,
/// unless null, gets the command that links.
mlir::LogicalResult link(LinkKind kind, llvm::ArrayRef<LinkInput> inputs,
                         llvm::ArrayRef<std::string> archives,
                         const std::string &exports, const std::string &output,
                         std::string &error, llvm::raw_ostream *say = nullptr);

/// Writes an archive of \p inputs and of all members of \p archives.
mlir::LogicalResult archive(llvm::ArrayRef<LinkInput> inputs,
                            llvm::ArrayRef<std::string> archives,
                            const std::string &output, std::string &error);

} // namespace heed

#endif // HEED_COMPILER_LINK_LINK_H
