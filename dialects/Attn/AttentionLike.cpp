//===- AttentionLike.cpp - what the ops of an attention share -------------===//
// Access to its parts, their text, and their checks.
#include "dialects/Attn/AttentionLike.h"
#include "dialects/Attn/Regions.h"
#include "support/Format.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace heed::attn;

static constexpr StringRef kKindNames[] = {"batch", "query", "key", "contract",
                                           "value"};

//===----------------------------------------------------------------------===//
// Access
//===----------------------------------------------------------------------===//

unsigned heed::attn::detail::firstDim(ArrayRef<int64_t> dims, DimKind kind) {
  unsigned first = 0;
  for (unsigned k = 0; k < unsigned(kind); ++k)
    first += dims[k];
  return first;
}

DimKind heed::attn::detail::dimKind(ArrayRef<int64_t> dims, unsigned dim) {
  unsigned kind = 0;
  for (unsigned end = dims[0]; end <= dim; end += dims[kind])
    ++kind;
  return DimKind(kind);
}

OperandRange heed::attn::detail::term(AttentionLike op, unsigned term) {
  unsigned first = 0;
  for (unsigned k = 0; k < term; ++k)
    first += op.getTermArity()[k];
  return op.getTermOperands().slice(first, op.getTermArity()[term]);
}

SmallVector<AffineMap> heed::attn::detail::maps(AttentionLike op,
                                                unsigned term) {
  unsigned first = 0;
  for (unsigned k = 0; k < term; ++k)
    first += op.getTermArity()[k];
  auto all = op.getTermMaps().getAsValueRange<AffineMapAttr>();
  return SmallVector<AffineMap>(llvm::drop_begin(
      llvm::make_range(all.begin(),
                       std::next(all.begin(), first + op.getTermArity()[term])),
      first));
}

SmallVector<unsigned> heed::attn::detail::contractDims(AttentionLike op,
                                                       unsigned term) {
  SmallVector<unsigned> dims;
  unsigned first = op.firstDim(DimKind::Contract);
  for (unsigned d = first; d < first + op.numDims(DimKind::Contract); ++d)
    if (llvm::any_of(op.maps(term),
                     [&](AffineMap map) { return map.isFunctionOfDim(d); }))
      dims.push_back(d);
  return dims;
}

std::optional<int> heed::attn::detail::offsetSign(AttentionLike op,
                                                  AffineExpr position) {
  auto used = [&](DimKind kind) {
    std::optional<unsigned> found;
    for (unsigned d = op.firstDim(kind);
         d < op.firstDim(kind) + op.numDims(kind); ++d)
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
  AffineExpr offset = getAffineDimExpr(*key, op->getContext()) -
                      getAffineDimExpr(*query, op->getContext());
  for (int sign : {1, -1})
    if (simplifyAffineExpr(position - offset * sign, op.numLoopDims(),
                           op.getSymbols().size())
            .isSymbolicOrConstant())
      return sign;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

ParseResult AttentionText::parseTyped(OpAsmParser &parser, Operands &operands,
                                      SmallVectorImpl<Type> &types) {
  return failure(parser.parseLParen() || parser.parseOperandList(operands) ||
                 parser.parseColonTypeList(types) || parser.parseRParen());
}

ParseResult AttentionText::parseDims() {
  dims.assign(std::size(kKindNames), 0);
  unsigned next = 0; // kinds may be left away, not swapped
  return parser.parseCommaSeparatedList(
      OpAsmParser::Delimiter::Paren, [&]() -> ParseResult {
        StringRef name;
        SMLoc loc = parser.getCurrentLocation();
        if (parser.parseKeyword(&name))
          return failure();
        while (next < dims.size() && kKindNames[next] != name)
          ++next;
        if (next == dims.size())
          return parser.emitError(loc)
                 << "expected one of batch, query, key, contract, value in "
                    "this order, found '"
                 << name << "'";
        return failure(parser.parseEqual() ||
                       parser.parseInteger(dims[next++]));
      });
}

ParseResult AttentionText::parseMaps(SmallVectorImpl<Attribute> &maps) {
  return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square,
                                        [&]() -> ParseResult {
                                          AffineMapAttr map;
                                          if (parser.parseAttribute(map))
                                            return failure();
                                          maps.push_back(map);
                                          return success();
                                        });
}

ParseResult AttentionText::parseOperands() {
  if (parser.parseKeyword("dims") || parseDims() ||
      parser.parseKeyword("sizes") ||
      parser.parseOperandList(sizes, OpAsmParser::Delimiter::Paren))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("symbols")) &&
      parser.parseOperandList(symbols, OpAsmParser::Delimiter::Paren))
    return failure();
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
  return success();
}

