//===- SymbolicDims.cpp - extents as polynomials of a model's sizes -------===//
#include "dialects/Attn/SymbolicDims.h"
#include "dialects/Attn/Dialect.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace mlir;
using namespace heed::attn;

//===----------------------------------------------------------------------===//
// Where an extent comes from
//===----------------------------------------------------------------------===//

namespace {

class Tracer {
public:
  ExtentSource trace(Value shaped, int64_t axis) {
    auto type = cast<ShapedType>(shaped.getType());
    if (!type.isDynamicDim(axis))
      return {type.getDimSize(axis), {}, {}, -1};
    if (auto argument = dyn_cast<BlockArgument>(shaped)) {
      auto loop =
          dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp());
      // Where a loop is looked into, what it carries stands for itself.
      if (loop && !llvm::is_contained(open, loop))
        return carried(loop, argument.getArgNumber() - 1, axis, shaped);
      return at(shaped, axis);
    }
    Operation *op = shaped.getDefiningOp();
    unsigned result = cast<OpResult>(shaped).getResultNumber();
    if (auto empty = dyn_cast<tensor::EmptyOp>(op))
      return size(empty.getDynamicSize(axis));
    if (auto alloc = dyn_cast<memref::AllocOp>(op))
      return size(alloc.getDynamicSizes()[type.getDynamicDimIndex(axis)]);
    if (isa<tensor::CastOp, memref::CastOp>(op))
      return trace(op->getOperand(0), axis);
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      return size(cast<Value>(expand.getMixedOutputShape()[axis]));
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
      ReassociationIndices group = collapse.getReassociationIndices()[axis];
      return group.size() == 1 ? trace(collapse.getSrc(), group.front())
                               : at(shaped, axis);
    }
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      llvm::SmallBitVector dropped = slice.getDroppedDims();
      SmallVector<OpFoldResult> kept;
      for (auto [k, extent] : llvm::enumerate(slice.getMixedSizes()))
        if (!dropped[k])
          kept.push_back(extent);
      return size(cast<Value>(kept[axis]));
    }
    if (isa<SoftmaxOp, LogSoftmaxOp>(op))
      return trace(op->getOperand(0), axis);
    if (auto attention = dyn_cast<AttentionOp>(op)) {
      // The log-sum-exp and the weights have the first loop dims as axes.
      unsigned dim = shaped == attention.getOutput()
                         ? attention.outputMap().getDimPosition(axis)
                         : axis;
      return size(attention.getSizes()[dim]);
    }
    if (auto destination = dyn_cast<DestinationStyleOpInterface>(op);
        destination && destination.hasPureTensorSemantics())
      return trace(destination.getTiedOpOperand(op->getResult(result))->get(),
                   axis);
    if (auto loop = dyn_cast<scf::ForOp>(op);
        loop && !llvm::is_contained(open, loop))
      return carried(loop, result, axis, shaped);
    if (auto choice = dyn_cast<scf::IfOp>(op)) {
      ExtentSource yes = trace(choice.thenYield().getOperand(result), axis);
      if (yes == trace(choice.elseYield().getOperand(result), axis))
        return yes;
    }
    return at(shaped, axis);
  }

private:
  static ExtentSource at(Value tensor, int64_t axis) {
    return {std::nullopt, {}, tensor, axis};
  }
  static ExtentSource size(Value size) {
    if (std::optional<int64_t> number = getConstantIntValue(size))
      return {*number, {}, {}, -1};
    return {std::nullopt, size, {}, -1};
  }

  /// What a loop carries keeps its extents if every iteration yields the same
  /// ones.
  ExtentSource carried(scf::ForOp loop, unsigned number, int64_t axis,
                       Value self) {
    ExtentSource before = trace(loop.getInitArgs()[number], axis);
    open.push_back(loop);
    ExtentSource after = trace(loop.getYieldedValues()[number], axis);
    if (after.size)
      if (auto dim = after.size.getDefiningOp<tensor::DimOp>();
          dim && dim.getConstantIndex() &&
          dim.getSource() == loop.getRegionIterArg(number))
        after = trace(dim.getSource(), *dim.getConstantIndex());
    open.pop_back();
    if (after == before || after == at(loop.getRegionIterArg(number), axis))
      return before;
    return at(self, axis);
  }

  SmallVector<scf::ForOp> open;
};

