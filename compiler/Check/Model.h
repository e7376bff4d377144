//===- Model.h - a compiled model in a shared library -----------*- C++ -*-===//
#ifndef HEED_COMPILER_CHECK_MODEL_H
#define HEED_COMPILER_CHECK_MODEL_H

#include "runtime/heed.h"
#include "llvm/ADT/ArrayRef.h"
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace heed::check {

inline bool isReal(int32_t type) {
  return type == HEED_F32 || type == HEED_F16 || type == HEED_BF16;
}

/// A dense row-major array and its memory.
struct Array {
  std::string name;
  int32_t type = HEED_F32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;

  int64_t count() const;
  heed_buffer buffer();
  /// Element \p at as a double, whatever its type, and back (rounded).
  double get(int64_t at) const;
  void set(int64_t at, double value);
};

/// What a run gave: outputs, or a status and its message.
struct Outcome {
  heed_status status = HEED_OK;
  std::string message;
  std::vector<Array> outputs;
};

/// An entry as the checker sees it: states are inputs, too, and outputs.
class Entry {
public:
  Entry(const heed_model_desc &model, size_t number);
  const heed_signature &signature() const { return all; }
  size_t numStates() const { return states; }

private:
  size_t states;
  std::vector<const heed_tensor_info *> inputs, outputs;
  heed_signature all;
};

/// One model of a shared library, opened, of which one entry runs.
class Model {
public:
  /// Null with \p error set if the library or its model cannot be opened.
  static std::unique_ptr<Model> open(const std::string &library,
                                     const std::vector<std::string> &weights,
                                     size_t entry, std::string &error);
  ~Model();
  const heed_signature &signature() const { return entry->signature(); }
  const heed_model_desc *description() const { return desc.get(); }
  Outcome run(std::vector<Array> &inputs);

private:
  /// A state of these tensors; null with \p outcome set if there is none.
  heed_state *openState(llvm::MutableArrayRef<Array> tensors, Outcome &outcome);

  std::shared_ptr<const heed_model_desc> desc;
  std::optional<Entry> entry;
  heed_model *model = nullptr;
};

/// The description in a shared library, which stays loaded as long as the
/// pointer lives. Null with \p error set if there is none.
std::shared_ptr<const heed_model_desc> describe(const std::string &library,
                                                std::string &error);

} // namespace heed::check

#endif
