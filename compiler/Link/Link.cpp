//===- Link.cpp - objects to programs and libraries -----------------------===//
//
// The system's C compiler as linker driver, and archives through LLVM.
//
//===----------------------------------------------------------------------===//

#include "compiler/Link/Link.h"
#include "compiler/Link/Output.h"
#include "support/Format.h"
#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/Archive.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Object/Binary.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using heed::LinkInput;
using heed::LinkKind;
using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

namespace {

std::string findLinkerDriver() {
  for (StringRef name : {"cc", "clang-22", "clang", "gcc"})
    if (ErrorOr<std::string> path = sys::findProgramByName(name))
      return *path;
  return {};
}

/// What follows the inputs on the linker's command line. \p script says what a
/// shared library shows.
void addArguments(LinkKind kind, ArrayRef<std::string> archives,
                  StringRef script, StringRef output,
                  std::vector<std::string> &arguments) {
  if (kind == LinkKind::Object) {
    // Functions that several objects hold may become names of this one alone:
    // no linker may drop them in favour of another object's.
    arguments.insert(arguments.end(),
                     {"-r", "-nostdlib", "-Wl,--force-group-allocation"});
    arguments.insert(arguments.end(), archives.begin(), archives.end());
    return;
  }
  if (kind == LinkKind::Shared)
    arguments.insert(
        arguments.end(),
        {"-shared", heed::format("-Wl,--version-script={}", script),
         heed::format("-Wl,-soname,{}", sys::path::filename(output)),
         // The code calls its own runtime, whatever names the process already
         // has.
         "-Wl,-Bsymbolic", "-Wl,--whole-archive"});
  arguments.insert(arguments.end(), archives.begin(), archives.end());
  if (kind == LinkKind::Shared)
    arguments.push_back("-Wl,--no-whole-archive");
  // The build id would be the only thing that differs between two links of the
  // same code under other temporary names.
  arguments.insert(arguments.end(), {"-Wl,--gc-sections", "-Wl,--build-id=none",
                                     "-Wl,-s", "-Wl,-z,relro", "-Wl,-z,now",
                                     "-Wl,-z,noexecstack", "-lm", "-lpthread"});
}

} // namespace

LogicalResult heed::link(LinkKind kind, ArrayRef<LinkInput> inputs,
                         ArrayRef<std::string> archives,
                         const std::string &exports, const std::string &output,
                         std::string &error, raw_ostream *say) {
  std::string driver = findLinkerDriver();
  if (driver.empty()) {
    error = "no linker found: expected 'cc', 'clang-22', 'clang' or 'gcc' in "
            "PATH";
    return failure();
  }
  SignalsHeld held;
  Temporaries files;
  std::string result;
  if (!files.forOutput(output, result, error))
    return failure();
  std::vector<std::string> arguments{driver, "-o", result};
  for (const LinkInput &input : inputs) {
    std::string path;
    if (!files.write(heed::format("heed-{}", input.name), "o", input.bytes,
                     path, error))
      return failure();
    arguments.push_back(path);
  }
  std::string script;
  if (kind == LinkKind::Shared &&
      !files.write(
          "heed-exports", "map",
          heed::format("{{ global: {}; heed_*; local: *; }};\n", exports),
          script, error))
    return failure();
  addArguments(kind, archives, script, output, arguments);
  std::vector<StringRef> references(arguments.begin(), arguments.end());
  if (say) {
    interleave(
        references, *say,
        [&](StringRef word) { sys::printArg(*say, word, /*Quote=*/false); },
        " ");
    *say << '\n';
  }
  std::string messages;
  if (!files.write("heed-link", "log", "", messages, error))
    return failure();
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(messages),
                                          StringRef(messages)};
  int code = sys::ExecuteAndWait(driver, references, std::nullopt, redirects, 0,
                                 0, &error);
  if (code != 0) {
    auto log = MemoryBuffer::getFile(messages);
    error = heed::format("linking with '{}' failed", driver);
    if (log)
      error += heed::format(":\n{}", (*log)->getBuffer());
    return failure();
  }
  return publish(result, output, error);
}

