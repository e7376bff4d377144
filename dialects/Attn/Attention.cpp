//===- Attention.cpp - attn.attention: text, checks and access ------------===//
#include "dialects/Attn/Normaliser.h"
#include "dialects/Attn/Regions.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed::attn;

static constexpr StringRef kKindNames[] = {"batch", "query", "key", "contract",
                                           "value"};

//===----------------------------------------------------------------------===//
// Access
//===----------------------------------------------------------------------===//

unsigned AttentionOp::firstDim(DimKind kind) {
  unsigned first = 0;
  for (unsigned k = 0; k < unsigned(kind); ++k)
    first += getDims()[k];
  return first;
}

DimKind AttentionOp::dimKind(unsigned dim) {
  unsigned kind = 0;
  for (unsigned end = getDims()[0]; end <= dim; end += getDims()[kind])
    ++kind;
  return DimKind(kind);
}

OperandRange AttentionOp::term(unsigned term) {
  unsigned first = 0;
  for (unsigned k = 0; k < term; ++k)
    first += getTermArity()[k];
  return getTermOperands().slice(first, getTermArity()[term]);
}

SmallVector<AffineMap> AttentionOp::maps(unsigned term) {
  unsigned first = 0;
  for (unsigned k = 0; k < term; ++k)
    first += getTermArity()[k];
  auto all = getTermMaps().getAsValueRange<AffineMapAttr>();
  return SmallVector<AffineMap>(llvm::drop_begin(
      llvm::make_range(all.begin(),
                       std::next(all.begin(), first + getTermArity()[term])),
      first));
}

SmallVector<unsigned> AttentionOp::contractDims(unsigned term) {
  SmallVector<unsigned> dims;
  unsigned first = firstDim(DimKind::Contract);
  for (unsigned d = first; d < first + numDims(DimKind::Contract); ++d)
    if (llvm::any_of(maps(term),
                     [&](AffineMap map) { return map.isFunctionOfDim(d); }))
      dims.push_back(d);
  return dims;
}

AffineMap AttentionOp::valueMap(unsigned value) {
  return cast<AffineMapAttr>(getValueMaps()[value]).getValue();
}

std::optional<int> AttentionOp::offsetSign(AffineExpr position) {
  auto used = [&](DimKind kind) {
    std::optional<unsigned> found;
    for (unsigned d = firstDim(kind); d < firstDim(kind) + numDims(kind); ++d)
      if (position.isFunctionOfDim(d)) {
        if (found)
          return std::optional<unsigned>();
        found = d;
      }
    return found;
  };
  std::optional<unsigned> query = used(DimKind::Query),
                          key = used(DimKind::Key);
  if (!query || !key)
    return std::nullopt;
  AffineExpr offset = getAffineDimExpr(*key, getContext()) -
                      getAffineDimExpr(*query, getContext());
  for (int sign : {1, -1})
    if (simplifyAffineExpr(position - offset * sign, numLoopDims(),
                           getSymbols().size())
            .isSymbolicOrConstant())
      return sign;
  return std::nullopt;
}

