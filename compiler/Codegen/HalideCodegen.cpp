// Compiles a module's pipelines, several at once, or finds what an earlier
// compilation kept of them.

#include "compiler/Codegen/HalideCodegen.h"
#include "compiler/Codegen/HalideBlame.h"
#include "compiler/Codegen/HalideChild.h"
#include "dialects/Halide/Target.h"
#include "mlir/IR/Remarks.h"
#include "support/Format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Threading.h"
#include <csignal>
#include <limits>
#include <poll.h>
#include <sys/wait.h>

using namespace mlir;
using namespace heed;

namespace {

Halide::Target makeTarget(const halide::Target &target, bool checks,
                          bool userContext) {
  Halide::Target t(target.halide);
  t.set_feature(Halide::Target::LargeBuffers);
  if (userContext)
    t.set_feature(Halide::Target::UserContext);
  if (!checks) {
    // What a device answers is never left unread.
    t.set_feature(Halide::Target::NoAsserts, !target.isGPU());
    t.set_feature(Halide::Target::NoBoundsQuery);
  }
  return t;
}

/// \p target without its device.
Halide::Target withoutDevice(Halide::Target target) {
  using T = Halide::Target;
  for (T::Feature feature :
       {T::OpenCL, T::CLDoubles, T::CUDA, T::CUDACapability30,
        T::CUDACapability32, T::CUDACapability35, T::CUDACapability50,
        T::CUDACapability61, T::CUDACapability70, T::CUDACapability75,
        T::CUDACapability80, T::CUDACapability86})
    target.set_feature(feature, false);
  // As of all code for processors: its checks are the host's.
  target.set_feature(T::NoAsserts, target.has_feature(T::NoBoundsQuery));
  return target;
}

/// What \p pipeline's instructions may be: \p target's and those that it asks
/// for.
Halide::Target targetOf(halide::PipelineOp pipeline,
                        const Halide::Target &target) {
  auto more = pipeline->getAttrOfType<StringAttr>("halide.features");
  Halide::Target own = more ? Halide::Target(heed::format(
                                  "{}-{}", target.to_string(), more.str()))
                            : target;
  if (pipeline.getOnHost())
    return withoutDevice(own);
  // Not every device has f64.
  if (own.has_feature(Halide::Target::OpenCL) && pipeline.usesDoubles())
    own.set_feature(Halide::Target::CLDoubles);
  return own;
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

/// Everything that decides on a kernel's object, but for the compiler.
std::string contentOf(halide::PipelineOp pipeline, const std::string &symbol,
                      const Halide::Target &target,
                      const HalideCodegenOptions &options) {
  std::string content;
  llvm::raw_string_ostream os(content);
  os << symbol << '\n'
     << target.to_string() << '\n'
     << (options.promises && !options.checks) << '\n';
  if (!options.cudaCode.archs.empty() &&
      target.has_feature(Halide::Target::CUDA)) {
    os << options.cudaCode.identity;
    for (int arch : options.cudaCode.archs)
      os << " sm_" << arch;
    os << '\n';
  }
  pipeline->print(os);
  return content;
}

/// Turns a child's messages into diagnostics and its result into a kernel,
/// which goes to \p store as that of \p content unless there was something to
/// warn of.
LogicalResult collect(halide::PipelineOp pipeline, Child &child,
                      const HalideCodegenOptions &options, StringRef target,
                      const KernelStore *store, StringRef content,
                      CompiledKernel &kernel) {
  std::string where =
      heed::format("(kernel '{}', target '{}')", kernel.name, target);
  if (child.late)
    return pipeline.emitError()
           << "kernel '" << kernel.name << "' was not compiled within "
           << options.seconds
           << " seconds; --kernel-timeout=SECONDS gives it more";
  SmallVector<Operation *> ops;
  pipeline->walk<WalkOrder::PreOrder>(
      [&](Operation *op) { ops.push_back(op); });
  bool done = false, failed = false, warned = false;
  for (Message &m : child.messages()) {
    Operation *op = m.op < ops.size() ? ops[m.op] : pipeline.getOperation();
    if (m.kind == Record::Error) {
      failed = true;
      op->emitError() << m.text;
    } else if (m.kind == Record::Refusal) {
      failed = true;
      op->emitError() << (m.text.empty() ? "libHalide does not say why it "
                                           "compiles no kernel of this"
                                         : m.text)
                      << ' ' << where;
    } else if (m.kind != Record::Result) {
      warned |= m.kind == Record::Warning;
      if (options.warnings)
        op->emitWarning() << m.text;
      else
        remark::analysis(op->getLoc(),
                         remark::RemarkOpts::name("warning").category("halide"))
            << format("{}: {}", kernel.name, m.text);
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
  if (int signal = child.interruptedBy())
    raise(signal);
  std::string words = child.lastWords(), why;
  if (Operation *op = blameCrash(pipeline, words, why))
    return op->emitError() << why;
  InFlightDiagnostic diag =
      pipeline.emitError()
      << "libHalide ended without a result while compiling this kernel";
  if (WIFSIGNALED(child.status))
    diag << " (signal " << WTERMSIG(child.status) << ")";
  if (!words.empty())
    diag << ": " << words;
  return diag << ' ' << where;
}

/// Kernels compile in processes of their own, as many at once as there are
/// processors, the longest first.
class KernelJobs {
public:
  KernelJobs(ArrayRef<halide::PipelineOp> pipelines,
             const Halide::Target &target, StringRef name,
             const HalideCodegenOptions &options,
             MutableArrayRef<CompiledKernel> kernels)
      : pipelines(pipelines), target(target), name(name), options(options),
        kernels(kernels),
        store(options.output == HalideOutput::Object ? options.store : nullptr),
        most(options.jobs
                 ? options.jobs
                 : llvm::hardware_concurrency().compute_thread_count()),
        contents(pipelines.size()), children(pipelines.size()),
        order(longestFirst(pipelines)), again(pipelines.size()) {}

  /// Until all have ended. Work of the caller's own is done beside them.
  LogicalResult run() {
    bool toDo = bool(options.meanwhile);
    while (toDo || ended < pipelines.size()) {
      if (failed(start()))
        return failure();
      if (toDo && failed(options.meanwhile())) {
        for (size_t k : running)
          children[k]->stop();
        return failure();
      }
      toDo = false;
      if (!running.empty())
        wait();
    }
    return collectAll();
  }

private:
  bool begin(size_t k, Backend backend) {
    children[k] = std::make_unique<Child>([&](int fd) {
      compileInChild(pipelines[k], kernels[k].symbol,
                     targetOf(pipelines[k], target), options, backend, fd);
    });
    return children[k]->pid >= 0;
  }

  /// Starts what there is room for; what the store has, has ended.
  LogicalResult start() {
    while (next < pipelines.size() && running.size() < most) {
      const size_t k = order[next++];
      halide::PipelineOp pipeline = pipelines[k];
      CompiledKernel &kernel = kernels[k];
      kernel.name = pipeline.getName().str();
      kernel.symbol = options.symbolPrefix + kernel.name;
      if (store) {
        contents[k] = contentOf(pipeline, kernel.symbol, target, options);
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
    return success();
  }

  /// Until one has something to say, or its time is over.
  void wait() {
    std::vector<pollfd> polls;
    int64_t time = std::numeric_limits<int>::max();
    for (size_t k : running) {
      polls.push_back({children[k]->fd, POLLIN, 0});
      time = std::min(time, children[k]->left(options.seconds));
    }
    ::poll(polls.data(), polls.size(), int(time));
    for (size_t i = running.size(); i-- > 0;) {
      size_t k = running[i];
      bool late = children[k]->left(options.seconds) == 0;
      if (late)
        children[k]->stop();
      if (!late && !(polls[i].revents && children[k]->drain()))
        continue;
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

  /// Diagnostics in the module's order, whatever the order of the ends was.
  LogicalResult collectAll() {
    LogicalResult result = success();
    for (size_t k = 0; k < pipelines.size(); ++k)
      if (children[k] && failed(collect(pipelines[k], *children[k], options,
                                        name, store, contents[k], kernels[k])))
        result = failure();
    return result;
  }

  ArrayRef<halide::PipelineOp> pipelines;
  const Halide::Target &target;
  StringRef name; ///< the target's, as users know it
  const HalideCodegenOptions &options;
  MutableArrayRef<CompiledKernel> kernels;
  const KernelStore *store;
  size_t most, next = 0, ended = 0;
  std::vector<std::string> contents;
  std::vector<std::unique_ptr<Child>> children;
  std::vector<size_t> order, running;
  std::vector<bool> again; ///< with the other LLVM
};

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
  kernels.resize(pipelines.size());
  return KernelJobs(pipelines, halideTarget, target.name, options, kernels)
      .run();
}

LogicalResult heed::compileHalideRuntime(const halide::Target &target,
                                         bool userContext, std::string &object,
                                         std::string &error) {
  Halide::Target halideTarget =
      makeTarget(target, /*checks=*/true, userContext);
  Child child([&](int fd) { compileRuntimeInChild(halideTarget, fd); });
  error = "cannot compile Halide's runtime";
  if (child.pid < 0)
    return failure();
  while (!child.drain()) {
  }
  for (Message &m : child.messages()) {
    if (m.kind == Record::Result) {
      object = std::move(m.text);
      return success();
    }
    error = format("{}: {}", error, m.text);
  }
  return failure();
}
