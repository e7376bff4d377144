//===- RowBlocks.cpp - operations whose scores need never leave a tile ----===//
// Looks backwards from a sum over keys (the product with the values): which
// operations before it work on pairs of a query and a key, and which loops do
// all of them share? If one of them combines the keys of a row (a softmax, a
// norm of scores), the row has to be whole before the product can start; with
// shared loops over queries a tile of queries can be worked on from the scores
// to the product, for all heads where they mix. Where the weights are a result,
// the group ends with their softmax.
#include "passes/Plan/RowBlocks.h"
#include "dialects/Attn/Dialect.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace heed;

namespace {

/// What is known of the loops of an operation, or of the axes of a tensor.
struct Loops {
  SmallVector<int> rows; ///< the axis of the group's result that it follows, -1
  SmallVector<bool> keys; ///< it runs over keys
};

bool isSoftmax(Operation *op) {
  return isa<attn::SoftmaxOp, attn::LogSoftmaxOp>(op);
}

ArrayRef<int64_t> softmaxAxes(Operation *op) {
  if (auto softmax = dyn_cast<attn::SoftmaxOp>(op))
    return softmax.getAxes();
  return cast<attn::LogSoftmaxOp>(op).getAxes();
}

class Search {
public:
  explicit Search(Operation *last) : last(last) {}
  SmallVector<Operation *> run();

private:
  bool isOnlyReadHere(Operation *op) const;
  std::optional<Loops> loopsOf(linalg::GenericOp op);
  std::optional<Loops> loopsOfSoftmax(Operation *op);
  bool combinesKeys(Operation *op, const Loops &loops) const;
  bool include(Operation *op);
  void record(Operation *op, const Loops &loops);
  bool readsActivations(Operation *op);
  void merge(Value tensor, ArrayRef<int> rows, ArrayRef<bool> keys);
  void noteQueries(ArrayRef<SmallVector<int>> operands);

  Operation *last;
  llvm::SmallSetVector<Operation *, 8> group;
  DenseMap<Value, Loops> tensors; ///< that the group reads
  SmallVector<int> common;        ///< axes of the result that all follow
  /// Axes that one operand over keys follows and another, of the same
  /// operation, does not: the scores' queries, which the values do not have.
  llvm::SmallSetVector<int, 4> queries;
  bool rowWise = false; ///< an operation combines the keys of a row
};

/// What one more reader says of a tensor.
void Search::merge(Value tensor, ArrayRef<int> rows, ArrayRef<bool> keys) {
  auto [it, isNew] = tensors.try_emplace(tensor);
  Loops &known = it->second;
  if (isNew) {
    known.rows.assign(rows.begin(), rows.end());
    known.keys.assign(keys.begin(), keys.end());
    return;
  }
  for (size_t axis = 0; axis < rows.size(); ++axis) {
    if (known.rows[axis] != rows[axis])
      known.rows[axis] = -1;
    known.keys[axis] = known.keys[axis] || keys[axis];
  }
}

/// \p operands: the axes that each operand over keys of one operation follows.
void Search::noteQueries(ArrayRef<SmallVector<int>> operands) {
  for (const SmallVector<int> &rows : operands)
    for (int row : rows)
      if (row >= 0 && !llvm::all_of(operands, [&](const auto &other) {
            return llvm::is_contained(other, row);
          }))
        queries.insert(row);
}

/// Notes how \p op, with \p loops, reads its operands.
void Search::record(Operation *op, const Loops &loops) {
  if (isSoftmax(op)) {
    SmallVector<int> rows(loops.rows);
    for (int64_t axis : softmaxAxes(op))
      rows[axis] = -1;
    merge(op->getOperand(0), rows, loops.keys);
  } else {
    auto generic = cast<linalg::GenericOp>(op);
    SmallVector<SmallVector<int>> overKeys;
    for (OpOperand *operand : generic.getDpsInputOperands()) {
      SmallVector<int> rows;
      SmallVector<bool> keys;
      for (AffineExpr expr :
           generic.getMatchingIndexingMap(operand).getResults()) {
        auto dim = dyn_cast<AffineDimExpr>(expr);
        rows.push_back(dim ? loops.rows[dim.getPosition()] : -1);
        keys.push_back(dim && loops.keys[dim.getPosition()]);
      }
      merge(operand->get(), rows, keys);
      if (llvm::is_contained(keys, true))
        overKeys.push_back(rows);
    }
    noteQueries(overKeys);
  }
  // Reads inside of a body may be anywhere.
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(op->getRegions(), captures);
  for (Value value : captures)
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      merge(value, SmallVector<int>(type.getRank(), -1),
            SmallVector<bool>(type.getRank(), false));
}

/// Whether \p op is read, and by the group alone.
bool Search::isOnlyReadHere(Operation *op) const {
  bool read = false;
  for (Value result : op->getResults()) {
    read |= !result.use_empty();
    for (Operation *user : result.getUsers())
      if (!group.contains(op->getBlock()->findAncestorOpInBlock(*user)))
        return false;
  }
  return read;
}

std::optional<Loops> Search::loopsOfSoftmax(Operation *op) {
  auto it = tensors.find(op->getResult(0));
  if (it == tensors.end())
    return std::nullopt;
  Loops loops = it->second;
  for (int64_t axis : softmaxAxes(op))
    loops.rows[axis] = -1;
  return loops;
}

/// By what the group's readers of its results, and of what it reads, say.
std::optional<Loops> Search::loopsOf(linalg::GenericOp op) {
  Loops loops;
  loops.rows.assign(op.getNumLoops(), -1);
  loops.keys.assign(op.getNumLoops(), false);
  for (auto [number, result] : llvm::enumerate(op.getResults())) {
    auto it = tensors.find(result);
    if (it == tensors.end())
      continue;
    AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(number));
    for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim)
        return std::nullopt;
      loops.rows[dim.getPosition()] = it->second.rows[axis];
      loops.keys[dim.getPosition()] = it->second.keys[axis];
    }
  }
  for (OpOperand *operand : op.getDpsInputOperands())
    if (auto it = tensors.find(operand->get()); it != tensors.end())
      for (auto [axis, expr] :
           llvm::enumerate(op.getMatchingIndexingMap(operand).getResults()))
        if (auto dim = dyn_cast<AffineDimExpr>(expr);
            dim && it->second.keys[axis])
          loops.keys[dim.getPosition()] = true;
  return loops;
}

