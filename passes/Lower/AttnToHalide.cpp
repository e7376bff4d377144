//===- AttnToHalide.cpp - kernels become scheduled Halide pipelines -------===//
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/SymbolicDims.h"
#include "passes/Lower/AttentionForms.h"
#include "passes/Lower/Cost.h"
#include "passes/Lower/KernelToHalide.h"
#include "passes/Lower/OneRow.h"
#include "passes/MaskBounds.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "passes/Schedule/MaskTables.h"
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"
#include "passes/Schedule/StreamingAttention.h"
#include "passes/Weights.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace heed {
#define GEN_PASS_DEF_ATTNTOHALIDE
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

/// Where a caller of a kernel finds the extent of a result's dim: a number, an
/// argument, or an argument's dim.
struct CallerExtent {
  std::optional<int64_t> fixed;
  unsigned argument = 0;
  std::optional<int64_t> axis;
};

FailureOr<CallerExtent> callerExtent(Value value, int64_t axis);

/// A size inside a kernel. Fails with an error at the op that hides it.
FailureOr<CallerExtent> callerSize(Value value) {
  CallerExtent extent;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    extent.fixed = constant.getSExtValue();
    return extent;
  }
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    extent.argument = arg.getArgNumber();
    return extent;
  }
  if (auto dim = value.getDefiningOp<tensor::DimOp>())
    if (std::optional<int64_t> axis = dim.getConstantIndex())
      return callerExtent(dim.getSource(), *axis);
  return emitError(value.getLoc(),
                   "a result's extent is computed inside its kernel");
}

/// The extent of axis \p axis of \p value, a tensor inside a kernel.
FailureOr<CallerExtent> callerExtent(Value value, int64_t axis) {
  attn::ExtentSource source = attn::traceExtent(value, axis);
  CallerExtent extent;
  if (source.fixed) {
    extent.fixed = *source.fixed;
    return extent;
  }
  if (source.size)
    return callerSize(source.size);
  if (auto arg = dyn_cast<BlockArgument>(source.tensor)) {
    extent.argument = arg.getArgNumber();
    extent.axis = source.axis;
    return extent;
  }
  return emitError(source.tensor.getLoc(),
                   "the extents of its result are not known to callers");
}

/// An extent as the caller of a kernel with arguments \p inputs sees it.
OpFoldResult extentAt(OpBuilder &b, Location loc, ValueRange inputs,
                      const CallerExtent &extent) {
  if (extent.fixed)
    return b.getIndexAttr(*extent.fixed);
  Value input = inputs[extent.argument];
  if (extent.axis)
    return tensor::DimOp::create(b, loc, input, *extent.axis).getResult();
  return input;
}

/// Replaces a call of a kernel by one of its pipeline, with destinations whose
/// extents the caller computes.
FailureOr<halide::CallOp> rewriteCall(func::CallOp call, func::FuncOp kernel) {
  OpBuilder b(call);
  Location loc = call.getLoc();
  Operation *ret = kernel.getBody().front().getTerminator();
  SmallVector<Value> outs;
  for (Value result : ret->getOperands()) {
    auto type = cast<RankedTensorType>(result.getType());
    SmallVector<Value> sizes;
    for (int64_t axis = 0; axis < type.getRank(); ++axis) {
      if (!type.isDynamicDim(axis))
        continue;
      FailureOr<CallerExtent> extent = callerExtent(result, axis);
      if (failed(extent))
        return failure();
      sizes.push_back(getValueOrCreateConstantIndexOp(
          b, loc, extentAt(b, loc, call.getOperands(), *extent)));
    }
    outs.push_back(tensor::EmptyOp::create(b, loc, type.getShape(),
                                           type.getElementType(), sizes));
  }
  auto halideCall =
      halide::CallOp::create(b, loc, call.getResultTypes(), call.getCallee(),
                             call.getOperands(), outs);
  call.replaceAllUsesWith(halideCall.getResults());
  call.erase();
  return halideCall;
}

