//===- GPUContraction.cpp - sums of products in tiles, on GPUs ------------===//
//
// y[.., m, n] = epilogue(sum_r A[.., m, r] * B[.., r, n]). A block of threads
// computes a tile of rows and columns. It takes 16 terms at a time: their part
// of A and of B is brought to shared memory, [r][m] and [r][n], with whatever
// A and B are computed by; each thread has its sums in registers. Rows and
// columns past the end are read at the last one and not stored; terms past the
// end are -0. What of a kernel is no such sum is stored plainly (GPUPlain).
// Measured: passes/Schedule/README.md.
#include "passes/Mutation.h"
#include "passes/Schedule/GPU.h"
#include "passes/Schedule/Rewrite.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

namespace {

constexpr auto guard = halide::TailStrategy::GuardWithIf;

/// A sum that tiles compute: which dim of it counts rows (dim 0 counts
/// columns), which factor has these, and which of its reduction vars is taken
/// by steps.
struct TiledSum {
  unsigned row;
  unsigned ofRows; ///< 0 or 1
  unsigned term;   ///< among the reduction vars
};

/// Whether there may be more than \p count.
bool isMoreThan(KnownExtent extent, int64_t count) {
  return !extent || *extent > count;
}

std::optional<TiledSum> planSum(const Computation &c) {
  // Below these a tile is mostly empty.
  constexpr int64_t fewRows = 4, fewColumns = 8, fewTerms = 4;
  if (c.reductions.size() != 1 || c.results != 1 || !c.reads.empty() ||
      c.rank() < 2 || !c.element.isF32())
    return std::nullopt;
  const Reduction &sum = c.reductions[0];
  if (sum.isGuarded || sum.isScattered || sum.combiner != Combiner::Sum ||
      sum.factors.size() != 2 || sum.extents.empty())
    return std::nullopt;
  TiledSum plan{0, 0, 0};
  bool first = sum.factors[0].loops.test(kColumn),
       second = sum.factors[1].loops.test(kColumn);
  if (first == second || !isMoreThan(c.extents[kColumn], fewColumns))
    return std::nullopt;
  plan.ofRows = first;
  const Factor &a = sum.factors[plan.ofRows], &b = sum.factors[!plan.ofRows];
  auto length = [](KnownExtent extent) {
    return extent.value_or(std::numeric_limits<int64_t>::max());
  };
  // The innermost one that has a tile's rows at all; else the longest.
  for (unsigned dim = kRow; dim < c.rank(); ++dim) {
    if (!a.loops.test(dim) || b.loops.test(dim) ||
        !isMoreThan(c.extents[dim], fewRows))
      continue;
    if (!plan.row || length(c.extents[plan.row]) < 64)
      if (!plan.row || length(c.extents[dim]) > length(c.extents[plan.row]))
        plan.row = dim;
  }
  for (unsigned r = 1; r < sum.extents.size(); ++r)
    if (length(sum.extents[r]) > length(sum.extents[plan.term]) &&
        length(sum.extents[plan.term]) < GPUTile::steps)
      plan.term = r;
  if (!plan.row || !isMoreThan(sum.extents[plan.term], fewTerms))
    return std::nullopt;
  return plan;
}

/// The schedule of one sum, step by step.
class TiledOnGPU {
public:
  TiledOnGPU(KernelInfo &kernel, Value sum, const TiledSum &plan, Value out,
             const halide::Target &target)
      : kernel(kernel), sum(sum), plan(plan), out(out),
        b(scheduleBuilder(kernel)), loc(sum.getLoc()) {
    KernelFunc &f = *kernel.find(sum);
    int64_t count = 1;
    for (unsigned dim = 1; dim < f.extents.size(); ++dim)
      if (dim != plan.row)
        count *= f.extents[dim].fixed.value_or(1);
    tile = chooseGPUTile(f.extents[plan.row].fixed, f.extents[kColumn].fixed,
                         count, target);
  }

  void run() {
    takeSteps();
    scheduleOutput();
    scheduleSum();
    for (Staged *one : {&rows, &columns})
      scheduleStage(*one);
  }

private:
  /// A factor's part of a step, in shared memory.
  struct Staged {
    Value func;
    std::string along;   ///< its var of rows or columns
    int64_t count = 0;   ///< of these in a tile
    bool byTerm = false; ///< its array lies so that terms are neighbours
    bool asVectors = false;
    SmallVector<std::string> outer; ///< vars with one place in a block
  };

