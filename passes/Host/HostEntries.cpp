//===- HostEntries.cpp - the C functions by which a model is run ----------===//
//
// Unpacks heed_arguments into the arguments of a model's functions, and writes
// down what code generation needs to describe the model to the runtime.
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/Dialect.h"
#include "dialects/Halide/HalideDialect.h"
#include "dialects/Halide/Target.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Host/HostBuilder.h"
#include "passes/Host/RuntimeType.h"
#include "passes/Mutation.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed;

namespace {

// Layout of runtime/host.h.
constexpr int64_t kBufferBytes = 144, kBufferType = 8, kBufferRank = 12,
                  kBufferShape = 16;

/// The argument that heed_argument number \p k of \p buffers holds.
Value unpack(HostBuilder &host, OpBuilder &b, Location loc, Type type,
             Value buffers, int64_t k) {
  Value buffer = host.at(b, loc, buffers, kBufferBytes * k);
  Value data = LLVM::LoadOp::create(b, loc, host.pointer, buffer);
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref) {
    Type stored = type.isInteger(1) ? b.getI8Type()
                  : type.isIndex()  ? b.getI64Type()
                                    : type;
    Value value = LLVM::LoadOp::create(b, loc, stored, data);
    if (type.isInteger(1))
      return arith::CmpIOp::create(
          b, loc, arith::CmpIPredicate::ne, value,
          arith::ConstantOp::create(b, loc, b.getIntegerAttr(stored, 0)));
    return value;
  }
  SmallVector<Value> sizes;
  for (int64_t axis = 0; axis < memref.getRank(); ++axis)
    sizes.push_back(memref.isDynamicDim(axis)
                        ? LLVM::LoadOp::create(
                              b, loc, b.getI64Type(),
                              host.at(b, loc, buffer, kBufferShape + 8 * axis))
                              .getResult()
                        : host.i64(b, loc, memref.getDimSize(axis)));
  return host.memrefOver(b, loc, memref, data, sizes);
}

/// What the description says of one argument or result.
Attribute describe(func::FuncOp model, unsigned argument, unsigned k) {
  Builder b(model.getContext());
  Type type = model.getArgumentTypes()[argument];
  NamedAttrList entry;
  auto name = model.getArgAttrOfType<StringAttr>(argument, attn::kNameAttr);
  entry.set("name", name ? name : b.getStringAttr(format("x{}", k)));
  SmallVector<int64_t> sizes;
  SmallVector<Attribute> extents;
  Type element = type;
  if (auto memref = dyn_cast<MemRefType>(type)) {
    element = memref.getElementType();
    auto dims = model.getArgAttrOfType<ArrayAttr>(argument, attn::kDimsAttr);
    for (int64_t axis = 0; axis < memref.getRank(); ++axis) {
      bool isDynamic = memref.isDynamicDim(axis);
      sizes.push_back(isDynamic ? -1 : memref.getDimSize(axis));
      if (dims && axis < int64_t(dims.size()))
        extents.push_back(dims[axis]);
      else
        extents.push_back(b.getStringAttr(
            isDynamic ? "?" : format("{}", memref.getDimSize(axis))));
    }
  } else {
    entry.set("scalar", b.getUnitAttr());
  }
  // Of a state: what its elements are at first.
  if (Attribute value = model.getArgAttr(argument, attn::kDefaultAttr))
    entry.set("default", value);
  if (Attribute trim = model.getArgAttr(argument, attn::kTrimAttr))
    entry.set("trim", trim);
  entry.set("type", TypeAttr::get(element));
  entry.set("extents", b.getArrayAttr(extents));
  entry.set("sizes", b.getDenseI64ArrayAttr(sizes));
  return entry.getDictionary(model.getContext());
}

/// An empty C function \p name, into which \p b then writes.
func::FuncOp beginFunction(HostBuilder &host, OpBuilder &b, Location loc,
                           StringRef name, ArrayRef<Type> arguments) {
  b.setInsertionPointToEnd(host.module.getBody());
  auto function = func::FuncOp::create(
      b, loc, name, b.getFunctionType(arguments, b.getI32Type()));
  b.setInsertionPointToStart(function.addEntryBlock());
  return function;
}

