//===- Cost.cpp - what a call of a kernel costs ---------------------------===//

#include "passes/Plan/Cost.h"
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/SymbolicDims.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace heed;

namespace {

constexpr StringLiteral kCostAttr = "attn.cost";

class Counter {
public:
  explicit Counter(func::FuncOp kernel) : kernel(kernel) {}

  void count();
  DictionaryAttr attribute(halide::PipelineOp pipeline);
  KernelCost at(ValueRange arguments, attn::SymbolicDims &outer);

private:
  void add(Size &total, const Size &part);
  AffineMapAttr map(const Size &polynomial);
  void countLinalg(linalg::LinalgOp op);
  void countAttention(attn::AttentionLike op);
  void countPart(attn::AttentionLike op, Value operand, AffineMap map);
  void countSteps(Region &body, const Size &elements);
  void countArguments();

  func::FuncOp kernel;
  attn::SymbolicDims dims;
  Size flops, bytes;
  /// Symbols of `dims` in the order of the maps'.
  SmallVector<unsigned> symbols;
  /// Elements that are read of an argument, where a gather reads it, or a part.
  DenseMap<Value, Size> gathered;
};

/// Adds what callers can compute: sizes of arguments and scalars.
void Counter::add(Size &total, const Size &part) {
  for (auto &[product, coefficient] : part.terms)
    for (unsigned symbol : product)
      if (!isa_and_nonnull<BlockArgument>(dims.source(symbol).value))
        return;
  total += part;
}

AffineMapAttr Counter::map(const Size &polynomial) {
  MLIRContext *context = kernel.getContext();
  AffineExpr sum = getAffineConstantExpr(0, context);
  for (auto &[product, coefficient] : polynomial.terms) {
    AffineExpr term = getAffineConstantExpr(1, context);
    for (unsigned symbol : product)
      term = term * getAffineSymbolExpr(
                        llvm::find(symbols, symbol) - symbols.begin(), context);
    sum = sum + term * int64_t(coefficient);
  }
  return AffineMapAttr::get(AffineMap::get(0, symbols.size(), sum));
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

/// Whether a coordinate is computed from elements.
bool dependsOnData(Value coordinate, Block *body) {
  if (isa<BlockArgument>(coordinate))
    return cast<BlockArgument>(coordinate).getOwner() == body;
  Operation *def = coordinate.getDefiningOp();
  return isa<tensor::ExtractOp>(def) ||
         llvm::any_of(def->getOperands(), [&](Value operand) {
           return dependsOnData(operand, body);
         });
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
    if (isa<BlockArgument>(extract.getTensor()) &&
        llvm::any_of(extract.getIndices(), [&](Value index) {
          return dependsOnData(index, &body.front());
        }))
      add(gathered[extract.getTensor()], points);
  });
}

void Counter::countAttention(attn::AttentionLike op) {
  auto product = [&](attn::DimKind kind) {
    Size result = 1;
    for (unsigned k = 0; k < op.numDims(kind); ++k)
      result *= dims.size(op.getSizes()[op.firstDim(kind) + k]);
    return result;
  };
  Size pairs = product(attn::DimKind::Batch) * product(attn::DimKind::Query) *
               product(attn::DimKind::Key);
  // A term multiplies and adds; the score once; the weight: its distance from
  // the maximum, the exponential and the row's sum; a value multiplies and
  // adds.
  add(flops, pairs * (product(attn::DimKind::Contract) * (2 * op.numTerms()) +
                      operations(op.getScore()) + 3 +
                      product(attn::DimKind::Value) * 2));
  for (unsigned t = 0; t < op.numTerms(); ++t)
    for (auto [operand, map] : llvm::zip(op.term(t), op.maps(t)))
      countPart(op, operand, map);
  for (auto [k, operand] : llvm::enumerate(op.getValues()))
    countPart(op, operand, op.valueMap(k));
}

