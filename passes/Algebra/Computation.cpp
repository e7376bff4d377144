//===- Computation.cpp - what one op computes, as plain data --------------===//
#include "passes/Algebra/Computation.h"
#include "dialects/Attn/Dialect.h"
#include "dialects/Halide/HalideNames.h"
#include "passes/Algebra/Weights.h"
#include "passes/Algebra/Windows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace heed;

bool Read::follows(unsigned loop) const {
  return llvm::any_of(at, [&](const Coordinate &c) { return c.loops[loop]; });
}

bool Read::isWindow() const {
  return llvm::any_of(at, [](const Coordinate &c) { return c.window.any(); });
}

bool Read::isInPlace() const {
  for (auto [k, coordinate] : llvm::enumerate(at))
    if (coordinate.loop != k)
      return false;
  return true;
}

const Reduction *Computation::onlySum() const {
  if (reductions.size() != 1 || reductions[0].extents.size() != 1 ||
      reductions[0].isGuarded || reductions[0].isScattered || results != 1)
    return nullptr;
  return &reductions.front();
}

namespace {

/// Describes one op of linalg.
class Describer {
public:
  Describer(linalg::LinalgOp op, llvm::SetVector<Value> &sources)
      : op(op), sources(sources), numbers(op.getNumLoops(), -1),
        extents(op.getNumLoops()) {}

  std::optional<Computation> run();

private:
  bool numberLoops(Computation &c);
  Coordinate coordinate(AffineExpr expr);
  Coordinate coordinate(Value index);
  void collectLoops(Value value, llvm::SmallBitVector &loops);
  unsigned numberOf(Value tensor) {
    sources.insert(tensor);
    return llvm::find(sources, tensor) - sources.begin();
  }
  void addReads(SmallVectorImpl<Read> &reads);

  linalg::LinalgOp op;
  llvm::SetVector<Value> &sources;
  SmallVector<int> numbers;         ///< by the loops of the op
  SmallVector<KnownExtent> extents; ///< by the numbers
};

/// Numbers the loops and notes their extents; false if a result is not written
/// at loops.
bool Describer::numberLoops(Computation &c) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  auto known = [&](unsigned loop) {
    return ShapedType::isDynamic(ranges[loop]) ? KnownExtent()
                                               : KnownExtent(ranges[loop]);
  };
  int next = 0;
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (AffineExpr expr : llvm::reverse(out.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || numbers[dim.getPosition()] >= 0)
      return false;
    numbers[dim.getPosition()] = next++;
    c.extents.push_back(known(dim.getPosition()));
  }
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  Reduction reduction;
  for (unsigned loop = iterators.size(); loop-- > 0;) {
    if (iterators[loop] == utils::IteratorType::parallel) {
      if (numbers[loop] < 0)
        return false;
      continue;
    }
    numbers[loop] = next++;
    reduction.extents.push_back(known(loop));
  }
  for (unsigned loop = 0; loop < numbers.size(); ++loop)
    extents[numbers[loop]] = known(loop);
  if (!reduction.extents.empty())
    c.reductions.push_back(std::move(reduction));
  return true;
}

Coordinate Describer::coordinate(AffineExpr expr) {
  Coordinate c;
  c.loops.resize(numbers.size());
  c.window.resize(numbers.size());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    c.loop = numbers[dim.getPosition()];
  for (unsigned loop = 0; loop < numbers.size(); ++loop)
    if (expr.isFunctionOfDim(loop))
      c.loops.set(numbers[loop]);
  return c;
}

void Describer::collectLoops(Value value, llvm::SmallBitVector &loops) {
  Operation *def = value.getDefiningOp();
  if (!def)
    return;
  if (auto index = dyn_cast<linalg::IndexOp>(def))
    loops.set(numbers[index.getDim()]);
  for (Value operand : def->getOperands())
    collectLoops(operand, loops);
}

Coordinate Describer::coordinate(Value index) {
  Coordinate c;
  c.loops.resize(numbers.size());
  if (auto loop = index.getDefiningOp<linalg::IndexOp>())
    c.loop = numbers[loop.getDim()];
  collectLoops(index, c.loops);
  c.window = windowOf(index, extents, [&](Value value) {
    auto loop = value.getDefiningOp<linalg::IndexOp>();
    return loop ? std::optional<unsigned>(numbers[loop.getDim()])
                : std::nullopt;
  });
  return c;
}

/// Operands first, in order, then what the body reads.
void Describer::addReads(SmallVectorImpl<Read> &reads) {
  for (OpOperand *operand : op.getDpsInputOperands()) {
    if (!isa<RankedTensorType>(operand->get().getType()) ||
        operand->get().getDefiningOp<tensor::EmptyOp>())
      continue;
    Read read;
    read.source = numberOf(operand->get());
    read.operand = operand->getOperandNumber();
    for (AffineExpr expr :
         llvm::reverse(op.getMatchingIndexingMap(operand).getResults()))
      read.at.push_back(coordinate(expr));
    reads.push_back(std::move(read));
  }
  op->walk([&](tensor::ExtractOp extract) {
    Read read;
    read.source = numberOf(extract.getTensor());
    for (Value index : llvm::reverse(extract.getIndices()))
      read.at.push_back(coordinate(index));
    reads.push_back(std::move(read));
  });
}

