//===- Normaliser.cpp - each normaliser, one after the other --------------===//
// A new one is a case of Attn_Map (Dialect.td) and an entry here, in the order
// of the cases. Absent keys have no weight, and a row without a key is empty:
// its outputs are 0, or `empty`.
#include "dialects/Attn/Normaliser.h"

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
};

static_assert(std::size(normalisers) == getMaxEnumValForMap() + 1,
              "one entry per case of Attn_Map");

const Normaliser &Normaliser::of(Map map) {
  const Normaliser &normaliser = normalisers[unsigned(map)];
  assert(normaliser.map == map && "entries stand in the order of the cases");
  return normaliser;
}
