//===- NormalForm.cpp - expressions to sums of products -------------------===//
#include "passes/Algebra/NormalForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace heed {

NormalForm::NormalForm(Exprs &exprs, std::function<ExprRef(ExprRef)> expand,
                       Case known, const llvm::SetVector<ExprRef> &positive)
    : exprs(exprs), expand(std::move(expand)), known(std::move(known)),
      positive(positive), used(unsigned(Axiom::Count)),
      nodesThen(exprs.size()) {
  auto &semantics = APFloat::IEEEsingle();
  nan = exprs.constant(FloatAttr::get(real(), APFloat::getQNaN(semantics)));
  infinite = exprs.constant(FloatAttr::get(real(), APFloat::getInf(semantics)));
}

bool NormalForm::isTooLarge(size_t more) {
  work += more;
  return tooLarge |=
         work > Terms::most || exprs.size() - nodesThen > Terms::mostNodes;
}

ExprRef NormalForm::of(ExprRef e) {
  if (e->type.isInteger(1)) {
    ExprRef result = condition(e);
    return isTooLarge() ? nullptr : result;
  }
  Terms sum = terms(e);
  simplify(sum, /*dropZeros=*/true);
  ExprRef result = reify(sum);
  return isTooLarge() ? nullptr : result;
}

ExprRef NormalForm::node(StringRef name, Type type, ArrayRef<ExprRef> operands,
                         StringRef text) {
  NamedAttrList attrs;
  if (!text.empty())
    attrs.append("value", StringAttr::get(exprs.context, text));
  return exprs.op(OperationName(name, exprs.context),
                  attrs.getDictionary(exprs.context), type, operands);
}

const Terms &NormalForm::terms(ExprRef e) {
  auto known = done.find(e);
  if (known != done.end())
    return known->second;
  Terms result = isTooLarge() ? number(Fraction(0, 1), true) : compute(e);
  return done[e] = std::move(result);
}

Terms NormalForm::compute(ExprRef e) {
  switch (e->kind) {
  case ExprKind::Constant:
    return constant(e);
  case ExprKind::Var:
    return atom(e);
  case ExprKind::Scalar:
    return scalar(e);
  case ExprKind::Read: {
    if (ExprRef inner = expand(e))
      return terms(inner);
    SmallVector<ExprRef> at;
    for (auto [axis, index] : llvm::enumerate(e->operands)) {
      // What is read has an element.
      Terms extent = terms(exprs.extentOf(e->value, axis));
      ExprRef size = reify(extent);
      if (size != known.empty)
        positive.insert(size);
      Terms position = pushed(terms(index));
      simplify(position, /*dropZeros=*/true);
      at.push_back(reify(position));
      reads.insert({at.back(), size});
    }
    return atom(exprs.read(e->value, at));
  }
  case ExprKind::If:
    return select(condition(e->operand(0)), terms(e->operand(1)),
                  terms(e->operand(2)));
  case ExprKind::Reduce:
    return computeReduce(e);
  case ExprKind::Op:
    return computeOp(e);
  }
  llvm_unreachable("kind of expression");
}

/// The fraction between two positive ones that has the least denominator.
static Fraction simplest(const Fraction &low, const Fraction &high) {
  Fraction whole(presburger::floor(low), llvm::DynamicAPInt(1));
  if (presburger::compare(whole, low) == 0)
    return whole;
  Fraction next = whole + Fraction(1, 1);
  if (presburger::compare(next, high) <= 0)
    return next;
  auto inverse = [](const Fraction &f) { return Fraction(f.den, f.num); };
  return presburger::reduce(
      whole + inverse(simplest(inverse(presburger::reduce(high - whole)),
                               inverse(presburger::reduce(low - whole)))));
}

/// The number that \p value was rounded from: of all that round to it the one
/// with the least denominator. So 0.02 is 1 / 50, and 1 / 30 rounded is 1 / 30.
static Fraction exactly(APFloat value) {
  if (value.isZero())
    return Fraction(0, 1);
  bool negative = value.isNegative();
  value.clearSign();
  int digits = APFloat::semanticsPrecision(value.getSemantics());
  int exponent = ilogb(value) - digits; // of half a unit in the last place
  APFloat mantissa = scalbn(value, -exponent, APFloat::rmNearestTiesToEven);
  APSInt halves(128, /*isUnsigned=*/false);
  bool exact;
  mantissa.convertToInteger(halves, APFloat::rmTowardZero, &exact);
  llvm::DynamicAPInt middle(static_cast<const APInt &>(halves)), two(2),
      power(1);
  for (int k = std::abs(exponent); k > 0; --k)
    power *= two;
  auto scaled = [&](const llvm::DynamicAPInt &n) {
    return presburger::reduce(exponent >= 0
                                  ? Fraction(n * power, llvm::DynamicAPInt(1))
                                  : Fraction(n, power));
  };
  // Whole numbers are meant as they stand.
  Fraction itself = scaled(middle);
  Fraction result = itself.den == 1
                        ? itself
                        : simplest(scaled(middle - 1), scaled(middle + 1));
  return negative ? Fraction(-result.num, result.den) : result;
}

