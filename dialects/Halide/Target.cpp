// The target description: detection of the host, named levels, and its form as
// an attribute.

#include "dialects/Halide/Target.h"
#include "dialects/Halide/HalideDialect.h"
#include "mlir/IR/Builders.h"
#include "support/Format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include <thread>

using namespace mlir;
using namespace heed::halide;

namespace {

/// One level of the x86-64 psABI, or one beyond them, in terms of what code for
/// it may use.
struct Level {
  const char *name;
  const char *features; // those that the CPU must have, which are also
                        // libHalide's names for them where it has one
  const char *halide;
  int64_t vectorBits, vectorRegisters;
};

// libHalide has no name for the level v4 (F, BW, CD, DQ, VL): "avx512_skylake"
// is exactly that.
const Level levels[] = {
    {"x86-64", "sse2", "x86-64-linux", 128, 16},
    {"x86-64-v2", "popcnt,sse2,sse3,sse4.1,sse4.2,ssse3", "x86-64-linux-sse41",
     128, 16},
    {"x86-64-v3",
     "avx,avx2,bmi,bmi2,f16c,fma,lzcnt,movbe,popcnt,sse2,sse3,sse4.1,sse4.2,"
     "ssse3",
     "x86-64-linux-avx-avx2-f16c-fma-sse41", 256, 16},
    {"x86-64-v4",
     "avx,avx2,avx512bw,avx512cd,avx512dq,avx512f,avx512vl,bmi,bmi2,f16c,fma,"
     "lzcnt,movbe,popcnt,sse2,sse3,sse4.1,sse4.2,ssse3",
     "x86-64-linux-avx-avx2-avx512-avx512_skylake-f16c-fma-sse41", 512, 32},
    // Products of bytes: what libHalide's "avx512_zen4" takes. Kernels have it
    // that ask for it (halide.features), all others are v4's: its conversions
    // to bf16 have no subnormal numbers.
    {"x86-64-v4-vnni",
     "avx,avx2,avx512bf16,avx512bitalg,avx512bw,avx512cd,avx512dq,avx512f,"
     "avx512ifma,avx512vbmi,avx512vbmi2,avx512vl,avx512vnni,bmi,bmi2,f16c,fma,"
     "lzcnt,movbe,popcnt,sse2,sse3,sse4.1,sse4.2,ssse3",
     "x86-64-linux-avx-avx2-avx512-avx512_skylake-f16c-fma-sse41", 512, 32},
};

/// Kernels on a device, which a host of the least level calls.
struct Device {
  const char *name;
  const char *halide; // what libHalide's spelling of the host is followed by
  int64_t multiprocessors, sharedBytes, threadRegisters, warp;
};

const Device devices[] = {
    // What every one of them has (OpenCL 1.2, full profile), but for its
    // multiprocessors and registers, which a program cannot ask for; a middling
    // one's.
    {"opencl", "-opencl", 32, 32 << 10, 128, 32},
    // Of an NVIDIA A100; later devices' drivers compile it on. 65536 registers
    // are 128 for each of two blocks of 256 threads.
    {"cuda", "-cuda-cuda_capability_80", 108, 48 << 10, 128, 32},
};

Target fromLevel(const Level &level) {
  Target target;
  target.name = level.name;
  target.triple = "x86_64-unknown-linux-gnu";
  target.halide = level.halide;
  target.vectorBits = level.vectorBits;
  target.vectorRegisters = level.vectorRegisters;
  // A common server's, where the machine does not say.
  target.l1 = 32 << 10;
  target.l2 = 1 << 20;
  target.l3 = 32 << 20;
  for (StringRef feature : llvm::split(level.features, ','))
    target.features.push_back(feature.str());
  return target;
}

/// A file of one line such as "48K", as Linux shows cache sizes; 0 if there is
/// none.
int64_t readSize(const Twine &path) {
  auto buffer = llvm::MemoryBuffer::getFileAsStream(path);
  if (!buffer)
    return 0;
  StringRef text = (*buffer)->getBuffer().trim();
  int64_t unit = text.consume_back("K")   ? 1 << 10
                 : text.consume_back("M") ? 1 << 20
                                          : 1;
  int64_t value;
  return text.getAsInteger(10, value) ? 0 : value * unit;
}

void readCaches(Target &target) {
  for (int index = 0; index < 8; ++index) {
    std::string dir =
        heed::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    auto type =
        llvm::MemoryBuffer::getFileAsStream(heed::format("{}type", dir));
    if (!type)
      return;
    int64_t level = readSize(heed::format("{}level", dir)),
            size = readSize(heed::format("{}size", dir));
    if ((*type)->getBuffer().trim() == "Instruction" || size == 0)
      continue;
    (level == 1 ? target.l1 : level == 2 ? target.l2 : target.l3) = size;
  }
}

void readCores(Target &target) {
  target.cores = std::max(1u, std::thread::hardware_concurrency());
}

} // namespace

bool Target::hasFeature(StringRef feature) const {
  return llvm::is_contained(features, feature);
}

Target heed::halide::detectHost() {
  llvm::StringMap<bool> has = llvm::sys::getHostCPUFeatures();
  const Level *best = &levels[0];
  for (const Level &level : levels)
    if (llvm::all_of(llvm::split(level.features, ','),
                     [&](StringRef f) { return has.lookup(f); }))
      best = &level;
  Target target = fromLevel(*best);
  readCaches(target);
  readCores(target);
  // Measured: passes/Schedule/README.md, "One stream of addresses".
  target.oneStream = llvm::sys::getHostCPUName() == "znver5";
  return target;
}

