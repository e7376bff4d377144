// Directives: each schedule op is one call of libHalide. Nothing is decided
// here.

#include "compiler/Codegen/HalideTranslate.h"
#include "support/Format.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace heed;
using Halide::VarOrRVar;

static Halide::TailStrategy tail(halide::TailStrategy strategy) {
  switch (strategy) {
  case halide::TailStrategy::Auto:
    return Halide::TailStrategy::Auto;
  case halide::TailStrategy::RoundUp:
    return Halide::TailStrategy::RoundUp;
  case halide::TailStrategy::GuardWithIf:
    return Halide::TailStrategy::GuardWithIf;
  case halide::TailStrategy::Predicate:
    return Halide::TailStrategy::Predicate;
  case halide::TailStrategy::PredicateLoads:
    return Halide::TailStrategy::PredicateLoads;
  case halide::TailStrategy::PredicateStores:
    return Halide::TailStrategy::PredicateStores;
  case halide::TailStrategy::ShiftInwards:
    return Halide::TailStrategy::ShiftInwards;
  case halide::TailStrategy::ShiftInwardsAndBlend:
    return Halide::TailStrategy::ShiftInwardsAndBlend;
  case halide::TailStrategy::RoundUpAndBlend:
    return Halide::TailStrategy::RoundUpAndBlend;
  }
  return Halide::TailStrategy::Auto;
}

static Halide::MemoryType memory(halide::MemoryType type) {
  switch (type) {
  case halide::MemoryType::Auto:
    return Halide::MemoryType::Auto;
  case halide::MemoryType::Heap:
    return Halide::MemoryType::Heap;
  case halide::MemoryType::Stack:
    return Halide::MemoryType::Stack;
  case halide::MemoryType::Register:
    return Halide::MemoryType::Register;
  case halide::MemoryType::GPUShared:
    return Halide::MemoryType::GPUShared;
  case halide::MemoryType::GPUTexture:
    return Halide::MemoryType::GPUTexture;
  case halide::MemoryType::LockedCache:
    return Halide::MemoryType::LockedCache;
  case halide::MemoryType::VTCM:
    return Halide::MemoryType::VTCM;
  case halide::MemoryType::AMXTile:
    return Halide::MemoryType::AMXTile;
  }
  return Halide::MemoryType::Auto;
}

static Halide::Partition partition(halide::Partition policy) {
  switch (policy) {
  case halide::Partition::Auto:
    return Halide::Partition::Auto;
  case halide::Partition::Never:
    return Halide::Partition::Never;
  case halide::Partition::Always:
    return Halide::Partition::Always;
  }
  return Halide::Partition::Auto;
}

static auto strings(ArrayAttr names) {
  return names.getAsValueRange<StringAttr>();
}

VarOrRVar HalideTranslator::loop(Operation *op, Loops &stage, StringRef name) {
  auto it = stage.find(name.str());
  if (it == stage.end())
    throw TranslationError{op, format("'{}' is no loop here", name)};
  return it->second;
}

/// A new loop variable of the same kind as \p like.
static VarOrRVar makeLoop(StringRef name, const VarOrRVar &like) {
  return VarOrRVar(name.str(), like.is_rvar);
}

