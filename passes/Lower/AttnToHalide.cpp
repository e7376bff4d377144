//===- AttnToHalide.cpp - kernels become scheduled Halide pipelines -------===//
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/SymbolicDims.h"
#include "passes/Algebra/Weights.h"
#include "passes/Kernels/Families.h"
#include "passes/Kernels/OneRow.h"
#include "passes/Kernels/StreamedAttention.h"
#include "passes/Lower/AttentionCalls.h"
#include "passes/Lower/AttentionForms.h"
#include "passes/Lower/HeadSizes.h"
#include "passes/Lower/HostTables.h"
#include "passes/Lower/KernelCalls.h"
#include "passes/Lower/KernelToHalide.h"
#include "passes/Lower/MaskTables.h"
#include "passes/Lower/StreamingAttention.h"
#include "passes/Lower/Summary.h"
#include "passes/Masks/MaskBounds.h"
#include "passes/Passes.h"
#include "passes/Plan/AttentionPlan.h"
#include "passes/Plan/Cost.h"
#include "passes/Plan/ScoreBound.h"
#include "passes/Remarks.h"
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

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

/// Pipelines that pack weights: equal ones are one. Their text decides, without
/// the name.
class Packings {
public:
  halide::PipelineOp unique(halide::PipelineOp pipeline, bool onHost,
                            SymbolTable &symbols) {
    pipeline.setOnHost(onHost);
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

/// On the copy of a kernel that is called where a streaming one gives up.
constexpr StringLiteral kAgain = "attn.again";

struct AttnToHalide : heed::impl::AttnToHalideBase<AttnToHalide> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    halide::Target target = halide::getTarget(module);
    SymbolTable symbols(module);
    packings = Packings();
    SmallVector<func::CallOp> calls;
    module.walk([&](func::CallOp call) {
      auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
      if (kernel && kernel->hasAttr(attn::kKernelAttr))
        calls.push_back(call);
    });
    auto weights = weightsOf(calls, symbols);
    KernelCalls callers;
    for (func::CallOp call : calls) {
      auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
      FailureOr<halide::CallOp> rewritten = rewriteCall(call, kernel);
      if (failed(rewritten))
        return signalPassFailure();
      callers[kernel].push_back(*rewritten);
    }
    for (auto model : module.getOps<func::FuncOp>())
      if (model->hasAttr(attn::kModelAttr))
        remarkSummary(model, callers);
    llvm::StringSet<> hostTables = findHostTables(callers);
    halide::Target processor = target;
    processor.gpu.clear();
    for (auto kernel :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!kernel->hasAttr(attn::kKernelAttr))
        continue;
      llvm::BitVector fixed = weights.lookup(kernel);
      fixed.resize(kernel.getNumArguments());
      bool isTable = hostTables.contains(kernel.getName());
      if (failed(lowerForms(kernel, isTable ? processor : target, fixed,
                            callers[kernel], symbols)))
        return signalPassFailure();
      tables = {};
      again = {};
      kernel.erase();
    }
    if (module->hasAttr(attn::kCountPairsAttr))
      module.walk([](halide::PipelineOp pipeline) { tracePairs(pipeline); });
  }