FailureOr<Target> heed::halide::parseTarget(StringRef name,
                                            std::string &error) {
  if (name == "host")
    return detectHost();
  for (const Level &level : levels) {
    if (name != level.name)
      continue;
    Target target = fromLevel(level);
    readCores(target);
    return target;
  }
  for (const Device &device : devices) {
    if (name != device.name)
      continue;
    Target target = fromLevel(levels[0]);
    target.name = target.gpu = device.name;
    target.halide += device.halide;
    target.multiprocessors = device.multiprocessors;
    target.sharedBytes = device.sharedBytes;
    target.threadRegisters = device.threadRegisters;
    target.warp = device.warp;
    readCores(target);
    return target;
  }
  SmallVector<const char *> names{"host"};
  for (const Level &level : levels)
    names.push_back(level.name);
  for (const Device &device : devices)
    names.push_back(device.name);
  error = heed::format("unknown target '{}', expected {}", name,
                       fmt::join(names, ", "));
  return failure();
}

void heed::halide::setTarget(ModuleOp module, const Target &target) {
  Builder b(module.getContext());
  SmallVector<StringRef> features(target.features.begin(),
                                  target.features.end());
  auto entry = [&](StringRef key, Attribute value) {
    return b.getNamedAttr(key, value);
  };
  SmallVector<NamedAttribute> entries{
      entry("name", b.getStringAttr(target.name)),
      entry("triple", b.getStringAttr(target.triple)),
      entry("halide", b.getStringAttr(target.halide)),
      entry("vector_bits", b.getI64IntegerAttr(target.vectorBits)),
      entry("vector_registers", b.getI64IntegerAttr(target.vectorRegisters)),
      entry("l1", b.getI64IntegerAttr(target.l1)),
      entry("l2", b.getI64IntegerAttr(target.l2)),
      entry("l3", b.getI64IntegerAttr(target.l3)),
      entry("cores", b.getI64IntegerAttr(target.cores)),
      entry("features", b.getStrArrayAttr(features))};
  if (target.bf16Products)
    entries.push_back(entry("bf16_products", b.getUnitAttr()));
  if (target.oneStream)
    entries.push_back(entry("one_stream", b.getUnitAttr()));
  if (target.isGPU())
    entries.append(
        {entry("gpu", b.getStringAttr(target.gpu)),
         entry("multiprocessors", b.getI64IntegerAttr(target.multiprocessors)),
         entry("shared", b.getI64IntegerAttr(target.sharedBytes)),
         entry("thread_registers", b.getI64IntegerAttr(target.threadRegisters)),
         entry("warp", b.getI64IntegerAttr(target.warp))});
  module->setAttr("halide.target", b.getDictionaryAttr(entries));
}

/// The attribute of the module that holds \p op; null if none is set.
static DictionaryAttr targetOf(Operation *op) {
  while (op && !op->hasAttr("halide.target"))
    op = op->getParentOp();
  return op ? op->getAttrOfType<DictionaryAttr>("halide.target")
            : DictionaryAttr();
}

/// Whether a pipeline that holds \p op is the processor's whatever the target.
static bool isOnHost(Operation *op) {
  auto pipeline = dyn_cast<PipelineOp>(op);
  if (!pipeline)
    pipeline = op->getParentOfType<PipelineOp>();
  return pipeline && pipeline.getOnHost();
}

bool heed::halide::isForGPU(Operation *op) {
  DictionaryAttr dict = targetOf(op);
  return dict && dict.contains("gpu") && !isOnHost(op);
}

Target heed::halide::getTarget(Operation *op) {
  DictionaryAttr dict = targetOf(op);
  if (!dict)
    return detectHost();
  Target target;
  auto text = [&](StringRef key, std::string &to) {
    if (auto attr = dict.getAs<StringAttr>(key))
      to = attr.str();
  };
  auto number = [&](StringRef key, int64_t &to) {
    if (auto attr = dict.getAs<IntegerAttr>(key))
      to = attr.getInt();
  };
  text("name", target.name);
  text("triple", target.triple);
  text("halide", target.halide);
  if (!isOnHost(op))
    text("gpu", target.gpu);
  number("vector_bits", target.vectorBits);
  number("vector_registers", target.vectorRegisters);
  number("l1", target.l1);
  number("l2", target.l2);
  number("l3", target.l3);
  number("cores", target.cores);
  number("multiprocessors", target.multiprocessors);
  number("shared", target.sharedBytes);
  number("thread_registers", target.threadRegisters);
  number("warp", target.warp);
  target.bf16Products = dict.contains("bf16_products");
  target.oneStream = dict.contains("one_stream");
  if (auto features = dict.getAs<ArrayAttr>("features"))
    for (StringRef feature : features.getAsValueRange<StringAttr>())
      target.features.push_back(feature.str());
  return target;
}

void heed::halide::printTarget(const Target &target, raw_ostream &os) {
  os << "name: " << target.name << "\ntriple: " << target.triple;
  if (target.isGPU())
    os << "\ndevice: " << target.gpu
       << "\nmultiprocessors: " << target.multiprocessors
       << "\nshared memory: " << target.sharedBytes
       << " bytes a block\nregisters: " << target.threadRegisters
       << " a thread\nwarp: " << target.warp << " threads";
  os << "\nvector bits: " << target.vectorBits
     << "\nvector registers: " << target.vectorRegisters
     << "\nL1: " << target.l1 << " bytes\nL2: " << target.l2
     << " bytes\nL3: " << target.l3 << " bytes\ncores: " << target.cores
     << "\nstreams of addresses: " << (target.oneStream ? "one" : "several")
     << "\nfeatures: " << llvm::join(target.features, " ") << "\n";
}
