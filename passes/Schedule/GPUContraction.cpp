//===- GPUContraction.cpp - sums of products in tiles, on GPUs ------------===//
//
// y[.., m, n] = epilogue(sum_r A[.., m, r] * B[.., r, n]), or of more factors.
// A block of threads computes a tile of rows and columns. It takes 16 terms at
// a time: their part of each factor is brought to shared memory, [r][m] or
// [r][n], with whatever the factor is computed by; each thread has its sums in
// registers. Rows and columns past the end are read at the last one and not
// stored; terms past the end are -0. What of a kernel is no such sum is stored
// plainly (GPUPlain.cpp).
// Measured: passes/Schedule/README.md.
#include "passes/Mutation.h"
#include "passes/Schedule/GPU.h"
#include "passes/Schedule/GPUContractionPlan.h"
#include "passes/Schedule/Rewrite.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include <numeric>

using namespace mlir;
using namespace heed;

namespace {

constexpr auto guard = halide::TailStrategy::GuardWithIf;

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
                         count, isWidened(sum, out) ? 2 : 1, target);
  }

  void run() {
    takeSteps();
    scheduleOutput();
    scheduleSum();
    for (const Staged &staged : factors)
      scheduleStage(staged);
  }

private:
  /// A factor's part of a step, in shared memory.
  struct Staged {
    Value func;
    std::string along;   ///< its var of rows or columns, or empty
    int64_t count = 0;   ///< of these in a tile
    bool byTerm = false; ///< its array lies so that terms are neighbours
    bool asVectors = false;
    SmallVector<std::string> outer; ///< vars with one place in a block
  };

  void takeSteps();
  Staged stage(halide::UpdateOp update, Value factor, float none);
  SmallVector<unsigned> outerLoops(Block &body, Value factor) const;
  std::optional<unsigned> layOut(Block &body, Value factor, Value term,
                                 Staged &staged) const;
  Value placeOf(OpBuilder &at, Value place, Value end, KnownExtent extent,
                bool isByFour);
  Value termOrNone(OpBuilder &at, Value factor, IRMapping &map, Value term,
                   ValueRange args, Value begin, Value end, KnownExtent length,
                   const Staged &staged, float none);
  void scheduleOutput();
  SmallVector<std::string> termLoops();
  void scheduleSum();
  void scheduleStage(const Staged &staged);
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
  SmallVector<Staged> factors;
  SmallVector<std::string> others; ///< reduction vars that are no terms
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
/// a multiple of its bytes: 16, or 8 of an f16 or bf16.
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
  Type type = halide::getElementTypes(array).front();
  return (type.isF32() || type.isF16() || type.isBF16()) && known &&
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

/// The loops of the sum that \p factor depends on and that a block has one turn
/// of, or the steps go through.
SmallVector<unsigned> TiledOnGPU::outerLoops(Block &body, Value factor) const {
  auto used = argumentsOf(factor);
  unsigned rank = kernel.find(sum)->extents.size();
  SmallVector<unsigned> loops;
  for (unsigned loop = 1; loop < body.getNumArguments(); ++loop)
    if (loop != plan.row && loop != rank + plan.term &&
        used.contains(body.getArgument(loop)))
      loops.push_back(loop);
  return loops;
}

/// Which dim of a tile \p factor has, if one, and how \p staged has it in
/// shared memory.
std::optional<unsigned> TiledOnGPU::layOut(Block &body, Value factor,
                                           Value term, Staged &staged) const {
  auto used = argumentsOf(factor);
  std::optional<unsigned> along;
  for (unsigned dim : {kColumn, plan.row})
    if (used.contains(body.getArgument(dim)))
      along = dim;
  if (along) {
    staged.along = along == kColumn ? "n" : "m";
    staged.count = along == kColumn ? tile.columns : tile.rows;
  }
  auto read = arrayOf(factor);
  Value first = read && read.getCoordinates().size()
                    ? read.getCoordinates().front()
                    : Value();
  staged.byTerm = first == term || !along;
  staged.asVectors = first && along &&
                     (staged.byTerm || first == body.getArgument(*along)) &&
                     hasGroupsOfFour(read.getFunc());
  return along;
}

