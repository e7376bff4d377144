//===- Inputs.cpp - sizes, inputs and weights drawn for a check
//-------------===//
#include "compiler/Check/Inputs.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <limits>

namespace heed::check {

std::string Draw::text() const {
  std::string text;
  for (auto &[name, value] : dims)
    text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(value);
  const char *kinds[] = {"", "; scores of 1e4", "; a NaN", "; a -inf"};
  return text + kinds[int(kind)];
}

static bool isReal(int32_t type) {
  return type == HEED_F32 || type == HEED_F16 || type == HEED_BF16;
}

namespace {
struct SizeDraw {
  Random &random;
  unsigned level;
};
} // namespace

/// Odd sizes, the sizes of vectors and their neighbours, 1, and at the lowest
/// level also 0.
static int64_t drawSize(void *state) {
  static const int64_t levels[][6] = {
      {1, 1, 1, 2, 1, 0},       {1, 2, 3, 1, 2, 3},
      {2, 3, 5, 7, 4, 1},       {8, 9, 15, 16, 17, 6},
      {31, 32, 33, 48, 49, 20}, {50, 64, 65, 70, 97, 12}};
  auto *draw = static_cast<SizeDraw *>(state);
  return levels[std::min(draw->level, 5u)][draw->random.below(6)];
}

std::optional<Draw> drawInputs(const heed_signature &signature, Random &random,
                               unsigned level, Kind kind,
                               const std::map<std::string, int64_t> &fixed,
                               int64_t bound) {
  Draw draw;
  draw.dims = fixed;
  draw.kind = kind;
  SizeDraw sizes{random, level};
  // Leading dims (batches, heads) stay small: sizes multiply.
  for (int32_t k = 0; k < signature.numInputs; ++k) {
    const heed_tensor_info &info = signature.inputs[k];
    for (int32_t axis = 0; axis < info.rank - 2; ++axis)
      if (!draw.dims.count(info.extents[axis]) &&
          isalpha(info.extents[axis][0]) &&
          std::string(info.extents[axis]).find_first_of("+-*/( ") ==
              std::string::npos)
        draw.dims[info.extents[axis]] = level == 0 ? 1 : 1 + random.below(3);
  }
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
      auto extent = evaluate(info.extents[axis], draw.dims, drawSize, &sizes);
      if (!extent || *extent > 1 << 20)
        return std::nullopt;
      array.shape.push_back(*extent);
    }
    if (array.count() > 1 << 24)
      return std::nullopt;
    array.buffer();
    double scale = kind == Kind::Large && info.rank >= 3 ? 100 : 1;
    for (int64_t at = 0; at < array.count(); ++at)
      if (info.type == HEED_BOOL)
        array.set(at, double(random.below(2)));
      else if (isReal(info.type))
        array.set(at, scale * random.unit());
      else
        array.set(at, double(random.below(bound + 1)));
    if (info.isScalar && info.hasDefault)
      array.set(0, isReal(info.type) ? info.defaultReal
                                     : double(info.defaultInteger));
    draw.inputs.push_back(std::move(array));
  }
  if (kind == Kind::Large)
    draw.tolerance = std::max(1e-5, 8 * std::ldexp(1.0, -24) * 1e4 *
                                        std::sqrt(double(1 + level * 10)));
  if (kind == Kind::NaN || kind == Kind::MinusInfinity) {
    std::vector<Array *> reals;
    for (Array &array : draw.inputs)
      if (isReal(array.type) && array.count())
        reals.push_back(&array);
    if (!reals.empty()) {
      Array &array = *reals[random.below(reals.size())];
      array.set(random.below(array.count()),
                kind == Kind::NaN ? std::numeric_limits<double>::quiet_NaN()
                                  : -std::numeric_limits<double>::infinity());
    }
  }
  return draw;
}

bool drawWeights(const heed_model_desc *desc, const std::string &path,
                 Random &random, std::map<std::string, int64_t> &dims,
                 std::string &error) {
  llvm::json::Object header;
  std::vector<uint8_t> data;
  SizeDraw sizes{random, 2};
  for (size_t p = 0; p < heed_num_params(desc); ++p) {
    const heed_param_info *info = heed_param(desc, p);
    Array array;
    array.type = info->type;
    for (int32_t axis = 0; axis < info->rank; ++axis) {
      if (info->sizes[axis] < 0 && std::string(info->extents[axis]) == "?") {
        dims["?"] = 24; // divisible by the usual numbers of heads
        array.shape.push_back(24);
        continue;
      }
      auto extent = info->sizes[axis] >= 0
                        ? std::optional<int64_t>(info->sizes[axis])
                        : evaluate(info->extents[axis], dims, drawSize, &sizes);
      if (!extent) {
        error = std::string("cannot draw extent '") + info->extents[axis] +
                "' of " + info->names[0];
        return false;
      }
      array.shape.push_back(*extent);
    }
    // One tensor per instance of the name's loop variables.
    std::vector<int64_t> at;
    int64_t instances = 1;
    for (int32_t k = 0; k < info->numIndices; ++k) {
      at.push_back(info->indexBounds[2 * k]);
      instances *= info->indexBounds[2 * k + 1] - info->indexBounds[2 * k];
    }
    for (int64_t instance = 0; instance < instances; ++instance) {
      std::string name = info->names[0];
      int64_t rest = instance;
      for (int32_t k = 0; k < info->numIndices; ++k) {
        int64_t range = info->indexBounds[2 * k + 1] - info->indexBounds[2 * k];
        std::string place = "{" + std::to_string(k) + "}";
        std::string number =
            std::to_string(info->indexBounds[2 * k] + rest % range);
        rest /= range;
        for (size_t found; (found = name.find(place)) != std::string::npos;)
          name.replace(found, place.size(), number);
      }
      array.buffer();
      for (int64_t e = 0; e < array.count(); ++e)
        array.set(e,
                  isReal(array.type) ? random.unit() : double(random.below(2)));
      const char *type = array.type == HEED_F16    ? "F16"
                         : array.type == HEED_BF16 ? "BF16"
                         : array.type == HEED_I8   ? "I8"
                         : array.type == HEED_I32  ? "I32"
                         : array.type == HEED_I64  ? "I64"
                         : array.type == HEED_BOOL ? "BOOL"
                                                   : "F32";
      llvm::json::Array shape;
      for (int64_t extent : array.shape)
        shape.push_back(extent);
      int64_t begin = data.size();
      data.insert(data.end(), array.bytes.begin(), array.bytes.end());
      header[name] = llvm::json::Object{
          {"dtype", type},
          {"shape", std::move(shape)},
          {"data_offsets", llvm::json::Array{begin, int64_t(data.size())}}};
    }
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(header));
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::error_code code;
  llvm::raw_fd_ostream out(path, code);
  if (code) {
    error = path + ": " + code.message();
    return false;
  }
  uint64_t length = text.size();
  out.write(reinterpret_cast<const char *>(&length), 8);
  out << text;
  out.write(reinterpret_cast<const char *>(data.data()), data.size());
  return true;
}

} // namespace heed::check
