// Syntax, builders and verifiers of halide.func and halide.update. Constraint
// numbers are those of HalideOps.td.

#include "dialects/Halide/HalideDialect.h"
#include "dialects/Halide/HalideNames.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace heed::halide;

std::string heed::halide::ssaName(StringRef name) {
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

UpdateOp UpdateOp::over(OpBuilder &builder, Location loc, Value func,
                        ArrayRef<StringRef> rvars, ValueRange extents) {
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
  SmallVector<Value> bounds;
  for (Value extent : extents)
    bounds.append({zero, extent});
  return create(builder, loc, func, rvars, bounds);
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
