//===- Cost.cpp - what a call of a kernel costs ---------------------------===//

#include "passes/Plan/Cost.h"
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/SymbolicDims.h"
#include "passes/Plan/LiveCounts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace heed;

namespace {

constexpr StringLiteral kCostAttr = "attn.cost";

class Counter {
public:
  explicit Counter(func::FuncOp kernel) : kernel(kernel), live(kernel) {}

  void count();
  DictionaryAttr attribute(halide::PipelineOp pipeline);
  KernelCost at(ValueRange arguments, attn::SymbolicDims &outer);

private:
  /// \p factor times the number \p count of `live`, which is \p most at most.
  struct Counted {
    Size factor, most;
    unsigned number;
  };
  bool isOfCaller(const Size &size);
  void add(Size &total, const Size &part);
  AffineExpr expr(const Size &polynomial);
  AffineExpr expr(const Size &polynomial, ArrayRef<Counted> counted);
  void countLinalg(linalg::LinalgOp op);
  void countAttention(attn::AttentionLike op);
  void countPart(attn::AttentionLike op, Value operand, AffineMap map);
  void countSteps(Region &body, const Size &elements);
  void countArguments();
  void findSymbols(halide::PipelineOp pipeline,
                   SmallVectorImpl<Attribute> &names,
                   SmallVectorImpl<int64_t> &axes);

