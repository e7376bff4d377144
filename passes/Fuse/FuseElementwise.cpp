//===- FuseElementwise.cpp - elementwise producers into readers -----------===//
//
// Every op is seen as a function of indices (TensorExpr.h); a producer is
// inlined into the reads of its consumers, plain or gathered, where that
// computes nothing several times that is worth storing.
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/ElementCost.h"
#include "passes/Algebra/TensorExpr.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Algebra/Windows.h"
#include "passes/Fuse/SimplifyBodies.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {

#define GEN_PASS_DEF_ATTNFUSEELEMENTWISE
#include "passes/Passes.h.inc"

namespace {

constexpr StringLiteral passName = "attn-fuse-elementwise";

// What one element of a producer costs to compute again.
enum class Cost {
  Free,  // reindexing, casts, indices, constants: less than a load and a store
  Cheap, // a few additions and products
  Dear,  // a transcendental function, a division, or many operations
  Never, // a reduction, or a table in f64
};

struct FuseElementwise : impl::AttnFuseElementwiseBase<FuseElementwise> {
  void runOnOperation() override {
    getOperation()->walk([](arith::TruncFOp op) { roundChoice(op); });
    getOperation()->walk(dropEmpty);
    costs.clear();
    erased.clear();
    overOffsets.clear();
    SmallVector<Operation *> roots;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (!isa<linalg::FillOp>(op))
        roots.push_back(op);
    });
    for (Operation *&root : roots)
      if (!erased.contains(root)) {
        Operation *narrow = narrowTable(root);
        if (!narrow)
          narrow = narrowBlocks(root);
        if (narrow) {
          root = narrow;
          // It may lie where an erased op lay.
          erased.erase(narrow);
        }
      }
    costs.clear();
    for (Operation *root : roots)
      if (!erased.contains(root))
        fuseInto(root);
    getOperation()->walk([](arith::AddFOp op) { addOneToExpM1(op); });
  }

  Cost costOf(Operation *op) {
    auto known = costs.find(op);
    if (known != costs.end())
      return known->second;
    // A slice is a view: a row of a step.
    if (!Exprs::isElementwise(op) || isTable(op) ||
        isa<linalg::FillOp, tensor::ExtractSliceOp>(op))
      return costs[op] = isa<linalg::FillOp>(op) ? Cost::Free : Cost::Never;
    unsigned reads = 0;
    for (OpOperand &operand : op->getOpOperands())
      if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
        reads += linalgOp.isDpsInput(&operand) &&
                 linalgOp.payloadUsesValueFromOperand(&operand);
    op->walk([&](tensor::ExtractOp) { ++reads; });
    OperationCount count = countOperations(op);
    if (count.longFunctions || count.divisions ||
        count.reals > mostCheapOperations)
      return costs[op] = Cost::Dear;
    return costs[op] =
               count.reals == 0 && reads <= 1 ? Cost::Free : Cost::Cheap;
  }

  // Ops beside \p consumer that read \p producer.
  static bool hasOtherUses(Operation *producer, Operation *consumer) {
    return llvm::any_of(producer->getUsers(), [&](Operation *user) {
      return !consumer->isAncestor(user);
    });
  }

  /// An op as what it computes for one element.
  struct Reader {
    Operation *root = nullptr;
    bool isTable = false;
    SmallVector<unsigned> vars;             ///< the axes of its result
    SmallVector<unsigned> reduced;          ///< what it sums over
    std::optional<OperationName> reduction; ///< by what, if it does
    ExprRef element = nullptr; ///< of a reduction, one of its terms
    ExprRef start = nullptr;   ///< what it starts from, if that is not neutral

    /// Whether it reads the element of \p read again and again: some loop does
    /// not move the read, or neighbours read it, too.
    bool readsOften(Exprs &exprs, ExprRef read) const {
      auto stays = [&](unsigned v) { return !read->uses(v); };
      return llvm::any_of(vars, stays) || llvm::any_of(reduced, stays) ||
             readsWindow(exprs, read);
    }
    /// Whether a window moves along the result.
    bool readsWindow(Exprs &exprs, ExprRef read) const {
      return llvm::any_of(read->operands, [&](ExprRef at) {
        return moveWindow(exprs, at, vars, reduced);
      });
    }
  };

  std::optional<Reader> openReader(Exprs &exprs, Operation *root) {
    if (root->getNumResults() != 1 || !Exprs::isExpressible(root) ||
        root->use_empty())
      return std::nullopt;
    Reader reader;
    reader.root = root;
    SmallVector<ExprRef> at;
    exprs.indexVars(root->getResult(0), reader.vars, at);
    reader.element = exprs.expand(root->getResult(0), at);
    if (!reader.element)
      return std::nullopt;
    for (int k : {0, 1})
      if (reader.element->kind == ExprKind::Op &&
          reader.element->operands.size() == 2 &&
          reader.element->operand(k)->kind == ExprKind::Reduce &&
          reader.element->operand(k)->name == reader.element->name &&
          reader.element->operand(1 - k)->kind == ExprKind::Constant) {
        reader.start = reader.element->operand(1 - k);
        reader.element = reader.element->operand(k);
      }
    if (reader.element->kind == ExprKind::Reduce) {
      reader.reduction = *reader.element->name;
      reader.element = exprs.open(reader.element, reader.reduced);
    } else if (!Exprs::isElementwise(root)) {
      return std::nullopt;
    }
    reader.isTable = isTable(root);
    return reader;
  }

  static bool chooses(Operation *producer) {
    return producer
        ->walk([](Operation *op) {
          return isa<arith::SelectOp, scf::IfOp>(op) ? WalkResult::interrupt()
                                                     : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Why \p producer, which costs \p cost, is stored and not computed where
  /// \p reader reads it, as \p read; empty if it is not.
  StringRef whyStored(Exprs &exprs, const Reader &reader, Operation *producer,
                      Cost cost, ExprRef read) {
    // A table's f64 body must not take in f32 work, nor the reverse.
    if (reader.isTable)
      return "the reader is a table";
    if (overOffsets.contains(producer))
      return "it is one number for many pairs";
    // A choice takes as long as the window's product.
    if (cost == Cost::Free &&
        !(chooses(producer) && reader.readsWindow(exprs, read)))
      return {};
    if (producer->getParentRegion() != reader.root->getParentRegion())
      return "it stands outside of the loop that reads it";
    if (reader.readsOften(exprs, read))
      return "each of its elements is read many times";
    if (hasOtherUses(producer, reader.root))
      return "other ops read it too";
    return {};
  }

  /// \p reader's element with the producers that are not stored in it, which
  /// are counted in \p count.
  ExprRef expandProducers(Exprs &exprs, const Reader &reader, size_t &count) {
    SetVector<Operation *> fused, kept;
    SmallVector<StringRef> reasons;
    ExprRef element = exprs.expandReads(reader.element, [&](ExprRef read) {
      Operation *producer = read->value.getDefiningOp();
      if (!producer || kept.contains(producer))
        return false;
      Cost cost = costOf(producer);
      if (cost == Cost::Never)
        return false;
      StringRef reason = whyStored(exprs, reader, producer, cost, read);
      if (reason.empty()) {
        fused.insert(producer);
        return true;
      }
      kept.insert(producer);
      reasons.push_back(reason);
      return false;
    });
    for (auto [producer, reason] : llvm::zip(kept, reasons))
      if (!reader.isTable)
        remarkDeclined(producer, passName, "elementwise",
                       format("stored, not fused into its reader: {}", reason));
    count = fused.size();
    return element;
  }

  void fuseInto(Operation *root) {
    Exprs exprs(&getContext());
    std::optional<Reader> reader = openReader(exprs, root);
    if (!reader)
      return;
    size_t count = 0;
    ExprRef element = expandProducers(exprs, *reader, count);
    if (element == reader->element)
      return;
    bool hasReduction = false;
    Exprs::walk(element, [&](ExprRef e) {
      hasReduction |= e->kind == ExprKind::Reduce;
    });
    if (hasReduction)
      return; // an op with more than one reduction stays as it is
    if (reader->reduction) {
      OperationName reduction = *reader->reduction;
      if (element->type.isF32() && mutated("fuse-elementwise.add-for-maximum"))
        reduction = OperationName("arith.addf", &getContext());
      element = exprs.reduce(reduction, reader->reduced, element);
    }
    OpBuilder builder(root);
    remarkDone(root, passName, "elementwise",
               format("fused {}", counted(count, "producer", "producers")));
    Value value =
        writeTensor(builder, root->getLoc(), exprs, element, reader->vars);
    if (reader->start)
      startFrom(builder, value, cast<TypedAttr>(reader->start->attr));
    replace(builder, root, value);
  }

  /// \p sum, a reduction that was just written, starts from \p start.
  static void startFrom(OpBuilder &builder, Value sum, TypedAttr start) {
    auto loops = sum.getDefiningOp<linalg::LinalgOp>();
    auto fill = loops.getDpsInits().front().getDefiningOp<linalg::FillOp>();
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(fill);
    fill.getInputsMutable().assign(
        arith::ConstantOp::create(builder, sum.getLoc(), start));
  }

  /// Positions that a check keeps from being computed where they are used.
  static bool isChecked(Operation *op) {
    return llvm::any_of(op->getUsers(), [](Operation *user) {
      return isa<attn::RequireInRangeOp>(user);
    });
  }

  /// What is checked of \p whole is checked of \p narrow, which has its
  /// numbers.
  static void checkInstead(Value whole, Value narrow) {
    for (OpOperand &use : llvm::make_early_inc_range(whole.getUses()))
      if (isa<attn::RequireInRangeOp>(use.getOwner())) {
        use.getOwner()->setAttr(
            attn::kNameAttr,
            StringAttr::get(whole.getContext(), "index of offset"));
        use.set(narrow);
      }
  }

  // A table over i and j that depends on j - i alone is a table over j - i
  // and a reindexing, which is free to fuse: N + M numbers, not N * M. What is
  // checked is stored like a table, and the check is one of these numbers. So
  // is arithmetic in f32 on nothing but j - i: the bucket of an offset.
  Operation *narrowTable(Operation *root) {
    bool always = isTable(root) || isChecked(root);
    if (root->getNumResults() != 1 || !Exprs::isElementwise(root) ||
        (!always && costOf(root) == Cost::Free))
      return nullptr;
    Value result = root->getResult(0);
    int64_t rank = cast<RankedTensorType>(result.getType()).getRank();
    if (rank < 2)
      return nullptr;
    Exprs exprs(&getContext());
    SmallVector<unsigned> vars;
    SmallVector<ExprRef> at;
    exprs.indexVars(result, vars, at);
    ExprRef element = exprs.expand(result, at);
    if (!element || element->kind == ExprKind::Reduce)
      return nullptr;
    element = exprs.expandReads(element, [&](ExprRef read) {
      Operation *producer = read->value.getDefiningOp();
      return producer && costOf(producer) == Cost::Free;
    });
    for (int64_t i = 0; i < rank; ++i)
      for (int64_t j = i + 1; j < rank; ++j) {
        unsigned offset = 0;
        ExprRef shift = nullptr;
        ExprRef table =
            exprs.byOffset(element, vars[i], vars[j], offset, shift);
        if (!table || (!always && table->freeVars.size() > 1))
          continue;
        SmallVector<unsigned> tableVars;
        SmallVector<ExprRef> indices;
        for (unsigned v : vars)
          if (table->uses(v)) {
            tableVars.push_back(v);
            indices.push_back(exprs.var(v));
          }
        tableVars.push_back(offset);
        Type index = shift->type;
        ExprRef back = exprs.op("arith.subi", index, {at[j], at[i]});
        if (mutated("fuse-elementwise.reverse-offset"))
          back = exprs.op("arith.subi", index, {at[i], at[j]});
        indices.push_back(exprs.op("arith.addi", index, {back, shift}));
        OpBuilder builder(root);
        remarkDone(root, passName, "table",
                   "a table over pairs became a table over their offset");
        Value narrow =
            writeTensor(builder, root->getLoc(), exprs, table, tableVars);
        Value value = writeTensor(builder, root->getLoc(), exprs,
                                  exprs.read(narrow, indices), vars);
        if (!always)
          overOffsets.insert(narrow.getDefiningOp());
        // Each number is that of some pair, if there is no other dim.
        if (tableVars.size() + 1 == vars.size())
          checkInstead(result, narrow);
        replace(builder, root, value);
        return value.getDefiningOp();
      }
    return nullptr;
  }

  // A reduction that reads i and j as i // c and j // c alone is one for all
  // pairs of two blocks: a table over blocks and a reindexing. Each block has
  // an element, so that the same is read.
  Operation *narrowBlocks(Operation *root) {
    auto loops = cast<linalg::LinalgOp>(root);
    if (root->getNumResults() != 1 || !loops.getNumReductionLoops() ||
        !Exprs::isExpressible(root))
      return nullptr;
    Value result = root->getResult(0);
    Exprs exprs(&getContext());
    SmallVector<unsigned> vars, tableVars;
    SmallVector<ExprRef> at, indices;
    exprs.indexVars(result, vars, at);
    ExprRef element = exprs.expand(result, at);
    if (!element || element->kind != ExprKind::Reduce)
      return nullptr;
    bool narrows = false;
    for (unsigned v : vars) {
      ExprRef block = blockOf(element, v);
      if (!block) {
        tableVars.push_back(v);
        indices.push_back(exprs.var(v));
        continue;
      }
      Type index = block->type;
      ExprRef size = block->operand(1), extent = exprs.extent(v);
      ExprRef last = exprs.op(
          "arith.subi", index,
          {exprs.op("arith.addi", index, {extent, size}), exprs.index(1)});
      unsigned fresh =
          exprs.freshVar(exprs.op("arith.floordivsi", index, {last, size}));
      ExprRef table = exprs.rewrite(element, [&](ExprRef e) {
        return e == block ? exprs.var(fresh) : nullptr;
      });
      narrows |= !table->uses(v);
      element = table->uses(v) ? element : table;
      tableVars.push_back(table->uses(v) ? v : fresh);
      indices.push_back(table->uses(v) ? exprs.var(v) : block);
    }
    if (!narrows)
      return nullptr;
    OpBuilder builder(root);
    remarkDone(root, passName, "table",
               "a table over elements became a table over their blocks");
    Value narrow =
        writeTensor(builder, root->getLoc(), exprs, element, tableVars);
    Value value = writeTensor(builder, root->getLoc(), exprs,
                              exprs.read(narrow, indices), vars);
    replace(builder, root, value);
    return value.getDefiningOp();
  }

  /// v // c in \p e, for a number c above 1; null if there is none.
  static ExprRef blockOf(ExprRef e, unsigned v) {
    ExprRef found = nullptr;
    Exprs::walk(e, [&](ExprRef part) {
      if (!found && part->isOp("arith.floordivsi") &&
          part->operand(0)->kind == ExprKind::Var &&
          part->operand(0)->number == v &&
          Exprs::constantInt(part->operand(1)).value_or(0) > 1)
        found = part;
    });
    return found;
  }

  void replace(OpBuilder &builder, Operation *root, Value value) {
    Value result = root->getResult(0);
    result.replaceAllUsesWith(castTo(builder, value, result.getType()));
    eraseDeadOps(root, erased);
    costs.clear(); // a later op may lie where an erased one lay
  }

  DenseMap<Operation *, Cost> costs;
  DenseSet<Operation *> erased;
  /// Tables over an offset that are none in f64: not computed for each pair.
  DenseSet<Operation *> overOffsets;
};

} // namespace
} // namespace heed
