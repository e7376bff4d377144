//===- MaskValues.cpp - a mask's expressions as numbers -------------------===//
#include "passes/Masks/MaskValues.h"
#include "dialects/Attn/Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace heed;

/// As many elements of a reduction are looked at.
static constexpr int64_t maxElements = 1 << 16;

static unsigned widthOf(Type type) {
  return type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 64;
}

MaskValue MaskValue::anything(Type type) {
  if (type.isInteger(1))
    return {0, 1, {}};
  return {llvm::minIntN(widthOf(type)), llvm::maxIntN(widthOf(type)), {}};
}

static MaskValue truth(bool value) { return MaskValue::integer(value); }

/// \p low and \p high, unless one of them leaves the type: then the number may
/// have wrapped.
static MaskValue within(Type type, std::optional<int64_t> low,
                        std::optional<int64_t> high) {
  MaskValue any = MaskValue::anything(type);
  if (!low || !high || *low < any.low || *high > any.high)
    return any;
  return {*low, *high, {}};
}

/// A real that was rounded to \p type.
static MaskValue rounded(Type type, double value) {
  if (type.isF64())
    return MaskValue::number(value);
  if (type.isF32())
    return MaskValue::number(float(value));
  return MaskValue::anything(type);
}

// ---- Scalar ops

static MaskValue multiply(Type type, const MaskValue &a, const MaskValue &b) {
  std::optional<int64_t> low, high;
  for (int64_t x : {a.low, a.high})
    for (int64_t y : {b.low, b.high}) {
      std::optional<int64_t> product = llvm::checkedMul(x, y);
      if (!product)
        return MaskValue::anything(type);
      low = low ? std::min(*low, *product) : *product;
      high = high ? std::max(*high, *product) : *product;
    }
  return within(type, low, high);
}

/// By a known positive number, all of which are monotone.
static MaskValue divide(StringRef name, Type type, const MaskValue &a,
                        const MaskValue &b) {
  if (!b.isSingle() || b.low <= 0)
    return MaskValue::anything(type);
  auto quotient = [&](int64_t x) {
    return name == "arith.ceildivsi"    ? llvm::divideCeilSigned(x, b.low)
           : name == "arith.floordivsi" ? llvm::divideFloorSigned(x, b.low)
                                        : x / b.low;
  };
  return within(type, quotient(a.low), quotient(a.high));
}

static MaskValue remainder(Type type, const MaskValue &a, const MaskValue &b) {
  if (!b.isSingle() || b.low <= 0)
    return MaskValue::anything(type);
  if (a.isSingle())
    return MaskValue::integer(a.low % b.low);
  return {a.low < 0 ? 1 - b.low : 0, a.high > 0 ? b.low - 1 : 0, {}};
}

static MaskValue compareIntegers(arith::CmpIPredicate predicate,
                                 const MaskValue &a, const MaskValue &b) {
  using P = arith::CmpIPredicate;
  auto less = [](const MaskValue &x, const MaskValue &y) -> MaskValue {
    return {x.high < y.low, x.low < y.high, {}};
  };
  auto negated = [](MaskValue t) -> MaskValue {
    return {1 - t.high, 1 - t.low, {}};
  };
  MaskValue equal{a.isSingle() && b.isSingle() && a.low == b.low,
                  a.low <= b.high && b.low <= a.high,
                  {}};
  switch (predicate) {
  case P::eq:
    return equal;
  case P::ne:
    return negated(equal);
  case P::slt:
    return less(a, b);
  case P::sge:
    return negated(less(a, b));
  case P::sgt:
    return less(b, a);
  case P::sle:
    return negated(less(b, a));
  default: // of unsigned ones those whose operands have no sign
    if (a.low < 0 || b.low < 0)
      return {0, 1, {}};
    return predicate == P::ult   ? less(a, b)
           : predicate == P::uge ? negated(less(a, b))
           : predicate == P::ugt ? less(b, a)
                                 : negated(less(b, a));
  }
}

static MaskValue compareReals(arith::CmpFPredicate predicate,
                              const MaskValue &a, const MaskValue &b) {
  if (!a.real || !b.real)
    return {0, 1, {}};
  return truth(
      arith::applyCmpPredicate(predicate, APFloat(*a.real), APFloat(*b.real)));
}