/// Adds a func of what \p factor is at the rows or columns of a tile and the
/// terms of a step; \p none behind the last term.
TiledOnGPU::Staged TiledOnGPU::stage(halide::UpdateOp update, Value factor,
                                     float none) {
  KernelFunc &f = *kernel.find(sum);
  Block &body = update.getSet().front();
  Value term = body.getArgument(f.extents.size() + plan.term);
  Staged staged;
  std::optional<unsigned> along = layOut(body, factor, term, staged);
  SmallVector<std::string> vars{staged.along, "k", "kb"},
      names = varsOf(f.func);
  if (!along)
    vars.erase(vars.begin());
  for (Attribute r : update.getRvars())
    names.push_back(cast<StringAttr>(r).str());
  SmallVector<unsigned> outer = outerLoops(body, factor);
  for (unsigned loop : outer)
    vars.push_back(
        staged.outer.emplace_back(heed::format("of_{}", names[loop])));

  OpBuilder before(update);
  Value begin = update.getRVarMin(plan.term),
        end = arith::AddIOp::create(before, loc, begin,
                                    update.getRVarExtent(plan.term));
  KnownExtent length = f.reductions[0][plan.term].fixed;
  Extent extent = along ? f.extents[*along] : Extent();
  staged.func =
      addFunc(
          kernel, update,
          heed::format("{}_{}{}", f.func.getName(), along ? staged.along : "k",
                       factors.size()),
          SmallVector<StringRef>(vars.begin(), vars.end()), b.getF32Type(), {},
          [&](OpBuilder &at, ValueRange args) -> Value {
            IRMapping map;
            if (along) {
              bool isWhole = extent.fixed && *extent.fixed % staged.count == 0;
              map.map(body.getArgument(*along),
                      isWhole ? args[0]
                              : placeOf(at, args[0], extent.value, extent.fixed,
                                        staged.asVectors && !staged.byTerm));
              args = args.drop_front();
            }
            for (auto [k, loop] : llvm::enumerate(outer))
              map.map(body.getArgument(loop), args[2 + k]);
            return termOrNone(at, factor, map, term, args, begin, end, length,
                              staged, none);
          })
          .func.getResult();
  return staged;
}

/// \p factor under \p map at term args[0] of step args[1].
Value TiledOnGPU::termOrNone(OpBuilder &at, Value factor, IRMapping &map,
                             Value term, ValueRange args, Value begin,
                             Value end, KnownExtent length,
                             const Staged &staged, float none) {
  Value place = arith::AddIOp::create(
      at, loc, begin,
      arith::AddIOp::create(at, loc, mulI32(at, args[1], GPUTile::steps),
                            args[0]));
  if (length && *length % GPUTile::steps == 0) {
    map.map(term, place);
    return cloneSlice(at, factor, map);
  }
  map.map(term,
          placeOf(at, place, end, length, staged.asVectors && staged.byTerm));
  Value value = cloneSlice(at, factor, map);
  Value isTerm =
      arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, place, end);
  return arith::SelectOp::create(
      at, loc, isTerm, value,
      arith::ConstantOp::create(at, loc, at.getF32FloatAttr(none)));
}

