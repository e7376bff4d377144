//===- Weights.cpp - the files of --weights -------------------------------===//

#include "compiler/Driver/Weights.h"
#include "passes/Host/HostParams.h"
#include "passes/Host/RuntimeType.h"
#include "runtime/io/Convert.h"
#include "runtime/io/Safetensors.h"
#include "support/Format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace heed;

void heed::CloseWeights::operator()(heed_weights *weights) const {
  heed_weights_close(weights);
}

Weights heed::openWeights(const std::vector<std::string> &files) {
  std::vector<const char *> paths;
  for (const std::string &file : files)
    paths.push_back(file.c_str());
  heed_weights *weights = nullptr;
  heed_io_error error;
  if (!heed_weights_open(paths.data(), paths.size(), /*reads=*/false, &weights,
                         &error))
    llvm::errs() << "heedc: error: " << error.text << '\n';
  return Weights(weights);
}

std::vector<std::string>
heed::filesOfWeights(const std::vector<std::string> &given,
                     const heed_weights &weights) {
  std::vector<std::string> files;
  for (const std::string &path : given) {
    if (!heed_is_folder(path.c_str())) {
      files.push_back(path);
      continue;
    }
    // A checkpoint's folder: its index, where it has no single file; tensors
    // name the rest.
    SmallString<128> file(path), index(path);
    llvm::sys::path::append(file, "model.safetensors");
    llvm::sys::path::append(index, "model.safetensors.index.json");
    if (!llvm::sys::fs::exists(file) && llvm::sys::fs::exists(index))
      files.push_back(std::string(index));
  }
  for (size_t k = 0; k < heed_weights_count(&weights); ++k) {
    const char *path = nullptr;
    heed_weights_find(&weights, heed_weights_at(&weights, k)->name, &path);
    if (path && !llvm::is_contained(files, path))
      files.push_back(path);
  }
  return files;
}

WeightIndex heed::indexWeights(const heed_weights &weights) {
  WeightIndex index;
  for (size_t k = 0; k < heed_weights_count(&weights); ++k) {
    const heed_safetensor *tensor = heed_weights_at(&weights, k);
    WeightInfo &info = index[tensor->name];
    info.type = tensor->dtype;
    info.shape.assign(tensor->array.shape,
                      tensor->array.shape + tensor->array.rank);
  }
  return index;
}

namespace {

std::string formatShape(ArrayRef<int64_t> sizes) {
  std::string text = "[";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(
      sizes, os, [&](int64_t size) { size < 0 ? os << '?' : os << size; });
  os << ']';
  return text;
}

/// One turn of the loops around a parameter.
LogicalResult checkInstance(attn::ParamOp op, DictionaryAttr param,
                            ArrayRef<int64_t> indices,
                            const heed_weights &weights) {
  const heed_safetensor *tensor = nullptr;
  std::string tried;
  SmallVector<std::string> numbers;
  for (int64_t index : indices)
    numbers.push_back(heed::format("{}", index));
  for (Attribute pattern : param.getAs<ArrayAttr>("names")) {
    std::string name =
        fillParamName(cast<StringAttr>(pattern).getValue(), numbers);
    tried += format("{}{}'", tried.empty() ? "'" : " or '", name);
    if ((tensor = heed_weights_find(&weights, name.c_str(), nullptr)))
      break;
  }
  if (!tensor)
    return op.emitError() << "the weights have no " << tried;
  const heed_array &array = tensor->array;
  ArrayRef<int64_t> wanted = param.getAs<DenseI64ArrayAttr>("sizes");
  ArrayRef<int64_t> found(array.shape, array.rank);
  bool fits = wanted.size() == found.size();
  for (size_t axis = 0; fits && axis < wanted.size(); ++axis)
    fits = wanted[axis] < 0 || wanted[axis] == found[axis];
  if (!fits)
    return op.emitError() << "the weights' '" << tensor->name << "' has shape "
                          << formatShape(found) << ", expected "
                          << formatShape(wanted);
  Type type = param.getAs<TypeAttr>("type").getValue();
  if (!heed_convert_allowed(array.type, runtimeType(type), HEED_ROUND_F64))
    return op.emitError() << "the weights' '" << tensor->name << "' is "
                          << tensor->dtype << ", expected " << type;
  if (array.type == HEED_F64)
    op.emitWarning() << "the weights' '" << tensor->name
                     << "' is F64: opening them needs --convert";
  return success();
}

/// Every array that an entry of \p op names.
LogicalResult checkEntry(attn::ParamOp op, DictionaryAttr param,
                         const heed_weights &weights) {
  ArrayRef<int64_t> bounds = param.getAs<DenseI64ArrayAttr>("bounds");
  SmallVector<int64_t> indices;
  for (size_t k = 0; k < bounds.size(); k += 2) {
    if (bounds[k] >= bounds[k + 1])
      return success(); // a loop without turns
    indices.push_back(bounds[k]);
  }
  for (;;) {
    if (failed(checkInstance(op, param, indices, weights)))
      return failure();
    size_t k = indices.size();
    for (; k > 0; --k) {
      if (++indices[k - 1] < bounds[2 * k - 1])
        break;
      indices[k - 1] = bounds[2 * k - 2];
    }
    if (k == 0)
      return success();
  }
}

} // namespace

LogicalResult heed::checkWeights(ModuleOp module, const heed_weights &weights) {
  FailureOr<HostParams> params = numberParams(module);
  if (failed(params))
    return failure();
  SmallVector<bool> seen(params->table.size());
  WalkResult walk = module.walk([&](attn::ParamOp op) {
    const HostParam &param = params->ops[op];
    for (int64_t number = param.number; number < param.number + param.count;
         ++number)
      if (!std::exchange(seen[number], true) &&
          failed(checkEntry(op, cast<DictionaryAttr>(params->table[number]),
                            weights)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}
