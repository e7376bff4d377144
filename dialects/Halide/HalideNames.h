// How a func's or a buffer's name appears as an SSA name.
#ifndef HEED_DIALECTS_HALIDE_HALIDENAMES_H
#define HEED_DIALECTS_HALIDE_HALIDENAMES_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace heed::halide {

/// On a sum over windows that have as many steps as there are rows: on the
/// linalg op, then on its `halide.update`.
inline constexpr llvm::StringLiteral kLongWindowAttr = "halide.long_window";

/// What may follow '%' in the IR's text.
std::string ssaName(llvm::StringRef name);

} // namespace heed::halide
#endif
