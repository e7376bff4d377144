//===- HoistInvariants.cpp - what turns of a loop share runs before it ----===//
//
// Layers that share their weights and read the same tensor, as Perceiver's
// cross-attentions from the second turn on and decoders of one repeated layer,
// project it once.
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "support/Format.h"
#include "llvm/ADT/SetVector.h"

namespace heed {
#define GEN_PASS_DEF_ATTNHOISTINVARIANTS
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

constexpr StringLiteral passName = "attn-hoist-invariants";

/// The turns of a loop with constant bounds that goes up by 1.
struct Turns {
  int64_t first, end;
};

std::optional<Turns> turnsOf(scf::ForOp loop) {
  std::optional<int64_t> first = getConstantIntValue(loop.getLowerBound()),
                         end = getConstantIntValue(loop.getUpperBound());
  if (!first || !end || *first < 0 || *first >= *end ||
      !isConstantIntValue(loop.getStep(), 1))
    return std::nullopt;
  return Turns{*first, *end};
}

/// The turn from which on \p loop's variable says the same in all: the largest
/// c of `min(t, c)`, if nothing else reads it.
std::optional<int64_t> sameFrom(scf::ForOp loop, Turns turns) {
  int64_t from = turns.first;
  for (Operation *user : loop.getInductionVar().getUsers()) {
    bool isLeast = isa<arith::MinSIOp, arith::MinUIOp>(user);
    if (!isLeast &&
        !(isa<arith::MaxSIOp>(user) && mutated("hoist-invariants.maximum-too")))
      return std::nullopt;
    std::optional<int64_t> most;
    for (Value operand : user->getOperands())
      if (operand != loop.getInductionVar())
        most = getConstantIntValue(operand);
    if (!most || *most < 0)
      return std::nullopt;
    from = std::max(from, *most);
    if (mutated("hoist-invariants.last-number"))
      from = std::max(turns.first, *most);
  }
  if (mutated("hoist-invariants.a-turn-early") && from > turns.first)
    --from;
  return from;
}

/// The turns of \p loop before \p from get a loop of their own, those from
/// there on one number for all.
void splitShared(IRRewriter &b, scf::ForOp loop, Turns turns, int64_t from) {
  if (from > turns.first) {
    b.setInsertionPoint(loop);
    Value at = arith::ConstantIndexOp::create(b, loop.getLoc(), from);
    auto before = cast<scf::ForOp>(b.clone(*loop));
    if (!mutated("hoist-invariants.turns-twice"))
      loop.setLowerBound(at);
    before.setUpperBound(at);
    if (!mutated("hoist-invariants.forget-carried"))
      loop.getInitArgsMutable().assign(before.getResults());
    (void)before.promoteIfSingleIteration(b);
  }
  SmallVector<Operation *> changed;
  for (Operation *least :
       llvm::make_early_inc_range(loop.getInductionVar().getUsers())) {
    bool isFirst = least->getOperand(0) == loop.getInductionVar();
    changed.append(least->user_begin(), least->user_end());
    b.replaceOp(least, least->getOperand(isFirst ? 1 : 0));
  }
  // Numbers that are known stand in the names of parameters.
  llvm::erase_if(changed,
                 [](Operation *op) { return !isa<attn::ParamOp>(op); });
  RewritePatternSet names(loop.getContext());
  attn::ParamOp::getCanonicalizationPatterns(names, loop.getContext());
  (void)applyOpPatternsGreedily(changed,
                                FrozenRewritePatternSet(std::move(names)));
}

/// What takes long enough that a tensor is worth its place: it reduces.
bool isWork(Operation *op) {
  if (auto generic = dyn_cast<linalg::LinalgOp>(op))
    return generic.getNumReductionLoops() > 0;
  return isa<attn::AttentionOp, attn::SoftmaxOp, attn::LogSoftmaxOp>(op);
}

/// Whether \p op does something to each element of what one of \p moved has
/// computed: a bias, an activation.
bool isEpilogue(Operation *op,
                const llvm::SmallPtrSetImpl<Operation *> &moved) {
  auto generic = dyn_cast<linalg::LinalgOp>(op);
  return generic && !generic.getNumReductionLoops() &&
         llvm::any_of(generic.getDpsInputs(), [&](Value input) {
           auto type = dyn_cast<RankedTensorType>(input.getType());
           return type && type.getRank() == generic.getNumLoops() &&
                  moved.contains(input.getDefiningOp());
         });
}

/// Moves the work of \p loop that is the same in every turn before it, with
/// what it reads and with the checks before it.
void hoistFrom(scf::ForOp loop, Turns turns) {
  llvm::SetVector<Operation *> same;
  auto isOutside = [&](Value value) {
    Operation *def = value.getDefiningOp();
    return (def && same.contains(def)) || loop.isDefinedOutsideOfLoop(value);
  };
  for (Operation &op : loop.getBody()->without_terminator()) {
    bool isCheck = isa<attn::RequireOp>(op);
    if (!isCheck && !(isMemoryEffectFree(&op) && isSpeculatable(&op)))
      continue;
    bool is = llvm::all_of(op.getOperands(), isOutside);
    visitUsedValuesDefinedAbove(op.getRegions(), [&](OpOperand *used) {
      is &= isOutside(used->get());
    });
    if (is)
      same.insert(&op);
    else if (isCheck) // It may say what comes behind it may be done.
      break;
  }
  llvm::SmallPtrSet<Operation *, 16> moves;
  for (Operation *op : same)
    if (isWork(op) || isEpilogue(op, moves))
      moves.insert(op);
  if (moves.empty())
    return;
  for (Operation *op : llvm::reverse(same))
    if (isa<attn::RequireOp>(op) ||
        llvm::any_of(op->getUsers(), [&](Operation *user) {
          return moves.contains(loop.getBody()->findAncestorOpInBlock(*user));
        }))
      moves.insert(op);
  for (Operation *op : same) {
    if (!moves.contains(op))
      continue;
    loop.moveOutOfLoop(op);
    if (isWork(op))
      remarkDone(op, passName, "hoisted",
                 format("computed once before a loop, not in each of its {} "
                        "turns, which share it",
                        turns.end - turns.first));
  }
}

struct HoistInvariants : heed::impl::AttnHoistInvariantsBase<HoistInvariants> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) { // inner ones first
      std::optional<Turns> turns = turnsOf(loop);
      if (!turns)
        continue;
      std::optional<int64_t> from = sameFrom(loop, *turns);
      if (from && turns->end - *from > 1) {
        IRRewriter b(loop);
        splitShared(b, loop, *turns, *from);
        turns->first = *from;
      }
      if (turns->end - turns->first > 1)
        hoistFrom(loop, *turns);
    }
  }
};

} // namespace
