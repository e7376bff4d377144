//===- MaskBounds.cpp - which keys a tile of queries sees -----------------===//
#include "passes/Masks/MaskBounds.h"
#include "passes/Masks/MaskSolver.h"

using namespace mlir;

namespace heed {

bool MaskBounds::needsTables() const {
  auto tested = [](const MaskPiece &p) { return p.test != nullptr; };
  return !reach.empty() &&
         (evaluated || reach.size() > 1 || full.size() > 1 || !tables.empty() ||
          llvm::any_of(reach, tested) || llvm::any_of(full, tested));
}

SmallVector<unsigned> MaskBounds::batchOf(const MaskTable &table) const {
  SmallVector<unsigned> dims;
  for (auto [k, var] : llvm::enumerate(batch))
    if (table.value->uses(var))
      dims.push_back(k);
  return dims;
}

SmallVector<unsigned> MaskBounds::batchOfRange() const {
  SmallVector<unsigned> dims;
  for (unsigned k = 0; k < batch.size(); ++k) {
    unsigned var = batch[k];
    bool used = llvm::any_of(
        tables, [&](const MaskTable &t) { return t.value->uses(var); });
    used |= evaluated && llvm::is_contained(batchOfCondition, k);
    for (const auto *pieces : {&reach, &full})
      for (const MaskPiece &p : *pieces)
        used |= p.low->uses(var) || p.high->uses(var) ||
                (p.test && p.test->uses(var));
    if (used)
      dims.push_back(k);
  }
  return dims;
}

MaskPiece MaskBounds::hull() const {
  Type i64 = IntegerType::get(exprs->context, 64);
  ExprRef zero = exprs->constant(IntegerAttr::get(i64, 0));
  if (reach.empty())
    return {zero, zero};
  if (reach.size() == 1)
    return {reach[0].low, reach[0].high};
  ExprRef end = exprs->op("arith.index_cast", i64, {exprs->var(keys)});
  ExprRef low = end, high = zero;
  for (const MaskPiece &p : reach) {
    // An empty piece must not stretch the hull.
    ExprRef some = exprs->compare(arith::CmpIPredicate::slt, p.low, p.high);
    low = exprs->op("arith.minsi", i64,
                    {low, exprs->select(some, p.low, end, /*guard=*/false)});
    high = exprs->op("arith.maxsi", i64,
                     {high, exprs->select(some, p.high, zero, false)});
  }
  return {low, high};
}

MaskBounds MaskBounds::inOneRange() const {
  MaskBounds range = *this;
  MaskPiece whole = hull();
  auto ofData = [&](ExprRef end) {
    return llvm::any_of(tables, [&](const MaskTable &table) {
      return end->uses(table.least) || end->uses(table.greatest) ||
             (table.odd && end->uses(*table.odd));
    });
  };
  Type i64 = IntegerType::get(exprs->context, 64);
  if (ofData(whole.low))
    whole.low = exprs->constant(IntegerAttr::get(i64, 0));
  if (ofData(whole.high))
    whole.high = exprs->op("arith.index_cast", i64, {exprs->var(keys)});
  range.reach = {whole};
  range.full.clear();
  range.tables.clear();
  range.exact = range.evaluated = false;
  return range;
}

FailureOr<MaskBounds> solveMask(attn::AttentionLike op) {
  using attn::DimKind;
  if (op.numDims(DimKind::Query) != 1 || op.numDims(DimKind::Key) != 1)
    return failure();
  MaskBounds bounds;
  bounds.exprs = std::make_shared<Exprs>(op->getContext());
  Exprs &exprs = *bounds.exprs;
  for (unsigned *var :
       {&bounds.query, &bounds.key, &bounds.queries, &bounds.keys,
        &bounds.first, &bounds.last, &bounds.blockFirst, &bounds.blockLast})
    *var = exprs.freshVar();
  SmallVector<ExprRef> arguments;
  for (unsigned k = 0; k < op.numDims(DimKind::Batch); ++k) {
    bounds.batch.push_back(exprs.freshVar());
    arguments.push_back(exprs.var(bounds.batch.back()));
  }
  arguments.push_back(exprs.var(bounds.query));
  arguments.push_back(exprs.var(bounds.key));

  MaskSolver solver(bounds);
  MaskSolver::Pieces pieces;
  if (op.getWhere().empty()) {
    pieces = solver.solve(exprs.truth(true));
  } else if (ExprRef where = exprs.block(op.getWhere().front(), arguments)) {
    // N and M are what the op says, whatever SSA value spells them.
    DenseMap<Value, ExprRef> sizes;
    unsigned query = op.firstDim(DimKind::Query);
    solver.assumePositive(op.getSizes()[query]);
    solver.assumePositive(op.getSizes()[query + 1]);
    sizes[op.getSizes()[query]] = exprs.var(bounds.queries);
    sizes[op.getSizes()[query + 1]] = exprs.var(bounds.keys);
    where = exprs.rewrite(where, [&](ExprRef e) -> ExprRef {
      return e->kind == ExprKind::Scalar ? sizes.lookup(e->value) : nullptr;
    });
    pieces = solver.solve(where);
  } else {
    bounds.exact = false;
    bounds.unsolved = "an op that is no expression of indices";
    pieces = solver.solve(exprs.truth(true));
    pieces.full.clear();
  }
  for (const MaskPiece &p : pieces.reach)
    bounds.reach.push_back(solver.clamp(p));
  for (const MaskPiece &p : pieces.full)
    bounds.full.push_back(solver.clamp(p));
  return bounds;
}

} // namespace heed
