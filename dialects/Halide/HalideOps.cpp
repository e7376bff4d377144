// Syntax, builders and verifiers of the ops that make up an algorithm.
// Constraint numbers are those of HalideOps.td.

#include "dialects/Halide/HalideDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
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

#define GET_OP_CLASSES
#include "dialects/Halide/HalideOps.cpp.inc"

/// What may follow '%' in the IR's text.
static std::string ssaName(StringRef name) {
  std::string s;
  for (char c : name)
    s += llvm::isAlnum(c) || c == '_' ? c : '_';
  return s;
}

/// First name that occurs twice, or empty.
static StringRef findDuplicate(ArrayRef<ArrayAttr> lists) {
  llvm::StringSet<> seen;
  for (ArrayAttr names : lists)
    for (StringRef name : names.getAsValueRange<StringAttr>())
      if (!seen.insert(name).second)
        return name;
  return {};
}

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

SmallVector<FuncOp> PipelineOp::getOutputFuncs() {
  SmallVector<FuncOp> funcs;
  for (auto output : getBody().front().getOps<OutputOp>())
    if (auto func = output.getFunc().getDefiningOp<FuncOp>())
      funcs.push_back(func);
  return funcs;
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
    dims.push_back(builder.getStringAttr("d" + Twine(k)));
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
  setName(getResult(), ssaName(getFuncName(getFunc())) + "_part");
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

//===--- func
//------------------------------------------------------------------------------------------------===//

void FuncOp::build(
    OpBuilder &builder, OperationState &state, StringRef name,
    ArrayRef<StringRef> vars, TypeRange elementTypes,
    llvm::function_ref<SmallVector<Value>(OpBuilder &, Location, ValueRange)>
        body) {
  build(builder, state, builder.getType<FuncType>(),
        builder.getStringAttr(name), builder.getStrArrayAttr(vars),
        builder.getTypeArrayAttr(elementTypes));
  Block &block = state.regions[0]->emplaceBlock();
  for (size_t k = 0; k < vars.size(); ++k)
    block.addArgument(builder.getI32Type(), state.location);
  if (!body)
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&block);
  SmallVector<Value> values =
      body(builder, state.location, block.getArguments());
  YieldOp::create(builder, state.location, values);
}

void FuncOp::getAsmBlockArgumentNames(Region &region,
                                      OpAsmSetValueNameFn setName) {
  for (auto [arg, var] : llvm::zip(region.getArguments(),
                                   getVars().getAsValueRange<StringAttr>()))
    setName(arg, ssaName(var));
}

// halide.func "f" (%x = "x", %y = "y") : f32, f32 attributes {...} { ... }
ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  SmallVector<OpAsmParser::Argument> args;
  SmallVector<Attribute> vars;
  SmallVector<Type> types;
  if (parser.parseAttribute(name, "name", result.attributes))
    return failure();
  auto parseVar = [&]() -> ParseResult {
    OpAsmParser::Argument arg;
    std::string var;
    if (parser.parseArgument(arg) || parser.parseEqual() ||
        parser.parseString(&var))
      return failure();
    arg.type = builder.getI32Type();
    args.push_back(arg);
    vars.push_back(builder.getStringAttr(var));
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseVar) ||
      parser.parseColonTypeList(types) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  result.addAttribute("vars", builder.getArrayAttr(vars));
  result.addAttribute("elementTypes", builder.getTypeArrayAttr(types));
  result.addTypes(builder.getType<FuncType>());
  return parser.parseRegion(*result.addRegion(), args);
}

void FuncOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getNameAttr() << " (";
  llvm::interleaveComma(
      llvm::zip(getBody().getArguments(), getVars()), printer, [&](auto pair) {
        printer << std::get<0>(pair) << " = " << std::get<1>(pair);
      });
  printer << ") : ";
  llvm::interleaveComma(getElementTypes().getAsValueRange<TypeAttr>(), printer);
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {"name", "vars", "elementTypes"});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

static bool areI32(Region &region, size_t count) {
  return region.getNumArguments() == count &&
         llvm::all_of(region.getArgumentTypes(),
                      [](Type t) { return t.isSignlessInteger(32); });
}

static LogicalResult verifyYield(Operation *op, Region &region,
                                 TypeRange expected, StringRef constraint) {
  auto yield = dyn_cast<YieldOp>(region.front().back());
  if (!yield)
    return op->emitOpError("region does not end in halide.yield (")
           << constraint << ")";
  if (yield.getValues().getTypes() != expected) {
    InFlightDiagnostic diag = yield.emitOpError("yields (")
                              << yield.getValues().getTypes() << "), expected ("
                              << expected << ") (" << constraint << ")";
    return diag;
  }
  return success();
}