  func::FuncOp kernel;
  attn::SymbolicDims dims;
  LiveCounts live;
  Size flops, bytes;
  SmallVector<Counted> liveFlops, liveBytes;
  /// Bytes that are the least of two.
  SmallVector<std::pair<Size, Size>> leastBytes;
  /// Symbols of `dims` in the order of the maps'.
  SmallVector<unsigned> symbols;
  /// Elements that are read of an argument where data say.
  DenseMap<Value, Size> gathered;
  /// Arguments that an attention reads a part of, and that part.
  DenseMap<Value, Size> parts;
  DenseMap<Value, Counted> liveParts;
};

/// Whether callers can compute it: of sizes of arguments and scalars.
bool Counter::isOfCaller(const Size &size) {
  for (auto &[product, coefficient] : size.terms)
    for (unsigned symbol : product)
      if (!isa_and_nonnull<BlockArgument>(dims.source(symbol).value))
        return false;
  return true;
}

void Counter::add(Size &total, const Size &part) {
  if (isOfCaller(part))
    total += part;
}

AffineExpr Counter::expr(const Size &polynomial) {
  MLIRContext *context = kernel.getContext();
  AffineExpr sum = getAffineConstantExpr(0, context);
  for (auto &[product, coefficient] : polynomial.terms) {
    AffineExpr term = getAffineConstantExpr(1, context);
    for (unsigned symbol : product)
      term = term * getAffineSymbolExpr(
                        llvm::find(symbols, symbol) - symbols.begin(), context);
    sum = sum + term * int64_t(coefficient);
  }
  return sum;
}

/// Counts are symbols behind those of sizes.
AffineExpr Counter::expr(const Size &polynomial, ArrayRef<Counted> counted) {
  AffineExpr sum = expr(polynomial);
  for (const Counted &each : counted)
    sum = sum +
          expr(each.factor) * getAffineSymbolExpr(symbols.size() + each.number,
                                                  kernel.getContext());
  return sum;
}

/// Operations on floating-point numbers in \p region.
int64_t operations(Region &region) {
  int64_t count = 0;
  region.walk([&](Operation *op) {
    bool isReal =
        op->getNumResults() == 1 && isa<FloatType>(op->getResult(0).getType());
    if (!isReal || isa<arith::ConstantOp, arith::SelectOp, arith::ExtFOp,
                       arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp>(op))
      return;
    if (isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
      count += isa<math::FmaOp>(op) ? 2 : 1;
  });
  return count;
}

/// Adds the loops of \p op that \p number, in its body, follows.
void addLoops(linalg::LinalgOp op, Value number, llvm::BitVector &loops) {
  if (auto element = dyn_cast<BlockArgument>(number)) {
    if (element.getOwner() == op.getBlock())
      for (AffineExpr at :
           op.getMatchingIndexingMap(op.getMatchingOpOperand(element))
               .getResults())
        for (unsigned loop = 0; loop < loops.size(); ++loop)
          if (at.isFunctionOfDim(loop))
            loops.set(loop);
    return;
  }
  Operation *def = number.getDefiningOp();
  if (auto index = dyn_cast<linalg::IndexOp>(def))
    loops.set(index.getDim());
  else if (op->isProperAncestor(def))
    for (Value operand : def->getOperands())
      addLoops(op, operand, loops);
}

/// Whether \p number is computed from \p from.
bool dependsOn(Value number, Value from) {
  Operation *def = number.getDefiningOp();
  return number == from ||
         (def && llvm::any_of(def->getOperands(),
                              [&](Value v) { return dependsOn(v, from); }));
}

void Counter::countLinalg(linalg::LinalgOp op) {
  SmallVector<std::optional<Size>> loops(op.getNumLoops());
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [axis, expr] : llvm::enumerate(map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
        auto &size = loops[dim.getPosition()];
        if (!size || !size->constant())
          size = dims.dim(operand.get(), axis);
      }
  }
  Size points = 1;
  for (auto &size : loops) {
    if (!size)
      return;
    points *= *size;
  }
  Region &body = op->getRegion(0);
  add(flops, points * operations(body));
  body.walk([&](tensor::ExtractOp extract) {
    if (!isa<BlockArgument>(extract.getTensor()))
      return;
    llvm::BitVector followed(loops.size());
    for (Value index : extract.getIndices())
      addLoops(op, index, followed);
    Size places = 1;
    for (unsigned loop : followed.set_bits())
      places *= *loops[loop];
    Value tensor = extract.getTensor();
    gathered[tensor] += isOfCaller(places) ? places : dims.elements(tensor);
  });
}

void Counter::countAttention(attn::AttentionLike op) {
  SmallVector<unsigned> masked = live.dimsOf(op);
  Size free = 1, most = 1;
  for (unsigned dim = 0; dim < op.firstDim(attn::DimKind::Contract); ++dim)
    (llvm::is_contained(masked, dim) ? most : free) *=
        dims.size(op.getSizes()[dim]);
  auto product = [&](attn::DimKind kind) {
    Size result = 1;
    for (unsigned k = 0; k < op.numDims(kind); ++k)
      result *= dims.size(op.getSizes()[op.firstDim(kind) + k]);
    return result;
  };
  // A term multiplies and adds; the score once; the weight: its distance from
  // the maximum, the exponential and the row's sum; a value multiplies and
  // adds.
  Size pair = product(attn::DimKind::Contract) * (2 * op.numTerms()) +
              operations(op.getScore()) + 3 + product(attn::DimKind::Value) * 2;
  if (masked.empty())
    add(flops, free * most * pair);
  else if (isOfCaller(free * pair))
    liveFlops.push_back({free * pair, most, live.count(op, masked)});
  for (unsigned t = 0; t < op.numTerms(); ++t)
    for (auto [operand, map] : llvm::zip(op.term(t), op.maps(t)))
      countPart(op, operand, map);
  for (auto [k, operand] : llvm::enumerate(op.getValues()))
    countPart(op, operand, op.valueMap(k));
}

/// Where \p map reads a part of an argument alone, from a number that the
/// caller gives on: as much as the loops run over. Of keys, those that a query
/// sees.
void Counter::countPart(attn::AttentionLike op, Value operand, AffineMap map) {
  if (!isa<BlockArgument>(operand) || parts.contains(operand) ||
      liveParts.contains(operand))
    return;
  Size elements = 1, most = 1;
  bool isPart = false, hasKey = false;
  SmallVector<unsigned> masked = live.dimsOf(op), places;
  llvm::SmallDenseSet<unsigned> seen;
  for (auto [axis, position] : llvm::enumerate(map.getResults())) {
    if (position.isSymbolicOrConstant()) {
      isPart = true;
      continue;
    }
    auto sum = dyn_cast<AffineBinaryOpExpr>(position);
    bool isMoved = sum && sum.getKind() == AffineExprKind::Add &&
                   isa<AffineSymbolExpr>(sum.getRHS());
    auto dim = dyn_cast<AffineDimExpr>(isMoved ? sum.getLHS() : position);
    isPart |= isMoved && dim;
    if (!dim || !seen.insert(dim.getPosition()).second) {
      elements *= dims.dim(operand, axis);
      continue;
    }
    unsigned loop = dim.getPosition();
    bool isMasked = llvm::is_contained(masked, loop);
    if (isMasked)
      places.push_back(loop);
    hasKey |= isMasked && op.dimKind(loop) == attn::DimKind::Key;
    (isMasked ? most : elements) *= dims.size(op.getSizes()[loop]);
  }
  llvm::sort(places);
  if (hasKey && isOfCaller(elements))
    liveParts[operand] = {elements, most, live.count(op, places)};
  else if (isPart)
    parts[operand] = elements * most;
}

/// Of what a step reads at a place of its own, it reads an element for each of
/// a state.
void Counter::countSteps(Region &region, const Size &elements) {
  Block &body = region.front();
  add(flops, elements * operations(region));
  body.walk([&](tensor::ExtractOp read) {
    if (isa<BlockArgument>(read.getTensor()) &&
        llvm::any_of(read.getIndices(), [&](Value index) {
          return dependsOn(index, body.getArgument(0));
        }))
      add(gathered[read.getTensor()], elements);
  });
}

void Counter::countArguments() {
  auto sizeOf = [](Value tensor) {
    unsigned bits =
        getElementTypeOrSelf(tensor.getType()).getIntOrFloatBitWidth();
    return Size((bits + 7) / 8);
  };
  for (Value argument : kernel.getArguments()) {
    if (!isa<RankedTensorType>(argument.getType()) || argument.use_empty())
      continue;
    Size size = sizeOf(argument), all = dims.elements(argument);
    if (auto part = liveParts.find(argument); part != liveParts.end()) {
      liveBytes.push_back(part->second);
      liveBytes.back().factor *= size;
    } else if (auto part = parts.find(argument); part != parts.end()) {
      add(bytes, part->second * size);
    } else if (auto read = gathered.find(argument);
               read != gathered.end() && read->second != all) {
      if (isOfCaller(read->second) && isOfCaller(all))
        leastBytes.push_back({read->second * size, all * size});
    } else {
      add(bytes, all * size);
    }
  }
  for (Value result : kernel.getBody().front().getTerminator()->getOperands())
    add(bytes, dims.elements(result) * sizeOf(result));
}

void Counter::count() {
  for (Operation &op : kernel.getBody().front()) {
    if (auto attention = dyn_cast<attn::AttentionLike>(op)) {
      countAttention(attention);
    } else if (auto recurrence = dyn_cast<attn::RecurrenceOp>(op)) {
      countSteps(recurrence.getNext(),
                 dims.elements(recurrence.getHistories()[0]));
    } else if (auto scan = dyn_cast<attn::ElementScanOp>(op)) {
      for (Region *region : {&scan.getNext(), &scan.getLeave()})
        countSteps(*region, dims.elements(scan.getRows()[0]));
    } else if (auto scan = dyn_cast<attn::SumScanOp>(op)) {
      // The first result has the steps: a row, or a held sum.
      Size all = dims.elements(scan->getResult(0)) *
                 dims.dim(scan.getStates()[0], scan.sumAxis());
      for (Region &region : scan->getRegions())
        if (!region.empty())
          countSteps(region, all);
    } else if (auto solve = dyn_cast<attn::TriangularSolveOp>(op)) {
      // Half of the matrix, for each place of a row.
      Value right = solve.getRight();
      add(flops, dims.elements(right) * dims.dim(right, solve.stepAxis()));
    } else if (isa<attn::SoftmaxOp, attn::LogSoftmaxOp>(op)) {
      // Maximum, distance, exponential, sum, division.
      add(flops, dims.elements(op.getOperand(0)) * 5);
    } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      if (!isa<linalg::FillOp>(op))
        countLinalg(linalgOp);
    }
  }
  countArguments();
}

