//===- Inputs.cpp - sizes and inputs drawn for a check --------------------===//
#include "compiler/Check/Inputs.h"
#include "support/Format.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace heed::check {

/// Of one array.
constexpr double kMostElements = 1 << 25;

std::string Draw::text() const {
  std::string text;
  for (auto &[name, value] : dims)
    text += format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  const char *kinds[] = {"", "; scores of 1e4", "; a NaN", "; a -inf",
                         "; all masked"};
  return text + kinds[int(kind)];
}

/// Odd sizes, the sizes of vectors and their neighbours, 1, and at the lowest
/// level also 0.
static int64_t drawSize(Random &random, const Recipe &recipe, bool leads) {
  if (recipe.shape == Shape::One)
    return 1;
  if (recipe.shape == Shape::Odd) {
    static const int64_t odd[] = {3, 5, 7, 9, 11, 13, 17, 19, 33};
    return odd[random.below(leads ? 2 : 9)];
  }
  // Leading dims (batches, heads) stay small: sizes multiply.
  if (leads)
    return recipe.level == 0 ? 1 : 1 + random.below(3);
  static const int64_t levels[][6] = {
      {1, 1, 1, 2, 1, 0},       {1, 2, 3, 1, 2, 3},
      {2, 3, 5, 7, 4, 1},       {8, 9, 15, 16, 17, 6},
      {31, 32, 33, 48, 49, 20}, {50, 64, 65, 70, 97, 12}};
  return levels[std::min(recipe.level, 5u)][random.below(6)];
}

/// Dims that stand before the last two axes of an input.
static bool leads(const heed_signature &signature, const std::string &name) {
  for (int32_t k = 0; k < signature.numInputs; ++k)
    for (int32_t axis = 0; axis < signature.inputs[k]->rank - 2; ++axis)
      if (name == signature.inputs[k]->extents[axis])
        return true;
  return false;
}

/// The default of the integer scalar \p name, if it has one.
static std::optional<int64_t> defaultOf(const heed_signature &signature,
                                        const std::string &name) {
  for (int32_t k = 0; k < signature.numInputs; ++k)
    if (const heed_tensor_info &info = *signature.inputs[k];
        info.isScalar && info.hasDefault && name == info.name)
      return info.defaultInteger;
  return std::nullopt;
}

std::optional<Dims> drawDims(const heed_signature &signature,
                             const Sizes &sizes, Random &random,
                             const Recipe &recipe, bool &tooDear) {
  auto candidates = [&](const Sizes::Name &name) {
    std::vector<int64_t> wanted;
    // Which dims must grow is not known: now these, now those.
    if (recipe.climb && !name.isScalar && random.below(2))
      for (int64_t k = 0, least = 8 << recipe.climb; k < 8; ++k)
        wanted.push_back(least + random.below(least));
    if (auto near = recipe.near.find(name.text); near != recipe.near.end())
      wanted.push_back(near->second);
    if (name.isScalar) {
      auto given = defaultOf(signature, name.text);
      if (given && (recipe.defaults || random.below(2)))
        wanted.push_back(*given);
      if (recipe.kind == Kind::AllMasked)
        wanted.push_back(0);
      for (unsigned k = 0; k < 8; ++k)
        wanted.push_back(random.below(12) - 2);
      return wanted;
    }
    bool leading = leads(signature, name.text);
    for (unsigned k = 0; k < 8; ++k)
      wanted.push_back(recipe.shape != Shape::Several
                           ? drawSize(random, recipe, leading)
                       : name.drives ? 2 + random.below(3)
                                     : 5 + random.below(20));
    // Not every dim may be odd: halves of heads, multiples of groups.
    for (unsigned k = 0; k < 8; ++k)
      wanted.push_back(1 + random.below(24));
    return wanted;
  };
  return sizes.solve(
      recipe.fixed, candidates, random, recipe.guarded, [&](const Dims &dims) {
        bool dear = sizes.cost(dims) > recipe.budget ||
                    (recipe.climb && sizes.weights(dims) > kMostElements);
        tooDear |= dear;
        return !dear;
      });
}

/// A NaN or -inf at one place of one of the reals.
static void spoil(std::vector<Array> &inputs, Random &random, double value) {
  std::vector<Array *> reals;
  for (Array &array : inputs)
    if (isReal(array.type) && array.count())
      reals.push_back(&array);
  if (reals.empty())
    return;
  Array &array = *reals[random.below(reals.size())];
  array.set(random.below(array.count()), value);
}

