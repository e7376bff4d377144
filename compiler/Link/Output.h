//===- Output.h - files that appear whole or not at all ---------*- C++ -*-===//
//
// Output goes to a temporary file first and gets its name when it is complete.
// What is no regular file (a device, a pipe, "-" for standard output) is
// written in place.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_COMPILER_LINK_OUTPUT_H
#define HEED_COMPILER_LINK_OUTPUT_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <csignal>
#include <string>
#include <vector>

namespace heed {

/// Fails where \p output cannot be written, as far as this is known before
/// there is something to write, and where it is one of \p inputs.
mlir::LogicalResult checkOutput(const std::string &output,
                                llvm::ArrayRef<std::string> inputs,
                                std::string &error);

/// Whether two paths mean one file, which need not exist yet.
bool isSameFile(const std::string &one, const std::string &other);

/// Writes \p bytes to \p output, whole or not at all.
mlir::LogicalResult writeWhole(llvm::StringRef bytes, const std::string &output,
                               std::string &error);

/// Files that vanish at the end of the scope, or when a signal ends us.
class Temporaries {
public:
  ~Temporaries();
  Temporaries() = default;
  Temporaries(const Temporaries &) = delete;
  Temporaries &operator=(const Temporaries &) = delete;

  /// A new file that publish() can turn into \p output.
  bool forOutput(const std::string &output, std::string &path,
                 std::string &error);
  /// A file with \p bytes in the folder for temporary files.
  bool write(llvm::StringRef stem, llvm::StringRef suffix,
             llvm::StringRef bytes, std::string &path, std::string &error);

private:
  void keep(const std::string &path);
  std::vector<std::string> paths;
};

/// The file that an output replaces, kept until all outputs have their names:
/// where a later one cannot get its own, the earlier ones are as they were.
class Replaced {
public:
  /// Keeps what \p output is now; fails where that is not possible.
  mlir::LogicalResult keep(const std::string &output, std::string &error);
  /// Puts it back; an output that was not there is removed.
  void restore();

private:
  Temporaries files;
  std::string output, old; ///< empty: nothing to put back
};

/// Gives the complete file \p path, of Temporaries::forOutput(), its name.
mlir::LogicalResult publish(const std::string &path, const std::string &output,
                            std::string &error);

/// Holds the signals that end a program back until the end of the scope: other
/// programs that are started meanwhile run to their end, so that what they
/// wrote can be removed.
class SignalsHeld {
public:
  SignalsHeld();
  ~SignalsHeld();
  SignalsHeld(const SignalsHeld &) = delete;
  SignalsHeld &operator=(const SignalsHeld &) = delete;

private:
  sigset_t before;
};

} // namespace heed

#endif // HEED_COMPILER_LINK_OUTPUT_H
