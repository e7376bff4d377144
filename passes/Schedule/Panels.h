//===- Panels.h - what a contraction reads along its columns ----*- C++ -*-===//
#ifndef HEED_PASSES_SCHEDULE_PANELS_H
#define HEED_PASSES_SCHEDULE_PANELS_H

#include "passes/Schedule/Rewrite.h"

namespace heed {

struct PanelShape {
  int64_t lanes, width; ///< of a vector, of a panel
  int64_t products;     ///< that \p packPanels' sum holds in its last dim
  size_t row = 1;       ///< the dim of the sum that no panel depends on
};

/// Has \p update, a sum over rows and columns, read \p panels, which depend on
/// columns alone, from packed copies. Returns these: funcs of \p kernel, or
/// inputs that are packed once; none for what has the order of a panel anyway.
llvm::SmallVector<mlir::Value> packPanels(KernelInfo &kernel,
                                          halide::UpdateOp update,
                                          llvm::ArrayRef<halide::ReadOp> panels,
                                          PanelShape shape);

} // namespace heed

#endif