LogicalResult FuncOp::verify() {
  if (StringRef name = findDuplicate(getVars()); !name.empty())
    return emitOpError("has two vars '") << name << "' (func.c1)";
  if (getElementTypes().empty())
    return emitOpError("has no element type (func.c2)");
  if (!areI32(getBody(), getVars().size()))
    return emitOpError("expected ")
           << getVars().size() << " arguments of type i32 (func.c1)";
  return success();
}

LogicalResult FuncOp::verifyRegions() {
  return verifyYield(*this, getBody(),
                     ::heed::halide::getElementTypes(getResult()), "func.c2");
}

//===--- update
//----------------------------------------------------------------------------------------------===//

void UpdateOp::build(OpBuilder &builder, OperationState &state, Value func,
                     ArrayRef<StringRef> rvars, ValueRange bounds) {
  build(builder, state, func, bounds, builder.getStrArrayAttr(rvars));
}

void UpdateOp::fill(OpBuilder &builder, Region &region, BodyFn body) {
  Block &block = region.emplaceBlock();
  for (size_t k = 0, e = getRank(getFunc()) + getRvars().size(); k < e; ++k)
    block.addArgument(builder.getI32Type(), getLoc());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&block);
  SmallVector<Value> values = body(builder, getLoc(), block.getArguments());
  YieldOp::create(builder, getLoc(), values);
}

void UpdateOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  auto func = getFunc().getDefiningOp<FuncOp>();
  if (!func)
    return;
  SmallVector<StringRef> names(func.getVars().getAsValueRange<StringAttr>());
  llvm::append_range(names, getRvars().getAsValueRange<StringAttr>());
  for (auto [arg, name] : llvm::zip(region.getArguments(), names))
    setName(arg, ssaName(name));
}

// halide.update %f over ("r" from %min extent %n, ...) where (%x, %r) {...} at
// (%x, %r) {...} set (%x, %r) {...}
ParseResult UpdateOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  OpAsmParser::UnresolvedOperand func;
  SmallVector<OpAsmParser::UnresolvedOperand> bounds;
  SmallVector<Attribute> rvars;
  if (parser.parseOperand(func))
    return failure();
  auto parseRVar = [&]() -> ParseResult {
    std::string name;
    if (parser.parseString(&name) || parser.parseKeyword("from") ||
        parser.parseOperand(bounds.emplace_back()) ||
        parser.parseKeyword("extent") ||
        parser.parseOperand(bounds.emplace_back()))
      return failure();
    rvars.push_back(builder.getStringAttr(name));
    return success();
  };
  if (succeeded(parser.parseOptionalKeyword("over")) &&
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseRVar))
    return failure();
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  auto parseRegion = [&](Region *region) -> ParseResult {
    SmallVector<OpAsmParser::Argument> args;
    if (parser.parseArgumentList(args, OpAsmParser::Delimiter::Paren))
      return failure();
    for (OpAsmParser::Argument &arg : args)
      arg.type = builder.getI32Type();
    return parser.parseRegion(*region, args);
  };
  Region *where = result.addRegion(), *at = result.addRegion(),
         *set = result.addRegion();
  if ((succeeded(parser.parseOptionalKeyword("where")) && parseRegion(where)) ||
      (succeeded(parser.parseOptionalKeyword("at")) && parseRegion(at)) ||
      parser.parseKeyword("set") || parseRegion(set))
    return failure();
  result.addAttribute("rvars", builder.getArrayAttr(rvars));
  return failure(
      parser.resolveOperand(func, builder.getType<FuncType>(),
                            result.operands) ||
      parser.resolveOperands(bounds, builder.getI32Type(), result.operands));
}

void UpdateOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getFunc();
  if (!getRvars().empty()) {
    printer << " over (";
    llvm::interleaveComma(llvm::enumerate(getRvars()), printer, [&](auto it) {
      printer << it.value() << " from " << getRVarMin(it.index()) << " extent "
              << getRVarExtent(it.index());
    });
    printer << ')';
  }
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"rvars"});
  auto print = [&](StringRef keyword, Region &region) {
    if (region.empty())
      return;
    printer << ' ' << keyword << " (";
    llvm::interleaveComma(region.getArguments(), printer);
    printer << ") ";
    printer.printRegion(region, /*printEntryBlockArgs=*/false);
  };
  print("where", getWhere());
  print("at", getAt());
  print("set", getSet());
}