void Counter::findSymbols(halide::PipelineOp pipeline,
                          SmallVectorImpl<Attribute> &names,
                          SmallVectorImpl<int64_t> &axes) {
  SmallVector<Size> all{flops, bytes};
  for (auto *counted : {&liveFlops, &liveBytes})
    for (Counted &each : *counted)
      all.push_back(each.factor);
  for (auto &[read, most] : leastBytes)
    all.append({read, most});
  SmallVector<Operation *> inputs = pipeline.getInputs();
  for (const Size &polynomial : all)
    for (auto &[product, coefficient] : polynomial.terms)
      for (unsigned symbol : product)
        if (!llvm::is_contained(symbols, symbol)) {
          symbols.push_back(symbol);
          attn::SymbolicDims::Source known = dims.source(symbol);
          auto argument = cast<BlockArgument>(known.value);
          names.push_back(inputs[argument.getArgNumber()]->getAttr("name"));
          axes.push_back(known.axis);
        }
}

DictionaryAttr Counter::attribute(halide::PipelineOp pipeline) {
  Builder b(kernel.getContext());
  SmallVector<Attribute> names;
  SmallVector<int64_t> axes;
  findSymbols(pipeline, names, axes);
  NamedAttrList cost;
  SmallVector<unsigned> of;
  unsigned counts = 0;
  if (!live.empty()) {
    func::FuncOp function = live.write(of);
    counts = function.getNumResults();
    cost.set("live", FlatSymbolRefAttr::get(function));
    SmallVector<Operation *> inputs = pipeline.getInputs();
    SmallVector<Attribute> ofNames;
    for (unsigned input : of)
      ofNames.push_back(inputs[input]->getAttr("name"));
    cost.set("of", b.getArrayAttr(ofNames));
  }
  auto map = [&](ArrayRef<AffineExpr> results) {
    return AffineMapAttr::get(
        AffineMap::get(0, symbols.size() + counts, results, b.getContext()));
  };
  cost.set("flops", map(expr(flops, liveFlops)));
  cost.set("bytes", map(expr(bytes, liveBytes)));
  SmallVector<Attribute> least;
  for (auto &[read, most] : leastBytes)
    least.push_back(map({expr(read), expr(most)}));
  if (!least.empty())
    cost.set("gathered", b.getArrayAttr(least));
  cost.set("names", b.getArrayAttr(names));
  cost.set("axes", b.getDenseI64ArrayAttr(axes));
  return cost.getDictionary(b.getContext());
}

