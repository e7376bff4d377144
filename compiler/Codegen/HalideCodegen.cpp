// Compiles pipelines, each in a process of its own.
//
// libHalide numbers temporaries and funcs with counters of the process, so a
// kernel's bytes would depend on what was compiled before or beside it. A
// forked child starts from the same counters every time; and where libHalide
// crashes, the compiler does not.

#include "compiler/Codegen/HalideCodegen.h"
#include "compiler/Codegen/HalideBlame.h"
#include "compiler/Codegen/HalideLowering.h"
#include "compiler/Codegen/HalideTranslate.h"
#include "compiler/Codegen/StreamStores.h"
#include "dialects/Halide/Target.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Threading.h"
#include <chrono>
#include <csignal>
#include <dlfcn.h>
#include <limits>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace heed;

namespace {

/// What a child sends: a sequence of records.
enum class Record : char { Result, Error, Warning };

/// Where a record goes and what it says. `op` counts the pipeline's ops in walk
/// order.
struct Message {
  Record kind;
  uint32_t op;
  std::string text;
};

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

std::vector<Message> parseMessages(StringRef bytes) {
  std::vector<Message> messages;
  const size_t header = 1 + sizeof(uint32_t) + sizeof(uint64_t);
  while (bytes.size() >= header) {
    Message m{static_cast<Record>(bytes[0]), 0, {}};
    uint64_t size;
    std::memcpy(&m.op, bytes.data() + 1, sizeof m.op);
    std::memcpy(&size, bytes.data() + 1 + sizeof m.op, sizeof size);
    if (bytes.size() - header < size)
      break;
    m.text = bytes.substr(header, size).str();
    messages.push_back(std::move(m));
    bytes = bytes.substr(header + size);
  }
  return messages;
}

/// One line, in this project's style: without Halide's "Error:" and the places
/// in its own sources.
std::string tidy(StringRef message) {
  std::string text;
  SmallVector<StringRef> lines;
  message.split(lines, '\n', -1, false);
  for (StringRef line : lines) {
    line = line.trim();
    line.consume_front("Error: ");
    line.consume_front("Warning: ");
    if (line.empty() || line.starts_with("Internal Error at") ||
        line.starts_with("Condition failed"))
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
    send(fd, Record::Warning, 0, text);
  }
  [[noreturn]] void error(const char *message) override {
    throw HalideError{message};
  }

private:
  int fd;
};

/// Runs \p body in a child that holds one end of a pipe. What it says on stderr
/// (LLVM's assertions and stack traces) goes to a file.
class Child {
public:
  Child(llvm::function_ref<void(int)> body)
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

  /// Reads what has come; true when the child has ended.
  bool drain() {
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

  /// Milliseconds that are left of \p limit seconds, not below 0.
  int64_t left(unsigned limit) const {
    auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - start);
    return std::max<int64_t>(0, int64_t(limit) * 1000 - passed.count());
  }

  /// Ends it, whatever it does.
  void stop() {
    ::kill(pid, SIGKILL);
    while (!drain())
      continue;
    late = true;
  }

  /// Whether it ended by its own fault, not because somebody ended it.
  bool crashed() const {
    return WIFSIGNALED(status) &&
           (WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGSEGV);
  }

  /// The assertion that ended the child, from what it said; empty if none.
  std::string assertion() {
    char line[1024];
    if (said)
      std::rewind(said.get());
    while (said && std::fgets(line, sizeof line, said.get()))
      if (StringRef(line).contains("Assertion `"))
        return StringRef(line)
            .drop_until([](char c) { return c == '`'; })
            .drop_front()
            .rsplit('\'')
            .first.str();
    return {};
  }

