//===- FormKernels.cpp - outlines the tensor mathematics as kernels -------===//
//
// Tensor-valued ops are gathered in clusters, each cluster becomes a private
// function with the attribute attn.kernel, and what is left of the model is its
// host code (docs/ir.md, section 3).
//
// An op starts as a cluster of its own and draws in the clusters that produce
// its operands where one kernel computes both without storing what is between
// them: elementwise producers, an epilogue after a contraction, and reductions
// over the same rows. All but the last value of a cluster are used inside it
// alone, so that the ops may move down to the last one.
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/Computation.h"
#include "passes/Algebra/ElementCost.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Kernels/InlineLive.h"
#include "passes/Kernels/JoinedRows.h"
#include "passes/Kernels/KernelKinds.h"
#include "passes/Kernels/KernelReads.h"
#include "passes/Kernels/OutlineKernel.h"
#include "passes/Passes.h"
#include "passes/Plan/RowBlocks.h"
#include "passes/Plan/StoredTensors.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringMap.h"

namespace heed {
#define GEN_PASS_DEF_ATTNFORMKERNELS
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

class Former {
public:
  Former(func::FuncOp model, llvm::StringMap<func::FuncOp> &known,
         SymbolTable &symbols)
      : model(model), known(known), symbols(symbols) {}

  void run() {
    model.walk<WalkOrder::PreOrder>([&](Block *block) {
      if (!isCompute(block->getParentOp()))
        formIn(*block);
    });
  }

private:
  void formIn(Block &block);
  Cluster *clusterOf(Value value);
  /// Ops of this block, outside of \p cluster, that use \p value (directly or
  /// from a nested region).
  bool usedOnlyIn(Value value, const llvm::SmallPtrSetImpl<Cluster *> &set);
  std::string whyNot(Cluster &producer, Operation *user);
  void joinRowBlock(Cluster &cluster, Attribute block);
  /// Clusters that are to be one kernel, and why others are not among them.
  using Members = llvm::SmallSetVector<Cluster *, 8>;
  using Declined = llvm::MapVector<Cluster *, std::string>;
  Members findProducers(Cluster &cluster, Declined &declined);
  void dropReadElsewhere(Cluster &cluster, Members &members,
                         Declined &declined);
  void keepOneOwner(Cluster &cluster, Members &members, Declined &declined);
  void join(Cluster &cluster, const Members &members);
  void drawIn(Cluster &cluster);
  void explain();

  func::FuncOp model;
  llvm::StringMap<func::FuncOp> &known; ///< of all models and of init
  SymbolTable &symbols;
  /// Why \p user's kernel was not joined with \p producer's when \p user was
  /// looked at.
  struct Reason {
    Operation *producer, *user;
    std::string why;
  };
  SmallVector<Reason> reasons;
  Block *block = nullptr;
  SmallVector<std::unique_ptr<Cluster>> clusters;
  DenseMap<Operation *, Cluster *> owner;
};

Cluster *Former::clusterOf(Value value) {
  Operation *def = value.getDefiningOp();
  return def ? owner.lookup(def) : nullptr;
}

bool Former::usedOnlyIn(Value value,
                        const llvm::SmallPtrSetImpl<Cluster *> &set) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    Operation *here = block->findAncestorOpInBlock(*user);
    Cluster *cluster = here ? owner.lookup(here) : nullptr;
    return cluster && set.contains(cluster);
  });
}