AffineMap AttentionOp::outputMap() {
  if (auto map = getResultMap())
    return *map;
  SmallVector<AffineExpr> exprs;
  for (DimKind kind : {DimKind::Batch, DimKind::Query, DimKind::Value})
    for (unsigned k = 0; k < numDims(kind); ++k)
      exprs.push_back(getAffineDimExpr(firstDim(kind) + k, getContext()));
  return AffineMap::get(numLoopDims(), 0, exprs, getContext());
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// Parses `(%a, %b : type, type)`, resolved into \p operands.
static ParseResult
parseTyped(OpAsmParser &parser,
           SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands,
           SmallVectorImpl<Type> &types) {
  return failure(parser.parseLParen() || parser.parseOperandList(operands) ||
                 parser.parseColonTypeList(types) || parser.parseRParen());
}

ParseResult AttentionOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &b = parser.getBuilder();
  using Operands = SmallVector<OpAsmParser::UnresolvedOperand>;
  Operands sizes, symbols, termOperands, values, sink, empty;
  SmallVector<Type> termTypes, valueTypes, sinkTypes;
  SmallVector<int64_t> dims(std::size(kKindNames), 0), arity;
  SmallVector<Attribute> termMaps, valueMaps;
  SmallVector<std::unique_ptr<Region>> pairs;
  auto score = std::make_unique<Region>(), where = std::make_unique<Region>(),
       weight = std::make_unique<Region>(), mask = std::make_unique<Region>();

  unsigned next = 0; // kinds may be left away, not swapped
  auto parseDims = [&]() -> ParseResult {
    StringRef name;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&name))
      return failure();
    while (next < dims.size() && kKindNames[next] != name)
      ++next;
    if (next == dims.size())
      return parser.emitError(loc)
             << "expected one of batch, query, key, contract, value in this "
                "order, found '"
             << name << "'";
    return failure(parser.parseEqual() || parser.parseInteger(dims[next++]));
  };
  if (parser.parseKeyword("dims") ||
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                     parseDims) ||
      parser.parseKeyword("sizes") ||
      parser.parseOperandList(sizes, OpAsmParser::Delimiter::Paren))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("symbols")) &&
      parser.parseOperandList(symbols, OpAsmParser::Delimiter::Paren))
    return failure();

  auto parseMaps = [&](SmallVectorImpl<Attribute> &maps) -> ParseResult {
    return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square,
                                          [&]() -> ParseResult {
                                            AffineMapAttr map;
                                            if (parser.parseAttribute(map))
                                              return failure();
                                            maps.push_back(map);
                                            return success();
                                          });
  };
  while (succeeded(parser.parseOptionalKeyword("term"))) {
    size_t before = termOperands.size();
    if (parseTyped(parser, termOperands, termTypes) ||
        parser.parseKeyword("maps") || parseMaps(termMaps))
      return failure();
    arity.push_back(termOperands.size() - before);
    pairs.push_back(std::make_unique<Region>());
    if (succeeded(parser.parseOptionalKeyword("pair")) &&
        parseBody(parser, *pairs.back()))
      return failure();
  }
  while (succeeded(parser.parseOptionalKeyword("value")))
    if (parseTyped(parser, values, valueTypes) || parser.parseKeyword("maps") ||
        parseMaps(valueMaps))
      return failure();
  auto parseMap = [&](StringRef name) -> ParseResult {
    AffineMapAttr map;
    if (parser.parseAttribute(map))
      return failure();
    result.addAttribute(name, map);
    return success();
  };
  if (succeeded(parser.parseOptionalKeyword("sink")) &&
      (parseTyped(parser, sink, sinkTypes) || parser.parseKeyword("map") ||
       parseMap("sinkMap")))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("empty")) &&
      (parser.parseLParen() || parser.parseOperand(empty.emplace_back()) ||
       parser.parseRParen()))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("result_map")) &&
      parseMap("resultMap"))
    return failure();
  if (parser.parseKeyword("score") || parseBody(parser, *score) ||
      parseWhere(parser, *where))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("weight")) &&
      parseBody(parser, *weight))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("mask")) &&
      parseBody(parser, *mask))
    return failure();

  StringRef mapName;
  SMLoc mapLoc;
  if (parser.parseKeyword("normalise") || parser.parseLParen())
    return failure();
  mapLoc = parser.getCurrentLocation();
  if (parser.parseKeyword(&mapName))
    return failure();
  auto map = symbolizeMap(mapName);
  if (!map)
    return parser.emitError(mapLoc)
           << "expected exp, sigmoid, relu, identity, sparsemax or entmax15, "
              "found '"
           << mapName << "'";
  result.addAttribute("map", MapAttr::get(b.getContext(), *map));
  for (StringRef flag : {"divide", "stabilise"})
    if (succeeded(parser.parseOptionalKeyword(flag)))
      result.addAttribute(flag, b.getUnitAttr());
  if (parser.parseRParen() || parser.parseOptionalAttrDict(result.attributes))
    return failure();

  SmallVector<int32_t> segments{1, 0, 0};
  Type output, extra;
  if (parser.parseColonType(output))
    return failure();
  result.addTypes(output);
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc at = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name))
      return failure();
    unsigned which = name == "lse" ? 1 : 2;
    if ((name != "lse" && name != "weights") || segments[which] || segments[2])
      return parser.emitError(at)
             << "expected 'lse' and then 'weights', found '" << name << "'";
    if (parser.parseType(extra))
      return failure();
    result.addTypes(extra);
    segments[which] = 1;
  }

  Type index = b.getIndexType();
  SMLoc loc = parser.getNameLoc();
  if (parser.resolveOperands(sizes, index, result.operands) ||
      parser.resolveOperands(symbols, index, result.operands) ||
      parser.resolveOperands(termOperands, termTypes, loc, result.operands) ||
      parser.resolveOperands(values, valueTypes, loc, result.operands) ||
      parser.resolveOperands(sink, sinkTypes, loc, result.operands) ||
      parser.resolveOperands(empty, b.getF32Type(), result.operands))
    return failure();
  result.addAttribute("dims", b.getDenseI64ArrayAttr(dims));
  result.addAttribute("termArity", b.getDenseI64ArrayAttr(arity));
  result.addAttribute("termMaps", b.getArrayAttr(termMaps));
  result.addAttribute("valueMaps", b.getArrayAttr(valueMaps));
  result.addAttribute("operandSegmentSizes",
                      b.getDenseI32ArrayAttr(
                          {int32_t(sizes.size()), int32_t(symbols.size()),
                           int32_t(termOperands.size()), int32_t(values.size()),
                           int32_t(sink.size()), int32_t(empty.size())}));
  result.addAttribute("resultSegmentSizes", b.getDenseI32ArrayAttr(segments));
  result.addRegion(std::move(score));
  result.addRegion(std::move(where));
  result.addRegion(std::move(weight));
  result.addRegion(std::move(mask));
  for (auto &pair : pairs)
    result.addRegion(std::move(pair));
  return success();
}