KernelCost Counter::at(ValueRange arguments, attn::SymbolicDims &outer) {
  auto translate = [&](const Size &polynomial) {
    Size sum;
    for (auto &[product, coefficient] : polynomial.terms) {
      Size term(coefficient);
      for (unsigned symbol : product) {
        attn::SymbolicDims::Source known = dims.source(symbol);
        Value actual =
            arguments[cast<BlockArgument>(known.value).getArgNumber()];
        term *=
            known.axis < 0 ? outer.size(actual) : outer.dim(actual, known.axis);
      }
      sum += term;
    }
    return sum;
  };
  for (auto [total, counted] :
       {std::pair(&flops, &liveFlops), std::pair(&bytes, &liveBytes)})
    for (Counted &each : *counted)
      add(*total, each.factor * each.most);
  KernelCost cost{translate(flops), translate(bytes)};
  for (auto &[read, most] : leastBytes) {
    Size some = translate(read), all = translate(most);
    cost.bytes += outer.isNeverNegative(some - all) ? all : some;
  }
  return cost;
}

/// \p expr in f64: no product of sizes overflows.
Value evaluate(OpBuilder &b, Location loc, AffineExpr expr,
               ArrayRef<Value> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return arith::ConstantOp::create(
        b, loc, b.getF64FloatAttr(double(constant.getValue())));
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value left = evaluate(b, loc, binary.getLHS(), symbols);
  Value right = evaluate(b, loc, binary.getRHS(), symbols);
  if (binary.getKind() == AffineExprKind::Add)
    return arith::AddFOp::create(b, loc, left, right);
  return arith::MulFOp::create(b, loc, left, right);
}

} // namespace

