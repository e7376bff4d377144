//===- StepPower.cpp - a power of the steps between two -------------------===//
#include "passes/Recurrence/StepPower.h"
#include "passes/Algebra/Products.h"

using namespace mlir;

namespace heed {

/// By how much \p number is less than query - key.
static std::optional<int64_t> stepsBetween(Exprs &exprs, ExprRef number,
                                           unsigned query, unsigned key) {
  if (!number->isOp("arith.sitofp"))
    return std::nullopt;
  ExprRef count = Exprs::stripExtension(number->operand(0));
  int64_t less = 0;
  if (count->isOp("arith.subi") && Exprs::constantInt(count->operand(1))) {
    less = *Exprs::constantInt(count->operand(1));
    count = Exprs::stripExtension(count->operand(0));
  }
  bool isBetween =
      count->isOp("arith.subi") &&
      Exprs::stripExtension(count->operand(0)) == exprs.var(query) &&
      Exprs::stripExtension(count->operand(1)) == exprs.var(key);
  return isBetween ? std::optional(less) : std::nullopt;
}

/// Likewise of the negative of a number, if \p number is one: the other way
/// round, or less than 0.
static std::optional<int64_t> stepsBack(Exprs &exprs, ExprRef number,
                                        unsigned query, unsigned key) {
  if (number->isOp("arith.negf"))
    return stepsBetween(exprs, number->operand(0), query, key);
  if (!number->isOp("arith.sitofp"))
    return std::nullopt;
  ExprRef count = Exprs::stripExtension(number->operand(0));
  if (!count->isOp("arith.subi"))
    return std::nullopt;
  ExprRef from = Exprs::stripExtension(count->operand(0)),
          to = Exprs::stripExtension(count->operand(1));
  bool isBack = (from == exprs.var(key) && to == exprs.var(query)) ||
                (Exprs::isConstantInt(from, 0) && to->isOp("arith.subi") &&
                 Exprs::stripExtension(to->operand(0)) == exprs.var(query) &&
                 Exprs::stripExtension(to->operand(1)) == exprs.var(key));
  return isBack ? std::optional<int64_t>(0) : std::nullopt;
}

/// exp(g (i - j)), whatever the order and the sign: exp(g) to that power.
static std::optional<StepPower> matchRate(Exprs &exprs, ExprRef exponent,
                                          unsigned query, unsigned key) {
  bool isNegative = exponent->isOp("arith.negf");
  Product product;
  flatten(exprs, isNegative ? exponent->operand(0) : exponent, product);
  std::optional<int64_t> less;
  for (unsigned k = 0; k < product.over.size() && !less; ++k) {
    ExprRef e = product.over[k];
    less = stepsBetween(exprs, e, query, key);
    if (!less && (less = stepsBack(exprs, e, query, key)))
      isNegative = !isNegative;
    if (less)
      product.over.erase(product.over.begin() + k);
  }
  if (!less)
    return std::nullopt;
  ExprRef rate = multiply(exprs, product.over, product.under);
  if (isNegative)
    rate = exprs.op("arith.negf", rate->type, {rate});
  return StepPower{exprs.op("math.exp", rate->type, {rate}), *less, true};
}

/// The number that \p e is, computed in f64.
static std::optional<double> numberOf(ExprRef e) {
  if (e->isOp("math.exp") || e->isOp("arith.negf")) {
    std::optional<double> inner = numberOf(e->operand(0));
    if (!inner)
      return std::nullopt;
    return e->isOp("math.exp") ? std::exp(*inner) : -*inner;
  }
  return Exprs::constantFloat(e);
}

/// A power that was computed in f64, of a number that the model says, as one of
/// that number in f32, whose error r of it adds up: n r b^n after n steps, at
/// most r / (e (1 - b)).
static std::optional<StepPower> inSingle(Exprs &exprs, StepPower power) {
  std::optional<double> base = numberOf(power.base);
  if (!base || !std::isfinite(*base))
    return std::nullopt;
  constexpr double most = 2e-6;
  float rounded = *base;
  if (rounded != *base && std::abs(rounded / *base - 1) >
                              most * std::exp(1.0) * (1 - std::abs(*base)))
    return std::nullopt;
  Type type = Float32Type::get(exprs.context);
  return StepPower{exprs.constant(FloatAttr::get(type, rounded)), power.less,
                   false};
}

std::optional<StepPower> matchStepPower(Exprs &exprs, ExprRef factor,
                                        unsigned query, unsigned key) {
  if (factor->isOp("arith.truncf") && factor->operand(0)->type.isF64()) {
    std::optional<StepPower> exact =
        matchStepPower(exprs, factor->operand(0), query, key);
    return exact ? inSingle(exprs, *exact) : std::nullopt;
  }
  std::optional<StepPower> power;
  if (factor->isOp("math.powf")) {
    if (std::optional<int64_t> less =
            stepsBetween(exprs, factor->operand(1), query, key))
      power = {factor->operand(0), *less, false};
  } else if (factor->isOp("math.exp")) {
    power = matchRate(exprs, factor->operand(0), query, key);
  }
  if (power && (power->base->uses(query) || power->base->uses(key)))
    return std::nullopt;
  return power;
}

} // namespace heed