bool Search::combinesKeys(Operation *op, const Loops &loops) const {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic)
    return llvm::any_of(softmaxAxes(op),
                        [&](int64_t axis) { return loops.keys[axis]; });
  for (auto [loop, kind] : llvm::enumerate(generic.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction && loops.keys[loop])
      return true;
  return false;
}

/// Takes \p op into the group if it works on pairs and shares loops with it.
bool Search::include(Operation *op) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if ((!generic && !isSoftmax(op)) || !isOnlyReadHere(op))
    return false;
  std::optional<Loops> loops = generic ? loopsOf(generic) : loopsOfSoftmax(op);
  if (!loops)
    return false;
  // What has one value per row goes along: a mean between its sum and its
  // readers.
  bool perRow = generic && generic.getNumReductionLoops() == 0 &&
                llvm::all_of(loops->rows, [](int row) { return row >= 0; });
  if (!perRow && !llvm::is_contained(loops->keys, true))
    return false;
  SmallVector<int> shared;
  for (int axis : common)
    if (llvm::is_contained(loops->rows, axis))
      shared.push_back(axis);
  // Of a norm of the keys, or a softmax over the queries, a whole batch would
  // be left to share.
  auto isQuery = [&](int axis) { return queries.contains(axis); };
  if (shared.empty() ||
      (llvm::any_of(common, isQuery) && llvm::none_of(shared, isQuery)))
    return false;
  common = shared;
  rowWise |= combinesKeys(op, *loops);
  group.insert(op);
  record(op, *loops);
  return true;
}

/// Whether some tensor that \p op reads is neither a parameter nor computed in
/// the group.
bool Search::readsActivations(Operation *op) {
  return llvm::any_of(op->getOperands(), [&](Value input) {
    Operation *def = input.getDefiningOp();
    return isa<RankedTensorType>(input.getType()) &&
           (!def ||
            (!group.contains(def) &&
             !isa<attn::ParamOp, tensor::EmptyOp, linalg::FillOp>(def)));
  });
}

SmallVector<Operation *> Search::run() {
  Loops loops;
  if (isSoftmax(last)) {
    // The weights themselves are a result: their scores need not be stored.
    int64_t rank =
        cast<RankedTensorType>(last->getResult(0).getType()).getRank();
    for (int64_t axis = 0; axis < rank; ++axis) {
      bool key = llvm::is_contained(softmaxAxes(last), axis);
      loops.rows.push_back(key ? -1 : axis);
      loops.keys.push_back(key);
      if (!key)
        common.push_back(axis);
    }
    rowWise = true;
  } else {
    auto product = cast<linalg::GenericOp>(last);
    loops.rows.assign(product.getNumLoops(), -1);
    loops.keys.assign(product.getNumLoops(), false);
    if (product.getNumResults() != 1 || product.getNumDpsInputs() < 2)
      return {};
    AffineMap out =
        product.getMatchingIndexingMap(product.getDpsInitOperand(0));
    for (auto [axis, expr] : llvm::enumerate(out.getResults())) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim)
        return {};
      loops.rows[dim.getPosition()] = axis;
      common.push_back(axis);
    }
    bool sums = false;
    for (auto [loop, kind] : llvm::enumerate(product.getIteratorTypesArray()))
      if (kind == utils::IteratorType::reduction)
        sums = loops.keys[loop] = true;
    if (!sums)
      return {};
  }
  group.insert(last);
  record(last, loops);
  for (Operation *op = last->getPrevNode(); op; op = op->getPrevNode())
    include(op);
  // Values, or queries and keys, that are parameters make this a layer of a
  // network, whose products have better schedules of their own.
  bool scores = llvm::any_of(group, [&](Operation *op) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    return op != last && generic && generic.getNumReductionLoops() &&
           generic.getNumDpsInputs() > 1 &&
           llvm::none_of(generic.getDpsInputs(), [](Value input) {
             return input.getDefiningOp<attn::ParamOp>();
           });
  });
  if (!rowWise || !scores || (!isSoftmax(last) && !readsActivations(last)))
    return {};
  return SmallVector<Operation *>(llvm::reverse(group));
}

} // namespace

SmallVector<SmallVector<Operation *>> heed::findRowBlocks(Block &block) {
  SmallVector<SmallVector<Operation *>> found;
  llvm::SmallPtrSet<Operation *, 16> taken;
  for (Operation &op : llvm::reverse(block)) {
    if ((!isa<linalg::GenericOp>(op) && !isSoftmax(&op)) || taken.contains(&op))
      continue;
    SmallVector<Operation *> group = Search(&op).run();
    if (group.empty())
      continue;
    taken.insert(group.begin(), group.end());
    found.push_back(std::move(group));
  }
  return found;
}
