//===- HostParams.cpp - numbers the parameters of a model -----------------===//
//
// Every `attn.param` of a module gets the number of an entry in a table that
// the runtime reads when it opens the weights. What its names hold is computed
// for every turn of the loops around it: no array is asked for that no turn
// reads.
//
//===----------------------------------------------------------------------===//

#include "passes/Host/HostParams.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "support/Format.h"

#include <set>

using namespace mlir;
using namespace heed;

namespace {

/// What the names of one parameter say in each turn of the loops around it.
class Numbers {
public:
  /// Fails with a diagnostic where they are not constant.
  static FailureOr<Numbers> of(attn::ParamOp op);

  /// The loops whose variables the names hold, outermost first.
  SmallVector<scf::ForOp> loops;
  /// The operands' values, turn after turn.
  SmallVector<SmallVector<int64_t>> turns;

  /// The range of each operand, half-open, if every combination of values in
  /// them is some turn's.
  std::optional<SmallVector<std::pair<int64_t, int64_t>>> ranges() const;

private:
  bool collectLoops(Value value, llvm::SmallPtrSetImpl<Operation *> &found);
  std::optional<int64_t> valueOf(Value value);
  LogicalResult turn(attn::ParamOp op, size_t depth);

  DenseMap<Value, int64_t> variables; // in this turn
};

/// More instances of a parameter than any model has.
constexpr size_t kMostTurns = 1 << 20;

bool Numbers::collectLoops(Value value,
                           llvm::SmallPtrSetImpl<Operation *> &found) {
  if (getConstantIntValue(value))
    return true;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument != loop.getInductionVar() ||
        !getConstantIntValue(loop.getLowerBound()) ||
        !getConstantIntValue(loop.getUpperBound()) ||
        !getConstantIntValue(loop.getStep()))
      return false;
    found.insert(loop);
    return true;
  }
  Operation *op = value.getDefiningOp();
  return op->getNumRegions() == 0 && op->getNumOperands() != 0 && isPure(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return collectLoops(operand, found);
         });
}

std::optional<int64_t> Numbers::valueOf(Value value) {
  if (auto constant = getConstantIntValue(value))
    return constant;
  if (auto known = variables.find(value); known != variables.end())
    return known->second;
  Operation *op = value.getDefiningOp();
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    auto number = valueOf(operand);
    if (!number)
      return std::nullopt;
    operands.push_back(IntegerAttr::get(operand.getType(), *number));
  }
  SmallVector<OpFoldResult> folded;
  if (failed(op->fold(operands, folded)) || folded.size() != 1)
    return std::nullopt;
  if (auto same = dyn_cast<Value>(folded[0]))
    return valueOf(same);
  auto number = dyn_cast<IntegerAttr>(cast<Attribute>(folded[0]));
  return number ? std::optional(number.getValue().getSExtValue())
                : std::nullopt;
}

LogicalResult Numbers::turn(attn::ParamOp op, size_t depth) {
  if (depth < loops.size()) {
    scf::ForOp loop = loops[depth];
    int64_t low = *getConstantIntValue(loop.getLowerBound()),
            high = *getConstantIntValue(loop.getUpperBound()),
            step = *getConstantIntValue(loop.getStep());
    for (int64_t at = low; at < high; at += step) {
      variables[loop.getInductionVar()] = at;
      if (failed(turn(op, depth + 1)))
        return failure();
    }
    return success();
  }
  if (turns.size() == kMostTurns)
    return op.emitError(format(
        "the loops around this parameter have more than {} turns", kMostTurns));
  SmallVector<int64_t> &numbers = turns.emplace_back();
  for (Value index : op.getIndices()) {
    auto number = valueOf(index);
    if (!number)
      return op.emitError("a number in this parameter's name is not constant");
    numbers.push_back(*number);
  }
  return success();
}

