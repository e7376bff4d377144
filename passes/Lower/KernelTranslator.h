//===- KernelTranslator.h - tensors of a kernel as Halide funcs -*- C++ -*-===//
//
// Every tensor of the kernel becomes something that can be read at coordinates:
// a buffer, a func, or a scalar that fills it. Halide's first dim is the
// innermost one, so vars stand in the reverse order of a tensor's axes; var
// "d2" is axis 2. Nothing is decided here about where and how a func is
// computed. Private to KernelToHalide.cpp, KernelGeneric.cpp,
// KernelSoftmax.cpp, KernelThreshold.cpp and KernelRecurrence.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef HEED_PASSES_LOWER_KERNELTRANSLATOR_H
#define HEED_PASSES_LOWER_KERNELTRANSLATOR_H

#include "dialects/Attn/Normaliser.h"
#include "passes/Lower/Expressions.h"
#include "passes/Lower/KernelToHalide.h"
#include "passes/Lower/StreamingAttention.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

namespace heed {

/// What stands for a tensor of the kernel.
struct KernelSource {
  mlir::Value func;     ///< a buffer or func, or null
  unsigned element = 0; ///< of its tuple
  mlir::Value scalar;   ///< the value everywhere, if there is no func
  llvm::SmallVector<Extent> extents; ///< outermost first, as the tensor's axes
};

class KernelTranslator : public TensorReads {
public:
  KernelTranslator(mlir::OpBuilder &b, mlir::func::FuncOp kernel,
                   const halide::Target &target,
                   attn::Form form = attn::Form::Tiles,
                   llvm::BitVector weights = {})
      : b(b), kernel(kernel), target(target), form(form),
        weights(std::move(weights)) {}

  llvm::LogicalResult run(TranslatedKernel &result);
  /// Only what the mask of the request needs, and then its tables.
  llvm::LogicalResult runMaskTables(const MaskRequest &request);
  /// Only what \p op reads, and then whether its scores are bounded.
  llvm::LogicalResult runScoreBound(StreamedAttention op);

  mlir::FailureOr<mlir::Value>
  read(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
       llvm::ArrayRef<mlir::Value> coordinates) override;
  mlir::FailureOr<Extent> extent(mlir::OpBuilder &b, mlir::Value tensor,
                                 int64_t axis) override;

  /// Tells the host which extents the expressions of \p pipeline stand.
  void setLargest(halide::PipelineOp pipeline) {
    if (largest < attn::kMaxExtent)
      pipeline->setAttr(attn::kLargestAttr, b.getI64IntegerAttr(largest));
  }

private:
  friend class GenericFunc;
  friend class SoftmaxFuncs;
  friend class ElementScanFuncs;
  friend class SumScanFuncs;

  llvm::LogicalResult translate();
  void arguments();
  llvm::LogicalResult generic(mlir::linalg::LinalgOp op);
  llvm::LogicalResult softmax(mlir::Operation *op, mlir::Value input,
                              mlir::Value sink, llvm::ArrayRef<int64_t> axes,
                              mlir::Region &where, bool log);
  llvm::LogicalResult threshold(attn::ThresholdOp op);
  llvm::LogicalResult recurrence(attn::RecurrenceOp op);
  llvm::LogicalResult elementScan(attn::ElementScanOp op);
  llvm::LogicalResult sumScan(attn::SumScanOp op);
  llvm::LogicalResult triangularSolve(attn::TriangularSolveOp op);
  llvm::LogicalResult attention(StreamedAttention op);
  llvm::LogicalResult results(mlir::func::ReturnOp op);

  /// A new func of \p rank dims; \p body gets them outermost first.
  using Body =
      llvm::function_ref<mlir::FailureOr<llvm::SmallVector<mlir::Value>>(
          mlir::OpBuilder &, llvm::ArrayRef<mlir::Value>)>;
  mlir::FailureOr<KernelFunc *> func(mlir::Location loc, llvm::StringRef what,
                                     mlir::TypeRange types,
                                     llvm::ArrayRef<Extent> extents, Body body);
  /// An update of \p f over \p reductions (outermost first); \p body gets its
  /// dims and the reduction vars.
  using UpdateBody =
      llvm::function_ref<mlir::FailureOr<llvm::SmallVector<mlir::Value>>(
          mlir::OpBuilder &, llvm::ArrayRef<mlir::Value>,
          llvm::ArrayRef<mlir::Value>)>;
  llvm::LogicalResult update(mlir::Location loc, KernelFunc &f,
                             llvm::ArrayRef<Extent> reductions,
                             UpdateBody body);
  /// The threshold of each of \p rows; \p score gets a row's dims and a place
  /// in it, and gives what is less the row's maximum.
  mlir::FailureOr<KernelFunc *>
  threshold(mlir::Location loc, const attn::Normaliser &normaliser,
            mlir::FloatType type, llvm::ArrayRef<Extent> rows,
            llvm::ArrayRef<Extent> reduced,
            llvm::function_ref<mlir::FailureOr<mlir::Value>(
                mlir::OpBuilder &, llvm::ArrayRef<mlir::Value>,
                llvm::ArrayRef<mlir::Value>)>
                score);
  /// What \p region of a recurrence makes of \p elements of its states at
  /// \p dims, outermost first, in \p step.
  llvm::LogicalResult stepOf(mlir::OpBuilder &inner, mlir::Region &region,
                             mlir::Value step, llvm::ArrayRef<mlir::Value> dims,
                             llvm::ArrayRef<mlir::Value> elements,
                             llvm::SmallVectorImpl<mlir::Value> &values);
  /// A func that is the result \p tensor of the kernel; \p names and \p extents
  /// outermost first.
  halide::FuncOp addOutput(mlir::Location loc, mlir::Type type,
                           llvm::ArrayRef<std::string> names,
                           llvm::ArrayRef<Extent> extents, mlir::Value tensor,
                           halide::UpdateOp::BodyFn body);
  mlir::Value size32(mlir::Value size) {
    return IndexMath::narrow(b, size.getLoc(), map.lookupOrDefault(size));
  }
  Extent fixedExtent(mlir::Location loc, int64_t value) {
    return {constantI32(b, loc, value), value};
  }

  mlir::OpBuilder &b;
  mlir::func::FuncOp kernel;
  const halide::Target &target;
  attn::Form form;
  llvm::BitVector weights; ///< arguments that are the same in every call
  KernelInfo *info = nullptr;
  llvm::SmallVector<MaskRequest, 1> masks;
  mlir::Operation *stopAt = nullptr;
  mlir::IRMapping map; ///< scalars
  llvm::DenseMap<mlir::Value, KernelSource> sources;
  unsigned counter = 0;
};

/// From a tensor's axes to a func's vars, or back.
inline llvm::SmallVector<mlir::Value>
reversed(llvm::ArrayRef<mlir::Value> values) {
  return llvm::SmallVector<mlir::Value>(llvm::reverse(values));
}

/// Lets a sum be reordered and its products fused with it, as the language
/// allows.
void relaxSums(llvm::ArrayRef<mlir::Value> combined);

} // namespace heed

#endif