  void takeSteps();
  Staged stage(halide::UpdateOp update, Value factor, unsigned along,
               int64_t count, bool isRows);
  Value placeOf(OpBuilder &at, Value place, Value end, KnownExtent extent,
                bool isByFour);
  void scheduleOutput();
  void scheduleSum();
  void scheduleStage(Staged &staged);
  void splitTile(Value func, int64_t stage, StringRef column, StringRef row);

  void split(Value func, int64_t stage, StringRef var, StringRef outer,
             StringRef inner, int64_t by) {
    halide::SplitOp::create(b, loc, func, stage, var, outer, inner, by, guard);
  }
  void reorder(Value func, int64_t stage, ArrayRef<std::string> vars) {
    halide::ReorderOp::create(b, loc, func, stage,
                              SmallVector<StringRef>(vars.begin(), vars.end()));
  }
  void unroll(Value func, int64_t stage, ArrayRef<std::string> vars) {
    for (const std::string &var : vars)
      halide::UnrollOp::create(b, loc, func, stage, var);
  }
  void map(Value func, int64_t stage) {
    halide::GPUThreadsOp::create(b, loc, func, stage,
                                 b.getStrArrayAttr({"nt", "mt"}));
  }
  /// Loops of a thread's own elements, innermost first.
  SmallVector<std::string> ownLoops() const {
    if (tile.ownColumns > 4)
      return {"nv", "nh", "mv"};
    return {"nv", "mv"};
  }

  KernelInfo &kernel;
  Value sum;
  const TiledSum plan;
  Value out; ///< the func in whose grid it is computed
  OpBuilder b;
  Location loc;
  GPUTile tile{};
  Staged rows, columns;
  std::string terms, steps; ///< loops of the sum: of a step, and over these
  SmallVector<std::string> others; ///< its other reduction vars
};

/// The first read of an array that \p value is computed from.
halide::ReadOp arrayOf(Value value) {
  Operation *def = value.getDefiningOp();
  if (!def || isa<halide::PipelineOp>(def->getParentOp()))
    return {};
  if (auto read = dyn_cast<halide::ReadOp>(def))
    if (read.getFunc().getDefiningOp<halide::BufferOp>())
      return read;
  for (Value operand : def->getOperands())
    if (halide::ReadOp read = arrayOf(operand))
      return read;
  return {};
}

/// Whether each group of four elements along the first dim of \p array lies at
/// a multiple of 16 bytes.
bool hasGroupsOfFour(Value array) {
  std::optional<int64_t> known;
  size_t strides = 0;
  for (Operation *user : array.getUsers()) {
    auto bounds = dyn_cast<halide::SetBoundsOp>(user);
    if (bounds && bounds.getDim() == 0 && bounds.getExtent())
      if (auto extent = bounds.getExtent().getDefiningOp<arith::ConstantOp>())
        known = cast<IntegerAttr>(extent.getValue()).getInt();
    strides += isa<halide::SetStrideOp>(user);
  }
  size_t dims = array.getDefiningOp<halide::BufferOp>().getDims().size();
  return halide::getElementTypes(array).front().isF32() && known &&
         *known % 4 == 0 && strides + 1 >= dims;
}

/// \p place, or the last one before \p end if it is behind; with \p isByFour a
/// group of four stays one.
Value TiledOnGPU::placeOf(OpBuilder &at, Value place, Value end,
                          KnownExtent extent, bool isByFour) {
  if (!isByFour || !extent || *extent % 4)
    return arith::MinSIOp::create(at, loc, place, addI32(at, end, -1));
  Value group = arith::MinSIOp::create(at, loc, divI32(at, place, 4),
                                       constantI32(at, loc, *extent / 4 - 1));
  return arith::AddIOp::create(at, loc, mulI32(at, group, 4),
                               remI32(at, place, 4));
}

/// A func of what \p factor is at the \p count rows or columns \p along and the
/// terms of a step.
TiledOnGPU::Staged TiledOnGPU::stage(halide::UpdateOp update, Value factor,
                                     unsigned along, int64_t count,
                                     bool isRows) {
  KernelFunc &f = *kernel.find(sum);
  Block &body = update.getSet().front();
  unsigned rank = f.extents.size(), term = rank + plan.term;
  Staged staged;
  staged.along = isRows ? "m" : "n";
  staged.count = count;
  auto read = arrayOf(factor);
  Value first = read && !read.getCoordinates().empty()
                    ? read.getCoordinates().front()
                    : Value();
  staged.byTerm = first == body.getArgument(term);
  staged.asVectors =
      first && (staged.byTerm || first == body.getArgument(along)) &&
      hasGroupsOfFour(read.getFunc());

  SmallVector<StringRef> vars{staged.along, "k", "kb"};
  SmallVector<unsigned> from;
  auto used = argumentsOf(factor);
  SmallVector<std::string> names = varsOf(f.func);
  for (Attribute r : update.getRvars())
    names.push_back(cast<StringAttr>(r).str());
  for (unsigned loop = 0; loop < body.getNumArguments(); ++loop)
    if (loop != along && loop != term && used.contains(body.getArgument(loop)))
      from.push_back(loop);
  for (unsigned loop : from)
    staged.outer.push_back(heed::format("of_{}", names[loop]));
  vars.append(staged.outer.begin(), staged.outer.end());

  Value begin = update.getRVarMin(plan.term);
  OpBuilder before(update);
  Value end = arith::AddIOp::create(before, loc, begin,
                                    update.getRVarExtent(plan.term));
  Extent extent = f.extents[along];
  KnownExtent length = f.reductions[0][plan.term].fixed;
  bool isEven = length && *length % GPUTile::steps == 0;
  KernelFunc &func = addFunc(
      kernel, update, heed::format("{}_{}", f.func.getName(), staged.along),
      vars, b.getF32Type(), {}, [&](OpBuilder &at, ValueRange args) -> Value {
        IRMapping map;
        for (auto [k, loop] : llvm::enumerate(from))
          map.map(body.getArgument(loop), args[3 + k]);
        bool isWhole = extent.fixed && *extent.fixed % count == 0;
        map.map(body.getArgument(along),
                isWhole ? args[0]
                        : placeOf(at, args[0], extent.value, extent.fixed,
                                  staged.asVectors && !staged.byTerm));
        Value place = arith::AddIOp::create(
            at, loc, begin,
            arith::AddIOp::create(at, loc, mulI32(at, args[2], GPUTile::steps),
                                  args[1]));
        map.map(body.getArgument(term),
                isEven ? place
                       : placeOf(at, place, end, length,
                                 staged.asVectors && staged.byTerm));
        Value value = cloneSlice(at, factor, map);
        if (isEven)
          return value;
        // -0 * 0 changes no sum.
        Value none = arith::ConstantOp::create(
            at, loc, at.getF32FloatAttr(isRows ? -0.0f : 0.0f));
        Value isTerm = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt,
                                             place, end);
        return arith::SelectOp::create(at, loc, isTerm, value, none);
      });
  staged.func = func.func.getResult();
  return staged;
}

