//===- MaskPicture.h - the masks of a model's attentions, drawn -*- C++ -*-===//
#ifndef HEED_COMPILER_DRIVER_MASKPICTURE_H
#define HEED_COMPILER_DRIVER_MASKPICTURE_H

#include "passes/Masks/MaskTiles.h"

#include "mlir/IR/BuiltinOps.h"

namespace heed {

/// One mask of a picture.
struct MaskPanel {
  std::vector<std::string> title; ///< lines
  MaskTiles tiles;
};

/// Panels, and what is said below them.
struct MaskPicture {
  std::string model;
  std::vector<MaskPanel> panels;
  std::vector<std::string> notes; ///< lines
};

/// The masks of \p module, whose attentions have plans and solved masks, for
/// the inputs that \p inputs (name=number,number,..) gives and for small sizes
/// where the model has dims that have no value. Fails, with \p error, where
/// there is no mask or no such sizes.
mlir::FailureOr<MaskPicture> drawMasks(mlir::ModuleOp module,
                                       llvm::StringRef model,
                                       llvm::ArrayRef<std::string> inputs,
                                       std::string &error);

/// As SVG (MaskSvg.cpp).
std::string svgOf(const MaskPicture &picture);

} // namespace heed
#endif
