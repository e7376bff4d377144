//===- MaskTables.h - what a mask's tiles need ------------------*- C++ -*-===//
//
// A pipeline that runs before an attention whose mask depends on data, or is a
// union of ranges. It computes the tables of the mask, and for each tile of
// queries a row of numbers: between which blocks of keys all happens, and the
// ends of the union's pieces. Its size is that of the queries and keys divided
// by those of a tile and a block.
#ifndef HEED_PASSES_LOWER_MASKTABLES_H
#define HEED_PASSES_LOWER_MASKTABLES_H

#include "dialects/Halide/HalideDialect.h"
#include "passes/Lower/MaskExpressions.h"

namespace heed {

/// One of the tables, as its caller allocates it: axes outermost first.
struct MaskArray {
  std::string name; ///< of the input of the attention's pipeline
  mlir::Type element;
  struct Axis {
    std::optional<unsigned> dim; ///< a loop dim of the attention, or none
    int64_t size; ///< elements of the dim for one of the table; or the extent
    int64_t more = 0; ///< of the table, behind those
  };
  llvm::SmallVector<Axis> axes;
};

/// The inputs that hold table \p number, \p table: what is least and greatest,
/// and, where it may be, whether a value is odd.
llvm::SmallVector<std::string> maskTableNames(const MaskTable &table,
                                              size_t number);
/// The input that holds the rows of the tiles.
constexpr llvm::StringLiteral kMaskRangeInput = "mask_range";

/// The input that says of each tile and piece of keys whether it is live, where
/// the condition is evaluated.
constexpr llvm::StringLiteral kMaskLiveInput = "mask_live";

/// The tables of \p op, in the order of the pipeline's outputs.
llvm::SmallVector<MaskArray> maskArrays(attn::AttentionLike op,
                                        const MaskBounds &bounds,
                                        const MaskTiling &tiling);

/// Writes the pipeline's funcs, outputs and schedule at \p b.
mlir::LogicalResult writeMaskTables(mlir::OpBuilder &b, attn::AttentionLike op,
                                    const MaskBounds &bounds,
                                    const MaskTiling &tiling,
                                    const mlir::IRMapping &scalars,
                                    TensorReads &tensors);

} // namespace heed

#endif
