//===- Header.cpp - the C header of a compiled model ----------------------===//

#include "compiler/Driver/Header.h"
#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

static void describe(llvm::raw_ostream &os, Type type, DictionaryAttr about) {
  auto name = about ? about.getAs<StringAttr>(heed::attn::kNameAttr) : nullptr;
  auto dims = about ? about.getAs<ArrayAttr>(heed::attn::kDimsAttr) : nullptr;
  os << " *   " << (name ? name.getValue() : "?") << ": "
     << getElementTypeOrSelf(type);
  if (auto shaped = dyn_cast<ShapedType>(type)) {
    os << '[';
    for (int64_t axis = 0; axis < shaped.getRank(); ++axis) {
      os << (axis ? ", " : "");
      if (dims && axis < int64_t(dims.size()))
        os << cast<StringAttr>(dims[axis]).getValue();
      else if (shaped.isDynamicDim(axis))
        os << '?';
      else
        os << shaped.getDimSize(axis);
    }
    os << ']';
  }
  os << '\n';
}

std::string heed::makeHeader(ModuleOp module, const std::string &model,
                             const std::string &prefix) {
  std::string text;
  llvm::raw_string_ostream os(text);
  std::string guard = StringRef(prefix).upper() + "_MODEL_H";
  os << "/* The model '" << model << "', compiled by heedc.\n";
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function->hasAttr(attn::kModelAttr))
      continue;
    os << " *\n * Entry \"" << function.getName() << "\"\n * inputs:\n";
    for (unsigned k = 0; k < function.getNumArguments(); ++k)
      describe(os, function.getArgumentTypes()[k], function.getArgAttrDict(k));
    os << " * outputs:\n";
    for (unsigned k = 0; k < function.getNumResults(); ++k)
      describe(os, function.getResultTypes()[k], function.getResultAttrDict(k));
  }
  os << " */\n#ifndef " << guard << "\n#define " << guard
     << "\n\n#include \"heed.h\"\n\n#ifdef __cplusplus\nextern \"C\" {\n"
     << "#endif\n\n/** For heed_open(). */\nextern const heed_model_desc "
     << prefix << "_model;\n\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
  return text;
}
