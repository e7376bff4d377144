//===- StreamStores.h - stores that pass the caches by ----------*- C++ -*-===//
//
// Kernels that libHalide leaves as bitcode: what halide.stream_stores asks for
// is done in LLVM's IR, and LLVM makes the code.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_COMPILER_CODEGEN_STREAMSTORES_H
#define HEED_COMPILER_CODEGEN_STREAMSTORES_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace heed {

/// The function whose call marks the vector that is stored next. Its argument
/// is 0 to store it past the caches, and 1 to keep it there.
inline constexpr char streamMark[] = "heed_stream_next_store";

/// Makes code of \p bitcode, a kernel's, with its marks replaced: an object or
/// assembly. False with \p error if LLVM cannot.
bool compileBitcode(llvm::StringRef bitcode, bool assembly, std::string &code,
                    std::string &error);

} // namespace heed

#endif // HEED_COMPILER_CODEGEN_STREAMSTORES_H
