//===- Inputs.h - sizes, inputs and weights drawn for a check
//---------------===//
#ifndef HEED_COMPILER_CHECK_INPUTS_H
#define HEED_COMPILER_CHECK_INPUTS_H

#include "compiler/Check/Model.h"
#include "compiler/Check/Random.h"

namespace heed::check {

/// What the reals of a draw hold besides numbers in [-1, 1).
enum class Kind { Plain, Large, NaN, MinusInfinity };

struct Draw {
  std::map<std::string, int64_t> dims;
  std::vector<Array> inputs;
  Kind kind = Kind::Plain;
  /// Allowed share of max |reference|: grows with the scores (8 ulp of them).
  double tolerance = 1e-5;
  /// "B = 2, N = 5; large scores".
  std::string text() const;
};

/// One draw for \p signature. \p level rises from the smallest sizes (0 and 1)
/// to tens; \p fixed holds dims that are known. Integers lie in [0, bound]:
/// lengths also above the extent when \p bound says so. Nothing where an
/// extent cannot be computed.
std::optional<Draw> drawInputs(const heed_signature &signature, Random &random,
                               unsigned level, Kind kind,
                               const std::map<std::string, int64_t> &fixed,
                               int64_t bound);

/// Writes a .safetensors file of random values for every parameter that the
/// description names, and puts the dims that their extents draw into \p dims.
bool drawWeights(const heed_model_desc *desc, const std::string &path,
                 Random &random, std::map<std::string, int64_t> &dims,
                 std::string &error);

} // namespace heed::check

#endif