/// Rewrites the sum: over steps, and the terms of each.
void TiledOnGPU::takeSteps() {
  KernelFunc &f = *kernel.find(sum);
  halide::UpdateOp update = f.updates[0];
  unsigned term = 0;
  Operation *combine = combinerOf(update, term);
  Operation *product = combine->getOperand(term).getDefiningOp();
  rows = stage(update, product->getOperand(plan.ofRows), plan.row, tile.rows,
               /*isRows=*/true);
  columns = stage(update, product->getOperand(!plan.ofRows), kColumn,
                  tile.columns, /*isRows=*/false);

  OpBuilder at(update);
  SmallVector<std::string> rvars;
  SmallVector<Value> bounds;
  Value zero = constantI32(at, loc, 0);
  unsigned rank = f.extents.size();
  SmallVector<unsigned> placeOf(update.getRvars().size());
  rvars.append({"k", "kb"});
  bounds.append({zero, constantI32(at, loc, GPUTile::steps), zero,
                 divI32(at,
                        addI32(at, update.getRVarExtent(plan.term),
                               GPUTile::steps - 1),
                        GPUTile::steps)});
  for (auto [r, name] : llvm::enumerate(update.getRvars())) {
    if (r == plan.term)
      continue;
    placeOf[r] = rvars.size();
    others.push_back(heed::format("o_{}", cast<StringAttr>(name).str()));
    rvars.push_back(others.back());
    bounds.append({update.getRVarMin(r), update.getRVarExtent(r)});
  }
  terms = "k";
  steps = "kb";
  auto fresh = halide::UpdateOp::create(
      at, loc, sum, SmallVector<StringRef>(rvars.begin(), rvars.end()), bounds);
  fresh.fill(at, fresh.getSet(), [&](OpBuilder &in, Location,
                                     ValueRange args) {
    auto argument = [&](unsigned loop) {
      return loop < rank ? args[loop] : args[rank + placeOf[loop - rank]];
    };
    auto read = [&](const Staged &staged, unsigned along, Value factor) {
      SmallVector<Value> coordinates{args[along], args[rank], args[rank + 1]};
      Block &body = update.getSet().front();
      auto used = argumentsOf(factor);
      for (unsigned loop = 0; loop < body.getNumArguments(); ++loop)
        if (loop != along && loop != rank + plan.term &&
            used.contains(body.getArgument(loop)))
          coordinates.push_back(argument(loop));
      return halide::ReadOp::create(in, loc, in.getF32Type(), staged.func,
                                    coordinates)
          .getResult(0);
    };
    IRMapping map;
    map.map(product->getOperand(plan.ofRows),
            read(rows, plan.row, product->getOperand(plan.ofRows)));
    map.map(product->getOperand(!plan.ofRows),
            read(columns, kColumn, product->getOperand(!plan.ofRows)));
    Value value = in.clone(*product, map)->getResult(0);
    map.map(combine->getOperand(term), value);
    map.map(combine->getOperand(1 - term),
            halide::ReadOp::create(in, loc, in.getF32Type(), sum,
                                   args.take_front(rank))
                .getResult(0));
    return SmallVector<Value>{in.clone(*combine, map)->getResult(0)};
  });
  update.erase();
  f.updates[0] = fresh;
}

