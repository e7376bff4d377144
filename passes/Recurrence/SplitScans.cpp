//===- SplitScans.cpp - states that need not wait for larger ones ---------===//
//
// A running maximum of gates, a counter, the state of a controller: what reads
// no larger state can run ahead. Its values before each step are rows that the
// other states then read as they read any other input, so that what they are to
// these may be linear, and sums with them are no part of the steps.
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/Rows.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Recurrence/StepBody.h"
#include "passes/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace heed {
#define GEN_PASS_DEF_ATTNSPLITSCANS
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

/// One recurrence, in two.
class Splitter {
public:
  explicit Splitter(attn::ScanOp scan) : scan(scan), b(scan) {}
  bool run();

private:
  llvm::BitVector readBy(Value value, SmallPtrSetImpl<Operation *> &ops);
  bool chooseAhead();
  attn::ScanOp writeAhead();
  void writeRest(attn::ScanOp first);
  RankedTensorType typeOf(unsigned state) {
    return cast<RankedTensorType>(scan.getStarts()[state].getType());
  }
  unsigned numStates() { return scan.getStarts().size(); }

  attn::ScanOp scan;
  OpBuilder b;
  llvm::BitVector ahead;               ///< states that run ahead
  SmallPtrSet<Operation *, 16> needed; ///< for them
};

/// The states that \p value is made of, and by which \p ops.
llvm::BitVector Splitter::readBy(Value value,
                                 SmallPtrSetImpl<Operation *> &ops) {
  llvm::BitVector read(numStates());
  SmallVector<Value> todo{value};
  while (!todo.empty()) {
    Value next = todo.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      if (argument.getOwner() == &scan.getBody().front() &&
          argument.getArgNumber())
        read.set(argument.getArgNumber() - 1);
      continue;
    }
    Operation *op =
        scan.getBody().front().findAncestorOpInBlock(*next.getDefiningOp());
    if (!op || !ops.insert(op).second)
      continue;
    op->walk([&](Operation *inner) {
      llvm::append_range(todo, inner->getOperands());
    });
  }
  return read;
}

/// States of fewer axes than the largest, made of such alone, that others read.
bool Splitter::chooseAhead() {
  SmallVector<llvm::BitVector> reads;
  int64_t most = 0;
  for (unsigned k = 0; k < numStates(); ++k) {
    SmallPtrSet<Operation *, 16> ops;
    reads.push_back(readBy(scan.terminator().getStates()[k], ops));
    most = std::max(most, typeOf(k).getRank());
  }
  ahead.resize(numStates());
  for (unsigned k = 0; k < numStates(); ++k)
    ahead[k] = typeOf(k).getRank() < most;
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned k : ahead.set_bits())
      if (reads[k].test(ahead)) { // reads another than these
        ahead.reset(k);
        changed = true;
        break;
      }
  }
  // Those that no other state reads have no reason to.
  llvm::BitVector wanted(numStates());
  for (unsigned k = 0; k < numStates(); ++k)
    if (!ahead[k])
      wanted |= reads[k];
  wanted &= ahead;
  for (bool changed = true; changed;) {
    llvm::BitVector before = wanted;
    for (unsigned k : before.set_bits())
      wanted |= reads[k];
    changed = wanted != before;
  }
  ahead = wanted;
  for (unsigned k : ahead.set_bits())
    readBy(scan.terminator().getStates()[k], needed);
  return ahead.any();
}