/// Calls pipeline \p name before \p call and hands its results, the tables of
/// \p request's mask, to \p call.
LogicalResult callMaskTables(halide::CallOp call, const MaskRequest &request,
                             StringRef name) {
  OpBuilder b(call);
  Location loc = call.getLoc();
  attn::AttentionOp op = request.op;
  FailureOr<MaskBounds> bounds = solveMask(op);
  if (failed(bounds))
    return failure();
  SmallVector<Value> outs;
  SmallVector<Type> types;
  for (const MaskArray &array : maskArrays(op, *bounds, request.tiling)) {
    SmallVector<OpFoldResult> sizes;
    for (MaskArray::Axis axis : array.axes) {
      if (!axis.dim) {
        sizes.push_back(b.getIndexAttr(axis.size));
        continue;
      }
      FailureOr<CallerExtent> extent = callerSize(op.getSizes()[*axis.dim]);
      if (failed(extent))
        return failure();
      OpFoldResult size = extentAt(b, loc, call.getInputs(), *extent);
      if (axis.size > 1) {
        // One piece at least: it is read where there are no keys, too.
        if (extent->fixed) {
          size = b.getIndexAttr(std::max<int64_t>(
              1, llvm::divideCeil(*extent->fixed, axis.size)));
        } else {
          auto number = [&](int64_t value) -> Value {
            return arith::ConstantIndexOp::create(b, loc, value);
          };
          Value some =
              arith::MaxUIOp::create(b, loc, cast<Value>(size), number(1));
          Value up = arith::AddIOp::create(b, loc, some, number(axis.size - 1));
          size =
              arith::DivUIOp::create(b, loc, up, number(axis.size)).getResult();
        }
      }
      sizes.push_back(size);
    }
    outs.push_back(tensor::EmptyOp::create(b, loc, sizes, array.element));
    types.push_back(outs.back().getType());
  }
  auto tables =
      halide::CallOp::create(b, loc, types, name, call.getInputs(), outs);
  call.getInputsMutable().append(tables.getResults());
  return success();
}

/// Pipelines that pack weights: equal ones are one. Their text decides, without
/// the name.
class Packings {
public:
  halide::PipelineOp unique(halide::PipelineOp pipeline, SymbolTable &symbols) {
    StringAttr name = pipeline.getSymNameAttr();
    pipeline.setSymName("pack");
    std::string text;
    llvm::raw_string_ostream os(text);
    pipeline.print(os, OpPrintingFlags().useLocalScope());
    pipeline.setSymName(name);
    auto [found, isNew] = known.try_emplace(text, pipeline);
    if (isNew)
      symbols.insert(pipeline);
    else
      pipeline.erase();
    return found->second;
  }

private:
  llvm::StringMap<halide::PipelineOp> known;
};

/// Lets \p call pass what \p kernel reads now that it is scheduled: \p inputs
/// names its inputs before, one per operand. What a schedule wants packed is
/// computed right before.
halide::CallOp packInputs(halide::CallOp call, KernelInfo &kernel,
                          ArrayRef<Operation *> inputs,
                          ArrayRef<StringAttr> packers) {
  OpBuilder b(call);
  Location loc = call.getLoc();
  DenseMap<Operation *, Value> operands;
  for (auto [input, operand] : llvm::zip_equal(inputs, call.getInputs()))
    operands[input] = operand;
  SmallVector<Value> packed;
  // Before the choice of a form: the others read the same.
  Operation *before = call;
  auto readsFrom = [&](Operation *branch) {
    return llvm::any_of(call.getInputs(), [&](Value input) {
      Operation *def = input.getDefiningOp();
      return def && branch->isProperAncestor(def);
    });
  };
  while (isa<scf::IfOp>(before->getParentOp()) &&
         !readsFrom(before->getParentOp()))
    before = before->getParentOp();
  b.setInsertionPoint(before);
  for (auto [packing, packer] : llvm::zip_equal(kernel.packings, packers)) {
    Value out = tensor::EmptyOp::create(b, loc, packing.sizes, packing.element);
    SmallVector<Value> sources;
    for (unsigned input : packing.inputs)
      sources.push_back(operands.lookup(inputs[input]));
    packed.push_back(halide::CallOp::create(b, loc, out.getType(),
                                            packer.getValue(), sources, out)
                         .getResult(0));
  }
  b.setInsertionPoint(call);
  SmallVector<Value> now;
  auto next = packed.begin();
  for (Operation *input : kernel.pipeline.getInputs())
    now.push_back(operands.contains(input) ? operands[input] : *next++);
  auto fresh = halide::CallOp::create(b, loc, call.getResultTypes(),
                                      call.getCallee(), now, call.getOuts());
  call.replaceAllUsesWith(fresh.getResults());
  call.erase();
  return fresh;
}

