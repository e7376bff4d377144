//===- Check.h - one source, compiled both ways and compared ----*- C++ -*-===//
#ifndef HEED_COMPILER_CHECK_CHECK_H
#define HEED_COMPILER_CHECK_CHECK_H

#include "compiler/Check/Tools.h"
#include <cstdint>
#include <string>
#include <vector>

namespace heed::check {

struct CheckOptions {
  Tools tools;
  std::string against; ///< the reference's source; empty: the same
  /// What the source means once attention was raised from it (DrawnModel).
  std::string meaning;
  uint64_t seed = 1;
  unsigned draws = 24;  ///< of random sizes and values, beside the fixed cases
  bool corrupt = false; ///< change one element of each fast result
  bool printDraws = false; ///< the sizes of every accepted one
  std::string folder;      ///< for libraries and drawn weights; its own
};

/// Compares the backends on \p source and prints what came of it. \p stage:
/// compare the reference on the IR after that pass; npos: the fast backend.
/// \p explained: what heedc --explain=json said, if the fast backend ran.
bool check(const std::string &source, const std::string &title, size_t stage,
           const CheckOptions &options, std::string &explained);

/// Checks after each pass and then the whole; names the first that differs.
bool bisect(const std::string &source, const CheckOptions &options);

} // namespace heed::check

#endif
