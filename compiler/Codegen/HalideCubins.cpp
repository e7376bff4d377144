// CUDA's machine code beside a kernel's PTX. libHalide has put the PTX into a
// buffer of the module and its size into a call: both are made anew.

#include "compiler/Codegen/HalideCubins.h"
#include "runtime/CudaCode.h"
#include "support/Format.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace heed;
using namespace Halide::Internal;

namespace {

/// A file in memory: whatever ends this process leaves nothing behind.
class MemoryFile {
public:
  MemoryFile() : file(::memfd_create("heed-cubin", MFD_CLOEXEC)) {}
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;
  ~MemoryFile() { ::close(file); }

  /// What another program opens while this one lives.
  std::string path() const {
    return format("/proc/{}/fd/{}", ::getpid(), file);
  }

  bool write(llvm::StringRef text) const {
    return ::write(file, text.data(), text.size()) == ssize_t(text.size());
  }

  std::string read() const {
    auto buffer = llvm::MemoryBuffer::getFile(path(), /*IsText=*/false,
                                              /*RequiresNullTerminator=*/false);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  }

private:
  int file;
};

/// ptxas's machine code of \p ptx; empty and a sentence if it makes none.
std::string assemble(llvm::StringRef ptx, const CudaCode &code, int arch,
                     std::string &error) {
  MemoryFile in, out, said;
  std::string name = format("sm_{}", arch), option = format("-arch={}", name),
              inPath = in.path(), outPath = out.path(), saidPath = said.path();
  if (!in.write(ptx)) {
    error = "no memory for a kernel's PTX";
    return {};
  }
  llvm::StringRef arguments[] = {code.assembler, option, "-o", outPath, inPath};
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""),
                                                llvm::StringRef(saidPath),
                                                llvm::StringRef(saidPath)};
  int result = llvm::sys::ExecuteAndWait(code.assembler, arguments,
                                         /*Env=*/std::nullopt, redirects,
                                         /*SecondsToWait=*/0,
                                         /*MemoryLimit=*/0, &error);
  std::string cubin = result ? std::string() : out.read();
  if (!cubin.empty())
    return cubin;
  std::string text = said.read();
  llvm::StringRef line = llvm::StringRef(text).trim().split('\n').first;
  error =
      format("'{}' makes no code for {} of this kernel's PTX{}{}",
             code.assembler, name, line.empty() && error.empty() ? "" : ": ",
             line.empty() ? error : line.str());
  return {};
}

/// One more entry of runtime/CudaCode.h.
void append(std::string &all, llvm::StringRef cubin, int arch) {
  heed_cuda_code_end end = {};
  size_t before = all.size();
  all.resize(llvm::alignTo(all.size(), 16));
  all += cubin;
  all.resize(llvm::alignTo(all.size(), 8));
  end.bytes = cubin.size();
  end.whole = all.size() + sizeof end - before;
  end.major = arch / 10;
  end.minor = arch % 10;
  std::memcpy(end.mark, HEED_CUDA_CODE_MARK, sizeof end.mark);
  all.append(reinterpret_cast<const char *>(&end), sizeof end);
}

/// The buffer and its size where a kernel hands its code to the runtime.
struct NewCode : IRMutator {
  using IRMutator::visit;
  const Halide::Buffer<> &code;
  explicit NewCode(const Halide::Buffer<> &code) : code(code) {}

  Halide::Expr visit(const Call *call) override {
    Halide::Expr same = IRMutator::visit(call);
    call = same.as<Call>();
    if (!call || call->name != "halide_cuda_initialize_kernels")
      return same;
    std::vector<Halide::Expr> arguments = call->args;
    arguments.back() = Halide::Expr(int32_t(code.size_in_bytes()));
    return Call::make(call->type, call->name, arguments, call->call_type);
  }
  Halide::Expr visit(const Variable *variable) override {
    if (!variable->image.defined() || variable->image.name() != code.name())
      return variable;
    return Variable::make(variable->type, variable->name, code);
  }
};

} // namespace

/// Makes the PTX of \p module anew by \p change, which fails or gets it with
/// its end of zero.
static bool changeCode(Halide::Module &module,
                       llvm::function_ref<bool(std::string &code)> change) {
  Halide::Module with(module.name(), module.target(),
                      module.get_metadata_name_map());
  std::vector<LoweredFunc> functions = module.functions();
  for (const Halide::Buffer<> &buffer : module.buffers()) {
    if (!llvm::StringRef(buffer.name()).ends_with("_gpu_source_kernels")) {
      with.append(buffer);
      continue;
    }
    std::string all(static_cast<const char *>(buffer.data()),
                    buffer.size_in_bytes());
    if (!change(all))
      return false;
    Halide::Buffer<uint8_t> larger(int(all.size()), buffer.name());
    std::memcpy(larger.data(), all.data(), all.size());
    NewCode mutator{larger};
    for (LoweredFunc &function : functions)
      function.body = mutator.mutate(function.body);
    with.append(larger);
  }
  for (const LoweredFunc &function : functions)
    with.append(function);
  with.set_any_strict_float(module.any_strict_float());
  module = with;
  return true;
}

bool heed::addCubins(Halide::Module &module, const CudaCode &code,
                     std::string &error) {
  return changeCode(module, [&](std::string &all) {
    std::string ptx = all.c_str();
    for (int arch : code.archs) {
      std::string cubin = assemble(ptx, code, arch, error);
      if (cubin.empty())
        return false;
      append(all, cubin, arch);
    }
    return true;
  });
}

void heed::limitRegisters(Halide::Module &module, int64_t registers) {
  changeCode(module, [&](std::string &ptx) {
    std::string limit = format("\n.maxnreg {}", registers);
    for (size_t at = 0; (at = ptx.find(".entry ", at)) != std::string::npos;) {
      at = ptx.find("\n{", at);
      if (at == std::string::npos)
        break;
      ptx.insert(at, limit);
      at += limit.size();
    }
    return true;
  });
}
