// Checks a pipeline as a whole: names, outputs, and the schedule, whose
// directives are followed loop by loop.

#include "dialects/Halide/HalideDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace heed::halide;

namespace {

struct Loop {
  StringRef name;
  bool reduction = false;
  bool races = false;  // its iterations write the same elements for certain
  StringRef kind = {}; // the directive that fixed how it runs, empty at first
  int64_t extent = 0;  // 0 where it is not known here
};

/// The loops of one stage, innermost first.
struct Stage {
  SmallVector<Loop> loops;
  bool atomic = false;
  bool ordered = true; // libHalide orders the loops of a factored stage anew
  Loop *find(StringRef name) {
    for (Loop &loop : loops)
      if (loop.name == name)
        return &loop;
    return nullptr;
  }
  size_t position(StringRef name) { return find(name) - loops.begin(); }
  /// Whether both loops are there and \p outer is \p inner or outside of it.
  bool encloses(StringRef outer, StringRef inner) {
    return find(outer) && find(inner) &&
           (!ordered || position(outer) >= position(inner));
  }
  void reorder(ArrayRef<StringRef> names) {
    SmallVector<size_t> places;
    SmallVector<Loop> moved;
    for (StringRef name : names) {
      places.push_back(position(name));
      moved.push_back(*find(name));
    }
    llvm::sort(places);
    for (auto [place, loop] : llvm::zip(places, moved))
      loops[place] = loop;
  }
};

/// A stage of a func that reads another one.
struct Site {
  Value func;
  size_t stage;
};

struct FuncState {
  SmallVector<Stage> stages;
  SmallVector<StringRef>
      vars; // pure vars, which bound and align directives name
  Operation *firstDirective = nullptr;
  llvm::StringMap<Operation *> placed; // by name of the directive
  SmallVector<Site> readers;
  bool isOutput = false;

  /// Computed where it is read: it has a loop nest there if it has updates, but
  /// no place of its own.
  bool isInlined() const {
    Operation *compute = placed.lookup("compute");
    return !isOutput && (!compute || isa<ComputeInlineOp>(compute));
  }
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
  LogicalResult checkPlace(Operation *op);
  void addReaders(Operation *definition, Site site);
  bool reads(Value func, Value what, llvm::SmallPtrSetImpl<void *> &seen);
  bool isInside(Site site, Value func, StringRef var, unsigned depth);