LogicalResult UpdateOp::verify() {
  auto func = getFunc().getDefiningOp<FuncOp>();
  if (!func)
    return emitOpError("updates '")
           << getFuncName(getFunc()) << "', expected a halide.func (update.c1)";
  if (StringRef name = findDuplicate({func.getVars(), getRvars()});
      !name.empty())
    return emitOpError("has two vars '") << name << "' (update.c2)";
  if (getBounds().size() != 2 * getRvars().size())
    return emitOpError("expected a first value and an extent for each "
                       "reduction var (update.c2)");
  if (getRvars().empty() && !getWhere().empty())
    return emitOpError("has a where without a reduction domain (update.c6)");
  for (Region &region : (*this)->getRegions()) {
    if (region.empty())
      continue;
    if (!region.hasOneBlock() ||
        !areI32(region, func.getVars().size() + getRvars().size()))
      return emitOpError("expected ")
             << func.getVars().size() + getRvars().size()
             << " arguments of type i32 in each region (update.c3)";
  }
  return success();
}

LogicalResult UpdateOp::verifyRegions() {
  Type i32 = IntegerType::get(getContext(), 32),
       i1 = IntegerType::get(getContext(), 1);
  size_t rank = getRank(getFunc());
  if (!getWhere().empty() &&
      failed(verifyYield(*this, getWhere(), i1, "update.c4")))
    return failure();
  if (failed(verifyYield(*this, getSet(),
                         ::heed::halide::getElementTypes(getFunc()),
                         "update.c4")))
    return failure();
  if (getAt().empty())
    return success();
  if (failed(verifyYield(*this, getAt(), SmallVector<Type>(rank, i32),
                         "update.c4")))
    return failure();
  auto place = cast<YieldOp>(getAt().front().back());
  for (size_t k = 0; k < rank; ++k) {
    if (place.getValues()[k] == getAt().getArgument(k))
      continue;
    for (Region &region : (*this)->getRegions())
      if (!region.empty() && !region.getArgument(k).use_empty())
        return emitOpError("uses pure var '")
               << cast<StringAttr>(
                      getFunc().getDefiningOp<FuncOp>().getVars()[k])
                      .getValue()
               << "', which is not on the left side (update.c5)";
  }
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

LogicalResult CallOp::verify() {
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

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto pipeline =
      symbols.lookupNearestSymbolFrom<PipelineOp>(*this, getCalleeAttr());
  if (!pipeline)
    return emitOpError("'@")
           << getCallee() << "' is no halide.pipeline (call.c1)";
  SmallVector<Operation *> inputs = pipeline.getInputs();
  if (inputs.size() != getInputs().size())
    return emitOpError("passes ")
           << getInputs().size() << " inputs, '@" << getCallee() << "' takes "
           << inputs.size() << " (call.c2)";
  for (auto [input, value] : llvm::zip(inputs, getInputs())) {
    if (auto buffer = dyn_cast<BufferOp>(input)) {
      if (failed(verifyArray(*this, value.getType(), buffer.getDims().size(),
                             buffer.getElementType(), buffer.getName())))
        return failure();
      continue;
    }
    auto param = cast<ParamOp>(input);
    Type expected = param.getResult().getType();
    bool isIndex = value.getType().isIndex() &&
                   (expected.isInteger(32) || expected.isInteger(64));
    if (value.getType() != expected && !isIndex)
      return emitOpError("passes ")
             << value.getType() << " as '" << param.getName() << "', expected "
             << expected << " (call.c2)";
  }
  SmallVector<std::pair<FuncOp, Type>> outputs;
  for (FuncOp func : pipeline.getOutputFuncs())
    for (Type element : ::heed::halide::getElementTypes(func.getResult()))
      outputs.push_back({func, element});
  if (outputs.size() != getOuts().size())
    return emitOpError("has ") << getOuts().size() << " outs, '@" << getCallee()
                               << "' writes " << outputs.size() << " (call.c3)";
  for (auto [output, value] : llvm::zip(outputs, getOuts()))
    if (failed(verifyArray(*this, value.getType(),
                           output.first.getVars().size(), output.second,
                           output.first.getName())))
      return failure();
  return success();
}

void CallOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &input : getInputsMutable())
    if (isa<MemRefType>(input.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &input,
                           SideEffects::DefaultResource::get());
  for (OpOperand &out : getOutsMutable())
    if (isa<MemRefType>(out.get().getType()))
      effects.emplace_back(MemoryEffects::Write::get(), &out,
                           SideEffects::DefaultResource::get());
}
