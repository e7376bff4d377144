//===- Interfaces.td - what the ops of an attention share ---------------------------------===//

#ifndef HEED_DIALECTS_ATTN_INTERFACES_TD
#define HEED_DIALECTS_ATTN_INTERFACES_TD

include "mlir/IR/OpBase.td"

class Attn_Part<string type, string accessor> : InterfaceMethod<"", type, accessor>;

def Attn_AttentionLike : OpInterface<"AttentionLike"> {
  let cppNamespace = "::heed::attn";
  let description = [{
    Scores, mask, normaliser and values over named kinds of loop dims: what `attn.attention` and
    `attn.online_attention` compute over, whatever they make of it.
  }];
  let methods = [
    Attn_Part<"::mlir::OperandRange", "getSizes">, Attn_Part<"::mlir::MutableOperandRange", "getSizesMutable">,
    Attn_Part<"::mlir::OperandRange", "getSymbols">, Attn_Part<"::mlir::OperandRange", "getTermOperands">,
    Attn_Part<"::mlir::OperandRange", "getValues">, Attn_Part<"::llvm::ArrayRef<int64_t>", "getDims">,
    Attn_Part<"::llvm::ArrayRef<int64_t>", "getTermArity">, Attn_Part<"::mlir::ArrayAttr", "getTermMaps">,
    Attn_Part<"::mlir::ArrayAttr", "getValueMaps">, Attn_Part<"::heed::attn::Map", "getMap">,
    Attn_Part<"::mlir::Region &", "getScore">, Attn_Part<"::mlir::Region &", "getWhere">,
    Attn_Part<"::mlir::Region &", "getWeight">, Attn_Part<"::mlir::Region &", "getMask">,
    Attn_Part<"::mlir::MutableArrayRef<::mlir::Region>", "getPairs">,
    InterfaceMethod<"Whether weights are divided by the sum of their row, here or at its end.", "bool", "isDivided">
  ];
  let extraSharedClassDeclaration = [{
    /// Number of loop dims of a kind, and the position of its first one.
    unsigned numDims(DimKind kind) { return $_op.getDims()[unsigned(kind)]; }
    unsigned firstDim(DimKind kind) { return detail::firstDim($_op.getDims(), kind); }
    unsigned numLoopDims() { return firstDim(DimKind::Value) + numDims(DimKind::Value); }
    DimKind dimKind(unsigned dim) { return detail::dimKind($_op.getDims(), dim); }

    unsigned numTerms() { return $_op.getTermArity().size(); }
    /// Operands, maps and the pair region of score term \p term. The region is empty when the term is a product.
    ::mlir::OperandRange term(unsigned term) { return detail::term($_op, term); }
    ::llvm::SmallVector<::mlir::AffineMap> maps(unsigned term) { return detail::maps($_op, term); }
    ::mlir::Region &pair(unsigned term) { return $_op.getPairs()[term]; }
    /// Contract dims that occur in the maps of \p term: those that it is summed over.
    ::llvm::SmallVector<unsigned> contractDims(unsigned term) { return detail::contractDims($_op, term); }

    ::mlir::AffineMap valueMap(unsigned value) {
      return ::llvm::cast<::mlir::AffineMapAttr>($_op.getValueMaps()[value]).getValue();
    }
    /// 1 or -1 if \p position in a term's or value's tensor is an offset, `j - i + c` or `i - j + c`, of a query dim i
    /// and a key dim j: those beyond the tensor's ends read the ends.
    std::optional<int> offsetSign(::mlir::AffineExpr position) { return detail::offsetSign($_op, position); }
    /// How it is computed, or null before that is decided.
    PlanAttr plan() { return $_op->template getAttrOfType<PlanAttr>("attn.plan"); }
  }];
}

#endif