/// Where \p map reads a part of an argument alone, from a number that the
/// caller gives on: as much as the loops run over.
void Counter::countPart(attn::AttentionLike op, Value operand, AffineMap map) {
  Size elements = 1;
  bool isPart = false;
  for (AffineExpr position : map.getResults()) {
    auto sum = dyn_cast<AffineBinaryOpExpr>(position);
    if (sum && sum.getKind() == AffineExprKind::Add &&
        isa<AffineSymbolExpr>(sum.getRHS())) {
      isPart = true;
      position = sum.getLHS();
    }
    auto dim = dyn_cast<AffineDimExpr>(position);
    if (!dim)
      return;
    elements *= dims.size(op.getSizes()[dim.getPosition()]);
  }
  if (isPart && isa<BlockArgument>(operand))
    gathered.try_emplace(operand, elements);
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
  auto count = [&](Value tensor, const Size &elements) {
    unsigned bits =
        getElementTypeOrSelf(tensor.getType()).getIntOrFloatBitWidth();
    add(bytes, elements * ((bits + 7) / 8));
  };
  for (Value argument : kernel.getArguments()) {
    if (!isa<RankedTensorType>(argument.getType()) || argument.use_empty())
      continue;
    auto it = gathered.find(argument);
    count(argument,
          it != gathered.end() ? it->second : dims.elements(argument));
  }
  for (Value result : kernel.getBody().front().getTerminator()->getOperands())
    count(result, dims.elements(result));
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

DictionaryAttr Counter::attribute(halide::PipelineOp pipeline) {
  Builder b(kernel.getContext());
  SmallVector<Operation *> inputs = pipeline.getInputs();
  SmallVector<Attribute> names;
  SmallVector<int64_t> axes;
  for (const Size *polynomial : {&flops, &bytes})
    for (auto &[product, coefficient] : polynomial->terms)
      for (unsigned symbol : product)
        if (!llvm::is_contained(symbols, symbol)) {
          symbols.push_back(symbol);
          attn::SymbolicDims::Source known = dims.source(symbol);
          auto argument = cast<BlockArgument>(known.value);
          names.push_back(inputs[argument.getArgNumber()]->getAttr("name"));
          axes.push_back(known.axis);
        }
  NamedAttrList cost;
  cost.set("flops", map(flops));
  cost.set("bytes", map(bytes));
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
  return {translate(flops), translate(bytes)};
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

std::pair<Value, Value> heed::evaluateCost(
    OpBuilder &b, Location loc, halide::PipelineOp pipeline,
    llvm::function_ref<Value(StringRef, std::optional<int64_t>)> size) {
  auto cost = pipeline->getAttrOfType<DictionaryAttr>(kCostAttr);
  auto nothing = [&]() -> Value {
    return arith::ConstantOp::create(b, loc, b.getF64FloatAttr(0));
  };
  if (!cost)
    return {nothing(), nothing()};
  auto names = cost.getAs<ArrayAttr>("names");
  auto axes = cost.getAs<DenseI64ArrayAttr>("axes");
  auto flops = cost.getAs<AffineMapAttr>("flops");
  auto bytes = cost.getAs<AffineMapAttr>("bytes");
  if (!names || !axes || !flops || !bytes ||
      int64_t(names.size()) != axes.size())
    return {nothing(), nothing()};
  SmallVector<Value> symbols;
  for (auto [name, axis] : llvm::zip(names, axes.asArrayRef())) {
    std::optional<int64_t> wanted;
    if (axis >= 0)
      wanted = axis;
    Value value = size(cast<StringAttr>(name).getValue(), wanted);
    if (!value)
      return {nothing(), nothing()};
    if (value.getType().isIndex())
      value = arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
    symbols.push_back(arith::SIToFPOp::create(b, loc, b.getF64Type(), value));
  }
  return {evaluate(b, loc, flops.getValue().getResult(0), symbols),
          evaluate(b, loc, bytes.getValue().getResult(0), symbols)};
}