ParseResult AttentionText::parseRegions() {
  for (unsigned k = 0; k < 4; ++k)
    regions.push_back(std::make_unique<Region>());
  if (parser.parseKeyword("score") || parseBody(parser, *regions[0]) ||
      parseWhere(parser, *regions[1]))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("weight")) &&
      parseBody(parser, *regions[2]))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("mask")) &&
      parseBody(parser, *regions[3]))
    return failure();
  return success();
}

ParseResult AttentionText::parseNormaliser(ArrayRef<StringRef> flags) {
  Builder &b = parser.getBuilder();
  StringRef name;
  if (parser.parseKeyword("normalise") || parser.parseLParen())
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  auto map = symbolizeMap(name);
  if (!map) {
    SmallVector<StringRef> names;
    for (uint32_t number = 0; number <= getMaxEnumValForMap(); ++number)
      names.push_back(stringifyMap(static_cast<Map>(number)));
    return parser.emitError(loc)
           << "expected one of " << llvm::join(names, ", ") << "; found '"
           << name << "'";
  }
  result.addAttribute("map", MapAttr::get(b.getContext(), *map));
  for (StringRef flag : flags)
    if (succeeded(parser.parseOptionalKeyword(flag)))
      result.addAttribute(flag, b.getUnitAttr());
  return parser.parseRParen();
}

ParseResult AttentionText::parseResults(ArrayRef<StringRef> names,
                                        SmallVectorImpl<int32_t> &segments) {
  size_t first = segments.size();
  segments.append(names.size(), 0);
  size_t next = 0;
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc at = parser.getCurrentLocation();
    StringRef name;
    Type type;
    if (parser.parseKeyword(&name))
      return failure();
    while (next < names.size() && names[next] != name)
      ++next;
    if (next == names.size())
      return parser.emitError(at) << "expected '" << names[0] << "' and then '"
                                  << names[1] << "', found '" << name << "'";
    if (parser.parseType(type))
      return failure();
    result.addTypes(type);
    segments[first + next++] = 1;
  }
  return success();
}

ParseResult AttentionText::resolve(SmallVectorImpl<int32_t> &segments) {
  Builder &b = parser.getBuilder();
  Type index = b.getIndexType();
  SMLoc loc = parser.getNameLoc();
  if (parser.resolveOperands(sizes, index, result.operands) ||
      parser.resolveOperands(symbols, index, result.operands) ||
      parser.resolveOperands(termOperands, termTypes, loc, result.operands) ||
      parser.resolveOperands(values, valueTypes, loc, result.operands))
    return failure();
  for (size_t count :
       {sizes.size(), symbols.size(), termOperands.size(), values.size()})
    segments.push_back(count);
  result.addAttribute("dims", b.getDenseI64ArrayAttr(dims));
  result.addAttribute("termArity", b.getDenseI64ArrayAttr(arity));
  result.addAttribute("termMaps", b.getArrayAttr(termMaps));
  result.addAttribute("valueMaps", b.getArrayAttr(valueMaps));
  for (auto *list : {&regions, &pairs})
    for (auto &region : *list)
      result.addRegion(std::move(region));
  return success();
}

void heed::attn::printTyped(OpAsmPrinter &p, StringRef keyword,
                            ValueRange operands) {
  p.printNewline();
  p << keyword << "(" << operands << " : " << operands.getTypes() << ")";
}

void heed::attn::printOperands(OpAsmPrinter &p, AttentionLike op) {
  p << " dims(";
  llvm::interleaveComma(llvm::zip(kKindNames, op.getDims()), p, [&](auto kind) {
    p << std::get<0>(kind) << " = " << std::get<1>(kind);
  });
  p << ") sizes(" << op.getSizes() << ")";
  if (!op.getSymbols().empty())
    p << " symbols(" << op.getSymbols() << ")";
  for (unsigned t = 0; t < op.numTerms(); ++t) {
    printTyped(p, "term", op.term(t));
    p << " maps [";
    llvm::interleaveComma(op.maps(t), p, [&](AffineMap map) {
      p.printAttribute(AffineMapAttr::get(map));
    });
    p << "]";
    if (!op.pair(t).empty())
      p << " pair", printBody(p, op.pair(t));
  }
  for (unsigned v = 0; v < op.getValues().size(); ++v) {
    printTyped(p, "value", op.getValues().slice(v, 1));
    p << " maps [";
    p.printAttribute(op.getValueMaps()[v]);
    p << "]";
  }
}

