//===- ScheduleLoops.cpp - what directives do to loops --------------------===//
#include "dialects/Halide/ScheduleChecker.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace heed::halide;
using namespace heed::halide::schedule;

SmallVector<StringRef> schedule::strings(ArrayAttr names) {
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

bool schedule::isLoopName(StringRef name) {
  return !name.empty() && !name.contains('.') && name != "__outermost";
}

LogicalResult ScheduleChecker::requireNew(Operation *op, Stage &stage,
                                          StringRef var, Value func) {
  if (!isLoopName(var))
    return op->emitOpError("'")
           << var << "' is no name for a loop, which is neither empty nor has "
           << "a '.' (pipeline.c6)";
  if (stage.find(var))
    return op->emitOpError("'") << var << "' is already a loop of '"
                                << getFuncName(func) << "' (schedule.c3)";
  return success();
}

/// Lanes of a vector or copies of a body that are allowed. No limit of
/// libHalide's, whose time and stack grow with them without any.
static constexpr int64_t kMaxCopies = 4096;

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
  if (kind != "serial" && kind != "unroll" && loop->races && !stage.atomic)
    return op->emitOpError("loop '")
           << var << "' of '" << getFuncName(func)
           << "' is a reduction, whose iterations update the same elements; "
           << "expected halide.atomic before (loop.c2)";
  if ((kind == "vectorize" || kind == "unroll") && loop->extent > kMaxCopies)
    return op->emitOpError("loop '")
           << var << "' of '" << getFuncName(func) << "' has " << loop->extent
           << " iterations, of which this dialect allows " << kMaxCopies
           << " as lanes or copies (loop.c3)";
  loop->kind = kind;
  return success();
}

LogicalResult ScheduleChecker::split(Operation *op, Stage &stage, StringRef var,
                                     StringRef outer, StringRef inner,
                                     int64_t factor, TailStrategy tail,
                                     bool isUpdate, Value func) {
  if (failed(requireLoop(op, stage, var, func)))
    return failure();
  Loop old = *stage.find(var);
  bool plain = tail == TailStrategy::Auto ||
               tail == TailStrategy::GuardWithIf ||
               tail == TailStrategy::Predicate;
  if (old.reduction && !plain)
    return op->emitOpError("'")
           << var << "' is a reduction var, which takes tail GuardWithIf or "
           << "Predicate, not " << stringifyTailStrategy(tail) << " (split.c3)";
  if (isUpdate && (tail == TailStrategy::ShiftInwards ||
                   tail == TailStrategy::ShiftInwardsAndBlend))
    return op->emitOpError(
               "an update must not compute an element twice, as tail ")
           << stringifyTailStrategy(tail) << " does (split.c3)";
  if (!old.kind.empty() && old.kind != "serial")
    return op->emitOpError("loop '")
           << var << "' of '" << getFuncName(func) << "' has halide."
           << old.kind << " already (loop.c1)";
  Loop *place = stage.find(var);
  place->name = {}; // its name is free now
  if (failed(requireNew(op, stage, outer, func)) ||
      failed(requireNew(op, stage, inner, func)))
    return failure();
  if (outer == inner)
    return op->emitOpError("calls both loops '") << outer << "' (split.c2)";
  *place = {inner, old.reduction, old.races, {}, factor};
  stage.loops.insert(std::next(place), {outer, old.reduction, old.races});
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
    if (llvm::is_contained(part.vars, var))
      return op.emitOpError("'")
             << var << "' is already a var of '" << getFuncName(op.getFunc())
             << "' (schedule.c3)";
    if (failed(requireNew(op, partUpdate, var, op.getFunc())))
      return failure();
    part.vars.push_back(var);
    *partUpdate.find(rvar) = {var};
  }
  stage.ordered = partUpdate.ordered = false;
  // The partial results read what the stage has read so far.
  for (auto &[func, read] : funcs)
    if (func != op.getFunc())
      for (Site &reader : read.readers)
        if (reader.func == op.getFunc() && reader.stage == op.getStage())
          reader = {op.getResult(), 1};
  part.readers.push_back({op.getFunc(), op.getStage()});
  llvm::erase_if(stage.loops, [&](Loop &loop) {
    return loop.reduction && !llvm::is_contained(rvars, loop.name);
  });
  Stage &pure = part.stages.emplace_back();
  for (StringRef var : part.vars)
    pure.loops.push_back({var});
  part.stages.push_back(partUpdate);
  part.firstDirective = op;
  funcs[op.getResult()] = std::move(part);
  return success();
}