Terms NormalForm::constant(ExprRef e) {
  if (auto integer = dyn_cast<IntegerAttr>(e->attr))
    return number(Fraction(integer.getInt(), 1), /*isReal=*/false);
  auto attr = dyn_cast<FloatAttr>(e->attr);
  if (!attr)
    return atom(e);
  const APFloat value = attr.getValue();
  if (value.isNaN())
    return atom(nan);
  if (value.isInfinity())
    return value.isNegative() ? minusInfinity() : atom(infinite);
  double approximate = attr.getValueAsDouble();
  Fraction rational = exactly(value);
  if (rational.den != 1) {
    for (const auto &[other, itself] : numbers) {
      auto isClose = [&](double v) {
        return std::abs(approximate - v) <= std::abs(v) * 0x1p-22;
      };
      if (isClose(other))
        return number(itself, /*isReal=*/true);
      if (isClose(1 / other)) {
        note(Axiom::Reciprocal);
        return number(presburger::reduce(Fraction(itself.den, itself.num)),
                      /*isReal=*/true);
      }
    }
    numbers.emplace_back(approximate, rational);
  }
  return number(rational, /*isReal=*/true);
}

// A number of the host is what it was computed from.
Terms NormalForm::scalar(ExprRef e) {
  if (e == known.empty)
    return number(Fraction(0, 1), /*isReal=*/false);
  Operation *def = e->value.getDefiningOp();
  if (!def || def->getNumResults() != 1 || def->getNumRegions())
    return atom(e);
  bool plain = isa<arith::ArithDialect, math::MathDialect>(def->getDialect());
  auto extract = dyn_cast<tensor::ExtractOp>(def);
  if (!plain && !extract)
    return atom(e);
  SmallVector<ExprRef> operands;
  for (Value operand : def->getOperands())
    if (!isa<RankedTensorType>(operand.getType()))
      operands.push_back(exprs.scalar(operand));
  if (extract)
    return terms(exprs.read(extract.getTensor(), operands));
  ExprRef op =
      exprs.op(def->getName(), def->getAttrDictionary(), e->type, operands);
  return op == e ? atom(e) : terms(op);
}

Terms NormalForm::computeOp(ExprRef e) {
  StringRef name = e->name->getStringRef();
  bool isReal = isa<FloatType>(e->type);
  if (name == "arith.select")
    return select(condition(e->operand(0)), terms(e->operand(1)),
                  terms(e->operand(2)));
  if (name == "arith.uitofp" || name == "arith.sitofp" ||
      name == "arith.extui" || name == "arith.extsi")
    if (e->operand(0)->type.isInteger(1)) {
      bool minusOne = name == "arith.sitofp" || name == "arith.extsi";
      return select(condition(e->operand(0)),
                    number(Fraction(minusOne ? -1 : 1, 1), isReal),
                    number(Fraction(0, 1), isReal));
    }
  if (name == elementName) {
    note(Axiom::AbsentElement);
    Terms nothing;
    nothing.isReal = isReal;
    return select(condition(e->operand(1)), terms(e->operand(0)), nothing);
  }
  // The same number in a wider type, or in one that indices fit.
  if (name == "arith.extf" || name == "arith.index_cast" ||
      name == "arith.extsi")
    return terms(e->operand(0));

  SmallVector<Terms, 2> operands;
  for (ExprRef operand : e->operands)
    if (operand->type.isInteger(1))
      operands.push_back(atom(condition(operand)));
    else
      operands.push_back(terms(operand));
  if (name == "arith.addf" || name == "arith.addi")
    return add(operands[0], operands[1]);
  if (name == "arith.negf")
    return scale(operands[0], Fraction(-1, 1));
  if (name == "arith.subf" || name == "arith.subi")
    return add(operands[0], scale(operands[1], Fraction(-1, 1)));
  if (name == "arith.mulf" || name == "arith.muli")
    return multiply(operands[0], operands[1]);
  if (name == "arith.divf") {
    if (operands[1].isConstant())
      note(Axiom::Reciprocal);
    return multiply(operands[0], inverse(operands[1]));
  }
  if (name == "arith.floordivsi")
    return floorDivide(operands[0], operands[1]);
  if (name == "arith.maxsi" || name == "arith.minsi")
    return extremum(name == "arith.maxsi", operands);
  if (name == "math.exp" || name == "math.exp2")
    return exponential(operands[0], name == "math.exp2");
  if (name == "math.log")
    return logarithm(e, operands[0]);
  if (name == "math.rsqrt") {
    ExprRef root = exprs.op("math.sqrt", e->type, {e->operand(0)});
    return inverse(terms(root));
  }
  if (name == "arith.maximumf" || name == "arith.maxnumf")
    return maximum(e, operands);
  return opaque(e, operands);
}