/// A prefetch that libHalide has no directive for: Prefetch.cpp writes it into
/// the lowered loops. \p at is the loop whose turn begins it.
template <typename Op>
void HalideTranslator::prefetchLines(Op prefetch, StringRef at) {
  Operation *op = prefetch;
  Value source = prefetch.getSource(), consumer = prefetch.getConsumer();
  LinePrefetch request;
  request.directive = &directives.emplace_back(Directive{op});
  request.stage =
      format("{}.s{}.", funcs[prefetch.getFunc()].name(), prefetch.getStage());
  request.at = format(".{}", at);
  auto buffer = buffers.find(source);
  request.source =
      buffer != buffers.end() ? buffer->second.name() : funcs[source].name();
  for (Loops &stage : loops[consumer])
    if (auto it = stage.find(prefetch.getOver().str()); it != stage.end())
      request.over = format(".{}", it->second.name());
  if (request.over.empty())
    throw TranslationError{op,
                           format("finds no loop '{}'", prefetch.getOver())};
  request.consumer = format("{}.s", funcs[consumer].name());
  if (auto lines = dyn_cast<halide::PrefetchLinesOp>(op)) {
    request.ahead = lines.getAhead();
    request.parts = static_cast<int32_t>(lines.getParts());
  } else if (auto spread = dyn_cast<halide::PrefetchSpreadOp>(op)) {
    request.ahead = spread.getAhead();
    request.lines = static_cast<int32_t>(spread.getLines());
    request.turns = static_cast<int32_t>(spread.getTurns());
    request.secondCache = spread.getSecondCache();
    request.inOrder = spread.getInOrder();
    request.isOutput =
        llvm::any_of(source.getUsers(), llvm::IsaPred<halide::OutputOp>);
    request.group = static_cast<int32_t>(spread.getGroup());
    request.places = static_cast<int32_t>(spread.getPlaces().value_or(1));
    request.apart = spread.getApart().value_or(0);
  }
  prefetches.push_back(std::move(request));
}

/// Long: one case for each directive.
void HalideTranslator::scheduleStage(Operation *op, Halide::Stage stage,
                                     Loops &loops) {
  auto find = [&](StringRef name) { return loop(op, loops, name); };
  auto add = [&](StringRef name, const VarOrRVar &like) {
    VarOrRVar var = makeLoop(name, like);
    loops.insert_or_assign(name.str(), var);
    return var;
  };
  auto findAll = [&](ArrayAttr names) {
    std::vector<VarOrRVar> vars;
    for (StringRef name : strings(names))
      vars.push_back(find(name));
    return vars;
  };
  TypeSwitch<Operation *>(op)
      .Case([&](halide::SplitOp split) {
        VarOrRVar old = find(split.getVar());
        loops.erase(split.getVar().str());
        VarOrRVar outer = add(split.getOuter(), old),
                  inner = add(split.getInner(), old);
        Halide::Expr factor =
            split.getDynamicFactor()
                ? get(split.getDynamicFactor())
                : Halide::Expr(static_cast<int32_t>(*split.getFactor()));
        stage.split(old, outer, inner, factor, tail(split.getTail()));
      })
      .Case([&](halide::TileOp tile) {
        std::vector<VarOrRVar> old = findAll(tile.getVars()), outer, inner;
        for (StringRef name : strings(tile.getVars()))
          loops.erase(name.str());
        std::vector<Halide::Expr> factors;
        for (auto [k, name] : llvm::enumerate(strings(tile.getOuter())))
          outer.push_back(add(name, old[k]));
        for (auto [k, name] : llvm::enumerate(strings(tile.getInner()))) {
          inner.push_back(add(name, old[k]));
          factors.push_back(static_cast<int32_t>(tile.getFactors()[k]));
        }
        stage.tile(old, outer, inner, factors, tail(tile.getTail()));
      })
      .Case([&](halide::FuseOp fuse) {
        VarOrRVar inner = find(fuse.getInner()), outer = find(fuse.getOuter());
        loops.erase(fuse.getInner().str());
        loops.erase(fuse.getOuter().str());
        stage.fuse(inner, outer, add(fuse.getFused(), inner));
      })
      .Case([&](halide::RenameOp rename) {
        VarOrRVar old = find(rename.getVar());
        loops.erase(rename.getVar().str());
        stage.rename(old, add(rename.getNewName(), old));
      })
      .Case([&](halide::ReorderOp reorder) {
        stage.reorder(findAll(reorder.getVars()));
      })
      .Case([&](halide::VectorizeOp v) { stage.vectorize(find(v.getVar())); })
      .Case([&](halide::UnrollOp v) { stage.unroll(find(v.getVar())); })
      .Case([&](halide::ParallelOp v) { stage.parallel(find(v.getVar())); })
      .Case([&](halide::SerialOp v) { stage.serial(find(v.getVar())); })
      .Case([&](halide::PartitionOp p) {
        stage.partition(find(p.getVar()), partition(p.getPolicy()));
      })
      .Case([&](halide::AtomicOp atomic) {
        stage.atomic(atomic.getOverrideAssociativity());
      })
      .Case([&](halide::PrefetchOp prefetch) {
        VarOrRVar at = find(prefetch.getAt()), from = find(prefetch.getFrom());
        auto offset = static_cast<int32_t>(prefetch.getOffset());
        if (auto it = buffers.find(prefetch.getSource()); it != buffers.end())
          stage.prefetch(it->second.parameter(), at, from, offset);
        else
          stage.prefetch(funcs[prefetch.getSource()], at, from, offset);
      })
      .Case<halide::PrefetchLinesOp, halide::PrefetchNextOp,
            halide::PrefetchSpreadOp>([&](auto prefetch) {
        prefetchLines(prefetch, find(prefetch.getAt()).name());
      })
      .Case([&](halide::SpecializeOp specialize) {
        Halide::Stage version =
            stage.specialize(get(specialize.getCondition()));
        Loops inner = loops;
        for (Operation &directive : specialize.getBody().front()) {
          current = &directive;
          scheduleStage(&directive, version, inner);
        }
      })
      .Case([&](halide::GPUBlocksOp gpu) {
        auto v = findAll(gpu.getVars());
        v.size() == 1   ? stage.gpu_blocks(v[0])
        : v.size() == 2 ? stage.gpu_blocks(v[0], v[1])
                        : stage.gpu_blocks(v[0], v[1], v[2]);
      })
      .Case([&](halide::GPUThreadsOp gpu) {
        auto v = findAll(gpu.getVars());
        v.size() == 1   ? stage.gpu_threads(v[0])
        : v.size() == 2 ? stage.gpu_threads(v[0], v[1])
                        : stage.gpu_threads(v[0], v[1], v[2]);
      })
      .Case([&](halide::GPUSingleThreadOp) { stage.gpu_single_thread(); })
      .Default([&](Operation *) {
        throw TranslationError{op, "is no directive of a stage"};
      });
}

