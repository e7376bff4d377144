//===- ByteCount.h - sizes of buffers in a model's dims -*- C++ -*-===//
#ifndef HEED_PASSES_BYTECOUNT_H
#define HEED_PASSES_BYTECOUNT_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <map>
#include <string>

namespace heed {

/// Bytes as a sum of products of extents, each with the name that the model
/// gives it: "4*B*N*D + 1024". Roundings to the alignment are left away.
class ByteCount {
public:
  ByteCount() = default;
  explicit ByteCount(mlir::memref::AllocOp alloc);
  ByteCount &operator+=(const ByteCount &other);
  bool operator==(const ByteCount &other) const { return parts == other.parts; }
  /// Which of two is taken for the larger: with every extent 1000.
  bool operator<(const ByteCount &other) const;
  std::string str() const;

private:
  /// Factors, sorted, to their coefficient.
  std::map<std::vector<std::string>, int64_t> parts;
};

} // namespace heed
#endif
