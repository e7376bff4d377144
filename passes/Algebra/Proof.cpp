//===- Proof.cpp - a rewrite compared with what stood there ---------------===//
#include "passes/Algebra/Proof.h"
#include "passes/Algebra/NormalForm.h"

#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "attn-proof"

using namespace mlir;

namespace heed {

void Attempt::undo() {
  for (Operation *op : ops)
    op->dropAllReferences();
  for (Operation *op : ops) {
    // Extents that were asked for.
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      user->erase();
    op->erase();
  }
  ops.clear();
}

namespace {

class Prover {
public:
  Prover(Exprs &exprs, const Attempt &attempt)
      : exprs(exprs), attempt(attempt), builder(exprs.context),
        scratch(builder) {
    for (Operation *op : attempt.operations()) {
      llvm::SetVector<Value> read(op->operand_begin(), op->operand_end());
      getUsedValuesDefinedAbove(op->getRegions(), read);
      for (Value value : read)
        if (isa<RankedTensorType>(value.getType()) &&
            !attempt.made(value.getDefiningOp()))
          leaves.insert(value);
    }
  }
  ~Prover() { scratch.undo(); }

  Proof prove(ExprRef written, Value fresh, ArrayRef<unsigned> vars);

private:
  bool compare(const Case &known);
  bool holds(Case known);
  ExprRef expand(ExprRef read);
  Value definition(OpResult result);

  Exprs &exprs;
  const Attempt &attempt;
  OpBuilder builder;
  Attempt scratch; // decompositions
  DenseSet<Value> leaves;
  DenseMap<Operation *, SmallVector<Value>> definitions;
  ExprRef written = nullptr, fresh = nullptr;
  SmallVector<ScoreRow> rows;
  llvm::SetVector<ExprRef> extents, positives;
  llvm::SmallBitVector axioms{unsigned(Axiom::Count)};
  bool tooLarge = false;
};

/// \p result as ops of linalg say it: its op's decomposition.
Value Prover::definition(OpResult result) {
  Operation *op = result.getOwner();
  auto known = definitions.find(op);
  if (known == definitions.end()) {
    builder.setInsertionPointAfter(op);
    FailureOr<SmallVector<Value>> values = failure();
    if (auto aggregated = dyn_cast<linalg::AggregatedOpInterface>(op))
      values = aggregated.decomposeOperation(builder);
    known =
        definitions
            .try_emplace(op, succeeded(values) ? *values : SmallVector<Value>())
            .first;
  }
  if (known->second.empty())
    return {};
  // Absent results are not among the values.
  return known->second[result.getResultNumber()];
}

ExprRef Prover::expand(ExprRef read) {
  Value tensor = read->value;
  if (leaves.contains(tensor))
    return nullptr;
  Operation *def = tensor.getDefiningOp();
  if (!def)
    return nullptr;
  auto softmax = dyn_cast<attn::SoftmaxOp>(def);
  if (softmax || isa<attn::LogSoftmaxOp>(def) ||
      (isa<attn::AttentionOp>(def) && attempt.made(def)))
    if (Value meaning = definition(cast<OpResult>(tensor))) {
      ExprRef element = exprs.read(meaning, read->operands);
      if (!softmax || tensor != softmax.getResult())
        return element;
      // An excluded element is absent.
      ExprRef live = exprs.read(definition(cast<OpResult>(softmax.getLive())),
                                read->operands);
      return exprs.op(NormalForm::elementName, element->type, {element, live});
    }
  return exprs.expand(read);
}

bool Prover::compare(const Case &known) {
  llvm::SetVector<ExprRef> positive = positives;
  positive.remove(known.empty);
  NormalForm form(
      exprs, [this](ExprRef read) { return expand(read); }, known, positive);
  ExprRef old = form.of(written), now = form.of(fresh);
  tooLarge |= !old || !now;
  axioms |= form.axioms();
  rows.assign(form.rows().begin(), form.rows().end());
  size_t before = positives.size();
  positives.insert(form.positives().begin(), form.positives().end());
  for (ExprRef extent : form.extents())
    extents.insert(extent);
  // What runs was not known from the beginning.
  if (old != now && positives.size() != before)
    return compare(known);
  if (getenv("HEED_PROOF"))
    llvm::errs() << (old == now ? "  EQUAL" : "  DIFFER")
                 << " dead=" << (known.row ? int(known.dead) : 9)
                 << " empty=" << (known.empty ? exprs.str(known.empty) : "")
                 << " rows=" << rows.size() << "\n  written "
                 << (old ? exprs.str(old) : "-") << "\n  fresh   "
                 << (now ? exprs.str(now) : "-") << "\n";
  return old && old == now;
}

/// In \p known, and where it takes that, apart for rows that are dead or not.
bool Prover::holds(Case known) {
  if (compare(known))
    return true;
  SmallVector<ScoreRow> candidates = rows;
  for (const ScoreRow &row : candidates) {
    known.row = row;
    known.dead = false;
    if (!compare(known))
      continue;
    known.dead = true;
    if (compare(known))
      return true;
  }
  return false;
}

Proof Prover::prove(ExprRef element, Value value, ArrayRef<unsigned> vars) {
  Proof proof;
  written = element;
  SmallVector<ExprRef> at;
  llvm::SmallDenseSet<ExprRef> outer;
  for (unsigned v : vars) {
    at.push_back(exprs.var(v));
  }
  fresh = exprs.read(value, at);
  {
    NormalForm sizes(
        exprs, [](ExprRef) -> ExprRef { return nullptr; }, Case(), positives);
    for (unsigned v : vars) {
      ExprRef extent = sizes.extentOf(v);
      outer.insert(extent);
      positives.insert(extent);
    }
  }
  LLVM_DEBUG(llvm::dbgs() << "proof of " << value << "\n");
  if (!holds(Case())) {
    proof.why =
        tooLarge ? "too large to be compared" : "it is not what was written";
    return proof;
  }
  // Without an element there is nothing to compare.
  SmallVector<ExprRef> sums;
  for (ExprRef extent : extents)
    if (!outer.contains(extent))
      sums.push_back(extent);
  for (ExprRef extent : sums) {
    Case known;
    known.empty = extent;
    if (!holds(known)) {
      proof.why = "it differs where a sum is empty";
      return proof;
    }
  }
  proof.holds = true;
  for (unsigned k : axioms.set_bits())
    proof.axioms +=
        (proof.axioms.empty() ? "" : ", ") + textOf(Axiom(k)).name.str();
  return proof;
}

} // namespace

Proof prove(Exprs &exprs, ExprRef written, Value fresh, ArrayRef<unsigned> vars,
            const Attempt &attempt) {
  return Prover(exprs, attempt).prove(written, fresh, vars);
}

} // namespace heed