/// Long: one case for each directive.
void HalideTranslator::scheduleFunc(Operation *op, Halide::Func &func) {
  // Which stage of the consumer has the loop decides whether it is a Var or an
  // RVar.
  auto place = [&](auto at) -> std::pair<Halide::Func &, VarOrRVar> {
    Halide::Func &consumer = funcs[at.getConsumer()];
    for (Loops &stage : loops[at.getConsumer()])
      if (auto it = stage.find(at.getVar().str()); it != stage.end())
        return {consumer, it->second};
    throw TranslationError{op, format("finds no loop '{}'", at.getVar())};
  };
  TypeSwitch<Operation *>(op)
      .Case([&](halide::ComputeAtOp at) {
        auto [consumer, var] = place(at);
        func.compute_at(Halide::LoopLevel(consumer, var));
      })
      .Case([&](halide::ComputeWithOp with) {
        Halide::Func &other = funcs[with.getOther()];
        func.compute_with(Halide::Stage(other),
                          loops[with.getOther()][0].at(with.getVar().str()));
      })
      .Case([&](halide::StoreAtOp at) {
        auto [consumer, var] = place(at);
        func.store_at(Halide::LoopLevel(consumer, var));
      })
      .Case([&](halide::HoistStorageOp at) {
        auto [consumer, var] = place(at);
        func.hoist_storage(Halide::LoopLevel(consumer, var));
      })
      .Case([&](halide::ComputeRootOp) { func.compute_root(); })
      .Case([&](halide::ComputeInlineOp) { func.compute_inline(); })
      .Case([&](halide::StoreRootOp) { func.store_root(); })
      .Case([&](halide::HoistStorageRootOp) { func.hoist_storage_root(); })
      .Case([&](halide::StoreInOp store) {
        func.store_in(memory(store.getMemory()));
      })
      .Case([&](halide::BoundVarOp b) {
        func.bound(Halide::Var(b.getVar().str()), get(b.getMin()),
                   get(b.getExtent()));
      })
      .Case([&](halide::BoundExtentOp b) {
        func.bound_extent(Halide::Var(b.getVar().str()), get(b.getExtent()));
      })
      .Case([&](halide::AlignBoundsOp a) {
        func.align_bounds(Halide::Var(a.getVar().str()),
                          static_cast<int32_t>(a.getModulus()),
                          static_cast<int32_t>(a.getRemainder()));
      })
      .Case([&](halide::AlignStorageOp a) {
        func.align_storage(Halide::Var(a.getVar().str()),
                           static_cast<int32_t>(a.getModulus()));
      })
      .Case([&](halide::StreamStoresOp stream) {
        streams.push_back(
            {&directives.emplace_back(Directive{op}), func.name(),
             func.dimensions(), func.type().bytes(),
             static_cast<int64_t>(stream.getBeyond()),
             stream.getTimes() ? get(stream.getTimes()) : Halide::Expr()});
      })
      .Case([&](halide::TraceStoresOp) { func.trace_stores(); })
      .Case([&](halide::ReorderStorageOp storage) {
        std::vector<Halide::Var> vars;
        for (StringRef name : strings(storage.getVars()))
          vars.emplace_back(name.str());
        func.reorder_storage(vars);
      })
      .Default([&](Operation *) {
        throw TranslationError{op, "is no directive of a func"};
      });
}