/// Replaces attention ops of \p kernel that do not stream by their definition.
/// What family schedules it then, is decided as for any other kernel.
LogicalResult decomposeAttention(func::FuncOp kernel) {
  SmallVector<attn::AttentionOp> ops;
  kernel.walk([&](attn::AttentionOp op) { ops.push_back(op); });
  IRRewriter rewriter(kernel.getContext());
  for (attn::AttentionOp op : ops) {
    auto chosen = op->getAttrOfType<StringAttr>("attn.algorithm");
    if (chosen ? chosen.getValue() == "streaming" : whyNotStreaming(op).empty())
      continue;
    rewriter.setInsertionPoint(op);
    auto definition =
        dyn_cast<linalg::AggregatedOpInterface>(op.getOperation());
    FailureOr<SmallVector<Value>> values = failure();
    if (definition)
      values = definition.decomposeOperation(rewriter);
    if (failed(values))
      return op.emitOpError("has no definition in upstream ops");
    if (chosen && chosen.getValue() == "row block")
      kernel->setAttr("attn.kind", chosen);
    rewriter.replaceOp(op, *values);
  }
  return success();
}

struct AttnToHalide : heed::impl::AttnToHalideBase<AttnToHalide> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    halide::Target target = halide::getTarget(module);
    SymbolTable symbols(module);
    WeightAnalysis analysis;
    packings = Packings();
    SmallVector<func::CallOp> calls;
    module.walk([&](func::CallOp call) { calls.push_back(call); });
    // Arguments that hold weights in every call of a kernel.
    DenseMap<Operation *, llvm::BitVector> weights;
    for (func::CallOp call : calls) {
      auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!kernel || !kernel->hasAttr(attn::kKernelAttr))
        continue;
      llvm::BitVector &all =
          weights.try_emplace(kernel, kernel.getNumArguments(), true)
              .first->second;
      for (auto [k, operand] : llvm::enumerate(call.getOperands())) {
        const Dependence &on = analysis.of(operand);
        if (!on.fixed || !on.weights)
          all.reset(k);
      }
    }
    llvm::MapVector<Operation *, SmallVector<halide::CallOp>> callers;
    for (func::CallOp call : calls) {
      auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!kernel || !kernel->hasAttr(attn::kKernelAttr))
        continue;
      FailureOr<halide::CallOp> rewritten = rewriteCall(call, kernel);
      if (failed(rewritten))
        return signalPassFailure();
      callers[kernel].push_back(*rewritten);
    }
    for (auto kernel :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!kernel->hasAttr(attn::kKernelAttr))
        continue;
      if (failed(decomposeAttention(kernel)))
        return signalPassFailure();
      llvm::BitVector fixed = weights.lookup(kernel);
      fixed.resize(kernel.getNumArguments());
      ArrayRef<halide::CallOp> calls = callers[kernel];
      if (failed(lowerOneRow(kernel, target, fixed, calls, symbols)))
        return signalPassFailure();
      SmallVector<AttentionForm> forms{{StreamingForm::Tiles, ""}};
      attn::AttentionOp alone = aloneIn(kernel);
      if (alone)
        forms = formsOf(alone, target);
      for (size_t number = 0; number < forms.size(); ++number) {
        std::string name = kernel.getName().str();
        Choice choice{SmallVector<halide::CallOp>(calls), true};
        if (number + 1 < forms.size()) {
          name = unusedName(name + forms[number].suffix);
          FailureOr<Choice> chosen =
              branchOn(calls, alone, target, forms, number, name);
          if (failed(chosen))
            return signalPassFailure();
          choice = *chosen;
          if (choice.calls.empty())
            continue;
          if (choice.always)
            name = kernel.getName().str();
        }
        if (failed(lowerKernel(kernel, name, forms[number].form, target, fixed,
                               choice.calls, symbols)))
          return signalPassFailure();
        if (choice.always)
          break;
      }
      tables = {};
      kernel.erase();
    }
  }

