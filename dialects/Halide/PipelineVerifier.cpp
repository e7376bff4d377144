// Checks a pipeline as a whole: names, outputs, and the schedule, whose
// directives are followed loop by loop.

#include "dialects/Halide/HalideDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace heed::halide;

namespace {

struct Loop {
  StringRef name;
  bool reduction;
  StringRef kind; // the directive that fixed how it runs, empty at first
};

/// The loops of one stage, in no order: only names matter to the checks.
struct Stage {
  SmallVector<Loop> loops;
  Loop *find(StringRef name) {
    for (Loop &loop : loops)
      if (loop.name == name)
        return &loop;
    return nullptr;
  }
  void erase(StringRef name) {
    llvm::erase_if(loops, [&](const Loop &loop) { return loop.name == name; });
  }
};

struct FuncState {
  SmallVector<Stage> stages;
  SmallVector<StringRef>
      vars; // pure vars, which bound and align directives name
  Operation *firstDirective = nullptr;
  llvm::StringMap<Operation *> placed; // by name of the directive
  bool isOutput = false;
};

/// Follows the directives in their order.
class ScheduleChecker {
public:
  explicit ScheduleChecker(PipelineOp pipeline) : pipeline(pipeline) {}
  LogicalResult check();

private:
  LogicalResult addDefinitions();
  LogicalResult apply(Operation *op);
  LogicalResult applyToLoops(Operation *op, Stage &stage, bool isUpdate,
                             Value func);
  LogicalResult applyRFactor(RFactorOp op);
  LogicalResult checkPlaces();

  LogicalResult requireLoop(Operation *op, Stage &stage, StringRef var,
                            Value func);
  LogicalResult requireNew(Operation *op, Stage &stage, StringRef var,
                           Value func);
  LogicalResult setKind(Operation *op, Stage &stage, StringRef var, Value func);
  LogicalResult split(Operation *op, Stage &stage, StringRef var,
                      StringRef outer, StringRef inner, Value func);

  PipelineOp pipeline;
  llvm::MapVector<Value, FuncState> funcs;
};

} // namespace

static SmallVector<StringRef> strings(ArrayAttr names) {
  return SmallVector<StringRef>(names.getAsValueRange<StringAttr>());
}

LogicalResult ScheduleChecker::requireLoop(Operation *op, Stage &stage,
                                           StringRef var, Value func) {
  if (stage.find(var))
    return success();
  InFlightDiagnostic diag = op->emitOpError("'")
                            << var << "' is no loop of '" << getFuncName(func)
                            << "' here (schedule.c3); its loops are";
  for (auto [k, loop] : llvm::enumerate(stage.loops))
    diag << (k ? ", '" : " '") << loop.name << "'";
  return diag;
}

LogicalResult ScheduleChecker::requireNew(Operation *op, Stage &stage,
                                          StringRef var, Value func) {
  if (stage.find(var))
    return op->emitOpError("'") << var << "' is already a loop of '"
                                << getFuncName(func) << "' (schedule.c3)";
  return success();
}

LogicalResult ScheduleChecker::setKind(Operation *op, Stage &stage,
                                       StringRef var, Value func) {
  if (failed(requireLoop(op, stage, var, func)))
    return failure();
  Loop *loop = stage.find(var);
  StringRef kind = op->getName().stripDialect();
  if (!loop->kind.empty() && loop->kind != "serial")
    return op->emitOpError("loop '")
           << var << "' of '" << getFuncName(func) << "' has halide."
           << loop->kind << " already (loop.c1)";
  loop->kind = kind;
  return success();
}

LogicalResult ScheduleChecker::split(Operation *op, Stage &stage, StringRef var,
                                     StringRef outer, StringRef inner,
                                     Value func) {
  if (failed(requireLoop(op, stage, var, func)))
    return failure();
  Loop old = *stage.find(var);
  if (!old.kind.empty() && old.kind != "serial")
    return op->emitOpError("loop '")
           << var << "' of '" << getFuncName(func) << "' has halide."
           << old.kind << " already (loop.c1)";
  stage.erase(var);
  if (failed(requireNew(op, stage, outer, func)) ||
      failed(requireNew(op, stage, inner, func)))
    return failure();
  stage.loops.push_back({inner, old.reduction, {}});
  stage.loops.push_back({outer, old.reduction, {}});
  return success();
}

