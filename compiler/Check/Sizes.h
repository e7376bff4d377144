//===- Sizes.h - the sizes that a model accepts -----------------*- C++ -*-===//
#ifndef HEED_COMPILER_CHECK_SIZES_H
#define HEED_COMPILER_CHECK_SIZES_H

#include "compiler/Check/Formulas.h"
#include "compiler/Check/Random.h"
#include <functional>
#include <memory>

namespace heed::check {

/// What the front end's IR says of a model's sizes: the names of its dims and
/// of its integer scalars, what its calls require of them, what the reference
/// costs.
class Sizes {
public:
  /// Reads IR as heedc --emit=attn prints it. Null with \p error set if that is
  /// no IR with a model.
  static std::vector<std::unique_ptr<Sizes>> read(const std::string &ir,
                                                  std::string &error);
  std::string entry; ///< whose sizes they are

  struct Name {
    std::string text;
    bool isParam = false;  ///< an extent of a parameter has it
    bool isScalar = false; ///< an integer scalar
    bool drives = false;   ///< something is divided by it: heads, windows
  };
  const std::vector<Name> &names() const { return known; }

  /// The value of an extent's text; nothing if a name is missing or it is
  /// negative.
  std::optional<int64_t> extent(const std::string &text,
                                const Dims &dims) const;
  /// Scalar operations of the reference, and elements that it stores. Infinite
  /// where that is no int64.
  double cost(const Dims &dims) const;
  /// Elements of all weights. Infinite where that is no int64.
  double weights(const Dims &dims) const;
  /// The half-open range that the elements of the integer input \p name must
  /// lie in, if a call requires one.
  /// \p guarded: also where a call requires it under a condition that data
  /// decides, as of the tokens of a row that are no padding.
  std::optional<std::pair<int64_t, int64_t>>
  range(const std::string &name, const Dims &dims, bool guarded) const;
  /// Does any call require a range under such a condition?
  bool hasGuards() const;
  /// Whether what calls require of \p name together with nothing but \p fixed
  /// forbids every value of \p least and above, as far as it was tried.
  bool isBounded(const std::string &name, int64_t least,
                 const Dims &fixed) const;

  /// A value for every name, such that what calls require holds: of \p fixed
  /// where it has one, else the first of \p candidates(name) that fits the
  /// others, else a small one, else any up to 4096. In an order of its own
  /// each time. Nothing if \p accept takes none of those found. \p guarded: as
  /// if the conditions above always held.
  std::optional<Dims>
  solve(const Dims &fixed,
        const std::function<std::vector<int64_t>(const Name &)> &candidates,
        Random &random, bool guarded,
        const std::function<bool(const Dims &)> &accept) const;

private:
  friend class SizesReader;
  struct Range {
    std::string input;
    Formulas::Node low, high;
    bool guarded; ///< by data
  };
  struct Solver;
  bool forbidden(const Formulas::Values &values, bool guarded) const;
  double sum(const std::vector<Formulas::Node> &nodes, const Dims &dims) const;

  Formulas formulas;
  std::vector<Name> known; ///< as formulas.names()
  std::map<std::string, Formulas::Node> texts;
  std::vector<Formulas::Node> extents;       ///< of inputs and parameters
  std::vector<Formulas::Node> conditions;    ///< what calls require
  std::vector<Formulas::Node> underGuards;   ///< likewise, where data says so
  std::vector<Formulas::Node> costs, params; ///< terms of cost and weights
  std::vector<Range> ranges;
};

} // namespace heed::check

#endif
