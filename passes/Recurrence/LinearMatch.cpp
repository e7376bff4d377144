//===- LinearMatch.cpp - a linear attention that was found ----------------===//
#include "passes/Recurrence/LinearMatch.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {

SmallVector<unsigned> LinearMatch::stateVars() const {
  SmallVector<unsigned> vars(batch);
  vars.append(contract);
  vars.append(value);
  return vars;
}

SmallVector<unsigned> LinearMatch::outputVars() const {
  SmallVector<unsigned> vars(batch);
  vars.push_back(step);
  vars.append(value);
  return vars;
}

namespace {

/// An operand, and what loop variable stands at each axis.
struct Operand {
  Value tensor;
  SmallVector<unsigned> vars;
};

/// The tensor that \p element reads, if it reads each of its elements where the
/// loops are. Steps may be fewer than the tensor has.
std::optional<Operand> plainRead(Exprs &exprs, ExprRef element, unsigned step) {
  if (element->kind != ExprKind::Read)
    return std::nullopt;
  Operand operand{element->value, {}};
  for (auto [axis, at] : llvm::enumerate(element->operands)) {
    if (at->kind != ExprKind::Var ||
        llvm::is_contained(operand.vars, at->number) ||
        (at->number != step &&
         exprs.extentOf(element->value, axis) != exprs.extent(at->number)))
      return std::nullopt;
    operand.vars.push_back(at->number);
  }
  return operand;
}

Operand makeOperand(OpBuilder &b, Location loc, Exprs &exprs, ExprRef element,
                    const LinearMatch &match) {
  if (std::optional<Operand> plain = plainRead(exprs, element, match.step))
    return *plain;
  SmallVector<unsigned> order(match.batch), vars;
  order.push_back(match.step);
  order.append(match.contract);
  order.append(match.value);
  for (unsigned v : order)
    if (element->uses(v))
      vars.push_back(v);
  return {writeTensor(b, loc, exprs, element, vars), vars};
}

} // namespace

attn::LinearAttentionOp buildLinearAttention(OpBuilder &b, Location loc,
                                             Exprs &exprs,
                                             const LinearMatch &match) {
  SmallVector<unsigned> loops(match.batch);
  loops.push_back(match.step);
  loops.append(match.contract);
  loops.append(match.value);
  SmallVector<Value> sizes, operands;
  SmallVector<Attribute> maps;
  for (unsigned v : loops)
    sizes.push_back(writeExtent(b, loc, exprs.extent(v)));
  for (ExprRef element :
       {match.query, match.key, match.values, match.decay, match.erase}) {
    if (!element) {
      operands.emplace_back();
      continue;
    }
    Operand operand = makeOperand(b, loc, exprs, element, match);
    SmallVector<unsigned> dims;
    for (unsigned v : operand.vars)
      dims.push_back(llvm::find(loops, v) - loops.begin());
    operands.push_back(operand.tensor);
    maps.push_back(AffineMapAttr::get(AffineMap::getMultiDimMapWithTargets(
        loops.size(), dims, b.getContext())));
  }
  auto typeOf = [&](ArrayRef<unsigned> vars) {
    SmallVector<int64_t> shape;
    for (unsigned v : vars)
      shape.push_back(
          Exprs::constantInt(exprs.extent(v)).value_or(ShapedType::kDynamic));
    return RankedTensorType::get(shape, b.getF32Type());
  };
  Type state = match.start ? match.start.getType() : typeOf(match.stateVars());
  return attn::LinearAttentionOp::create(
      b, loc, typeOf(match.outputVars()), state, sizes, operands[0],
      operands[1], operands[2], operands[3], operands[4], match.start,
      b.getI64IntegerAttr(match.batch.size()),
      b.getI64IntegerAttr(match.contract.size()),
      b.getI64IntegerAttr(match.value.size()), b.getArrayAttr(maps),
      match.before != mutated("raise-linear-attention.other-state")
          ? b.getUnitAttr()
          : UnitAttr(),
      match.fresh ? b.getUnitAttr() : UnitAttr());
}

Value reorderAxes(OpBuilder &b, Location loc, Exprs &exprs, Value state,
                  ArrayRef<unsigned> axes, bool back) {
  if (llvm::is_sorted(axes))
    return state;
  SmallVector<unsigned> vars, order;
  SmallVector<ExprRef> at;
  exprs.indexVars(state, vars, at);
  order.resize(axes.size());
  for (auto [k, axis] : llvm::enumerate(axes)) {
    // The result's axis k is the state's axis `axis`.
    order[back ? axis : k] = vars[back ? k : axis];
  }
  return writeTensor(b, loc, exprs, exprs.read(state, at), order);
}

} // namespace heed
