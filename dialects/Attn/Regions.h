//===- Regions.h - attn ops' regions as text --------------------*- C++ -*-===//
//
#ifndef HEED_DIALECTS_ATTN_REGIONS_H
#define HEED_DIALECTS_ATTN_REGIONS_H

#include "mlir/IR/OpImplementation.h"

namespace heed::attn {

/// Parses `(%a, %b : index, %c : f32) { ... }`: arguments in groups of one
/// type, a group without one is of index.
mlir::ParseResult parseBody(mlir::OpAsmParser &parser, mlir::Region &region);

/// Prints a body so that parseBody reads it; nothing for an empty region.
void printBody(mlir::OpAsmPrinter &printer, mlir::Region &region);

/// `where (...) { ... }`, or nothing.
mlir::ParseResult parseWhere(mlir::OpAsmParser &parser, mlir::Region &region);
void printWhere(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                mlir::Region &region);

/// A body that is never left away.
mlir::ParseResult parseHold(mlir::OpAsmParser &parser, mlir::Region &region);
void printHold(mlir::OpAsmPrinter &printer, mlir::Operation *op,
               mlir::Region &region);
mlir::ParseResult parseNext(mlir::OpAsmParser &parser, mlir::Region &region);
void printNext(mlir::OpAsmPrinter &printer, mlir::Operation *op,
               mlir::Region &region);

/// Checks that \p region takes \p indices indices and then \p reals f32, yields
/// one \p result, and holds nothing that writes. \p constraint is the number
/// that a failure cites, \p name the region's name.
mlir::LogicalResult verifyBody(mlir::Operation *op, mlir::Region &region,
                               llvm::StringRef constraint, llvm::StringRef name,
                               unsigned indices, unsigned reals,
                               mlir::Type result);

} // namespace heed::attn

#endif
