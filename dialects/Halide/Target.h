// The machine that kernels are compiled for: what schedules need to know of it.
// It travels in the IR as the module's attribute `halide.target`.

#ifndef HEED_DIALECTS_HALIDE_TARGET_H
#define HEED_DIALECTS_HALIDE_TARGET_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace heed::halide {

struct Target {
  std::string
      name; ///< "x86-64-v4", or "host" resolved to the level that it has
  std::string triple; ///< LLVM's, for host code and the linker
  std::string halide; ///< libHalide's spelling of CPU and instruction sets,
                      ///< without features of the runtime
  int64_t vectorBits = 128;
  int64_t vectorRegisters = 16;
  int64_t l1 = 32 << 10; ///< bytes, per core
  int64_t l2 = 1 << 20;  ///< bytes, per core
  int64_t l3 = 16 << 20; ///< bytes, in all
  int64_t cores = 1;
  llvm::SmallVector<std::string>
      features;    ///< "avx2", "fma", "avx512f", ... sorted
  std::string gpu; ///< the interface of the device that kernels run on,
                   ///< "opencl"; empty: the processor
  int64_t multiprocessors = 0; ///< of the device
  int64_t sharedBytes = 0;     ///< that a block of threads may have
  int64_t threadRegisters =
      0;            ///< that a thread may have, a multiprocessor full
  int64_t warp = 1; ///< threads that run in step

  bool isGPU() const { return !gpu.empty(); }

  /// Lanes of a vector of elements of \p bits.
  int64_t lanes(unsigned bits) const { return vectorBits / bits; }
  bool hasFeature(llvm::StringRef feature) const;

  /// Whether products of two bf16 may be summed by dot products of the target,
  /// which take subnormal numbers for 0 (--products=bf16).
  bool bf16Products = false;

  /// Whether a core reads memory fastest as one stream of addresses, since its
  /// prefetching goes on over the ends of pages; others want several.
  bool oneStream = false;
};

/// The machine that this process runs on, with its caches and cores.
Target detectHost();

/// The target called \p name: `host`, `x86-64`, `x86-64-v2`, `x86-64-v3`,
/// `x86-64-v4`, `x86-64-v4-vnni`, or `opencl`, whose host code any x86-64
/// processor runs. Of a level caches are a common server's, wherever it is
/// compiled; cores are the host's. Fails with a sentence in \p error that lists
/// the known names.
mlir::FailureOr<Target> parseTarget(llvm::StringRef name, std::string &error);

/// Writes \p target to the module's attribute `halide.target`, a dictionary.
void setTarget(mlir::ModuleOp module, const Target &target);

/// The target of the module that holds \p op; `detectHost()` if none is set. In
/// a pipeline with `on_host` it has no device.
Target getTarget(mlir::Operation *op);

/// Whether kernels of the module that holds \p op run on a GPU, or the pipeline
/// that does.
bool isForGPU(mlir::Operation *op);

/// One `key: value` a line.
void printTarget(const Target &target, llvm::raw_ostream &os);

} // namespace heed::halide

#endif // HEED_DIALECTS_HALIDE_TARGET_H