/// The name that a function's attributes give to a dim of an argument.
StringAttr nameOf(Value value, int64_t axis) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function = argument ? dyn_cast_or_null<FunctionOpInterface>(
                                 argument.getOwner()->getParentOp())
                           : FunctionOpInterface();
  if (!function || !argument.getOwner()->isEntryBlock())
    return {};
  unsigned number = argument.getArgNumber();
  if (axis < 0)
    return function.getArgAttrOfType<StringAttr>(number, kNameAttr);
  auto names = function.getArgAttrOfType<ArrayAttr>(number, kDimsAttr);
  return names && axis < int64_t(names.size())
             ? dyn_cast<StringAttr>(names[axis])
             : StringAttr();
}

} // namespace

ExtentSource heed::attn::traceExtent(Value shaped, int64_t axis) {
  return Tracer().trace(shaped, axis);
}

Value heed::attn::makeExtent(OpBuilder &b, Location loc, Value tensor,
                             int64_t axis) {
  ExtentSource source = traceExtent(tensor, axis);
  if (source.fixed)
    return arith::ConstantIndexOp::create(b, loc, *source.fixed);
  if (source.size)
    return source.size;
  return tensor::DimOp::create(b, loc, source.tensor, source.axis);
}

//===----------------------------------------------------------------------===//
// Polynomials
//===----------------------------------------------------------------------===//

SizePolynomial::SizePolynomial(int64_t constant) {
  add({}, llvm::DynamicAPInt(constant));
}

SizePolynomial SizePolynomial::symbol(unsigned number) {
  SizePolynomial result;
  result.add({number}, llvm::DynamicAPInt(1));
  return result;
}

void SizePolynomial::add(const Product &product,
                         const llvm::DynamicAPInt &coefficient) {
  auto [at, isNew] = coefficients.try_emplace(product, coefficient);
  if (!isNew)
    at->second += coefficient;
  if (at->second == 0)
    coefficients.erase(at);
}

SizePolynomial &SizePolynomial::operator+=(const SizePolynomial &other) {
  for (auto &[product, coefficient] : other.coefficients)
    add(product, coefficient);
  return *this;
}

SizePolynomial &SizePolynomial::operator-=(const SizePolynomial &other) {
  for (auto &[product, coefficient] : other.coefficients)
    add(product, -coefficient);
  return *this;
}

SizePolynomial SizePolynomial::operator*(const SizePolynomial &other) const {
  SizePolynomial result;
  for (auto &[left, a] : coefficients)
    for (auto &[right, b] : other.coefficients) {
      Product product;
      std::merge(left.begin(), left.end(), right.begin(), right.end(),
                 std::back_inserter(product));
      result.add(product, a * b);
    }
  return result;
}

std::optional<int64_t> SizePolynomial::constant() const {
  if (coefficients.empty())
    return 0;
  auto &[product, coefficient] = *coefficients.begin();
  if (coefficients.size() > 1 || !product.empty() ||
      coefficient > std::numeric_limits<int64_t>::max() ||
      coefficient < std::numeric_limits<int64_t>::min())
    return std::nullopt;
  return int64_t(coefficient);
}

std::optional<SizePolynomial>
SizePolynomial::dividedBy(const SizePolynomial &divisor) const {
  if (divisor.coefficients.size() != 1)
    return std::nullopt;
  auto &[under, number] = *divisor.coefficients.begin();
  SizePolynomial quotient;
  for (auto &[over, coefficient] : coefficients) {
    if (coefficient % number != 0 ||
        !std::includes(over.begin(), over.end(), under.begin(), under.end()))
      return std::nullopt;
    Product rest;
    std::set_difference(over.begin(), over.end(), under.begin(), under.end(),
                        std::back_inserter(rest));
    quotient.add(rest, coefficient / number);
  }
  return quotient;
}

