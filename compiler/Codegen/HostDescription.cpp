//===- HostDescription.cpp - the constant that describes a model ----------===//
//
// What `attn.description` says of a model's entries, parameters and kernels, as
// the constant `heed_model_desc` of runtime/host.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/HostDescription.h"
#include "dialects/Attn/Extents.h"
#include "support/Format.h"

#include "mlir/IR/BuiltinTypes.h"
#include "passes/Host/RuntimeType.h"
#include "runtime/host.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

using namespace llvm;
using mlir::ArrayAttr;
using mlir::DenseI64ArrayAttr;
using mlir::DictionaryAttr;
using mlir::FlatSymbolRefAttr;
using mlir::StringAttr;
using mlir::TypeAttr;

static_assert(HEED_F32 == 1 && HEED_F16 == 2 && HEED_BF16 == 3 &&
                  HEED_I8 == 4 && HEED_I32 == 6 && HEED_I64 == 7 &&
                  HEED_BOOL == 8,
              "heed::runtimeType");
static_assert(heed::attn::kMaxExtent == HEED_MAX_EXTENT, "extents");

namespace {

class Writer {
public:
  explicit Writer(Module &module)
      : module(module), context(module.getContext()),
        pointerType(PointerType::get(context, 0)) {}

  Constant *i32(int64_t value) {
    return ConstantInt::get(Type::getInt32Ty(context), value, true);
  }
  Constant *i64(int64_t value) {
    return ConstantInt::get(Type::getInt64Ty(context), value, true);
  }
  Constant *real(double value) {
    return ConstantFP::get(Type::getDoubleTy(context), value);
  }
  Constant *null() { return ConstantPointerNull::get(pointerType); }
  Constant *text(StringRef value) {
    return constant(ConstantDataArray::getString(context, value));
  }
  Constant *texts(ArrayAttr values) {
    SmallVector<Constant *> pointers;
    for (mlir::Attribute value : values)
      pointers.push_back(text(cast<StringAttr>(value).getValue()));
    return array(pointers);
  }
  Constant *integers(ArrayRef<int64_t> values) {
    return values.empty() ? null()
                          : constant(ConstantDataArray::get(context, values));
  }
  Constant *array(ArrayRef<Constant *> elements) {
    if (elements.empty())
      return null();
    auto *type = ArrayType::get(elements.front()->getType(), elements.size());
    return constant(ConstantArray::get(type, elements));
  }
  Constant *record(ArrayRef<Constant *> fields) {
    return ConstantStruct::getAnon(context, fields);
  }
  Constant *function(DictionaryAttr entry, StringRef key) {
    Function *found =
        module.getFunction(entry.getAs<FlatSymbolRefAttr>(key).getValue());
    found->setLinkage(GlobalValue::InternalLinkage);
    return found;
  }

  /// A description or a table in another object.
  Constant *other(StringRef name) {
    auto *global = new GlobalVariable(
        module, Type::getInt8Ty(context), /*isConstant=*/true,
        GlobalValue::ExternalLinkage, nullptr, name);
    global->setVisibility(GlobalValue::HiddenVisibility);
    return global;
  }

  /// heed_tensor_info
  Constant *tensor(DictionaryAttr info) {
    mlir::Attribute value = info.get("default");
    double real = 0;
    int64_t integer = 0;
    if (auto number = dyn_cast_or_null<mlir::FloatAttr>(value))
      real = number.getValueAsDouble();
    else if (auto number = dyn_cast_or_null<mlir::IntegerAttr>(value))
      integer = number.getType().isInteger(1) ? number.getValue().getZExtValue()
                                              : number.getInt();
    ArrayRef<int64_t> sizes = info.getAs<DenseI64ArrayAttr>("sizes");
    return record(
        {i64(sizeof(heed_tensor_info)),
         text(info.getAs<StringAttr>("name").getValue()),
         i32(heed::runtimeType(info.getAs<TypeAttr>("type").getValue())),
         i32(sizes.size()), texts(info.getAs<ArrayAttr>("extents")),
         integers(sizes), i32(info.contains("scalar")), i32(bool(value)),
         this->real(real), i64(integer)});
  }
  /// heed_param_info
  Constant *param(DictionaryAttr info) {
    auto names = info.getAs<ArrayAttr>("names");
    ArrayRef<int64_t> bounds = info.getAs<DenseI64ArrayAttr>("bounds");
    ArrayRef<int64_t> sizes = info.getAs<DenseI64ArrayAttr>("sizes");
    return record(
        {i64(sizeof(heed_param_info)), texts(names), i32(names.size()),
         i32(bounds.size() / 2), integers(bounds),
         i32(heed::runtimeType(info.getAs<TypeAttr>("type").getValue())),
         i32(sizes.size()), texts(info.getAs<ArrayAttr>("extents")),
         integers(sizes), i32(info.contains("init"))});
  }
  /// heed_entry_desc
  Constant *entry(DictionaryAttr info) {
    auto inputs = info.getAs<ArrayAttr>("inputs");
    auto outputs = info.getAs<ArrayAttr>("outputs");
    // The states that are replaced, and -1.
    Constant *replaced = null();
    if (auto list = info.getAs<DenseI64ArrayAttr>("replaced");
        list && !list.empty()) {
      SmallVector<int64_t> ended(list.asArrayRef());
      ended.push_back(-1);
      replaced = integers(ended);
    }
    Constant *signature = record(
        {i64(sizeof(heed_signature)),
         text(info.getAs<StringAttr>("name").getValue()), i32(inputs.size()),
         i32(outputs.size()), tensors(inputs), tensors(outputs)});
    return record(
        {signature, function(info, "shapes"), function(info, "run"), replaced});
  }
  /// Pointers to a heed_tensor_info each.
  Constant *tensors(ArrayAttr list) {
    SmallVector<Constant *> all;
    for (mlir::Attribute one : list)
      all.push_back(constant(tensor(cast<DictionaryAttr>(one))));
    return array(all);
  }