static std::optional<double> realOf(StringRef name,
                                    ArrayRef<MaskValue> operands) {
  SmallVector<double> x;
  for (const MaskValue &operand : operands) {
    if (!operand.real)
      return {};
    x.push_back(*operand.real);
  }
  return llvm::StringSwitch<std::function<std::optional<double>()>>(name)
      .Case("arith.addf", [&] { return x[0] + x[1]; })
      .Case("arith.subf", [&] { return x[0] - x[1]; })
      .Case("arith.mulf", [&] { return x[0] * x[1]; })
      .Case("arith.divf", [&] { return x[0] / x[1]; })
      .Case("arith.negf", [&] { return -x[0]; })
      .Case("math.absf", [&] { return std::fabs(x[0]); })
      .Case("math.floor", [&] { return std::floor(x[0]); })
      .Case("math.ceil", [&] { return std::ceil(x[0]); })
      .Cases({"arith.extf", "arith.truncf"}, [&] { return x[0]; })
      .Default([]() -> std::optional<double> { return {}; })();
}

/// A pure op of \p operands; anything of its type where it is not known here.
static MaskValue apply(StringRef name, DictionaryAttr attrs, Type type,
                       ArrayRef<MaskValue> x) {
  if (name == "arith.cmpi")
    return compareIntegers(
        attrs.getAs<arith::CmpIPredicateAttr>("predicate").getValue(), x[0],
        x[1]);
  if (name == "arith.cmpf")
    return compareReals(
        attrs.getAs<arith::CmpFPredicateAttr>("predicate").getValue(), x[0],
        x[1]);
  if (name == "arith.sitofp")
    return x[0].isSingle() ? rounded(type, double(x[0].low))
                           : MaskValue::anything(type);
  if (name == "arith.fptosi")
    return x[0].real && std::fabs(*x[0].real) < 0x1p62
               ? within(type, int64_t(*x[0].real), int64_t(*x[0].real))
               : MaskValue::anything(type);
  if (isa<FloatType>(type)) {
    std::optional<double> value = realOf(name, x);
    return value ? rounded(type, *value) : MaskValue::anything(type);
  }
  if (name == "arith.index_cast" || name == "arith.extsi" ||
      name == "arith.trunci")
    return within(type, x[0].low, x[0].high);
  if (name == "arith.extui" && x[0].low >= 0)
    return within(type, x[0].low, x[0].high);
  if (name == "arith.addi")
    return within(type, llvm::checkedAdd(x[0].low, x[1].low),
                  llvm::checkedAdd(x[0].high, x[1].high));
  if (name == "arith.subi")
    return within(type, llvm::checkedSub(x[0].low, x[1].high),
                  llvm::checkedSub(x[0].high, x[1].low));
  if (name == "arith.muli")
    return multiply(type, x[0], x[1]);
  if (name == "arith.floordivsi" || name == "arith.ceildivsi" ||
      name == "arith.divsi")
    return divide(name, type, x[0], x[1]);
  if (name == "arith.remsi")
    return remainder(type, x[0], x[1]);
  bool isTruth = type.isInteger(1);
  if (name == "arith.minsi" || (isTruth && name == "arith.andi"))
    return {std::min(x[0].low, x[1].low), std::min(x[0].high, x[1].high), {}};
  if (name == "arith.maxsi" || (isTruth && name == "arith.ori"))
    return {std::max(x[0].low, x[1].low), std::max(x[0].high, x[1].high), {}};
  if (isTruth && name == "arith.xori" && x[0].isSingle() && x[1].isSingle())
    return truth(x[0].low != x[1].low);
  if (name == "math.absi")
    return x[0].low >= 0 ? x[0]
           : x[0].high <= 0
               ? within(type, llvm::checkedSub<int64_t>(0, x[0].high),
                        llvm::checkedSub<int64_t>(0, x[0].low))
               : within(type, 0,
                        x[0].low == INT64_MIN
                            ? std::nullopt
                            : std::optional(std::max(-x[0].low, x[0].high)));
  return MaskValue::anything(type);
}

static MaskValue chosen(const MaskValue &condition, const MaskValue &yes,
                        const MaskValue &no) {
  if (condition.surely())
    return yes;
  if (condition.never())
    return no;
  MaskValue either{std::min(yes.low, no.low), std::max(yes.high, no.high), {}};
  if (yes.real && yes.real == no.real)
    either.real = yes.real;
  return either;
}

