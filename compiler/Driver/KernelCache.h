//===- KernelCache.h - kernels that were compiled before --------*- C++ -*-===//
//
// A folder of compiled kernels, by the content that they were compiled from.
// Any number of processes may use it at once. What cannot be read or written
// is as if it were not there.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_COMPILER_DRIVER_KERNELCACHE_H
#define HEED_COMPILER_DRIVER_KERNELCACHE_H

#include "compiler/Codegen/HalideCodegen.h"
#include <cstdint>

namespace heed {

class KernelCache : public KernelStore {
public:
  /// Bytes that the folder may hold; the kernels unused for longest go first.
  static constexpr uint64_t kMaxBytes = uint64_t(1) << 30;

  /// In `heed/` of the user's folder for caches: $XDG_CACHE_HOME, else
  /// ~/.cache. Without such a folder nothing is ever found.
  KernelCache();
  /// Removes kernels until the folder is small enough.
  ~KernelCache() override;

  std::optional<std::string> find(llvm::StringRef content) const override;
  void store(llvm::StringRef content, llvm::StringRef object) const override;

private:
  /// Where the object of \p content is; empty if nowhere. Another compiler
  /// has other files.
  std::string fileOf(llvm::StringRef content) const;

  std::string folder;
};

} // namespace heed

#endif // HEED_COMPILER_DRIVER_KERNELCACHE_H
