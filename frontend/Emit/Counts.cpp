//===- Counts.cpp - Which states can be taken back ------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Counts.h"

#include "dialects/Attn/Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace heed;

namespace {

/// Values that what \p from holds has a part in; extents are none of it.
class Reach {
public:
  /// Without \p throughUpdates a state that is updated is not what it was: its
  /// elements alone count that were read before.
  Reach(func::FuncOp model, Value from, bool throughUpdates = true)
      : throughUpdates(throughUpdates) {
    values.insert(from);
    // A loop's carried values need more than one walk.
    size_t before;
    do {
      before = values.size();
      model.walk<WalkOrder::PreOrder>([&](Operation *op) { visit(op); });
    } while (values.size() != before);
  }
  bool has(Value value) const { return values.contains(value); }

private:
  void visit(Operation *op) {
    if (isa<tensor::DimOp>(op))
      return;
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return visit(loop);
    bool reads = false;
    auto update = dyn_cast<attn::UpdateStateOp>(op);
    for (OpOperand &operand : op->getOpOperands())
      reads |= has(operand.get()) && (throughUpdates || !update ||
                                      &operand != &update.getStateMutable());
    // What a region takes from outside.
    for (Region &region : op->getRegions())
      region.walk([&](Operation *inner) {
        reads |= llvm::any_of(inner->getOperands(),
                              [&](Value value) { return has(value); });
      });
    if (reads && !isa<func::FuncOp>(op))
      values.insert(op->result_begin(), op->result_end());
  }
  void visit(scf::ForOp loop) {
    bool turns = has(loop.getLowerBound()) || has(loop.getUpperBound());
    for (auto [init, inside, yield, result] :
         llvm::zip(loop.getInits(), loop.getRegionIterArgs(),
                   loop.getYieldedValues(), loop.getResults()))
      if (turns || has(init) || has(yield)) {
        values.insert(inside);
        values.insert(result);
      }
  }

  bool throughUpdates;
  llvm::DenseSet<Value> values;
};

/// Collects the updates that make \p value of \p before; false if it is made
/// otherwise.
bool updatesOf(Value value, Value before,
               SmallVectorImpl<attn::UpdateStateOp> &updates) {
  while (value != before) {
    if (auto update = value.getDefiningOp<attn::UpdateStateOp>()) {
      updates.push_back(update);
      value = update.getState();
    } else if (auto as = value.getDefiningOp<tensor::CastOp>()) {
      value = as.getSource();
    } else if (auto loop = value.getDefiningOp<scf::ForOp>()) {
      unsigned k = cast<OpResult>(value).getResultNumber();
      if (!updatesOf(loop.getYieldedValues()[k], loop.getRegionIterArg(k),
                     updates))
        return false;
      value = loop.getInits()[k];
    } else {
      return false;
    }
  }
  return true;
}

/// What one entry does with one state.
struct Use {
  Value before, after; ///< after: null if the entry does not change it
  bool isWhole = false;
  SmallVector<attn::UpdateStateOp> updates;
};

/// Whether a position is the remainder of a division, and whether one is a
/// quotient: of a ring there is no quotient, of pages there is.
void remainders(Value position, bool &hasRemainder, bool &hasQuotient) {
  llvm::SetVector<Operation *> work;
  auto add = [&](Value value) {
    if (Operation *op = value.getDefiningOp())
      work.insert(op);
  };
  add(position);
  for (size_t k = 0; k < work.size(); ++k) {
    work[k]->walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        add(operand);
      if (isa<arith::RemSIOp, arith::RemUIOp>(op))
        hasRemainder = true;
      if (!isa<arith::FloorDivSIOp, arith::DivSIOp, arith::DivUIOp>(op))
        return;
      // x % y is x - x // y * y.
      bool isRemainder = llvm::all_of(op->getUsers(), [](Operation *user) {
        return isa<arith::MulIOp>(user);
      });
      (isRemainder ? hasRemainder : hasQuotient) = true;
    });
  }
}

bool isRing(attn::UpdateStateOp update) {
  bool hasRemainder = false, hasQuotient = false;
  for (Value position : update.getPositions())
    remainders(position, hasRemainder, hasQuotient);
  return hasRemainder && !hasQuotient;
}

