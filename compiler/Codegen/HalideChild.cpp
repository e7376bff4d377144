// Halide's part of a compilation, in a process of its own.

#include "compiler/Codegen/HalideChild.h"
#include "compiler/Codegen/HalideBlame.h"
#include "compiler/Codegen/HalideCubins.h"
#include "compiler/Codegen/HalideLowering.h"
#include "compiler/Codegen/HalideTranslate.h"
#include "compiler/Codegen/StreamStores.h"
#include "dialects/Halide/Target.h"
#include "support/Format.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/MemoryBuffer.h"
#include <csignal>
#include <cstdlib>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace heed;

namespace {

/// Thrown by the reporter instead of Halide's own errors, so that the message
/// arrives as it is.
struct HalideError {
  std::string message;
};

void writeAll(int fd, const void *data, size_t size) {
  for (const char *p = static_cast<const char *>(data); size > 0;) {
    ssize_t n = ::write(fd, p, size);
    if (n <= 0)
      ::_exit(2); // the parent is gone
    p += n;
    size -= n;
  }
}

void send(int fd, Record kind, uint32_t op, StringRef text) {
  uint64_t size = text.size();
  writeAll(fd, &kind, 1);
  writeAll(fd, &op, sizeof op);
  writeAll(fd, &size, sizeof size);
  writeAll(fd, text.data(), text.size());
}

/// One line, in this project's style: without Halide's "Error:".
std::string tidy(StringRef message) {
  std::string text;
  SmallVector<StringRef> lines;
  message.split(lines, '\n', -1, false);
  for (StringRef line : lines) {
    line = line.trim();
    line.consume_front("Error:");
    line.consume_front("Warning:");
    line = line.ltrim();
    if (line.empty())
      continue;
    text += (text.empty() ? "" : " ") + line.str();
  }
  return text;
}

class Reporter : public Halide::CompileTimeErrorReporter {
public:
  explicit Reporter(int fd) : fd(fd) {}
  void warning(const char *message) override {
    std::string text = tidy(message);
    if (saysGuaranteedToFail(text))
      throw HalideError{text};
    // bf16 is widened where it is read and rounded where it is written: shifts,
    // and no arithmetic that is emulated.
    if (text.find("float16 type operation is emulated") != std::string::npos)
      return;
    send(fd, Record::Warning, 0, text);
  }
  [[noreturn]] void error(const char *message) override {
    throw HalideError{message};
  }

private:
  int fd;
};

/// Has libHalide write a file (it knows nothing else), and returns what is in
/// it.
std::string throughFile(llvm::function_ref<void(const std::string &)> write) {
  // In memory: whatever ends this process leaves nothing behind.
  int file = ::memfd_create("heed-kernel", MFD_CLOEXEC);
  if (file < 0)
    throw HalideError{"cannot create a temporary file"};
  llvm::scope_exit close([&] { ::close(file); });
  std::string path = format("/proc/self/fd/{}", file);
  write(path);
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    throw HalideError{format("cannot read back the temporary file: {}",
                             buffer.getError().message())};
  return (*buffer)->getBuffer().str();
}

uint32_t numberOf(halide::PipelineOp pipeline, Operation *wanted) {
  uint32_t number = 0, found = 0;
  pipeline->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == wanted)
      found = number;
    ++number;
  });
  return found;
}

} // namespace

Child::Child(llvm::function_ref<void(int)> body)
    : start(std::chrono::steady_clock::now()) {
  int ends[2];
  if (::pipe(ends) != 0)
    return;
  pid_t parent = ::getpid();
  said.reset(std::tmpfile());
  pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL); // who would read the result?
    if (::getppid() != parent)
      ::_exit(2);
    ::close(ends[0]);
    if (said)
      ::dup2(::fileno(said.get()), STDERR_FILENO);
    body(ends[1]);
    ::_exit(0);
  }
  ::close(ends[1]);
  fd = ends[0];
}

bool Child::drain() {
  char chunk[1 << 16];
  ssize_t n = ::read(fd, chunk, sizeof chunk);
  if (n > 0) {
    bytes.append(chunk, n);
    return false;
  }
  ::close(fd);
  rusage used{};
  while (::wait4(pid, &status, 0, &used) < 0 && errno == EINTR) {
  }
  for (const timeval &part : {used.ru_utime, used.ru_stime})
    processor += part.tv_sec + part.tv_usec * 1e-6;
  seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return true;
}

int64_t Child::left(unsigned limit) const {
  auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - start);
  return std::max<int64_t>(0, int64_t(limit) * 1000 - passed.count());
}

void Child::stop() {
  ::kill(pid, SIGKILL);
  while (!drain())
    continue;
  late = true;
}

bool Child::crashed() const {
  return WIFSIGNALED(status) &&
         (WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGSEGV);
}

int Child::interruptedBy() const {
  int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return llvm::is_contained({SIGINT, SIGTERM, SIGHUP}, signal) ? signal : 0;
}