void heed::writeCost(func::FuncOp kernel, halide::PipelineOp pipeline) {
  Counter counter(kernel);
  counter.count();
  pipeline->setAttr(kCostAttr, counter.attribute(pipeline));
}

KernelCost heed::costOf(func::FuncOp kernel, ValueRange arguments,
                        attn::SymbolicDims &dims) {
  Counter counter(kernel);
  counter.count();
  return counter.at(arguments, dims);
}

/// The values of the symbols of \p cost; nothing if one has none.
static std::optional<SmallVector<Value>> symbolsOf(OpBuilder &b, Location loc,
                                                   halide::PipelineOp pipeline,
                                                   DictionaryAttr cost,
                                                   const CostInputs &inputs) {
  auto names = cost.getAs<ArrayAttr>("names");
  auto axes = cost.getAs<DenseI64ArrayAttr>("axes");
  if (!names || !axes || int64_t(names.size()) != axes.size())
    return std::nullopt;
  SmallVector<Value> symbols;
  for (auto [name, axis] : llvm::zip(names, axes.asArrayRef())) {
    std::optional<int64_t> wanted;
    if (axis >= 0)
      wanted = axis;
    symbols.push_back(inputs.size(cast<StringAttr>(name).getValue(), wanted));
  }
  auto live = cost.getAs<FlatSymbolRefAttr>("live");
  auto of = cost.getAs<ArrayAttr>("of");
  if (live && of) {
    auto module = pipeline->getParentOfType<ModuleOp>();
    auto function = module.lookupSymbol<func::FuncOp>(live.getValue());
    SmallVector<Value> counts;
    if (function)
      counts = inputs.count(function, of);
    if (counts.empty())
      return std::nullopt;
    llvm::append_range(symbols, counts);
  }
  for (Value &value : symbols) {
    if (!value)
      return std::nullopt;
    if (value.getType().isIndex())
      value = arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
    value = arith::SIToFPOp::create(b, loc, b.getF64Type(), value);
  }
  return symbols;
}

std::pair<Value, Value> heed::evaluateCost(OpBuilder &b, Location loc,
                                           halide::PipelineOp pipeline,
                                           CostInputs inputs) {
  auto cost = pipeline->getAttrOfType<DictionaryAttr>(kCostAttr);
  auto nothing = [&]() -> Value {
    return arith::ConstantOp::create(b, loc, b.getF64FloatAttr(0));
  };
  auto flops = cost ? cost.getAs<AffineMapAttr>("flops") : nullptr;
  auto bytes = cost ? cost.getAs<AffineMapAttr>("bytes") : nullptr;
  if (!flops || !bytes)
    return {nothing(), nothing()};
  std::optional<SmallVector<Value>> symbols =
      symbolsOf(b, loc, pipeline, cost, inputs);
  if (!symbols || flops.getValue().getNumSymbols() != symbols->size() ||
      bytes.getValue().getNumSymbols() != symbols->size())
    return {nothing(), nothing()};
  Value moved = evaluate(b, loc, bytes.getValue().getResult(0), *symbols);
  if (auto gathered = cost.getAs<ArrayAttr>("gathered"))
    for (AffineMap map : gathered.getAsValueRange<AffineMapAttr>()) {
      Value least;
      for (AffineExpr result : map.getResults()) {
        Value read = evaluate(b, loc, result, *symbols);
        least = least ? arith::MinimumFOp::create(b, loc, least, read) : read;
      }
      moved = arith::AddFOp::create(b, loc, moved, least);
    }
  return {evaluate(b, loc, flops.getValue().getResult(0), *symbols), moved};
}
