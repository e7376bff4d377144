//===- Depfile.h - what an output was made of, for make and ninja *- C++
//-*-===//

#ifndef HEED_COMPILER_DRIVER_DEPFILE_H
#define HEED_COMPILER_DRIVER_DEPFILE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>

namespace heed {

/// A rule of make by which \p output depends on \p inputs, each once. Fails
/// where a name holds a line break, which make cannot write.
mlir::FailureOr<std::string> makeDepfile(llvm::StringRef output,
                                         llvm::ArrayRef<std::string> inputs,
                                         std::string &error);

} // namespace heed

#endif // HEED_COMPILER_DRIVER_DEPFILE_H
