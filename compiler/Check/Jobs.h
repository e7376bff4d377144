//===- Jobs.h - work in processes of its own, several at once ---*- C++ -*-===//
// A compiled model that crashes or hangs takes its own process with it, and is
// one more failure to report.
#ifndef HEED_COMPILER_CHECK_JOBS_H
#define HEED_COMPILER_CHECK_JOBS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <vector>

namespace heed::check {

/// Calls \p work(0), ..., work(count - 1), each in a child, \p atOnce at a
/// time. What a child prints on standard output appears in the order of the
/// numbers. Returns what each call returned (0 to 63), -1 where a child died;
/// that is printed too. Call it without other threads.
std::vector<int> runJobs(size_t count, unsigned atOnce,
                         llvm::function_ref<int(size_t)> work);

} // namespace heed::check

#endif