Terms NormalForm::opaque(ExprRef op, ArrayRef<Terms> operands) {
  return byCases(operands, [&](ArrayRef<Terms> of) -> Terms {
    // What these functions make of 0, and of nothing.
    static constexpr StringLiteral odd[] = {
        "arith.truncf", "arith.sitofp", "math.sqrt", "math.tanh",
        "math.erf",     "math.sin",     "math.absf", "math.expm1"};
    if (of.size() == 1 && of[0].isConstant() && of[0].constant().num == 0 &&
        llvm::is_contained(odd, op->name->getStringRef())) {
      Terms zero = of[0];
      zero.isReal = true;
      return zero;
    }
    if (of.size() == 1 && isa<FloatType>(op->type) && of[0].terms.size() == 1 &&
        of[0].terms[0].guards.empty() && of[0].terms[0].powerOf(nan))
      return of[0];
    SmallVector<ExprRef> nodes;
    for (Terms operand : of) {
      simplify(operand, /*dropZeros=*/true);
      nodes.push_back(reify(operand));
    }
    // A rounding is told by the type it rounds to; all else is one arithmetic.
    Type type = isa<FloatType>(op->type) && !op->isOp("arith.truncf")
                    ? real()
                    : op->type;
    return atom(
        exprs.op(*op->name, cast<DictionaryAttr>(op->attr), type, nodes));
  });
}

/// -inf, whatever the terms are.
static bool isNothing(const Terms &of) {
  return of.present.size() == 1 && Exprs::isConstantInt(of.present[0], 0);
}

Terms NormalForm::maximum(ExprRef op, ArrayRef<Terms> operands) {
  for (int k : {0, 1})
    if (isNothing(operands[k]))
      return operands[1 - k];
  return opaque(op, operands);
}

// log 0 is -inf; what is NaN for some key is NaN.
Terms NormalForm::logarithm(ExprRef op, const Terms &of) {
  return byCases({of}, [&](ArrayRef<Terms> operands) -> Terms {
    Terms sum = operands[0];
    simplify(sum, /*dropZeros=*/true);
    if (sum.isConstant() && sum.constant().num == 0)
      return minusInfinity();
    if (sum.present.empty() && sum.terms.size() == 1 &&
        sum.terms[0].powerOf(nan) && !sum.terms[0].sums.empty() &&
        !sum.terms[0].guards.empty()) {
      const Term &term = sum.terms[0];
      return select(leaf(some(term.sums, both(term.guards))), atom(nan),
                    minusInfinity());
    }
    Terms log = opaque(op, {sum});
    if (log.terms.size() == 1 && log.terms[0].factors.size() == 1)
      logarithms[log.terms[0].factors[0].atom] = std::move(sum);
    return log;
  });
}

/// What \p log is the logarithm of, if that is a sum of exponentials, which is
/// not negative; \p log may be subtracted.
const Terms *NormalForm::sumOfExponentials(const Term &log) {
  bool isAtom = log.sums.empty() && log.guards.empty() &&
                log.factors.size() == 1 && log.factors[0].power == 1 &&
                log.coefficient.den == 1 &&
                (log.coefficient.num == 1 || log.coefficient.num == -1);
  auto of = isAtom ? logarithms.find(log.factors[0].atom) : logarithms.end();
  if (of == logarithms.end() || !of->second.present.empty())
    return nullptr;
  bool isPositive = llvm::all_of(of->second.terms, [](const Term &term) {
    return term.coefficient.num > 0 &&
           llvm::all_of(term.factors, [](const Power &factor) {
             return factor.atom->isOp("math.exp");
           });
  });
  return isPositive ? &of->second : nullptr;
}

/// Multiplies \p product by exp(\p term).
void NormalForm::multiplyByExponential(Term &product, const Term &term) {
  int sign = term.coefficient.num < 0 ? -1 : 1;
  Terms part;
  part.terms.push_back(term);
  part = scale(part, Fraction(sign, 1));
  product.multiply(node("math.exp", real(), {reify(part)}), sign);
}

