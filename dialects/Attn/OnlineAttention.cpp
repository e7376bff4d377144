//===- OnlineAttention.cpp - attn.online_attention and attn.finish: text, -===//
// checks and access
#include "dialects/Attn/AttentionLike.h"
#include "dialects/Attn/Normaliser.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed::attn;

//===----------------------------------------------------------------------===//
// attn.online_attention
//===----------------------------------------------------------------------===//

ParseResult OnlineAttentionOp::parse(OpAsmParser &parser,
                                     OperationState &result) {
  Builder &b = parser.getBuilder();
  AttentionText text(parser, result);
  SmallVector<int32_t> operands, results{1};
  Type accumulator;
  if (text.parseOperands() || text.parseRegions() || text.parseNormaliser({}) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(accumulator))
    return failure();
  result.addTypes(accumulator);
  if (text.parseResults({"max", "sum"}, results) || text.resolve(operands))
    return failure();
  result.addAttribute("operandSegmentSizes", b.getDenseI32ArrayAttr(operands));
  result.addAttribute("resultSegmentSizes", b.getDenseI32ArrayAttr(results));
  return success();
}

void OnlineAttentionOp::print(OpAsmPrinter &p) {
  p.increaseIndent();
  printOperands(p, *this);
  printRegions(p, *this);
  p.printNewline();
  p << "normalise(" << stringifyMap(getMap()) << ")";
  p.decreaseIndent();
  p.printOptionalAttrDict((*this)->getAttrs(),
                          {"dims", "termArity", "termMaps", "valueMaps", "map",
                           "operandSegmentSizes", "resultSegmentSizes"});
  p << " : " << getAccumulator().getType();
  if (getMaximum())
    p << ", max " << getMaximum().getType();
  if (getSum())
    p << ", sum " << getSum().getType();
}

LogicalResult OnlineAttentionOp::verify() {
  if (failed(verifyParts(*this)))
    return failure();
  const Normaliser &normaliser = Normaliser::of(*this);
  if (numDims(DimKind::Key) != 1 || normaliser.hasThreshold())
    return emitOpError() << heed::format(
               "has {} and map {}, expected one and a map without a threshold "
               "(online_attention.c1)",
               heed::counted(numDims(DimKind::Key), "key dim", "key dims"),
               stringifyMap(getMap()));
  unsigned rows = numDims(DimKind::Batch) + numDims(DimKind::Query);
  auto fits = [&](Value result, unsigned rank) {
    return !result ||
           cast<RankedTensorType>(result.getType()).getRank() == rank;
  };
  if (!fits(getAccumulator(), rows + numDims(DimKind::Value)) ||
      !fits(getMaximum(), rows) || !fits(getSum(), rows))
    return emitOpError() << "has results " << getResultTypes()
                         << ", expected f32 of ranks "
                         << rows + numDims(DimKind::Value) << " and " << rows
                         << " (online_attention.c2)";
  if (getMaximum() && (!normaliser.isShiftable || !getSum()))
    return emitOpError("has a maximum in its state, expected map exp and a sum "
                       "with it (online_attention.c3)");
  return success();
}

//===----------------------------------------------------------------------===//
// attn.finish
//===----------------------------------------------------------------------===//

AffineMap FinishOp::outputMap() {
  if (auto map = getResultMap())
    return *map;
  return AffineMap::getMultiDimIdentityMap(
      cast<RankedTensorType>(getAccumulator().getType()).getRank(),
      getContext());
}

static bool isReal(Type type) {
  return type.isF32() || type.isF16() || type.isBF16();
}

LogicalResult FinishOp::verify() {
  auto rankOf = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getRank();
  };
  int64_t rank = rankOf(getAccumulator()),
          rows = getSum() ? rankOf(getSum()) : rank;
  auto fits = [&](Value value) { return !value || rankOf(value) == rows; };
  if (rows > rank || !fits(getMaximum()) || (getMaximum() && !getSum()))
    return emitOpError() << "takes a state of types "
                         << getOperands().getTypes()
                         << ", expected max and sum of one rank, at most that "
                            "of acc, and max with sum alone (finish.c1)";
  if ((!getSum() && (getSink() || getEmpty() || getLse())) ||
      (getSink() && getEmpty()))
    return emitOpError("has a sink, lse or a value for empty rows, expected a "
                       "sum for them, and no such value beside a sink "
                       "(finish.c2)");
  if (bool(getSink()) != bool(getSinkMap()) ||
      (getSymbols().size() && !getSink()))
    return emitOpError("has a map or symbols without a sink (finish.c3)");
  if (getSink()) {
    auto type = cast<RankedTensorType>(getSink().getType());
    AffineMap map = *getSinkMap();
    bool rowsAlone = true;
    for (int64_t d = rows; d < rank && d < map.getNumDims(); ++d)
      rowsAlone &= !map.isFunctionOfDim(d);
    if (!isReal(type.getElementType()) || map.getNumDims() != rank ||
        map.getNumSymbols() != getSymbols().size() ||
        map.getNumResults() != type.getRank() || !rowsAlone)
      return emitOpError() << "has a sink " << type << " at "
                           << AffineMapAttr::get(map) << ", expected a map of "
                           << rank << " dims, of which it uses the first "
                           << rows << ", and " << getSymbols().size()
                           << " symbols to f32, f16 or bf16 (finish.c3)";
  }
  if (auto map = getResultMap();
      map && (map->getNumDims() != rank || !map->isPermutation()))
    return emitOpError() << "has result map " << AffineMapAttr::get(*map)
                         << ", expected a permutation of " << rank
                         << " axes (finish.c4)";
  if (rankOf(getOutput()) != rank ||
      !isReal(cast<RankedTensorType>(getOutput().getType()).getElementType()) ||
      !fits(getLse()))
    return emitOpError() << "has results " << getResultTypes()
                         << ", expected f32, f16 or bf16 of rank " << rank
                         << " and f32 of rank " << rows << " (finish.c5)";
  return success();
}