bool SizePolynomial::isNeverNegative() const {
  return llvm::all_of(coefficients,
                      [](auto &term) { return term.second >= 0; });
}

double SizePolynomial::estimate(double size) const {
  double total = 0;
  for (auto &[product, coefficient] : coefficients)
    total += double(int64_t(coefficient)) * std::pow(size, product.size());
  return total;
}

//===----------------------------------------------------------------------===//
// From the IR
//===----------------------------------------------------------------------===//

SizePolynomial SymbolicDims::intern(Symbol wanted) {
  auto isSame = [&](Symbol &known) {
    if (!wanted.op.empty())
      return known.op == wanted.op && known.operands == wanted.operands;
    if (known.value == wanted.value && known.axis == wanted.axis)
      return true;
    // Checks at the entry of a function make dims of one name equal.
    return wanted.name && wanted.axis >= 0 && known.axis >= 0 &&
           known.name == wanted.name &&
           known.value.getParentBlock() == wanted.value.getParentBlock();
  };
  unsigned number = llvm::find_if(symbols, isSame) - symbols.begin();
  if (number == symbols.size())
    symbols.push_back(std::move(wanted));
  return SizePolynomial::symbol(number);
}

SizePolynomial SymbolicDims::dim(Value shaped, int64_t axis) {
  ExtentSource source = traceExtent(shaped, axis);
  if (source.fixed)
    return *source.fixed;
  if (source.size)
    return size(source.size);
  Operation *op = source.tensor.getDefiningOp();
  if (auto collapse = dyn_cast_or_null<tensor::CollapseShapeOp>(op)) {
    SizePolynomial product = 1;
    ReassociationIndices group =
        collapse.getReassociationIndices()[source.axis];
    for (int64_t part : group)
      product *= dim(collapse.getSrc(), part);
    return product;
  }
  if (auto choice = dyn_cast_or_null<scf::IfOp>(op)) {
    unsigned result = cast<OpResult>(source.tensor).getResultNumber();
    SizePolynomial yes =
        dim(choice.thenYield().getOperand(result), source.axis);
    if (yes == dim(choice.elseYield().getOperand(result), source.axis))
      return yes;
  }
  return intern(
      {source.tensor, source.axis, nameOf(source.tensor, source.axis), {}, {}});
}

SizePolynomial SymbolicDims::elements(Value shaped) {
  SizePolynomial product = 1;
  for (int64_t axis = 0; axis < cast<ShapedType>(shaped.getType()).getRank();
       ++axis)
    product *= dim(shaped, axis);
  return product;
}

SizePolynomial SymbolicDims::size(Value value) {
  auto known = sizes.find(value);
  if (known != sizes.end())
    return known->second;
  SizePolynomial result;
  APInt number;
  Operation *op = value.getDefiningOp();
  if (matchPattern(value, m_ConstantInt(&number)) &&
      number.getSignificantBits() <= 64)
    result = number.getSExtValue();
  else if (isa_and_nonnull<tensor::DimOp, memref::DimOp>(op) &&
           getConstantIntValue(op->getOperand(1)) &&
           isa<RankedTensorType, MemRefType>(op->getOperand(0).getType()))
    result = dim(op->getOperand(0), *getConstantIntValue(op->getOperand(1)));
  else if (isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(op))
    result = size(op->getOperand(0));
  else if (isa_and_nonnull<arith::ArithDialect>(op ? op->getDialect()
                                                   : nullptr) &&
           op->getNumOperands() == 2 &&
           op->getOperandTypes().front() == value.getType())
    result = computed(op);
  else
    result = intern({value, -1, nameOf(value, -1), {}, {}});
  sizes[value] = result;
  return result;
}

