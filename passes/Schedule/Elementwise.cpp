//===- Elementwise.cpp - schedule of kernels without reductions -----------===//
//
// Everything is inlined into the outputs; the innermost loop is vectorised, all
// others are one parallel loop, several short rows a task.
//
// Where an output selects by `i < t` along its rows (rotary embedding), a
// vector across t would read both sides lane by lane. A row is then computed in
// parts, each with its own loop and without the conditions, into memory of the
// task, and copied.
#include "passes/Mutation.h"
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;

namespace {

/// What a select of a func asks of the first coordinate: whether it is below an
/// end, or not.
struct Condition {
  Value result, end;
  bool below;
  std::optional<int64_t> constant; ///< the end, where it is known
  /// Whether all coordinates are below the end, or none is.
  std::optional<bool> ofAll;
};

/// The conditions on the first coordinate of a func with several parts, and the
/// places, in order, where the parts end, all but the last.
struct Parts {
  SmallVector<Condition> conditions;
  SmallVector<Condition> ends;
};

std::optional<Condition> conditionOf(arith::SelectOp select, Value place) {
  auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getLhs() != place ||
      !compare.getRhs().getType().isInteger(32) ||
      !argumentsOf(compare.getRhs()).empty())
    return std::nullopt;
  Condition condition{compare.getResult(), compare.getRhs(), true, {}, {}};
  APInt constant;
  if (matchPattern(condition.end, m_ConstantInt(&constant)))
    condition.constant = constant.getSExtValue();
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::slt:
    return condition;
  case arith::CmpIPredicate::sge:
    condition.below = mutated("elementwise.parts-not-swapped");
    return condition;
  default:
    return std::nullopt;
  }
}

