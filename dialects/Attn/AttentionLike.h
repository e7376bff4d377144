//===- AttentionLike.h - text and checks that attentions share --*- C++ -*-===//
#ifndef HEED_DIALECTS_ATTN_ATTENTIONLIKE_H
#define HEED_DIALECTS_ATTN_ATTENTIONLIKE_H

#include "dialects/Attn/Dialect.h"

namespace heed::attn {

/// The parts of an attention as its text has them, until they are resolved.
class AttentionText {
public:
  using Operands = llvm::SmallVector<mlir::OpAsmParser::UnresolvedOperand>;
  AttentionText(mlir::OpAsmParser &parser, mlir::OperationState &result)
      : parser(parser), result(result) {}

  /// `dims(..) sizes(..) symbols(..)`, terms and values.
  mlir::ParseResult parseOperands();
  /// `score`, `where`, `weight` and `mask`.
  mlir::ParseResult parseRegions();
  /// `normalise(map flag ..)`.
  mlir::ParseResult parseNormaliser(llvm::ArrayRef<llvm::StringRef> flags);
  /// `, name type` for those of \p names that are there, in this order; which
  /// are is added to \p segments.
  mlir::ParseResult parseResults(llvm::ArrayRef<llvm::StringRef> names,
                                 llvm::SmallVectorImpl<int32_t> &segments);
  /// Operands, attributes and regions of all this; the numbers of operands are
  /// added to \p segments.
  mlir::ParseResult resolve(llvm::SmallVectorImpl<int32_t> &segments);

  /// Parses `(%a, %b : type, type)`.
  static mlir::ParseResult parseTyped(mlir::OpAsmParser &parser,
                                      Operands &operands,
                                      llvm::SmallVectorImpl<mlir::Type> &types);

private:
  mlir::ParseResult parseDims();
  mlir::ParseResult parseMaps(llvm::SmallVectorImpl<mlir::Attribute> &maps);

  mlir::OpAsmParser &parser;
  mlir::OperationState &result;
  Operands sizes, symbols, termOperands, values;
  llvm::SmallVector<mlir::Type> termTypes, valueTypes;
  llvm::SmallVector<int64_t> dims, arity;
  llvm::SmallVector<mlir::Attribute> termMaps, valueMaps;
  llvm::SmallVector<std::unique_ptr<mlir::Region>> regions, pairs;
};

/// Print what `AttentionText` parses.
void printOperands(mlir::OpAsmPrinter &p, AttentionLike op);
void printRegions(mlir::OpAsmPrinter &p, AttentionLike op);
void printTyped(mlir::OpAsmPrinter &p, llvm::StringRef keyword,
                mlir::ValueRange operands);

/// Checks attention.c1 to c8, c12 and c15 of any op that has these parts.
llvm::LogicalResult verifyParts(AttentionLike op);
/// Checks one operand's map: attention.c3, c4 and c12.
llvm::LogicalResult verifyMap(AttentionLike op, mlir::Value operand,
                              mlir::AffineMap map,
                              llvm::ArrayRef<DimKind> allowed,
                              const llvm::Twine &name);

} // namespace heed::attn

#endif