/// Empty if \p user may be computed in one kernel with \p producer; else the
/// reason against it.
/// Long: one kind of producer after the other.
std::string Former::whyNot(Cluster &producer, Operation *user) {
  Operation *last = producer.ops.back();
  if (last->getNumResults() != 1 && !isa<attn::SoftmaxOp>(last))
    return "it has several results";
  if (isTable(last) && !isTable(user))
    return "it is a table";
  bool inPlace = readsInPlace(user, last->getResult(0));
  KernelKind userKind = kernelKindOf(user);
  unsigned cost = countOperations(last).cost();
  switch (producer.kind) {
  case KernelKind::Elementwise:
    if (userKind == KernelKind::Elementwise || userKind == KernelKind::Row) {
      if (inPlace || cost <= mostCheapOperations)
        return "";
      return "its elements are read more than once and are not cheap";
    }
    if (userKind == KernelKind::Contraction &&
        (cost <= 1 || isComputedOnce(user, last->getResult(0)) ||
         (cost <= mostCheapOperations &&
          readsWindow(user, last->getResult(0)))))
      return "";
    if (auto attention = dyn_cast<attn::AttentionOp>(user);
        attention && userKind == KernelKind::Attention)
      return whyNotInParts(attention, last->getResult(0));
    return "each of its elements is read many times";
  case KernelKind::Contraction:
    if (userKind == KernelKind::Elementwise && inPlace)
      return "";
    return "a contraction's tile is not a whole row";
  case KernelKind::Row: {
    // Of a row block, what follows its queries is chosen with it
    // (Plan/RowBlocks.h): this is a norm of the keys, the same for all tiles.
    if (userKind == KernelKind::Contraction ||
        userKind == KernelKind::Attention || userKind == KernelKind::Softmax ||
        userKind == KernelKind::RowBlock ||
        userKind == KernelKind::Recurrence ||
        userKind == KernelKind::ElementScan ||
        userKind == KernelKind::SumScan ||
        userKind == KernelKind::TriangularSolve)
      return "each of its elements is read many times";
    // Columns of what it reduces, say: not the rows that the user reduces.
    bool reduced = llvm::any_of(producer.ops, [&](Operation *op) {
      auto loops = dyn_cast<linalg::LinalgOp>(op);
      auto result = dyn_cast<RankedTensorType>(last->getResult(0).getType());
      return loops && result && loops.getNumLoops() > result.getRank();
    });
    if (reduced && userKind == KernelKind::Row &&
        sumsAlong(user, last->getResult(0)))
      return "its elements are added";
    if (readsInBranch(user, last->getResult(0)))
      return "it is read in a branch";
    // Together they would be rows, and stored for the product.
    if (userKind == KernelKind::Elementwise && isComputedInProduct(user))
      return "its reader is computed in a product";
    return "";
  }
  case KernelKind::RowBlock:
    if (userKind == KernelKind::Elementwise && inPlace)
      return "";
    return "its rows are read whole";
  case KernelKind::Recurrence:
  case KernelKind::ElementScan:
  case KernelKind::SumScan:
  case KernelKind::TriangularSolve:
    return "its schedule has no epilogue";
  case KernelKind::Softmax:
  case KernelKind::Attention:
    if (userKind == KernelKind::Elementwise && inPlace &&
        producer.kind == KernelKind::Softmax)
      return "";
    return "its schedule has no epilogue";
  }
  llvm_unreachable("kind of kernel");
}

/// Takes the operations before that are to be computed with \p cluster, one
/// tile of queries after the other.
void Former::joinRowBlock(Cluster &cluster, Attribute block) {
  cluster.kind = KernelKind::RowBlock;
  for (auto &before : clusters) {
    if (before.get() == &cluster || before->ops.empty() ||
        before->ops.back()->getAttr(kRowBlockAttr) != block)
      continue;
    for (Operation *op : before->ops)
      owner[op] = &cluster;
    cluster.ops.insert(cluster.ops.begin(), before->ops.begin(),
                       before->ops.end());
    before->ops.clear();
  }
}

/// The one contraction of \p set, or null.
static Operation *onlyContraction(ArrayRef<Cluster *> set) {
  Operation *product = nullptr;
  for (Cluster *c : set)
    for (Operation *op : c->ops)
      if (kernelKindOf(op) == KernelKind::Contraction) {
        if (product)
          return nullptr;
        product = op;
      }
  return product;
}

