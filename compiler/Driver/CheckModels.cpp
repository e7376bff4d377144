//===- CheckModels.cpp - what IR from a file must say of its models -------===//

#include "compiler/Driver/CheckModels.h"
#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/heed.h"
#include "support/Format.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace heed;

bool heed::isSymbolName(StringRef name) {
  return !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name, [](char c) {
           return llvm::isAlnum(c) || c == '_' || (c & 0x80);
         });
}

namespace {

bool isElementType(Type type) {
  return type.isF32() || type.isF16() || type.isBF16() || type.isInteger(1) ||
         type.isInteger(8) || type.isInteger(32) || type.isInteger(64);
}

bool isScalarType(Type type) {
  return type.isF32() || type.isInteger(1) || type.isInteger(32) ||
         type.isInteger(64);
}

/// An argument or result called \p what in messages.
LogicalResult checkValue(func::FuncOp model, const Twine &what, Type type,
                         bool mayBeScalar, DictionaryAttr about,
                         llvm::StringSet<> &names) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor ? !isElementType(tensor.getElementType()) || tensor.getEncoding()
             : !mayBeScalar || !isScalarType(type))
    return model.emitError()
           << what << " is " << type << ", expected a ranked tensor of f32, "
           << "f16, bf16, i1, i8, i32 or i64"
           << (mayBeScalar ? ", or a scalar f32, i1, i32 or i64" : "");
  if (tensor && tensor.getRank() > HEED_MAX_RANK)
    return model.emitError() << what << " has " << tensor.getRank()
                             << " axes, expected at most " << HEED_MAX_RANK;
  for (int64_t extent : tensor ? tensor.getShape() : ArrayRef<int64_t>())
    if (extent > HEED_MAX_EXTENT)
      return model.emitError() << what << " has an extent of " << extent
                               << ", expected at most " << HEED_MAX_EXTENT;
  Attribute name = about ? about.get(attn::kNameAttr) : Attribute();
  auto text = dyn_cast_or_null<StringAttr>(name);
  if (name && (!text || text.empty()))
    return model.emitError() << what << ": expected a string as '"
                             << attn::kNameAttr << "', found " << name;
  if (text && !names.insert(text.getValue()).second)
    return model.emitError()
           << what << ": the name '" << text.getValue() << "' stands twice";
  Attribute dims = about ? about.get(attn::kDimsAttr) : Attribute();
  auto list = dyn_cast_or_null<ArrayAttr>(dims);
  if (dims && (!list || !tensor || int64_t(list.size()) != tensor.getRank() ||
               !llvm::all_of(list, llvm::IsaPred<StringAttr>)))
    return model.emitError()
           << what << ": expected '" << attn::kDimsAttr
           << "' to be a string for each axis, found " << dims;
  return success();
}

/// A result that is a state belongs to an argument of its name and type.
LogicalResult checkState(func::FuncOp model, unsigned result) {
  for (unsigned k = 0; k < model.getNumArguments(); ++k)
    if (model.getArgAttr(k, attn::kStateAttr) &&
        model.getArgAttr(k, attn::kNameAttr) ==
            model.getResultAttr(result, attn::kNameAttr) &&
        getElementTypeOrSelf(model.getArgumentTypes()[k]) ==
            getElementTypeOrSelf(model.getResultTypes()[result]))
      return success();
  return model.emitError() << "result " << result
                           << ": expected an argument with '"
                           << attn::kStateAttr
                           << "' of the same name and element type";
}

} // namespace

LogicalResult heed::checkModels(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isDeclaration())
      return function.emitError()
             << "function '" << function.getName() << "' has no body";
    if (!function->hasAttr(attn::kModelAttr))
      continue;
    if (function.getNumResults() == 0)
      return function.emitError() << "a model has at least one result";
    llvm::StringSet<> inputs, outputs, states;
    for (unsigned k = 0; k < function.getNumArguments(); ++k)
      if (failed(checkValue(function, format("argument {}", k),
                            function.getArgumentTypes()[k],
                            /*mayBeScalar=*/true, function.getArgAttrDict(k),
                            inputs)))
        return failure();
    for (unsigned k = 0; k < function.getNumResults(); ++k) {
      // A state and a result may have one name.
      bool isState = bool(function.getResultAttr(k, attn::kStateAttr));
      if (failed(checkValue(
              function, format("result {}", k), function.getResultTypes()[k],
              /*mayBeScalar=*/false, function.getResultAttrDict(k),
              isState ? states : outputs)) ||
          (isState && failed(checkState(function, k))))
        return failure();
    }
  }
  return success();
}
