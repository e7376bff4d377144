//===- Output.cpp - files that appear whole or not at all -----------------===//

#include "compiler/Link/Output.h"
#include "support/Format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include <filesystem>
#include <utility>

using namespace llvm;
using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

namespace {

LogicalResult cannotWrite(StringRef output, std::error_code code,
                          std::string &error) {
  error = heed::format("cannot write '{}': {}", output.str(), code.message());
  return failure();
}

/// Written in place: a device, a pipe, standard output.
bool isInPlace(const std::string &output) {
  sys::fs::file_status status;
  return output == "-" ||
         (!sys::fs::status(output, status) && sys::fs::exists(status) &&
          !sys::fs::is_regular_file(status));
}

/// The file behind a link is replaced, not the link; it need not exist yet.
std::string behindLinks(std::string output) {
  SmallString<128> real;
  if (!sys::fs::real_path(output, real))
    return real.str().str();
  for (int links = 0; links < 40 && sys::fs::is_symlink_file(output); ++links) {
    std::error_code code;
    std::filesystem::path path(output), next = read_symlink(path, code);
    output = (path.parent_path() / next).string();
  }
  return output;
}

LogicalResult writeTo(raw_fd_ostream &os, StringRef bytes, StringRef output,
                      std::string &error) {
  os << bytes;
  os.flush();
  if (!os.has_error())
    return success();
  std::error_code code = os.error();
  os.clear_error(); // else its destructor ends the process
  return cannotWrite(output, code, error);
}

LogicalResult writeInPlace(StringRef bytes, const std::string &output,
                           std::string &error) {
  if (output == "-")
    return writeTo(outs(), bytes, "standard output", error);
  int file;
  if (std::error_code code = sys::fs::openFileForWrite(
          output, file, sys::fs::CD_OpenExisting, sys::fs::OF_None))
    return cannotWrite(output, code, error);
  raw_fd_ostream os(file, /*shouldClose=*/true, /*unbuffered=*/true);
  return writeTo(os, bytes, output, error);
}

} // namespace

LogicalResult heed::checkOutput(const std::string &output,
                                ArrayRef<std::string> inputs,
                                std::string &error) {
  if (output == "-")
    return success();
  for (const std::string &input : inputs) {
    if (sys::fs::is_directory(input)) {
      error = heed::format("cannot read '{}': it is a folder", input);
      return failure();
    }
    if (sys::fs::equivalent(output, input)) {
      error = heed::format("cannot write '{}': it is an input", output);
      return failure();
    }
  }
  if (sys::fs::is_directory(output))
    return cannotWrite(output, make_error_code(std::errc::is_a_directory),
                       error);
  std::string file = behindLinks(output);
  StringRef folder = sys::path::parent_path(file);
  if (folder.empty())
    folder = ".";
  if (!isInPlace(output))
    if (std::error_code code =
            sys::fs::access(folder, sys::fs::AccessMode::Write))
      return cannotWrite(output, code, error);
  return success();
}

bool heed::isSameFile(const std::string &one, const std::string &other) {
  if (sys::fs::equivalent(one, other))
    return true;
  std::string left = behindLinks(one), right = behindLinks(other);
  auto folder = [](StringRef path) {
    StringRef parent = sys::path::parent_path(path);
    return parent.empty() ? StringRef(".") : parent;
  };
  return sys::path::filename(left) == sys::path::filename(right) &&
         sys::fs::equivalent(folder(left), folder(right));
}

LogicalResult heed::writeWhole(StringRef bytes, const std::string &output,
                               std::string &error) {
  if (isInPlace(output))
    return writeInPlace(bytes, output, error);
  Temporaries files;
  std::string path;
  if (!files.forOutput(output, path, error))
    return failure();
  std::error_code code;
  raw_fd_ostream os(path, code);
  if (code)
    return cannotWrite(output, code, error);
  if (failed(writeTo(os, bytes, output, error)))
    return failure();
  return publish(path, output, error);
}

