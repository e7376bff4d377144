//===- Elementwise.cpp - schedule of kernels without reductions -----------===//
//
// Everything is inlined into the outputs; the innermost loop is vectorised, all
// others are one parallel loop, several short rows a task.
//
// Where an output selects by `i < t` along its rows (rotary embedding), a
// vector across t would read both sides lane by lane. A row is then computed in
// two parts, each with its own loop and without the condition, into memory of
// the task, and copied.
#include "passes/Mutation.h"
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

namespace {

/// A value that is \p left at first coordinates below \p end, else \p right.
struct Parts {
  Value end, left, right;
};

/// What \p func yields, if that has two parts.
std::optional<Parts> partsOf(halide::FuncOp func) {
  Block &body = func.getBody().front();
  Operation *yield = body.getTerminator();
  if (yield->getNumOperands() != 1 || body.getNumArguments() < 2)
    return std::nullopt;
  auto select = yield->getOperand(0).getDefiningOp<arith::SelectOp>();
  if (!select)
    return std::nullopt;
  auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
  Value place = body.getArgument(0);
  if (!compare || compare.getLhs() != place ||
      !compare.getRhs().getType().isInteger(32) ||
      !argumentsOf(compare.getRhs()).empty())
    return std::nullopt;
  Parts parts{compare.getRhs(), select.getTrueValue(), select.getFalseValue()};
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::slt:
    break;
  case arith::CmpIPredicate::sge:
    if (!mutated("elementwise.parts-not-swapped"))
      std::swap(parts.left, parts.right);
    break;
  default:
    return std::nullopt;
  }
  // Another condition on the place may guard reads of its own.
  for (auto other : body.getOps<arith::SelectOp>())
    if (other != select && argumentsOf(other.getCondition()).contains(place))
      return std::nullopt;
  return parts;
}

/// \p x is \p place, moved by what does not depend on it.
bool follows(Value x, Value place) {
  if (x == place)
    return true;
  Operation *op = x.getDefiningOp();
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
    return false;
  Value left = op->getOperand(0), right = op->getOperand(1);
  if (isa<arith::AddIOp>(op) && argumentsOf(right).contains(place))
    std::swap(left, right);
  return follows(left, place) && !argumentsOf(right).contains(place);
}

/// Takes the limits off the first coordinates of reads that follow \p place:
/// they are there for where the condition does not hold. Of a coordinate that
/// is no move (a remainder), Halide knows no bounds but these.
void dropLimits(halide::UpdateOp update, Value place) {
  for (auto read : update.getSet().front().getOps<halide::ReadOp>()) {
    auto least = read.getCoordinates().front().getDefiningOp<arith::MaxSIOp>();
    auto most = least ? least.getLhs().getDefiningOp<arith::MinSIOp>()
                      : arith::MinSIOp();
    if (most && follows(most.getLhs(), place))
      read.getCoordinatesMutable()[0].set(most.getLhs());
  }
}

/// An update of \p split that computes \p value, of \p body, at \p count places
/// from \p from on.
void addPart(KernelInfo &kernel, OpBuilder &b, Value split, Block &body,
             StringRef rvar, Value value, Value from, Value count) {
  Location loc = split.getLoc();
  auto update = halide::UpdateOp::create(b, loc, split, ArrayRef(rvar),
                                         ValueRange{from, count});
  auto placed = [](ValueRange args) {
    SmallVector<Value> at{args.back()};
    llvm::append_range(at, args.drop_front().drop_back());
    return at;
  };
  update.fill(b, update.getAt(), [&](OpBuilder &, Location, ValueRange args) {
    return placed(args);
  });
  update.fill(b, update.getSet(),
              [&](OpBuilder &at, Location, ValueRange args) {
                IRMapping map;
                map.map(body.getArguments(), placed(args));
                return SmallVector<Value>{cloneSlice(at, value, map)};
              });
  dropLimits(update, update.getSet().front().getArguments().back());
  KernelFunc *own = kernel.find(split);
  own->updates.push_back(update);
  own->reductions.push_back({{count, std::nullopt}});
}

