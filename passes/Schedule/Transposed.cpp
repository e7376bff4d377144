//===- Transposed.cpp - schedule of transposes ----------------------------===//
//
// y[.., j, .., i] = f(x[.., i, .., j], ..): what is read lies along another dim
// than what is written. Row by row each line of x would be fetched once for
// every element in it. Instead tiles of a vector by a vector are read line by
// line into memory of their own, and written from there line by line.
#include "passes/Mutation.h"
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed;

namespace {

/// The loop, not the innermost one, that \p read follows with its first
/// coordinate, if it follows the innermost one with another.
std::optional<unsigned> transposedBy(const Read &read) {
  if (read.at.empty() || read.at[0].loop == 0u || !read.follows(0))
    return std::nullopt;
  return read.at[0].loop;
}

/// The loop along which all transposed reads of \p c lie, if that is one.
std::optional<unsigned> transposedLoop(const Computation &c) {
  std::optional<unsigned> found;
  for (const Read &read : c.reads)
    if (std::optional<unsigned> loop = transposedBy(read)) {
      if (found && *found != *loop)
        return std::nullopt;
      found = loop;
    }
  return found;
}

/// Has \p f read each transposed array from a func with the dims \p along and 0
/// in the other order. Returns these.
SmallVector<Value> stageReads(KernelInfo &kernel, KernelFunc &f,
                              unsigned along) {
  Block &body = f.func.getBody().front();
  // Dims that change places: of the staged func and of f alike.
  auto exchanged = [&](auto range) {
    auto values = llvm::to_vector(range);
    std::swap(values[0], values[along]);
    return values;
  };
  SmallVector<std::string> names = exchanged(varsOf(f.func));
  SmallVector<StringRef> vars(names.begin(), names.end());
  SmallVector<Value> staged;
  for (auto read : llvm::make_early_inc_range(body.getOps<halide::ReadOp>())) {
    OperandRange at = read.getCoordinates();
    auto followsColumns = [&](Value coordinate) {
      return argumentsOf(coordinate).contains(body.getArgument(0));
    };
    if (at.empty() || at.front() != body.getArgument(along) ||
        llvm::none_of(at, followsColumns))
      continue;
    KernelFunc &tile = addFunc(
        kernel, f.func, heed::format("tile{}", staged.size()), vars,
        read.getResultTypes().front(), exchanged(ArrayRef<Extent>(f.extents)),
        [&](OpBuilder &b, ValueRange args) -> Value {
          IRMapping map;
          map.map(body.getArguments(), exchanged(args));
          return cloneSlice(b, read.getResult(0), map);
        });
    staged.push_back(tile.func.getResult());
    OpBuilder b(read);
    Value from =
        mutated("elementwise.first-tile-for-all") ? staged[0] : staged.back();
    auto moved = halide::ReadOp::create(
        b, read.getLoc(), read.getResultTypes(), from,
        mutated("elementwise.tile-read-as-written")
            ? llvm::to_vector(ValueRange(body.getArguments()))
            : exchanged(ValueRange(body.getArguments())));
    read.replaceAllUsesWith(moved.getResults());
    read.erase();
  }
  return staged;
}

bool scheduleTransposed(KernelInfo &kernel, unsigned along,
                        const halide::Target &target) {
  KernelFunc &f = *outputsOf(kernel).front();
  int64_t lanes = target.lanes(std::max(32u, widestBits(f.func)));
  SmallVector<Value> staged = stageReads(kernel, f, along);
  OpBuilder b = scheduleBuilder(kernel);
  Location loc = f.func.getLoc();
  Value out = f.func.getResult();
  SmallVector<std::string> loops = varsOf(f.func);
  std::string column = loops[0], row = loops[along];
  vectorizeInner(b, f.func, 0, column, lanes);
  halide::SplitOp::create(b, loc, out, 0, row, row, "row", lanes,
                          halide::TailStrategy::GuardWithIf);
  loops.erase(loops.begin() + along);
  loops.insert(loops.begin(), {heed::format("{}v", column), "row", row});
  SmallVector<StringRef> order(loops.begin(), loops.end());
  halide::ReorderOp::create(b, loc, out, 0, order);
  parallelOuter(b, f.func, 0, loops, 3, FusedBody::ComputesFuncs);
  for (Value tile : staged) {
    halide::ComputeAtOp::create(b, loc, tile, out, row);
    vectorizeInner(b, tile.getDefiningOp<halide::FuncOp>(), 0, row, lanes);
  }
  streamOutputs(kernel, target);
  return true;
}

} // namespace

static std::optional<FamilyPlan> matchTransposed(const KernelFacts &facts,
                                                 const halide::Target &target) {
  if (facts.computations.size() != 1 || facts.isPartial)
    return std::nullopt;
  const Computation &c = facts.computations.front();
  if (!c.isElementwise() || c.results != 1 || c.extents.empty())
    return std::nullopt;
  std::optional<unsigned> along = transposedLoop(c);
  auto isShort = [&](unsigned loop) {
    return c.extents[loop].value_or(target.lanes(32)) < target.lanes(32);
  };
  if (!along || isShort(0) || isShort(*along))
    return std::nullopt;
  return FamilyPlan{Benefit::OnePass,
                    [&target, along = *along](KernelInfo &kernel) {
                      return scheduleTransposed(kernel, along, target);
                    }};
}

namespace heed {
Family transposedFamily() { return {"transposed", matchTransposed}; }
} // namespace heed