/// Producers, transitively, that may stand in one kernel with their users in
/// \p cluster, which is one of them. What one user reads in place and another
/// as a whole stays outside.
Former::Members Former::findProducers(Cluster &cluster, Declined &declined) {
  Members members;
  SmallVector<Operation *> work(cluster.ops);
  members.insert(&cluster);
  while (!work.empty()) {
    Operation *user = work.pop_back_val();
    llvm::SetVector<Value> inputs(user->operand_begin(), user->operand_end());
    getUsedValuesDefinedAbove(user->getRegions(), inputs);
    for (Value input : inputs) {
      Cluster *producer = clusterOf(input);
      if (!producer || producer == owner.lookup(user) ||
          producer->ops.back() != input.getDefiningOp())
        continue;
      if (std::string why = whyNot(*producer, user); !why.empty()) {
        declined[producer] = why;
        continue;
      }
      if (!members.insert(producer))
        continue;
      work.append(producer->ops.begin(), producer->ops.end());
    }
  }
  members.remove_if(
      [&](Cluster *c) { return c != &cluster && declined.contains(c); });
  return members;
}

/// Values that are read elsewhere, too, stay outside, and with them what only
/// they would need.
void Former::dropReadElsewhere(Cluster &cluster, Members &members,
                               Declined &declined) {
  for (bool changed = true; changed;) {
    llvm::SmallPtrSet<Cluster *, 8> inside(members.begin(), members.end());
    changed = members.remove_if([&](Cluster *c) {
      if (c == &cluster ||
          llvm::all_of(c->ops.back()->getResults(),
                       [&](Value v) { return usedOnlyIn(v, inside); }))
        return false;
      declined[c] = "its result is read elsewhere, too";
      return true;
    });
  }
}

/// Leaves at most one contraction or softmax, and none below a row kernel: they
/// own the kernel's schedule.
void Former::keepOneOwner(Cluster &cluster, Members &members,
                          Declined &declined) {
  auto owns = [](Cluster *c) {
    return c->kind == KernelKind::Contraction ||
           c->kind == KernelKind::Softmax || c->kind == KernelKind::Attention ||
           c->kind == KernelKind::RowBlock ||
           c->kind == KernelKind::Recurrence ||
           c->kind == KernelKind::ElementScan ||
           c->kind == KernelKind::TriangularSolve;
  };
  Operation *product = onlyContraction(members.getArrayRef());
  auto isOtherRow = [&](Cluster *c) {
    return c->kind == KernelKind::Row &&
           !(product && c != &cluster && standsBeside(product, c->ops.back()) &&
             llvm::all_of(ArrayRef(c->ops).drop_back(), [](Operation *op) {
               return kernelKindOf(op) == KernelKind::Elementwise;
             }));
  };
  bool seen = owns(&cluster), rows = llvm::any_of(members, isOtherRow);
  members.remove_if([&](Cluster *c) {
    if (c == &cluster || !owns(c))
      return false;
    if (rows || seen) {
      declined[c] = rows ? "the kernel works on whole rows"
                         : "the kernel has a contraction already";
      return true;
    }
    seen = true;
    return false;
  });
}

/// Makes \p members one cluster, \p cluster.
void Former::join(Cluster &cluster, const Members &members) {
  SmallVector<Operation *> ops;
  for (Cluster *c : members) {
    ops.append(c->ops.begin(), c->ops.end());
    if (c->kind > cluster.kind)
      cluster.kind = c->kind;
  }
  llvm::sort(ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *member : ops)
    owner[member] = &cluster;
  for (Cluster *c : members)
    if (c != &cluster)
      c->ops.clear();
  cluster.ops = std::move(ops);
}

void Former::drawIn(Cluster &cluster) {
  Operation *op = cluster.ops.back();
  Declined declined;
  Members members = findProducers(cluster, declined);
  // Before the next question: rows that stay outside are no reason to leave a
  // contraction there.
  dropReadElsewhere(cluster, members, declined);
  keepOneOwner(cluster, members, declined);
  dropReadElsewhere(cluster, members, declined);
  for (auto &[producer, why] : declined)
    if (!members.contains(producer))
      reasons.push_back({producer->ops.back(), op, why});
  if (members.size() > 1)
    join(cluster, members);
}

