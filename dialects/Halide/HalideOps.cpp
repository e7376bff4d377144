// Syntax, builders and verifiers of pipelines, their inputs, expressions and
// calls. Constraint numbers are those of HalideOps.td.

#include "dialects/Halide/HalideDialect.h"
#include "dialects/Halide/HalideNames.h"
#include "mlir/IR/Builders.h"
#include "support/Format.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace heed::halide;

//===--- shared syntax: ("a", "b")
//---------------------------------------------------------------------------===//

static ParseResult parseNames(OpAsmParser &parser, ArrayAttr &names) {
  SmallVector<Attribute> list;
  auto parseName = [&]() -> ParseResult {
    std::string name;
    if (parser.parseString(&name))
      return failure();
    list.push_back(parser.getBuilder().getStringAttr(name));
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseName))
    return failure();
  names = parser.getBuilder().getArrayAttr(list);
  return success();
}

static void printNames(OpAsmPrinter &printer, Operation *, ArrayAttr names) {
  printer << '(';
  llvm::interleaveComma(names, printer,
                        [&](Attribute name) { printer << name; });
  printer << ')';
}

// A split's factor: a number or a value.
static ParseResult
parseFactor(OpAsmParser &parser, IntegerAttr &factor,
            std::optional<OpAsmParser::UnresolvedOperand> &dynamic) {
  int64_t number;
  OptionalParseResult isNumber = parser.parseOptionalInteger(number);
  if (isNumber.has_value()) {
    factor = parser.getBuilder().getI64IntegerAttr(number);
    return *isNumber;
  }
  return parser.parseOperand(dynamic.emplace());
}

static void printFactor(OpAsmPrinter &printer, Operation *, IntegerAttr factor,
                        Value dynamic) {
  if (factor)
    printer << factor.getInt();
  else
    printer << dynamic;
}

// Operands with names: `"a" = %a : type, ..`.
static ParseResult
parseNamedOperands(OpAsmParser &parser, ArrayAttr &names,
                   SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands,
                   SmallVectorImpl<Type> &types) {
  SmallVector<Attribute> list;
  auto parseOne = [&]() -> ParseResult {
    StringAttr name;
    return failure(parser.parseAttribute(name) || parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()) ||
                   parser.parseColonType(types.emplace_back()) ||
                   (list.push_back(name), false));
  };
  if (parser.parseCommaSeparatedList(parseOne))
    return failure();
  names = parser.getBuilder().getArrayAttr(list);
  return success();
}

static void printNamedOperands(OpAsmPrinter &printer, Operation *,
                               ArrayAttr names, OperandRange operands,
                               TypeRange types) {
  llvm::interleaveComma(llvm::zip(names, operands, types), printer,
                        [&](auto one) {
                          auto [name, operand, type] = one;
                          printer << name << " = " << operand << " : " << type;
                        });
}

#define GET_OP_CLASSES
#include "dialects/Halide/HalideOps.cpp.inc"

static bool isOutput(Value func) {
  return llvm::any_of(func.getUsers(),
                      [](Operation *user) { return isa<OutputOp>(user); });
}

//===--- pipeline, buffers, scalars
//--------------------------------------------------------------------------===//

void PipelineOp::build(OpBuilder &builder, OperationState &state,
                       StringRef name) {
  state.getOrAddProperties<Properties>().sym_name = builder.getStringAttr(name);
  state.addRegion()->emplaceBlock();
}

SmallVector<Operation *> PipelineOp::getInputs() {
  SmallVector<Operation *> inputs;
  for (Operation &op : getBody().front())
    if (isa<BufferOp, ParamOp>(op))
      inputs.push_back(&op);
  return inputs;
}

SmallVector<StringRef> PipelineOp::getInputNames() {
  SmallVector<StringRef> names;
  for (Operation *input : getInputs())
    names.push_back(input->getAttrOfType<StringAttr>("name").getValue());
  return names;
}

SmallVector<FuncOp> PipelineOp::getOutputFuncs() {
  SmallVector<FuncOp> funcs;
  for (auto output : getBody().front().getOps<OutputOp>())
    if (auto func = output.getFunc().getDefiningOp<FuncOp>())
      funcs.push_back(func);
  return funcs;
}

