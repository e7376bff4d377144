//===- Extents.h - how large a tensor may be --------------------*- C++ -*-===//
#ifndef HEED_DIALECTS_ATTN_EXTENTS_H
#define HEED_DIALECTS_ATTN_EXTENTS_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace heed::attn {

/// The largest extent of any tensor: kernels count in 32 bits and round up to
/// whole tiles. HEED_MAX_EXTENT of the C interface.
inline constexpr int64_t kMaxExtent = INT32_MAX - 0xffff;

/// The most axes of an input, a result or a parameter. HEED_MAX_RANK.
inline constexpr int64_t kMaxRank = 16;

/// On a pipeline whose expressions want smaller extents than that, an i64.
inline constexpr llvm::StringLiteral kLargestAttr = "attn.largest";

} // namespace heed::attn

#endif // HEED_DIALECTS_ATTN_EXTENTS_H