namespace {

/// The members of an archive and what else one is made of.
class Members {
public:
  void add(StringRef bytes, StringRef name) {
    NewArchiveMember member;
    member.Buf = MemoryBuffer::getMemBufferCopy(bytes, name);
    member.MemberName = member.Buf->getBufferIdentifier();
    member.Perms = 0644;
    members.push_back(std::move(member));
  }

  LogicalResult addAll(const std::string &path, std::string &error) {
    auto file = MemoryBuffer::getFile(path);
    if (!file) {
      error =
          heed::format("cannot read '{}': {}", path, file.getError().message());
      return failure();
    }
    Expected<std::unique_ptr<object::Archive>> source =
        object::Archive::create(**file);
    if (!source) {
      error = toString(source.takeError());
      return failure();
    }
    Error problem = Error::success();
    for (const object::Archive::Child &child : (*source)->children(problem)) {
      Expected<StringRef> name = child.getName();
      Expected<StringRef> bytes = child.getBuffer();
      if (name && bytes)
        add(*bytes, *name);
      if (!name)
        consumeError(name.takeError());
      if (!bytes)
        consumeError(bytes.takeError());
    }
    if (!problem)
      return success();
    error = toString(std::move(problem));
    return failure();
  }

  LogicalResult write(const std::string &output, std::string &error) {
    // To memory first: LLVM ends the process where a disk is full.
    Expected<std::unique_ptr<MemoryBuffer>> bytes = writeArchiveToBuffer(
        members, SymtabWritingMode::NormalSymtab, object::Archive::K_GNU,
        /*Deterministic=*/true, /*Thin=*/false);
    if (bytes)
      return heed::writeWhole((*bytes)->getBuffer(), output, error);
    error = toString(bytes.takeError());
    return failure();
  }

private:
  std::vector<NewArchiveMember> members;
};

/// \p object with all symbols that it defines local but \p exported.
LogicalResult hideSymbols(StringRef object, StringRef exported,
                          SmallVectorImpl<char> &result, std::string &error) {
  objcopy::ConfigManager config;
  config.Common.OutputFormat = objcopy::FileFormat::ELF;
  auto ignore = [](Error problem) { return problem; };
  Error problem = config.Common.SymbolsToKeepGlobal.addMatcher(
      objcopy::NameOrPattern::create(exported, objcopy::MatchStyle::Literal,
                                     ignore));
  Expected<std::unique_ptr<object::Binary>> binary =
      object::createBinary(MemoryBufferRef(object, "model.o"));
  raw_svector_ostream os(result);
  if (!problem)
    problem = binary.takeError();
  if (!problem)
    problem = objcopy::executeObjcopyOnBinary(config, **binary, os);
  if (!problem)
    return success();
  error = toString(std::move(problem));
  return failure();
}

} // namespace

LogicalResult heed::archive(ArrayRef<LinkInput> inputs,
                            ArrayRef<std::string> runtimes,
                            const std::string &interface,
                            const std::string &exports,
                            const std::string &output, std::string &error,
                            raw_ostream *commands) {
  Temporaries files;
  std::string whole;
  if (!files.write("heed-model", "o", "", whole, error) ||
      failed(
          link(LinkKind::Object, inputs, runtimes, "", whole, error, commands)))
    return failure();
  auto object = MemoryBuffer::getFile(whole);
  if (!object) {
    error = heed::format("cannot read '{}': {}", whole,
                         object.getError().message());
    return failure();
  }
  SmallVector<char> hidden;
  if (failed(hideSymbols((*object)->getBuffer(), exports, hidden, error)))
    return failure();
  Members members;
  members.add(StringRef(hidden.data(), hidden.size()),
              heed::format("{}.o", exports));
  if (failed(members.addAll(interface, error)))
    return failure();
  return members.write(output, error);
}
