//===- PipelineVerifier.cpp - a pipeline as a whole -----------------------===//
// Names, outputs, and the schedule, whose directives are followed loop by loop.
#include "dialects/Halide/ScheduleChecker.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace heed::halide;
using namespace heed::halide::schedule;

void ScheduleChecker::addReaders(Operation *definition, Site site) {
  definition->walk([&](ReadOp read) {
    if (auto *it = funcs.find(read.getFunc()); it != funcs.end())
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
  if (isa<ComputeWithOp>(op)) {
    state.placed["with"] = op;
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
  if (Operation *with = state.placed.lookup("with"))
    return with->getOperand(1) == func &&
           funcs[func].stages[0].encloses(
               var, with->getAttrOfType<StringAttr>("var").getValue());
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

/// Whether both funcs have the same loops from the outermost one to the var.
LogicalResult ScheduleChecker::checkShared(ComputeWithOp op) {
  SmallVector<StringRef> around[2];
  Value both[] = {op.getFunc(), op.getOther()};
  for (auto [k, func] : llvm::enumerate(both))
    for (const Loop &loop : llvm::reverse(funcs[func].stages[0].loops)) {
      around[k].push_back(loop.name);
      if (loop.name == op.getVar())
        break;
    }
  if (around[0] == around[1] && !around[0].empty() &&
      around[0].back() == op.getVar())
    return success();
  return op.emitOpError("'")
         << getFuncName(op.getFunc()) << "' and '" << getFuncName(op.getOther())
         << "' have other loops up to '" << op.getVar()
         << "' (compute_with.c2)";
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
  // Those that share its loops read there, too.
  bool isRead = llvm::any_of(funcs, [&](auto &entry) {
    Operation *with = entry.second.placed.lookup("with");
    llvm::SmallPtrSet<void *, 8> seen;
    return (entry.first == consumer ||
            (with && with->getOperand(1) == consumer)) &&
           reads(entry.first, func, seen);
  });
  if (!isRead)
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

/// Whether \p func reads \p what in its own loops, perhaps through funcs that
/// are inline.
bool ScheduleChecker::readsItself(Value func, Value what) {
  return llvm::any_of(funcs[what].readers, [&](const Site &site) {
    return site.func == func ||
           (site.func != what && funcs[site.func].isInlined() &&
            readsItself(func, site.func));
  });
}

/// Whether all that reads \p func, which is computed at loop \p var of \p
/// block, is in threads of the block that no other loop is around.
bool ScheduleChecker::isReadOnce(Value func, Value block, StringRef var) {
  return llvm::all_of(funcs[func].readers, [&](const Site &site) {
    if (site.func == func || site.func == block)
      return true;
    FuncState &reader = funcs[site.func];
    if (reader.isInlined())
      return isReadOnce(site.func, block, var);
    auto at = dyn_cast_or_null<ComputeAtOp>(reader.placed.lookup("compute"));
    if (!at)
      return false;
    auto isThread = [](Loop &loop) { return loop.kind == "gpu_threads"; };
    if (at.getConsumer() == block && at.getVar() == var) {
      SmallVector<Loop> &loops = reader.stages[site.stage].loops;
      return !loops.empty() && isThread(loops.back());
    }
    // In a thread of what reads it.
    return llvm::all_of(funcs[at.getConsumer()].stages,
                        [&](Stage &stage) {
                          return llvm::any_of(stage.loops, [&](Loop &loop) {
                            return isThread(loop) &&
                                   stage.encloses(loop.name, at.getVar());
                          });
                        }) &&
           isReadOnce(site.func, block, var);
  });
}

/// libHalide takes shared memory for free behind the last statement that reads
/// it, also where that is in a loop and reads it again in the next turn.
LogicalResult ScheduleChecker::checkKept(Value func, FuncState &state) {
  auto at = dyn_cast_or_null<ComputeAtOp>(state.placed.lookup("compute"));
  StoreInOp store;
  for (Operation *user : func.getUsers())
    if (auto op = dyn_cast<StoreInOp>(user))
      store = op;
  if (!at || !store || store.getMemory() != MemoryType::GPUShared ||
      readsItself(at.getConsumer(), func) ||
      isReadOnce(func, at.getConsumer(), at.getVar()))
    return success();
  bool isOfBlock =
      llvm::any_of(funcs[at.getConsumer()].stages, [&](Stage &stage) {
        Loop *loop = stage.find(at.getVar());
        return loop && loop->kind == "gpu_blocks";
      });
  if (!isOfBlock)
    return success();
  return store.emitOpError("'")
         << getFuncName(func) << "' is shared by a block of '"
         << getFuncName(at.getConsumer())
         << "', which does not read it itself: its memory would be another "
            "func's before the last read (gpu.c3)";
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
    if (failed(checkKept(func, state)))
      return failure();
    for (auto &entry : state.placed) {
      Operation *op = entry.second;
      if (op->getNumOperands() < 2)
        continue;
      if (auto with = dyn_cast<ComputeWithOp>(op)) {
        if (failed(checkShared(with)))
          return failure();
        continue;
      }
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
