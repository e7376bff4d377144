//===- ContractTables.cpp - products with rows that data chooses ----------===//
//
// sum_e q[i,e] * (k[j,e] + t[label[i,j], e]): the product with t has one value
// for each query and row of t, however many pairs have that label. It is
// computed for all rows, R E products for a query instead of M E, and looked up
// for each pair: a score then holds a read in place of a sum.
#include "dialects/Attn/SymbolicDims.h"
#include "passes/Algebra/Products.h"
#include "passes/Algebra/Proof.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Algebra/Weights.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "passes/Rewrite/ProductChain.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {

#define GEN_PASS_DEF_ATTNCONTRACTTABLES
#include "passes/Passes.h.inc"

namespace {

constexpr StringLiteral passName = "attn-contract-tables";

/// A term of a sum of products, with its sign.
struct Addend {
  ExprRef term;
  bool negative;
};

/// A term whose table is read in a row that data chooses: `term`, the whole
/// product, over `row` in place of `label`; `kept` are the variables of the
/// result that it still has.
struct Lookup {
  ExprRef term = nullptr, label = nullptr;
  unsigned row = 0;
  SmallVector<unsigned> kept;
};

/// One sum, and what becomes of it.
class Contraction {
public:
  Contraction(Operation *root, Exprs &exprs) : root(root), exprs(exprs) {}
  /// Whether it is a sum over products one factor of which has a table.
  bool open();
  /// Writes it with its tables contracted; null, with a remark, if that is not
  /// what was written.
  Value write(OpBuilder &builder);

private:
  void collectAddends(ExprRef e, bool negative);
  ExprRef labelIn(ExprRef term);
  std::optional<Lookup> lookupOf(ExprRef term);
  bool isWorthIt(const Lookup &lookup, bool besidePairs);
  bool isPlain(ExprRef term);
  ExprRef whole(ExprRef addend) {
    SmallVector<ExprRef> over(product.over);
    if (!over.empty() && mutated("contract-tables.drop-factor"))
      over.pop_back();
    over.push_back(addend);
    return multiply(exprs, over, product.under);
  }
  ExprRef sumOf(ExprRef body) {
    return exprs.reduce(OperationName("arith.addf", exprs.context), summed,
                        body);
  }
  ExprRef added(ExprRef sum, ExprRef term, bool negative) {
    if (negative && mutated("contract-tables.forget-sign"))
      negative = false;
    if (!sum)
      return negative ? exprs.op("arith.negf", term->type, {term}) : term;
    return exprs.op(negative ? "arith.subf" : "arith.addf", term->type,
                    {sum, term});
  }

