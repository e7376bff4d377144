//===- KernelCache.h - kernels that were compiled before --------*- C++ -*-===//
//
// A folder of compiled kernels, by the content that they were compiled from.
// Any number of processes may use it at once. What cannot be read or written
// is as if it were not there.
//
// What is found is linked into programs, so it must be ours: the folder and the
// entry belong to the user and nobody else may write to them, and an entry
// holds the hash of its key and its object.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_COMPILER_DRIVER_KERNELCACHE_H
#define HEED_COMPILER_DRIVER_KERNELCACHE_H

#include "compiler/Codegen/HalideCodegen.h"
#include <cstdint>
#include <memory>

namespace heed {

/// What tells code made of \p content from all other: a hash, in hexadecimal,
/// of it and of this heedc with its libraries. Empty if the program cannot be
/// read.
std::string keyOfCode(llvm::StringRef content);

class KernelCache : public KernelStore {
public:
  /// Bytes that the folder may hold; the kernels unused for longest go first.
  static constexpr uint64_t kMaxBytes = uint64_t(1) << 30;

  /// `heed/` in the user's folder for caches: $XDG_CACHE_HOME, else ~/.cache;
  /// made, with mode 0700, where it is missing. Null where there can be none,
  /// and, with the reason in \p refused, where somebody else could have put
  /// kernels into it.
  static std::unique_ptr<KernelCache> open(std::string &refused);
  /// Removes kernels until the folder is small enough.
  ~KernelCache() override;
  KernelCache(const KernelCache &) = delete;
  KernelCache &operator=(const KernelCache &) = delete;

  std::optional<std::string> find(llvm::StringRef content) const override;
  void store(llvm::StringRef content, llvm::StringRef object) const override;

  llvm::StringRef path() const { return folder; }

private:
  KernelCache(std::string folder, int directory)
      : folder(std::move(folder)), directory(directory) {}

  std::string folder;
  int directory; ///< the folder as it was checked, whatever its name means now
};

} // namespace heed

#endif // HEED_COMPILER_DRIVER_KERNELCACHE_H