void heed::attn::printRegions(OpAsmPrinter &p, AttentionLike op) {
  for (auto [name, region] :
       {std::pair("score", &op.getScore()), std::pair("where", &op.getWhere()),
        std::pair("weight", &op.getWeight()), std::pair("mask", &op.getMask())})
    if (!region->empty()) {
      p.printNewline();
      p << name;
      printBody(p, *region);
    }
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

LogicalResult heed::attn::verifyMap(AttentionLike op, Value operand,
                                    AffineMap map, ArrayRef<DimKind> allowed,
                                    const Twine &name) {
  auto type = cast<RankedTensorType>(operand.getType());
  Type element = type.getElementType();
  if (!element.isF32() && !element.isF16() && !element.isBF16())
    return op->emitOpError() << name << " has elements of " << element
                             << ", expected f32, f16 or bf16 (attention.c12)";
  if (map.getNumDims() != op.numLoopDims() ||
      map.getNumSymbols() != op.getSymbols().size() ||
      map.getNumResults() != type.getRank())
    return op->emitOpError()
           << "map of " << name << " takes " << map.getNumDims() << " dims and "
           << map.getNumSymbols() << " symbols to " << map.getNumResults()
           << " results, expected " << op.numLoopDims() << ", "
           << op.getSymbols().size() << " and " << type.getRank()
           << " (attention.c3)";
  for (unsigned d = 0; d < map.getNumDims(); ++d)
    if (map.isFunctionOfDim(d) && !llvm::is_contained(allowed, op.dimKind(d)))
      return op->emitOpError()
             << "map of " << name << " uses d" << d << ", a "
             << kKindNames[unsigned(op.dimKind(d))] << " dim (attention.c4)";
  return success();
}

/// Checks attention.c1 and c2, and that there is a map per operand.
static LogicalResult verifyCounts(AttentionLike op) {
  if (op.getDims().size() != std::size(kKindNames) ||
      llvm::any_of(op.getDims(), [](int64_t n) { return n < 0; }) ||
      op.numDims(DimKind::Key) == 0 || op.getSizes().size() != op.numLoopDims())
    return op->emitOpError() << "has " << op.getSizes().size()
                             << " sizes for dims [" << op.getDims()
                             << "], expected one each and at least one key dim "
                                "(attention.c1)";
  int64_t operands = 0;
  for (int64_t count : op.getTermArity()) {
    if (count < 1)
      return op->emitOpError("has a term without operands (attention.c2)");
    operands += count;
  }
  if (op.numTerms() == 0 || op.getValues().empty() ||
      operands != int64_t(op.getTermOperands().size()) ||
      op.getPairs().size() != op.numTerms())
    return op->emitOpError()
           << "has " << op.numTerms() << " terms over "
           << op.getTermOperands().size() << " operands and "
           << op.getValues().size()
           << " values, expected at least one of each (attention.c2)";
  if (op.getTermMaps().size() != op.getTermOperands().size() ||
      op.getValueMaps().size() != op.getValues().size())
    return op->emitOpError("has not one map per operand (attention.c3)");
  return success();
}

LogicalResult heed::attn::verifyParts(AttentionLike op) {
  using K = DimKind;
  if (failed(verifyCounts(op)))
    return failure();
  Type f32 = Float32Type::get(op->getContext());
  for (unsigned t = 0; t < op.numTerms(); ++t) {
    for (auto [k, operand] : llvm::enumerate(op.term(t)))
      if (failed(verifyMap(op, operand, op.maps(t)[k],
                           {K::Batch, K::Query, K::Key, K::Contract},
                           heed::format("operand {} of term {}", k, t))))
        return failure();
    if (!op.pair(t).empty() &&
        failed(verifyBody(op, op.pair(t), "attention.c8", "pair", 0,
                          op.term(t).size(), f32)))
      return failure();
  }
  for (auto [v, operand] : llvm::enumerate(op.getValues()))
    if (failed(verifyMap(op, operand, op.valueMap(v),
                         {K::Batch, K::Query, K::Key, K::Value},
                         heed::format("value {}", v))))
      return failure();
  unsigned indices = op.firstDim(K::Contract);
  if (failed(verifyBody(op, op.getScore(), "attention.c5", "score", indices,
                        op.numTerms(), f32)))
    return failure();
  if (!op.getWhere().empty() &&
      failed(verifyBody(op, op.getWhere(), "attention.c6", "where", indices, 0,
                        IntegerType::get(op->getContext(), 1))))
    return failure();
  if (!op.getWeight().empty() &&
      failed(verifyBody(op, op.getWeight(), "attention.c7", "weight", indices,
                        1, f32)))
    return failure();
  return verifyMask(op);
}