  pid_t pid = -1;
  int fd = -1;
  int status = 0;
  std::string bytes;
  double seconds = 0, processor = 0;
  bool late = false; ///< it was stopped

private:
  std::unique_ptr<FILE, int (*)(FILE *)> said{nullptr, std::fclose};
  std::chrono::steady_clock::time_point start;
};

Halide::Target makeTarget(const halide::Target &target, bool checks,
                          bool userContext) {
  Halide::Target t(target.halide);
  t.set_feature(Halide::Target::LargeBuffers);
  if (userContext)
    t.set_feature(Halide::Target::UserContext);
  if (!checks) {
    t.set_feature(Halide::Target::NoAsserts);
    t.set_feature(Halide::Target::NoBoundsQuery);
  }
  return t;
}

/// Has libHalide write a file (it knows nothing else), and returns what is in
/// it.
std::string throughFile(llvm::function_ref<void(const std::string &)> write) {
  // In memory: whatever ends this process leaves nothing behind.
  int file = ::memfd_create("heed-kernel", MFD_CLOEXEC);
  if (file < 0)
    throw HalideError{"cannot create a temporary file"};
  llvm::scope_exit close([&] { ::close(file); });
  std::string path = "/proc/self/fd/" + std::to_string(file);
  write(path);
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    throw HalideError{"cannot read back the temporary file: " +
                      buffer.getError().message()};
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

/// Whose LLVM makes a kernel's code: libHalide's own or the one beside it.
enum class Backend { Bundled, System };

void compileInChild(halide::PipelineOp pipeline, const std::string &symbol,
                    const Halide::Target &target,
                    const HalideCodegenOptions &options, Backend backend,
                    int fd) {
  HalideOutput output = options.output;
  Reporter reporter(fd);
  Halide::set_custom_compile_time_error_reporter(&reporter);
  HalideTranslator translator(pipeline);
  Operation *at = nullptr;
  std::string message;
  try {
    translator.translate();
    at = translator.current;
    addLastChanges(translator.result, target,
                   options.promises && !options.checks);
    Halide::Module module = translator.result.compile_to_module(
        translator.arguments, symbol, target,
        Halide::LinkageType::ExternalPlusArgv);
    bool bySystem = (translator.hasStreams || backend == Backend::System) &&
                    output != HalideOutput::Statement;
    Halide::OutputFileType type =
        bySystem                            ? Halide::OutputFileType::bitcode
        : output == HalideOutput::Object    ? Halide::OutputFileType::object
        : output == HalideOutput::Statement ? Halide::OutputFileType::stmt
                                            : Halide::OutputFileType::assembly;
    std::string bytes = throughFile(
        [&](const std::string &path) { module.compile({{type, path}}); });
    if (bySystem) {
      std::string code, error;
      if (!compileBitcode(bytes, output == HalideOutput::Assembly, code, error))
        throw HalideError{error};
      bytes = std::move(code);
    }
    send(fd, Record::Result, 0, bytes);
    return;
  } catch (const TranslationError &e) {
    at = e.op;
    message = "'" + e.op->getName().getStringRef().str() + "' " + e.message;
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
  send(fd, Record::Error, numberOf(pipeline, at), message);
}

/// Where to begin, so that no long kernel is compiled alone at the end: what a
/// kernel takes grows with its number of ops.
std::vector<size_t> longestFirst(ArrayRef<halide::PipelineOp> pipelines) {
  std::vector<size_t> order, ops;
  for (auto [k, pipeline] : llvm::enumerate(pipelines)) {
    order.push_back(k);
    ops.push_back(0);
    pipeline->walk([&](Operation *) { ++ops.back(); });
  }
  llvm::stable_sort(order, [&](size_t x, size_t y) { return ops[x] > ops[y]; });
  return order;
}

/// Path, size and time of the libHalide that is used.
std::string halideLibrary() {
  Dl_info info;
  llvm::sys::fs::file_status status;
  void *inside = reinterpret_cast<void *>(&Halide::get_host_target);
  if (!dladdr(inside, &info) || llvm::sys::fs::status(info.dli_fname, status))
    return {};
  auto time = status.getLastModificationTime().time_since_epoch().count();
  return llvm::formatv("{0} {1} {2}", info.dli_fname, status.getSize(), time);
}

/// Everything that decides on a kernel's object.
std::string contentOf(halide::PipelineOp pipeline, const std::string &symbol,
                      const Halide::Target &target,
                      const HalideCodegenOptions &options) {
  std::string content;
  llvm::raw_string_ostream os(content);
  os << halideLibrary() << '\n'
     << symbol << '\n'
     << target.to_string() << '\n'
     << (options.promises && !options.checks) << '\n';
  pipeline->print(os);
  return content;
}

/// Turns a child's messages into diagnostics and its result into a kernel,
/// which goes to \p store as that of \p content unless there was something to
/// warn of.
LogicalResult collect(halide::PipelineOp pipeline, Child &child,
                      const HalideCodegenOptions &options,
                      const KernelStore *store, StringRef content,
                      CompiledKernel &kernel) {
  if (child.late)
    return pipeline.emitError()
           << "kernel '" << kernel.name << "' was not compiled within "
           << options.seconds
           << " seconds; --kernel-timeout=SECONDS gives it more";
  SmallVector<Operation *> ops;
  pipeline->walk<WalkOrder::PreOrder>(
      [&](Operation *op) { ops.push_back(op); });
  bool done = false, failed = false, warned = false;
  for (Message &m : parseMessages(child.bytes)) {
    Operation *op = m.op < ops.size() ? ops[m.op] : pipeline.getOperation();
    if (m.kind == Record::Error) {
      failed = true;
      op->emitError() << m.text;
    } else if (m.kind == Record::Warning) {
      warned = true;
      if (options.warnings)
        op->emitWarning() << m.text;
      else
        remark::analysis(op->getLoc(),
                         remark::RemarkOpts::name("warning").category("halide"))
            << (kernel.name + ": " + m.text);
    } else {
      kernel.bytes = std::move(m.text);
      done = true;
    }
  }
  kernel.seconds = child.seconds;
  kernel.processor = child.processor;
  if (done && !failed) {
    if (store && !warned)
      store->store(content, kernel.bytes);
    return success();
  }
  if (failed)
    return failure();
  std::string assertion = child.assertion(), why;
  if (Operation *op = blameCrash(pipeline, assertion, why))
    return op->emitError() << why;
  InFlightDiagnostic diag =
      pipeline.emitError()
      << "libHalide ended without a result while compiling this kernel";
  if (WIFSIGNALED(child.status))
    diag << " (signal " << WTERMSIG(child.status) << ")";
  if (!assertion.empty())
    diag << ": " << assertion;
  return diag;
}

} // namespace

LogicalResult
heed::compileHalidePipelines(ModuleOp module, const halide::Target &target,
                             const HalideCodegenOptions &options,
                             SmallVectorImpl<CompiledKernel> &kernels) {
  Halide::Target halideTarget =
      makeTarget(target, options.checks, options.userContext)
          .with_feature(Halide::Target::NoRuntime);
  if (options.promises)
    halideTarget = halideTarget.without_feature(Halide::Target::NoAsserts);
  SmallVector<halide::PipelineOp> pipelines(
      module.getOps<halide::PipelineOp>());
  if (!options.userContext)
    for (halide::PipelineOp pipeline : pipelines)
      if (pipeline.givesUp())
        return pipeline.emitError("a pipeline that may give up says so to its "
                                  "user context, and would have none");
  size_t jobs = options.jobs
                    ? options.jobs
                    : llvm::hardware_concurrency().compute_thread_count();
  const KernelStore *store =
      options.output == HalideOutput::Object ? options.store : nullptr;
  std::vector<std::string> contents(pipelines.size());
  std::vector<std::unique_ptr<Child>> children(pipelines.size());
  kernels.resize(pipelines.size());
  size_t next = 0, ended = 0;
  std::vector<size_t> running;
  auto begin = [&](size_t k, Backend backend) {
    children[k] = std::make_unique<Child>([&](int fd) {
      compileInChild(pipelines[k], kernels[k].symbol, halideTarget, options,
                     backend, fd);
    });
    return children[k]->pid >= 0;
  };
  bool toDo = bool(options.meanwhile);
  std::vector<bool> again(pipelines.size());
  const std::vector<size_t> order = longestFirst(pipelines);
  while (toDo || ended < pipelines.size()) {
    while (next < pipelines.size() && running.size() < jobs) {
      const size_t k = order[next++];
      halide::PipelineOp pipeline = pipelines[k];
      CompiledKernel &kernel = kernels[k];
      kernel.name = pipeline.getName().str();
      kernel.symbol = options.symbolPrefix + kernel.name;
      if (store) {
        contents[k] = contentOf(pipeline, kernel.symbol, halideTarget, options);
        if (std::optional<std::string> bytes = store->find(contents[k])) {
          kernel.bytes = std::move(*bytes);
          kernel.cached = true;
          ++ended;
          continue;
        }
      }
      if (!begin(k, Backend::Bundled))
        return pipeline.emitError()
               << "cannot start a process to compile this kernel";
      running.push_back(k);
    }
    if (toDo && failed(options.meanwhile())) {
      for (size_t k : running)
        children[k]->stop();
      return failure();
    }
    toDo = false;
    if (running.empty())
      continue;
    std::vector<pollfd> polls;
    int64_t wait = std::numeric_limits<int>::max();
    for (size_t k : running) {
      polls.push_back({children[k]->fd, POLLIN, 0});
      wait = std::min(wait, children[k]->left(options.seconds));
    }
    ::poll(polls.data(), polls.size(), int(wait));
    for (size_t i = running.size(); i-- > 0;) {
      size_t k = running[i];
      bool late = children[k]->left(options.seconds) == 0;
      if (late)
        children[k]->stop();
      if (late || (polls[i].revents && children[k]->drain())) {
        // An assertion of libHalide's LLVM: another one may do without.
        if (children[k]->crashed() && !again[k]) {
          again[k] = true;
          if (begin(k, Backend::System))
            continue;
        }
        running.erase(running.begin() + i);
        ++ended;
      }
    }
  }
  // Diagnostics in the module's order, whatever the order of the ends was.
  LogicalResult result = success();
  for (size_t k = 0; k < pipelines.size(); ++k)
    if (children[k] && failed(collect(pipelines[k], *children[k], options,
                                      store, contents[k], kernels[k])))
      result = failure();
  return result;
}

LogicalResult heed::compileHalideRuntime(const halide::Target &target,
                                         bool userContext, std::string &object,
                                         std::string &error) {
  Halide::Target halideTarget =
      makeTarget(target, /*checks=*/true, userContext);
  Child child([&](int fd) {
    try {
      send(fd, Record::Result, 0, throughFile([&](const std::string &path) {
             Halide::compile_standalone_runtime(path, halideTarget);
           }));
    } catch (const Halide::Error &e) {
      send(fd, Record::Error, 0, tidy(e.what()));
    } catch (const HalideError &e) {
      send(fd, Record::Error, 0, e.message);
    }
  });
  error = "cannot compile Halide's runtime";
  if (child.pid < 0)
    return failure();
  while (!child.drain()) {
  }
  for (Message &m : parseMessages(child.bytes)) {
    if (m.kind == Record::Result) {
      object = std::move(m.text);
      return success();
    }
    error += ": " + m.text;
  }
  return failure();
}