LogicalResult ScheduleChecker::addDefinitions() {
  for (Operation &op : pipeline.getBody().front()) {
    if (auto func = dyn_cast<FuncOp>(op)) {
      FuncState &state = funcs[func.getResult()];
      state.vars = strings(func.getVars());
      Stage &stage = state.stages.emplace_back();
      for (StringRef var : state.vars)
        stage.loops.push_back({var, false, {}});
    } else if (auto update = dyn_cast<UpdateOp>(op)) {
      FuncState &state = funcs[update.getFunc()];
      Stage &stage = state.stages.emplace_back();
      for (StringRef var : strings(update.getRvars()))
        stage.loops.push_back({var, true, {}});
      YieldOp place = update.getAt().empty()
                          ? YieldOp()
                          : cast<YieldOp>(update.getAt().front().back());
      for (auto [k, var] : llvm::enumerate(state.vars))
        if (!place || place.getValues()[k] == update.getAt().getArgument(k))
          stage.loops.push_back({var, false, {}});
      for (Operation *user : update.getFunc().getUsers())
        if (isScheduleOp(user) && user->getOperand(0) == update.getFunc() &&
            user->getBlock() == op.getBlock() && user->isBeforeInBlock(&op))
          return update.emitOpError("stands after a directive of '")
                 << getFuncName(update.getFunc()) << "' (pipeline.c4)";
    } else if (auto output = dyn_cast<OutputOp>(op)) {
      FuncState &state = funcs[output.getFunc()];
      if (state.isOutput)
        return output.emitOpError("'")
               << getFuncName(output.getFunc())
               << "' is an output already (pipeline.c1)";
      state.isOutput = true;
    }
  }
  return success();
}

LogicalResult ScheduleChecker::applyRFactor(RFactorOp op) {
  FuncState &state = funcs[op.getFunc()];
  Stage &stage = state.stages[op.getStage()];
  SmallVector<StringRef> rvars = strings(op.getRvars()),
                         vars = strings(op.getVars());
  FuncState part;
  part.vars = state.vars;
  Stage partUpdate = stage;
  for (auto [rvar, var] : llvm::zip(rvars, vars)) {
    if (failed(requireLoop(op, stage, rvar, op.getFunc())))
      return failure();
    if (!stage.find(rvar)->reduction)
      return op.emitOpError("'")
             << rvar << "' is no reduction var (rfactor.c2)";
    if (llvm::is_contained(part.vars, var) ||
        failed(requireNew(op, partUpdate, var, op.getFunc())))
      return failure();
    part.vars.push_back(var);
    *partUpdate.find(rvar) = {var, false, {}};
  }
  llvm::erase_if(stage.loops, [&](Loop &loop) {
    return loop.reduction && !llvm::is_contained(rvars, loop.name);
  });
  Stage &pure = part.stages.emplace_back();
  for (StringRef var : part.vars)
    pure.loops.push_back({var, false, {}});
  part.stages.push_back(partUpdate);
  part.firstDirective = op;
  funcs[op.getResult()] = std::move(part);
  return success();
}

