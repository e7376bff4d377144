//===- VerifyFrontEnd.cpp - the IR that a front end makes -----------------===//
#include "passes/Contract.h"
#include "passes/Passes.h"
#include "support/Format.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"

namespace heed {
#define GEN_PASS_DEF_ATTNVERIFYFRONTEND
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

constexpr StringRef kElements[] = {"f32", "f16", "bf16", "i32",
                                   "i64", "i8",  "i1"};
constexpr StringRef kScalars[] = {"f32", "i32", "i64", "i1"};

/// front.c1 to front.c3 for one argument or result.
LogicalResult checkSignature(func::FuncOp model, const Twine &what, Type type,
                             DictionaryAttr attrs, bool isResult,
                             llvm::StringSet<> &names) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor ? !isScalarOf(tensor.getElementType(), kElements)
             : isResult || !isScalarOf(type, kScalars))
    return model.emitOpError()
           << what << " is of " << type << ", expected a ranked tensor"
           << (isResult ? "" : ", f32, i32, i64 or i1") << " (front.c2)";
  auto name = attrs ? attrs.getAs<StringAttr>(attn::kNameAttr) : StringAttr();
  if (!name || name.empty() || !names.insert(name.getValue()).second)
    return model.emitOpError() << what << " has no " << attn::kNameAttr
                               << " that no other one has (front.c3)";
  auto dims = attrs.getAs<ArrayAttr>(attn::kDimsAttr);
  if (tensor && tensor.getRank() > 0 &&
      (!dims || int64_t(dims.size()) != tensor.getRank() ||
       !llvm::all_of(dims, llvm::IsaPred<StringAttr>)))
    return model.emitOpError()
           << what << " has rank " << tensor.getRank() << ", expected as many "
           << attn::kDimsAttr << " (front.c3)";
  return success();
}

bool isMathematics(Operation *op) {
  return isNamed(op, {"linalg.", "attn.softmax", "attn.log_softmax"});
}

struct VerifyFrontEnd : heed::impl::AttnVerifyFrontEndBase<VerifyFrontEnd> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    bool hasModel = false;
    for (Operation &op : *module.getBody()) {
      auto model = dyn_cast<func::FuncOp>(op);
      if (!model || !model->hasAttr(attn::kModelAttr) || model.isPrivate() ||
          model.isExternal()) {
        op.emitOpError("expected a public func.func with a body and ")
            << attn::kModelAttr << " (front.c1)";
        return signalPassFailure();
      }
      hasModel = true;
      if (failed(checkModel(model)))
        return signalPassFailure();
    }
    if (!hasModel) {
      module.emitOpError("holds no model (front.c1)");
      signalPassFailure();
    }
  }

private:
  LogicalResult checkModel(func::FuncOp model) {
    llvm::StringSet<> arguments, results, states;
    for (unsigned k = 0; k < model.getNumArguments(); ++k)
      if (failed(checkSignature(model, format("argument {}", k),
                                model.getArgument(k).getType(),
                                model.getArgAttrDict(k), false, arguments)))
        return failure();
    for (unsigned k = 0; k < model.getNumResults(); ++k)
      if (failed(checkSignature(
              model, format("result {}", k), model.getResultTypes()[k],
              model.getResultAttrDict(k), true,
              model.getResultAttr(k, attn::kStateAttr) ? states : results)))
        return failure();
    dims.clear();
    mathematics = nullptr;
    return checkEach(model, [&](Operation *op) { return checkOp(model, op); });
  }

  /// Long: one rule after the other.
  LogicalResult checkOp(func::FuncOp model, Operation *op) {
    if (!isNamed(op, {"func.func",
                      "func.return",
                      "arith.",
                      "math.",
                      "scf.",
                      "linalg.generic",
                      "linalg.index",
                      "linalg.yield",
                      "linalg.fill",
                      "tensor.dim",
                      "tensor.empty",
                      "tensor.extract",
                      "tensor.extract_slice",
                      "tensor.insert_slice",
                      "tensor.expand_shape",
                      "tensor.collapse_shape",
                      "tensor.cast",
                      "attn.param",
                      "attn.require",
                      "attn.require_in_range",
                      "attn.softmax",
                      "attn.log_softmax",
                      "attn.yield",
                      "attn.scan",
                      "attn.step",
                      "attn.update_state"}))
      return op->emitOpError("is no op that a front end makes (front.c4)");
    if (auto dim = dyn_cast<tensor::DimOp>(op))
      if (failed(checkDim(dim)))
        return failure();
    // In a layer loop, and where a check reads a computed size, there is
    // mathematics before it.
    if (op->getParentOp() == model) {
      if (isMathematics(op))
        mathematics = op;
      if (isa<attn::RequireOp>(op) && mathematics) {
        InFlightDiagnostic diag =
            op->emitOpError("stands after mathematics (front.c6)");
        diag.attachNote(mathematics->getLoc()) << "here";
        return diag;
      }
    }
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      for (AffineMap map : generic.getIndexingMapsArray())
        if (!map.isProjectedPermutation())
          return op->emitOpError("reads or writes through ")
                 << AffineMapAttr::get(map)
                 << ", expected a projected permutation (front.c7)";
      for (Value init : generic.getDpsInits())
        if (!init.getDefiningOp<tensor::EmptyOp>() &&
            !init.getDefiningOp<linalg::FillOp>())
          return op->emitOpError("writes to a tensor that is neither new nor "
                                 "filled (front.c7)");
    }
    for (Type type : op->getResultTypes())
      if (auto shaped = dyn_cast<ShapedType>(type);
          shaped && !isScalarOf(shaped.getElementType(), kElements))
        return op->emitOpError("makes ")
               << type
               << ", expected elements of f32, f16, bf16, i32, i64, i8 "
                  "or i1 (front.c8)";
    return success();
  }

  LogicalResult checkDim(tensor::DimOp dim) {
    Value source = dim.getSource();
    bool isInput = source.getDefiningOp<attn::ParamOp>() ||
                   (isa<BlockArgument>(source) &&
                    isa<func::FuncOp>(source.getParentBlock()->getParentOp()));
    std::optional<int64_t> axis = dim.getConstantIndex();
    if (!isInput || !axis)
      return dim.emitOpError("measures what is no argument or parameter, or at "
                             "an axis that is no constant (front.c5)");
    if (!dims.insert({source, *axis}).second)
      return dim.emitOpError("measures axis ")
             << *axis << " a second time (front.c5)";
    return success();
  }

  llvm::DenseSet<std::pair<Value, int64_t>> dims;
  Operation *mathematics = nullptr;
};

} // namespace
