//===- Bufferization.cpp - host ops from tensors to memrefs ---------------===//
//
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"

using namespace mlir;
using namespace mlir::bufferization;

namespace heed::attn {
namespace {

/// A parameter, or what was computed from parameters, is a buffer of the
/// model's: it exists before the call and is never written.
template <typename OpTy>
struct WeightInterface
    : BufferizableOpInterface::ExternalModel<WeightInterface<OpTy>, OpTy> {
  bool bufferizesToAllocation(Operation *, Value) const { return false; }
  bool isWritable(Operation *, Value, const AnalysisState &) const {
    return false;
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &,
                          BufferizationState &) const {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    replaceOpWithNewBufferizedOp<OpTy>(
        rewriter, op,
        TypeRange{MemRefType::get(type.getShape(), type.getElementType())},
        op->getOperands(), op->getAttrs());
    return success();
  }
  FailureOr<BufferLikeType> getBufferType(Operation *, Value value,
                                          const BufferizationOptions &,
                                          const BufferizationState &,
                                          SmallVector<Value> &) const {
    auto type = cast<RankedTensorType>(value.getType());
    return cast<BufferLikeType>(
        MemRefType::get(type.getShape(), type.getElementType()));
  }
};

struct RequireInRangeInterface
    : BufferizableOpInterface::ExternalModel<RequireInRangeInterface,
                                             RequireInRangeOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *, OpOperand &,
                                      const AnalysisState &) const {
    return {};
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto check = cast<RequireInRangeOp>(op);
    FailureOr<Value> buffer =
        getBuffer(rewriter, check.getTensor(), options, state);
    if (failed(buffer))
      return failure();
    // What the positions are called in a message.
    auto attributes = llvm::to_vector(op->getDiscardableAttrs());
    auto buffered = replaceOpWithNewBufferizedOp<RequireInRangeOp>(
        rewriter, op, *buffer, check.getLo(), check.getHi(), check.getWhat());
    buffered->setDiscardableAttrs(attributes);
    return success();
  }
};

/// In place: the result is the state's buffer.
struct UpdateStateInterface
    : BufferizableOpInterface::ExternalModel<UpdateStateInterface,
                                             UpdateStateOp> {
  static bool isState(Operation *op, OpOperand &operand) {
    return &operand == &cast<UpdateStateOp>(op).getStateMutable();
  }
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true; // of the state, what stays
  }
  bool bufferizesToMemoryWrite(Operation *op, OpOperand &operand,
                               const AnalysisState &) const {
    return isState(op, operand);
  }
  AliasingValueList getAliasingValues(Operation *op, OpOperand &operand,
                                      const AnalysisState &) const {
    if (!isState(op, operand))
      return {};
    return {{op->getResult(0), BufferRelation::Equivalent}};
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto update = cast<UpdateStateOp>(op);
    SmallVector<Value> buffers;
    for (Value operand : op->getOperands()) {
      if (!isa<TensorType>(operand.getType())) {
        buffers.push_back(operand);
        continue;
      }
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      buffers.push_back(*buffer);
    }
    ValueRange others = ValueRange(buffers).drop_front(2);
    Value mask = update.getMask() ? others.back() : Value();
    auto write = WriteStateOp::create(
        rewriter, op->getLoc(), buffers[0], buffers[1],
        mask ? others.drop_back() : others, mask, update.getAxes(),
        update.getMaps(), update.getCheckDistinct());
    write->setAttr(kNameAttr, rewriter.getStringAttr(update.distinctMessage()));
    replaceOpWithBufferizedValues(rewriter, op, buffers[1]);
    return success();
  }
};

} // namespace

void registerBufferization(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, AttnDialect *) {
    ParamOp::attachInterface<WeightInterface<ParamOp>>(*context);
    KeptOp::attachInterface<WeightInterface<KeptOp>>(*context);
    RequireInRangeOp::attachInterface<RequireInRangeInterface>(*context);
    UpdateStateOp::attachInterface<UpdateStateInterface>(*context);
  });
}

} // namespace heed::attn