class Counts {
public:
  void mark(ModuleOp module) {
    for (auto model : module.getOps<func::FuncOp>())
      if (model->hasAttr(attn::kModelAttr))
        addEntry(model);
    for (StringAttr name : order)
      if (isCount(name))
        counts.insert(name);
    if (counts.empty())
      return;
    for (StringAttr name : order)
      if (StringRef trim = trimOf(name); !trim.empty())
        for (auto &[model, uses] : entries)
          for (unsigned k = 0; k < model.getNumArguments(); ++k)
            if (model.getArgument(k) == uses[name].before)
              model.setArgAttr(k, attn::kTrimAttr,
                               StringAttr::get(model.getContext(), trim));
  }

private:
  using Uses = llvm::DenseMap<StringAttr, Use>;

  void addEntry(func::FuncOp model) {
    auto &[_, uses] = entries.emplace_back(model, Uses());
    for (unsigned k = 0; k < model.getNumArguments(); ++k)
      if (model.getArgAttr(k, attn::kStateAttr)) {
        auto name = model.getArgAttrOfType<StringAttr>(k, attn::kNameAttr);
        uses[name].before = model.getArgument(k);
        if (entries.size() == 1)
          order.push_back(name);
      }
    auto results = cast<func::ReturnOp>(model.front().getTerminator());
    for (unsigned k = 0; k < model.getNumResults(); ++k)
      if (model.getResultAttr(k, attn::kStateAttr)) {
        Use &use =
            uses[model.getResultAttrDict(k).getAs<StringAttr>(attn::kNameAttr)];
        use.after = results.getOperand(k);
        use.isWhole = !updatesOf(use.after, use.before, use.updates);
      }
  }

  /// Integers that some entry assigns of what they were, and of which the
  /// positions of an update are made.
  bool isCount(StringAttr name) {
    bool advances = false, isPosition = false;
    for (auto &[model, uses] : entries) {
      Use &use = uses[name];
      if (!getElementTypeOrSelf(use.before.getType()).isInteger() ||
          getElementTypeOrSelf(use.before.getType()).isInteger(1) ||
          (use.after && !use.isWhole))
        return false;
      Reach reach(model, use.before);
      advances |= use.after && reach.has(use.after);
      model.walk([&](attn::UpdateStateOp update) {
        isPosition |= isAt(update, reach);
      });
    }
    return advances && isPosition;
  }

  static bool isAt(attn::UpdateStateOp update, const Reach &reach) {
    return llvm::any_of(update.getPositions(),
                        [&](Value value) { return reach.has(value); });
  }

  /// Is the state's content seen anywhere but in what it becomes?
  bool isRead(StringAttr name) {
    return llvm::any_of(entries, [&](auto &entry) {
      auto &[model, uses] = entry;
      Use &use = uses[name];
      Reach reach(model, use.before);
      return llvm::any_of(model.front().getTerminator()->getOperands(),
                          [&](Value result) {
                            return result != use.after && reach.has(result);
                          });
    });
  }

  /// A count stays less than it was: what an entry that advances one does with
  /// other states must lie at counted positions, or not be read again.
  StringRef trimOf(StringAttr name) {
    if (counts.contains(name))
      return "count";
    bool ring = false;
    for (auto &[model, uses] : entries) {
      Use &use = uses[name];
      if (!use.after)
        continue;
      bool advances = false;
      SmallVector<Reach> reaches;
      for (StringAttr count : counts) {
        Reach &reach = reaches.emplace_back(model, uses[count].before);
        advances |= uses[count].after && reach.has(uses[count].after);
      }
      bool isCounted = !use.isWhole;
      for (attn::UpdateStateOp update : use.updates) {
        isCounted &= llvm::any_of(
            reaches, [&](const Reach &reach) { return isAt(update, reach); });
        ring |= isRing(update);
      }
      if (!isCounted && (advances || isOfItself(model, use)) && isRead(name))
        return "recurrent";
    }
    return ring ? "ring" : "";
  }

  /// Is what the entry puts there made of what was there?
  static bool isOfItself(func::FuncOp model, const Use &use) {
    Reach reach(model, use.before, /*throughUpdates=*/false);
    return (use.isWhole && reach.has(use.after)) ||
           llvm::any_of(use.updates, [&](attn::UpdateStateOp update) {
             return reach.has(update.getValues());
           });
  }

  std::vector<std::pair<func::FuncOp, Uses>> entries;
  SmallVector<StringAttr> order;
  llvm::SetVector<StringAttr> counts;
};

} // namespace

void heed::markCounts(ModuleOp module) { Counts().mark(module); }
