//===- Random.h - numbers that are the same on every machine ----*- C++ -*-===//
#ifndef HEED_COMPILER_CHECK_RANDOM_H
#define HEED_COMPILER_CHECK_RANDOM_H

#include <random>

namespace heed::check {

/// The engine's sequence is fixed by the C++ standard; the standard's
/// distributions are not, so they are not used.
class Random {
public:
  explicit Random(uint64_t seed) : engine(seed) {}
  /// Uniform in [0, bound), bound >= 1.
  int64_t below(int64_t bound) { return int64_t(engine() % uint64_t(bound)); }
  /// Uniform in [-1, 1).
  double unit() {
    return double(engine() >> 11) / double(uint64_t(1) << 52) - 1;
  }

private:
  std::mt19937_64 engine;
};

} // namespace heed::check

#endif
