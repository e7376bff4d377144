//===- KernelCache.cpp - kernels that were compiled before ----------------===//

#include "compiler/Driver/KernelCache.h"
#include "compiler/Link/Output.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace heed;

namespace {

std::string digest(StringRef bytes) {
  BLAKE3Result<> hash = BLAKE3::hash(arrayRefFromStringRef(bytes));
  return std::string(reinterpret_cast<const char *>(hash.data()), hash.size());
}

constexpr size_t kDigestSize = sizeof(BLAKE3Result<>);

/// What this program is: two builds that print one version may write other
/// code.
const std::string &ownDigest() {
  static const std::string own = [] {
    auto file = MemoryBuffer::getFile(
        sys::fs::getMainExecutable("", reinterpret_cast<void *>(&digest)),
        /*IsText=*/false, /*RequiresNullTerminator=*/false);
    return file ? digest((*file)->getBuffer()) : std::string();
  }();
  return own;
}

} // namespace

KernelCache::KernelCache() {
  SmallString<128> path;
  if (!sys::path::cache_directory(path))
    return;
  sys::path::append(path, "heed");
  folder = path.str().str();
}

std::string KernelCache::fileOf(StringRef content) const {
  if (folder.empty() || ownDigest().empty())
    return {};
  SmallString<128> path(folder);
  std::string key = toHex(digest(ownDigest() + content.str()), true);
  sys::path::append(path, "llvmcache-" + key); // the name that pruning expects
  return path.str().str();
}

std::optional<std::string> KernelCache::find(StringRef content) const {
  std::string path = fileOf(content);
  if (path.empty())
    return std::nullopt;
  // Opened so that its time of use is new, by which pruning goes.
  Expected<sys::fs::file_t> file =
      sys::fs::openNativeFileForRead(path, sys::fs::OF_UpdateAtime);
  if (!file) {
    consumeError(file.takeError());
    return std::nullopt;
  }
  auto buffer = MemoryBuffer::getOpenFile(*file, path, /*FileSize=*/-1,
                                          /*RequiresNullTerminator=*/false);
  sys::fs::closeFile(*file);
  // A file is its bytes' digest and the bytes: a damaged one is as if missing.
  if (!buffer || (*buffer)->getBufferSize() < kDigestSize)
    return std::nullopt;
  StringRef all = (*buffer)->getBuffer(), bytes = all.drop_front(kDigestSize);
  if (digest(bytes) != all.take_front(kDigestSize))
    return std::nullopt;
  return bytes.str();
}

void KernelCache::store(StringRef content, StringRef object) const {
  std::string path = fileOf(content), ignored;
  if (!path.empty() && !sys::fs::create_directories(folder))
    (void)writeWhole(digest(object) + object.str(), path, ignored);
}

KernelCache::~KernelCache() {
  if (folder.empty())
    return;
  CachePruningPolicy policy;
  policy.Expiration = std::chrono::hours(30 * 24);
  policy.MaxSizeBytes = kMaxBytes;
  pruneCache(folder, policy);
}
