//===- Weights.h - the files of --weights -----------------------*- C++ -*-===//

#ifndef HEED_COMPILER_DRIVER_WEIGHTS_H
#define HEED_COMPILER_DRIVER_WEIGHTS_H

#include "frontend/Heed/Semantics/Semantics.h"

#include "mlir/IR/BuiltinOps.h"
#include <memory>

struct heed_weights;

namespace heed {

struct CloseWeights {
  void operator()(heed_weights *weights) const;
};
using Weights = std::unique_ptr<heed_weights, CloseWeights>;

/// Null after an error, which has been reported.
Weights openWeights(const std::vector<std::string> &files);

/// The paths \p given and those of all shards that an index among them names.
std::vector<std::string> filesOfWeights(const std::vector<std::string> &given,
                                        const heed_weights &weights);

/// What the front end asks of them.
WeightIndex indexWeights(const heed_weights &weights);

/// Looks every parameter of attn IR up, in all turns of its loops, as opening
/// the model will: name, shape and element type. Fails with diagnostics at the
/// parameters.
mlir::LogicalResult checkWeights(mlir::ModuleOp module,
                                 const heed_weights &weights);

} // namespace heed

#endif // HEED_COMPILER_DRIVER_WEIGHTS_H
