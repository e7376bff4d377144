//===- Extents.h - extents like "2*R+1" -------------------------*- C++ -*-===//
#ifndef HEED_COMPILER_CHECK_EXTENTS_H
#define HEED_COMPILER_CHECK_EXTENTS_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace heed::check {

/// The value of an extent's text for \p dims: sums, products and floor
/// divisions of names, numbers, min(a, b), max(a, b) and ilog2(a). A name that \p dims
/// lacks is asked of \p draw and kept. Nothing if the text is no such
/// expression or the extent is negative.
std::optional<int64_t>
evaluateExtent(const std::string &text, std::map<std::string, int64_t> &dims,
               const std::function<int64_t(const std::string &name)> &draw);

} // namespace heed::check

#endif
