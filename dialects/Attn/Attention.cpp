//===- Attention.cpp - attn.attention: text, checks and access ------------===//
#include "dialects/Attn/AttentionLike.h"
#include "dialects/Attn/Normaliser.h"

using namespace mlir;
using namespace heed::attn;

AffineMap AttentionOp::outputMap() {
  if (auto map = getResultMap())
    return *map;
  SmallVector<AffineExpr> exprs;
  for (DimKind kind : {DimKind::Batch, DimKind::Query, DimKind::Value})
    for (unsigned k = 0; k < numDims(kind); ++k)
      exprs.push_back(getAffineDimExpr(firstDim(kind) + k, getContext()));
  return AffineMap::get(numLoopDims(), 0, exprs, getContext());
}

ParseResult AttentionOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &b = parser.getBuilder();
  AttentionText text(parser, result);
  AttentionText::Operands sink, empty;
  SmallVector<Type> sinkTypes;
  auto parseMap = [&](StringRef name) -> ParseResult {
    AffineMapAttr map;
    if (parser.parseAttribute(map))
      return failure();
    result.addAttribute(name, map);
    return success();
  };
  if (text.parseOperands())
    return failure();
  if (succeeded(parser.parseOptionalKeyword("sink")) &&
      (AttentionText::parseTyped(parser, sink, sinkTypes) ||
       parser.parseKeyword("map") || parseMap("sinkMap")))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("empty")) &&
      (parser.parseLParen() || parser.parseOperand(empty.emplace_back()) ||
       parser.parseRParen()))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("result_map")) &&
      parseMap("resultMap"))
    return failure();

  SmallVector<int32_t> operands, results{1};
  Type output;
  if (text.parseRegions() || text.parseNormaliser({"divide", "stabilise"}) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(output))
    return failure();
  result.addTypes(output);
  if (text.parseResults({"lse", "weights"}, results) ||
      text.resolve(operands) ||
      parser.resolveOperands(sink, sinkTypes, parser.getNameLoc(),
                             result.operands) ||
      parser.resolveOperands(empty, b.getF32Type(), result.operands))
    return failure();
  operands.push_back(sink.size());
  operands.push_back(empty.size());
  result.addAttribute("operandSegmentSizes", b.getDenseI32ArrayAttr(operands));
  result.addAttribute("resultSegmentSizes", b.getDenseI32ArrayAttr(results));
  return success();
}

void AttentionOp::print(OpAsmPrinter &p) {
  p.increaseIndent();
  printOperands(p, *this);
  if (getSink()) {
    printTyped(p, "sink", getSink());
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
  printRegions(p, *this);
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

LogicalResult AttentionOp::verify() {
  using K = DimKind;
  if (failed(verifyParts(*this)))
    return failure();
  if (bool(getSinkMap()) != bool(getSink()))
    return emitOpError("has not one map per operand (attention.c3)");
  if (getSink() && failed(verifyMap(*this, getSink(), *getSinkMap(),
                                    {K::Batch, K::Query}, "sink")))
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
  return success();
}
