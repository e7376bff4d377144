//===- Model.cpp - a compiled model in a shared library -------------------===//
//
// Each library carries its own runtime; this tool's functions of heed.h find
// it.
#include "compiler/Check/Model.h"
#include "support/Format.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include <cstring>
#include <dlfcn.h>

namespace heed::check {

int64_t Array::count() const {
  int64_t n = 1;
  for (int64_t extent : shape)
    n *= extent;
  return n;
}

heed_buffer Array::buffer() {
  heed_buffer b{};
  b.size = sizeof b;
  bytes.resize(size_t(count()) * heed_type_size(type));
  b.data = bytes.data();
  b.type = type;
  b.rank = int32_t(shape.size());
  llvm::copy(shape, b.shape);
  return b;
}

static const llvm::fltSemantics &semantics(int32_t type) {
  return type == HEED_F16    ? llvm::APFloat::IEEEhalf()
         : type == HEED_BF16 ? llvm::APFloat::BFloat()
                             : llvm::APFloat::IEEEsingle();
}

template <typename T>
static T load(const std::vector<uint8_t> &bytes, int64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at * sizeof(T), sizeof(T));
  return value;
}
template <typename T>
static void store(std::vector<uint8_t> &bytes, int64_t at, T value) {
  std::memcpy(bytes.data() + at * sizeof(T), &value, sizeof(T));
}

double Array::get(int64_t at) const {
  switch (type) {
  case HEED_F32:
    return load<float>(bytes, at);
  case HEED_F64:
    return load<double>(bytes, at);
  case HEED_I32:
    return load<int32_t>(bytes, at);
  case HEED_I64:
    return double(load<int64_t>(bytes, at));
  case HEED_F16:
  case HEED_BF16: {
    llvm::APFloat value(semantics(type),
                        llvm::APInt(16, load<uint16_t>(bytes, at)));
    bool lossy;
    value.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &lossy);
    return value.convertToDouble();
  }
  case HEED_I16:
    return load<int16_t>(bytes, at);
  case HEED_I8:
    return load<int8_t>(bytes, at);
  default:
    return load<uint8_t>(bytes, at);
  }
}

void Array::set(int64_t at, double value) {
  switch (type) {
  case HEED_F32:
    return store<float>(bytes, at, float(value));
  case HEED_F64:
    return store<double>(bytes, at, value);
  case HEED_I32:
    return store<int32_t>(bytes, at, int32_t(value));
  case HEED_I64:
    return store<int64_t>(bytes, at, int64_t(value));
  case HEED_F16:
  case HEED_BF16: {
    llvm::APFloat wide(value);
    bool lossy;
    wide.convert(semantics(type), llvm::APFloat::rmNearestTiesToEven, &lossy);
    return store<uint16_t>(bytes, at,
                           uint16_t(wide.bitcastToAPInt().getZExtValue()));
  }
  case HEED_I16:
    return store<int16_t>(bytes, at, int16_t(value));
  case HEED_I8:
    return store<int8_t>(bytes, at, int8_t(value));
  default:
    return store<uint8_t>(bytes, at, uint8_t(value));
  }
}

std::shared_ptr<const heed_model_desc> describe(const std::string &library,
                                                std::string &error) {
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    error = dlerror();
    return nullptr;
  }
  // The list of its models, of which heedc puts one into a library.
  auto *models =
      static_cast<const heed_model_desc *const *>(dlsym(handle, "heed_models"));
  if (!models) {
    error = heed::format("{}: no symbol heed_models", library);
    dlclose(handle);
    return nullptr;
  }
  return {models[0], [handle](const heed_model_desc *) { dlclose(handle); }};
}

Entry::Entry(const heed_model_desc &model, size_t number)
    : states(heed_num_states(&model)),
      all(*heed_entry_signature(&model, number)) {
  inputs.assign(all.inputs, all.inputs + all.numInputs);
  // States come first: the reference may have further outputs.
  for (size_t k = 0; k < states; ++k) {
    inputs.push_back(heed_state_info(&model, k));
    outputs.push_back(inputs.back());
  }
  outputs.insert(outputs.end(), all.outputs, all.outputs + all.numOutputs);
  all.inputs = inputs.data();
  all.outputs = outputs.data();
  all.numInputs = int32_t(inputs.size());
  all.numOutputs = int32_t(outputs.size());
}

