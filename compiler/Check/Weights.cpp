//===- Weights.cpp - weights drawn for a model that has parameters --------===//
#include "compiler/Check/Inputs.h"
#include "runtime/io/Safetensors.h"
#include "support/Format.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

namespace heed::check {

static bool takeShape(const heed_param_info &info, const Sizes &sizes,
                      const Dims &dims, Array &array, std::string &error) {
  for (int32_t axis = 0; axis < info.rank; ++axis) {
    auto extent = info.sizes[axis] >= 0
                      ? std::optional<int64_t>(info.sizes[axis])
                      : sizes.extent(info.extents[axis], dims);
    if (!extent) {
      error = format("cannot draw extent '{}' of {}", info.extents[axis],
                     info.names[0]);
      return false;
    }
    array.shape.push_back(*extent);
  }
  return true;
}

/// The range of a loop variable of the parameter's name.
static int64_t rangeOf(const heed_param_info &info, int32_t index) {
  return info.indexBounds[2 * index + 1] - info.indexBounds[2 * index];
}

/// The name of tensor \p instance: one per instance of the loop variables.
static std::string nameOf(const heed_param_info &info, int64_t instance) {
  std::string name = info.names[0];
  for (int32_t k = 0; k < info.numIndices; ++k) {
    std::string place = format("{{{}}}", k);
    std::string number =
        format("{}", info.indexBounds[2 * k] + instance % rangeOf(info, k));
    instance /= rangeOf(info, k);
    for (size_t found; (found = name.find(place)) != std::string::npos;)
      name.replace(found, place.size(), number);
  }
  return name;
}

/// Matrices as initialised networks have them: what flows through many layers
/// keeps its size.
static void draw(Array &array, Random &random) {
  array.buffer();
  double scale =
      array.shape.size() < 2
          ? 1
          : std::sqrt(3.0 / double(std::max<int64_t>(array.shape.back(), 1)));
  for (int64_t e = 0; e < array.count(); ++e)
    array.set(e, isReal(array.type) ? scale * random.unit()
                                    : double(random.below(2)));
}

/// The tensor's entry in the header; its bytes go to the end of \p data.
static llvm::json::Object append(const Array &array,
                                 std::vector<uint8_t> &data) {
  llvm::json::Array shape;
  for (int64_t extent : array.shape)
    shape.push_back(extent);
  int64_t begin = data.size();
  data.insert(data.end(), array.bytes.begin(), array.bytes.end());
  return llvm::json::Object{
      {"dtype", heed_safetensors_dtype(array.type)},
      {"shape", std::move(shape)},
      {"data_offsets", llvm::json::Array{begin, int64_t(data.size())}}};
}

static bool writeSafetensors(llvm::json::Object header,
                             const std::vector<uint8_t> &data,
                             const std::string &path, std::string &error) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(header));
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::error_code code;
  llvm::raw_fd_ostream out(path, code);
  if (code) {
    error = format("{}: {}", path, code.message());
    return false;
  }
  uint64_t length = text.size();
  out.write(reinterpret_cast<const char *>(&length), 8);
  out << text;
  out.write(reinterpret_cast<const char *>(data.data()), data.size());
  return true;
}

bool drawWeights(const heed_model_desc *desc, const Sizes &sizes,
                 const Dims &dims, const std::string &path, Random &random,
                 std::string &error) {
  llvm::json::Object header;
  std::vector<uint8_t> data;
  for (size_t p = 0; p < heed_num_params(desc); ++p) {
    const heed_param_info &info = *heed_param(desc, p);
    Array array;
    array.type = info.type;
    if (!takeShape(info, sizes, dims, array, error))
      return false;
    int64_t instances = 1;
    for (int32_t k = 0; k < info.numIndices; ++k)
      instances *= rangeOf(info, k);
    for (int64_t instance = 0; instance < instances; ++instance) {
      // Several parameters may read one tensor, as layers of two loops do.
      if (std::string name = nameOf(info, instance); !header.get(name)) {
        draw(array, random);
        header[name] = append(array, data);
      }
    }
  }
  return writeSafetensors(std::move(header), data, path, error);
}

} // namespace heed::check
