//===- Proof.cpp - a rewrite compared with what stood there ---------------===//
#include "passes/Algebra/Proof.h"
#include "passes/Algebra/NormalForm.h"
#include "passes/Mutation.h"
#include "support/Format.h"

#include "dialects/Attn/Dialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

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
    for (Operation *op : llvm::concat<Operation *const>(
             attempt.operations(), attempt.adoptedOperations())) {
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
  ExprRef leaf(ExprRef read);
  Value definition(OpResult result);
  std::string describe(ExprRef old, ExprRef now, const Case &known);

  Exprs &exprs;
  const Attempt &attempt;
  OpBuilder builder;
  Attempt scratch; // decompositions
  llvm::SetVector<Value> leaves;
  DenseMap<Operation *, SmallVector<Value>> definitions;
  ExprRef written = nullptr, fresh = nullptr;
  SmallVector<ScoreRow> rows;
  llvm::SetVector<ExprRef> extents, positives;
  llvm::SmallBitVector axioms{unsigned(Axiom::Count)};
  bool tooLarge = false;
  std::string difference; // of the last comparison
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

/// What \p read, of a leaf, is: itself, but that an element which a softmax
/// excludes is absent.
ExprRef Prover::leaf(ExprRef read) {
  auto softmax = read->value.getDefiningOp<attn::SoftmaxOp>();
  if (!softmax || read->value != softmax.getResult())
    return nullptr;
  auto number = llvm::find(leaves, read->value) - leaves.begin();
  ExprRef element =
      exprs.op(OperationName(format("leaf.{}", number), exprs.context),
               DictionaryAttr::get(exprs.context), read->type, read->operands);
  return exprs.op(NormalForm::elementName, read->type,
                  {element, exprs.read(softmax.getLive(), read->operands)});
}

ExprRef Prover::expand(ExprRef read) {
  Value tensor = read->value;
  Operation *def = tensor.getDefiningOp();
  if (leaves.contains(tensor))
    return leaf(read);
  if (!def)
    return nullptr;
  // A threshold is one function of its row, whatever the order of its keys.
  if (auto threshold = dyn_cast<attn::ThresholdOp>(def)) {
    SmallVector<unsigned> keys;
    SmallVector<ExprRef> at;
    const auto *row = read->operands.begin();
    int64_t rank =
        cast<RankedTensorType>(threshold.getInput().getType()).getRank();
    for (int64_t axis = 0; axis < rank; ++axis) {
      if (!llvm::is_contained(threshold.getAxes(), axis)) {
        at.push_back(*row++);
        continue;
      }
      keys.push_back(
          exprs.freshVar(exprs.extentOf(threshold.getInput(), axis)));
      at.push_back(exprs.var(keys.back()));
    }
    std::string name = format("{}.{}", threshold->getName().getStringRef(),
                              attn::stringifyMap(threshold.getMap()));
    return exprs.reduce(OperationName(name, exprs.context), keys,
                        exprs.read(threshold.getInput(), at));
  }
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

/// The smallest parts of \p old and \p now that differ, and in which case.
std::string Prover::describe(ExprRef old, ExprRef now, const Case &known) {
  for (;;) {
    if (old->kind != now->kind || old->name != now->name ||
        old->attr != now->attr || old->value != now->value ||
        old->operands.size() != now->operands.size())
      break;
    SmallVector<ExprRef> here,
        there(now->operands.begin(), now->operands.end());
    for (ExprRef operand : old->operands) {
      auto *same = llvm::find(there, operand);
      if (same == there.end())
        here.push_back(operand);
      else
        there.erase(same);
    }
    if (here.size() != 1)
      break;
    old = here[0];
    now = there[0];
  }
  auto text = [&](ExprRef e) {
    std::string whole = exprs.str(e);
    constexpr size_t most = 160;
    return whole.size() <= most ? whole
                                : format("{} ...", whole.substr(0, most));
  };
  std::string where;
  if (known.row)
    where += known.dead ? " in a row without a live key" : "";
  if (known.empty)
    where += format(" where {} is 0", exprs.str(known.empty));
  return format("{} instead of {}{}", text(now), text(old), where);
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
  if (old && now && old != now)
    difference = describe(old, now, known);
  return old && old == now;
}

/// In \p known, and where it takes that, apart for rows that are dead or not.
bool Prover::holds(Case known) {
  bool always = compare(known);
  SmallVector<ScoreRow> candidates = rows;
  for (const ScoreRow &row : candidates) {
    known.row = row;
    known.dead = false;
    if (!always && !compare(known))
      continue;
    known.dead = true;
    bool holds = compare(known);
    if (holds != always)
      return holds;
  }
  return always;
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
  if (!holds(Case())) {
    proof.why = tooLarge ? "too large to be compared" : difference;
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
      proof.why = tooLarge ? "too large to be compared" : difference;
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
  if (mutated("proof.accept-anything")) {
    Proof accepted;
    accepted.holds = true;
    return accepted;
  }
  return Prover(exprs, attempt).prove(written, fresh, vars);
}

} // namespace heed