private:
  using Weights = DenseMap<Operation *, llvm::BitVector>;
  /// Arguments that hold weights in every call of a kernel.
  static Weights weightsOf(ArrayRef<func::CallOp> calls, SymbolTable &symbols) {
    WeightAnalysis analysis;
    Weights weights;
    for (func::CallOp call : calls) {
      auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
      llvm::BitVector &all =
          weights.try_emplace(kernel, kernel.getNumArguments(), true)
              .first->second;
      for (auto [k, operand] : llvm::enumerate(call.getOperands()))
        if (!analysis.of(operand).isWeight())
          all.reset(k);
    }
    return weights;
  }

  /// Writes the pipelines of \p kernel for all of its \p calls: of few rows, of
  /// each form of an attention, and between them the branches.
  LogicalResult lowerForms(func::FuncOp kernel, const halide::Target &target,
                           const llvm::BitVector &fixed,
                           ArrayRef<halide::CallOp> calls,
                           SymbolTable &symbols) {
    if (target.isGPU()) {
      auto sized = streamBySize(kernel, calls, target);
      if (failed(sized))
        return failure();
      for (auto &[own, of] : *sized) {
        LogicalResult done = lowerForms(own, target, fixed, of, symbols);
        own.erase();
        if (failed(done))
          return failure();
      }
    }
    if (failed(decomposeAttention(kernel, target)))
      return failure();
    FailureOr<RowCount> rows =
        lowerRowVersions(kernel, target, fixed, calls, symbols);
    if (failed(rows))
      return failure();
    SmallVector<AttentionForm> forms{{attn::Form::Tiles, ""}};
    StreamedAttention alone = aloneIn(kernel);
    if (alone)
      forms = formsOf(alone.online);
    std::optional<QueryAxes> axes =
        alone ? separableQueries(kernel, alone) : std::nullopt;
    if (axes && forms.size() > 1 && !target.isGPU())
      return lowerInParts(kernel, alone, *axes, forms, target, fixed, calls,
                          symbols);
    for (size_t number = 0; number < forms.size(); ++number) {
      std::string name = kernel.getName().str();
      FormCalls choice{SmallVector<halide::CallOp>(calls), true};
      if (number + 1 < forms.size()) {
        name = unusedName(name + forms[number].suffix);
        FailureOr<FormCalls> chosen =
            branchOn(calls, alone.online, target, forms, number, name);
        if (failed(chosen))
          return failure();
        choice = *chosen;
        if (choice.calls.empty())
          continue;
        if (choice.always)
          name = kernel.getName().str();
      }
      if (failed(lowerForm(kernel, alone, name, forms[number].form, target,
                           fixed, choice.calls, symbols, *rows)))
        return failure();
      if (choice.always)
        break;
    }
    return success();
  }

  /// Gives calls of \p kernel that may have few rows branches to pipelines of
  /// their own, if a family wants these. Returns the rows of the other calls.
  FailureOr<RowCount> lowerRowVersions(func::FuncOp kernel,
                                       const halide::Target &target,
                                       const llvm::BitVector &fixed,
                                       ArrayRef<halide::CallOp> calls,
                                       SymbolTable &symbols) {
    KernelFacts facts = factsOf(kernel, fixed);
    RowVersions wanted;
    for (const Family &family : families(target.isGPU()))
      if (family.versions && wanted.versions.empty())
        wanted = family.versions(facts, target);
    for (const RowVersion &version : wanted.versions) {
      SmallVector<halide::CallOp> possible;
      llvm::copy_if(calls, std::back_inserter(possible),
                    [&](halide::CallOp call) {
                      return llvm::all_of(version.inputs, [&](unsigned k) {
                        return isInput(call.getInputs()[k]);
                      });
                    });
      std::string name = unusedName(kernel.getName().str() + version.suffix);
      SmallVector<halide::CallOp> chosen =
          branchAtRows(possible, *facts.rowArgument, version.mostRows, name);
      if (chosen.empty())
        continue;
      func::FuncOp own = kernel;
      if (version.isOneRow) {
        own = cast<func::FuncOp>(OpBuilder(kernel).clone(*kernel));
        makeOneRow(own);
      }
      LogicalResult done = lowerKernel(own, name, attn::Form::Tiles, target,
                                       fixed, chosen, symbols, version.rows);
      if (own != kernel)
        own.erase();
      if (failed(done))
        return failure();
    }
    return wanted.others;
  }

  /// Whether \p value is an input of the model, or a part of one.
  static bool isInput(Value value) {
    while (Operation *def = value.getDefiningOp()) {
      if (!isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
               tensor::ExtractSliceOp>(def))
        return false;
      value = def->getOperand(0);
    }
    return isa<func::FuncOp>(value.getParentBlock()->getParentOp());
  }

  /// Writes a pipeline of each of \p forms, called for the queries that it is
  /// the fastest for.
  LogicalResult
  lowerInParts(func::FuncOp kernel, StreamedAttention op, const QueryAxes &axes,
               ArrayRef<AttentionForm> forms, const halide::Target &target,
               llvm::BitVector fixed, ArrayRef<halide::CallOp> calls,
               SymbolTable &symbols) {
    SmallVector<std::string> names;
    for (const AttentionForm &form : forms) {
      std::string name = kernel.getName().str() + form.suffix;
      names.push_back(form.suffix.empty() ? name : unusedName(name));
    }
    auto byForm =
        callInParts(kernel, op.online, axes, calls, target, forms, names);
    if (failed(byForm))
      return failure();
    fixed.resize(kernel.getNumArguments());
    for (size_t k = 0; k < forms.size(); ++k)
      if (failed(lowerForm(kernel, op, names[k], forms[k].form, target, fixed,
                           (*byForm)[k], symbols, RowCount::Any)))
        return failure();
    return success();
  }

  std::string unusedName(std::string name) {
    for (unsigned k = 0; getOperation().lookupSymbol(name); ++k)
      name += heed::format("_{}", k);
    return name;
  }

  /// Writes pipeline \p name of \p form of \p kernel's attention; of tiles, the
  /// bounded ones too, if its plan has them, and the branch between them.
  LogicalResult lowerForm(func::FuncOp kernel, StreamedAttention alone,
                          StringRef name, attn::Form form,
                          const halide::Target &target,
                          const llvm::BitVector &fixed,
                          ArrayRef<halide::CallOp> calls, SymbolTable &symbols,
                          RowCount rows) {
    bool bounded = form == attn::Form::Tiles && alone &&
                   alone.online.plan().pipeline(attn::Form::Bounded);
    if (bounded && !hasScoreBound(alone.online))
      return alone.online.emitOpError(
          "has a bounded pipeline in its plan, but its "
          "scores have no bound");
    if (bounded && boundReadsInputs(kernel, alone)) {
      std::string bound = unusedName(heed::format("{}_bound", name)),
                  small = unusedName(heed::format("{}_bounded", name));
      FailureOr<SmallVector<halide::CallOp>> chosen =
          branchOnBound(calls, alone.online, bound, small);
      if (failed(chosen))
        return failure();
      OpBuilder b(kernel);
      if (!chosen->empty() &&
          (failed(translateScoreBound(b, kernel, alone, bound, target)) ||
           failed(lowerKernel(kernel, small, attn::Form::Bounded, target, fixed,
                              *chosen, symbols, rows))))
        return failure();
    }
    return lowerKernel(kernel, name, form, target, fixed, calls, symbols, rows);
  }

  /// Has the tables of \p masks computed before \p calls of \p kernel.
  LogicalResult lowerMasks(func::FuncOp kernel, ArrayRef<MaskRequest> masks,
                           const halide::Target &target,
                           ArrayRef<halide::CallOp> calls) {
    OpBuilder b(kernel);
    for (const MaskRequest &request : masks) {
      // Those of both forms of an attention are the same.
      bool known = tables.first.op == request.op &&
                   tables.first.tiling.sameTables(request.tiling);
      if (!known) {
        tables = {request,
                  unusedName(heed::format("{}_mask", kernel.getName()))};
        if (failed(
                translateMaskTables(b, kernel, request, tables.second, target)))
          return failure();
        remarkFound(request.op, "attn-to-halide", "mask",
                    heed::format("{} computes what the mask of {} needs to "
                                 "know of its tiles and blocks",
                                 tables.second, kernel.getName().str()));
      }
      for (halide::CallOp call : calls)
        if (failed(callMaskTables(call, request, tables.second)))
          return failure();
    }
    return success();
  }

  /// Tells \p calls of rows which neighbours read the same keys, and those of a
  /// split form in how many parts the keys are cut.
  static LogicalResult passShares(func::FuncOp kernel, attn::Form form,
                                  const halide::Target &target,
                                  ArrayRef<halide::CallOp> calls) {
    for (halide::CallOp call : calls)
      if (form == attn::Form::Rows) {
        auto groups = groupsAt(call, aloneIn(kernel).online);
        if (failed(groups))
          return failure();
        if (!*groups)
          continue;
        call.pass(kMembersInput, (*groups)->members);
        call.pass(kNeighboursInput, (*groups)->neighbours);
      } else if (form == attn::Form::Split) {
        auto parts = partsAt(call, aloneIn(kernel).online, target);
        if (failed(parts))
          return failure();
        call.pass(kPartsInput, *parts);
      }
    return success();
  }

  /// Says how pipeline \p name of \p kernel is scheduled.
  static void remarkSchedule(func::FuncOp kernel, StringRef name,
                             attn::Form form, const halide::Target &target,
                             StringRef family, RowCount rows,
                             ArrayRef<StringAttr> packers) {
    std::string how = heed::format(" has the {} schedule", family);
    if (form == attn::Form::Rows)
      how += ", a query at a time";
    else if (form == attn::Form::Split)
      how += ", in parts of the keys";
    else if (form == attn::Form::Narrow)
      how += heed::format(", in tiles of {} queries", target.lanes(32));
    else if (form == attn::Form::Bounded)
      how += ", without a maximum, for scores that are small";
    else if (rows == RowCount::Small)
      how += ", for few rows,";
    if (kernel->hasAttr(kAgain))
      how += ", where the others find a NaN";
    if (isHostTable(kernel, target))
      how += " of the processor, which computes its f64 for the device";
    if (!packers.empty())
      how += heed::format(" and reads weights packed by {}", packers[0].str());
    remarkFound(kernel, "attn-to-halide", "schedule", name.str() + how);
  }

  /// Writes pipeline \p name of \p kernel with its schedule, and what it wants
  /// computed before it to \p calls.
  LogicalResult lowerKernel(func::FuncOp kernel, StringRef name,
                            attn::Form form, const halide::Target &target,
                            const llvm::BitVector &fixed,
                            ArrayRef<halide::CallOp> calls,
                            SymbolTable &symbols,
                            RowCount rows = RowCount::Any) {
    OpBuilder b(kernel);
    FailureOr<TranslatedKernel> translated =
        translateKernel(b, kernel, name, target, form, fixed);
    if (failed(translated))
      return failure();
    KernelInfo &info = translated->info;
    info.rows = rows;
    bool onHost = isHostTable(kernel, target);
    info.pipeline.setOnHost(onHost);
    if (failed(lowerMasks(kernel, translated->masks, target, calls)))
      return failure();
    if (failed(passShares(kernel, form, target, calls)))
      return failure();
    SmallVector<StringRef> inputs = info.pipeline.getInputNames();
    writeCost(kernel, info.pipeline);
    StringRef family = info.family;
    if (family.empty())
      family = scheduleKernel(info, target);
    else
      stateDenseStrides(info);
    allowSlices(info, calls, inputs);
    SmallVector<StringAttr> packers;
    for (Packing &packing : info.packings)
      packers.push_back(
          packings.unique(packing.pipeline, onHost, symbols).getSymNameAttr());
    bool givesUp = info.pipeline.givesUp();
    if (givesUp && failed(lowerAgain(kernel, target, symbols)))
      return failure();
    SmallVector<Value> extents = neededByLse(kernel);
    if (!extents.empty() &&
        (failed(lowerAgain(kernel, target, symbols)) ||
         failed(branchWhereEmpty(calls, extents, again.getValue()))))
      return failure();
    for (halide::CallOp call : calls)
      packInputs(call, info, inputs, packers)
          .setOtherwiseAttr(givesUp ? again : FlatSymbolRefAttr());
    remarkSchedule(kernel, name, form, target, family, rows, packers);
    return success();
  }

  /// Writes the pipeline that computes \p kernel where a streaming one, of any
  /// form, gives up: each key is looked at.
  LogicalResult lowerAgain(func::FuncOp kernel, const halide::Target &target,
                           SymbolTable &symbols) {
    if (again)
      return success();
    std::string name = unusedName(heed::format("{}_again", kernel.getName()));
    OpBuilder b(kernel);
    auto careful = cast<func::FuncOp>(b.clone(*kernel));
    careful->setAttr(kAgain, b.getUnitAttr());
    SmallVector<attn::OnlineAttentionOp> ops;
    careful.walk([&](attn::OnlineAttentionOp op) { ops.push_back(op); });
    for (attn::OnlineAttentionOp online : ops) {
      b.setInsertionPoint(online);
      StreamedAttention streamed(online);
      attn::AttentionOp op = joined(b, streamed);
      op->setAttr(attn::kPlanAttr,
                  attn::PlanAttr::get(b.getContext(),
                                      op.getLse()
                                          ? attn::Algorithm::Materialised
                                          : attn::Algorithm::RowBlock,
                                      /*excluding=*/false,
                                      /*evaluating=*/false, {}));
      SmallVector<Value> results{op.getOutput()};
      if (op.getLse())
        results.push_back(op.getLse());
      streamed.finish->replaceAllUsesWith(results);
      streamed.finish->erase();
      online->erase();
    }
    // Nothing is packed for it: it takes what the others take.
    LogicalResult done = decomposeAttention(careful, target);
    if (succeeded(done))
      done = lowerKernel(careful, name, attn::Form::Tiles, target, {}, {},
                         symbols);
    careful.erase();
    again = FlatSymbolRefAttr::get(b.getContext(), name);
    return done;
  }

  Packings packings;
  FlatSymbolRefAttr again; ///< the pipeline behind `else` of the kernel's calls
  std::pair<MaskRequest, std::string> tables; ///< the last ones written
};

} // namespace