static MaskValue constantOf(Attribute attr) {
  if (auto number = dyn_cast_or_null<FloatAttr>(attr))
    return rounded(number.getType(), number.getValueAsDouble());
  if (auto number = dyn_cast_or_null<IntegerAttr>(attr))
    return MaskValue::integer(number.getType().isInteger(1)
                                  ? number.getValue().getBoolValue()
                                  : number.getValue().getSExtValue());
  return {INT64_MIN, INT64_MAX, {}};
}

// ---- Scalars outside of the attention

static Attribute attrOf(Value value, StringRef name) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function =
      argument
          ? dyn_cast_or_null<func::FuncOp>(argument.getOwner()->getParentOp())
          : nullptr;
  return function ? function.getArgAttr(argument.getArgNumber(), name)
                  : Attribute();
}

StringRef heed::dimNameOf(Value tensor, std::optional<int64_t> axis) {
  Attribute attr = attrOf(tensor, "attn.dims");
  if (auto param = tensor.getDefiningOp<attn::ParamOp>())
    attr = param->getAttr("attn.dims");
  auto names = dyn_cast_or_null<ArrayAttr>(attr);
  if (!names || !axis || *axis >= int64_t(names.size()))
    return {};
  StringRef name = cast<StringAttr>(names[*axis]).getValue();
  bool isName = !name.empty() && !llvm::isDigit(name[0]) &&
                llvm::all_of(name, [](char c) {
                  return llvm::isAlnum(c) || c == '_' || uint8_t(c) >= 0x80;
                });
  return isName ? name : StringRef();
}

MaskValue MaskValues::dim(Value tensor, std::optional<int64_t> axis) {
  auto known = call.dims.find(dimNameOf(tensor, axis));
  return known == call.dims.end() ? MaskValue{0, INT64_MAX, {}}
                                  : MaskValue::integer(known->second);
}

MaskValue MaskValues::of(Value scalar) {
  if (auto known = scalars.find(scalar); known != scalars.end())
    return known->second;
  MaskValue value = MaskValue::anything(scalar.getType());
  Operation *op = scalar.getDefiningOp();
  if (auto argument = dyn_cast<BlockArgument>(scalar)) {
    value = input(argument, scalar.getType(), {});
  } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    value = constantOf(constant.getValue());
  } else if (auto size = dyn_cast<tensor::DimOp>(op)) {
    value = dim(size.getSource(), size.getConstantIndex());
  } else if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    Exprs exprs(op->getContext());
    SmallVector<ExprRef> at;
    for (Value index : extract.getIndices())
      at.push_back(exprs.scalar(index));
    MaskValues inner(call); // these nodes live no longer than it
    inner.scalars = scalars;
    value = inner.of(exprs, exprs.read(extract.getTensor(), at), Variables());
    missing.insert(inner.missing.begin(), inner.missing.end());
  } else if (op->getNumRegions() == 0 && op->getNumResults() == 1) {
    SmallVector<MaskValue> operands;
    for (Value operand : op->getOperands())
      operands.push_back(of(operand));
    value = isa<arith::SelectOp>(op)
                ? chosen(operands[0], operands[1], operands[2])
                : apply(op->getName().getStringRef(), op->getAttrDictionary(),
                        scalar.getType(), operands);
  }
  scalars.insert_or_assign(scalar, value);
  return value;
}

// ---- Expressions

MaskValue MaskValues::of(Exprs &exprs, ExprRef expr,
                         const Variables &variables) {
  Memo memo;
  return visit(exprs, expr, variables, memo);
}

MaskValue MaskValues::visit(Exprs &exprs, ExprRef e, const Variables &variables,
                            Memo &memo) {
  if (auto known = memo.find(e); known != memo.end())
    return known->second;
  MaskValue value = compute(exprs, e, variables, memo);
  memo.insert_or_assign(e, value);
  return value;
}

MaskValue MaskValues::compute(Exprs &exprs, ExprRef e,
                              const Variables &variables, Memo &memo) {
  auto operand = [&](unsigned k) {
    return visit(exprs, e->operand(k), variables, memo);
  };
  switch (e->kind) {
  case ExprKind::Constant:
    return constantOf(e->attr);
  case ExprKind::Var: {
    auto known = variables.find(e->number);
    return known == variables.end() ? MaskValue::anything(e->type)
                                    : known->second;
  }
  case ExprKind::Scalar:
    return of(e->value);
  case ExprKind::Read:
    return read(exprs, e, variables, memo);
  case ExprKind::Reduce:
    return reduce(exprs, e, variables, memo);
  case ExprKind::If:
    break;
  case ExprKind::Op:
    if (e->isOp("arith.select"))
      break;
    SmallVector<MaskValue> operands;
    for (unsigned k = 0; k < e->operands.size(); ++k) {
      operands.push_back(operand(k));
      // What decides alone: the rest may be a read out of range.
      if (k == 0 && e->type.isInteger(1) &&
          ((e->isOp("arith.andi") && operands[0].never()) ||
           (e->isOp("arith.ori") && operands[0].surely())))
        return operands[0];
    }
    return apply(e->name->getStringRef(),
                 dyn_cast_or_null<DictionaryAttr>(e->attr), e->type, operands);
  }
  MaskValue condition = operand(0);
  MaskValue any = MaskValue::anything(e->type);
  return chosen(condition, condition.never() ? any : operand(1),
                condition.surely() ? any : operand(2));
}

