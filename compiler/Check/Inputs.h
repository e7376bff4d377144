//===- Inputs.h - sizes and inputs drawn for a check ------------*- C++ -*-===//
#ifndef HEED_COMPILER_CHECK_INPUTS_H
#define HEED_COMPILER_CHECK_INPUTS_H

#include "compiler/Check/Model.h"
#include "compiler/Check/Random.h"

namespace heed::check {

using Dims = std::map<std::string, int64_t>;

/// What the values of a draw are, besides reals in [-1, 1).
enum class Kind {
  Plain,
  Large,         ///< reals of matrices in [-scale, scale)
  NaN,           ///< one NaN somewhere
  MinusInfinity, ///< one -inf somewhere
  AllMasked,     ///< every bool false, every integer 0
};

/// How large the sizes of a draw are.
enum class Sizes {
  Level, ///< by Recipe::level, odd ones and vector widths among them
  One,   ///< every dim 1
  Odd,   ///< every dim odd and above 1
};

/// What is asked of a draw.
struct Recipe {
  Kind kind = Kind::Plain;
  Sizes sizes = Sizes::Level;
  bool some = false;     ///< of Sizes::One and Odd: some dims, others by level
  unsigned level = 0;    ///< 0 (sizes of 1 to 3) to 5 (tens)
  double scale = 100;    ///< of Kind::Large
  bool positive = false; ///< reals in [0, 1): scores of -inf without NaN
  /// Integers lie in [0, bound]: lengths also above the extent. Negative: by
  /// the level.
  int64_t bound = -1;
  Dims fixed; ///< dims that are not drawn
};

struct Draw {
  Dims dims;
  std::vector<Array> inputs;
  Kind kind = Kind::Plain;
  /// "B = 2, N = 5; large scores".
  std::string text() const;
};

/// One draw for \p signature. Nothing where an extent cannot be computed or
/// the arrays would be too large.
std::optional<Draw> drawInputs(const heed_signature &signature, Random &random,
                               const Recipe &recipe);

/// The names of the dims that a call is free to choose.
std::vector<std::string> freeDims(const heed_signature &signature,
                                  const Dims &fixed);

/// Writes a .safetensors file of random values for every parameter that the
/// description names, and puts the dims that their extents draw into \p dims.
bool drawWeights(const heed_model_desc *desc, const std::string &path,
                 Random &random, Dims &dims, std::string &error);

} // namespace heed::check

#endif