LogicalResult ScheduleChecker::applyToLoops(Operation *op, Stage &stage,
                                            bool isUpdate, Value func) {
  auto kinds = [&](ArrayRef<StringRef> vars) {
    return success(llvm::all_of(vars, [&](StringRef var) {
      return succeeded(setKind(op, stage, var, func));
    }));
  };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](SplitOp split) -> LogicalResult {
        if (failed(requireLoop(op, stage, split.getVar(), func)))
          return failure();
        TailStrategy tail = split.getTail();
        bool reduction = stage.find(split.getVar())->reduction;
        bool plain = tail == TailStrategy::Auto ||
                     tail == TailStrategy::GuardWithIf ||
                     tail == TailStrategy::Predicate;
        if (reduction && !plain)
          return split.emitOpError("'")
                 << split.getVar()
                 << "' is a reduction var, which takes tail GuardWithIf or "
                 << "Predicate, not " << stringifyTailStrategy(tail)
                 << " (split.c3)";
        if (isUpdate && (tail == TailStrategy::ShiftInwards ||
                         tail == TailStrategy::ShiftInwardsAndBlend))
          return split.emitOpError(
                     "an update must not compute an element twice, as tail ")
                 << stringifyTailStrategy(tail) << " does (split.c3)";
        return this->split(op, stage, split.getVar(), split.getOuter(),
                           split.getInner(), func);
      })
      .Case([&](TileOp tile) -> LogicalResult {
        for (auto [var, outer, inner] :
             llvm::zip(strings(tile.getVars()), strings(tile.getOuter()),
                       strings(tile.getInner())))
          if (failed(this->split(op, stage, var, outer, inner, func)))
            return failure();
        return success();
      })
      .Case([&](FuseOp fuse) -> LogicalResult {
        if (failed(requireLoop(op, stage, fuse.getInner(), func)) ||
            failed(requireLoop(op, stage, fuse.getOuter(), func)))
          return failure();
        bool reduction = stage.find(fuse.getInner())->reduction;
        if (reduction != stage.find(fuse.getOuter())->reduction)
          return fuse.emitOpError(
              "fuses a pure var with a reduction var (fuse.c2)");
        stage.erase(fuse.getInner());
        stage.erase(fuse.getOuter());
        if (failed(requireNew(op, stage, fuse.getFused(), func)))
          return failure();
        stage.loops.push_back({fuse.getFused(), reduction, {}});
        return success();
      })
      .Case([&](RenameOp rename) -> LogicalResult {
        if (failed(requireLoop(op, stage, rename.getVar(), func)) ||
            failed(requireNew(op, stage, rename.getNewName(), func)))
          return failure();
        stage.find(rename.getVar())->name = rename.getNewName();
        return success();
      })
      .Case([&](ReorderOp reorder) -> LogicalResult {
        for (StringRef var : strings(reorder.getVars()))
          if (failed(requireLoop(op, stage, var, func)))
            return failure();
        return success();
      })
      .Case<VectorizeOp, UnrollOp, ParallelOp, SerialOp>(
          [&](auto loop) { return kinds({loop.getVar()}); })
      .Case<GPUBlocksOp, GPUThreadsOp>(
          [&](auto loop) { return kinds(strings(loop.getVars())); })
      .Case([&](PartitionOp partition) {
        return requireLoop(op, stage, partition.getVar(), func);
      })
      .Case([&](PrefetchOp prefetch) -> LogicalResult {
        return failure(
            failed(requireLoop(op, stage, prefetch.getAt(), func)) ||
            failed(requireLoop(op, stage, prefetch.getFrom(), func)));
      })
      .Case([&](SpecializeOp specialize) -> LogicalResult {
        Stage version = stage; // later directives of the stage do not reach it
        for (Operation &inner : specialize.getBody().front())
          if (failed(applyToLoops(&inner, version, isUpdate, func)))
            return failure();
        return success();
      })
      .Default([](Operation *) { return success(); });
}

