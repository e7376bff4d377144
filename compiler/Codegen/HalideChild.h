// The processes that compile kernels: what runs in them and what they say.
//
// libHalide numbers temporaries and funcs with counters of the process, so a
// kernel's bytes would depend on what was compiled before or beside it. A
// forked child starts from the same counters every time; and where libHalide
// crashes, the compiler does not.

#ifndef HEED_COMPILER_CODEGEN_HALIDECHILD_H
#define HEED_COMPILER_CODEGEN_HALIDECHILD_H

#include "Halide.h"
#include "compiler/Codegen/HalideCodegen.h"
#include "dialects/Halide/HalideDialect.h"
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace heed {

/// What a child says: its result, or a message. A refusal is an error in
/// libHalide's words, which name no kernel and may be none at all. What a
/// directive came to is said, but does not keep a kernel from the cache.
enum class Record : char { Result, Error, Refusal, Warning, Directive };

/// One of them, at an op of the pipeline: `op` counts these in walk order.
struct Message {
  Record kind;
  uint32_t op;
  std::string text;
};

/// A forked process at the other end of a pipe. What it says on stderr (LLVM's
/// assertions and stack traces) goes to a file.
class Child {
public:
  /// Runs \p body in the child, with the end of the pipe to write to. `pid` is
  /// negative if no process could be started.
  explicit Child(llvm::function_ref<void(int)> body);

  /// Reads what has come; true when the child has ended.
  bool drain();

  /// Milliseconds that are left of \p limit seconds, not below 0.
  int64_t left(unsigned limit) const;

  /// Ends it, whatever it does.
  void stop();

  /// Whether it ended by its own fault, not because somebody ended it.
  bool crashed() const;
  /// The signal that ended it where that asks programs to end, else 0: a
  /// terminal sends it to all of a group, and this process may get it last.
  int interruptedBy() const;

  /// The assertion or LLVM's error that ended the child, from what it said;
  /// empty if none.
  std::string lastWords();

  /// What it has said; the last message may be missing if it did not end well.
  std::vector<Message> messages() const;

  pid_t pid = -1;
  int fd = -1;
  int status = 0; ///< as of wait4
  double seconds = 0, processor = 0;
  bool late = false; ///< it was stopped

private:
  std::string bytes;
  std::unique_ptr<FILE, int (*)(FILE *)> said{nullptr, std::fclose};
  std::chrono::steady_clock::time_point start;
};

/// Whose LLVM makes a kernel's code: libHalide's own or the one beside it.
enum class Backend { Bundled, System };

/// A child's body: compiles \p pipeline to the function \p symbol and sends its
/// code, or what is wrong with it, to \p fd.
void compileInChild(halide::PipelineOp pipeline, const std::string &symbol,
                    const Halide::Target &target,
                    const HalideCodegenOptions &options, Backend backend,
                    int fd);

/// A child's body: compiles Halide's runtime and sends it to \p fd.
void compileRuntimeInChild(const Halide::Target &target, int fd);

} // namespace heed

#endif // HEED_COMPILER_CODEGEN_HALIDECHILD_H