MaskValue MaskValues::input(BlockArgument argument, Type type,
                            ArrayRef<MaskValue> at) {
  MaskValue any = MaskValue::anything(type);
  auto name = dyn_cast_or_null<StringAttr>(attrOf(argument, "attn.name"));
  if (!name)
    return any;
  auto known = call.inputs.find(name.getValue());
  if (known == call.inputs.end()) {
    Attribute byDefault = attrOf(argument, "attn.default");
    if (byDefault && at.empty())
      return constantOf(byDefault);
    missing.insert(name.str());
    return any;
  }
  if (!at.empty() && !at.back().isSingle())
    return any;
  const std::vector<double> &list = known->second;
  int64_t last = int64_t(list.size()) - 1;
  double value =
      list[at.empty() ? 0 : std::clamp<int64_t>(at.back().low, 0, last)];
  if (isa<FloatType>(type))
    return rounded(type, value);
  return type.isInteger(1) ? truth(value != 0)
                           : within(type, int64_t(value), int64_t(value));
}

MaskValue MaskValues::read(Exprs &exprs, ExprRef e, const Variables &variables,
                           Memo &memo) {
  SmallVector<MaskValue> at;
  for (ExprRef index : e->operands)
    at.push_back(visit(exprs, index, variables, memo));
  if (auto argument = dyn_cast<BlockArgument>(e->value);
      argument && attrOf(argument, "attn.name"))
    return input(argument, e->type, at);
  if (auto constant = e->value.getDefiningOp<arith::ConstantOp>()) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!elements)
      return MaskValue::anything(e->type);
    uint64_t place = 0;
    for (auto [index, size] : llvm::zip(at, elements.getType().getShape())) {
      if (!index.isSingle() || index.low < 0 || index.low >= size)
        return MaskValue::anything(e->type);
      place = place * size + index.low;
    }
    return constantOf(*(elements.getValues<Attribute>().begin() + place));
  }
  auto [entry, isNew] = expanded.try_emplace(e);
  if (isNew)
    entry->second = exprs.expand(e);
  if (ExprRef inner = entry->second)
    return visit(exprs, inner, variables, memo);
  missing.insert("what the model computes");
  return MaskValue::anything(e->type);
}

MaskValue MaskValues::reduce(Exprs &exprs, ExprRef e, Variables variables,
                             Memo &memo) {
  auto [entry, isNew] = opened.try_emplace(e);
  if (isNew) {
    SmallVector<unsigned, 2> vars;
    ExprRef body = exprs.open(e, vars);
    entry->second = {{vars.begin(), vars.end()}, body};
  }
  const auto &[vars, body] = entry->second;
  SmallVector<int64_t> sizes;
  int64_t count = 1;
  for (unsigned k = 0; k < vars.size(); ++k) {
    MaskValue size = visit(exprs, e->operand(k + 1), variables, memo);
    if (!size.isSingle() || size.low < 1 || size.low > maxElements ||
        (count *= size.low) > maxElements)
      return MaskValue::anything(e->type);
    sizes.push_back(size.low);
  }
  std::optional<MaskValue> total;
  for (int64_t turn = 0; turn < count; ++turn) {
    for (int64_t k = int64_t(vars.size()) - 1, rest = turn; k >= 0; --k) {
      variables.insert_or_assign(vars[k], MaskValue::integer(rest % sizes[k]));
      rest /= sizes[k];
    }
    Memo inner;
    MaskValue value = visit(exprs, body, variables, inner);
    total = total ? apply(e->name->getStringRef(),
                          dyn_cast_or_null<DictionaryAttr>(e->attr), e->type,
                          {*total, value})
                  : value;
  }
  return total.value_or(MaskValue::anything(e->type));
}
