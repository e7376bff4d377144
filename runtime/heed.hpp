// heed.h for C++17: handles that close themselves, arrays as spans, errors as
// exceptions. Header only; link what heed.h wants.
//
//   heed::Model model(sdpa_model, heed::Options().threads(2));
//   std::vector<float> q = ..., y(2 * 3);
//   model.run({heed::array(q, {2, 3})}, {heed::array(y, {2, 3})});
//
// Every failure throws heed::Error, which holds the status and heed.h's
// message; nothing else is thrown but std::bad_alloc. Buffers borrow: the
// arrays behind them must live until the call returns. A Model is used by one
// thread at a time; share() gives another on the same weights. A State is what
// lives from call to call; one thread at a time uses it. Generation is in
// generate.hpp.
//
//   heed::State state(model, {{"B", 1}, {"C", 4096}});
//   model.run({heed::array(ids, {1, 9})}, {heed::array(logits, {1, V})},
//   state);
#ifndef HEED_HEED_HPP
#define HEED_HEED_HPP

#include "heed.h"

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace heed {

/// What a call said when it failed.
class Error : public std::runtime_error {
public:
  Error(heed_status status, const std::string &message)
      : std::runtime_error(message.empty() ? heed_status_name(status)
                                           : message),
        code(status) {}
  heed_status status() const { return code; }

private:
  heed_status code;
};

/// Elements that somebody else owns: std::span for C++17. Converts from arrays,
/// vectors and whatever has data() and size().
template <typename T> class Span {
public:
  Span(T *data, std::size_t size) : first(data), count(size) {}
  template <typename Container,
            typename = decltype(std::declval<Container &>().data())>
  Span(Container &container)
      : first(container.data()), count(container.size()) {}
  template <std::size_t N> Span(T (&array)[N]) : first(array), count(N) {}
  T *data() const { return first; }
  std::size_t size() const { return count; }
  T *begin() const { return first; }
  T *end() const { return first + count; }
  T &operator[](std::size_t k) const { return first[k]; }

private:
  T *first;
  std::size_t count;
};

/// The heed_type of a C++ type. f16 and bf16 have none: give the type by hand.
template <typename T> struct TypeOf;
template <> struct TypeOf<float> {
  static constexpr heed_type value = HEED_F32;
};
template <> struct TypeOf<std::int8_t> {
  static constexpr heed_type value = HEED_I8;
};
template <> struct TypeOf<std::uint8_t> {
  static constexpr heed_type value = HEED_U8;
};
template <> struct TypeOf<std::int16_t> {
  static constexpr heed_type value = HEED_I16;
};
template <> struct TypeOf<std::int32_t> {
  static constexpr heed_type value = HEED_I32;
};
template <> struct TypeOf<std::int64_t> {
  static constexpr heed_type value = HEED_I64;
};
template <> struct TypeOf<bool> {
  static constexpr heed_type value = HEED_BOOL;
};

/// A heed_buffer and the strides that it points to.
class Buffer {
public:
  Buffer() { reset(nullptr, HEED_F32, nullptr, 0); }
  Buffer(void *data, heed_type type, std::initializer_list<std::int64_t> shape,
         std::initializer_list<std::int64_t> strides = {}) {
    reset(data, type, shape.begin(), shape.size());
    setStrides(strides.begin(), strides.size());
  }
  Buffer(void *data, heed_type type, const std::vector<std::int64_t> &shape,
         const std::vector<std::int64_t> &strides = {}) {
    reset(data, type, shape.data(), shape.size());
    setStrides(strides.data(), strides.size());
  }

  /// As heed.h has it; points into this object.
  heed_buffer get() const {
    heed_buffer buffer = raw;
    buffer.strides = strided ? steps : nullptr;
    return buffer;
  }
  std::vector<std::int64_t> shape() const {
    return {raw.shape, raw.shape + raw.rank};
  }

private:
  friend class Model;

  void reset(void *data, heed_type type, const std::int64_t *shape,
             std::size_t rank) {
    if (rank > HEED_MAX_RANK)
      throw Error(HEED_ERROR_SHAPE, "a buffer of too many axes");
    raw = heed_buffer();
    raw.size = sizeof raw;
    raw.data = data;
    raw.type = type;
    raw.rank = std::int32_t(rank);
    for (std::size_t axis = 0; axis < rank; ++axis)
      raw.shape[axis] = shape[axis];
  }
  void setStrides(const std::int64_t *strides, std::size_t count) {
    if (count != 0 && count != std::size_t(raw.rank))
      throw Error(HEED_ERROR_SHAPE, "expected one stride for each axis");
    strided = count != 0;
    for (std::size_t axis = 0; axis < count; ++axis)
      steps[axis] = strides[axis];
  }

  heed_buffer raw;
  std::int64_t steps[HEED_MAX_RANK] = {};
  bool strided = false;
};

/// Dense row-major elements; the shape must be that of the span.
template <typename Container>
Buffer array(Container &elements, const std::vector<std::int64_t> &shape) {
  using Element =
      std::remove_pointer_t<decltype(std::declval<Container &>().data())>;
  Span<Element> span(elements);
  std::size_t count = 1;
  for (std::int64_t extent : shape)
    count *= std::size_t(extent);
  if (count != span.size())
    throw Error(HEED_ERROR_SHAPE, "an array of " + std::to_string(span.size()) +
                                      " elements, expected " +
                                      std::to_string(count));
  using Value = std::remove_const_t<Element>;
  return Buffer(const_cast<Value *>(span.data()), TypeOf<Value>::value, shape);
}

/// A run-time scalar.
template <typename T> Buffer scalar(T &value) {
  return Buffer(&value, TypeOf<T>::value, {});
}
/// A scalar's default.
inline Buffer absent(heed_type type) { return Buffer(nullptr, type, {}); }

/// heed_options, of which the strings are kept.
class Options {
public:
  Options() {
    raw = heed_options();
    raw.size = sizeof raw;
  }
  Options &weights(std::string file) {
    files.push_back(std::move(file));
    return *this;
  }
  /// A .safetensors file in memory, borrowed as heed.h says.
  Options &weightsData(const void *data, std::size_t size) {
    heed_weights_data one = heed_weights_data();
    one.size = sizeof one;
    one.data = data;
    one.numBytes = size;
    memory.push_back(one);
    return *this;
  }
  /// A file of Model::savePacked(), instead of other weights.
  Options &packed(std::string file) {
    packedFile = std::move(file);
    return *this;
  }
  Options &copyWeights() {
    raw.copyWeights = 1;
    return *this;
  }
  Options &threads(int count) {
    raw.threads = count;
    return *this;
  }
  Options &watch() {
    raw.wait = HEED_WAIT_WATCH;
    return *this;
  }
  Options &memoryLimit(std::int64_t bytes) {
    raw.memoryLimit = bytes;
    return *this;
  }
  Options &target(std::string name) {
    wanted = std::move(name);
    return *this;
  }
  /// A CUcontext, with the target cuda.
  Options &context(void *context) {
    raw.context = context;
    return *this;
  }
  Options &device(int number) {
    raw.device = number;
    return *this;
  }
  /// The rest by heed.h's names.
  heed_options raw;

private:
  friend class Model;
  std::vector<std::string> files;
  std::vector<heed_weights_data> memory;
  std::string wanted, packedFile;
};

class State;

/// An open model.
class Model {
public:
  explicit Model(const heed_model_desc &desc,
                 const Options &options = Options())
      : desc(&desc) {
    heed_options raw = options.raw;
    std::vector<const char *> names;
    for (const std::string &file : options.files)
      names.push_back(file.c_str());
    if (!names.empty()) {
      raw.weights = names.data();
      raw.numWeights = names.size();
    }
    if (!options.memory.empty()) {
      raw.weightsData = options.memory.data();
      raw.numWeightsData = options.memory.size();
    }
    if (!options.wanted.empty())
      raw.target = options.wanted.c_str();
    if (!options.packedFile.empty())
      raw.packed = options.packedFile.c_str();
    opened(heed_open(&desc, &raw, &handle));
  }
  Model(Model &&other) noexcept
      : desc(other.desc), handle(std::exchange(other.handle, nullptr)) {}
  Model &operator=(Model &&other) noexcept {
    std::swap(desc, other.desc);
    std::swap(handle, other.handle);
    return *this;
  }
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;
  ~Model() { heed_close(handle); }

  /// Another handle on the same weights; threads 0: as many as this one.
  Model share(int threads = 0) {
    Model other(desc);
    other.opened(heed_open_shared(handle, threads, &other.handle));
    return other;
  }

  /// Writes the packed weights, for Options::packed().
  void savePacked(const std::string &file) {
    check(heed_save_packed(handle, file.c_str()));
  }

  /// The signature of an entry; null: the first.
  const heed_signature &signature(const char *entry = nullptr) const {
    const heed_signature *found = heed_find_signature(desc, entry);
    if (!found)
      throw Error(HEED_ERROR_ARGUMENT, std::string("there is no entry '") +
                                           (entry ? entry : "") + "'");
    return *found;
  }

  /// Shapes of the outputs for these inputs.
  std::vector<std::vector<std::int64_t>>
  outputShapes(const std::vector<Buffer> &inputs, const char *entry = nullptr) {
    return shapesIn(inputs, entry, nullptr);
  }

  /// Runs an entry; null: the first.
  void run(const std::vector<Buffer> &inputs,
           const std::vector<Buffer> &outputs, const char *entry = nullptr,
           const heed_call *call = nullptr) {
    std::vector<heed_buffer> in = rawOf(inputs), out = rawOf(outputs);
    check(heed_run(handle, entry, in.data(), in.size(), out.data(), out.size(),
                   call));
  }

  /// The same with a state, which such a model needs.
  std::vector<std::vector<std::int64_t>>
  outputShapes(const std::vector<Buffer> &inputs, const State &state,
               const char *entry = nullptr);
  void run(const std::vector<Buffer> &inputs,
           const std::vector<Buffer> &outputs, const State &state,
           const char *entry = nullptr);

  /// Bytes of the results between kernels of such a run, before it.
  std::int64_t planMemory(const std::vector<Buffer> &inputs,
                          const char *entry = nullptr,
                          const heed_call *call = nullptr) {
    std::vector<heed_buffer> in = rawOf(inputs);
    std::int64_t bytes = 0;
    check(
        heed_plan_memory_in(handle, entry, in.data(), in.size(), call, &bytes));
    return bytes;
  }
  std::int64_t planMemory(const std::vector<Buffer> &inputs, const State &state,
                          const char *entry = nullptr);

  /// For the rest of heed.h.
  heed_model *get() const { return handle; }

private:
  friend class State;
  friend class Generation;

  explicit Model(const heed_model_desc *desc) : desc(desc) {}

  std::vector<std::vector<std::int64_t>>
  shapesIn(const std::vector<Buffer> &inputs, const char *entry,
           const heed_call *call) {
    std::vector<heed_buffer> in = rawOf(inputs),
                             out(std::size_t(signature(entry).numOutputs),
                                 Buffer().get());
    check(heed_output_shapes_in(handle, entry, in.data(), in.size(), out.data(),
                                out.size(), call));
    std::vector<std::vector<std::int64_t>> shapes;
    for (const heed_buffer &buffer : out)
      shapes.emplace_back(buffer.shape, buffer.shape + buffer.rank);
    return shapes;
  }

  static std::vector<heed_buffer> rawOf(const std::vector<Buffer> &buffers) {
    std::vector<heed_buffer> raw;
    for (const Buffer &buffer : buffers)
      raw.push_back(buffer.get());
    return raw;
  }
  void check(heed_status status) const {
    if (status != HEED_OK)
      throw Error(status, heed_last_error(handle));
  }
  /// A handle that did not open is closed: no destructor runs for it.
  void opened(heed_status status) {
    if (status == HEED_OK)
      return;
    Error error(status, heed_last_error(handle));
    heed_close(std::exchange(handle, nullptr));
    throw error;
  }

  const heed_model_desc *desc;
  heed_model *handle = nullptr;
};

/// What lives from call to call of a model, zeros at first; closes itself.
class State {
public:
  /// An extent for each dim of the states that no parameter has.
  State(Model &model,
        const std::vector<std::pair<std::string, std::int64_t>> &dims) {
    std::vector<heed_dim> raw;
    for (const auto &[name, extent] : dims)
      raw.push_back({name.c_str(), extent});
    model.check(heed_state_open(model.get(), raw.data(), raw.size(), &handle));
  }
  State(State &&other) noexcept
      : handle(std::exchange(other.handle, nullptr)) {}
  State &operator=(State &&other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  State(const State &) = delete;
  State &operator=(const State &) = delete;
  ~State() { heed_state_close(handle); }

  /// All is as it was at first.
  void reset() { check(heed_state_reset(handle)); }
  /// Becomes what another state of the same model and dims is.
  void copyFrom(const State &other) {
    check(heed_state_copy(other.handle, handle));
  }
  std::vector<std::int64_t> shape(const char *name) const {
    heed_buffer raw = Buffer().get();
    check(heed_state_get(handle, name, &raw));
    return {raw.shape, raw.shape + raw.rank};
  }
  /// Copies one of its tensors out, and in.
  void get(const char *name, const Buffer &to) const {
    heed_buffer raw = to.get();
    check(heed_state_get(handle, name, &raw));
  }
  void set(const char *name, const Buffer &from) {
    heed_buffer raw = from.get();
    check(heed_state_set(handle, name, &raw));
  }
  /// Takes a count of positions back to less: heed_state_trim().
  void trim(const char *name, const Buffer &values) {
    heed_buffer raw = values.get();
    check(heed_state_trim(handle, name, &raw));
  }
  void trim(const char *name, std::int64_t value) { trim(name, scalar(value)); }
  /// Along that dim position k becomes what position from[k] was.
  void permute(const char *dim, const std::vector<std::int64_t> &from) {
    check(heed_state_permute(handle, dim, from.data(), from.size()));
  }
  void save(const std::string &path) const {
    check(heed_state_save(handle, path.c_str()));
  }
  void load(const std::string &path) {
    check(heed_state_load(handle, path.c_str()));
  }
  std::int64_t bytes() const { return heed_state_bytes(handle); }

  /// For the rest of heed.h, and a heed_call with it.
  heed_state *get() const { return handle; }
  heed_call call() const {
    heed_call one = heed_call();
    one.size = sizeof one;
    one.state = handle;
    return one;
  }

private:
  void check(heed_status status) const {
    if (status != HEED_OK)
      throw Error(status, heed_state_last_error(handle));
  }

  heed_state *handle = nullptr;
};

inline std::vector<std::vector<std::int64_t>>
Model::outputShapes(const std::vector<Buffer> &inputs, const State &state,
                    const char *entry) {
  heed_call call = state.call();
  return shapesIn(inputs, entry, &call);
}
inline void Model::run(const std::vector<Buffer> &inputs,
                       const std::vector<Buffer> &outputs, const State &state,
                       const char *entry) {
  heed_call call = state.call();
  run(inputs, outputs, entry, &call);
}
inline std::int64_t Model::planMemory(const std::vector<Buffer> &inputs,
                                      const State &state, const char *entry) {
  heed_call call = state.call();
  return planMemory(inputs, entry, &call);
}

} // namespace heed

#endif