/// Says what stands in one kernel, of each boundary that is left why it is
/// there, and what is stored between kernels.
void Former::explain() {
  for (auto &cluster : clusters)
    for (Value result : cluster->ops.empty()
                            ? ValueRange()
                            : cluster->ops.back()->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !isa<func::ReturnOp, tensor::DimOp>(user);
          }))
        remarkFound(cluster->ops.back(), "attn-form-kernels", "stored",
                    format("stored between kernels: {}", storedText(result)));
  for (auto &cluster : clusters)
    if (cluster->ops.size() > 1) {
      std::string saved;
      for (Operation *op : ArrayRef(cluster->ops).drop_back())
        for (Value inside : op->getResults()) {
          std::string bytes = trafficText(inside);
          saved +=
              (saved.empty() ? ", which saves writing and reading " : ", ") +
              storedText(inside) +
              (bytes.empty() ? "" : format(" ({})", bytes));
        }
      remarkDone(cluster->ops.back(), "attn-form-kernels", "fused",
                 format("{} operations in one {} kernel{}", cluster->ops.size(),
                        nameOf(cluster->kind), saved));
    }
  llvm::SmallSet<std::pair<Cluster *, Cluster *>, 8> said;
  for (Reason &reason : reasons) {
    Cluster *producer = owner.lookup(reason.producer);
    Cluster *user = owner.lookup(reason.user);
    if (producer != user && said.insert({producer, user}).second)
      remarkDeclined(reason.user, "attn-form-kernels", "not-fused",
                     format("not in one kernel with the {} before it: {}",
                            nameOf(producer->kind), reason.why));
  }
}

void Former::formIn(Block &here) {
  block = &here;
  clusters.clear();
  reasons.clear();
  owner.clear();
  for (Operation &op : llvm::make_early_inc_range(here))
    inlineLive(&op);
  for (Operation &op : llvm::make_early_inc_range(here))
    ownJoinedRows(&op);
  for (Operation &op : here) {
    if (!isCompute(&op))
      continue;
    // A fill is cloned where it initialises a sum, in a loop around it, too;
    // one that is read as a tensor is a kernel. One that is both is two.
    if (isCheap(&op) && llvm::any_of(op.getUsers(), isCompute) &&
        !llvm::all_of(op.getUsers(), isCompute)) {
      OpBuilder b(&op);
      b.setInsertionPointAfter(&op);
      op.replaceUsesWithIf(b.clone(op), [](OpOperand &use) {
        return !isCompute(use.getOwner());
      });
    }
    if (isCheap(&op) && llvm::all_of(op.getUsers(), isCompute))
      continue;
    clusters.push_back(std::make_unique<Cluster>());
    clusters.back()->ops.push_back(&op);
    clusters.back()->kind = kernelKindOf(&op);
    owner[&op] = clusters.back().get();
    if (Attribute block = op.getAttr(kRowBlockAttr))
      joinRowBlock(*clusters.back(), block);
    drawIn(*clusters.back());
  }
  explain();
  for (auto &cluster : clusters)
    if (!cluster->ops.empty())
      outlineKernel(*cluster, model, known, symbols);
  // What was cloned into kernels has no use left here.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(here)))
    if (isCheap(&op) && op.use_empty())
      op.erase();
}

struct FormKernels : heed::impl::AttnFormKernelsBase<FormKernels> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> models;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal() && !func->hasAttr(attn::kKernelAttr))
        models.push_back(func);
    llvm::StringMap<func::FuncOp> known;
    for (func::FuncOp model : models) {
      markLongWindows(model);
      Former(model, known, symbols).run();
    }
    // One kernel gives the next its rows as it has them.
    RewritePatternSet patterns(&getContext());
    tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns,
                                                         &getContext());
    tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, &getContext());
    SmallVector<Operation *> reshapes;
    for (func::FuncOp model : models)
      model.walk([&](Operation *op) {
        if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
          reshapes.push_back(op);
      });
    FrozenRewritePatternSet frozen(std::move(patterns));
    if (failed(applyOpPatternsGreedily(reshapes, frozen)))
      signalPassFailure();
  }
};

} // namespace
