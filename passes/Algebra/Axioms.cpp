//===- Axioms.cpp - what two expressions may differ in --------------------===//
#include "passes/Algebra/Axioms.h"

using namespace heed;

static constexpr AxiomText texts[] = {
    {"reorder",
     "a + b = b + a, (a + b) + c = a + (b + c), the same of "
     "products, sum(i) sum(j) = sum(i, j)",
     "reorder and split sums", "none", "rounding; where overflow shows"},
    {"distribute",
     "a * (b + c) = a * b + a * c, (sum(i) a) * (sum(j) b) = "
     "sum(i, j) a * b",
     "distribute products over sums when an order of contraction changes",
     "a sum that may be empty is compared apart, with its extent 0",
     "rounding; where overflow shows; NaN or infinity where an infinite "
     "number meets a 0, or one of the other sign"},
    {"move-factor",
     "sum(j) x * a[j] = x * sum(j) a[j], sum(j) a[j] / l = "
     "(sum(j) a[j]) / l",
     "move a factor that does not depend on the reduction index; divide after "
     "instead of before",
     "a sum that may be empty is compared apart, with its extent 0; so are "
     "rows without a live key",
     "rounding; where overflow shows; NaN or infinity where an infinite "
     "number meets a 0, or one of the other sign"},
    {"reciprocal", "x / c = x * (1 / c) for one number c of the whole call",
     "move a factor that does not depend on the reduction index", "none",
     "one rounding"},
    {"row-maximum", "exp(s - m) = exp(s) / exp(m) where m is a maximum",
     "softmax subtracts the row maximum",
     "rows without a live key, where m is -inf, are compared apart",
     "rounding; an exponential that is written without a maximum overflows, "
     "the other does not"},
    {"log-sum-exp",
     "exp(x - log(l)) = exp(x) / l where l is a sum of exponentials",
     "softmax subtracts the row maximum",
     "rows without a live key, where l is 0, are compared apart",
     "rounding, as of the scores"},
    {"exp2", "exp2(x) = exp(x * ln 2)", "reorder and split sums", "none",
     "rounding"},
    {"excluded-key",
     "-inf + x = -inf, c * -inf = -inf for a number c > 0 of "
     "the whole call, exp(-inf) * x = 0",
     "a score of -inf is an excluded key",
     "the -inf stands in the score of an exponential",
     "a NaN or +inf beside the -inf is not seen"},
    {"absent-element",
     "(if c then x else nothing) * y = if c then x * y else "
     "nothing",
     "an element that softmax's `where` excludes is absent", "none", "nothing"},
};
static_assert(std::size(texts) == size_t(Axiom::Count));

const AxiomText &heed::textOf(Axiom axiom) { return texts[size_t(axiom)]; }