/// Splits the loops of a tile into threads and their own elements. A thread's
/// columns are groups of four, so that a warp reads neighbours.
void TiledOnGPU::splitTile(Value func, int64_t stage, StringRef column,
                           StringRef row) {
  if (tile.ownColumns > 4)
    split(func, stage, column, "nh", column,
          tile.columns / (tile.ownColumns / 4));
  split(func, stage, column, "nt", "nv", 4);
  split(func, stage, row, "mt", "mv", tile.ownRows);
}

void TiledOnGPU::scheduleOutput() {
  KernelFunc &f = *kernel.find(out);
  SmallVector<std::string> names = varsOf(f.func);
  split(out, 0, names[kColumn], "np", "ni", tile.columns);
  split(out, 0, names[plan.row], "mb", "mi", tile.rows);
  splitTile(out, 0, "ni", "mi");
  SmallVector<std::string> loops = ownLoops(), outer;
  loops.append({"nt", "mt", "np", "mb"});
  for (unsigned dim = 1; dim < names.size(); ++dim)
    if (dim != plan.row)
      outer.push_back(names[dim]);
  loops.append(outer);
  reorder(out, 0, loops);
  SmallVector<StringRef> blocks{"np", "mb"};
  if (!outer.empty())
    outer = fuseLoops(b, f.func, 0, outer, FusedBody::ComputesFuncs);
  if (!outer.empty())
    blocks.push_back(outer.front());
  unroll(out, 0, ownLoops());
  map(out, 0);
  halide::GPUBlocksOp::create(b, loc, out, 0, b.getStrArrayAttr(blocks));
}

void TiledOnGPU::scheduleSum() {
  KernelFunc &f = *kernel.find(sum);
  SmallVector<std::string> names = varsOf(f.func);
  halide::ComputeAtOp::create(b, loc, sum, out, "np");
  halide::StoreInOp::create(b, loc, sum, halide::MemoryType::Register);
  for (unsigned dim = 0; dim < names.size(); ++dim)
    halide::BoundExtentOp::create(b, loc, sum, names[dim],
                                  i32(b, dim == kColumn    ? tile.columns
                                         : dim == plan.row ? tile.rows
                                                           : 1));
  for (int64_t stage : {0, 1}) {
    splitTile(sum, stage, names[kColumn], names[plan.row]);
    SmallVector<std::string> loops = ownLoops();
    if (stage)
      loops.push_back(terms);
    loops.append({"nt", "mt"});
    if (stage) {
      loops.push_back(steps);
      loops.append(others);
    }
    reorder(sum, stage, loops);
    unroll(sum, stage, ownLoops());
    if (stage)
      unroll(sum, stage, {terms});
    map(sum, stage);
  }
}