void AttentionOp::print(OpAsmPrinter &p) {
  auto printTyped = [&](StringRef keyword, ValueRange operands) {
    p.printNewline();
    p << keyword << "(" << operands << " : " << operands.getTypes() << ")";
  };
  p.increaseIndent();
  p << " dims(";
  llvm::interleaveComma(llvm::zip(kKindNames, getDims()), p, [&](auto kind) {
    p << std::get<0>(kind) << " = " << std::get<1>(kind);
  });
  p << ") sizes(" << getSizes() << ")";
  if (!getSymbols().empty())
    p << " symbols(" << getSymbols() << ")";
  for (unsigned t = 0; t < numTerms(); ++t) {
    printTyped("term", term(t));
    p << " maps [";
    llvm::interleaveComma(maps(t), p, [&](AffineMap map) {
      p.printAttribute(AffineMapAttr::get(map));
    });
    p << "]";
    if (!pair(t).empty())
      p << " pair", printBody(p, pair(t));
  }
  for (unsigned v = 0; v < getValues().size(); ++v) {
    printTyped("value", getValues().slice(v, 1));
    p << " maps [";
    p.printAttribute(getValueMaps()[v]);
    p << "]";
  }
  if (getSink()) {
    printTyped("sink", getSink());
    p << " map ";
    p.printAttribute(getSinkMapAttr());
  }
  if (getEmpty()) {
    p.printNewline();
    p << "empty(" << getEmpty() << ")";
  }
  if (getResultMap()) {
    p.printNewline();
    p << "result_map ";
    p.printAttribute(getResultMapAttr());
  }
  for (auto [name, region] :
       {std::pair("score", &getScore()), std::pair("where", &getWhere()),
        std::pair("weight", &getWeight()), std::pair("mask", &getMask())})
    if (!region->empty()) {
      p.printNewline();
      p << name;
      printBody(p, *region);
    }
  p.printNewline();
  p << "normalise(" << stringifyMap(getMap());
  if (getDivide())
    p << " divide";
  if (getStabilise())
    p << " stabilise";
  p << ")";
  p.decreaseIndent();
  p.printOptionalAttrDict((*this)->getAttrs(),
                          {"dims", "termArity", "termMaps", "valueMaps",
                           "sinkMap", "resultMap", "map", "divide", "stabilise",
                           "operandSegmentSizes", "resultSegmentSizes"});
  p << " : " << getOutput().getType();
  if (getLse())
    p << ", lse " << getLse().getType();
  if (getWeights())
    p << ", weights " << getWeights().getType();
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Checks one operand's map: attention.c3, c4 and c12.
static LogicalResult verifyMap(AttentionOp op, Value operand, AffineMap map,
                               ArrayRef<DimKind> allowed, const Twine &name) {
  auto type = cast<RankedTensorType>(operand.getType());
  Type element = type.getElementType();
  if (!element.isF32() && !element.isF16() && !element.isBF16())
    return op.emitOpError() << name << " has elements of " << element
                            << ", expected f32, f16 or bf16 (attention.c12)";
  if (map.getNumDims() != op.numLoopDims() ||
      map.getNumSymbols() != op.getSymbols().size() ||
      map.getNumResults() != type.getRank())
    return op.emitOpError()
           << "map of " << name << " takes " << map.getNumDims() << " dims and "
           << map.getNumSymbols() << " symbols to " << map.getNumResults()
           << " results, expected " << op.numLoopDims() << ", "
           << op.getSymbols().size() << " and " << type.getRank()
           << " (attention.c3)";
  for (unsigned d = 0; d < map.getNumDims(); ++d)
    if (map.isFunctionOfDim(d) && !llvm::is_contained(allowed, op.dimKind(d)))
      return op.emitOpError()
             << "map of " << name << " uses d" << d << ", a "
             << kKindNames[unsigned(op.dimKind(d))] << " dim (attention.c4)";
  return success();
}

LogicalResult AttentionOp::verify() {
  using K = DimKind;
  if (getDims().size() != std::size(kKindNames) ||
      llvm::any_of(getDims(), [](int64_t n) { return n < 0; }) ||
      numDims(K::Key) == 0 || getSizes().size() != numLoopDims())
    return emitOpError() << "has " << getSizes().size() << " sizes for dims ["
                         << getDims()
                         << "], expected one each and at least one key dim "
                            "(attention.c1)";
  int64_t operands = 0;
  for (int64_t count : getTermArity()) {
    if (count < 1)
      return emitOpError("has a term without operands (attention.c2)");
    operands += count;
  }
  if (numTerms() == 0 || getValues().empty() ||
      operands != int64_t(getTermOperands().size()) ||
      getPairs().size() != numTerms())
    return emitOpError() << "has " << numTerms() << " terms over "
                         << getTermOperands().size() << " operands and "
                         << getValues().size()
                         << " values, expected at least one of each "
                            "(attention.c2)";
  if (getTermMaps().size() != getTermOperands().size() ||
      getValueMaps().size() != getValues().size() ||
      bool(getSinkMap()) != bool(getSink()))
    return emitOpError("has not one map per operand (attention.c3)");

  for (unsigned t = 0; t < numTerms(); ++t) {
    for (auto [k, operand] : llvm::enumerate(term(t)))
      if (failed(verifyMap(*this, operand, maps(t)[k],
                           {K::Batch, K::Query, K::Key, K::Contract},
                           heed::format("operand {} of term {}", k, t))))
        return failure();
    if (!pair(t).empty() &&
        failed(verifyBody(*this, pair(t), "attention.c8", "pair", 0,
                          term(t).size(), Float32Type::get(getContext()))))
      return failure();
  }
  for (auto [v, operand] : llvm::enumerate(getValues()))
    if (failed(verifyMap(*this, operand, valueMap(v),
                         {K::Batch, K::Query, K::Key, K::Value},
                         heed::format("value {}", v))))
      return failure();
  if (getSink() && failed(verifyMap(*this, getSink(), *getSinkMap(),
                                    {K::Batch, K::Query}, "sink")))
    return failure();

  unsigned indices = firstDim(K::Contract);
  Type f32 = Float32Type::get(getContext());
  if (failed(verifyBody(*this, getScore(), "attention.c5", "score", indices,
                        numTerms(), f32)))
    return failure();
  if (!getWhere().empty() &&
      failed(verifyBody(*this, getWhere(), "attention.c6", "where", indices, 0,
                        IntegerType::get(getContext(), 1))))
    return failure();
  if (!getWeight().empty() &&
      failed(verifyBody(*this, getWeight(), "attention.c7", "weight", indices,
                        1, f32)))
    return failure();

  unsigned outputDims =
      numDims(K::Batch) + numDims(K::Query) + numDims(K::Value);
  if (auto map = getResultMap()) {
    bool fits = map->getNumDims() == numLoopDims() && !map->getNumSymbols() &&
                map->isProjectedPermutation() &&
                map->getNumResults() == outputDims;
    for (unsigned d = 0; fits && d < numLoopDims(); ++d)
      fits = map->isFunctionOfDim(d) ==
             (dimKind(d) != K::Key && dimKind(d) != K::Contract);
    if (!fits)
      return emitOpError() << "has result map " << AffineMapAttr::get(*map)
                           << ", expected a permutation of batch, query and "
                              "value dims (attention.c9)";
  }
  auto fits = [&](Value result, unsigned rank, bool storage) {
    if (!result)
      return true;
    auto type = cast<RankedTensorType>(result.getType());
    Type element = type.getElementType();
    return type.getRank() == rank &&
           (element.isF32() ||
            (storage && (element.isF16() || element.isBF16())));
  };
  unsigned rows = numDims(K::Batch) + numDims(K::Query);
  if (!fits(getOutput(), outputDims, true) || !fits(getLse(), rows, false) ||
      !fits(getWeights(), rows + numDims(K::Key), false))
    return emitOpError() << "has results " << getResultTypes()
                         << ", expected f32 of ranks " << outputDims << ", "
                         << rows << " and " << rows + numDims(K::Key)
                         << " (attention.c10)";
  if (!Normaliser::of(*this).isShiftable &&
      (getLse() || getSink() || getStabilise()))
    return emitOpError("has lse, sink or stabilise, expected map exp for them "
                       "(attention.c11)");
  if (Normaliser::of(*this).hasThreshold() && getDivide())
    return emitOpError("has divide, expected a map without a threshold for it "
                       "(attention.c14)");
  if (getEmpty() && (!getDivide() || getSink()))
    return emitOpError(
        "has a value for empty rows, expected divide and no sink "
        "with it (attention.c13)");
  return verifyMask(*this);
}