/// Long: one case for each directive.
LogicalResult ScheduleChecker::applyToLoops(Operation *op, Stage &stage,
                                            bool isUpdate, Value func) {
  auto kinds = [&](ArrayRef<StringRef> vars) {
    return success(llvm::all_of(vars, [&](StringRef var) {
      return succeeded(setKind(op, stage, var, func));
    }));
  };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](SplitOp split) {
        return this->split(op, stage, split.getVar(), split.getOuter(),
                           split.getInner(), split.getFactor().value_or(0),
                           split.getTail(), isUpdate, func);
      })
      .Case([&](TileOp tile) -> LogicalResult {
        SmallVector<StringRef> outer = strings(tile.getOuter()),
                               order = strings(tile.getInner());
        for (auto [var, out, in, factor] :
             llvm::zip(strings(tile.getVars()), outer, strings(tile.getInner()),
                       tile.getFactors()))
          if (failed(this->split(op, stage, var, out, in, factor,
                                 tile.getTail(), isUpdate, func)))
            return failure();
        llvm::append_range(order, outer);
        stage.reorder(order);
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
        Loop *inner = stage.find(fuse.getInner()),
             *outer = stage.find(fuse.getOuter());
        // Pure loops may change places as they like.
        if (reduction && stage.ordered &&
            (outer < inner ||
             llvm::any_of(
                 ArrayRef<Loop>(std::next(inner), outer),
                 [](const Loop &loop) { return loop.reduction; })))
          return fuse.emitOpError("reduction loop '")
                 << fuse.getOuter() << "' is not the next one outside of '"
                 << fuse.getInner() << "' (fuse.c3)";
        Loop fused = {fuse.getFused(),
                      reduction,
                      inner->races || outer->races,
                      {},
                      inner->extent * outer->extent};
        for (Loop *loop : {inner, outer})
          if (!loop->kind.empty() && loop->kind != "serial")
            fused.kind = loop->kind;
        inner->name = outer->name = {};
        if (failed(requireNew(op, stage, fuse.getFused(), func)))
          return failure();
        *outer = fused;
        stage.loops.erase(inner);
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
        SmallVector<StringRef> vars = strings(reorder.getVars());
        for (StringRef var : vars)
          if (failed(requireLoop(op, stage, var, func)))
            return failure();
        stage.reorder(vars);
        return success();
      })
      .Case<VectorizeOp, UnrollOp, ParallelOp, SerialOp>(
          [&](auto loop) { return kinds({loop.getVar()}); })
      .Case<GPUBlocksOp, GPUThreadsOp>(
          [&](auto loop) { return kinds(strings(loop.getVars())); })
      .Case([&](GPUSingleThreadOp) -> LogicalResult {
        for (const Loop &loop : stage.loops)
          if (!loop.kind.empty() && loop.kind != "serial" &&
              loop.kind != "unroll")
            return op->emitOpError("loop '")
                   << loop.name << "' of '" << getFuncName(func)
                   << "' has halide." << loop.kind
                   << ", where one thread runs all loops (gpu.c2)";
        return success();
      })
      .Case([&](AtomicOp) {
        stage.atomic = true;
        return success();
      })
      .Case([&](PartitionOp partition) {
        return requireLoop(op, stage, partition.getVar(), func);
      })
      .Case([&](PrefetchOp prefetch) -> LogicalResult {
        return failure(
            failed(requireLoop(op, stage, prefetch.getAt(), func)) ||
            failed(requireLoop(op, stage, prefetch.getFrom(), func)));
      })
      .Case<PrefetchLinesOp, PrefetchNextOp, PrefetchSpreadOp>(
          [&](auto prefetch) -> LogicalResult {
            if (failed(requireLoop(op, stage, prefetch.getAt(), func)))
              return failure();
            for (Stage &other : funcs[prefetch.getConsumer()].stages)
              if (other.find(prefetch.getOver()))
                return success();
            return op->emitOpError("'")
                   << prefetch.getOver() << "' is no loop of '"
                   << getFuncName(prefetch.getConsumer()) << "' here ("
                   << op->getName().stripDialect() << ".c1)";
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