/// Computes the parts of \p f in a func of its own, which \p f reads. Returns
/// it.
KernelFunc &splitParts(KernelInfo &kernel, Value func, Parts parts) {
  KernelFunc *f = kernel.find(func);
  Location loc = f->func.getLoc();
  Type type = halide::getElementTypes(func).front();
  SmallVector<std::string> names = varsOf(f->func);
  SmallVector<StringRef> vars(names.begin(), names.end());
  SmallVector<Extent> extents = f->extents;
  std::string name = heed::format("{}_parts", f->func.getName());
  Value split = addFunc(kernel, f->func, name, vars, type, extents,
                        [&](OpBuilder &b, ValueRange) -> Value {
                          return halide::UndefOp::create(b, loc, type);
                        })
                    .func.getResult();
  f = kernel.find(func);
  Block &body = f->func.getBody().front();
  OpBuilder b(f->func);
  IRMapping outside;
  Value zero = i32(b, 0), extent = extents[0].value;
  Value end = cloneSlice(b, parts.end, outside);
  end = arith::MinSIOp::create(b, loc, end, extent);
  end = arith::MaxSIOp::create(b, loc, end, zero);
  if (mutated("elementwise.left-part-longer"))
    end = arith::MinSIOp::create(b, loc, addI32(b, end, 1), extent);
  addPart(kernel, b, split, body, "left",
          mutated("elementwise.left-side-twice") ? parts.right : parts.left,
          zero, end);
  Value rest = arith::SubIOp::create(b, loc, extent, end);
  if (mutated("elementwise.right-part-shorter"))
    rest = arith::MaxSIOp::create(b, loc, addI32(b, rest, -1), zero);
  addPart(kernel, b, split, body, "right", parts.right,
          mutated("elementwise.right-from-start") ? zero : end, rest);
  OpBuilder inside(body.getTerminator());
  Value whole =
      halide::ReadOp::create(inside, loc, type, split, body.getArguments())
          .getResult(0);
  body.getTerminator()->setOperand(0, whole);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
  return *kernel.find(split);
}

} // namespace

static bool scheduleElementwise(KernelInfo &kernel,
                                const halide::Target &target) {
  joinOutputs(kernel);
  OpBuilder b = scheduleBuilder(kernel);
  SmallVector<Value> outputs;
  for (KernelFunc *f : outputsOf(kernel))
    outputs.push_back(f->func.getResult());
  for (Value func : outputs) {
    KernelFunc *f = kernel.find(func);
    SmallVector<std::string> vars = varsOf(f->func);
    if (vars.empty())
      continue;
    int64_t lanes = target.lanes(std::max(32u, widestBits(f->func)));
    bool tooShort = f->extents[0].fixed && *f->extents[0].fixed < lanes;
    std::optional<Parts> parts = partsOf(f->func);
    if (tooShort)
      parts.reset();
    Value split;
    if (parts) {
      split = splitParts(kernel, func, *parts).func.getResult();
      f = kernel.find(func);
    }
    if (!tooShort)
      vectorizeInner(b, f->func, 0, vars[0], lanes);
    constexpr int64_t elementsOfTask = 8192;
    int64_t rows = elementsOfTask /
                   std::max<int64_t>(1, f->extents[0].fixed.value_or(1024));
    if (!split && (!f->extents[0].fixed || rows < 2 || vars.size() < 2)) {
      parallelOuter(b, f->func, 0, vars, 1, FusedBody::Alone);
      continue;
    }
    Location loc = f->func.getLoc();
    // Loops of parts stay apart: the place of a row inside of fused ones is a
    // remainder, which Halide takes for a range.
    SmallVector<std::string> loops(vars.begin() + 1, vars.end());
    if (!split)
      loops = fuseLoops(b, f->func, 0, loops, FusedBody::Alone);
    halide::SplitOp::create(b, loc, func, 0, loops[0], "task", "row",
                            std::max<int64_t>(1, rows),
                            halide::TailStrategy::GuardWithIf);
    loops[0] = "task";
    for (const std::string &loop : loops)
      halide::ParallelOp::create(b, loc, func, 0, loop);
    if (!split)
      continue;
    halide::ComputeAtOp::create(b, loc, split, func, "row");
    halide::HoistStorageOp::create(b, loc, split, func, "task");
    for (const std::string &var : ArrayRef(vars).drop_front())
      halide::BoundExtentOp::create(b, loc, split, var, i32(b, 1));
    halide::FuncOp splitOp = kernel.find(split)->func;
    vectorizeInner(b, splitOp, 1, "left", lanes);
    vectorizeInner(b, splitOp, 2, "right", lanes);
  }
  streamOutputs(kernel, target);
  return true;
}

static std::optional<FamilyPlan>
matchElementwise(const KernelFacts &facts, const halide::Target &target) {
  if (!facts.sums().empty())
    return std::nullopt;
  return FamilyPlan{Benefit::OnePass, [&target](KernelInfo &kernel) {
                      return scheduleElementwise(kernel, target);
                    }};
}

namespace heed {
Family elementwiseFamily() { return {"elementwise", matchElementwise}; }
} // namespace heed