/// The recurrence of these states, whose rows are what they are before each
/// step.
attn::ScanOp Splitter::writeAhead() {
  Location loc = scan.getLoc();
  Value low = scan.getLow(), high = scan.getHigh();
  std::optional<int64_t> first = getConstantIntValue(low),
                         end = getConstantIntValue(high);
  OpFoldResult count =
      first && end ? OpFoldResult(b.getIndexAttr(*end - *first))
      : first == 0 ? OpFoldResult(high)
                   : arith::SubIOp::create(b, loc, high, low).getResult();
  if (mutated("split-scans.step-less"))
    high = arith::SubIOp::create(b, loc, high,
                                 arith::ConstantIndexOp::create(b, loc, 1));
  SmallVector<Value> starts, outs;
  for (unsigned k : ahead.set_bits()) {
    starts.push_back(scan.getStarts()[k]);
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(b, loc, starts.back());
    sizes.insert(sizes.begin(), count);
    outs.push_back(
        tensor::EmptyOp::create(b, loc, sizes, typeOf(k).getElementType()));
  }
  auto made = attn::ScanOp::create(b, loc, low, high, starts, outs,
                                   SmallVector<int64_t>(outs.size(), 0),
                                   SmallVector<bool>(outs.size(), false));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&made.getBody().front());
  IRMapping map;
  map.map(scan.step(), made.step());
  for (auto [k, state] : llvm::zip(ahead.set_bits(), made.carried()))
    map.map(scan.carried()[k], state);
  for (Operation &op : scan.getBody().front())
    if (needed.contains(&op))
      b.clone(op, map);
  SmallVector<Value> states;
  for (unsigned k : ahead.set_bits())
    states.push_back(map.lookupOrDefault(scan.terminator().getStates()[k]));
  SmallVector<Value> rows(made.carried());
  attn::StepOp::create(b, loc, states,
                       mutated("split-scans.row-after") ? states : rows);
  return made;
}

/// The recurrence of the other states, in place of the whole.
void Splitter::writeRest(attn::ScanOp first) {
  Location loc = scan.getLoc();
  SmallVector<Value> starts;
  for (unsigned k = 0; k < numStates(); ++k)
    if (!ahead[k])
      starts.push_back(scan.getStarts()[k]);
  auto made =
      attn::ScanOp::create(b, loc, scan.getLow(), scan.getHigh(), starts,
                           scan.getOuts(), scan.getAxes(), scan.getReversed());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&made.getBody().front());
  IRMapping map;
  map.map(scan.step(), made.step());
  Value position = made.step();
  if (mutated("split-scans.first-row"))
    position = scan.getLow();
  if (getConstantIntValue(scan.getLow()) != 0 &&
      !mutated("split-scans.forget-low"))
    position = arith::SubIOp::create(b, loc, position, scan.getLow());
  unsigned own = 0, other = 0;
  SmallVector<Value> last;
  for (unsigned k = 0; k < numStates(); ++k) {
    if (!ahead[k]) {
      last.push_back(made.getStates()[own]);
      map.map(scan.carried()[k], made.carried()[own++]);
      continue;
    }
    Value rows = first.getStacked()[other];
    last.push_back(mutated("split-scans.start-stays")
                       ? scan.getStarts()[k]
                       : first.getStates()[other]);
    ++other;
    map.map(scan.carried()[k],
            attn::readRow(b, loc, rows,
                          attn::firstAxisAt(b, loc, rows, position),
                          typeOf(k)));
  }
  attn::StepOp end = scan.terminator();
  for (Operation &op : scan.getBody().front().without_terminator())
    b.clone(op, map);
  SmallVector<Value> states, rows;
  for (unsigned k = 0; k < numStates(); ++k)
    if (!ahead[k])
      states.push_back(map.lookupOrDefault(end.getStates()[k]));
  for (Value row : end.getRows())
    rows.push_back(map.lookupOrDefault(row));
  attn::StepOp::create(b, loc, states, rows);
  last.append(made.getStacked().begin(), made.getStacked().end());
  scan.replaceAllUsesWith(last);
}

bool Splitter::run() {
  if (numStates() < 2 || getConstantIntValue(scan.getHigh()) == 0 ||
      !isPlain(scan) || !chooseAhead())
    return false;
  attn::ScanOp first = writeAhead();
  writeRest(first);
  remarkDone(first, "attn-split-scans", "recurrence",
             "what reads no larger state runs ahead");
  scan.erase();
  return true;
}

struct SplitScans : heed::impl::AttnSplitScansBase<SplitScans> {
  void runOnOperation() override {
    SmallVector<attn::ScanOp> scans;
    getOperation().walk([&](attn::ScanOp scan) { scans.push_back(scan); });
    for (attn::ScanOp scan : scans)
      Splitter(scan).run();
  }
};

} // namespace
