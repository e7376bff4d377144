//===- Cost.cpp - what one call of a kernel costs -------------------------===//

#include "passes/Lower/Cost.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Lower/KernelToHalide.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AffineExprVisitor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;

namespace {

constexpr StringLiteral kCostAttr = "attn.cost";

class Counter {
public:
  explicit Counter(func::FuncOp kernel)
      : kernel(kernel), context(kernel.getContext()),
        flops(getAffineConstantExpr(0, context)),
        bytes(getAffineConstantExpr(0, context)) {}

  void count();
  DictionaryAttr attribute(halide::PipelineOp pipeline);

private:
  /// The extent of an axis of a tensor of the kernel; null if a caller does not
  /// know it.
  AffineExpr extent(Value tensor, int64_t axis);
  AffineExpr scalar(Value value);
  AffineExpr symbol(unsigned argument, std::optional<int64_t> axis);
  AffineExpr elements(Value tensor);
  void countLinalg(linalg::LinalgOp op);
  void countAttention(attn::AttentionOp op);
  void countArguments();

  func::FuncOp kernel;
  MLIRContext *context;
  AffineExpr flops, bytes;
  SmallVector<std::pair<unsigned, std::optional<int64_t>>> symbols;
  /// Elements that a gather reads of an argument.
  DenseMap<Value, AffineExpr> gathered;
};

AffineExpr Counter::symbol(unsigned argument, std::optional<int64_t> axis) {
  auto found = llvm::find(symbols, std::pair(argument, axis));
  unsigned position = found - symbols.begin();
  if (found == symbols.end())
    symbols.emplace_back(argument, axis);
  return getAffineSymbolExpr(position, context);
}

AffineExpr Counter::extent(Value tensor, int64_t axis) {
  // Callers are told what they may ask; that some can't be known is no error
  // here.
  ScopedDiagnosticHandler quiet(context,
                                [](Diagnostic &) { return success(); });
  FailureOr<CallerExtent> found = callerExtent(tensor, axis);
  if (failed(found))
    return {};
  if (found->fixed)
    return getAffineConstantExpr(*found->fixed, context);
  return symbol(found->argument, found->axis);
}

AffineExpr Counter::scalar(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return getAffineConstantExpr(constant.getSExtValue(), context);
  if (auto argument = dyn_cast<BlockArgument>(value))
    return symbol(argument.getArgNumber(), std::nullopt);
  if (auto dim = value.getDefiningOp<tensor::DimOp>())
    if (std::optional<int64_t> axis = dim.getConstantIndex())
      return extent(dim.getSource(), *axis);
  return {};
}

AffineExpr Counter::elements(Value tensor) {
  AffineExpr product = getAffineConstantExpr(1, context);
  for (int64_t axis = 0; axis < cast<ShapedType>(tensor.getType()).getRank();
       ++axis) {
    AffineExpr size = extent(tensor, axis);
    if (!size)
      return {};
    product = product * size;
  }
  return product;
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

void Counter::countLinalg(linalg::LinalgOp op) {
  SmallVector<AffineExpr> loops(op.getNumLoops());
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [axis, expr] : llvm::enumerate(map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
        AffineExpr &size = loops[dim.getPosition()];
        if (!size || !isa<AffineConstantExpr>(size))
          if (AffineExpr found = extent(operand.get(), axis))
            size = found;
      }
  }
  AffineExpr points = getAffineConstantExpr(1, context);
  for (AffineExpr size : loops) {
    if (!size)
      return;
    points = points * size;
  }
  Region &body = op->getRegion(0);
  flops = flops + points * operations(body);
  body.walk([&](tensor::ExtractOp extract) {
    if (!isa<BlockArgument>(extract.getTensor()) ||
        llvm::none_of(extract.getIndices(), [&](Value index) {
          return dependsOnData(index, &body.front());
        }))
      return;
    AffineExpr &read = gathered[extract.getTensor()];
    read = read ? read + points : points;
  });
}

void Counter::countAttention(attn::AttentionOp op) {
  SmallVector<AffineExpr> sizes;
  for (Value size : op.getSizes()) {
    sizes.push_back(scalar(size));
    if (!sizes.back())
      return;
  }
  auto product = [&](attn::DimKind kind) {
    AffineExpr result = getAffineConstantExpr(1, context);
    for (unsigned k = 0; k < op.numDims(kind); ++k)
      result = result * sizes[op.firstDim(kind) + k];
    return result;
  };
  AffineExpr pairs = product(attn::DimKind::Batch) *
                     product(attn::DimKind::Query) *
                     product(attn::DimKind::Key);
  // A term multiplies and adds; the score once; the weight: its distance from
  // the maximum, the exponential and the row's sum; a value multiplies and
  // adds.
  flops = flops + pairs * product(attn::DimKind::Contract) * 2 * op.numTerms() +
          pairs * (operations(op.getScore()) + 3) +
          pairs * product(attn::DimKind::Value) * 2;
}

void Counter::countArguments() {
  auto add = [&](Value tensor, AffineExpr count) {
    if (count)
      bytes =
          bytes +
          count *
              ((getElementTypeOrSelf(tensor.getType()).getIntOrFloatBitWidth() +
                7) /
               8);
  };
  for (Value argument : kernel.getArguments()) {
    if (!isa<RankedTensorType>(argument.getType()) || argument.use_empty())
      continue;
    auto it = gathered.find(argument);
    add(argument, it != gathered.end() ? it->second : elements(argument));
  }
  for (Value result : kernel.getBody().front().getTerminator()->getOperands())
    add(result, elements(result));
}

void Counter::count() {
  for (Operation &op : kernel.getBody().front()) {
    if (auto attention = dyn_cast<attn::AttentionOp>(op)) {
      countAttention(attention);
    } else if (isa<attn::SoftmaxOp, attn::LogSoftmaxOp>(op)) {
      // Maximum, distance, exponential, sum, division.
      if (AffineExpr size = elements(op.getOperand(0)))
        flops = flops + size * 5;
    } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      if (!isa<linalg::FillOp>(op))
        countLinalg(linalgOp);
    }
  }
  countArguments();
}

DictionaryAttr Counter::attribute(halide::PipelineOp pipeline) {
  Builder b(context);
  SmallVector<Operation *> inputs = pipeline.getInputs();
  SmallVector<Attribute> names;
  SmallVector<int64_t> axes;
  for (auto [argument, axis] : symbols) {
    names.push_back(inputs[argument]->getAttr("name"));
    axes.push_back(axis.value_or(-1));
  }
  NamedAttrList cost;
  auto map = [&](AffineExpr expr) {
    return AffineMapAttr::get(AffineMap::get(0, symbols.size(), expr));
  };
  cost.set("flops", map(flops));
  cost.set("bytes", map(bytes));
  cost.set("names", b.getArrayAttr(names));
  cost.set("axes", b.getDenseI64ArrayAttr(axes));
  return cost.getDictionary(context);
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