void HalideTranslator::schedule(Operation *op) {
  Value value = op->getOperand(0);
  Halide::Func &func = funcs[value];
  auto stage = op->getAttrOfType<IntegerAttr>("stage");
  if (!stage)
    return scheduleFunc(op, func);
  size_t k = stage.getInt();
  Halide::Stage target = k == 0 ? Halide::Stage(func) : func.update(k - 1);
  scheduleStage(op, target, loops[value][k]);
}

std::vector<std::pair<Operation *, std::string>>
HalideTranslator::unmet() const {
  std::vector<std::pair<Operation *, std::string>> found;
  for (const Directive &directive : directives)
    if (!directive.isMet)
      found.emplace_back(directive.op,
                         format("'{}' has no effect: it finds no {}",
                                directive.op->getName().getStringRef(),
                                isa<halide::StreamStoresOp>(directive.op)
                                    ? "store of whole vectors"
                                    : "loop in which its source is read"));
  return found;
}

void HalideTranslator::factor(halide::RFactorOp op) {
  Halide::Func &func = funcs[op.getFunc()];
  Loops merge = loops[op.getFunc()][op.getStage()], part = merge;
  std::vector<std::pair<Halide::RVar, Halide::Var>> kept;
  Loops pure = loops[op.getFunc()][0];
  for (auto [rvar, name] :
       llvm::zip(strings(op.getRvars()), strings(op.getVars()))) {
    VarOrRVar old = loop(op, merge, rvar);
    Halide::Var var(name.str());
    kept.push_back({old.rvar, var});
    part.erase(rvar.str());
    part.emplace(name.str(), var);
    pure.emplace(name.str(), var);
  }
  for (auto it = merge.begin(); it != merge.end();) {
    bool isKept =
        llvm::is_contained(strings(op.getRvars()), StringRef(it->first));
    it = it->second.is_rvar && !isKept ? merge.erase(it) : std::next(it);
  }
  Halide::Func result = func.update(op.getStage() - 1).rfactor(kept);
  loops[op.getFunc()][op.getStage()] = merge;
  loops[op.getResult()] = {pure, part};
  funcs.insert({op.getResult(), result});
}