  LogicalResult requireLoop(Operation *op, Stage &stage, StringRef var,
                            Value func);
  LogicalResult requireNew(Operation *op, Stage &stage, StringRef var,
                           Value func);
  LogicalResult setKind(Operation *op, Stage &stage, StringRef var, Value func);
  LogicalResult split(Operation *op, Stage &stage, StringRef var,
                      StringRef outer, StringRef inner, int64_t factor,
                      TailStrategy tail, bool isUpdate, Value func);

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

/// libHalide joins names with '.', and has a loop of its own outside of all.
static bool isLoopName(StringRef name) {
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

void ScheduleChecker::addReaders(Operation *definition, Site site) {
  definition->walk([&](ReadOp read) {
    if (auto it = funcs.find(read.getFunc()); it != funcs.end())
      it->second.readers.push_back(site);
  });
}

LogicalResult ScheduleChecker::addDefinitions() {
  for (Operation &op : pipeline.getBody().front()) {
    if (auto func = dyn_cast<FuncOp>(op)) {
      FuncState &state = funcs[func.getResult()];
      state.vars = strings(func.getVars());
      Stage &stage = state.stages.emplace_back();
      for (StringRef var : state.vars) {
        if (!isLoopName(var))
          return func.emitOpError("'")
                 << var << "' is no name for a loop, which is neither empty "
                 << "nor has a '.' (pipeline.c6)";
        stage.loops.push_back({var});
      }
      addReaders(func, {func.getResult(), 0});
    } else if (auto update = dyn_cast<UpdateOp>(op)) {
      FuncState &state = funcs[update.getFunc()];
      Stage &stage = state.stages.emplace_back();
      bool sameElement =
          update.getWhere().empty() &&
          (update.getAt().empty() ||
           llvm::all_of(
               update.getAt().getArguments().drop_front(state.vars.size()),
               [](Value var) { return var.use_empty(); }));
      for (auto [k, var] : llvm::enumerate(strings(update.getRvars()))) {
        if (failed(requireNew(update, stage, var, update.getFunc())))
          return failure();
        APInt extent;
        bool once =
            matchPattern(update.getRVarExtent(k), m_ConstantInt(&extent)) &&
            extent.sle(1);
        stage.loops.push_back({var, true, sameElement && !once});
      }
      YieldOp place = update.getAt().empty()
                          ? YieldOp()
                          : cast<YieldOp>(update.getAt().front().back());
      for (auto [k, var] : llvm::enumerate(state.vars))
        if (!place || place.getValues()[k] == update.getAt().getArgument(k))
          stage.loops.push_back({var});
      for (const Site &reader : state.readers)
        if (reader.func != update.getFunc())
          return update.emitOpError("updates '")
                 << getFuncName(update.getFunc()) << "' after '"
                 << getFuncName(reader.func) << "' has read it (update.c7)";
      addReaders(update, {update.getFunc(), state.stages.size() - 1});
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
  APInt extent;
  if (isa<BoundVarOp, BoundExtentOp>(op) &&
      matchPattern(op->getOperands().back(), m_ConstantInt(&extent)) &&
      extent.sle(0))
    return op->emitOpError("extent of '")
           << var.getValue() << "' is " << extent.getSExtValue()
           << ", expected a positive one (promise.c2)";
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

/// Whether \p func reads \p what, itself or through others.
bool ScheduleChecker::reads(Value func, Value what,
                            llvm::SmallPtrSetImpl<void *> &seen) {
  return llvm::any_of(funcs[what].readers, [&](const Site &site) {
    return site.func == func ||
           (seen.insert(site.func.getAsOpaquePointer()).second &&
            reads(func, site.func, seen));
  });
}

/// Whether \p site is computed inside loop \p var of \p func, or not at all.
/// What is too deep to follow counts as inside.
bool ScheduleChecker::isInside(Site site, Value func, StringRef var,
                               unsigned depth) {
  if (site.func == func)
    return funcs[func].stages[site.stage].find(var);
  FuncState &state = funcs[site.func];
  if (depth > funcs.size() || (state.readers.empty() && !state.isOutput))
    return true;
  if (state.isInlined())
    return llvm::all_of(state.readers, [&](const Site &reader) {
      return reader.func == site.func || isInside(reader, func, var, depth + 1);
    });
  Operation *at = state.placed.lookup("compute");
  if (!isa_and_nonnull<ComputeAtOp>(at))
    return false;
  Value consumer = at->getOperand(1);
  StringRef loop = at->getAttrOfType<StringAttr>("var").getValue();
  return llvm::any_of(llvm::enumerate(funcs[consumer].stages), [&](auto stage) {
    if (!stage.value().find(loop))
      return false;
    return consumer == func
               ? stage.value().encloses(var, loop)
               : isInside({consumer, stage.index()}, func, var, depth + 1);
  });
}

LogicalResult ScheduleChecker::checkPlace(Operation *op) {
  StringRef var = op->getAttrOfType<StringAttr>("var").getValue();
  Value func = op->getOperand(0), consumer = op->getOperand(1);
  FuncState &state = funcs[func], &place = funcs[consumer];
  if (llvm::none_of(place.stages,
                    [&](Stage &stage) { return stage.find(var) != nullptr; }))
    return op->emitOpError("'")
           << var << "' is no loop of '" << getFuncName(consumer)
           << "' when the schedule is complete (at.c1)";
  if (place.isInlined() && place.stages.size() == 1)
    return op->emitOpError("'") << getFuncName(consumer)
                                << "' is computed inline, so it has no loops "
                                   "(at.c3)";
  llvm::SmallPtrSet<void *, 8> seen;
  if (!reads(consumer, func, seen))
    return op->emitOpError("'") << getFuncName(consumer) << "' does not read '"
                                << getFuncName(func) << "' (at.c3)";
  for (const Site &site : state.readers) {
    if (site.func == func || isInside(site, consumer, var, 0))
      continue;
    InFlightDiagnostic diag =
        op->emitOpError("'")
        << getFuncName(func) << "' is read by stage " << site.stage << " of '"
        << getFuncName(site.func) << "', which is not inside loop '" << var
        << "' of '" << getFuncName(consumer) << "' (at.c4)";
    diag.attachNote(site.func.getLoc()) << "here";
    return diag;
  }
  Operation *compute = state.placed.lookup("compute");
  if (op == compute || isa<HoistStorageOp>(op))
    return success();
  if (isa<ComputeRootOp>(compute) ||
      (compute->getOperand(1) == consumer &&
       llvm::none_of(place.stages, [&](Stage &stage) {
         return stage.encloses(
             var, compute->getAttrOfType<StringAttr>("var").getValue());
       })))
    return op->emitOpError("'") << getFuncName(func)
                                << "' is stored inside of where it is computed "
                                   "(at.c5)";
  return success();
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
      if (failed(checkPlace(op)))
        return failure();
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
    if (!isa<ParamOp>(op) && (it->first().empty() || it->first().contains('.')))
      return op.emitOpError("'")
             << it->first()
             << "' is no name for an array, which is neither empty nor has a "
                "'.' (pipeline.c6)";
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
