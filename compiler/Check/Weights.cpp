//===- Weights.cpp - weights drawn for a model that has parameters --------===//
#include "compiler/Check/Inputs.h"
#include "support/Format.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

namespace heed::check {

bool drawWeights(const heed_model_desc *desc, const Sizes &sizes,
                 const Dims &dims, const std::string &path, Random &random,
                 std::string &error) {
  llvm::json::Object header;
  std::vector<uint8_t> data;
  for (size_t p = 0; p < heed_num_params(desc); ++p) {
    const heed_param_info *info = heed_param(desc, p);
    Array array;
    array.type = info->type;
    for (int32_t axis = 0; axis < info->rank; ++axis) {
      auto extent = info->sizes[axis] >= 0
                        ? std::optional<int64_t>(info->sizes[axis])
                        : sizes.extent(info->extents[axis], dims);
      if (!extent) {
        error = format("cannot draw extent '{}' of {}", info->extents[axis],
                       info->names[0]);
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
        std::string place = format("{{{}}}", k);
        std::string number =
            std::to_string(info->indexBounds[2 * k] + rest % range);
        rest /= range;
        for (size_t found; (found = name.find(place)) != std::string::npos;)
          name.replace(found, place.size(), number);
      }
      array.buffer();
      // Matrices as initialised networks have them: what flows through many
      // layers keeps its size.
      double scale =
          array.shape.size() < 2
              ? 1
              : std::sqrt(3.0 /
                          double(std::max<int64_t>(array.shape.back(), 1)));
      for (int64_t e = 0; e < array.count(); ++e)
        array.set(e, isReal(array.type) ? scale * random.unit()
                                        : double(random.below(2)));
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
    error = format("{}: {}", path, code.message());
    return false;
  }
  uint64_t length = text.size();
  out.write(reinterpret_cast<const char *>(&length), 8);
  out << text;
  out.write(reinterpret_cast<const char *>(data.data()), data.size());
  return true;
}

} // namespace heed::check