FailureOr<Numbers> Numbers::of(attn::ParamOp op) {
  Numbers numbers;
  llvm::SmallPtrSet<Operation *, 4> found;
  for (Value index : op.getIndices())
    if (!numbers.collectLoops(index, found))
      return op.emitError("the range of the loop variable in this parameter's "
                          "name is not constant");
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    if (found.contains(loop))
      numbers.loops.insert(numbers.loops.begin(), loop);
  if (failed(numbers.turn(op, 0)))
    return failure();
  return numbers;
}

std::optional<SmallVector<std::pair<int64_t, int64_t>>>
Numbers::ranges() const {
  std::set<SmallVector<int64_t>> different(turns.begin(), turns.end());
  SmallVector<std::pair<int64_t, int64_t>> result;
  size_t product = 1;
  for (size_t k = 0; !turns.empty() && k < turns[0].size(); ++k) {
    auto [low, high] = std::pair(turns[0][k], turns[0][k] + 1);
    for (const auto &numbers : different) {
      low = std::min(low, numbers[k]);
      high = std::max(high, numbers[k] + 1);
    }
    result.emplace_back(low, high);
    if (size_t(high - low) > different.size())
      return std::nullopt;
    product *= high - low;
  }
  return product == different.size() || turns.empty() ? std::optional(result)
                                                      : std::nullopt;
}

/// The entry of \p op for names in which \p replacements stand, and the rest
/// are variables in \p bounds.
Attribute entryOf(attn::ParamOp op, ArrayRef<std::string> replacements,
                  ArrayRef<int64_t> bounds) {
  Builder builder(op.getContext());
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
  return entry.getDictionary(op.getContext());
}

/// One entry with the ranges of what its names hold; where not every number in
/// them is read, one for each turn of the loops.
FailureOr<SmallVector<Attribute>> entriesOf(attn::ParamOp op,
                                            HostParam &param) {
  auto numbers = Numbers::of(op);
  if (failed(numbers))
    return failure();
  SmallVector<Attribute> entries;
  SmallVector<std::string> replacements;
  if (auto ranges = numbers->ranges()) {
    SmallVector<int64_t> bounds;
    // A loop without turns reads nothing.
    ranges->resize(op.getIndices().size(), {0, 0});
    for (auto [operand, range] : llvm::enumerate(*ranges)) {
      if (range.second - range.first == 1) {
        replacements.push_back(format("{}", range.first));
        continue;
      }
      replacements.push_back(format("{{{}}}", param.indices.size()));
      param.indices.push_back(operand);
      bounds.append({range.first, range.second});
    }
    entries.push_back(entryOf(op, replacements, bounds));
    return entries;
  }
  for (ArrayRef<int64_t> turn : numbers->turns) {
    replacements.clear();
    for (int64_t number : turn)
      replacements.push_back(format("{}", number));
    entries.push_back(entryOf(op, replacements, {}));
  }
  param.loops = std::move(numbers->loops);
  return entries;
}

} // namespace

FailureOr<HostParams> heed::numberParams(ModuleOp module) {
  HostParams params;
  DenseMap<Attribute, int64_t> numbers;
  DenseSet<int64_t> inCalls;
  WalkResult walk = module.walk([&](attn::ParamOp op) {
    HostParam param;
    auto entries = entriesOf(op, param);
    if (failed(entries))
      return WalkResult::interrupt();
    auto [found, isNew] = numbers.try_emplace(
        ArrayAttr::get(op.getContext(), *entries), params.table.size());
    if (isNew)
      llvm::append_range(params.table, *entries);
    param.number = found->second;
    param.count = entries->size();
    if (!op->getParentOfType<func::FuncOp>()->hasAttr(attn::kInitAttr))
      for (int64_t k = 0; k < param.count; ++k)
        inCalls.insert(param.number + k);
    params.ops[op] = std::move(param);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  for (auto [number, entry] : llvm::enumerate(params.table))
    if (!inCalls.contains(number)) {
      NamedAttrList marked(cast<DictionaryAttr>(entry));
      marked.set("init", UnitAttr::get(module.getContext()));
      entry = marked.getDictionary(module.getContext());
    }
  return params;
}