private:
  /// A product of few rows takes as long as its weight takes to be read, if no
  /// cache holds that, and the tile of one row reads it faster than one of
  /// several, whose other rows nobody asked for. Gives calls of \p kernel a
  /// branch for one row, with a pipeline of its own.
  LogicalResult lowerOneRow(func::FuncOp kernel, const halide::Target &target,
                            const llvm::BitVector &fixed,
                            ArrayRef<halide::CallOp> calls,
                            SymbolTable &symbols) {
    std::optional<unsigned> rows = rowsOfProduct(kernel, target, fixed);
    if (!rows)
      return success();
    std::string name = unusedName((kernel.getName() + "_one").str());
    SmallVector<halide::CallOp> ones;
    for (halide::CallOp call : calls) {
      OpBuilder b(call);
      Location loc = call.getLoc();
      Value isOne = arith::CmpIOp::create(
          b, loc, arith::CmpIPredicate::eq, call.getInputs()[*rows],
          arith::ConstantIndexOp::create(b, loc, 1));
      ones.push_back(branch(call, isOne, name));
    }
    OpBuilder b(kernel);
    auto one = cast<func::FuncOp>(b.clone(*kernel));
    makeOneRow(one);
    LogicalResult done = lowerKernel(one, name, StreamingForm::Tiles, target,
                                     fixed, ones, symbols);
    one.erase();
    return done;
  }

  /// Lets \p call happen only if \p condition does not hold, else a call of
  /// pipeline \p name, which is returned.
  halide::CallOp branch(halide::CallOp call, Value condition, StringRef name) {
    OpBuilder b(call);
    Location loc = call.getLoc();
    auto branch = scf::IfOp::create(b, loc, call.getResultTypes(), condition,
                                    /*withElseRegion=*/true);
    call.replaceAllUsesWith(branch.getResults());
    auto inside = [&](Block *block, halide::CallOp one) {
      OpBuilder inner = OpBuilder::atBlockEnd(block);
      scf::YieldOp::create(inner, loc, one.getResults());
    };
    OpBuilder then = OpBuilder::atBlockEnd(branch.thenBlock());
    auto other = halide::CallOp::create(then, loc, call.getResultTypes(), name,
                                        call.getInputs(), call.getOuts());
    inside(branch.thenBlock(), other);
    call->moveBefore(branch.elseBlock(), branch.elseBlock()->end());
    inside(branch.elseBlock(), call);
    return other;
  }

  /// The attention of \p kernel, if that is all that its pipeline computes in a
  /// schedule of its own: then there may be a pipeline of each form.
  static attn::AttentionOp aloneIn(func::FuncOp kernel) {
    SmallVector<attn::AttentionOp> ops;
    kernel.walk([&](attn::AttentionOp op) { ops.push_back(op); });
    if (ops.size() != 1)
      return nullptr;
    auto isReturned = [](Value value) {
      return value.use_empty() ||
             (value.hasOneUse() && isa<func::ReturnOp>(*value.user_begin()));
    };
    return llvm::all_of(ops[0]->getResults(), isReturned) ? ops[0] : nullptr;
  }
  std::string unusedName(std::string name) {
    for (unsigned k = 0; getOperation().lookupSymbol(name); ++k)
      name += "_" + std::to_string(k);
    return name;
  }

  /// Calls of a form's pipeline: none if no call has a use for it; \p always if
  /// all calls have, whatever their sizes.
  struct Choice {
    SmallVector<halide::CallOp> calls;
    bool always = false;
  };

  /// Lets \p calls happen only where form \p number is not the fastest, and
  /// calls of pipeline \p name where it is, which are returned.
  FailureOr<Choice> branchOn(ArrayRef<halide::CallOp> calls,
                             attn::AttentionOp op, const halide::Target &target,
                             ArrayRef<AttentionForm> forms, size_t number,
                             StringRef name) {
    auto sizeOf = [&](attn::DimKind kind) {
      return op.getSizes()[op.firstDim(kind)];
    };
    FailureOr<CallerExtent> queries = callerSize(sizeOf(attn::DimKind::Query)),
                            keys = queries;
    Value size = sizeOf(attn::DimKind::Key);
    auto dim = size.getDefiningOp<tensor::DimOp>();
    if (isa<BlockArgument>(size) || matchPattern(size, m_Constant()) ||
        (dim && isa<BlockArgument>(dim.getSource())))
      keys = callerSize(size);
    if (failed(queries) || failed(keys))
      return failure();
    // For all calls the same, then.
    bool known = queries->fixed && (op.getWhere().empty() || keys->fixed);
    Choice choice;
    for (halide::CallOp call : calls) {
      OpBuilder b(call);
      Location loc = call.getLoc();
      auto extent = [&](const CallerExtent &from) {
        return getValueOrCreateConstantIndexOp(
            b, loc, extentAt(b, loc, call.getInputs(), from));
      };
      Value members;
      if (forms[number].form == StreamingForm::Rows && !queries->fixed) {
        FailureOr<SmallVector<Value>> groups = groupsAt(call, op);
        if (failed(groups))
          return failure();
        members = groups->empty() ? Value() : groups->front();
      }
      Value isIt = isFastest(b, loc, op, target, forms, number,
                             extent(*queries), extent(*keys), members);
      if (known && matchPattern(isIt, m_Zero()))
        continue;
      if (known && matchPattern(isIt, m_One())) {
        choice.calls.push_back(call);
        choice.always = true;
        continue;
      }
      choice.calls.push_back(branch(call, isIt, name));
    }
    return choice;
  }

  /// How groups of \p op share keys where \p call happens; nothing if they do
  /// not. Fails with an error where callers do not know.
  static FailureOr<SmallVector<Value>> groupsAt(halide::CallOp call,
                                                attn::AttentionOp op) {
    OpBuilder b(call);
    bool known = true;
    SmallVector<Value> groups =
        groupsOf(b, call.getLoc(), op, [&](Value size) -> Value {
          FailureOr<CallerExtent> extent = callerSize(size);
          known &= succeeded(extent);
          if (failed(extent))
            return arith::ConstantIndexOp::create(b, call.getLoc(), 1);
          return getValueOrCreateConstantIndexOp(
              b, call.getLoc(),
              extentAt(b, call.getLoc(), call.getInputs(), *extent));
        });
    if (!known)
      return failure();
    return groups;
  }

  /// Writes pipeline \p name of \p kernel with its schedule, and what it wants
  /// computed before it to \p calls.
  LogicalResult lowerKernel(func::FuncOp kernel, StringRef name,
                            StreamingForm form, const halide::Target &target,
                            const llvm::BitVector &fixed,
                            ArrayRef<halide::CallOp> calls,
                            SymbolTable &symbols) {
    OpBuilder b(kernel);
    FailureOr<KernelInfo> info =
        translateKernel(b, kernel, name, target, form, fixed);
    if (failed(info))
      return failure();
    for (const MaskRequest &request : info->masks) {
      // Those of both forms of an attention are the same.
      bool known = tables.first.op == request.op &&
                   tables.first.tiling.sameTables(request.tiling);
      if (!known) {
        tables = {request, unusedName((kernel.getName() + "_mask").str())};
        if (failed(
                translateMaskTables(b, kernel, request, tables.second, target)))
          return failure();
        remarkFound(request.op, "attn-to-halide", "mask",
                    tables.second + " computes what the mask of " +
                        kernel.getName().str() +
                        " needs to know of its tiles and blocks");
      }
      for (halide::CallOp call : calls)
        if (failed(callMaskTables(call, request, tables.second)))
          return failure();
    }
    if (form == StreamingForm::Rows)
      for (halide::CallOp call : calls) {
        FailureOr<SmallVector<Value>> groups = groupsAt(call, aloneIn(kernel));
        if (failed(groups))
          return failure();
        call.getInputsMutable().append(*groups);
      }
    SmallVector<Operation *> inputs = info->pipeline.getInputs();
    writeCost(kernel, info->pipeline);
    StringRef family = info->family;
    if (family.empty())
      family = scheduleKernel(*info, target);
    else
      stateDenseStrides(*info);
    SmallVector<StringAttr> packers;
    for (Packing &packing : info->packings)
      packers.push_back(
          packings.unique(packing.pipeline, symbols).getSymNameAttr());
    for (halide::CallOp call : calls)
      packInputs(call, *info, inputs, packers);
    std::string how = (" has the " + family + " schedule").str();
    if (form == StreamingForm::Rows)
      how += ", a query at a time";
    else if (form == StreamingForm::Narrow)
      how += ", in tiles of " +
             std::to_string(tileVectors(target, form) * target.lanes(32)) +
             " queries";
    if (!packers.empty())
      how += " and reads weights packed by " + packers[0].str();
    remarkFound(kernel, "attn-to-halide", "schedule", name.str() + how);
    return success();
  }

  Packings packings;
  std::pair<MaskRequest, std::string> tables; ///< the last ones written
};

} // namespace