/// The parts of \p f, if it has some. An end that only a call knows is the only
/// one: of several the order would not be known.
std::optional<Parts> partsOf(const KernelFunc &f) {
  constexpr size_t mostParts = 4;
  halide::FuncOp func = f.func;
  Block &body = func.getBody().front();
  if (body.getTerminator()->getNumOperands() != 1 || body.getNumArguments() < 2)
    return std::nullopt;
  Value place = body.getArgument(0);
  Parts parts;
  for (auto select : body.getOps<arith::SelectOp>()) {
    if (!argumentsOf(select.getCondition()).contains(place))
      continue;
    // Another condition on the place may guard reads of its own.
    std::optional<Condition> condition = conditionOf(select, place);
    if (!condition)
      return std::nullopt;
    std::optional<int64_t> end = condition->constant,
                           extent = f.extents[0].fixed;
    if (end && *end <= 0)
      condition->ofAll = false;
    else if (end && extent && *end >= *extent)
      condition->ofAll = true;
    parts.conditions.push_back(*condition);
    if (!condition->ofAll &&
        llvm::none_of(parts.ends, [&](const Condition &known) {
          return known.end == condition->end || (end && known.constant == end);
        }))
      parts.ends.push_back(*condition);
  }
  if (parts.ends.empty() || parts.ends.size() >= mostParts)
    return std::nullopt;
  if (parts.ends.size() > 1 &&
      !llvm::all_of(parts.ends, [](const Condition &end) {
        return end.constant.has_value();
      }))
    return std::nullopt;
  llvm::sort(parts.ends, [](const Condition &x, const Condition &y) {
    return x.constant < y.constant;
  });
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

/// Whether what \p read gives, or what is made of it, is one side of a select.
bool isChosen(halide::ReadOp read) {
  SetVector<Operation *> uses;
  getForwardSlice(read.getOperation(), &uses);
  uses.insert(read);
  auto isMade = [&](Value value) {
    return value.getDefiningOp() && uses.contains(value.getDefiningOp());
  };
  return llvm::any_of(uses, [&](Operation *user) {
    auto select = dyn_cast<arith::SelectOp>(user);
    return select &&
           (isMade(select.getTrueValue()) || isMade(select.getFalseValue()));
  });
}

/// Takes the limits off the first coordinates of reads that follow \p place:
/// they are there for where the condition does not hold. Of a coordinate that
/// is no move (a remainder), Halide knows no bounds but these; a condition that
/// is left may guard a read.
void dropLimits(halide::UpdateOp update, Value place) {
  for (auto read : update.getSet().front().getOps<halide::ReadOp>()) {
    auto least = read.getCoordinates().front().getDefiningOp<arith::MaxSIOp>();
    auto most = least ? least.getLhs().getDefiningOp<arith::MinSIOp>()
                      : arith::MinSIOp();
    if (most && follows(most.getLhs(), place) && !isChosen(read))
      read.getCoordinatesMutable()[0].set(most.getLhs());
  }
}

/// Whether part \p number lies before the end of \p condition.
bool isBefore(const Parts &parts, size_t number, const Condition &condition) {
  if (condition.ofAll)
    return *condition.ofAll;
  auto isOf = [&](const Condition &end) {
    return condition.end == end.end ||
           (condition.constant && condition.constant == end.constant);
  };
  return llvm::find_if(parts.ends, isOf) - parts.ends.begin() >=
         static_cast<ptrdiff_t>(number);
}

/// Puts what \p parts have in part \p number in place of what selects in \p
/// body ask, copies of those of the func by \p map.
void settleConditions(Block &body, const Parts &parts, size_t number,
                      const IRMapping &map) {
  for (const Condition &condition : parts.conditions) {
    Value copy = map.lookupOrNull(condition.result);
    if (!copy)
      continue;
    bool before = isBefore(parts, number, condition);
    for (Operation *user : llvm::make_early_inc_range(copy.getUsers()))
      if (auto select = dyn_cast<arith::SelectOp>(user))
        select.replaceAllUsesWith(before == condition.below
                                      ? select.getTrueValue()
                                      : select.getFalseValue());
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// An update of \p split that computes part \p number of \p body, \p count
/// places from \p from on.
void addPart(KernelInfo &kernel, OpBuilder &b, Value split, Block &body,
             StringRef rvar, const Parts &parts, size_t number, Value from,
             Value count) {
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
  IRMapping map;
  update.fill(b, update.getSet(),
              [&](OpBuilder &at, Location, ValueRange args) {
                map.map(body.getArguments(), placed(args));
                return SmallVector<Value>{
                    cloneSlice(at, body.getTerminator()->getOperand(0), map)};
              });
  settleConditions(update.getSet().front(), parts, number, map);
  dropLimits(update, update.getSet().front().getArguments().back());
  KernelFunc *own = kernel.find(split);
  own->updates.push_back(update);
  own->reductions.push_back({{count, std::nullopt}});
}

/// Computes the parts of \p f in a func of its own, which \p f reads. Returns
/// it; \p loops are those of its updates.
KernelFunc &splitParts(KernelInfo &kernel, Value func, const Parts &parts,
                       SmallVector<std::string> &loops) {
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
  Value zero = i32(b, 0), extent = extents[0].value, from = zero;
  for (size_t number = 0; number <= parts.ends.size(); ++number) {
    bool last = number == parts.ends.size();
    Value end = extent;
    if (!last) {
      IRMapping outside;
      end = cloneSlice(b, parts.ends[number].end, outside);
      end = arith::MinSIOp::create(b, loc, end, extent);
      end = arith::MaxSIOp::create(b, loc, end, zero);
      if (mutated("elementwise.left-part-longer"))
        end = arith::MinSIOp::create(b, loc, addI32(b, end, 1), extent);
    }
    Value count = end;
    if (number > 0)
      count = arith::SubIOp::create(b, loc, end, from);
    if (last && mutated("elementwise.right-part-shorter"))
      count = arith::MaxSIOp::create(b, loc, addI32(b, count, -1), zero);
    loops.push_back(number == 0 ? "left"
                    : last      ? "right"
                                : heed::format("middle{}", number));
    bool other = number == 0 && mutated("elementwise.left-side-twice");
    addPart(kernel, b, split, body, loops.back(), parts,
            other ? parts.ends.size() : number,
            mutated("elementwise.right-from-start") ? zero : from, count);
    from = end;
  }
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
    std::optional<Parts> parts = partsOf(*f);
    if (tooShort)
      parts.reset();
    Value split;
    SmallVector<std::string> partLoops;
    if (parts) {
      split = splitParts(kernel, func, *parts, partLoops).func.getResult();
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
    for (auto [number, loop] : llvm::enumerate(partLoops))
      vectorizeInner(b, splitOp, number + 1, loop, lanes);
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