std::unique_ptr<Model> Model::open(const std::string &library,
                                   const std::vector<std::string> &weights,
                                   size_t entry, std::string &error) {
  std::unique_ptr<Model> result(new Model);
  result->desc = describe(library, error);
  if (!result->desc)
    return nullptr;
  result->entry.emplace(*result->desc, entry);
  std::vector<const char *> files;
  for (const std::string &file : weights)
    files.push_back(file.c_str());
  heed_options options{};
  options.size = sizeof options;
  options.weights = files.data();
  options.numWeights = files.size();
  options.threads = 2;
  // Of a device any one, a processor that OpenCL knows too.
  options.target = heed_target_name(result->desc.get(), 0);
  if (heed_open(result->desc.get(), &options, &result->model) != HEED_OK) {
    error = format("{}: {}", library,
                   result->model ? heed_last_error(result->model)
                                 : "out of memory");
    return nullptr;
  }
  return result;
}

Model::~Model() {
  if (model)
    heed_close(model);
}

heed_state *Model::openState(llvm::MutableArrayRef<Array> tensors,
                             Outcome &outcome) {
  std::map<std::string, int64_t> extents;
  for (auto [k, tensor] : llvm::enumerate(tensors)) {
    const heed_tensor_info *info = heed_state_info(desc.get(), k);
    for (int32_t axis = 0; axis < info->rank; ++axis)
      if (info->sizes[axis] < 0)
        extents[info->extents[axis]] = tensor.shape[axis];
  }
  std::vector<heed_dim> dims;
  for (auto &[name, extent] : extents)
    dims.push_back({name.c_str(), extent});
  heed_state *state = nullptr;
  outcome.status = heed_state_open(model, dims.data(), dims.size(), &state);
  outcome.message = heed_last_error(model);
  for (size_t k = 0; k < tensors.size() && !outcome.status; ++k) {
    heed_buffer buffer = tensors[k].buffer();
    outcome.status =
        heed_state_set(state, heed_state_info(desc.get(), k)->name, &buffer);
    outcome.message = heed_state_last_error(state);
  }
  if (!outcome.status)
    return state;
  heed_state_close(state);
  return nullptr;
}

/// The states after the call, and then the outputs.
Outcome Model::run(std::vector<Array> &inputs) {
  Outcome outcome;
  size_t numStates = entry->numStates();
  size_t numOutputs = size_t(signature().numOutputs) - numStates;
  std::vector<heed_buffer> in, out(numOutputs);
  for (heed_buffer &buffer : out)
    buffer.size = sizeof buffer;
  llvm::MutableArrayRef<Array> states =
      llvm::MutableArrayRef(inputs).take_back(numStates);
  for (Array &array : llvm::MutableArrayRef(inputs).drop_back(numStates))
    in.push_back(array.buffer());
  heed_call call{};
  call.size = sizeof call;
  call.keepFloatMode = 1; // what f32 gives in other modes is asked, too
  if (numStates && !(call.state = openState(states, outcome)))
    return outcome;
  llvm::scope_exit close([&] { heed_state_close(call.state); });
  auto fail = [&](heed_status status) {
    outcome.status = status;
    outcome.message = heed_last_error(model);
    return outcome;
  };
  heed_status status =
      heed_output_shapes_in(model, signature().entry, in.data(), in.size(),
                            out.data(), out.size(), &call);
  if (status != HEED_OK)
    return fail(status);
  for (size_t k = 0; k < numOutputs + numStates; ++k) {
    Array array;
    array.name = signature().outputs[k]->name;
    const heed_buffer *buffer = k < numStates ? nullptr : &out[k - numStates];
    array.type = signature().outputs[k]->type;
    if (buffer)
      array.shape.assign(buffer->shape, buffer->shape + buffer->rank);
    else
      array.shape = states[k].shape;
    // An element that nobody writes shows as a NaN.
    array.bytes.assign(size_t(array.count()) * heed_type_size(array.type),
                       0xff);
    outcome.outputs.push_back(std::move(array));
  }
  for (size_t k = 0; k < out.size(); ++k)
    out[k] = outcome.outputs[numStates + k].buffer();
  status = heed_run(model, signature().entry, in.data(), in.size(), out.data(),
                    out.size(), &call);
  if (status != HEED_OK)
    return fail(status);
  for (size_t k = 0; k < numStates; ++k) {
    heed_buffer buffer = outcome.outputs[k].buffer();
    heed_state_get(call.state, signature().outputs[k]->name, &buffer);
  }
  return outcome;
}

} // namespace heed::check