bool isResult(func::FuncOp model, unsigned argument) {
  return bool(model.getArgAttr(argument, "attn.result"));
}

bool isState(func::FuncOp model, unsigned argument) {
  return bool(model.getArgAttr(argument, attn::kStateAttr));
}

/// The C function that runs \p model: handle, inputs and states, outputs and
/// what states are afterwards.
func::FuncOp makeRun(HostBuilder &host, func::FuncOp model, StringRef name) {
  OpBuilder b(model.getContext());
  Location loc = model.getLoc();
  func::FuncOp run = beginFunction(host, b, loc, name,
                                   {host.pointer, host.pointer, host.pointer});
  SmallVector<Value> arguments{run.getArgument(0)};
  unsigned in = 0, out = 0, state = 0;
  for (unsigned k = 1; k < model.getNumArguments(); ++k)
    state += isResult(model, k) && !isState(model, k);
  for (unsigned k = 1; k < model.getNumArguments(); ++k)
    arguments.push_back(unpack(host, b, loc, model.getArgumentTypes()[k],
                               run.getArgument(isResult(model, k) ? 2 : 1),
                               !isResult(model, k) ? in++
                               : isState(model, k) ? state++
                                                   : out++));
  func::CallOp::create(b, loc, model, arguments);
  func::ReturnOp::create(b, loc, host.i32(b, loc, 0));
  return run;
}

/// The C function that writes type, rank and extents of the results of \p
/// model, which \p shapes computes, to outputs without data.
func::FuncOp makeAsk(HostBuilder &host, func::FuncOp model, func::FuncOp shapes,
                     StringRef name) {
  OpBuilder b(model.getContext());
  Location loc = model.getLoc();
  func::FuncOp ask = beginFunction(host, b, loc, name,
                                   {host.pointer, host.pointer, host.pointer});
  SmallVector<Value> arguments{ask.getArgument(0)};
  for (unsigned k = 1; k < shapes.getNumArguments(); ++k)
    arguments.push_back(unpack(host, b, loc, shapes.getArgumentTypes()[k],
                               ask.getArgument(1), k - 1));
  auto extents = func::CallOp::create(b, loc, shapes, arguments);
  unsigned next = 0, number = 0;
  for (unsigned k = 1; k < model.getNumArguments(); ++k) {
    if (!isResult(model, k) || isState(model, k))
      continue;
    auto result = cast<MemRefType>(model.getArgumentTypes()[k]);
    Value buffer = host.at(b, loc, ask.getArgument(2), kBufferBytes * number++);
    int32_t element = runtimeType(result.getElementType());
    LLVM::StoreOp::create(b, loc, host.i32(b, loc, element),
                          host.at(b, loc, buffer, kBufferType));
    LLVM::StoreOp::create(b, loc, host.i32(b, loc, result.getRank()),
                          host.at(b, loc, buffer, kBufferRank));
    for (int64_t axis = 0; axis < result.getRank(); ++axis)
      LLVM::StoreOp::create(
          b, loc,
          host.toI64(b, loc,
                     extents.getResult(
                         mutated("lower-host.first-extent") ? 0 : next++)),
          host.at(b, loc, buffer, kBufferShape + 8 * axis));
  }
  func::ReturnOp::create(b, loc, host.i32(b, loc, 0));
  return ask;
}

