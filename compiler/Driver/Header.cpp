//===- Header.cpp - the C header of a compiled model ----------------------===//

#include "compiler/Driver/Header.h"
#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "support/Format.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace heed;

/// "f32[B, H, 64]"
static std::string typeText(Type type, ArrayAttr dims) {
  std::string element = printed(getElementTypeOrSelf(type));
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped)
    return element;
  SmallVector<std::string> extents;
  for (int64_t axis = 0; axis < shaped.getRank(); ++axis)
    if (dims && axis < int64_t(dims.size()))
      extents.push_back(cast<StringAttr>(dims[axis]).str());
    else
      extents.push_back(shaped.isDynamicDim(axis)
                            ? "?"
                            : format("{}", shaped.getDimSize(axis)));
  return format("{}[{}]", element, llvm::join(extents, ", "));
}

/// One line of an input or output.
static std::string describe(Type type, DictionaryAttr about) {
  auto name = about ? about.getAs<StringAttr>(attn::kNameAttr) : nullptr;
  auto dims = about ? about.getAs<ArrayAttr>(attn::kDimsAttr) : nullptr;
  return format(" *   {}: {}\n", name ? name.getValue() : "?",
                typeText(type, dims));
}

std::string heed::makeHeader(ModuleOp module, const std::string &model,
                             const std::string &prefix) {
  std::string entries;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function->hasAttr(attn::kModelAttr))
      continue;
    entries += format(" *\n * Entry \"{}\"\n * inputs:\n", function.getName());
    for (unsigned k = 0; k < function.getNumArguments(); ++k)
      entries +=
          describe(function.getArgumentTypes()[k], function.getArgAttrDict(k));
    entries += " * outputs:\n";
    for (unsigned k = 0; k < function.getNumResults(); ++k)
      entries +=
          describe(function.getResultTypes()[k], function.getResultAttrDict(k));
  }
  return format(
      R"(/* The model '{model}', compiled by heedc.
{entries} */
#ifndef {guard}
#define {guard}

#include "heed.h"

#ifdef __cplusplus
extern "C" {{
#endif

/** For heed_open(). */
extern const heed_model_desc {prefix}_model;

#ifdef __cplusplus
}}
#endif
#endif
)",
      fmt::arg("model", model), fmt::arg("entries", entries),
      fmt::arg("guard", heed::format("{}_MODEL_H", StringRef(prefix).upper())),
      fmt::arg("prefix", prefix));
}