/// How the one value of a reduction's body adds a term to the sum so far.
Combiner combinerOf(linalg::LinalgOp op) {
  Block &body = op->getRegion(0).front();
  Operation *yield = body.getTerminator();
  auto add = yield->getNumOperands() == 1
                 ? yield->getOperand(0).getDefiningOp<arith::AddFOp>()
                 : arith::AddFOp();
  return add && llvm::is_contained(add->getOperands(),
                                   body.getArguments().back())
             ? Combiner::Sum
             : Combiner::Other;
}

std::optional<Computation> Describer::run() {
  Computation c;
  c.results = op->getNumResults();
  c.element = getElementTypeOrSelf(op->getResult(0).getType());
  if (!numberLoops(c))
    return std::nullopt;
  llvm::SetVector<Value> outside;
  getUsedValuesDefinedAbove(op->getRegions(), outside);
  c.usesOutside = !outside.empty();
  addReads(c.isElementwise() ? c.reads : c.reductions[0].reads);
  if (!c.isElementwise()) {
    c.reductions[0].combiner = combinerOf(op);
    c.reductions[0].isLong = op->hasAttr(halide::kLongWindowAttr);
    for (OpOperand &init : op.getDpsInitsMutable())
      if (!init.get().getDefiningOp<linalg::FillOp>() &&
          op.payloadUsesValueFromOperand(&init)) {
        Read start;
        start.source = numberOf(init.get());
        start.operand = init.getOperandNumber();
        for (AffineExpr expr :
             llvm::reverse(op.getMatchingIndexingMap(&init).getResults()))
          start.at.push_back(coordinate(expr));
        c.reads.push_back(std::move(start));
      }
  }
  c.source = numberOf(op->getResult(0));
  return c;
}

} // namespace

std::optional<Computation> heed::describe(Operation *op,
                                          llvm::SetVector<Value> &sources) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || linalgOp.getNumDpsInits() == 0 || !op->getNumResults())
    return std::nullopt;
  return Describer(linalgOp, sources).run();
}

// Not upstream's `inferContractionDims`, which is asked of linalg ops of two
// operands: a term here may have three factors, be read by data or in windows,
// and be a pipeline's.
bool heed::isContraction(const Computation &c) {
  if (c.isElementwise())
    return false;
  return llvm::count_if(c.reductions[0].reads, [&](const Read &read) {
           return !llvm::all_of(llvm::seq(c.rank()), [&](unsigned dim) {
             return read.follows(dim);
           });
         }) >= 2;
}

bool heed::isContraction(Operation *op) {
  llvm::SetVector<Value> sources;
  std::optional<Computation> c = describe(op, sources);
  return c && isContraction(*c);
}

bool heed::isWindowSum(const Computation &c) {
  return c.reductions.size() == 1 && c.rank() >= 2 &&
         llvm::any_of(c.reductions[0].reads, [&](const Read &read) {
           return read.isWindow() && !read.at.empty() &&
                  read.at.front().loops[kColumn];
         });
}

bool heed::isWindowSum(Operation *op) {
  llvm::SetVector<Value> sources;
  std::optional<Computation> c = describe(op, sources);
  return c && isWindowSum(*c);
}

bool heed::isAtLoops(const Read &read) {
  llvm::SmallSet<unsigned, 4> seen;
  return read.operand >= 0 && llvm::all_of(read.at, [&](const Coordinate &at) {
           return at.loop && seen.insert(*at.loop).second;
         });
}

bool heed::readsAtLoops(const Computation &c) {
  return llvm::all_of(c.reductions.front().reads, isAtLoops);
}

bool heed::isSmallMatrix(KnownExtent rows, KnownExtent columns) {
  // Of f32, 129 KiB: linear attention's state of 256 features and 128 columns,
  // and one of its normaliser.
  constexpr int64_t most = 256 * 129;
  return rows && columns && *rows * *columns <= most;
}

bool heed::isStateSum(const Computation &c) {
  constexpr int64_t mostOfDim = 256, fewestTerms = 512;
  const Reduction *sum = c.onlySum();
  if (!sum || c.rank() < 2)
    return false;
  for (unsigned dim : {kColumn, kRow})
    if (!c.extents[dim] || *c.extents[dim] > mostOfDim || *c.extents[dim] == 0)
      return false;
  KnownExtent terms = sum->extents[0];
  const bool isBatched = c.rank() > 2;
  const bool hasRows = llvm::any_of(sum->reads, [&](const Read &read) {
    return !read.at.empty() && read.at[0].loop == c.term();
  });
  if (!terms)
    return isBatched || !hasRows;
  return isBatched && !hasRows && *terms >= fewestTerms;
}

bool heed::isStateProduct(Operation *op) {
  llvm::SetVector<Value> sources;
  std::optional<Computation> c = describe(op, sources);
  if (!c || !isContraction(*c) || !isStateSum(*c) || !readsAtLoops(*c) ||
      c->onlySum()->reads.size() != 2)
    return false;
  unsigned ofRows = 0;
  for (const Read &read : c->onlySum()->reads) {
    if (isFromParameters(sources[read.source]) || !read.follows(c->term()) ||
        read.follows(kRow) == read.follows(kColumn))
      return false;
    ofRows += read.follows(kRow);
  }
  return ofRows == 1;
}

bool heed::readsInPlace(Operation *user, Value value) {
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(user->getRegions(), captures);
  if (captures.contains(value))
    return false;
  auto op = dyn_cast<linalg::LinalgOp>(user);
  if (!op)
    return isa<attn::SoftmaxOp, attn::LogSoftmaxOp>(user);
  bool isElementwise = op.getNumLoops() == op.getNumParallelLoops();
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    if (operand.get() != value)
      return true;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    return isElementwise ? map == out : map.isIdentity();
  });
}
