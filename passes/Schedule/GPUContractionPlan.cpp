//===- GPUContractionPlan.cpp - which sums are tiles on GPUs --------------===//
#include "passes/Schedule/GPUContractionPlan.h"
#include "passes/Schedule/GPU.h"
#include "passes/Schedule/Rewrite.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

namespace {

/// Whether there may be more than \p count.
bool isMoreThan(const Extent &extent, int64_t count) {
  return !extent.fixed || *extent.fixed > count;
}

bool isLonger(const Extent &extent, const Extent &other) {
  return other.fixed && (!extent.fixed || *extent.fixed > *other.fixed);
}

/// The factors of \p term, a product, that do not depend on both \p row and
/// \p column. False if one does.
bool findFactors(Value term, Value row, Value column,
                 SmallVectorImpl<Value> &factors) {
  auto used = argumentsOf(term);
  if (!used.contains(row) || !used.contains(column)) {
    if (!used.empty() && !llvm::is_contained(factors, term))
      factors.push_back(term);
    return true;
  }
  auto product = term.getDefiningOp<arith::MulFOp>();
  return product && findFactors(product.getLhs(), row, column, factors) &&
         findFactors(product.getRhs(), row, column, factors);
}

/// The dim of \p f, a sum of \p term, that counts rows: one that what has the
/// columns does not have. The innermost one if it is long; else the longest.
std::optional<unsigned> rowOf(const KernelFunc &f, Block &body, Value term) {
  constexpr int64_t fewRows = 4; // a tile would be mostly empty
  constexpr int64_t longRow = 64;
  std::optional<unsigned> row;
  for (unsigned dim = kRow; dim < f.extents.size(); ++dim) {
    SmallVector<Value> factors;
    if (!isMoreThan(f.extents[dim], fewRows) ||
        !argumentsOf(term).contains(body.getArgument(dim)) ||
        !findFactors(term, body.getArgument(dim), body.getArgument(kColumn),
                     factors))
      continue;
    if (!row || (!isMoreThan(f.extents[*row], longRow) &&
                 isLonger(f.extents[dim], f.extents[*row])))
      row = dim;
  }
  return row;
}

} // namespace

std::optional<TiledSum> heed::planTiledSum(KernelFunc &f) {
  constexpr int64_t fewColumns = 8, fewTerms = 4; // as above
  Value func = f.func.getResult();
  unsigned rank = f.extents.size(), term = 0;
  if (f.updates.size() != 1 || rank < 2 ||
      halide::getElementTypes(func).size() != 1 ||
      !halide::getElementTypes(func).front().isF32() ||
      !f.func.getBody().front().getOps<halide::ReadOp>().empty() ||
      !isMoreThan(f.extents[kColumn], fewColumns))
    return std::nullopt;
  halide::UpdateOp update = f.updates[0];
  Operation *combine = combinerOf(update, term);
  if (!isa_and_nonnull<arith::AddFOp>(combine) || !update.getWhere().empty() ||
      !update.getAt().empty() || f.reductions[0].empty())
    return std::nullopt;
  Block &body = update.getSet().front();
  Value product = combine->getOperand(term), column = body.getArgument(kColumn);
  std::optional<unsigned> row = rowOf(f, body, product);
  if (!row || !argumentsOf(product).contains(column))
    return std::nullopt;
  TiledSum plan{*row, 0, {}};
  findFactors(product, body.getArgument(*row), column, plan.factors);
  for (unsigned r = 1; r < f.reductions[0].size(); ++r)
    if (!isMoreThan(f.reductions[0][plan.term], GPUTile::steps - 1) &&
        isLonger(f.reductions[0][r], f.reductions[0][plan.term]))
      plan.term = r;
  // What has neither rows nor columns nor terms would not be 0 behind the end.
  if (plan.factors.size() < 2 || plan.factors.size() > 3 ||
      !isMoreThan(f.reductions[0][plan.term], fewTerms))
    return std::nullopt;
  return plan;
}

Value heed::consumerOf(KernelInfo &kernel, Value sum,
                       const llvm::SmallPtrSetImpl<Value> &done) {
  KernelFunc &f = *kernel.find(sum);
  Value consumer;
  for (Operation *user : sum.getUsers()) {
    auto read = dyn_cast<halide::ReadOp>(user);
    if (!read)
      continue;
    if (auto update = dyn_cast<halide::UpdateOp>(read->getParentOp())) {
      if (update.getFunc() == sum)
        continue;
      return {};
    }
    auto func = cast<halide::FuncOp>(read->getParentOp());
    if (consumer && consumer != func.getResult())
      return {};
    consumer = func.getResult();
    Block &body = func.getBody().front();
    if (body.getNumArguments() != f.extents.size())
      return {};
    for (auto [k, at] : llvm::enumerate(read.getCoordinates()))
      if (at != body.getArgument(k))
        return {};
  }
  KernelFunc *reader = consumer ? kernel.find(consumer) : nullptr;
  if (!reader || !reader->updates.empty() || done.contains(consumer) ||
      !llvm::is_contained(outputsOf(kernel), reader))
    return {};
  return consumer;
}
