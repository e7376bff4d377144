//===- AttentionParts.cpp - an attention to be built anew -----------------===//
#include "passes/Plan/AttentionParts.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace heed;

AttentionParts::AttentionParts(attn::AttentionOp op)
    : output(op.getOutput().getType()),
      lse(op.getLse() ? op.getLse().getType() : Type()), dims(op.getDims()),
      sizes(op.getSizes()), symbols(op.getSymbols()),
      outputMap(op.outputMap()) {
  for (unsigned number = 0; number < op.numTerms(); ++number) {
    numbers.push_back(number);
    auto &term = terms.emplace_back();
    for (auto [tensor, map] : llvm::zip(op.term(number), op.maps(number)))
      term.push_back({tensor, map});
  }
  for (auto [number, tensor] : llvm::enumerate(op.getValues()))
    values.push_back({tensor, op.valueMap(number)});
  if (op.getSink())
    sink = {op.getSink(), op.getSinkMapAttr().getValue()};
}

attn::AttentionOp AttentionParts::build(OpBuilder &b,
                                        attn::AttentionOp op) const {
  SmallVector<Value> termOperands, valueOperands, used;
  SmallVector<int64_t> arity;
  SmallVector<AffineMap> all;
  for (ArrayRef<Operand> term : terms) {
    arity.push_back(term.size());
    for (const Operand &operand : term) {
      termOperands.push_back(operand.tensor);
      all.push_back(operand.map);
    }
  }
  for (const Operand &operand : values) {
    valueOperands.push_back(operand.tensor);
    all.push_back(operand.map);
  }
  if (sink)
    all.push_back(sink->map);
  SmallVector<AffineExpr> renamed(symbols.size(), b.getAffineConstantExpr(0));
  for (unsigned s = 0; s < symbols.size(); ++s)
    if (llvm::any_of(all, [&](AffineMap map) {
          return s < map.getNumSymbols() && map.isFunctionOfSymbol(s);
        })) {
      renamed[s] = b.getAffineSymbolExpr(used.size());
      used.push_back(symbols[s]);
    }
  for (AffineMap &map : all)
    map = map.replaceDimsAndSymbols(
        {}, ArrayRef(renamed).take_front(map.getNumSymbols()), map.getNumDims(),
        used.size());
  ArrayRef<AffineMap> maps(all);
  auto inOrder = llvm::to_vector(
      llvm::map_range(outputMap.getResults(), [](AffineExpr expr) {
        return cast<AffineDimExpr>(expr).getPosition();
      }));
  AffineMapAttr sinkMap, resultMap;
  if (sink)
    sinkMap = AffineMapAttr::get(maps.back());
  if (!llvm::is_sorted(inOrder))
    resultMap = AffineMapAttr::get(outputMap);
  auto fresh = attn::AttentionOp::create(
      b, op.getLoc(), output, lse, Type(), sizes, used, termOperands,
      valueOperands, sink ? sink->tensor : Value(), op.getEmpty(),
      b.getDenseI64ArrayAttr(dims), b.getDenseI64ArrayAttr(arity),
      b.getAffineMapArrayAttr(maps.take_front(termOperands.size())),
      b.getAffineMapArrayAttr(
          maps.slice(termOperands.size(), valueOperands.size())),
      sinkMap, resultMap, op.getMapAttr(), op.getDivideAttr(),
      op.getStabiliseAttr(), terms.size());
  IRMapping mapping;
  op.getScore().cloneInto(&fresh.getScore(), mapping);
  op.getWhere().cloneInto(&fresh.getWhere(), mapping);
  op.getWeight().cloneInto(&fresh.getWeight(), mapping);
  for (auto [place, number] : llvm::enumerate(numbers))
    op.pair(number).cloneInto(&fresh.pair(place), mapping);
  fresh->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return fresh;
}
