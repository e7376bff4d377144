//===- JoinedRows.cpp - keys of several parts, read where they lie --------===//
#include "passes/Kernels/JoinedRows.h"
#include "dialects/Attn/SymbolicDims.h"
#include "passes/Algebra/ElementCost.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace heed;
using attn::DimKind;

/// Each part is updates of the state of their own, and code.
constexpr unsigned mostParts = 3;

std::optional<JoinedRows> JoinedRows::of(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || generic.getNumDpsInputs() > 0 ||
      generic->getNumResults() != 1 ||
      generic.getNumLoops() != generic.getNumParallelLoops() ||
      !generic.getIndexingMapsArray()[0].isIdentity())
    return std::nullopt;
  JoinedRows rows;
  rows.op = generic;
  Block *block = generic.getBody();
  Value chosen = block->getTerminator()->getOperand(0);
  // What a part reads may be wider than the tensor.
  if (auto rounded = chosen.getDefiningOp<arith::TruncFOp>())
    chosen = rounded.getIn();
  rows.chosen = chosen;
  while (auto choice = chosen.getDefiningOp<scf::IfOp>()) {
    auto test = choice.getCondition().getDefiningOp<arith::CmpIOp>();
    auto row = test ? test.getLhs().getDefiningOp<linalg::IndexOp>() : nullptr;
    if (choice->getBlock() != block || choice->getNumResults() != 1 || !row ||
        test.getPredicate() != arith::CmpIPredicate::slt ||
        generic.getRegion().isAncestor(test.getRhs().getParentRegion()) ||
        (!rows.cuts.empty() && rows.axis != row.getDim()))
      return std::nullopt;
    rows.axis = row.getDim();
    rows.cuts.push_back(test.getRhs());
    rows.parts.push_back(choice.thenBlock());
    block = choice.elseBlock();
    chosen = block->getTerminator()->getOperand(0);
  }
  rows.parts.push_back(block);
  if (rows.cuts.empty() || rows.parts.size() > mostParts)
    return std::nullopt;
  return rows;
}

std::optional<int64_t> JoinedRows::mostRows(unsigned part) {
  std::optional<int64_t> most;
  auto take = [&](int64_t rows) { most = std::min(most.value_or(rows), rows); };
  std::optional<int64_t> before =
      part == 0 ? 0 : getConstantIntValue(cuts[part - 1]);
  if (part < cuts.size() && before)
    if (std::optional<int64_t> end = getConstantIntValue(cuts[part]))
      take(std::max<int64_t>(0, *end - *before));
  auto isRow = [&](Value index) {
    auto difference = index.getDefiningOp<arith::SubIOp>();
    Value row = part == 0 ? index : difference ? difference.getLhs() : Value();
    auto loop = row ? row.getDefiningOp<linalg::IndexOp>() : nullptr;
    return loop && loop.getDim() == axis &&
           (part == 0 || difference.getRhs() == cuts[part - 1]);
  };
  for (auto read : parts[part]->getOps<tensor::ExtractOp>())
    for (auto [k, index] : llvm::enumerate(read.getIndices()))
      if (int64_t size = read.getTensor().getType().getDimSize(k);
          !ShapedType::isDynamic(size) && isRow(index))
        take(size);
  return most;
}

bool JoinedRows::hasCutsOf(const JoinedRows &other) const {
  return llvm::equal(cuts, other.cuts, [](Value x, Value y) {
    std::optional<int64_t> known = getConstantIntValue(x);
    return x == y || (known && known == getConstantIntValue(y));
  });
}

