//===- SolvedMask.cpp - a solved mask as the region `mask` ----------------===//
// attn-solve-masks writes it, once; whoever needs its expressions reads them.
#include "passes/Masks/MaskBounds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

/// The variables of \p bounds in the order of the region's arguments, with
/// their types.
static SmallVector<std::pair<unsigned, Type>> argumentsOf(MaskBounds &bounds) {
  Type index = IndexType::get(bounds.exprs->context);
  SmallVector<std::pair<unsigned, Type>> arguments;
  for (unsigned var : bounds.batch)
    arguments.push_back({var, index});
  for (unsigned var :
       {bounds.query, bounds.key, bounds.first, bounds.last, bounds.blockFirst,
        bounds.blockLast, bounds.queries, bounds.keys})
    arguments.push_back({var, index});
  for (const MaskTable &table : bounds.tables) {
    arguments.push_back({table.least, table.value->type});
    arguments.push_back({table.greatest, table.value->type});
    if (table.odd)
      arguments.push_back(
          {*table.odd, IntegerType::get(bounds.exprs->context, 1)});
  }
  return arguments;
}

void heed::writeMask(attn::AttentionLike op, MaskBounds &bounds) {
  Region &region = op.getMask();
  region.getBlocks().clear();
  OpBuilder b(op->getContext());
  Location loc = op->getLoc();
  Block *block = b.createBlock(&region);
  ExprWriter writer(b, loc);
  for (auto [var, type] : argumentsOf(bounds))
    writer.bind(var, block->addArgument(type, loc));
  auto written = [&](ArrayRef<MaskPiece> pieces, SmallVector<Value> &ends,
                     SmallVector<Value> &tests) {
    for (const MaskPiece &piece : pieces) {
      ends.push_back(writer.write(piece.low));
      ends.push_back(writer.write(piece.high));
      tests.push_back(
          writer.write(piece.test ? piece.test : bounds.exprs->truth(true)));
    }
  };
  SmallVector<Value> reach, reachTests, full, fullTests, tables;
  written(bounds.reach, reach, reachTests);
  written(bounds.full, full, fullTests);
  SmallVector<bool> ofKeys;
  for (const MaskTable &table : bounds.tables) {
    tables.push_back(writer.write(table.value));
    ofKeys.push_back(table.ofKeys);
  }
  attn::KeysOp::create(b, loc, bounds.exact, reach, reachTests, full, fullTests,
                       ofKeys, tables);
}

FailureOr<MaskBounds> heed::readMask(attn::AttentionLike op) {
  if (op.getMask().empty())
    return failure();
  Block &block = op.getMask().front();
  auto keys = cast<attn::KeysOp>(block.getTerminator());
  MaskBounds bounds;
  bounds.exprs = std::make_shared<Exprs>(op->getContext());
  Exprs &exprs = *bounds.exprs;
  bounds.exact = keys.getExact();
  if (attn::PlanAttr plan = op.plan())
    bounds.evaluated = plan.getEvaluating();
  for (unsigned k = 0; k < op.numDims(attn::DimKind::Batch); ++k)
    if (!op.getWhere().front().getArgument(k).use_empty())
      bounds.batchOfCondition.push_back(k);
  for (unsigned k = 0; k < op.numDims(attn::DimKind::Batch); ++k)
    bounds.batch.push_back(exprs.freshVar());
  for (unsigned *var :
       {&bounds.query, &bounds.key, &bounds.first, &bounds.last,
        &bounds.blockFirst, &bounds.blockLast, &bounds.queries, &bounds.keys})
    *var = exprs.freshVar();
  SmallVector<ExprRef> arguments;
  for (auto [var, type] : argumentsOf(bounds))
    arguments.push_back(exprs.var(var));
  for (auto [ofKeys, value] : llvm::zip(keys.getOfKeys(), keys.getTables())) {
    MaskTable table{nullptr, ofKeys, exprs.freshVar(), exprs.freshVar(), {}};
    arguments.push_back(exprs.parameter(table.least, value.getType()));
    arguments.push_back(exprs.parameter(table.greatest, value.getType()));
    if (isa<FloatType>(value.getType())) {
      table.odd = exprs.freshVar();
      arguments.push_back(
          exprs.parameter(*table.odd, IntegerType::get(op->getContext(), 1)));
    }
    bounds.tables.push_back(table);
  }
  bool known = true;
  auto read = [&](OperandRange operands, size_t number) {
    ExprRef expr =
        exprs.block(block, arguments, operands.getBeginOperandIndex() + number);
    known &= expr != nullptr;
    return expr;
  };
  auto pieces = [&](OperandRange ends, OperandRange tests,
                    SmallVector<MaskPiece, 2> &list) {
    for (size_t k = 0; k < tests.size(); ++k) {
      MaskPiece piece{read(ends, 2 * k), read(ends, 2 * k + 1), read(tests, k)};
      if (piece.test && Exprs::isConstantInt(piece.test, 1))
        piece.test = nullptr;
      list.push_back(piece);
    }
  };
  pieces(keys.getReach(), keys.getReachTests(), bounds.reach);
  pieces(keys.getFull(), keys.getFullTests(), bounds.full);
  for (auto [k, table] : llvm::enumerate(bounds.tables))
    table.value = read(keys.getTables(), k);
  if (!known)
    return failure();
  return bounds;
}