  /// What heed_state_trim() may do with each; null if nothing with any.
  Constant *trims(ArrayAttr states) {
    SmallVector<int32_t> all;
    for (mlir::Attribute state : states) {
      auto trim = cast<DictionaryAttr>(state).getAs<StringAttr>("trim");
      all.push_back(StringSwitch<int32_t>(trim ? trim.getValue() : "")
                        .Case("count", HEED_TRIM_COUNT)
                        .Case("recurrent", HEED_TRIM_RECURRENT)
                        .Case("ring", HEED_TRIM_RING)
                        .Default(HEED_TRIM_NOTHING));
    }
    if (llvm::all_of(all, [](int32_t one) { return one == 0; }))
      return null();
    return constant(ConstantDataArray::get(context, all));
  }

private:
  Constant *constant(Constant *value) {
    auto *global =
        new GlobalVariable(module, value->getType(), /*isConstant=*/true,
                           GlobalValue::PrivateLinkage, value, "heed.const");
    return global;
  }

  Module &module;
  LLVMContext &context;
  PointerType *pointerType;
};

/// int main(int argc, char **argv) { return heed_program_main(&model, ...); }
void addMain(Module &module, GlobalVariable *description) {
  IRBuilder<> builder(module.getContext());
  Type *i32 = builder.getInt32Ty(), *pointer = builder.getPtrTy();
  FunctionCallee program = module.getOrInsertFunction("heed_program_main", i32,
                                                      pointer, i32, pointer);
  // A model may be called like that.
  if (Function *named = module.getFunction("main"))
    named->setName("main.entry");
  auto *main = Function::Create(FunctionType::get(i32, {i32, pointer}, false),
                                GlobalValue::ExternalLinkage, "main", module);
  builder.SetInsertPoint(BasicBlock::Create(module.getContext(), "", main));
  builder.CreateRet(builder.CreateCall(
      program, {description, main->getArg(0), main->getArg(1)}));
}

} // namespace

/// Long: one field after the other.
void heed::addDescription(Module &module, DictionaryAttr description,
                          const DescriptionOptions &options) {
  // Only the description is for others to see: a model's name must not meet a
  // function of theirs.
  for (Function &function : module)
    if (!function.isDeclaration())
      function.setLinkage(GlobalValue::InternalLinkage);
  Writer write(module);
  SmallVector<Constant *> entries, params;
  for (mlir::Attribute entry : description.getAs<ArrayAttr>("entries"))
    entries.push_back(write.entry(cast<DictionaryAttr>(entry)));
  for (mlir::Attribute param : description.getAs<ArrayAttr>("params"))
    params.push_back(write.param(cast<DictionaryAttr>(param)));
  // All entries have all states, in one order.
  auto states = cast<DictionaryAttr>(
                    description.getAs<ArrayAttr>("entries").getValue().front())
                    .getAs<ArrayAttr>("states");
  auto kernels = description.getAs<ArrayAttr>("kernels");
  int64_t numKept = 0;
  if (auto kept = description.getAs<mlir::IntegerAttr>("kept"))
    numKept = kept.getInt();
  Constant *init = description.contains("init")
                       ? write.function(description, "init")
                       : write.null();
  SmallVector<Constant *> variants;
  for (const std::string &name : options.variants)
    variants.push_back(write.other(name));
  if (!variants.empty())
    variants.push_back(write.null());
  Constant *gpu = options.gpu.empty() ? write.null() : write.other(options.gpu);
  Constant *value = write.record(
      {write.i32(HEED_ABI_VERSION),
       write.i32(entries.size()),
       write.other("heed_own_runtime"),
       write.text(options.name),
       options.source.empty() ? write.null() : write.text(options.source),
       write.text(llvm::join(options.cpuFeatures, ",")),
       write.array(entries),
       write.array(params),
       write.i32(params.size()),
       write.i32(kernels.size()),
       write.texts(kernels),
       write.i32(numKept),
       write.i32(states.size()),
       init,
       write.tensors(states),
       write.array(variants),
       write.text(options.target),
       write.trims(states),
       write.text(options.key),
       gpu,
       write.i32(description.contains("device_f64")),
       write.i32(0)});
  std::string name = heed::format(
      "{}_model", description.getAs<StringAttr>("prefix").getValue());
  auto *global =
      new GlobalVariable(module, value->getType(), /*isConstant=*/true,
                         GlobalValue::ExternalLinkage, value, name);
  if (options.hidden)
    global->setVisibility(GlobalValue::HiddenVisibility);
  if (options.listed) {
    Constant *list = ConstantArray::get(
        ArrayType::get(global->getType(), 2),
        {global, ConstantPointerNull::get(global->getType())});
    new GlobalVariable(module, list->getType(), /*isConstant=*/true,
                       GlobalValue::ExternalLinkage, list, "heed_models");
  }
  if (options.withMain)
    addMain(module, global);
}