// exp of a sum is the product of the exponentials.
Terms NormalForm::exponential(const Terms &of, bool base2) {
  if (base2) {
    note(Axiom::Exp2);
    APFloat ln2(0.693147180559945309f);
    return exponential(multiply(of, number(exactly(ln2), true)), false);
  }
  return byCases({of}, [&](ArrayRef<Terms> operands) {
    const Terms &sum = operands[0];
    Terms result = number(Fraction(1, 1), /*isReal=*/true);
    if (sum.terms.size() > 1)
      note(Axiom::RowMaximum);
    SmallVector<Terms, 1> logarithmsOf;
    Term &product = result.terms[0];
    for (const Term &term : sum.terms) {
      if (const Terms *of = sumOfExponentials(term)) {
        note(Axiom::LogSumExp);
        logarithmsOf.push_back(term.coefficient.num < 0 ? inverse(*of) : *of);
        continue;
      }
      for (ExprRef odd : {nan, infinite})
        if (term.powerOf(odd))
          product.multiply(odd, 1);
      if (term.powerOf(nan) || term.powerOf(infinite))
        continue;
      if (term.coefficient.num == 0)
        continue;
      multiplyByExponential(product, term);
    }
    if (!sum.present.empty()) {
      note(Axiom::ExcludedKey);
      for (ExprRef guard : sum.present)
        product.addGuard(guard);
    }
    simplify(result, /*dropZeros=*/false);
    for (const Terms &other : logarithmsOf)
      result = multiply(result, other);
    return result;
  });
}

/// The maximum that \p terms is, by itself; null where it is something else.
static ExprRef soleMaximum(const Terms &terms) {
  if (terms.terms.size() != 1 || !terms.present.empty())
    return nullptr;
  const Term &term = terms.terms[0];
  bool isSole = term.coefficient == Fraction(1, 1) && term.sums.empty() &&
                term.guards.empty() && term.factors.size() == 1 &&
                term.factors[0].power == 1 &&
                term.factors[0].atom->isReduceBy("arith.maximumf");
  return isSole ? term.factors[0].atom : nullptr;
}

/// What a maximum over \p vars is taken of, which grow where it is a maximum.
Terms NormalForm::underMaximum(Terms inner, SmallVectorImpl<unsigned> &vars) {
  // A maximum of maxima is one over all.
  if (ExprRef maximum = soleMaximum(inner)) {
    inner = terms(exprs.open(maximum, vars));
    simplify(inner, /*dropZeros=*/true);
  }
  // x where x is not -inf, else -inf, is x.
  if (!inner.present.empty()) {
    Terms finite = inner;
    finite.present.clear();
    llvm::erase(inner.present, negate(isMinusInfinity(std::move(finite))));
  }
  return inner;
}

Terms NormalForm::computeReduce(ExprRef e) {
  SmallVector<unsigned> vars;
  ExprRef body = exprs.open(e, vars);
  bool isEmpty = false;
  for (unsigned v : vars) {
    isEmpty |= isEmptyRange(v);
  }
  Terms inner = terms(body);
  bool isReal = isa<FloatType>(e->type);
  if (e->isSum()) {
    if (isEmpty)
      return Terms{{}, {}, isReal};
    if (inner.present.empty()) {
      for (Term &term : inner.terms)
        term.sums.append(vars);
      inner.isReal = isReal;
      if (vars.size() && inner.terms.size() > 1)
        note(Axiom::Distribute);
      simplify(inner, /*dropZeros=*/true);
      return inner;
    }
  }
  bool isMaximum =
      e->isReduceBy("arith.maximumf") || e->isReduceBy("arith.maxnumf");
  if (isMaximum && isEmpty)
    return minusInfinity();
  simplify(inner, /*dropZeros=*/true);
  if (isMaximum)
    inner = underMaximum(std::move(inner), vars);
  // Of what is the same for all, which are one at least.
  bool isNaN = inner.terms.size() == 1 && inner.present.empty() &&
               inner.terms[0].guards.empty() && inner.terms[0].powerOf(nan);
  if (isMaximum && (inner.isConstant() || isNaN || isNothing(inner)))
    return inner;
  // The node stands for the body and its variables in a fixed order.
  Term shape;
  shape.sums.assign(vars.begin(), vars.end());
  ExprRef form = reify(inner);
  shape.factors.push_back({form, 1});
  ExprRef reduced = bind(
      isMaximum ? "arith.maximumf" : e->name->getStringRef(),
      binderOrder(shape),
      [&](const DenseMap<unsigned, ExprRef> &to) {
        return exprs.substitute(form, to);
      },
      form->depth);
  if (!isMaximum)
    return atom(reduced);
  if (known.row && known.dead && known.row->maximum == reduced)
    return minusInfinity();
  Terms weight = exponential(inner, /*base2=*/false);
  if (weight.terms.size() == 1 && weight.terms[0].sums.empty()) {
    weight.terms[0].sums.assign(vars.begin(), vars.end());
    maxima[reduced] = weight.terms[0];
  }
  return atom(reduced);
}

} // namespace heed
