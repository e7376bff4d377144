//===- Einsum.cpp - numpy.einsum's texts as models ------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Einsum.h"

#include "frontend/Common/Resolved.h"
#include "frontend/Emit/Emit.h"
#include "support/Format.h"

#include "llvm/ADT/StringExtras.h"

using namespace heed;
using namespace heed::sema;

namespace {

/// Reads the text from left to right and writes the model as it goes.
class Reader {
public:
  Reader(StringRef text, Diagnostics &diags)
      : all(text), rest(text), diags(diags) {}

  std::optional<Model> read(StringRef file);

private:
  Range here(size_t length = 1) const {
    auto at = llvm::SMLoc::getFromPointer(rest.data());
    return {at, llvm::SMLoc::getFromPointer(rest.data() + length)};
  }
  bool fail(const std::string &message) {
    diags.error(here(rest.empty() ? 0 : 1), message);
    return false;
  }
  std::string found() const {
    return rest.empty() ? "the end" : format("'{}'", rest.take_front());
  }
  bool letters(std::string &into);
  bool operand();
  bool result();
  void bind(const Tensor *tensor, unsigned axis, char letter, Range place);

  StringRef all, rest;
  Diagnostics &diags;
  Model model;
  std::map<char, Idx *> indices;
  const Node *product = nullptr;
};

/// Each letter once: a diagonal is no read of a whole operand.
bool Reader::letters(std::string &into) {
  for (; !rest.empty() && llvm::isAlpha(rest.front());
       rest = rest.drop_front()) {
    if (llvm::is_contained(into, rest.front()))
      return fail(
          format("expected each letter once, found '{}' twice", rest.front()));
    into += rest.front();
  }
  return true;
}

/// The axis of a letter gives its extent, or must have it.
void Reader::bind(const Tensor *tensor, unsigned axis, char letter,
                  Range place) {
  std::string name(1, llvm::toUpper(letter));
  Size extent = model.sizes.dim(name);
  model.steps.push_back(
      BindAtom{*extent.asAtom(), tensor, axis, {}, false, place});
  auto [known, isNew] = indices.try_emplace(letter);
  if (isNew) {
    Idx &idx = model.indices.emplace_back();
    idx.name = letter;
    idx.place = place;
    idx.extent = extent;
    idx.number = model.indices.size();
    known->second = &idx;
    return;
  }
  Require same;
  same.kind = Require::Equal;
  same.sizes = {useOf(model.sizes, extent),
                useOf(model.sizes, *known->second->extent)};
  same.values = same.sizes;
  same.message =
      format("extent of '{}' (axis {}) is {{0}}, expected {} = {{1}}",
             tensor->input, axis, name);
  same.place = place;
  model.steps.push_back(std::move(same));
}

bool Reader::operand() {
  const char *begin = rest.data();
  std::string axes;
  if (!letters(axes))
    return false;
  if (axes.empty())
    return fail(format("expected a letter for each axis, found {}", found()));
  Range place(llvm::SMLoc::getFromPointer(begin), here().Start);
  Tensor &tensor = model.tensors.emplace_back();
  tensor.input = format("x{}", model.inputs.size());
  ModelInput input;
  input.name = tensor.input;
  input.isTensor = true;
  input.tensor = &tensor;
  input.place = place;
  Node &element = model.nodes.emplace_back();
  element.kind = Node::Element;
  element.ty = Ty::F32;
  element.place = place;
  element.tensor.value = &tensor;
  for (auto [axis, letter] : llvm::enumerate(axes)) {
    bind(&tensor, axis, letter, place);
    element.axes.push_back(indices[letter]);
    element.tensor.shape.push_back(*indices[letter]->extent);
    input.dims.push_back(kUnknown);
    input.dimNames.push_back(std::string(1, llvm::toUpper(letter)));
  }
  model.inputs.push_back(std::move(input));
  if (!product) {
    product = &element;
    return true;
  }
  Node &both = model.nodes.emplace_back();
  both.kind = Node::Binary;
  both.op = BinaryOp::Mul;
  both.ty = Ty::F32;
  both.place = place;
  both.operands = {product, &element};
  product = &both;
  return true;
}

/// What the result does not name is summed.
bool Reader::result() {
  StringRef from = rest;
  std::string kept;
  if (!letters(kept))
    return false;
  if (!rest.empty())
    return fail(format("expected the end, found {}", found()));
  Tensor &tensor = model.tensors.emplace_back();
  ModelOutput output{"y", &tensor, {}};
  Reduction sum;
  sum.op = ReduceOp::Sum;
  for (char letter : kept) {
    auto known = indices.find(letter);
    if (known == indices.end()) {
      rest = from;
      return fail(
          format("expected a letter of an operand, found '{}'", letter));
    }
    from = from.drop_front();
    sum.axes.push_back(known->second);
    sum.shape.push_back(useOf(model.sizes, *known->second->extent));
    output.dimNames.push_back(std::string(1, llvm::toUpper(letter)));
  }
  for (auto [letter, idx] : indices)
    if (!llvm::is_contained(kept, letter)) {
      sum.ids.push_back(idx);
      sum.idExtents.push_back(useOf(model.sizes, *idx->extent));
    }
  sum.operand = product;
  sum.result = &tensor;
  sum.place = model.place;
  if (!sum.ids.empty()) {
    model.steps.push_back(std::move(sum));
  } else {
    Elementwise each;
    each.axes = sum.axes;
    each.shape = sum.shape;
    each.node = product;
    each.result = &tensor;
    each.place = model.place;
    model.steps.push_back(std::move(each));
  }
  model.outputs.push_back(std::move(output));
  return true;
}

std::optional<Model> Reader::read(StringRef file) {
  model.name = "einsum";
  model.source = file.str();
  model.place = model.namePlace = here(all.size());
  do
    if (!operand())
      return std::nullopt;
  while (rest.consume_front(","));
  if (!rest.consume_front("->")) {
    fail(format("expected ',' or '->', found {}", found()));
    return std::nullopt;
  }
  if (!result())
    return std::nullopt;
  return std::move(model);
}

} // namespace

mlir::OwningOpRef<mlir::ModuleOp>
heed::compileEinsum(mlir::MLIRContext &context, StringRef text, StringRef file,
                    const Sources &sources, Diagnostics &diags) {
  std::optional<Model> model = Reader(text.trim(), diags).read(file);
  return model ? emitModel(context, *model, sources, diags) : nullptr;
}