/// Bools of one kind: as likely as not, all, none, mostly one of them, or true
/// up to some place of each row.
static void fillBools(Array &array, Random &random, bool none) {
  int64_t length =
      array.shape.empty() ? 1 : std::max<int64_t>(array.shape.back(), 1);
  int64_t kind = none ? 1 : random.below(8), end = 0;
  for (int64_t at = 0; at < array.count(); ++at) {
    if (at % length == 0)
      end = random.below(length + 1);
    bool value = kind == 0   ? true
                 : kind == 1 ? false
                 : kind == 2 ? random.below(16) > 0
                 : kind == 3 ? random.below(16) == 0
                 : kind == 4 ? at % length < end
                             : random.below(2) > 0;
    array.set(at, value);
  }
}

/// Integers in [low, high]: any, all equal, or sorted in each row (documents,
/// positions).
static void fillIntegers(Array &array, Random &random, int64_t low,
                         int64_t high) {
  std::vector<int64_t> values(array.count());
  int64_t kind = random.below(4);
  for (int64_t &value : values)
    value = kind == 0 && &value != &values[0]
                ? values[0]
                : low + random.below(high - low + 1);
  int64_t length =
      array.shape.empty() ? 1 : std::max<int64_t>(array.shape.back(), 1);
  for (size_t row = 0; kind == 1 && row < values.size(); row += length)
    std::sort(values.begin() + row, values.begin() + row + length);
  for (size_t at = 0; at < values.size(); ++at)
    array.set(at, double(values[at]));
}

/// The range of the elements of integer input \p info.
static std::pair<int64_t, int64_t>
integerRange(const heed_tensor_info &info, const Sizes &sizes, const Dims &dims,
             Random &random, const Recipe &recipe) {
  if (auto required = sizes.range(info.name, dims, recipe.guarded))
    return {required->first, std::max(required->first, required->second - 1)};
  if (recipe.kind == Kind::AllMasked || recipe.integers == Integers::Zero)
    return {0, 0};
  if (recipe.integers == Integers::Bits)
    return {0, 1};
  int64_t bound = int64_t(1) << (recipe.level + 1);
  if (recipe.integers == Integers::Small)
    return {0, bound};
  // Lengths also a little above the largest extent.
  if (random.below(2))
    for (auto &[name, size] : dims)
      bound = std::max(bound, size + 2);
  if (info.type == HEED_I8)
    bound = std::min<int64_t>(random.below(2) ? 127 : bound, 127);
  return {random.below(2) ? -bound : 0, bound};
}

static void fill(Array &array, const heed_tensor_info &info, const Sizes &sizes,
                 const Dims &dims, Random &random, const Recipe &recipe) {
  if (info.type == HEED_BOOL)
    return fillBools(array, random, recipe.kind == Kind::AllMasked);
  if (!isReal(info.type)) {
    auto [low, high] = integerRange(info, sizes, dims, random, recipe);
    return fillIntegers(array, random, low, high);
  }
  double scale =
      recipe.kind == Kind::Large && info.rank >= 2 ? recipe.scale : 1;
  for (int64_t at = 0; at < array.count(); ++at) {
    double value = random.unit();
    array.set(at, scale * (recipe.positive ? std::fabs(value) : value));
  }
}

std::optional<Draw> drawInputs(const heed_signature &signature,
                               const Sizes &sizes, const Dims &dims,
                               Random &random, const Recipe &recipe) {
  Draw draw;
  draw.dims = dims;
  draw.kind = recipe.kind;
  for (int32_t k = 0; k < signature.numInputs; ++k) {
    const heed_tensor_info &info = *signature.inputs[k];
    Array array;
    array.name = info.name;
    array.type = info.type;
    double count = 1;
    for (int32_t axis = 0; axis < info.rank; ++axis) {
      auto extent = info.sizes[axis] >= 0
                        ? std::optional<int64_t>(info.sizes[axis])
                        : sizes.extent(info.extents[axis], dims);
      if (!extent || (count *= double(*extent)) > kMostElements)
        return std::nullopt;
      array.shape.push_back(*extent);
    }
    array.buffer();
    auto number = dims.find(info.name);
    if (info.isScalar && number != dims.end() && !isReal(info.type)) {
      array.set(0, double(number->second));
    } else {
      fill(array, info, sizes, dims, random, recipe);
      if (info.isScalar && info.hasDefault &&
          (recipe.defaults || random.below(2)))
        array.set(0, isReal(info.type) ? info.defaultReal *
                                             (recipe.defaults || random.below(2)
                                                  ? 1
                                                  : 1 + random.unit() / 2)
                                       : double(info.defaultInteger));
    }
    draw.inputs.push_back(std::move(array));
  }
  if (recipe.kind == Kind::NaN)
    spoil(draw.inputs, random, std::numeric_limits<double>::quiet_NaN());
  if (recipe.kind == Kind::MinusInfinity)
    spoil(draw.inputs, random, -std::numeric_limits<double>::infinity());
  return draw;
}

} // namespace heed::check