bool PipelineOp::givesUp() {
  return walk([](GiveUpOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

bool PipelineOp::usesDoubles() {
  auto isDouble = [](Type type) { return type.isF64(); };
  return walk([&](Operation *op) {
           auto buffer = dyn_cast<BufferOp>(op);
           return llvm::any_of(op->getResultTypes(), isDouble) ||
                          (buffer && isDouble(buffer.getElementType()))
                      ? WalkResult::interrupt()
                      : WalkResult::advance();
         })
      .wasInterrupted();
}

void BufferOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     ArrayRef<StringRef> dims, Type elementType) {
  build(builder, state, builder.getType<FuncType>(),
        builder.getStringAttr(name), builder.getStrArrayAttr(dims),
        TypeAttr::get(elementType));
}

void BufferOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     int64_t rank, Type elementType) {
  SmallVector<Attribute> dims;
  for (int64_t k = 0; k < rank; ++k)
    dims.push_back(builder.getStringAttr(heed::format("d{}", k)));
  build(builder, state, builder.getType<FuncType>(),
        builder.getStringAttr(name), builder.getArrayAttr(dims),
        TypeAttr::get(elementType));
}

void BufferOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), ssaName(getName()));
}
void ParamOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), ssaName(getName()));
}
void FuncOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), ssaName(getName()));
}
void RFactorOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(),
          heed::format("{}_part", ssaName(getFuncName(getFunc()))));
}

/// bound.c1 and bound.c2: what ops that state or read a dim of a caller's array
/// have in common.
static LogicalResult verifyArgumentDim(Operation *op, Value func,
                                       std::optional<int64_t> dim) {
  if (!func.getDefiningOp<BufferOp>() && !isOutput(func))
    return op->emitOpError("expected a halide.buffer or an output, found '")
           << getFuncName(func) << "' (bound.c2)";
  if (dim && (*dim < 0 || *dim >= getRank(func)))
    return op->emitOpError("dim is ")
           << *dim << ", but '" << getFuncName(func) << "' has "
           << getRank(func) << " dims (bound.c1)";
  return success();
}

LogicalResult ExtentOp::verify() {
  return verifyArgumentDim(*this, getFunc(), getDim());
}
LogicalResult MinOp::verify() {
  return verifyArgumentDim(*this, getFunc(), getDim());
}
LogicalResult SetBoundsOp::verify() {
  return verifyArgumentDim(*this, getFunc(), getDim());
}
LogicalResult SetStrideOp::verify() {
  return verifyArgumentDim(*this, getFunc(), getDim());
}
LogicalResult SetHostAlignmentOp::verify() {
  if (!llvm::isPowerOf2_64(getBytes()))
    return emitOpError("alignment is ")
           << getBytes() << ", expected a power of two (set_host_alignment.c1)";
  return verifyArgumentDim(*this, getFunc(), std::nullopt);
}

LogicalResult OutputOp::verify() {
  if (!getFunc().getDefiningOp<FuncOp>())
    return emitOpError("expected a halide.func, found '")
           << getFuncName(getFunc()) << "' (output.c1)";
  return success();
}

//===--- expressions
//-----------------------------------------------------------------------------------------===//

LogicalResult ReadOp::verify() {
  if ((int64_t)getCoordinates().size() != getRank(getFunc()))
    return emitOpError("reads '")
           << getFuncName(getFunc()) << "' with " << getCoordinates().size()
           << " coordinates, but it has " << getRank(getFunc())
           << " dims (read.c1)";
  SmallVector<Type> types = ::heed::halide::getElementTypes(getFunc());
  if (TypeRange(types) != getValues().getTypes())
    return emitOpError("gives (")
           << getValues().getTypes() << "), but elements of '"
           << getFuncName(getFunc()) << "' are (" << TypeRange(types)
           << ") (read.c2)";
  return success();
}

LogicalResult MuxOp::verify() {
  if (getValues().empty() || !llvm::all_equal(getValues().getTypes()) ||
      getValues().front().getType() != getResult().getType())
    return emitOpError("expected at least one value, all of type ")
           << getResult().getType() << " (mux.c1)";
  return success();
}

//===--- call
//------------------------------------------------------------------------------------------------===//

void CallOp::pass(StringRef name, Value value) {
  SmallVector<Attribute> names;
  if (ArrayAttr known = getNamesAttr())
    names.assign(known.begin(), known.end());
  names.push_back(StringAttr::get(getContext(), name));
  setNamesAttr(ArrayAttr::get(getContext(), names));
  getNamedMutable().append(value);
}

llvm::StringMap<Value> CallOp::getArguments(ArrayRef<StringRef> inputs) {
  llvm::StringMap<Value> passed;
  if (ArrayAttr names = getNamesAttr())
    for (auto [name, value] :
         llvm::zip(names.getAsValueRange<StringAttr>(), getNamed()))
      passed[name] = value;
  auto next = getInputs().begin();
  for (StringRef input : inputs)
    if (!passed.contains(input) && next != getInputs().end())
      passed[input] = *next++;
  return passed;
}

LogicalResult CallOp::verify() {
  llvm::StringSet<> known;
  if (ArrayAttr names = getNamesAttr())
    for (StringRef name : names.getAsValueRange<StringAttr>())
      if (!known.insert(name).second)
        return emitOpError("passes '") << name << "' twice (call.c7)";
  if (known.size() != getNamed().size())
    return emitOpError("has ")
           << getNamed().size() << " operands behind 'with', but "
           << known.size() << " names (call.c7)";
  SmallVector<Type> tensors;
  for (Type type : getOuts().getTypes())
    if (isa<RankedTensorType>(type))
      tensors.push_back(type);
  if (TypeRange(tensors) != getResults().getTypes())
    return emitOpError("expected results (")
           << TypeRange(tensors) << "), found (" << getResults().getTypes()
           << ") (call.c4)";
  return success();
}