SizePolynomial SymbolicDims::computed(Operation *op) {
  SizePolynomial left = size(op->getOperand(0)),
                 right = size(op->getOperand(1));
  // More terms than a person would write; nobody compares them.
  constexpr size_t kMaxTerms = 64;
  if (left.terms().size() * right.terms().size() <= kMaxTerms) {
    if (isa<arith::AddIOp>(op))
      return left + right;
    if (isa<arith::SubIOp>(op))
      return left - right;
    if (isa<arith::MulIOp>(op))
      return left * right;
    if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp,
            arith::CeilDivSIOp, arith::CeilDivUIOp>(op))
      if (std::optional<SizePolynomial> quotient = left.dividedBy(right))
        return *quotient;
  }
  return intern(
      {op->getResult(0), -1, {}, op->getName().getStringRef(), {left, right}});
}

//===----------------------------------------------------------------------===//
// To texts and ops
//===----------------------------------------------------------------------===//

std::string SymbolicDims::str(unsigned number) const {
  const Symbol &each = symbols[number];
  if (each.op.empty())
    return each.name ? each.name.str() : heed::format("?{}", number);
  static constexpr std::pair<StringLiteral, StringLiteral> signs[] = {
      {"arith.divsi", "//"}, {"arith.divui", "//"}, {"arith.floordivsi", "//"},
      {"arith.addi", "+"},   {"arith.subi", "-"},   {"arith.muli", "*"}};
  std::string left = str(each.operands[0]), right = str(each.operands[1]);
  for (auto [op, sign] : signs)
    if (each.op == op)
      return heed::format("(({}){}({}))", left, sign, right);
  return heed::format("{}({}, {})", each.op.drop_front(strlen("arith.")).str(),
                      left, right);
}

std::string SymbolicDims::str(const SizePolynomial &polynomial) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto &[product, coefficient] : polynomial.terms()) {
    bool isMinus = coefficient < 0;
    if (isMinus)
      os << (text.empty() ? "-" : " - ");
    else if (!text.empty())
      os << " + ";
    SmallVector<std::string> factors;
    for (unsigned symbol : product)
      factors.push_back(str(symbol));
    llvm::sort(factors);
    llvm::DynamicAPInt size = isMinus ? -coefficient : coefficient;
    if (factors.empty() || size != 1) {
      os << size;
      if (!factors.empty())
        os << "*";
    }
    llvm::interleave(factors, os, "*");
  }
  return text.empty() ? "0" : text;
}

Value SymbolicDims::write(OpBuilder &b, Location loc,
                          const SizePolynomial &polynomial) const {
  auto number = [&](const llvm::DynamicAPInt &value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, int64_t(value));
  };
  auto factor = [&](unsigned position) -> Value {
    const Symbol &each = symbols[position];
    if (!each.op.empty()) {
      OperationState state(loc, each.op);
      for (const SizePolynomial &operand : each.operands)
        state.addOperands(write(b, loc, operand));
      state.addTypes(b.getIndexType());
      return b.create(state)->getResult(0);
    }
    if (each.axis >= 0 && isa<MemRefType>(each.value.getType()))
      return memref::DimOp::create(b, loc, each.value, each.axis);
    if (each.axis >= 0)
      return tensor::DimOp::create(b, loc, each.value, each.axis);
    if (each.value.getType().isIndex())
      return each.value;
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), each.value);
  };
  Value sum;
  for (auto &[product, coefficient] : polynomial.terms()) {
    Value term;
    if (coefficient != 1 || product.empty())
      term = number(coefficient);
    for (unsigned position : product)
      term = term ? arith::MulIOp::create(b, loc, term, factor(position))
                        .getResult()
                  : factor(position);
    sum = sum ? arith::AddIOp::create(b, loc, sum, term).getResult() : term;
  }
  return sum ? sum : number(llvm::DynamicAPInt(0));
}
