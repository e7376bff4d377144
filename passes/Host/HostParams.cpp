//===- HostParams.cpp - numbers the parameters of a model -----------------===//
//
// Every `attn.param` of a module gets the number of an entry in a table that
// the runtime reads when it opens the weights.
//
//===----------------------------------------------------------------------===//

#include "passes/Host/HostParams.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "support/Format.h"

using namespace mlir;

namespace {

/// Half-open.
struct Interval {
  int64_t low, high;
};

std::optional<Interval> intervalOf(Value value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return Interval{*constant, *constant + 1};
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument != loop.getInductionVar())
      return std::nullopt;
    auto low = getConstantIntValue(loop.getLowerBound());
    auto high = getConstantIntValue(loop.getUpperBound());
    if (!low || !high)
      return std::nullopt;
    return Interval{*low, *high};
  }
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumOperands() == 0)
    return std::nullopt;
  if (isa<arith::IndexCastOp>(op))
    return intervalOf(op->getOperand(0));
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<Interval> a = intervalOf(op->getOperand(0));
  std::optional<Interval> b = intervalOf(op->getOperand(1));
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return Interval{a->low + b->low, a->high + b->high - 1};
  if (isa<arith::SubIOp>(op))
    return Interval{a->low - b->high + 1, a->high - b->low};
  int64_t corners[] = {a->low * b->low, a->low * (b->high - 1),
                       (a->high - 1) * b->low, (a->high - 1) * (b->high - 1)};
  return Interval{*std::min_element(corners, corners + 4),
                  *std::max_element(corners, corners + 4) + 1};
}

} // namespace

FailureOr<heed::HostParams> heed::numberParams(ModuleOp module) {
  HostParams params;
  Builder builder(module.getContext());
  DenseMap<Attribute, int64_t> numbers;
  WalkResult walk = module.walk([&](attn::ParamOp op) {
    HostParam param;
    SmallVector<std::string> replacements;
    SmallVector<int64_t> bounds;
    for (Value index : op.getIndices()) {
      std::optional<Interval> interval = intervalOf(index);
      if (!interval) {
        op.emitError("the range of the loop variable in this parameter's name "
                     "is not constant");
        return WalkResult::interrupt();
      }
      if (interval->high - interval->low == 1) {
        replacements.push_back(format("{}", interval->low));
        continue;
      }
      replacements.push_back(format("{{{}}}", param.indices.size()));
      param.indices.push_back(index);
      bounds.append({interval->low, interval->high});
    }
    SmallVector<Attribute> names;
    for (Attribute name : op.getNames())
      names.push_back(builder.getStringAttr(
          fillParamName(cast<StringAttr>(name).getValue(), replacements)));
    auto type = cast<ShapedType>(op.getResult().getType());
    SmallVector<int64_t> sizes;
    SmallVector<Attribute> extents;
    auto dims = op->getAttrOfType<ArrayAttr>(attn::kDimsAttr);
    for (auto [axis, size] : llvm::enumerate(type.getShape())) {
      bool isDynamic = ShapedType::isDynamic(size);
      sizes.push_back(isDynamic ? -1 : size);
      extents.push_back(
          dims && axis < dims.size()
              ? dims[axis]
              : builder.getStringAttr(isDynamic ? "?" : format("{}", size)));
    }
    NamedAttrList entry;
    entry.set("names", builder.getArrayAttr(names));
    entry.set("bounds", builder.getDenseI64ArrayAttr(bounds));
    entry.set("type", TypeAttr::get(type.getElementType()));
    entry.set("extents", builder.getArrayAttr(extents));
    entry.set("sizes", builder.getDenseI64ArrayAttr(sizes));
    Attribute key = entry.getDictionary(module.getContext());
    auto [found, isNew] = numbers.try_emplace(key, params.table.size());
    if (isNew)
      params.table.push_back(key);
    param.number = found->second;
    params.ops[op] = std::move(param);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return params;
}