static LogicalResult verifyArray(CallOp call, Type type, size_t rank,
                                 Type element, StringRef what) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasRank() || shaped.getRank() != (int64_t)rank ||
      shaped.getElementType() != element)
    return call.emitOpError("passes ")
           << type << " as '" << what << "', expected rank " << rank << " of "
           << element << " (call.c2, call.c3)";
  return success();
}

/// Whether what \p call passes, by the names of inputs, and its outs are what
/// \p pipeline takes and writes.
static LogicalResult verifyArguments(CallOp call,
                                     const llvm::StringMap<Value> &passed,
                                     PipelineOp pipeline) {
  StringRef name = pipeline.getSymName();
  for (auto [input, called] :
       llvm::zip(pipeline.getInputs(), pipeline.getInputNames())) {
    Value value = passed.lookup(called);
    if (!value)
      return call.emitOpError("passes no '")
             << called << "', which '@" << name
             << "', behind 'else', takes (call.c6)";
    if (auto buffer = dyn_cast<BufferOp>(input)) {
      if (failed(verifyArray(call, value.getType(), buffer.getDims().size(),
                             buffer.getElementType(), buffer.getName())))
        return failure();
      continue;
    }
    auto param = cast<ParamOp>(input);
    Type expected = param.getResult().getType();
    bool isIndex = value.getType().isIndex() &&
                   (expected.isInteger(32) || expected.isInteger(64));
    if (value.getType() != expected && !isIndex)
      return call.emitOpError("passes ")
             << value.getType() << " as '" << param.getName() << "', expected "
             << expected << " (call.c2)";
  }
  SmallVector<std::pair<FuncOp, Type>> outputs;
  for (FuncOp func : pipeline.getOutputFuncs())
    for (Type element : ::heed::halide::getElementTypes(func.getResult()))
      outputs.push_back({func, element});
  if (outputs.size() != call.getOuts().size())
    return call.emitOpError("has ")
           << call.getOuts().size() << " outs, '@" << name << "' writes "
           << outputs.size() << " (call.c3)";
  for (auto [output, value] : llvm::zip(outputs, call.getOuts()))
    if (failed(verifyArray(call, value.getType(), output.first.getVars().size(),
                           output.second, output.first.getName())))
      return failure();
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto find = [&](FlatSymbolRefAttr name) -> PipelineOp {
    auto pipeline = symbols.lookupNearestSymbolFrom<PipelineOp>(*this, name);
    if (!pipeline)
      emitOpError("'@") << name.getValue()
                        << "' is no halide.pipeline (call.c1)";
    return pipeline;
  };
  PipelineOp pipeline = find(getCalleeAttr());
  if (!pipeline)
    return failure();
  SmallVector<StringRef> inputs = pipeline.getInputNames();
  if (ArrayAttr names = getNamesAttr())
    for (StringRef name : names.getAsValueRange<StringAttr>())
      if (!llvm::is_contained(inputs, name))
        return emitOpError("passes '") << name << "', but '@" << getCallee()
                                       << "' has no such input (call.c7)";
  size_t count = getInputs().size() + getNamed().size();
  if (inputs.size() != count)
    return emitOpError("passes ")
           << count << " inputs, '@" << getCallee() << "' takes "
           << inputs.size() << " (call.c2)";
  llvm::StringMap<Value> passed = getArguments(inputs);
  if (failed(verifyArguments(*this, passed, pipeline)))
    return failure();
  FlatSymbolRefAttr otherwise = getOtherwiseAttr();
  if (bool(otherwise) != pipeline.givesUp())
    return emitOpError("'@")
           << getCallee()
           << (otherwise ? "' never gives up, but a" : "' may give up, but no")
           << " pipeline stands behind 'else' (call.c5)";
  if (!otherwise)
    return success();
  PipelineOp other = find(otherwise);
  if (!other)
    return failure();
  if (other.givesUp())
    return emitOpError("'@") << otherwise.getValue()
                             << "', behind 'else', gives up, too (call.c6)";
  return verifyArguments(*this, passed, other);
}

void CallOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (MutableOperandRange inputs : {getInputsMutable(), getNamedMutable()})
    for (OpOperand &input : inputs)
      if (isa<MemRefType>(input.get().getType()))
        effects.emplace_back(MemoryEffects::Read::get(), &input,
                             SideEffects::DefaultResource::get());
  for (OpOperand &out : getOutsMutable())
    if (isa<MemRefType>(out.get().getType()))
      effects.emplace_back(MemoryEffects::Write::get(), &out,
                           SideEffects::DefaultResource::get());
}
