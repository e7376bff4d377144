//===- OrderChoices.cpp - orders that the sizes of a call choose ----------===//
#include "passes/Rewrite/OrderChoices.h"
#include "passes/Algebra/Computation.h"
#include "passes/Algebra/TensorExpr.h"
#include "passes/Algebra/Weights.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace heed;

/// The elementwise op that alone reads what \p choice yields, in its block.
static Operation *onlyReader(scf::IfOp choice) {
  Operation *reader = nullptr;
  for (Operation *user : choice.getResult(0).getUsers()) {
    if (reader && user != reader)
      return nullptr;
    reader = user;
  }
  return reader && reader->getBlock() == choice->getBlock() &&
                 reader->getNumResults() == 1 && Exprs::isElementwise(reader)
             ? reader
             : nullptr;
}

/// \p joined are the choices that \p reader alone reads.
static OrderChoice joinInto(Operation *reader, ArrayRef<OrderChoice> joined) {
  OpBuilder b(reader);
  Location loc = reader->getLoc();
  OrderChoice result = joined.front();
  for (const OrderChoice &next : joined.drop_front()) {
    result.fresh = arith::AddIOp::create(b, loc, result.fresh, next.fresh);
    result.written =
        arith::AddIOp::create(b, loc, result.written, next.written);
  }
  Value cheaper = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                        result.fresh, result.written);
  result.choice = scf::IfOp::create(b, loc, reader->getResultTypes(), cheaper,
                                    /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
  for (unsigned branch = 0; branch < 2; ++branch) {
    Block *into = &result.choice->getRegion(branch).front();
    IRMapping yielded;
    for (const OrderChoice &old : joined) {
      scf::IfOp choice = old.choice;
      Block &from = choice->getRegion(branch).front();
      Operation *end = from.getTerminator();
      yielded.map(choice.getResult(0), end->getOperand(0));
      into->getOperations().splice(into->end(), from.getOperations(),
                                   from.begin(), end->getIterator());
    }
    OpBuilder inside = OpBuilder::atBlockEnd(into);
    Operation *copy = inside.clone(*reader, yielded);
    scf::YieldOp::create(inside, loc, copy->getResults());
  }
  reader->replaceAllUsesWith(result.choice);
  reader->erase();
  for (const OrderChoice &old : joined) {
    scf::IfOp choice = old.choice;
    choice.erase();
  }
  return result;
}

/// Elementwise ops that only the branches of \p choice read are computed in
/// each branch that does: one runs, and its kernels may take them in. What
/// parameters say stays where it is computed once.
static void sinkProducers(scf::IfOp choice) {
  Block *outside = choice->getBlock();
  for (Operation *op = choice->getPrevNode(), *next; op; op = next) {
    next = op->getPrevNode();
    if (op->getNumResults() != 1 || op->use_empty() ||
        !Exprs::isElementwise(op) || isFromParameters(op->getResult(0)) ||
        llvm::any_of(op->getUsers(), [&](Operation *user) {
          return outside->findAncestorOpInBlock(*user) != choice;
        }))
      continue;
    for (Region &branch : choice->getRegions()) {
      auto isInside = [&](OpOperand &use) {
        return branch.isAncestor(use.getOwner()->getParentRegion());
      };
      if (llvm::none_of(op->getUses(), isInside))
        continue;
      OpBuilder b = OpBuilder::atBlockBegin(&branch.front());
      op->getResult(0).replaceUsesWithIf(b.clone(*op)->getResult(0), isInside);
    }
    op->erase();
  }
}

void heed::joinChoices(SmallVectorImpl<OrderChoice> &choices) {
  for (size_t k = 0; k < choices.size();) {
    Operation *reader = onlyReader(choices[k].choice);
    // A reader with more elements than what was chosen is no epilogue.
    if (!reader || !readsInPlace(reader, choices[k].choice.getResult(0))) {
      ++k;
      continue;
    }
    SmallVector<OrderChoice> joined, others;
    for (const OrderChoice &other : choices)
      (onlyReader(other.choice) == reader ? joined : others).push_back(other);
    others.push_back(joinInto(reader, joined));
    choices.assign(others.begin(), others.end());
    k = 0;
  }
  for (const OrderChoice &choice : choices)
    sinkProducers(choice.choice);
}