LogicalResult heed::publish(const std::string &path, const std::string &output,
                            std::string &error) {
  if (isInPlace(output)) {
    auto bytes = MemoryBuffer::getFile(path, /*IsText=*/false,
                                       /*RequiresNullTerminator=*/false);
    if (!bytes)
      return cannotWrite(output, bytes.getError(), error);
    return writeInPlace((*bytes)->getBuffer(), output, error);
  }
  if (std::error_code code = sys::fs::rename(path, behindLinks(output)))
    return cannotWrite(output, code, error);
  return success();
}

heed::Temporaries::~Temporaries() {
  for (const std::string &path : paths) {
    (void)sys::fs::remove(path);
    sys::DontRemoveFileOnSignal(path);
  }
}

bool heed::Temporaries::forOutput(const std::string &output, std::string &path,
                                  std::string &error) {
  SignalsHeld held; // until the file is known as one to remove
  SmallString<128> name;
  // Beside the output, so that a rename stays on one disk.
  std::error_code code =
      isInPlace(output)
          ? sys::fs::createTemporaryFile("heed-output", "", name)
          : sys::fs::createUniqueFile(
                heed::format("{}.%%%%%%%%.tmp", behindLinks(output)), name,
                sys::fs::all_read | sys::fs::all_write);
  if (code)
    return succeeded(cannotWrite(output, code, error));
  path = name.str().str();
  keep(path);
  return true;
}

bool heed::Temporaries::write(StringRef stem, StringRef suffix, StringRef bytes,
                              std::string &path, std::string &error) {
  SignalsHeld held;
  SmallString<128> name;
  int file;
  if (std::error_code code =
          sys::fs::createTemporaryFile(stem, suffix, file, name)) {
    error = heed::format("cannot write a temporary file: {}", code.message());
    return false;
  }
  path = name.str().str();
  keep(path);
  raw_fd_ostream os(file, /*shouldClose=*/true);
  return succeeded(writeTo(os, bytes, path, error));
}

LogicalResult heed::Replaced::keep(const std::string &path,
                                   std::string &error) {
  if (isInPlace(path))
    return success();
  output = behindLinks(path);
  if (!sys::fs::exists(output))
    return success();
  if (!files.forOutput(path, old, error))
    return failure();
  // A second name costs nothing, but not every disk has such.
  (void)sys::fs::remove(old);
  if (!sys::fs::create_hard_link(output, old))
    return success();
  sys::fs::file_status status;
  std::error_code code = sys::fs::copy_file(output, old);
  if (!code)
    code = sys::fs::status(output, status);
  if (!code)
    code = sys::fs::setPermissions(old, status.permissions());
  return code ? cannotWrite(path, code, error) : success();
}

void heed::Replaced::restore() {
  if (output.empty())
    return;
  if (old.empty())
    (void)sys::fs::remove(output);
  else
    (void)sys::fs::rename(old, output);
}

void heed::Temporaries::keep(const std::string &path) {
  paths.push_back(path);
  sys::RemoveFileOnSignal(path);
}

namespace {
/// Signals that end a program, and what each did before it was held.
constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP};
struct sigaction actionsBefore[std::size(kEnding)];
int numHeld = 0; ///< of the one thread that writes outputs
volatile sig_atomic_t received = 0;
} // namespace

heed::SignalsHeld::SignalsHeld() {
  // Blocked here and in programs that are started; another thread of ours takes
  // the signal nevertheless, and only notes it.
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : kEnding)
    sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  if (numHeld++ > 0)
    return;
  struct sigaction note = {};
  note.sa_handler = [](int signal) { received = signal; };
  for (auto [signal, action] : llvm::zip_equal(kEnding, actionsBefore)) {
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN)
      sigaction(signal, &note, nullptr);
  }
}

heed::SignalsHeld::~SignalsHeld() {
  int wanted = 0;
  if (--numHeld == 0) {
    for (auto [signal, action] : llvm::zip_equal(kEnding, actionsBefore))
      sigaction(signal, &action, nullptr);
    wanted = std::exchange(received, 0);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (wanted)
    raise(wanted);
}