/// The threads of a block bring a step's part of a factor, neighbours from
/// neighbouring places of its array.
void TiledOnGPU::scheduleStage(Staged &staged) {
  Value func = staged.func;
  halide::ComputeAtOp::create(b, loc, func, sum, steps);
  halide::StoreInOp::create(b, loc, func, halide::MemoryType::GPUShared);
  auto bound = [&](StringRef var, int64_t extent) {
    halide::BoundExtentOp::create(b, loc, func, var, i32(b, extent));
  };
  bound(staged.along, staged.count);
  bound("k", GPUTile::steps);
  bound("kb", 1);
  for (const std::string &var : staged.outer)
    bound(var, 1);
  // Neighbours go to places that lie as far apart as a row of the tile is long:
  // four more keep half of them in different banks.
  if (staged.byTerm)
    halide::AlignStorageOp::create(b, loc, func, staged.along,
                                   staged.count + 4);
  std::string inner = "k", outer = staged.along;
  if (!staged.byTerm)
    std::swap(inner, outer);
  if (staged.asVectors)
    split(func, 0, inner, inner, "v", 4);
  halide::FuseOp::create(b, loc, func, 0, inner, outer, "t");
  split(func, 0, "t", "t", "nt", tile.threads());
  split(func, 0, "nt", "mt", "nt", tile.threadsX());
  SmallVector<std::string> loops{"t", "nt", "mt"};
  if (staged.asVectors)
    loops.insert(loops.begin(), "v");
  reorder(func, 0, loops);
  if (staged.asVectors)
    halide::VectorizeOp::create(b, loc, func, 0, "v");
  unroll(func, 0, {"t"});
  map(func, 0);
}

/// The output in whose grid \p sum may be computed: the only func that reads
/// it, at its own place, and that is in no tile yet. Null if there is none.
Value consumerOf(KernelInfo &kernel, Value sum,
                 const llvm::SmallPtrSetImpl<Value> &done) {
  KernelFunc &f = *kernel.find(sum);
  Value consumer;
  for (Operation *user : sum.getUsers()) {
    auto read = dyn_cast<halide::ReadOp>(user);
    if (!read)
      continue;
    if (auto update = dyn_cast<halide::UpdateOp>(read->getParentOp())) {
      if (update.getFunc() == sum)
        continue;
      return {};
    }
    auto func = cast<halide::FuncOp>(read->getParentOp());
    if (consumer && consumer != func.getResult())
      return {};
    consumer = func.getResult();
    Block &body = func.getBody().front();
    if (body.getNumArguments() != f.extents.size())
      return {};
    for (auto [k, at] : llvm::enumerate(read.getCoordinates()))
      if (at != body.getArgument(k))
        return {};
  }
  KernelFunc *reader = consumer ? kernel.find(consumer) : nullptr;
  if (!reader || !reader->updates.empty() || done.contains(consumer) ||
      !llvm::is_contained(outputsOf(kernel), reader))
    return {};
  return consumer;
}

void scheduleSums(KernelInfo &kernel, const halide::Target &target) {
  separateOutputs(kernel);
  hideConditions(kernel);
  stateDenseStrides(kernel);
  SmallVector<std::pair<Value, TiledSum>> sums;
  KernelFacts facts = factsOf(kernel);
  for (auto [number, c] : llvm::enumerate(facts.computations))
    if (std::optional<TiledSum> plan = planSum(c))
      sums.push_back({computation(kernel, number).func.getResult(), *plan});
  llvm::SmallPtrSet<Value, 8> done;
  for (auto &[sum, plan] : sums) {
    Value out = consumerOf(kernel, sum, done);
    if (!out) {
      out = addTiles(kernel, sum);
      OpBuilder b = scheduleBuilder(kernel);
      halide::ComputeRootOp::create(b, sum.getLoc(), out);
    }
    TiledOnGPU tiled(kernel, sum, plan, out, target);
    tiled.run();
    done.insert(sum);
    done.insert(out);
  }
  storePlainly(kernel, done);
}

std::optional<FamilyPlan> matchGPUContraction(const KernelFacts &facts,
                                              const halide::Target &target) {
  if (llvm::none_of(facts.computations,
                    [](const Computation &c) { return planSum(c); }))
    return std::nullopt;
  return FamilyPlan{Benefit::Tiles, [&target](KernelInfo &kernel) {
                      scheduleSums(kernel, target);
                      return true;
                    }};
}

} // namespace

namespace heed {
Family gpuContractionFamily() {
  return {"GPU contraction", matchGPUContraction};
}
} // namespace heed
