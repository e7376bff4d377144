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

/// Writes an archive of two parts. One object of \p inputs and what they need
/// of the archives \p runtimes, whose only visible symbol is \p exports: what a
/// program or another model calls the same does not meet it. And the members of
/// \p interface, the functions of heed.h, which a program takes once.
mlir::LogicalResult archive(llvm::ArrayRef<LinkInput> inputs,
                            llvm::ArrayRef<std::string> runtimes,
                            const std::string &interface,
                            const std::string &exports,
                            const std::string &output, std::string &error,
                            llvm::raw_ostream *commands = nullptr);

} // namespace heed

#endif // HEED_COMPILER_LINK_LINK_H