  Operation *root;
  Exprs &exprs;
  SmallVector<unsigned> outputs, summed;
  SmallVector<ExprRef> at;
  ExprRef element = nullptr;
  Product product; ///< without the factor that is the sum of `rest`, `lookups`
  SmallVector<Addend> addends, rest;
  SmallVector<std::pair<Lookup, bool>> lookups; ///< true: subtracted
  std::string cost;
};

void Contraction::collectAddends(ExprRef e, bool negative) {
  if (e->isOp("arith.addf") || e->isOp("arith.subf")) {
    collectAddends(e->operand(0), negative);
    bool subtracted =
        e->isOp("arith.subf") && !mutated("contract-tables.add-subtracted");
    collectAddends(e->operand(1), negative != subtracted);
    return;
  }
  addends.push_back({e, negative});
}

/// The index of a read in \p term that data chooses for each pair: it reads
/// integers, and nothing that is summed.
ExprRef Contraction::labelIn(ExprRef term) {
  ExprRef found = nullptr;
  Exprs::walk(term, [&](ExprRef e) {
    if (e->kind != ExprKind::Read || !isa<FloatType>(e->type) || found)
      return;
    for (ExprRef index : e->operands) {
      bool readsData = false;
      Exprs::walk(index, [&](ExprRef part) {
        readsData |= part->kind == ExprKind::Read;
      });
      if (readsData && !index->usesAny(summed) && index->freeVars.size() > 1)
        found = index;
    }
  });
  return found;
}

std::optional<Lookup> Contraction::lookupOf(ExprRef term) {
  Lookup lookup;
  lookup.label = labelIn(term);
  bool isOther = false;
  ExprRef extent = nullptr;
  Exprs::walk(term, [&](ExprRef e) {
    if (e->kind != ExprKind::Read)
      return;
    for (auto [axis, index] : llvm::enumerate(e->operands))
      if (index == lookup.label) {
        ExprRef here = exprs.extentOf(e->value, axis);
        isOther |= extent && extent != here;
        extent = here;
      }
  });
  if (!lookup.label || isOther || !extent || !term->type.isF32())
    return std::nullopt;
  lookup.row = exprs.freshVar(extent);
  lookup.term = exprs.replaceOutermost(term, [&](ExprRef e) {
    return e == lookup.label ? exprs.var(lookup.row) : nullptr;
  });
  // Under a condition a label may be none of a row: it is read there alone. A
  // condition in the label goes where the label goes.
  Exprs::walk(lookup.term, [&](ExprRef e) {
    isOther |= e->kind == ExprKind::Reduce || e->kind == ExprKind::If;
  });
  if (isOther)
    return std::nullopt;
  for (unsigned v : outputs)
    if (lookup.term->uses(v))
      lookup.kept.push_back(v);
  // A query that meets its labels; the keys are gone.
  bool ofQueries = llvm::any_of(
           lookup.kept, [&](unsigned v) { return lookup.label->uses(v); }),
       ofPairs = llvm::any_of(lookup.label->freeVars, [&](unsigned v) {
         return llvm::is_contained(outputs, v) && !lookup.term->uses(v);
       });
  if (!ofQueries || !ofPairs || !lookup.term->usesAny(summed))
    return std::nullopt;
  return lookup;
}

/// Whether \p term has a read for each pair at plain indices: pairs that exist.
bool Contraction::isPlain(ExprRef term) { return !labelIn(term); }

/// Rows of the table against the pairs of a query. Where sizes do not tell, a
/// table of parameters has few rows: a row that only one pair reads would not
/// be learned; so has one whose rows are added to something that each pair has
/// of its own. Other reads that data chooses (the nearest neighbours of a
/// point) have as many rows as there are points, of which few are read.
bool Contraction::isWorthIt(const Lookup &lookup, bool besidePairs) {
  attn::SymbolicDims dims;
  std::optional<Size> rows = sizeOf(dims, exprs.extent(lookup.row));
  std::optional<Size> pairs = Size(1);
  for (unsigned v : outputs)
    if (!llvm::is_contained(lookup.kept, v)) {
      std::optional<Size> extent = sizeOf(dims, exprs.extent(v));
      pairs = pairs && extent ? std::optional(*pairs * *extent) : std::nullopt;
    }
  auto text = [&](const std::optional<Size> &size) {
    return size ? dims.str(*size) : std::string("?");
  };
  cost =
      format("{} rows of a table instead of {} keys", text(rows), text(pairs));
  if (rows && pairs) {
    if (dims.isNeverNegative(*pairs - *rows))
      return true;
    if (dims.isNeverNegative(*rows - *pairs))
      return false;
  }
  bool fromParameters = true;
  Exprs::walk(lookup.term, [&](ExprRef e) {
    if (e->kind == ExprKind::Read && e->uses(lookup.row))
      fromParameters &= isFromParameters(e->value);
  });
  return fromParameters || besidePairs;
}

bool Contraction::open() {
  Value result = root->getResult(0);
  exprs.indexVars(result, outputs, at);
  element = exprs.expand(result, at);
  if (!element || !element->isReduceBy("arith.addf") || !element->type.isF32())
    return false;
  ExprRef body = exprs.open(element, summed);
  Product all;
  flatten(exprs, body, all);
  for (auto [position, factor] : llvm::enumerate(all.over)) {
    if (!labelIn(factor))
      continue;
    product = all;
    product.over.erase(product.over.begin() + position);
    addends.clear();
    collectAddends(factor, /*negative=*/false);
    bool besidePairs = llvm::any_of(
        addends, [&](const Addend &addend) { return isPlain(addend.term); });
    for (const Addend &addend : addends) {
      std::optional<Lookup> lookup = lookupOf(whole(addend.term));
      if (lookup && isWorthIt(*lookup, besidePairs)) {
        lookups.push_back({*lookup, addend.negative});
        continue;
      }
      if (lookup)
        remarkDeclined(root, passName, "table",
                       format("multiplied pair by pair: it would be {}", cost));
      rest.push_back(addend);
    }
    if (!lookups.empty())
      return true;
    rest.clear();
  }
  return false;
}

Value Contraction::write(OpBuilder &builder) {
  Location loc = root->getLoc();
  Attempt attempt(builder);
  ExprRef sum = nullptr;
  if (!rest.empty() && !mutated("contract-tables.forget-rest")) {
    ExprRef left = nullptr;
    for (const Addend &addend : rest)
      left = added(left, addend.term, addend.negative);
    sum = exprs.read(
        writeTensor(builder, loc, exprs, sumOf(whole(left)), outputs), at);
  }
  for (auto &[lookup, negative] : lookups) {
    SmallVector<unsigned> vars(lookup.kept);
    vars.push_back(lookup.row);
    SmallVector<ExprRef> indices;
    for (unsigned v : lookup.kept)
      indices.push_back(exprs.var(v));
    indices.push_back(mutated("contract-tables.first-row") ? exprs.index(0)
                                                           : lookup.label);
    Value table = writeTensor(builder, loc, exprs, sumOf(lookup.term), vars);
    sum = added(sum, exprs.read(table, indices), negative);
  }
  Value value = writeTensor(builder, loc, exprs, sum, outputs);
  Proof proof = prove(exprs, element, value, outputs, attempt);
  if (!proof.holds) {
    remarkDeclined(root, passName, "table",
                   format("multiplied pair by pair: the other way cannot be "
                          "proven equal: {}",
                          proof.why));
    attempt.undo();
    return {};
  }
  remarkDone(root, passName, "table",
             format("multiplied once and looked up: {}", cost));
  return castTo(builder, value, root->getResult(0).getType());
}

struct ContractTables : impl::AttnContractTablesBase<ContractTables> {
  void runOnOperation() override {
    SmallVector<Operation *> sums;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (op.getNumReductionLoops() && op->getNumResults() == 1 &&
          !op->use_empty() && Exprs::isExpressible(op))
        sums.push_back(op);
    });
    DenseSet<Operation *> erased;
    for (Operation *root : sums) {
      Exprs exprs(&getContext());
      Contraction contraction(root, exprs);
      if (erased.contains(root) || !contraction.open())
        continue;
      OpBuilder builder(root);
      if (Value value = contraction.write(builder)) {
        root->getResult(0).replaceAllUsesWith(value);
        eraseDeadOps(root, erased);
      }
    }
  }
};

} // namespace
} // namespace heed
