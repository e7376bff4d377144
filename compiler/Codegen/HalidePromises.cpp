// What it means when libHalide finds a promise broken.

#include "compiler/Codegen/HalidePromises.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace heed;

bool heed::saysGuaranteedToFail(StringRef message) {
  return message.contains("guaranteed to fail an assertion");
}

Operation *heed::explainBrokenPromise(halide::PipelineOp pipeline,
                                      std::string &message) {
  // Var, func (with a number behind '$' where libHalide has made a copy), what
  // was promised, what is computed.
  static const llvm::Regex pattern(
      "halide_error_explicit_bounds_too_small\\(\"([^\"]*)\", "
      "\"([^\"$]*)[^\"]*\", (.*), (.*), (.*), (.*)\\)");
  SmallVector<StringRef> match;
  if (!pattern.match(message, &match))
    return nullptr;
  Operation *promise = nullptr;
  pipeline->walk([&](Operation *op) {
    if (isa<halide::BoundVarOp, halide::BoundExtentOp>(op) &&
        halide::getFuncName(op->getOperand(0)) == match[2] &&
        op->getAttrOfType<StringAttr>("var").getValue() == match[1])
      promise = op;
  });
  if (promise)
    message =
        ("'" + promise->getName().getStringRef() + "' promises " + match[3] +
         " to " + match[4] + " for '" + match[1] + "' of '" + match[2] +
         "', but " + match[5] + " to " + match[6] + " is computed (promise.c1)")
            .str();
  return promise;
}
