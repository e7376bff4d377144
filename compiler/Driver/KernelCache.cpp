//===- KernelCache.cpp - kernels that were compiled before ----------------===//

#include "compiler/Driver/KernelCache.h"
#include "support/Format.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;
using namespace heed;

namespace {

std::string digest(StringRef bytes) {
  BLAKE3Result<> hash = BLAKE3::hash(arrayRefFromStringRef(bytes));
  return std::string(reinterpret_cast<const char *>(hash.data()), hash.size());
}

constexpr size_t kDigestSize = sizeof(BLAKE3Result<>);

/// The build id of a loaded library: what its linker wrote for what is in it;
/// empty if it wrote none.
StringRef buildId(const dl_phdr_info &library) {
  for (int k = 0; k < library.dlpi_phnum; ++k) {
    const ElfW(Phdr) &header = library.dlpi_phdr[k];
    if (header.p_type != PT_NOTE)
      continue;
    // The loader says where. NOLINTBEGIN(performance-no-int-to-ptr)
    const char *at =
        reinterpret_cast<const char *>(library.dlpi_addr + header.p_vaddr);
    // NOLINTEND(performance-no-int-to-ptr)
    StringRef notes(at, header.p_memsz);
    while (notes.size() >= sizeof(ElfW(Nhdr))) {
      const auto *note = reinterpret_cast<const ElfW(Nhdr) *>(notes.data());
      notes = notes.drop_front(sizeof *note);
      StringRef name = notes.take_front(note->n_namesz);
      notes = notes.drop_front(
          std::min<size_t>(notes.size(), alignTo(note->n_namesz, 4)));
      StringRef text = notes.take_front(note->n_descsz);
      if (note->n_type == NT_GNU_BUILD_ID && name == StringRef("GNU\0", 4))
        return text;
      notes = notes.drop_front(
          std::min<size_t>(notes.size(), alignTo(note->n_descsz, 4)));
    }
  }
  return {};
}

/// Appends what tells one build of a loaded library from another.
int addLibrary(dl_phdr_info *library, size_t, void *text) {
  StringRef path = library->dlpi_name;
  // The program itself has no name here; the kernel's vdso makes no code.
  if (path.empty() || path.starts_with("linux-vdso"))
    return 0;
  auto &all = *static_cast<std::string *>(text);
  StringRef id = buildId(*library);
  struct stat status;
  if (!id.empty())
    all += heed::format("{} {}\n", sys::path::filename(path), toHex(id));
  else if (stat(library->dlpi_name, &status) == 0)
    all += heed::format("{} {} {}.{}\n", path, status.st_size,
                        status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  return 0;
}

/// All that makes code of a kernel: this program, and every library in it
/// (Halide with its LLVM, MLIR, the system's LLVM, the mathematics that folds
/// constants). Two builds that print one version may make other code. Empty if
/// the program cannot be read.
const std::string &compiler() {
  static const std::string known = [] {
    auto file = MemoryBuffer::getFile(
        sys::fs::getMainExecutable("", reinterpret_cast<void *>(&digest)),
        /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!file)
      return std::string();
    std::string libraries;
    dl_iterate_phdr(addLibrary, &libraries);
    return digest((*file)->getBuffer()) + libraries;
  }();
  return known;
}

std::string keyOf(StringRef content) {
  return digest(compiler() + content.str());
}

/// With the name that pruning expects.
std::string nameOf(StringRef key) {
  return heed::format("llvmcache-{}", toHex(key, /*LowerCase=*/true));
}

bool isOthers(const struct stat &status) { return status.st_uid != geteuid(); }

bool mayBeWrittenByOthers(const struct stat &status) {
  return status.st_mode & (S_IWGRP | S_IWOTH);
}

} // namespace

std::string heed::keyOfCode(StringRef content) {
  return compiler().empty() ? std::string()
                            : toHex(keyOf(content), /*LowerCase=*/true);
}

std::unique_ptr<KernelCache> KernelCache::open(std::string &refused) {
  SmallString<128> path;
  if (!sys::path::cache_directory(path) || compiler().empty())
    return nullptr;
  sys::path::append(path, "heed");
  if (sys::fs::create_directories(path, /*IgnoreExisting=*/true,
                                  sys::fs::owner_all))
    return nullptr;
  int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat status;
  if (directory < 0)
    return nullptr;
  // Owned by the object from here on.
  std::unique_ptr<KernelCache> cache(
      new KernelCache(path.str().str(), directory));
  if (fstat(directory, &status) != 0)
    return nullptr;
  if (isOthers(status))
    refused = heed::format("'{}' belongs to another user", path.str());
  else if (mayBeWrittenByOthers(status))
    refused = heed::format("others may write to '{}'; 'chmod go-w' mends that",
                           path.str());
  if (refused.empty())
    return cache;
  cache->folder.clear(); // nothing of it is to be removed
  return nullptr;
}

std::optional<std::string> KernelCache::find(StringRef content) const {
  std::string key = keyOf(content), name = nameOf(key);
  int file = openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0)
    return std::nullopt;
  scope_exit closed([&] { close(file); });
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) ||
      isOthers(status) || mayBeWrittenByOthers(status))
    return std::nullopt;
  // A new time of use, by which pruning goes.
  const timespec times[] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  (void)futimens(file, times);
  auto buffer = MemoryBuffer::getOpenFile(file, name, /*FileSize=*/-1,
                                          /*RequiresNullTerminator=*/false);
  // A file is the hash of its key and its object, and the object: a damaged one
  // is as if missing, and so is one that was written under another key.
  if (!buffer || (*buffer)->getBufferSize() < kDigestSize)
    return std::nullopt;
  StringRef all = (*buffer)->getBuffer(), bytes = all.drop_front(kDigestSize);
  if (digest(key + bytes.str()) != all.take_front(kDigestSize))
    return std::nullopt;
  return bytes.str();
}

void KernelCache::store(StringRef content, StringRef object) const {
  std::string key = keyOf(content);
  SmallString<128> path(folder);
  sys::path::append(path, nameOf(key));
  Expected<sys::fs::TempFile> file =
      sys::fs::TempFile::create(heed::format("{}.%%%%%%%%.tmp", path),
                                sys::fs::owner_read | sys::fs::owner_write);
  if (!file)
    return consumeError(file.takeError());
  raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  os << digest(key + object.str()) << object;
  os.flush();
  bool good = !os.has_error();
  os.clear_error(); // else its destructor ends the process
  consumeError(good ? file->keep(path) : file->discard());
}

KernelCache::~KernelCache() {
  close(directory);
  if (folder.empty())
    return;
  CachePruningPolicy policy;
  policy.Expiration = std::chrono::hours(30 * 24);
  policy.MaxSizeBytes = kMaxBytes;
  pruneCache(folder, policy);
}
