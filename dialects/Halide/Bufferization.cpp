// One-shot bufferisation of halide.call: the outs' buffers are written in
// place.

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "dialects/Halide/HalideDialect.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace heed::halide;

namespace {

struct CallBufferization
    : bufferization::DstBufferizableOpInterfaceExternalModel<CallBufferization,
                                                             CallOp> {
  // Outs are overwritten whole, so their old contents need not be kept.
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const bufferization::AnalysisState &) const {
    return !cast<CallOp>(op).isDpsInit(&operand);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const bufferization::BufferizationOptions &options,
                          bufferization::BufferizationState &state) const {
    auto call = cast<CallOp>(op);
    auto toBuffers = [&](ValueRange values,
                         SmallVector<Value> &buffers) -> LogicalResult {
      for (Value value : values) {
        if (!isa<TensorType>(value.getType())) {
          buffers.push_back(value);
          continue;
        }
        FailureOr<Value> buffer =
            bufferization::getBuffer(rewriter, value, options, state);
        if (failed(buffer))
          return failure();
        buffers.push_back(*buffer);
      }
      return success();
    };
    SmallVector<Value> inputs, named, outs;
    rewriter.setInsertionPoint(call);
    if (failed(toBuffers(call.getInputs(), inputs)) ||
        failed(toBuffers(call.getNamed(), named)) ||
        failed(toBuffers(call.getOuts(), outs)))
      return failure();
    SmallVector<Value> replacements;
    for (auto [out, buffer] : llvm::zip(call.getOuts(), outs))
      if (isa<TensorType>(out.getType()))
        replacements.push_back(buffer);
    CallOp::create(rewriter, call.getLoc(), TypeRange(), call.getCalleeAttr(),
                   inputs, named, outs, call.getNamesAttr(),
                   call.getOtherwiseAttr());
    bufferization::replaceOpWithBufferizedValues(rewriter, call, replacements);
    return success();
  }
};

} // namespace

void heed::halide::registerBufferization(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, HalideDialect *) {
    CallOp::attachInterface<CallBufferization>(*context);
    context->loadDialect<bufferization::BufferizationDialect>();
  });
}
