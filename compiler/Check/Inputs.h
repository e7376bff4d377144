//===- Inputs.h - sizes and inputs drawn for a check ------------*- C++ -*-===//
#ifndef HEED_COMPILER_CHECK_INPUTS_H
#define HEED_COMPILER_CHECK_INPUTS_H

#include "compiler/Check/Model.h"
#include "compiler/Check/Random.h"
#include "compiler/Check/Sizes.h"

namespace heed::check {

/// What the values of a draw are, besides reals in [-1, 1).
enum class Kind {
  Plain,
  Large,         ///< reals of matrices in [-scale, scale)
  NaN,           ///< one NaN somewhere
  MinusInfinity, ///< one -inf somewhere
  AllMasked,     ///< every bool false, every integer 0
};

/// How large the sizes of a draw are.
enum class Shape {
  Level,   ///< by Recipe::level, odd ones and vector widths among them
  One,     ///< every dim 1
  Odd,     ///< every dim odd and above 1
  Several, ///< small windows and heads, many times in what they divide
};

/// Which integers an input without a required range holds.
enum class Integers {
  Any,   ///< also negative ones, and lengths above the extent
  Small, ///< from 0, by the level
  Bits,  ///< 0 and 1
  Zero
};

/// What is asked of a draw.
struct Recipe {
  Kind kind = Kind::Plain;
  Shape shape = Shape::Level;
  Integers integers = Integers::Any;
  bool guarded = false;  ///< what data guards is required of all elements
  bool defaults = false; ///< scalars have their default, if there is one
  unsigned level = 0;    ///< 0 (sizes of 1 to 3) to 5 (tens)
  double scale = 100;    ///< of Kind::Large
  bool positive = false; ///< reals in [0, 1): scores of -inf without NaN
  double budget = 1e7;   ///< Sizes::cost at most
  Dims fixed;            ///< dims that are not drawn
  Dims near;             ///< dims that are tried first, where they fit
  unsigned climb = 0;    ///< above 0: about half of the dims are 8 << climb
                         ///< or more, whatever their place and level are
};

struct Draw {
  Dims dims;
  std::vector<Array> inputs;
  Kind kind = Kind::Plain;
  /// "B = 2, N = 5; large scores".
  std::string text() const;
};

/// Sizes for \p signature that \p recipe allows and no call refuses, as far as
/// the front end's IR tells. Nothing if none were found; \p tooDear is set if
/// some were that cost more than the recipe's budget.
std::optional<Dims> drawDims(const heed_signature &signature,
                             const Sizes &sizes, Random &random,
                             const Recipe &recipe, bool &tooDear);

/// Inputs of the sizes \p dims. Nothing where an extent cannot be computed or
/// the arrays would be too large.
std::optional<Draw> drawInputs(const heed_signature &signature,
                               const Sizes &sizes, const Dims &dims,
                               Random &random, const Recipe &recipe);

/// Writes a .safetensors file of random values for every parameter that the
/// description names.
bool drawWeights(const heed_model_desc *desc, const Sizes &sizes,
                 const Dims &dims, const std::string &path, Random &random,
                 std::string &error);

} // namespace heed::check

#endif
