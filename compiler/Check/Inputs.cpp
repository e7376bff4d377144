//===- Inputs.cpp - sizes and inputs drawn for a check --------------------===//
#include "compiler/Check/Inputs.h"
#include "compiler/Check/Extents.h"
#include <cmath>
#include <limits>

namespace heed::check {

std::string Draw::text() const {
  std::string text;
  for (auto &[name, value] : dims)
    text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(value);
  const char *kinds[] = {"", "; scores of 1e4", "; a NaN", "; a -inf",
                         "; all masked"};
  return text + kinds[int(kind)];
}

/// Odd sizes, the sizes of vectors and their neighbours, 1, and at the lowest
/// level also 0.
static int64_t drawSize(Random &random, const Recipe &recipe, bool leads) {
  bool byLevel = recipe.some && random.below(2);
  if (recipe.sizes == Sizes::One && !byLevel)
    return 1;
  if (recipe.sizes == Sizes::Odd && !byLevel) {
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

static bool isName(const std::string &text) {
  return !text.empty() && !isdigit(text[0]) && text != "?" &&
         text.find_first_of("+-*/(), ") == std::string::npos;
}

/// Dims that stand before the last two axes of an input.
static bool leads(const heed_signature &signature, const std::string &name) {
  for (int32_t k = 0; k < signature.numInputs; ++k)
    for (int32_t axis = 0; axis < signature.inputs[k].rank - 2; ++axis)
      if (name == signature.inputs[k].extents[axis])
        return true;
  return false;
}

std::vector<std::string> freeDims(const heed_signature &signature,
                                  const Dims &fixed) {
  Dims dims = fixed;
  std::vector<std::string> names;
  auto note = [&](const std::string &name) -> int64_t {
    names.push_back(name);
    return 1;
  };
  for (int32_t k = 0; k < signature.numInputs; ++k) {
    const heed_tensor_info &info = signature.inputs[k];
    for (int32_t axis = 0; axis < info.rank; ++axis)
      if (info.sizes[axis] < 0)
        evaluateExtent(info.extents[axis], dims, note);
  }
  return names;
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

std::optional<Draw> drawInputs(const heed_signature &signature, Random &random,
                               const Recipe &recipe) {
  Draw draw;
  draw.dims = recipe.fixed;
  draw.kind = recipe.kind;
  auto size = [&](const std::string &name) {
    return drawSize(random, recipe, leads(signature, name));
  };
  // Plain names first: a dim that also stands in an expression is one of them.
  for (int32_t k = 0; k < signature.numInputs; ++k)
    for (int32_t axis = 0; axis < signature.inputs[k].rank; ++axis)
      if (std::string name = signature.inputs[k].extents[axis];
          signature.inputs[k].sizes[axis] < 0 && isName(name) &&
          !draw.dims.count(name))
        draw.dims[name] = size(name);
  int64_t bound = recipe.kind == Kind::AllMasked ? 0
                  : recipe.bound >= 0 ? recipe.bound
                                      : int64_t(1) << (recipe.level + 1);
  for (int32_t k = 0; k < signature.numInputs; ++k) {
    const heed_tensor_info &info = signature.inputs[k];
    Array array;
    array.name = info.name;
    array.type = info.type;
    for (int32_t axis = 0; axis < info.rank; ++axis) {
      if (info.sizes[axis] >= 0) {
        array.shape.push_back(info.sizes[axis]);
        continue;
      }
      auto extent = evaluateExtent(info.extents[axis], draw.dims, size);
      if (!extent || *extent > 1 << 20)
        return std::nullopt;
      array.shape.push_back(*extent);
    }
    if (array.count() > 1 << 24)
      return std::nullopt;
    array.buffer();
    double scale =
        recipe.kind == Kind::Large && info.rank >= 2 ? recipe.scale : 1;
    for (int64_t at = 0; at < array.count(); ++at)
      if (info.type == HEED_BOOL) {
        array.set(at,
                  recipe.kind == Kind::AllMasked ? 0 : double(random.below(2)));
      } else if (isReal(info.type)) {
        double value = random.unit();
        array.set(at, scale * (recipe.positive ? std::fabs(value) : value));
      } else {
        array.set(at, double(random.below(bound + 1)));
      }
    if (info.isScalar && info.hasDefault)
      array.set(0, isReal(info.type) ? info.defaultReal
                                     : double(info.defaultInteger));
    draw.inputs.push_back(std::move(array));
  }
  if (recipe.kind == Kind::NaN)
    spoil(draw.inputs, random, std::numeric_limits<double>::quiet_NaN());
  if (recipe.kind == Kind::MinusInfinity)
    spoil(draw.inputs, random, -std::numeric_limits<double>::infinity());
  return draw;
}

} // namespace heed::check