/// Whether an element of each part is read, times one number at most: each is
/// read again for every tile of queries.
static bool isCopied(JoinedRows &rows) {
  return !rows.op
              ->walk([&](Operation *inner) {
                if (isa<scf::IfOp>(inner))
                  return WalkResult(failure(inner->getNumResults() != 1));
                if (llvm::is_contained(rows.parts, inner->getBlock()))
                  return WalkResult::advance();
                // Choices, and what is common to all parts, is of indices.
                OperationCount count;
                if (inner != rows.op)
                  count = countOperations(inner);
                return WalkResult(
                    failure(isa<tensor::ExtractOp>(inner) ||
                            count.reals + count.functions + count.divisions));
              })
              .wasInterrupted() &&
         llvm::all_of(rows.parts, [](Block *part) {
           unsigned reads = 0, reals = 0;
           for (Operation &inner : *part) {
             OperationCount count = countOperations(&inner);
             reads += isa<tensor::ExtractOp>(inner);
             reals += count.reals + 2 * (count.functions + count.divisions +
                                         count.doubles + inner.getNumRegions());
           }
           return reads <= 1 && reals <= 1;
         });
}

/// Whether no part begins before another, in any call: then the first row of a
/// part that has any is its cut.
static bool isOrdered(JoinedRows &rows) {
  attn::SymbolicDims dims;
  Size before;
  for (Value cut : rows.cuts) {
    Size next = dims.size(cut);
    if (!dims.isNeverNegative(next - before))
      return false;
    before = next;
  }
  return true;
}

/// Whether \p op reads \p keys by numbers of keys alone, and not of queries.
static bool readsByKey(attn::AttentionOp op, Value keys, unsigned axis) {
  unsigned key = op.firstDim(DimKind::Key), query = op.firstDim(DimKind::Query);
  auto isByKey = [&](AffineMap map) {
    for (auto [k, expr] : llvm::enumerate(map.getResults()))
      if (k == axis ? expr != getAffineDimExpr(key, op.getContext())
                    : expr.isFunctionOfDim(key))
        return false;
    return !map.isFunctionOfDim(query);
  };
  unsigned uses = 0;
  for (unsigned term = 0; term < op.numTerms(); ++term)
    for (auto [operand, map] : llvm::zip(op.term(term), op.maps(term)))
      if (operand == keys && ++uses && !isByKey(map))
        return false;
  for (auto [k, value] : llvm::enumerate(op.getValues()))
    if (value == keys && ++uses && !isByKey(op.valueMap(k)))
      return false;
  // Regions and sinks read it anywhere.
  return uses == llvm::count_if(keys.getUses(), [&](OpOperand &use) {
           return op->isAncestor(use.getOwner());
         });
}

std::string heed::whyNotInParts(attn::AttentionOp op, Value keys) {
  std::string often = "each of its elements is read many times";
  attn::PlanAttr plan = op.plan();
  std::optional<JoinedRows> rows = JoinedRows::of(keys.getDefiningOp());
  auto isReadable = [&](JoinedRows &joined) {
    return isCopied(joined) && isOrdered(joined) &&
           readsByKey(op, joined.op->getResult(0), joined.axis);
  };
  if (!rows || !plan || plan.getAlgorithm() != attn::Algorithm::Streaming ||
      !isReadable(*rows))
    return often;
  // The first that the attention reads so cuts its keys.
  SmallVector<Value> operands(op.getTermOperands());
  llvm::append_range(operands, op.getValues());
  for (Value other : operands) {
    std::optional<JoinedRows> first = JoinedRows::of(other.getDefiningOp());
    if (!first || !isReadable(*first))
      continue;
    if (!rows->hasCutsOf(*first))
      return "other keys of the attention are joined elsewhere";
    break;
  }
  return "";
}

void heed::ownJoinedRows(Operation *op) {
  if (!JoinedRows::of(op))
    return;
  Value rows = op->getResult(0);
  llvm::SmallSetVector<Operation *, 2> readers;
  for (Operation *user : rows.getUsers())
    if (!isa<tensor::DimOp>(user))
      readers.insert(user);
  if (readers.size() < 2 || !llvm::all_of(readers, [&](Operation *reader) {
        auto attention = dyn_cast<attn::AttentionOp>(reader);
        return attention && attention->getBlock() == op->getBlock() &&
               whyNotInParts(attention, rows).empty();
      }))
    return;
  for (Operation *reader : ArrayRef(readers.getArrayRef()).drop_front()) {
    OpBuilder b(op);
    reader->replaceUsesOfWith(rows, b.clone(*op)->getResult(0));
  }
}