LogicalResult ScheduleChecker::apply(Operation *op) {
  Value func = op->getOperand(0);
  FuncState &state = funcs[func];
  if (auto part = dyn_cast<RFactorOp>(op))
    return applyRFactor(part);
  if (isa<ComputeAtOp, ComputeRootOp, ComputeInlineOp, StoreAtOp, StoreRootOp,
          HoistStorageOp, HoistStorageRootOp>(op)) {
    StringRef kind = op->getName().stripDialect();
    kind = kind.substr(0, kind.find('_')); // compute, store or hoist
    auto [it, isNew] = state.placed.try_emplace(kind, op);
    if (!isNew) {
      InFlightDiagnostic diag = op->emitOpError("'")
                                << getFuncName(func)
                                << "' has a place already (at.c2)";
      diag.attachNote(it->second->getLoc()) << "here";
      return diag;
    }
    return success();
  }
  StringAttr var = op->getAttrOfType<StringAttr>("var");
  if (isa<BoundVarOp, BoundExtentOp, AlignBoundsOp, AlignStorageOp>(op)) {
    if (!llvm::is_contained(state.vars, var.getValue()))
      return op->emitOpError("'") << var.getValue() << "' is no var of '"
                                  << getFuncName(func) << "' (schedule.c3)";
  }
  if (auto storage = dyn_cast<ReorderStorageOp>(op))
    for (StringRef name : strings(storage.getVars()))
      if (!llvm::is_contained(state.vars, name))
        return op->emitOpError("'") << name << "' is no var of '"
                                    << getFuncName(func) << "' (schedule.c3)";
  if (!state.firstDirective)
    state.firstDirective = op;
  auto stage = op->getAttrOfType<IntegerAttr>("stage");
  if (!stage)
    return success();
  return applyToLoops(op, state.stages[stage.getInt()], stage.getInt() > 0,
                      func);
}

/// Places name loops as they are when the whole schedule has been read.
LogicalResult ScheduleChecker::checkPlaces() {
  for (auto &[func, state] : funcs) {
    Operation *compute = state.placed.lookup("compute");
    bool inlined = !compute || isa<ComputeInlineOp>(compute);
    if (state.isOutput && compute && !isa<ComputeRootOp>(compute))
      return compute->emitOpError("'")
             << getFuncName(func) << "' is an output (pipeline.c5)";
    if (!state.isOutput && inlined && state.stages.size() == 1 &&
        state.firstDirective)
      return state.firstDirective->emitOpError("'")
             << getFuncName(func)
             << "' is computed inline, so it has no loops to schedule "
                "(schedule.c4)";
    if (!state.isOutput && inlined &&
        (state.placed.contains("store") || state.placed.contains("hoist")))
      return (state.placed.contains("store") ? state.placed.lookup("store")
                                             : state.placed.lookup("hoist"))
                 ->emitOpError("'")
             << getFuncName(func)
             << "' is computed inline, so it is stored nowhere (schedule.c4)";
    for (auto &entry : state.placed) {
      Operation *op = entry.second;
      if (op->getNumOperands() < 2)
        continue;
      StringRef var = op->getAttrOfType<StringAttr>("var").getValue();
      FuncState &consumer = funcs[op->getOperand(1)];
      if (llvm::none_of(consumer.stages, [&](Stage &stage) {
            return stage.find(var) != nullptr;
          }))
        return op->emitOpError("'")
               << var << "' is no loop of '" << getFuncName(op->getOperand(1))
               << "' when the schedule is complete (at.c1)";
    }
  }
  return success();
}

LogicalResult ScheduleChecker::check() {
  if (failed(addDefinitions()))
    return failure();
  for (Operation &op : pipeline.getBody().front())
    if (isScheduleOp(&op) && failed(apply(&op)))
      return failure();
  return checkPlaces();
}

LogicalResult PipelineOp::verifyRegions() {
  llvm::StringMap<Operation *> names;
  for (Operation &op : getBody().front()) {
    if (!isa_and_nonnull<HalideDialect, arith::ArithDialect, math::MathDialect>(
            op.getDialect()))
      return op.emitOpError("stands in a halide.pipeline, which holds halide, "
                            "arith and math ops (pipeline.c3)");
    if (!isa<BufferOp, ParamOp, FuncOp>(op))
      continue;
    auto [it, isNew] =
        names.try_emplace(op.getAttrOfType<StringAttr>("name").getValue(), &op);
    if (isNew)
      continue;
    InFlightDiagnostic diag = op.emitOpError("there is another '")
                              << it->first() << "' (pipeline.c2)";
    diag.attachNote(it->second->getLoc()) << "here";
    return diag;
  }
  if (getBody().front().getOps<OutputOp>().empty())
    return emitOpError("has no halide.output (pipeline.c1)");
  return ScheduleChecker(*this).check();
}