std::string Child::lastWords() {
  char line[1024];
  if (said)
    std::fseek(said.get(), 0, SEEK_SET);
  while (said && std::fgets(line, sizeof line, said.get())) {
    StringRef text = line;
    if (text.contains("Assertion `"))
      return text.drop_until([](char c) { return c == '`'; })
          .drop_front()
          .rsplit('\'')
          .first.str();
    if (text.consume_front("LLVM ERROR: "))
      return text.trim().str();
  }
  return {};
}

std::vector<Message> Child::messages() const {
  StringRef rest = bytes;
  std::vector<Message> messages;
  const size_t header = 1 + sizeof(uint32_t) + sizeof(uint64_t);
  while (rest.size() >= header) {
    Message m{static_cast<Record>(rest[0]), 0, {}};
    uint64_t size;
    std::memcpy(&m.op, rest.data() + 1, sizeof m.op);
    std::memcpy(&size, rest.data() + 1 + sizeof m.op, sizeof size);
    if (rest.size() - header < size)
      break;
    m.text = rest.substr(header, size).str();
    messages.push_back(std::move(m));
    rest = rest.substr(header + size);
  }
  return messages;
}

/// What \p target's driver compiles of \p module: within the registers that the
/// schedule counts on, and cubins beside it.
static void finishDeviceCode(Halide::Module &module,
                             halide::PipelineOp pipeline,
                             const Halide::Target &target,
                             const HalideCodegenOptions &options) {
  if (!target.has_feature(Halide::Target::CUDA))
    return;
  limitRegisters(module, pipeline.getRegisters().value_or(
                             halide::getTarget(pipeline).threadRegisters));
  std::string message;
  if (options.output == HalideOutput::Object &&
      !options.cudaCode.archs.empty() &&
      !addCubins(module, options.cudaCode, message))
    throw HalideError{message};
}

/// How far back LLVM looks for what a load reads is an option of the process,
/// which libHalide has from the environment.
static void setLookBack(halide::PipelineOp pipeline) {
  std::optional<int64_t> instructions = pipeline.getLookBack();
  if (!instructions)
    return;
  const char *name = "HL_LLVM_ARGS", *given = std::getenv(name);
  std::string arguments = format("-memdep-block-scan-limit={}", *instructions);
  if (given)
    arguments = given + (" " + arguments);
  ::setenv(name, arguments.c_str(), /*overwrite=*/1);
}

void heed::compileInChild(halide::PipelineOp pipeline,
                          const std::string &symbol,
                          const Halide::Target &target,
                          const HalideCodegenOptions &options, Backend backend,
                          int fd) {
  HalideOutput output = options.output;
  Reporter reporter(fd);
  Halide::set_custom_compile_time_error_reporter(&reporter);
  HalideTranslator translator(pipeline, target.has_gpu_feature());
  Operation *at = nullptr;
  std::string message;
  Record kind = Record::Refusal;
  setLookBack(pipeline);
  try {
    translator.translate();
    at = translator.current;
    addLastChanges(translator.result, target,
                   options.promises && !options.checks);
    Halide::Module module = translator.result.compile_to_module(
        translator.arguments, symbol, target,
        Halide::LinkageType::ExternalPlusArgv);
    finishDeviceCode(module, pipeline, target, options);
    for (const auto &[op, text] : translator.unmet())
      send(fd, Record::Directive, numberOf(pipeline, op), text);
    bool bySystem = (translator.hasStreams || backend == Backend::System) &&
                    output != HalideOutput::Statement;
    Halide::OutputFileType type =
        bySystem                            ? Halide::OutputFileType::bitcode
        : output == HalideOutput::Object    ? Halide::OutputFileType::object
        : output == HalideOutput::Statement ? Halide::OutputFileType::stmt
                                            : Halide::OutputFileType::assembly;
    std::string bytes = throughFile(
        [&](const std::string &path) { module.compile({{type, path}}); });
    if (output == HalideOutput::Assembly && target.has_gpu_feature())
      bytes += throughFile([&](const std::string &path) {
        module.compile({{Halide::OutputFileType::device_code, path}});
      });
    if (bySystem) {
      std::string code, error;
      if (!compileBitcode(bytes, output == HalideOutput::Assembly, code, error))
        throw HalideError{error};
      bytes = std::move(code);
    }
    send(fd, Record::Result, 0, bytes);
    return;
  } catch (const TranslationError &e) {
    kind = Record::Error;
    at = e.op;
    message = format("'{}' {}", e.op->getName().getStringRef(), e.message);
  } catch (const HalideError &e) {
    message = tidy(e.message);
  } catch (const Halide::Error &e) {
    message = tidy(e.what());
  } catch (const std::exception &e) {
    message = e.what();
  }
  if (at == pipeline.getOperation() || !at)
    at = translator.current && translator.current != pipeline
             ? translator.current
             : blame(pipeline, message);
  send(fd, kind, numberOf(pipeline, at), message);
}

void heed::compileRuntimeInChild(const Halide::Target &target, int fd) {
  try {
    send(fd, Record::Result, 0, throughFile([&](const std::string &path) {
           Halide::compile_standalone_runtime(path, target);
         }));
  } catch (const Halide::Error &e) {
    send(fd, Record::Error, 0, tidy(e.what()));
  } catch (const HalideError &e) {
    send(fd, Record::Error, 0, e.message);
  }
}
