//===- Normaliser.cpp - each normaliser, one after the other --------------===//
// A new one is a case of Attn_Map (Dialect.td) and an entry here, in the order
// of the cases. Absent keys have no weight, and a row without a key is empty:
// its outputs are 0, or `empty`.
#include "dialects/Attn/Normaliser.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heed::attn;

static const Normaliser normalisers[] = {
    {Map::Exp, /*excludesLowest=*/true, /*isShiftable=*/true,
     /*isNonNegative=*/true, /*takesExponential=*/true, /*isLinear=*/false,
     [](WeightArithmetic &a, Value score) { return a.exp(score); }},
    {Map::Sigmoid, /*excludesLowest=*/false, /*isShiftable=*/false,
     /*isNonNegative=*/true, /*takesExponential=*/true, /*isLinear=*/false,
     [](WeightArithmetic &a, Value score) {
       return a.divide(a.real(1), a.add(a.real(1), a.exp(a.negate(score))));
     }},
    {Map::Relu, /*excludesLowest=*/false, /*isShiftable=*/false,
     /*isNonNegative=*/true, /*takesExponential=*/false, /*isLinear=*/false,
     [](WeightArithmetic &a, Value score) {
       return a.larger(score, a.real(0));
     }},
    {Map::Identity, /*excludesLowest=*/false, /*isShiftable=*/false,
     /*isNonNegative=*/false, /*takesExponential=*/false, /*isLinear=*/true,
     [](WeightArithmetic &, Value score) { return score; }},
    // Martins and Astudillo 2016, "From Softmax to Sparsemax": the point of the
    // simplex that is nearest to the scores.
    {Map::Sparsemax, /*excludesLowest=*/true, /*isShiftable=*/false,
     /*isNonNegative=*/true, /*takesExponential=*/false, /*isLinear=*/false,
     [](WeightArithmetic &a, Value score) {
       return a.larger(score, a.real(0));
     },
     /*slope=*/
     [](WeightArithmetic &a, Value score) {
       return a.unlessBelow0(score, a.real(1));
     },
     /*one=*/1},
    // Peters, Niculae and Martins 2019, "Sparse Sequence-to-Sequence Models",
    // alpha = 1.5: between softmax and sparsemax.
    {Map::Entmax15, /*excludesLowest=*/true, /*isShiftable=*/false,
     /*isNonNegative=*/true, /*takesExponential=*/false, /*isLinear=*/false,
     [](WeightArithmetic &a, Value score) {
       Value root = a.multiply(a.larger(score, a.real(0)), a.real(0.5));
       return a.multiply(root, root);
     },
     /*slope=*/
     [](WeightArithmetic &a, Value score) {
       return a.multiply(a.larger(score, a.real(0)), a.real(0.5));
     },
     /*one=*/2},
};

static_assert(std::size(normalisers) == getMaxEnumValForMap() + 1,
              "one entry per case of Attn_Map");

const Normaliser &Normaliser::of(Map map) {
  const Normaliser &normaliser = normalisers[unsigned(map)];
  assert(normaliser.map == map && "entries stand in the order of the cases");
  return normaliser;
}

Value Normaliser::nextThreshold(WeightArithmetic &a, Value threshold, Value sum,
                                Value slope) {
  // Of a row of nothing both are 0.
  return a.add(threshold,
               a.divide(a.add(sum, a.real(-1)), a.larger(slope, a.real(1))));
}

Value UpstreamArithmetic::real(double value) {
  return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
}
Value UpstreamArithmetic::negate(Value x) {
  return arith::NegFOp::create(b, loc, x);
}
Value UpstreamArithmetic::add(Value x, Value y) {
  return arith::AddFOp::create(b, loc, x, y);
}
Value UpstreamArithmetic::multiply(Value x, Value y) {
  return arith::MulFOp::create(b, loc, x, y);
}
Value UpstreamArithmetic::divide(Value x, Value y) {
  return arith::DivFOp::create(b, loc, x, y);
}
Value UpstreamArithmetic::larger(Value x, Value y) {
  return arith::MaximumFOp::create(b, loc, x, y);
}
Value UpstreamArithmetic::exp(Value x) {
  return math::ExpOp::create(b, loc, x);
}
Value UpstreamArithmetic::unlessBelow0(Value x, Value y) {
  Value zero = real(0);
  Value below =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, zero);
  return arith::SelectOp::create(b, loc, below, zero, y);
}