/// Rewrites the sum: over steps, and the terms of each.
void TiledOnGPU::takeSteps() {
  KernelFunc &f = *kernel.find(sum);
  halide::UpdateOp update = f.updates[0];
  Block &body = update.getSet().front();
  unsigned term = 0, rank = f.extents.size();
  Operation *combine = combinerOf(update, term);
  // A product of one -0 and zeros changes no sum.
  for (Value factor : plan.factors)
    factors.push_back(stage(update, factor, factors.empty() ? -0.0f : 0.0f));

  OpBuilder at(update);
  Value zero = constantI32(at, loc, 0);
  SmallVector<std::string> rvars{"k", "kb"};
  SmallVector<Value> bounds{
      zero, constantI32(at, loc, GPUTile::steps), zero,
      divI32(at,
             addI32(at, update.getRVarExtent(plan.term), GPUTile::steps - 1),
             GPUTile::steps)};
  SmallVector<unsigned> loopNow(body.getNumArguments());
  std::iota(loopNow.begin(), loopNow.end(), 0);
  for (auto [r, name] : llvm::enumerate(update.getRvars())) {
    if (r == plan.term)
      continue;
    loopNow[rank + r] = rank + rvars.size();
    others.push_back(heed::format("o_{}", cast<StringAttr>(name).str()));
    rvars.push_back(others.back());
    bounds.append({update.getRVarMin(r), update.getRVarExtent(r)});
  }
  auto fresh = halide::UpdateOp::create(
      at, loc, sum, SmallVector<StringRef>(rvars.begin(), rvars.end()), bounds);
  fresh.fill(at, fresh.getSet(), [&](OpBuilder &in, Location, ValueRange args) {
    IRMapping map;
    for (auto [factor, staged] : llvm::zip(plan.factors, factors)) {
      SmallVector<Value> place;
      if (!staged.along.empty())
        place.push_back(args[staged.along == "n" ? kColumn : plan.row]);
      place.append({args[rank], args[rank + 1]});
      for (unsigned loop : outerLoops(body, factor))
        place.push_back(args[loopNow[loop]]);
      map.map(factor, halide::ReadOp::create(in, loc, in.getF32Type(),
                                             staged.func, place)
                          .getResult(0));
    }
    map.map(combine->getOperand(1 - term),
            halide::ReadOp::create(in, loc, in.getF32Type(), sum,
                                   args.take_front(rank))
                .getResult(0));
    return SmallVector<Value>{cloneSlice(in, combine->getResult(0), map)};
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

/// Loops of a step's terms, the unrolled one first. Sums of one step alone have
/// no loop of steps; in such straight code ptxas reads the operands of all
/// terms first: 139 registers where it took 45 in a loop.
SmallVector<std::string> TiledOnGPU::termLoops() {
  KnownExtent length = kernel.find(sum)->reductions[0][plan.term].fixed;
  if (!length || *length > GPUTile::steps)
    return {"k"};
  split(sum, 1, "k", "ks", "k", 4);
  return {"k", "ks"};
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
    SmallVector<std::string> loops = ownLoops(), terms;
    if (stage)
      terms = termLoops();
    loops.append(terms);
    loops.append({"nt", "mt"});
    if (stage) {
      loops.push_back("kb");
      loops.append(others);
    }
    reorder(sum, stage, loops);
    unroll(sum, stage, ownLoops());
    if (stage)
      unroll(sum, stage, {terms.front()});
    map(sum, stage);
  }
}

/// The threads of a block bring a step's part of a factor, neighbours from
/// neighbouring places of its array.
void TiledOnGPU::scheduleStage(const Staged &staged) {
  Value func = staged.func;
  halide::ComputeAtOp::create(b, loc, func, sum, "kb");
  halide::StoreInOp::create(b, loc, func, halide::MemoryType::GPUShared);
  auto bound = [&](StringRef var, int64_t extent) {
    halide::BoundExtentOp::create(b, loc, func, var, i32(b, extent));
  };
  if (!staged.along.empty())
    bound(staged.along, staged.count);
  bound("k", GPUTile::steps);
  bound("kb", 1);
  for (const std::string &var : staged.outer)
    bound(var, 1);
  if (staged.along.empty()) {
    split(func, 0, "k", "mt", "nt", tile.threadsX());
    return map(func, 0);
  }
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
  // All at once, their places take too many registers.
  int64_t own = staged.count * GPUTile::steps / tile.threads();
  std::string together = "t";
  if (!staged.asVectors && own > 4) {
    split(func, 0, "t", "t", "tu", 4);
    together = "tu";
  }
  SmallVector<std::string> loops{"t", "nt", "mt"};
  if (together != "t")
    loops.insert(loops.begin(), together);
  if (staged.asVectors)
    loops.insert(loops.begin(), "v");
  reorder(func, 0, loops);
  if (staged.asVectors)
    halide::VectorizeOp::create(b, loc, func, 0, "v");
  unroll(func, 0, {together});
  map(func, 0);
}

bool scheduleSums(KernelInfo &kernel, const halide::Target &target) {
  separateOutputs(kernel);
  SmallVector<std::pair<Value, TiledSum>> sums;
  for (KernelFunc &f : kernel.funcs)
    if (std::optional<TiledSum> plan = planTiledSum(f))
      sums.push_back({f.func.getResult(), *plan});
  if (sums.empty())
    return false;
  hideConditions(kernel);
  stateDenseStrides(kernel);
  llvm::SmallPtrSet<Value, 8> done;
  for (auto &[sum, plan] : sums) {
    Value out = consumerOf(kernel, sum, done);
    if (!out) {
      out = addTiles(kernel, sum);
      OpBuilder b = scheduleBuilder(kernel);
      halide::ComputeRootOp::create(b, sum.getLoc(), out);
    }
    TiledOnGPU(kernel, sum, plan, out, target).run();
    done.insert(sum);
    done.insert(out);
  }
  storePlainly(kernel, done);
  return true;
}

std::optional<FamilyPlan> matchGPUContraction(const KernelFacts &facts,
                                              const halide::Target &target) {
  // Which factor has what is seen in the pipeline.
  if (llvm::none_of(facts.computations, [](const Computation &c) {
        return c.reductions.size() == 1 &&
               c.reductions[0].combiner == Combiner::Sum &&
               c.reductions[0].reads.size() > 1;
      }))
    return std::nullopt;
  return FamilyPlan{Benefit::Tiles, [&target](KernelInfo &kernel) {
                      return scheduleSums(kernel, target);
                    }};
}

} // namespace

namespace heed {
Family gpuContractionFamily() {
  return {"GPU contraction", matchGPUContraction};
}
} // namespace heed