/// The two C functions of \p model, and its entry in the description.
FailureOr<Attribute> makeEntry(HostBuilder &host, func::FuncOp model,
                               StringRef prefix) {
  auto shapes = host.module.lookupSymbol<func::FuncOp>(
      format("{}.shapes", model.getName()));
  if (!shapes)
    return model.emitError("expected '@")
           << model.getName() << ".shapes', which attn-form-entries makes";
  model.setPrivate();
  // States stand behind the inputs; those that get memory of their own behind
  // the outputs.
  SmallVector<Attribute> inputs, outputs, states;
  SmallVector<int64_t> replaced;
  for (unsigned k = 1; k < model.getNumArguments(); ++k) {
    if (isState(model, k) && isResult(model, k)) {
      Attribute name = model.getArgAttr(k, attn::kNameAttr);
      replaced.push_back(llvm::find_if(states,
                                       [&](Attribute state) {
                                         return cast<DictionaryAttr>(state).get(
                                                    "name") == name;
                                       }) -
                         states.begin());
      continue;
    }
    SmallVector<Attribute> &list = isState(model, k)    ? states
                                   : isResult(model, k) ? outputs
                                                        : inputs;
    list.push_back(describe(model, k, list.size()));
  }
  std::string base = heed::format("{}.{}", prefix, model.getName());
  func::FuncOp run = makeRun(host, model, heed::format("{}.run", base));
  func::FuncOp ask = makeAsk(host, model, shapes, heed::format("{}.ask", base));
  Builder b(model.getContext());
  NamedAttrList entry;
  entry.set("name", model.getNameAttr());
  entry.set("inputs", b.getArrayAttr(inputs));
  entry.set("outputs", b.getArrayAttr(outputs));
  entry.set("states", b.getArrayAttr(states));
  entry.set("replaced", b.getDenseI64ArrayAttr(replaced));
  entry.set("run", FlatSymbolRefAttr::get(run.getNameAttr()));
  entry.set("shapes", FlatSymbolRefAttr::get(ask.getNameAttr()));
  // What they said stands in the description now; LLVM has no such names.
  for (func::FuncOp function : {model, shapes})
    for (unsigned k = 0; k < function.getNumArguments(); ++k)
      function.setArgAttrs(k, ArrayRef<NamedAttribute>());
  return Attribute(entry.getDictionary(model.getContext()));
}

/// The C function that runs \p init.
func::FuncOp makeInit(HostBuilder &host, func::FuncOp init, StringRef prefix) {
  OpBuilder b(init.getContext());
  Location loc = init.getLoc();
  func::FuncOp open =
      beginFunction(host, b, loc, format("{}.open", prefix), {host.pointer});
  func::CallOp::create(b, loc, init, ValueRange{open.getArgument(0)});
  func::ReturnOp::create(b, loc, host.i32(b, loc, 0));
  return open;
}

} // namespace

LogicalResult heed::makeHostEntries(HostBuilder &host,
                                    ArrayRef<func::FuncOp> functions,
                                    const HostContents &contents) {
  Builder b(host.module.getContext());
  SmallVector<Attribute> entries;
  NamedAttrList description;
  for (func::FuncOp function : functions) {
    if (function->hasAttr(attn::kModelAttr)) {
      FailureOr<Attribute> entry = makeEntry(host, function, contents.prefix);
      if (failed(entry))
        return failure();
      entries.push_back(*entry);
    } else if (function->hasAttr(attn::kInitAttr)) {
      func::FuncOp open = makeInit(host, function, contents.prefix);
      description.set("init", FlatSymbolRefAttr::get(open.getNameAttr()));
      description.set("kept", function->getAttr(attn::kSlotsAttr));
    }
  }
  if (entries.empty())
    return host.module.emitError("expected a function with 'attn.model'");
  description.set("entries", b.getArrayAttr(entries));
  description.set("params", b.getArrayAttr(contents.params));
  SmallVector<StringRef> names(contents.kernels.begin(),
                               contents.kernels.end());
  description.set("kernels", b.getStrArrayAttr(names));
  description.set("prefix", b.getStringAttr(contents.prefix));
  if (halide::isForGPU(host.module) &&
      llvm::any_of(host.module.getOps<halide::PipelineOp>(), [](auto pipeline) {
        return !pipeline.getOnHost() && pipeline.usesDoubles();
      }))
    description.set("device_f64", b.getUnitAttr());
  host.module->setAttr("attn.description",
                       description.getDictionary(b.getContext()));
  return success();
}
